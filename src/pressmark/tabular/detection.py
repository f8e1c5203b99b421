"""The format of a list by its name and first bytes; other files are refused.

A list is lines, CSV, TSV, JSON lines or Parquet; all but Parquet may be gzipped. A list of lines created on Windows has
a carriage return before each line feed, and possibly a byte-order mark. Both are probably not part of identifiers: the
caller decides with ``crlf``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any

from pressmark.tabular.guard import BOM, CRLF, UTF16, Crlf, FormatError, Guard, first_return, is_utf16

__all__ = ["CRLF", "Crlf", "FormatError", "ListStream", "format_of", "is_gzip", "open_list"]

# The number of bytes to check, and the number to wait for on a slow source without a line end.
_HEAD_BYTES = 1 << 16
_LEAST_BYTES = 512

_FORMATS = {
    ".txt": "lines",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}

_SPREADSHEET = "a spreadsheet; save the sheet as CSV, and select its column with --column"
_DOCUMENT = "a document; save the identifiers as text, one per line"
_ARCHIVE = "an archive; unpack it, and use the list in it"
_DATABASE = "a database; export the identifiers as CSV or lines"
_JSON = "JSON; convert it to JSON lines (jq -c '.[]'), and use --format jsonl and --column"
_MARKUP = "XML or HTML; export the identifiers as CSV or lines"
_TABLE = "a table in an unsupported format; convert it to Parquet or CSV"
_ZSTD = "compressed by zstd; decompress it (zstd -dc)"
_BZIP2 = "compressed by bzip2; decompress it (bzip2 -dc)"
_XZ = "compressed by xz; decompress it (xz -dc)"
_COMPRESSED = "compressed; decompress it, or compress it with gzip"

_FOREIGN_NAMES = {
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers"), _SPREADSHEET),
    **dict.fromkeys((".docx", ".doc", ".odt", ".rtf", ".pdf", ".epub", ".ps"), _DOCUMENT),
    **dict.fromkeys((".zip", ".7z", ".rar", ".tar", ".tgz", ".tbz2", ".txz", ".jar", ".iso"), _ARCHIVE),
    **dict.fromkeys((".sqlite", ".sqlite3", ".db", ".mdb", ".accdb", ".duckdb"), _DATABASE),
    **dict.fromkeys((".xml", ".html", ".htm"), _MARKUP),
    **dict.fromkeys((".arrow", ".feather", ".avro", ".orc"), _TABLE),
    **dict.fromkeys((".lz4", ".br", ".z", ".lz", ".lzma", ".sz"), _COMPRESSED),
    ".json": _JSON,
    ".zst": _ZSTD,
    ".bz2": _BZIP2,
    ".xz": _XZ,
}
_FOREIGN_BYTES = (
    (rb"PK(?:\x03\x04|\x05\x06)", "a zip archive, as spreadsheets and documents are; save the identifiers as CSV"),
    (rb"%PDF-|\{\\rtf|%!PS", _DOCUMENT),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a Microsoft Office document or spreadsheet; save the identifiers as CSV"),
    (rb"\x28\xb5\x2f\xfd", _ZSTD),
    (rb"\xfd7zXZ\x00", _XZ),
    (rb"BZh[1-9]1AY&SY", _BZIP2),
    (rb"\x1f\x8b\x08", "gzip data; rename it to end in .gz, or decompress it (gunzip -c)"),
    (rb"\x1f\x9d|\x04\x22\x4d\x18", _COMPRESSED),
    (rb"7z\xbc\xaf\x27\x1c|Rar!\x1a\x07", _ARCHIVE),
    (rb"SQLite format 3\x00", _DATABASE),
    # An identifier may start with the same letters.
    (rb"PAR1(?=[^\n\r\x20-\x7e])", "Parquet; use --format parquet and --column, with a file, not a pipe"),
    (rb"ARROW1\x00\x00|Obj\x01|\x89HDF\r\n", _TABLE),
    (rb"<\?xml[ \t]|<!DOCTYPE html", _MARKUP),
)
_FOREIGN = tuple((re.compile(pattern), what) for pattern, what in _FOREIGN_BYTES)
_QUOTED = re.compile(rb'"[^"]*+"')
# A JSON document of several lines, or an array.
_JSON_BEGIN = re.compile(rb"\s*(?:[\[{]\s*$|\[\s*[\"{])")


def is_gzip(path: str | os.PathLike[str]) -> bool:
    """Return whether the name of a file ends in ``.gz``."""
    return os.fspath(path).lower().endswith(".gz")


def format_of(path: str | os.PathLike[str]) -> str | None:
    """Return the format of a list by its name: ``lines``, ``csv``, ``tsv``, ``jsonl`` or ``parquet``.

    :return: :data:`None` for any other name
    :raises FormatError: the name is that of another kind of file
    """
    name = os.path.basename(os.fspath(path)).lower().removesuffix(".gz")
    ending = os.path.splitext(name)[1]
    if ending in _FOREIGN_NAMES:
        raise FormatError(f"{ending} is {_FOREIGN_NAMES[ending]}")
    return _FORMATS.get(ending)


class ListStream:
    """The bytes of a list whose first bytes were checked.

    :param source: a binary stream
    :param head: bytes that were read already
    :param strip: remove the carriage return before each line feed and at the end, and byte-order marks at the start of
        lines
    :param guard: checks all bytes
    :ivar name: that of the source, or empty
    :ivar head: the first bytes
    :ivar bom: the byte-order mark that was removed, or ``b""``
    :ivar guarded: whether there is a guard
    """

    def __init__(
        self, source: Any, head: bytes = b"", *, strip: bool = False, bom: bytes = b"", guard: Guard | None = None
    ) -> None:
        # read1 returns the bytes in a pipe instead of waiting for more.
        self._read = getattr(source, "read1", source.read)
        self.name: str = getattr(source, "name", "")
        self.head = head
        self.bom = bom
        self.guarded = guard is not None
        self._check = guard.check if guard is not None else None
        self._strip = strip
        self._first = True
        self._ended = False
        self._unclear = b""  # a carriage return, or the start of a byte-order mark, at the end of what was read
        self._line_start = True
        self._held = self._passed(head) if head else b""

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``; ``b""`` only at the end.

        :raises FormatError: the list contains what the guard refuses
        """
        held, first = self._held, self._first
        self._first = False
        if not self._strip and not held:
            return self._passed(self._read(size))
        # Full blocks if the source has them: threads share only full blocks. Bytes that were read ahead from a pipe are
        # returned at once.
        while self._strip and len(held) < size and not self._ended and not (first and held):
            count = size - len(held)
            data = self._read(count)
            if data is None:
                raise BlockingIOError("the source is non-blocking; use a blocking stream")
            self._ended = not data
            held += self._passed(data)
            if held and len(data) < count:
                break
        self._held = held[size:]
        return held[:size]

    read1 = read

    def _passed(self, data: bytes) -> bytes:
        """Return what remains of the next bytes, after checking it."""
        ended = not data
        if self._strip:
            data = self._stripped(data)
        # Nothing is left of a carriage return whose next byte is unknown; that is not the end.
        if self._check is not None and data is not None and (data or ended):
            self._check(data)
            if ended and data:
                self._check(b"")
        return data

    def _stripped(self, data: bytes) -> bytes:
        if not data:
            return self._unclear.removesuffix(b"\r")
        data = (self._unclear + data).replace(b"\r\n", b"\n")
        if b"\xef" in data:
            data = data.replace(b"\n" + BOM, b"\n")
            if self._line_start:
                data = data.removeprefix(BOM)
        self._unclear = b""
        for part in (b"\r", BOM[:2], BOM[:1]):
            before = data.removesuffix(part)
            if before != data and (part == b"\r" or (before[-1:] == b"\n" if before else self._line_start)):
                data, self._unclear = before, part
                break
        self._line_start = data.endswith(b"\n") if data else self._line_start
        return data


def open_list(
    source: Any,
    format: str = "lines",
    *,
    delimiter: bytes | None = b"\n",
    crlf: Crlf | None = None,
    json_lines: bool = True,
    refuse: Callable[[str], Exception] = FormatError,
) -> ListStream:
    r"""Return the stream of a list, after checking its first bytes; the stream checks the others.

    :param source: a binary stream, decompressed
    :param format: ``lines``, ``csv``, ``tsv`` or ``jsonl``; a byte-order mark is removed from all but lines
    :param delimiter: the end of a line: ``b"\n"`` or ``b"\0"``; :data:`None` for NUL if the first bytes contain one
    :param crlf: for lines: ``strip`` carriage returns before line feeds and byte-order marks at the start of lines, or
        ``keep`` all bytes between line feeds as part of identifiers
    :param json_lines: refuse lines that are JSON
    :param refuse: creates the exception of the stream, from a message that does not name the file
    :raises FormatError: the file is not a list; or lines have carriage returns or a byte-order mark, without ``crlf``
    :raises ValueError: ``crlf`` is unknown
    """
    if crlf is not None and crlf not in CRLF:
        raise ValueError(f"crlf={crlf!r}: expected {' or '.join(CRLF)}")
    read = getattr(source, "read1", source.read)
    head = _first_bytes(read, delimiter or b"\n")
    _refuse_foreign(head, delimiter, crlf)
    bom = BOM if head.startswith(BOM) else b""
    if format != "lines":
        _refuse_returns(head, format)
        guard = Guard(format, start=len(bom))
        stream = ListStream(source, head.removeprefix(BOM), bom=bom, guard=guard)
        guard.refuse = refuse
        return stream
    if delimiter is None:
        delimiter = b"\0" if b"\0" in head else b"\n"
    _refuse_lines(head, delimiter, crlf)
    if json_lines:
        _refuse_json(head.partition(delimiter)[0])
    if crlf == "keep":
        return ListStream(source, head)
    guard = Guard(format, delimiter, crlf)
    stream = ListStream(
        source, head.removeprefix(bom), strip=delimiter == b"\n" and crlf == "strip", bom=bom, guard=guard
    )
    guard.refuse = refuse
    return stream


def _first_bytes(read: Any, delimiter: bytes) -> bytes:
    """Return the first bytes; from a slow source, whole lines without waiting for more."""
    head = b""
    while len(head) < _LEAST_BYTES and delimiter not in head and (more := read(_HEAD_BYTES)):
        head += more
    if head.endswith(b"\r"):
        head += read(_HEAD_BYTES) or b""
    return head


def _refuse_foreign(head: bytes, delimiter: bytes | None, crlf: str | None) -> None:
    for pattern, what in _FOREIGN:
        if pattern.match(head):
            raise FormatError(f"content is {what}")
    if crlf == "keep" and delimiter == b"\0":
        return  # names on disks may be any bytes
    # Identifiers may start with these bytes; text in UTF-16 has a NUL in every line end.
    marked = head[:2] in (b"\xff\xfe", b"\xfe\xff") and b"\0" in head
    if marked or is_utf16(head, without_line_end=delimiter == b"\n" and crlf != "keep"):
        raise FormatError(f"content is {UTF16}")


def _refuse_returns(head: bytes, format: str) -> None:
    """Refuse a table whose rows end with carriage returns only."""
    text = _QUOTED.sub(b"", head) if format == "csv" and b"\r" in head else head
    if b"\n" not in text and first_return(text, open_end=True) >= 0:
        raise FormatError("rows end with carriage returns only; convert them to line feeds")


def _refuse_lines(head: bytes, delimiter: bytes, crlf: str | None) -> None:
    """Refuse bytes that are probably not part of identifiers, unless ``crlf`` decides."""
    if crlf == "keep":
        return
    ends = delimiter == b"\n"
    if ends and b"\0" in head:
        line = head[: head.index(b"\0")].count(b"\n") + 1
        raise FormatError(f"NUL byte in line {line}; use -0 if NUL ends identifiers, --crlf keep if they contain it")
    if ends and b"\n" not in head and b"\r" in head[:-1]:
        what = "lines end with carriage returns only"
        raise FormatError(f"{what}; convert them to line feeds, or use --crlf keep to keep them in identifiers")
    what = " and ".join(
        part
        for part, found in (
            ("byte-order mark at the start", head.startswith(BOM)),
            ("carriage return at the end of lines", ends and (b"\r\n" in head or head.endswith(b"\r"))),
        )
        if found
    )
    if what and crlf is None:
        raise FormatError(f"{what}; use --crlf strip to remove it, --crlf keep to keep it in identifiers")


def _refuse_json(line: bytes) -> None:
    if _JSON_BEGIN.match(line):
        raise FormatError(f"content is {_JSON}, or --format lines")
    if line.lstrip().startswith(b'{"'):
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            return
        raise FormatError("content is JSON lines; use --format jsonl and --column, or --format lines")
