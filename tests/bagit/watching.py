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
    """Give the list of paths outside of ``directory`` that Python's :mod:`os` is asked for meanwhile.

    Links on the way count as what they lead to, a link at the end as itself. The directories above ``directory`` may be
    looked at, and this process's own table of descriptors.
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
