"""Manifests of digests, in the three formats people have: written, and read back strictly.

``coreutils``
    What ``sha512sum`` and ``b3sum`` write: the digest, two blanks (or a blank and ``*``), the name. A name that holds a
    line feed or a backslash is escaped, and a backslash at the line's beginning says so. One algorithm a manifest.
``bsd``
    What ``sha512sum --tag`` and BSD's tools write: ``SHA512 (name) = digest``, with the same escaping. Any algorithms;
    the lines of one file follow each other.
``json``
    One object a line: ``{"path": …, "size": …, "mtime_ns": …, "digests": {"sha512": …}}``. Octets of a name that are
    not UTF-8 are the surrogates of :func:`os.fsdecode`, escaped.

Names are bytes, and everything that a file can be called comes back as it was.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from pressmark.errors import AlgorithmError, ManifestError, quoted
from pressmark.fixity.algorithms import ALGORITHMS, algorithm_name, algorithm_names
from pressmark.fixity.outcomes import Outcome

__all__ = ["FORMATS", "ManifestEntry", "manifest_line", "read_manifest", "write_manifest"]

FORMATS = ("coreutils", "bsd", "json")

# A path may have 4,096 bytes, four times that when escaped, and 21 digests have less than 3,000.
MAX_LINE = 1 << 20  # 1 MiB

# Which algorithm a coreutils line has when nobody says it: the most usual one of the digest's length.
BY_LENGTH = {
    8: "xxh32",
    16: "xxh64",
    32: "md5",
    40: "sha1",
    56: "sha224",
    64: "sha256",
    96: "sha384",
    128: "sha512",
}


class ManifestEntry(NamedTuple):
    """One file of a manifest.

    :ivar path: its name, as bytes
    :ivar digests: name of the algorithm to lower-case hex
    :ivar size: in bytes, where the manifest says it
    :ivar mtime_ns: nanoseconds since 1970, where the manifest says it
    :ivar line: where it begins in the manifest, counted from 1
    """

    path: bytes
    digests: dict[str, str]
    size: int | None = None
    mtime_ns: int | None = None
    line: int = 0


# --- writing ------------------------------------------------------------------------------------------------------


def manifest_line(outcome: Outcome, format: str) -> bytes:
    """Return the line (in the BSD format the lines) of a file that has digests, line feeds included.

    :raises ValueError: the format is unknown, or ``coreutils`` and there is not exactly one digest
    """
    digests = outcome.digests
    if digests is None:
        raise ValueError("an outcome without digests has no line")
    if format == "json":
        record = {
            "path": os.fsdecode(outcome.path),
            "size": outcome.size,
            "mtime_ns": outcome.mtime_ns,
            "digests": digests,
        }
        return json.dumps(record).encode() + b"\n"
    name = os.fsencode(outcome.path)
    if format == "coreutils":
        if len(digests) != 1:
            raise ValueError("the coreutils format holds one digest a file")
        ((algorithm, digest),) = digests.items()
        mark, escaped = _escaped(name, algorithm)
        return b"%b%b  %b\n" % (mark, digest.encode(), escaped)
    if format == "bsd":
        lines = []
        for algorithm, digest in digests.items():
            mark, escaped = _escaped(name, algorithm)
            lines.append(b"%b%b (%b) = %b\n" % (mark, ALGORITHMS[algorithm].tag.encode(), escaped, digest.encode()))
        return b"".join(lines)
    raise ValueError(f"format={format!r}: expected {', '.join(FORMATS)}")


def write_manifest(
    path: str | bytes | os.PathLike[str], outcomes: Iterable[Outcome], format: str = "coreutils"
) -> list[Outcome]:
    """Write the manifest ``path``, which appears only when it is complete, and return the outcomes that failed.

    :raises OSError: it cannot be written; what was there before is still there
    """
    from pressmark.fs.atomic import Replacement
    from pressmark.fs.owners import resolved

    failed = []
    with Replacement(resolved(os.fsencode(path))) as file:
        for outcome in outcomes:
            if outcome.ok:
                file.write(manifest_line(outcome, format))
            else:
                failed.append(outcome)
    return failed


def _escaped(name: bytes, algorithm: str) -> tuple[bytes, bytes]:
    """Return the mark at the line's beginning, and the name as it stands in the line."""
    escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n")
    if algorithm != "blake3":
        # coreutils 9 escapes carriage returns as well; b3sum does not know that.
        escaped = escaped.replace(b"\r", b"\\r")
    return (b"", name) if escaped == name else (b"\\", escaped)


# --- reading ------------------------------------------------------------------------------------------------------

_COREUTILS = re.compile(rb"([0-9A-Fa-f]+) [ *](.+)", re.DOTALL)
_BSD = re.compile(rb"([A-Za-z0-9][A-Za-z0-9/_-]*) ?\((.+)\) ?= ?([0-9A-Fa-f]+)", re.DOTALL)
_ESCAPE = re.compile(rb"\\(.?)", re.DOTALL)
_UNESCAPED = {b"n": b"\n", b"r": b"\r", b"\\": b"\\"}
_HEX = re.compile(r"[0-9A-Fa-f]+")


def read_manifest(
    file: BinaryIO, source: str, algorithms: Sequence[str] | str | None = None, format: str | None = None
) -> Iterator[ManifestEntry]:
    """Read a manifest from its binary stream, entry by entry; its first line tells its format.

    Strict: what is not a line of the format is an error, as are blank lines. Lines that begin with ``#`` are comments,
    as they are for coreutils. Digests are accepted in either case and given in lower case.

    :param source: the manifest's name in messages
    :param algorithms: of a coreutils manifest: its algorithm; without it, the digests' length decides. Of the others:
        the algorithms to keep
    :param format: instead of what the first line tells
    :raises ManifestError: with the number of the line at fault
    :raises AlgorithmError: ``algorithms`` holds an unknown one
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r}: expected {', '.join(FORMATS)}")
    wanted = None if algorithms is None else algorithm_names(algorithms)
    return _entries(file, source, wanted, format)


def _entries(
    file: BinaryIO, source: str, wanted: tuple[str, ...] | None, format: str | None
) -> Iterator[ManifestEntry]:
    held: ManifestEntry | None = None  # whose next lines may hold more digests of the same file
    length = 0
    for number, line in _numbered(file, source):
        if line.startswith(b"#"):
            continue
        format = format or _format_of(line)
        try:
            if format == "json":
                entry = _json_entry(line, number, wanted)
            elif format == "bsd":
                entry = _bsd_entry(line, number)
            else:
                entry = _coreutils_entry(line, number, wanted, length)
                length = len(next(iter(entry.digests.values())))
        except (ValueError, AlgorithmError) as error:
            raise ManifestError(source, number, str(error)) from None
        if format == "bsd":
            if held is not None and held.path == entry.path and not held.digests.keys() & entry.digests.keys():
                held.digests.update(entry.digests)
                continue
            entry, held = held, entry  # type: ignore[assignment]
        if entry is not None:
            yield from _kept(entry, wanted)
    if held is not None:
        yield from _kept(held, wanted)


def _kept(entry: ManifestEntry, wanted: tuple[str, ...] | None) -> Iterator[ManifestEntry]:
    if wanted is None:
        yield entry
        return
    digests = {name: digest for name, digest in entry.digests.items() if name in wanted}
    if digests:
        yield entry._replace(digests=digests)


def _numbered(file: BinaryIO, source: str) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise ManifestError(source, number, f"the line has more than {MAX_LINE} bytes")
        yield number, line.removesuffix(b"\n")


def _format_of(line: bytes) -> str:
    if line.startswith(b"{"):
        return "json"
    return "bsd" if _BSD.fullmatch(line.removeprefix(b"\\")) and not _COREUTILS.fullmatch(line) else "coreutils"


def _coreutils_entry(line: bytes, number: int, wanted: tuple[str, ...] | None, length: int) -> ManifestEntry:
    found = _COREUTILS.fullmatch(line.removeprefix(b"\\"))
    if found is None:
        raise ValueError("expected a digest in hex, two blanks and a name")
    digest = found[1].decode().lower()
    if length and len(digest) != length:
        raise ValueError(f"the digest has {len(digest)} hex digits, those before have {length}")
    algorithm = _algorithm_of_length(len(digest), wanted)
    return ManifestEntry(_unescaped(found[2]) if line.startswith(b"\\") else found[2], {algorithm: digest}, line=number)


def _algorithm_of_length(length: int, wanted: tuple[str, ...] | None) -> str:
    if wanted is None:
        if length not in BY_LENGTH:
            raise ValueError(f"no algorithm has a digest of {length} hex digits")
        return BY_LENGTH[length]
    fitting = [name for name in wanted if 2 * ALGORITHMS[name].size == length]
    if len(fitting) != 1:
        raise ValueError(f"a digest of {length} hex digits is not of {' or '.join(wanted)}")
    return fitting[0]


def _bsd_entry(line: bytes, number: int) -> ManifestEntry:
    found = _BSD.fullmatch(line.removeprefix(b"\\"))
    if found is None:
        raise ValueError("expected ALGORITHM (name) = digest")
    name = _unescaped(found[2]) if line.startswith(b"\\") else found[2]
    algorithm = algorithm_name(found[1].decode())
    return ManifestEntry(name, {algorithm: _digest(algorithm, found[3].decode())}, line=number)


def _json_entry(line: bytes, number: int, wanted: tuple[str, ...] | None) -> ManifestEntry:
    repeated: list[str] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        once: dict[str, Any] = {}
        for key, value in pairs:
            if key in once:
                repeated.append(key)
            once[key] = value
        return once

    try:
        record: Any = json.loads(line, object_pairs_hook=collect)
    except (ValueError, RecursionError):
        raise ValueError("not JSON") from None
    if repeated:
        # JSON leaves open which of the two holds; a digest must not depend on who reads it.
        raise ValueError(f"the key {quoted(repeated[0])} is there twice")
    if not isinstance(record, dict) or not isinstance(record.get("path"), str):
        raise ValueError('expected an object with a "path"')
    digests = record.get("digests")
    if not isinstance(digests, dict) or not digests:
        raise ValueError('expected "digests", an object of at least one')
    found: dict[str, str] = {}
    for given, digest in digests.items():
        name = algorithm_name(given)
        if not isinstance(digest, str) or name in found:
            raise ValueError(f"the digest {quoted(given)} is no text, or there twice")
        found[name] = _digest(name, digest)
    for key in ("size", "mtime_ns"):
        value = record.get(key)
        if value is not None and type(value) is not int:
            raise ValueError(f'"{key}" is no whole number')
    if not record["path"] or "\0" in record["path"]:
        raise ValueError('"path" is a name that no file has')
    try:
        path = os.fsencode(record["path"])
    except UnicodeEncodeError:
        raise ValueError('"path" holds a surrogate that stands for no byte') from None
    return ManifestEntry(path, found, record.get("size"), record.get("mtime_ns"), number)


def _digest(algorithm: str, text: str) -> str:
    expected = 2 * ALGORITHMS[algorithm].size
    if len(text) != expected or not _HEX.fullmatch(text):
        raise ValueError(f"a digest of {algorithm} has {expected} hex digits")
    return text.lower()


def _unescaped(name: bytes) -> bytes:
    def one(found: re.Match[bytes]) -> bytes:
        if found[1] not in _UNESCAPED:
            raise ValueError(f"{quoted(found[0])} is no escape")
        return _UNESCAPED[found[1]]

    return _ESCAPE.sub(one, name)
