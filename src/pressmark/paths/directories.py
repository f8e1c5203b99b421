"""The directories that paths need, counted as the paths pass in order."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Tree"]


class Tree(NamedTuple):
    """Directories below the root that must be made for all paths, where every path is one, too.

    :ivar levels: how many there are at each depth, from 1 on
    :ivar leaves: how many of them are paths themselves; different ones are counted
    :ivar fans: ascending pairs: a number of directories from 1 on, and how many directories (the root too) hold so many
    :ivar firsts: ascending pairs: a number of different paths, and in how many directories directly below the root so
        many are; the path of such a directory itself is one of them
    :ivar largest: the directories that hold the most, the largest first, then by path: pairs of path and number; the
        path of the root is empty, and one of more than 4096 octets is left out
    :ivar samples: nested samples of the paths, all of them first, each about half of the one before, down to none: how
        many paths with repetitions, directories, different paths
    """

    levels: tuple[int, ...]
    leaves: int
    fans: tuple[tuple[int, int], ...]
    firsts: tuple[tuple[int, int], ...]
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
            tuple(counted.fans()),
            tuple(counted.firsts()),
            tuple((path.decode("utf-8", "surrogateescape"), entries) for path, entries in counted.largest()),
            tuple(counted.samples()),
        )
