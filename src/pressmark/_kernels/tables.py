"""Every character class, substitution, digest name, limit and error code: once, for both twins.

The C tables in ``native/shared/tables.h`` are generated from this module by ``ci/tables``; a stale copy fails CI.
Nothing here asks the interpreter about Unicode (no ``isspace``, ``\\W``, ``lower``, ``unicodedata``):
those answers change with versions, and a path must not.
"""

from __future__ import annotations

import enum

# --- limits -------------------------------------------------------------------------------------------------

# No specification limits an identifier. A line of a stream must be bounded, or a file without line ends would
# be read into memory whole; 1 MiB is 256 times what a Unix path may hold.
MAX_IDENTIFIER_BYTES = 1 << 20
# The longest path of the longest identifier (every octet of a Pairtree identifier may become three, each pair
# followed by a separator) still fits.
MAX_PATH_BYTES = 8 << 20

# --- errors -------------------------------------------------------------------------------------------------
# A kernel raises nothing: it reports (index, code, position) and the shared code above words the error.
# Position is the offset in bytes that each comment names, or -1.


class ErrorCode(enum.IntEnum):
    """Why a kernel gave no result for an item, and what its position counts."""

    EMPTY = 1  # the identifier (or what is left of it) is empty; -1
    NOT_TEXT = 2  # the item is neither str nor bytes; -1
    SURROGATE = 3  # a lone surrogate that stands for no byte; its index in the str
    TOO_LONG = 4  # longer than the limit above; -1
    NOT_UTF8 = 5  # the first byte that is not UTF-8
    NOT_ASCII = 6  # the first byte outside 0x20-0x7F
    PREFIX_MISSING = 7  # the identifier does not begin with the Pairtree prefix; -1
    BEYOND_LATIN1 = 8  # the first character above U+00FF, in the identifier
    DELIMITER_AT_END = 9  # where the delimiter begins, in the identifier
    WRONG_LENGTH = 10  # the length found
    ABSOLUTE = 11  # 0
    SEGMENT_EMPTY = 12  # where the segment begins, in the path
    SEGMENT_DOT = 13
    SEGMENT_DOTDOT = 14
    NUL = 15  # its offset in the path
    EMPTY_PATH = 16  # -1
    FALLBACK_TOO_LONG = 17  # the length of the fallback path
    BAD_COMPONENT = 18  # where the component begins, in the path
    BAD_CHARACTER = 19  # its offset in the path
    BAD_ESCAPE = 20  # where the escape begins, in the path
    UNKNOWN_PREFIX = 21  # its offset in the joined path
    STRAY_TILDE = 22  # its offset in the joined path
    NOT_CANONICAL = 23  # the first byte that differs from the path the layout gives
    TRUNCATED = 24  # the length of the encapsulation directory's name
    IS_FALLBACK = 25  # -1
    HOLDS_DELIMITER = 26  # the result holds the delimiter of the stream; -1
    HOLDS_SEPARATOR = 27  # the identifier holds the separator of a two-column line; -1


# --- manifests ----------------------------------------------------------------------------------------------


class LineStatus(enum.IntEnum):
    """Why a scan of a manifest's lines stopped."""

    MORE = 0  # what is left of the block is no whole line
    ODD = 1  # the next line is not plain
    AGAIN = 2  # the next line is plain, and a line with its fingerprint is there


# --- octet classes ------------------------------------------------------------------------------------------


def _class(members: bytes) -> bytes:
    """Return 256 octets, 1 for every member."""
    return bytes(octet in members for octet in range(256))


VISIBLE_ASCII = bytes(range(0x21, 0x7F))
_OUTSIDE_VISIBLE = bytes(octet for octet in range(256) if octet not in VISIBLE_ASCII)

# Pairtree section 3, first step: octets outside 21-7e, and these visible ones, become ^hh.
PAIRTREE_HEX = _class(_OUTSIDE_VISIBLE + b'"<\\*=^+>|,?')
# Pairtree section 3, second step; Vitro "Common character encoding" is the same three.
COMMON_FROM, COMMON_TO = b"/:.", b"=+,"
# What may stand in a cleaned Pairtree path: the first step's survivors after the second step, and the caret.
PAIRTREE_CLEANED = _class(
    bytes(octet for octet in VISIBLE_ASCII if octet not in b'"<\\*>|?' and octet not in COMMON_FROM)
)
# Vitro "Rare character encoding": the same range of octets, and twelve visible ones, the tilde among them.
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
# OCFL 0003 and 0012: a longer encoded name is cut and the digest appended.
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
