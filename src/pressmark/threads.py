"""The number of threads to use, and a pool of threads for generators."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["GeneratorPool", "limit", "resolve_threads"]

T = TypeVar("T")
# Of this process, as one of several that share the cores.
limit: int | None = None


def resolve_threads(threads: int | None) -> int:
    """Return ``threads``, or for :data:`None` and 0 the number of cores available to this process, or its share.

    :raises ValueError: ``threads`` is negative
    """
    if threads is not None and threads < 0:
        raise ValueError(f"threads={threads}: expected 0 (one per core) or more")
    if threads or limit:
        return threads or limit or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class GeneratorPool:
    """A pool of threads for the work of a generator; use it in a ``with`` statement.

    Leaving the statement cancels the calls that have not started and waits for the others. When the generator is
    closed, the threads are not joined: the garbage collector may close it on a thread that holds a lock of
    :mod:`threading`, and there, before CPython 3.13, joining another thread never returns.

    :param threads: maximum number of threads
    :param name: prefix of the names of the threads
    """

    def __init__(self, threads: int, name: str) -> None:
        # Most runs are short and import no threads.
        from concurrent.futures import ThreadPoolExecutor

        self._executor = ThreadPoolExecutor(threads, name)
        self._calls: set[Future[Any]] = set()

    def submit(self, function: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """Schedule a call, and return its future."""
        future = self._executor.submit(function, *arguments)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Cancel the calls that have not started, and wait for the others."""
        from concurrent.futures import wait

        self._executor.shutdown(wait=kind is not GeneratorExit, cancel_futures=True)
        wait([call for call in tuple(self._calls) if not call.cancel()])
