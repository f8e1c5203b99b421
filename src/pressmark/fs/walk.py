"""Walk directory trees in an order that does not depend on the file system or on threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from typing import Any, Generic, Protocol, Self, TypeVar

from pressmark.fs.beneath import Opener
from pressmark.fs.file_errors import kind_of_mode
from pressmark.threads import Threads

__all__ = ["Unread", "Walk", "ordered_tree"]

Failure = TypeVar("Failure")
Result = TypeVar("Result")


class _Level(Generic[Failure]):
    """The entries of a directory that are still to be visited.

    :ivar prefix: the start of their paths
    :ivar names: their names, sorted by bytes
    :ivar facts: for all but regular files: is it a link, a directory, a file (links followed)
    :ivar error: the item to yield if the directory could not be read
    """

    def __init__(self, prefix: Any) -> None:
        self.prefix = prefix
        self.names: Iterator[Any] = iter(())
        self.facts: dict[Any, tuple[bool, bool, bool]] = {}
        self.error: Failure | None = None


class Walk(Generic[Failure]):
    """A depth-first walk of a tree. Entries are sorted by the bytes of their names, files and directories together.

    :param opener: opens the directories
    :param failed: returns the item to yield for a path that cannot be read; called with the path, a kind of
        :mod:`pressmark.fs.file_errors` or :data:`None`, and if it is :data:`None` an ``errno``
    :param links: ``"follow"`` symbolic links to files and directories (if ``opener`` does), ``"skip"`` them, or
        ``"refuse"`` them; the top is followed unless links are refused
    :param leave_out: device and inode of files to skip
    :param beneath: paths are relative to the directory of ``opener``
    :param is_excluded: returns whether to skip files and directories with a name; the top is not skipped
    :param once: of several links to one directory, follow only the first
    :param one_file_system: do not enter directories on other file systems than the top
    :param on_excluded: called with the path of each, a directory with a slash at its end; also with that of each
        directory that is not entered for one of these reasons
    """

    def __init__(
        self,
        opener: Opener,
        failed: Callable[[str | bytes, str | None, int], Failure],
        *,
        links: str,
        leave_out: Collection[tuple[int, int]] = (),
        beneath: bool = False,
        is_excluded: Callable[[str], object] | None = None,
        once: bool = False,
        one_file_system: bool = False,
        on_excluded: Callable[[str | bytes], object] = lambda _path: None,
    ) -> None:
        self._once = once
        self._one_file_system = one_file_system
        self._opener = opener
        self._failed = failed
        self._links = links
        self._follow = opener.follow
        self._leave_out = leave_out
        self._beneath = beneath
        self._is_excluded = is_excluded
        self._on_excluded = on_excluded

    def files(self, top: str | bytes) -> Iterator[str | bytes | Failure]:
        """Yield the path of every file under ``top``, or ``top`` itself if it is not a directory."""
        beneath = self._beneath
        try:
            # With "skip", only links below the top are skipped.
            followed = self._links == "skip" and not beneath
            status = os.stat(top) if followed else self._opener.stat_directory(top)
        except (OSError, ValueError):
            yield top  # reading it reports the error
            return
        identity = (status.st_dev, status.st_ino)
        if kind_of_mode(status.st_mode) != "directory":
            if identity not in self._leave_out:
                yield top
            return
        if beneath and top in (".", b"."):
            top = top[:0]
        # Identities of the open directories, to detect loops, and of those that a link led to: through links that lead
        # to each other, there are more paths to a few directories than anyone can wait for.
        above = [identity]
        linked: set[tuple[int, int]] = set()
        levels = [self._entries(top)]
        while levels:
            level = levels[-1]
            if level.error is not None:
                yield level.error
            if not level.facts:  # files only, as in most directories
                yield from map(level.prefix.__add__, level.names)
            for name in level.names:
                path = level.prefix + name
                facts = level.facts.get(name)
                if facts is None:
                    yield path
                    continue
                is_link, is_directory, is_file = facts
                if is_link and not self._follow:
                    if self._links != "skip":
                        yield self._failed(path, "link", 0)
                    continue
                if is_directory:
                    try:
                        status = self._opener.stat(path)
                    except OSError as error:
                        yield self._failed(path, None, error.errno or 0)
                        continue
                    identity = (status.st_dev, status.st_ino)
                    if self._one_file_system and status.st_dev != above[0][0]:
                        self._on_excluded(os.path.join(path, path[:0]))
                        continue
                    # Also without links: a directory may be mounted below itself.
                    if identity in above:
                        yield self._failed(path, "directory-loop", 0)
                        continue
                    if is_link and self._once:
                        if identity in linked:
                            self._on_excluded(os.path.join(path, path[:0]))
                            continue
                        linked.add(identity)
                    above.append(identity)
                    levels.append(self._entries(path))
                    break
                if is_file or is_link:
                    yield path
                else:
                    yield self._special(path)
            else:
                levels.pop()
                above.pop()

    def _entries(self, directory: Any) -> _Level[Failure]:
        """Return the entries of a directory."""
        inodes = {inode for _device, inode in self._leave_out}
        kind = type(directory)
        level: _Level[Failure] = _Level(os.path.join(directory, directory[:0]))
        names: list[Any] = []
        try:
            with self._opener.names(directory) as entries:
                # Not the DirEntry objects, which are several times the size of the names. No functions here: this loop
                # takes most of the time of a walk.
                for entry in entries:
                    if inodes and entry.inode() in inodes and _is_left_out(entry, self._leave_out):
                        continue
                    name = entry.name
                    if type(name) is not kind:
                        name = os.fsencode(name)
                    names.append(name)
                    try:
                        is_plain = entry.is_file(follow_symlinks=False)
                    except OSError:
                        is_plain = False
                    if not is_plain:
                        level.facts[name] = _facts(entry, self._follow)
        except OSError as error:
            level.error = self._failed(directory, None, error.errno or 0)
            return level
        names.sort(key=os.fsencode if isinstance(directory, str) else None)
        level.names = iter(names if self._is_excluded is None else self._kept(names, level, self._is_excluded))
        return level

    def _kept(self, names: list[Any], level: _Level[Failure], is_excluded: Callable[[str], object]) -> list[Any]:
        """Return the names that are not excluded, and report the others."""
        kept = []
        for name in names:
            if not is_excluded(os.fsdecode(name)):
                kept.append(name)
                continue
            path = level.prefix + name
            _is_link, is_directory, _is_file = level.facts.pop(name, _FACTS[False, False, True])
            self._on_excluded(os.path.join(path, path[:0]) if is_directory else path)
        return kept

    def _special(self, path: Any) -> Failure:
        try:
            kind = kind_of_mode(self._opener.stat(path).st_mode) or "io-error"
        except OSError as error:
            return self._failed(path, None, error.errno or 0)
        return self._failed(path, kind, 0)


# All possible tuples, shared by the entries.
_FACTS = {
    (is_link, is_directory, is_file): (is_link, is_directory, is_file)
    for is_link in (False, True)
    for is_directory in (False, True)
    for is_file in (False, True)
}


def _facts(entry: os.DirEntry[Any], follow: bool) -> tuple[bool, bool, bool]:
    try:
        is_link = entry.is_symlink()
        return _FACTS[is_link, entry.is_dir(follow_symlinks=follow), entry.is_file(follow_symlinks=follow)]
    except OSError:  # a link with an inaccessible target: reading it reports the error
        return _FACTS[True, False, True]


def _is_left_out(entry: os.DirEntry[Any], leave_out: Collection[tuple[int, int]]) -> bool:
    try:
        status = entry.stat()
    except OSError:
        return False
    return (status.st_dev, status.st_ino) in leave_out


class Unread(Protocol):
    """Directories that have not been read, with everything below them."""

    def cut(self, threads: int) -> tuple[Self, Self | None]:
        """Return what one call reads, and what comes after it.

        :param threads: number of threads of the walk
        """


Directories = TypeVar("Directories", bound=Unread)


def ordered_tree(
    parts: list[list[Result] | Directories],
    expand: Callable[[Directories], list[list[Result] | Directories]],
    *,
    threads: int,
    ahead: int,
    size: Callable[[list[Result]], int] = len,
) -> Iterator[list[Result]]:
    """Walk a tree on several threads, and yield the results in order.

    The leftmost directories are read first, close to the results that were yielded. Directories that a call leaves
    unread keep their position, so a deep branch does not delay the others.

    :param parts: results and directories in order
    :param expand: reads directories, and returns the results and the directories that it did not read, in order; called
        in a thread, it can ask :func:`pressmark.threads.require_use`
    :param ahead: results that may wait for those before them when a call begins
    :param size: returns the number of results in a list
    """
    line: list[Any] = parts[::-1]  # the first is the last
    if threads == 1:
        while line:
            part = line.pop()
            if isinstance(part, list):
                yield part
                continue
            first, rest = part.cut(1)
            if rest is not None:
                line.append(rest)
            line += reversed(expand(first))
        return
    from concurrent.futures import Future  # slow to import

    with Threads(threads, "pressmark-walk") as pool:

        def hand_out() -> None:
            """Replace finished calls by their results, and start new calls; always that of the first part."""
            running = ready = 0
            at = len(line) - 1
            while at >= 0:
                part = line[at]
                if isinstance(part, list):
                    ready += size(part)
                elif isinstance(part, Future):
                    if part.done() and part.exception() is None:
                        line[at : at + 1] = reversed(part.result())
                        at += len(part.result()) - 1
                        continue
                    running += 1
                elif at == len(line) - 1 or (running < 2 * threads and ready < ahead):
                    first, rest = part.cut(threads)
                    line[at] = pool.submit(expand, first)
                    running += 1
                    if rest is not None:
                        line.insert(at, rest)
                        continue
                else:
                    return
                at -= 1

        while line:
            hand_out()
            if line:
                part = line.pop()
                if isinstance(part, list):
                    yield part
                else:
                    line += reversed(part.result())
