"""The queue between the threads that hash many files.

The native implementation hashes some files itself, several at a time in the lanes of vector registers. This one has no
lanes: the shared code reads each file and hashes it with hashlib.
"""

from __future__ import annotations

import heapq
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "Engine",
    "check_small_bags",
    "copy_small",
    "copy_small_tree",
    "lane_count",
    "lane_level",
    "move_object",
    "read_small_folder",
    "scan_ocfl",
    "sha_extensions",
    "write_small",
]


def lane_count(algorithm: str) -> int:
    """Return how many files of ``algorithm`` are hashed at a time in lanes: always 0."""
    return 0


def lane_level() -> str:
    """Return the name of the vector level in use."""
    return "none"


def sha_extensions() -> bool:
    """Return whether this processor has instructions for SHA-1 and SHA-256; unused here, always False."""
    return False


class Engine:
    """A queue of files, identified by tickets, and of their results.

    :param names: all algorithms, in the order of a result's digests
    :param lanes: the algorithms that are computed in lanes; unused here
    :param serials: name and constructor of each other algorithm, for files in lanes
    :param direct: name and function of each algorithm, if all of them compute a digest of a small file faster than it
        is read; unused here
    :param flags: flags for opening files
    :param sequential: read one file at a time
    :param beneath: descriptor of a directory: paths are relative to it and must not lead out of it. They must not be
        absolute, must not contain ``..``, and must end with a file name
    :param copying: files are copied; unused here
    """

    def __init__(
        self,
        names: Sequence[str],
        lanes: Sequence[str],
        serials: Sequence[Any],
        direct: Sequence[Any],
        flags: int,
        sequential: bool,
        beneath: int | None = None,
        copying: bool = False,
    ) -> None:
        lock = threading.Lock()
        self._queued = threading.Condition(lock)
        self._finished = threading.Condition(lock)
        self._queue: list[tuple[int, int]] = []
        self._done: deque[tuple[Any, ...]] = deque()
        self._closed = False
        self._reading = threading.Lock() if sequential else None

    def file_sizes(self, paths: list[bytes]) -> list[int]:
        """Return the sizes of regular files; -1 for any other path, to be examined by the caller: here for all."""
        return [-1] * len(paths)

    def submit(
        self, files: list[tuple[int, int, bytes | None]] | list[tuple[int, int, bytes | None, bytes, bytearray]]
    ) -> None:
        """Queue files: ticket, priority, and a path or :data:`None`. The highest priority comes first."""
        with self._queued:
            for ticket, priority, *_paths in files:
                heapq.heappush(self._queue, (-priority, ticket))
            self._queued.notify_all()

    def work(self, wait: bool = True) -> int | None:
        """Wait for the next file and return its ticket.

        Return :data:`None` if the engine is closed, and without ``wait`` if no file is left.
        """
        with self._queued:
            while wait and not self._queue and not self._closed:
                self._queued.wait()
            return heapq.heappop(self._queue)[1] if self._queue and not self._closed else None

    def finish(self, ticket: int, result: Any) -> None:
        """Add the result of a file that was not hashed in lanes."""
        with self._finished:
            self._done.append((ticket, result))
            self._finished.notify()

    def collect(self, seconds: float) -> list[tuple[Any, ...]]:
        """Return ``(ticket, result)`` of each finished file; wait for the first at most ``seconds``."""
        with self._finished:
            if not self._done:
                self._finished.wait(seconds)
            done, self._done = self._done, deque()
            return list(done)

    def read_bytes(self) -> int:
        """Return how many bytes the lanes have read."""
        return 0

    def lock_reading(self) -> None:
        """If reading is sequential, wait until no other thread reads."""
        if self._reading is not None:
            self._reading.acquire()

    def unlock_reading(self) -> None:
        """Let the next thread read."""
        if self._reading is not None:
            self._reading.release()

    def close(self) -> None:
        """Discard the queue and let all workers return."""
        with self._queued:
            self._closed = True
            self._queue.clear()
            self._queued.notify_all()

    def closed(self) -> bool:
        """Return whether :meth:`close` was called."""
        return self._closed


def check_small_bags(paths: list[bytes]) -> list[None]:
    """Return :data:`None` for each path: the shared code validates the bags."""
    return [None] * len(paths)


def copy_small(source: bytes, target: bytes, flags: int) -> None:
    """Return :data:`None`: the shared code copies the file."""


def write_small(paths: list[bytes], contents: list[bytes | None]) -> bool:
    """Return :data:`False`: the shared code writes the files."""
    return False


def copy_small_tree(
    above: bytes, name: bytes, folders: tuple[bytes, ...], device: int, flags: int, hashed: bool = True
) -> None:
    """Return :data:`None`: the shared code copies the directory."""


def move_object(old: bytes, base: bytes, place: bytes, signs: tuple[bytes, ...]) -> bool:
    """Return :data:`False`: the shared code moves the object."""
    return False


def read_small_folder(
    directory: int, skip: bytes, algorithms: tuple[tuple[str, Callable[[int], Any]], ...], reads: bool = True
) -> None:
    """Return :data:`None`: the shared code reads the files."""


def scan_ocfl(
    top: bytes, place: bytes, names: list[bytes], reads: str, version: str, clashes: bool, budget: int
) -> tuple[int, list[tuple[bytes, Any]]]:
    """Return the rest of the budget, and :data:`None` for the path of each directory of an OCFL storage root.

    Nothing is read here: the shared code does that.
    """
    return budget, [(place + b"/" + name if place else name, None) for name in names]
