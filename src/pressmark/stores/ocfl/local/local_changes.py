"""Changes of a storage root on a local disk.

Objects are prepared in a private directory, ``extensions/pressmark-staging/<run>``, on the file system of the root. An
object appears and disappears by one rename. A version appears in three steps, each flushed before the next: its
directory is moved into the object, the inventory is replaced, the sidecar is replaced.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import count
from types import TracebackType
from typing import Self

from pressmark.errors import StoreError
from pressmark.fs.atomic import replace_file
from pressmark.fs.durable import exists, flush_directory, flush_trees
from pressmark.fs.moves import TRIES, prune_empty_parents, remove_tree, rename_new
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.staging import RunDirectory
from pressmark.fs.steps import write_new
from pressmark.stores.object_sources import Copier, SourceCopy
from pressmark.stores.ocfl.declarations import EXTENSIONS, WORK_DIRECTORY, declares_object, outdated_names
from pressmark.stores.ocfl.inventory import INVENTORY
from pressmark.stores.ocfl.storage import Storage
from pressmark.stores.store_change import above

__all__ = ["LocalChanges"]

_INVENTORY = encode_fs(INVENTORY)


class LocalChanges(RunDirectory):
    """Changes of a root; see :class:`pressmark.stores.ocfl.storage.Changes`.

    :param storage: the root
    :param durable: flush each object before it appears
    :raises StoreError: ``extensions`` is a symbolic link
    """

    together = 1
    alone = False

    def __init__(self, storage: Storage, durable: bool) -> None:
        self._root = storage.path(b"")
        self._extensions = storage.path(EXTENSIONS)
        super().__init__(os.path.join(self._extensions, WORK_DIRECTORY))
        self._storage = storage
        self._durable = durable
        self._numbers = count()

    def __enter__(self) -> Self:
        try:
            for _ in range(TRIES):
                # A root whose layout has no parameters has no extensions directory.
                with suppress(FileExistsError):
                    os.mkdir(self._extensions)
                if os.path.islink(self._extensions):
                    what = f"{decode_fs(EXTENSIONS)} is a symbolic link, which OCFL does not allow"
                    raise StoreError(self._root, f"{what}; replace it with its target")
                with suppress(FileNotFoundError):  # another run has just removed it
                    return super().__enter__()
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), self._extensions)
        except BaseException:
            self._prune_extensions()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            super().__exit__(kind, error, trace)
        finally:
            self._prune_extensions()

    def _prune_extensions(self) -> None:
        prune_empty_parents(self._root, EXTENSIONS, strict=False)

    # --- prepare ------------------------------------------------------------------------------------------------------

    def begin(self, path: bytes = b"") -> bytes:
        return self / b"%d" % next(self._numbers)

    def look_up(self, paths: Sequence[bytes]) -> None: ...

    def is_free(self, path: bytes) -> bool:
        return not self._storage.exists(path)

    def make(self, directory: bytes) -> None:
        os.makedirs(directory, exist_ok=True)

    def copy(self, copies: Sequence[SourceCopy], copier: Copier, together: int | None = None) -> Iterator[SourceCopy]:
        return copier.copy(copies, together)

    def added(self, file: bytes, digests: Mapping[str, str]) -> None: ...

    def write(self, new: bytes, files: Mapping[bytes, bytes | None]) -> None:
        write_new(new, files)

    def drop(self, file: bytes) -> None:
        os.unlink(file)

    def prune(self, directory: bytes) -> None:
        try:
            os.rmdir(directory)
        except OSError:
            if not os.listdir(directory):
                raise

    def is_prepared(self, new: bytes) -> bool:
        return os.path.lexists(new)

    def discard(self, new: bytes) -> None:
        with suppress(OSError):  # the rest is removed at the end, or by the next run
            if os.path.lexists(new):
                remove_tree(new)

    # --- publish ------------------------------------------------------------------------------------------------------

    def claimed(self, path: bytes) -> AbstractContextManager[object]:
        return nullcontext()  # the lock keeps runs apart

    def recover(self, path: bytes) -> bool:
        return False  # an object appears whole, and a version by steps of the rules

    def clear(self, path: bytes) -> bool:
        return False

    def remove_leftover(self, path: bytes, objects: Sequence[bytes]) -> bool:
        return False  # leftovers are in the private directory

    def publish(self, new: bytes, path: bytes, known: set[bytes], *, replace_empty: bool = False) -> None:
        target = self._storage.path(path)
        created: list[bytes] = []
        try:
            for directory in above(self._root, path)[1:]:
                if directory not in known:
                    self._make_above(directory, created)
                    known.add(directory)
            if replace_empty and os.path.isdir(target):
                os.rmdir(target)  # left behind by a killed run or another program
            rename_new(new, target)
        except OSError:
            known.difference_update(created)
            if created:
                prune_empty_parents(self._root, os.path.dirname(path), strict=False)
            raise

    def _make_above(self, directory: bytes, created: list[bytes]) -> None:
        """Make sure that a directory above an object exists."""
        try:
            os.mkdir(directory)
            created.append(directory)
        except FileExistsError:
            if not stat.S_ISDIR(os.lstat(directory).st_mode):
                raise
            if declares_object(self._storage, directory[len(self._root) + 1 :]):
                raise

    def publish_version(
        self, new: bytes, path: bytes, version: bytes, sidecar: bytes, data: bytes, declared: bytes = b""
    ) -> None:
        self.adopt_version(os.path.join(new, version), path)
        try:
            self.publish_inventory(new, path, sidecar, declared)
        except BaseException:
            with suppress(OSError):
                self._recover(new, path, version, sidecar, data)
            raise

    def adopt(self, new: bytes, digests: Mapping[str, Mapping[str, str]]) -> None: ...

    def adopt_version(self, directory: bytes, path: bytes) -> None:
        target = self._storage.path(os.path.join(path, os.path.basename(directory)))
        try:
            rename_new(directory, target)
        except OSError as error:
            # Without a rename that never replaces, a directory with files still does not yield to another.
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
            raise

    def publish_inventory(self, new: bytes, path: bytes, sidecar: bytes, declared: bytes = b"") -> None:
        outdated = outdated_names(sidecar, declared) if declared else []
        for name in (_INVENTORY, sidecar, *filter(None, [declared])):
            self.flush_names(path)
            if name == sidecar:
                self._remove_names(path, [one for one in outdated if one.startswith(_INVENTORY)])
            self.replace(os.path.join(new, name), os.path.join(path, name))
        self.flush_names(path)
        self._remove_names(path, [one for one in outdated if not one.startswith(_INVENTORY)])

    def _remove_names(self, path: bytes, names: Sequence[bytes]) -> None:
        for name in names:
            self.remove(os.path.join(path, name))
        if names:
            self.flush_names(path)

    def _recover(self, new: bytes, path: bytes, version: bytes, sidecar: bytes, data: bytes) -> None:
        """Take a version back whose inventory could not be replaced, or replace the sidecar as well."""
        if self._storage.read(os.path.join(path, _INVENTORY)) == data:
            os.rename(self._storage.path(os.path.join(path, version)), os.path.join(new, version))
        elif exists(os.path.join(new, sidecar)) and exists(self._storage.path(os.path.join(path, sidecar))):
            self.replace(os.path.join(new, sidecar), os.path.join(path, sidecar))

    def replace(self, new: bytes, path: bytes) -> None:
        """Move a file over the one at ``path`` in one step."""
        os.replace(new, self._storage.path(path))

    def flush(self, *paths: bytes) -> None:
        if self._durable:
            is_new = self / b""
            flush_trees(*(path if path.startswith(is_new) else self._storage.path(path) for path in paths))

    def flush_names(self, path: bytes) -> None:
        """Flush the entries of a directory to disk, if the changes are durable."""
        if self._durable:
            flush_directory(self._storage.path(path))

    def put(self, path: bytes, data: bytes) -> None:
        replace_file(self._storage.path(path), data, part=self.begin())

    def remove(self, path: bytes) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._storage.path(path))

    def remove_empty(self, path: bytes, stop: bytes, removed: list[bytes], *, strict: bool) -> None:
        prune_empty_parents(self._root, path, removed, stop=stop, strict=strict)

    def withdraw(self, path: bytes) -> list[bytes]:
        os.rename(self._storage.path(path), self.begin())
        prune_empty_parents(self._root, os.path.dirname(path), strict=False)
        return above(self._root, path)
