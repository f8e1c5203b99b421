"""The transfer of the objects of a chunk, one by one, with a row for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import TypeVar

from pressmark.errors import ObjectError, quoted_path
from pressmark.fixity.hasher import CHANGED
from pressmark.fs.durable import can_flush_filesystem, flush_filesystem
from pressmark.fs.locks import host
from pressmark.fs.names import encode_fs
from pressmark.migrate.entry import OBJECT_ERRORS, Entry, Failure, TransferError, failure_of
from pressmark.migrate.object_digest import ALGORITHM
from pressmark.migrate.options import Options
from pressmark.migrate.transfer.content import all_files, entries_of
from pressmark.migrate.transfer.direction import Direction, Storing
from pressmark.migrate.transfer.places import each
from pressmark.migrate.transfer.reading import (
    bag_directory,
    compare_stored,
    compare_target,
    has_recorded_digests,
    read_content,
)
from pressmark.option_names import option
from pressmark.stores import Store
from pressmark.stores.exceptions import SourceError, object_errors, store_errors
from pressmark.stores.staging_writer import Staged

__all__ = ["Transfer", "transfer_chunk"]

_Item = TypeVar("_Item")

_CHANGING = "changed while it was read; migrate it again when nothing changes it"
# Seconds between attempts after errors that may pass.
WAITS = (0.05, 0.3, 1.0)
# Objects that are moved into the destination together, at most; and their bytes, so that an interruption costs little.
BATCH, BATCH_BYTES = 2_000, 1 << 30
RENAMES = 256  # with renaming: fewer, so that empty directories are removed soon
# Objects whose files are copied together: those of one seldom keep all lanes and cores busy.
TOGETHER = 256


def transfer_chunk(
    options: Options, entries: Iterable[Entry], on_object: Callable[[int], object] = lambda _nbytes: None
) -> list[Entry]:
    """Migrate objects, and return a row for each, in their order.

    :param on_object: called for each object that is done, with its size in bytes
    :raises StoreError: the source or the destination cannot be used
    """
    return Transfer(_direction(options), on_object).run(entries)


def _direction(options: Options) -> Direction:
    """Return what stores objects in the destination; its module is imported on first use."""
    direction: type[Direction]
    if options.to == "bags":
        from pressmark.migrate.transfer.to_bags import ToBags as direction
    elif options.to == "ocfl" == options.source_kind:
        from pressmark.migrate.transfer.ocfl_to_ocfl import OcflToOcfl as direction
    elif options.to == "ocfl":
        from pressmark.migrate.transfer.to_ocfl import ToOcfl as direction
    elif options.to == "vitro":
        from pressmark.migrate.transfer.to_pairtree_vitro import ToVitro as direction
    else:
        from pressmark.migrate.transfer.to_pairtree_vitro import ToPairtree as direction
    return direction(options)


class _Transferred:
    """An object during its transfer.

    :ivar planned: its entry in the plan
    :ivar entry: its entry in the report
    :ivar steps: of storing it; :data:`None` before the first
    :ivar staged: the object, if its files are to be copied
    :ivar error: why it was not stored at first
    :ivar mismatch: which file differed from its recorded digest at the last attempt, and how
    :ivar seconds: the time that it took so far
    """

    def __init__(self, planned: Entry, host: str) -> None:
        started = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.planned = planned
        self.entry = replace(planned, status="copy_failed", files=0, bytes=0, entries="", started=started, host=host)
        self.steps: Storing | None = None
        self.staged: Staged | None = None
        self.error: Exception | None = None
        self.mismatch = ""
        self.seconds = 0.0


class Transfer:
    """The transfer of the objects of a chunk.

    :param direction: stores the objects
    :param on_object: called for each object that is done, with its size in bytes
    """

    def __init__(self, direction: Direction, on_object: Callable[[int], object]) -> None:
        self._on_object = on_object
        self._direction = direction
        self._options = direction.options
        self._source: Store = direction.source
        self._destination: Store = direction.destination
        self._full: Failure | None = None
        self._host = host()

    def run(self, entries: Iterable[Entry]) -> list[Entry]:
        """Transfer objects, and return their rows once everything is on the disk."""
        entries = list(entries)
        items: list[Entry] = []
        with self._direction:
            self._direction.prepare(entries)
            for batch in self._batches(entries):
                items += self._transfer(batch)
                self._finish_batch()
            if can_flush_filesystem() and self._destination.bucket is None:
                with store_errors(self._destination.root):
                    flush_filesystem(os.fsencode(self._destination.root))
            if self._options.verify in ("reread", "stored"):
                self._each(self._reread, [entry for entry in items if entry.status == "ok"])
            for entry in items:
                entry.algorithm = None if entry.digest is None else ALGORITHM
        return items

    def _batches(self, entries: Iterable[Entry]) -> Iterator[list[Entry]]:
        """Yield the objects that are moved into the destination together."""
        most = RENAMES if self._direction.renames else BATCH
        batch: list[Entry] = []
        size = 0
        for entry in entries:
            batch.append(entry)
            size += entry.bytes
            if len(batch) >= most or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
        yield batch

    def _transfer(self, planned: Sequence[Entry]) -> list[Entry]:
        """Transfer objects: the files of many are copied together."""
        items: list[Entry] = []
        for begin in range(0, len(planned), TOGETHER):
            some = [_Transferred(entry, self._host) for entry in planned[begin : begin + TOGETHER]]
            self._each(self._go_on, some)
            # An object may have more to copy after its first files.
            while waiting := [item for item in some if item.staged is not None]:
                copying = monotonic()
                self._direction.writer.copy([item.staged for item in waiting])
                copying = monotonic() - copying
                for item in waiting:
                    item.seconds += copying / len(waiting)
                self._each(self._go_on, waiting)
            for item in some:
                if item.error is not None:
                    self._try_again(item)
                if item.entry.mode == "rename":
                    item.entry.files, item.entry.bytes = item.planned.files, item.planned.bytes
                item.entry.seconds = round(item.seconds, 6)
                items.append(item.entry)
                self._on_object(item.planned.bytes)
        return items

    # --- one object -----------------------------------------------------------------------------------------------

    def _each(self, function: Callable[[_Item], object], items: Sequence[_Item]) -> None:
        """Call a function with each item."""
        for _done in each(function, items, self._source, self._destination):
            pass

    def _go_on(self, item: _Transferred) -> None:
        """Begin an object, or go on after its files were copied."""
        begun = monotonic()
        item.staged = None
        try:
            if self._full is not None:
                item.entry.fail(self._full)
            elif self._advance(item):
                self._arrived(item.entry)
        except OBJECT_ERRORS as error:
            item.error = error
        item.seconds += monotonic() - begun

    def _advance(self, item: _Transferred) -> bool:
        """Store an object until its files are to be copied, and return whether it is stored."""
        if item.steps is None:
            item.steps = self._direction.begin(item.entry)
        try:
            item.staged = next(item.steps)
        except StopIteration as end:
            return bool(end.value)
        return False

    def _alone(self, steps: Storing) -> bool:
        """Store an object, and return whether it is stored."""
        while True:
            try:
                self._direction.writer.copy([next(steps)])
            except StopIteration as end:
                return bool(end.value)

    def _try_again(self, item: _Transferred) -> None:
        """Compare with an object that exists, and try again after errors that may pass."""
        begun = monotonic()
        entry, error = item.entry, item.error
        exists = False
        waits = iter(WAITS)
        while error is not None:
            if isinstance(error, ObjectError) and error.kind == "exists" and not exists:
                exists = True
            else:
                wait = next(waits, None)
                if self._has_failed(item, error, wait is None):
                    break
                sleep(wait or 0)
            error = self._attempted(entry, exists)
        item.seconds += monotonic() - begun

    def _attempted(self, entry: Entry, exists: bool) -> Exception | None:
        """Transfer an object, or compare it with the one that exists; return the error, if any."""
        try:
            if exists:
                self._compare(entry)
            elif self._alone(self._direction.begin(entry)):
                self._arrived(entry)
        except OBJECT_ERRORS as error:
            return error
        return None

    def _has_failed(self, item: _Transferred, error: Exception, is_last: bool) -> bool:
        """Record an error, unless it may pass; return whether it was recorded."""
        entry = item.entry
        failure = self._failure(error)
        if failure.status == "source_missing" and self._direction.renames:
            if self._was_moved(entry, item.planned):
                return True
            failure = self._perhaps_moved(entry, failure)
        if failure.code == "mismatch" and failure.message != item.mismatch:
            # Damage is the same when the object is read again, unlike what another process is changing.
            item.mismatch = failure.message
            failure = Failure("source_invalid", CHANGED, _CHANGING, transient=True)
        if failure.transient and not is_last:
            return False
        entry.fail(failure)
        self._full = failure if failure.full else None
        return True

    def _failure(self, error: Exception) -> Failure:
        if isinstance(error, SourceError):
            error = ObjectError(self._destination.root, "", error.kind, error.reason)
        failure = failure_of(error)
        root = encode_fs(error.path) if isinstance(error, ObjectError) else None
        at_fault = error.kind if isinstance(error, ObjectError) else None
        if root == encode_fs(self._destination.root) and at_fault in ("improper", "ambiguous", "missing"):
            return failure._replace(status="exists_different")
        # A file of the inventory is missing from the source: trying again cannot help.
        if root == encode_fs(self._source.root) and isinstance(error.__cause__, FileNotFoundError):
            return failure._replace(status="source_invalid", code="missing")
        return failure

    def _arrived(self, entry: Entry) -> None:
        if entry.mode == "rename":
            entry.status, entry.verify = "ok", "moved"
        elif self._options.verify == "none":
            entry.status = "unverified"
        else:
            entry.status, entry.verify = "ok", "copy"

    def _finish_batch(self) -> None:
        for entry, error in self._direction.finish_batch():
            if error is None:
                self._arrived(entry)
                continue
            # Another run may have stored an object in the meantime.
            again = self._attempted(entry, exists=True) if error.kind == "exists" else error
            if again is not None:
                entry.fail(self._failure(again))

    def _was_moved(self, entry: Entry, planned: Entry) -> bool:
        """Record an object that an earlier run has moved out of the source; return whether it was moved."""
        try:
            if not self._is_as_planned(planned):
                return False
        except OBJECT_ERRORS:
            return False
        self._direction.prune(entry)
        entry.status, entry.verify, entry.mode = "ok", "moved", "rename"
        return True

    def _perhaps_moved(self, entry: Entry, failure: Failure) -> Failure:
        """Add to the failure of an object missing from the source whether the destination has its identifier."""
        try:
            self._destination.get(entry.id)
        except OBJECT_ERRORS:
            return failure
        what = "the destination has an object with this identifier, possibly the only copy, that differs from the plan"
        return failure._replace(message=f"{failure.message}; {what}; compare it with a backup")

    def _is_as_planned(self, entry: Entry) -> bool:
        """Return whether the object in the destination is the planned one: renaming a directory keeps the times in it.

        :raises ObjectError: the destination has no such object
        :raises TransferError: it contains links or special files
        """
        found = self._destination.get(entry.id)
        if self._destination.kind == "bags" and bag_directory(self._destination, found) is None:
            # Renaming a file changes its time.
            sizes = [os.stat(path).st_size for _name, path in found.files()]
            return (len(sizes), sum(sizes)) == (entry.files, entry.bytes)
        path = entry.target
        if self._destination.kind == "pairtree":
            if entry.encapsulation is None:
                return False  # such objects are copied
            path = f"{path}/{entry.encapsulation}"
        return entries_of(all_files(self._destination, entry.id, path)) == entry.entries

    # --- objects that exist ---------------------------------------------------------------------------------------

    def _compare(self, entry: Entry) -> None:
        """Compare an object with the one at its path; replace a different one if the options ask for it.

        :raises FileError: a file of either object cannot be read
        """
        # It may be at another path than the planned one, which is free then.
        entry.target = self._destination.find(entry.id).path
        direction = self._direction
        content = read_content(self._options, self._source, entry)
        # Before the files are read: later changes must not pass for what was compared.
        with object_errors(self._source.root, entry.source_id):
            entry.bytes = sum(one.st_size for one in content.statuses())
            entry.entries = entries_of(content)
        ours = direction.read_source(content)
        entry.digest, entry.mode = direction.digest_of(entry, ours), None
        entry.files = len(ours.digests)
        try:
            theirs = direction.read_target(entry)
        except SourceError as error:
            what = f"the object in the destination is damaged: {error.reason}; move it elsewhere, and migrate it again"
            raise TransferError("digest_mismatch", "damaged", what) from None
        if any(found.whole == ours.whole for found in theirs):
            entry.status, entry.verify = "exists_same", "reread"
            entry.error = content.left_out(self._options.to)
        elif self._options.replace:
            if self._alone(direction.replace(entry, content, ours, theirs)):
                self._arrived(entry)
        else:
            what = f"the object at {quoted_path(entry.target)} has different files"
            what += f"; replace it ({option('replace', True)}), or omit this object"
            raise TransferError("exists_different", "exists", what)

    def _reread(self, entry: Entry) -> None:
        """Read an object in the destination, and compare it with the copy; a moved object, with its own digests. Or
        compare the digests that the server keeps.
        """
        try:
            if self._options.verify == "stored":
                failure = compare_stored(self._destination, entry)
                if failure is not None:
                    entry.fail(failure)
                return
            if entry.verify == "moved" and not has_recorded_digests(self._destination, entry):
                return
            advice = f"the source; migrate it again with {option('replace', True)}"
            failure = compare_target(self._destination, entry, advice)
        except OBJECT_ERRORS as error:
            failure = failure_of(error)
            failure = failure._replace(status="unverified", message=f"cannot be read again: {failure.message}")
        if failure is not None:
            entry.fail(failure)
