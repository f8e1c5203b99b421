"""Files that one process at a time has, however the process before it ended."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
from types import TracebackType

from pressmark.fs.owners import UntrustedError

__all__ = ["FileLock", "LockHeldError", "host", "is_owner_lock", "lock_descriptor", "open_lock"]

# File systems of clusters may have no locks, or such that are seen on one machine only.
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)
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


def lock_descriptor(descriptor: int, *, wait: bool = False) -> None:
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


class LockHeldError(BlockingIOError):
    """Another process has a lock.

    :ivar owner: which one, in words
    """

    def __init__(self, path: str | bytes, owner: tuple[str, int] | None) -> None:
        super().__init__(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        self.owner = "another process" if owner is None else f"process {owner[1]} on {owner[0]}"


class FileLock:
    """A file that is locked as long as this process has it open; a context manager, which releases it.

    With ``owner`` the file says who has it, which counts as well: not all shared file systems have locks, or show them
    to other machines. Such a file stays; that of a process that is gone on another machine must be removed by hand.

    :param path: the file; it is made, and without ``owner`` removed by :meth:`release`
    :param wait: until whoever has it gives it back; not with ``owner``
    :param owner: write into the file who has it
    :raises BlockingIOError: somebody else has it; with ``owner`` a :class:`LockHeldError`
    :raises OSError: it cannot be made
    """

    def __init__(self, path: str | bytes, *, wait: bool = False, owner: bool = False) -> None:
        self._path = path
        self._owner = owner
        while True:
            self._descriptor = open_lock(path)
            try:
                if owner:
                    _own(self._descriptor, path)
                    return
                lock_descriptor(self._descriptor, wait=wait)
                if os.name == "nt" or self._exists():
                    return
            except BaseException:
                os.close(self._descriptor)
                raise
            # Its holder removed it between our opening and our locking.
            os.close(self._descriptor)

    def _exists(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        """Let others have it; the file is removed, or names nobody any more."""
        if self._owner:
            try:
                _write(self._descriptor, b"")
            finally:
                os.close(self._descriptor)
            return
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

    def __enter__(self) -> FileLock:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.release()


# --- owners -----------------------------------------------------------------------------------------------------------


def host() -> str:
    """Return this machine's name."""
    import platform  # here: most locks name no owner

    return platform.node() or "localhost"


def is_owner_lock(path: str) -> bool:
    """Return whether a file is one that a :class:`FileLock` with an owner has made, held or not."""
    flags = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        return not os.fstat(descriptor).st_size or _read_owner(descriptor) is not None
    finally:
        os.close(descriptor)


def _own(descriptor: int, path: str | bytes) -> None:
    """Lock a file, where it can be locked, and write into it that it is ours.

    :raises LockHeldError: somebody else has it
    """
    has_locks = True
    try:
        lock_descriptor(descriptor)
    except BlockingIOError:
        raise LockHeldError(path, _read_owner(descriptor)) from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        has_locks = False
    owner = _read_owner(descriptor)
    if owner is not None and _may_live(owner, has_locks):
        raise LockHeldError(path, owner)
    _write(descriptor, json.dumps([host(), os.getpid()]).encode() + b"\n")


def _read_owner(descriptor: int) -> tuple[str, int] | None:
    """Return host and process that the file names."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        where, process = json.loads(os.read(descriptor, 4096))
        return str(where), int(process)
    except (ValueError, TypeError):
        return None


def _may_live(owner: tuple[str, int], has_locks: bool) -> bool:
    where, process = owner
    if where != host():
        return True
    # On this machine a lock that was had says that nobody else has it.
    if has_locks:
        return False
    if os.name == "nt":  # where a signal 0 is no question
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _write(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.ftruncate(descriptor, 0)
    os.write(descriptor, data)
