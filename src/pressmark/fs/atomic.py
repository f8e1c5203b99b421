"""Files that appear as a whole, written under another name first."""

from __future__ import annotations

import contextlib
import os

__all__ = ["new_file"]

_EXCLUSIVE = os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)


def new_file(path: str | bytes, flags: int) -> int:
    """Open a file under a name that is always the same, for :func:`open` as its ``opener``.

    What a killed run has left there goes first. What somebody has put there is never written to: not the file that a
    link leads to, nor one that has another name as well.

    :raises OSError: a directory has the name, or the file cannot be made
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    return os.open(path, (flags & ~os.O_TRUNC) | _EXCLUSIVE, 0o666)
