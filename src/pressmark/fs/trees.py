"""What directories contain: the entries of one, sorted by the bytes of their names, and small trees in memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from pressmark import _kernels
from pressmark._kernels.records import Other, Tree, Wanted
from pressmark.fs.beneath import HAS_DESCRIPTORS, OpenBeneathByName, open_beneath
from pressmark.fs.durable import is_directory, walk
from pressmark.fs.names import is_junk
from pressmark.threads import GeneratorPool, resolve_threads

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = [
    "DirectoryEntry",
    "Other",
    "Tree",
    "Wanted",
    "kind_of_entry",
    "longest_inside",
    "scan",
    "scan_beneath",
    "trees",
    "would_be_empty",
]

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


def would_be_empty(directory: bytes, relative: bytes, gone: Collection[bytes]) -> bool:
    """Return whether an existing directory would be empty after a dry run.

    :param relative: its path, relative to the base of the paths in ``gone``
    :param gone: the paths that the dry run would have removed
    """
    try:
        return all(os.path.join(relative, name) in gone for name in os.listdir(directory))
    except FileNotFoundError:  # removed by another run
        return False


# --- trees ------------------------------------------------------------------------------------------------------------


def trees(
    top: bytes, names: Iterable[bytes], wanted: Wanted | None = None, threads: int | None = None
) -> Iterator[_kernels.active.TreeBatch]:
    """Read directory trees, and yield them in order, many in a batch.

    Without a marker there is one tree for each name, with a marker those below each name, by the bytes of their names.
    Below ``top``, no symbolic link is followed. Trees and files that are not in memory must be read by other means;
    their states tell why.

    :param top: the directory that the names are relative to, which may be a link; or empty, and each name may be one
    :param names: the paths of trees, or with a marker of directories above them; an error that they raise is raised
        after the trees before it
    :param wanted: what to read
    :param threads: number of threads; :data:`None` for one per core
    :raises MemoryError: the system has not enough memory
    """
    count = resolve_threads(threads)
    reading = _Reading(top, names, wanted or Wanted(), 1 if count == 1 else 2 * count)
    # Few trees need no threads.
    yield from reading.batches(until=2 if count > 1 else None)
    if reading.parts:
        with GeneratorPool(count, "pressmark-trees") as pool:
            yield from reading.batches(pool)
    if reading.failure is not None:
        raise reading.failure


class _Part:
    """Names for one call."""

    __slots__ = ("call", "names")

    def __init__(self, names: list[bytes]) -> None:
        self.names = names
        self.call: Future[tuple[_kernels.active.TreeBatch, list[_Part]]] | None = None


class _Reading:
    """Names that are read in order. A call may leave some of its names, which are read before those of later calls.

    :param ahead: the maximum number of calls at a time

    :ivar parts: the next names
    :ivar failure: what the names raised
    """

    def __init__(self, top: bytes, names: Iterable[bytes], wanted: Wanted, ahead: int) -> None:
        self.parts: deque[_Part] = deque()
        self.failure: Exception | None = None
        self._top = top
        self._names = iter(names)
        self._wanted = wanted
        self._ahead = ahead
        self._running = 0

    def batches(
        self, pool: GeneratorPool | None = None, until: int | None = None
    ) -> Iterator[_kernels.active.TreeBatch]:
        """Yield batches until no names are left, or until so many parts are known."""
        while self._fill() and (until is None or len(self.parts) < until):
            if pool is not None:
                self._submit(pool)
            part = self.parts.popleft()
            if part.call is None:
                batch, left = self._read(part)
            else:
                batch, left = part.call.result()
                self._running -= 1
            self.parts.extendleft(reversed(left))
            if batch.trees:
                yield batch

    def _fill(self) -> bool:
        """Take further names if few are known; return whether there are any."""
        while len(self.parts) < self._ahead:
            names: list[bytes] = []
            try:
                names.extend(islice(self._names, _SLICE))
            except Exception as error:  # the names before it are in the list
                self.failure, self._names = error, iter(())
            if not names:
                break
            self.parts.append(_Part(names))
        return bool(self.parts)

    def _submit(self, pool: GeneratorPool) -> None:
        """Start calls for the next names; always for the first."""
        for part in islice(self.parts, self._ahead):
            if part.call is None and (self._running < self._ahead or part is self.parts[0]):
                part.call = pool.submit(self._read, part)
                self._running += 1

    def _read(self, part: _Part) -> tuple[_kernels.active.TreeBatch, list[_Part]]:
        """Return trees, and the names that the call left."""
        batch = _kernels.active.read_trees(self._top, part.names, self._wanted)
        left = _parts(part.names[batch.begun :])
        # Those of directories above trees are at the end, of the outermost last.
        while batch.trees and batch.trees[-1].state == "rest":
            rest = batch.trees.pop()
            above = rest.path + b"/" if rest.path else b""
            left = _parts([above + name for name in rest.directories if isinstance(name, bytes)]) + left
        return batch, left


def _parts(names: list[bytes]) -> list[_Part]:
    return [_Part(names[start : start + _SLICE]) for start in range(0, len(names), _SLICE)]
