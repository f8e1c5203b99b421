"""Many requests at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["REQUESTS", "in_order"]

#: Requests at a time.
REQUESTS = 16

T = TypeVar("T")
R = TypeVar("R")


def in_order(function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """Call a function in several threads, and yield the results in the order of the items; few are read ahead."""
    with ThreadPoolExecutor(REQUESTS, "pressmark-request") as pool:
        waiting: deque[Future[R]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= 2 * REQUESTS:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for one in waiting:
                one.cancel()
