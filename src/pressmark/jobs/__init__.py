"""Resumable long runs in chunks: on this machine, in any executor, or on a Dask cluster.

>>> from pressmark import jobs
>>> chunk = jobs.Chunk("000000", "lines", "/data/ids.txt", 0, 4, 10_000_000)
>>> jobs.Chunk.parse(chunk.line()) == chunk
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pressmark.jobs.chunks import BYTES, FILES, Chunk, ChunkBuilder
    from pressmark.jobs.dask import dask_client, run_dask
    from pressmark.jobs.local import run_executor, run_local
    from pressmark.jobs.receipts import FailedChunk, Receipt, Summary
    from pressmark.jobs.scheduler import OnReceipt, RunOptions, Stop
    from pressmark.jobs.workdir import Job, WorkFolder, job_key
    from pressmark.jobs.worker import run_chunk

__all__ = [
    "BYTES",
    "FILES",
    "Chunk",
    "ChunkBuilder",
    "FailedChunk",
    "Job",
    "OnReceipt",
    "Receipt",
    "RunOptions",
    "Stop",
    "Summary",
    "WorkFolder",
    "dask_client",
    "job_key",
    "run_chunk",
    "run_dask",
    "run_executor",
    "run_local",
]

# The module of each name, imported when the name is first used.
_MODULES = {
    "BYTES": "chunks",
    "FILES": "chunks",
    "Chunk": "chunks",
    "ChunkBuilder": "chunks",
    "FailedChunk": "receipts",
    "Job": "workdir",
    "OnReceipt": "scheduler",
    "Receipt": "receipts",
    "RunOptions": "scheduler",
    "Stop": "scheduler",
    "Summary": "receipts",
    "WorkFolder": "workdir",
    "dask_client": "dask",
    "job_key": "workdir",
    "run_chunk": "worker",
    "run_dask": "dask",
    "run_executor": "local",
    "run_local": "local",
}


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
