"""Workers of a Dask cluster.

Document: https://distributed.dask.org. The package is imported when a cluster is used, and not needed otherwise.
"""

from __future__ import annotations

import importlib
import os
import uuid
from concurrent.futures import CancelledError
from typing import Any

from pressmark.errors import JobError
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.scheduler import OnReceipt, Stop, Summary, run_pool
from pressmark.jobs.visibility import Place
from pressmark.jobs.workdir import Job, WorkFolder
from pressmark.jobs.worker import run_chunk

__all__ = ["DaskPool", "dask_client", "run_dask"]

CONNECT = 30.0  # seconds to wait for the Dask scheduler, and for a first worker


def dask_client(
    address: str | None = None, scheduler_file: str | os.PathLike[str] | None = None, *, timeout: float = CONNECT
) -> Any:
    """Return a :class:`distributed.Client` of the cluster at an address, or of the one that a scheduler's file names.

    :param address: such as ``tcp://node1:8786``
    :param scheduler_file: as ``dask scheduler --scheduler-file`` writes it
    :param timeout: seconds to wait for the scheduler
    :raises JobError: it cannot be reached, or distributed is not installed
    :raises ValueError: neither or both are given
    """
    if (address is None) == (scheduler_file is None):
        raise ValueError("give the address of a scheduler or its file")
    where = address or os.fspath(scheduler_file)  # type: ignore[arg-type]
    try:
        distributed = importlib.import_module("distributed")
    except ModuleNotFoundError as error:
        if error.name not in ("distributed", "dask"):
            raise
        raise JobError(where, "clusters need distributed: pip install 'pressmark[dask]'") from None
    if scheduler_file is not None and not os.path.isfile(scheduler_file):
        raise JobError(where, "there is no such file: start dask scheduler --scheduler-file with it")
    try:
        return distributed.Client(address, scheduler_file=scheduler_file, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        text = " ".join(str(error).split())
        raise JobError(where, f"the Dask scheduler cannot be reached ({text})") from None


def run_dask(
    job: Job,
    work: WorkFolder,
    client: Any,
    workers: int | None = None,
    *,
    window: int = 4,
    retries: int = 2,
    on_receipt: OnReceipt | None = None,
    max_errors: int | None = None,
    stop: Stop | None = None,
) -> Summary:
    """Do the chunks that have no receipt on a Dask cluster: see :func:`run <pressmark.jobs.run>`.

    All machines must see the work folder, and what the job reads and writes, under the same paths. A worker that dies
    is Dask's to replace; when the scheduler dies the run ends with an error, and goes on when it is started again.

    :param client: a :class:`distributed.Client`, such as :func:`dask_client` gives; it is not closed
    :param workers: how many chunks are done at a time; :data:`None` for as many as the cluster has threads
    :raises JobError: the run cannot begin or go on, the Dask scheduler was lost, or a second scheduler is at work
    """
    return run_pool(job, work, DaskPool(client, workers), window, retries, on_receipt, max_errors, stop)


class DaskPool:
    """The workers that a client's scheduler has."""

    def __init__(self, client: Any, workers: int | None) -> None:
        self._client = client
        self._address = str(client.scheduler.address) if client.scheduler is not None else "the Dask cluster"
        self._killed: type[Exception] = importlib.import_module("distributed").KilledWorker
        # A name of this run's own: Dask gives the old answer where it still knows a key.
        self._run = uuid.uuid4().hex[:8]
        self._number = 0
        if workers is None:
            try:
                client.wait_for_workers(1, timeout=CONNECT)
            except TimeoutError:
                raise JobError(self._address, "the Dask scheduler has no workers: start dask worker with it") from None
            workers = sum(client.nthreads().values())
        self.workers = workers

    def submit(self, job: Job, chunk: Chunk, place: Place) -> Any:
        self._number += 1
        key = f"pressmark-{job.key[:16]}-{chunk.id}-{self._run}-{self._number}"
        self.watch()
        try:
            return self._client.submit(run_chunk, job, chunk, place, key=key, pure=False)
        except Exception:
            self.watch()  # it may have been lost just now
            raise

    def is_lost(self, error: BaseException) -> bool:
        # What a job raises comes back as an outcome: an OSError is one of the connection by which an answer came.
        return isinstance(error, (self._killed, CancelledError, OSError))

    def renew(self) -> None:
        """Dask replaces its workers itself."""

    def watch(self) -> None:
        if self._client.status != "running":
            raise JobError(
                self._address,
                "the connection to the Dask scheduler is lost; run again to go on: what has a receipt is not repeated",
            )

    def withdraw(self, futures: list[Any]) -> None:
        """Wait for them all: Dask does not say which of them have begun, and lets those go on that it cancels."""
