"""Ownership checks: directories that other users could have created or changed are not trusted.

A private directory belongs to the current user, and only that user may write to it. A shared directory is trusted if
its parent directory is: users who can write there can also change the store.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import AnyStr

__all__ = [
    "UntrustedError",
    "enter_shared",
    "is_own",
    "make_shared",
    "open_shared",
    "require_private",
    "require_replaceable",
    "require_shared",
    "resolved",
    "shared_mode",
]

_GROUP, _EVERYBODY = 0o020, 0o002
_WRITE = _GROUP | _EVERYBODY
_JUNCTION = 0xA0000003  # stat.IO_REPARSE_TAG_MOUNT_POINT, defined on Windows only
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class UntrustedError(PermissionError):
    """A directory or file that other users could have created, or can change.

    :ivar reason: the problem and what to do, on one line
    """

    def __init__(self, path: bytes | str, reason: str) -> None:
        super().__init__(errno.EPERM, reason, path)
        self.reason = reason


def is_own(status: os.stat_result, folder: bytes) -> bool:
    """Return whether a file in the directory ``folder`` belongs to the current user.

    :param status: status of the file
    """
    if not hasattr(os, "geteuid") or status.st_uid == os.geteuid():
        return True
    ours = _new_file_status(folder)
    return ours is not None and ours.st_uid == status.st_uid


def require_private(path: bytes, status: os.stat_result) -> None:
    """Check that a directory is private.

    :param status: status of the open directory, without following links
    :raises UntrustedError: it belongs to another user, others may write to it, or it is not a directory
    """
    _require_directory(path, status)
    if not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & _WRITE):
        return
    # On file systems with one owner and mode for all files (CIFS, FAT), a new file has them, too.
    ours = _new_file_status(os.path.dirname(path))
    if status.st_uid != (os.geteuid() if ours is None else ours.st_uid):
        raise UntrustedError(path, _of_another(status))
    if status.st_mode & _WRITE & ~(0 if ours is None else ours.st_mode):
        raise UntrustedError(
            path, "writable by other users; if an interrupted run left it, make it writable by you only"
        )


def require_shared(path: bytes | str) -> os.stat_result:
    """Check that a directory can only be changed by users who can change its parent directory.

    In a directory writable by everybody, such as ``/tmp``, only its owner and the current user are trusted.

    :return: status of the directory
    :raises UntrustedError: it is a symbolic link, not a directory, belongs to another user, or is writable by others
    :raises OSError: it does not exist
    """
    status = os.lstat(path)
    _require_directory(path, status)
    _require_as_above(path, status)
    return status


def resolved(path: AnyStr) -> AnyStr:
    """Return the real path of an output file, following symbolic links of trusted users.

    :raises UntrustedError: it is a symbolic link of another user in a directory writable by everybody
    :raises OSError: this cannot be determined
    """
    if hasattr(os, "geteuid") and os.path.islink(path):
        _require_owner(path, os.lstat(path), os.stat(_above(path)))
    return os.path.realpath(path)


def require_replaceable(path: bytes | str) -> os.stat_result | None:
    """Check that an output file, if it exists, may be replaced: in a directory writable by everybody, such as ``/tmp``,
    another user could have put it there to own the output, or to change it later.

    :param path: a path from :func:`resolved`
    :return: its status; :data:`None` if it does not exist
    :raises UntrustedError: it belongs to another user
    :raises OSError: this cannot be determined
    """
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if hasattr(os, "geteuid"):
        _require_owner(path, status, os.stat(_above(path)))
    return status


def open_shared(path: bytes | str, flags: int) -> int:
    """Open a file that can only be changed by users who can change its directory; return its descriptor.

    Symbolic links of trusted users are followed.

    :param flags: as for :func:`os.open`
    :raises UntrustedError: it belongs to another user, or is writable by others
    :raises OSError: it cannot be opened
    """
    path = os.fsencode(path)
    if os.path.islink(path):
        path = resolved(path)
    descriptor = os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        _require_as_above(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_shared(path: bytes | str) -> None:
    """Create a directory that is writable by its group if its parent directory is.

    :raises OSError: it cannot be created
    """
    above = os.stat(_above(path))
    os.mkdir(path, shared_mode(above.st_mode))


def shared_mode(above: int) -> int:
    """Return the mode for a directory that is writable by its group if its parent directory is.

    :param above: mode of the parent directory
    """
    return 0o755 | (above & _GROUP)


def enter_shared(path: bytes | str) -> None:
    """Create a directory and its parents if they do not exist, and check it with :func:`require_shared`.

    :raises UntrustedError: others could have created or changed it
    :raises OSError: it cannot be created
    """
    os.makedirs(_above(path), exist_ok=True)
    with contextlib.suppress(FileExistsError):
        make_shared(path)
    require_shared(path)


def _require_as_above(path: bytes | str, status: os.stat_result) -> None:
    if not hasattr(os, "geteuid"):
        return
    above = os.stat(_above(path))
    _require_owner(path, status, above)
    shared = above.st_mode & (_WRITE if status.st_gid == above.st_gid else _EVERYBODY)
    if above.st_mode & stat.S_ISVTX:  # sticky: users may change only their own entries
        shared &= ~_EVERYBODY
    # The umask determines the mode of files of the current user; only write permission for everybody is refused.
    is_ours = status.st_uid in (os.geteuid(), above.st_uid)
    excess = status.st_mode & ~shared & (_EVERYBODY if is_ours else _WRITE)
    if excess:
        who = "everybody" if excess & _EVERYBODY else "its group"
        raise UntrustedError(path, f"writable by {who}, unlike its parent directory; change its mode")


def _require_owner(path: bytes | str, status: os.stat_result, above: os.stat_result) -> None:
    if above.st_mode & _EVERYBODY and status.st_uid not in (os.geteuid(), above.st_uid):
        raise UntrustedError(path, _of_another(status))


def _above(path: bytes | str) -> bytes:
    """Return the parent directory, as a relative path if the path is: the absolute one may not be accessible."""
    return os.path.dirname(os.fsencode(path).rstrip(os.fsencode(os.sep))) or os.fsencode(os.curdir)


def _require_directory(path: bytes | str, status: os.stat_result) -> None:
    # A junction of Windows is a directory with a reparse tag.
    if stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) == _JUNCTION:
        raise UntrustedError(path, "is a symbolic link; move it elsewhere")
    if not stat.S_ISDIR(status.st_mode):
        raise UntrustedError(path, "not a directory; move it elsewhere")


def _of_another(status: os.stat_result) -> str:
    return f"owned by another user (uid {status.st_uid}); ask that user to run it again, or choose another directory"


def _new_file_status(folder: bytes) -> os.stat_result | None:
    """Create a private file and return its status; :data:`None` if it cannot be created."""
    path = os.path.join(folder, b".pressmark-%b.tmp" % os.urandom(8).hex().encode())
    with contextlib.suppress(OSError):
        descriptor = os.open(path, _NEW, 0o600)
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(path)
    return None
