"""OCFL extensions 0003 and 0012: Hashed Truncated N-tuple Trees with (Non-prefixed) Object ID Encapsulating Directory.

0012 is 0003 after the removal of a prefix, and 0003 is 0012 without delimiters. Only 0003 has an inverse.
"""

from collections.abc import Sequence

from . import Refused, safe_path, utf8_text
from .digests import hex_digest

# "Encapsulation Directory": "Safe characters are defined as A-Z, a-z, 0-9, '-' and '_'."
SAFE = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

HEX_DIGITS = b"0123456789abcdefABCDEF"


def remove_prefix(text: str, delimiters: Sequence[str]) -> str:
    """0012, "delimiters": everything up to the last occurrence of any delimiter that does not end the identifier.

    "Last" is the occurrence that ends last. A delimiter at the end is ignored, and the previous one is used.
    """
    end_of_prefix = 0
    for delimiter in delimiters:
        for start in range(len(text)):
            end = start + len(delimiter)
            if text[start:end] == delimiter and end < len(text):
                end_of_prefix = max(end_of_prefix, end)
    return text[end_of_prefix:]


def percent_encode(identifier: bytes) -> str:
    """ "percent-encoded using the lower-case hex characters of its UTF-8 encoding" """
    encoded = ""
    for byte in identifier:
        encoded += chr(byte) if byte in SAFE else f"%{byte:02x}"
    return encoded


def percent_decode(encoded: bytes) -> bytes:
    decoded = bytearray()
    position = 0
    while position < len(encoded):
        if encoded[position : position + 1] != b"%":
            decoded.append(encoded[position])
            position += 1
            continue
        digits = encoded[position + 1 : position + 3]
        if len(digits) != 2 or digits[0] not in HEX_DIGITS or digits[1] not in HEX_DIGITS:
            raise Refused("malformed")
        decoded.append(int(digits, 16))
        position += 3
    return bytes(decoded)


def map_id(
    identifier: bytes,
    digest_algorithm: str = "sha256",
    tuple_size: int = 3,
    number_of_tuples: int = 3,
    delimiters: Sequence[str] = (),
) -> bytes:
    """0012, "Procedure", steps 1 to 7; without delimiters 0003, "Procedure", steps 1 to 6."""
    rest = remove_prefix(utf8_text(identifier), delimiters).encode("utf-8")
    digest = hex_digest(digest_algorithm, rest)
    segments = []
    for number in range(number_of_tuples):
        segments.append(digest[number * tuple_size : (number + 1) * tuple_size])
    leaf = percent_encode(rest)
    if len(leaf) > 100:
        leaf = leaf[:100] + "-" + digest
    segments.append(leaf)
    return safe_path("/".join(segments).encode("ascii"))


def unmap_path(path: bytes, digest_algorithm: str = "sha256", tuple_size: int = 3, number_of_tuples: int = 3) -> bytes:
    """0003 only: decode the leaf, and check that its identifier has the same path."""
    if path == b"":
        raise Refused("empty")
    leaf = path.split(b"/")[-1]
    if len(leaf) > 100:
        raise Refused("truncated")
    identifier = percent_decode(leaf)
    try:
        again = map_id(identifier, digest_algorithm, tuple_size, number_of_tuples)
    except Refused:
        raise Refused("not-canonical") from None
    if again != path:
        raise Refused("not-canonical")
    return identifier
