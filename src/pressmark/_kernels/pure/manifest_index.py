"""An index of the lines of one manifest by path: fingerprints and offsets, no text.

BagIt section 2.1.3 defines a line. A line is plain if the checksum has the right number of hex digits, one or two
blanks follow, the path starts with the prefix, is UTF-8, and contains no percent sign, backslash, NUL, empty segment,
``.`` or ``..``, and the line is terminated. The shared code parses all other lines.
"""

from __future__ import annotations

import re
from array import array
from threading import Lock

from pressmark._kernels.pure.serialized import serialized
from pressmark._kernels.tables import LineStatus

__all__ = ["ManifestIndex"]

# The upper bits of an offset.
ODD = 1 << 63  # the line is not plain
FOLDING = 1 << 62  # the path is not ASCII, or not in lower case
MARKED = 1 << 61
OFFSET = MARKED - 1

LINE_END = re.compile(rb"\r\n?|\n")
NOT_PLAIN = re.compile(rb"/(?:\.{0,2}/|\.{1,2}\Z|\Z)")
FIRST_SLOTS = 64


class ManifestIndex:
    """The offsets of the lines of a manifest, by the fingerprints of their paths.

    :param digits: the hex digits of a checksum; 0 if no line is plain
    :param prefix: the prefix of all paths
    :param limit: the maximum length of a line
    :param salt: a secret that prevents chosen collisions of fingerprints
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
        # Open addressing: the number of the line plus one; 0 is an empty slot.
        self._slots = array("I", bytes(4 * FIRST_SLOTS))

    def __len__(self) -> int:
        return len(self._offsets)

    @serialized
    def scan(self, block: bytes, position: int, base: int, final: bool) -> tuple[int, int, int]:
        """Add plain lines from ``position`` until a line is not plain.

        :param base: the offset of the block in the manifest
        :param final: whether the manifest ends with the block
        :returns: the position after the last added line, the number of added lines, and a :class:`LineStatus`
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
        """Add one line, even if its path is already known."""
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
        """Return the numbers of the lines with the fingerprint of ``path``, in order."""
        fingerprint = hash(self._salt + path)
        slots, mask, fingerprints = self._slots, len(self._slots) - 1, self._fingerprints
        slot = fingerprint & mask
        found = []
        while entry := slots[slot]:
            if fingerprints[entry - 1] == fingerprint:
                found.append(entry - 1)
            slot = (slot + 1) & mask
        return found

    def line(self, entry: int) -> int:
        """Return the offset of the line in the manifest; its complement (negative) if the line is not plain."""
        offset = self._offsets[entry]
        return ~(offset & OFFSET) if offset >= ODD else offset & OFFSET

    @serialized
    def mark(self, entry: int) -> None:
        """Mark the line."""
        self._offsets[entry] |= MARKED

    def is_marked(self, entry: int) -> bool:
        """Return whether the line is marked."""
        return self._offsets[entry] & MARKED != 0

    def next_unmarked(self, entry: int) -> int:
        """Return the first line from ``entry`` that is not marked, or -1."""
        offsets = self._offsets
        for other in range(entry, len(offsets)):
            if not offsets[other] & MARKED:
                return other
        return -1

    def next_folding(self, entry: int) -> int:
        """Return the first line from ``entry`` whose path does not fold to itself, or -1."""
        offsets = self._offsets
        for other in range(entry, len(offsets)):
            if offsets[other] & FOLDING:
                return other
        return -1

    def _slot(self, fingerprint: int) -> tuple[int, bool]:
        """Return the slot of the fingerprint, and whether it is in use."""
        slots, mask, fingerprints = self._slots, len(self._slots) - 1, self._fingerprints
        slot = fingerprint & mask
        while entry := slots[slot]:
            if fingerprints[entry - 1] == fingerprint:
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
        # The smaller table is freed before the larger one is allocated.
        self._slots = slots = array("I")
        slots.frombytes(bytes(4 * size))
        mask = size - 1
        for entry, fingerprint in enumerate(self._fingerprints, 1):
            slot = fingerprint & mask
            while slots[slot]:
                slot = (slot + 1) & mask
            slots[slot] = entry


def _is_utf8(path: bytes) -> bool:
    try:
        path.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
