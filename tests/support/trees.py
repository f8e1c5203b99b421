"""Write and read whole trees of files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

__all__ = ["snapshot", "write"]


def write(folder: Path, files: Mapping[str | bytes, bytes | None]) -> None:
    """Write files below ``folder``; a name that ends with a slash, or has ``None`` for its content, is a directory."""
    for name, data in files.items():
        path = os.path.join(os.fsencode(folder), name if isinstance(name, bytes) else os.fsencode(name))
        if data is None or path.endswith(b"/"):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)


def snapshot(folder: Path) -> dict[bytes, bytes | None]:
    """Return all files below ``folder`` with their bytes, links with their targets, and directories."""
    found: dict[bytes, bytes | None] = {}
    top = os.fsencode(folder)
    for above, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(above, name)
            if os.path.islink(path):
                found[os.path.relpath(path, top)] = b"-> " + os.readlink(path)
            elif os.path.isdir(path):
                found[os.path.relpath(path, top)] = None
            else:
                found[os.path.relpath(path, top)] = Path(os.fsdecode(path)).read_bytes()
    return found
