"""Pairtree V0.1 (draft-kunze-pairtree-01), sections 1, 3 and 4. Identifiers are bytes, valid UTF-8 or not."""

from . import Refused

# Section 3, first step: " hex 22, * hex 2a, + hex 2b, "," hex 2c, < hex 3c, = hex 3d, > hex 3e, ? hex 3f,
# \ hex 5c, ^ hex 5e, | hex 7c
HEX_ENCODED_ASCII = (0x22, 0x2A, 0x2B, 0x2C, 0x3C, 0x3D, 0x3E, 0x3F, 0x5C, 0x5E, 0x7C)

HEX_DIGITS = b"0123456789abcdefABCDEF"


def must_be_hex_encoded(byte: int) -> bool:
    """Section 3: every byte outside the range of visible ASCII (21-7e), and the listed characters."""
    return byte < 0x21 or byte > 0x7E or byte in HEX_ENCODED_ASCII


def clean(identifier: bytes) -> bytes:
    """Section 3: identifier string cleaning."""
    hex_encoded = bytearray()
    for byte in identifier:
        if must_be_hex_encoded(byte):
            hex_encoded += b"^%02x" % byte
        else:
            hex_encoded.append(byte)
    # second step: / -> =   : -> +   . -> ,
    return bytes(hex_encoded).replace(b"/", b"=").replace(b":", b"+").replace(b".", b",")


def unclean(cleaned: bytes) -> bytes:
    """The inverse of `clean`. ^hh may be upper-case or redundant; characters that cleaning would change are refused."""
    identifier = bytearray()
    position = 0
    while position < len(cleaned):
        byte = cleaned[position : position + 1]
        if byte == b"^":
            digits = cleaned[position + 1 : position + 3]
            if len(digits) != 2 or digits[0] not in HEX_DIGITS or digits[1] not in HEX_DIGITS:
                raise Refused("malformed")
            identifier.append(int(digits, 16))
            position += 3
            continue
        if byte == b"=":
            identifier += b"/"
        elif byte == b"+":
            identifier += b":"
        elif byte == b",":
            identifier += b"."
        elif must_be_hex_encoded(byte[0]) or byte in (b"/", b":", b"."):
            raise Refused("malformed")
        else:
            identifier += byte
        position += 1
    return bytes(identifier)


def map_id(identifier: bytes, prefix: str = "") -> bytes:
    """Sections 1 and 4: the ppath, without a trailing slash."""
    raw_prefix = prefix.encode("utf-8", "surrogateescape")
    if identifier == b"":
        raise Refused("empty")
    if not identifier.startswith(raw_prefix):
        raise Refused("prefix")
    rest = identifier[len(raw_prefix) :]
    if rest == b"":
        raise Refused("empty")
    cleaned = clean(rest)
    pairs = []
    for start in range(0, len(cleaned), 2):
        pairs.append(cleaned[start : start + 2])
    return b"/".join(pairs)


def unmap_path(path: bytes, prefix: str = "") -> bytes:
    """The strict inverse. One trailing slash is allowed, as the specification writes its ppaths."""
    if path == b"":
        raise Refused("empty")
    if path.endswith(b"/"):
        path = path[:-1]
    components = path.split(b"/")
    for component in components[:-1]:
        if len(component) != 2:
            raise Refused("malformed")
    if len(components[-1]) not in (1, 2):
        raise Refused("malformed")
    return prefix.encode("utf-8", "surrogateescape") + unclean(b"".join(components))
