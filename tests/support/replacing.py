"""Directories that are replaced by links while they are read."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["Opened", "exchanging"]


class Opened:
    """Counts opened files in a directory (Linux)."""

    def __init__(self, directory: Path) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        in_open = 0x20
        assert self._libc.inotify_add_watch(self._descriptor, os.fsencode(directory), in_open) > 0

    def count(self) -> int:
        """Return the count since the last call."""
        try:
            data = os.read(self._descriptor, 1 << 16)
        except BlockingIOError:
            return 0
        count = 0
        while data:
            # Descriptor, mask, cookie, and the length of the following name.
            data = data[16 + int.from_bytes(data[12:16], sys.byteorder) :]
            count += 1
        return count

    def close(self) -> None:
        os.close(self._descriptor)


def exchanging(here: Path, outside: Path, link: Path | None = None) -> Callable[[], None]:
    """Return a function that atomically exchanges the directory ``here`` for a link to ``outside``, and back.

    :param link: the path of the link, by default beside the directory
    """
    link = here.with_name("link") if link is None else link
    link.symlink_to(outside)
    libc = ctypes.CDLL(None, use_errno=True)
    names = [ctypes.c_char_p(os.fsencode(path)) for path in (here, link)]
    at_cwd, exchange = -100, 2

    def turn() -> None:
        assert libc.renameat2(at_cwd, names[0], at_cwd, names[1], exchange) == 0

    return turn
