"""Folding of case and normalization forms: paths with the same folded form are the same file on some file systems.

Paths are bytes. UTF-8 is folded by the canonical caseless matching of Unicode (D145: NFD, full case folding, NFD), with
the tables of the running Python; other bytes are unchanged. Folding never changes, adds or removes a slash.
"""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import normalize

__all__ = ["are_distinct", "casefolded", "decomposed", "folded"]


def folded(path: bytes) -> bytes:
    """Return the form shared by paths that differ only by case, by NFC and NFD, or both.

    >>> folded("É/straße".encode()) == folded("e\\u0301/STRASSE".encode())
    True
    """
    if path.isascii():
        return path.lower()
    return _bytes(normalize("NFD", normalize("NFD", _text(path)).casefold()))


def are_distinct(paths: Sequence[bytes]) -> bool:
    """Return whether the folded forms of all paths differ."""
    text = b"\n".join(paths)
    if text.isascii() and text.lower() == text:
        return len(set(paths)) == len(paths)
    return len(set(map(folded, paths))) == len(paths)


def casefolded(path: bytes) -> bytes:
    """Return the form shared by paths that differ only by case."""
    return path.lower() if path.isascii() else _bytes(_text(path).casefold())


def decomposed(path: bytes) -> bytes:
    """Return the form shared by paths that differ only by NFC and NFD."""
    return path if path.isascii() else _bytes(normalize("NFD", _text(path)))


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
