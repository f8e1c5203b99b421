"""An object of a Vitro store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO

from pressmark.errors import ObjectError, quoted_path
from pressmark.stores.stored_object import StoredObject, is_same_version, status_of

__all__ = ["VitroObject"]


class VitroObject(StoredObject):
    """An object of a Vitro store: one file.

    :ivar name: the file's decoded name
    :ivar file: absolute path of the file
    """

    def __init__(self, store: str, identifier: str, directory: bytes, stored: bytes, name: str) -> None:
        super().__init__(store, identifier, directory, (stored,), "refuse")
        self.name = name
        self._file = os.path.join(directory, stored)
        self.file = os.fsdecode(self._file)

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the file's name and path.

        :raises ObjectError: of kind ``changed``
        """
        yield self.name, self.file
        self.confirm()

    def was_seen(self) -> bool:
        """Return whether the status of the file could be read when the object was looked up."""
        return self._seen[self._file] is not None

    def is_current(self) -> bool:
        """Return whether the file is still the one that was looked up."""
        return is_same_version(status_of(self._file), self._seen[self._file])

    def _open(self, name: str) -> BinaryIO:
        file = self._opened(self._file, self._file) if name == self.name else None
        if file is None:
            raise ObjectError(
                self._store,
                self.id,
                "missing",
                f"file {quoted_path(name)} not found in the object; its file is {quoted_path(self.name)}",
            )
        return file
