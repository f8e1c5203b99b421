"""The objects of the source and of the destination: looked up, listed, read, and compared with recorded digests."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from pressmark.errors import FileError, quoted_path
from pressmark.fixity import hash_files
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import GOOD, OBJECT_ERRORS, Entry, Failure, TransferError, failure_of
from pressmark.migrate.object_digest import ALGORITHM, FileDigests, compare, mismatch, with_known
from pressmark.migrate.options import Options
from pressmark.migrate.transfer.content import (
    Content,
    all_files,
    content_of,
    link_error,
)
from pressmark.migrate.transfer.places import Place, place_of, read_files
from pressmark.option_names import option
from pressmark.stores import Store, StoredObject, StoreObject
from pressmark.stores.exceptions import SourceError, object_errors
from pressmark.stores.ocfl.inventory import logical_files
from pressmark.stores.stored_object import status_of

if TYPE_CHECKING:
    from pressmark.stores.bags.bag_object import BagObject
    from pressmark.stores.ocfl.ocfl_object import OcflObject
    from pressmark.stores.ocfl.root import OcflRoot

__all__ = [
    "bag_directory",
    "compare_stored",
    "compare_target",
    "has_recorded_digests",
    "locate_source",
    "locate_target",
    "object_path",
    "read_content",
    "read_target",
    "verify_object",
]


def locate_source(options: Options, store: Store, record: StoreObject) -> StoredObject:
    """Return an object of the source, of an OCFL object the version to migrate.

    :raises ObjectError: of kind ``missing``: the object was removed, or does not have the version
    """
    if options.version is None:
        return store.locate(record)
    return cast("OcflRoot", store).locate(record, options.version)


def object_path(store: Store, found: StoredObject) -> bytes:
    """Return the path of an object: of a bag its base directory or file."""
    return os.fsencode(cast("BagObject", found).bag_path if store.kind == "bags" else found.path)


def bag_directory(store: Store, found: StoredObject) -> bytes | None:
    """Return the base directory of a bag; :data:`None` for a serialized bag and for any other object."""
    if store.kind != "bags" or cast("BagObject", found).serialized:
        return None
    return os.fsencode(cast("BagObject", found).bag_path)


def read_content(options: Options, store: Store, entry: Entry) -> Content:
    """Return the content of an object of the source.

    :raises ObjectError: the object does not exist, or cannot be read
    :raises TransferError: the object is invalid
    """
    if options.verbatim and options.to == "ocfl":
        return all_files(store, entry.source_id, entry.source)
    follow = options.links == "follow"
    top = _encapsulating_directory(store, entry)
    if top is not None:
        return _tree(store, entry, top, entry.encapsulation, follow)
    found = locate_source(options, store, entry.in_source())
    if store.kind == "ocfl":
        from pressmark.migrate.transfer.ocfl_content import ocfl_content  # only for OCFL objects

        return ocfl_content(cast("OcflObject", found), place_of(store))
    bag = bag_directory(store, found)
    if bag is not None:
        from pressmark.migrate.transfer.bag_content import check_bag, with_manifests  # only for bags

        check_bag(bag)
        return with_manifests(_tree(store, entry, bag, None, follow), cast("BagObject", found), options.to != "bags")
    if store.kind == "pairtree" and not follow:
        _refuse_links(os.fsencode(found.path), [name for name, _path in found.files()])
    place = place_of(store)
    content = content_of(found, place)
    # Several files may belong to several versions: others may replace one at a time.
    paths = [path for _name, path in content.files] if len(content.files) > 1 else []
    looks = [content.listed[path] for path in paths] if content.listed else place.looks(paths)
    seen = list(zip(paths, looks, strict=True))
    # In a bucket, an encapsulating directory is not read as a tree.
    encapsulation = entry.encapsulation if place.is_remote and found.is_directory else None
    return content._replace(encapsulation=encapsulation, seen=seen)


def _encapsulating_directory(store: Store, entry: Entry) -> bytes | None:
    """Return the encapsulating directory of an object of a Pairtree, by the plan, if nothing else is beside it.

    :data:`None` without one, and for a source of another kind.
    """
    if entry.encapsulation is None or store.kind != "pairtree":
        return None
    directory, name = os.fsencode(store.root) + b"/" + encode_fs(entry.source), encode_fs(entry.encapsulation)
    try:
        beside = os.listdir(directory)
    except OSError:
        return None
    if len(entry.source.rpartition("/")[2]) == 1:
        return directory + b"/" + name if beside == [name] else None
    for one in beside:
        # A name of one or two characters extends the ppath.
        if one != name and (len(one) > 2 or not os.path.isdir(directory + b"/" + one)):
            return None
    return directory + b"/" + name if name in beside else None


def _tree(store: Store, entry: Entry, top: bytes, encapsulation: str | None, follow: bool) -> Content:
    """Return the content of a directory.

    :param follow: follow symbolic links
    :raises TransferError: there are links that are not followed
    """
    place = place_of(store)
    with object_errors(store.root, entry.source_id):
        seen: list[tuple[bytes, os.stat_result | None]] = [] if place.is_remote else [(top, status_of(top))]
        files, empty, links, statuses = place.list(top)
    if links and follow:
        found = store.locate(entry.in_source())
        return content_of(found)._replace(encapsulation=encapsulation, seen=seen)
    if links:
        raise link_error(links[0][1])
    files.sort()
    if place.is_remote:
        return Content(files, {}, [], seen=list(statuses.items()), place=place, listed=statuses)
    return Content(files, {}, list(empty), encapsulation, top, seen)


def _refuse_links(top: bytes, names: list[str]) -> None:
    for name in names:
        path = top
        for part in encode_fs(name).split(b"/"):
            path = os.path.join(path, part)
            if os.path.islink(path):
                raise link_error(path)


# --- the destination --------------------------------------------------------------------------------------------------


_Digests = Mapping[str, Mapping[str, str]]


def locate_target(store: Store, entry: Entry) -> StoredObject:
    """Return an object of the destination.

    :raises ObjectError: the object does not exist
    """
    return store.locate(StoreObject(entry.id, entry.target, True, None, ()))


def _files_of(store: Store, entry: Entry, found: StoredObject) -> tuple[list[tuple[str, bytes]], _Digests]:
    """Return the files of an object of the destination, of a bag tag files included, and their recorded digests."""
    if store.kind == "ocfl":
        inventory = cast("OcflObject", found).inventory
        algorithm = str(inventory.get("digestAlgorithm"))
        known = {name: digest.lower() for name, _content, digest in logical_files(inventory)}
        return _encoded(found), {algorithm: known}
    if bag_directory(store, found) is not None:
        return [(decode_fs(name), path) for name, path in all_files(store, entry.id, entry.target).files], {}
    return _encoded(found), {}


def _encoded(found: StoredObject) -> list[tuple[str, bytes]]:
    return [(name, os.fsencode(path)) for name, path in found.files()]


def read_target(store: Store, entry: Entry, *, thorough: bool = False) -> list[FileDigests]:
    """Read an object of the destination, and return its digests for comparison with the source object.

    A bag has two candidates: the bag itself, and its payload.

    :param thorough: read older versions of an OCFL object, compare a bag with its manifests, and ask the system to read
        from the disk instead of its cache
    :raises ObjectError: the object does not exist
    :raises FileError: a file cannot be read
    :raises SourceError: of kind ``mismatch``: a file differs from its recorded digest
    """
    found, place = locate_target(store, entry), place_of(store)
    files, known = _files_of(store, entry, found)
    if thorough:
        bag = bag_directory(store, found)
        if bag is not None:
            known = _manifest_digests(bag, files)
        for _name, path in () if place.is_remote else files:
            _drop_cache(path)
    read = read_files(place, files, with_known(known))
    compare(read, known, "the destination")
    if thorough and store.kind == "ocfl":
        _read_older(cast("OcflObject", found), place)
    payload = read.below("data/") if store.kind == "bags" else None
    return [read] if payload is None else [read, payload]


def has_recorded_digests(store: Store, entry: Entry) -> bool:
    """Return whether an object of the destination has an inventory or manifests to be compared with.

    :raises ObjectError: the object does not exist
    """
    if store.kind == "bags":
        return bag_directory(store, locate_target(store, entry)) is not None
    return store.kind == "ocfl"


def compare_target(store: Store, entry: Entry, other: str) -> Failure | None:
    """Read the object of an entry in the destination, and compare it with its recorded digests and with the entry's.

    An entry of an object that was never read receives its digest.

    :param store: the destination
    :param other: what the digest of the entry was taken from, for the message
    :return: the failure; :data:`None` if all digests are equal
    :raises PressmarkError: the object cannot be read
    :raises OSError: the object cannot be read
    """
    try:
        found = read_target(store, entry, thorough=True)
    except SourceError as error:
        return Failure("digest_mismatch", "mismatch", f"in the destination: {error.reason}")
    entry.verify = "reread"
    if entry.digest is None:
        if not has_recorded_digests(store, entry):
            return Failure("unverified", "no-digest", "moved without being read, and no digest is recorded")
        entry.algorithm, entry.digest = ALGORITHM, found[0].whole
    elif all(one.whole != entry.digest for one in found):
        return Failure("digest_mismatch", "mismatch", f"the object in the destination differs from {other}")
    return None


def compare_stored(store: Store, entry: Entry) -> Failure | None:
    """Compare the recorded digests of an object in the destination with those that the server keeps of its files.

    The server has compared these with the content when it arrived; no content is read.

    :param store: the destination, an OCFL storage root in object storage
    :return: the failure; :data:`None` if all digests are equal
    :raises PressmarkError: the object cannot be read
    :raises OSError: the object cannot be read
    """
    from pressmark.fixity.bucket_files import UNVERIFIED  # only in object storage

    found = cast("OcflObject", locate_target(store, entry))
    algorithm = str(found.inventory["digestAlgorithm"])
    files = [(name, path, found.digests[name]) for name, path in found.files()]
    files += found.older_files()
    outcomes = hash_files([path for _name, path, _digest in files], (algorithm,), digests="stored")
    for (name, path, expected), outcome in zip(files, outcomes, strict=True):
        if outcome.kind == UNVERIFIED:
            what = f"the server keeps no {algorithm} digest of {quoted_path(name)}; verify it with"
            return Failure("unverified", "no-digest", f"{what} {option('verify', 'reread')}")
        if outcome.digests is None:
            raise FileError(path, str(outcome.kind), str(outcome.message))
        kept = outcome.digests[algorithm]
        if kept != expected.lower():
            error = mismatch(name, algorithm, kept, expected, "the destination")
            return Failure("digest_mismatch", "mismatch", f"in the destination: {error.reason}")
    entry.verify = "stored"
    return None


def verify_object(store: Store, entry: Entry) -> Entry:
    """Read the object of an entry, and return it with the result; entries of failed objects are unchanged.

    :param store: the destination
    """
    if entry.status not in GOOD and entry.status not in ("unverified", "digest_mismatch"):
        return entry
    try:
        failure = compare_target(store, entry, "the migrated one")
    except OBJECT_ERRORS as error:
        failure = failure_of(error)
        if failure.code == "missing":
            failure = Failure("copy_failed", "missing", "no longer in the destination")
        else:
            failure = Failure("unverified", failure.code, f"cannot be read: {failure.message}")
    entry.verify = "reread"
    if failure is not None:
        entry.fail(failure)
    elif entry.status not in GOOD:  # one that is keeps its note
        entry.status, entry.error_code, entry.error = "ok", None, None
    return entry


def _manifest_digests(bag: bytes, files: list[tuple[str, bytes]]) -> _Digests:
    """Return the digests in the manifests of a bag.

    :raises SourceError: of kind ``mismatch``: the bag is incomplete
    """
    from pressmark.bagit.bag_tags import BagTags  # these only for bags
    from pressmark.migrate.transfer.bag_content import check_bag
    from pressmark.stores.bags.bag_object import listed_digests

    try:
        check_bag(bag)
        return listed_digests(BagTags.open(bag), bag, [encode_fs(name) for name, _path in files]).digests
    except TransferError as error:
        raise SourceError("mismatch", error.failure.message) from None


def _read_older(found: OcflObject, place: Place) -> None:
    """Read the files that only older versions of an object have, and compare them with the inventory.

    :raises FileError: a file cannot be read
    :raises SourceError: of kind ``mismatch``
    """
    older = [(content, os.fsencode(path), digest) for content, path, digest in found.older_files()]
    for _content, path, _digest in () if place.is_remote else older:
        _drop_cache(path)
    known = {str(found.inventory.get("digestAlgorithm")): {content: digest for content, _path, digest in older}}
    read = read_files(place, ((content, path) for content, path, _digest in older), with_known(known))
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
