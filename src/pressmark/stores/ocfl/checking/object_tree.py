"""The files of one object, as its rules need them: read with those of many other objects, or one by one."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import cast

from pressmark import _kernels
from pressmark.fixity.scheduling import hash_trees
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.trees import DirectoryEntry, Other, Tree
from pressmark.stores.ocfl.inventory import INVENTORY, InventoryError, read_inventory
from pressmark.stores.ocfl.storage import Storage

__all__ = ["BatchTree", "ObjectTree", "StoredTree", "object_trees"]

Columns = dict[str, list[str | None]]
# States of files that need no look one by one.
_USUAL = frozenset({"whole", "unwanted", "large"})
# Inventories, and all files that OCFL defines except content.
_INVENTORIES = re.compile(r"(?:v[0-9]+/)?inventory\.json")
_OF_OCFL = re.compile(r"0=ocfl_object_[^/]*|(?:v[0-9]+/)?inventory\.json(?:\.[^/.]+)?")


class ObjectTree:
    """Everything in the directory of an object, and the content of the files that its rules read.

    Paths are text, relative to the object; those of :meth:`read` and :meth:`scan` are relative to the storage root, as
    in :class:`~pressmark.stores.ocfl.storage.Storage`.

    :ivar path: the object, relative to the storage root
    :ivar inside: the object that contains it; :data:`None` for most
    :ivar files: its regular files, with a number for :meth:`digests`
    :ivar directories: its directories
    :ivar empty: those without entries
    :ivar linked: the files with several hard links, and how many
    :ivar others: links, special files, and what could not be read
    :ivar sizes: of the files by their numbers, in bytes
    :ivar seen: the status of the inventory before the object was read; :data:`None` without one, or in a batch
    """

    __slots__ = ("_index", "directories", "empty", "files", "inside", "linked", "others", "path", "seen")

    path: bytes
    inside: bytes | None
    files: Mapping[str, int]
    directories: Collection[str]
    empty: Collection[str]
    linked: Mapping[str, int]
    others: Sequence[Other]
    sizes: Sequence[int]
    seen: os.stat_result | None

    def has_file(self, name: str) -> bool:
        """Return whether the object's own directory contains a regular file."""
        return name in self.files

    def has_directory(self, name: str) -> bool:
        """Return whether the object's own directory contains a directory."""
        return name in self.directories

    def content(self, path: str, limit: int = -1) -> bytes:
        """Return the content of a file, or its first ``limit`` bytes.

        :raises OSError: it cannot be read
        """
        raise NotImplementedError

    def digests(self, algorithm: str) -> Sequence[str | None] | None:
        """Return the digest of each file by its number, :data:`None` for those whose content is not in memory.

        :return: :data:`None` if that is so for all
        """
        raise NotImplementedError

    def unreadable(self, paths: Iterable[str]) -> Iterator[tuple[str, OSError]]:
        """Yield each of the files that cannot be opened for reading, and why, in the order of their paths."""
        raise NotImplementedError

    def read(self, file: bytes, limit: int = -1) -> bytes:
        """Return the content of a file, as :meth:`content`."""
        return self.content(self._relative(file), limit)

    def scan(self, directory: bytes) -> list[DirectoryEntry]:
        """Return the entries of a directory, in byte order.

        :raises OSError: it cannot be read, or does not exist
        """
        if self._index is None:
            self._index = _index(self)
        inside = self._relative(directory)
        closed = next((one for one in self.others if one.path == inside and one.kind == "closed"), None)
        code = errno.ENOENT if closed is None else closed.errno
        if closed is not None or inside not in self._index:
            raise OSError(code, os.strerror(code), directory)
        return self._index[inside]

    def _relative(self, path: bytes) -> str:
        return decode_fs(path[len(self.path) + 1 :] if self.path else path)

    _index: dict[str, list[DirectoryEntry]] | None


def _index(tree: ObjectTree) -> dict[str, list[DirectoryEntry]]:
    """Return the entries of each directory; a file without a status has the kind ``unseen``."""
    found: dict[str, list[DirectoryEntry]] = {"": [], **{path: [] for path in tree.directories}}
    entries = [(path, "file") for path in tree.files] + [(path, "directory") for path in tree.directories]
    entries += [(str(one.path), "directory" if one.kind == "closed" else one.kind) for one in tree.others]
    for path, kind in entries:
        above, _, name = path.rpartition("/")
        found[above].append(DirectoryEntry(encode_fs(name), kind, kind == "link"))
    for listed in found.values():
        listed.sort()
    return found


class BatchTree(ObjectTree):
    """An object that was read with others.

    :param path: of the object, relative to the storage root
    :param columns: the digests of all files of the batch so far, shared by its trees
    """

    __slots__ = ("_batch", "_columns")

    def __init__(self, path: bytes, tree: Tree, batch: _kernels.active.TreeBatch, columns: Columns) -> None:
        self.path = path
        self.inside = None
        self.files = cast("dict[str, int]", tree.files)
        self.directories = cast("dict[str, int]", tree.directories)
        self.empty = cast("list[str]", tree.empty)
        self.linked = {}
        self.others = tree.others
        self.seen = None
        self._index = None
        self._batch = batch
        self._columns = columns
        if tree.linked:
            self.linked = {path: batch.links[self.files[path]] for path in cast("list[str]", tree.linked)}

    @property
    def sizes(self) -> Sequence[int]:  # type: ignore[override]
        """The sizes of all files of the batch."""
        return self._batch.sizes

    def content(self, path: str, limit: int = -1) -> bytes:
        number = self.files.get(path)
        found = None if number is None else self._batch.content(number)
        if found is None:
            code = errno.ENOENT if number is None else errno.EAGAIN
            raise OSError(code, os.strerror(code), path)
        return found if limit < 0 or len(found) <= limit else found[:limit]

    def digests(self, algorithm: str) -> Sequence[str | None]:
        column = self._columns.get(algorithm)
        if column is None:
            column = self._columns[algorithm] = hash_trees(self._batch, (algorithm,))[algorithm]
        return column

    def unreadable(self, paths: Iterable[str]) -> Iterator[tuple[str, OSError]]:
        return iter(())  # each was opened


def object_trees(
    batch: _kernels.active.TreeBatch, directory: bytes = b""
) -> Iterator[tuple[bytes, Tree, BatchTree | None]]:
    """Yield each tree of a batch with its path, and the object if all that was wanted of it is in memory.

    :param directory: the directory that the names of the batch are relative to
    """
    above = directory + b"/" if directory else b""
    columns: Columns = {}
    states = batch.states
    is_usual = _USUAL.issuperset(states)
    for tree in batch.trees:
        path = above + tree.path
        is_whole = tree.state == "whole" and (
            is_usual or _USUAL.issuperset(map(states.__getitem__, tree.files.values()))
        )
        if not is_whole or (tree.others and not {"link", "special"}.issuperset(one.kind for one in tree.others)):
            yield path, tree, None
        else:
            yield path, tree, BatchTree(path, tree, batch, columns)


class StoredTree(ObjectTree):
    """An object whose files are read one by one; it is listed when a rule first asks for its files.

    :param path: of the object, relative to the storage root
    :param entries: those of its directory
    :param ignored: tells whether to ignore a name; files of OCFL itself, and those that an inventory lists, are not
    """

    __slots__ = ("_entries", "_ignored", "_storage", "sizes")

    def __init__(
        self,
        storage: Storage,
        path: bytes,
        entries: Sequence[DirectoryEntry],
        inside: bytes | None = None,
        ignored: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.path = path
        self._ignored = ignored
        self.inside = inside
        self._index = None
        self._storage = storage
        self._entries = entries

    def __getattr__(self, name: str) -> object:
        if name not in ("files", "directories", "empty", "linked", "others", "seen", "sizes"):
            raise AttributeError(name)
        self._list()
        return getattr(self, name)

    def _list(self) -> None:
        files: dict[str, int] = {}
        directories: list[str] = []
        empty: list[str] = []
        linked: dict[str, int] = {}
        others: list[Other] = []
        sizes: list[int] = []
        self.seen = None
        # No recursion: a path can have more elements than Python allows recursive calls.
        waiting = [("", self._entries)]
        while waiting:
            above, entries = waiting.pop()
            below = []
            for entry in entries:
                path = f"{above}/{decode_fs(entry.name)}" if above else decode_fs(entry.name)
                if entry.kind == "file":
                    try:
                        status = self._storage.status(self._full_path(path))
                    except OSError as error:
                        others.append(Other(path, "unseen", error.errno or 0))
                        continue
                    files[path] = len(files)
                    sizes.append(status.st_size)
                    if path == INVENTORY:
                        self.seen = status
                    if status.st_nlink > 1:
                        linked[path] = status.st_nlink
                elif entry.kind == "directory":
                    try:
                        inside = self._storage.scan(self._full_path(path))
                    except OSError as error:
                        others.append(Other(path, "closed", error.errno or 0))
                        continue
                    directories.append(path)
                    if not inside:
                        empty.append(path)
                    below.append((path, inside))
                else:
                    others.append(Other(path, "link" if entry.is_link else "special", 0))
            waiting += reversed(below)
        self.files, self.directories, self.empty, self.linked = files, directories, empty, linked
        self.others, self.sizes = others, sizes
        if self._ignored is not None:
            self._leave_out(self._ignored)

    def _leave_out(self, ignored: Callable[[bytes], bool]) -> None:
        """Leave out what is to be ignored: names at every level, with all that is below them."""

        def is_ignored(path: str) -> bool:
            return any(map(ignored, encode_fs(path).split(b"/")))

        listed = {path for name in self.files if _INVENTORIES.fullmatch(name) for path in self._listed(name)}
        files = {
            path: number
            for path, number in self.files.items()
            if path in listed or not is_ignored(path) or _OF_OCFL.fullmatch(path)
        }
        above = {path[:end] for path in files for end in range(len(path)) if path[end] == "/"}
        self.directories = [path for path in self.directories if path in above or not is_ignored(path)]
        self.empty = [path for path in self.empty if not is_ignored(path)]
        self.linked = {path: count for path, count in self.linked.items() if path in files}
        self.others = [one for one in self.others if not is_ignored(str(one.path))]
        self.files = files

    def _listed(self, inventory: str) -> Collection[str]:
        """Return the content paths in the manifest of an inventory; none if it is malformed."""
        try:
            manifest = read_inventory(self.content(inventory)).get("manifest")
        except (InventoryError, OSError):
            return ()
        lists = manifest.values() if isinstance(manifest, dict) else ()
        return [path for paths in lists if isinstance(paths, list) for path in paths if isinstance(path, str)]

    def has_file(self, name: str) -> bool:
        return any(entry.name == encode_fs(name) and entry.kind == "file" for entry in self._entries)

    def has_directory(self, name: str) -> bool:
        return any(entry.name == encode_fs(name) and entry.kind == "directory" for entry in self._entries)

    def _full_path(self, path: str) -> bytes:
        return self.path + b"/" + encode_fs(path) if self.path else encode_fs(path)

    def content(self, path: str, limit: int = -1) -> bytes:
        return self._storage.read(self._full_path(path), limit)

    def digests(self, algorithm: str) -> None:
        return None

    def unreadable(self, paths: Iterable[str]) -> Iterator[tuple[str, OSError]]:
        for path in sorted(paths, key=encode_fs):
            error = self._storage.why_unreadable(self._full_path(path))
            if error is not None:
                yield path, error
