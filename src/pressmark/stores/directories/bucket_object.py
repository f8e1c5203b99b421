"""The files of one object of a store in object storage."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO, cast

from pressmark.buckets.bucket import KeyChangedError, ListedKey
from pressmark.buckets.listing import status_of_key
from pressmark.buckets.remote_file import RemoteFile
from pressmark.fixity.outcomes import Content
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.stores.directories.bucket_directory import BucketDirectory, read_ahead
from pressmark.stores.exceptions import object_errors
from pressmark.stores.stored_object import StoredObject

__all__ = ["BucketObject"]

_BUFFER = 1 << 18


class BucketObject(StoredObject):
    """The files of one object in object storage, each in the version that was listed by ``get``.

    :param store: the store's root, for messages
    :param directory: of the store
    :param path: the directory that file names are relative to, in ``directory``
    :param members: the names in it that belong to the object; :data:`None` for all
    """

    def __init__(
        self,
        store: str | bytes,
        identifier: str,
        directory: BucketDirectory,
        path: bytes,
        members: Collection[bytes] | None = None,
    ) -> None:
        # The file of a Vitro object is known by other means.
        StoredObject.__init__(self, store, identifier, directory.path(path), ())
        self._directory = directory
        self._inside = path
        self._only = members
        with object_errors(store, identifier):
            self._keys, self._empty = self._listed()

    @property
    def is_directory(self) -> bool:
        return self._only is None

    @property
    def statuses(self) -> Mapping[str, os.stat_result]:
        """The status of each file."""
        return {name: status_of_key(one) for name, one in self._keys.items()}

    @property
    def tokens(self) -> Mapping[str, str]:
        """The token of each file, which changes whenever it is written."""
        return {name: one.token for name, one in self._keys.items()}

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each file in the object and its address, in the order of the names' bytes."""
        for name, one in self._keys.items():
            yield name, self._address(one)

    def empty_directories(self) -> Iterator[tuple[str, str]]:
        """Yield name and address of each empty directory: a key that ends with ``/``, below which there is nothing."""
        for name, one in self._empty.items():
            yield name, self._address(one)

    def confirm(self) -> None:
        with object_errors(self._store, self.id):
            found, _ = self._listed()
        if {name: one.token for name, one in found.items()} != {name: one.token for name, one in self._keys.items()}:
            raise self._changed()

    def _listed(self) -> tuple[dict[str, ListedKey], dict[str, ListedKey]]:
        """Return the files by their names, and the empty directories."""
        files: dict[bytes, ListedKey] = {}
        empty: dict[bytes, ListedKey] = {}
        marker = b""
        for path, one in self._directory.listed(self._inside, self._only):
            if marker and path.startswith(marker):
                del empty[marker[:-1]]
            marker = path if path.endswith(b"/") else b""
            if marker:
                empty[marker[:-1]] = one
            elif path:
                files[path] = one
        return _by_name(files), _by_name(empty)

    def _address(self, one: ListedKey) -> str:
        return decode_fs(self._directory.path(one.key.removeprefix(self._directory.prefix)))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        with object_errors(self._store, self.id):
            try:
                yield
            except (KeyChangedError, FileNotFoundError):
                raise self._changed() from None

    def _sources(self, files: Mapping[str, str]) -> Iterator[tuple[str, bytes | Content]]:
        keys = ((name, self._keys[name].key, self._keys[name].token, encode_fs(files[name])) for name in files)
        with self._errors():
            yield from read_ahead(self._directory.bucket, keys)

    def _open(self, name: str) -> BinaryIO:
        if name not in self._keys:
            raise self._no_file(name)
        one = self._keys[name]
        with self._errors():
            opened = RemoteFile(self._directory.bucket, one.key, token=one.token)
        return cast(BinaryIO, io.BufferedReader(opened, _BUFFER))


def _by_name(keys: Mapping[bytes, ListedKey]) -> dict[str, ListedKey]:
    """Return keys in the order of a walk, by name."""
    return {decode_fs(name): keys[name] for name in sorted(keys, key=lambda name: name.split(b"/"))}
