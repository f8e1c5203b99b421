"""Flushing files, directories and file systems to disk, and checks of files that raise an error if the result cannot be
determined."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, islice
from types import ModuleType

from pressmark import _kernels
from pressmark._kernels.flushing import flush_file, flush_path
from pressmark._kernels.records import FLUSH, Step

__all__ = [
    "can_flush_filesystem",
    "exists",
    "flush_directories",
    "flush_directory",
    "flush_file",
    "flush_filesystem",
    "flush_path",
    "flush_trees",
    "is_directory",
    "is_readable",
    "step_kernels",
    "walk",
    "why_unreadable",
]

# More paths are flushed with their whole file system.
ONE_BY_ONE = 32
_OPEN_DIRECTORY = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_DIRECTORY", 0)
_LOOK = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_FLUSH: list[Step] = [(FLUSH, b"", None)]
# Check access as the effective user, like open().
_EFFECTIVE = os.access in os.supports_effective_ids
# Raised if a path does not exist; ValueError if it contains a NUL.
_NOTHING_THERE = (FileNotFoundError, NotADirectoryError, ValueError)


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


def flush_directory(directory: bytes) -> None:
    """Flush the entries of a directory to disk, on systems that can.

    :raises OSError: they cannot be written
    """
    if os.name != "nt":
        flush_path(directory)


def flush_directories(directories: Sequence[bytes]) -> None:
    """Flush the entries of directories on one file system to disk, except those that no longer exist; many with the
    whole file system.

    :param directories: the first one exists
    :raises OSError: they cannot be written
    """
    if len(directories) > ONE_BY_ONE and can_flush_filesystem():
        flush_filesystem(directories[0])
        return
    for error in _flush_each(directories):
        if not isinstance(error, FileNotFoundError):
            raise error


def flush_trees(*tops: bytes) -> None:
    """Flush all files and directories of trees on one file system to disk, without following links; many with the whole
    file system.

    :raises OSError: a file or directory cannot be read or written
    """
    paths = chain.from_iterable(map(_inside, tops))
    first = list(islice(paths, ONE_BY_ONE + 1))
    if len(first) > ONE_BY_ONE and can_flush_filesystem():
        flush_filesystem(first[0] if os.path.isdir(first[0]) else os.path.dirname(first[0]))
        return
    while first:
        for error in _flush_each(first):
            raise error
        first = list(islice(paths, ONE_BY_ONE))


def step_kernels() -> ModuleType:
    """Return the implementation that runs steps: the steps in C are calls of POSIX."""
    return _kernels.load("pure") if os.name == "nt" else _kernels.active


def _flush_each(paths: Sequence[bytes]) -> list[OSError]:
    """Flush files and directories one by one, in one call, and return the errors."""
    outcomes = step_kernels().run_steps(list(paths), [_FLUSH] * len(paths))
    return [
        OSError(number, os.strerror(number), path)
        for path, (number, _done, _lock) in zip(paths, outcomes, strict=True)
        if number
    ]


def _inside(top: bytes) -> Iterator[bytes]:
    """Yield the paths of a file, or of all files and directories of a tree, directories after their files."""
    if not is_directory(top):
        yield top
        return
    folders = [top]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.is_symlink():
                    yield entry.path
        yield folder


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
