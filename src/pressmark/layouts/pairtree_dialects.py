"""Pairtrees of other programs, which clean identifiers differently from the specification.

=================== ==================================================================================================
dialect             difference
=================== ==================================================================================================
``unt``             pypairtree: 0x00 to 0x20 are written as ``^7d`` to ``^9d``; backslash, DEL and non-ASCII are raw
``caltech``         Go pairtree of Caltech Library: controls, DEL and non-ASCII are raw
``unpadded-hex``    vertx-pairtree, pairtree.js: bytes below 0x10 have one digit, ``^a``; not always reversible
=================== ==================================================================================================

All split into pairs of characters, not of bytes. These dialects are read, never written.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pressmark.errors import PressmarkError

__all__ = ["DIALECTS", "DialectError", "cleaned", "path", "read", "recognised"]

_COMMON = str.maketrans("/:.", "=+,")
_COMMON_BACK = str.maketrans("=+,", "/:.")
# The visible ASCII characters that the specification encodes.
_VISIBLE = '"<\\*=^+>|,?'


class DialectError(PressmarkError):
    """A path that the dialect does not produce.

    :ivar kind: ``undecodable``, or ``ambiguous`` if several identifiers have this path
    """

    kind = "dialect"

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(kind, reason)
        self.kind = kind
        self.reason = reason


def _encoded(identifier: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(character, character) for character in identifier).translate(_COMMON)


_UNT = {character: f"^{ord(character):02x}" for character in _VISIBLE if character != "\\"} | {
    chr(code): f"^{code + 0x7D:02x}" for code in range(0x21)
}
_CALTECH = {character: f"^{ord(character):02x}" for character in _VISIBLE + " "}


def _clean_unpadded(identifier: str) -> str:
    def escaped(byte: int) -> str:
        character = chr(byte)
        if 0x21 <= byte <= 0x7E and character not in _VISIBLE:
            return character
        return f"^{byte:x}"

    data = identifier.encode("utf-8", "surrogateescape")
    return "".join(map(escaped, data)).translate(_COMMON)


def _decoded(cleaned: str, escapes: dict[str, str]) -> str:
    back = {escape: character for character, escape in escapes.items()}

    def unescaped(match: re.Match[str]) -> str:
        try:
            return back[match[0]]
        except KeyError:
            raise DialectError("undecodable", f"the dialect has no escape {match[0]!r}") from None

    return "".join(
        re.sub(r"\^.{0,2}", unescaped, piece, flags=re.DOTALL)
        if piece.startswith("^")
        else piece.translate(_COMMON_BACK)
        for piece in re.split(r"(\^.{0,2})", cleaned, flags=re.DOTALL)
    )


def _read_unpadded(cleaned: str) -> str:
    data = bytearray()
    at = 0
    while at < len(cleaned):
        character = cleaned[at]
        if character != "^":
            data += character.translate(_COMMON_BACK).encode("utf-8", "surrogateescape")
            at += 1
            continue
        digits = re.match(r"\^([0-9a-f]{1,2})", cleaned[at:])
        if digits is None:
            raise DialectError("undecodable", "a '^' is not followed by a hex digit")
        value = int(digits[1], 16)
        if len(digits[1]) == 2:
            # One digit followed by a hex digit, or two digits: the dialect writes both alike.
            as_two = value >= 0x10 and not (0x21 <= value <= 0x7E and chr(value) not in _VISIBLE)
            if as_two:
                raise DialectError("ambiguous", f"{digits[0]!r} is ambiguous: one byte, or a byte and {digits[1][1]!r}")
            value = int(digits[1][0], 16)
            at += 2
        else:
            at += 2
        data.append(value)
    return data.decode("utf-8", "surrogateescape")


_CLEAN: dict[str, Callable[[str], str]] = {
    "unt": lambda identifier: _encoded(identifier, _UNT),
    "caltech": lambda identifier: _encoded(identifier, _CALTECH),
    "unpadded-hex": _clean_unpadded,
}
_READ: dict[str, Callable[[str], str]] = {
    "unt": lambda cleaned: _decoded(cleaned, _UNT),
    "caltech": lambda cleaned: _decoded(cleaned, _CALTECH),
    "unpadded-hex": _read_unpadded,
}
DIALECTS = tuple(_CLEAN)


def read(dialect: str, path: str) -> str:
    """Return the identifier of a ppath in a dialect, without the tree's prefix.

    :param path: components of one or two characters, with ``/``
    :raises DialectError: the dialect maps no identifier to this path, or several
    """
    text = path.replace("/", "")
    identifier = _READ[dialect](text)
    if _CLEAN[dialect](identifier) != text:
        raise DialectError("undecodable", f"the dialect {dialect} does not produce this path")
    return identifier


def cleaned(dialect: str, identifier: str) -> str:
    """Return an identifier cleaned as the dialect does, without the tree's prefix."""
    return _CLEAN[dialect](identifier)


def path(dialect: str, identifier: str) -> str:
    """Return the ppath of an identifier in a dialect, without the tree's prefix."""
    text = cleaned(dialect, identifier)
    return "/".join(text[at : at + 2] for at in range(0, len(text), 2))


def recognised(path: str) -> list[str]:
    """Return the dialects that may have written a ppath, reversible or not."""
    found = []
    for dialect in DIALECTS:
        try:
            read(dialect, path)
        except DialectError as refused:
            if refused.kind != "ambiguous":
                continue
        found.append(dialect)
    return found
