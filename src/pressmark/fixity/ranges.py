"""Digests of a part of an open file, such as a member of an archive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import Lock

from pressmark.fixity.algorithms import Hasher, implementation
from pressmark.fixity.hasher import CHANGED, LARGE, READ_SIZE, FileRange
from pressmark.fixity.outcomes import Outcome, failed_outcome
from pressmark.fixity.read_ahead import read_at, update_ahead
from pressmark.fs.file_errors import kind_of_error

__all__ = ["hash_range"]

# Several threads read one file.
_SEEKING = Lock()


def hash_range(
    descriptor: int,
    section: FileRange,
    names: Sequence[str],
    threads: int = 1,
    on_bytes: Callable[[int], object] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Outcome:
    """Hash a part of an open file and return its outcome, whose path is empty.

    :param names: official names of the algorithms and checksums
    :param threads: number of threads, including this one
    :param on_bytes: called with the size of each block, in this thread
    :param cancelled: called for each block; returns whether to stop
    """
    threads = threads if section.size >= LARGE else 1
    hashers = {name: implementation(name).make(max(1, threads - 1)) for name in names}
    total = 0
    try:
        for size in _blocks(descriptor, section, threads, hashers):
            total += size
            if on_bytes is not None:
                on_bytes(size)
            if cancelled is not None and cancelled():
                return Outcome(b"", None, None, None, None, "cancelled", "run ended")
    except OSError as error:
        return failed_outcome(b"", kind_of_error(error.errno or 0, None), error.errno or 0)
    if total != section.size:
        reason = f"{total} of {section.size} bytes read"
        return Outcome(b"", None, section.size, None, None, CHANGED, reason)
    return Outcome(b"", {name: hashers[name].hexdigest() for name in names}, total, None, None)


def _blocks(descriptor: int, section: FileRange, threads: int, hashers: dict[str, Hasher]) -> Iterator[int]:
    """Feed a part of a file to all hashers, and yield the size of each block."""
    if threads > 1:
        yield from update_ahead(descriptor, threads, hashers, *section, _SEEKING)
        return
    offset, left = section
    buffer = memoryview(bytearray(min(READ_SIZE, left)))
    while left and (size := read_at(descriptor, buffer[:left], offset, _SEEKING)):
        for hasher in hashers.values():
            hasher.update(buffer[:size])
        offset += size
        left -= size
        yield size
