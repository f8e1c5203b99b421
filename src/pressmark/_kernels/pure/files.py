"""The queue between the threads that hash many files, and changes of files.

The native implementation hashes some files itself, several at a time in the lanes of vector registers. This one has no
lanes: the shared code reads each file and hashes it with hashlib.
"""

from __future__ import annotations

import heapq
import os
import threading
from collections import deque
from collections.abc import Sequence
from errno import EAGAIN, EEXIST, EINVAL, EIO, ENOSYS
from time import sleep
from typing import Any

from pressmark._kernels.flushing import flush_path
from pressmark._kernels.records import ALONE, FLUSH, LOCK, MAKE, MODE, MOVE, RMDIR, UNLINK, WRITE, Step

__all__ = [
    "Engine",
    "lane_count",
    "lane_level",
    "run_steps",
    "sha_extensions",
]


def lane_count(algorithm: str) -> int:
    """Return how many files of ``algorithm`` are hashed at a time in lanes: always 0."""
    return 0


def lane_level() -> str:
    """Return the name of the vector level in use."""
    return "none"


def sha_extensions() -> int:
    """Return which SHA instructions this processor has; unused here, always 0."""
    return 0


class FileBlock:
    """Files that are left to the shared code.

    :ivar done: number of files that have digests
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self.done = 0

    def left(self) -> list[tuple[int, int]]:
        """Return index and size of each file that was not read; the size is unknown: -1."""
        return [(index, -1) for index in range(self._count)]

    def failed(self) -> list[tuple[Any, ...]]:
        """Return each file that failed."""
        return []

    def results(self, paths: list[str], kind: type[tuple[Any, ...]]) -> list[Any]:
        """Return the result of each file."""
        return [None] * self._count

    def lines(self, tags: list[bytes] | None) -> bytes | None:
        """Return the lines of the files in a manifest."""
        return None


class Engine:
    """A queue of files, identified by tickets, and of their results.

    :param names: all algorithms, in the order of a result's digests
    :param lanes: the algorithms that are computed in lanes; unused here
    :param serials: name and constructor of each other algorithm, for files in lanes
    :param direct: for each algorithm in ``serials`` a function for small messages; unused here
    :param flags: flags for opening files
    :param sequential: read one file at a time
    :param beneath: descriptor of a directory: paths are relative to it and must not lead out of it. They must not be
        absolute, must not contain ``..``, and must end with a file name
    :param source: descriptor of a file whose parts are hashed, instead of files; unused here
    :param walked: all paths are those of files and links in directories that were listed; unused here
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
        source: int | None = None,
        walked: bool = False,
    ) -> None:
        lock = threading.Lock()
        self._queued = threading.Condition(lock)
        self._finished = threading.Condition(lock)
        self._queue: list[tuple[int, int]] = []
        self._done: deque[tuple[Any, ...]] = deque()
        self._closed = False
        self._reading = threading.Lock() if sequential else None

    def submit(self, files: Sequence[tuple[int, int, bytes | tuple[int, int] | None, bytes | None]]) -> None:
        """Queue files: ticket, priority, source and copy, which are unused here. The highest priority comes first."""
        with self._queued:
            for ticket, priority, _source, _copy in files:
                heapq.heappush(self._queue, (-priority, ticket))
            self._queued.notify_all()

    def submit_block(self, ticket: int, paths: bytes, count: int, targets: list[bytes] | None, most: int) -> None:
        """Add the result of a block, whose files are all left to the shared code."""
        self.finish(ticket, FileBlock(count))

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


# --- changes of files -------------------------------------------------------------------------------------------------

_CREATE = os.O_CREAT | os.O_EXCL | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_BINARY"))
# On Windows, a virus scanner that holds a new file makes renaming it fail for a moment.
RENAME_TRIES, RENAME_PAUSE = 8, 0.05  # seconds, doubled after each try


def run_steps(bases: list[bytes], lists: list[list[Step]]) -> list[tuple[int, int, int]]:
    """Change files in order, in many directories; stop in each directory at its first failure.

    :param bases: the directories
    :param lists: for each directory its steps, which several may share: see :data:`~pressmark._kernels.records.Step`
    :return: for each directory 0 or an errno, the number of steps that were made, and the descriptor of a locked file,
        or -1; the caller closes it
    :raises ValueError: there are not as many lists as directories
    """
    if len(bases) != len(lists):
        raise ValueError("one list of steps for each directory")
    outcomes: list[tuple[int, int, int]] = []
    try:
        for base, steps in zip(bases, lists, strict=True):
            outcomes.append(_run(base, steps))
    except BaseException:
        for _error, _done, lock in outcomes:
            if lock >= 0:
                os.close(lock)
        raise
    return outcomes


def _run(base: bytes, steps: list[Step]) -> tuple[int, int, int]:
    lock, done = -1, 0
    if not base or b"\0" in base:
        return EINVAL, done, lock
    try:
        for step in steps:
            if step[0] == LOCK:
                lock = _lock(b"%b/%b" % (base, step[1]))
            else:
                _make(base, *step)
            done += 1
    except OSError as error:
        return error.errno or EIO, done, lock
    except ValueError:  # a NUL
        return EINVAL, done, lock
    except BaseException:
        if lock >= 0:
            os.close(lock)
        raise
    return 0, done, lock


def _make(base: bytes, kind: int, name: bytes, other: bytes | int | None) -> None:
    path = b"%b/%b" % (base, name) if name else base
    if isinstance(other, int):
        if kind == MAKE:
            os.mkdir(path, other)
        elif kind == MODE:
            os.chmod(path, other)
        else:
            raise ValueError(kind)
    elif other is None:
        if kind == UNLINK:
            os.unlink(path)
        elif kind == RMDIR:
            os.rmdir(path)
        elif kind == FLUSH:
            flush_path(path)
        else:
            raise ValueError(kind)
    elif kind == WRITE:
        _write(path, other)
    elif kind == MOVE:
        _move(path, b"%b/%b" % (base, other))
    elif kind == ALONE and b"\0" not in other:
        if any(found != other for found in os.listdir(path)):
            raise OSError(EEXIST, "")
    else:
        raise ValueError(kind)


def _lock(path: bytes) -> int:
    try:
        import fcntl
    except ImportError:
        raise OSError(ENOSYS, "") from None
    descriptor = os.open(path, os.O_RDWR | _CREATE, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Another run can remove the directory of the file between the calls: then its name leads elsewhere.
        if not os.path.samestat(os.fstat(descriptor), os.stat(path)):
            raise OSError(EAGAIN, "")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _write(path: bytes, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | _CREATE, 0o666)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
    finally:
        os.close(descriptor)


def _move(old: bytes, new: bytes) -> None:
    # The caller holds a lock: only other programs can interfere between the calls.
    try:
        os.lstat(new)
    except (FileNotFoundError, NotADirectoryError):
        pass
    else:
        os.lstat(old)  # the error of a missing file comes first
        raise OSError(EEXIST, "")
    for attempt in range(RENAME_TRIES):
        try:
            os.rename(old, new)
            return
        except PermissionError:
            if os.name != "nt" or attempt == RENAME_TRIES - 1:
                raise
            sleep(RENAME_PAUSE * 2**attempt)
