"""The directories that paths need, counted as the paths pass in order."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Tree"]


class Tree(NamedTuple):
    """Directories below the root that must be made for all paths, where every path is one, too.

    :ivar levels: how many there are at each depth, from 1 on
    :ivar leaves: how many of them are paths themselves; different ones are counted
    :ivar fan_out: ascending pairs: a number of child directories, and how many directories (including the root) have
        that many
    :ivar top_level: ascending pairs: a number of distinct paths, and how many directories below the root contain
        that many; the directory's own path counts as one
    :ivar largest: the directories that hold the most, the largest first, then by path: pairs of path and number; the
        path of the root is empty, and one of more than 4096 octets is left out
    :ivar samples: nested samples of the paths, all of them first, each about half of the one before, down to none: how
        many paths with repetitions, directories, different paths
    """

    levels: tuple[int, ...]
    leaves: int
    fan_out: tuple[tuple[int, int], ...]
    top_level: tuple[tuple[int, int], ...]
    largest: tuple[tuple[str, int], ...]
    samples: tuple[tuple[int, int, int], ...]

    @property
    def directories(self) -> int:
        """All of them."""
        return sum(self.levels)

    @classmethod
    def of(cls, counted: Any) -> Tree:
        """Return what a kernel has counted."""
        return cls(
            tuple(counted.levels()),
            counted.leaves(),
            tuple(counted.fan_out()),
            tuple(counted.top_level()),
            tuple((path.decode("utf-8", "surrogateescape"), entries) for path, entries in counted.largest()),
            tuple(counted.samples()),
        )
