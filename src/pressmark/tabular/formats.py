"""The format of a list by its name and first bytes; other files are refused.

A list is lines, CSV, TSV, JSON lines or Parquet; all but Parquet may be gzipped. A list of lines created on Windows has
a carriage return before each line feed, and possibly a byte-order mark. Both are probably not part of identifiers: the
caller decides with ``crlf``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, Literal

from pressmark.errors import FormatError, TableError, quoted
from pressmark.fs.gzipped import is_gzip
from pressmark.option_names import option

__all__ = [
    "BLOCK_BYTES",
    "CRLF",
    "FORMATS",
    "Crlf",
    "Guard",
    "ListStream",
    "check_output",
    "chosen_format",
    "first_return",
    "format_of",
    "is_utf16",
    "open_list",
]

Crlf = Literal["strip", "keep"]
CRLF = ("strip", "keep")
BOM = b"\xef\xbb\xbf"

UTF16 = "UTF-16; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)"

# Four letters or digits of UTF-16; text with single NUL bytes does not look like this.
_UTF16_RUN = re.compile(rb"(?:[0-9A-Za-z]\0){4}|(?:\0[0-9A-Za-z]){4}")
# A carriage return that is not part of a line end; the byte after the last one of a block is not known yet.
_BARE = re.compile(rb"\r[^\r\n]")
_TWO_BARE = re.compile(rb"\r[^\r\n][^\n]*?\r[^\r\n]")

# The number of bytes to check, and the number to wait for on a slow source without a line end.
_HEAD_BYTES = 1 << 16
_LEAST_BYTES = 512
BLOCK_BYTES = 1 << 20  # 1 MiB; a pipe yields what it has

#: The names of the formats, for messages.
FORMATS = {"lines": "lines", "csv": "CSV", "tsv": "TSV", "jsonl": "JSON lines", "parquet": "Parquet"}
_SUFFIXES = {
    ".txt": "lines",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}

_SPREADSHEET = "a spreadsheet; save the sheet as CSV, and select its column ({column})"
_DOCUMENT = "a document; save the identifiers as text, one per line"
_ARCHIVE = "an archive; unpack it, and use the list in it"
_DATABASE = "a database; export the identifiers as CSV or lines"
_JSON = "JSON; convert it to JSON lines (jq -c '.[]'), and select its key ({jsonl}, {column})"
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
    (rb"PAR1(?=[^\n\r\x20-\x7e])", "Parquet; select its column ({parquet}, {column}), and read a file, not a pipe"),
    (rb"ARROW1\x00\x00|Obj\x01|\x89HDF\r\n", _TABLE),
    (rb"<\?xml[ \t]|<!DOCTYPE html", _MARKUP),
)
_FOREIGN = tuple((re.compile(pattern), what) for pattern, what in _FOREIGN_BYTES)
# A quoted field; a quote inside another field is data.
_QUOTED = re.compile(rb'(?<![^\n\r,;|\t])"(?:[^"]|"")*+"')
# The first line by which Excel knows the separator.
_EXCEL = re.compile(rb"(?i)(?:\xef\xbb\xbf)?(sep=[^\r\n])\r?(?:\n|$)")
# A JSON document of several lines, or an array.
_JSON_BEGIN = re.compile(rb"\s*(?:[\[{]\s*$|\[\s*[\"{])")


def format_of(path: str | os.PathLike[str]) -> str | None:
    """Return the format of a list by its name: ``lines``, ``csv``, ``tsv``, ``jsonl`` or ``parquet``.

    :return: :data:`None` for any other name
    :raises FormatError: the name is that of another kind of file
    """
    name = os.path.basename(os.fspath(path)).lower().removesuffix(".gz")
    ending = os.path.splitext(name)[1]
    if ending in _FOREIGN_NAMES:
        raise FormatError(os.fspath(path), f"{ending} is {_with_options(_FOREIGN_NAMES[ending])}")
    return _SUFFIXES.get(ending)


def _with_options(text: str) -> str:
    """Return a text with the options that it advises."""
    formats = {name: option("format", name) for name in FORMATS}
    return text.format(column=option("column"), **formats)


def chosen_format(
    name: str,
    *,
    column: str | int | None,
    format: str | None = None,
    header: bool | None = None,
    result: str | None = None,
    delimiter: str | None = None,
    crlf: Crlf | None = None,
    null: bool = False,
    both: bool = False,
) -> str:
    """Return the format of a file to map; lines if no column is chosen.

    :param name: the file; its suffix decides if ``format`` is :data:`None`
    :param column: the name of the column, or its number from 1
    :param result: the name of the new column
    :raises FormatError: the options contradict each other
    """
    for name_of, given in (("null", null), ("both", both)):
        if given and column is not None:
            raise FormatError("", f"{option(name_of, True)} cannot be combined with {option('column')}")
    chosen = format or format_of(name)
    if column is None:
        if delimiter is not None:
            raise FormatError("", f"{option('delimiter')} needs {option('column')}")
        if chosen not in (None, "lines"):
            how = f"use {option('format', 'lines')} for a list"
            raise FormatError(name, f"{FORMATS[chosen]} needs {option('column')}; {how}")
        if header is not None:
            raise FormatError("", f"{option('header', header)} needs {option('column')}")
        if result is not None:
            raise FormatError("", f"{option('result')} needs {option('column')}")
        return "lines"
    if delimiter is not None and format is None and chosen in (None, "lines"):
        chosen = "csv"
    if chosen is None:
        raise FormatError(name, f"unknown table format; {_choose_format()}")
    if chosen == "lines":
        raise FormatError(name, f"lines have no columns; {_choose_format()}")
    if chosen == "parquet" and is_gzip(name):
        raise FormatError(name, "gzipped Parquet is not supported; decompress it first")
    if crlf is not None:
        raise FormatError("", f"{option('crlf')} applies to lines only, not to {FORMATS[chosen]}")
    if delimiter is not None and chosen not in ("csv", "tsv"):
        raise FormatError("", f"{option('delimiter')} applies to CSV only; {name} is {FORMATS[chosen]}")
    _check_column(chosen, column, header, result)
    return chosen


def _choose_format() -> str:
    return f"choose csv, tsv, jsonl or parquet ({option('format')})"


def _check_column(format: str, column: str | int, header: bool | None, result: str | None) -> None:
    """Refuse options of the column that contradict each other."""
    if column == 0:
        raise FormatError("", f"{option('column', 0)}: columns are numbered from 1")
    if format in ("parquet", "jsonl") and header is not None:
        raise FormatError("", f"{option('header', header)} applies to CSV and TSV only")
    if format == "jsonl" and isinstance(column, int):
        what = "JSON lines have keys, not numbered columns; use the name of a key"
        raise FormatError("", f"{option('column', column)}: {what}")
    if header is False and isinstance(column, str):
        raise FormatError("", f"column {quoted(column)}: columns have no names without a header row; use a number")
    if result is None:
        return
    if format in ("csv", "tsv") and isinstance(column, int) and not header:
        what = "the new column has no name without a header row"
        raise FormatError("", f"{option('result')}: {what}; use {option('header', True)} if there is one")
    if not result:
        raise FormatError("", "name of the new column is empty")
    if format == "tsv" and any(character in result for character in "\t\n\r"):
        raise FormatError("", f"name of the new column {quoted(result)}: not allowed in a TSV field")
    if format in ("parquet", "jsonl") and re.search("[\ud800-\udfff]", result):
        raise FormatError("", f"name of the new column {quoted(result)}: must be UTF-8 in {FORMATS[format]}")


def check_output(name: str, format: str) -> None:
    """Check that the suffix of an output file agrees with the format of the input.

    :raises FormatError: it is that of another format
    """
    try:
        target = format_of(name)
    except FormatError:
        raise FormatError(name, "unsupported output format; use .txt, .csv, .tsv, .jsonl or .parquet") from None
    if format == "lines":
        if target in ("jsonl", "parquet"):
            raise FormatError(name, f"{FORMATS[target]} output needs {option('column')}")
    elif target not in (None, format) and (target != "lines" or format == "parquet"):
        what = f"{FORMATS[format]} cannot be written as {FORMATS[target or format]}"
        raise FormatError(name, f"{what}; convert the table with DuckDB or pyarrow")
    elif format == "parquet" and is_gzip(name):
        raise FormatError(name, "Parquet output cannot be gzipped; omit .gz")


def _convert() -> str:
    return f"convert them to line feeds, or use {option('crlf', 'keep')} to keep them"


def _choose_nul() -> str:
    return f"use {option('null', True)} if items end with NUL, {option('crlf', 'keep')} if they contain it"


def is_utf16(head: bytes, *, without_line_end: bool) -> bool:
    """Return whether the first bytes of a file are UTF-16 without a byte-order mark.

    :param without_line_end: whether letters alone count; a list of one-letter items that end with NUL looks the same
    """
    if b"\0" not in head:
        return False
    even = head[: len(head) & ~1]
    for codec, letters in (("utf-16-le", head[::2]), ("utf-16-be", head[1::2])):
        if letters.count(b"\0") * 8 > head.count(b"\0"):
            continue
        text = even.decode(codec, "replace")
        # Single NUL bytes among other text leave few letters.
        if not re.search("[0-9A-Za-z]", text) or sum(map(str.isascii, text)) * 4 < len(text):
            continue
        if "\n" in text or "\r" in text or (without_line_end and len(text) > 1 and text.isascii() and even == head):
            return True
    return False


def first_return(text: bytes, *, open_end: bool = False) -> int:
    """Return the index of the first carriage return that was meant as the end of a line; -1 without one.

    A single one inside a line is data. Two in a line are line ends, and so is one in a last line without line feed.

    :param text: whole lines
    :param open_end: the last line has no line feed
    """
    if b"\r" not in text or not _BARE.search(text):
        return -1
    found = _TWO_BARE.search(text) or (_BARE.search(text, text.rfind(b"\n") + 1) if open_end else None)
    return found.start() if found else -1


class Guard:
    """Checks the blocks of a list, in order.

    Carriage returns, byte-order marks and UTF-16 would become part of identifiers and lead to wrong paths. The first
    bytes of a list show most of them before anything is written. The guard checks all blocks, because joined files
    differ in the middle.

    :param name: the name of the list in messages
    :param format: ``lines``, ``csv``, ``tsv`` or ``jsonl``
    :param delimiter: the end of a line
    :param crlf: for lines: whether carriage returns before line feeds and byte-order marks at the start of lines were
        removed (``strip``)
    :param start: the offset of the first block in the file
    :ivar error: the class of its errors: :class:`FormatError` for the first bytes
    """

    def __init__(
        self, name: str, format: str, delimiter: bytes = b"\n", crlf: Crlf | None = None, start: int = 0
    ) -> None:
        self.error: type[TableError] = FormatError
        self._name = name
        self._feeds = format == "lines" and delimiter == b"\n"
        self._returns = self._feeds and crlf is None
        self._table = format != "lines"
        self._delimiter = delimiter
        keep = f"{option('crlf', 'keep')} to keep it"
        self._advice = f"use {keep}" if crlf else f"use {option('crlf', 'strip')} to remove it, {keep}"
        self._read = start
        self._last = delimiter  # the last bytes, which may begin a byte-order mark
        self._line = b""  # the carriage returns of the last line

    def check(self, data: bytes) -> None:
        """Check a block; an empty one is the end of the list.

        :raises TableError: it contains bytes that are no part of an identifier
        """
        if (b"\r" in data or self._line) and self._feeds:
            self._check_returns(data)
        if b"\0" in data:
            self._check_nul(data)
        if b"\xef" in data or b"\xef" in self._last:
            self._check_mark(data)
        self._last = (self._last + data)[-3:] if len(data) < 3 else data[-3:]
        self._read += len(data)

    def _check_returns(self, data: bytes) -> None:
        text = self._line + data
        found = text.find(b"\r\n") if self._returns else -1
        if found >= 0 or (self._returns and not data and text.endswith(b"\r")):
            raise self.error(self._name, f"carriage return at the end of a line, {self._near(found)}; {self._advice}")
        found = first_return(text, open_end=not data)
        if found >= 0:
            what = f"lines end with carriage returns only, {self._near(found)}"
            raise self.error(self._name, f"{what}; {_convert()}")
        last = text[text.rfind(b"\n") + 1 :]
        self._line = (b"\r." if _BARE.search(last) else b"") + last[-1:] * last.endswith(b"\r")

    def _check_nul(self, data: bytes) -> None:
        if self._feeds:
            found = f"unexpected NUL, {self._near(data.index(0))}"
            raise self.error(self._name, f"{found}; {_choose_nul()}")
        if self._table and (run := _UTF16_RUN.search(data)):
            what = f"UTF-16 inside the file, {self._near(run.start())}"
            raise self.error(self._name, f"{what}; convert each part to UTF-8")

    def _check_mark(self, data: bytes) -> None:
        # A mark inside a line of a list was the start of a file, joined to one without a last line end. In tables it
        # may be part of a text.
        found = (self._last + data).find(BOM if self._feeds else self._delimiter + BOM)
        if found >= 0:
            what = f"byte-order mark, {self._near(found)}, as in joined files"
            raise self.error(self._name, f"{what}; {'remove it' if self._table else self._advice}")

    def _near(self, index: int) -> str:
        return f"near byte {self._read + max(0, index):,}"


class ListStream:
    """The bytes of a list whose first bytes were checked.

    :param source: a binary stream
    :param name: its name in messages
    :param head: bytes that were read already
    :param strip: remove the carriage return before each line feed and at the end, and byte-order marks at the start of
        lines
    :param guard: checks all bytes
    :ivar name: the name of the list in messages
    :ivar bytes_read: the number of bytes read
    :ivar head: the first bytes
    :ivar bom: the byte-order mark that was removed, or ``b""``
    :ivar guarded: whether there is a guard
    """

    def __init__(
        self,
        source: Any,
        name: str,
        head: bytes = b"",
        *,
        strip: bool = False,
        bom: bytes = b"",
        guard: Guard | None = None,
    ) -> None:
        # read1 returns the bytes in a pipe instead of waiting for more.
        self._read = getattr(source, "read1", source.read)
        self.name = name
        self.bytes_read = len(bom) + len(head)
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
        if guard is not None:
            guard.error = TableError

    def read(self, size: int) -> bytes:
        """Return the next bytes, at most ``size``; ``b""`` only at the end.

        :raises TableError: the list contains bytes that the guard refuses
        """
        held, first = self._held, self._first
        self._first = False
        if not self._strip and not held:
            data = self._read(size)
            self.bytes_read += len(data or b"")
            return self._passed(data)
        # Full blocks if the source has them: threads share only full blocks. Bytes that were read ahead from a pipe are
        # returned at once.
        while self._strip and len(held) < size and not self._ended and not (first and held):
            count = size - len(held)
            data = self._read(count)
            if data is None:
                raise BlockingIOError("the source is non-blocking; use a blocking stream")
            self.bytes_read += len(data)
            self._ended = not data
            held += self._passed(data)
            if held and len(data) < count:
                break
        self._held = held[size:]
        return held[:size]

    read1 = read

    def lines(self, end: bytes, longest: int | None = None) -> Iterator[list[bytes]]:
        """Yield the lines without their ends, in blocks as they are read.

        :param end: the byte that ends a line; the last one may lack it
        :param longest: refuse a longer line
        :raises TableError: a line is too long
        """
        held: list[bytes] = []  # the beginning of an incomplete line
        size = 0
        while data := self.read(BLOCK_BYTES):
            held.append(data)
            size += len(data)
            if end in data:
                *lines, rest = b"".join(held).split(end)
                held, size = [rest], len(rest)
                yield lines
            if longest is not None and size > longest:
                raise TableError(self.name, f"identifier of more than {longest} bytes; not a list of identifiers")
        if rest := b"".join(held):
            yield [rest]

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
    name: str = "",
    delimiter: bytes | None = b"\n",
    crlf: Crlf | None = None,
    json_lines: bool = True,
) -> ListStream:
    r"""Return the stream of a list, after checking its first bytes; the stream checks the others.

    :param source: a binary stream, decompressed
    :param format: ``lines``, ``csv``, ``tsv`` or ``jsonl``; a byte-order mark is removed from all but lines
    :param name: the name of the list in messages
    :param delimiter: the end of a line: ``b"\n"`` or ``b"\0"``; :data:`None` for NUL if the first bytes contain one
    :param crlf: for lines: ``strip`` carriage returns before line feeds and byte-order marks at the start of lines, or
        ``keep`` all bytes between line feeds as part of identifiers
    :param json_lines: refuse lines that are JSON
    :raises FormatError: the file is not a list; or lines have carriage returns or a byte-order mark, without ``crlf``
    :raises ValueError: ``crlf`` is unknown
    """
    if crlf is not None and crlf not in CRLF:
        raise ValueError(f"crlf={crlf!r}: expected {' or '.join(CRLF)}")
    head = _first_bytes(getattr(source, "read1", source.read), delimiter or b"\n")
    _refuse_foreign(name, head, delimiter, crlf)
    bom = BOM if head.startswith(BOM) else b""
    if format != "lines":
        if format != "jsonl" and (setting := _EXCEL.match(head)):
            how = f"remove it, and specify the separator ({option('delimiter')})"
            raise FormatError(name, f"first line {quoted(setting[1])} is a setting of Excel; {how}")
        _refuse_returns(name, head.removeprefix(BOM), format)
        guard = Guard(name, format, start=len(bom))
        return ListStream(source, name, head.removeprefix(BOM), bom=bom, guard=guard)
    if delimiter is None:
        delimiter = b"\0" if b"\0" in head else b"\n"
    _refuse_lines(name, head, delimiter, crlf)
    if json_lines:
        _refuse_json(name, head.partition(delimiter)[0])
    if crlf == "keep":
        return ListStream(source, name, head)
    guard = Guard(name, format, delimiter, crlf)
    strip = delimiter == b"\n" and crlf == "strip"
    return ListStream(source, name, head.removeprefix(bom), strip=strip, bom=bom, guard=guard)


def _first_bytes(read: Any, delimiter: bytes) -> bytes:
    """Return the first bytes; from a slow source, whole lines without waiting for more."""
    head = b""
    while len(head) < _LEAST_BYTES and delimiter not in head and (more := read(_HEAD_BYTES)):
        head += more
    if head.endswith(b"\r"):
        head += read(_HEAD_BYTES) or b""
    return head


def _refuse_foreign(name: str, head: bytes, delimiter: bytes | None, crlf: str | None) -> None:
    for pattern, what in _FOREIGN:
        if pattern.match(head):
            raise FormatError(name, f"content is {_with_options(what)}")
    if crlf == "keep" and delimiter == b"\0":
        return  # names on disks may be any bytes
    # Identifiers may start with these bytes; text in UTF-16 has a NUL in every line end.
    marked = head[:2] in (b"\xff\xfe", b"\xfe\xff") and b"\0" in head
    if marked or is_utf16(head, without_line_end=delimiter == b"\n" and crlf != "keep"):
        raise FormatError(name, f"content is {UTF16}")


def _refuse_returns(name: str, head: bytes, format: str) -> None:
    """Refuse a table whose rows end with carriage returns only."""
    text = _QUOTED.sub(b"", head) if format == "csv" and b"\r" in head else head
    if b"\n" not in text and first_return(text, open_end=True) >= 0:
        raise FormatError(name, "rows end with carriage returns only; convert them to line feeds")


def _refuse_lines(name: str, head: bytes, delimiter: bytes, crlf: str | None) -> None:
    """Refuse bytes that are probably not part of identifiers, unless ``crlf`` decides."""
    if crlf == "keep":
        return
    ends = delimiter == b"\n"
    if ends and b"\0" in head:
        line = head[: head.index(b"\0")].count(b"\n") + 1
        raise FormatError(name, f"NUL byte in line {line}; {_choose_nul()}")
    if ends and b"\n" not in head and b"\r" in head[:-1]:
        raise FormatError(name, f"lines end with carriage returns only; {_convert()}")
    what = " and ".join(
        part
        for part, found in (
            ("byte-order mark at the start", head.startswith(BOM)),
            ("carriage return at the end of lines", ends and (b"\r\n" in head or head.endswith(b"\r"))),
        )
        if found
    )
    if what and crlf is None:
        how = f"use {option('crlf', 'strip')} to remove it, {option('crlf', 'keep')} to keep it"
        raise FormatError(name, f"{what}; {how}")


def _refuse_json(name: str, line: bytes) -> None:
    if _JSON_BEGIN.match(line):
        raise FormatError(name, f"content is {_with_options(_JSON)}, or use {option('format', 'lines')}")
    if line.lstrip().startswith(b'{"'):
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            return
        how = _with_options("select a key ({jsonl}, {column}), or use {lines}")
        raise FormatError(name, f"content is JSON lines; {how}")
