"""Workers on this machine: processes, or threads of this one."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.connection import wait
from typing import Any

from pressmark.errors import JobError
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.scheduler import OnReceipt, Stop, SubmitPool, Summary, run_pool
from pressmark.jobs.visibility import Place
from pressmark.jobs.workdir import Job, WorkFolder
from pressmark.jobs.worker import run_chunk
from pressmark.threads import resolve_threads

__all__ = ["ProcessPool", "ThreadPool", "run_executor", "run_local"]


def run_local(
    job: Job,
    work: WorkFolder,
    workers: int | None = None,
    threads: bool = False,
    *,
    window: int = 4,
    retries: int = 2,
    on_receipt: OnReceipt | None = None,
    max_errors: int | None = None,
    stop: Stop | None = None,
) -> Summary:
    """Do the chunks that have no receipt on this machine: see :func:`run <pressmark.jobs.run>`.

    A worker that is killed is replaced, and its chunk is done again. Processes begin by importing the main script, so a
    script calls this below ``if __name__ == "__main__":`` only.

    :param workers: how many; :data:`None` or 0 for as many as there are cores
    :param threads: threads of this process instead of processes: enough where a job waits for disks or computes in
        native code, and without the fifth of a second that processes take to start
    :raises JobError: the run cannot begin or go on, or a second scheduler is at work
    """
    count = resolve_threads(workers)
    pool = ThreadPool(count) if threads else ProcessPool(count, type(job).__module__)
    try:
        return run_pool(job, work, pool, window, retries, on_receipt, max_errors, stop)
    except KeyboardInterrupt:
        # What was in hand has ended, or somebody does not want to wait for it.
        pool.kill()
        raise
    finally:
        pool.close()


def run_executor(
    job: Job,
    work: WorkFolder,
    executor: Executor,
    workers: int,
    *,
    window: int = 4,
    retries: int = 2,
    on_receipt: OnReceipt | None = None,
    max_errors: int | None = None,
    stop: Stop | None = None,
) -> Summary:
    """Do the chunks that have no receipt with any executor: see :func:`run <pressmark.jobs.run>`.

    :param executor: such as ``mpi4py.futures.MPIPoolExecutor``; it is not shut down
    :param workers: how many it has
    :raises JobError: the run cannot begin or go on, the executor broke, or a second scheduler is at work
    """
    return run_pool(job, work, SubmitPool(executor.submit, workers), window, retries, on_receipt, max_errors, stop)


class ThreadPool(SubmitPool):
    """Threads of this process."""

    def __init__(self, workers: int) -> None:
        self._executor = ThreadPoolExecutor(workers, "pressmark-job")
        super().__init__(self._executor.submit, workers)

    def kill(self) -> None:
        """Threads cannot be ended from outside: they are waited for."""

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)


class ProcessPool:
    """Processes on this machine, which are replaced when one of them dies.

    :param workers: how many
    :param module: what they need, imported once for all of them
    """

    def __init__(self, workers: int, module: str = "pressmark.jobs.worker") -> None:
        self.workers = workers
        # Not fork: this process may have threads, and locks that a copy of it would wait for in vain.
        method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
        self._context = multiprocessing.get_context(method)
        if method == "forkserver":
            self._context.set_forkserver_preload(["__main__", module])
        self._executor = self._started()

    def _started(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.workers, self._context, _begin)

    def submit(self, job: Job, chunk: Chunk, place: Place) -> Any:
        return self._executor.submit(run_chunk, job, chunk, place)

    def is_lost(self, error: BaseException) -> bool:
        return isinstance(error, (BrokenExecutor, CancelledError))

    def renew(self) -> None:
        self.close()
        self._executor = self._started()
        try:
            self._executor.submit(os.getpid).result()
        except BrokenExecutor:
            raise JobError(
                "workers",
                'they die as they start: in a script, work is done below if __name__ == "__main__": only',
            ) from None

    def watch(self) -> None:
        """The executor itself sees when one of them dies."""

    def withdraw(self, futures: list[Any]) -> None:
        for future in futures:
            future.cancel()

    def kill(self) -> None:
        """End the workers, whatever they do: a chunk without a receipt is done again one day."""
        for process in list((getattr(self._executor, "_processes", None) or {}).values()):
            process.terminate()

    def close(self) -> None:
        self._executor.shutdown(cancel_futures=True)


def _begin() -> None:
    """Prepare a worker: the scheduler alone answers Ctrl-C, and when it is killed nobody goes on without it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # What was imported stays: not to be looked at again and again, nor to be copied because of that.
    gc.freeze()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: Any) -> None:
    wait([sentinel])
    os._exit(1)
