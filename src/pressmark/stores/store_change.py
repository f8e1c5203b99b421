"""Changes of a store: objects are staged in a private directory, and removed objects are moved there."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import cached_property
from itertools import count
from types import TracebackType
from typing import Self

from pressmark.fs.durable import flush_directories
from pressmark.fs.moves import remove_tree
from pressmark.fs.staging import LOCK, RunDirectory
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.objects import StoreObject

__all__ = ["ChangedStore", "Removal", "StoreChange", "above", "all_above"]

# Objects whose removal is flushed together, at most; then their disk space is free.
TURN = 256


class ChangedStore(ABC):
    """A store whose objects can be stored and removed.

    :ivar root: the store's directory
    :ivar durable: flush everything before a change is made
    """

    root: str
    durable: bool

    @cached_property
    def copied_devices(self) -> set[int]:
        """The devices where the mode ``auto`` turned out to copy, because their file systems cannot share blocks."""
        return set()

    @abstractmethod
    def _run_directory(self) -> AbstractContextManager[RunDirectory]:
        """Return a private directory for changes, on the file system of the store."""

    @abstractmethod
    def withdraw(
        self, removal: Removal, identifier: str | bytes | StoreObject, check: Callable[[], object] | None
    ) -> Iterable[bytes]:
        """Move an object to the private directory, and return the directories that it was in, the outermost first.

        :param check: called while no other run of Pressmark can change the object
        :raises ObjectError: nothing was removed
        :raises IdentifierError: the identifier has no path in the store
        :raises OSError: it cannot be moved
        """


class StoreChange:
    """A change of a store; a context manager whose end removes the rest of the private directory.

    :param store: the store
    """

    def __init__(self, store: ChangedStore) -> None:
        self._store = store
        self._stack = ExitStack()
        self._numbers = count()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    @cached_property
    def staging(self) -> RunDirectory:
        """The private directory, which is created on first use: an object that is refused needs none.

        :raises OSError: it cannot be created
        """
        return self._stack.enter_context(self._store._run_directory())

    def new_path(self) -> bytes:
        """Return a path for an object in the private directory."""
        return self.staging / b"%d" % next(self._numbers)


class Removal(StoreChange):
    """Removes objects from a store; a context manager, whose end removes them from the disk."""

    def __init__(self, store: ChangedStore) -> None:
        super().__init__(store)
        self._removed_from: set[bytes] = set()
        self._waiting = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            self._flush_names()

    def remove(self, identifier: str | bytes | StoreObject, check: Callable[[], object] | None = None) -> None:
        """Remove an object; see :meth:`pressmark.stores.Store.delete`.

        :raises ObjectError: nothing was removed; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in the store
        :raises StoreError: the names of removed objects could not be flushed
        """
        shown = identifier.id or identifier.path if isinstance(identifier, StoreObject) else identifier
        with object_errors(self._store.root, shown):
            self._removed_from.update(self._store.withdraw(self, identifier, check))
        self._waiting += 1
        if self._waiting == TURN:
            self._flush()

    def _flush(self) -> None:
        """Flush the names of the removed objects, and free their space."""
        self._flush_names()
        with suppress(OSError):  # the rest is removed with the private directory
            for name in os.listdir(self.staging.path):
                if name != LOCK:
                    remove_tree(self.staging / name)

    def _flush_names(self) -> None:
        changed, self._removed_from, self._waiting = sorted(self._removed_from), set(), 0
        if self._store.durable and changed:
            with store_errors(self._store.root):
                flush_directories(changed)


def above(base: bytes, path: bytes) -> list[bytes]:
    """Return the directories above a path, the outermost first.

    :param path: the path, relative to ``base``
    """
    directories = [base]
    for name in path.split(b"/")[:-1]:
        directories.append(b"%b/%b" % (directories[-1], name))
    return directories


def all_above(base: bytes, paths: Iterable[bytes]) -> set[bytes]:
    """Return the directories above paths: those of :func:`above`, once for all of them."""
    directories = {base}
    for path in paths:
        top = base + b"/" + path
        while (top := top.rpartition(b"/")[0]) not in directories:
            directories.add(top)
    return directories
