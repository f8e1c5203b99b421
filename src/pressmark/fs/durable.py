"""Flushing files, directories and file systems to disk, and checks of files that raise an error if the result cannot be
determined."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache

__all__ = [
    "can_flush_filesystem",
    "exists",
    "flush_directory",
    "flush_file",
    "flush_filesystem",
    "flush_path",
    "flush_tree",
    "is_directory",
    "is_readable",
    "walk",
    "why_unreadable",
    "write_flushed",
]

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OPEN_DIRECTORY = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_DIRECTORY", 0)
# Windows cannot flush a file that is open for reading only.
# O_NONBLOCK: opening a named pipe must not block.
_OPEN_FILE = (os.O_RDWR if os.name == "nt" else os.O_RDONLY) | sum(
    getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK")
)
_LOOK = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
# Check access as the effective user, like open().
_EFFECTIVE = os.access in os.supports_effective_ids
# Raised if a path does not exist; ValueError if it contains a NUL.
_NOTHING_THERE = (FileNotFoundError, NotADirectoryError, ValueError)
# Raised by file systems that cannot flush.
_NOTHING_TO_FLUSH = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)


def exists(path: bytes) -> bool:
    """Return whether a path exists. Unlike :func:`os.path.lexists`, raise an error if this cannot be determined.

    :raises OSError: a directory on the path is not accessible
    """
    try:
        os.lstat(path)
    except _NOTHING_THERE:
        return False
    return True


def is_directory(path: bytes) -> bool:
    """Return whether a path is a directory, or a link to one. Unlike :func:`os.path.isdir`, raise an error if this
    cannot be determined.

    :raises OSError: a directory on the path is not accessible
    """
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except _NOTHING_THERE:
        return False


def is_readable(path: str | bytes, directory: int | None = None) -> bool:
    """Return whether this process has permission to read a file, without opening it.

    :param directory: descriptor of the directory that ``path`` is relative to
    """
    return os.access(path, os.R_OK, dir_fd=directory, effective_ids=_EFFECTIVE)


def why_unreadable(path: str | bytes, directory: int | None = None) -> OSError | None:
    """Return the error of opening a file for reading; :data:`None` if it is readable.

    :param directory: as for :func:`is_readable`
    """
    if is_readable(path, directory):
        return None
    try:
        os.close(os.open(path, _LOOK, dir_fd=directory))
    except OSError as error:
        return error
    return None


def walk(top: bytes) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
    """Walk a tree like :func:`os.walk`, but raise an error if a directory cannot be read.

    :raises OSError: a directory cannot be read
    """
    return os.walk(top, onerror=_refuse)


def _refuse(error: OSError) -> None:
    raise error


def flush_file(descriptor: int) -> None:
    """Flush an open file to disk.

    :raises OSError: it cannot be written
    """
    if sys.platform == "darwin":
        import fcntl

        # On macOS, fsync leaves data in the cache of the drive. File systems without the other call have fsync only.
        with suppress(OSError):
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def flush_directory(directory: bytes) -> None:
    """Flush the entries of a directory to disk, on systems that can.

    :raises OSError: they cannot be written
    """
    if os.name != "nt":
        _flush(directory, _OPEN_DIRECTORY)


def flush_path(path: bytes) -> None:
    """Flush a file to disk, or the entries of a directory, on systems that can.

    :raises OSError: it cannot be read or written
    """
    if os.name != "nt" or not os.path.isdir(path):
        _flush(path, _OPEN_FILE)


def flush_tree(top: bytes) -> None:
    """Flush all files and directories of a tree to disk, without following links.

    :raises OSError: a file or directory cannot be read or written
    """
    for directory, _names, files in walk(top):
        for name in files:
            path = os.path.join(directory, name)
            if not os.path.islink(path):
                _flush(path, _OPEN_FILE)
        flush_directory(directory)


def write_flushed(path: bytes, data: bytes) -> None:
    """Create a file with this content, and flush it to disk.

    :raises OSError: the file exists, or cannot be written
    """
    _flush(path, _CREATE, data)


def _flush(path: bytes, flags: int, data: bytes = b"") -> None:
    descriptor = os.open(path, flags, 0o666)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        flush_file(descriptor)
    except OSError as error:
        if error.errno not in _NOTHING_TO_FLUSH:
            raise
    finally:
        os.close(descriptor)


@cache
def _syncfs() -> Callable[[int], int] | None:
    """Return a function that calls ``syncfs`` and returns 0 or an error number; :data:`None` if it is missing."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # imported here: slow, and rarely needed

    try:
        function = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return None
    return lambda descriptor: 0 if function(descriptor) == 0 else ctypes.get_errno()


def can_flush_filesystem() -> bool:
    """Return whether :func:`flush_filesystem` is supported on this system."""
    return _syncfs() is not None


def flush_filesystem(directory: bytes) -> None:
    """Flush the whole file system of ``directory`` to disk with one system call.

    :raises OSError: data cannot be written, or the system has no such call
    """
    flush = _syncfs()
    if flush is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), directory)
    descriptor = os.open(directory, _OPEN_DIRECTORY)
    try:
        if number := flush(descriptor):
            raise OSError(number, os.strerror(number), directory)
    finally:
        os.close(descriptor)
