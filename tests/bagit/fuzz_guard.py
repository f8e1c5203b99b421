"""Detect when Python or C code opens a forbidden file."""

from __future__ import annotations

import ctypes
import os
import struct
import sys

__all__ = ["Guard"]

_OPEN, _ACCESS, _NONBLOCK = 0x20, 0x01, os.O_NONBLOCK if hasattr(os, "O_NONBLOCK") else 0
_HEAD = struct.Struct("iIII")


class Guard:
    """Watch directories, and the paths that Python opens.

    On Linux the kernel reports every opened file in them, and the directories (inotify). On all systems, Python's
    audit hook reports files and directories opened by an absolute path, or by one that leads up.

    :param forbidden: directories in which nothing may be opened
    :param allowed: directories in which files may be opened by name while the guard is :attr:`on`
    :ivar on: whether the guard is active
    """

    def __init__(self, forbidden: list[bytes], allowed: list[bytes]) -> None:
        self.on = False
        self._seen: list[str] = []
        self._allowed = tuple(os.path.join(path, b"") for path in allowed)
        self._watched: dict[int, bytes] = {}
        self._descriptor = -1
        if sys.platform.startswith("linux"):
            library = ctypes.CDLL(None, use_errno=True)
            self._descriptor = library.inotify_init1(_NONBLOCK)
            for path in forbidden:
                number = library.inotify_add_watch(self._descriptor, path, _OPEN | _ACCESS)
                if number >= 0:
                    self._watched[number] = path
        sys.addaudithook(self._audit)

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.on or event not in ("open", "os.listdir", "os.scandir") or not arguments:
            return
        given = arguments[0]
        if not isinstance(given, (str, bytes)):
            return
        path = os.fsencode(given)
        up = b".." in path.split(b"/")
        if up or (path.startswith(b"/") and not os.path.join(path, b"").startswith(self._allowed)):
            self._seen.append(f"{event} {path!r}")

    def seen(self) -> list[str]:
        """Return the forbidden paths opened since the last call."""
        found, self._seen = self._seen, []
        while self._watched:
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                break
            while data:
                number, mask, _, length = _HEAD.unpack_from(data)
                name = data[_HEAD.size : _HEAD.size + length].rstrip(b"\0")
                data = data[_HEAD.size + length :]
                found.append(f"{mask:#x} in {self._watched.get(number)!r}: {name!r}")
        return found
