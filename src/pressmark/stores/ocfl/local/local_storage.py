"""A storage root on a local disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from io import FileIO
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from pressmark import _kernels
from pressmark.fixity.outcomes import Content, Outcome
from pressmark.fs import durable
from pressmark.fs.beneath import open_beneath, read_all, real_path, require_regular
from pressmark.fs.names import NAME_MAX, PATH_MAX, first_link, is_absent, too_long
from pressmark.fs.trees import DirectoryEntry, Wanted, scan
from pressmark.stores.ocfl.declarations import EXTENSIONS, WORK_DIRECTORY
from pressmark.stores.ocfl.storage import HEAD, UNLIMITED, Reads
from pressmark.stores.placement import FIRST, first_directories
from pressmark.threads import MOST, require_use

if TYPE_CHECKING:
    from pressmark.stores.ocfl.local.local_changes import LocalChanges

__all__ = ["LocalStorage"]

Key = TypeVar("Key")
# What is wrong after a torn read is looked at again.
_FILES = Wanted(text=True, twice=False)
_NAMES = _FILES._replace(content="names", inside=False)
_WANTED = {
    "paths": _NAMES,
    "ids": _NAMES._replace(prefixes=(b"inventory.json/",), first=HEAD),
    "rules": _FILES._replace(content="open", prefixes=(b"0=", b"inventory.json")),
    "content": _FILES,
}


class LocalStorage:
    """A storage root on a local disk.

    :param base: a directory, which may be a symbolic link
    :param path: path of the root in it
    """

    siblings = 64
    walkers = MOST
    first = FIRST
    has_links = True

    def __init__(self, base: bytes, path: bytes = b"") -> None:
        self._base = base
        self._inside = os.path.join(path, b"")
        self._root = os.path.join(base, path) if path else base
        self._prefix = os.path.join(self._root, b"")

    @property
    def work_directory(self) -> bytes:
        return self.path(EXTENSIONS + b"/" + WORK_DIRECTORY)

    def below(self, path: bytes) -> LocalStorage:
        return LocalStorage(os.path.abspath(self._base), self._inside + path)

    def path(self, relative: bytes) -> bytes:
        return self._prefix + relative if relative else self._root

    def scan(self, directory: bytes) -> list[DirectoryEntry]:
        require_use()
        return scan(self.path(directory), follow=False)

    def all_entries(self) -> None:
        return None

    def first_directories(self) -> list[bytes]:
        return first_directories(self._root)

    def trees(
        self,
        directory: bytes,
        names: Sequence[bytes],
        reads: Reads,
        *,
        marker: bytes = b"",
        clashes: bool = False,
        budget: int = UNLIMITED,
    ) -> _kernels.active.TreeBatch:
        wanted = _WANTED[reads]._replace(marker=marker, clashes=clashes, budget=budget)
        return _kernels.active.read_trees(self.path(directory), names, wanted)

    def exists(self, path: bytes) -> bool:
        return durable.exists(self.path(path))

    def status(self, path: bytes) -> os.stat_result:
        return os.lstat(self.path(path))

    def why_unreadable(self, file: bytes) -> OSError | None:
        return durable.why_unreadable(self.path(file))

    def _open(self, file: bytes) -> int:
        require_use()
        return require_regular(open_beneath(self._base, self._inside + file), self.path(file))

    def open(self, file: bytes) -> tuple[BinaryIO, os.stat_result]:
        descriptor = self._open(file)
        return open(descriptor, "rb"), os.fstat(descriptor)

    def read(self, file: bytes, limit: int = -1) -> bytes:
        with FileIO(self._open(file)) as opened:
            if limit >= 0:
                return opened.read(limit) or b""
            return read_all(opened, os.fstat(opened.fileno()).st_size)

    def sources(self, files: Iterable[tuple[Key, bytes]]) -> Iterator[tuple[Key, bytes | Content]]:
        return ((key, real_path(self.path(file))) for key, file in files)

    def hash_tasks(
        self, tasks: Iterable[tuple[Key, bytes]], algorithms: tuple[str, ...], threads: int
    ) -> Iterator[tuple[Key, Outcome]]:
        from pressmark.fixity.pool import hash_tasks  # only a check reads content

        return hash_tasks(((key, self.path(file)) for key, file in tasks), algorithms, threads, links="refuse")

    @cached_property
    def _is_short(self) -> bool:
        return len(os.path.abspath(self._root)) < PATH_MAX - NAME_MAX - 1

    def too_long(self, path: bytes) -> str | None:
        # Nearly all paths are shorter than a name may be.
        return None if len(path) <= NAME_MAX and self._is_short else too_long(self._root, path)

    def is_absent(self, path: bytes) -> bool:
        return is_absent(self._root, path)

    def first_link(self, path: bytes) -> bytes | None:
        return first_link(self._root, path)

    def create(self, files: Mapping[bytes, bytes | None], name: bytes, data: bytes) -> None:
        from pressmark.stores.ocfl.local.new_root import create_root  # only a new root needs it

        create_root(self._root, files, name, data)

    def is_leftover(self, path: bytes, version: bytes = b"") -> bool:
        return False  # objects are prepared elsewhere

    def is_decided(self, path: bytes, version: bytes) -> bool:
        return False  # what is there beside the lock was interrupted

    def removals(self) -> tuple[()]:
        return ()  # an object disappears by one rename

    def leftovers(self) -> tuple[()]:
        return ()

    def changes(self, durable: bool) -> LocalChanges:
        from pressmark.stores.ocfl.local.local_changes import LocalChanges  # not needed for reading

        return LocalChanges(self, durable)

    @contextmanager
    def scratch(self) -> Iterator[bytes]:
        with self.changes(False) as changes:
            folder = changes.begin()
            os.mkdir(folder)
            yield folder
