"""Copies for several callers at a time, in one run: full lanes are fast, and an object of a store seldom fills them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, TypeVar

from pressmark.fixity.hasher import OpenOptions, transfer_content
from pressmark.fixity.outcomes import PROGRESS_EVERY, Content, Outcome
from pressmark.fixity.pool import LITTLE, OPENING, Run, Task
from pressmark.progress_event import Progress
from pressmark.threads import Cancelled, require_use

__all__ = ["SharedCopies", "shared_copies", "sharing"]

# Files of a caller in flight or waiting for those before them, and files submitted together.
LOOK_AHEAD, BATCH = 256, 64
Key = TypeVar("Key")
Source = bytes | Content


class _Slot:
    """A file of a caller, and finally its outcome."""

    __slots__ = ("finished", "key", "outcome")

    def __init__(self, key: Any, finished: SimpleQueue[None]) -> None:
        self.key = key
        self.finished = finished
        self.outcome: Outcome | None = None


class SharedCopies:
    """A run that copies files for any number of callers.

    :param names: official names of the algorithms; none to copy without digests
    :param options: for opening the sources
    :param threads: number of threads
    """

    def __init__(self, names: Sequence[str], options: OpenOptions, threads: int) -> None:
        self._names = tuple(names)
        self._run = Run(names, threads, options, in_order=False)
        self._given: SimpleQueue[list[Task] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.failure: BaseException | None = None  # that has ended the run

    def copy(
        self, tasks: Iterator[tuple[Key, Source, bytes]], report: Callable[[Progress], object]
    ) -> Generator[tuple[Key, Outcome], None, None]:
        """Copy files, and yield their keys and outcomes in order.

        When the generator ends or is closed, no file is copied for it any more. An interrupt ends the whole run.
        """
        finished: SimpleQueue[None] = SimpleQueue()
        window: deque[_Slot] = deque()
        done = Progress()
        next_progress = monotonic() + PROGRESS_EVERY
        more = True
        try:
            while True:
                while more and len(window) <= LOOK_AHEAD - BATCH:
                    taken = list(islice(tasks, BATCH))
                    more = len(taken) == BATCH
                    window.extend(self._submit(taken, finished))
                while window and (outcome := window[0].outcome) is not None:
                    done = done.plus(1, outcome.size or 0, not outcome.ok)
                    yield window.popleft().key, outcome
                if monotonic() >= next_progress:
                    next_progress = monotonic() + PROGRESS_EVERY
                    report(done)
                if self.failure is not None:
                    raise self.failure
                if not (window or more):
                    break
                self._wait(window, finished)
                require_use()
            report(done)
        except (Cancelled, KeyboardInterrupt):
            self._run.close()
            raise
        finally:
            while window and self.failure is None:
                if window[0].outcome is None:
                    self._wait(window, finished)
                else:
                    window.popleft()

    def close(self) -> None:
        """End the run when all files are copied."""
        self._given.put(None)
        self._run.wake()
        if self._thread is not None:
            self._thread.join()

    def _submit(self, tasks: Sequence[tuple[Any, Source, bytes]], finished: SimpleQueue[None]) -> list[_Slot]:
        slots = []
        files: list[Task] = []
        for key, source, copy in tasks:
            slot = _Slot(key, finished)
            slots.append(slot)
            if isinstance(source, Content):  # read by its own thread
                slot.outcome = transfer_content(source, self._names, copy)
            else:
                files.append((slot, source, copy))
        if files:
            self._given.put(files)
            self._run.wake()
            with self._lock:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._serve, name="pressmark-copies", daemon=True)
                    self._thread.start()
        return slots

    def _wait(self, window: deque[_Slot], finished: SimpleQueue[None]) -> None:
        """Wait a moment for the first outcome."""
        while not finished.empty():
            finished.get()
        if window and window[0].outcome is None:
            with suppress(Empty):
                finished.get(timeout=PROGRESS_EVERY)

    def _serve(self) -> None:
        """Copy the files of all callers until the run is closed."""
        try:
            with closing(self._run.blocks(self._take)) as blocks:
                for files in blocks:
                    for slot, outcome in zip(files.keys(), files.outcomes(), strict=True):
                        slot.outcome = outcome
                        slot.finished.put(None)
        except BaseException as error:
            self.failure = error

    def _take(self, wait: bool) -> list[Task] | None:
        try:
            return self._given.get(wait)
        except Empty:
            return []


# --- who shares -------------------------------------------------------------------------------------------------------

_lock = threading.Lock()
_sharing = 0
_shared: dict[tuple[tuple[str, ...], int, bool], SharedCopies] = {}


@contextmanager
def shared_copies() -> Iterator[None]:
    """Within this statement, all copies of this process share their threads and lanes."""
    global _sharing
    with _lock:
        _sharing += 1
    try:
        yield
    finally:
        with _lock:
            _sharing -= 1
            ended = [] if _sharing else list(_shared.values())
            if not _sharing:
                _shared.clear()
        for shared in ended:
            shared.close()


def sharing(
    first: Iterable[tuple[Any, Source, bytes]], names: Sequence[str], options: OpenOptions, threads: int
) -> SharedCopies | None:
    """Return the run that other callers share; :data:`None` if there is none, or if a thread is not worth its start.

    :param first: the first files
    """
    if not _sharing or _is_little(first):
        return None
    key = (tuple(names), options.flags, options.real)
    with _lock:
        shared = _shared.get(key)
        if _sharing and (shared is None or shared.failure is not None):
            shared = _shared[key] = SharedCopies(names, options, threads)
    return shared


def _is_little(tasks: Iterable[tuple[Any, Source, bytes]]) -> bool:
    """Return whether files are copied before a thread has started."""
    total = 0
    for _key, source, _copy in tasks:
        total += OPENING
        if not isinstance(source, Content):
            with suppress(OSError, ValueError):
                total += os.stat(source).st_size
        if total > LITTLE:
            return False
    return True
