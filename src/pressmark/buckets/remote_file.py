"""A key of a bucket as an open file, whose connection may break."""

from __future__ import annotations

import errno
import io
import os
from collections.abc import Callable
from contextlib import closing
from functools import partial
from threading import BoundedSemaphore
from typing import cast

from pressmark.buckets.bucket import Bucket, Download, KeyChangedError, KeyStatus
from pressmark.buckets.requests import PATIENCE, in_order
from pressmark.threads import require_use

__all__ = ["CountedFile", "PlacesFile", "RemoteFile"]

# Bytes of a file that one request reads: a connection that breaks costs at most as much.
RANGE = 1 << 26
# Bytes of the first request of a file, and of each of the requests that read ahead, and their number.
PART, AT_A_TIME = 8 << 20, 4
# Bytes that are read of a connection at once, few enough for the cache of a core.
BLOCK = 1 << 18
# A broken connection is opened again so often.
TRIES = 5
# Bytes that are read and dropped, because that takes less time than another request.
SKIP = 1 << 20
# Bytes of a buffer, and places of a file that are read in turn.
BUFFER = 1 << 18
PLACES = 3
# Files that are read ahead: with more at a time, one connection for each is enough. It limits memory.
_AHEAD = BoundedSemaphore(2)


class _Stream:
    """A range of a key, read by one request. A connection that breaks is opened again where it broke.

    :param end: the byte after the last one
    :param token: read only this version
    :ivar position: of the next byte
    :raises OSError: it does not exist, or cannot be read
    """

    def __init__(self, bucket: Bucket, key: bytes, begin: int, end: int, token: str | None) -> None:
        self._bucket = bucket
        self._key = key
        self.position = begin
        self._download: Download | None = bucket.get(key, begin=begin, end=end, token=token)
        self.status: KeyStatus = self._download.status
        self._end = min(end, self.status.size)

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``; none at the end of the range.

        :raises OSError: they cannot be read
        """
        wanted = min(size, self._end - self.position)
        for tries in range(TRIES if wanted > 0 else 0):
            try:
                if self._download is None:
                    where = {"begin": self.position, "end": self._end}
                    self._download = self._bucket.get(self._key, **where, token=self.status.token)
                block = self._download.read(wanted)
            except (FileNotFoundError, PermissionError, KeyChangedError):
                raise
            except OSError:
                self.close()
                if tries == TRIES - 1:
                    raise
                continue
            if block:
                self.position += len(block)
                return block
            self.close()
        if wanted > 0:
            raise OSError(errno.EIO, "the connection broke again and again", self._key)
        return b""

    def close(self) -> None:
        if self._download is not None:
            self._download.close()
            self._download = None


class _Streams:
    """The rest of a large file as one stream, which several requests read ahead, each a part."""

    def __init__(self, bucket: Bucket, key: bytes, begin: int, end: int, token: str) -> None:
        free: list[bytearray] = []  # new memory for each part would take a fifth of the time

        def read(at: int) -> memoryview:
            buffer = free.pop() if free else bytearray(PART)
            size = 0
            with closing(_Stream(bucket, key, at, min(at + PART, end), token)) as part:
                while block := part.read(BLOCK):
                    require_use()
                    buffer[size : size + len(block)] = block
                    size += len(block)
            return memoryview(buffer)[:size]

        self.position = begin
        self._parts = in_order(read, range(begin, end, PART), patience=PATIENCE, at_a_time=AT_A_TIME, ahead=1)
        self._free = free
        self._part = memoryview(b"")
        self._left = self._part

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``; none at the end.

        :raises OSError: they cannot be read
        """
        if not self._left:
            if self._part:
                self._free.append(cast(bytearray, self._part.obj))
            self._part = self._left = next(self._parts, memoryview(b""))
        block = bytes(self._left[:size])
        self._left = self._left[size:]
        self.position += len(block)
        return block

    def close(self) -> None:
        try:
            self._parts.close()
        finally:
            self._left = memoryview(b"")
            _AHEAD.release()


class RemoteFile(io.RawIOBase):
    """A key of a bucket, open for reading. A large one that is read in sequence is read ahead, in parts.

    :param end: the byte after the last one to read
    :param token: read only this version
    :param begin: the first position
    :raises OSError: it does not exist, or cannot be read
    """

    _stream: _Stream | _Streams | None = None  # closing a file that was not opened asks for it

    def __init__(
        self, bucket: Bucket, key: bytes, end: int | None = None, token: str | None = None, begin: int = 0
    ) -> None:
        self._bucket = bucket
        self._key = key
        self._position = begin
        self._limit = end
        first = begin + PART if end is None else min(end, begin + PART)
        self._stream = opened = _Stream(bucket, key, begin, first, token)
        self.status: KeyStatus = opened.status

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

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0:
            return self.readall()
        wanted = min(size, self._end - self._position)
        block = b""
        while wanted > 0 and not block:
            if self._stream is None or not 0 <= self._position - self._stream.position <= SKIP:
                self._disconnect()
                self._stream = self._one_request()
            gap = self._position - self._stream.position
            block = self._stream.read(gap or wanted)
            if not block:
                self._disconnect()
                self._stream = self._several_requests() or self._one_request()
            elif gap:
                block = b""
        self._position += len(block)
        return block

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast(bytearray, buffer)).cast("B")
        block = self.read(len(view))
        view[: len(block)] = block
        return len(block)

    def readall(self) -> bytes:
        return b"".join(iter(partial(self.read, BLOCK), b""))

    def _one_request(self) -> _Stream:
        end = min(self._position + RANGE, self._end)
        return _Stream(self._bucket, self._key, self._position, end, self.status.token)

    def _several_requests(self) -> _Streams | None:
        """Return the rest of the file, read ahead; :data:`None` if it is short, or enough files are read ahead."""
        if self._end - self._position <= PART or not _AHEAD.acquire(blocking=False):
            return None
        return _Streams(self._bucket, self._key, self._position, self._end, self.status.token)

    def _disconnect(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

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
