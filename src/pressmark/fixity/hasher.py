"""Digests of a file: several algorithms in one read, failures as outcomes.

The type of a file is checked before it is opened, because opening a special file has effects: a named pipe blocks, a
tape rewinds, a watchdog restarts the machine. It is checked again when the file is open, in case it was replaced.

A digest is returned only for a file that did not change: same size and modification time before and after, all bytes
read, and for all but small files the same file under its path.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import FileIO
from typing import NamedTuple

from pressmark.errors import FileError
from pressmark.fixity.algorithms import ALGORITHMS, Hasher, algorithm_names
from pressmark.fixity.outcomes import Content, Outcome, failed_outcome, not_written
from pressmark.fs.beneath import (
    HAS_DESCRIPTORS,
    NUL,
    Directory,
    OpenAnywhere,
    OpenBeneath,
    OpenBeneathByName,
    Opener,
    OpenReal,
    open_real,
)
from pressmark.fs.file_errors import kind_of_error, kind_of_mode
from pressmark.threads import resolve_threads

__all__ = [
    "CHANGED",
    "LARGE",
    "NEW",
    "READ_SIZE",
    "FileRange",
    "OpenOptions",
    "changes",
    "error_outcome",
    "examine",
    "hash_file",
    "hash_path",
    "transfer_content",
]

READ_SIZE = 1 << 18  # 256 KiB: two blocks and the state of the digests fit in the L2 cache
# From this size, several threads work on one file.
LARGE = 1 << 25  # 32 MiB

CONTENT_SIZE = 1 << 20  # asked of open files of any kind

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
_BUFFERS = threading.local()

CHANGED = "changed-while-read"
# What a path leads to after its file was read; the numbers are those of _kernels/native/digests/engine.h.
THERE, GONE, REPLACED = range(3)


class FileRange(NamedTuple):
    """A part of an open file.

    :ivar offset: where it begins
    :ivar size: its length in bytes
    """

    offset: int
    size: int


class OpenOptions:
    """The options for opening files.

    :param follow: follow symbolic links; otherwise a link is a failure of kind ``link``
    :param beneath: directory that all paths are relative to and must stay in; no links are followed then
    :param real: all paths are from :func:`~pressmark.fs.beneath.real_path`: a link in any component is a failure

    :ivar flags: flags for :func:`os.open`
    :raises ValueError: ``beneath`` is not a descriptor, or on Windows not a path
    """

    def __init__(
        self,
        follow: bool = True,
        beneath: Directory | None = None,
        *,
        real: bool = False,
    ) -> None:
        if beneath is not None and isinstance(beneath, int) != HAS_DESCRIPTORS:
            expected = "the descriptor of a directory" if HAS_DESCRIPTORS else "the path of a directory"
            raise ValueError(f"beneath={beneath!r}: expected {expected}, from open_directory")
        self.beneath = beneath
        self.real = real and HAS_DESCRIPTORS
        self.follow = follow and beneath is None and not real
        # If the file is replaced by a named pipe meanwhile, opening it must not block.
        self.flags = os.O_RDONLY | _ALWAYS | getattr(os, "O_NONBLOCK", 0)
        if not self.follow:
            self.flags |= getattr(os, "O_NOFOLLOW", 0)

    def opener(self) -> Opener:
        """Return a new opener, to be used by one thread and closed."""
        if self.real:
            return OpenReal()
        if self.beneath is None:
            return OpenAnywhere(self.follow)
        return OpenBeneath(self.beneath) if isinstance(self.beneath, int) else OpenBeneathByName(self.beneath)

    def open(self, path: str | bytes) -> int:
        """Open a file whose path is not relative to ``beneath``, and return its descriptor.

        :raises OSError: it cannot be opened
        """
        return open_real(path, self.flags) if self.real else os.open(path, self.flags)


class _Cancelled(Exception):
    """The run has ended."""


def hash_file(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    algorithms: Iterable[str] | str = ("sha512",),
    *,
    threads: int | None = None,
    links: str = "follow",
    beneath: Directory | None = None,
) -> dict[str, str]:
    """Return the digests of a file, computed in one read.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     hash_file(file.name, ["md5"])
    {'md5': 'd41d8cd98f00b204e9800998ecf8427e'}

    :param path: a regular file, or a symbolic link to one
    :param algorithms: names accepted by :func:`~pressmark.fixity.algorithms.algorithm_name`
    :param threads: number of threads for a large file; :data:`None` for one per core
    :param links: ``"follow"`` or ``"refuse"`` symbolic links
    :param beneath: a directory that ``path`` is relative to: see :func:`~pressmark.fixity.pool.hash_files`
    :return: lower-case hex digests by official algorithm name, in the requested order
    :raises AlgorithmError: an algorithm is unknown or not available
    :raises FileError: the file cannot be read, or changed while it was read
    :raises ValueError: another argument is invalid
    """
    names = algorithm_names(algorithms)
    if links not in ("follow", "refuse"):
        raise ValueError(f"links={links!r}: expected follow or refuse")
    options = OpenOptions(links == "follow", beneath)
    given: str | bytes = os.fspath(path)
    with options.opener() as opener:
        status = examine(given, options, opener)
        if isinstance(status, Outcome):
            outcome = status
        else:
            outcome = hash_path(given, names, options, opener, resolve_threads(threads))
    if outcome.digests is None:
        raise FileError(given, str(outcome.kind), outcome.message)
    return outcome.digests


def examine(path: str | bytes, options: OpenOptions, opener: Opener) -> os.stat_result | Outcome:
    """Return the status of the file at ``path``, or its outcome if it cannot be read."""
    try:
        status = opener.stat(path)
    except OSError as error:
        return error_outcome(path, error.errno or 0, options)
    except ValueError as error:
        return _bad_name(path, error)
    kind = kind_of_mode(status.st_mode)
    return status if kind is None else failed_outcome(path, kind, status=status)


def _bad_name(path: str | bytes, error: ValueError) -> Outcome:
    """Return the outcome of an invalid path."""
    # The message of Python depends on its version.
    holds_nul = (b"\0" if isinstance(path, bytes) else "\0") in path  # type: ignore[operator]
    return Outcome(path, None, None, None, None, "bad-name", NUL if holds_nul else str(error))


def error_outcome(path: str | bytes, number: int, options: OpenOptions) -> Outcome:
    """Return the outcome of a file that could not be opened or read, by ``errno``."""
    # Beneath a directory, links are not followed, and the path is not relative to the working directory.
    kind = kind_of_error(number, path if options.beneath is None else None)
    if kind != "link-loop" or options.follow:
        return failed_outcome(path, kind, number)
    # O_NOFOLLOW reports a link as a loop.
    if options.beneath is None:
        return failed_outcome(path, "link")
    return Outcome(path, None, None, None, None, "link", "symbolic link in path")


def hash_path(
    path: str | bytes,
    names: Sequence[str],
    options: OpenOptions,
    opener: Opener,
    threads: int = 1,
    on_bytes: Callable[[int], object] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Outcome:
    """Hash the file at ``path``, which :func:`examine` accepted, and return its outcome.

    :param names: official names of the algorithms
    :param opener: an opener of ``options``, used by this thread only
    :param threads: number of threads, including this one
    :param on_bytes: called with the size of each block, in this thread
    :param cancelled: called for each block; returns whether to stop
    """
    try:
        descriptor = opener.open(path, options.flags)
    except OSError as error:
        return error_outcome(path, error.errno or 0, options)
    except ValueError as error:
        return _bad_name(path, error)
    try:
        before = os.fstat(descriptor)
        if (kind := kind_of_mode(before.st_mode)) is not None:
            return failed_outcome(path, kind, status=before)
        expected = before.st_size
        threads_here = threads if expected >= LARGE else 1
        # One thread reads.
        hashers = {name: ALGORITHMS[name].make(max(1, threads_here - 1)) for name in names}
        total = 0
        for data in _blocks(descriptor, expected, threads_here, hashers):
            total += data
            if on_bytes is not None:
                on_bytes(data)
            # Do not read a growing file forever.
            if total > expected > 0 or (expected == 0 and os.fstat(descriptor).st_size > 0):
                break
            if cancelled is not None and cancelled():
                raise _Cancelled
        after = os.fstat(descriptor)
        # Large files may have been replaced meanwhile.
        there = _there(path, options, after) if total >= READ_SIZE else THERE
        reason = changes(before.st_size, before.st_mtime_ns, after.st_size, after.st_mtime_ns, total, there)
        if reason is not None:
            return Outcome(path, None, before.st_size, before.st_mtime_ns, before.st_ino, CHANGED, reason)
    except OSError as error:
        return error_outcome(path, error.errno or 0, options)
    except _Cancelled:
        return Outcome(path, None, None, None, None, "cancelled", "run ended")
    finally:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    digests = {name: hashers[name].hexdigest() for name in names}
    return Outcome(path, digests, total, before.st_mtime_ns, before.st_ino, ctime_ns=before.st_ctime_ns)


def transfer_content(content: Content, names: Sequence[str], copy: bytes | None = None) -> Outcome:
    """Hash content that is not in a file, and return its outcome.

    :param names: official names of the algorithms
    :param copy: path of a new file to write it to
    """
    hashers = {name: ALGORITHMS[name].make(1) for name in names}
    size = 0
    descriptor = -1
    try:
        if copy is not None:
            descriptor = os.open(copy, NEW, 0o666)
        for block in content.blocks(CONTENT_SIZE):
            size += len(block)
            for hasher in hashers.values():
                hasher.update(block)
            while block and copy is not None:
                block = block[os.write(descriptor, block) :]
    except OSError as error:
        assert copy is not None
        return not_written(copy, error)
    except ValueError as error:
        return Outcome(content.name, None, None, None, None, "io-error", str(error))
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return Outcome(content.name, {name: hasher.hexdigest() for name, hasher in hashers.items()}, size, None, None)


def changes(size: int, mtime_ns: int, size_after: int, mtime_ns_after: int, total: int, there: int) -> str | None:
    """Return how a regular file changed while it was read, or :data:`None`.

    :param size: size when it was opened
    :param mtime_ns: modification time when it was opened
    :param total: bytes read
    :param there: the file under the path now: :data:`THERE`, :data:`GONE` or :data:`REPLACED`
    """
    if size_after != size:
        return f"size changed from {size} to {size_after} bytes while it was read"
    if mtime_ns_after != mtime_ns:
        return "modified while it was read"
    # Files in /proc have content but size 0.
    if total != size_after and size_after > 0:
        return f"{total} of {size_after} bytes read"
    return (None, "deleted while it was read", "replaced while it was read")[there]


def _there(path: str | bytes, options: OpenOptions, status: os.stat_result) -> int:
    try:
        with options.opener() as opener:  # a new one: the directory may have been replaced, too
            now = opener.stat(path)
    except OSError:
        return GONE
    return THERE if os.path.samestat(now, status) else REPLACED


def _blocks(descriptor: int, expected: int, threads: int, hashers: dict[str, Hasher]) -> Iterator[int]:
    """Feed the file to all hashers, and yield the size of each block."""
    if 0 < expected < READ_SIZE:
        # One byte more than expected, to detect growth without a second read.
        data = os.read(descriptor, expected + 1)
        for hasher in hashers.values():
            hasher.update(data)
        yield len(data)
        if len(data) == expected:
            return
    if threads > 1:
        from pressmark.fixity.read_ahead import update_ahead  # only large files need it

        yield from update_ahead(descriptor, threads, hashers)
        return
    buffer = getattr(_BUFFERS, "view", None)
    if buffer is None:
        buffer = _BUFFERS.view = memoryview(bytearray(READ_SIZE))
    with FileIO(descriptor, closefd=False) as file:
        while size := _readinto(file, buffer):
            block = buffer[:size]
            for hasher in hashers.values():
                hasher.update(block)
            yield size


def _readinto(file: FileIO, buffer: memoryview) -> int:
    size = file.readinto(buffer)
    if size is None:  # non-blocking files in /proc
        raise BlockingIOError(11, os.strerror(11))
    return size
