"""An object of a Vitro store in object storage."""

from __future__ import annotations

from pressmark.buckets.bucket import ListedKey
from pressmark.fs.names import decode_fs
from pressmark.stores.directories.bucket_directory import BucketDirectory
from pressmark.stores.directories.bucket_object import BucketObject
from pressmark.stores.vitro.vitro_object import VitroObject

__all__ = ["BucketVitroObject"]


class BucketVitroObject(BucketObject, VitroObject):
    """An object of a Vitro store in object storage: one file, in the version that was listed by ``get``.

    :param stored: the file's name in the store
    :param name: the file's decoded name
    """

    def __init__(
        self, store: str, identifier: str, directory: BucketDirectory, path: bytes, stored: bytes, name: str
    ) -> None:
        self._stored = path + b"/" + stored
        self.name = name
        self.file = decode_fs(directory.path(self._stored))
        BucketObject.__init__(self, store, identifier, directory, path, (stored,))
        if not self._keys:
            raise self._changed()

    def _listed(self) -> tuple[dict[str, ListedKey], dict[str, ListedKey]]:
        # The directory may contain any number of other objects.
        found = self._directory.file(self._stored)
        return {} if found is None else {self.name: found}, {}
