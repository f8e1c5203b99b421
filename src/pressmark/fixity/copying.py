"""Copying, cloning or hard-linking files, with digests. A copy and its digests take one read.

A copy keeps the permission bits and times of the source. Errors of a source are outcomes, as in
:mod:`pressmark.fixity`, and so are those of a copy, such as a full disk: the caller decides what they mean, and removes
copies that are not complete.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import chain
from typing import NamedTuple, TypeVar

from pressmark.errors import BagError
from pressmark.fixity.algorithms import algorithm_names
from pressmark.fixity.hasher import NEW, OpenOptions, error_outcome, keep_status, transfer_content
from pressmark.fixity.outcomes import Content, Outcome, failed_outcome, not_written
from pressmark.fixity.pool import Run, hash_tasks
from pressmark.fs.file_errors import kind_of_mode
from pressmark.option_names import option
from pressmark.progress_event import EventListener, Progress, ProgressEvent
from pressmark.threads import resolve_threads

__all__ = ["MODES", "Copying", "ReadError", "copy_files", "read_blocks"]

MODES = ("copy", "reflink", "hardlink", "auto")

# Errors of the ioctl if these files cannot be cloned.
_NO_CLONE = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.EXDEV, errno.EINVAL, errno.ENOTTY, errno.ENOSYS, errno.EPERM}
FICLONE = 0x40049409  # linux/fs.h

Key = TypeVar("Key")
Source = bytes | Content


class Copying(NamedTuple):
    """An event: the copy mode of the run.

    :ivar mode: ``copy``, ``reflink`` or ``hardlink``
    """

    mode: str


Event = ProgressEvent | Copying


def copy_files(
    tasks: Iterable[tuple[Key, Source, bytes]],
    algorithms: Sequence[str],
    *,
    mode: str = "copy",
    threads: int | None = None,
    read: str = "parallel",
    links: str = "refuse",
    real: bool = False,
    progress: Progress | None = None,
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
    :param threads: number of threads; :data:`None` for one per core
    :param read: ``parallel``, or ``sequential``: one file at a time
    :param links: ``refuse`` symbolic links, or ``follow`` them and copy their targets
    :param real: if links are refused, refuse one in any component; the paths are from
        :func:`~pressmark.fs.beneath.real_path`
    :raises AlgorithmError: an algorithm is unknown
    :raises BagError: files cannot be cloned or linked
    """
    names = algorithm_names(algorithms) if algorithms else ()
    options = OpenOptions(links == "follow", real=real and links == "refuse")
    workers = resolve_threads(threads)
    report = progress or (lambda _event: None)
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
        with closing(Run(names, workers, options, read == "sequential", report).outcomes(tasks)) as copies:
            yield from copies
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
    # Hash the copy, so that its digests are correct even if the source changes.
    with closing(hash_tasks(shared(), names, workers, EventListener(report), links="refuse", read=read)) as outcomes:
        for (key, source), outcome in outcomes:
            yield key, outcome._replace(path=os.fsdecode(source)) if source else outcome


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
            outcome = Outcome(os.fsdecode(source), {}, status.st_size, status.st_mtime_ns, status.st_ino)
        files += 1
        failed += not outcome.ok
        yield key, outcome
    report(ProgressEvent(items=files, failed=failed))


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
            what = f"cannot be hard-linked ({error.strerror})"
            raise BagError(source, f"{what}; use {option('copy_mode', 'copy')}") from None
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
                what = f"cannot be cloned ({error.strerror})"
                raise BagError(source, f"{what}; use {option('copy_mode', 'auto')}") from None
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


# --- blocks for archives ----------------------------------------------------------------------------------------------


class ReadError(Exception):
    """The source cannot be read.

    :ivar number: the ``errno``
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


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
