"""The scheduler of a run: submits a few chunks per worker at a time until every chunk has a receipt."""

from __future__ import annotations

import logging
import queue
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, Protocol, TypedDict, Unpack

from pressmark.errors import JobError
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import FailedChunk, Receipt, Summary
from pressmark.jobs.visibility import Place
from pressmark.jobs.workdir import REPORT_EVERY, Job, OnProgress, WorkFolder
from pressmark.jobs.worker import run_chunk

__all__ = ["ExecutorPool", "OnReceipt", "Pool", "RunOptions", "Stop", "run_pool"]

POLL = 0.2  # seconds between checks whether to stop
PAUSE = 0.25  # seconds before the second attempt at a chunk; four times as long before each further one

_LOG = logging.getLogger(__name__)
# Without a handler, Python would print warnings to stderr.
logging.getLogger("pressmark").addHandler(logging.NullHandler())

#: Called with the receipt of each finished chunk.
OnReceipt = Callable[[Receipt], object]
#: Asked between chunks: :data:`True` ends the run.
Stop = Callable[[], bool]


class RunOptions(TypedDict, total=False):
    """The options of :func:`run_local`, :func:`run_executor` and :func:`run_dask`, all optional.

    :ivar window: chunks submitted at a time, per worker (default 4)
    :ivar retries: number of retries of a chunk whose worker was lost or whose error may be temporary (default 2)
    :ivar on_receipt: called with each receipt, in the calling thread
    :ivar on_progress: called about twice per second with the number and total size of items that the running chunks
        have processed
    :ivar max_errors: stop when more items or chunks than this have failed in this call
    :ivar stop: called several times a second; no chunk is submitted after it has returned :data:`True`
    """

    window: int
    retries: int
    on_receipt: OnReceipt | None
    on_progress: OnProgress | None
    max_errors: int | None
    stop: Stop | None


class Pool(Protocol):
    """The workers of a run.

    :ivar workers: number of workers
    """

    workers: int

    def submit(self, job: Job, chunk: Chunk, place: Place) -> Any:
        """Submit a chunk and return its future.

        :raises BrokenExecutor: the pool accepts no more work
        """

    def is_lost(self, error: BaseException) -> bool:
        """Return whether a future failed with ``error`` because its worker died or was lost."""

    def renew(self) -> None:
        """Replace the workers after :meth:`submit` found the pool broken; no chunk is in flight.

        :raises JobError: they cannot be replaced
        """

    def watch(self) -> None:
        """Check that the workers can be reached.

        :raises JobError: they cannot be reached
        """

    def withdraw(self, futures: list[Any]) -> None:
        """Cancel the futures that have not started, if the pool can determine which."""

    def interrupt(self) -> bool:
        """End the chunks in flight at once; return :data:`False` if the pool cannot."""


class ExecutorPool:
    """The workers of a :class:`concurrent.futures.Executor`, which cannot be replaced."""

    def __init__(self, executor: Executor, workers: int) -> None:
        self.workers = workers
        self._executor = executor

    def submit(self, job: Job, chunk: Chunk, place: Place) -> Any:
        return self._executor.submit(run_chunk, job, chunk, place)

    def is_lost(self, error: BaseException) -> bool:
        return isinstance(error, (BrokenExecutor, CancelledError))

    def renew(self) -> None:
        raise JobError("executor", "the executor is broken; run again with a new one (finished chunks are kept)")

    def watch(self) -> None:
        """Do nothing: the executor notices a worker that dies."""

    def withdraw(self, futures: list[Any]) -> None:
        for future in futures:
            future.cancel()

    def interrupt(self) -> bool:
        return False

    def close(self) -> None:
        """Shut the executor down."""
        self._executor.shutdown(cancel_futures=True)


def run_pool(job: Job, work: WorkFolder, pool: Pool, **options: Unpack[RunOptions]) -> Summary:
    """Run the chunks that have no receipt with the workers of ``pool``.

    :raises JobError: the run cannot start or continue, or another scheduler is running it
    :raises KeyboardInterrupt: at once if the pool can end the chunks in flight, or else once they have ended; a second
        one is raised at once
    :raises ValueError: an option is out of range
    """
    scheduler = _Scheduler(job, work, pool, **options)
    work.check(job)
    with work.held():
        work.sweep()
        _LOG.info("%s: started, workers: %d", work.path, pool.workers)
        scheduler.run()
        if scheduler.stopped is None and not scheduler.failed:
            work.sweep_outputs()
            work.sweep()
        summary = work.summary()._replace(failed=tuple(scheduler.failed), stopped=scheduler.stopped)
        _LOG.info("%s: %d of %d chunks done, %d errors", work.path, summary.done, summary.chunks, summary.errors)
        return summary


@dataclass
class _Attempt:
    """A chunk in flight or waiting for another attempt.

    :ivar tries: number of failed attempts
    :ivar beside: number of losses while other chunks were in flight
    :ivar lost: number of losses while no other chunk was in flight
    :ivar due: earliest time of the next attempt
    """

    chunk: Chunk
    tries: int = 0
    beside: int = 0
    lost: int = 0
    due: float = 0.0


class _Scheduler:
    def __init__(
        self,
        job: Job,
        work: WorkFolder,
        pool: Pool,
        window: int = 4,
        retries: int = 2,
        on_receipt: OnReceipt | None = None,
        on_progress: OnProgress | None = None,
        max_errors: int | None = None,
        stop: Stop | None = None,
    ) -> None:
        for name, value, least in (("workers", pool.workers, 1), ("window", window, 1), ("retries", retries, 0)):
            if value < least:
                raise ValueError(f"{name}={value}: expected {least} or more")
        self.failed: list[FailedChunk] = []
        self.stopped: str | None = None
        self._job = job
        self._work = work
        self._pool = pool
        self._limit = window * pool.workers
        self._retries = retries
        self._on_receipt = on_receipt
        self._on_progress = on_progress
        self._reported = monotonic()
        self._max_errors = max_errors
        self._stop = stop
        self._errors = 0
        self._fresh: Iterator[Chunk] = work.remaining()
        self._again: deque[_Attempt] = deque()
        # Chunks that were lost more than once. One of them may kill its worker: running them alone shows which.
        self._suspects: deque[_Attempt] = deque()
        self._alone = False
        self._flying: dict[Any, _Attempt] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._broken = False
        self._fatal: JobError | None = None
        self._interrupted = False

    def run(self) -> None:
        self._place = self._work.place(self._job)
        while True:
            try:
                if not self._step():
                    break
            except KeyboardInterrupt:
                if self._interrupted or self._pool.interrupt():
                    raise
                self._interrupted = True
                self._halt("stop")
        if self._interrupted:
            raise KeyboardInterrupt
        if self._fatal is not None:
            raise self._fatal

    def _step(self) -> bool:
        """Submit as many chunks as fit, collect those that have ended, and return whether work remains."""
        if self.stopped is None:
            if self._stop is not None and self._stop():
                self._halt("stop")
            else:
                self._submit()
        if self._flying:
            self._collect(POLL)
            self._report()
            return True
        if self.stopped is None and self._again:
            # Every remaining chunk waits for the time of its next attempt.
            sleep(POLL / 4)
            return True
        return False

    # --- submit ------------------------------------------------------------------------------------------------------

    def _submit(self) -> None:
        if self._broken:
            if self._flying:
                return
            self._pool.renew()
            self._broken = False
        while len(self._flying) < self._limit and not self._alone:
            attempt = self._next()
            if attempt is None:
                return
            try:
                future = self._pool.submit(self._job, attempt.chunk, self._place)
            except BrokenExecutor:
                # The pool broke between two chunks: this one is not to blame.
                self._again.appendleft(attempt)
                self._alone = False
                self._broken = True
                if not self._flying:
                    self._submit()
                return
            self._flying[future] = attempt
            future.add_done_callback(self._ended.put)

    def _next(self) -> _Attempt | None:
        if self._suspects:
            if self._flying:
                return None
            self._alone = True
            return self._suspects.popleft()
        now = monotonic()
        for _ in range(len(self._again)):
            if self._again[0].due <= now:
                return self._again.popleft()
            self._again.rotate(-1)
        chunk = next(self._fresh, None)
        return None if chunk is None else _Attempt(chunk)

    # --- collect ----------------------------------------------------------------------------------------------------

    def _collect(self, seconds: float) -> None:
        try:
            future = self._ended.get(timeout=seconds)
        except queue.Empty:
            self._watch()
            # An interrupt may have hit between the queue and _flying.
            for future in self._flying:
                if future.done():
                    self._ended.put(future)
            return
        attempt = self._flying.pop(future, None)
        if attempt is None:
            return
        alone, self._alone = self._alone, False
        try:
            outcome: Receipt | FailedChunk = future.result()
        except (Exception, CancelledError) as error:
            self._lose(attempt, error, alone)
            return
        if isinstance(outcome, Receipt):
            self._errors += outcome.errors
            _LOG.debug("%s: chunk %s done, %d items", self._work.path, attempt.chunk.id, outcome.n)
            if self._on_receipt is not None:
                self._on_receipt(outcome)
        elif outcome.fatal:
            self._give_up(JobError(str(self._work.path), outcome.reason))
        elif outcome.retryable and attempt.tries < self._retries:
            attempt.due = monotonic() + PAUSE * 4**attempt.tries
            _LOG.warning("%s: chunk %s: %s; retrying", self._work.path, outcome.chunk, outcome.reason)
            attempt.tries += 1
            self._again.append(attempt)
        else:
            self._fail(outcome)
        if self._max_errors is not None and self._errors > self._max_errors:
            self._halt("max_errors")

    def _report(self) -> None:
        """Report the progress of the chunks in flight."""
        if self._on_progress is None or monotonic() - self._reported < REPORT_EVERY:
            return
        done = [self._work.progress(attempt.chunk.id) for attempt in self._flying.values()]
        self._on_progress(sum(items for items, _ in done), sum(nbytes for _, nbytes in done))
        self._reported = monotonic()

    def _lose(self, attempt: _Attempt, error: BaseException, alone: bool) -> None:
        """Handle a chunk that returned no result."""
        if self.stopped is not None and isinstance(error, CancelledError):
            return  # withdrawn
        self._watch()
        if self._fatal is not None:
            return
        if not self._pool.is_lost(error):
            # Errors of the job are returned as outcomes: the chunk or its result cannot be transferred.
            what = " ".join(f"{type(error).__name__}: {error}".split())
            self._give_up(
                JobError(str(self._work.path), f"chunk {attempt.chunk.id} cannot be sent to a worker ({what})")
            )
            return
        self._broken = self._broken or isinstance(error, BrokenExecutor)
        _LOG.warning("%s: chunk %s: its worker died or was lost", self._work.path, attempt.chunk.id)
        if not alone:
            # When one worker dies, the pool may lose the chunks of all: most of them are not to blame.
            attempt.beside += 1
            (self._again if attempt.beside == 1 else self._suspects).append(attempt)
            return
        attempt.lost += 1
        if attempt.lost >= max(1, self._retries):
            times = attempt.beside + attempt.lost
            reason = f"worker died or was lost {times} times; check the memory of that machine"
            self._fail(FailedChunk(attempt.chunk.id, "lost", reason))
        else:
            self._suspects.append(attempt)

    def _fail(self, failed: FailedChunk) -> None:
        _LOG.error("%s: chunk %s failed: %s", self._work.path, failed.chunk, failed.reason)
        self.failed.append(failed)
        self._errors += 1

    # --- ends -----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        try:
            self._pool.watch()
        except JobError as error:
            # No future will complete any more.
            self._give_up(error)
            self._flying.clear()

    def _give_up(self, error: JobError) -> None:
        self._fatal = self._fatal or error
        self._halt("stop")

    def _halt(self, why: str) -> None:
        if self.stopped is None:
            self.stopped = why
            self._pool.withdraw(list(self._flying))
