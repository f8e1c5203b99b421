"""The transfer of objects from one OCFL storage root to another with all versions, moved or copied.

If an object in the destination has fewer versions than the source object, the missing versions are added one by one,
unchanged. At all times, a moved object is in one of the two roots. Before the next object is moved, directories above
it that became empty are removed, because an OCFL storage root must not contain empty directories (E073).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from typing import Any, Self

from pressmark.errors import ObjectError, quoted_path
from pressmark.fixity import Outcome
from pressmark.fs.beneath import read_regular
from pressmark.fs.moves import prune_empty_parents, remove_tree
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import Entry, TransferError
from pressmark.migrate.object_digest import (
    ALGORITHM,
    FileDigests,
    mismatch,
    object_digest,
    with_known,
)
from pressmark.migrate.options import Options
from pressmark.migrate.transfer.content import Content, all_files
from pressmark.migrate.transfer.direction import Storing
from pressmark.migrate.transfer.ocfl_content import check_ocfl_object, compare_digests
from pressmark.migrate.transfer.places import read_files
from pressmark.migrate.transfer.to_ocfl import BulkDirection
from pressmark.stores.exceptions import object_errors
from pressmark.stores.object_sources import AnySource, SourceCopy
from pressmark.stores.ocfl.history import version_names
from pressmark.stores.ocfl.inventory import INVENTORY, InventoryError, logical_files, read_inventory, sidecar_name
from pressmark.stores.ocfl.local.local_storage import LocalStorage
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.stores.ocfl.storage import Storage
from pressmark.stores.ocfl.unfinished import UnfinishedVersion, content_of, find_unlisted
from pressmark.stores.ocfl.writing.bulk_writer import StagedObject
from pressmark.stores.staging_writer import Staged

__all__ = ["OcflToOcfl"]

_INVENTORY = encode_fs(INVENTORY)


class OcflToOcfl(BulkDirection):
    """Moves or copies whole objects."""

    source: OcflRoot

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        # The lock of the source, held while a batch of objects is moved.
        self._lock = ExitStack()
        self._has_lock = False
        # Directories above moved objects, when the source was locked by another run, or one was not removed.
        self._unpruned: set[bytes] = set()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.push(super().__exit__)
        super().__enter__()
        if self.renames:
            self._staging = self._stack.enter_context(self.source.changes())
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def begin(self, entry: Entry, replace: bool = False) -> Storing:
        if entry.id != entry.source_id:
            what = f"its inventories contain the identifier {entry.source_id!r}, which cannot be changed"
            raise TransferError("refused_name", "id-in-inventory", f"{what}; omit it from the map")
        self.check_free(entry)
        source = self._tree(entry)
        if self.renames:
            with object_errors(self.source.root, entry.source_id):
                try:
                    check_ocfl_object(entry, self._source_storage(entry), self.destination.version)
                except (TransferError, FileNotFoundError, NotADirectoryError):
                    self._inventory(entry)  # an object that is gone is not invalid
                    raise
            entry.mode = "rename"
            self.writer.adopt(entry.id, self.source_path(entry), self.paths.get(entry.id))
        else:
            yield from self._copy(entry, source)
        self.items[entry.id] = entry
        return False

    def replace(self, entry: Entry, content: Content, ours: FileDigests, theirs: list[FileDigests]) -> Storing:
        """Copy the versions that the object at the path does not have yet, one by one."""
        source = self._source_storage(entry)
        target = self.destination.storage.below(encode_fs(entry.target))
        check_ocfl_object(entry, source, self.destination.version)
        for name in _later_versions(entry, source, target, ours, theirs[0]):
            version = self._next_version(entry, name, target.read(_INVENTORY))
            yield from self._copy_version(entry, version, ours)
        if target.read(_INVENTORY) != source.read(_INVENTORY):
            raise ObjectError(self.destination.root, entry.id, "changed", "changed by another run; migrate it again")
        return True

    def _next_version(self, entry: Entry, name: str, data: bytes) -> UnfinishedVersion:
        """Return a version in the source that can be added to the object of an inventory.

        :raises TransferError: it cannot be added
        """
        try:
            found = find_unlisted(self.source.storage, encode_fs(entry.source), read_inventory(data), data)
        except FileNotFoundError:
            found = None
        if found is None or found.name != name:
            what = f"{name} cannot be added to the object at {quoted_path(entry.target)}"
            what += ", because it has no inventory or changes more than files"
            what += "; move that object out of the destination, and migrate this one again"
            raise TransferError("exists_different", "version", what)
        return found

    def _copy_version(self, entry: Entry, version: UnfinishedVersion, ours: FileDigests) -> Iterator[Staged]:
        """Copy a version aside, compare it with its inventory and what was read before, and add it to the object.

        :raises SourceError: of kind ``mismatch``
        """
        room = self.writer.new_directory(encode_fs(entry.target))
        digests: dict[str, Mapping[str, str]] = {}
        name, algorithm = version.name, version.document["digestAlgorithm"]
        recorded = {decode_fs(path): {algorithm: digest} for path, digest in content_of(version.document, name).items()}

        def compare(file: bytes, outcome: Outcome) -> None:
            path, found = f"{name}/{decode_fs(file)}", outcome.digests or {}
            digests[path] = found
            for expected in (ours.digests.get(path, {ALGORITHM: ""}), recorded.get(path, {})):
                for key, digest in expected.items():
                    if found.get(key) != digest.lower():
                        raise mismatch(path, key, found.get(key), digest)

        staged = os.path.join(room, encode_fs(name))
        source: AnySource = os.path.join(self.source_path(entry), encode_fs(name))
        if self.source.bucket is not None:
            source = all_files(self.source, entry.source_id, f"{entry.source}/{name}").by_name()
        algorithms = with_known({algorithm: {}})
        try:
            with object_errors(self.destination.root, entry.id):
                os.mkdir(room)
                copy = SourceCopy(source, staged, "refuse", algorithms=algorithms, on_file=compare)
                yield Staged(entry.id, encode_fs(entry.target), staged, copy)
                copy.raise_error()
                entry.mode = copy.mode
                longest = b"/" + encode_fs(name) + copy.longest
                self.destination.refuse_too_long(entry.id, encode_fs(entry.target), longest)
                self.writer.adopt_version(staged, encode_fs(entry.target), digests)
        finally:
            with suppress(OSError):  # the rest is removed with the directory of the run
                remove_tree(room)

    def _tree(self, entry: Entry) -> AnySource:
        """Return an object as the source of a copy, after a look at its names and its state where that is needed."""
        path, is_on_disk = self.source_path(entry), self.source.bucket is None
        if self.target_names is None and (self.renames or (is_on_disk and not self.options.move)):
            return path
        content = all_files(self.source, entry.source_id, entry.source)
        self.check_names(entry, content.files)
        if not self.renames:
            self.record_entries(entry, content)
        return path if is_on_disk else content.by_name()

    def _copy(self, entry: Entry, source: AnySource) -> Iterator[Staged]:
        """Copy an object aside, and compare all copied files with its inventories."""
        room = self.writer.new_directory(encode_fs(entry.target))
        digests: dict[str, dict[str, str]] = {}

        def note(name: bytes, outcome: Outcome) -> None:
            digests[decode_fs(name)] = outcome.digests or {}

        try:
            with object_errors(self.source.root, entry.source_id):
                algorithms = self._algorithms(entry)
            copy = SourceCopy(source, room, "refuse", algorithms=algorithms, on_file=note)
            yield Staged(entry.id, encode_fs(entry.target), room, copy)
            entry.files, entry.bytes = copy.files, copy.size
            with object_errors(self.source.root, entry.source_id):
                copy.raise_error()
            entry.mode = copy.mode
            checked = check_ocfl_object(entry, LocalStorage(room), self.destination.version)
            for file in checked.unread_files():
                compare_digests(file, digests[decode_fs(file.path)])
            entry.digest = _newest_digest(read_regular(room + b"/" + _INVENTORY), digests)
            self.writer.adopt(entry.id, room, self.paths.get(entry.id), digests)
        except BaseException:
            with suppress(OSError):  # the rest is removed with the directory of the run
                remove_tree(room)
            raise

    def _source_storage(self, entry: Entry) -> Storage:
        """Return the storage of an object in the source."""
        return self.source.storage.below(encode_fs(entry.source))

    def _algorithms(self, entry: Entry) -> tuple[str, ...]:
        try:
            document = read_inventory(self._inventory(entry))
        except InventoryError as error:
            raise ObjectError(self.source.root, entry.source_id, "improper", f"{INVENTORY}: {error}") from None
        algorithm = document.get("digestAlgorithm")
        return (ALGORITHM, algorithm) if algorithm == "sha256" else (ALGORITHM,)

    def _inventory(self, entry: Entry) -> bytes:
        """Return the inventory of an object in the source.

        :raises ObjectError: of kind ``missing``
        :raises OSError: it cannot be read
        """
        try:
            return self._source_storage(entry).read(_INVENTORY)
        except (FileNotFoundError, NotADirectoryError):
            what = f"no object at {quoted_path(entry.source)}"
            raise ObjectError(self.source.root, entry.source_id, "missing", what) from None

    def read_target(self, entry: Entry) -> list[FileDigests]:
        self.finish_target(entry)
        found = all_files(self.destination, entry.id, entry.target)
        return [read_files(found.place, ((decode_fs(name), path) for name, path in found.files))]

    def digest_of(self, entry: Entry, read: FileDigests) -> str:
        """Return the digest of the newest version, regardless of other content of the object."""
        try:
            return _newest_digest(self._source_storage(entry).read(_INVENTORY), read.digests)
        except (InventoryError, KeyError, TypeError, AttributeError) as error:
            what = f"{INVENTORY} cannot be read ({error}); check the store"
            raise TransferError("source_invalid", "improper", what) from None

    def finish_batch(self) -> Iterator[tuple[Entry, ObjectError | None]]:
        items, self.items = self.items, {}
        if not items:
            return
        try:
            committed = list(self.writer.commit(self._prune_above if self.renames else None))
        finally:
            self._lock.close()
            self._has_lock = False
        if self._unpruned:
            self._prune(sorted(self._unpruned))
            self._unpruned.clear()
        for staged, error in committed:
            yield items[staged.identifier], error

    def _prune_above(self, moved: StagedObject) -> None:
        """Remove empty directories above an object that was just moved, later if that is impossible now."""
        above = os.path.dirname(moved.path)[len(self.source_base) + 1 :]
        self._has_lock = self._has_lock or self._try_lock()
        if self._has_lock:
            with suppress(OSError):
                prune_empty_parents(self.source_base, above)
                return
        self._unpruned.add(above)

    def _try_lock(self) -> bool:
        """Lock the source without waiting: this run has locked the destination, and another run may lock both."""
        try:
            self._lock.enter_context(self._staging.lock(wait=False))
        except OSError:
            return False
        return True

    def prune(self, entry: Entry) -> None:
        """Remove empty directories above an object that is no longer in the source."""
        self._prune([os.path.dirname(encode_fs(entry.source))])

    def _prune(self, directories: Iterable[bytes]) -> None:
        with self._staging.lock():
            for directory in directories:
                # The objects were moved: an empty directory that must stay is no error.
                with suppress(OSError):
                    prune_empty_parents(self.source_base, directory)


def _later_versions(
    entry: Entry, source: Storage, target: Storage, ours: FileDigests, theirs: FileDigests
) -> list[str]:
    """Return the versions that an object of the destination does not have yet.

    :param ours: the digests of all files of the object in the source
    :param theirs: those of the object in the destination
    :raises TransferError: the object in the destination is not an earlier state of the other
    """
    newest, before = (read_inventory(storage.read(_INVENTORY)) for storage in (source, target))
    later = [name for name in version_names(newest) if name not in before["versions"]]
    replaced = {INVENTORY, sidecar_name(newest["digestAlgorithm"])}
    for name in sorted({*ours.digests, *theirs.digests}):
        is_new = name not in theirs.digests and name.partition("/")[0] in later
        if ours.digests.get(name) != theirs.digests.get(name) and not is_new and not (later and name in replaced):
            what = f"the object at {quoted_path(entry.target)} is not an earlier state of this one"
            what += f": {quoted_path(name)} differs"
            raise TransferError("exists_different", "exists", f"{what}; compare both, and move the wrong one elsewhere")
    return later


def _newest_digest(inventory: bytes, digests: Mapping[str, Mapping[str, str]]) -> str:
    """Return the digest of the newest version of an object.

    :param digests: of the content files, by path within the object
    """
    document = read_inventory(inventory)
    files = {logical: digests[content][ALGORITHM] for logical, content, _digest in logical_files(document)}
    return object_digest(files)
