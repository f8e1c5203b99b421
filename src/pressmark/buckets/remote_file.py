"""A key of a bucket as an open file, whose connection may break."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from typing import cast

from pressmark.buckets.bucket import Bucket, Download, KeyChangedError, KeyStatus
from pressmark.threads import require_use

__all__ = ["CountedFile", "PlacesFile", "RemoteFile"]

# Bytes of a file that one request reads: a connection that breaks costs at most as much.
RANGE = 1 << 26
# A broken connection is opened again so often.
TRIES = 5
# Bytes that are read and dropped, because that takes less time than another request.
SKIP = 1 << 20
# Bytes of a buffer, and places of a file that are read in turn.
BUFFER = 1 << 18
PLACES = 3


class RemoteFile(io.RawIOBase):
    """A key of a bucket, open for reading. A connection that breaks is opened again where it broke.

    :param end: the byte after the last one to read
    :param token: read only this version
    :param begin: the first position
    :raises OSError: it does not exist, or cannot be read
    """

    _download: Download | None = None  # closing a file that was not opened asks for it

    def __init__(
        self, bucket: Bucket, key: bytes, end: int | None = None, token: str | None = None, begin: int = 0
    ) -> None:
        self._bucket = bucket
        self._key = key
        self._position = begin
        self._limit = end
        first = begin + RANGE if end is None else min(end, begin + RANGE)
        self._download = bucket.get(key, begin=begin, end=first, token=token)
        self.status: KeyStatus = self._download.status
        # Position of the connection, which follows the position of the file when it is read.
        self._arrived = begin

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
        self._position = start + offset
        return self._position

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer)).cast("B")
        wanted = min(len(view), self._end - self._position)
        for tries in range(TRIES):
            if wanted <= 0:
                return 0
            try:
                if not 0 <= self._position - self._arrived <= SKIP:
                    self._disconnect()
                if self._download is None:
                    end = min(self._position + RANGE, self._end)
                    self._download = self._bucket.get(self._key, begin=self._position, end=end, token=self.status.token)
                    self._arrived = self._position
                while (gap := self._position - self._arrived) and (dropped := self._download.read(gap)):
                    self._arrived += len(dropped)
                block = b"" if gap else self._download.read(wanted)
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
                self._arrived = self._position
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


class PlacesFile:
    """A key of a bucket that is read in a few places in turn, each of them as a stream: a directory at the end of an
    archive, and the members that it lists.

    :ivar status: of the key, when it was opened
    """

    def __init__(self, bucket: Bucket, key: bytes) -> None:
        self._bucket = bucket
        self._key = key
        self._position = 0
        first = RemoteFile(bucket, key)
        self.status = first.status
        # The one that was read last is at the end.
        self._places = [io.BufferedReader(first, BUFFER)]

    def seek(self, position: int) -> int:
        self._position = position
        return position

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, or fewer at the end.

        :raises OSError: the key cannot be read, or has changed
        """
        place = min(self._places, key=lambda one: abs(self._position - one.tell()))
        if not -BUFFER <= self._position - place.tell() <= SKIP:
            if len(self._places) < PLACES:
                file = RemoteFile(self._bucket, self._key, token=self.status.token, begin=self._position)
                self._places.append(place := io.BufferedReader(file, BUFFER))
            else:
                place = self._places[0]
        self._places.remove(place)
        self._places.append(place)
        place.seek(self._position)
        data = place.read(size)
        self._position += len(data)
        return data

    def close(self) -> None:
        for place in self._places:
            place.close()


class CountedFile:
    """A file that counts what is read of it, and ends a read whose result is not needed.

    :param count: called with the number of bytes
    """

    def __init__(self, file: RemoteFile, count: Callable[[int], object]) -> None:
        self._file = file
        self._count = count

    def read(self, size: int) -> bytes:
        require_use()
        data = self._file.read(size) or b""
        self._count(len(data))
        return data
