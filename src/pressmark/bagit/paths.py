"""Paths in manifests and fetch files: how they are encoded, and which are unsafe.

Paths are bytes, relative to the base directory of the bag, with ``/`` between segments.

>>> encode_path(b"data/50% of\\nall")
b'data/50%25 of%0Aall'
"""

from __future__ import annotations

import re
import unicodedata

from pressmark.bagit.problems import RULES, VERSIONS, applies

__all__ = [
    "BELOW_PAYLOAD",
    "FETCH_TXT",
    "PAYLOAD",
    "archive_ending",
    "canonical",
    "decode_path",
    "encode_path",
    "has_raw_percent",
    "normal_key",
    "possible_paths",
    "why_unsafe",
]

PAYLOAD = b"data"
BELOW_PAYLOAD = b"data/"
FETCH_TXT = b"fetch.txt"

_ENCODED = re.compile(rb"%(25|0[ADad])")
_ENCODED_LINE_END = re.compile(rb"%(0[ADad])")
_RAW_PERCENT = re.compile(rb"%(?!25|0[ADad])")


_COMPRESSED = rb"gz|zst|bz2|xz|lz|lz4|lzma|z"
# Also of formats that are not supported: nobody means a directory.
_ARCHIVE = re.compile(
    rb"(?<=[^/])\.(?:zipx?|7z|rar|(?:tar\.)?(?:%b)|tar|t(?:gz|zst|bz2|xz|lz))\Z" % _COMPRESSED, re.IGNORECASE
)


def archive_ending(path: bytes) -> bytes | None:
    """Return the ending of an archive's name, such as ``.tar.gz``; :data:`None` for other names."""
    found = _ARCHIVE.search(path)
    return found[0] if found else None


def encode_path(path: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    """Return a path as manifests and fetch files contain it (2.1.3): with CR, LF and (since 1.0) ``%`` encoded."""
    if b"%" not in path and b"\n" not in path and b"\r" not in path:
        return path
    if applies("percent-encoded", version):
        path = path.replace(b"%", b"%25")
    return path.replace(b"\r", b"%0D").replace(b"\n", b"%0A")


def decode_path(text: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    """Return the path that ``text`` encodes: ``%25`` (since 1.0), ``%0A`` and ``%0D`` are decoded once, in either case.

    Other percent signs are literal.
    """
    if b"%" not in text:
        return text
    pattern = _ENCODED if applies("percent-encoded", version) else _ENCODED_LINE_END
    return pattern.sub(lambda found: bytes([int(found[1], 16)]), text)


def has_raw_percent(text: bytes) -> bool:
    """Return whether ``text`` contains a percent sign that :func:`decode_path` does not decode."""
    return b"%" in text and _RAW_PERCENT.search(text) is not None


def possible_paths(text: bytes, version: tuple[int, int] = (1, 0)) -> tuple[bytes, ...]:
    """Return all paths that ``text`` may encode, the correct one first.

    Many tools encode no percent signs, or encoded them before 1.0: the existing file determines which.
    """
    if b"%" not in text:
        return (text,)
    other = VERSIONS[0] if applies("percent-encoded", version) else RULES["percent-encoded"].since
    return tuple(dict.fromkeys((decode_path(text, version), text, decode_path(text, other))))


# --- unsafe paths -------------------------------------------------------------------------------------------------

_HOME = re.compile(rb"~(?:[A-Za-z_][A-Za-z0-9_-]*)?(?:/|\Z)")
_DRIVE = re.compile(rb"[A-Za-z]:")
_UP = re.compile(rb"(?:\A|/)\.\.(?:/|\Z)")
_UP_BY_BACKSLASH = re.compile(rb"(?:\A|[/\\])\.\.(?:[/\\]|\Z)")


def why_unsafe(path: bytes) -> str | None:
    r"""Return why ``path`` leads outside the bag (5.1), or might do so on some system; :data:`None` if it is safe.

    The check is purely lexical. Unsafe are: the empty path, ``.``, a NUL, an absolute path, a segment ``..`` (also
    between backslashes), a home directory (``~`` or ``~name`` as first segment, but not ``~$name.docx``), a drive
    letter, and the namespaces (``\\?\``) and network paths of Windows.
    """
    if not path:
        return "empty path"
    first = path[0]
    if first == 0x2F:
        return "absolute path"
    if first == 0x7E and _HOME.match(path):
        return "path starts with a home directory"
    if first == 0x5C:
        return "path starts with a backslash, which makes it absolute on Windows"
    if path[1:2] == b":" and _DRIVE.match(path):
        return "path starts with a drive letter"
    if b".." in path:
        if _UP.search(path):
            return "path contains a '..' segment"
        if b"\\" in path and _UP_BY_BACKSLASH.search(path):
            return "path contains a '..' segment between backslashes"
    if b"\0" in path:
        return "path contains a NUL"
    if first == 0x2E and not canonical(path)[0]:
        return "path is the base directory itself"
    return None


def canonical(path: bytes) -> tuple[bytes, bool]:
    """Return ``path`` without ``.`` segments and repeated slashes, and whether it was changed.

    A trailing slash is kept: it marks a directory.
    """
    if b"//" not in path and b"./" not in path and not path.endswith((b"/.", b".")):
        return path, False
    segments = path.split(b"/")
    kept = [segment for segment in segments if segment not in (b"", b".")]
    found = b"/".join(kept)
    if kept and segments[-1] in (b"", b"."):
        found += b"/"
    return found, found != path


# --- names that some file systems do not distinguish --------------------------------------------------------------


def normal_key(path: bytes) -> bytes:
    """Return ``path`` in Unicode normalization form C (6.1.1.3); bytes that are not UTF-8 are kept."""
    if path.isascii():
        return path
    return unicodedata.normalize("NFC", path.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
