"""A key of a bucket as content to copy."""

from __future__ import annotations

import io

from pressmark.buckets.bucket import Bucket
from pressmark.buckets.remote_file import RemoteFile

__all__ = ["SMALL", "RemoteContent"]

#: Files that are read ahead are read whole, if they are not larger, in bytes.
SMALL = 1 << 20


class RemoteContent:
    """A key of a bucket as content to copy: nothing is asked for before it is needed.

    :param size: in bytes, if it is known
    """

    def __init__(self, bucket: Bucket, key: bytes, size: int | None = None) -> None:
        self.size = size
        self.bucket = bucket
        self.key = key
        self._file: io.RawIOBase | io.BytesIO | None = None
        self._error: OSError | None = None

    def fetch(self) -> None:
        """Open the file, and read it if it is small; :meth:`read` raises the error."""
        try:
            file = RemoteFile(self.bucket, self.key)
            if file.status.size > SMALL:
                self._file = file
                return
            with file:
                self._file = io.BytesIO(file.readall())
        except OSError as error:
            self._error = error

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        :raises OSError: the key does not exist, or cannot be read
        """
        if self._file is None and self._error is None:
            self.fetch()
        if self._error is not None:
            raise self._error
        assert self._file is not None
        block = self._file.read(size) or b""
        if not block:
            self._file.close()
            self._file = io.BytesIO()
        return block
