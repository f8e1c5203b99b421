"""Record everything that a run opens or accesses outside of a directory."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["watched"]

_CALLS = ("open", "stat", "lstat", "readlink", "scandir", "listdir", "unlink", "rename", "mkdir", "rmdir", "link")


@contextlib.contextmanager
def watched(directory: Path) -> Iterator[list[str]]:
    """Yield a list that collects the paths outside of ``directory`` that :mod:`os` accesses meanwhile.

    Links in the middle of a path are resolved, a link at its end is not. The directories above ``directory`` and the
    table of descriptors of this process may be accessed.
    """
    real = os.path.realpath(directory)
    fds = "/proc/self/fd"
    outside: list[str] = []
    originals = {name: getattr(os, name) for name in _CALLS}
    realpath = os.path.realpath
    busy = False

    def whole(path: Any, dir_fd: int | None) -> str:
        text = f"{fds}/{path}" if isinstance(path, int) else os.fsdecode(path)
        if dir_fd is not None:
            text = os.path.join(originals["readlink"](f"{fds}/{dir_fd}"), text)
        if isinstance(path, int):
            return str(originals["readlink"](text))
        above, name = os.path.split(os.path.abspath(text))
        return os.path.join(realpath(above), name)

    def wrap(name: str) -> Callable[..., Any]:
        original = originals[name]

        def call(path: Any = ".", *args: Any, dir_fd: int | None = None, **options: Any) -> Any:
            nonlocal busy
            if not busy:
                busy = True
                try:
                    found = whole(path, dir_fd)
                    if not (found == real or found.startswith(real + "/") or real.startswith(found.rstrip("/") + "/")):
                        outside.append(found)
                finally:
                    busy = False
            if dir_fd is not None:
                options["dir_fd"] = dir_fd
            return original(path, *args, **options)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in _CALLS:
            patch.setattr(os, name, wrap(name))
        yield outside
