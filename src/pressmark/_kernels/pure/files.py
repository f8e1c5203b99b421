"""The queue between the threads of a run over many files: the readable twin, in which every file is serial.

The fast twin computes some of the files by itself, side by side in the lanes of vector registers. This one has no
lanes: it gives every file back to the shared code, which reads it and asks hashlib.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

__all__ = [
    "Engine",
    "copy_small",
    "copy_small_tree",
    "lane_count",
    "lane_level",
    "move_object",
    "sha_extensions",
    "write_small",
]


def lane_count(algorithm: str) -> int:
    """Return how many files of ``algorithm`` are computed side by side: here none."""
    return 0


def lane_level() -> str:
    """Return the name of the vector level in use."""
    return "none"


def sha_extensions() -> bool:
    """Return whether this processor has instructions for SHA-1 and SHA-256: here nobody asks."""
    return False


class Engine:
    """Tickets in, tickets and results out.

    :param names: all algorithms, in the order of a result's digests
    :param lanes: those of them that are computed in lanes: here none
    :param serials: for each of the others a function that begins its digest, for files in lanes; the name and it
    :param flags: for opening files
    :param sequential: no two files are read at the same time
    :param beneath: descriptor of the directory that paths are relative to and must not lead out of; then none is
        absolute, leads upwards, or ends without the name of a file
    """

    def __init__(
        self,
        names: Sequence[str],
        lanes: Sequence[str],
        serials: Sequence[Any],
        flags: int,
        sequential: bool,
        beneath: int | None = None,
    ) -> None:
        lock = threading.Lock()
        self._queued = threading.Condition(lock)
        self._finished = threading.Condition(lock)
        self._queue: list[tuple[int, int]] = []
        self._done: deque[tuple[Any, ...]] = deque()
        self._closed = False
        self._reading = threading.Lock() if sequential else None

    def submit(self, files: list[tuple[int, int, bytes | None]]) -> None:
        """Queue files: of each its ticket, its priority, and its path where it is for lanes, which are not here.

        The highest priority comes first.
        """
        with self._queued:
            for ticket, priority, _path in files:
                heapq.heappush(self._queue, (-priority, ticket))
            self._queued.notify_all()

    def work(self) -> int | None:
        """Wait for the next serial file and return its ticket; :data:`None` when the engine is closed."""
        with self._queued:
            while not self._queue and not self._closed:
                self._queued.wait()
            return None if self._closed else heapq.heappop(self._queue)[1]

    def finish(self, ticket: int, result: Any) -> None:
        """Hand over the result of a serial file."""
        with self._finished:
            self._done.append((ticket, result))
            self._finished.notify()

    def collect(self, seconds: float) -> list[tuple[Any, ...]]:
        """Return ``(ticket, result)`` for what was finished; wait for the first, at most for so many ``seconds``."""
        with self._finished:
            if not self._done:
                self._finished.wait(seconds)
            done, self._done = self._done, deque()
            return list(done)

    def read_bytes(self) -> int:
        """Return how many bytes the lanes have read."""
        return 0

    def lock_reading(self) -> None:
        """Wait until nobody else reads, where reading is sequential."""
        if self._reading is not None:
            self._reading.acquire()

    def unlock_reading(self) -> None:
        """Let the next one read."""
        if self._reading is not None:
            self._reading.release()

    def close(self) -> None:
        """Forget what is queued, and let every worker return."""
        with self._queued:
            self._closed = True
            self._queue.clear()
            self._queued.notify_all()

    def closed(self) -> bool:
        """Return whether :meth:`close` was called."""
        return self._closed


def copy_small(source: bytes, target: bytes, flags: int) -> None:
    """Return nothing: this file is not for this twin, and nothing was made."""


def write_small(paths: list[bytes], contents: list[bytes | None]) -> bool:
    """Return that these files are not for this twin, and nothing was made."""
    return False


def copy_small_tree(above: bytes, name: bytes, folders: tuple[bytes, ...], device: int, flags: int) -> None:
    """Return nothing: this implementation leaves the directory to the shared code."""


def move_object(old: bytes, base: bytes, place: bytes, signs: tuple[bytes, ...]) -> bool:
    """Return that this object is not for this twin, and nothing was moved."""
    return False
