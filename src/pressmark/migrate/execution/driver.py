"""The workers of a run, the reporting of its progress, and the work folders of jobs over its rows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any, TypedDict

from pressmark import jobs
from pressmark.fs.beneath import open_regular
from pressmark.migrate.entry import Entry
from pressmark.migrate.job import OnEvent
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.planning.plan import Plan
from pressmark.reports import Progress
from pressmark.threads import resolve_threads

__all__ = ["Driver", "RunOptions", "make_folder", "open_folder"]


class RunOptions(TypedDict, total=False):
    """The options of a run.

    ``workers``
        chunks processed at a time; :data:`None` for one per core, or per thread of the cluster
    ``threads``
        use threads of this process instead of processes
    ``executor``
        any of :mod:`concurrent.futures`, such as mpi4py's
    ``client``
        of a Dask cluster, see :func:`pressmark.jobs.dask_client`
    ``max_errors``
        stop after more than this number of objects failed
    ``on_event``
        called with :class:`~pressmark.reports.Progress`
    ``stop``
        called regularly; once it returns :data:`True`, no more chunks are started
    """

    workers: int | None
    threads: bool
    executor: Executor | None
    client: Any
    max_errors: int | None
    on_event: OnEvent | None
    stop: Callable[[], bool] | None


@dataclass(frozen=True)
class Driver:
    """Processes chunks: see :class:`RunOptions`."""

    workers: int | None = None
    threads: bool = False
    executor: Executor | None = None
    client: Any = None
    max_errors: int | None = None
    on_event: OnEvent | None = None
    stop: Callable[[], bool] | None = None

    def report(self, event: Progress) -> None:
        """Report an event if there is a listener."""
        if self.on_event is not None:
            self.on_event(event)

    def drive(self, job: Any, work: jobs.WorkFolder, phase: str, plan: Plan, before: jobs.Summary) -> jobs.Summary:
        """Process the chunks without a receipt.

        :param phase: the word for events
        :param plan: the number of objects and bytes
        :param before: the totals of the chunks with a receipt
        :raises JobError: the run cannot start or continue
        """
        reporter = _ProgressReporter(phase, plan, before, self.report)
        how: dict[str, Any] = {
            "on_receipt": reporter.add,
            "on_progress": reporter.set_running,
            "max_errors": self.max_errors,
            "stop": self.stop,
        }
        if self.client is not None:
            return jobs.run_dask(job, work, self.client, self.workers, **how)
        if self.executor is not None:
            count = self.workers or getattr(self.executor, "_max_workers", None) or os.cpu_count() or 1
            return jobs.run_executor(job, work, self.executor, count, **how)
        return jobs.run_local(job, work, self.workers, self.threads, **how)


class _ProgressReporter:
    """Turns receipts, and the progress of chunks that run, into events."""

    def __init__(self, phase: str, plan: Plan, done: jobs.Summary, on_event: Callable[[Progress], object]) -> None:
        self._phase = phase
        self._plan = plan
        self._on_event = on_event
        self._objects, self._bytes = done.n, done.bytes
        self._running = (0, 0)  # objects and bytes
        self._failed = done.errors
        self._report()

    def add(self, receipt: jobs.Receipt) -> None:
        """Report a chunk that is done."""
        self._objects += receipt.n
        self._bytes += receipt.bytes
        self._failed += receipt.errors
        # The chunk runs no more.
        objects, nbytes = self._running
        self._running = (max(0, objects - receipt.n), max(0, nbytes - receipt.bytes))
        self._report()

    def set_running(self, objects: int, nbytes: int) -> None:
        """Report what the chunks that run have done."""
        if (objects, nbytes) != self._running:
            self._running = (objects, nbytes)
            self._report()

    def _report(self) -> None:
        plan = self._plan
        objects, nbytes = self._objects + self._running[0], self._bytes + self._running[1]
        self._on_event(Progress(self._phase, objects, nbytes, self._failed, plan.objects, plan.bytes))


# --- jobs over the rows of a run --------------------------------------------------------------------------------------


def open_folder(path: str) -> jobs.WorkFolder | None:
    """Open the work folder of a job over rows; :data:`None` if it does not exist."""
    return jobs.WorkFolder.open(path) if os.path.exists(os.path.join(path, "run.json")) else None


def make_folder(path: str, job: Any, rows: str, workers: int | None) -> jobs.WorkFolder:
    """Create the work folder of a job over rows.

    :param workers: number of workers; :data:`None` for one per core
    """
    return jobs.WorkFolder.create(path, job, _row_chunks(rows, resolve_threads(workers)), {"rows": sha256_of(rows)})


def _row_chunks(path: str, workers: int) -> Iterator[jobs.Chunk]:
    """Yield the chunks of a file of rows, for a work folder beside the file."""
    builder = jobs.ChunkBuilder("rows", os.path.join("..", os.path.basename(path)), workers=workers)
    with open_regular(path) as lines:
        for line in lines:
            row = Entry.parse(line)
            done = builder.add(len(line), row.bytes, os.path.dirname(row.source))
            if done is not None:
                yield done
    rest = builder.rest()
    if rest is not None:
        yield rest
