"""The message for every error code of a kernel, shared by both implementations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pressmark._kernels.tables import ASCII_FIRST, ASCII_LAST, MAX_IDENTIFIER_BYTES, MAX_PATH_BYTES, ErrorCode
from pressmark.errors import quoted
from pressmark.option_names import option

__all__ = ["reason"]

_FIXED: dict[int, str] = {
    ErrorCode.EMPTY: "identifier is empty",
    ErrorCode.EMPTY_PATH: "path is empty",
    ErrorCode.TOO_LONG: f"too long; identifiers have at most {MAX_IDENTIFIER_BYTES:,} bytes, paths {MAX_PATH_BYTES:,}",
    ErrorCode.ABSOLUTE: "path is absolute",
    ErrorCode.IS_FALLBACK: "fallback path; it contains only a digest of the identifier",
    ErrorCode.NO_PPATH: "no ppath; it starts with a component of one or two characters",
    ErrorCode.NO_ENCAPSULATION: "no directory or file after the ppath; map ppaths with the setting paths=ppath",
}

_AT_POSITION: dict[int, str] = {
    ErrorCode.SEGMENT_EMPTY: "empty path segment at offset {}",
    ErrorCode.SEGMENT_DOT: "path segment '.' at offset {}",
    ErrorCode.SEGMENT_DOTDOT: "path segment '..' at offset {}",
    ErrorCode.NUL: "NUL at offset {} of the path",
    ErrorCode.BAD_COMPONENT: "component at offset {} must have two characters (the last one: one or two)",
    ErrorCode.STRAY_TILDE: "unexpected '~' at offset {} of the joined components",
    ErrorCode.NOT_CANONICAL: "no identifier maps to this path (first difference at offset {})",
    ErrorCode.TRUNCATED: "directory name of {} bytes is truncated; it does not contain the whole identifier",
}


def reason(code: int, position: int, item: str | bytes, layout: Any) -> str:
    """Return the message for the error code of ``item`` under ``layout``, in one line."""
    if code == ErrorCode.SURROGATE and isinstance(item, str):
        return f"unpaired surrogate U+{ord(item[position]):04X} at index {position}"
    data = item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item
    if code in _AT_POSITION:
        return _AT_POSITION[code].format(position)
    if code in _WORDED:
        return _WORDED[code](position, data, layout)
    if code == ErrorCode.EMPTY and data:
        return "nothing remains after the prefix"
    return _FIXED[code]


def _not_utf8(position: int, data: bytes, _layout: Any) -> str:
    return f"byte 0x{data[position]:02x} at offset {position} is not UTF-8; this layout requires UTF-8"


def _not_ascii(position: int, data: bytes, _layout: Any) -> str:
    return (
        f"byte 0x{data[position]:02x} at offset {position} is outside "
        f"0x{ASCII_FIRST:02x} to 0x{ASCII_LAST:02x}, the range of this layout"
    )


def _prefix_missing(_position: int, _data: bytes, layout: Any) -> str:
    return f"identifier does not start with the prefix {quoted(layout.prefix)}"


def _beyond_latin1(position: int, data: bytes, _layout: Any) -> str:
    before, at = data[:position].decode(), data[position:].decode()[0]
    return f"character U+{ord(at):04X} at index {len(before)} is above U+00FF, the limit of Vitro"


def _delimiter_at_end(_position: int, _data: bytes, layout: Any) -> str:
    return f"identifier ends with the delimiter {quoted(layout.delimiter)}; no name remains"


def _wrong_length(position: int, _data: bytes, layout: Any) -> str:
    return f"{position} characters follow the prefix; the segments have {sum(layout.tuple_segment_sizes)}"


def _fallback_too_long(position: int, _data: bytes, layout: Any) -> str:
    return f"fallback path has {position} bytes; the limit of the layout is {layout.max_pathname_len}"


def _not_cleaned(position: int, data: bytes, _layout: Any) -> str:
    byte = quoted(data[position : position + 1])
    return f"identifier is not cleaned (byte {byte} at offset {position}); omit the setting cleaned"


def _bad_character(position: int, data: bytes, _layout: Any) -> str:
    return f"byte {quoted(data[position : position + 1])} at offset {position} is not allowed in a cleaned path"


def _bad_escape(position: int, _data: bytes, layout: Any) -> str:
    return f"'{layout.escape_mark}' at offset {position} is not followed by two hex digits"


def _not_dialect(_position: int, _data: bytes, layout: Any) -> str:
    return f"not cleaned as in the dialect {layout.dialect}; use the dialect that wrote it"


def _ambiguous(_position: int, _data: bytes, layout: Any) -> str:
    return f"ambiguous in the dialect {layout.dialect}: it can be decoded to more than one identifier"


def _unknown_prefix(_position: int, data: bytes, layout: Any) -> str:
    known = ", ".join(prefix for prefix, _ in layout.namespaces) or "none"
    return f"unknown namespace prefix {quoted(data[:1])}; known prefixes: {known}"


def _holds_delimiter(_position: int, _data: bytes, _layout: Any) -> str:
    return f"result contains the line delimiter; use NUL as the delimiter ({option('null', True)})"


def _holds_separator(_position: int, _data: bytes, _layout: Any) -> str:
    return f"identifier contains a TAB; write one column, or use NUL as the delimiter ({option('null', True)})"


_WORDED: dict[int, Callable[[int, bytes, Any], str]] = {
    ErrorCode.HOLDS_DELIMITER: _holds_delimiter,
    ErrorCode.HOLDS_SEPARATOR: _holds_separator,
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
    ErrorCode.NOT_DIALECT: _not_dialect,
    ErrorCode.AMBIGUOUS: _ambiguous,
    ErrorCode.NOT_CLEANED: _not_cleaned,
}
