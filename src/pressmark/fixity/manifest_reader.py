"""Manifests of digests, parsed strictly: see :mod:`pressmark.fixity.manifests` for their formats."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple

from pressmark.errors import AlgorithmError, ManifestError, quoted
from pressmark.fixity.algorithms import ALGORITHMS, algorithm_name, algorithm_names
from pressmark.fixity.manifests import FORMATS

__all__ = ["ManifestEntry", "manifest_format", "read_manifest"]

# Ample: an escaped path of 4,096 bytes and 21 digests.
MAX_LINE = 1 << 20  # 1 MiB

# Default algorithm of a coreutils manifest, by number of hex digits.
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
    """A file in a manifest.

    :ivar path: its name, as bytes
    :ivar digests: lower-case hex digests by algorithm name
    :ivar size: its size in bytes, if the manifest contains it
    :ivar mtime_ns: its modification time in nanoseconds since 1970, if the manifest contains it
    :ivar line: number of its first line in the manifest, from 1
    """

    path: bytes
    digests: dict[str, str]
    size: int | None = None
    mtime_ns: int | None = None
    line: int = 0


_COREUTILS = re.compile(rb"([0-9A-Fa-f]+) [ *](.+)", re.DOTALL)
_BSD = re.compile(rb"([A-Za-z0-9][A-Za-z0-9/_-]*) ?\((.+)\) ?= ?([0-9A-Fa-f]+)", re.DOTALL)
_ESCAPE = re.compile(rb"\\(.?)", re.DOTALL)
_UNESCAPED = {b"n": b"\n", b"r": b"\r", b"\\": b"\\"}
_HEX = re.compile(r"[0-9A-Fa-f]+")


def read_manifest(
    file: BinaryIO, source: str, algorithms: Sequence[str] | str | None = None, format: str | None = None
) -> Iterator[ManifestEntry]:
    """Parse a manifest from a binary stream, and yield its entries.

    Every line must be valid; empty lines are not allowed. Lines that start with ``#`` are comments, as in coreutils.
    Digests may be in upper or lower case, and are yielded in lower case.

    :param source: name of the manifest in messages
    :param algorithms: for a coreutils manifest, its algorithm (default: detected from the length of the digests); for
        other formats, the algorithms to yield
    :param format: format of the manifest (default: detected from its first line)
    :raises ManifestError: a line is malformed
    :raises AlgorithmError: an algorithm in ``algorithms`` is unknown
    :raises ValueError: ``format`` is unknown
    """
    if format is not None and format not in FORMATS:
        raise ValueError(f"format={format!r}: expected {', '.join(FORMATS)}")
    wanted = None if algorithms is None else algorithm_names(algorithms)
    return _entries(file, source, wanted, format)


def manifest_format(file: BinaryIO, source: str) -> str | None:
    """Return the format of a manifest by its first line that is not a comment; :data:`None` without one.

    :raises ManifestError: a line is too long
    """
    return next((_format_of(line) for _, line in _numbered(file, source) if not line.startswith(b"#")), None)


def _entries(
    file: BinaryIO, source: str, wanted: tuple[str, ...] | None, format: str | None
) -> Iterator[ManifestEntry]:
    held: ManifestEntry | None = None  # the next lines may be of the same file
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
            raise ManifestError(source, number, f"line longer than {MAX_LINE} bytes")
        yield number, line.removesuffix(b"\n")


def _format_of(line: bytes) -> str:
    if line.startswith(b"{"):
        return "json"
    return "bsd" if _BSD.fullmatch(line.removeprefix(b"\\")) and not _COREUTILS.fullmatch(line) else "coreutils"


def _coreutils_entry(line: bytes, number: int, wanted: tuple[str, ...] | None, length: int) -> ManifestEntry:
    found = _COREUTILS.fullmatch(line.removeprefix(b"\\"))
    if found is None:
        raise ValueError("expected digest, two spaces and name")
    digest = found[1].decode().lower()
    if length and len(digest) != length:
        raise ValueError(f"digest has {len(digest)} hex digits, earlier ones have {length}")
    algorithm = _algorithm_of_length(len(digest), wanted)
    return ManifestEntry(_unescaped(found[2]) if line.startswith(b"\\") else found[2], {algorithm: digest}, line=number)


def _algorithm_of_length(length: int, wanted: tuple[str, ...] | None) -> str:
    if wanted is None:
        if length not in BY_LENGTH:
            raise ValueError(f"no algorithm with {length} hex digits")
        return BY_LENGTH[length]
    fitting = [name for name in wanted if 2 * ALGORITHMS[name].size == length]
    if len(fitting) != 1:
        raise ValueError(f"digest of {length} hex digits is not {' or '.join(wanted)}")
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
        raise ValueError("invalid JSON") from None
    if repeated:
        # Parsers of JSON differ on which one is used.
        raise ValueError(f"duplicate key {quoted(repeated[0])}")
    if not isinstance(record, dict) or not isinstance(record.get("path"), str):
        raise ValueError('expected an object with "path"')
    digests = record.get("digests")
    if not isinstance(digests, dict) or not digests:
        raise ValueError('"digests" is not an object, or empty')
    found: dict[str, str] = {}
    for given, digest in digests.items():
        name = algorithm_name(given)
        if not isinstance(digest, str) or name in found:
            raise ValueError(f"digest {quoted(given)} is not a string, or a duplicate")
        found[name] = _digest(name, digest)
    for key in ("size", "mtime_ns"):
        value = record.get(key)
        if value is not None and type(value) is not int:
            raise ValueError(f'"{key}" is not an integer')
    if not record["path"] or "\0" in record["path"]:
        raise ValueError('"path" is not a valid file name')
    try:
        path = os.fsencode(record["path"])
    except UnicodeEncodeError:
        raise ValueError('"path" has an unpaired surrogate') from None
    return ManifestEntry(path, found, record.get("size"), record.get("mtime_ns"), number)


def _digest(algorithm: str, text: str) -> str:
    expected = 2 * ALGORITHMS[algorithm].size
    if len(text) != expected or not _HEX.fullmatch(text):
        raise ValueError(f"expected {expected} hex digits for {algorithm}")
    return text.lower()


def _unescaped(name: bytes) -> bytes:
    def one(found: re.Match[bytes]) -> bytes:
        if found[1] not in _UNESCAPED:
            raise ValueError(f"invalid escape {quoted(found[0])}")
        return _UNESCAPED[found[1]]

    return _ESCAPE.sub(one, name)
