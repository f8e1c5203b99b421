"""Vitro file storage: "ID encoding" and "Filename encoding".

The specification is written in terms of octets; the program that defines the layout encodes Latin-1 code points and
refuses others (rule 2 in section 4 of the Vitro rules).
"""

from . import Refused, safe_path, utf8_text

# "Rare character encoding"
HEX_ENCODED_ASCII = '"*+,<=>?^|\\~'

# "Exclusion of reserved Windows filenames"
RESERVED_NAMES = (
    "CON", "PRN", "AUX", "NUL",
    "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8", "COM9",
    "LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
)  # fmt: skip

HEX_DIGITS = "0123456789abcdefABCDEF"


def is_reserved(name: str) -> bool:
    """Return whether Windows reserves the name; only the case of ASCII letters is ignored."""
    return name.isascii() and name.upper() in RESERVED_NAMES


def hex_encode(text: str) -> str:
    """ "Rare character encoding": whatever is outside 21-7e, and the listed characters, becomes ^hh."""
    encoded = ""
    for character in text:
        if ord(character) > 0xFF:
            raise Refused("character")
        if ord(character) < 0x21 or ord(character) > 0x7E or character in HEX_ENCODED_ASCII:
            encoded += f"^{ord(character):02x}"
        else:
            encoded += character
    return encoded


def hex_decode(text: str) -> str:
    """Decode every ^hh. Exactly two ASCII hex digits must follow a caret (section 4, rule 20)."""
    decoded = ""
    position = 0
    while position < len(text):
        if text[position] != "^":
            decoded += text[position]
            position += 1
            continue
        digits = text[position + 1 : position + 3]
        if len(digits) != 2 or digits[0] not in HEX_DIGITS or digits[1] not in HEX_DIGITS:
            raise Refused("malformed")
        decoded += chr(int(digits, 16))
        position += 3
    return decoded


def map_id(identifier: bytes, namespaces: dict[str, str] | None = None) -> bytes:
    """ "ID encoding". `namespaces` has the namespace of each one-character prefix."""
    text = utf8_text(identifier)

    # Namespace recognition. If several match, the lowest prefix character wins (section 4, rule 8).
    prefix = None
    for candidate in sorted(namespaces or {}):
        namespace = namespaces[candidate]
        if text.startswith(namespace):
            prefix = candidate
            text = text[len(namespace) :]
            break

    # Rare character encoding, common character encoding, prefixing
    encoded = hex_encode(text).replace("/", "=").replace(":", "+").replace(".", ",")
    if prefix is not None:
        encoded = prefix + "~" + encoded

    # Path breakdown, exclusion of reserved Windows filenames
    groups = []
    for start in range(0, len(encoded), 3):
        group = encoded[start : start + 3]
        if is_reserved(group):
            group = "~" + group
        groups.append(group)
    return safe_path("/".join(groups).encode("ascii"))


def unmap_path(path: bytes, namespaces: dict[str, str] | None = None) -> bytes:
    """Section 5 of the Vitro rules, strict."""
    if path == b"":
        raise Refused("empty")
    # No encoded path contains a byte above 7e: step 5 refuses it.
    text = path.decode("latin-1")

    # "Per group: drop ~ when the rest is a reserved name."
    groups = []
    for group in text.split("/"):
        if group.startswith("~") and is_reserved(group[1:]):
            group = group[1:]
        groups.append(group)
    encoded = "".join(groups)

    # "If the second character is ~, the first must be a known prefix. Any other ~ is an error."
    namespace = ""
    if encoded[1:2] == "~":
        if encoded[0] not in (namespaces or {}):
            raise Refused("malformed")
        namespace = namespaces[encoded[0]]
        encoded = encoded[2:]
    if "~" in encoded:
        raise Refused("malformed")

    substituted = encoded.replace("=", "/").replace("+", ":").replace(",", ".")
    identifier = (namespace + hex_decode(substituted)).encode("utf-8")

    # "Encoding the result with the same map must give the input path again."
    try:
        again = map_id(identifier, namespaces)
    except Refused:
        raise Refused("not-canonical") from None
    if again != path:
        raise Refused("not-canonical")
    return identifier


def encode_filename(name: str) -> str:
    """ "Filename encoding": as for an identifier, but periods stay, and the name is not split."""
    encoded = hex_encode(name).replace("/", "=").replace(":", "+")
    if is_reserved(encoded):
        encoded = "~" + encoded
    return encoded


def decode_filename(stored: str) -> str:
    """Section 1.3 of the Vitro rules: lenient, needless and upper-case ^hh are accepted."""
    if stored.startswith("~") and is_reserved(stored[1:]):
        stored = stored[1:]
    return hex_decode(stored.replace("=", "/").replace("+", ":"))
