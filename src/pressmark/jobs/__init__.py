"""Resumable long runs in chunks: on this machine, in any executor, or on a Dask cluster.

The jobs are :class:`pressmark.fixity.HashFiles`, :class:`pressmark.bagit.ValidateBags`,
:class:`pressmark.stores.CheckStore` and :class:`pressmark.stores.PutObjects`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pressmark.lazy import face

if TYPE_CHECKING:
    from pressmark.jobs.executors import (
        dask_client as dask_client,
        run_dask as run_dask,
        run_executor as run_executor,
        run_local as run_local,
    )
    from pressmark.jobs.receipts import Summary as Summary
    from pressmark.jobs.workdir import WorkFolder as WorkFolder

__all__, __getattr__, __dir__ = face(
    __name__,
    {
        ".executors": "dask_client run_dask run_executor run_local",
        ".receipts": "Summary",
        ".workdir": "WorkFolder",
    },
)
