"""The character classes, substitutions, digest names, limits and error codes of both implementations.

``ci/tables`` generates the C tables in ``native/shared/tables.h`` from this module; CI fails if they are stale. Nothing
here uses the interpreter's Unicode data (``isspace``, ``\\W``, ``lower``, ``unicodedata``): they change with Python
versions, and paths must not.
"""

from __future__ import annotations

import enum

# --- limits -------------------------------------------------------------------------------------------------

# No specification limits the length of an identifier. Without a limit, a file without line ends would be read into
# memory as a whole. 1 MiB is 256 times the longest Unix path.
MAX_IDENTIFIER_BYTES = 1 << 20
# Fits the longest path of the longest identifier: each byte of a Pairtree identifier becomes up to three, and a
# separator follows each pair.
MAX_PATH_BYTES = 8 << 20

# --- error codes --------------------------------------------------------------------------------------------
# A kernel raises nothing: it returns (index, code, position), and the shared code above words the error. The comments
# below define the position, an offset in bytes, or -1 for none.


class ErrorCode(enum.IntEnum):
    """The reason why an item has no result."""

    EMPTY = 1  # the identifier, or its rest after a prefix, is empty; -1
    NOT_TEXT = 2  # the item is neither str nor bytes; -1
    SURROGATE = 3  # an unpaired surrogate that does not encode a byte; its index in the str
    TOO_LONG = 4  # longer than the limit above; -1
    NOT_UTF8 = 5  # the first byte that is not UTF-8
    NOT_ASCII = 6  # the first byte outside 0x20-0x7F
    PREFIX_MISSING = 7  # the identifier does not start with the Pairtree prefix; -1
    BEYOND_LATIN1 = 8  # the first character above U+00FF, in the identifier
    DELIMITER_AT_END = 9  # the start of the delimiter, in the identifier
    WRONG_LENGTH = 10  # the actual length
    ABSOLUTE = 11  # 0
    SEGMENT_EMPTY = 12  # the start of the segment, in the path; the same for the next two
    SEGMENT_DOT = 13
    SEGMENT_DOTDOT = 14
    NUL = 15  # its offset in the path
    EMPTY_PATH = 16  # -1
    FALLBACK_TOO_LONG = 17  # the length of the fallback path
    BAD_COMPONENT = 18  # the start of the component, in the path
    BAD_CHARACTER = 19  # its offset in the path
    BAD_ESCAPE = 20  # the start of the escape, in the path
    UNKNOWN_PREFIX = 21  # its offset in the joined path
    STRAY_TILDE = 22  # its offset in the joined path
    NOT_CANONICAL = 23  # the first byte that differs from the layout's own path
    TRUNCATED = 24  # the length of the encapsulation directory's name
    IS_FALLBACK = 25  # -1
    HOLDS_DELIMITER = 26  # the result contains the delimiter of the stream; -1
    HOLDS_SEPARATOR = 27  # the identifier contains the separator of a two-column line; -1
    NO_PPATH = 28  # the path has no ppath; -1
    NO_ENCAPSULATION = 29  # the path ends with the ppath; -1
    NOT_DIALECT = 30  # the dialect does not write this; -1
    NOT_CLEANED = 31  # its offset in the identifier, which should be cleaned already
    AMBIGUOUS = 32  # several identifiers of the dialect are written like this; -1


# --- manifests ----------------------------------------------------------------------------------------------


class LineStatus(enum.IntEnum):
    """The reason why a scan of manifest lines stopped."""

    MORE = 0  # the rest of the block is not a whole line
    ODD = 1  # the next line is not plain
    AGAIN = 2  # the next line is plain, but its fingerprint is already known


# --- byte classes -------------------------------------------------------------------------------------------


def _class(members: bytes) -> bytes:
    """Return 256 bytes: 1 for members, 0 for others."""
    return bytes(byte in members for byte in range(256))


VISIBLE_ASCII = bytes(range(0x21, 0x7F))
_OUTSIDE_VISIBLE = bytes(byte for byte in range(256) if byte not in VISIBLE_ASCII)

# Pairtree section 3, first step: bytes outside 21-7e and these visible ones become ^hh.
PAIRTREE_HEX = _class(_OUTSIDE_VISIBLE + b'"<\\*=^+>|,?')
# Pairtree section 3, second step; Vitro "Common character encoding" is the same three.
COMMON_FROM, COMMON_TO = b"/:.", b"=+,"
# The bytes of a cleaned Pairtree path: those that the first step keeps, after the second step, and the caret.
PAIRTREE_CLEANED = _class(bytes(byte for byte in VISIBLE_ASCII if byte not in b'"<\\*>|?' and byte not in COMMON_FROM))
# Vitro "Rare character encoding": the same range of bytes and twelve visible ones, including the tilde.
VITRO_HEX = _class(_OUTSIDE_VISIBLE + b'"*+,<=>?^|\\~')
# Vitro "Filename encoding": the common substitutions, except that periods stay.
FILENAME_FROM, FILENAME_TO = b"/:", b"=+"
# Vitro "Exclusion of reserved Windows filenames". In a path only the four short ones can match a group.
WINDOWS_RESERVED = (
    *("CON", "PRN", "AUX", "NUL"),
    *(f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10)),
)
# OCFL 0003 and 0012, "Encapsulation Directory": everything else is percent-encoded.
ENCAPSULATION_SAFE = _class(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
# OCFL 0003 and 0012: a longer encoded name is truncated, and the digest is appended.
ENCAPSULATION_LONGEST = 100
# OCFL 0007 and 0010, limitations: code points 0x20 to 0x7F.
ASCII_FIRST, ASCII_LAST = 0x20, 0x7F

# --- code points of OCFL 0011 ---------------------------------------------------------------------------------
# Inclusive ranges, from the step lists; the appendix of the document omits U+202F and the punctuation.

# "Procedure", encodeUTF false, step 3.1.
CLEAN_WHITESPACE = (
    (0x0009, 0x000D),
    (0x0020, 0x0020),
    (0x0085, 0x0085),
    (0x00A0, 0x00A0),
    (0x1680, 0x1680),
    (0x2000, 0x200F),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
# encodeUTF false, step 3.2. With the white space above it is also the list of encodeUTF true, step 3.2.
CLEAN_DANGEROUS = (
    (0x0000, 0x001F),
    (0x007F, 0x007F),
    *((ord(character), ord(character)) for character in "*?:[]\"<>|(){}&'!;#@"),
)
# The document's Go code strips this from the right instead of the white space alone (rules="gocfl").
CLEAN_GOCFL_RIGHT = ((0x2010, 0x20A0),)
# encodeUTF false, step 3.3, on the left besides white space.
CLEAN_LEFT = b"-~"

# --- digests --------------------------------------------------------------------------------------------------

# OCFL name -> (hashlib name, bytes of the digest). The fixity vocabulary of OCFL and of extension 0009, without "size",
# which is not a digest.
DIGESTS = {
    "md5": ("md5", 16),
    "sha1": ("sha1", 20),
    "sha256": ("sha256", 32),
    "sha512": ("sha512", 64),
    "sha512/256": ("sha512_256", 32),
    "blake2b-160": ("blake2b", 20),
    "blake2b-256": ("blake2b", 32),
    "blake2b-384": ("blake2b", 48),
    "blake2b-512": ("blake2b", 64),
}
