"""Lengths and depths of paths."""

from __future__ import annotations

from typing import Any

from pressmark import _kernels
from pressmark.paths.batches import Texts, batches

__all__ = ["PathLengths"]

Histogram = tuple[tuple[int, int], ...]

# Numbers of the histograms of the kernels.
_PATH_BYTES, _PATH_UNITS, _SEGMENT_BYTES, _SEGMENT_UNITS, _DEPTH, _LAST_BYTES = range(6)


class PathLengths:
    """Statistics of paths, in constant memory.

    A histogram is a tuple of pairs, length and count, in ascending order. Units are those of UTF-16; a byte that is not
    UTF-8 counts as one.
    """

    def __init__(self) -> None:
        self._kernels = _kernels.active
        self._counted: Any = self._kernels.PathLengths()

    def add(self, paths: Texts) -> None:
        """Add paths; nulls are ignored.

        :raises PathError: a path has an unpaired surrogate
        :raises TypeError: a path is neither str nor bytes
        """
        for batch, nulls in batches(self._kernels, paths):
            self._counted.add(batch, nulls)

    @property
    def path_bytes(self) -> Histogram:
        """Histogram of the lengths of paths in bytes."""
        return tuple(self._counted.histogram(_PATH_BYTES))

    @property
    def path_units(self) -> Histogram:
        """Histogram of the lengths of paths in UTF-16 units."""
        return tuple(self._counted.histogram(_PATH_UNITS))

    @property
    def segment_bytes(self) -> Histogram:
        """Histogram of the lengths of segments in bytes; a segment counts once for each path that contains it."""
        return tuple(self._counted.histogram(_SEGMENT_BYTES))

    @property
    def segment_units(self) -> Histogram:
        """Histogram of the lengths of segments in UTF-16 units, counted like :attr:`segment_bytes`."""
        return tuple(self._counted.histogram(_SEGMENT_UNITS))

    @property
    def last_bytes(self) -> Histogram:
        """Histogram of the lengths of the last segments of paths in bytes."""
        return tuple(self._counted.histogram(_LAST_BYTES))

    @property
    def depth(self) -> Histogram:
        """Histogram of the numbers of segments of paths."""
        return tuple(self._counted.histogram(_DEPTH))
