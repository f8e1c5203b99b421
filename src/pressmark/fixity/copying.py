"""Copying, cloning or hard-linking files, with digests. A copy and its digests take one read.

A copy keeps the permission bits and times of the source. Errors of a source are outcomes, as in
:mod:`pressmark.fixity`, and so are those of a copy, such as a full disk: the caller decides what they mean, and removes
copies that are not complete.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain, islice
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pressmark import _kernels
from pressmark.errors import BagError
from pressmark.fixity.algorithms import ALGORITHMS, algorithm_names
from pressmark.fixity.hasher import CHANGED, NEW, READ_SIZE, OpenOptions, changes, error_outcome, transfer_content
from pressmark.fixity.outcomes import PROGRESS_EVERY, Content, Outcome, failed_outcome, not_written
from pressmark.fs.beneath import REAL
from pressmark.fs.file_errors import kind_of_mode
from pressmark.progress_event import Progress
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["MODES", "Copying", "ReadError", "copy_file", "copy_files", "keep_status", "read_blocks"]

MODES = ("copy", "reflink", "hardlink", "auto")
# Up to this number of files and bytes, no thread is started.
FEW, LITTLE = 16, 1 << 18
# From this size, each digest and the writing have a thread.
LARGE, LARGE_BLOCK = 1 << 25, 1 << 21  # 32 MiB, 2 MiB
QUICK = ("sha512",)  # the digests that the kernel for small files computes
KEPT_BITS = 0o777  # of the mode: not setuid, setgid and sticky

# Errors of the ioctl if these files cannot be cloned.
_NO_CLONE = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM}
FICLONE = 0x40049409  # linux/fs.h
_BY_DESCRIPTOR = {os.chmod, os.utime} <= os.supports_fd


Key = TypeVar("Key")
Source = bytes | Content
Task = tuple[Any, Source, bytes]  # key, source, target


class Copying(NamedTuple):
    """An event: the copy mode of the run.

    :ivar mode: ``copy``, ``reflink`` or ``hardlink``
    """

    mode: str


Event = Progress | Copying


def copy_files(
    tasks: Iterable[tuple[Key, Source, bytes]],
    algorithms: Sequence[str],
    *,
    mode: str = "copy",
    threads: int | None = None,
    read: str = "parallel",
    links: str = "refuse",
    real: bool = False,
    on_event: Callable[[Event], object] | None = None,
) -> Generator[tuple[Key, Outcome], None, None]:
    """Copy files, each read once, and yield the key and outcome of each lazily, in order.

    The paths of the outcomes are those of the sources. If a copy cannot be written, the outcome is of kind
    ``not-written``, and has its path: see :func:`~pressmark.fixity.outcomes.require_written`.

    :param tasks: a key, which can be anything; the path of a regular file, or of a symbolic link to one if links are
        followed, or a :class:`Content`; and the path of the copy, which does not exist, but its directory does
    :param algorithms: algorithms of the digests; if empty, copies and clones are not hashed
    :param mode: ``copy``; ``reflink``: clone files, which share blocks until they are changed; ``hardlink``: link
        files; ``auto``: reflink if the file system supports it, otherwise copy. If a :class:`Content` comes first, all
        files are copied
    :param threads: number of threads; :data:`None` or 0 for one per core
    :param read: ``parallel``, or ``sequential``: one file at a time
    :param links: ``refuse`` symbolic links, or ``follow`` them and copy their targets
    :param real: if links are refused, refuse one in any component; the paths are from
        :func:`~pressmark.fs.beneath.real_path`
    :raises AlgorithmError: an algorithm is unknown
    :raises BagError: files cannot be cloned or linked
    """
    names = algorithm_names(algorithms) if algorithms else ()
    options = OpenOptions(links == "follow", real=real and links == "refuse")
    workers = 0 if read == "sequential" else resolve_threads(threads)
    report = on_event or (lambda _event: None)
    tasks = iter(tasks)
    if mode != "copy":
        first = next(tasks, None)
        if first is None:
            return
        tasks = chain([first], tasks)
        _key, source, target = first
        if isinstance(source, Content) or (mode == "auto" and not _can_clone(source, target, options)):
            mode = "copy"
        elif mode == "auto":
            mode = "reflink"
    report(Copying(mode))
    if mode == "copy":
        yield from _copy(tasks, names, options, workers, report)
        return
    share = _clone if mode == "reflink" else _link

    def shared() -> Iterator[tuple[tuple[Key, bytes], bytes | Outcome]]:
        for key, source, target in tasks:
            if isinstance(source, Content):
                yield (key, b""), transfer_content(source, names, target)
            else:
                made = share(source, target, options)
                yield (key, b"" if isinstance(made, Outcome) else source), made

    if not names:
        yield from _without_digests(shared(), report)
        return
    from pressmark.fixity.pool import hash_tasks  # clones and links are rare

    # Hash the copy, so that its digests are correct even if the source changes.
    with closing(hash_tasks(shared(), names, workers or 1, report, links="refuse", read=read)) as outcomes:
        for (key, source), outcome in outcomes:
            yield key, outcome._replace(path=source) if source else outcome


# --- clones and links -------------------------------------------------------------------------------------------------


def _without_digests(
    shared: Iterable[tuple[tuple[Key, bytes], bytes | Outcome]], report: Callable[[Event], object]
) -> Generator[tuple[Key, Outcome], None, None]:
    """Yield the outcomes of clones and links that are not read."""
    files = failed = 0
    for (key, source), made in shared:
        if isinstance(made, Outcome):
            outcome = made
        else:
            status = os.stat(made)
            outcome = Outcome(source, {}, status.st_size, status.st_mtime_ns, status.st_ino)
        files += 1
        failed += not outcome.ok
        yield key, outcome
    report(Progress(items=files, failed=failed))


def _link(source: bytes, target: bytes, options: OpenOptions) -> bytes | Outcome:
    """Create a hard link, and return its path."""
    try:
        linked = os.path.realpath(source) if options.follow else source
        if options.real:
            os.close(options.open(linked))
        if (kind := kind_of_mode(os.lstat(linked).st_mode)) is not None:
            return failed_outcome(source, kind)
        os.link(linked, target, follow_symlinks=False)
    except OSError as error:
        if error.errno in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
            raise BagError(source, f"cannot be hard-linked ({error.strerror}); use --mode copy") from None
        if error.errno in (errno.ENOENT, errno.EACCES, errno.ELOOP) and not os.path.lexists(target):
            return error_outcome(source, error.errno or 0, options)
        return not_written(target, error)
    return target


def _can_clone(source: bytes, target: bytes, options: OpenOptions) -> bool:
    """Return whether files can be cloned, by trying it with the first; :data:`False` if that cannot be read."""
    try:
        cloned = _clone(source, target, options)
    except BagError:
        return False
    if isinstance(cloned, Outcome):
        return False
    os.unlink(cloned)
    return True


def _clone(source: bytes, target: bytes, options: OpenOptions) -> bytes | Outcome:
    """Clone a file, and return the path of the clone."""
    try:
        original = options.open(source)
    except OSError as error:
        return error_outcome(source, error.errno or 0, options)
    try:
        status = os.fstat(original)
        if (kind := kind_of_mode(status.st_mode)) is not None:
            return failed_outcome(source, kind, status=status)
        clone = os.open(target, NEW, 0o600)
        try:
            _ficlone(original, clone)
        except OSError as error:
            os.unlink(target)
            if error.errno in _NO_CLONE:
                raise BagError(source, f"cannot be cloned ({error.strerror}); use --mode copy or auto") from None
            raise
        finally:
            os.close(clone)
        keep_status(target, status)
    except OSError as error:
        return not_written(target, error)
    finally:
        os.close(original)
    return target


def _ficlone(source: int, target: int) -> None:
    if not sys.platform.startswith("linux"):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    import fcntl

    fcntl.ioctl(target, FICLONE, source)


def keep_status(target: bytes | int, status: os.stat_result) -> None:
    """Set the permission bits and times of a file or directory, by path or descriptor, to those of ``status``."""
    # Not supported by all file systems. Without contextlib, which is slow for small files.
    try:  # noqa: SIM105
        os.chmod(target, stat.S_IMODE(status.st_mode) & KEPT_BITS)
    except (PermissionError, NotImplementedError):
        pass
    try:  # noqa: SIM105
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    except (PermissionError, NotImplementedError):
        pass


# --- copies -----------------------------------------------------------------------------------------------------------


def _copy(
    tasks: Iterator[tuple[Key, Source, bytes]],
    names: Sequence[str],
    options: OpenOptions,
    workers: int,
    report: Callable[[Event], object],
) -> Generator[tuple[Key, Outcome], None, None]:
    first = list(islice(tasks, FEW + 1))
    tasks = chain(first, tasks)
    if workers == 0 or (len(first) <= FEW and _is_little(first)):
        yield from _copy_in_turn(tasks, names, options, report)
    else:
        from pressmark.fixity.copy_pool import open_pool  # most objects have few files

        with open_pool(names, options, workers, copy_file) as pool:
            yield from pool.copy(tasks, report)


def _is_little(tasks: Iterable[Task]) -> bool:
    """Return whether files are copied before a thread has started."""
    total = 0
    for _key, source, _target in tasks:
        if isinstance(source, Content):
            continue
        try:
            total += os.stat(source).st_size
        except (OSError, ValueError):
            continue
        if total > LITTLE:
            return False
    return True


def _copy_in_turn(
    tasks: Iterable[tuple[Key, Source, bytes]],
    names: Sequence[str],
    options: OpenOptions,
    report: Callable[[Event], object],
) -> Generator[tuple[Key, Outcome], None, None]:
    """Copy files one after another in the calling thread."""
    files = failed = nbytes = 0
    next_progress = monotonic() + PROGRESS_EVERY

    def count(size: int) -> None:
        nonlocal nbytes, next_progress
        nbytes += size
        if monotonic() >= next_progress:
            next_progress = monotonic() + PROGRESS_EVERY
            report(Progress(items=files, bytes=nbytes, failed=failed))

    for key, source, target in tasks:
        if isinstance(source, Content):
            outcome = transfer_content(source, names, target)
            count(outcome.size or 0)
        else:
            outcome = copy_file(source, target, names, options, count)
        files += 1
        failed += not outcome.ok
        yield key, outcome
    report(Progress(items=files, bytes=nbytes, failed=failed))


def copy_file(
    source: bytes,
    target: bytes,
    names: Sequence[str],
    options: OpenOptions,
    on_bytes: Callable[[int], object] = lambda _size: None,
) -> Outcome:
    """Copy a file, and return its outcome with the digests of the bytes written.

    :param names: official names of the algorithms
    :param on_bytes: called with the size of each block; it may raise to end the copy
    """
    if tuple(names) == QUICK and (quick := _copy_quickly(source, target, options, on_bytes)) is not None:
        return quick
    try:
        original = options.open(source)
    except OSError as error:
        return error_outcome(source, error.errno or 0, options)
    try:
        before = os.fstat(original)
        if (kind := kind_of_mode(before.st_mode)) is not None:
            return failed_outcome(source, kind, status=before)
        if 0 < before.st_size < READ_SIZE:
            return _copy_small(original, before, source, target, names, options, on_bytes)
        hashers = {name: ALGORITHMS[name].make(1) for name in names}
        updates = [hasher.update for hasher in hashers.values()]
        try:
            with open(target, "xb", buffering=0, opener=_opener) as copy:
                blocks = read_blocks(original, LARGE_BLOCK if before.st_size >= LARGE else READ_SIZE)
                feed = _feed_by_threads if before.st_size >= LARGE else _feed
                total = feed(blocks, [_writer(copy.fileno()), *updates], before.st_size, on_bytes)
            after = os.fstat(original)
            keep_status(target, before)
        except ReadError as error:
            return error_outcome(source, error.number, options)
        reason = changes(before.st_size, before.st_mtime_ns, after.st_size, after.st_mtime_ns, total, 0)
        if reason is None and total != before.st_size:
            # Files in /proc have content but size 0: they cannot be copied reliably.
            reason = f"{total} bytes read from a file of size {before.st_size}"
        if reason is not None:
            return Outcome(source, None, before.st_size, before.st_mtime_ns, before.st_ino, CHANGED, reason)
    except OSError as error:
        return not_written(target, error)
    finally:
        os.close(original)
    digests = {name: hashers[name].hexdigest() for name in names}
    return Outcome(source, digests, total, before.st_mtime_ns, before.st_ino)


def _copy_quickly(
    source: bytes, target: bytes, options: OpenOptions, on_bytes: Callable[[int], object]
) -> Outcome | None:
    """Copy a small file with the kernel; return :data:`None` if the kernel cannot."""
    found = _kernels.active.copy_small(source, target, options.flags | (REAL if options.real else 0))
    if found is None:
        return None
    word, *facts = found
    if word == "source":
        return error_outcome(source, facts[0], options)
    if word == "target":
        return not_written(target, OSError(facts[0], os.strerror(facts[0])))
    if word == "changed":
        size, mtime_ns, inode, size_after, mtime_ns_after, total = facts
        reason = changes(size, mtime_ns, size_after, mtime_ns_after, total, 0)
        return Outcome(source, None, size, mtime_ns, inode, CHANGED, str(reason))
    digest, size, mtime_ns, inode = facts
    on_bytes(size)
    return Outcome(source, {QUICK[0]: digest}, size, mtime_ns, inode)


def _copy_small(
    original: int,
    before: os.stat_result,
    source: bytes,
    target: bytes,
    names: Sequence[str],
    options: OpenOptions,
    on_bytes: Callable[[int], object],
) -> Outcome:
    """Copy a small file with one read."""
    size, mtime_ns = before.st_size, before.st_mtime_ns
    try:
        # One byte more than expected, to detect growth without a second read.
        data = os.read(original, size + 1)
        while len(data) < size and (more := os.read(original, size + 1 - len(data))):
            data += more
        after = os.fstat(original)
    except OSError as error:
        return error_outcome(source, error.errno or 0, options)
    reason = changes(size, mtime_ns, after.st_size, after.st_mtime_ns, len(data), 0)
    if reason is not None:
        return Outcome(source, None, size, mtime_ns, before.st_ino, CHANGED, reason)
    digests = {}
    for name in names:
        hasher = ALGORITHMS[name].make(1)
        hasher.update(data)
        digests[name] = hasher.hexdigest()
    copy = os.open(target, NEW, 0o600)
    try:
        _writer(copy)(memoryview(data))
        keep_status(copy if _BY_DESCRIPTOR else target, before)
    finally:
        os.close(copy)
    on_bytes(size)
    return Outcome(source, digests, size, mtime_ns, before.st_ino)


class ReadError(Exception):
    """The source cannot be read.

    :ivar number: the ``errno``
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _opener(path: str | bytes, _flags: int) -> int:
    return os.open(path, NEW, 0o600)


def _writer(descriptor: int) -> Callable[[memoryview], object]:
    def write(block: memoryview) -> None:
        while block:
            block = block[os.write(descriptor, block) :]

    return write


def read_blocks(descriptor: int, size: int) -> Iterator[bytes]:
    """Yield the rest of a file in blocks of up to ``size`` bytes.

    :raises ReadError: it cannot be read
    """
    while True:
        try:
            block = os.read(descriptor, size)
        except OSError as error:
            raise ReadError(error.errno or 0) from None
        if not block:
            return
        yield block


Update = Callable[[memoryview], object]


def _feed(blocks: Iterable[bytes], updates: Sequence[Update], expected: int, on_bytes: Callable[[int], object]) -> int:
    """Pass each block to all functions in ``updates``, and return the number of bytes."""
    total = 0
    for block in blocks:
        total += len(block)
        if total > expected:
            break  # do not copy a growing file forever
        view = memoryview(block)
        for update in updates:
            update(view)
        on_bytes(len(block))
    return total


def _feed_by_threads(
    blocks: Iterable[bytes], updates: Sequence[Update], expected: int, on_bytes: Callable[[int], object]
) -> int:
    """Do the same as :func:`_feed`, with a thread for each function, while the next block is read."""
    from concurrent.futures import ThreadPoolExecutor  # few files are large

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
