"""One driver at a time in a work folder."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pressmark.errors import JobError
from pressmark.fs.locks import open_lock, take
from pressmark.jobs.receipts import host

__all__ = ["is_lock", "locked"]

# File systems of clusters may have no locks, or such that are seen on one machine only.
_NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock ``path``, a file that says who has it.

    The file's lock counts where all are on one machine. What is written in it counts as well, because not all shared
    file systems show locks to other machines: a driver that ended removes it.

    :raises JobError: another driver has it
    """
    descriptor = open_lock(os.fspath(path))
    try:
        seen = _lock(descriptor)
        holder = _holder(descriptor)
        if seen is False or (holder is not None and _may_live(holder, seen is True)):
            where, process = holder or ("this machine", 0)
            who = f"process {process} on {where}" if process else "another process"
            raise JobError(
                str(path.parent), f"{who} is at work in it; wait for its end, or if it is gone, remove {path.name}"
            )
        _write(descriptor, json.dumps([host(), os.getpid()]).encode() + b"\n")
        try:
            yield
        finally:
            _write(descriptor, b"")
    finally:
        os.close(descriptor)  # which also gives up the lock


def is_lock(path: str) -> bool:
    """Return whether a file is a lock that :func:`locked` has made, held or not."""
    flags = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        return not os.fstat(descriptor).st_size or _holder(descriptor) is not None
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Return whether the lock was had, :data:`None` where there are none."""
    try:
        take(descriptor)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return None
    return True


def _holder(descriptor: int) -> tuple[str, int] | None:
    """Return host and process that the file names."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    try:
        where, process = json.loads(os.read(descriptor, 4096))
        return str(where), int(process)
    except (ValueError, TypeError):
        return None


def _may_live(holder: tuple[str, int], locks: bool) -> bool:
    where, process = holder
    if where != host():
        return True
    # On this machine a lock that was had says that nobody else has it.
    if locks:
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
