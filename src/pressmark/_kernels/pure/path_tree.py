"""Counts of the directories of merged paths, without storing them.

Paths arrive in the order of their folded keys, each once. The paths of a directory are therefore contiguous, except
that the spellings of a directory that is spelled in several ways are mixed. Counted are: the child directories of the
root and of each directory; the paths in each directory directly below the root; and the directories at each depth.
"""

from __future__ import annotations

import heapq
from collections import Counter
from threading import Lock

from pressmark._kernels.pure.path_sort import read_path
from pressmark._kernels.pure.serialized import serialized

__all__ = ["PathTree"]

LARGEST = 20  # directories that are reported
NAME = 4096  # bytes; longer paths are not reported, since no system supports them


class _Directory:
    """One spelling of a directory above the current path."""

    __slots__ = ("above", "entries", "paths", "segment", "size")

    def __init__(self, above: _Directory | None, segment: bytes) -> None:
        self.above = above
        self.segment = segment
        # The size of the whole path.
        self.size: int = len(segment) + (above.size + (above.above is not None) if above is not None else 0)
        self.entries = 0
        self.paths = 0  # including its own path; counted directly below the root only

    def path(self) -> bytes:
        segments = []
        one = self
        while one.above is not None:
            segments.append(one.segment)
            one = one.above
        return b"\1".join(reversed(segments))


class _Worse:
    """A reported directory; less than another if it has fewer entries, or as many and a greater path."""

    __slots__ = ("entries", "path")

    def __init__(self, entries: int, path: bytes) -> None:
        self.entries = entries
        self.path = path

    def __lt__(self, other: _Worse) -> bool:
        if self.entries != other.entries:
            return self.entries < other.entries
        return self.path > other.path


class PathTree:
    """Counts of the directories of merged paths, without the root."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._root = _Directory(None, b"")
        # For each depth from 1: the folded segment of the last path, and all spellings of the directory.
        self._keys: list[bytes] = []
        self._spelled: list[dict[tuple[int, bytes], _Directory]] = []
        self._levels: list[int] = []
        self._leaves = 0
        self._fans: Counter[int] = Counter()
        self._firsts: Counter[int] = Counter()
        self._largest: list[_Worse] = []
        self._ended = False

    @serialized
    def _add(self, key: bytes, path: bytes) -> None:
        """Add the next path, different from all before, and its key, both as written in records."""
        keys = key.split(b"\1") if key else []
        segments = path.split(b"\1") if path else []
        depth = 0
        while depth < min(len(keys), len(self._keys)) and keys[depth] == self._keys[depth]:
            depth += 1
        self._leave(depth)
        self._keys += keys[depth:]
        self._spelled += [{} for _ in range(depth, len(keys))]
        way = [self._root]
        for level, segment in enumerate(segments):
            above = way[-1]
            spelled = self._spelled[level]
            one = spelled.get((id(above), segment))
            if one is None:
                one = spelled[id(above), segment] = _Directory(above, segment)
                above.entries += 1
                if level == len(self._levels):
                    self._levels.append(0)
                self._levels[level] += 1
            way.append(one)
        self._leaves += 1
        if len(way) > 1:
            way[1].paths += 1

    def _leave(self, depth: int) -> None:
        """End all directories below ``depth``."""
        while len(self._spelled) > depth:
            for one in self._spelled[-1].values():
                self._done(one)
            # Directories are identified by the id of their parent, which must exist until they are done.
            self._spelled.pop()
            self._keys.pop()

    def _done(self, one: _Directory) -> None:
        if one.above is self._root:
            self._firsts[one.paths] += 1
        if not one.entries:
            return
        self._fans[one.entries] += 1
        if one.size > NAME:
            return
        if len(self._largest) < LARGEST:
            heapq.heappush(self._largest, _Worse(one.entries, one.path()))
        elif one.entries >= self._largest[0].entries:
            heapq.heappushpop(self._largest, _Worse(one.entries, one.path()))

    @serialized
    def end(self) -> None:
        """End the counts; the other methods return complete results only afterwards."""
        if not self._ended:
            self._ended = True
            self._leave(0)
            self._done(self._root)

    @serialized
    def levels(self) -> list[int]:
        """Return the number of directories at each depth, from 1."""
        return list(self._levels)

    @serialized
    def leaves(self) -> int:
        """Return the number of distinct paths."""
        return self._leaves

    @serialized
    def fan_out(self) -> list[tuple[int, int]]:
        """Return ascending pairs: a number of child directories, and how many directories have that many."""
        return sorted(self._fans.items())

    @serialized
    def top_level(self) -> list[tuple[int, int]]:
        """Return ascending pairs: a number of distinct paths, and how many directories below the root have that many.

        The path of the directory itself counts as one.
        """
        return sorted(self._firsts.items())

    @serialized
    def largest(self) -> list[tuple[bytes, int]]:
        """Return path and number of entries of the largest directories, the largest first, then by path."""
        return [(read_path(one.path), one.entries) for one in sorted(self._largest, reverse=True)]
