"""One file: read once, for the digests of several algorithms and a copy; failures as outcomes.

The type of a file is checked before it is opened, because opening a special file has effects: a named pipe blocks, a
tape rewinds, a watchdog restarts the machine. It is checked again when the file is open, in case it was replaced. For
small files that a walk has found, the walk has checked it.

A digest is returned only for a file that did not change: same size and modification time before and after, all bytes
read, and for all but small files the same file under its path.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from io import FileIO
from itertools import islice
from typing import Protocol

from pressmark.errors import FileError
from pressmark.fixity.algorithms import Hasher, algorithm_names, implementation
from pressmark.fixity.outcomes import Content, FileRange, Outcome, failed_outcome, not_written
from pressmark.fixity.scheduling import SERIAL_RATES
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
from pressmark.fs.file_errors import NotWritten, kind_of_error, kind_of_mode
from pressmark.threads import Threads, resolve_threads

__all__ = [
    "BY_DESCRIPTOR",
    "CHANGED",
    "KEPT_BITS",
    "LARGE",
    "NEW",
    "READ_SIZE",
    "NewContent",
    "OpenOptions",
    "changes",
    "error_outcome",
    "examine",
    "hash_file",
    "keep_status",
    "set_times",
    "transfer",
    "transfer_content",
    "transfer_range",
]

KEPT_BITS = 0o777  # of the mode: not setuid, setgid and sticky
# Whether mode and times are set by descriptor; otherwise by path.
BY_DESCRIPTOR = {os.chmod, os.utime} <= os.supports_fd

READ_SIZE = 1 << 18  # 256 KiB: two blocks and the state of the digests fit in the L2 cache
# From this size, several threads work on one file.
LARGE = 1 << 25  # 32 MiB
LARGE_BLOCK = 1 << 21  # of a copy, which each digest and the writing pass on to another thread

CONTENT_SIZE = 1 << 20  # asked of open files of any kind
# Zeros that a copy of a sparse file does not write, as in _kernels/native/digests/small_files.c.
_HOLE = bytes(1 << 16)

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_ALWAYS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
_BUFFERS = threading.local()

CHANGED = "changed-while-read"
# What a path leads to after its file was read; the numbers are those of _kernels/native/digests/engine.h.
THERE, GONE, REPLACED = range(3)


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
            outcome = transfer(given, names, options, opener, resolve_threads(threads))
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
    name = os.fsdecode(path)
    return Outcome(name, None, None, None, None, "bad-name", NUL if "\0" in name else str(error))


def error_outcome(path: str | bytes, number: int, options: OpenOptions) -> Outcome:
    """Return the outcome of a file that could not be opened or read, by ``errno``."""
    # Beneath a directory, links are not followed, and the path is not relative to the working directory.
    kind = kind_of_error(number, path if options.beneath is None else None)
    if kind != "link-loop" or options.follow:
        return failed_outcome(path, kind, number)
    # O_NOFOLLOW reports a link as a loop.
    if options.beneath is None:
        return failed_outcome(path, "link")
    return Outcome(os.fsdecode(path), None, None, None, None, "link", "symbolic link in path")


class NewContent(Protocol):
    """A copy while it is written, wherever that is.

    :ivar path: of the copy
    """

    path: bytes

    def add(self, block: memoryview) -> None:
        """Append a block.

        :raises NotWritten: it cannot be written
        """

    def complete(self, like: os.stat_result | None = None) -> None:
        """Complete the copy, with the permission bits and times of a file.

        :raises NotWritten: it cannot be written
        """

    def close(self) -> None:
        """End the copy, complete or not."""


class _NewFile:
    """A file that is created once it has content to write, or is complete.

    :param path: nothing is there
    :param is_sparse: whether long runs of zeros are not written, but become holes
    """

    def __init__(self, path: bytes, mode: int = 0o600, is_sparse: bool = False) -> None:
        self.path = path
        self._mode = mode
        self._is_sparse = is_sparse
        self._descriptor = -1

    def add(self, block: memoryview) -> None:
        """Append a block.

        :raises NotWritten: it cannot be written
        """
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self.path, NEW, self._mode)
            while block:
                block = block[self._write(block) :]
        except OSError as error:
            raise NotWritten(error) from None
        except ValueError:  # a NUL in the path
            raise NotWritten(OSError(errno.EINVAL, os.strerror(errno.EINVAL))) from None

    def _write(self, block: memoryview) -> int:
        """Write the start of a block, or leave a hole there; return its size."""
        if self._is_sparse:
            block = block[: len(_HOLE)]
            if not block[0] and bytes(block) == _HOLE[: len(block)]:
                os.lseek(self._descriptor, len(block), os.SEEK_CUR)
                return len(block)
        return os.write(self._descriptor, block)

    def complete(self, like: os.stat_result | None = None) -> None:
        """Close the file, and give it the permission bits and times of another.

        :raises NotWritten: it cannot be written
        """
        _NewFile.add(self, memoryview(b""))
        try:
            if self._is_sparse:  # a hole at the end
                os.ftruncate(self._descriptor, os.lseek(self._descriptor, 0, os.SEEK_CUR))
            if like is not None:
                keep_status(self._descriptor if BY_DESCRIPTOR else self.path, like)
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        except OSError as error:
            raise NotWritten(error) from None

    def close(self) -> None:
        """Close the file, complete or not."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(self._descriptor)


def keep_status(target: bytes | int, status: os.stat_result) -> None:
    """Set the permission bits and times of a file or directory, by path or descriptor, to those of ``status``."""
    # Not supported by all file systems. Without contextlib, which is slow for small files.
    try:  # noqa: SIM105
        os.chmod(target, stat.S_IMODE(status.st_mode) & KEPT_BITS)
    except (PermissionError, NotImplementedError):
        pass
    set_times(target, status.st_atime_ns, status.st_mtime_ns)


def set_times(target: bytes | int, atime_ns: int, mtime_ns: int) -> None:
    """Set the times of a file or directory, by path or descriptor, where the file system supports it."""
    try:  # noqa: SIM105
        os.utime(target, ns=(atime_ns, mtime_ns))
    except (PermissionError, NotImplementedError):
        pass


class _Copy(_NewFile):
    """The copy of a file. If that is one block, it is created when it is known not to have changed.

    :param status: of the file
    """

    def __init__(self, path: bytes, status: os.stat_result) -> None:
        size = status.st_size
        # It has holes, or the file system compresses it.
        is_sparse = size >= len(_HOLE) and getattr(status, "st_blocks", size) * 512 < size
        super().__init__(path, is_sparse=is_sparse)
        self._left = size
        self._held: bytearray | None = bytearray() if size < READ_SIZE else None

    def add(self, block: memoryview) -> None:
        """Append a block, unless the file has grown.

        :raises NotWritten: it cannot be written
        """
        self._left -= len(block)
        if self._left < 0:
            return
        if self._held is None:
            super().add(block)
        else:
            self._held += block

    def complete(self, like: os.stat_result | None = None) -> None:
        if self._held:
            super().add(memoryview(self._held))
        super().complete(like)


def transfer(
    path: str | bytes,
    names: Sequence[str],
    options: OpenOptions,
    opener: Opener,
    threads: int = 1,
    on_bytes: Callable[[int], object] = lambda _size: None,
    *,
    copy: bytes | NewContent | None = None,
) -> Outcome:
    """Hash the file at ``path``, which :func:`examine` accepted, in one read, and return its outcome.

    :param names: official names of the algorithms
    :param opener: an opener of ``options``, used by this thread only
    :param threads: number of threads, including this one
    :param on_bytes: called with the size of each block, in this thread; it may raise to end the read
    :param copy: path of a new file to copy it to, with permission bits and times, whose directory exists; or another
        copy
    """
    try:
        # A real path is opened anew: a directory that the opener keeps may have been replaced for good.
        descriptor = options.open(path) if options.real else opener.open(path, options.flags)
    except OSError as error:
        return error_outcome(path, error.errno or 0, options)
    except ValueError as error:
        return _bad_name(path, error)
    new: NewContent | None = None
    try:
        before = os.fstat(descriptor)
        if (kind := kind_of_mode(before.st_mode)) is not None:
            return failed_outcome(path, kind, status=before)
        size = before.st_size
        threads = threads if size >= LARGE else 1
        hashers = _hashers(names, threads)
        sinks = [hasher.update for hasher in hashers.values()]
        if copy is not None:
            new = _Copy(copy, before) if isinstance(copy, bytes) else copy
            sinks.append(new.add)
        total = 0
        with contextlib.closing(_blocks(descriptor, threads, size=LARGE_BLOCK if new else 0)) as blocks:
            for count in _feed(blocks, sinks, threads):
                total += count
                on_bytes(count)
                if size or new is not None:
                    # A short block that ends the file needs no second read. A growing file is not read forever.
                    if total > size or (total == size and count < READ_SIZE and threads == 1):
                        break
                elif os.fstat(descriptor).st_size > 0:  # not one in /proc, which has content but size 0
                    break
        after = os.fstat(descriptor)
        # Large files may have been replaced meanwhile.
        there = _there(path, options, after) if total >= READ_SIZE and new is None else THERE
        reason = changes(size, before.st_mtime_ns, after.st_size, after.st_mtime_ns, total, there, new is not None)
        if reason is not None:
            return Outcome(os.fsdecode(path), None, size, before.st_mtime_ns, before.st_ino, CHANGED, reason)
        if new is not None:
            new.complete(before)
    except NotWritten as failed:
        return not_written(b"" if new is None else new.path, failed.error)
    except OSError as error:
        return error_outcome(path, error.errno or 0, options)
    finally:
        if new is not None:
            new.close()
        with contextlib.suppress(OSError):
            os.close(descriptor)
    digests = {name: hashers[name].hexdigest() for name in names}
    return Outcome(os.fsdecode(path), digests, total, before.st_mtime_ns, before.st_ino, ctime_ns=before.st_ctime_ns)


def transfer_content(content: Content, names: Sequence[str], copy: bytes | NewContent | None = None) -> Outcome:
    """Hash content that is not in a file, and return its outcome.

    :param names: official names of the algorithms
    :param copy: path of a new file to write it to, whose directory exists; or another copy
    """
    name = os.fsdecode(content.name)
    hashers = _hashers(names, 1)
    sinks = [hasher.update for hasher in hashers.values()]
    new: NewContent | None = None
    if copy is not None:
        new = _NewFile(copy, 0o666) if isinstance(copy, bytes) else copy
        sinks.append(new.add)
    try:
        blocks = content.blocks(CONTENT_SIZE)
        size = sum(_feed(islice(blocks, LARGE // CONTENT_SIZE), sinks, 1)) + sum(_feed(blocks, sinks, len(sinks)))
        if new is not None:
            new.complete()
    except NotWritten as failed:
        return not_written(b"" if new is None else new.path, failed.error)
    except ValueError as error:
        return Outcome(name, None, None, None, None, "io-error", str(error))
    finally:
        if new is not None:
            new.close()
    return Outcome(name, {one: hashers[one].hexdigest() for one in names}, size, None, None)


def transfer_range(
    descriptor: int,
    section: FileRange,
    names: Sequence[str],
    threads: int = 1,
    on_bytes: Callable[[int], object] = lambda _size: None,
) -> Outcome:
    """Hash a part of an open file and return its outcome, whose path is empty.

    :param names: official names of the algorithms and checksums
    :param threads: number of threads, including this one
    :param on_bytes: called with the size of each block, in this thread; it may raise to end the read
    """
    threads = threads if section.size >= LARGE else 1
    hashers = _hashers(names, threads)
    total = 0
    try:
        with contextlib.closing(_blocks(descriptor, threads, section)) as blocks:
            for count in _feed(blocks, [hasher.update for hasher in hashers.values()], threads):
                total += count
                on_bytes(count)
    except OSError as error:
        return failed_outcome("", kind_of_error(error.errno or 0, None), error.errno or 0)
    if total != section.size:
        reason = f"{total} of {section.size} bytes read"
        return Outcome("", None, section.size, None, None, CHANGED, reason)
    return Outcome("", {name: hashers[name].hexdigest() for name in names}, total, None, None)


def _hashers(names: Sequence[str], threads: int) -> dict[str, Hasher]:
    """Return the hashers of a file, the slowest first, so that all end together.

    :param threads: number of threads, one of which reads
    """
    order = names if threads == 1 else sorted(names, key=SERIAL_RATES.__getitem__)
    return {name: implementation(name).make(max(1, threads - 1)) for name in order}


Sink = Callable[[memoryview], object]


def _feed(blocks: Iterable[memoryview], sinks: Sequence[Sink], threads: int) -> Iterator[int]:
    """Pass each block to all sinks, and yield its size."""
    if threads == 1 or len(sinks) < 2:
        for block in blocks:
            for sink in sinks:
                sink(block)
            yield len(block)
        return
    first, *others = sinks
    with Threads(min(threads, len(sinks)), "pressmark-feed") as pool:
        for block in blocks:
            calls = [pool.submit(sink, block) for sink in others]
            first(block)
            for call in calls:
                call.result()
            yield len(block)


def _blocks(
    descriptor: int, threads: int, section: FileRange | None = None, size: int = 0
) -> Generator[memoryview, None, None]:
    """Yield an open file, or a part of it, in blocks; each is valid until the next one.

    :param size: size of the blocks, if other threads read them
    """
    if threads > 1:
        from pressmark.fixity.read_ahead import ReadAhead  # only large files need it

        with ReadAhead(descriptor, threads - 1, section, size) as ahead:
            yield from ahead.blocks()
        return
    buffer = getattr(_BUFFERS, "view", None)
    if buffer is None:
        buffer = _BUFFERS.view = memoryview(bytearray(READ_SIZE))
    if section is not None:
        from pressmark.fixity.read_ahead import read_at  # only archives have parts

        offset, left = section
        while left and (count := read_at(descriptor, buffer[:left], offset)):
            offset, left = offset + count, left - count
            yield buffer[:count]
        return
    with FileIO(descriptor, closefd=False) as file:
        while count := _readinto(file, buffer):
            yield buffer[:count]


def _readinto(file: FileIO, buffer: memoryview) -> int:
    size = file.readinto(buffer)
    if size is None:  # non-blocking files in /proc
        raise BlockingIOError(11, os.strerror(11))
    return size


def changes(
    size: int, mtime_ns: int, size_after: int, mtime_ns_after: int, total: int, there: int, is_copied: bool = False
) -> str | None:
    """Return how a regular file changed while it was read, or :data:`None`.

    :param size: size when it was opened
    :param mtime_ns: modification time when it was opened
    :param total: bytes read
    :param there: the file under the path now: :data:`THERE`, :data:`GONE` or :data:`REPLACED`
    :param is_copied: a copy must be complete
    """
    if size_after != size:
        return f"size changed from {size} to {size_after} bytes while it was read"
    if mtime_ns_after != mtime_ns:
        return "modified while it was read"
    # Files in /proc have content but size 0.
    if total != size_after and size_after > 0:
        return f"{total} of {size_after} bytes read"
    if total != size_after and is_copied:
        return f"{total} bytes read from a file of size {size}"
    return (None, "deleted while it was read", "replaced while it was read")[there]


def _there(path: str | bytes, options: OpenOptions, status: os.stat_result) -> int:
    try:
        with options.opener() as opener:  # a new one: the directory may have been replaced, too
            now = opener.stat(path)
    except OSError:
        return GONE
    return THERE if os.path.samestat(now, status) else REPLACED
