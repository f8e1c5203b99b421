"""The number of threads to use."""

from __future__ import annotations

import os

__all__ = ["resolve_threads"]


def resolve_threads(threads: int | None) -> int:
    """Return ``threads``, or for :data:`None` and 0 the number of cores available to this process.

    :raises ValueError: ``threads`` is negative
    """
    if threads is not None and threads < 0:
        raise ValueError(f"threads={threads}: expected 0 (one per core) or more")
    if threads:
        return threads
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
