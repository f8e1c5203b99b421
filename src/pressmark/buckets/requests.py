"""Many requests at a time, and waits that an interrupt ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from typing import TypeVar

from pressmark.threads import AHEAD, Threads, require_use

__all__ = ["PATIENCE", "REQUESTS", "in_order", "pause"]

#: Requests at a time.
REQUESTS = 16
#: Seconds to wait for requests that only read, when their results are no longer needed.
PATIENCE = 0.5
# Seconds between two looks whether a result is still needed.
LOOK = 0.1

T = TypeVar("T")
R = TypeVar("R")


def in_order(
    function: Callable[[T], R],
    items: Iterable[T],
    on_wait: Callable[[], object] = lambda: None,
    *,
    patience: float | None = None,
    at_a_time: int = REQUESTS,
    ahead: int = AHEAD,
) -> Generator[R, None, None]:
    """Call a function in several threads, and yield the results in the order of the items; few are read ahead.

    :param on_wait: called in this thread, about ten times a second while it waits for a result
    :param patience: seconds to wait for its calls at the end; :data:`None` for no limit, as for a function that writes
    :param at_a_time: number of threads
    :param ahead: as for :meth:`pressmark.threads.Threads.map`
    """

    def wait() -> None:
        require_use()
        on_wait()

    with Threads(at_a_time, "pressmark-request", patience=patience) as pool:
        yield from pool.map(function, items, ahead=ahead, on_wait=wait)


def pause(seconds: float) -> None:
    """Wait, unless the result of this call is no longer needed.

    :raises pressmark.threads.Cancelled: it is not
    """
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        require_use()
        time.sleep(min(LOOK, left))
    require_use()
