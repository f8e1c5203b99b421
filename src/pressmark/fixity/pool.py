"""Digests of many files: on several threads, in the order of the input, in constant memory.

A few small files are hashed by the iterating thread, because starting another one takes longer.

The iterating thread examines a bounded number of files ahead and queues them, the largest first, so that a run does not
end waiting for one large file. Workers take files from the queue; outcomes wait until all before them are yielded.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING

from pressmark import _kernels
from pressmark.fixity.algorithms import ALGORITHMS, algorithm_names
from pressmark.fixity.hasher import CHANGED, READ_SIZE, OpenOptions, changes, error_outcome, examine, hash_path
from pressmark.fixity.outcomes import PROGRESS_EVERY, Event, Finished, Outcome, Progress
from pressmark.fixity.scheduling import SMALL, Plan
from pressmark.fs.beneath import Directory, Opener
from pressmark.fs.file_errors import message_of
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger

__all__ = ["hash_files"]

# Enough small files to fill the lanes of many threads; a waiting outcome takes about a kilobyte.
LOOK_AHEAD = 4096  # files
BATCH = 512  # files examined and queued together
# Up to this amount of work, no thread is started: in bytes, where opening a file counts as this many, because it may be
# on a network.
LITTLE, OPENING = 1 << 18, 1 << 14
Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


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
    """Hash files, each read once, and yield their outcomes lazily, in the order of ``paths``.

    A file that fails is an outcome without digests and does not stop the others. Memory is constant: a few thousand
    paths are read ahead, and files in blocks.

    :param paths: the files; an :class:`Outcome` among them, for example from :func:`~pressmark.fixity.tree.walk`, is
        yielded in its position
    :param algorithms: names accepted by :func:`~pressmark.fixity.algorithms.algorithm_name`
    :param threads: number of threads; :data:`None` or 0 for one per core
    :param on_event: called with :class:`Finished` and :class:`Progress` events in the iterating thread
    :param links: ``"follow"`` or ``"refuse"`` symbolic links
    :param special_files: read named pipes and devices to their end
    :param read: ``"parallel"``, or ``"sequential"``: one file at a time, in input order, for spinning disks
    :param ledger: an open ledger: unchanged files in it are not read again, and digests are added to it
    :param beneath: a directory from :func:`~pressmark.fs.beneath.open_directory` that paths are relative to. No file
        outside of it is opened, even if directories are replaced meanwhile (not guaranteed on Windows), and no symbolic
        link is followed: a link, or a path through one, is a failure of kind ``link``. Absolute paths, paths with
        ``..`` and paths that do not end with a file name are failures of kind ``bad-name``
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
        raise ValueError("ledger was created for other algorithms")
    options = OpenOptions(links == "follow", special_files, beneath)
    run = _Run(names, cores, options, read == "sequential", on_event, ledger)
    return run.outcomes(iter(paths))


class _Slot:
    """A file in the queue: its path, its size and finally its outcome."""

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
        self._slots: dict[int, _Slot] = {}  # by ticket, until a worker is done
        self._tickets = 0
        self._queued_bytes = 0
        self._serial_bytes = 0
        self._serial_lock = threading.Lock()
        self._files = self._failed = 0
        self._next_progress = monotonic() + PROGRESS_EVERY
        serials = [(name, ALGORITHMS[name].make) for name in self._plan.serials]
        # The kernels cannot open special files, or files beneath a directory named by path.
        self._lanes_too = not options.special_files and not isinstance(options.beneath, str | bytes)
        beneath = options.beneath if isinstance(options.beneath, int) else None
        self._engine = _kernels.active.Engine(
            self._names, self._plan.lanes, serials, options.flags, sequential, beneath
        )
        self._opener = options.opener()

    def outcomes(self, paths: Iterator[Path | Outcome]) -> Iterator[Outcome]:
        """Yield the outcomes in order. No thread is left running at the end."""
        workers: list[threading.Thread] = []
        window: deque[_Slot] = deque()
        more = True
        try:
            while True:
                # Refill the queue while it is half full, so that workers never wait.
                while more and len(self._slots) < LOOK_AHEAD // 2 and len(window) <= LOOK_AHEAD - BATCH:
                    batch = list(islice(paths, BATCH))
                    more = len(batch) == BATCH
                    window.extend(self._submit(batch))
                    if not (more or workers or self._options.special_files) and self._is_little():
                        self._work(wait=False)
                        break
                    while len(workers) < min(self._threads, len(self._slots)):
                        workers.append(self._start())
                while window and window[0].outcome is not None:
                    yield window.popleft().outcome  # type: ignore[misc]
                if window:
                    self._collect()
                elif not more:
                    break
            self._report_progress()
        finally:
            self._engine.close()
            self._opener.close()
            for worker in workers:
                # Only the reader of a named pipe may block forever.
                worker.join(1.0 if self._options.special_files else None)

    def _start(self) -> threading.Thread:
        worker = threading.Thread(target=self._work, name="pressmark-fixity", daemon=True)
        worker.start()
        return worker

    # --- the thread that iterates ---------------------------------------------------------------------------------

    def _submit(self, batch: Sequence[Path | Outcome]) -> list[_Slot]:
        """Examine the files of ``batch``, and queue those to be read."""
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
        """Return the queue entry of a file for the engine."""
        ticket = self._tickets
        self._tickets += 1
        self._slots[ticket] = slot
        self._queued_bytes += slot.size
        return ticket, priority, os.fsencode(slot.path) if in_lanes and self._lanes_too else None

    def _collect(self) -> None:
        """Wait a moment for outcomes, and store them in their slots."""
        found: list[tuple[_Slot, Outcome]] = []
        for result in self._engine.collect(PROGRESS_EVERY):
            if result[0] < 0:
                raise result[1]
            slot = self._slots.pop(result[0])
            self._queued_bytes -= slot.size
            found.append((slot, result[1] if len(result) == 2 else self._outcome_of_lanes(slot, *result[1:])))
        # Before the callbacks, which may end the run: finished files must not be read again.
        if self._ledger is not None and any(outcome.ok for _slot, outcome in found):
            self._ledger.append(outcome for _slot, outcome in found if outcome.ok)
        for slot, outcome in found:
            self._settle(slot, outcome)
        if monotonic() >= self._next_progress:
            self._report_progress()

    def _outcome_of_lanes(
        self,
        slot: _Slot,
        digests: dict[str, str] | None,
        size: int,
        mtime_ns: int,
        inode: int,
        failed: tuple[int, int, int, int, int, int] | None,
    ) -> Outcome:
        """Return the outcome of a file hashed in lanes."""
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

    def _report_progress(self) -> None:
        if self._on_event is not None:
            self._next_progress = monotonic() + PROGRESS_EVERY
            self._on_event(Progress(self._files, self._serial_bytes + self._engine.read_bytes(), self._failed))

    # --- the workers ----------------------------------------------------------------------------------------------

    def _is_little(self) -> bool:
        """Return whether the queued files are done before a thread has started."""
        return self._queued_bytes + len(self._slots) * OPENING <= LITTLE

    def _work(self, wait: bool = True) -> None:
        """Hash files until the engine is closed; the engine hashes files in lanes itself, without the GIL.

        :param wait: wait for more files when the queue is empty
        """
        engine = self._engine
        try:
            with self._options.opener() as opener:
                while (ticket := engine.work(wait)) is not None:
                    engine.finish(ticket, self._hash(self._slots[ticket], opener))
        except BaseException as error:
            # Out of memory, or a bug: it ends the run instead of failing a file.
            engine.finish(-1, error)

    def _hash(self, slot: _Slot, opener: Opener) -> Outcome:
        engine = self._engine
        # Idle threads help with this file.
        threads = self._threads if self._sequential else max(1, self._threads // max(1, len(self._slots)))
        engine.lock_reading()
        try:
            return hash_path(slot.path, self._names, self._options, opener, threads, self._count, engine.closed)
        finally:
            engine.unlock_reading()

    def _count(self, size: int) -> None:
        with self._serial_lock:
            self._serial_bytes += size
