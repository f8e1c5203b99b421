"""Workers on this machine: processes or threads."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
from concurrent.futures import BrokenExecutor, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing.connection import wait
from typing import Any, Unpack

import pressmark.threads
from pressmark.errors import JobError
from pressmark.jobs.receipts import Summary
from pressmark.jobs.scheduler import ExecutorPool, RunOptions, run_pool
from pressmark.jobs.workdir import Job, WorkFolder
from pressmark.threads import resolve_threads

__all__ = ["ProcessPool", "run_executor", "run_local"]


def run_local(
    job: Job, work: WorkFolder, workers: int | None = None, threads: bool = False, **options: Unpack[RunOptions]
) -> Summary:
    """Run the chunks that have no receipt on this machine, in processes or threads.

    A killed worker process is replaced and its chunk repeated. Worker processes import the main script, so a script
    must call this below ``if __name__ == "__main__":``.

    :param workers: number of workers; :data:`None` or 0 for one per core
    :param threads: use threads of this process: as fast for jobs that wait for disks or compute in native code, and
        without the 0.2 seconds that processes take to start
    :param options: see :class:`RunOptions <pressmark.jobs.RunOptions>`
    :raises JobError: the run cannot start or continue, or another scheduler is running it
    :raises KeyboardInterrupt: once the chunks in flight have ended; a second one is raised at once
    """
    count = resolve_threads(workers)
    pool: ExecutorPool
    if threads:
        pool = ExecutorPool(ThreadPoolExecutor(count, "pressmark-job"), count)
    else:
        busy = sum(1 for _chunk in islice(work.remaining(), count))
        pool = ProcessPool(count, type(job).__module__, max(1, resolve_threads(None) // max(1, busy)))
    try:
        return run_pool(job, work, pool, **options)
    except KeyboardInterrupt:
        if isinstance(pool, ProcessPool):
            pool.kill()
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

    def kill(self) -> None:
        """Terminate the worker processes."""
        for process in list((getattr(self._executor, "_processes", None) or {}).values()):
            process.terminate()


def _begin(threads: int | None) -> None:
    """Prepare a worker process: it uses its share of the cores, and ends with the scheduler, which handles Ctrl-C."""
    if threads:
        pressmark.threads.limit = threads
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Exempts the imported modules from collections, which would copy the pages shared with the fork server.
    gc.freeze()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent.sentinel,), daemon=True).start()


def _follow(sentinel: Any) -> None:
    wait([sentinel])
    os._exit(1)
