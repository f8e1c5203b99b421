"""The scheduler of a run: hands out chunks, a few for each worker at a time, until every one has a receipt."""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol

from pressmark.errors import JobError
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.visibility import Place
from pressmark.jobs.workdir import Job, WorkFolder
from pressmark.jobs.worker import Failed, run_chunk

__all__ = ["OnReceipt", "Pool", "Stop", "Submit", "SubmitPool", "Summary", "run", "run_pool"]

POLL = 0.2  # seconds: how often the scheduler looks whether it is to stop
# Seconds before a chunk is tried again, times four with each try.
PAUSE = 0.25

OnReceipt = Callable[[Receipt], object]
Stop = Callable[[], bool]
#: Calls a function with arguments in a worker, and returns at once a future with ``add_done_callback`` and ``result``.
Submit = Callable[..., Any]


class Summary(NamedTuple):
    """How a run stands when its scheduler ends; all numbers are read back from the receipts.

    :ivar chunks: of the plan
    :ivar done: that have a receipt
    :ivar n: items
    :ivar bytes: that were read or copied
    :ivar errors: items that went wrong
    :ivar by_status: items of each status
    :ivar seconds: of work, all workers together
    :ivar failed: chunks that this scheduler gave up
    :ivar stopped: why it ended before all was done: ``stop``, ``max_errors``; :data:`None` where it did not
    """

    chunks: int
    done: int
    n: int
    bytes: int
    errors: int
    by_status: dict[str, int]
    seconds: float
    failed: tuple[Failed, ...] = ()
    stopped: str | None = None

    @property
    def complete(self) -> bool:
        """Whether every chunk has a receipt."""
        return self.done == self.chunks

    @property
    def ok(self) -> bool:
        """Whether every chunk has a receipt, and no item went wrong."""
        return self.complete and not self.errors

    def record(self) -> dict[str, Any]:
        """Return it as it stands in JSON."""
        return {"ok": self.ok, **self._asdict(), "failed": [one._asdict() for one in self.failed]}


class Pool(Protocol):
    """Workers, as the scheduler knows them.

    :ivar workers: how many
    """

    workers: int

    def submit(self, job: Job, chunk: Chunk, place: Place) -> Any:
        """Have a chunk done, and return its future.

        :raises BrokenExecutor: it cannot take any more
        """

    def is_lost(self, error: BaseException) -> bool:
        """Whether a future ended with this because its worker died or was lost."""

    def renew(self) -> None:
        """Go on after :meth:`submit` found the pool broken; nothing is in flight.

        :raises JobError: that cannot be
        """

    def watch(self) -> None:
        """Look whether the workers can still be reached.

        :raises JobError: they cannot
        """

    def withdraw(self, futures: list[Any]) -> None:
        """Take back what has not begun, if that can be known."""


class SubmitPool:
    """Workers behind a function ``submit``; what is lost there stays lost."""

    def __init__(self, submit: Submit, workers: int) -> None:
        self.workers = workers
        self._submit = submit

    def submit(self, job: Job, chunk: Chunk, place: Place) -> Any:
        return self._submit(run_chunk, job, chunk, place)

    def is_lost(self, error: BaseException) -> bool:
        return isinstance(error, (BrokenExecutor, CancelledError))

    def renew(self) -> None:
        raise JobError("executor", "it is broken: make a new one and run again; what has a receipt is not repeated")

    def watch(self) -> None:
        """There is nothing to look at."""

    def withdraw(self, futures: list[Any]) -> None:
        for future in futures:
            future.cancel()


def run(
    job: Job,
    work: WorkFolder,
    *,
    submit: Submit,
    workers: int,
    window: int = 4,
    retries: int = 2,
    on_receipt: OnReceipt | None = None,
    max_errors: int | None = None,
    stop: Stop | None = None,
) -> Summary:
    """Do the chunks that have no receipt, wherever ``submit`` has them done.

    :param submit: ``submit(function, *arguments)`` returns a future at once, as :mod:`concurrent.futures` has them
    :param workers: how many chunks are done at a time
    :param window: how many chunks are handed out at a time, for each worker
    :param retries: how often a chunk is tried again whose worker was lost, or that failed with what may pass
    :param on_receipt: called with the receipt of each chunk that is done, in this thread
    :param max_errors: end when more items than this went wrong, or chunks failed, in this call
    :param stop: asked every now and then; once it says :data:`True`, nothing more is handed out
    :raises JobError: the run cannot begin or go on, or a second scheduler is at work
    :raises KeyboardInterrupt: after what was in flight has ended; at once when it comes again
    """
    return run_pool(job, work, SubmitPool(submit, workers), window, retries, on_receipt, max_errors, stop)


def run_pool(
    job: Job,
    work: WorkFolder,
    pool: Pool,
    window: int = 4,
    retries: int = 2,
    on_receipt: OnReceipt | None = None,
    max_errors: int | None = None,
    stop: Stop | None = None,
) -> Summary:
    """Do the chunks that have no receipt with the workers of a pool: see :func:`run`."""
    for name, value, least in (("workers", pool.workers, 1), ("window", window, 1), ("retries", retries, 0)):
        if value < least:
            raise ValueError(f"{name}={value}: expected {least} or more")
    work.check(job)
    with work.held():
        work.sweep()
        scheduler = _Scheduler(job, work, pool, window, retries, on_receipt, max_errors, stop)
        scheduler.go()
        if scheduler.stopped is None and not scheduler.failed:
            work.sweep_outputs()
            work.sweep()
        return Summary(*work.done(), tuple(scheduler.failed), scheduler.stopped)


@dataclass
class _Attempt:
    """A chunk on its way.

    :ivar tries: how often it failed
    :ivar beside: how often a worker was lost while it was in flight with others
    :ivar lost: how often its worker was lost while it was in flight alone
    :ivar due: not to be tried before
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
        window: int,
        retries: int,
        on_receipt: OnReceipt | None,
        max_errors: int | None,
        stop: Stop | None,
    ) -> None:
        self.failed: list[Failed] = []
        self.stopped: str | None = None
        self._job = job
        self._place = work.place(job)
        self._path = str(work.path)
        self._pool = pool
        self._limit = window * pool.workers
        self._retries = retries
        self._on_receipt = on_receipt
        self._max_errors = max_errors
        self._stop = stop
        self._errors = 0
        self._fresh: Iterator[Chunk] = work.remaining()
        self._again: deque[_Attempt] = deque()
        # Chunks that were lost more than once: one of them may be what kills workers, and is found by going alone.
        self._suspects: deque[_Attempt] = deque()
        self._alone = False
        self._flying: dict[Any, _Attempt] = {}
        self._ended: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._broken = False
        self._fatal: JobError | None = None
        self._interrupted = False

    def go(self) -> None:
        while True:
            try:
                if not self._turn():
                    break
            except KeyboardInterrupt:
                if self._interrupted:
                    raise
                self._interrupted = True
                self._halt("stop")
        if self._interrupted:
            raise KeyboardInterrupt
        if self._fatal is not None:
            raise self._fatal

    def _turn(self) -> bool:
        """Hand out what there is room for, and take in what has ended; return whether there is more to do."""
        if self.stopped is None:
            if self._stop is not None and self._stop():
                self._halt("stop")
            else:
                self._hand_out()
        if self._flying:
            self._take_in(POLL)
            return True
        if self.stopped is None and self._again:
            # Nothing to wait for but the time at which one may be tried again.
            sleep(POLL / 4)
            return True
        return False

    # --- out ------------------------------------------------------------------------------------------------------

    def _hand_out(self) -> None:
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
                # It broke between two chunks: none of those that are still to come is to blame.
                self._again.appendleft(attempt)
                self._alone = False
                self._broken = True
                if not self._flying:
                    self._hand_out()
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

    # --- in -------------------------------------------------------------------------------------------------------

    def _take_in(self, seconds: float) -> None:
        try:
            future = self._ended.get(timeout=seconds)
        except queue.Empty:
            self._watch()
            # An interrupt may have come when one of them had left the queue, and was not yet taken in.
            for future in self._flying:
                if future.done():
                    self._ended.put(future)
            return
        attempt = self._flying.pop(future, None)
        if attempt is None:
            return
        alone, self._alone = self._alone, False
        try:
            outcome: Receipt | Failed = future.result()
        except (Exception, CancelledError) as error:
            self._lose(attempt, error, alone)
            return
        if isinstance(outcome, Receipt):
            self._errors += outcome.errors
            if self._on_receipt is not None:
                self._on_receipt(outcome)
        elif outcome.fatal:
            self._give_up(JobError(self._path, outcome.reason))
        elif outcome.retryable and attempt.tries < self._retries:
            attempt.due = monotonic() + PAUSE * 4**attempt.tries
            attempt.tries += 1
            self._again.append(attempt)
        else:
            self._fail(outcome)
        if self._max_errors is not None and self._errors > self._max_errors:
            self._halt("max_errors")

    def _lose(self, attempt: _Attempt, error: BaseException, alone: bool) -> None:
        """Take in a chunk of which no answer came."""
        if self.stopped is not None and isinstance(error, CancelledError):
            return  # it was withdrawn, or its end is not waited for any more
        self._watch()
        if self._fatal is not None:
            return
        if not self._pool.is_lost(error):
            # Not what the job did, which comes back as an outcome: the way there or back does not work.
            what = " ".join(f"{type(error).__name__}: {error}".split())
            self._give_up(JobError(self._path, f"workers cannot be given chunk {attempt.chunk.id} ({what})"))
            return
        self._broken = self._broken or isinstance(error, BrokenExecutor)
        if not alone:
            # Where one worker dies, a pool may lose what all of them had: most of these are not to blame.
            attempt.beside += 1
            (self._again if attempt.beside == 1 else self._suspects).append(attempt)
            return
        attempt.lost += 1
        if attempt.lost >= max(1, self._retries):
            times = attempt.beside + attempt.lost
            reason = f"its worker died or was lost {times} times; look for a lack of memory there"
            self._fail(Failed(attempt.chunk.id, "lost", reason))
        else:
            self._suspects.append(attempt)

    def _fail(self, failed: Failed) -> None:
        self.failed.append(failed)
        self._errors += 1

    # --- ends -----------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        try:
            self._pool.watch()
        except JobError as error:
            # Nobody answers any more: what is in flight is not waited for.
            self._give_up(error)
            self._flying.clear()

    def _give_up(self, error: JobError) -> None:
        self._fatal = self._fatal or error
        self._halt("stop")

    def _halt(self, why: str) -> None:
        if self.stopped is None:
            self.stopped = why
            self._pool.withdraw(list(self._flying))
