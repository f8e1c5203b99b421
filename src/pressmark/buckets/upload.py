"""Files on their way to a bucket: small ones in one request, large ones in parts while they are read.

An upload in parts is visible to nobody until it is complete. The next run continues one that an interrupted run
left, and sends no part with the same content again.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from threading import BoundedSemaphore, Lock

from pressmark.buckets.bucket import MAX_PARTS, MIN_PART, NEW, Bucket, Part
from pressmark.fs.file_errors import NotWritten
from pressmark.threads import Cancelled, Threads, require_use

__all__ = ["PART", "WHOLE", "NewKey", "PartsUpload", "Space", "part_size"]

#: Bytes of a part, unless the file needs larger ones.
PART = 8 << 20
#: Bytes of the largest file of an object that is sent in one request: only of such files, servers keep a digest.
WHOLE = 64 << 20
# Parts of a file that are sent at a time, and their bytes, unless two parts are more.
AT_A_TIME, SENDING = 6, 64 << 20


def part_size(size: int) -> int:
    """Return the size of the parts of a file of this size, in bytes."""
    least = -(-size // (MAX_PARTS - 1))
    return max(PART, -(-least // MIN_PART) * MIN_PART)


class PartsUpload:
    """A file that is sent in parts: a sink of :func:`pressmark.fixity.hasher.transfer`.

    :param pool: sends the parts
    :param size: of the file; 0 if it is not known
    :ivar path: the key
    :ivar size: bytes so far
    :ivar is_there: whether an earlier run has written the key: then the content is only compared
    """

    def __init__(self, bucket: Bucket, key: bytes, pool: Threads, size: int, storage_class: str | None = None) -> None:
        self.path = key
        self.size = 0
        self._bucket = bucket
        self._pool = pool
        self._class = storage_class
        self._upload = ""
        self._there: dict[int, Part] = {}
        self._part_size = part_size(size)
        self._buffer = bytearray()
        self._parts: list[Future[Part]] = []
        self._free = BoundedSemaphore(min(AT_A_TIME, max(2, SENDING // self._part_size)))
        self._is_complete = False
        self.is_there = False

    def add(self, block: memoryview) -> None:
        """Append a block.

        :raises NotWritten: a part cannot be sent
        """
        try:
            if not self._is_begun:
                self._begin()
            while block:
                left = self._part_size - len(self._buffer)
                self._buffer += block[:left]
                block = block[left:]
                if len(self._buffer) == self._part_size:
                    self._send()
        except OSError as error:
            raise NotWritten(error) from None

    def _begin(self) -> None:
        """Continue the newest upload of this key, or start one, unless the key was sent in parts already."""
        with suppress(FileNotFoundError):
            self.is_there = "-" in self._bucket.head(self.path).token
            if self.is_there:
                return
        others = [one for one in self._bucket.uploads(self.path) if one.key == self.path]
        if others:
            self._upload = max(others, key=lambda one: one.started).id
            self._there = {part.number: part for part in self._bucket.parts(self.path, self._upload)}
            if 1 in self._there and self._there[1].size >= MIN_PART:
                self._part_size = max(self._part_size, self._there[1].size)
        else:
            self._upload = self._bucket.start(self.path, storage_class=self._class)

    @property
    def _is_begun(self) -> bool:
        return self.is_there or bool(self._upload)

    def _send(self) -> None:
        data, self._buffer = self._buffer, bytearray()
        number = len(self._parts) + 1
        self.size += len(data)
        for sent in self._parts:
            if sent.done():
                sent.result()  # an error ends the file at once
        self._free.acquire()
        self._parts.append(self._pool.submit(self._part, number, data))

    def _part(self, number: int, data: bytearray) -> Part:
        try:
            if self.is_there:
                return Part(number, len(data), hashlib.md5(data, usedforsecurity=False).hexdigest())
            there = self._there.get(number)
            if there is not None and there.size == len(data) and _is_content(there, data):
                return there
            return self._bucket.part(self.path, self._upload, number, memoryview(data))
        finally:
            self._free.release()

    def complete(self, _like: os.stat_result | None = None) -> None:
        """Send the rest, and wait for all parts.

        :raises NotWritten: a part cannot be sent
        """
        try:
            if not self._is_begun:
                self._begin()
            if self._buffer or not self._parts:
                self._send()
            for sent in self._parts:
                sent.result()
        except OSError as error:
            raise NotWritten(error) from None
        self._is_complete = True

    def close(self) -> None:
        """Discard the upload of a source that cannot be read; one that was interrupted is continued by the next run."""
        if not self._is_complete and not isinstance(sys.exc_info()[1], (KeyboardInterrupt, Cancelled, NotWritten)):
            self.discard()

    def discard(self) -> None:
        """Discard the upload."""
        for sent in self._parts:
            sent.cancel()
        if self._upload:
            upload, self._upload = self._upload, ""
            self._bucket.abort(self.path, upload)

    def publish(self) -> str:
        """Make the content visible under its key, where nothing is, and return the token.

        :raises FileExistsError: another content is there
        """
        parts = [sent.result() for sent in self._parts]
        try:
            if self.is_there:
                raise FileExistsError
            return self._bucket.complete(self.path, self._upload, parts)
        except (FileExistsError, FileNotFoundError):
            # The answer to an earlier request may have been lost: the same parts are the same content.
            there = self._bucket.head(self.path)
            if there.size == self.size and there.token == _token_of(parts):
                self.discard()  # if another run has written it
                return there.token
            raise FileExistsError(17, os.strerror(17), self.path) from None


class NewKey:
    """A file that is written where no key is, in one request if it is small, or else in parts: a sink of
    :func:`pressmark.fixity.hasher.transfer`.

    :param pool: sends the parts
    :param size: of the file; 0 if it is not known
    :ivar path: the key
    """

    def __init__(self, bucket: Bucket, key: bytes, pool: Threads, size: int = 0) -> None:
        self.path = key
        self._bucket = bucket
        self._pool = pool
        self._size = size
        self._buffer = bytearray()
        self._upload: PartsUpload | None = None

    def add(self, block: memoryview) -> None:
        """Append a block.

        :raises NotWritten: a part cannot be sent
        """
        require_use()
        if self._upload is None and len(self._buffer) + len(block) <= PART:
            self._buffer += block
            return
        if self._upload is None:
            self._upload = PartsUpload(self._bucket, self.path, self._pool, self._size)
            first, self._buffer = self._buffer, bytearray()
            self._upload.add(memoryview(first))
        self._upload.add(block)

    def complete(self, like: os.stat_result | None = None) -> None:
        """Wait until all parts have arrived.

        :raises NotWritten: a part cannot be sent
        """
        if self._upload is not None:
            self._upload.complete(like)

    def close(self) -> None:
        """Discard parts of a source that cannot be read."""
        if self._upload is not None:
            self._upload.close()

    @property
    def is_small(self) -> bool:
        """Whether nothing is sent before :meth:`publish`."""
        return self._upload is None

    def publish(self, digests: Mapping[str, str], over: str = NEW) -> None:
        """Make the content visible.

        :param digests: of the content, by algorithm
        :param over: the version to replace; not of a file in parts
        :raises FileExistsError: another content is there, or for a small file, any
        :raises OSError: it cannot be written
        """
        if self._upload is None:
            self._bucket.put(self.path, memoryview(self._buffer), over=over, digests=digests)
            return
        try:
            self._upload.publish()
        except FileExistsError:
            self._upload.discard()
            raise


class Space:
    """The bytes of files that are being sent, at most."""

    def __init__(self, size: int) -> None:
        self._unit = 1 << 16
        self._free = BoundedSemaphore(max(1, size // self._unit))
        self._most = max(1, size // self._unit)
        self._turn = Lock()

    def _units(self, size: int) -> int:
        return min(self._most, 1 + size // self._unit)

    def take(self, size: int) -> None:
        """Wait until there is space."""
        with self._turn:  # two threads with half of their space would wait for each other
            for _ in range(self._units(size)):
                self._free.acquire()

    def give(self, size: int) -> None:
        """Give space back."""
        self._free.release(self._units(size))


def _is_content(part: Part, data: bytearray) -> bool:
    """Return whether a part that has arrived has this content."""
    if part.sha256 is not None:
        return part.sha256 == hashlib.sha256(data).hexdigest()
    return part.token == hashlib.md5(data, usedforsecurity=False).hexdigest()


def _token_of(parts: list[Part]) -> str:
    """Return the token that nearly all servers give a key of these parts."""
    try:
        joined = b"".join(bytes.fromhex(part.token) for part in parts)
    except ValueError:
        return ""
    return f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(parts)}"
