"""Directory trees in memory, read with ``os.scandir`` and ``os.open``, and JSON in them; and the scan of a Pairtree.

A directory of a Pairtree is plain if it contains only directories with names of one or two characters and at most one
directory with a longer name, which is an object. All other directories are deferred to the shared code: those with
files, reserved names, two longer names, nothing at all, names whose characters must be counted, and those that cannot
be read.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from errno import EINVAL, ENAMETOOLONG, ENOTDIR
from functools import cache
from time import monotonic
from typing import Any

from pressmark._kernels.pure.column import ByteColumn
from pressmark._kernels.pure.digests import hexdigest_function
from pressmark._kernels.records import DEEPEST, TOGETHER, Other, Tree, Wanted

__all__ = ["TreeBatch", "read_json", "read_trees", "scan_pairtree"]

# Seconds after which a call returns, and leaves the rest to the next call.
TURN = 0.1
_CAN_READ = {os.open, os.stat} <= os.supports_dir_fd and os.scandir in os.supports_fd and hasattr(os, "O_NOFOLLOW")
_DIRECTORY = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_DIRECTORY", "O_CLOEXEC"))
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | _NO_FOLLOW | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC"))
_PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY) | _DIRECTORY | _NO_FOLLOW
_LONGEST_NAME = 255
_Entry = tuple[bytes, str]


class _Limit(Exception):
    """A limit of the tree is exceeded."""


class _Late(Exception):
    """The time of the call is used up."""


class TreeBatch:
    """Directory trees in memory.

    Each column has a value for each file, or for each directory in a tree, by number.

    :ivar begun: how many of the names were read
    :ivar trees: in order, one for each name; with a marker, those below each name
    :ivar states: why the content of a file is not in memory: ``unwanted``, ``large``, ``changing`` or ``unreadable``;
        otherwise ``whole``
    :ivar errors: why a file is unreadable: its ``errno``
    :ivar sizes: in bytes
    :ivar mtimes: times of modification, in nanoseconds; all columns of what was never seen are 0
    :ivar ctimes: times of status change, in nanoseconds
    :ivar inodes: inode numbers
    :ivar modes: types and permissions
    :ivar links: numbers of hard links
    :ivar folder_mtimes: of the directories; ``folder_ctimes``, ``folder_inodes``, ``folder_modes`` likewise
    """

    def __init__(self) -> None:
        self.begun = 0
        self.trees: list[Tree] = []
        self.states: list[str] = []
        self.errors: list[int] = []
        self.sizes: list[int] = []
        self.mtimes: list[int] = []
        self.ctimes: list[int] = []
        self.inodes: list[int] = []
        self.modes: list[int] = []
        self.links: list[int] = []
        self.folder_mtimes: list[int] = []
        self.folder_ctimes: list[int] = []
        self.folder_inodes: list[int] = []
        self.folder_modes: list[int] = []
        self._contents: list[bytes | None] = []
        self._digests: dict[str, list[str | None]] = {}

    @staticmethod
    def of(trees: Sequence[Tree], contents: Sequence[bytes | None], sizes: Sequence[int] | None = None) -> TreeBatch:
        """Return a batch of trees that were not read from a disk.

        :param contents: of each file, by number; :data:`None` for a content that is not in memory
        :param sizes: of each file, if some contents are :data:`None`
        """
        batch = TreeBatch()
        batch.trees = list(trees)
        batch.begun = len(batch.trees)
        for number, content in enumerate(contents):
            size = len(content) if content is not None else sizes[number]  # type: ignore[index]
            batch._add_file(None, "whole" if content is not None else "unwanted")
            batch.sizes[number] = size
            batch._contents[number] = content
        return batch

    def content(self, number: int) -> bytes | None:
        """Return the content of a file, or the wanted first bytes of it; None if it is not in memory."""
        if number < 0:
            raise IndexError(number)
        return self._contents[number]

    def digests(self, algorithm: str, function: Callable[[bytes], str] | None = None) -> list[str | None]:
        """Return the hex digest of each file, or None if its content is not in memory. Digests are computed once.

        :param function: returns the digest of a content; by default several contents are hashed at a time
        """
        found = self._digests.get(algorithm)
        if found is None:
            if function is None:
                hexdigest = hexdigest_function(algorithm)
                found = [None if data is None else hexdigest(data).decode() for data in self._whole()]
            else:
                found = [None if data is None else function(data) for data in self._whole()]
            self._digests[algorithm] = found
        return found

    def _whole(self) -> list[bytes | None]:
        return [
            data if data is not None and len(data) == size else None
            for data, size in zip(self._contents, self.sizes, strict=True)
        ]

    def _add_file(self, status: os.stat_result | None, state: str, error: int = 0) -> None:
        size, mtime, ctime, inode, mode, links = (0,) * 6 if status is None else _facts(status)
        self.states.append(state)
        self.errors.append(error)
        self.sizes.append(size)
        self.mtimes.append(mtime)
        self.ctimes.append(ctime)
        self.inodes.append(inode)
        self.modes.append(mode)
        self.links.append(links)
        self._contents.append(None)

    def _add_directory(self, status: os.stat_result | None) -> int:
        _size, mtime, ctime, inode, mode, _links = (0,) * 6 if status is None else _facts(status)
        self.folder_mtimes.append(mtime)
        self.folder_ctimes.append(ctime)
        self.folder_inodes.append(inode)
        self.folder_modes.append(mode)
        return len(self.folder_modes) - 1

    def _forget(self, files: int, directories: int) -> None:
        """Remove all files and directories after the given numbers of them."""
        for column in (self.states, self.errors, self.sizes, self.mtimes, self.ctimes, self.inodes, self.modes):
            del column[files:]
        del self.links[files:], self._contents[files:]
        for column in (self.folder_mtimes, self.folder_ctimes, self.folder_inodes, self.folder_modes):
            del column[directories:]


def _facts(status: os.stat_result) -> tuple[int, int, int, int, int, int]:
    for time in (status.st_mtime_ns, status.st_ctime_ns):
        if not -(1 << 63) <= time < 1 << 63:
            raise _Limit
    return (
        *(status.st_size, status.st_mtime_ns, status.st_ctime_ns),
        *(status.st_ino, status.st_mode, status.st_nlink),
    )


def read_trees(top: bytes, names: Sequence[bytes], wanted: Wanted) -> TreeBatch:
    """Read directory trees into memory.

    Below ``top``, no symbolic link is followed; without it, each name may be one. A file or directory that is replaced
    meanwhile is never left: each is opened relative to the one above. A call returns after 0.1 s or 1 MiB of contents,
    when it has read at least one name; a tree alone may take twice as long, and is then ``large``.

    :param top: the directory that the names are relative to, which may be a link; or empty
    :param names: the paths of trees, or with a marker of directories above them
    :param wanted: a ``Wanted``
    """
    if wanted.content not in ("names", "none", "open", "all"):
        raise ValueError(wanted.content)
    batch = TreeBatch()
    reader = _Reader(batch, wanted)
    directory: int | None = None
    failed = 0
    if top and _CAN_READ:
        try:
            directory = os.open(top, _PATH_ONLY & ~_NO_FOLLOW)
        except OSError as error:
            failed = error.errno or 0
        except ValueError:
            failed = EINVAL
    try:
        for name in names:
            if batch.begun and reader.is_over():
                break
            if not _CAN_READ:
                reader.add(name, "odd" if wanted.marker else "large")
            elif failed:
                reader.add(name, "unreadable", failed)
            else:
                try:
                    reader.read_name(directory, name)
                except _Late:
                    break
            batch.begun += 1
    finally:
        if directory is not None:
            os.close(directory)
    return batch


class _Reader:
    """One call of :func:`read_trees`."""

    def __init__(self, batch: TreeBatch, wanted: Wanted) -> None:
        self._batch = batch
        self._wanted = wanted
        self._depth = min(wanted.depth, DEEPEST)
        self._budget = wanted.budget
        self._latest = monotonic() + TURN
        self._patience = self._latest + TURN
        self._read = 0
        # Of the current tree.
        self._tree = Tree(b"", "", 0, 0, 0, 0, 0, {}, {}, [], [], [])
        self._entries = self._total = 0

    def is_over(self) -> bool:
        """Return whether the call ends before the next tree or directory."""
        return self._budget <= 0 or self._read >= TOGETHER or monotonic() > self._latest

    def add(self, path: bytes, state: str, error: int = 0) -> None:
        """Add a tree without entries."""
        self._batch.trees.append(Tree(path, state, error, 0, 0, 0, 0, {}, {}, [], [], []))

    # --- directories above trees ---

    def read_name(self, top: int | None, name: bytes) -> None:
        if b"\0" in name:
            self.add(name, "unreadable", EINVAL)
            return
        if top is None:
            self._descend(name, None, name, 0, 0)
            return
        at = top
        try:
            last = b"."
            for step in name.split(b"/"):
                if len(step) > _LONGEST_NAME:
                    raise OSError(ENAMETOOLONG, os.strerror(ENAMETOOLONG))
                if step == b"..":
                    raise OSError(EINVAL, os.strerror(EINVAL))
                if step not in (b"", b"."):
                    if last != b".":
                        above, at = at, os.open(last, _PATH_ONLY, dir_fd=at)
                        if above != top:
                            os.close(above)
                    last = step
        except OSError as error:
            if at != top:
                os.close(at)
            self.add(name, "unreadable", error.errno or 0)
            return
        try:
            self._descend(name, at, last, _NO_FOLLOW, 0)
        finally:
            if at != top:
                os.close(at)

    def _descend(self, path: bytes, parent: int | None, name: bytes, flags: int, level: int) -> None:
        """Read the tree that begins at a directory, or those below it."""
        wanted = self._wanted
        self._budget -= 1
        try:
            directory = os.open(name, _DIRECTORY | flags, dir_fd=parent)
        except OSError as error:
            self.add(path, "unreadable", error.errno or 0)
            return
        try:
            try:
                status = os.fstat(directory)
                entries = _list(directory, wanted.skip)
            except OSError as error:
                self.add(path, "unreadable", error.errno or 0)
                return
            if not wanted.marker or any(kind == "file" and one.startswith(wanted.marker) for one, kind in entries):
                self._read_tree(path, directory, status, entries)
            elif (
                not entries
                or any(kind != "directory" for _name, kind in entries)
                or level >= self._depth
                or (wanted.clashes and _may_clash(entries))
            ):
                self.add(path, "odd")
            else:
                self._read_above(path, directory, [one for one, _kind in entries], level + 1)
        except _Late:
            self._budget += 1
            raise
        finally:
            os.close(directory)

    def _read_above(self, path: bytes, directory: int, names: list[bytes], level: int) -> None:
        for index, name in enumerate(names):
            try:
                if self.is_over():
                    raise _Late
                self._descend(path + b"/" + name if path else name, directory, name, _NO_FOLLOW, level)
            except _Late:
                rest = dict.fromkeys(names[index:], -1)
                self._batch.trees.append(Tree(path, "rest", 0, 0, 0, 0, 0, {}, rest, [], [], []))
                return

    # --- trees ---

    def _read_tree(self, path: bytes, directory: int, status: os.stat_result, entries: list[_Entry]) -> None:
        batch, wanted = self._batch, self._wanted
        files, directories, read = len(batch.states), len(batch.folder_modes), self._read
        self._entries = wanted.entries - len(entries)
        self._total = wanted.total
        is_first = not batch.trees
        if is_first:
            self._patience = monotonic() + 2 * TURN
        try:
            _size, mtime, _ctime, inode, mode, _links = _facts(status)
            self._tree = Tree(path, "whole", 0, status.st_dev, inode, mode, mtime, {}, {}, [], [], [])
            if self._entries < 0:
                raise _Limit
            self._read_entries(directory, b"", entries, 0)
        except (_Limit, _Late) as error:
            batch._forget(files, directories)
            self._read = read
            if isinstance(error, _Late) and not is_first:
                raise
            self.add(path, "large")
        else:
            batch.trees.append(self._tree)

    def _read_entries(self, directory: int, above: bytes, entries: list[_Entry], level: int) -> None:
        for name, kind in entries:
            if monotonic() > self._patience:
                raise _Late
            inside = above + name
            if kind == "file":
                self._read_file(directory, name, inside)
            elif kind == "directory":
                self._read_directory(directory, name, inside, level + 1)
            else:
                self._add_other(inside, kind)

    def _path(self, inside: bytes) -> Any:
        return inside.decode("utf-8", "surrogateescape") if self._wanted.text else inside

    def _add_other(self, inside: bytes, kind: str, error: int = 0) -> None:
        self._tree.others.append(Other(self._path(inside), kind, error))

    def _read_directory(self, parent: int, name: bytes, inside: bytes, level: int) -> None:
        """Read a directory in a tree."""
        if not self._wanted.inside:
            if self._wanted.content == "names":
                self._add_directory(inside, None)
                return
            try:
                status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            except OSError as error:
                self._add_other(inside, "closed", error.errno or 0)
                return
            if stat.S_ISDIR(status.st_mode):
                self._add_directory(inside, status)
            else:
                self._add_other(inside, "closed", ENOTDIR)
            return
        if level > self._depth:
            raise _Limit
        try:
            directory = os.open(name, _DIRECTORY | _NO_FOLLOW, dir_fd=parent)
        except OSError as error:
            self._add_other(inside, "closed", error.errno or 0)
            return
        try:
            try:
                status = os.fstat(directory)
                entries = _list(directory) if status.st_dev == self._tree.device else []
            except OSError as error:
                self._add_other(inside, "closed", error.errno or 0)
                return
            if self._add_directory(inside, status):
                self._entries -= len(entries)
                if self._entries < 0:
                    raise _Limit
                if not entries:
                    self._tree.empty.append(self._path(inside))
                self._read_entries(directory, inside + b"/", entries, level)
        finally:
            os.close(directory)

    def _add_directory(self, inside: bytes, status: os.stat_result | None) -> bool:
        """Add a directory, or another entry if it is on another file system; return whether its entries belong here."""
        if status is not None and status.st_dev != self._tree.device:
            self._add_other(inside, "device")
            return False
        directories: dict[Any, int] = self._tree.directories
        directories[self._path(inside)] = self._batch._add_directory(status)
        return True

    def _read_file(self, directory: int, name: bytes, inside: bytes) -> None:
        batch, wanted = self._batch, self._wanted
        is_first = (name + b"/").startswith(wanted.prefixes)
        number = len(batch.states)
        files: dict[Any, int] = self._tree.files
        path = self._path(inside)
        files[path] = number
        if not is_first and wanted.content == "names":
            batch._add_file(None, "unwanted")
        elif not is_first and wanted.content == "none":
            self._look_at_file(directory, name, "unwanted")
        else:
            try:
                file = os.open(name, _FILE, dir_fd=directory)
            except OSError as error:
                self._look_at_file(directory, name, "unreadable", error.errno or 0)
            else:
                try:
                    status = os.fstat(file)
                    if not stat.S_ISREG(status.st_mode):
                        batch._add_file(None, "changing")
                    else:
                        batch._add_file(status, "unwanted")
                        if is_first or wanted.content == "all":
                            size = status.st_size
                            self._read_content(file, status, min(wanted.first or size, size) if is_first else size)
                except OSError as error:
                    if len(batch.states) == number:
                        batch._add_file(None, "unreadable", error.errno or 0)
                    batch.states[number], batch.errors[number] = "unreadable", error.errno or 0
                finally:
                    os.close(file)
        if batch.links[number] > 1:
            linked: list[Any] = self._tree.linked
            linked.append(path)

    def _look_at_file(self, directory: int, name: bytes, state: str, error: int = 0) -> None:
        """Add a file without opening it."""
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError as unseen:
            self._batch._add_file(None, "unreadable", error or unseen.errno or 0)
            return
        if stat.S_ISREG(status.st_mode):
            self._batch._add_file(status, state, error)
        else:
            self._batch._add_file(None, state if state == "unreadable" else "changing", error)

    def _read_content(self, file: int, before: os.stat_result, most: int) -> None:
        """Read the content of the last file, or its beginning."""
        batch = self._batch
        if most > self._wanted.file:
            batch.states[-1] = "large"
            return
        if most > self._total:
            raise _Limit
        self._total -= most
        # One byte more than expected, to detect a file that has grown without a second read.
        limit = most + (most == before.st_size)
        data = os.read(file, limit)
        while 0 < len(data) < most:
            more = os.read(file, limit - len(data))
            if not more:
                break
            data += more
        if len(data) == most and self._wanted.twice:
            after = os.fstat(file)
            is_same = (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
        else:
            is_same = len(data) == most
        if is_same:
            batch.states[-1] = "whole"
            batch._contents[-1] = data
            self._read += most
        else:
            batch.states[-1] = "changing"


def _list(directory: int, skip: bytes = b"") -> list[_Entry]:
    """Return the names and kinds of the entries of an open directory, sorted by the bytes of the names."""
    entries: list[_Entry] = []
    with os.scandir(directory) as found:
        for entry in found:
            name = os.fsencode(entry.name)
            if name != skip:
                entries.append((name, _kind(entry)))
    entries.sort()
    return entries


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        if entry.is_file(follow_symlinks=False):
            return "file"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "link" if entry.is_symlink() else "special"
    except OSError:  # a file system without types, and the entry is gone
        return "special"


def _may_clash(entries: list[_Entry]) -> bool:
    """Return whether some of the names may differ in case only."""
    return len(entries) > 1 and any(name != name.lower() or not name.isascii() for name, _kind in entries)


# --- JSON ------------------------------------------------------------------------------------------------------------


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs more than once")
    return found


@cache
def _decoder() -> Callable[[str], Any]:
    import json  # most runs read none; a decoder takes as long to create as a short text to decode

    return json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once).decode


def read_json(data: bytes) -> Any:
    """Return the value of a JSON text in UTF-8.

    :raises ValueError: it is not one, or a key occurs more than once in an object
    :raises RecursionError: its objects and arrays are nested too deeply
    """
    return _decoder()(data.decode())


# --- Pairtrees --------------------------------------------------------------------------------------------------------

_RESERVED = b"pairtree"
# A name of this many bytes has at least three characters, since a character has at most four bytes.
_SURELY_LONG = 9


def scan_pairtree(
    root: bytes, paths: ByteColumn, follow: bool, budget: int
) -> tuple[ByteColumn, ByteColumn, ByteColumn]:
    """Read directories of a Pairtree and the directories below them, in the order of their bytes.

    :param root: the directory that the paths are relative to
    :param paths: the directories, in order; the name after the last slash must be ASCII
    :param follow: accept symbolic links to directories as objects
    :param budget: the maximum number of directories to read; fewer are read if that takes too long
    :return: in order, the paths of objects and of deferred directories; for each path the name of the object's
        directory, empty for deferred ones; and the paths that were not read
    """
    results: list[bytes] = []
    names: list[bytes] = []
    stack = paths.items[::-1]
    begin, latest = budget, monotonic() + TURN
    while stack and budget > 0 and (budget == begin or monotonic() < latest):
        path = stack.pop()
        budget -= 1
        found = _look(os.path.join(root, path), len(path) - path.rfind(b"/") == 2, follow)
        if found is None:
            results.append(path)
            names.append(b"")
            continue
        name, below = found
        if name:
            results.append(path)
            names.append(name)
        below.sort(reverse=True)
        stack += [b"%s/%s" % (path, child) for child in below]
    return ByteColumn(results), ByteColumn(names), ByteColumn(stack[::-1])


def _look(directory: bytes, is_morty: bool, follow: bool) -> tuple[bytes, list[bytes]] | None:
    """Return the object's name in a directory, or empty, and the other names; :data:`None` to defer the directory."""
    end = b""
    below: list[bytes] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                name = entry.name
                is_long = len(name) > 2
                if not name.isascii() and len(name) < _SURELY_LONG:
                    return None
                if is_long:
                    if end or name.startswith(_RESERVED) or not entry.is_dir(follow_symlinks=follow):
                        return None
                    end = name
                elif is_morty or not entry.is_dir(follow_symlinks=False):
                    return None
                else:
                    below.append(name)
    except (OSError, ValueError):  # a NUL in the path
        return None
    return (end, below) if end or below else None
