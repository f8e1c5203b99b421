"""Paths sorted by their folded keys: sorted runs of records, and the merge that returns possible collisions.

A record is a unique byte string: the key, a NUL, the spelling of the path if it differs from the key, a NUL, and the
number of the path in eight bytes. Key and spelling are written without NULs and with the slash below all other bytes,
so that a path sorts directly before the paths inside it:

======== ===========
byte     written
======== ===========
``/``    ``01``
00       ``02 02``
01       ``02 03``
02 … 2e  one more
30 … ff  unchanged
======== ===========
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Sequence
from functools import cache
from struct import Struct
from threading import Lock
from typing import Protocol

from pressmark._kernels.pure.column import ByteColumn
from pressmark._kernels.pure.serialized import serialized

__all__ = ["PathMerge", "PathSorter", "beyond_ascii", "suspicious"]

# Key, path, how many paths have this spelling, and their first numbers.
Spelling = tuple[bytes, bytes, int, tuple[int, ...]]

_WRITTEN = bytes([0, *range(2, 0x30), 1, *range(0x30, 0x100)])
_READ = bytes([0, 0x2F, *range(1, 0x2F), *range(0x30, 0x100)])
_LENGTH = Struct("<I")
_COUNTABLE = 1 << 31
# The memory of a bytes object in a list, without its bytes.
_OVERHEAD = 48


def _write(path: bytes) -> bytes:
    written = path.translate(_WRITTEN)
    # After the translation, 02 stands for 01 of the path, and 00 for 00.
    return written.replace(b"\2", b"\2\3").replace(b"\0", b"\2\2") if b"\2" in written or b"\0" in written else written


def read_path(written: bytes) -> bytes:
    if b"\2" not in written:
        return written.translate(_READ)
    # Pairs from the left: 02 02 is a NUL; 02 03 becomes a 02, which the table translates into 01.
    return re.sub(rb"\x02([\x02\x03])", lambda pair: b"\0" if pair[1] == b"\2" else b"\2", written).translate(_READ)


def beyond_ascii(paths: ByteColumn) -> list[int]:
    """Return the ascending indices of the items that are not ASCII."""
    return [index for index, path in enumerate(paths.items) if not path.isascii()]


class PathSorter:
    """The records of paths, sorted in memory."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._records: list[bytes] = []
        self._size = 0
        self._next = 0

    @serialized
    def add(self, paths: ByteColumn, folded: ByteColumn, number: int, skip: Sequence[int]) -> None:
        """Add paths, numbered from ``number``.

        :param folded: the folded form of each path that is not ASCII, in order
        :param skip: the ascending indices of items that are not paths; they have numbers as well
        """
        others = iter(folded.items)
        skipped = set(skip)
        for index, path in enumerate(paths.items):
            key = path.lower() if path.isascii() else next(others)
            if index in skipped:
                continue
            spelling = b"" if key == path else _write(path)
            record = b"%b\0%b\0%b" % (_write(key), spelling, (number + index).to_bytes(8, "big"))
            self._records.append(record)
            self._size += len(record) + _OVERHEAD

    @serialized
    def size(self) -> int:
        """Return the memory of the records in bytes."""
        return self._size

    @serialized
    def sort(self) -> None:
        """Sort the records."""
        self._records.sort()
        self._next = 0

    @serialized
    def take(self, size: int) -> bytes:
        """Return the next sorted records, each after its length: about ``size`` bytes; empty after the last record.

        The sorter is empty again after the last record.
        """
        block = bytearray()
        records, position = self._records, self._next
        while position < len(records) and len(block) < size:
            record = records[position]
            block += _LENGTH.pack(len(record))
            block += record
            position += 1
        self._next = position
        if position == len(records):
            self._records, self._size, self._next = [], 0, 0
        return bytes(block)


class DirectoryCounter(Protocol):
    """A counter of the directories of merged paths: :class:`PathTree`."""

    def _add(self, key: bytes, path: bytes) -> None: ...


class PathMerge:
    """A merge of sorted runs of records, which returns only the paths that may collide.

    :param runs: the number of runs
    :param first: how many numbers to keep for each spelling
    :param tree: counts the directories of all paths; optional
    """

    def __init__(self, runs: int, first: int, tree: DirectoryCounter | None = None) -> None:
        self._lock = Lock()
        self._first = first
        self._tree = tree
        self._heap: list[tuple[bytes, int]] = []
        self._blocks: list[Iterator[bytes]] = [iter(()) for _ in range(runs)]
        self._hungry = list(range(runs))
        self._spelled = b""
        self._count = 0
        self._numbers: list[int] = []
        # The key of the last path that is not inside another, and its first spelling until it is returned.
        self._outer: bytes | None = None
        self._pending: Spelling | None = None

    @serialized
    def feed(self, run: int, block: bytes) -> None:
        """Add the next whole records of a run that :meth:`step` returned; empty at the end of the run."""
        self._hungry.remove(run)
        if block:
            self._blocks[run] = _records(block)
            heapq.heappush(self._heap, (next(self._blocks[run]), run))

    @serialized
    def step(self, most: int) -> tuple[int, list[Spelling]]:
        """Merge until a run needs records or about ``most`` spellings are found.

        A path may collide if another path has the same key, if it is inside another path, or if another path is inside
        it.

        :returns: the number of the run, -1 at the end, or -2 if there are more spellings; and the spellings: the key as
            written in records, the path, the number of paths with this spelling, and their first numbers
        """
        found: list[Spelling] = []
        heap, blocks = self._heap, self._blocks
        while not self._hungry:
            if not heap:
                self._end_spelling(found)
                return -1, found
            if len(found) >= most:
                return -2, found
            record, run = heap[0]
            if record[:-8] != self._spelled or not self._count:
                self._end_spelling(found)
                self._spelled = record[:-8]
            if self._count < self._first:
                self._numbers.append(int.from_bytes(record[-8:], "big"))
            self._count += 1
            follows = next(blocks[run], None)
            if follows is None:
                heapq.heappop(heap)
                self._hungry.append(run)
            else:
                heapq.heapreplace(heap, (follows, run))
        return self._hungry[-1], found

    def _end_spelling(self, found: list[Spelling]) -> None:
        if not self._count:
            return
        key, spelling, _ = self._spelled.split(b"\0")
        if self._tree is not None:
            self._tree._add(key, spelling or key)
        this = (key, read_path(spelling or key), self._count, tuple(self._numbers))
        outer = self._outer
        if outer is not None and (key == outer or not outer or key.startswith(outer + b"\1")):
            if self._pending is not None:
                found.append(self._pending)
                self._pending = None
            found.append(this)
        else:
            self._outer = key
            self._pending = None if self._count > 1 else this
            if self._count > 1:
                found.append(this)
        self._count = 0
        self._numbers = []


def _records(block: bytes) -> Iterator[bytes]:
    position = 0
    while position < len(block):
        (length,) = _LENGTH.unpack_from(block, position)
        position += 4
        yield block[position : position + length]
        position += length


# --- names that systems reject ----------------------------------------------------------------------------------

# The bits of a byte's class.
REFUSED, NOT_LAST, ADVISED_FIRST = 1, 2, 4


def suspicious(
    paths: ByteColumn, classes: bytes, longest_segment: int, longest_path: int, devices: bool
) -> tuple[list[int], int]:
    """Return the indices of suspicious paths, and how many paths have a segment with a discouraged first byte.

    A path is suspicious if it is too long or has a segment that is empty, ``.``, ``..`` or too long, contains a
    rejected byte, ends with a byte that must not be the last one, or, if ``devices``, starts like the name of a device.

    :param classes: bits for each of the 256 bytes: 1 rejected, 2 not at the end of a segment, 4 discouraged at the
        start of a segment
    :param longest_segment: length in bytes above which a segment is too long
    :param longest_path: length in bytes above which a path is too long
    :param devices: check for CON, PRN, AUX, NUL, COM and LPT, in either case
    """
    bad, advised = _patterns(classes, longest_segment, devices)
    found, count = [], 0
    for index, path in enumerate(paths.items):
        if len(path) > longest_path or bad.search(path) is not None:
            found.append(index)
        if advised is not None and advised.search(path) is not None:
            count += 1
    return found, count


@cache
def _patterns(
    classes: bytes, longest_segment: int, devices: bool
) -> tuple[re.Pattern[bytes], re.Pattern[bytes] | None]:
    def members(bit: int) -> bytes:
        return b"".join(b"\\x%02x" % byte for byte in range(256) if classes[byte] & bit)

    parts = [rb"(?:\A|/)\.{0,2}(?:/|\Z)"]
    # Regular expressions cannot count beyond this, and no path in memory is that long.
    if longest_segment < _COUNTABLE:
        parts.append(rb"[^/]{%d}" % (longest_segment + 1))
    if members(REFUSED):
        parts.append(rb"[%b]" % members(REFUSED))
    if members(NOT_LAST):
        parts.append(rb"[%b](?:/|\Z)" % members(NOT_LAST))
    if devices:
        parts.append(rb"(?:\A|/)(?i:con|prn|aux|nul|com|lpt)")
    advised = re.compile(rb"(?:\A|/)[%b]" % members(ADVISED_FIRST)) if members(ADVISED_FIRST) else None
    return re.compile(b"|".join(parts)), advised
