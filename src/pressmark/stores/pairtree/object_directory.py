"""The last directory of a ppath: the names in it that belong to the object, and changes of these names.

An object that is not properly encapsulated is repaired by moving all its names to one directory (section 2): one by one
to a directory with a reserved name, which is finally renamed. After an interruption, each name is in one of the two
directories, and a second call continues. Where two names cannot be exchanged, a replaced object is put aside first.
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple

from pressmark.errors import ObjectError
from pressmark.fs.durable import exists, flush_directory, walk
from pressmark.fs.moves import remove_tree, rename_new, restore
from pressmark.fs.names import decode_fs, encode_fs, glob_matcher
from pressmark.fs.trees import DirectoryEntry
from pressmark.stores.stored_object import StoredObject

__all__ = [
    *("OBJECT", "REPAIRING", "REPLACED", "RESERVED", "ROOT", "WORK_DIRECTORY"),
    *("Contents", "Folder", "InterruptedObject", "contents", "encapsulate", "is_morty"),
    *("replaced_names", "take_back", "unmovable", "unreached"),
]

ROOT = "pairtree_root"
RESERVED = b"pairtree"
# Names of Pressmark; they are reserved, so that no other program takes their content for an object.
WORK_DIRECTORY = b"pairtree_pressmark"
REPAIRING = b"pairtree_pressmark-obj"  # the temporary name of a repaired object's directory
REPLACED = b"pairtree_pressmark-old"  # holds a replaced object where two names cannot be exchanged
# The encapsulating directory of a repaired object (section 2).
OBJECT = b"obj"


class Contents(NamedTuple):
    """The content of a directory of the tree.

    :ivar members: names that do not extend the ppath: they belong to the object
    :ivar below: directories of one or two characters, which extend the ppath
    :ivar reserved: names that begin with ``pairtree``
    :ivar ours: names of an interrupted change by Pressmark
    :ivar ignored: ignored names
    :ivar strays: files that belong to no object, with the kinds of their problems
    :ivar links: symbolic links that are not followed and could extend the ppath, so that they belong to no object
    """

    members: list[DirectoryEntry]
    below: list[DirectoryEntry]
    reserved: list[DirectoryEntry]
    ours: list[bytes]
    ignored: list[DirectoryEntry]
    strays: list[tuple[bytes, str]]
    links: list[DirectoryEntry]

    @property
    def is_one_directory(self) -> bool:
        """Whether the object consists of one directory with a name of at least three characters."""
        first = self.members[0] if len(self.members) == 1 else None
        return first is not None and first.kind == "directory" and len(decode_fs(first.name)) > 2


def contents(entries: Iterable[DirectoryEntry], ppath: str, *, ignore: Sequence[str] = ()) -> Contents:
    """Classify the entries of a directory of the tree.

    :param ppath: its path below pairtree_root; empty for pairtree_root itself
    :param ignore: globs of names to ignore, unless they extend a ppath
    """
    ignored = glob_matcher(ignore) if ignore else None
    extends = not is_morty(ppath)
    # An encapsulating directory with the name of the object is the object, even if systems also use this name.
    cleaned = ppath.replace("/", "")
    found = Contents([], [], [], [], [], [], [])
    for entry in entries:
        name = decode_fs(entry.name)
        if entry.name.startswith(RESERVED):
            if entry.name in (REPAIRING, REPLACED) and entry.kind == "directory" and not entry.is_link:
                found.ours.append(entry.name)
            else:
                found.reserved.append(entry)
        elif entry.kind == "directory" and len(name) <= 2 and extends:
            found.below.append(entry)
        elif ignored is not None and ignored(name):
            found.ignored.append(entry)
        elif entry.kind == "link" and len(name) <= 2 and extends:
            found.links.append(entry)
        elif entry.is_junk and name != cleaned:
            found.strays.append((entry.name, "junk"))
        elif entry.kind in ("file", "special") and not ppath:
            found.strays.append((entry.name, "root-file"))
        else:
            found.members.append(entry)
    return found


def is_morty(path: str) -> bool:
    """Return whether the last name of ``path`` has one character."""
    return len(path.rpartition("/")[2]) == 1


def unreached(entries: Contents, ppath: str) -> list[bytes]:
    """Return the links without a target whose names could extend the ppath.

    The target may be temporarily unavailable: a file system that is not mounted, or a server that does not answer.
    """
    if is_morty(ppath):
        return []
    return [entry.name for entry in entries.members if entry.kind == "dangling" and len(decode_fs(entry.name)) <= 2]


# --- encapsulation ----------------------------------------------------------------------------------------------------


def encapsulate(directory: bytes, members: Sequence[DirectoryEntry]) -> None:
    """Move ``members`` of ``directory`` to ``obj`` there; a member called ``obj`` is moved as well.

    The caller holds the lock.

    :raises OSError: a name cannot be moved; a second call continues
    """
    target = os.path.join(directory, REPAIRING)
    if os.path.islink(target) or not os.path.isdir(target):
        os.mkdir(target)
    # All names of the object, including those moved by an interrupted call.
    together = {entry.name for entry in members} | set(os.listdir(target))
    for entry in members:
        old, new = os.path.join(directory, entry.name), os.path.join(target, entry.name)
        if entry.is_link:
            # A relative link must be adjusted to one level below.
            link = _from_below(os.readlink(old), together)
            if not (os.path.islink(new) and os.readlink(new) == link):
                os.symlink(link, new)
            os.unlink(old)
        else:
            rename_new(old, new)
    flush_directory(target)
    rename_new(target, os.path.join(directory, OBJECT))
    flush_directory(directory)


def _from_below(link: bytes, together: Collection[bytes]) -> bytes:
    """Return the text of a link moved one level down together with the names ``together``."""
    if os.path.isabs(link) or os.path.normpath(link).split(b"/")[0] in together:
        return link
    return b"../" + link


def unmovable(directory: bytes, members: Sequence[DirectoryEntry]) -> list[bytes]:
    """Return the symbolic links deep in an object, relative to ``directory``, whose targets would change."""
    together = {entry.name for entry in members}
    moved = os.path.join(directory, REPAIRING)
    if os.path.isdir(moved):
        together.update(os.listdir(moved))
    broken = []
    for entry in members:
        if entry.is_link or entry.kind != "directory":
            continue
        for above, directories, files in walk(os.path.join(directory, entry.name)):
            for name in directories + files:
                path = os.path.join(above, name)
                if not os.path.islink(path):
                    continue
                link = os.readlink(path)
                leads_to = os.path.normpath(os.path.join(os.path.relpath(above, directory), link))
                if not os.path.isabs(link) and leads_to.split(b"/")[0] not in together:
                    broken.append(os.path.relpath(path, directory))
    return sorted(broken)


# --- interrupted changes ----------------------------------------------------------------------------------------------


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

    def files(self) -> Iterator[tuple[str, str]]:
        return heapq.merge(*(part.files() for part in self._parts), key=lambda found: encode_fs(found[0]))

    def empty_directories(self) -> Iterator[tuple[str, str]]:
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
