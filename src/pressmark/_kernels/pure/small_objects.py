"""Whole small objects: the readable twin, which leaves them to the shared code."""

from __future__ import annotations

__all__ = ["move_object", "write_small_object"]


def write_small_object(
    above: bytes,
    name: bytes,
    place: bytes,
    folders: tuple[bytes, ...],
    parts: tuple[bytes, ...],
    pieces: tuple[bytes, ...],
    identifier: bytes,
    device: int,
    flags: int,
) -> None:
    """Return nothing: this object is not for this twin, and nothing was made."""


def move_object(old: bytes, base: bytes, place: bytes, signs: tuple[bytes, ...]) -> bool:
    """Return that this object is not for this twin, and nothing was moved."""
    return False
