"""One object of an OCFL storage root, as it is read: the files of its newest version, by their logical paths."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from pressmark.errors import ObjectError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.stores.exceptions import object_errors
from pressmark.stores.ocfl.inventory import (
    INVENTORY,
    InventoryError,
    head_state,
    logical_files,
    path_fault,
    read_inventory,
)
from pressmark.stores.ocfl.storage import Storage, status_or_none
from pressmark.stores.ocfl.unversioned import unversioned
from pressmark.stores.stored_object import StoredObject, is_same_version

__all__ = ["OcflObject"]

_INVENTORY = encode_fs(INVENTORY)


class OcflObject(StoredObject):
    """An object of an OCFL storage root: the files of its newest version, by their logical paths.

    A version that is put later changes none of them.

    :param seen: the status of the inventory's file, which was read
    :ivar inventory: its inventory's JSON object
    """

    def __init__(
        self, storage: Storage, store: str, identifier: str, inventory: dict[str, Any], seen: os.stat_result
    ) -> None:
        super().__init__(store, identifier, storage.path(b""), ())
        self._storage = storage
        self.inventory = inventory
        self._read: os.stat_result = seen
        # Directories that were seen not to lie below a link: files share them.
        self._folders: set[bytes] = set()
        try:
            self._contents = {logical: content for logical, content, _digest in logical_files(inventory)}
        except InventoryError as error:
            raise ObjectError(store, identifier, "improper", f"its inventory is malformed: {error}") from None

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Give logical path and place of each file, by logical paths.

        :raises ObjectError: the inventory gives a file a path that might lead out of the object; or as :meth:`confirm`
        """
        for logical in sorted(self._contents, key=encode_fs):
            yield logical, self._path(self._contents[logical])
        self.confirm()

    def older_files(self) -> Iterator[tuple[str, bytes, str]]:
        """Give content path, place and digest of each file that is in older versions only, by content paths.

        :raises ObjectError: as :meth:`files`
        """
        newest = set(self._contents.values())
        for content, digest in sorted(_digests(self.inventory).items()):
            if content not in newest:
                yield content, self._path(content), digest
        self.confirm()

    def unversioned(self) -> list[bytes]:
        """Return what is in the object's root beside its versions; see :mod:`pressmark.stores.ocfl.unversioned`.

        :raises ObjectError: a directory cannot be read
        """
        with object_errors(self._store, self.id):
            return unversioned(self._storage, self.inventory)

    def empty_directories(self) -> Iterator[tuple[str, bytes]]:
        """Give nothing: OCFL objects have none."""
        return iter(())

    def confirm(self) -> None:
        """Make sure that the object still has the files of the version that was got.

        :raises ObjectError: of kind ``changed``: it was replaced by another or removed; or nobody can say
        """
        with object_errors(self._store, self.id):
            if is_same_version(status_or_none(self._storage, _INVENTORY), self._read):
                return
            try:
                file, status = self._storage.open(_INVENTORY)
                with file:
                    document = read_inventory(file.read())
                head_state(document)
            except (FileNotFoundError, NotADirectoryError, InventoryError):
                raise self._changed() from None
        same = all(document.get(key) == self.inventory.get(key) for key in ("id", "digestAlgorithm"))
        if not same or not _digests(self.inventory).items() <= _digests(document).items():
            raise self._changed()
        self._read = status

    def open(self, name: str) -> BinaryIO:
        """Open the file whose logical path is ``name``.

        :raises ObjectError: there is no such file in it, or it cannot be read; or as :meth:`confirm`
        """
        if name not in self._contents:
            raise self._no_file(name)
        try:
            with object_errors(self._store, self.id):
                file, _status = self._storage.open(self._content(self._contents[name]))
        except ObjectError:
            self.confirm()
            raise
        try:
            self.confirm()
        except BaseException:
            file.close()
            raise
        return file

    def _path(self, content: str) -> bytes:
        return self._storage.path(self._content(content))

    def _content(self, content: str) -> bytes:
        """Return the path of a content file, relative to the object's root.

        :raises ObjectError: it might lead out of the object
        """
        fault = "a path has a NUL" if "\0" in content else path_fault(content)
        if fault is not None:
            raise ObjectError(self._store, self.id, "improper", f"its inventory is malformed: {fault}")
        path = encode_fs(content)
        self._refuse_links(path)
        return path

    def _refuse_links(self, content: bytes) -> None:
        """Refuse a file that is, or lies below, a link: OCFL has none, and what it leads to is not the object's."""
        folder = os.path.dirname(content)
        if folder not in self._folders:
            path = b""
            for name in folder.split(b"/"):
                path = os.path.join(path, name)
                self._refuse_link(path)
            self._folders.add(folder)
        self._refuse_link(content)

    def _refuse_link(self, path: bytes) -> None:
        status = status_or_none(self._storage, path)
        if status is not None and stat.S_ISLNK(status.st_mode):
            what = f"{decode_fs(path)} is a symbolic link, and OCFL has none; check the store"
            raise ObjectError(self._store, self.id, "improper", what)


def _digests(inventory: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each content path."""
    return {path: digest.lower() for digest, paths in inventory["manifest"].items() for path in paths}
