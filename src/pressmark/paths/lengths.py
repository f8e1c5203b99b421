"""How long paths are, how deep, and how near to those beside them."""

from __future__ import annotations

from typing import Any, NamedTuple

from pressmark import _kernels
from pressmark.paths.batches import Texts, pieces

__all__ = ["Neighbours", "PathLengths"]

Histogram = tuple[tuple[int, int], ...]

# The measures of the kernels, by number.
_PATH_OCTETS, _PATH_UNITS, _SEGMENT_OCTETS, _SEGMENT_UNITS, _DEPTH, _LAST_OCTETS = range(6)


class Neighbours(NamedTuple):
    """How near paths are to the one before them.

    :ivar paths: how many there are
    :ivar shared: leading segments that each has in common with the one before it, all together
    :ivar parents: different directories that hold the paths of each thousand in a row, all thousands together
    """

    paths: int
    shared: int
    parents: int


class PathLengths:
    """Counts over paths, in the order in which they are added; memory does not grow with them.

    Histograms are ascending pairs of a length and how often it occurs. Units are those of UTF-16, of which an octet
    that is not UTF-8 counts as one.
    """

    def __init__(self) -> None:
        self._kernels = _kernels.active
        self._counted: Any = self._kernels.PathLengths()

    def add(self, paths: Texts) -> None:
        """Take in paths; nulls are none.

        :raises PathError: a path has a lone surrogate that stands for no octet
        :raises TypeError: one is neither str nor bytes
        """
        for piece, nulls in pieces(self._kernels, paths):
            self._counted.add(piece, nulls)

    @property
    def path_bytes(self) -> Histogram:
        """Octets of paths."""
        return tuple(self._counted.histogram(_PATH_OCTETS))

    @property
    def path_units(self) -> Histogram:
        """UTF-16 units of paths."""
        return tuple(self._counted.histogram(_PATH_UNITS))

    @property
    def segment_bytes(self) -> Histogram:
        """Octets of segments, each as often as it is in a path."""
        return tuple(self._counted.histogram(_SEGMENT_OCTETS))

    @property
    def segment_units(self) -> Histogram:
        """UTF-16 units of segments."""
        return tuple(self._counted.histogram(_SEGMENT_UNITS))

    @property
    def last_bytes(self) -> Histogram:
        """Octets of the last segments of paths."""
        return tuple(self._counted.histogram(_LAST_OCTETS))

    @property
    def depth(self) -> Histogram:
        """Segments of paths."""
        return tuple(self._counted.histogram(_DEPTH))

    def neighbours(self) -> Neighbours:
        """Return how near paths are to those before them."""
        return Neighbours(*self._counted.neighbours())
