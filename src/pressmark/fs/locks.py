"""Files that one process at a time has, however the process before it ended."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
from types import TracebackType

from pressmark.fs.owners import UntrustedError

__all__ = ["LockFile", "open_lock", "take"]

_OPEN = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


def open_lock(path: str | bytes) -> int:
    """Open the file of a lock, which is made where it is not there, and return its descriptor.

    :raises UntrustedError: what is there is a link, no file, or a file that has another name too
    :raises OSError: it cannot be opened
    """
    try:
        descriptor = os.open(path, _OPEN, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise UntrustedError(path, "it is a symbolic link; remove it") from None
        raise
    status = os.fstat(descriptor)
    # Whoever holds a lock may write to it: not to somebody else's file that was given this name.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise UntrustedError(path, "it is not the lock of a run; remove it")
    return descriptor


def take(descriptor: int, *, wait: bool = False) -> None:
    """Lock an open file until it is closed.

    :param wait: until whoever has it gives it back
    :raises BlockingIOError: somebody else has it
    :raises OSError: the file system has no locks
    """
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, 1 << 62, os.SEEK_SET)  # far behind the end: readers are not disturbed
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return
            except PermissionError as error:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
            except OSError as error:
                if not wait or error.errno != errno.EDEADLK:  # which says that ten seconds were not enough
                    raise
    else:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except PermissionError as error:  # as some file systems of networks say it
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error


class LockFile:
    """A file that is locked as long as this process has it open; a context manager, which releases it.

    :param path: the file; it is made, and removed by :meth:`release`
    :param wait: until whoever has it gives it back
    :raises BlockingIOError: somebody else has it
    :raises OSError: it cannot be made
    """

    def __init__(self, path: bytes, *, wait: bool = False) -> None:
        self._path = path
        while True:
            self._descriptor = open_lock(path)
            try:
                take(self._descriptor, wait=wait)
                if os.name == "nt" or self._is_there():
                    return
            except BaseException:
                os.close(self._descriptor)
                raise
            # Its holder removed it between our opening and our locking.
            os.close(self._descriptor)

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Remove the file and let others have it."""
        if os.name == "nt":  # where a file that is open cannot be removed
            self.abandon()
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        if os.name != "nt":
            self.abandon()

    def abandon(self) -> None:
        """Let others have it, and leave the file: there is something beside it that somebody must see to."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)

    def __enter__(self) -> LockFile:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.release()
