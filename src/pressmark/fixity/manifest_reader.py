"""Lists of checksums, read as other programs write them: see :mod:`pressmark.fixity.manifests` for their formats.

Accepted as well: carriage returns before line feeds, a byte-order mark, UTF-16 with a byte-order mark, gzip, comments
(``#`` or ``;``), blank lines, and one space or TAB before the name. Other formats are refused by name.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, NamedTuple, Self

from pressmark.errors import AlgorithmError, ManifestError, TableError, quoted
from pressmark.fixity.algorithms import ALGORITHMS, algorithm_name, algorithm_names, algorithms_in_name
from pressmark.fixity.foreign_lists import foreign_list
from pressmark.fixity.manifests import FORMATS
from pressmark.fixity.outcomes import Readable
from pressmark.fs.gzipped import MAGIC, GunzippedStream
from pressmark.option_names import option

__all__ = ["BY_LENGTH", "ManifestEntry", "ManifestReader", "is_comment", "read_manifest"]

# Ample: an escaped path of 4,096 bytes and 21 digests.
MAX_LINE = 1 << 20  # 1 MiB
BLOCK = 1 << 16  # 64 KiB

# The usual algorithm by number of hex digits.
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

    :ivar path: its name, as :func:`os.fsdecode` returns it
    :ivar digests: lower-case hex digests by algorithm name
    :ivar size: its size in bytes, if the manifest contains it
    :ivar mtime_ns: its modification time in nanoseconds since 1970, if the manifest contains it
    :ivar line: number of its first line in the manifest, from 1
    """

    path: str
    digests: dict[str, str]
    size: int | None = None
    mtime_ns: int | None = None
    line: int = 0


_COREUTILS = re.compile(rb"[ \t]*(\\?)([0-9A-Fa-f]+)[ \t](.+)", re.DOTALL)
_BSD = re.compile(rb"[ \t]*(\\?)([A-Za-z0-9][A-Za-z0-9/_-]*) ?\((.+)\) ?= ?([0-9A-Fa-f]+)", re.DOTALL)
_CKSUM = re.compile(rb"[0-9]{1,10} [0-9]+ .+", re.DOTALL)
_COMMENTS = (b"#", b";")
_ESCAPE = re.compile(rb"\\(.?)", re.DOTALL)
_UNESCAPED = {b"n": b"\n", b"r": b"\r", b"\\": b"\\"}
_HEX = re.compile(r"[0-9A-Fa-f]+")


def read_manifest(
    file: BinaryIO, source: str, algorithms: Sequence[str] | str | None = None, format: str | None = None
) -> ManifestReader:
    """Parse a list of checksums from a binary stream, and yield its entries.

    Comments and blank lines are passed over, and counted; every other line must be valid. Digests may be in upper or
    lower case, and are yielded in lower case. In coreutils lines, the algorithm is that of ``algorithms`` whose digests
    have this length, then the one that ``source`` names (``SHA256SUMS``, ``x.md5``), then the usual one of this length.

    :param source: name of the list, also in messages
    :param algorithms: the algorithms to yield; lines and digests of others are passed over (default: all)
    :param format: format of the list (default: detected from its first line)
    :raises ManifestError: a line is malformed, the list is in another format, or contains no digest of ``algorithms``
    :raises AlgorithmError: an algorithm in ``algorithms`` is unknown
    :raises ValueError: ``format`` is unknown
    """
    return ManifestReader(file, source, algorithms, format)


class ManifestReader:
    """The entries of a list of checksums, an iterator: see :func:`read_manifest`.

    :param with_others: also yield files that have only digests of other algorithms; their entries have no digests
    :ivar format: format of the list; :data:`None` before the first entry, unless it was given
    :ivar passed_over: number of comments, blank lines and entries of other algorithms so far
    :ivar is_guessed: whether only the length of its digests tells the algorithm
    :ivar has_others: whether digests of algorithms that are not wanted were left out so far
    """

    def __init__(
        self,
        file: Readable,
        source: str,
        algorithms: Sequence[str] | str | None = None,
        format: str | None = None,
        *,
        with_others: bool = False,
    ) -> None:
        if format is not None and format not in FORMATS:
            raise ValueError(f"format={format!r}: expected {', '.join(FORMATS)}")
        self.format = format
        self.passed_over = 0
        self.is_guessed = False
        self.has_others = False
        self._source = source
        self._wanted = None if algorithms is None else algorithm_names(algorithms)
        self._with_others = with_others
        self._length = 0  # of the digests of a coreutils list
        self._algorithm: str | None = None  # by this length
        # The name begins after one character, as BSD programs write it; not known before the first line.
        self._one_space: bool | None = None
        self._lines = _Lines(file, source)
        entries = self._consecutive(self._lines)
        self._entries = entries if self._wanted is None else self._selected(entries, self._wanted)

    @property
    def is_plain(self) -> bool:
        """Whether the list is neither compressed nor UTF-16; known after the first entry, like :attr:`has_crlf`."""
        return self._lines.is_plain

    @property
    def has_crlf(self) -> bool:
        """Whether the lines end with CR LF."""
        return self._lines.has_crlf

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> ManifestEntry:
        return next(self._entries)

    def _selected(self, entries: Iterator[ManifestEntry], wanted: Sequence[str]) -> Iterator[ManifestEntry]:
        found = False
        other: tuple[int, str] | None = None  # line and algorithms of the first entry that is not wanted
        for entry in entries:
            digests = {name: digest for name, digest in entry.digests.items() if name in wanted}
            self.has_others = self.has_others or len(digests) < len(entry.digests)
            if digests:
                found = True
                yield entry if len(digests) == len(entry.digests) else entry._replace(digests=digests)
                continue
            self.passed_over += 1
            if other is None:
                length = len(next(iter(entry.digests.values())))
                what = f"digest of {length} hex digits" if self.format == "coreutils" else ", ".join(entry.digests)
                other = entry.line, f"{what} is not {' or '.join(wanted)}"
            if self._with_others:
                yield entry._replace(digests={})
        if other is not None and not found:
            raise ManifestError(self._source, *other)

    def _consecutive(self, lines: _Lines) -> Iterator[ManifestEntry]:
        """Yield the entries; consecutive lines with different digests of one file are one entry, which is read once."""
        held: ManifestEntry | None = None
        for number, line in lines:
            if is_comment(line):
                self.passed_over += 1
                continue
            self.format = self.format or _format_of(line)
            try:
                if b"\0" in line:
                    raise ValueError("unexpected NUL")
                if self.format == "json":
                    entry = _json_entry(line, number)
                elif self.format == "bsd":
                    entry = _bsd_entry(line, number)
                else:
                    entry = self._coreutils_entry(line, number)
            except (ValueError, AlgorithmError) as error:
                raise ManifestError(self._source, number, foreign_list(line) or str(error)) from None
            if self.format == "json":
                yield entry
            elif held is not None and held.path == entry.path and not held.digests.keys() & entry.digests.keys():
                held.digests.update(entry.digests)
            else:
                if held is not None:
                    yield held
                held = entry
        if held is not None:
            yield held

    def _coreutils_entry(self, line: bytes, number: int) -> ManifestEntry:
        found = _COREUTILS.fullmatch(line)
        if found is None:
            raise ValueError("expected digest, two spaces and name")
        mark, digits, name = found.groups()
        if self._one_space is None:
            self._one_space = name[:1] not in (b" ", b"*") or name == b"*"
            if self._one_space and _CKSUM.fullmatch(line):
                raise ValueError("expected digest, two spaces and name")
        if not self._one_space and name[:1] in (b" ", b"*"):
            name = name[1:]
            if not name:
                raise ValueError("expected digest, two spaces and name")
        digest = digits.decode().lower()
        if len(digest) != self._length:
            if self._length and self._wanted is None:
                what = f"digest has {len(digest)} hex digits, earlier ones have {self._length}"
                raise ValueError(f"{what}; choose one of the algorithms ({option('algorithms')})")
            self._length = len(digest)
            self._algorithm = self._algorithm_of_length(len(digest))
        assert self._algorithm is not None
        return ManifestEntry(os.fsdecode(_unescaped(name) if mark else name), {self._algorithm: digest}, line=number)

    def _algorithm_of_length(self, length: int) -> str:
        if self._wanted is not None:
            fitting = _of_length(self._wanted, length)
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                raise ValueError(f"digest of {length} hex digits is not {' or '.join(self._wanted)}")
        else:
            fitting = _of_length(algorithms_in_name(self._source), length)
            if fitting:
                return fitting[-1]  # "sha256.md5" contains the md5 of a list
            self.is_guessed = True
        if length not in BY_LENGTH:
            raise ValueError(f"no algorithm with {length} hex digits")
        return BY_LENGTH[length]


class _Lines:
    """The lines of a list in any encoding, without their ends, with their numbers from 1: an iterable."""

    def __init__(self, file: Readable, source: str) -> None:
        self._file = file
        self._source = source
        self._number = 0
        self.is_plain = True
        self.has_crlf = False

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        try:
            yield from self._numbered()
        except TableError as error:
            raise self._error(error.reason) from None
        except UnicodeError as error:
            raise self._error(f"invalid UTF-16: {error}") from None

    def _error(self, reason: str) -> ManifestError:
        return ManifestError(self._source, self._number + 1, reason)

    def _numbered(self) -> Iterator[tuple[int, bytes]]:
        blocks = self._decoded()
        rest = next(blocks, b"")
        # A name may end with a carriage return, as "Icon" of macOS does; then most lines do not.
        strips = 2 * rest.count(b"\r\n") > rest.count(b"\n") or (b"\n" not in rest and rest.endswith(b"\r"))
        self.has_crlf = strips
        while rest:
            *lines, rest = rest.split(b"\n")
            if len(lines[0] if lines else rest) > MAX_LINE:  # others are shorter than a block
                raise self._error(f"line longer than {MAX_LINE} bytes")
            for line in lines:
                self._number += 1
                yield self._number, line.removesuffix(b"\r") if strips else line
            block = next(blocks, None)
            if block is None:
                break
            rest += block
        if rest:
            self._number += 1
            yield self._number, rest.removesuffix(b"\r") if strips else rest

    def _decoded(self) -> Iterator[bytes]:
        """Yield the text in blocks, decompressed and in UTF-8, without byte-order mark."""
        head, read = _first(self._file.read)
        self.is_plain = not head.startswith((MAGIC, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        if head.startswith(MAGIC):
            head, read = _first(GunzippedStream(_Joined(head, read), self._source).read)
        if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
            raise self._error("UTF-32; convert it to UTF-8 (iconv -f UTF-32 -t UTF-8)")
        if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            decoder = codecs.getincrementaldecoder("utf-16")()
            while head:
                text = decoder.decode(head).encode()
                if text:
                    yield text
                head = read(BLOCK)
            decoder.decode(b"", True)
            return
        block = head.removeprefix(codecs.BOM_UTF8)
        while head:
            yield block
            block = head = read(BLOCK)


class _Joined:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, read: Any) -> None:
        self._head = head
        self._rest = read

    def read(self, size: int) -> bytes:
        data: bytes = self._head or self._rest(size)
        self._head = b""
        return data


def _first(read: Any) -> tuple[bytes, Any]:
    """Return the first block of a stream, and the function that reads the others."""
    head: bytes = b""
    while len(head) < BLOCK and (block := read(BLOCK)):  # a pipe returns what it has
        head += block
    return head, read


def is_comment(line: bytes) -> bool:
    """Return whether a line of a list is blank or a comment."""
    return not line or line.isspace() or line[:1] in _COMMENTS


def _of_length(names: Sequence[str], length: int) -> list[str]:
    return [name for name in names if 2 * ALGORITHMS[name].size == length]


def _format_of(line: bytes) -> str:
    if line.lstrip().startswith(b"{"):
        return "json"
    digest = _COREUTILS.fullmatch(line)
    return "bsd" if _BSD.fullmatch(line) and not (digest and len(digest[2]) in BY_LENGTH) else "coreutils"


def _bsd_entry(line: bytes, number: int) -> ManifestEntry:
    found = _BSD.fullmatch(line)
    if found is None:
        raise ValueError("expected ALGORITHM (name) = digest")
    mark, tag, name, digits = found.groups()
    algorithm = algorithm_name(tag.decode())
    digest = _digest(algorithm, digits.decode())
    return ManifestEntry(os.fsdecode(_unescaped(name) if mark else name), {algorithm: digest}, line=number)


def _json_entry(line: bytes, number: int) -> ManifestEntry:
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
        # Surrogates may stand for bytes that are UTF-8.
        path = os.fsdecode(os.fsencode(record["path"]))
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
