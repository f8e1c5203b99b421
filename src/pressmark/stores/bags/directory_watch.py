"""Changes of a directory by any process, reported by the system (inotify, on Linux).

The file-system clock of the operating system has a resolution of milliseconds. Two changes may therefore have the same
time, and a change by this process hides an earlier change by another process. A watch misses neither. Without a watch,
a change is visible if the directory had a time that the clock cannot have: see :meth:`DirectoryWatch.mark`.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import struct
import sys
import weakref
from contextlib import suppress
from functools import cache
from time import sleep
from typing import Any

__all__ = ["DirectoryWatch"]

# linux/magic.h: ext2 to ext4, XFS, Btrfs, tmpfs, ZFS, F2FS. Network file systems omit changes by other machines.
_LOCAL = frozenset({0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x2FC12FC1, 0xF2F52010})
# linux/inotify.h
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE, _ONLYDIR = 0x40, 0x80, 0x100, 0x200, 0x01000000
_WITH_NAME = _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_EVENT = struct.Struct("iIII")
_READ = 1 << 16
_CLOCK_REALTIME_COARSE = 5  # linux/time.h: the clock of the times of files
# Times that are multiples of this are those of a file system with a coarser clock.
_FINE = 1_000_000  # nanoseconds


@cache
def _library() -> Any:
    """Return the C library; :data:`None` if it lacks inotify."""
    if not sys.platform.startswith("linux"):
        return None
    library = ctypes.CDLL(None, use_errno=True)
    has_all = all(hasattr(library, name) for name in ("inotify_init1", "inotify_add_watch", "statfs"))
    return library if has_all else None


def _is_local(library: Any, directory: bytes) -> bool:
    status = ctypes.create_string_buffer(512)
    return library.statfs(directory, status) == 0 and ctypes.c_long.from_buffer(status).value & 0xFFFFFFFF in _LOCAL


class DirectoryWatch:
    """A watch of the names in a directory.

    :ivar inode: inode number of the directory
    :raises OSError: the system or the file system does not report all changes
    """

    def __init__(self, directory: bytes) -> None:
        library = _library()
        if library is None or not _is_local(library, directory):
            raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), directory)
        self._directory = directory
        self._descriptor: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), directory)
        self.close = weakref.finalize(self, os.close, self._descriptor)
        self._process = os.getpid()
        if library.inotify_add_watch(self._descriptor, directory, _WITH_NAME | _ONLYDIR) < 0:
            number = ctypes.get_errno()
            self.close()
            raise OSError(number, os.strerror(number), directory)
        self.inode = os.stat(directory).st_ino

    def names(self) -> set[bytes] | None:
        """Return the names that were created, removed or renamed since the last call; :data:`None` if that is unknown.

        It is unknown after too many changes, after the directory itself was replaced, and in a forked process, which
        must not take the events of its parent.
        """
        found: set[bytes] = set()
        if os.getpid() != self._process:
            return None
        while True:
            try:
                data = os.read(self._descriptor, _READ)
            except BlockingIOError:
                return found if os.stat(self._directory).st_ino == self.inode else None
            except OSError:
                return None
            start = 0
            while start < len(data):
                _watch, mask, _cookie, size = _EVENT.unpack_from(data, start)
                start += _EVENT.size
                if not mask & _WITH_NAME:
                    return None
                found.add(data[start : start + size].rstrip(b"\0"))
                start += size

    def mark(self) -> int | None:
        """Change the modification time by less than a millisecond, so every later change alters it. Only a program that
        resets it to the mark before the clock advances could hide a change.

        :return: the new time in nanoseconds; :data:`None` if the directory cannot be marked, as by another user
        """
        try:
            status = os.stat(self._directory)
            if status.st_mtime_ns % _FINE == 0:
                return None
            mark = status.st_mtime_ns + 1 + secrets.randbelow(_FINE - 1)
            os.utime(self._directory, ns=(status.st_atime_ns, mark))
        except OSError:
            return None
        return mark

    def settle(self, changed: int, *, is_marked: bool = False) -> bool:
        """Wait until every later change has another time, and every earlier one is reported.

        :param changed: the time of the last change, in nanoseconds
        :param is_marked: the directory has the time of :meth:`mark`
        :return: whether that is certain
        """
        import time  # not on every system

        if not is_marked:
            if changed % _FINE == 0:
                return False
            for _ in range(20):
                if time.clock_gettime_ns(_CLOCK_REALTIME_COARSE) > changed:
                    break
                sleep(0.001)
            else:
                return False
        # The system looks for an unknown name when no change is in progress.
        with suppress(OSError):
            os.lstat(os.path.join(self._directory, b".pressmark-" + secrets.token_hex(8).encode()))
        return True
