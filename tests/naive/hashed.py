"""OCFL extension 0004: Hashed N-tuple Storage Layout. It has no inverse."""

from . import safe_path, utf8_text
from .digests import hex_digest


def map_id(
    identifier: bytes,
    digest_algorithm: str = "sha256",
    tuple_size: int = 3,
    number_of_tuples: int = 3,
    short_object_root: bool = False,
) -> bytes:
    utf8_text(identifier)
    # Procedure, steps 1 and 2
    digest = hex_digest(digest_algorithm, identifier)
    # Steps 3 and 4
    segments = []
    for number in range(number_of_tuples):
        segments.append(digest[number * tuple_size : (number + 1) * tuple_size])
    # Step 5
    if short_object_root:
        segments.append(digest[number_of_tuples * tuple_size :])
    else:
        segments.append(digest)
    return safe_path("/".join(segments).encode("ascii"))
