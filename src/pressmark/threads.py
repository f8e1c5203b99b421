"""The number of threads to use, and calls on several threads whose results come in order."""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future
    from queue import SimpleQueue
    from threading import Thread

__all__ = ["AHEAD", "MOST", "Cancelled", "Threads", "limit", "ordered_map", "require_use", "resolve_threads", "started"]

Result = TypeVar("Result")
Item = TypeVar("Item")
# Of this process, as one of several that share the cores.
limit: int | None = None
#: Calls in flight for each thread: one that runs and one that waits, so that no thread has to wait for an item.
AHEAD = 2
MOST = 1024  # more would cost memory, and gain nothing
WAIT = 0.1  # seconds


class Cancelled(BaseException):
    """The result of this call is not needed. It is no :class:`Exception`, so that handlers of errors let it pass."""


def resolve_threads(threads: int | None) -> int:
    """Return ``threads``, at most :data:`MOST`; for :data:`None` the number of cores of this process, or its share.

    :raises ValueError: ``threads`` is less than 1
    """
    if threads is not None and threads < 1:
        raise ValueError(f"threads={threads}: expected at least 1, or None for one per core")
    if threads or limit:
        return min(threads or limit or 1, MOST)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def started(thread: Thread) -> bool:
    """Start a thread, and return whether the system allowed it. Without it, its work falls to the others."""
    try:
        thread.start()
    except RuntimeError:  # the limit of threads or of memory; no run needs more than the calling thread
        return False
    return True


class Threads:
    """Threads that run calls, for use in a ``with`` statement. A thread starts when a call needs it; if the system
    allows none, the calling thread runs the calls.

    Leaving the statement cancels the calls that have not started and waits for the others, which can ask
    :func:`require_use`. When a generator is closed, the threads are not joined: the garbage collector may close it on a
    thread that holds a lock of :mod:`threading`, and there, before CPython 3.13, joining another thread never returns.

    :param count: maximum number of threads
    :param name: name of the threads
    :param patience: seconds to wait for calls that are running when the statement is left; :data:`None` for no limit
    :ivar abandoned: whether calls were still running after that time
    """

    def __init__(self, count: int, name: str, *, patience: float | None = None) -> None:
        self.abandoned = False
        self._count = count
        self._name = name
        self._patience = patience
        self._queue: SimpleQueue[Any] | None = None  # a call, function and arguments; None at the end
        self._workers: list[Thread] = []
        self._calls: set[Future[Any]] = set()  # that have not ended
        self._is_left = False

    def submit(self, function: Callable[..., Result], /, *arguments: Any) -> Future[Result]:
        """Schedule a call, and return its future."""
        # Most runs are short and import no threads.
        from concurrent.futures import Future
        from queue import SimpleQueue
        from threading import Thread

        if self._queue is None:
            self._queue = SimpleQueue()
        call: Future[Result] = Future()
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        self._queue.put((call, function, arguments))
        if len(self._workers) < min(self._count, len(self._calls)):
            worker = Thread(target=self._work, args=(self._queue,), name=self._name, daemon=True)
            if started(worker):
                self._workers.append(worker)
            elif not self._workers:
                _run(*self._queue.get_nowait())
        return call

    def map(
        self,
        function: Callable[[Item], Result],
        items: Iterable[Item],
        *,
        ahead: int = AHEAD,
        inline: Callable[[Item], bool] | None = None,
        on_wait: Callable[[], object] | None = None,
    ) -> Iterator[Result]:
        """Call a function with each item, and yield the results in order.

        An error of a call is raised in the place of its result, and an error of ``items`` after all results before it.
        With one thread and without ``on_wait``, the calls run in the calling thread.

        :param ahead: the maximum number of calls in flight for each thread
        :param inline: returns whether to call the function with an item in the calling thread, after the results before
            it; the next item may depend on this result
        :param on_wait: called in the calling thread, about ten times a second while it waits for a result
        """
        waiting: deque[Future[Result]] = deque()
        given = iter(items)
        failure: Exception | None = None
        while True:
            try:
                item = next(given)
            except StopIteration:
                break
            except Exception as error:
                failure = error
                break
            if (self._count > 1 or on_wait is not None) and (inline is None or not inline(item)):
                waiting.append(self.submit(function, item))
                if len(waiting) >= ahead * self._count:
                    yield _result(waiting.popleft(), on_wait)
                continue
            while waiting:
                yield _result(waiting.popleft(), on_wait)
            yield function(item)
        while waiting:
            yield _result(waiting.popleft(), on_wait)
        if failure is not None:
            raise failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_error: object) -> None:
        """Cancel the calls that have not started, and wait for the others."""
        self._is_left = True
        # At the end of the interpreter, the threads have stopped in the middle of their calls.
        if self._queue is None or sys.is_finalizing():
            return
        from concurrent.futures import wait

        running = [call for call in tuple(self._calls) if not call.cancel()]
        self._queue.put(None)
        # The garbage collector may close a generator in one of its own calls.
        if _users.get(get_ident()) is self:
            return
        self.abandoned = bool(wait(running, self._patience).not_done)
        if kind is not GeneratorExit and not self.abandoned:
            for worker in self._workers:
                worker.join()

    def _work(self, queue: SimpleQueue[Any]) -> None:
        _users[get_ident()] = self
        while (task := queue.get()) is not None:
            _run(*task)
            del task  # not to be kept while this thread waits
        queue.put(None)  # for the next thread
        del _users[get_ident()]


def _result(call: Future[Result], on_wait: Callable[[], object] | None) -> Result:
    """Return the result of a call when it has ended."""
    while on_wait is not None and not call.done():
        try:
            return call.result(WAIT)
        except TimeoutError:  # or an error of the call
            on_wait()
    return call.result()


# What each of their threads works for.
_users: dict[int, Threads] = {}


def _run(call: Future[Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    if not call.set_running_or_notify_cancel():
        return
    try:
        result = function(*arguments)
    except BaseException as error:
        call.set_exception(error)
        del call  # the error refers to this frame
    else:
        call.set_result(result)


def require_use() -> None:
    """End the current call of this thread if its result is not needed.

    A call asks between two accesses that may each take 20 ms, so that an interrupt ends the run within a fifth of a
    second. Outside of a call on :class:`Threads`, this does nothing.

    :raises Cancelled: the ``with`` statement of the threads is being left
    """
    user = _users.get(get_ident())
    if user is not None and user._is_left:
        raise Cancelled


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    threads: int | None = None,
    name: str,
    ahead: int = AHEAD,
    inline: Callable[[Item], bool] | None = None,
) -> Iterator[Result]:
    """Call a function with each item on several threads, and yield the results in order, like :meth:`Threads.map`.

    :param threads: number of threads; :data:`None` for one per core
    :param name: name of the threads
    :raises ValueError: ``threads`` is negative
    """
    with Threads(resolve_threads(threads), name) as pool:
        yield from pool.map(function, items, ahead=ahead, inline=inline)
