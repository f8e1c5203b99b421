"""Workers on this machine: processes or threads."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing.connection import wait
from time import monotonic
from typing import Any, Unpack

import pressmark.threads
from pressmark.errors import JobError
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import FailedChunk, Receipt, Summary
from pressmark.jobs.scheduler import ExecutorPool, RunOptions, run_pool
from pressmark.jobs.visibility import Place
from pressmark.jobs.workdir import Job, OnProgress, WorkFolder
from pressmark.jobs.worker import run_chunk
from pressmark.threads import resolve_threads

__all__ = ["ProcessPool", "run_executor", "run_local"]

CLEANUP = 0.5  # seconds for interrupted workers to remove their temporary files
_busy = False  # whether this worker process runs a chunk


def run_local(
    job: Job, work: WorkFolder, workers: int | None = None, threads: bool = False, **options: Unpack[RunOptions]
) -> Summary:
    """Run the chunks that have no receipt on this machine, in processes or threads.

    A killed worker process is replaced and its chunk repeated. Worker processes import the main script, so a script
    must call this below ``if __name__ == "__main__":``.

    :param workers: number of workers; :data:`None` or 0 for one per core
    :param threads: use threads of this process: equally fast for jobs that wait for disks or run native code, without
        the 0.2 seconds that processes take to start
    :param options: see :class:`RunOptions <pressmark.jobs.RunOptions>`
    :raises JobError: the run cannot start or continue, or another scheduler is running it
    :raises KeyboardInterrupt: immediately, and the next run repeats the running chunks; with several threads, after the
        running chunks have ended, or at the second interrupt
    """
    count = resolve_threads(workers)
    busy = sum(1 for _chunk in islice(work.remaining(), max(2, count)))
    pool: ExecutorPool
    if threads and min(count, busy) < 2:
        # More chunks would run before the first receipt is read.
        options["window"] = min(1, options.get("window", 1))
        pool = _InlinePool(options.get("on_progress"))
    elif threads:
        pool = ExecutorPool(ThreadPoolExecutor(count, "pressmark-job"), count)
    else:
        pool = ProcessPool(count, type(job).__module__, max(1, resolve_threads(None) // max(1, min(count, busy))))
    try:
        return run_pool(job, work, pool, **options)
    except KeyboardInterrupt:
        if isinstance(pool, ProcessPool):
            pool.terminate()
        raise
    finally:
        pool.close()


def run_executor(
    job: Job, work: WorkFolder, executor: Executor, workers: int, **options: Unpack[RunOptions]
) -> Summary:
    """Run the chunks that have no receipt with any executor: see :func:`run_local`.

    :param executor: an executor, for example ``mpi4py.futures.MPIPoolExecutor``; only its ``submit`` is called
    :param workers: number of workers of the executor
    :raises JobError: the run cannot start or continue, the executor broke, or another scheduler is running it
    """
    return run_pool(job, work, ExecutorPool(executor, workers), **options)


class _InlinePool(ExecutorPool):
    """The calling thread: an interrupt ends its chunk at once."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        super().__init__(ThreadPoolExecutor(1), 1)
        self._on_progress = on_progress

    def submit(self, job: Job, chunk: Chunk, place: Place) -> Any:
        future: Future[Receipt | FailedChunk] = Future()
        future.set_result(run_chunk(job, chunk, place, self._on_progress))
        return future

    def interrupt(self) -> bool:
        return True


class ProcessPool(ExecutorPool):
    """Processes on this machine, replaced when one of them dies.

    :param workers: number of processes
    :param module: imported once, before the processes are forked
    :param threads: number of cores for each process; :data:`None` for all
    """

    def __init__(self, workers: int, module: str = "pressmark.jobs.worker", threads: int | None = None) -> None:
        # Not fork: a copy of this process would wait forever for the locks of its threads.
        method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        self._context = multiprocessing.get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload(["__main__", module])
            from multiprocessing import forkserver, resource_tracker

            resource_tracker.ensure_running()  # it unblocks SIGINT
            with _blocking_ctrl_c():
                forkserver.ensure_running()
        self._threads = threads
        super().__init__(self._processes(workers), workers)

    def _processes(self, workers: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(workers, self._context, _begin, (self._threads,))

    def renew(self) -> None:
        self.close()
        self._executor = self._processes(self.workers)
        try:
            self._executor.submit(os.getpid).result()
        except BrokenExecutor:
            reason = 'worker processes exit at startup; in a script, start the run under if __name__ == "__main__":'
            raise JobError("workers", reason) from None

    def submit(self, job: Job, chunk: Chunk, place: Place) -> Any:
        # This may start a process, which is not known before it has started.
        with _deferred_signals():
            return self._executor.submit(_run_chunk, job, chunk, place)

    def close(self) -> None:
        """Shut the executor down, after ending the processes of a broken one: an idle process may miss its signal."""
        if getattr(self._executor, "_broken", False):
            self.interrupt()
        super().close()

    def interrupt(self) -> bool:
        """End the worker processes after giving them a moment to remove their temporary files."""
        self.terminate()
        left = [process.sentinel for process in self._workers()]
        end = monotonic() + CLEANUP
        while left and (seconds := end - monotonic()) > 0:
            ended = wait(left, seconds)
            left = [sentinel for sentinel in left if sentinel not in ended]
        for process in self._workers():
            process.kill()
        return True

    def terminate(self) -> None:
        """Interrupt the chunks in the worker processes."""
        for process in self._workers():
            process.terminate()

    def _workers(self) -> list[Any]:
        return list((getattr(self._executor, "_processes", None) or {}).values())


@contextlib.contextmanager
def _blocking_ctrl_c() -> Iterator[None]:
    """Handle Ctrl-C after the block, and never in processes started in it: the fork server would print a traceback."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _deferred_signals() -> Iterator[None]:
    """Handle signals that end the run after the block."""
    caught: list[tuple[int, Any]] = []
    before: dict[int, Any] = {}
    with contextlib.suppress(ValueError):
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and callable(signal.getsignal(number)):
                before[number] = signal.signal(number, lambda *given: caught.append(given))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if caught:
            before[caught[0][0]](*caught[0])


def _run_chunk(job: Job, chunk: Chunk, place: Place) -> Receipt | FailedChunk:
    """Run a chunk in a worker process, which ends if it is interrupted."""
    global _busy
    _busy = True
    try:
        return run_chunk(job, chunk, place)
    except KeyboardInterrupt:
        os._exit(1)
    finally:
        _busy = False


def _interrupt(number: int, _frame: Any) -> None:
    """Interrupt the chunk of a worker process, or end the process if it has none."""
    if not _busy:
        os._exit(1)
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _begin(threads: int | None) -> None:
    """Prepare a worker process: it uses its share of the cores, and ends with the scheduler, which handles Ctrl-C."""
    if threads:
        pressmark.threads.limit = threads
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _interrupt)
    # Exempts the imported modules from collections, which would copy the pages shared with the fork server.
    gc.freeze()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: Any) -> None:
    wait([sentinel])
    os._exit(1)
