"""A third implementation: every layout transcribed from its specification, as plainly as possible.

The library has two implementations of each mapping, a fast one and a readable one. This package is a third one, written
from the specifications alone. It is slow, does not check configurations, and shares no code with the library: every
character set is copied from the document that defines it. Tests compare the library with it.

    module          layouts
    pairtree        Pairtree V0.1
    vitro           Vitro file storage
    flat            OCFL extension 0002
    hash_and_id     OCFL extensions 0003 and 0012
    hashed          OCFL extension 0004
    omit_prefix     OCFL extensions 0006, 0007 and 0010
    clean_path      OCFL extension 0011
    by_name         the functions above by the official name of their layout

Identifiers and paths are `bytes`; text in a configuration is `str`.
"""


class Refused(Exception):
    """An identifier without a path, or a path without an identifier. `kind` is the reason, a stable word.

    empty               the identifier or the resulting path is empty
    not-utf8            the identifier is not valid UTF-8
    not-ascii           0007, 0010: a byte outside 20-7F
    segment             the path is absolute, or a segment of it is empty, "." or ".."
    nul                 the path contains a NUL
    prefix              Pairtree: the identifier does not start with the prefix of the tree
    character           Vitro: a character beyond U+00FF
    delimiter-at-end    0006, 0007, 0010: nothing follows the delimiter
    length              0010: the length is not the sum of the tuple segment sizes
    too-long            0011: even the fallback path is longer than maxPathnameLen
    malformed           the path cannot be decoded
    not-canonical       the path can be decoded, but its identifier has another path (or none)
    truncated           0003: the leaf is truncated and does not contain the identifier
    fallback            0011: the path contains a digest instead of the identifier
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def safe_path(path: bytes) -> bytes:
    """Return the path if it is relative, not empty, and has no empty or dot segment and no NUL."""
    if path == b"":
        raise Refused("empty")
    for segment in path.split(b"/"):  # an absolute path starts with an empty segment
        if segment in (b"", b".", b".."):
            raise Refused("segment")
    if b"\x00" in path:
        raise Refused("nul")
    return path


def utf8_text(identifier: bytes) -> str:
    """Return the identifier as text, for layouts that are defined for UTF-8."""
    if identifier == b"":
        raise Refused("empty")
    try:
        return identifier.decode("utf-8")
    except UnicodeDecodeError:
        raise Refused("not-utf8") from None
