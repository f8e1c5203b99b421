"""A table of the members of an archive: the directory that unpacking would create, without its contents.

The table is a temporary database. Small tables stay in memory; larger tables and tag files are written to the directory
for temporary files. Memory use does not depend on the number of members.
"""

from __future__ import annotations

import errno
import io
import os
import sqlite3
import stat
import tempfile
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import IO, Any, BinaryIO, NamedTuple, cast

from pressmark.bagit.bag_directory import LINKS, ResolvedPath
from pressmark.fs.spilling import SPILLING, TemporaryDatabase

__all__ = ["OCCUPIED", "SAME_NAME", "ArchivedBag", "MemberTable", "Node", "spooled"]

# Why a member cannot be unpacked together with the others.
OCCUPIED = "a parent directory is occupied by a file"
SAME_NAME = "another member has the same name"

# Memory for the database and for tag files.
_CACHE = 16 << 20  # 16 MiB
TAG_FILES_IN_MEMORY = 8 << 20  # 8 MiB
_BLOCK = 1 << 20  # 1 MiB
# Number of cached directories.
_REMEMBERED = 1024
# Number of cached files: a walk lists a directory, then its files are looked up.
_RECENT = 4096
_ROOT = 0

_SCHEMA = """
CREATE TABLE node (
    id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name BLOB NOT NULL, kind TEXT NOT NULL, size INTEGER NOT NULL,
    value BLOB NOT NULL, algorithms INTEGER NOT NULL, start INTEGER NOT NULL, position INTEGER NOT NULL,
    UNIQUE (parent, name)
);
"""


class Node(NamedTuple):
    """A row of the table.

    :ivar kind: ``file``, ``directory``, ``link`` or ``special``
    :ivar size: size of a file in bytes
    :ivar value: for a file, its digests, concatenated; for a link, its target; for a directory, what the caller added
    :ivar algorithms: number of the set of algorithms
    :ivar start: offset of the content among the kept tag files; -1 if it was not kept
    :ivar offset: offset of the content in the archive, for a file without digests; otherwise -1
    """

    id: int
    kind: str
    size: int
    value: bytes = b""
    algorithms: int = 0
    start: int = -1
    offset: int = -1


class MemberTable(TemporaryDatabase):
    """The members of an archive, or the files of a bag in a bucket; a context manager.

    :param check_members: called with the number of members and directories
    :raises SpillError: a temporary file cannot be written or read
    """

    def __init__(self, check_members: Callable[[int], object] = lambda _number: None) -> None:
        self._check_members = check_members
        self._rows = 0
        self._directories: dict[bytes, int] = {}
        self._tag_files = tempfile.SpooledTemporaryFile(TAG_FILES_IN_MEMORY)  # noqa: SIM115, closed by __exit__
        self._kept = 0
        super().__init__(_SCHEMA, _CACHE)

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        super().__exit__(_type, _value, _traceback)
        self._tag_files.close()

    # --- writing ------------------------------------------------------------------------------------------------------

    def add(
        self,
        path: bytes,
        kind: str,
        size: int = 0,
        value: bytes = b"",
        algorithms: int = 0,
        start: int = -1,
        offset: int = -1,
    ) -> str | None:
        """Add a member; return why it cannot be unpacked together with the others, or :data:`None`.

        :raises ArchiveError: there are more directories than the limit of members
        """
        above, _, name = path.rpartition(b"/")
        with SPILLING:
            parent = self._lookup(above, make=True)
            if parent is None:
                return OCCUPIED
            try:
                self._insert(parent, name, kind, size, value, algorithms, start, offset)
                return None
            except sqlite3.IntegrityError:
                there = self._node(parent, name)
            if there is None or not there.kind == kind == "directory":
                return SAME_NAME
            self._base.execute("UPDATE node SET value = ? WHERE id = ?", (value, there.id))
        return None

    def _insert(
        self,
        parent: int,
        name: bytes,
        kind: str,
        size: int = 0,
        value: bytes = b"",
        algorithms: int = 0,
        start: int = -1,
        offset: int = -1,
    ) -> int:
        self._rows += 1
        self._check_members(self._rows)  # a long name creates many directories
        row = (parent, name, kind, size, value, algorithms, start, offset)
        made = self._base.execute(
            "INSERT INTO node (parent, name, kind, size, value, algorithms, start, position)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        assert made.lastrowid is not None
        return made.lastrowid

    def _lookup(self, path: bytes, *, make: bool = False) -> int | None:
        """Return the row of a directory; :data:`None` if it does not exist.

        :param make: create missing directories, as unpacking would
        """
        below = []
        known = path
        while known and known not in self._directories:
            known, _, name = known.rpartition(b"/")
            below.append(name)
        parent = self._directories[known] if known else _ROOT
        while below:
            name = below.pop()
            node = self._node(parent, name)
            if node is None and make:
                parent = self._insert(parent, name, "directory")
            elif node is None or node.kind != "directory":
                return None
            else:
                parent = node.id
        if path:
            if len(self._directories) >= _REMEMBERED:
                self._directories.clear()
            self._directories[path] = parent
        return parent

    def keep(self, data: bytes) -> int:
        """Keep a piece of a tag file, and return its offset; pieces of a file are contiguous."""
        start = self._kept
        with SPILLING:
            self._tag_files.seek(start)
            self._tag_files.write(data)
        self._kept += len(data)
        return start

    # --- reading ------------------------------------------------------------------------------------------------------

    def names(self, parent: int = _ROOT) -> Iterator[tuple[bytes, Node]]:
        """Yield the content of a directory, sorted by the bytes of the names."""
        with SPILLING:
            rows = self._base.execute(
                "SELECT name, id, kind, size, value, algorithms, start, position FROM node"
                " WHERE parent = ? ORDER BY name",
                (parent,),
            )
            for name, *row in rows:
                yield name, Node(*row)

    def find(self, path: bytes) -> Node | None:
        """Return the row of a path, without following links; :data:`None` if it does not exist."""
        above, _, name = path.rpartition(b"/")
        with SPILLING:
            parent = self._lookup(above)
            return None if parent is None else self._node(parent, name)

    def _node(self, parent: int, name: bytes) -> Node | None:
        row = self._base.execute(
            "SELECT id, kind, size, value, algorithms, start, position FROM node WHERE parent = ? AND name = ?",
            (parent, name),
        ).fetchone()
        return None if row is None else Node(*row)

    def values(self, kind: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield path and value of each member of a kind."""
        with SPILLING:
            rows = self._base.execute("SELECT parent, name, value FROM node WHERE kind = ?", (kind,))
            for parent, name, value in rows:
                path, above = name, parent
                while above != _ROOT:
                    above, name = self._base.execute("SELECT parent, name FROM node WHERE id = ?", (above,)).fetchone()
                    path = name + b"/" + path
                yield path, value

    def content(self, start: int, size: int) -> BinaryIO:
        """Open the content of a kept tag file."""
        return _Section(self._tag_files, start, size)  # type: ignore[return-value]


def spooled(file: IO[bytes] | io.RawIOBase) -> BinaryIO:
    """Return a copy of a tag file: in memory, or if it is large, in the directory for temporary files.

    :raises OSError: the file cannot be read
    :raises SpillError: the copy cannot be written
    """
    with SPILLING:
        copy = tempfile.SpooledTemporaryFile(TAG_FILES_IN_MEMORY)  # noqa: SIM115, returned
    while block := file.read(_BLOCK):
        with SPILLING:
            copy.write(block)
    copy.seek(0)
    return cast(BinaryIO, copy)


class _Section(io.RawIOBase):
    """A section of a shared file."""

    def __init__(self, file: Any, start: int, size: int) -> None:
        super().__init__()
        self._file = file
        self._start = start
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._position)
        size = left if size is None or size < 0 else min(size, left)
        with SPILLING:
            self._file.seek(self._start + self._position)
            data: bytes = self._file.read(size)
        self._position += len(data)
        return data


class _Entry:
    """A name in a directory, with the methods of :class:`os.DirEntry`."""

    def __init__(self, name: bytes, node: Node) -> None:
        self.name = os.fsdecode(name)
        self._node = node

    def is_symlink(self) -> bool:
        return self._node.kind == "link"

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return self._node.kind == "file"

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return self._node.kind == "directory"

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return _status(self._node)


class ArchivedBag:
    """A bag in an archive, with the methods of :class:`pressmark.bagit.bag_directory.BagDirectory`.

    :param path: path of the archive
    :param top: directory of the bag in the archive
    """

    def __init__(self, path: bytes, table: MemberTable, top: bytes) -> None:
        self.path = path
        self._table = table
        self._top = top
        self._recent: dict[bytes, Node] = {}

    def _find(self, path: bytes) -> Node | None:
        return self._table.find(self._top + b"/" + path if path else self._top)

    def _there(self, path: bytes) -> Node:
        node = self._find(path)
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return node

    def open(self, path: bytes) -> BinaryIO:
        """Open a regular file whose content was kept.

        :raises OSError: the file does not exist, is not a regular file, or was not kept
        """
        node = self._there(path)
        if node.kind != "file":
            raise OSError(errno.EINVAL, "not a regular file")
        if node.start < 0:
            raise OSError(errno.EINVAL, "tag file is a link, which is not supported in archives; pack it as a file")
        return self._table.content(node.start, node.size)

    def names(self) -> list[bytes]:
        """Return the names in the base directory."""
        return [name for name, _ in self._table.names(self._there(b"").id)]

    def scan(self, path: bytes) -> Iterator[_Entry]:
        """Yield the entries of a directory.

        :raises OSError: it does not exist
        """
        node = self._there(path)
        if node.kind != "directory":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        above = path + b"/" if path else b""
        for name, one in self._table.names(node.id):
            if len(self._recent) >= _RECENT:
                self._recent.clear()
            self._recent[above + name] = one
            yield _Entry(name, one)

    def status(self, path: bytes) -> os.stat_result:
        """Return the status of ``path``; a symbolic link is not followed.

        :raises OSError: it does not exist
        """
        return _status(self._there(path))

    def file(self, path: bytes) -> Node | None:
        """Return the row of a regular file; :data:`None` if it does not exist."""
        node = self._recent.get(path) or self._find(path)
        return node if node is not None and node.kind == "file" else None

    def why_unreadable(self, path: bytes, real: bytes | None) -> OSError | None:
        """Return :data:`None`: all members are readable."""
        return None

    def resolve(self, path: bytes) -> ResolvedPath:
        """Resolve the links in ``path``, as long as they stay in the bag."""
        waiting = _segments(path)[::-1]
        passed: list[bytes] = []
        links = 0
        leads_to_directory = False
        while waiting:
            name = waiting.pop()
            if name == b"..":
                if not passed:
                    return ResolvedPath("outside")
                if self._there(b"/".join(passed)).kind != "directory":
                    return ResolvedPath("dangling")
                passed.pop()
                continue
            node = self._find(b"/".join([*passed, name]))
            if node is None:
                return ResolvedPath("dangling")
            if node.kind != "link":
                passed.append(name)
                continue
            links += 1
            if links > LINKS:
                return ResolvedPath("loop")
            if node.value.startswith(b"/"):
                return ResolvedPath("outside")
            leads_to_directory |= node.value.endswith((b"/", b"/."))
            waiting += _segments(node.value)[::-1]
        found = b"/".join(passed)
        node = self._find(found)
        if node is None or (leads_to_directory and node.kind != "directory"):
            return ResolvedPath("dangling")
        kind = node.kind if node.kind in ("file", "directory") else "special"
        return ResolvedPath(kind, found, _status(node))


def _segments(path: bytes) -> list[bytes]:
    return [name for name in path.split(b"/") if name not in (b"", b".")]


def _status(node: Node) -> os.stat_result:
    kind = {"file": stat.S_IFREG, "directory": stat.S_IFDIR, "link": stat.S_IFLNK}.get(node.kind, stat.S_IFIFO)
    return os.stat_result((kind, node.id, 0, 1, 0, 0, node.size, 0, 0, 0))
