"""A large file as memory: the readable twin, in which every file is read."""

from __future__ import annotations

__all__ = ["mapped"]


def mapped(descriptor: int, size: int) -> None:
    """Return nothing: :mod:`mmap` gives no way to outlive a file that becomes shorter meanwhile."""
