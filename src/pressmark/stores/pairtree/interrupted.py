"""Objects with an interrupted change: read from two directories, completed or undone."""

from __future__ import annotations

import heapq
import os
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from pressmark.errors import ObjectError
from pressmark.fs.durable import exists
from pressmark.fs.moves import restore
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.removal import remove_tree
from pressmark.stores.pairtree.walk import REPLACED, Contents, is_morty
from pressmark.stores.stored_object import StoredObject

__all__ = ["Folder", "InterruptedObject", "is_one_directory", "replaced_names", "take_back", "unreached"]

# A directory, and the names in it that belong to the object; None for all.
Folder = tuple[bytes, Sequence[bytes] | None]


class InterruptedObject(StoredObject):
    """An object with an interrupted change: its files are in several directories."""

    def __init__(
        self,
        store: str | bytes,
        identifier: str,
        path: bytes,
        parts: Sequence[Folder],
        links: str,
    ) -> None:
        super().__init__(store, identifier, path, (), links)
        self._parts = [StoredObject(store, identifier, folder, members, links) for folder, members in parts]

    def files(self) -> Iterator[tuple[str, bytes]]:
        return heapq.merge(*(part.files() for part in self._parts), key=lambda found: encode_fs(found[0]))

    def empty_directories(self) -> Iterator[tuple[str, bytes]]:
        return heapq.merge(*(part.empty_directories() for part in self._parts), key=lambda found: encode_fs(found[0]))

    def confirm(self) -> None:
        for part in self._parts:
            part.confirm()

    def _open(self, name: str) -> BinaryIO:
        for part in self._parts[:-1]:
            try:
                return part.open(name)
            except ObjectError as error:
                if error.kind != "missing":
                    raise
        return self._parts[-1].open(name)


def replaced_names(directory: bytes) -> list[bytes]:
    """Return the name of the object that was put aside, unless the new object is in place.

    Pressmark moves one name aside; if there are several, all names whose paths are free are returned, so none is lost.
    """
    try:
        names = sorted(os.listdir(os.path.join(directory, REPLACED)))
    except FileNotFoundError:  # another run has completed the change
        return []
    return [name for name in names if not exists(os.path.join(directory, name))]


def take_back(directory: bytes) -> None:
    """Undo an interrupted replacement, or complete it if the new object is in place."""
    aside = os.path.join(directory, REPLACED)
    for name in sorted(os.listdir(aside)):
        restore(os.path.join(aside, name), os.path.join(directory, name))
    remove_tree(aside)


def unreached(found: Contents, place: str) -> list[bytes]:
    """Return the links without a target whose names could extend the ppath.

    The target may be temporarily unavailable: a file system that is not mounted, or a server that does not answer.
    """
    if is_morty(place):
        return []
    return [entry.name for entry in found.members if entry.kind == "dangling" and len(decode_fs(entry.name)) <= 2]


def is_one_directory(found: Contents) -> bool:
    """Return whether an object consists of one directory with a name of at least three characters."""
    first = found.members[0] if len(found.members) == 1 else None
    return first is not None and first.kind == "directory" and len(decode_fs(first.name)) > 2
