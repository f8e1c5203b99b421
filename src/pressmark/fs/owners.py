"""Whose a directory is: what other users could have made, exchanged or filled is not entered.

A private directory is ours by owner, and nobody else may write to it. A shared one is trusted as the directory that
holds it: a team works in one store, and whoever may write there could change its objects as well.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from typing import AnyStr

__all__ = [
    "UntrustedError",
    "enter_shared",
    "is_own",
    "make_shared",
    "open_shared",
    "require_private",
    "require_shared",
    "resolved",
]

_GROUP, _EVERYBODY = 0o020, 0o002
_WRITE = _GROUP | _EVERYBODY
_JUNCTION = 0xA0000003  # stat.IO_REPARSE_TAG_MOUNT_POINT, which only Windows has
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class UntrustedError(PermissionError):
    """A directory or file that other users could have planted, or can change.

    :ivar reason: one line that says why, and what to do
    """

    def __init__(self, path: bytes | str, reason: str) -> None:
        super().__init__(errno.EPERM, reason, path)
        self.reason = reason


def is_own(status: os.stat_result, folder: bytes) -> bool:
    """Return whether what is in the directory ``folder`` is ours by owner, as far as its file system knows owners."""
    if not hasattr(os, "geteuid") or status.st_uid == os.geteuid():
        return True
    ours = _new_file_status(folder)
    return ours is not None and ours.st_uid == status.st_uid


def require_private(path: bytes, status: os.stat_result) -> None:
    """Refuse a directory that is not ours alone.

    :param status: of the directory, opened and not through a link
    :raises UntrustedError: it belongs to another user, others may write to it, or it is no directory
    """
    _require_directory(path, status)
    if not hasattr(os, "geteuid") or (status.st_uid == os.geteuid() and not status.st_mode & _WRITE):
        return
    # Some file systems give one owner and mode to everything (CIFS, FAT): then a file that we make has them, too.
    ours = _new_file_status(os.path.dirname(path))
    if status.st_uid != (os.geteuid() if ours is None else ours.st_uid):
        raise UntrustedError(path, _of_another(status))
    if status.st_mode & _WRITE & ~(0 if ours is None else ours.st_mode):
        raise UntrustedError(path, "others may write to it; remove it if it is what an interrupted run left")


def require_shared(path: bytes | str) -> os.stat_result:
    """Refuse a directory that may be changed by users who may not change the directory that holds it.

    Where everybody may write to that one, as to ``/tmp``, its owner and we are trusted, and nobody else.

    :return: its status
    :raises UntrustedError: it is a symbolic link, no directory, belongs to another user, or too many may write to it
    :raises OSError: it is not there
    """
    status = os.lstat(path)
    _require_directory(path, status)
    _require_as_above(path, status)
    return status


def resolved(path: AnyStr) -> AnyStr:
    """Return the real path of a file that is to be written, where people who make links there are trusted.

    :raises UntrustedError: it is a symbolic link of somebody else, where everybody may make one
    :raises OSError: nobody can say
    """
    if hasattr(os, "geteuid") and os.path.islink(path):
        _require_owner(path, os.lstat(path), os.stat(_above(path)))
    return os.path.realpath(path)


def open_shared(path: bytes | str, flags: int) -> int:
    """Open a file that its user has named, and that is trusted as the directory that holds it; return its descriptor.

    A symbolic link is followed where whoever made it is trusted.

    :param flags: as for :func:`os.open`
    :raises UntrustedError: it belongs to another user, or too many may write to it
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
    """Make a directory that is trusted as the one that holds it: its group may write to it where it may write there.

    :raises OSError: it cannot be made
    """
    above = os.stat(_above(path))
    os.mkdir(path, 0o755 | (above.st_mode & _GROUP))


def enter_shared(path: bytes | str) -> None:
    """Make a directory, and those above it, where it is not there; and refuse it as :func:`require_shared` does.

    :raises UntrustedError: others could have made or filled it
    :raises OSError: it cannot be made
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
    if above.st_mode & stat.S_ISVTX:  # everybody may make something there, and nobody change what others have made
        shared &= ~_EVERYBODY
    # The mode of what is ours is what our umask says, but for one that trusts everybody.
    is_ours = status.st_uid in (os.geteuid(), above.st_uid)
    excess = status.st_mode & ~shared & (_EVERYBODY if is_ours else _WRITE)
    if excess:
        who = "everybody" if excess & _EVERYBODY else "its group"
        raise UntrustedError(path, f"{who} may write to it, but not to the directory above; change its mode")


def _require_owner(path: bytes | str, status: os.stat_result, above: os.stat_result) -> None:
    if above.st_mode & _EVERYBODY and status.st_uid not in (os.geteuid(), above.st_uid):
        raise UntrustedError(path, _of_another(status))


def _above(path: bytes | str) -> bytes:
    """Return the directory that holds another one; not by its whole path, which need not be open to us."""
    return os.path.dirname(os.fsencode(path).rstrip(os.fsencode(os.sep))) or os.fsencode(os.curdir)


def _require_directory(path: bytes | str, status: os.stat_result) -> None:
    # A junction of Windows is a directory to all who do not ask for its tag.
    if stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) == _JUNCTION:
        raise UntrustedError(path, "it is a symbolic link; remove it")
    if not stat.S_ISDIR(status.st_mode):
        raise UntrustedError(path, "it is not a directory; move it away")


def _of_another(status: os.stat_result) -> str:
    return f"it belongs to another user (uid {status.st_uid}); have it removed, or choose another place"


def _new_file_status(folder: bytes) -> os.stat_result | None:
    """Return the status of a file that only its owner may read, and that we make; :data:`None` where we make none."""
    path = os.path.join(folder, b".pressmark-%b.tmp" % secrets.token_hex(8).encode())
    with contextlib.suppress(OSError):
        descriptor = os.open(path, _NEW, 0o600)
        try:
            return os.fstat(descriptor)  # of the descriptor: nobody can have exchanged that
        finally:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                os.unlink(path)
    return None
