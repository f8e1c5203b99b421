"""Removing objects, one or many: they are moved to a private directory, each by one rename, and removed with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import cached_property
from itertools import count
from types import TracebackType
from typing import Protocol, Self

from pressmark.fs.durable import flush_directories
from pressmark.fs.removal import remove_tree
from pressmark.fs.staging import LOCK, RunDirectory
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.store import StoreObject

__all__ = ["Removable", "Removal", "above"]

# Objects whose removal is flushed together, at most; then their disk space is free.
TURN = 256


class Removable(Protocol):
    """A store whose objects can be removed.

    :ivar root: the store, for messages
    :ivar durable: flush the names of removed objects
    """

    root: str
    durable: bool

    def run_directory(self) -> AbstractContextManager[RunDirectory]:
        """Return a private directory, on the file system of the store."""

    def withdraw(
        self, removal: Removal, identifier: str | bytes | StoreObject, check: Callable[[], object] | None
    ) -> Iterable[bytes]:
        """Move an object to the private directory, and return the directories that it was in, the outermost first.

        :param check: called while no other run of Pressmark can change the object
        :raises ObjectError: nothing was removed
        :raises IdentifierError: the identifier has no path in the store
        :raises OSError: it cannot be moved
        """


class Removal:
    """Removes objects from a store; a context manager, whose end removes them from the disk.

    :param store: the store
    """

    def __init__(self, store: Removable) -> None:
        self._store = store
        self._stack = ExitStack()
        self._numbers = count()
        self._changed: set[bytes] = set()
        self._waiting = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            self._flush_names()

    @cached_property
    def staging(self) -> RunDirectory:
        """The private directory, which is created on first use.

        :raises OSError: it cannot be created
        """
        return self._stack.enter_context(self._store.run_directory())

    def new_path(self) -> bytes:
        """Return a path for an object in the private directory."""
        return self.staging / str(next(self._numbers)).encode()

    def remove(self, identifier: str | bytes | StoreObject, check: Callable[[], object] | None = None) -> None:
        """Remove an object; see :meth:`pressmark.stores.Store.delete`.

        :raises ObjectError: nothing was removed; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in the store
        :raises StoreError: the names of removed objects could not be flushed
        """
        shown = identifier.id or identifier.path if isinstance(identifier, StoreObject) else identifier
        with object_errors(self._store.root, shown):
            self._changed.update(self._store.withdraw(self, identifier, check))
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
        changed, self._changed, self._waiting = sorted(self._changed), set(), 0
        if self._store.durable and changed:
            with store_errors(self._store.root):
                flush_directories(changed)


def above(base: bytes, place: bytes) -> list[bytes]:
    """Return the directories that an object was in, the outermost first, for :meth:`Removable.withdraw`.

    :param place: its path, relative to ``base``
    """
    found = [base]
    for name in place.split(b"/")[:-1]:
        found.append(os.path.join(found[-1], name))
    return found
