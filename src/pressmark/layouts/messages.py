"""The words for every fault that a kernel reports: one place, so that both twins fail alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pressmark._kernels.tables import ASCII_FIRST, ASCII_LAST, MAX_IDENTIFIER_BYTES, MAX_PATH_BYTES, ErrorCode
from pressmark.errors import quoted

__all__ = ["reason"]

_FIXED: dict[int, str] = {
    ErrorCode.EMPTY: "it is empty",
    ErrorCode.EMPTY_PATH: "the path is empty",
    ErrorCode.TOO_LONG: (f"it is too long: identifiers may have {MAX_IDENTIFIER_BYTES} bytes, paths {MAX_PATH_BYTES}"),
    ErrorCode.ABSOLUTE: "the path begins with '/'",
    ErrorCode.IS_FALLBACK: "a fallback path holds only a digest of its identifier",
    ErrorCode.HOLDS_DELIMITER: "the result holds the delimiter of the stream; delimit by NUL instead (-0)",
    ErrorCode.HOLDS_SEPARATOR: "a TAB in it would make three columns of two; give one column, or delimit by NUL (-0)",
}

_AT_POSITION: dict[int, str] = {
    ErrorCode.SEGMENT_EMPTY: "an empty segment at offset {} of the path",
    ErrorCode.SEGMENT_DOT: "a segment '.' at offset {} of the path",
    ErrorCode.SEGMENT_DOTDOT: "a segment '..' at offset {} of the path",
    ErrorCode.NUL: "a NUL at offset {} of the path",
    ErrorCode.BAD_COMPONENT: (
        "the component at offset {} has not two characters (or, at the end, one or two), as a ppath's must have"
    ),
    ErrorCode.STRAY_TILDE: "a '~' at offset {} of the joined components, where neither prefix nor guard can be",
    ErrorCode.NOT_CANONICAL: "no identifier has this path (it goes wrong at offset {})",
    ErrorCode.TRUNCATED: "its name of {} bytes was cut short: the whole identifier is not in it",
}


def reason(code: int, position: int, item: str | bytes, layout: Any) -> str:
    """Return one line that says why ``item`` has no result under ``layout``."""
    if code == ErrorCode.SURROGATE and isinstance(item, str):
        return f"the lone surrogate U+{ord(item[position]):04X} at character {position} stands for no byte"
    octets = item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item
    if code in _AT_POSITION:
        return _AT_POSITION[code].format(position)
    if code in _WORDED:
        return _WORDED[code](position, octets, layout)
    if code == ErrorCode.EMPTY and octets:
        return "nothing is left of it behind the prefix"
    return _FIXED[code]


def _not_utf8(position: int, octets: bytes, _layout: Any) -> str:
    return f"the byte 0x{octets[position]:02x} at offset {position} is not UTF-8, which this layout needs"


def _not_ascii(position: int, octets: bytes, _layout: Any) -> str:
    return (
        f"the byte 0x{octets[position]:02x} at offset {position} is outside "
        f"0x{ASCII_FIRST:02x} to 0x{ASCII_LAST:02x}, all that this layout allows"
    )


def _prefix_missing(_position: int, _octets: bytes, layout: Any) -> str:
    return f"it does not begin with the prefix {quoted(layout.prefix)}"


def _beyond_latin1(position: int, octets: bytes, _layout: Any) -> str:
    before, at = octets[:position].decode(), octets[position:].decode()[0]
    return f"the character U+{ord(at):04X} at position {len(before)} is above U+00FF, the last that Vitro can encode"


def _delimiter_at_end(_position: int, _octets: bytes, layout: Any) -> str:
    return f"it ends with the delimiter {quoted(layout.delimiter)}: no name is left"


def _wrong_length(position: int, _octets: bytes, layout: Any) -> str:
    return f"{position} characters follow the prefix, but tupleSegmentSizes add up to {sum(layout.tuple_segment_sizes)}"


def _fallback_too_long(position: int, _octets: bytes, layout: Any) -> str:
    return f"even its fallback path has {position} bytes, maxPathnameLen allows {layout.max_pathname_len}"


def _bad_character(position: int, octets: bytes, _layout: Any) -> str:
    return f"the byte {quoted(octets[position : position + 1])} at offset {position} cannot stand in a cleaned path"


def _bad_escape(position: int, _octets: bytes, layout: Any) -> str:
    return f"the '{layout.escape_mark}' at offset {position} is not followed by two hex digits"


def _unknown_prefix(_position: int, octets: bytes, layout: Any) -> str:
    known = ", ".join(prefix for prefix, _ in layout.namespaces) or "none"
    return f"the namespace prefix {quoted(octets[:1])} is not among those given ({known})"


_WORDED: dict[int, Callable[[int, bytes, Any], str]] = {
    ErrorCode.NOT_UTF8: _not_utf8,
    ErrorCode.NOT_ASCII: _not_ascii,
    ErrorCode.PREFIX_MISSING: _prefix_missing,
    ErrorCode.BEYOND_LATIN1: _beyond_latin1,
    ErrorCode.DELIMITER_AT_END: _delimiter_at_end,
    ErrorCode.WRONG_LENGTH: _wrong_length,
    ErrorCode.FALLBACK_TOO_LONG: _fallback_too_long,
    ErrorCode.BAD_CHARACTER: _bad_character,
    ErrorCode.BAD_ESCAPE: _bad_escape,
    ErrorCode.UNKNOWN_PREFIX: _unknown_prefix,
}
