"""Lock files. A lock is released when its process ends, even if the process is killed."""

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

# Network file systems may not support locks, or only between the processes of one machine.
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)
# O_NONBLOCK: where O_RDWR waits for the other end of a named pipe.
_OPEN = os.O_RDWR | os.O_CREAT | sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK"))


def open_lock(path: str | bytes) -> int:
    """Open a lock file, creating it if needed, and return its descriptor.

    :raises UntrustedError: the path is a link, not a regular file, or a file with several links
    :raises OSError: it cannot be opened
    """
    try:
        descriptor = os.open(path, _OPEN, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise UntrustedError(path, "is a symbolic link; move it elsewhere") from None
        raise
    status = os.fstat(descriptor)
    # The owner is written to the file, so it must not be another file under this name.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise UntrustedError(path, "not a lock file; move it elsewhere")
    return descriptor


def lock_descriptor(descriptor: int, *, wait: bool = False) -> None:
    """Lock an open file until it is closed.

    :param wait: wait until the lock is free
    :raises BlockingIOError: the lock is held by another process
    :raises OSError: the file system does not support locks
    """
    if sys.platform == "win32":
        import msvcrt

        os.lseek(descriptor, 1 << 62, os.SEEK_SET)  # beyond the end, so that readers are not blocked
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
                return
            except PermissionError as error:
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error
            except OSError as error:
                if not wait or error.errno != errno.EDEADLK:  # timeout of ten seconds
                    raise
    else:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except PermissionError as error:  # of some network file systems
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from error


class LockHeldError(BlockingIOError):
    """A lock is held by another process.

    :ivar owner: the process, for messages
    """

    def __init__(self, path: str | bytes, owner: tuple[str, int] | None) -> None:
        super().__init__(errno.EAGAIN, os.strerror(errno.EAGAIN), path)
        self.owner = "another process" if owner is None else f"process {owner[1]} on {owner[0]}"


class FileLock:
    """A lock file; a context manager that releases it.

    With ``owner``, host and process id are written to the file and checked as well, for file systems without locks or
    with locks of one machine only. If a process on another machine dies, its lock file must be removed manually.

    :param path: the file; created, and without ``owner`` removed by :meth:`release`
    :param wait: wait until the lock is free; not with ``owner``
    :param owner: write the owner to the file
    :raises BlockingIOError: the lock is held by another process; with ``owner`` a :class:`LockHeldError`
    :raises OSError: the file cannot be created
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
            # Removed between open and lock.
            os.close(self._descriptor)

    def _exists(self) -> bool:
        try:
            return os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False

    def detach(self) -> int:
        """Return the descriptor of the file, which holds the lock; the caller closes it."""
        return self._descriptor

    def release(self) -> None:
        """Release the lock, and remove the file, or with ``owner`` empty it."""
        if self._owner:
            try:
                _write(self._descriptor, b"")
            finally:
                os.close(self._descriptor)
            return
        if os.name == "nt":  # an open file cannot be removed
            self.abandon()
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        if os.name != "nt":
            self.abandon()

    def abandon(self) -> None:
        """Release the lock, but keep the file: it marks files that the next run must clean up."""
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
    """Return the name of this machine."""
    import platform  # imported here: rarely needed

    return platform.node() or "localhost"


def is_owner_lock(path: str) -> bool:
    """Return whether a file is the lock file of a :class:`FileLock` with ``owner``, held or not."""
    flags = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        return not os.fstat(descriptor).st_size or _read_owner(descriptor) is not None
    finally:
        os.close(descriptor)


def _own(descriptor: int, path: str | bytes) -> None:
    """Lock a file if the file system supports it, and write this process to it as the owner.

    :raises LockHeldError: the lock is held by another process
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
    """Return the host and process id in the file."""
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
    # This process holds the lock, so no other process of this machine does.
    if has_locks:
        return False
    if os.name == "nt":  # no signal 0
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
