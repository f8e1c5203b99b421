"""One object after another from its source to its destination, in every direction, and what became of each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from time import sleep
from typing import Any

from pressmark.errors import ObjectError, PressmarkError, StoreError
from pressmark.fs.durable import can_flush_filesystem, flush_filesystem
from pressmark.fs.locks import host
from pressmark.migrate.options import Options
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.rows import Row
from pressmark.migrate.transfer.direction import Way, all_files, changed_at, read_target, says_what_it_is
from pressmark.migrate.transfer.failures import Failure, Trouble, failure_of
from pressmark.migrate.transfer.in_flight import Draft
from pressmark.migrate.transfer.ocfl_to_ocfl import Relayout
from pressmark.migrate.transfer.to_bags import IntoBags
from pressmark.migrate.transfer.to_ocfl import IntoOcfl
from pressmark.migrate.transfer.to_pairtree_vitro import IntoPairtree, IntoVitro
from pressmark.stores import Store
from pressmark.stores.bags.bag_folder import BagObject
from pressmark.stores.directories import Refused
from pressmark.stores.store import octets, store_errors

__all__ = ["Transfer", "carry"]

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

    def carry(self, entries: Iterable[Entry]) -> list[Row]:
        """Have objects arrive, and return what became of them, when everything of them is on the disk."""
        drafts = []
        entries = list(entries)
        with self._way:
            self._way.prepare(entries)
            for entry in entries:
                draft = Draft(entry)
                drafts.append(draft)
                self._try(draft)
                draft.pause()
                if self._way.waiting() >= self._batch:
                    self._settle()
            self._settle()
            if can_flush_filesystem():
                with store_errors(self._destination.root):
                    flush_filesystem(os.fsencode(self._destination.root))
            if self._options.verify == "reread":
                for draft in drafts:
                    if draft.status == "ok":
                        self._reread(draft)
        return [draft.row(self._host) for draft in drafts]

    # --- one object -----------------------------------------------------------------------------------------------

    def _try(self, draft: Draft) -> None:
        """Have an object arrive, again and again if what stands in the way may pass."""
        if self._full is not None:
            draft.fail(self._full)
            return
        is_there = False
        for number in range(len(WAITS) + 1):
            try:
                if is_there:
                    self._compare(draft)
                elif self._way.begin(draft):
                    self._arrived(draft)
                return
            except (PressmarkError, Refused, Trouble, OSError) as error:
                if isinstance(error, ObjectError) and error.kind == "exists" and not is_there:
                    is_there = True
                    continue
                failure = self._failure(error)
                if failure.status == "source_missing" and self._options.renames():
                    if self._was_moved(draft):
                        return
                    failure = self._perhaps_moved(draft.entry, failure)
                if not failure.transient or number == len(WAITS):
                    draft.fail(failure)
                    self._full = failure if failure.full else None
                    return
            sleep(WAITS[number])

    def _failure(self, error: Exception) -> Failure:
        if isinstance(error, Refused):
            error = ObjectError(self._destination.root, "", error.kind, error.reason)
        elif isinstance(error, StoreError) and not isinstance(error, ObjectError):
            raise error
        failure = failure_of(error)
        root = octets(error.path) if isinstance(error, ObjectError) else None
        at_fault = error.kind if isinstance(error, ObjectError) else None
        if root == octets(self._destination.root) and at_fault in ("improper", "ambiguous", "missing"):
            return failure._replace(status="exists_different")
        # Trying again helps nobody where the source has lost a file that its inventory names.
        if root == octets(self._source.root) and isinstance(error.__cause__, FileNotFoundError):
            return failure._replace(status="source_invalid", code="missing")
        return failure

    def _arrived(self, draft: Draft) -> None:
        if draft.mode == "rename":
            draft.status, draft.verify = "ok", "moved"
        elif self._options.verify == "none":
            draft.status = "unverified"
        else:
            draft.status, draft.verify = "ok", "copy"

    def _settle(self) -> None:
        for draft, error in self._way.settle():
            if error is None:
                self._arrived(draft)
            elif error.kind == "exists":
                self._compare_anew(draft)
            else:
                draft.fail(self._failure(error))

    def _compare_anew(self, draft: Draft) -> None:
        """Compare with an object that another run has put there meanwhile."""
        try:
            self._compare(draft)
        except (PressmarkError, Refused, Trouble, OSError) as error:
            draft.fail(self._failure(error))

    def _was_moved(self, draft: Draft) -> bool:
        """Return whether an object that is no longer in the source was moved by a run before, and note that."""
        entry = draft.entry
        try:
            if not self._is_as_planned(entry):
                return False
        except (PressmarkError, Trouble, OSError):
            return False
        if isinstance(self._way, Relayout):
            self._way.prune(iter([entry]))
        draft.files, draft.bytes = entry.files, entry.bytes
        draft.status, draft.verify, draft.mode = "ok", "moved", "rename"
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
        :raises Trouble: it cannot have come from the source
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

    def _compare(self, draft: Draft) -> None:
        """Compare an object with the one in its place, and replace that where it is different and this was asked for.

        :raises FileError: a file of either cannot be read
        """
        entry = draft.entry
        # Before it is read: what changes meanwhile must not pass for what was compared.
        draft.bytes, draft.changed = self._way.measured(entry)
        ours = self._way.of_source(entry)
        draft.digest, draft.mode = ours.whole, None
        draft.files = len(ours.digests)
        try:
            same = any(found.whole == ours.whole for found in self._way.of_target(entry))
        except Refused as error:
            raise Trouble(
                "digest_mismatch", "damaged", f"the object that is there is damaged: {error.reason}; remove it"
            ) from None
        if same:
            draft.status, draft.verify = "exists_same", "reread"
            draft.failure = None
            self._way.note_left_out(draft)
        elif self._options.replace:
            if self._way.begin(draft, replace=True):
                self._arrived(draft)
        else:
            what = f"the object at {entry.target!r} has other files; replace it, or leave this one out"
            raise Trouble("exists_different", "exists", what)

    def _reread(self, draft: Draft) -> None:
        """Read an object in the destination, and compare it with what was copied; if it was moved, with itself."""
        try:
            if draft.verify == "moved" and not says_what_it_is(self._destination, draft.entry):
                return  # nothing says what it must be
            found = read_target(self._destination, draft.entry, thorough=True)
        except Refused as error:
            draft.fail(Failure("digest_mismatch", "mismatch", f"in the destination: {error.reason}"))
            return
        except (PressmarkError, OSError) as error:
            failure = failure_of(error)
            draft.fail(failure._replace(status="unverified", message=f"it cannot be read again: {failure.message}"))
            return
        if draft.verify == "moved":
            draft.digest = found[0].whole  # which is what its inventory or its manifests say
        draft.verify = "reread"
        if all(one.whole != draft.digest for one in found):
            what = "read again from the destination it is not what was copied; remove it there, and run it again"
            draft.fail(Failure("digest_mismatch", "mismatch", what))


def carry(options: Options, entries: Iterable[Entry]) -> list[Row]:
    """Migrate objects, and return what became of each, in their order.

    :raises StoreError: source or destination cannot be used
    """
    quick: dict[str, Any] = {}
    if can_flush_filesystem() and options.to in ("pairtree", "vitro"):
        quick["durable"] = False  # all of them are flushed together
    return Transfer(options, options.open_source(), options.open_destination(**quick)).carry(entries)


def _way(options: Options, source: Store, destination: Any) -> Way:
    if options.to == "ocfl":
        return (Relayout if options.source_kind == "ocfl" else IntoOcfl)(options, source, destination)
    kinds: dict[str, type[Way]] = {"pairtree": IntoPairtree, "vitro": IntoVitro, "bags": IntoBags}
    return kinds[options.to](options, source, destination)
