"""The number of threads to use, a pool of threads for generators, and calls that handle many items."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["GeneratorPool", "call_for_all", "limit", "resolve_threads"]

T = TypeVar("T")
Item = TypeVar("Item")
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
        self._threads = threads
        self._calls: set[Future[Any]] = set()
        self._is_left = False

    def submit(self, function: Callable[..., T], /, *arguments: Any) -> Future[T]:
        """Schedule a call, and return its future."""
        future = self._executor.submit(function, *arguments)
        self._calls.add(future)
        future.add_done_callback(self._calls.discard)
        return future

    def map(self, function: Callable[[Item], T], items: Iterable[Item]) -> Iterator[T]:
        """Call a function with each item, and yield the results in order; items are taken shortly before their call."""
        waiting: deque[Future[T]] = deque()
        for item in items:
            waiting.append(self.submit(function, item))
            if len(waiting) > 2 * self._threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def require_use(self) -> None:
        """End a call, in its thread, if nobody will read its result.

        :raises CancelledError: the ``with`` statement is being left
        """
        if self._is_left:
            from concurrent.futures import CancelledError

            raise CancelledError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Cancel the calls that have not started, and wait for the others."""
        from concurrent.futures import wait

        self._is_left = True
        self._executor.shutdown(wait=kind is not GeneratorExit, cancel_futures=True)
        wait([call for call in tuple(self._calls) if not call.cancel()])


def call_for_all(
    function: Callable[[list[Item]], list[T]], items: list[Item], require_use: Callable[[], object] | None = None
) -> list[T]:
    """Call a kernel that returns fewer results than items if it takes too long, until there is one for each.

    An interrupt waits for a running call, and on a slow disk or network each item may take long.

    :param require_use: called between two calls, as :meth:`GeneratorPool.require_use`
    """
    found = function(items)
    while len(found) < len(items):
        if require_use is not None:
            require_use()
        found += function(items[len(found) :])
    return found
