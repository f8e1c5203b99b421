"""Resumable long runs in chunks: on this machine, in any executor, or on a Dask cluster.

>>> from pressmark import jobs
>>> chunk = jobs.Chunk("000000", "lines", "/data/ids.txt", 0, 4, 10_000_000)
>>> jobs.Chunk.parse(chunk.line()) == chunk
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pressmark.lazy import face

if TYPE_CHECKING:
    from pressmark.jobs.chunks import (
        Chunk as Chunk,
    )
    from pressmark.jobs.executors import (
        DaskClient as DaskClient,
        dask_client as dask_client,
        run_dask as run_dask,
        run_executor as run_executor,
        run_local as run_local,
    )
    from pressmark.jobs.receipts import Receipt as Receipt, Summary as Summary
    from pressmark.jobs.workdir import Job as Job, WorkFolder as WorkFolder, job_key as job_key

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".chunks": "Chunk",
        ".executors": "DaskClient dask_client run_dask run_executor run_local",
        ".receipts": "Receipt Summary",
        ".workdir": "Job WorkFolder job_key",
    },
)
