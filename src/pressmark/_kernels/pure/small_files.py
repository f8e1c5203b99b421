"""Small files, copied and written: the readable twin, which leaves them to the shared code."""

from __future__ import annotations

__all__ = ["copy_small", "write_small"]


def copy_small(source: bytes, target: bytes, flags: int) -> None:
    """Return nothing: this file is not for this twin, and nothing was made."""


def write_small(paths: list[bytes], contents: list[bytes | None]) -> bool:
    """Return that these files are not for this twin, and nothing was made."""
    return False
