"""The files of one version of an OCFL object, by their logical paths, and the object's history."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from pressmark.errors import AlgorithmError, ObjectError, quoted_path
from pressmark.fs.beneath import read_all
from pressmark.fs.names import encode_fs
from pressmark.stores.exceptions import object_errors
from pressmark.stores.ocfl.declarations import has_mutable_head
from pressmark.stores.ocfl.differences import Changes, compare_states
from pressmark.stores.ocfl.history import (
    VersionInfo,
    VersionMissingError,
    describe_versions,
    find_version,
    version_pair,
)
from pressmark.stores.ocfl.inventory import (
    INVENTORY,
    InventoryError,
    logical_files,
    path_fault,
    read_inventory,
    sidecar_digest,
    sidecar_name,
    version_state,
)
from pressmark.stores.ocfl.storage import Storage, status_or_none
from pressmark.stores.ocfl.unversioned import unversioned
from pressmark.stores.stored_object import RecordedDigest, StoredObject, is_same_version

if TYPE_CHECKING:
    from pressmark.fixity.outcomes import Content

__all__ = ["OcflObject"]

_INVENTORY = encode_fs(INVENTORY)
_SIDECAR_LIMIT = 1 << 12  # bytes


class OcflObject(StoredObject):
    """An object of an OCFL storage root: the files of one version, by their logical paths.

    Later versions do not change these files.

    :param storage: of the object's root
    :param seen: the status of the inventory that was read
    :param version: name or number of the version; :data:`None` for the newest
    :ivar inventory: the inventory's JSON object
    :ivar version: the name of the version in the inventory
    :ivar digests: the digest of each logical path, in lower case
    """

    def __init__(
        self,
        storage: Storage,
        store: str,
        identifier: str,
        inventory: dict[str, Any],
        seen: os.stat_result,
        version: str | int | None = None,
    ) -> None:
        super().__init__(store, identifier, storage.path(b""), ())
        self._storage = storage
        self.inventory = inventory
        self._read: os.stat_result = seen
        # Directories that are known not to be below a link.
        self._folders: set[bytes] = set()
        self._inventory_matches = False
        self._contents: dict[str, str] = {}
        self.digests: dict[str, str] = {}
        with self._inventory_errors():
            name = None if version is None else find_version(inventory, version)
            for logical, content, digest in logical_files(inventory, name):
                self._contents[logical] = content
                self.digests[logical] = digest.lower()
        self.version = str(inventory["head"]) if name is None else name

    def files(self) -> Iterator[tuple[str, str]]:
        """Yield logical path and file system path of each file, in the order of logical paths.

        :raises ObjectError: the inventory contains a path that could lead out of the object; or as for :meth:`confirm`
        """
        for logical in sorted(self._contents, key=encode_fs):
            yield logical, self._path(self._contents[logical])
        self.confirm()

    def older_files(self) -> Iterator[tuple[str, str, str]]:
        """Yield content path, file system path and digest of each file that only other versions use, in the order of
        content paths.

        :raises ObjectError: as for :meth:`files`
        """
        own = set(self._contents.values())
        for content, digest in sorted(_digests(self.inventory).items()):
            if content not in own:
                yield content, self._path(content), digest
        self.confirm()

    def versions(self) -> list[VersionInfo]:
        """Return all versions of the object, the oldest first.

        :raises ObjectError: the inventory is malformed; or as for :meth:`confirm`
        """
        with self._inventory_errors():
            found = describe_versions(self.inventory, self._size)
        self.confirm()
        return found

    def version_pair(self, before: str | int | None, after: str | int | None) -> tuple[str | None, str]:
        """Return the names of the versions that :meth:`diff` compares.

        :raises ObjectError: as for :meth:`diff`
        """
        with self._inventory_errors():
            return version_pair(self.inventory, before, after)

    def diff(self, before: str | int | None = None, after: str | int | None = None) -> Changes:
        """Return the changes from one version to another.

        :param before: name or number; :data:`None` for the version before the newest, or for no files if the object has
            one version
        :param after: name or number; :data:`None` for the newest version
        :raises ObjectError: of kind ``missing``: the object has no such version; or the inventory is malformed
        """
        pair = self.version_pair(before, after)
        with self._inventory_errors():
            return compare_states(*map(self._state, pair))

    def _state(self, version: str | None) -> dict[str, str]:
        if version is None:
            return {}
        return {logical: digest for logical, _content, digest in logical_files(self.inventory, version)}

    def _size(self, content: str) -> int | None:
        """Return the size of a content file; :data:`None` if it is not a file that can be looked at."""
        try:
            status = status_or_none(self._storage, self._content(content))
        except ObjectError:
            return None
        return status.st_size if status is not None and stat.S_ISREG(status.st_mode) else None

    @contextmanager
    def _inventory_errors(self) -> Iterator[None]:
        try:
            yield
        except VersionMissingError as error:
            raise ObjectError(self._store, self.id, "missing", str(error)) from None
        except InventoryError as error:
            raise ObjectError(self._store, self.id, "improper", f"malformed inventory: {error}") from None

    def unversioned(self) -> list[bytes]:
        """Return the files in the object's root outside of its versions; see :mod:`pressmark.stores.ocfl.unversioned`.

        :raises ObjectError: a directory cannot be read
        """
        with object_errors(self._store, self.id):
            return unversioned(self._storage, self.inventory)

    def has_mutable_head(self) -> bool:
        """Return whether ocfl-java has staged changes that are in no version yet (extension 0005)."""
        return has_mutable_head(self._storage, b"")

    def empty_directories(self) -> Iterator[tuple[str, str]]:
        """Yield nothing: OCFL objects have no empty directories (E024)."""
        return iter(())

    def confirm(self) -> None:
        """Check that the object still contains the files of this version.

        :raises ObjectError: of kind ``changed``: the object was replaced or removed; or the inventory cannot be read
        """
        with object_errors(self._store, self.id):
            if is_same_version(status_or_none(self._storage, _INVENTORY), self._read):
                return
            try:
                file, status = self._storage.open(_INVENTORY)
                with file:
                    document = read_inventory(read_all(file, status.st_size))
                version_state(document)
            except (FileNotFoundError, NotADirectoryError, InventoryError):
                raise self._changed() from None
        same = all(document.get(key) == self.inventory.get(key) for key in ("id", "digestAlgorithm"))
        if not same or not _digests(self.inventory).items() <= _digests(document).items():
            raise self._changed()
        self._read = status

    def recorded_digests(self, names: Sequence[str], *, whole: bool = False) -> Mapping[str, RecordedDigest]:
        """Return the digest of each file in the inventory, after comparing the inventory with its sidecar.

        If the inventory lists several content files for a digest, the file is read from an intact one from now on.
        """
        from pressmark.fixity.algorithms import algorithm_name  # opening an object needs no digest

        try:
            algorithm = algorithm_name(str(self.inventory["digestAlgorithm"]))
        except AlgorithmError as error:
            raise self._unverified("digest-algorithm", str(error)) from None
        self._check_inventory(algorithm)
        for name in names:
            if name not in self._contents:
                raise self._no_file(name)
        self._choose_intact(names, algorithm)
        return {name: RecordedDigest(algorithm, self.digests[name]) for name in names}

    def _sources(self, files: Mapping[str, str]) -> Iterator[tuple[str, bytes | Content]]:
        return self._storage.sources((name, self._content(self._contents[name])) for name in files)

    def _check_inventory(self, algorithm: str) -> None:
        """Compare the inventory with its sidecar, once; ``store check`` reports a missing or malformed sidecar."""
        if self._inventory_matches:
            return
        from pressmark.fixity.algorithms import ALGORITHMS

        sidecar = encode_fs(sidecar_name(str(self.inventory["digestAlgorithm"])))
        expected = []
        with object_errors(self._store, self.id), self._inventory_errors():
            hasher = ALGORITHMS[algorithm].make(1)
            # Another process may have added a version since.
            try:
                data = self._storage.read(_INVENTORY)
            except (FileNotFoundError, NotADirectoryError):
                raise self._changed() from None
            hasher.update(data)
            head = encode_fs(str(read_inventory(data)["head"]))
            # Another process replaces the two files of the root one after the other, those of a version never.
            for folder in (b"", head + b"/"):
                with suppress(FileNotFoundError, NotADirectoryError):
                    expected.append(sidecar_digest(self._storage.read(folder + sidecar, _SIDECAR_LIMIT)))
        self.confirm()
        if any(expected) and hasher.hexdigest() not in expected:
            raise self._unverified("sidecar-mismatch", f"{INVENTORY} does not match {quoted_path(sidecar)}")
        self._inventory_matches = True

    def _choose_intact(self, names: Sequence[str], algorithm: str) -> None:
        """Read files from intact content, where the inventory lists several content files for a digest."""
        several = {digest.lower(): paths for digest, paths in self.inventory["manifest"].items() if len(paths) > 1}
        if not several:
            return
        chosen: dict[str, str] = {}
        for name in names:
            digest = self.digests[name]
            if digest not in several:
                continue
            if digest not in chosen:
                chosen[digest] = self._intact(several[digest], algorithm, digest)
            self._contents[name] = chosen[digest]

    def _intact(self, contents: Sequence[str], algorithm: str, digest: str) -> str:
        """Return the first content file that matches the digest; the first one if there is none."""
        for content in contents:
            with suppress(ObjectError):
                for _key, outcome in self._storage.hash_tasks([(None, self._content(content))], (algorithm,), 1):
                    if outcome.digests is not None and outcome.digests[algorithm] == digest:
                        return content
        return contents[0]

    def _open(self, name: str) -> BinaryIO:
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

    def _path(self, content: str) -> str:
        return os.fsdecode(self._storage.path(self._content(content)))

    def _content(self, content: str) -> bytes:
        """Return the path of a content file, relative to the object's root.

        :raises ObjectError: the path could lead out of the object
        """
        fault = "a path contains a NUL character" if "\0" in content else path_fault(content)
        if fault is not None:
            raise ObjectError(self._store, self.id, "improper", f"malformed inventory: {fault}")
        path = encode_fs(content)
        if self._storage.has_links:
            self._refuse_links(path)
        return path

    def _refuse_links(self, content: bytes) -> None:
        """Refuse a file that is a link or below one: OCFL allows no links (E090)."""
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
            what = f"{quoted_path(path)} is a symbolic link, which OCFL does not allow; check the store"
            raise ObjectError(self._store, self.id, "improper", what)


def _digests(inventory: Mapping[str, Any]) -> dict[str, str]:
    """Return the digest of each content path."""
    return {path: digest.lower() for digest, paths in inventory["manifest"].items() for path in paths}
