"""Who does the chunks, and how their receipts are reported."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import Executor
from typing import Any, NamedTuple

from pressmark import jobs
from pressmark.migrate.phases import OnEvent, Progress
from pressmark.migrate.planning.plan import Plan

__all__ = ["ReceiptReporter", "Workers"]


class Workers(NamedTuple):
    """Who does the chunks.

    :ivar workers: how many; :data:`None` for as many as there are cores, or as the cluster has threads
    :ivar threads: of this process, instead of processes
    :ivar executor: any of :mod:`concurrent.futures`; ``workers`` says how many it has
    :ivar client: of a Dask cluster
    """

    workers: int | None = None
    threads: bool = False
    executor: Executor | None = None
    client: Any = None

    def drive(self, job: Any, work: jobs.WorkFolder, **how: Any) -> jobs.Summary:
        """Do the chunks that have no receipt.

        :raises JobError: the run cannot begin or go on
        """
        if self.client is not None:
            return jobs.run_dask(job, work, self.client, self.workers, **how)
        if self.executor is not None:
            count = self.workers or getattr(self.executor, "_max_workers", None) or os.cpu_count() or 1
            return jobs.run_executor(job, work, self.executor, count, **how)
        return jobs.run_local(job, work, self.workers, self.threads, **how)


class ReceiptReporter:
    """Makes events of receipts."""

    def __init__(self, phase: str, plan: Plan, work: jobs.WorkFolder, on_event: OnEvent) -> None:
        self._phase = phase
        self._plan = plan
        self._on_event = on_event
        done = work.summary()
        self._objects, self._bytes = done.n, done.bytes
        self._by_status = Counter(done.by_status)
        self._report()

    def __call__(self, receipt: jobs.Receipt) -> None:
        self._objects += receipt.n
        self._bytes += receipt.bytes
        self._by_status.update(receipt.by_status)
        self._report()

    def _report(self) -> None:
        plan = self._plan
        self._on_event(
            Progress(self._phase, self._objects, self._bytes, plan.objects, plan.bytes, dict(self._by_status))
        )
