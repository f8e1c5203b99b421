"""The run of a job: chunks are submitted to an executor, a few per worker at a time, until each has a receipt."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from time import monotonic
from typing import TypedDict, Unpack

from pressmark.errors import Cancelled, JobError, is_store_wide
from pressmark.fs.beneath import read_regular
from pressmark.fs.locks import host
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import FailedChunk, Receipt, Summary
from pressmark.jobs.workdir import NONCE, REPORT_EVERY, Job, OnProgress, WorkerFolder, WorkFolder
from pressmark.option_names import as_flags
from pressmark.progress_event import Progress, ProgressEvent
from pressmark.version import __version__

__all__ = ["RunOptions", "RunProgress", "Stop", "run", "run_chunk", "unseen"]

POLL = 0.2  # seconds between checks whether to stop
# Errors that may be temporary: an unreachable server, a busy disk.
_TRANSIENT = frozenset(
    getattr(errno, name)
    for name in ("EIO", "ESTALE", "ETIMEDOUT", "EAGAIN", "EBUSY", "EINTR", "ECONNRESET", "EHOSTDOWN", "EREMOTEIO")
    if hasattr(errno, name)
)

_LOG = logging.getLogger(__name__)
# Without a handler, Python would print warnings to stderr.
logging.getLogger("pressmark").addHandler(logging.NullHandler())

#: Asked between chunks: :data:`True` ends the run.
Stop = Callable[[], bool]


class RunProgress:
    """Turns receipts, and the progress of chunks that run, into the progress of a run.

    :param progress: of the caller
    :param done: the totals of the chunks that have a receipt
    """

    def __init__(self, progress: Progress, done: Summary) -> None:
        self._progress = progress
        self._done = ProgressEvent(items=done.n, bytes=done.bytes, failed=done.errors)
        self._running = (0, 0)  # items and bytes
        self._report()

    def add(self, receipt: Receipt) -> None:
        """Report a chunk that is done."""
        self._done = self._done.plus(receipt.n, receipt.bytes, receipt.errors)
        # The chunk runs no more.
        items, nbytes = self._running
        self._running = (max(0, items - receipt.n), max(0, nbytes - receipt.bytes))
        self._report()

    def set_running(self, items: int, nbytes: int) -> None:
        """Report what the chunks that run have done."""
        if (items, nbytes) != self._running:
            self._running = (items, nbytes)
            self._report()

    def _report(self) -> None:
        self._progress(self._done.plus(*self._running))


class RunOptions(TypedDict, total=False):
    """The options of a run: see :func:`pressmark.jobs.run_local`."""

    window: int
    progress: RunProgress | None
    max_errors: int | None
    stop: Stop | None


def run(
    job: Job,
    work: WorkFolder,
    executor: Executor,
    workers: int,
    *,
    renew: Callable[[], object],
    interrupt: Callable[[], object] | None = None,
    **options: Unpack[RunOptions],
) -> Summary:
    """Run the chunks that have no receipt with an executor.

    A chunk whose worker was lost, or whose error may be temporary, runs once more when no other chunk is left, and
    nothing runs beside it: if a chunk kills its worker, only this chunk fails.

    :param workers: number of workers of the executor
    :param renew: replaces the workers of an executor that accepts no more work
    :param interrupt: ends the running chunks; without it, an interrupted run waits for their end
    :raises JobError: the run cannot start or continue, or another scheduler is running it
    :raises KeyboardInterrupt: once the running chunks have ended; a second one is raised at once
    :raises Cancelled: likewise, by the progress
    :raises ValueError: an option is out of range
    """
    scheduler = _Scheduler(job, work, executor, workers, renew, interrupt, **options)
    work.check(job)
    with work.held():
        work.sweep()
        _LOG.info("%s: started, workers: %d", work.path, workers)
        scheduler.run()
        if scheduler.stopped is None and not scheduler.failed:
            work.sweep_outputs()
            work.sweep()
        summary = work.summary()._replace(failed=tuple(scheduler.failed), stopped=scheduler.stopped)
        _LOG.info("%s: %d of %d chunks done, %d errors", work.path, summary.done, summary.chunks, summary.errors)
        return summary


class _Scheduler:
    def __init__(
        self,
        job: Job,
        work: WorkFolder,
        executor: Executor,
        workers: int,
        renew: Callable[[], object],
        interrupt: Callable[[], object] | None,
        window: int = 4,
        progress: RunProgress | None = None,
        max_errors: int | None = None,
        stop: Stop | None = None,
    ) -> None:
        for name, value in (("workers", workers), ("window", window)):
            if value < 1:
                raise ValueError(f"{name}={value}: expected 1 or more")
        self.failed: list[FailedChunk] = []
        self.stopped: str | None = None
        self._job = job
        self._work = work
        self._executor = executor
        self._limit = window * workers
        self._renew = renew
        self._interrupt = interrupt
        self._progress = progress
        self._max_errors = max_errors
        self._stop = stop
        self._flying: dict[Future[Receipt | FailedChunk], Chunk] = {}
        self._again: list[Chunk] = []
        self._is_alone = False
        self._errors = 0
        self._reported = monotonic()
        self._fatal: JobError | None = None

    def run(self) -> None:
        """Run all chunks, then those again that may succeed alone.

        :raises JobError: the run cannot continue
        :raises KeyboardInterrupt: once the running chunks have ended; a second one is raised at once
        :raises Cancelled: likewise
        """
        self._folder = self._work.for_workers(self._job)
        try:
            self._run(self._work.remaining(), self._limit)
            self._is_alone = True
            if self._again:
                self._run(iter(self._again), 1)
        except (KeyboardInterrupt, Cancelled) as ended:
            if isinstance(ended, Cancelled):
                self._progress = None  # it would cancel again
            if self._interrupt is not None:
                self._interrupt()
            else:
                self._halt("stop")
                while self._flying:
                    self._collect()
            raise

    def _run(self, chunks: Iterator[Chunk], limit: int) -> None:
        """Run chunks, ``limit`` at a time, until none is left or the run stops."""
        chunk = next(chunks, None)
        while True:
            if self.stopped is None and self._stop is not None and self._stop():
                self._halt("stop")
            while chunk is not None and self.stopped is None and len(self._flying) < limit and self._submit(chunk):
                chunk = next(chunks, None)
            if self._flying:
                self._collect()
            elif chunk is None or self.stopped is not None:
                break
        if self._fatal is not None:
            raise self._fatal

    def _submit(self, chunk: Chunk) -> bool:
        """Submit a chunk, and return whether the executor accepted it. A broken one is renewed once it is idle."""
        try:
            future = self._executor.submit(run_chunk, self._job, chunk, self._folder)
        except BrokenExecutor:
            if not self._flying:
                self._renew()
            return False
        self._flying[future] = chunk
        return True

    def _collect(self) -> None:
        """Wait a moment for chunks to end, and handle those that have."""
        wait(self._flying, POLL, FIRST_COMPLETED)
        for future in [one for one in self._flying if one.done()]:
            self._finish(self._flying.pop(future), future)
        if self._max_errors is not None and self._errors > self._max_errors:
            self._halt("max_errors")
        if self._progress is not None and monotonic() - self._reported >= REPORT_EVERY:
            done = [self._work.progress(chunk.id) for chunk in self._flying.values()]
            self._progress.set_running(sum(items for items, _ in done), sum(nbytes for _, nbytes in done))
            self._reported = monotonic()

    def _finish(self, chunk: Chunk, future: Future[Receipt | FailedChunk]) -> None:
        try:
            outcome = future.result()
        except JobError as error:
            self._give_up(error)
        # Errors of the job are returned as outcomes, so an OSError is one of the connection to the worker.
        except (BrokenExecutor, CancelledError, OSError) as error:
            if self.stopped is None or not isinstance(error, CancelledError):
                reason = "worker died or was lost; check the memory of that machine"
                self._retry(chunk, FailedChunk(chunk.id, "lost", reason), "its worker died or was lost")
        except Exception as error:
            # The chunk or its result cannot be transferred.
            what = " ".join(f"{type(error).__name__}: {error}".split())
            self._give_up(JobError(str(self._work.path), f"chunk {chunk.id} cannot be sent to a worker ({what})"))
        else:
            self._count(chunk, outcome)

    def _count(self, chunk: Chunk, outcome: Receipt | FailedChunk) -> None:
        if isinstance(outcome, Receipt):
            self._errors += outcome.errors
            _LOG.debug("%s: chunk %s done, %d items", self._work.path, chunk.id, outcome.n)
            if self._progress is not None:
                self._progress.add(outcome)
        elif outcome.fatal:
            self._give_up(JobError(str(self._work.path), outcome.reason))
        elif outcome.retryable:
            self._retry(chunk, outcome, f"{outcome.reason}; retrying")
        else:
            self._fail(outcome)

    def _retry(self, chunk: Chunk, failed: FailedChunk, warning: str) -> None:
        """Run a chunk again, alone, unless this was its second attempt."""
        if self._is_alone:
            self._fail(failed)
        else:
            _LOG.warning("%s: chunk %s: %s", self._work.path, chunk.id, warning)
            self._again.append(chunk)

    def _fail(self, failed: FailedChunk) -> None:
        _LOG.error("%s: chunk %s failed: %s", self._work.path, failed.chunk, failed.reason)
        self.failed.append(failed)
        self._errors += 1

    def _give_up(self, error: JobError) -> None:
        self._fatal = self._fatal or error
        self._halt("stop")

    def _halt(self, why: str) -> None:
        if self.stopped is None:
            self.stopped = why
            for future in self._flying:
                future.cancel()


# --- in a worker ------------------------------------------------------------------------------------------------------


def run_chunk(
    job: Job, chunk: Chunk, folder: WorkerFolder, on_progress: OnProgress | None = None
) -> Receipt | FailedChunk:
    """Run a chunk, and write its receipt once its output is in place.

    Errors are returned, not raised: not every exception can be sent to another process.

    :param on_progress: called with the progress, which is otherwise written to the work folder
    """
    hidden = unseen(folder)
    if hidden is not None:
        reason = f"worker on {host()} does not see {hidden}; mount it under the same path"
        return FailedChunk(chunk.id, "unseen", reason, fatal=True)
    if folder.version != __version__:
        versions = f"pressmark {__version__} on worker {host()}, {folder.version} on the scheduler"
        reason = f"{versions}; install the same version"
        return FailedChunk(chunk.id, "version", reason, fatal=True)
    work = WorkFolder.at(folder, on_progress)
    try:
        # A chunk that was thought to be lost may have been completed meanwhile.
        done = work.receipt(chunk.id)
        with as_flags(folder.are_flags):
            return work.write_receipt(job.run(chunk, work)) if done is None else done
    except Exception as error:
        text = " ".join(str(error).split()) or "no message"
        return FailedChunk(chunk.id, type(error).__name__, text, _is_retryable(job, error), is_store_wide(error))
    finally:
        work.end_progress(chunk.id)


def _is_retryable(job: Job, error: Exception) -> bool:
    own = getattr(job, "retryable", None)
    if own is not None:
        return bool(own(error))
    return isinstance(error, OSError) and error.errno in _TRANSIENT


def unseen(folder: WorkerFolder) -> str | None:
    """Return a description of the first directory that this machine does not see as the scheduler does, if any."""
    try:
        if read_regular(os.path.join(folder.path, NONCE)).decode("ascii") != folder.nonce:
            return f"the work folder {folder.path} (another folder has this path)"
    except (OSError, UnicodeDecodeError):
        return f"the work folder {folder.path}"
    for path, names in folder.roots:
        if not os.path.isdir(path):
            return path
        if names and not any(os.path.lexists(os.path.join(path, name)) for name in names):
            return f"the content of {path} (is it mounted?)"
    return None
