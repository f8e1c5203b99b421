"""File paths in manifests and fetch files: the one place that knows how they are written and which are dangerous.

Paths are bytes, relative to the bag's base directory, with ``/`` between segments, as the file system has them.

>>> encode_path(b"data/50% of\\nall")
b'data/50%25 of%0Aall'
"""

from __future__ import annotations

import re
import unicodedata

from pressmark.bagit.versions import RULES, VERSIONS, holds

__all__ = [
    "BELOW_PAYLOAD",
    "FETCH_TXT",
    "PAYLOAD",
    "canonical",
    "clash_key",
    "decode_path",
    "encode_path",
    "fault_of",
    "has_raw_percent",
    "normal_key",
    "readings",
]

PAYLOAD = b"data"
BELOW_PAYLOAD = b"data/"
FETCH_TXT = b"fetch.txt"

_ENCODED = re.compile(rb"%(25|0[ADad])")
_ENCODED_LINE_END = re.compile(rb"%(0[ADad])")
_RAW_PERCENT = re.compile(rb"%(?!25|0[ADad])")


def encode_path(path: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    """Return a path as a manifest or fetch file has it (2.1.3): CR, LF and (from 1.0 on) ``%`` encoded, only those."""
    if b"%" not in path and b"\n" not in path and b"\r" not in path:
        return path
    if holds("percent-encoded", version):
        path = path.replace(b"%", b"%25")
    return path.replace(b"\r", b"%0D").replace(b"\n", b"%0A")


def decode_path(text: bytes, version: tuple[int, int] = (1, 0)) -> bytes:
    """Return the path that ``text`` stands for: ``%25`` (from 1.0 on), ``%0A``, ``%0D`` decoded, once, in either case.

    Anything else after a percent sign stands for itself.
    """
    if b"%" not in text:
        return text
    pattern = _ENCODED if holds("percent-encoded", version) else _ENCODED_LINE_END
    return pattern.sub(lambda found: bytes([int(found[1], 16)]), text)


def has_raw_percent(text: bytes) -> bool:
    """Return whether a percent sign in ``text`` is none of those that :func:`decode_path` decodes."""
    return b"%" in text and _RAW_PERCENT.search(text) is not None


def readings(text: bytes, version: tuple[int, int] = (1, 0)) -> tuple[bytes, ...]:
    """Return all paths that ``text`` may stand for, each once, the right one first.

    Writers that encode no percent sign, or did so before 1.0, are many: which file is there decides.
    """
    if b"%" not in text:
        return (text,)
    other = VERSIONS[0] if holds("percent-encoded", version) else RULES["percent-encoded"].since
    return tuple(dict.fromkeys((decode_path(text, version), text, decode_path(text, other))))


# --- what may lead out of a bag -----------------------------------------------------------------------------------

_HOME = re.compile(rb"~(?:[A-Za-z_][A-Za-z0-9_-]*)?(?:/|\Z)")
_DRIVE = re.compile(rb"[A-Za-z]:")
_UP = re.compile(rb"(?:\A|/)\.\.(?:/|\Z)")
_UP_BY_BACKSLASH = re.compile(rb"(?:\A|[/\\])\.\.(?:[/\\]|\Z)")


def fault_of(path: bytes) -> str | None:
    r"""Return why ``path`` leads, or on some system might lead, outside of the bag (5.1), or :data:`None`.

    Purely lexical: the empty path, ``.``, a NUL, an absolute path, a segment ``..`` (where ``\`` separates too), a home
    directory (``~`` or ``~name`` as first segment; ``~$name.docx`` is none), a drive letter, and what Windows calls
    namespaces (``\\?\``) or network paths.
    """
    if not path:
        return "it is empty"
    first = path[0]
    if first == 0x2F:
        return "it is absolute"
    if first == 0x7E and _HOME.match(path):
        return "it begins with a home directory"
    if first == 0x5C:
        return "it begins with a backslash, which makes it absolute on Windows"
    if path[1:2] == b":" and _DRIVE.match(path):
        return "it begins with a drive letter"
    if b".." in path:
        if _UP.search(path):
            return "it holds a segment '..'"
        if b"\\" in path and _UP_BY_BACKSLASH.search(path):
            return "it holds a segment '..' where a backslash separates"
    if b"\0" in path:
        return "it holds a NUL"
    if first == 0x2E and not canonical(path)[0]:
        return "it is the base directory itself"
    return None


def canonical(path: bytes) -> tuple[bytes, bool]:
    """Return ``path`` without segments ``.`` and doubled slashes, and whether that changed it.

    A slash at its end stays: it says that the path is a directory's.
    """
    if b"//" not in path and b"./" not in path and not path.endswith((b"/.", b".")):
        return path, False
    segments = path.split(b"/")
    kept = [segment for segment in segments if segment not in (b"", b".")]
    found = b"/".join(kept)
    if kept and segments[-1] in (b"", b"."):
        found += b"/"
    return found, found != path


# --- names that some systems take for the same --------------------------------------------------------------------


def normal_key(path: bytes) -> bytes:
    """Return ``path`` in Unicode normalization form C (6.1.1.3); octets that are not UTF-8 stay as they are."""
    if path.isascii():
        return path
    return unicodedata.normalize("NFC", path.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")


def clash_key(path: bytes) -> bytes:
    """Return what is equal for names that differ only in case or normalization (Unicode's canonical caseless match)."""
    if path.isascii():
        return path.lower()
    text = unicodedata.normalize("NFD", path.decode("utf-8", "surrogateescape"))
    return unicodedata.normalize("NFD", text.casefold()).encode("utf-8", "surrogateescape")
