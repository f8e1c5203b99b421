"""A key of a bucket as content to copy."""

from __future__ import annotations

from pressmark.buckets.bucket import Bucket
from pressmark.buckets.remote_file import RemoteFile

__all__ = ["SMALL", "RemoteContent"]

#: Files that are read ahead are read whole, if they are not larger, in bytes.
SMALL = 1 << 20


class RemoteContent:
    """A key of a bucket as content to copy: nothing is asked for before it is needed.

    :param size: in bytes, if it is known
    :param token: read only this version
    :ivar size: in bytes, once it is known
    """

    def __init__(self, bucket: Bucket, key: bytes, size: int | None = None, token: str | None = None) -> None:
        self.size = size
        self.bucket = bucket
        self.key = key
        self._token = token
        self._file: RemoteFile | None = None

    def fetch(self) -> RemoteContent | bytes:
        """Open the file, and return this, or its content if it is small.

        :raises OSError: the key does not exist, or cannot be read
        """
        self._file = opened = RemoteFile(self.bucket, self.key, token=self._token)
        self.size = opened.status.size
        if self.size > SMALL:
            return self
        with opened:
            return opened.readall()

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        :raises OSError: the key does not exist, or cannot be read
        """
        if self._file is None:
            self._file = RemoteFile(self.bucket, self.key, token=self._token)
        block = self._file.read(size)
        if not block:
            self._file.close()
        return block
