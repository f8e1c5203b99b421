"""What two paths have in common that a file system may take for one: folding of case and of normalisation forms.

Paths are octets. Those that are UTF-8 are folded as Unicode says (a canonical caseless match, definition D145 of the
core specification: NFD, full case folding, NFD), with the tables of the running Python; octets that are not UTF-8 stand
for themselves. A slash is never changed, and folding never makes or removes one.
"""

from __future__ import annotations

from unicodedata import normalize

__all__ = ["casefolded", "decomposed", "folded"]


def folded(path: bytes) -> bytes:
    """Return the key that paths share which differ only by case, by NFC and NFD, or by both.

    >>> folded("É/straße".encode()) == folded("e\\u0301/STRASSE".encode())
    True
    """
    if path.isascii():
        return path.lower()
    return _octets(normalize("NFD", normalize("NFD", _text(path)).casefold()))


def casefolded(path: bytes) -> bytes:
    """Return the key that paths share which differ only by case."""
    return path.lower() if path.isascii() else _octets(_text(path).casefold())


def decomposed(path: bytes) -> bytes:
    """Return the key that paths share which differ only by NFC and NFD."""
    return path if path.isascii() else _octets(normalize("NFD", _text(path)))


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _octets(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
