"""The kinds of errors of files.

======================= ============================================================================================
kind                    meaning
======================= ============================================================================================
``missing``             the file does not exist
``dangling-link``       a symbolic link whose target does not exist
``link-loop``           a loop of symbolic links
``link``                a symbolic link, or a path through one, where links are not followed
``directory``           a directory instead of a file
``directory-loop``      a directory that contains itself through a symbolic link; not entered again
``fifo``                a named pipe; not opened
``socket``              a socket
``device``              a character or block device; not opened
``permission``          permission denied
``io-error``            another error of the operating system
``changed-while-read``  the file was changed, replaced or deleted while it was read; no digest is correct
``bad-name``            an invalid path, or one outside of the directory that is read
``archived``            a key in object storage whose content must be restored from an archive before it is read
``unverified``          a key in object storage of which the server keeps no digest
``not-written``         a copy that cannot be written; its source may be all right
======================= ============================================================================================
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

__all__ = ["NotWritten", "kind_of_error", "kind_of_mode", "message_of", "raising"]


class NotWritten(Exception):
    """A copy cannot be written.

    :ivar error: the reason
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(error)
        self.error = error


# The kind by errno; all others are io-error.
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
    "dangling-link": "dangling symbolic link",
    "link": "symbolic link not followed",
    "directory": "directory instead of a file",
    "directory-loop": "symbolic link to a parent directory",
    "fifo": "named pipe not opened",
    "socket": "socket not opened",
    "device": "device not opened",
}


def kind_of_mode(mode: int) -> str | None:
    """Return the kind of a file that is not regular, by its ``st_mode``; :data:`None` for a regular file."""
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
    """Return the kind of an error by its ``errno``.

    :param path: used to detect dangling links, if given
    """
    kind = _KINDS.get(number, "io-error")
    if kind == "missing" and path is not None and os.path.islink(path):
        return "dangling-link"
    return kind


def message_of(kind: str, number: int = 0) -> str:
    """Return the message of an error by its kind, or else by its ``errno``."""
    return _MESSAGES.get(kind) or os.strerror(number)


class raising:
    """Turns an :class:`OSError` into another exception about the file it names, or about ``path``.

    :param make: returns the exception for a path and a reason
    :param advice: appended to the reason
    """

    def __init__(self, make: Callable[[str | bytes, str], Exception], path: str | bytes, advice: str = "") -> None:
        self._make = make
        self._path = path
        self._advice = advice

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, OSError):
            named = error.filename if isinstance(error.filename, (str, bytes)) else self._path
            reason = error.strerror or str(error)
            raise self._make(named, f"{reason}; {self._advice}" if self._advice else reason) from error
