"""OCFL extension 0011: Direct Clean Path Layout, after the document's text or (rules="gocfl") after its Go code.

"A1" to "A20" are the decided ambiguities of the OCFL rules, section 1.5.
"""

import re

from . import Refused, safe_path
from .digests import hex_digest

# "encodeUTF is false", first step: the white space
WHITESPACE = (
    "\u0009" "\u000a\u000b\u000c\u000d" "\u0020" "\u0085" "\u00a0" "\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b\u200c\u200d\u200e\u200f"
    "\u2028" "\u2029" "\u202f" "\u205f" "\u3000"
)  # fmt: skip

# "encodeUTF is false", second step: U+0000-U+001F U+007F and the punctuation
DANGEROUS = (
    "\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u0008\u0009\u000a\u000b\u000c\u000d\u000e\u000f"
    "\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"
    "\u007f" "*" "?" ":" "[" "]" '"' "<" ">" "|" "(" ")" "{" "}" "&" "'" "!" ";" "#" "@"
)  # fmt: skip

# "encodeUTF is true", second step
ENCODED = (
    "\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u0008\u0009\u000a\u000b\u000c\u000d\u000e\u000f"
    "\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"
    "\u007f" "\u0020" "\u0085" "\u00a0" "\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u200b\u200c\u200d\u200e\u200f"
    "\u2028" "\u2029" "\u202f" "\u205f" "\u3000"
    "*" "?" ":" "[" "]" '"' "<" ">" "|" "(" ")" "{" "}" "&" "'" "!" ";" "#" "@"
)  # fmt: skip

# A6: the Go code strips U+2010-U+20A0 on the right as well, where U+2000-U+200A was meant
GOCFL_STRIPPED_RIGHT = "".join(chr(code) for code in range(0x2010, 0x20A0 + 1))


def length(text: str) -> int:
    """A4: lengths count the bytes of the UTF-8 encoding."""
    return len(text.encode("utf-8"))


def valid_text(data: bytes, replacement_string: str) -> str:
    """Step 1: "Replace all non-UTF8 characters with replacementString", one for each run of invalid bytes (A10)."""
    text = ""
    in_invalid_run = False
    position = 0
    while position < len(data):
        character = character_at(data, position)
        if character == "":
            if not in_invalid_run:
                text += replacement_string
            in_invalid_run = True
            position += 1
        else:
            text += character
            in_invalid_run = False
            position += length(character)
    return text


def character_at(data: bytes, position: int) -> str:
    """Return the character whose UTF-8 encoding starts at a position, or an empty string."""
    for size in (1, 2, 3, 4):
        try:
            return data[position : position + size].decode("utf-8")
        except UnicodeDecodeError:
            continue
    return ""


def only_periods(part: str) -> bool:
    return part != "" and part.replace(".", "") == ""


def code_of(character: str) -> str:
    """Return the form =uXXXX of a character."""
    return f"=u{ord(character):04X}"


def encode_part(part: str, rules: str) -> str:
    """ "encodeUTF is true", step 3 for one part."""
    # 3.1; A1: "four hex digits" in the text, [a-zA-Z0-9]{4} in the code
    if rules == "spec":
        part = re.sub("=(u[0-9a-fA-F]{4})", r"=u003D\1", part)
    else:
        part = re.sub("=(u[a-zA-Z0-9]{4})", r"=u003D\1", part)
    # 3.2
    encoded = ""
    for character in part:
        encoded += code_of(character) if character in ENCODED else character
    # 3.3, and the leading "~" of the fifth example (A2)
    if encoded.startswith("~") or only_periods(encoded):
        encoded = code_of(encoded[0]) + encoded[1:]
    return encoded


def clean_part(part: str, rules: str, replacement_string: str, whitespace_replacement_string: str) -> str:
    """ "encodeUTF is false", step 3 for one part."""
    # 3.1
    cleaned = ""
    for character in part:
        cleaned += whitespace_replacement_string if character in WHITESPACE else character
    # 3.2
    part, cleaned = cleaned, ""
    for character in part:
        cleaned += replacement_string if character in DANGEROUS else character
    # 3.3; A7: "spaces" are the white space of step 3.1
    cleaned = cleaned.lstrip(WHITESPACE + "-~")
    cleaned = cleaned.rstrip(WHITESPACE if rules == "spec" else WHITESPACE + GOCFL_STRIPPED_RIGHT)
    # 3.4
    if only_periods(cleaned):
        cleaned = replacement_string + cleaned[1:]
    return cleaned


def map_id(
    identifier: bytes,
    rules: str = "spec",
    encode_utf: bool = False,
    max_path_segment_len: int = 127,
    max_pathname_len: int = 32000,
    replacement_string: str = "_",
    whitespace_replacement_string: str = " ",
    fallback_digest_algorithm: str = "md5",
    fallback_folder: str = "fallback",
    number_of_fallback_tuples: int = 0,
    fallback_tuple_size: int = 1,
) -> bytes:
    if identifier == b"":
        raise Refused("empty")

    def fallback(digest_input: bytes) -> bytes:
        """ "Fallback function" """
        digest = hex_digest(fallback_digest_algorithm, digest_input)
        segments = [fallback_folder]
        for number in range(number_of_fallback_tuples):
            # A5: tuples follow each other in the text; they overlap in the code
            start = number * fallback_tuple_size if rules == "spec" else number
            segments.append(digest[start : start + fallback_tuple_size])
        for start in range(0, len(digest), max_path_segment_len):
            segments.append(digest[start : start + max_path_segment_len])
        path = "/".join(segments)
        if length(path) > max_pathname_len:
            raise Refused("too-long")
        return safe_path(path.encode("utf-8"))

    text = valid_text(identifier, replacement_string)
    kept_parts = []
    for part in text.split("/"):
        if part == "":
            continue
        if encode_utf:
            part = encode_part(part, rules)
        else:
            part = clean_part(part, rules, replacement_string, whitespace_replacement_string)
        if length(part) > max_path_segment_len:
            # A3: "initial identifier/filepath" in the text; the result of step 1 in the code
            return fallback(identifier if rules == "spec" else text.encode("utf-8"))
        if part != "":
            kept_parts.append(part)
    path = "/".join(kept_parts)
    if length(path) > max_pathname_len:
        # A3: the cleaned path in the code
        return fallback(identifier if rules == "spec" else path.encode("utf-8"))
    return safe_path(path.encode("utf-8"))


def is_lower_hex(segment: bytes, size: int) -> bool:
    return re.fullmatch(rb"[0-9a-f]{%d}" % size, segment) is not None


def has_shape_of_fallback(
    path: bytes,
    max_path_segment_len: int,
    fallback_digest_algorithm: str,
    fallback_folder: str,
    number_of_fallback_tuples: int,
    fallback_tuple_size: int,
) -> bool:
    """Return whether a path is fallbackFolder, then tuples, then the digest in chunks, of the right lengths."""
    folder = fallback_folder.encode("utf-8").split(b"/")
    sizes = [fallback_tuple_size] * number_of_fallback_tuples
    rest_of_digest = len(hex_digest(fallback_digest_algorithm, b""))
    while rest_of_digest > 0:
        sizes.append(min(rest_of_digest, max_path_segment_len))
        rest_of_digest -= sizes[-1]
    segments = path.split(b"/")
    if segments[: len(folder)] != folder or len(segments) != len(folder) + len(sizes):
        return False
    return all(is_lower_hex(segment, size) for segment, size in zip(segments[len(folder) :], sizes, strict=True))


def unmap_path(
    path: bytes,
    *,
    encode_utf: bool,
    max_path_segment_len: int = 127,
    fallback_digest_algorithm: str = "md5",
    fallback_folder: str = "fallback",
    number_of_fallback_tuples: int = 0,
    fallback_tuple_size: int = 1,
    **other_config: object,
) -> bytes:
    """The inverse, with encodeUTF only: decode =uXXXX, and check that the result has the same path."""
    if not encode_utf:
        raise ValueError("0011 has no inverse without encodeUTF")
    if path == b"":
        raise Refused("empty")
    fallback_config = {
        "max_path_segment_len": max_path_segment_len,
        "fallback_digest_algorithm": fallback_digest_algorithm,
        "fallback_folder": fallback_folder,
        "number_of_fallback_tuples": number_of_fallback_tuples,
        "fallback_tuple_size": fallback_tuple_size,
    }
    if has_shape_of_fallback(path, **fallback_config):
        raise Refused("fallback")
    try:
        text = path.decode("utf-8")
        text = re.sub("=u([0-9A-F]{4})", lambda match: chr(int(match[1], 16)), text)
        identifier = text.encode("utf-8")  # a surrogate has no encoding, and no path
        again = map_id(identifier, encode_utf=True, **fallback_config, **other_config)
    except (UnicodeError, Refused):
        raise Refused("not-canonical") from None
    if again != path:
        raise Refused("not-canonical")
    return identifier
