"""Entries of directories, sorted by the bytes of their names, and small directory trees in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from pressmark import _kernels
from pressmark._kernels.records import Other, Tree, Wanted
from pressmark.fs.beneath import HAS_DESCRIPTORS, OpenBeneathByName, open_beneath
from pressmark.fs.durable import is_directory, walk
from pressmark.fs.names import is_junk
from pressmark.fs.walk import ordered_tree
from pressmark.threads import resolve_threads

__all__ = [
    "LINKED",
    "DirectoryEntry",
    "Other",
    "Tree",
    "Wanted",
    "kind_of_entry",
    "longest_inside",
    "scan",
    "scan_beneath",
    "trees",
]

#: Links between directories multiply files without bound, with two links on each level: they may lead to this number of
#: names that are in a tree already.
LINKED = 1 << 20
# Names of trees in one call.
_SLICE = 64


# --- one directory ----------------------------------------------------------------------------------------------------


class DirectoryEntry(NamedTuple):
    """An entry of a directory.

    :ivar name: its name, as bytes
    :ivar kind: ``directory``, ``file``, ``special`` or ``link``; if links are followed, the kind of the target or
        ``dangling``
    :ivar is_link: whether it is a symbolic link
    """

    name: bytes
    kind: str
    is_link: bool

    @property
    def is_junk(self) -> bool:
        """Whether it is a file or directory that operating systems or storage appliances add."""
        return self.kind in ("file", "directory") and is_junk(self.name, directory=self.kind == "directory")


def scan(directory: bytes, *, follow: bool = True) -> list[DirectoryEntry]:
    """Return the entries of a directory, sorted by the bytes of their names.

    :param follow: follow symbolic links
    :raises OSError: the directory cannot be read
    """
    found = []
    with os.scandir(directory) as entries:
        for entry in entries:
            # Almost all entries are regular files and directories, which one or two questions recognise.
            if entry.is_file(follow_symlinks=False):
                found.append(DirectoryEntry(entry.name, "file", False))
            elif entry.is_dir(follow_symlinks=False):
                found.append(DirectoryEntry(entry.name, "directory", False))
            else:
                found.append(DirectoryEntry(entry.name, kind_of_entry(entry, follow=follow), entry.is_symlink()))
    found.sort()
    return found


def scan_beneath(base: bytes, relative: bytes) -> list[DirectoryEntry]:
    """Return the entries of the directory ``relative`` in ``base`` like :func:`scan`, without following links.

    :raises OSError: as for :func:`~pressmark.fs.beneath.open_beneath`; or it cannot be read
    """
    if not HAS_DESCRIPTORS:
        with OpenBeneathByName(base).names(relative):
            return scan(os.path.join(base, relative), follow=False)
    descriptor = open_beneath(base, relative, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Names in an open directory are text.
        return sorted(entry._replace(name=os.fsencode(entry.name)) for entry in scan(descriptor, follow=False))  # type: ignore[arg-type]
    finally:
        os.close(descriptor)


def kind_of_entry(entry: os.DirEntry[bytes], *, follow: bool = False) -> str:
    """Return the kind of an entry: see :class:`DirectoryEntry`.

    :param follow: follow symbolic links
    :raises OSError: this cannot be determined
    """
    is_link = entry.is_symlink()
    if is_link and not follow:
        return "link"
    try:
        if entry.is_dir():
            return "directory"
        if entry.is_file():
            return "file"
    except OSError:
        if not is_link:
            raise
        return "dangling"  # a loop of links, or a target that is not accessible
    return "dangling" if is_link and not os.path.exists(entry.path) else "special"


def longest_inside(top: bytes) -> bytes:
    """Return the longest path in a tree, relative to it and with a leading slash; empty if the tree is empty.

    :raises OSError: a directory cannot be read
    """
    if not is_directory(top):  # a serialized bag
        return b""
    paths = (os.path.join(folder, name) for folder, folders, files in walk(top) for name in folders + files)
    return max(paths, key=len, default=top)[len(top) :]


# --- trees ------------------------------------------------------------------------------------------------------------


def trees(
    top: bytes, names: Iterable[bytes], wanted: Wanted | None = None, threads: int | None = None
) -> Iterator[_kernels.active.TreeBatch]:
    """Read directory trees, and yield them in order, many in a batch.

    Without a marker there is one tree for each name, with a marker those below each name, by the bytes of their names.
    Below ``top``, no symbolic link is followed. Trees and files that are not in memory must be read by other means;
    their states show why.

    :param top: the directory that the names are relative to, which may be a link; or empty, and each name may be one
    :param names: the paths of trees, or with a marker of directories above them; an error that they raise is raised
        after the trees before it
    :param wanted: what to read
    :param threads: number of threads; :data:`None` for one per core
    :raises MemoryError: the system has not enough memory
    :raises ValueError: the number of threads is negative
    """
    count = resolve_threads(threads)
    queue = _Names(names)
    first, rest = queue.cut(1)
    if rest is None:  # few trees need no threads
        count = 1
    parts: list[Any] = [first] if rest is None else [first, rest]
    for batches in ordered_tree(parts, partial(_read, top, wanted or Wanted()), threads=count, ahead=2 * count):
        yield from batches
    if queue.failure is not None:
        raise queue.failure


class _Slice(NamedTuple):
    """The names of one call."""

    names: list[bytes]

    def cut(self, _threads: int) -> tuple[_Slice, None]:
        return self, None


class _Names:
    """Names that have not been taken yet.

    :ivar failure: the error that they raised
    """

    def __init__(self, names: Iterable[bytes]) -> None:
        self.failure: Exception | None = None
        self._names = iter(names)

    def cut(self, _threads: int) -> tuple[_Slice, _Names | None]:
        """Return the next names, and the rest unless there are no more."""
        names: list[bytes] = []
        try:
            names.extend(islice(self._names, _SLICE))
        except Exception as error:  # the names before it are in the list
            self.failure = error
            return _Slice(names), None
        return _Slice(names), self if len(names) == _SLICE else None


def _read(top: bytes, wanted: Wanted, part: _Slice) -> list[list[_kernels.active.TreeBatch] | _Slice]:
    """Return the trees that a call read and the names that it did not read, in order."""
    if not part.names:
        return []
    batch = _kernels.active.read_trees(top, part.names, wanted)
    left = _slices(part.names[batch.begun :])
    # Those of directories above trees are at the end, of the outermost last.
    while batch.trees and batch.trees[-1].state == "rest":
        rest = batch.trees.pop()
        above = rest.path + b"/" if rest.path else b""
        left = _slices([above + name for name in rest.directories if isinstance(name, bytes)]) + left
    return [[batch], *left] if batch.trees else [*left]


def _slices(names: list[bytes]) -> list[_Slice]:
    return [_Slice(names[start : start + _SLICE]) for start in range(0, len(names), _SLICE)]
