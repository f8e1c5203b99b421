"""Renaming without replacing, creating and removing parent directories, and removing trees."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any

from pressmark.fs.durable import exists
from pressmark.fs.names import is_blocked

__all__ = [
    *("TRIES", "exchange", "make_parents", "prune_empty_parents", "rename_new"),
    *("remove_tree", "replace_directory", "restore"),
]

# Attempts at using a directory that other runs may remove as empty.
TRIES = 1000
_NOT_EMPTY = (errno.ENOTEMPTY, errno.EEXIST)
_NOREPLACE, _EXCHANGE = 1, 2  # linux/fs.h
# The numbers of the system call renameat2 on 64 bits, for C libraries without the function: musl.
_RENAMEAT2 = {"aarch64": 276, "x86_64": 316}
# Depth to which a tree is flattened if it is too deep for the stack of Python.
LEVELS = 100
_OPEN = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


@cache
def _renameat2() -> Callable[[bytes, bytes, int], int] | None:
    """Return ``renameat2``, which returns 0 or an error number; :data:`None` if it is missing."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # most commands rename nothing

    try:
        library = ctypes.CDLL(None, use_errno=True)
    except OSError:
        return None
    function = getattr(library, "renameat2", None)
    if function is None:
        number = _RENAMEAT2.get(os.uname().machine)
        if number is None or sys.maxsize < 1 << 32:
            return None
        function = partial(library.syscall, number)
    at_fdcwd = -100

    def rename(old: bytes, new: bytes, flags: int) -> int:
        return 0 if function(at_fdcwd, old, at_fdcwd, new, flags) == 0 else ctypes.get_errno()

    return rename


def _rename_by(flags: int, old: bytes, new: bytes) -> bool:
    """Rename with flags of Linux; return False if the system or the file system does not support them."""
    rename = _renameat2()
    if rename is None:
        return False
    number = rename(old, new, flags)
    if number == 0:
        return True
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(number, os.strerror(number), old, None, new)


def rename_new(old: bytes, new: bytes) -> None:
    """Rename ``old`` to ``new``, which must not exist, not even as an empty directory.

    :raises FileExistsError: ``new`` exists
    """
    if _rename_by(_NOREPLACE, old, new):
        return
    # Our own runs hold a lock here; only other programs can interfere.
    if exists(new):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new)
    os.rename(old, new)


def exchange(one: bytes, other: bytes) -> bool:
    """Exchange two paths atomically; return False if the file system does not support it."""
    return _rename_by(_EXCHANGE, one, other)


def replace_directory(new: bytes, path: bytes, aside: bytes) -> bytes:
    """Replace the directory at ``path`` with the directory ``new``.

    This is one step if the file system can exchange two names. Otherwise the old directory is moved to ``aside`` first;
    if the run is killed after that, :func:`restore` undoes the replacement.

    :param aside: an unused path on the same file system; its parent directory is created if missing
    :return: the path of the old directory: ``new`` or ``aside``
    """
    if exchange(new, path):
        return new
    with suppress(FileExistsError):
        os.mkdir(os.path.dirname(aside))
    os.rename(path, aside)
    try:
        rename_new(new, path)
    except BaseException:
        restore(aside, path)
        raise
    return aside


def restore(aside: bytes, path: bytes) -> bool:
    """Move the directory that an interrupted :func:`replace_directory` put aside back to ``path``, if that is free.

    :return: whether it was moved; if not, ``aside`` does not exist, or the new directory is in place
    """
    if exists(path) or not exists(aside):
        return False
    rename_new(aside, path)
    return True


def make_parents(base: bytes, relative: bytes) -> list[bytes]:
    """Create the missing directories of the path ``relative`` below ``base``.

    Directories that another run removes as empty meanwhile are created again.

    :return: the created directories, relative to ``base``
    :raises OSError: a directory cannot be created, or its path is occupied by a file
    """
    names = relative.split(b"/")
    for _ in range(TRIES):
        created = []
        try:
            for depth in range(1, len(names) + 1):
                path = os.path.join(base, *names[:depth])
                try:
                    os.mkdir(path)
                    created.append(b"/".join(names[:depth]))
                except FileExistsError:
                    if is_blocked(path):
                        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
        except FileNotFoundError:
            if not os.path.isdir(base):
                raise
            continue
        return created
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), base)


def prune_empty_parents(
    base: bytes, relative: bytes, removed: list[bytes] | None = None, *, stop: bytes = b"", strict: bool = True
) -> list[bytes]:
    """Remove the directory ``relative`` below ``base`` if it is empty, then its parents; never ``base`` itself.

    :param removed: a list that receives the removed paths, also if an error is raised
    :param stop: a directory that is not removed, relative to ``base``
    :param strict: raise an error if an empty directory cannot be removed; otherwise it is kept, and a check reports it
    :return: the removed paths, relative to ``base``
    :raises OSError: an empty directory cannot be removed; its path is the ``filename`` of the error
    """
    removed = [] if removed is None else removed
    while relative not in (b"", stop):
        try:
            os.rmdir(os.path.join(base, relative))
            removed.append(relative)
        except FileNotFoundError:
            pass  # removed by another run
        except OSError as error:
            if not strict or error.errno in (*_NOT_EMPTY, errno.EBUSY, errno.ENOTDIR):
                break
            raise
        relative = os.path.dirname(relative)
    return removed


# --- trees ------------------------------------------------------------------------------------------------------------


class _RemovalError(Exception):
    """Ends a removal. Not an OSError: :func:`shutil.rmtree` of Python 3.13 would pass that to its handler again."""

    def __init__(self, error: OSError) -> None:
        self.error = error


def remove_tree(top: bytes, *, dir_fd: int | None = None) -> None:
    """Remove a file or a tree, also with write-protected directories. Links are removed, not followed.

    :param dir_fd: descriptor of the directory that ``top`` is relative to
    :raises OSError: a file or directory cannot be removed
    """

    def again(function: Callable[..., Any], path: Any, failed: Any) -> None:
        error = failed[1] if isinstance(failed, tuple) else failed
        if isinstance(error, FileNotFoundError):
            return
        if not isinstance(error, PermissionError):
            raise _RemovalError(error)
        # A copy of a write-protected directory is write-protected.
        changed = [_let_us_write(closed, dir_fd) for closed in (os.path.dirname(path), path)]
        is_entry = function in (os.unlink, os.rmdir)
        if not is_entry and not any(changed):  # another attempt would end here again
            raise _RemovalError(error)
        try:
            if is_entry:
                function(path, dir_fd=dir_fd)
            else:
                remove_tree(path, dir_fd=dir_fd)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _RemovalError(error) from None

    with suppress(OSError):
        os.rmdir(top, dir_fd=dir_fd)  # most are empty
        return
    try:
        is_tree = stat.S_ISDIR(os.stat(top, dir_fd=dir_fd, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return
    if not is_tree:
        with suppress(FileNotFoundError):
            os.unlink(top, dir_fd=dir_fd)
        return
    import shutil  # with all its compressions: most directories are empty

    try:
        if sys.version_info >= (3, 12):
            shutil.rmtree(top, onexc=again, dir_fd=dir_fd)
        else:
            shutil.rmtree(top, onerror=again, dir_fd=dir_fd)
    except _RemovalError as stopped:
        raise stopped.error from None
    except RecursionError:  # recursive up to Python 3.12
        _flatten(top, dir_fd)
        remove_tree(top, dir_fd=dir_fd)


def _let_us_write(path: bytes, dir_fd: int | None) -> bool:
    """Give the owner of a directory all permissions on it, without following links; return whether that changed it."""
    with suppress(OSError):
        mode = os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode
        # Windows does not remove write-protected files.
        if stat.S_ISLNK(mode) or not (stat.S_ISDIR(mode) or os.name == "nt") or mode & stat.S_IRWXU == stat.S_IRWXU:
            return False
        mode = stat.S_IMODE(mode) | stat.S_IRWXU
        if sys.platform != "linux":
            follow = os.chmod not in os.supports_follow_symlinks  # False on Windows only
            os.chmod(path, mode, dir_fd=dir_fd, follow_symlinks=follow)
            return True
        # O_PATH: the directory may not be readable.
        descriptor = os.open(path, _OPEN | os.O_PATH, dir_fd=dir_fd)
        try:
            os.chmod(f"/proc/self/fd/{descriptor}", mode)
        finally:
            os.close(descriptor)
        return True
    return False


def _flatten(top: bytes, dir_fd: int | None) -> None:
    """Move directories deep below ``top`` into ``top``."""
    waiting = [(top, 0)]
    while waiting:
        folder, depth = waiting.pop()
        for name in _directories(folder, dir_fd):
            if depth == LEVELS:
                moved = os.path.join(top, b"deep-%s" % os.urandom(8).hex().encode())
                os.rename(os.path.join(folder, name), moved, src_dir_fd=dir_fd, dst_dir_fd=dir_fd)
                waiting.append((moved, 1))
            else:
                waiting.append((os.path.join(folder, name), depth + 1))


def _directories(folder: bytes, dir_fd: int | None) -> list[bytes]:
    if os.name == "nt":
        with os.scandir(folder) as entries:
            return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    descriptor = os.open(folder, _OPEN, dir_fd=dir_fd)
    try:
        with os.scandir(descriptor) as found:
            return [os.fsencode(entry.name) for entry in found if entry.is_dir(follow_symlinks=False)]
    finally:
        os.close(descriptor)
