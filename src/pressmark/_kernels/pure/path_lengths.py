"""How long paths are, how deep, and how near to their neighbours: counts over columns of them.

Lengths are counted in octets and in units of UTF-16, of which an octet that is not UTF-8 counts as one. The empty path
has no segment. Neighbours are paths that follow each other; a window is a thousand of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from threading import Lock

from pressmark._kernels.pure.column import ByteColumn
from pressmark._kernels.pure.serialized import serialized

__all__ = ["PathLengths", "starts_with"]

# The measures, by number.
PATH_OCTETS, PATH_UNITS, SEGMENT_OCTETS, SEGMENT_UNITS, DEPTH, LAST_OCTETS = range(6)
WINDOW = 1000


def _units(octets: bytes) -> int:
    if octets.isascii():
        return len(octets)
    return len(octets.decode("utf-8", "surrogateescape").encode("utf-16-le", "surrogatepass")) // 2


class PathLengths:
    """Counts over paths, in the order in which they are added."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: list[Counter[int]] = [Counter() for _ in range(6)]
        self._paths = self._shared = self._parents = 0
        self._last: list[bytes] = []
        self._window: set[bytes] = set()

    @serialized
    def add(self, paths: ByteColumn, skip: Sequence[int]) -> None:
        """Take in paths.

        :param skip: the ascending indices of items that are no paths
        """
        counts, skipped = self._counts, set(skip)
        for index, path in enumerate(paths.items):
            if index in skipped:
                continue
            segments = path.split(b"/") if path else []
            counts[PATH_OCTETS][len(path)] += 1
            counts[PATH_UNITS][_units(path)] += 1
            counts[DEPTH][len(segments)] += 1
            counts[LAST_OCTETS][len(segments[-1]) if segments else 0] += 1
            for segment in segments:
                counts[SEGMENT_OCTETS][len(segment)] += 1
                counts[SEGMENT_UNITS][_units(segment)] += 1
            for one, other in zip(segments, self._last, strict=False):
                if one != other:
                    break
                self._shared += 1
            self._last = segments
            if self._paths % WINDOW == 0:
                self._window.clear()
            parent = path.rpartition(b"/")[0]
            self._parents += parent not in self._window
            self._window.add(parent)
            self._paths += 1

    @serialized
    def histogram(self, measure: int) -> list[tuple[int, int]]:
        """Return ascending pairs: a length, and how often it occurs."""
        if not 0 <= measure < len(self._counts):
            raise ValueError(f"no measure {measure}")
        return sorted(self._counts[measure].items())

    @serialized
    def neighbours(self) -> tuple[int, int, int]:
        """Return three sums.

        :returns: how many paths there are; the leading segments that each has in common with the one before it; the
            different parents of each thousand
        """
        return self._paths, self._shared, self._parents


def starts_with(items: ByteColumn, octets: bytes) -> list[int]:
    """Return the ascending indices of the items that begin with ``octets``."""
    return [index for index, item in enumerate(items.items) if item.startswith(octets)]
