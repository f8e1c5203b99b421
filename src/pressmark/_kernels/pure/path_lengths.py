"""Counts of the lengths and depths of paths.

Lengths are counted in bytes and in UTF-16 units; a byte that is not UTF-8 counts as one unit. The empty path has no
segments.
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


def _units(text: bytes) -> int:
    if text.isascii():
        return len(text)
    return len(text.decode("utf-8", "surrogateescape").encode("utf-16-le", "surrogatepass")) // 2


class PathLengths:
    """Histograms of the lengths and depths of paths."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: list[Counter[int]] = [Counter() for _ in range(6)]

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

    @serialized
    def histogram(self, measure: int) -> list[tuple[int, int]]:
        """Return ascending pairs: a length and its frequency."""
        if not 0 <= measure < len(self._counts):
            raise ValueError(f"unknown measure {measure}")
        return sorted(self._counts[measure].items())


def starts_with(items: ByteColumn, prefix: bytes) -> list[int]:
    """Return the ascending indices of the items that start with ``prefix``."""
    return [index for index, item in enumerate(items.items) if item.startswith(prefix)]
