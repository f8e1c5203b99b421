"""The executors of a run: this thread, threads and processes of this machine, any other one, a Dask cluster.

Documentation: https://distributed.dask.org. The package distributed is imported only when a cluster is used.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing.connection import wait
from time import monotonic
from typing import Any, Protocol, Self

import pressmark.threads
from pressmark.errors import JobError
from pressmark.jobs.receipts import Summary
from pressmark.jobs.run import RunOptions, RunProgress, Stop, run
from pressmark.jobs.workdir import Job, OnProgress, WorkFolder
from pressmark.progress_event import Progress
from pressmark.threads import resolve_threads

__all__ = ["DaskClient", "Processes", "dask_client", "run_dask", "run_executor", "run_local", "start_fork_server"]

CLEANUP = 0.5  # seconds for interrupted workers to remove their temporary files
CONNECT = 30.0  # seconds to wait for the Dask scheduler, and for a first worker
# An address has a protocol or a port; a file of a scheduler has neither.
_ADDRESS = re.compile(r"://|:[0-9]+$")
_busy = False  # whether this worker process runs a chunk


class DaskClient(Protocol):
    """What Pressmark uses of a :class:`distributed.Client`."""

    @property
    def status(self) -> str:
        """``running`` while the client is connected to the scheduler."""

    def nthreads(self) -> Mapping[str, int]:
        """Return the number of threads of each worker."""

    def close(self) -> object:
        """Disconnect from the scheduler."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> object: ...


def run_local(
    job: Job,
    work: WorkFolder | str | os.PathLike[str],
    workers: int | None = None,
    *,
    processes: bool = True,
    window: int = 4,
    progress: Progress | None = None,
    max_errors: int | None = None,
    stop: Stop | None = None,
) -> Summary:
    """Run the chunks that have no receipt on this machine, in processes or threads.

    A killed worker process is replaced and its chunk repeated. Worker processes import the main script, so a script
    must call this below ``if __name__ == "__main__":``.

    :param job: such as :class:`pressmark.fixity.HashFiles`
    :param work: the work folder of the run: its path, to continue the run in it, or to plan one; or from
        :meth:`WorkFolder.create <pressmark.jobs.WorkFolder.create>`, to choose the chunks
    :param workers: number of workers; :data:`None` for one per core
    :param processes: run the chunks in processes; :data:`False` for threads of this process: equally fast for jobs that
        wait for disks or run native code, without the 0.2 seconds that processes take to start
    :param window: chunks submitted at a time, per worker
    :param progress: items and bytes done, in chunks that are complete and those that run
    :param max_errors: stop when more items or chunks than this have failed in this call
    :param stop: called several times a second; no chunk is submitted after it has returned :data:`True`
    :raises JobError: the run cannot start or continue, another scheduler is running it, or the work folder is of
        another job
    :raises KeyboardInterrupt: immediately, and the next run repeats the running chunks; with several threads, after the
        running chunks have ended, or at the second interrupt
    """
    work = _folder(job, work)
    options = _options(work, window, progress, max_errors, stop)
    count = resolve_threads(workers)
    busy = sum(1 for _chunk in islice(work.remaining(), max(2, count)))
    if not processes and min(count, busy) < 2:
        # More chunks would run before the first receipt is read.
        options["window"] = min(1, window)
        return _run(job, work, _Inline(options["progress"]), 1, options)
    if not processes:
        executor = ThreadPoolExecutor(count, "pressmark-job")
        try:
            return _run(job, work, executor, count, options)
        finally:
            executor.shutdown(cancel_futures=True)
    share = max(1, resolve_threads(None) // max(1, min(count, busy)))
    with Processes(count, type(job).__module__, share) as pool:
        return run(job, work, pool, count, renew=pool.renew, interrupt=pool.interrupt, **options)


def run_executor(
    job: Job,
    work: WorkFolder | str | os.PathLike[str],
    executor: Executor,
    workers: int,
    *,
    window: int = 4,
    progress: Progress | None = None,
    max_errors: int | None = None,
    stop: Stop | None = None,
) -> Summary:
    """Run the chunks that have no receipt with any executor: see :func:`run_local`.

    :param executor: an executor, for example ``mpi4py.futures.MPIPoolExecutor``; only its ``submit`` is called
    :param workers: number of workers of the executor
    :param window: as for :func:`run_local`; so are all parameters from here on
    :raises JobError: the run cannot start or continue, the executor broke, or another scheduler is running it
    """
    work = _folder(job, work)
    options = _options(work, window, progress, max_errors, stop)
    return _run(job, work, executor, workers, options)


def run_dask(
    job: Job,
    work: WorkFolder | str | os.PathLike[str],
    client: DaskClient,
    workers: int | None = None,
    *,
    window: int = 4,
    progress: Progress | None = None,
    max_errors: int | None = None,
    stop: Stop | None = None,
) -> Summary:
    """Run the chunks that have no receipt on a Dask cluster: see :func:`run_local <pressmark.jobs.run_local>`.

    All machines must see the work folder, and the files that the job reads and writes, under the same paths. Dask
    replaces a worker that dies. If the Dask scheduler is lost, the run ends with an error and can be resumed.

    :param client: a :class:`distributed.Client`, for example from :func:`dask_client`; it is not closed
    :param workers: chunks run at a time; :data:`None` for the number of threads of the cluster
    :param window: as for :func:`run_local <pressmark.jobs.run_local>`; so are all parameters from here on
    :raises JobError: the run cannot start or continue, the Dask scheduler was lost, or another scheduler is running it
    """
    executor = _Dask(client)
    work = _folder(job, work)
    options = _options(work, window, progress, max_errors, stop)
    return _run(job, work, executor, executor.workers() if workers is None else workers, options)


def _folder(job: Job, work: WorkFolder | str | os.PathLike[str]) -> WorkFolder:
    """Return the work folder of a run: the given one, the one at a path, or a new one there."""
    if isinstance(work, WorkFolder):
        return work
    return WorkFolder.open(work) if WorkFolder.exists(work) else WorkFolder.create(work, job)


def _options(
    work: WorkFolder, window: int, progress: Progress | None, max_errors: int | None, stop: Stop | None
) -> RunOptions:
    counted = None if progress is None else RunProgress(progress, work.summary())
    return RunOptions(window=window, progress=counted, max_errors=max_errors, stop=stop)


def _run(job: Job, work: WorkFolder, executor: Executor, workers: int, options: RunOptions) -> Summary:
    """Run the chunks that have no receipt with an executor that is not renewed."""

    def renew() -> None:
        raise JobError("executor", "the executor is broken; run again with a new one (finished chunks are kept)")

    return run(job, work, executor, workers, renew=renew, **options)


class _Inline(Executor):
    """The calling thread: an interrupt ends its chunk at once."""

    def __init__(self, progress: RunProgress | None) -> None:
        self._on_progress: OnProgress = (lambda _items, _bytes: None) if progress is None else progress.set_running

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, self._on_progress, **kwargs))
        return future


def start_fork_server(module: str) -> Any:
    """Start the fork server, and return the multiprocessing context of the workers.

    The server imports the module in the background. If it is already running, it is not started again.

    :param module: imported before the processes are forked
    """
    # Not fork: a copy of this process would wait forever for the locks of its threads.
    method = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context: Any = multiprocessing.get_context(method)
    if method == "forkserver":
        context.set_forkserver_preload(["__main__", module])
        from multiprocessing import forkserver, resource_tracker

        resource_tracker.ensure_running()  # it unblocks SIGINT
        with _blocking_ctrl_c():
            forkserver.ensure_running()
    return context


class Processes(Executor):
    """Processes on this machine, which can be replaced and interrupted.

    :param workers: number of processes
    :param module: imported once, before the processes are forked
    :param threads: number of cores for each process; :data:`None` for all
    """

    def __init__(self, workers: int, module: str = "pressmark.jobs.run", threads: int | None = None) -> None:
        self._context = start_fork_server(module)
        self._count = workers
        self._threads = threads
        self._executor = self._start()

    def _start(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._count, self._context, _begin, (self._threads,))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        # This may start a process, which is not known before it has started.
        with _deferred_signals():
            return self._executor.submit(_run_interruptible, fn, *args, **kwargs)

    def renew(self) -> None:
        """Replace the processes after one of them died.

        :raises JobError: they die when they start
        """
        self.shutdown()
        self._executor = self._start()
        try:
            self._executor.submit(os.getpid).result()
        except BrokenExecutor:
            reason = 'worker processes exit at startup; in a script, start the run under if __name__ == "__main__":'
            raise JobError("workers", reason) from None

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:
        """Shut the executor down, after ending the processes of a broken one: an idle process may miss its signal."""
        if getattr(self._executor, "_broken", False):
            self.interrupt()
        self._executor.shutdown(wait, cancel_futures=cancel_futures)

    def interrupt(self) -> None:
        """End the worker processes after giving them a moment to remove their temporary files."""
        processes: list[Any] = list((getattr(self._executor, "_processes", None) or {}).values())
        try:
            for process in processes:
                process.terminate()
            left = [process.sentinel for process in processes]
            end = monotonic() + CLEANUP
            while left and (seconds := end - monotonic()) > 0:
                ended = wait(left, seconds)
                left = [sentinel for sentinel in left if sentinel not in ended]
        finally:
            for process in processes:
                process.kill()


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


def _run_interruptible(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a worker process, which ends if it is interrupted."""
    global _busy
    _busy = True
    try:
        return function(*arguments)
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


# --- Dask -------------------------------------------------------------------------------------------------------------


def dask_client(scheduler: str | os.PathLike[str], *, timeout: float = CONNECT) -> DaskClient:
    """Return a :class:`distributed.Client`, connected to a Dask scheduler.

    :param scheduler: address of the scheduler, for example ``tcp://node1:8786``, or the file that
        ``dask scheduler --scheduler-file`` wrote
    :param timeout: seconds to wait for the scheduler
    :raises JobError: the scheduler cannot be reached, or distributed is not installed
    """
    where = os.fspath(scheduler)
    try:
        distributed = importlib.import_module("distributed")
    except ModuleNotFoundError as error:
        if error.name not in ("distributed", "dask"):
            raise
        raise JobError(where, "package distributed not installed; pip install 'pressmark[dask]'") from None
    if os.path.isfile(where):
        how = {"scheduler_file": where}
    elif _ADDRESS.search(where):
        how = {"address": where}
    else:
        raise JobError(where, "file not found; start the Dask scheduler with --scheduler-file")
    try:
        client: DaskClient = distributed.Client(**how, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        text = " ".join(str(error).split())
        raise JobError(where, f"Dask scheduler unreachable ({text})") from None
    return client


class _Dask(Executor):
    """The workers of a Dask cluster.

    Unlike ``client.get_executor()``, it never withdraws a chunk: Dask does not report which have started, and does not
    stop those that it cancels. It reports the loss of the scheduler as such.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._address = str(client.scheduler.address) if client.scheduler is not None else "the Dask cluster"
        self._killed: type[Exception] = importlib.import_module("distributed").KilledWorker

    def workers(self) -> int:
        """Return the number of threads of the cluster.

        :raises JobError: it has no workers, or the scheduler was lost
        """
        try:
            self._client.wait_for_workers(1, timeout=CONNECT)
            return sum(self._client.nthreads().values())
        except TimeoutError:
            raise JobError(self._address, "the Dask scheduler has no workers; start a Dask worker") from None
        except OSError:
            raise self._lost() from None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()  # so that it cannot be cancelled
        try:
            task = self._client.submit(fn, *args, **kwargs, pure=False)
        except Exception:
            if self._client.status != "running":
                raise self._lost() from None
            raise
        task.add_done_callback(lambda task: self._finish(task, future))
        return future

    def _finish(self, task: Any, future: Future[Any]) -> None:
        """Pass the outcome of a Dask task on."""
        try:
            future.set_result(task.result())
        except Exception as error:
            if self._client.status != "running":
                future.set_exception(self._lost())
            else:
                future.set_exception(BrokenExecutor() if isinstance(error, self._killed) else error)

    def _lost(self) -> JobError:
        return JobError(self._address, "connection to the Dask scheduler lost (finished chunks are kept)")
