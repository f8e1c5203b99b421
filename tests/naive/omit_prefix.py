"""OCFL extensions 0006, 0007 and 0010: layouts that omit the prefix of the identifier. None has an inverse."""

from collections.abc import Sequence

from . import Refused, safe_path, utf8_text


def remove_prefix(identifier: bytes, delimiter: str) -> bytes:
    """ "delimiter": case-insensitive (in ASCII), right-most; absent: the whole identifier; at the end: an error."""
    folded_identifier = identifier.lower()  # bytes.lower() knows ASCII letters only, so positions stay valid
    folded_delimiter = delimiter.encode("utf-8").lower()
    start = folded_identifier.rfind(folded_delimiter)
    if start == -1:
        return identifier
    rest = identifier[start + len(folded_delimiter) :]
    if rest == b"":
        raise Refused("delimiter-at-end")
    return rest


def require_ascii(identifier: bytes) -> None:
    """0007 and 0010, "limitations": "the ASCII subset of UTF-8 (code points 0x20 to 0x7F)"."""
    if identifier == b"":
        raise Refused("empty")
    for byte in identifier:
        if not 0x20 <= byte <= 0x7F:
            raise Refused("not-ascii")


def map_id_0006(identifier: bytes, delimiter: str) -> bytes:
    """Flat Omit Prefix Storage Layout."""
    utf8_text(identifier)
    return safe_path(remove_prefix(identifier, delimiter))


def map_id_0007(
    identifier: bytes,
    delimiter: str = ":",
    tuple_size: int = 3,
    number_of_tuples: int = 3,
    zero_padding: str = "left",
    reverse_object_root: bool = False,
) -> bytes:
    """N Tuple Omit Prefix Storage Layout, "Procedure", steps 1 to 6."""
    require_ascii(identifier)
    rest = remove_prefix(identifier, delimiter)
    zeros = b"0" * (tuple_size * number_of_tuples - len(rest))
    padded = zeros + rest if zero_padding == "left" else rest + zeros
    if reverse_object_root:
        padded = padded[::-1]
    segments = []
    for number in range(number_of_tuples):
        segments.append(padded[number * tuple_size : (number + 1) * tuple_size])
    segments.append(rest)
    return safe_path(b"/".join(segments))


def map_id_0010(
    identifier: bytes,
    delimiter: str = ":",
    tuple_segment_sizes: Sequence[int] = (2, 3, 2, 4),
    full_identifier_as_object_root: bool = False,
) -> bytes:
    """Differential N-Tuple Omit Prefix Storage Layout, "Procedure"."""
    require_ascii(identifier)
    rest = remove_prefix(identifier, delimiter)
    if len(rest) != sum(tuple_segment_sizes):
        raise Refused("length")
    segments = []
    start = 0
    for size in tuple_segment_sizes:
        segments.append(rest[start : start + size])
        start += size
    if full_identifier_as_object_root:
        segments.append(rest)
    return safe_path(b"/".join(segments))
