"""Workers of a Dask cluster.

Documentation: https://distributed.dask.org. The package distributed is imported only when a cluster is used.
"""

from __future__ import annotations

import importlib
import os
import uuid
from concurrent.futures import CancelledError
from typing import Any, Unpack

from pressmark.errors import JobError
from pressmark.jobs.chunks import Chunk
from pressmark.jobs.receipts import Summary
from pressmark.jobs.scheduler import RunOptions, run_pool
from pressmark.jobs.visibility import Place
from pressmark.jobs.workdir import Job, WorkFolder
from pressmark.jobs.worker import run_chunk

__all__ = ["DaskPool", "dask_client", "run_dask"]

CONNECT = 30.0  # seconds to wait for the Dask scheduler, and for a first worker


def dask_client(
    address: str | None = None, scheduler_file: str | os.PathLike[str] | None = None, *, timeout: float = CONNECT
) -> Any:
    """Return a :class:`distributed.Client`, connected by the address of the scheduler or by its file.

    :param address: address of the scheduler, for example ``tcp://node1:8786``
    :param scheduler_file: the file that ``dask scheduler --scheduler-file`` wrote
    :param timeout: seconds to wait for the scheduler
    :raises JobError: the scheduler cannot be reached, or distributed is not installed
    :raises ValueError: not exactly one of ``address`` and ``scheduler_file`` is given
    """
    if (address is None) == (scheduler_file is None):
        raise ValueError("expected either address or scheduler_file")
    where = address or os.fspath(scheduler_file)  # type: ignore[arg-type]
    try:
        distributed = importlib.import_module("distributed")
    except ModuleNotFoundError as error:
        if error.name not in ("distributed", "dask"):
            raise
        raise JobError(where, "package distributed not installed; pip install 'pressmark[dask]'") from None
    if scheduler_file is not None and not os.path.isfile(scheduler_file):
        raise JobError(where, "file not found; start the Dask scheduler with --scheduler-file")
    try:
        return distributed.Client(address, scheduler_file=scheduler_file, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        text = " ".join(str(error).split())
        raise JobError(where, f"Dask scheduler unreachable ({text})") from None


def run_dask(
    job: Job, work: WorkFolder, client: Any, workers: int | None = None, **options: Unpack[RunOptions]
) -> Summary:
    """Run the chunks that have no receipt on a Dask cluster: see :func:`run_local <pressmark.jobs.run_local>`.

    All machines must see the work folder, and the files that the job reads and writes, under the same paths. Dask
    replaces a worker that dies. If the Dask scheduler is lost, the run ends with an error and can be resumed.

    :param client: a :class:`distributed.Client`, for example from :func:`dask_client`; it is not closed
    :param workers: chunks run at a time; :data:`None` for the number of threads of the cluster
    :raises JobError: the run cannot start or continue, the Dask scheduler was lost, or another scheduler is running it
    """
    return run_pool(job, work, DaskPool(client, workers), **options)


class DaskPool:
    """The workers of a Dask cluster."""

    def __init__(self, client: Any, workers: int | None) -> None:
        self._client = client
        self._address = str(client.scheduler.address) if client.scheduler is not None else "the Dask cluster"
        self._killed: type[Exception] = importlib.import_module("distributed").KilledWorker
        # Unique to this run: Dask returns the old result for a key that it knows.
        self._run = uuid.uuid4().hex[:8]
        self._number = 0
        if workers is None:
            try:
                client.wait_for_workers(1, timeout=CONNECT)
                workers = sum(client.nthreads().values())
            except TimeoutError:
                raise JobError(self._address, "the Dask scheduler has no workers; start a Dask worker") from None
            except OSError:
                raise self._lost() from None
        self.workers = workers

    def submit(self, job: Job, chunk: Chunk, place: Place) -> Any:
        self._number += 1
        key = f"pressmark-{job.key[:16]}-{chunk.id}-{self._run}-{self._number}"
        self.watch()
        try:
            return self._client.submit(run_chunk, job, chunk, place, key=key, pure=False)
        except Exception:
            self.watch()  # the connection may have been lost
            raise

    def is_lost(self, error: BaseException) -> bool:
        # Errors of the job are returned as outcomes, so an OSError is one of the connection.
        return isinstance(error, (self._killed, CancelledError, OSError))

    def renew(self) -> None:
        """Do nothing: Dask replaces its workers."""

    def watch(self) -> None:
        if self._client.status != "running":
            raise self._lost()

    def _lost(self) -> JobError:
        return JobError(self._address, "connection to the Dask scheduler lost (finished chunks are kept)")

    def withdraw(self, futures: list[Any]) -> None:
        """Do nothing: Dask does not report which futures have started, and does not stop the futures that it
        cancels."""

    def interrupt(self) -> bool:
        return False
