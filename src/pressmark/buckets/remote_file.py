"""A key of a bucket as an open file, whose connection may break; and as a source that is opened when it is needed."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from pressmark.buckets.bucket import Bucket, Download, KeyChangedError, KeyStatus
from pressmark.buckets.requests import in_order

__all__ = ["SMALL", "RemoteContent", "RemoteFile", "fetched"]

#: Files that are read ahead are read whole, if they are not larger, in bytes.
SMALL = 1 << 20

Task = TypeVar("Task")
# Bytes of a file that one request reads: a connection that breaks costs at most as much.
RANGE = 1 << 26
# A broken connection is opened again so often.
TRIES = 5


class RemoteFile(io.RawIOBase):
    """A key of a bucket, open for reading. A connection that breaks is opened again where it broke.

    :param end: the byte after the last one to read
    :param token: read only this version
    :raises OSError: it does not exist, or cannot be read
    """

    def __init__(self, bucket: Bucket, key: bytes, end: int | None = None, token: str | None = None) -> None:
        self._bucket = bucket
        self._key = key
        self._position = 0
        self._limit = end
        self._download: Download | None = bucket.get(key, end=min(end or RANGE, RANGE), token=token)
        self.status: KeyStatus = self._download.status
        self._begun = 0

    @property
    def _end(self) -> int:
        return self.status.size if self._limit is None else min(self._limit, self.status.size)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.status.size}[whence]
        if start + offset < 0:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if start + offset != self._position:
            self._position = start + offset
            self._disconnect()
        return self._position

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer)).cast("B")
        wanted = min(len(view), self._end - self._position)
        for tries in range(TRIES):
            if wanted <= 0:
                return 0
            try:
                if self._download is None:
                    end = min(self._position + RANGE, self._end)
                    self._download = self._bucket.get(self._key, begin=self._position, end=end, token=self.status.token)
                block = self._download.read(wanted)
            except (FileNotFoundError, PermissionError, KeyChangedError):
                raise
            except OSError:
                self._disconnect()
                if tries == TRIES - 1:
                    raise
                continue
            if block:
                view[: len(block)] = block
                self._position += len(block)
                return len(block)
            self._disconnect()  # the end of a range
        raise OSError(errno.EIO, "the connection broke again and again", self._key)

    def _disconnect(self) -> None:
        if self._download is not None:
            self._download.close()
            self._download = None

    def close(self) -> None:
        if not self.closed:
            self._disconnect()
        super().close()


class RemoteContent:
    """A key of a bucket as content to copy: nothing is asked for before it is needed."""

    def __init__(self, bucket: Bucket, key: bytes) -> None:
        self._bucket = bucket
        self._key = key
        self._file: io.RawIOBase | io.BytesIO | None = None
        self._error: OSError | None = None

    def fetch(self) -> None:
        """Open the file, and read it if it is small; :meth:`read` raises the error."""
        try:
            file = RemoteFile(self._bucket, self._key)
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


def fetched(tasks: Iterator[Task], content: Callable[[Task], Any]) -> Iterator[Task]:
    """Yield tasks in order, and open the files of the next ones meanwhile.

    :param content: returns what a task copies
    """

    def fetch(task: Task) -> Task:
        source = content(task)
        if isinstance(source, RemoteContent):
            source.fetch()
        return task

    return in_order(fetch, tasks)
