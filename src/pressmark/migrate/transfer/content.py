"""The content of a source object: its files, and the parts that other kinds of stores do not support."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pressmark.buckets.address import absolute
from pressmark.errors import ObjectError, quoted_path
from pressmark.fixity.hasher import CHANGED
from pressmark.fixity.outcomes import Content as Copied
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import TransferError
from pressmark.migrate.object_digest import FileState, entries_digest
from pressmark.migrate.transfer.places import DISK, File, Place, place_of
from pressmark.option_names import option
from pressmark.stores import Store, StoredObject
from pressmark.stores.exceptions import object_errors
from pressmark.stores.stored_object import is_same_version

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
    "listed",
]

# Kinds of stores whose objects may have empty directories.
_HOLD_EMPTY = frozenset({"pairtree", "bags"})
_NAMED = 3  # names in a message
#: Stands for the inventory among the entries of an OCFL object, beside any name.
INVENTORY_ENTRY = b"/inventory.json"


class Content(NamedTuple):
    """The files of an object.

    :ivar files: names within the object, and paths, in the byte order of the names
    :ivar known: recorded digests, by algorithm and name
    :ivar empty: names and paths of empty directories
    :ivar encapsulation: encapsulating directory of a Pairtree object or an unwrapped bag
    :ivar top: the directory with just these files under these names; :data:`None` if there is no such directory
    :ivar seen: the paths that were listed, with their status: see :func:`check_unchanged`
    :ivar listed: the status of files, by path, if they were listed with it
    :ivar unversioned: descriptions of the other parts of an OCFL object, such as older versions
    :ivar place: where the files are
    """

    files: list[File]
    known: dict[str, dict[str, str]]
    empty: list[File]
    encapsulation: str | None = None
    top: bytes | None = None
    seen: Sequence[tuple[bytes, os.stat_result | None]] = ()
    unversioned: Sequence[str] = ()
    place: Place = DISK
    listed: Mapping[bytes, os.stat_result] = {}

    def left_out(self, to: str) -> str | None:
        """Return in one line the parts that other kinds of stores do not support, or :data:`None`.

        :param to: the kind of the destination
        """
        texts = [*self.unversioned]
        if self.empty and to not in _HOLD_EMPTY:
            texts.append(empty_text([name for name, _path in self.empty]))
        return f"not migrated, not supported by stores of kind {to}: {'; '.join(texts)}" if texts else None

    def by_name(self) -> dict[str, Any]:
        """Return files and empty directories by name: a source for ``Store.put``."""
        return {decode_fs(name): self.source(path) for name, path in (*self.files, *self.empty)}

    def sources(self) -> list[tuple[bytes, Any]]:
        """Return the names of the files, and their paths or content: a source for writers."""
        if not self.place.is_remote:
            return list(self.files)
        return [(name, Copied(self.source(path), path)) for name, path in self.files]

    def source(self, path: bytes) -> Any:
        """Return a file as a source for ``Store.put``."""
        status = self.listed.get(path)
        return self.place.source(path, None if status is None else status.st_size)

    def statuses(self) -> list[os.stat_result]:
        """Return the status of each file, as it was listed or else as it is now.

        :raises OSError: a file does not exist
        """
        paths = [path for _name, path in self.files]
        return [self.listed[path] for path in paths] if self.listed else self.place.statuses(paths)


def empty_text(names: Sequence[bytes]) -> str:
    """Return the number of empty directories, with the first names."""
    count = "1 empty directory" if len(names) == 1 else f"{len(names)} empty directories"
    return f"{count} ({listed(names)})"


def listed(names: Sequence[bytes]) -> str:
    """Return the first of several names."""
    more = len(names) - _NAMED
    return ", ".join([*map(decode_fs, names[:_NAMED]), *([f"and {more} more"] if more > 0 else [])])


def content_of(found: StoredObject, place: Place = DISK) -> Content:
    """Return the content of an object without recorded digests.

    :param place: where its files are

    :raises ObjectError: the object cannot be read
    """
    names = {name: os.fsencode(path) for name, path in found.files()}
    empty = [(encode_fs(name), os.fsencode(path)) for name, path in found.empty_directories()]
    statuses = getattr(found, "statuses", {})  # in a bucket, an object is listed with them
    listed = {names[name]: status for name, status in statuses.items()}
    files = [(encode_fs(name), path) for name, path in names.items()]
    return Content(files, {}, empty, place=place, listed=listed)


def all_files(store: Store, identifier: str, path: str) -> Content:
    """Return all files below the directory of an object, in the byte order of their names.

    :raises ObjectError: the directory does not exist
    :raises TransferError: it contains something other than files and directories
    """
    top = os.path.join(os.fsencode(absolute(store.root)), encode_fs(path))
    place = place_of(store)
    with object_errors(store.root, identifier):
        try:
            found = place.list(top)
        except FileNotFoundError:
            if os.path.lexists(top):  # a directory in it is gone
                raise
            raise ObjectError(store.root, identifier, "missing", f"no object at {quoted_path(path)}") from None
    if found.others:
        what = f"{quoted_path(found.others[0][1])} is neither file nor directory"
        raise TransferError("source_invalid", "special-file", what)
    return Content(sorted(found.files), {}, [], place=place, listed=found.statuses)


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
    found = content.place.looks([path for path, _before in content.seen])
    for now, (path, before) in zip(found, content.seen, strict=True):
        if not is_same_version(now, before):
            what = f"{quoted_path(path)} was changed or replaced while the object was read"
            raise TransferError("source_invalid", CHANGED, f"{what}; migrate it again when nothing changes it")


def entries_of(content: Content) -> str:
    """Return the state of all entries of an object: :func:`~pressmark.migrate.object_digest.entries_digest`.

    :raises OSError: a file does not exist
    """
    statuses = content.statuses()
    files = (file_state(name, status) for (name, _path), status in zip(content.files, statuses, strict=True))
    return entries_digest(files, [name for name, _path in content.empty])


def file_state(name: bytes, status: os.stat_result) -> FileState:
    """Return the state of a file for :func:`~pressmark.migrate.object_digest.entries_digest`."""
    return name, status.st_size, status.st_mtime_ns, status.st_ctime_ns
