"""Threads that copy files, several at a time in lanes, with digests.

Each file is read once, in blocks, which are written and hashed before the next. Copies that run at the same time can
share the threads: lanes are as fast as they are full, and an object of a store seldom fills them.
"""

from __future__ import annotations

import errno
import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count, islice
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar

from pressmark import _kernels
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.hasher import CHANGED, OpenOptions, changes, error_outcome, examine, transfer_content
from pressmark.fixity.outcomes import PROGRESS_EVERY, Content, Outcome, not_written
from pressmark.fixity.scheduling import Plan
from pressmark.fs.beneath import below_root, root_directory
from pressmark.fs.file_errors import kind_of_mode, message_of
from pressmark.progress_event import Progress

__all__ = ["BATCH", "Cancelled", "CopyPool", "open_pool", "shared_pools"]

# Files in flight or waiting for those before them, and files queued together.
LOOK_AHEAD, BATCH = 256, 64

Key = TypeVar("Key")
Task = tuple[Any, bytes | Content, bytes]  # key, source, target
CopyOne = Callable[..., Outcome]  # source, target, names, options, and a function called with the size of each block


class Cancelled(Exception):
    """The run has ended."""


class _Run:
    """One caller's files.

    :ivar finished: slots whose files are done
    :ivar failure: the error that ends the run
    :ivar stop: not zero once the run has ended; the kernels read it
    """

    def __init__(self) -> None:
        self.finished: SimpleQueue[_Slot] = SimpleQueue()
        self.failure: BaseException | None = None
        self.stop = bytearray(1)

    def end(self, failure: BaseException | None = None) -> None:
        """End the copies that have no result yet."""
        self.failure = self.failure or failure
        self.stop[0] = 1

    def forget_finished(self) -> None:
        """Discard the slots whose outcomes the caller looks at next."""
        while not self.finished.empty():
            self.finished.get()

    def wait(self, slot: _Slot) -> None:
        """Wait a moment for the outcome of a file."""
        if slot.outcome is None:
            with suppress(Empty):
                self.finished.get(timeout=PROGRESS_EVERY)


class _Slot:
    """A file in the queue, and finally its outcome; cancelled files have one, too."""

    __slots__ = ("key", "outcome", "run", "size", "source", "target")

    def __init__(self, task: Task, run: _Run) -> None:
        self.key, source, self.target = task
        self.source = b"" if isinstance(source, Content) else source
        self.run = run
        self.size = 0
        self.outcome: Outcome | None = None


class CopyPool:
    """Threads that copy files for any number of callers.

    :param names: official names of the algorithms; none to copy without digests
    :param options: for opening the sources
    :param threads: number of threads
    :param copy_one: copies a file that lanes do not take
    """

    def __init__(self, names: Sequence[str], options: OpenOptions, threads: int, copy_one: CopyOne) -> None:
        self._names = tuple(names)
        self._options = options
        self._limit = threads
        self._copy_one = copy_one
        self._plan = Plan(names, threads)
        serials = [(name, ALGORITHMS[name].make) for name in self._plan.serials]
        self._engine = _kernels.active.Engine(
            self._names,
            self._plan.lanes,
            serials,
            (),
            options.flags,
            False,
            root_directory() if options.real else None,
            copying=True,
        )
        self._lock = threading.Lock()  # for the threads and the counts
        self._threads: list[threading.Thread] = []
        self._tickets = count()
        self._slots: dict[int, _Slot] = {}  # by ticket, until the file is done
        self._queued_bytes = 0
        self._serial_bytes = 0
        self._failure: BaseException | None = None

    def copy(
        self, tasks: Iterator[tuple[Key, bytes | Content, bytes]], report: Callable[[Progress], object]
    ) -> Generator[tuple[Key, Outcome], None, None]:
        """Copy files, and yield their keys and outcomes in order.

        When the generator ends or is closed, no thread works for it any more.
        """
        run = _Run()
        window: deque[_Slot] = deque()
        files = failed = 0
        more = True
        next_progress = monotonic() + PROGRESS_EVERY
        try:
            while True:
                run.forget_finished()
                while more and len(window) <= LOOK_AHEAD - BATCH:
                    batch = list(islice(tasks, BATCH))
                    more = len(batch) == BATCH
                    window.extend(self._submit(batch, run))
                while window and window[0].outcome is not None and run.failure is None:
                    slot = window.popleft()
                    assert slot.outcome is not None
                    files += 1
                    failed += not slot.outcome.ok
                    yield slot.key, slot.outcome
                if monotonic() >= next_progress:
                    next_progress = monotonic() + PROGRESS_EVERY
                    report(Progress(items=files, bytes=self._bytes(), failed=failed))
                if run.failure is not None:
                    raise run.failure
                if not (window or more):
                    break
                if window and (len(window) > LOOK_AHEAD - BATCH or not more):
                    run.wait(window[0])
            report(Progress(items=files, bytes=self._bytes(), failed=failed))
        finally:
            run.end()
            for slot in window:
                while slot.outcome is None:
                    run.wait(slot)

    def close(self, join: bool = True) -> None:
        """End all threads.

        :param join: wait for them
        """
        self._engine.close()
        if join:
            for thread in self._threads:
                thread.join()

    # --- the threads of the callers -------------------------------------------------------------------------------

    def _submit(self, batch: Sequence[Task], run: _Run) -> list[_Slot]:
        """Examine the files of ``batch``, and queue those to be copied."""
        slots = []
        queued: list[_Slot] = []
        # An opener keeps directories open, for one thread at a time.
        with self._options.opener() as opener:
            examined = [
                transfer_content(source, self._names, target)
                if isinstance(source, Content)
                else examine(source, self._options, opener)
                for _key, source, target in batch
            ]
        for task, status in zip(batch, examined, strict=True):
            slot = _Slot(task, run)
            slots.append(slot)
            if isinstance(status, Outcome):
                slot.outcome = status
            else:
                slot.size = status.st_size
                queued.append(slot)
        queued.sort(key=lambda slot: slot.size, reverse=True)
        with self._lock:
            if self._failure is not None:
                raise self._failure
            serial = self._plan.serial_files([slot.size for slot in queued], self._queued_bytes) if self._names else 0
            files = []
            for index, slot in enumerate(queued):
                ticket = next(self._tickets)
                self._slots[ticket] = slot
                self._queued_bytes += slot.size
                source, target = slot.source, slot.target
                in_lanes = index >= serial and b"\0" not in target
                if in_lanes and self._options.real:
                    source = below_root(source)
                files.append((ticket, slot.size, source if in_lanes else None, target, run.stop))
            self._engine.submit(files)
            if files and not self._threads:
                self._start(self._collect)
            # Without a file, no worker either: the first thread is the one that collects.
            while files and len(self._threads) <= min(self._limit, len(self._slots)):
                self._start(self._work)
        return slots

    def _start(self, function: Callable[[], None]) -> None:
        thread = threading.Thread(target=function, name="pressmark-copy", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _bytes(self) -> int:
        return self._serial_bytes + self._engine.read_bytes()

    # --- the threads of the pool ----------------------------------------------------------------------------------

    def _collect(self) -> None:
        """Pass outcomes to the callers until the pool is closed."""
        while not self._engine.closed():
            for ticket, *result in self._engine.collect(PROGRESS_EVERY):
                if ticket < 0:  # out of memory, or a bug
                    with self._lock:
                        self._failure = result[0]
                    for other in list(self._slots):
                        self._settle(other, result[0])
                else:
                    self._settle(ticket, result[0] if len(result) == 1 else self._outcome(ticket, *result))

    def _settle(self, ticket: int, outcome: Outcome | BaseException) -> None:
        slot = self._slots.pop(ticket, None)
        if slot is None:  # after a failure
            return
        with self._lock:
            self._queued_bytes -= slot.size
        if isinstance(outcome, BaseException):
            slot.run.end(outcome)
            outcome = error_outcome(slot.source, errno.ECANCELED, self._options)
        slot.outcome = outcome
        slot.run.finished.put(slot)

    def _outcome(self, ticket: int, *result: Any) -> Outcome:
        """Return the outcome of a file copied in lanes."""
        source, target = self._slots[ticket].source, self._slots[ticket].target
        if len(result) == 5:
            return Outcome(source, *result[:4])
        if len(result) == 2:
            return not_written(target, OSError(result[0], os.strerror(result[0])))
        size, mtime_ns, inode, error, mode, size_after, mtime_ns_after, total, _there = result
        if error:
            return error_outcome(source, error, self._options)
        kind = kind_of_mode(mode)
        if kind is not None:
            return Outcome(source, None, size, mtime_ns, inode, kind, message_of(kind))
        reason = changes(size, mtime_ns, size_after, mtime_ns_after, total, 0)
        # Files in /proc have content but size 0: they cannot be copied reliably.
        reason = reason or f"{total} bytes read from a file of size {size}"
        return Outcome(source, None, size, mtime_ns, inode, CHANGED, reason)

    def _work(self) -> None:
        """Copy files until the pool is closed; the engine copies files in lanes itself, without the GIL."""
        engine = self._engine
        try:
            while (ticket := engine.work(True)) is not None:
                engine.finish(ticket, self._serial(self._slots[ticket]))
        except BaseException as error:
            engine.finish(-1, error)

    def _serial(self, slot: _Slot) -> Outcome | Exception:
        def count_bytes(size: int) -> None:
            if slot.run.stop[0]:
                raise Cancelled
            with self._lock:
                self._serial_bytes += size

        try:
            count_bytes(0)
            return self._copy_one(slot.source, slot.target, self._names, self._options, count_bytes)
        except Exception as error:
            return error


# --- shared pools -----------------------------------------------------------------------------------------------------

_lock = threading.Lock()
_sharing = 0
_pools: dict[tuple[tuple[str, ...], int, bool], CopyPool] = {}


@contextmanager
def shared_pools() -> Iterator[None]:
    """Within this statement, all copies of this process share their threads and lanes."""
    global _sharing
    with _lock:
        _sharing += 1
    try:
        yield
    finally:
        with _lock:
            _sharing -= 1
            ended = [] if _sharing else list(_pools.values())
            if not _sharing:
                _pools.clear()
        for pool in ended:
            pool.close()


@contextmanager
def open_pool(names: Sequence[str], options: OpenOptions, threads: int, copy_one: CopyOne) -> Iterator[CopyPool]:
    """Yield the shared pool for these algorithms, or a separate pool.

    When a generator is closed, the threads of the separate pool are not joined: see
    :class:`~pressmark.threads.Threads`.
    """
    key = (tuple(names), options.flags, options.real)
    with _lock:
        pool = _pools.get(key) if _sharing else None
        if _sharing and pool is None:
            pool = _pools[key] = CopyPool(names, options, threads, copy_one)
    if pool is not None:
        yield pool
        return
    pool = CopyPool(names, options, threads, copy_one)
    try:
        yield pool
    except GeneratorExit:
        pool.close(join=False)
        raise
    except BaseException:
        pool.close()
        raise
    pool.close()
