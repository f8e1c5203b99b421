"""The known reasons why a peer's path differs from Pressmark's; ``../README.md`` cites the specifications."""

from __future__ import annotations

import re

__all__ = ["explain"]

_OMIT_PREFIX = ("0006", "0007")


def explain(peer: str, subject: str, delimiter: str, identifier: str, ours: str, theirs: str) -> str | None:
    """Return the reason, or :data:`None` if it is not known; an empty path stands for a refused identifier."""
    if not identifier:
        return "maps the empty identifier, which Pressmark refuses"
    if not ours and _unsafe(theirs):
        return "gives an unsafe path (an empty, '.' or '..' segment), where Pressmark refuses the identifier"
    if peer == "pypairtree" and re.search(r"[^\x21-\x7e]|\\", identifier):
        return (
            "does not encode '\\' and characters outside ASCII, and encodes space and control characters as ^7d to ^9d"
        )
    if subject == "0002" and "/" in identifier and not theirs:
        return "refuses identifiers with '/'"
    if peer == "ocfl-java" and subject == "0003" and re.sub("%[EF]", lambda found: found[0].lower(), theirs) == ours:
        return "writes the first hex digit of characters above U+07FF in upper case (%E2%80%90 for %e2%80%90)"
    if peer in ("ocfl-go", "ocfl-java") and subject in _OMIT_PREFIX and "\u0130" in identifier:
        return "cuts at offsets of the lower-cased identifier, which U+0130 moves"
    if peer == "ocfl-java" and subject == "0007" and delimiter not in identifier and not theirs:
        return "refuses identifiers without the delimiter"
    if peer in ("rocfl", "ocfl-java") and subject == "0007" and re.search(r"[\x00-\x1f]", identifier) and not ours:
        return "maps control characters, which the document does not allow"
    if peer == "ocfl-go" and subject == "0007" and "/" in identifier and not theirs:
        return "refuses '/' behind the prefix"
    if peer == "ocfl-go" and subject == "0007" and identifier.rfind(delimiter) == 0:
        return "ignores a delimiter at the beginning"
    if peer == "ocfl-go" and subject == "0007" and not ours and _unsafe(identifier.rpartition(delimiter)[2]):
        return "drops empty and '.' segments, where Pressmark refuses the identifier"
    if identifier == "extensions" and not theirs:
        return "refuses 'extensions', which is a folder of every storage root"
    return None


def _unsafe(path: str) -> bool:
    return any(segment in ("", ".", "..") for segment in path.split("/")) and bool(path)
