"""Files that appear as a whole, written under another name first."""

from __future__ import annotations

import os

__all__ = ["new_file"]

_EXCLUSIVE = os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def new_file(path: str | bytes, flags: int) -> int:
    """Open a file under a name that is always the same, for :func:`open` as its ``opener``.

    What a killed run has left there goes first. What somebody has put there is never written to: not the file that a
    link leads to, nor one that has another name as well.

    :raises OSError: a directory has the name, or the file cannot be made
    """
    flags = (flags & ~os.O_TRUNC) | _EXCLUSIVE
    try:
        return os.open(path, flags, 0o666)
    except FileExistsError:
        os.unlink(path)
        return os.open(path, flags, 0o666)
