"""Files to another place, and their digests: by copying (one read for both), by cloning, or by hard links.

A copy keeps its original's permission bits and times. What goes wrong with an original is an outcome, as in
:mod:`pressmark.fixity`; what goes wrong with the copy, such as a full disk, ends the run.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from itertools import chain
from time import monotonic
from typing import NamedTuple

from pressmark import _kernels
from pressmark.errors import BagError
from pressmark.fixity.algorithms import ALGORITHMS, algorithm_names
from pressmark.fixity.hasher import CHANGED, READ_SIZE, OpenOptions, changes, error_outcome
from pressmark.fixity.outcomes import Outcome, failed_outcome
from pressmark.fixity.pool import Finished, Progress, hash_files
from pressmark.generator_pool import GeneratorPool

__all__ = ["MODES", "CopyTask", "Copying", "copy_file", "copy_files", "keep_status"]

MODES = ("copy", "reflink", "hardlink", "auto")
# Files that are under way or wait for those before them: enough for every thread, and few kilobytes.
LOOK_AHEAD = 256
# A file of this size is worth a thread for each digest and one for writing, on blocks of a size worth handing over.
LARGE, LARGE_BLOCK = 1 << 25, 1 << 21  # 32 MiB, 2 MiB
PROGRESS_EVERY = 0.1  # seconds
QUICK = ("sha512",)  # the digests that a kernel computes while it copies a small file
KEPT_BITS = 0o777  # of a mode: whose program it is to run as is not for a copy to say

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
# What the ioctl says where a file system cannot clone, or not from that one, or not a file like this.
_NO_CLONE = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM}
FICLONE = 0x40049409  # linux/fs.h
_BY_DESCRIPTOR = {os.chmod, os.utime} <= os.supports_fd


class CopyTask(NamedTuple):
    """One file to be copied.

    :ivar source: a regular file, or a symbolic link to one where links are followed
    :ivar target: where its copy goes; nothing is there, its directory is
    """

    source: bytes
    target: bytes


class Copying(NamedTuple):
    """An event: how files are copied from here on.

    :ivar mode: ``copy``, ``reflink`` or ``hardlink``
    """

    mode: str


Event = Finished | Progress | Copying


class _Cancelled(Exception):
    """The run that asked for this copy is over."""


def copy_files(
    jobs: Iterable[CopyTask],
    algorithms: Sequence[str],
    *,
    mode: str = "copy",
    threads: int | None = None,
    read: str = "parallel",
    links: str = "refuse",
    on_event: Callable[[Event], object] | None = None,
) -> Generator[Outcome, None, None]:
    """Copy many files, each read once, and give their outcomes lazily, in the order of ``jobs``; paths are sources.

    :param algorithms: of the digests
    :param mode: ``copy``; ``reflink``: share the blocks until one of the two is written to, where the file system can;
        ``hardlink``: one file under two names; ``auto``: reflink where that goes, else copy
    :param threads: how many copy at a time; :data:`None` or 0 for as many as there are cores
    :param read: ``parallel``, or ``sequential``: one file after another
    :param links: ``refuse`` symbolic links, or ``follow`` them and copy what they lead to
    :raises AlgorithmError: an algorithm is unknown
    :raises BagError: files cannot be cloned or linked here
    :raises OSError: a copy cannot be written
    """
    names = algorithm_names(algorithms)
    options = OpenOptions(links == "follow")
    workers = 1 if read == "sequential" else threads or os.cpu_count() or 1
    tell = on_event or (lambda _event: None)
    jobs = iter(jobs)
    if mode in ("reflink", "auto"):
        first = next(jobs, None)
        if first is None:
            return
        jobs = chain([first], jobs)
        if mode == "auto":
            mode = "reflink" if _can_clone(first, options) else "copy"
    tell(Copying(mode))
    if mode == "copy":
        yield from _copy(jobs, names, options, workers, tell)
        return
    # What is hashed is the copy, so that its digest is right whatever becomes of the original.
    share = _clone if mode == "reflink" else _link
    sources: deque[bytes] = deque()

    def shared() -> Iterator[bytes | Outcome]:
        for job in jobs:
            sources.append(job.source)
            yield share(job, options)

    outcomes = hash_files(shared(), names, workers, tell, links="refuse", read=read)
    try:
        for outcome in outcomes:
            yield outcome._replace(path=sources.popleft())
    finally:
        outcomes.close()  # type: ignore[attr-defined]


# --- clones and links -------------------------------------------------------------------------------------------------


def _link(job: CopyTask, options: OpenOptions) -> bytes | Outcome:
    """Give a file a second name, and return that."""
    try:
        source = os.path.realpath(job.source) if options.follow else job.source
        if (kind := options.refuses(os.lstat(source).st_mode)) is not None:
            return failed_outcome(job.source, kind)
        os.link(source, job.target, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
            raise BagError(job.source, f"no hard link can be made of it: {error.strerror}; use copy") from None
        if error.errno in (errno.ENOENT, errno.EACCES, errno.ELOOP) and not os.path.lexists(job.target):
            return error_outcome(job.source, error.errno or 0, options)
        raise
    return job.target


def _can_clone(job: CopyTask, options: OpenOptions) -> bool:
    """Return whether the target's file system can clone files, by trying it with the first."""
    try:
        cloned = _clone(job, options)
    except BagError:
        return False
    if isinstance(cloned, bytes):
        os.unlink(cloned)
    return True


def _clone(job: CopyTask, options: OpenOptions) -> bytes | Outcome:
    """Let a new file share all blocks of another, and return its path."""
    try:
        source = os.open(job.source, options.flags)
    except OSError as error:
        return error_outcome(job.source, error.errno or 0, options)
    try:
        status = os.fstat(source)
        if (kind := options.refuses(status.st_mode)) is not None:
            return failed_outcome(job.source, kind, status=status)
        target = os.open(job.target, _NEW, 0o600)
        try:
            _ficlone(source, target)
        except OSError as error:
            os.unlink(job.target)
            if error.errno in _NO_CLONE:
                raise BagError(job.source, f"it cannot be cloned: {error.strerror}; use copy or auto") from None
            raise
        finally:
            os.close(target)
        keep_status(job.target, status)
    finally:
        os.close(source)
    return job.target


def _ficlone(source: int, target: int) -> None:
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    import fcntl

    fcntl.ioctl(target, FICLONE, source)


def keep_status(target: bytes | int, status: os.stat_result) -> None:
    """Give a file or directory, or what a descriptor is open for, the permission bits and times of ``status``."""
    # A file system may have none of its own. By contextlib, this would be much of what a small file costs.
    try:  # noqa: SIM105
        os.chmod(target, stat.S_IMODE(status.st_mode) & KEPT_BITS)
    except (PermissionError, NotImplementedError):
        pass
    try:  # noqa: SIM105
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    except (PermissionError, NotImplementedError):
        pass


# --- copies -----------------------------------------------------------------------------------------------------------


class _Tally:
    """What all threads have done so far, and whether they are to stop."""

    def __init__(self) -> None:
        self.bytes = 0
        self.cancelled = False
        self._lock = threading.Lock()

    def count(self, size: int) -> None:
        if self.cancelled:
            raise _Cancelled
        with self._lock:
            self.bytes += size


def _copy(
    jobs: Iterator[CopyTask], names: Sequence[str], options: OpenOptions, workers: int, tell: Callable[[Event], object]
) -> Generator[Outcome, None, None]:
    tally = _Tally()
    files = failed = 0
    next_progress = monotonic() + PROGRESS_EVERY
    window: list[Future[Outcome]] = []
    with GeneratorPool(workers, "pressmark-copy") as pool:
        try:
            more = True
            while more or window:
                while more and len(window) < LOOK_AHEAD:
                    job = next(jobs, None)
                    if job is None:
                        more = False
                    else:
                        window.append(pool.submit(copy_file, job, names, options, tally.count))
                if window and wait(window[:1], PROGRESS_EVERY).done:
                    outcome = window.pop(0).result()
                    files += 1
                    failed += not outcome.ok
                    tell(Finished(outcome))
                    yield outcome
                if monotonic() >= next_progress:
                    next_progress = monotonic() + PROGRESS_EVERY
                    tell(Progress(files, tally.bytes, failed))
            tell(Progress(files, tally.bytes, failed))
        finally:
            tally.cancelled = True


def copy_file(
    job: CopyTask, names: Sequence[str], options: OpenOptions, on_bytes: Callable[[int], object] = lambda _size: None
) -> Outcome:
    """Copy one file, and return its outcome with the digests of what was written.

    :param names: official names of algorithms
    :param on_bytes: called with the size of each block; what it raises ends the copy
    :raises OSError: the copy cannot be written
    """
    if tuple(names) == QUICK and (quick := _copy_quickly(job, options, on_bytes)) is not None:
        return quick
    try:
        source = os.open(job.source, options.flags)
    except OSError as error:
        return error_outcome(job.source, error.errno or 0, options)
    try:
        before = os.fstat(source)
        if (kind := options.refuses(before.st_mode)) is not None:
            return failed_outcome(job.source, kind, status=before)
        if 0 < before.st_size < READ_SIZE:
            return _copy_small(source, before, job, names, options, on_bytes)
        hashers = {name: ALGORITHMS[name].make(1) for name in names}
        updates = [hasher.update for hasher in hashers.values()]
        try:
            with open(job.target, "xb", buffering=0, opener=_opener) as target:
                blocks = _blocks(source, LARGE_BLOCK if before.st_size >= LARGE else READ_SIZE)
                feed = _feed_by_threads if before.st_size >= LARGE else _feed
                total = feed(blocks, [_writer(target.fileno()), *updates], before.st_size, on_bytes)
            after = os.fstat(source)
            keep_status(job.target, before)
        except _ReadError as error:
            return error_outcome(job.source, error.number, options)
        reason = changes(before.st_size, before.st_mtime_ns, after.st_size, after.st_mtime_ns, total, 0)
        if reason is None and total != before.st_size:
            # Files that the kernel makes up say 0 and hold something: there is no telling what a copy of one is.
            reason = f"it has {before.st_size} bytes, but {total} were read"
        if reason is not None:
            return Outcome(job.source, None, before.st_size, before.st_mtime_ns, before.st_ino, CHANGED, reason)
    finally:
        os.close(source)
    digests = {name: hashers[name].hexdigest() for name in names}
    return Outcome(job.source, digests, total, before.st_mtime_ns, before.st_ino)


def _copy_quickly(job: CopyTask, options: OpenOptions, on_bytes: Callable[[int], object]) -> Outcome | None:
    """Copy a file in one call of a kernel; :data:`None` where that is not for it."""
    found = _kernels.active.copy_small(job.source, job.target, options.flags)
    if found is None:
        return None
    word, *facts = found
    if word == "source":
        return error_outcome(job.source, facts[0], options)
    if word == "target":
        raise OSError(facts[0], os.strerror(facts[0]), job.target)
    if word == "changed":
        size, mtime_ns, inode, size_after, mtime_ns_after, total = facts
        reason = changes(size, mtime_ns, size_after, mtime_ns_after, total, 0)
        return Outcome(job.source, None, size, mtime_ns, inode, CHANGED, str(reason))
    digest, size, mtime_ns, inode = facts
    on_bytes(size)
    return Outcome(job.source, {QUICK[0]: digest}, size, mtime_ns, inode)


def _copy_small(
    source: int,
    before: os.stat_result,
    job: CopyTask,
    names: Sequence[str],
    options: OpenOptions,
    on_bytes: Callable[[int], object],
) -> Outcome:
    """Copy a file that one read takes in: of many small ones, what surrounds the copying is what costs."""
    size, mtime_ns = before.st_size, before.st_mtime_ns
    try:
        # One byte more than there should be: a file that has grown shows itself without a second read.
        data = os.read(source, size + 1)
        while len(data) < size and (more := os.read(source, size + 1 - len(data))):
            data += more
        after = os.fstat(source)
    except OSError as error:
        return error_outcome(job.source, error.errno or 0, options)
    reason = changes(size, mtime_ns, after.st_size, after.st_mtime_ns, len(data), 0)
    if reason is not None:
        return Outcome(job.source, None, size, mtime_ns, before.st_ino, CHANGED, reason)
    digests = {}
    for name in names:
        hasher = ALGORITHMS[name].make(1)
        hasher.update(data)
        digests[name] = hasher.hexdigest()
    target = os.open(job.target, _NEW, 0o600)
    try:
        _writer(target)(memoryview(data))
        keep_status(target if _BY_DESCRIPTOR else job.target, before)
    finally:
        os.close(target)
    on_bytes(size)
    return Outcome(job.source, digests, size, mtime_ns, before.st_ino)


class _ReadError(Exception):
    """The original failed, not the copy."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _opener(path: str | bytes, _flags: int) -> int:
    return os.open(path, _NEW, 0o600)


def _writer(descriptor: int) -> Callable[[memoryview], object]:
    def write(block: memoryview) -> None:
        while block:
            block = block[os.write(descriptor, block) :]

    return write


def _blocks(descriptor: int, size: int) -> Iterator[bytes]:
    while True:
        try:
            block = os.read(descriptor, size)
        except OSError as error:
            raise _ReadError(error.errno or 0) from None
        if not block:
            return
        yield block


Update = Callable[[memoryview], object]


def _feed(blocks: Iterable[bytes], updates: Sequence[Update], expected: int, on_bytes: Callable[[int], object]) -> int:
    """Give each block to all of ``updates``, and return how many bytes there were."""
    total = 0
    for block in blocks:
        total += len(block)
        if total > expected:
            break  # a file that is written to without end must not be copied without end
        view = memoryview(block)
        for update in updates:
            update(view)
        on_bytes(len(block))
    return total


def _feed_by_threads(
    blocks: Iterable[bytes], updates: Sequence[Update], expected: int, on_bytes: Callable[[int], object]
) -> int:
    """Do as :func:`_feed`, writing and all digests at the same time, while the next block is being read."""
    total = 0
    running: list[Future[object]] = []
    with ThreadPoolExecutor(len(updates)) as pool:
        for block in blocks:
            for future in running:
                future.result()
            total += len(block)
            if total > expected:
                break
            view = memoryview(block)
            running = [pool.submit(update, view) for update in updates]
            on_bytes(len(block))
        for future in running:
            future.result()
    return total
