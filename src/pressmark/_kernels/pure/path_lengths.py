"""Counts of the lengths and depths of paths, and of the segments that neighbouring paths share.

Lengths are counted in bytes and in UTF-16 units; a byte that is not UTF-8 counts as one unit. The empty path has no
segments. Neighbours are consecutive paths; a window is a thousand paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from threading import Lock

from pressmark._kernels.pure.column import ByteColumn
from pressmark._kernels.pure.serialized import serialized

__all__ = ["PathLengths", "starts_with"]

# The measures, by number.
PATH_BYTES, PATH_UNITS, SEGMENT_BYTES, SEGMENT_UNITS, DEPTH, LAST_BYTES = range(6)
WINDOW = 1000


def _units(text: bytes) -> int:
    if text.isascii():
        return len(text)
    return len(text.decode("utf-8", "surrogateescape").encode("utf-16-le", "surrogatepass")) // 2


class PathLengths:
    """Counts of paths, in the order of their addition."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: list[Counter[int]] = [Counter() for _ in range(6)]
        self._paths = self._shared = self._parents = 0
        self._last: list[bytes] = []
        self._window: set[bytes] = set()

    @serialized
    def add(self, paths: ByteColumn, skip: Sequence[int]) -> None:
        """Add paths.

        :param skip: the ascending indices of items that are not paths
        """
        counts, skipped = self._counts, set(skip)
        for index, path in enumerate(paths.items):
            if index in skipped:
                continue
            segments = path.split(b"/") if path else []
            counts[PATH_BYTES][len(path)] += 1
            counts[PATH_UNITS][_units(path)] += 1
            counts[DEPTH][len(segments)] += 1
            counts[LAST_BYTES][len(segments[-1]) if segments else 0] += 1
            for segment in segments:
                counts[SEGMENT_BYTES][len(segment)] += 1
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
        """Return ascending pairs: a length and its frequency."""
        if not 0 <= measure < len(self._counts):
            raise ValueError(f"unknown measure {measure}")
        return sorted(self._counts[measure].items())

    @serialized
    def neighbours(self) -> tuple[int, int, int]:
        """Return three sums.

        :returns: the number of paths; the leading segments that each path shares with the previous one; the distinct
            parents of each thousand paths
        """
        return self._paths, self._shared, self._parents


def starts_with(items: ByteColumn, prefix: bytes) -> list[int]:
    """Return the ascending indices of the items that start with ``prefix``."""
    return [index for index, item in enumerate(items.items) if item.startswith(prefix)]
