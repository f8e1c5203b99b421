"""Many files at once: threads that read and compute, results in the order of the input, memory that does not grow.

The thread that iterates looks ahead by a bounded number of files, examines them, and queues them with the largest
first, so that the last moments of a run are not spent waiting for one large file. Workers take them from the queue;
results wait until everything before them is given.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from pressmark import _kernels
from pressmark.fixity.algorithms import ALGORITHMS, algorithm_names
from pressmark.fixity.hasher import CHANGED, READ_SIZE, OpenOptions, changes, error_outcome, examine, hash_path
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.scheduling import SMALL, Plan
from pressmark.fs.beneath import Directory, Opener
from pressmark.fs.file_errors import message_of
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger

__all__ = ["Finished", "Progress", "hash_files"]

# How far the run looks ahead. Enough small files to keep every lane of many threads busy; results that wait take about
# a kilobyte each.
LOOK_AHEAD = 4096  # files
BATCH = 512  # files that are examined and queued together
PROGRESS_EVERY = 0.1  # seconds
Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class Finished(NamedTuple):
    """An event: a file is done, given at once and not in the order of the input.

    :ivar outcome: what became of it
    """

    outcome: Outcome


class Progress(NamedTuple):
    """An event: so much is done, given a few times a second.

    :ivar files: files that are done, failures and those from the ledger included
    :ivar bytes: bytes that were read, those of unfinished files included
    :ivar failed: files that are done and failed
    """

    files: int
    bytes: int
    failed: int


Event = Finished | Progress


def hash_files(
    paths: Iterable[Path | Outcome],
    algorithms: Iterable[str] | str = ("sha512",),
    threads: int | None = None,
    on_event: Callable[[Event], object] | None = None,
    *,
    links: str = "follow",
    special_files: bool = False,
    read: str = "parallel",
    ledger: Ledger | None = None,
    beneath: Directory | None = None,
) -> Iterator[Outcome]:
    """Hash many files, each read once, and give their outcomes lazily, in the order of ``paths``.

    A file that fails is an outcome without digests and never stops the others. Memory is constant: the iterable is read
    a few thousand paths ahead, and files in pieces.

    :param paths: files; an :class:`Outcome` among them, such as :func:`~pressmark.fixity.tree.walk` gives for what
        cannot be hashed, is passed on in its place
    :param algorithms: names as :func:`~pressmark.fixity.algorithms.algorithm_name` knows them
    :param threads: how many threads read and compute; :data:`None` or 0 for as many as there are cores
    :param on_event: called with :class:`Finished` and :class:`Progress` in the thread that iterates
    :param links: ``"follow"`` them or ``"refuse"`` them
    :param special_files: read named pipes and devices as well, however long that takes
    :param read: ``"parallel"``, or ``"sequential"``: in input order and one file at a time, for disks with heads
    :param ledger: an open ledger: what it holds is not read again, what is read is written to it
    :param beneath: a directory, as :func:`~pressmark.fs.beneath.open_directory` gives it: paths are relative to it,
        and nothing outside of it is ever opened, whoever exchanges what meanwhile (on Windows: unless somebody is
        faster than a look and an open). No symbolic link is followed then, whatever ``links`` says: a file that is one
        or is behind one is a failure of kind ``link``. Absolute paths, such with a step ``..`` and such without a name
        at their end are failures of kind ``bad-name``
    :raises AlgorithmError: an algorithm is unknown or not available
    :raises ValueError: another argument is wrong
    """
    names = algorithm_names(algorithms)
    if links not in ("follow", "refuse"):
        raise ValueError(f"links={links!r}: expected follow or refuse")
    if read not in ("parallel", "sequential"):
        raise ValueError(f"read={read!r}: expected parallel or sequential")
    cores = resolve_threads(threads)
    if ledger is not None and ledger.algorithms != names:
        raise ValueError("the ledger is for other algorithms")
    options = OpenOptions(links == "follow", special_files, beneath)
    run = _Run(names, cores, options, read == "sequential", on_event, ledger)
    return run.outcomes(iter(paths))


class _Slot:
    """A file on its way: its path, what was found when it was examined, and at last its outcome."""

    __slots__ = ("outcome", "path", "size")

    def __init__(self, path: str | bytes) -> None:
        self.path = path
        self.size = 0
        self.outcome: Outcome | None = None


class _Run:
    def __init__(
        self,
        names: Sequence[str],
        threads: int,
        options: OpenOptions,
        sequential: bool,
        on_event: Callable[[Event], object] | None,
        ledger: Ledger | None,
    ) -> None:
        self._names = tuple(names)
        self._options = options
        self._threads = threads
        self._sequential = sequential
        self._on_event = on_event
        self._ledger = ledger
        self._plan = Plan(names, threads)
        self._slots: dict[int, _Slot] = {}  # by ticket, while a worker has them
        self._tickets = 0
        self._queued_bytes = 0
        self._serial_bytes = 0
        self._serial_lock = threading.Lock()
        self._files = self._failed = 0
        self._next_progress = monotonic() + PROGRESS_EVERY
        serials = [(name, ALGORITHMS[name].make) for name in self._plan.serials]
        # Paths go to lanes only as the kernels can follow them.
        self._lanes_too = not options.special_files and not isinstance(options.beneath, str | bytes)
        beneath = options.beneath if isinstance(options.beneath, int) else None
        self._engine = _kernels.active.Engine(
            self._names, self._plan.lanes, serials, options.flags, sequential, beneath
        )
        self._opener = options.opener()

    def outcomes(self, paths: Iterator[Path | Outcome]) -> Iterator[Outcome]:
        """Run, and give the outcomes in order. However this ends, no thread is left behind."""
        workers: list[threading.Thread] = []
        window: deque[_Slot] = deque()
        more = True
        try:
            while True:
                # Before half of what the workers have is gone, so that they never wait for the next batch.
                while more and len(self._slots) < LOOK_AHEAD // 2 and len(window) <= LOOK_AHEAD - BATCH:
                    batch = list(islice(paths, BATCH))
                    more = len(batch) == BATCH
                    window.extend(self._submit(batch))
                    while len(workers) < min(self._threads, len(self._slots)):
                        workers.append(self._start())
                while window and window[0].outcome is not None:
                    yield window.popleft().outcome  # type: ignore[misc]
                if window:
                    self._collect()
                elif not more:
                    break
            self._tell_progress()
        finally:
            self._engine.close()
            self._opener.close()
            for worker in workers:
                # A named pipe that was asked for may keep its reader for ever; everything else looks up in a moment.
                worker.join(1.0 if self._options.special_files else None)

    def _start(self) -> threading.Thread:
        worker = threading.Thread(target=self._work, name="pressmark-fixity", daemon=True)
        worker.start()
        return worker

    # --- the thread that iterates ---------------------------------------------------------------------------------

    def _submit(self, batch: Sequence[Path | Outcome]) -> list[_Slot]:
        """Examine the files of ``batch`` and queue those that are to be read."""
        slots = []
        queued: list[_Slot] = []
        for given in batch:
            if isinstance(given, Outcome):
                slot = _Slot(given.path)
                slots.append(slot)
                self._settle(slot, given)
                continue
            slot = _Slot(os.fspath(given))
            slots.append(slot)
            status = examine(slot.path, self._options, self._opener)
            if isinstance(status, Outcome):
                self._settle(slot, status)
                continue
            if self._ledger is not None:
                digests = self._ledger.find(slot.path, status)
                if digests is not None:
                    known = Outcome(slot.path, digests, status.st_size, status.st_mtime_ns, status.st_ino)
                    self._settle(slot, known)
                    continue
            # What is no regular file has a size that means nothing, and lanes do not wait for it.
            slot.size = status.st_size
            queued.append(slot)
        self._queue(queued)
        return slots

    def _queue(self, slots: list[_Slot]) -> None:
        if self._sequential:
            most = READ_SIZE if self._plan.lanes else SMALL
            self._engine.submit([self._ticket(slot, -self._tickets, slot.size <= most) for slot in slots])
            return
        order = sorted(slots, key=lambda slot: slot.size, reverse=True)
        serial = self._plan.serial_files([slot.size for slot in order], self._queued_bytes)
        self._engine.submit([self._ticket(slot, slot.size, index >= serial) for index, slot in enumerate(order)])

    def _ticket(self, slot: _Slot, priority: int, in_lanes: bool) -> tuple[int, int, bytes | None]:
        """Return what the engine is told of a file."""
        ticket = self._tickets
        self._tickets += 1
        self._slots[ticket] = slot
        self._queued_bytes += slot.size
        return ticket, priority, os.fsencode(slot.path) if in_lanes and self._lanes_too else None

    def _collect(self) -> None:
        """Wait for results, for a moment at most, and give them to their slots."""
        found: list[tuple[_Slot, Outcome]] = []
        for result in self._engine.collect(PROGRESS_EVERY):
            if result[0] < 0:
                raise result[1]
            slot = self._slots.pop(result[0])
            self._queued_bytes -= slot.size
            found.append((slot, result[1] if len(result) == 2 else self._outcome_of_lanes(slot, *result[1:])))
        # Before anybody is told: who is told may end the run, and what is finished must not be done again.
        if self._ledger is not None and any(outcome.ok for _slot, outcome in found):
            self._ledger.append(outcome for _slot, outcome in found if outcome.ok)
        for slot, outcome in found:
            self._settle(slot, outcome)
        if monotonic() >= self._next_progress:
            self._tell_progress()

    def _outcome_of_lanes(
        self,
        slot: _Slot,
        digests: dict[str, str] | None,
        size: int,
        mtime_ns: int,
        inode: int,
        failed: tuple[int, int, int, int, int, int] | None,
    ) -> Outcome:
        """Return the outcome of a file that the lanes had."""
        if failed is None:
            return Outcome(slot.path, digests, size, mtime_ns, inode)
        error, mode, size_after, mtime_ns_after, total, there = failed
        if error:
            return error_outcome(slot.path, error, self._options)
        kind = self._options.refuses(mode)
        if kind is not None:
            return Outcome(slot.path, None, size, mtime_ns, inode, kind, message_of(kind))
        reason = changes(size, mtime_ns, size_after, mtime_ns_after, total, there)
        return Outcome(slot.path, None, size, mtime_ns, inode, CHANGED, reason or "")

    def _settle(self, slot: _Slot, outcome: Outcome) -> None:
        slot.outcome = outcome
        self._files += 1
        self._failed += not outcome.ok
        if self._on_event is not None:
            self._on_event(Finished(outcome))

    def _tell_progress(self) -> None:
        if self._on_event is not None:
            self._next_progress = monotonic() + PROGRESS_EVERY
            self._on_event(Progress(self._files, self._serial_bytes + self._engine.read_bytes(), self._failed))

    # --- the workers ----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Take files until the engine is closed; those in lanes are done inside of it, without the GIL."""
        engine = self._engine
        try:
            with self._options.opener() as opener:
                while (ticket := engine.work()) is not None:
                    engine.finish(ticket, self._hash(self._slots[ticket], opener))
        except BaseException as error:
            # Memory is short, or a bug of ours: it must end the run, not look like a file that failed.
            engine.finish(-1, error)

    def _hash(self, slot: _Slot, opener: Opener) -> Outcome:
        engine = self._engine
        # Threads that have no file of their own help with this one.
        threads = self._threads if self._sequential else max(1, self._threads // max(1, len(self._slots)))
        engine.lock_reading()
        try:
            return hash_path(slot.path, self._names, self._options, opener, threads, self._count, engine.closed)
        finally:
            engine.unlock_reading()

    def _count(self, size: int) -> None:
        with self._serial_lock:
            self._serial_bytes += size
