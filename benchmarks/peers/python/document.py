"""Layouts as plain Python loops, written from the steps of the specifications, for comparison with Pressmark."""

from __future__ import annotations

import functools
import hashlib
import string
from collections.abc import Callable
from typing import Any

__all__ = ["mapping"]

_SAFE = frozenset(string.ascii_letters + string.digits + "-_")
_LONGEST = 100
_TO_HEX = frozenset('"<\\*=^+>|,?')
_TO_ONE = {"/": "=", ":": "+", ".": ","}


def pairtree(identifier: str) -> str:
    """Map under Pairtree V0.1, section 3: encode bytes, replace three characters, cut into pairs."""
    cleaned = ""
    for octet in identifier.encode():
        character = chr(octet)
        if not 0x21 <= octet <= 0x7E or character in _TO_HEX:
            cleaned += f"^{octet:02x}"
        else:
            cleaned += _TO_ONE.get(character, character)
    return "/".join(cleaned[start : start + 2] for start in range(0, len(cleaned), 2))


def hash_and_id(identifier: str) -> str:
    """Map under OCFL 0003 with default parameters."""
    digest = hashlib.sha256(identifier.encode()).hexdigest()
    name = ""
    for character in identifier:
        if character in _SAFE:
            name += character
        else:
            name += "".join(f"%{octet:02x}" for octet in character.encode())
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{digest}"
    return "/".join((digest[0:3], digest[3:6], digest[6:9], name))


def hash_and_no_prefix_id(delimiters: list[str], identifier: str) -> str:
    """Map under OCFL 0012 with otherwise default parameters: 0003 of the part after the last delimiter."""
    start = 0
    for delimiter in delimiters:
        # A delimiter at the end does not count.
        found = identifier.rfind(delimiter, 0, len(identifier) - 1)
        if found >= 0:
            start = max(start, found + len(delimiter))
    return hash_and_id(identifier[start:])


def mapping(config: dict[str, Any]) -> Callable[[str], str]:
    """Return the function for a layout's configuration."""
    name = config["extensionName"]
    if name == "pairtree":
        return pairtree
    if name.startswith("0003"):
        return hash_and_id
    return functools.partial(hash_and_no_prefix_id, config["delimiters"])
