"""One run of an audit: verify the objects of a store that were verified longest ago, until the run is over.

A thread lists the store when a round begins, or if that was not done for a day, and adds objects to the state.
Meanwhile, the objects that are due are verified by the check of the store, and each result is recorded at once. So a
run can end at any moment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from itertools import chain
from math import ceil, inf
from queue import Empty, Full, Queue
from time import gmtime, monotonic, sleep, strftime, time
from typing import TYPE_CHECKING, Any, cast

from pressmark.buckets.address import is_address
from pressmark.errors import AuditError, quoted, quoted_path
from pressmark.fs.names import decode_fs, encode_fs, is_inside
from pressmark.progress_event import EventListener, Progress
from pressmark.reports import Problem, Report
from pressmark.stores.audits.audit_state import AuditState, Coverage, KnownObject
from pressmark.stores.audits.object_audits import PATIENCE, Audited, audit_ocfl, audit_walked, look_at
from pressmark.stores.exceptions import store_errors
from pressmark.stores.job import walked
from pressmark.stores.objects import Digests
from pressmark.stores.problems import problem
from pressmark.stores.recheck import RunningReport
from pressmark.stores.selection import refuse_both
from pressmark.stores.store import Store
from pressmark.stores.walked_store import WalkedStore
from pressmark.threads import Threads, require_use, resolve_threads

if TYPE_CHECKING:
    from pressmark.stores.ocfl.check import Check, ObjectResult
    from pressmark.stores.ocfl.root import OcflRoot

__all__ = ["AuditReport", "audit", "name_in_state"]

LISTED_EVERY = 86_400  # seconds
# Objects that are added to the state, or taken from it, at a time; and seconds until fewer are added.
AT_ONCE, ADD_EVERY = 500, 0.2
# Problems of the listing that wait to be reported.
WAITING = 1000
PAUSE = 0.05  # seconds
# Objects with errors that a report names.
DAMAGED = 10
_NONE = Coverage(0, 0, 0, 0, None, 0)


@dataclass(repr=False)
class AuditReport(Report):
    """The result of one run of an audit. Its ``counts`` are those of a check, of the objects that the run has verified,
    and the numbers of ``new``, ``changed``, ``vanished`` and ``mended`` objects.

    :ivar round: the number of the round; in a round, each object is verified once
    :ivar coverage: how much of the store is verified
    :ivar is_listed: whether all objects of the store are known
    :ivar seconds: duration of the run
    :ivar runs_left: an estimate of how many more runs the rest takes, like the last one that verified objects;
        :data:`None` if it is unknown
    :ivar complete: an estimate of when that is, in seconds since 1970; :data:`None` if it is unknown
    :ivar damaged: the identifiers of the first 10 objects that had errors when they were verified last; where one is
        unknown, the path
    """

    round: int = 1
    coverage: Coverage = field(default=_NONE)
    is_listed: bool = False
    seconds: float = 0.0
    runs_left: int | None = None
    complete: float | None = None
    damaged: Sequence[str] = ()

    def summary(self) -> dict[str, object]:
        """Return the summary as a JSON object: that of a check, and how much of the store is verified."""
        coverage: dict[str, object] = self.coverage._asdict()
        for name, value in (("oldest", self.coverage.oldest), ("complete", self.complete)):
            coverage[name] = None if value is None else strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(value))
        more = {"round": self.round, "listed": self.is_listed, "runs_left": self.runs_left, "coverage": coverage}
        named = {"damaged": [*self.damaged]}
        return {**super().summary(), "seconds": round(self.seconds, 3), **more, **named}


def audit(
    store: Store,
    state: str | bytes | os.PathLike[str],
    *,
    ids: Iterable[str | bytes] | None = None,
    match: Sequence[str] | str = (),
    max_seconds: float | None = None,
    max_bytes: int | None = None,
    max_objects: int | None = None,
    older_than: timedelta | None = None,
    digests: Digests = "read",
    threads: int | None = None,
    progress: Progress | None = None,
    ignore: Sequence[str] = (),
) -> AuditReport:
    """Verify the objects of a store that were verified longest ago, oldest first, and return a report.

    Each object is verified as by ``store.check(digests=True)``, and its result is recorded in a file; the next call
    continues with the others. Objects with errors are verified again by each call. When all objects are verified, the
    next call begins a new round. Pairtrees and Vitro stores have no digests: their files are compared with those of the
    last audit.

    ::

        store = stores.open("books")
        report = stores.audit(store, "books.audit", max_seconds=6 * 3600)

    :param state: the file, created if it does not exist; one call uses it at a time
    :param ids: verify only these objects, if they are due; as for :meth:`Store.objects`, like ``match``
    :param max_seconds: end after this time; objects that are being read are completed
    :param max_bytes: end when so many bytes are read; objects that are being read are completed
    :param max_objects: verify at most so many objects
    :param older_than: verify the objects that were verified before this time; :data:`None` for those that were not
        verified in this round
    :param digests: as for :meth:`Store.check`
    :param threads: number of threads; :data:`None` for one per core
    :param progress: objects verified by this call; the problems found so far have ``failed``
    :param ignore: globs of names to ignore
    :raises AuditError: another run uses the file, or it is not the state of this store
    :raises StoreError: the store cannot be read
    :raises ValueError: both ``ids`` and ``match`` are given, or a glob is empty
    """
    refuse_both(ids, match)
    root = name_in_state(store)
    if not is_address(root) and is_inside(state, root):
        raise AuditError(os.fsencode(state), f"inside the store {quoted_path(root)}; choose another file")
    with ExitStack() as stack:
        make_check = _check(store, digests, stack)
        known = stack.enter_context(AuditState(state, root, store.kind))
        before = None if older_than is None else int(time() - older_than.total_seconds())
        run = _Run(store, known, before, resolve_threads(threads), progress, ignore)
        run.limit(max_seconds, max_bytes, max_objects)
        selected = None if ids is None and not match else _selected(store, ids, match, run)
        return run.report(selected, make_check, "stored" if digests == "stored" else "read")


def name_in_state(store: Store) -> str:
    """Return the directory or the address of a store, as its state names it."""
    return store.root if is_address(store.root) else os.path.abspath(store.root)


# Returns the check of a storage root, given what it calls with its events, and with the result of each object.
_MakeCheck = Callable[[Progress, Callable[["ObjectResult"], None]], "Check"]


def _check(store: Store, digests: Digests, stack: ExitStack) -> _MakeCheck | None:
    """Return a function that returns the check of a storage root; :data:`None` for another store."""
    if store.kind != "ocfl":
        store._reads_digests(digests)
        return None
    from pressmark.stores.ocfl.check import Check

    with store_errors(store.root):
        server = cast("OcflRoot", store)._server_digests(digests or True, None, stack)
    root = cast("OcflRoot", store)
    return lambda on_event, on_object: Check(root, on_event, on_object, server, duplicates=False)


#: Path, surrounding object and identifier of an object.
_Found = tuple[bytes, bytes | None, str | None]


def _selected(store: Store, ids: Any, match: Any, run: _Run) -> Iterator[_Found | Problem]:
    """Yield the selected objects, and problems of those that are not found."""
    if store.kind == "ocfl":
        root = cast("OcflRoot", store)
        paths = root._selected_paths(ids, match, run.threads, run.ignore, False)
        assert paths is not None
        for item in paths:
            yield item if isinstance(item, Problem) else (*item, None)
        return
    problems: list[Problem] = []
    records = store.objects(ids=ids, match=match, threads=run.threads, ignore=run.ignore, problems=problems)
    for record in chain(records, [None]):
        yield from problems
        problems.clear()
        if record is not None:
            yield encode_fs(record.path), None, record.id


class _Run:
    """One run.

    :param before: the objects are due that were verified before this time; :data:`None` for those of the round
    """

    def __init__(
        self,
        store: Store,
        state: AuditState,
        before: int | None,
        threads: int,
        progress: Progress | None,
        ignore: Sequence[str],
    ) -> None:
        self.threads = threads
        self.ignore = ignore
        self._store = store
        self._state = state
        self._before = before
        self._progress = progress
        self._running = RunningReport(progress, getattr(store, "progress_every", 1))
        self._begin = monotonic()
        self._numbers = dict.fromkeys(("new", "changed", "vanished", "mended"), 0)
        self._found: Queue[Problem | KnownObject] = Queue(WAITING)
        self._listing: Future[None] | None = None
        self._is_new_named = state.listed is not None
        # The size of the objects that are being verified; if the state does not know one, the average.
        self._ahead = 0
        self._given = 0

    def limit(self, seconds: float | None, size: int | None, objects: int | None) -> None:
        """Set the limits of the run; :data:`None` for no limit."""
        self._end = inf if seconds is None else self._begin + seconds
        self._most_bytes: float = inf if size is None else size
        self._most: float = inf if objects is None else objects

    def _seconds_left(self) -> float:
        return self._end - monotonic()

    def _bytes_left(self) -> float:
        return self._most_bytes - self._state.bytes

    def _is_over(self) -> bool:
        return (
            self._seconds_left() <= 0
            or self._given >= self._most
            or self._state.bytes + self._ahead >= self._most_bytes
        )

    def report(
        self, selected: Iterator[_Found | Problem] | None, make_check: _MakeCheck | None, how: str
    ) -> AuditReport:
        """Verify what is due, and return the report."""
        state, report = self._state, self._running.report
        if self._store.kind == "bags":
            report.counts.update(files=0, bytes=0)
        with Threads(1, "pressmark-listing", patience=PATIENCE) as pool:
            is_old = state.listed is None or not 0 <= time() - state.listed < LISTED_EVERY
            is_new = not self._is_over() and state.begin_round()
            if selected is None and (is_old or is_new) and self._seconds_left() > 0:
                self._listing = pool.submit(self._list)
            feed = self._due() if selected is None else self._due_among(selected)
            if make_check is not None:
                self._verify_ocfl(make_check, feed, how)
            else:
                assert isinstance(self._store, WalkedStore)
                for one in audit_walked(self._store, feed, self.threads, self._running, self.ignore):
                    self._take(one)
            while self._is_listing() and self._seconds_left() > 0:
                sleep(PAUSE)
                self._report_listing()
            self._report_listing()
        self._running.finish()
        return self._summarized(report)

    def _verify_ocfl(self, make_check: _MakeCheck, feed: Iterator[KnownObject | None], how: str) -> None:
        make = partial(make_check, EventListener(self._hear))
        limits = self._seconds_left, self._bytes_left
        with store_errors(self._store.root):
            found = audit_ocfl(
                make, self._exists, self._size, feed, how, self.threads, self.ignore, *limits, self._take
            )
        self._running.report.counts.clear()
        self._running.report.counts.update(found.counts)

    def _hear(self, event: object) -> None:
        """Pass on an event of the check of a storage root."""
        if isinstance(event, Problem):
            self._running.add([event])
        elif self._progress is not None:
            self._progress(event)

    # --- what is due ----------------------------------------------------------------------------------------------

    def _due(self) -> Iterator[KnownObject | None]:
        """Yield the objects that are due, :data:`None` while the listing may find more."""
        while not self._is_over():
            is_listing = self._is_listing()
            found = self._state.due(AT_ONCE, self._before)
            if not found and not is_listing:
                return
            yield from self._given_of(found)
            if not found:
                sleep(PAUSE)
                yield None

    def _due_among(self, selected: Iterator[_Found | Problem]) -> Iterator[KnownObject | None]:
        """Yield the selected objects that are due."""
        group: list[_Found] = []
        since = monotonic()
        for item in chain(selected, [None]):
            if isinstance(item, Problem):
                self._running.add([item])
            elif item is not None:
                group.append(item)
            if item is None or len(group) >= AT_ONCE or monotonic() >= since + ADD_EVERY:
                self._state.add(group)
                known = self._state.known([path for path, _inside, _id in group])
                yield from self._given_of([one for one in known if self._state.is_due(one, self._before)])
                group, since = [], monotonic()
            if self._is_over():
                return

    def _given_of(self, found: Iterable[KnownObject]) -> Iterator[KnownObject]:
        for one in found:
            if self._is_over():
                return
            if one.size is None:
                one = one._replace(size=self._state.bytes // max(1, self._state.objects))
            self._given += 1
            self._ahead += one.size or 0
            yield one

    # --- results --------------------------------------------------------------------------------------------------

    def _take(self, one: Audited | None) -> None:
        """Record the result of an object."""
        if one is not None:
            self._record(*one)
        self._report_listing()

    def _record(self, known: KnownObject, result: Any) -> None:
        self._ahead -= known.size or 0
        if result is None:
            self._report_vanished(known)
            return
        if self._store.layout is None and self._store.kind == "ocfl" and result.id is not None:
            other = self._state.others_with_id(known, result.id)
            if other is not None:
                what = f"the object at {quoted_path(other)} has the same identifier {quoted(result.id)}"
                self._running.add([problem("duplicate-id", known.path, what, code="E037")])
                result = result._replace(result="duplicate-id" if result.result == "ok" else result.result)
        if result.result == "ok" and known.result not in (None, "ok"):
            self._name("mended", known)
        if result.result == "ok" and None not in (known.digest, result.digest) and known.digest != result.digest:
            self._name("changed", known)
        self._state.record(known, result)

    def _name(self, what: str, known: KnownObject) -> None:
        """Report what has become of an object."""
        self._numbers[what] += 1
        since = "" if known.verified is None else strftime("verified last on %Y-%m-%d (UTC)", gmtime(known.verified))
        words = {"vanished": "the object no longer exists", "changed": "the object has changed"}
        text = f"{words[what]}; {since or 'never verified'}" if what in words else ""
        is_shown = self._store.kind != "ocfl" or cast("OcflRoot", self._store).shows_ids
        self._running.add([problem(f"object-{what}", known.path, text)._replace(id=None if is_shown else known.id)])

    def _report_vanished(self, known: KnownObject) -> None:
        if self._state.remove(known):  # the listing and the check may both miss it
            self._name("vanished", known)

    # --- the listing ----------------------------------------------------------------------------------------------

    def _is_listing(self) -> bool:
        return self._listing is not None

    def _report_listing(self) -> None:
        """Report what the listing has found."""
        call = self._listing
        while True:
            is_done = call is None or call.done()
            try:
                found = self._found.get_nowait()
            except Empty:
                if call is not None and is_done:
                    self._listing = None
                    call.result()
                    self._state.complete_listing()
                return
            if isinstance(found, KnownObject):
                self._report_vanished(found)
            elif found.kind == "object-new":
                self._numbers["new"] += 1
                self._running.add([found])
            elif self._state.is_first(f"{found.kind} {found.path} {found.message}"):
                self._running.add([found])

    def _list(self) -> None:
        """Add all objects of the store to the state; runs in a thread."""
        group: list[_Found] = []
        since = monotonic()
        unreadable: set[bytes] = set()

        def add() -> None:
            nonlocal since
            for path in self._state.add(group):
                if self._is_new_named:
                    self._put(problem("object-new", path))
            group.clear()
            since = monotonic()

        with store_errors(self._store.root):
            for found in walked(self._store, self.ignore):
                require_use()
                if isinstance(found, Problem):
                    self._put(found)
                    if found.kind == "unreadable":
                        unreadable.add(encode_fs(found.path))
                    continue
                path, inside, problems, identifier, _proper = found
                for one in problems:
                    if one.kind == "duplicate-id":  # which a look at the object alone does not show
                        self._put(one)
                group.append((path, inside, identifier))
                if len(group) >= AT_ONCE or monotonic() >= since + ADD_EVERY:
                    add()
            add()
            for known in self._state.unseen():
                require_use()
                if not _is_below(known.path, unreadable) and not self._exists(known):
                    self._put(known)

    def _put(self, found: Problem | KnownObject) -> None:
        """Let the run report something; wait while it is busy."""
        while True:
            require_use()
            try:
                self._found.put(found, timeout=PAUSE)
                return
            except Full:
                continue

    def _size(self, file: bytes) -> int:
        """Return the size of a file of a storage root on a disk; 0 in object storage, where few are read ahead."""
        if cast("OcflRoot", self._store).bucket is not None:
            return 0
        try:
            return os.lstat(os.path.join(os.fsencode(self._store.root), file)).st_size
        except OSError:
            return 0

    def _exists(self, known: KnownObject) -> bool:
        """Return whether an object exists, or cannot be read."""
        try:
            if not isinstance(self._store, WalkedStore):
                return cast("OcflRoot", self._store).storage.exists(known.path)
            return bool(look_at(self._store.walk.with_options(self.ignore), known))
        except OSError:
            return True

    # --- the summary ----------------------------------------------------------------------------------------------

    def _summarized(self, report: Report) -> AuditReport:
        state = self._state
        state.commit()
        coverage = state.coverage(self._before)
        seconds = monotonic() - self._begin
        left, runs, complete = coverage.objects - coverage.verified, None, None
        if not left:
            runs = 0
        elif last := state.last_run():
            objects, size = last
            runs = ceil(coverage.bytes_left / size if size else left / objects) or 1
            every = state.every()
            complete = None if every is None else time() + runs * every
        is_listed = state.listed is not None
        counts = {**report.counts, **self._numbers}
        if not is_listed:
            runs = complete = None
        damaged = [one.id or decode_fs(one.path) for one in state.damaged(DAMAGED)]
        more = (coverage, is_listed, seconds, runs, complete, damaged)
        return AuditReport(report.problems, counts, [], state.round, *more)


def _is_below(path: bytes, directories: set[bytes]) -> bool:
    """Return whether a path is below one of these directories."""
    names = path.split(b"/")
    return bool(directories) and any(b"/".join(names[:number]) in directories for number in range(len(names)))
