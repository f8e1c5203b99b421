"""OCFL 0002 and 0011: the identifier is the path; or is cleaned segment by segment, with a digest if it is too long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from pressmark._kernels.pure.column import Inverse, Kernel, KernelError
from pressmark._kernels.pure.digests import hexdigest_function
from pressmark._kernels.pure.text import checked_path, decode_utf8
from pressmark._kernels.tables import (
    CLEAN_DANGEROUS,
    CLEAN_GOCFL_RIGHT,
    CLEAN_LEFT,
    CLEAN_WHITESPACE,
    MAX_IDENTIFIER_BYTES,
    MAX_PATH_BYTES,
    ErrorCode,
)

__all__ = ["CleanPathMap", "CleanPathUnmap", "DirectMap"]


class DirectMap(Kernel):
    """Map an identifier to itself; this is its own inverse."""

    def __init__(self) -> None:
        super().__init__(MAX_IDENTIFIER_BYTES)

    def map(self, item: bytes) -> bytes:
        decode_utf8(item)
        return checked_path(item)


class CleanPathParameters(NamedTuple):
    """The parameters of OCFL 0011, named as in its section "Parameters"; strings are UTF-8."""

    encode_utf: bool
    max_path_segment_len: int
    max_pathname_len: int
    replacement_string: bytes
    whitespace_replacement_string: bytes
    fallback_digest_algorithm: str
    fallback_folder: bytes
    number_of_fallback_tuples: int
    fallback_tuple_size: int
    gocfl: bool


def _characters(*lists: Sequence[tuple[int, int]]) -> str:
    """Return the content of a character class for a regular expression."""
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for ranges in lists for first, last in ranges)


_WHITESPACE = re.compile(f"[{_characters(CLEAN_WHITESPACE)}]")
_DANGEROUS = re.compile(f"[{_characters(CLEAN_DANGEROUS)}]")
_REPLACED = re.compile(f"[{_characters(CLEAN_WHITESPACE, CLEAN_DANGEROUS)}]")
_LEFT = re.compile(f"^[{_characters(CLEAN_WHITESPACE)}{re.escape(CLEAN_LEFT.decode())}]+")
# The lookbehind prevents quadratic time on a long run in the middle.
_RIGHT = re.compile(f"(?<![{_characters(CLEAN_WHITESPACE)}])[{_characters(CLEAN_WHITESPACE)}]+\\Z")
_RIGHT_GOCFL = re.compile(
    f"(?<![{_characters(CLEAN_WHITESPACE, CLEAN_GOCFL_RIGHT)}])[{_characters(CLEAN_WHITESPACE, CLEAN_GOCFL_RIGHT)}]+\\Z"
)
_EQUALS = re.compile("=(?=u[0-9A-Fa-f]{4})")
_EQUALS_GOCFL = re.compile("=(?=u[0-9A-Za-z]{4})")
_INVALID_RUN = re.compile("[\udc80-\udcff]+")
_ENCODED = re.compile(rb"=u([0-9A-F]{4})")


def _utf_code(character: str) -> str:
    return f"=u{ord(character):04X}"


class CleanPathMap(Kernel):
    """Map an identifier or a logical path to its clean path."""

    def __init__(self, *values: Any) -> None:
        super().__init__(MAX_IDENTIFIER_BYTES)
        self.parameters = parameters = CleanPathParameters(*values)
        self.hexdigest = hexdigest_function(parameters.fallback_digest_algorithm)
        self.replacement = parameters.replacement_string.decode()
        self.whitespace_replacement = parameters.whitespace_replacement_string.decode()
        self.equals = _EQUALS_GOCFL if parameters.gocfl else _EQUALS
        self.right = _RIGHT_GOCFL if parameters.gocfl else _RIGHT
        self.clean_part = self.encoded_part if parameters.encode_utf else self.replaced_part

    def map(self, item: bytes) -> bytes:
        p = self.parameters
        text = _INVALID_RUN.sub(self.replacement_of, item.decode("utf-8", "surrogateescape"))
        parts = []
        for part in text.split("/"):
            cleaned = self.clean_part(part).encode() if part else b""
            if len(cleaned) > p.max_path_segment_len:
                return self.fallback(text.encode() if p.gocfl else item)
            if cleaned:
                parts.append(cleaned)
        path = b"/".join(parts)
        if len(path) > p.max_pathname_len:
            return self.fallback(path if p.gocfl else item)
        return checked_path(path)

    def replacement_of(self, _match: re.Match[str]) -> str:
        return self.replacement

    def encoded_part(self, part: str) -> str:
        """Encode a segment: section "When encodeUTF is true", steps 3.1 to 3.3, and the tilde of its example."""
        part = self.equals.sub("=u003D", part)
        part = _REPLACED.sub(lambda match: _utf_code(match[0]), part)
        if part[0] == "~" or not part.strip("."):
            part = _utf_code(part[0]) + part[1:]
        return part

    def replaced_part(self, part: str) -> str:
        """Replace characters of a segment: section "When encodeUTF is false", steps 3.1 to 3.4."""
        part = _WHITESPACE.sub(lambda _: self.whitespace_replacement, part)
        part = _DANGEROUS.sub(self.replacement_of, part)
        part = self.right.sub("", _LEFT.sub("", part))
        if part and not part.strip("."):
            part = self.replacement + part[1:]
        return part

    def fallback(self, hashed: bytes) -> bytes:
        """Return the fallback path for an identifier or path: section "Fallback function"."""
        p = self.parameters
        digest = self.hexdigest(hashed)
        step = 1 if p.gocfl else p.fallback_tuple_size
        segments = [p.fallback_folder]
        for number in range(p.number_of_fallback_tuples):
            segments.append(digest[number * step : number * step + p.fallback_tuple_size])
        for start in range(0, len(digest), p.max_path_segment_len):
            segments.append(digest[start : start + p.max_path_segment_len])
        path = b"/".join(segments)
        if len(path) > p.max_pathname_len:
            raise KernelError(ErrorCode.FALLBACK_TOO_LONG, len(path))
        return path


class _CleanPathDecode(Kernel):
    """The lenient half of the inverse with encodeUTF: decodes each ``=uXXXX``, left to right."""

    def __init__(self, parameters: CleanPathParameters) -> None:
        super().__init__(MAX_PATH_BYTES)
        self.fallback_shape = _fallback_shape(parameters)

    def map(self, item: bytes) -> bytes:
        if not item:
            raise KernelError(ErrorCode.EMPTY_PATH)
        if self.fallback_shape.fullmatch(item):
            raise KernelError(ErrorCode.IS_FALLBACK)
        # An encoded surrogate is not a character. It does not map to the same path again, so the path is rejected.
        return _ENCODED.sub(lambda match: chr(int(match[1], 16)).encode("utf-8", "surrogatepass"), item)


def _fallback_shape(p: CleanPathParameters) -> re.Pattern[bytes]:
    """Return the pattern of fallback paths: folder, tuples, and the digest in pieces, in lower-case hex."""
    digits = len(hexdigest_function(p.fallback_digest_algorithm)(b""))
    lengths = [p.fallback_tuple_size] * p.number_of_fallback_tuples
    lengths += [min(p.max_path_segment_len, digits - start) for start in range(0, digits, p.max_path_segment_len)]
    return re.compile(b"/".join([re.escape(p.fallback_folder), *(b"[0-9a-f]{%d}" % length for length in lengths)]))


class CleanPathUnmap(Inverse):
    """The strict inverse of OCFL 0011 with encodeUTF."""

    def __init__(self, *values: Any) -> None:
        super().__init__(_CleanPathDecode(CleanPathParameters(*values)), CleanPathMap(*values))
