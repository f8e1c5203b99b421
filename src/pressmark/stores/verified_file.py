"""A file that is compared with its recorded digest while it is read."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import BinaryIO, NamedTuple, cast

__all__ = ["RecordedDigest", "open_verified"]

_BUFFER = 1 << 16  # 64 KiB


class RecordedDigest(NamedTuple):
    """The digest of a file, as an inventory or a manifest records it.

    :ivar algorithm: official name of an available algorithm
    :ivar digest: in lower case
    """

    algorithm: str
    digest: str


def open_verified(file: BinaryIO, recorded: RecordedDigest, error: Callable[[str], Exception]) -> BinaryIO:
    """Return a stream of ``file`` that raises an error instead of its last bytes if the content is damaged.

    A stream that is positioned by ``seek``, or closed before its end, is not verified.

    :param file: an open file at its beginning; the stream closes it
    :param error: creates the error, from the digest of the content
    """
    return cast(BinaryIO, io.BufferedReader(_VerifiedFile(file, recorded, error), _BUFFER))


class _VerifiedFile(io.RawIOBase):
    """The bytes of a file, hashed as they are read."""

    def __init__(self, file: BinaryIO, recorded: RecordedDigest, error: Callable[[str], Exception]) -> None:
        from pressmark.fixity.algorithms import ALGORITHMS  # opening an object needs no digest

        self._file = file
        self._recorded = recorded
        self._error = error
        self._hasher = ALGORITHMS[recorded.algorithm].make(1)
        self._size = _size_of(file)
        self._hashed = 0
        self._is_read_in_order = True

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._file.seekable()

    def fileno(self) -> int:
        return self._file.fileno()

    @property
    def name(self) -> object:
        return self._file.name

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count: int = self._file.readinto(buffer)  # type: ignore[attr-defined]
        if self._is_read_in_order and len(buffer):
            self._hasher.update(memoryview(buffer)[:count])
            self._hashed += count
            # A caller that reads as many bytes as the file has may never read its end.
            if not count or self._hashed == self._size:
                found = self._hasher.hexdigest()
                if found != self._recorded.digest:
                    raise self._error(found)
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        before = self._file.tell()
        after = self._file.seek(offset, whence)
        self._is_read_in_order = self._is_read_in_order and after == before
        return after

    def tell(self) -> int:
        return self._file.tell()

    def close(self) -> None:
        try:
            super().close()
        finally:
            self._file.close()


def _size_of(file: BinaryIO) -> int:
    """Return the size of an open file; -1 if it is not on a disk."""
    try:
        return os.fstat(file.fileno()).st_size
    except OSError:
        return -1
