"""Lists of identifiers, read lazily: lines, CSV, TSV, JSON lines, Parquet, or any iterable.

================== ===================================================================================================
suffix             content
================== ===================================================================================================
``.csv``, ``.tsv`` a header row; identifiers in the chosen column, by default ``source_id``, ``id`` or ``identifier``
``.jsonl``         also ``.ndjson``: a JSON string per line, or an object with such a key, as in the rows of a report
``.parquet``       as CSV; needs pyarrow
other              an identifier per line, or NUL-delimited identifiers
``.gz`` after it   the same, compressed
================== ===================================================================================================

Other files are refused by their names and first bytes, see :mod:`pressmark.tabular.formats`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from pressmark.errors import FormatError, TableError
from pressmark.fs.gzipped import unpacked
from pressmark.tabular import delimited
from pressmark.tabular.columns import Column, index_of
from pressmark.tabular.delimited import TSV, Dialect, RowsError, dialect_of
from pressmark.tabular.formats import Crlf, ListStream, format_of, open_list
from pressmark.tabular.json_lines import parsed
from pressmark.tabular.tables import open_table

__all__ = [
    "COLUMNS",
    "Identifiers",
    "check_list",
    "check_map",
    "open_list_file",
    "read_identifiers",
    "table_rows",
]

Identifiers = str | os.PathLike[str] | Iterable[str | bytes]
#: Columns and keys of identifiers; the first that exists is used.
COLUMNS = ("source_id", "id", "identifier")
_BLOCK = 1 << 20  # bytes
# A longer identifier means that the file is not a list.
_LONGEST = 1 << 20


def read_identifiers(given: Identifiers, column: str | None = None, crlf: Crlf | None = None) -> Iterator[str]:
    """Yield the identifiers of a list, in order; skip empty lines.

    :param given: the path of a file, or identifiers
    :param column: the column of a table
    :param crlf: for lines: ``strip`` carriage returns before line feeds and a byte-order mark, or ``keep`` both
    :raises TableError: the list is malformed, or cannot be read
    """
    if not isinstance(given, (str, os.PathLike)):
        for item in given:
            yield _decode(item) if isinstance(item, bytes) else item
        return
    path = os.fspath(given)
    format = format_of(path) or "lines"
    chosen = Column(COLUMNS if column is None else (column,))
    if format == "parquet":
        with _reading(path) as file:
            yield from (_decode(item) for item in open_table(file, path, format, chosen).items() if item)
        return
    with open_list_file(path, format, crlf) as listed:
        if format == "lines":
            yield from _lines(listed)
        elif format == "jsonl":
            yield from _json_lines(path, listed, chosen)
        else:
            yield from _table(path, listed, dialect_of(format), chosen)


def check_list(given: object, crlf: Crlf | None = None) -> None:
    """Check that the file of a list exists and is a list, before a run starts.

    :param given: as for :func:`read_identifiers`, or :data:`None`
    :raises TableError: the file does not exist, or is not a list
    """
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        if _is_readable(path) and format_of(path) != "parquet":
            with open_list_file(path, format_of(path) or "lines", crlf):
                pass


def check_map(given: object) -> None:
    """Check that the file of a map exists and is CSV or TSV, before a run starts.

    :param given: the path of a file; anything else is not checked
    :raises TableError: the file does not exist, or is neither CSV nor TSV
    """
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        if format_of(path) in ("jsonl", "parquet"):
            raise FormatError(path, "a map must be CSV or TSV; convert it")
        if _is_readable(path):
            with open_list_file(path, "csv"):
                pass


def _is_readable(path: str) -> bool:
    """Return whether a file can be opened more than once; a pipe cannot."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        raise _refusal(path, error) from error


@contextmanager
def open_list_file(path: str, format: str, crlf: Crlf | None = None) -> Iterator[ListStream]:
    """Open a list, decompressed if its name ends in ``.gz``, after checking its first bytes.

    :raises TableError: the file is not a list, or cannot be read
    """
    with _reading(path) as file:
        data = unpacked(file, path)
        yield open_list(data, format, name=path, delimiter=None, crlf=crlf, json_lines=False)


@contextmanager
def _reading(path: str) -> Iterator[BinaryIO]:
    try:
        with open(path, "rb") as file:
            yield file
    except OSError as error:
        raise _refusal(path, error) from error


def _refusal(path: str, error: OSError) -> TableError:
    return TableError(path, f"{error.strerror or error}; use a readable file")


def table_rows(path: str, listed: ListStream, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield each row of CSV or TSV that is not empty, and the number of the line in which it starts.

    :raises TableError: a row is malformed
    """
    line = 1
    separator = dialect.separator.decode()
    try:
        read = listed.read
        for block in delimited.rows(read, dialect, read(_BLOCK), return_is_data=not listed.guarded):
            if not block.quoted:
                # A block without quotes is decoded at once.
                lines = _decode(block.text).split("\n")
                for number, text in enumerate(lines[:-1], line):
                    content = text.removesuffix("\r")
                    if content:
                        yield number, content.split(separator)
                line += len(lines) - 1
                continue
            for row in block.rows:
                written = row.removesuffix(b"\r")
                if b'"' in written:
                    fields = [dialect.value(field) for field in dialect.split(written)]
                    if None in fields:
                        raise TableError(path, "text after the closing quote of a field", line)
                    yield line, [_decode(field) for field in fields if field is not None]
                elif written:
                    yield line, _decode(written).split(separator)
                line += 1 + row.count(b"\n")
    except RowsError as error:
        raise TableError(path, str(error), line) from None


def _decode(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _lines(listed: ListStream) -> Iterator[str]:
    # Identifiers contain no NUL, so a NUL is a delimiter; then they may contain line feeds.
    end = b"\0" if b"\0" in listed.head else b"\n"
    number = 0
    for lines in listed.lines(end, _LONGEST):
        for line in lines:
            number += 1
            if end == b"\n" and b"\0" in line:
                raise TableError(
                    listed.name, "unexpected NUL; end all identifiers with NUL, or all with line feeds", number
                )
            if line:
                yield _decode(line)


def _table(path: str, listed: ListStream, dialect: Dialect, column: Column) -> Iterator[str]:
    rows = table_rows(path, listed, dialect)
    _line, names = next(rows, (1, []))
    at = index_of(column, names, path)
    for line, row in rows:
        if len(row) <= at:
            raise TableError(path, f"row has {len(row)} fields; the identifier is in field {at + 1}", line)
        if row[at]:
            yield row[at]


def _json_lines(path: str, listed: ListStream, column: Column) -> Iterator[str]:
    for number, line in enumerate(_rows(path, listed), 1):
        if not line.strip():
            continue
        try:
            item: Any = parsed(line)
        except ValueError as error:
            raise TableError(path, str(error), number) from None
        if isinstance(item, dict):
            keys = list(item)
            item = item[keys[index_of(column, keys, f"{path}:{number}")]]
        if not isinstance(item, str):
            raise TableError(path, "expected an identifier as a JSON string", number)
        if item:
            yield item


def _rows(path: str, listed: ListStream) -> Iterator[bytes]:
    try:
        for block in delimited.rows(listed.read, TSV, listed.read(_BLOCK), return_is_data=True):
            yield from block.rows
    except RowsError as error:
        raise TableError(path, str(error)) from None
