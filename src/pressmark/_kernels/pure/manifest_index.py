"""The lines of one manifest, found again by their paths: fingerprints and offsets, no text.

BagIt section 2.1.3 says what a line is. A line is plain where nothing has to be decided about it: the checksum has the
right number of hex digits, one or two blanks follow, then the path, which begins with the prefix, is UTF-8, and holds
no percent sign, backslash, NUL, empty segment, ``.`` or ``..``; and the line is terminated. All others are for the
shared code.
"""

from __future__ import annotations

import re
from array import array
from threading import Lock

from pressmark._kernels.pure.serialized import serialized
from pressmark._kernels.tables import LineStatus

__all__ = ["ManifestIndex"]

# What the upper bits of an offset say of its line.
ODD = 1 << 63  # not plain
FOLDING = 1 << 62  # its path is not the same in lower case, or not ASCII
MARKED = 1 << 61
OFFSET = MARKED - 1

LINE_END = re.compile(rb"\r\n?|\n")
NOT_PLAIN = re.compile(rb"/(?:\.{0,2}/|\.{1,2}\Z|\Z)")
FIRST_SLOTS = 64


class ManifestIndex:
    """Where the lines of a manifest are, by the fingerprints of their paths.

    :param digits: of a checksum; 0 where no line is plain
    :param prefix: of every path
    :param limit: the length that a line may have
    :param salt: nobody can choose paths of one fingerprint who does not know it
    """

    def __init__(self, digits: int, prefix: bytes, limit: int, salt: bytes) -> None:
        self._lock = Lock()
        self._line = re.compile(
            rb"[0-9A-Fa-f]{%d}[ \t]{1,2}(%b[^\r\n\0%%\\]+)(?:\r\n|\n|\r)" % (digits, re.escape(prefix))
        )
        self._digits = digits
        self._limit = limit
        self._salt = salt
        self._fingerprints = array("q")
        self._offsets = array("Q")
        # One more than the line's place, in open addressing; 0 is an empty slot.
        self._slots = array("I", bytes(4 * FIRST_SLOTS))

    def __len__(self) -> int:
        return len(self._offsets)

    @serialized
    def scan(self, block: bytes, position: int, base: int, final: bool) -> tuple[int, int, int]:
        """Take in plain lines, from ``position`` on, until there is one that is not.

        :param base: where the block begins in the manifest
        :param final: whether the manifest ends with the block
        :returns: where it stopped, how many lines it took in, and a :class:`LineStatus`
        """
        match, size, lines = self._line.match if self._digits else None, len(block), 0
        while match is not None and (found := match(block, position)) is not None:
            end = found.end()
            path = found[1]
            ascii_only = path.isascii()
            if (
                (end == size and not final and block[end - 1] == 0x0D)
                or found.end(1) - position > self._limit
                or ((b"/." in path or b"//" in path or path[-1] == 0x2F) and NOT_PLAIN.search(path))
                or not (ascii_only or _is_utf8(path))
            ):
                break
            fingerprint = hash(self._salt + path)
            slot, known = self._slot(fingerprint)
            if known:
                return position, lines, LineStatus.AGAIN
            offset = base + position
            if not ascii_only or path.lower() != path:
                offset |= FOLDING
            self._append(fingerprint, offset, slot)
            position, lines = end, lines + 1
        ended = LINE_END.search(block, position)
        if ended is None or (ended.end() == size and ended[0] == b"\r" and not final):
            return position, lines, LineStatus.ODD if final and position < size else LineStatus.MORE
        return position, lines, LineStatus.ODD

    @serialized
    def add(self, path: bytes, offset: int, odd: bool) -> None:
        """Take in one line, whether its path is there or not."""
        if odd:
            offset |= ODD
        if not path.isascii() or path.lower() != path:
            offset |= FOLDING
        fingerprint = hash(self._salt + path)
        slots, mask = self._slots, len(self._slots) - 1
        slot = fingerprint & mask
        while slots[slot]:
            slot = (slot + 1) & mask
        self._append(fingerprint, offset, slot)

    @serialized
    def find(self, path: bytes) -> list[int]:
        """Return the places of the lines that have the fingerprint of ``path``, in their order."""
        fingerprint = hash(self._salt + path)
        slots, mask, fingerprints = self._slots, len(self._slots) - 1, self._fingerprints
        slot = fingerprint & mask
        found = []
        while place := slots[slot]:
            if fingerprints[place - 1] == fingerprint:
                found.append(place - 1)
            slot = (slot + 1) & mask
        return found

    def line(self, place: int) -> int:
        """Return where the line begins in the manifest, all bits turned over (so below 0) where it is not plain."""
        offset = self._offsets[place]
        return ~(offset & OFFSET) if offset >= ODD else offset & OFFSET

    @serialized
    def mark(self, place: int) -> None:
        """Mark the line."""
        self._offsets[place] |= MARKED

    def is_marked(self, place: int) -> bool:
        """Return whether the line is marked."""
        return self._offsets[place] & MARKED != 0

    def next_unmarked(self, place: int) -> int:
        """Return the first line from ``place`` on that is not marked; -1 where there is none."""
        offsets = self._offsets
        for other in range(place, len(offsets)):
            if not offsets[other] & MARKED:
                return other
        return -1

    def next_folding(self, place: int) -> int:
        """Return the first line from ``place`` on that does not fold to itself; -1 where there is none."""
        offsets = self._offsets
        for other in range(place, len(offsets)):
            if offsets[other] & FOLDING:
                return other
        return -1

    def _slot(self, fingerprint: int) -> tuple[int, bool]:
        """Return the slot of the fingerprint, and whether it is taken."""
        slots, mask, fingerprints = self._slots, len(self._slots) - 1, self._fingerprints
        slot = fingerprint & mask
        while place := slots[slot]:
            if fingerprints[place - 1] == fingerprint:
                return slot, True
            slot = (slot + 1) & mask
        return slot, False

    def _append(self, fingerprint: int, offset: int, slot: int) -> None:
        self._fingerprints.append(fingerprint)
        self._offsets.append(offset)
        self._slots[slot] = len(self._offsets)
        if 4 * len(self._offsets) >= 3 * len(self._slots):
            self._grow()

    def _grow(self) -> None:
        size = 2 * len(self._slots)
        # The smaller table goes before the larger one comes.
        self._slots = slots = array("I")
        slots.frombytes(bytes(4 * size))
        mask = size - 1
        for place, fingerprint in enumerate(self._fingerprints, 1):
            slot = fingerprint & mask
            while slots[slot]:
                slot = (slot + 1) & mask
            slots[slot] = place


def _is_utf8(path: bytes) -> bool:
    try:
        path.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
