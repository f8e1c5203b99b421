"""The words for what can go wrong with a file.

======================= ============================================================================================
kind                    meaning
======================= ============================================================================================
``missing``             there is nothing under this path
``dangling-link``       a symbolic link that leads nowhere
``link-loop``           symbolic links that lead to each other for ever
``link``                a symbolic link, or a path through one, where links are refused
``directory``           a directory where a file was expected
``directory-loop``      a directory that a symbolic link made its own descendant; it was not entered again
``fifo``                a named pipe; it was not opened
``socket``              a socket
``device``              a character or block device; it was not opened
``permission``          the operating system does not let us read it
``io-error``            the operating system failed to read it
``changed-while-read``  it was written to, replaced or deleted while it was read: no digest is right
``bad-name``            a path that no file can have, or that leads out of where files are read
======================= ============================================================================================
"""

from __future__ import annotations

import errno
import os
import stat

__all__ = ["kind_of_error", "kind_of_mode", "message_of"]

# Why a path cannot be read, as far as the operating system's number alone says it.
_KINDS = {
    errno.ENOENT: "missing",
    errno.ENOTDIR: "missing",
    errno.ELOOP: "link-loop",
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.EISDIR: "directory",
    errno.ENAMETOOLONG: "bad-name",
}

_MESSAGES = {
    "dangling-link": "the symbolic link leads nowhere",
    "link": "it is a symbolic link",
    "directory": "it is a directory",
    "directory-loop": "the symbolic link leads to a directory that holds it",
    "fifo": "it is a named pipe",
    "socket": "it is a socket",
    "device": "it is a device",
}


def kind_of_mode(mode: int) -> str | None:
    """Return the kind of what a ``st_mode`` says to be no regular file, :data:`None` for a regular file."""
    if stat.S_ISREG(mode):
        return None
    if stat.S_ISDIR(mode):
        return "directory"
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISFIFO(mode):
        return "fifo"
    return "socket" if stat.S_ISSOCK(mode) else "device"


def kind_of_error(number: int, path: str | bytes | None) -> str:
    """Return the kind of a refusal with the ``errno`` ``number``; without ``path``, nothing more is looked at."""
    kind = _KINDS.get(number, "io-error")
    if kind == "missing" and path is not None and os.path.islink(path):
        return "dangling-link"
    return kind


def message_of(kind: str, number: int = 0) -> str:
    """Return the message for a ``kind`` that the operating system's ``number`` may explain."""
    return _MESSAGES.get(kind) or os.strerror(number)
