"""Flush open files, and files and directories by name, to disk."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

__all__ = ["flush_file", "flush_path"]

# Windows cannot flush a file that is open for reading only.
# O_NONBLOCK: opening a named pipe must not block.
_OPEN = (os.O_RDWR if os.name == "nt" else os.O_RDONLY) | sum(
    getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK")
)
# Raised by file systems that cannot flush.
_NOTHING_TO_FLUSH = (errno.EINVAL, errno.EBADF, errno.ENOTSUP)


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


def flush_path(path: bytes) -> None:
    """Flush a file to disk, or the entries of a directory, on systems that can.

    :raises OSError: it cannot be read or written
    """
    if os.name == "nt" and os.path.isdir(path):
        return
    descriptor = os.open(path, _OPEN)
    try:
        flush_file(descriptor)
    except OSError as error:
        if error.errno not in _NOTHING_TO_FLUSH:
            raise
    finally:
        os.close(descriptor)
