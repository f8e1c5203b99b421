"""Names and trees that a change makes: looked at without taking what nobody can see for gone, and had on the disk."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from functools import cache

__all__ = [
    "can_flush_filesystem",
    "exists",
    "flush_directory",
    "flush_filesystem",
    "flush_tree",
    "is_directory",
    "is_readable",
    "walk",
    "why_unreadable",
]

_OPEN_DIRECTORY = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_DIRECTORY", 0)
# Windows flushes nothing that is open for reading only.
_OPEN_FILE = (os.O_RDWR if os.name == "nt" else os.O_RDONLY) | getattr(os, "O_CLOEXEC", 0)
# Should a named pipe take a file's place, opening it must not block.
_LOOK = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
# As the effective user, as whom files are opened.
_EFFECTIVE = os.access in os.supports_effective_ids
# What is raised where there is nothing; a NUL, of which ValueError speaks, is in no name.
_NOTHING_THERE = (FileNotFoundError, NotADirectoryError, ValueError)
# What a file system says that has nothing to flush.
_NOTHING_TO_FLUSH = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)


def exists(path: bytes) -> bool:
    """Return whether a name is taken, as :func:`os.path.lexists` does, which alone says no where the system cannot say.

    :raises OSError: the system cannot say
    """
    try:
        os.lstat(path)
    except _NOTHING_THERE:
        return False
    return True


def is_directory(path: bytes) -> bool:
    """Return whether a directory is there, or a link to one; as :func:`exists`, not as :func:`os.path.isdir`.

    :raises OSError: the system cannot say
    """
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except _NOTHING_THERE:
        return False


def is_readable(path: str | bytes, directory: int | None = None) -> bool:
    """Return whether this process may read a file; it is not opened.

    :param directory: a descriptor of the directory that ``path`` is relative to
    """
    return os.access(path, os.R_OK, dir_fd=directory, effective_ids=_EFFECTIVE)


def why_unreadable(path: str | bytes, directory: int | None = None) -> OSError | None:
    """Return the error of opening a file for reading; :data:`None` where it is readable.

    :param directory: as of :func:`is_readable`
    """
    if is_readable(path, directory):
        return None
    try:
        os.close(os.open(path, _LOOK, dir_fd=directory))
    except OSError as error:
        return error
    return None


def walk(top: bytes) -> Iterator[tuple[bytes, list[bytes], list[bytes]]]:
    """Go through a tree as :func:`os.walk` does, which alone passes over directories that cannot be read.

    :raises OSError: a directory cannot be read
    """
    return os.walk(top, onerror=_refuse)


def _refuse(error: OSError) -> None:
    raise error


def flush_directory(directory: bytes) -> None:
    """Have the names in a directory on the disk before going on, where the system can.

    :raises OSError: they could not be written
    """
    if os.name != "nt":
        _flush(directory, _OPEN_DIRECTORY)


def flush_tree(top: bytes) -> None:
    """Have all files and names of a tree on the disk before going on; links are not followed.

    :raises OSError: something of it could not be read or written
    """
    for directory, _names, files in walk(top):
        for name in files:
            path = os.path.join(directory, name)
            if not os.path.islink(path):
                _flush(path, _OPEN_FILE)
        flush_directory(directory)


def _flush(path: bytes, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOTHING_TO_FLUSH:
            raise
    finally:
        os.close(descriptor)


@cache
def _syncfs() -> Callable[[int], int] | None:
    """Return what flushes the file system of a descriptor and gives an error number or 0; where there is none, None."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # here: loading it would cost those who flush no file system more than all else in this module

    try:
        function = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return None
    return lambda descriptor: 0 if function(descriptor) == 0 else ctypes.get_errno()


def can_flush_filesystem() -> bool:
    """Return whether :func:`flush_filesystem` can do it here."""
    return _syncfs() is not None


def flush_filesystem(directory: bytes) -> None:
    """Have everything on the disk that was written to the file system of ``directory``, by one call for all of it.

    :raises OSError: something of it could not be written, or the system has no such call
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
