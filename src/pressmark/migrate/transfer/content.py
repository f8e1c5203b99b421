"""The content of a source object: its files, and the parts that other kinds of stores do not support."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pressmark.errors import ObjectError, quoted_path
from pressmark.fixity.hasher import CHANGED
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import TransferError
from pressmark.migrate.object_digest import FileState, entries_digest
from pressmark.option_names import option
from pressmark.stores import Store, StoredObject
from pressmark.stores.exceptions import object_errors
from pressmark.stores.stored_object import is_same_version, status_of

__all__ = [
    "INVENTORY_ENTRY",
    "Content",
    "all_files",
    "check_unchanged",
    "content_of",
    "empty_text",
    "entries_of",
    "file_state",
    "link_error",
    "list_tree",
    "listed",
]

# Kinds of stores whose objects may have empty directories.
_HOLD_EMPTY = frozenset({"pairtree", "bags"})
_NAMED = 3  # names in a message
#: Stands for the inventory among the entries of an OCFL object, beside any name.
INVENTORY_ENTRY = b"/inventory.json"

#: A name, within the object, and a path.
File = tuple[bytes, bytes]


class Content(NamedTuple):
    """The files of an object.

    :ivar files: names within the object, and paths, in the byte order of the names
    :ivar known: recorded digests, by algorithm and name
    :ivar empty: names and paths of empty directories
    :ivar encapsulation: encapsulating directory of a Pairtree object or an unwrapped bag
    :ivar top: the directory with just these files under these names; :data:`None` if there is no such directory
    :ivar seen: the paths that were listed, with their status: see :func:`check_unchanged`
    :ivar unversioned: descriptions of the other parts of an OCFL object, such as older versions
    """

    files: list[File]
    known: dict[str, dict[str, str]]
    empty: list[File]
    encapsulation: str | None = None
    top: bytes | None = None
    seen: Sequence[tuple[bytes, os.stat_result | None]] = ()
    unversioned: Sequence[str] = ()

    def left_out(self, to: str) -> str | None:
        """Return in one line the parts that other kinds of stores do not support, or :data:`None`.

        :param to: the kind of the destination
        """
        texts = [*self.unversioned]
        if self.empty and to not in _HOLD_EMPTY:
            texts.append(empty_text([name for name, _path in self.empty]))
        return f"not migrated, not supported by stores of kind {to}: {'; '.join(texts)}" if texts else None

    def by_name(self) -> dict[str, Path]:
        """Return the paths of files and empty directories by name: a source for ``Store.put``."""
        return {decode_fs(name): Path(os.fsdecode(path)) for name, path in (*self.files, *self.empty)}


def empty_text(names: Sequence[bytes]) -> str:
    """Return the number of empty directories, with the first names."""
    count = "1 empty directory" if len(names) == 1 else f"{len(names)} empty directories"
    return f"{count} ({listed(names)})"


def listed(names: Sequence[bytes]) -> str:
    """Return the first of several names."""
    more = len(names) - _NAMED
    return ", ".join([*map(decode_fs, names[:_NAMED]), *([f"and {more} more"] if more > 0 else [])])


def content_of(found: StoredObject) -> Content:
    """Return the content of an object without recorded digests.

    :raises ObjectError: the object cannot be read
    """
    files = [(encode_fs(name), os.fsencode(path)) for name, path in found.files()]
    return Content(files, {}, [(encode_fs(name), os.fsencode(path)) for name, path in found.empty_directories()])


def all_files(store: Store, identifier: str, path: str) -> list[File]:
    """Return all files below the directory of an object, in the byte order of their names.

    :raises ObjectError: the directory does not exist
    :raises TransferError: it contains something other than files and directories
    """
    found: list[File] = []
    top = os.path.join(os.path.abspath(os.fsencode(store.root)), encode_fs(path))
    if not os.path.lexists(top):
        raise ObjectError(store.root, identifier, "missing", f"no object at {quoted_path(path)}")
    with object_errors(store.root, identifier):
        others = list_tree(top, found, [])
    if others:
        raise TransferError(
            "source_invalid", "special-file", f"{quoted_path(others[0][1])} is neither file nor directory"
        )
    return sorted(found)


def list_tree(top: bytes, files: list[File], empty: list[File]) -> list[File]:
    """Append the files of a tree to ``files``, and its empty directories to ``empty``.

    :return: symbolic links and special files
    :raises OSError: a directory cannot be read
    """
    others: list[File] = []
    left = [(b"", top)]
    while left:
        above, directory = left.pop()
        is_empty = True
        with os.scandir(directory) as entries:
            for entry in entries:
                is_empty = False
                name = above + entry.name
                if entry.is_file(follow_symlinks=False):
                    files.append((name, entry.path))
                elif entry.is_dir(follow_symlinks=False):
                    left.append((name + b"/", entry.path))
                else:
                    others.append((name, entry.path))
        if is_empty and above:
            empty.append((above[:-1], directory))
    return others


def link_error(path: bytes) -> TransferError:
    """Return the error for a symbolic link or a special file in an object."""
    is_link = os.path.islink(path)
    what = "neither file nor directory; move it out of the object"
    if is_link:
        what = f"a symbolic link; follow links ({option('links', 'follow')}), or omit the object"
    return TransferError("source_invalid", "link" if is_link else "special-file", f"{quoted_path(path)} is {what}")


def check_unchanged(content: Content) -> None:
    """Check that the object was not replaced since it was listed; no file is read.

    The files are opened by path, one after another: each may be complete, and together they may mix two versions.

    :raises TransferError: the object may have been replaced
    """
    for path, before in content.seen:
        if not is_same_version(status_of(path), before):
            what = f"{quoted_path(path)} was changed or replaced while the object was read"
            raise TransferError("source_invalid", CHANGED, f"{what}; migrate it again when nothing changes it")


def entries_of(content: Content) -> str:
    """Return the state of all entries of an object: :func:`~pressmark.migrate.object_digest.entries_digest`.

    :raises OSError: a file does not exist
    """
    files = (file_state(name, os.stat(path)) for name, path in content.files)
    return entries_digest(files, [name for name, _path in content.empty])


def file_state(name: bytes, status: os.stat_result) -> FileState:
    """Return the state of a file for :func:`~pressmark.migrate.object_digest.entries_digest`."""
    return name, status.st_size, status.st_mtime_ns, status.st_ctime_ns
