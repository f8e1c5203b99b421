"""Sources of objects that have arrived, removed: those only that are still what was copied."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from pressmark.errors import ObjectError, PressmarkError
from pressmark.fs.names import encode_fs
from pressmark.migrate.options import TREES, Options
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.rows import GOOD, SOURCE_KEPT, Row
from pressmark.migrate.transfer.direction import all_files, changed_at, located, target_files
from pressmark.migrate.transfer.failures import TransferError, failure_of
from pressmark.migrate.transfer.left_out import empty_text
from pressmark.migrate.transfer.reading import Content, Reader, tree_files
from pressmark.stores import Store, StoredObject
from pressmark.stores.bags.bag_folder_reader import BagObject
from pressmark.stores.refusals import object_errors

__all__ = ["removed"]

#: How an object must have been verified.
_VERIFIED = frozenset({"copy", "reread"})


def removed(options: Options, rows: Iterable[Row]) -> Iterator[Row]:
    """Remove the sources of objects, and give all rows: with an error where a source had to be kept.

    Objects that were moved have no source any more, and those that failed keep theirs. What is gone is removed.

    :raises StoreError: source or destination cannot be used
    """
    source, destination = options.open_source(), options.open_destination()
    reader = Reader(options, source)
    for row in rows:
        if row.status not in GOOD or row.verify not in _VERIFIED:
            yield row
            continue
        try:
            _remove(options, row, source, destination, reader)
            yield row
        except (PressmarkError, OSError) as error:
            failure = failure_of(error)
            yield row._replace(error_code=SOURCE_KEPT, error=f"its source was kept: {failure.message}")


def _check_left_out(options: Options, destination: Store, entry: Entry, content: Content) -> None:
    """Make sure that nothing goes with an object but what is in the destination, or can be made from that.

    :raises TransferError: something would
    """
    left_out = list(content.besides)
    if content.empty and not options.drop_empty_directories:
        there = _empty_in(destination, entry)
        gone = [name for name, _path in content.empty if name not in there]
        if gone:
            left_out.append(f"{empty_text(gone)}; --drop-empty-directories would remove it")
    if left_out:
        what = "not all of it is in the destination"
        raise TransferError("kept", "left-out", f"{what}: {'; '.join(left_out)}; look at that, then remove it by hand")


def _empty_in(destination: Store, entry: Entry) -> set[bytes]:
    """Return the empty directories of an object of the destination, of a bag by both names that they may have."""
    found = located(destination, entry)
    if not isinstance(found, BagObject) or found.serialized:
        return {encode_fs(name) for name, _path in found.empty_directories()}
    empty: list[tuple[bytes, bytes]] = []
    tree_files(found.bag_path, [], empty)
    return {one for name, _path in empty for one in (name, name.removeprefix(b"data/"))}


def _place(found: StoredObject) -> bytes:
    return found.bag_path if isinstance(found, BagObject) else found.path


def _is_found(source: Store, entry: Entry) -> bool:
    """Return whether the store finds, by its identifier, the object that was copied, and no other one.

    :raises IdentifierError: it has no place
    :raises ObjectError: it cannot be looked at
    """
    assert source.layout is not None
    place = encode_fs(source.layout.map_id(entry.source_id))
    if encode_fs(entry.source) == os.path.join(TREES.get(source.kind, b""), place):
        return True
    # The same may be said in another way: a bag may be one file.
    here = _place(source.locate(entry.record()))
    try:
        return _place(source.get(entry.source_id)) == here
    except ObjectError as error:
        if error.kind != "missing":
            raise
        return False


def _remove(options: Options, row: Row, source: Store, destination: Store, reader: Reader) -> None:
    """Remove the source of one object.

    :raises TransferError: it is not what was copied, or cannot be removed by its identifier
    """
    entry = Entry(row.id, row.source_id, row.source, row.target, None, row.files, row.bytes, row.changed)
    try:
        if source.kind == destination.kind == "ocfl":
            content = Content(all_files(source, entry.source_id, entry.source), {}, [])
        else:
            content = reader.content(entry)
        files = content.files
        with object_errors(source.root, row.source_id):
            statuses = [os.stat(path) for _name, path in files]
    except ObjectError as error:
        if error.kind == "missing":
            return
        raise
    size, changed = sum(one.st_size for one in statuses), changed_at(statuses)
    if (len(statuses), size, changed) != (row.files, row.bytes, row.changed):
        raise TransferError("kept", "changed", "it was changed after it was copied; migrate it again")
    # Nothing is read again here: whether it is what was copied was found out, that it is still there is not.
    target_files(destination, entry)
    _check_left_out(options, destination, entry, content)
    if source.layout is not None and not _is_found(source, entry):
        raise TransferError(
            "kept", "misplaced", f"{row.source!r} is not where its identifier belongs; remove it by hand"
        )
    try:
        source.delete(row.source_id)
    except ObjectError:
        # What comes after an object has gone can fail too: then there is nothing that was kept.
        if not _is_gone(source, entry):
            raise


def _is_gone(source: Store, entry: Entry) -> bool:
    try:
        source.locate(entry.record())
    except ObjectError as error:
        return error.kind == "missing"
    return False
