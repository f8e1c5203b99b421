"""One object after another from its source to its destination, in every direction, and what became of each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from time import sleep
from typing import Any

from pressmark.errors import ObjectError, PressmarkError, StoreError
from pressmark.fs.durable import can_flush_filesystem, flush_filesystem
from pressmark.fs.locks import host
from pressmark.fs.names import encode_fs
from pressmark.migrate.options import Options
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.rows import Row
from pressmark.migrate.transfer.direction import Way, all_files, changed_at, read_target, says_what_it_is
from pressmark.migrate.transfer.failures import Failure, TransferError, failure_of
from pressmark.migrate.transfer.in_flight import InFlight
from pressmark.migrate.transfer.ocfl_to_ocfl import Relayout
from pressmark.migrate.transfer.to_bags import IntoBags
from pressmark.migrate.transfer.to_ocfl import IntoOcfl
from pressmark.migrate.transfer.to_pairtree_vitro import IntoPairtree, IntoVitro
from pressmark.stores import Store
from pressmark.stores.bags.bag_folder_reader import BagObject
from pressmark.stores.refusals import SourceError, store_errors

__all__ = ["Transfer", "transfer_chunk"]

# Between tries of what may pass, in seconds.
WAITS = (0.05, 0.3, 1.0)
# So many objects wait for each other until they are moved in together.
BATCH = 2_000
RENAMES = 256  # of those that are moved, so that nothing empty stays behind for long


class Transfer:
    """Objects on their way; a context manager that lasts for a chunk.

    :param options: of the migration
    :param source: the store that they come from
    :param destination: the store that they go to
    """

    def __init__(self, options: Options, source: Store, destination: Store) -> None:
        self._options = options
        self._source = source
        self._destination = destination
        self._way = _way(options, source, destination)
        self._batch = RENAMES if options.renames() else BATCH
        self._full: Failure | None = None
        self._host = host()

    def run(self, entries: Iterable[Entry]) -> list[Row]:
        """Have objects arrive, and return what became of them, when everything of them is on the disk."""
        items = []
        entries = list(entries)
        with self._way:
            self._way.prepare(entries)
            for entry in entries:
                item = InFlight(entry)
                items.append(item)
                self._try(item)
                item.pause()
                if self._way.waiting() >= self._batch:
                    self._settle()
            self._settle()
            if can_flush_filesystem():
                with store_errors(self._destination.root):
                    flush_filesystem(os.fsencode(self._destination.root))
            if self._options.verify == "reread":
                for item in items:
                    if item.status == "ok":
                        self._reread(item)
        return [item.row(self._host) for item in items]

    # --- one object -----------------------------------------------------------------------------------------------

    def _try(self, item: InFlight) -> None:
        """Have an object arrive, again and again if what stands in the way may pass."""
        if self._full is not None:
            item.fail(self._full)
            return
        exists = False
        for number in range(len(WAITS) + 1):
            try:
                if exists:
                    self._compare(item)
                elif self._way.begin(item):
                    self._arrived(item)
                return
            except (PressmarkError, OSError) as error:
                if isinstance(error, ObjectError) and error.kind == "exists" and not exists:
                    exists = True
                    continue
                failure = self._failure(error)
                if failure.status == "source_missing" and self._options.renames():
                    if self._was_moved(item):
                        return
                    failure = self._perhaps_moved(item.entry, failure)
                if not failure.transient or number == len(WAITS):
                    item.fail(failure)
                    self._full = failure if failure.full else None
                    return
            sleep(WAITS[number])

    def _failure(self, error: Exception) -> Failure:
        if isinstance(error, SourceError):
            error = ObjectError(self._destination.root, "", error.kind, error.reason)
        elif isinstance(error, StoreError) and not isinstance(error, ObjectError):
            raise error
        failure = failure_of(error)
        root = encode_fs(error.path) if isinstance(error, ObjectError) else None
        at_fault = error.kind if isinstance(error, ObjectError) else None
        if root == encode_fs(self._destination.root) and at_fault in ("improper", "ambiguous", "missing"):
            return failure._replace(status="exists_different")
        # Trying again helps nobody where the source has lost a file that its inventory names.
        if root == encode_fs(self._source.root) and isinstance(error.__cause__, FileNotFoundError):
            return failure._replace(status="source_invalid", code="missing")
        return failure

    def _arrived(self, item: InFlight) -> None:
        if item.mode == "rename":
            item.status, item.verify = "ok", "moved"
        elif self._options.verify == "none":
            item.status = "unverified"
        else:
            item.status, item.verify = "ok", "copy"

    def _settle(self) -> None:
        for item, error in self._way.settle():
            if error is None:
                self._arrived(item)
            elif error.kind == "exists":
                self._compare_anew(item)
            else:
                item.fail(self._failure(error))

    def _compare_anew(self, item: InFlight) -> None:
        """Compare with an object that another run has put there meanwhile."""
        try:
            self._compare(item)
        except (PressmarkError, OSError) as error:
            item.fail(self._failure(error))

    def _was_moved(self, item: InFlight) -> bool:
        """Return whether an object that is no longer in the source was moved by a run before, and note that."""
        entry = item.entry
        try:
            if not self._is_as_planned(entry):
                return False
        except (PressmarkError, OSError):
            return False
        if isinstance(self._way, Relayout):
            self._way.prune(iter([entry]))
        item.files, item.bytes = entry.files, entry.bytes
        item.status, item.verify, item.mode = "ok", "moved", "rename"
        return True

    def _perhaps_moved(self, entry: Entry, failure: Failure) -> Failure:
        """Say of an object that is no longer in the source if one with its identifier is in the destination."""
        try:
            self._destination.get(entry.id)
        except (PressmarkError, OSError):
            return failure
        what = "one is in the destination, but is not what the plan saw in the source: if it was changed and then moved"
        return failure._replace(message=f"{failure.message}; {what} by a run that was killed, it is all there is of it")

    def _is_as_planned(self, entry: Entry) -> bool:
        """Return whether the object in the destination is the one that the plan saw in the source.

        Renaming a directory leaves the times of the files in it as they are.

        :raises ObjectError: there is none
        :raises TransferError: it cannot have come from the source
        """
        found = self._destination.get(entry.id)
        if isinstance(found, BagObject) and found.serialized:
            # Of a file that is renamed itself they are not.
            sizes = [os.stat(path).st_size for _name, path in found.files()]
            return (len(sizes), sum(sizes)) == (entry.files, entry.bytes)
        place = entry.target
        if self._destination.kind == "pairtree":
            if entry.encapsulation is None:
                return False  # those are copied
            place = f"{place}/{entry.encapsulation}"
        statuses = [os.stat(path) for _name, path in all_files(self._destination, entry.id, place)]
        seen = len(statuses), sum(one.st_size for one in statuses), changed_at(statuses)
        return seen == (entry.files, entry.bytes, entry.changed)

    # --- what is there --------------------------------------------------------------------------------------------

    def _compare(self, item: InFlight) -> None:
        """Compare an object with the one in its place, and replace that where it is different and this was asked for.

        :raises FileError: a file of either cannot be read
        """
        entry = item.entry
        # Before it is read: what changes meanwhile must not pass for what was compared.
        item.bytes, item.changed = self._way.measured(entry)
        ours = self._way.of_source(entry)
        item.digest, item.mode = ours.whole, None
        item.files = len(ours.digests)
        try:
            same = any(found.whole == ours.whole for found in self._way.of_target(entry))
        except SourceError as error:
            raise TransferError(
                "digest_mismatch", "damaged", f"the object that is there is damaged: {error.reason}; remove it"
            ) from None
        if same:
            item.status, item.verify = "exists_same", "reread"
            item.failure = None
            self._way.note_left_out(item)
        elif self._options.replace:
            if self._way.begin(item, replace=True):
                self._arrived(item)
        else:
            what = f"the object at {entry.target!r} has other files; replace it, or leave this one out"
            raise TransferError("exists_different", "exists", what)

    def _reread(self, item: InFlight) -> None:
        """Read an object in the destination, and compare it with what was copied; if it was moved, with itself."""
        try:
            if item.verify == "moved" and not says_what_it_is(self._destination, item.entry):
                return  # nothing says what it must be
            found = read_target(self._destination, item.entry, thorough=True)
        except SourceError as error:
            item.fail(Failure("digest_mismatch", "mismatch", f"in the destination: {error.reason}"))
            return
        except (PressmarkError, OSError) as error:
            failure = failure_of(error)
            item.fail(failure._replace(status="unverified", message=f"it cannot be read again: {failure.message}"))
            return
        if item.verify == "moved":
            item.digest = found[0].whole  # which is what its inventory or its manifests say
        item.verify = "reread"
        if all(one.whole != item.digest for one in found):
            what = "read again from the destination it is not what was copied; remove it there, and run it again"
            item.fail(Failure("digest_mismatch", "mismatch", what))


def transfer_chunk(options: Options, entries: Iterable[Entry]) -> list[Row]:
    """Migrate objects, and return what became of each, in their order.

    :raises StoreError: source or destination cannot be used
    """
    quick: dict[str, Any] = {}
    if can_flush_filesystem() and options.to in ("pairtree", "vitro"):
        quick["durable"] = False  # all of them are flushed together
    return Transfer(options, options.open_source(), options.open_destination(**quick)).run(entries)


def _way(options: Options, source: Store, destination: Any) -> Way:
    if options.to == "ocfl":
        return (Relayout if options.source_kind == "ocfl" else IntoOcfl)(options, source, destination)
    kinds: dict[str, type[Way]] = {"pairtree": IntoPairtree, "vitro": IntoVitro, "bags": IntoBags}
    return kinds[options.to](options, source, destination)
