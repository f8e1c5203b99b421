"""The directories of a set of paths."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Tree"]


class Tree(NamedTuple):
    """The directories below the root that a set of paths needs; each path is also a directory.

    :ivar levels: number of directories at each depth, from 1
    :ivar leaves: number of different paths
    :ivar fan_out: ascending pairs: number of subdirectories (from 1), and number of directories with as many, including
        the root
    :ivar top_level: ascending pairs: number of different paths, and number of top-level directories with as many, each
        path of a top-level directory included
    :ivar largest: the directories with most entries, largest first, then by path: pairs of path and number; the path of
        the root is empty, and paths of more than 4096 bytes are omitted
    """

    levels: tuple[int, ...]
    leaves: int
    fan_out: tuple[tuple[int, int], ...]
    top_level: tuple[tuple[int, int], ...]
    largest: tuple[tuple[str, int], ...]

    @property
    def directories(self) -> int:
        """The number of all directories."""
        return sum(self.levels)

    @classmethod
    def of(cls, counted: Any) -> Tree:
        """Return the tree of the counts of a ``PathTree`` of the kernels."""
        return cls(
            tuple(counted.levels()),
            counted.leaves(),
            tuple(counted.fan_out()),
            tuple(counted.top_level()),
            tuple((path.decode("utf-8", "surrogateescape"), entries) for path, entries in counted.largest()),
        )
