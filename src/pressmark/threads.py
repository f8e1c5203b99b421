"""How many threads can run side by side here."""

from __future__ import annotations

import os

__all__ = ["resolve_threads"]


def resolve_threads(threads: int | None) -> int:
    """Return ``threads``, or for ``None`` and ``0`` the number of cores this process may use.

    :raises ValueError: it is negative
    """
    if threads is not None and threads < 0:
        raise ValueError(f"threads={threads}: expected 0 (as many as there are cores) or more")
    if threads:
        return threads
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
