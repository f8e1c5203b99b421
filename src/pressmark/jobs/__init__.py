"""Long runs in chunks: on this machine, in any executor or on a Dask cluster, and resumed after any end.

>>> from pressmark import jobs
>>> chunk = jobs.Chunk("000000", "rows", "/data/ids.parquet", 0, 4, 10_000_000)
>>> jobs.Chunk.parse(chunk.line()) == chunk
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pressmark.jobs.chunks import BYTES, FILES, ROWS, Chunk, ChunkBuilder
from pressmark.jobs.dask import dask_client, run_dask
from pressmark.jobs.local import run_executor, run_local
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.scheduler import OnReceipt, Stop, Summary, run
from pressmark.jobs.workdir import Done, Job, WorkFolder, job_key
from pressmark.jobs.worker import Failed, run_chunk

if TYPE_CHECKING:
    from pressmark.bagit.job import ValidateBags
    from pressmark.fixity.job import HashFiles
    from pressmark.layouts.job import MapIds
    from pressmark.stores.job import CheckStore

__all__ = [
    "BYTES",
    "FILES",
    "ROWS",
    "CheckStore",
    "Chunk",
    "ChunkBuilder",
    "Done",
    "Failed",
    "HashFiles",
    "Job",
    "MapIds",
    "OnReceipt",
    "Receipt",
    "Stop",
    "Summary",
    "ValidateBags",
    "WorkFolder",
    "dask_client",
    "job_key",
    "run",
    "run_chunk",
    "run_dask",
    "run_executor",
    "run_local",
]

# Kinds of jobs, which a run of another kind need not wait for.
_KINDS = {"CheckStore": "stores", "HashFiles": "fixity", "MapIds": "layouts", "ValidateBags": "bagit"}


def __getattr__(name: str) -> Any:
    """Import a kind of job when it is first asked for."""
    if name in _KINDS:
        return getattr(importlib.import_module(f"pressmark.{_KINDS[name]}.job"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
