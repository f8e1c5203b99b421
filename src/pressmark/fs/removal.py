"""Removing trees regardless of permissions, without following links."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["remove_tree"]

# Depth to which a tree is flattened if it is too deep for the stack of Python.
LEVELS = 100
_OPEN = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


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

    with contextlib.suppress(OSError):
        os.rmdir(top, dir_fd=dir_fd)  # most are empty
        return
    try:
        is_tree = stat.S_ISDIR(os.stat(top, dir_fd=dir_fd, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return
    if not is_tree:
        with contextlib.suppress(FileNotFoundError):
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
    with contextlib.suppress(OSError):
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
