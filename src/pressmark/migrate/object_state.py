"""The state of an object's entries, which shows whether an object has changed since a run looked at it."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterable, Sequence

__all__ = ["entries_digest", "entries_digest_of", "has_same_content_times"]

# Size, and seconds and nanoseconds of the times of modification and of status change: see the kernel ``tree_sizes``.
_STAMP = struct.Struct("=5q")
_BEFORE_STATUS = 24  # bytes of a stamp before the time of status change
_SECOND = 1_000_000_000
# Of an empty directory, whose times say nothing about files.
_EMPTY = bytes(_STAMP.size)


def entries_digest(names: Sequence[bytes], stamps: bytes) -> str:
    """Return a digest over all entries of an object.

    It has two parts, separated by a dot: one over names, kinds, sizes and times of modification, and one over names and
    times of status change. A backup that is restored, and a change of permissions, change only the second part.

    :param names: of all files, and of empty directories with a slash at the end
    :param stamps: one for each name, in this order, as from the kernel ``tree_sizes``
    """
    size = _STAMP.size
    pairs = sorted((name, stamps[at : at + size]) for name, at in zip(names, range(0, len(stamps), size), strict=True))
    content = b"".join([b"%b\0%b" % (name, stamp[:_BEFORE_STATUS]) for name, stamp in pairs])
    status = b"".join([b"%b\0%b" % (name, stamp[_BEFORE_STATUS:]) for name, stamp in pairs])
    return f"{_digest(content)}.{_digest(status)}"


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def entries_digest_of(files: Iterable[tuple[bytes, os.stat_result]], empty: Iterable[bytes] = ()) -> str:
    """Return :func:`entries_digest` of files, given with their statuses, and of empty directories."""
    names: list[bytes] = []
    stamps: list[bytes] = []
    for name, status in files:
        names.append(name)
        times = *divmod(status.st_mtime_ns, _SECOND), *divmod(status.st_ctime_ns, _SECOND)
        stamps.append(_STAMP.pack(status.st_size, *times))
    for name in empty:
        names.append(name + b"/")
        stamps.append(_EMPTY)
    return entries_digest(names, b"".join(stamps))


def has_same_content_times(one: str, other: str) -> bool:
    """Return whether two digests differ at most in times of status change."""
    return bool(one) and one.partition(".")[0] == other.partition(".")[0]
