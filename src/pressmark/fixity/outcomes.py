"""What became of one file, and the words for what can go wrong with it.

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
from typing import NamedTuple

__all__ = ["Outcome", "failure", "kind_of_error", "kind_of_mode", "message_of"]


class Outcome(NamedTuple):
    """What became of one file: its digests, or why there are none.

    :ivar path: the path as it was given
    :ivar digests: name of the algorithm to lower-case hex, in the order asked for; :data:`None` for a failure
    :ivar size: bytes that were read; for a failure those that the file should have had, or :data:`None`
    :ivar mtime_ns: time of the last modification, nanoseconds since 1970; :data:`None` where it is not known
    :ivar inode: the file's number in its file system; :data:`None` where it is not known
    :ivar kind: a word from the table above; :data:`None` where all went well
    :ivar message: one line that says why, without the path
    """

    path: str | bytes
    digests: dict[str, str] | None
    size: int | None
    mtime_ns: int | None
    inode: int | None
    kind: str | None = None
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether there are digests."""
        return self.kind is None


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


def failure(path: str | bytes, kind: str, number: int = 0, status: os.stat_result | None = None) -> Outcome:
    """Return the outcome of a file that has no digests."""
    if status is None:
        return Outcome(path, None, None, None, None, kind, message_of(kind, number))
    return Outcome(path, None, status.st_size, status.st_mtime_ns, status.st_ino, kind, message_of(kind, number))
