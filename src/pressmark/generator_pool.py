"""A pool of threads for generators."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

__all__ = ["GeneratorPool"]

T = TypeVar("T")


class GeneratorPool(ThreadPoolExecutor):
    """A pool of threads for the work of a generator; use it in a ``with`` statement.

    Leaving the statement cancels the calls that have not begun and waits for those that have. When the generator is
    closed, the threads are not joined: the garbage collector may close it on a thread that holds a lock of
    :mod:`threading`, and there, before CPython 3.13, joining another thread never returns.

    :param threads: maximum number of threads
    :param name: prefix of the names of the threads
    """

    def __init__(self, threads: int, name: str) -> None:
        super().__init__(threads, name)
        self._calls: set[Future[Any]] = set()

    def submit(self, function: Callable[..., T], /, *arguments: Any, **keywords: Any) -> Future[T]:
        """Schedule a call, and return its future."""
        future = super().submit(function, *arguments, **keywords)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return future

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Cancel the calls that have not begun, and wait for the others."""
        self.shutdown(wait=kind is not GeneratorExit, cancel_futures=True)
        wait([call for call in tuple(self._calls) if not call.cancel()])
