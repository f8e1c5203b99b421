"""Objects of the destination, read again and compared with recorded digests and with the entries of a migration."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pressmark.errors import PressmarkError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import GOOD, Entry, Failure, TransferError, failure_of
from pressmark.migrate.object_digest import ALGORITHM, FileDigests, compare, read_files, with_known
from pressmark.migrate.transfer.content import all_files
from pressmark.migrate.transfer.reading import bag_directory
from pressmark.stores import Store, StoredObject, StoreObject
from pressmark.stores.exceptions import SourceError
from pressmark.stores.ocfl.inventory import logical_files
from pressmark.stores.ocfl.ocfl_object import OcflObject

__all__ = ["has_recorded_digests", "locate_target", "read_target", "target_files", "verify_object"]

_Digests = Mapping[str, Mapping[str, str]]


def locate_target(store: Store, entry: Entry) -> StoredObject:
    """Return an object of the destination.

    :raises ObjectError: the object does not exist
    """
    return store.locate(StoreObject(entry.id, entry.target, True, None, ()))


def target_files(store: Store, entry: Entry) -> list[tuple[str, bytes]]:
    """Return the files of an object of the destination: of a bag all files, tag files included.

    :raises ObjectError: the object does not exist
    """
    return _files_of(store, entry, locate_target(store, entry))[0]


def _files_of(store: Store, entry: Entry, found: StoredObject) -> tuple[list[tuple[str, bytes]], _Digests]:
    if isinstance(found, OcflObject):
        algorithm = str(found.inventory.get("digestAlgorithm"))
        known = {name: digest.lower() for name, _content, digest in logical_files(found.inventory)}
        return list(found.files()), {algorithm: known}
    if bag_directory(store, found) is not None:
        return [(decode_fs(name), path) for name, path in all_files(store, entry.id, entry.target)], {}
    return list(found.files()), {}


def read_target(store: Store, entry: Entry, *, thorough: bool = False) -> list[FileDigests]:
    """Read an object of the destination, and return its digests for comparison with the source object.

    A bag has two candidates: the bag itself, and its payload.

    :param thorough: read older versions of an OCFL object, compare a bag with its manifests, and ask the system to read
        from the disk instead of its cache
    :raises ObjectError: the object does not exist
    :raises FileError: a file cannot be read
    :raises SourceError: of kind ``mismatch``: a file differs from its recorded digest
    """
    found = locate_target(store, entry)
    files, known = _files_of(store, entry, found)
    if thorough:
        bag = bag_directory(store, found)
        if bag is not None:
            known = _manifest_digests(bag, files)
        for _name, path in files:
            _drop_cache(path)
    read = read_files(files, with_known(known))
    compare(read, known, "the destination")
    if thorough and isinstance(found, OcflObject):
        _read_older(found)
    payload = read.below("data/") if store.kind == "bags" else None
    return [read] if payload is None else [read, payload]


def has_recorded_digests(store: Store, entry: Entry) -> bool:
    """Return whether an object of the destination has an inventory or manifests to be compared with.

    :raises ObjectError: the object does not exist
    """
    if store.kind == "bags":
        return bag_directory(store, locate_target(store, entry)) is not None
    return store.kind == "ocfl"


def verify_object(store: Store, entry: Entry) -> Entry:
    """Read the object of an entry, and return it with the result; entries of failed objects are unchanged.

    :param store: the destination
    """
    if entry.status not in GOOD and entry.status not in ("unverified", "digest_mismatch"):
        return entry
    try:
        found = read_target(store, entry, thorough=True)
    except SourceError as error:
        return _failed(entry, "digest_mismatch", "mismatch", f"in the destination: {error.reason}")
    except (PressmarkError, OSError) as error:
        failure = failure_of(error)
        if failure.code == "missing":
            return _failed(entry, "copy_failed", "missing", "no longer in the destination")
        return _failed(entry, "unverified", failure.code, f"cannot be read: {failure.message}")
    if entry.digest is None:
        if not has_recorded_digests(store, entry):
            return _failed(entry, "unverified", "no-digest", "moved without being read, and no digest is recorded")
        # The object was compared with its inventory or its manifests.
        entry.algorithm, entry.digest = ALGORITHM, found[0].whole
        return _good(entry)
    if any(one.whole == entry.digest for one in found):
        return _good(entry)
    return _failed(entry, "digest_mismatch", "mismatch", "the object in the destination differs from the migrated one")


def _good(entry: Entry) -> Entry:
    entry.verify = "reread"
    if entry.status not in GOOD:  # one that is keeps its note
        entry.status, entry.error_code, entry.error = "ok", None, None
    return entry


def _failed(entry: Entry, status: str, code: str, message: str) -> Entry:
    entry.verify = "reread"
    entry.fail(Failure(status, code, message))
    return entry


def _manifest_digests(bag: bytes, files: list[tuple[str, bytes]]) -> _Digests:
    """Return the digests in the manifests of a bag.

    :raises SourceError: of kind ``mismatch``: the bag is incomplete
    """
    from pressmark.bagit.bag_tags import BagTags
    from pressmark.migrate.transfer.bag_content import check_bag
    from pressmark.stores.bags.bag_object import listed_digests

    try:
        check_bag(bag)
        return listed_digests(BagTags.open(bag), bag, [encode_fs(name) for name, _path in files]).digests
    except TransferError as error:
        raise SourceError("mismatch", error.failure.message) from None


def _read_older(found: OcflObject) -> None:
    """Read the files that only older versions of an object have, and compare them with the inventory.

    :raises FileError: a file cannot be read
    :raises SourceError: of kind ``mismatch``
    """
    older = list(found.older_files())
    for _content, path, _digest in older:
        _drop_cache(path)
    known = {str(found.inventory.get("digestAlgorithm")): {content: digest for content, _path, digest in older}}
    read = read_files(((content, path) for content, path, _digest in older), with_known(known))
    compare(read, known, "the destination")


def _drop_cache(path: bytes) -> None:
    """Ask the system to read a file from the disk next time."""
    advise = getattr(os, "posix_fadvise", None)
    if advise is None:
        return
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return  # reading the file reports the error
    try:
        advise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    except OSError:
        pass
    finally:
        os.close(descriptor)
