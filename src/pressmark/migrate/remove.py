"""The removal of sources: only of verified objects, and only if the source did not change since it was copied."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

from pressmark.errors import FileError, ObjectError, quoted_path
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.entry import GOOD, OBJECT_ERRORS, SOURCE_KEPT, Entry, TransferError, failure_of
from pressmark.migrate.object_digest import has_same_content_times
from pressmark.migrate.options import TREES, Options
from pressmark.migrate.transfer.content import Content, empty_text, entries_of
from pressmark.migrate.transfer.places import DISK, Place, place_of, read_files
from pressmark.migrate.transfer.reading import bag_directory, locate_target, object_path, read_content
from pressmark.option_names import option
from pressmark.stores import Store
from pressmark.stores.exceptions import object_errors

__all__ = ["remove_source"]

#: How an object must have been verified.
_VERIFIED = frozenset({"copy", "reread", "stored"})


def remove_source(options: Options, source: Store, destination: Store, entry: Entry) -> Entry:
    """Remove the source of an object, and return its entry: with an error if the source was kept.

    Sources of failed objects are kept; moved objects no longer have a source.
    """
    if entry.status in GOOD and entry.verify in _VERIFIED:
        try:
            _remove(options, source, destination, entry)
        except OBJECT_ERRORS as error:
            entry.error_code, entry.error = SOURCE_KEPT, f"source kept: {failure_of(error).message}"
    return entry


def _remove(options: Options, source: Store, destination: Store, entry: Entry) -> None:
    """Remove the source of one object, unless it is gone.

    :raises TransferError: the source changed, or cannot be removed by its identifier
    """
    try:
        place = place_of(source)
        path = object_path(source, source.locate(entry.in_source()))
        # The files of an object in a bucket that are all migrated are listed once.
        is_whole = place.is_remote and options.verbatim
        with object_errors(source.root, entry.source_id):
            before = {} if is_whole else _listing(path, place)
        content = read_content(options, source, entry)
        with object_errors(source.root, entry.source_id):
            found = entries_of(content)
    except ObjectError as error:
        if error.kind == "missing":
            return
        raise
    if found != entry.entries:
        _compare(entry, found, content)
    # The object was verified: here it only has to exist.
    locate_target(destination, entry)
    _check_left_out(options, destination, entry, content)
    if source.layout is not None and not _is_found(source, entry):
        what = f"{quoted_path(entry.source)} is not the path of its identifier; compare both objects"
        raise TransferError("kept", "misplaced", what)

    def check() -> None:
        if _listing(path, place) != (content.listed if is_whole else before):
            raise _changed()

    try:
        source.delete(entry.in_source(), check=check)
    except ObjectError:
        # Removing empty directories above the object may fail after the object is gone.
        if not _is_gone(source, entry):
            raise


def _compare(entry: Entry, entries: str, content: Content) -> None:
    """Check that the content of a source whose entries differ is still that of the entry.

    :raises TransferError: it is not, or more than times of status change differs
    """
    if not has_same_content_times(entry.entries, entries) or entry.digest is None:
        raise _changed()
    try:
        files = ((decode_fs(name), path) for name, path in content.files)
        read = read_files(content.place, files)
    except FileError as error:
        raise TransferError("kept", "changed", f"cannot be compared with the copy: {error}") from None
    if read.whole != entry.digest:
        raise _changed()


def _changed() -> TransferError:
    return TransferError("kept", "changed", "changed after it was copied; migrate the object again")


def _listing(path: bytes, place: Place) -> Mapping[bytes, object]:
    """Return the state of everything at and below a path, by path; links are not followed.

    :raises OSError: a directory cannot be read
    """
    if place.is_remote:
        return place.list(path).statuses
    found = {}
    left = [path]
    while left:
        here = left.pop()
        status = os.lstat(here)
        found[here] = status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
        if stat.S_ISDIR(status.st_mode):
            left += [os.path.join(here, name) for name in sorted(os.listdir(here))]
    return found


def _check_left_out(options: Options, destination: Store, entry: Entry, content: Content) -> None:
    """Check that the destination has everything of an object.

    :raises TransferError: something was not migrated
    """
    left_out = list(content.unversioned)
    if content.empty and not options.drop_empty_directories:
        there = _empty_in(destination, entry)
        gone = [name for name, _path in content.empty if name not in there]
        if gone:
            left_out.append(f"{empty_text(gone)}; use {option('drop_empty_directories', True)} to remove it")
    if left_out:
        what = f"not in the destination: {'; '.join(left_out)}; copy it if you need it"
        raise TransferError("kept", "left-out", what)


def _empty_in(destination: Store, entry: Entry) -> set[bytes]:
    """Return the empty directories of an object of the destination; of a bag with and without ``data/``."""
    found = locate_target(destination, entry)
    bag = bag_directory(destination, found)
    if bag is None:
        return {encode_fs(name) for name, _path in found.empty_directories()}
    return {one for name, _path in DISK.list(bag).empty for one in (name, name.removeprefix(b"data/"))}


def _is_found(source: Store, entry: Entry) -> bool:
    """Return whether the identifier of an object leads to its path in the source.

    :raises IdentifierError: the layout cannot map the identifier
    :raises ObjectError: the object cannot be read
    """
    assert source.layout is not None
    path = encode_fs(source.layout.map_id(entry.source_id))
    if encode_fs(entry.source) == os.path.join(TREES.get(source.kind, b""), path):
        return True
    # The path may be written differently, or be that of a serialized bag.
    here = object_path(source, source.locate(entry.in_source()))
    try:
        return object_path(source, source.get(entry.source_id)) == here
    except ObjectError as error:
        if error.kind not in ("missing", "duplicate-id"):
            raise
        return False


def _is_gone(source: Store, entry: Entry) -> bool:
    try:
        source.locate(entry.in_source())
    except ObjectError as error:
        return error.kind == "missing"
    return False
