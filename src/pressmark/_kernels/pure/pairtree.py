"""Pairtree V0.1: cleaning, splitting into pairs, and their inverses."""

from __future__ import annotations

import re
from functools import cache
from struct import Struct

from pressmark._kernels.pure.column import Kernel, KernelError
from pressmark._kernels.pure.text import unescape
from pressmark._kernels.tables import (
    COMMON_FROM,
    COMMON_TO,
    MAX_IDENTIFIER_BYTES,
    MAX_PATH_BYTES,
    PAIRTREE_CLEANED,
    PAIRTREE_HEX,
    ErrorCode,
)

__all__ = ["PairtreeClean", "PairtreeMap", "PairtreeUnclean", "PairtreeUnmap"]

_RARE = bytes(byte for byte in range(256) if PAIRTREE_HEX[byte])
_NOT_RARE = bytes(byte for byte in range(256) if not PAIRTREE_HEX[byte])
_RARE_PATTERN = re.compile(b"[" + re.escape(_RARE) + b"]")
_COMMON = bytes.maketrans(COMMON_FROM, COMMON_TO)
_COMMON_BACK = bytes.maketrans(COMMON_TO, COMMON_FROM)
_CLEANED = bytes(byte for byte in range(256) if PAIRTREE_CLEANED[byte])


def _escaped(match: re.Match[bytes]) -> bytes:
    return b"^%02x" % match[0][0]


def _cleaned(identifier: bytes) -> bytes:
    """Clean an identifier (section 3): rare bytes become ``^hh``, then the three common ones are substituted."""
    # Deleting all other bytes is the cheapest test for rare ones.
    if identifier.translate(None, _NOT_RARE):
        identifier = _RARE_PATTERN.sub(_escaped, identifier)
    return identifier.translate(_COMMON)


@cache
def _pairs(length: int) -> Struct:
    """Return the format that splits text into pairs (section 1); the last component has one or two characters."""
    return Struct("2s" * (length // 2) + "1s" * (length % 2))


def _uncleaned(cleaned: bytes) -> bytes:
    return unescape(cleaned, b"^", _COMMON_BACK)


class PairtreeMap(Kernel):
    """Map an identifier to its ppath, without a trailing slash."""

    def __init__(self, prefix: bytes, prefix_required: bool) -> None:
        super().__init__(MAX_IDENTIFIER_BYTES)
        self.prefix = prefix
        self.prefix_required = prefix_required

    def map(self, item: bytes) -> bytes:
        if self.prefix:
            if item.startswith(self.prefix):
                item = item[len(self.prefix) :]
            elif self.prefix_required and item:
                raise KernelError(ErrorCode.PREFIX_MISSING)
        if not item:
            raise KernelError(ErrorCode.EMPTY)
        cleaned = _cleaned(item)
        return b"/".join(_pairs(len(cleaned)).unpack(cleaned))


class PairtreeUnmap(Kernel):
    """Map a ppath to its identifier: components of two characters that cleaning can produce."""

    def __init__(self, prefix: bytes) -> None:
        super().__init__(MAX_PATH_BYTES)
        self.prefix = prefix

    def map(self, item: bytes) -> bytes:
        if not item:
            raise KernelError(ErrorCode.EMPTY_PATH)
        components = item.removesuffix(b"/").split(b"/")
        last = len(components) - 1
        start = 0
        for index, component in enumerate(components):
            if not (len(component) == 2 or (len(component) == 1 and index == last)):
                raise KernelError(ErrorCode.BAD_COMPONENT, start)
            start += len(component) + 1
        cleaned = b"".join(components)
        uncleanable = cleaned.translate(None, _CLEANED)
        bad = cleaned.index(uncleanable[0]) if uncleanable else len(cleaned)
        try:
            # An escape that a bad character truncates is reported at its start, before that character.
            identifier = _uncleaned(cleaned)
        except KernelError as error:
            if error.position < bad:
                raise KernelError(error.code, _in_path(error.position)) from None
        if uncleanable:
            raise KernelError(ErrorCode.BAD_CHARACTER, _in_path(bad))
        return self.prefix + identifier


def _in_path(position: int) -> int:
    """Return the offset in the ppath of an offset in the cleaned text: a separator follows each pair."""
    return position + position // 2


class PairtreeClean(Kernel):
    """Clean an identifier without splitting it; the empty identifier stays empty."""

    def __init__(self) -> None:
        super().__init__(MAX_IDENTIFIER_BYTES)

    def map(self, item: bytes) -> bytes:
        return _cleaned(item)


class PairtreeUnclean(Kernel):
    """Undo cleaning once; characters that cleaning would change are kept."""

    def __init__(self) -> None:
        super().__init__(MAX_PATH_BYTES)

    def map(self, item: bytes) -> bytes:
        return _uncleaned(item)
