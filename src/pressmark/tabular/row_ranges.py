"""Byte ranges of text files that end at the end of a row, and the fields of their rows.

In lines and JSON lines a line feed ends a row; :mod:`pressmark.tabular.delimited` has the syntax of CSV and TSV.
Other files are refused, see :mod:`pressmark.tabular.detection`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from pressmark.tabular import delimited
from pressmark.tabular.delimited import CSV, TSV, Dialect, RowsError, UnclosedError, dialect_of, refuse_doubtful
from pressmark.tabular.detection import Crlf, ListStream, open_list
from pressmark.tabular.guard import Guard
from pressmark.tabular.json_lines import item_of, parsed

__all__ = ["FORMATS", "Shape", "Stretch", "fields", "lines_of", "row_ranges", "shape_of"]

FORMATS = ("lines", "csv", "tsv", "jsonl")
BLOCK = 1 << 20  # 1 MiB


class Stretch:
    """The bytes of a file from ``start`` to ``stop``, as a stream."""

    def __init__(self, file: BinaryIO, start: int, stop: int) -> None:
        self._file = file
        self._left = stop - start
        file.seek(start)

    def read(self, size: int) -> bytes:
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        return data


class Shape(NamedTuple):
    """The structure of a file, from its first row.

    :ivar start: the offset of the first row of data
    :ivar width: the number of fields of each row
    :ivar number: the index of the chosen field
    :ivar dialect: the dialect of CSV and TSV
    :ivar key: the key of JSON lines
    :ivar crlf: what lines contain besides identifiers
    """

    start: int
    width: int = 1
    number: int = 0
    dialect: Dialect = CSV
    key: str = ""
    crlf: Crlf | None = None


def shape_of(
    file: BinaryIO,
    format: str,
    column: str | int | None,
    header: bool | None,
    *,
    delimiter: str | None = None,
    crlf: Crlf | None = None,
) -> Shape:
    """Return the structure of a file.

    :param column: the name in the header, or the number from 1; :data:`None` for the only column
    :param header: whether CSV and TSV have a header row; :data:`None` if ``column`` is a name
    :param delimiter: the separator of CSV; :data:`None` for a comma
    :param crlf: for lines: ``strip`` carriage returns before line feeds and a byte-order mark, or ``keep`` both
    :raises ValueError: the column does not exist, or the file is not a list of this format
    """
    file.seek(0)
    listed = open_list(file, format, crlf=crlf)
    if format == "lines":
        return Shape(len(listed.bom), crlf=crlf)
    if format == "jsonl":
        if not isinstance(column, str):
            raise ValueError("JSON lines require a key; specify it as the column")
        return Shape(len(listed.bom), key=column)
    dialect = dialect_of(format, delimiter)
    start = len(listed.bom)
    size = os.fstat(file.fileno()).st_size
    try:
        row = next(_rows(Stretch(file, start, size), dialect), b"")
    except RowsError as error:
        raise ValueError(f"malformed first row: {error}") from None
    if header is None and isinstance(column, str):
        header = True
    written = dialect.split(row.removesuffix(b"\r"))
    if size > start:
        refuse_doubtful(written, dialect, column, header, certain=delimiter is not None)
    names = [dialect.meant(name).decode("utf-8", "surrogateescape") for name in written]
    if isinstance(column, str):
        if not header or names.count(column) != 1:
            raise ValueError(f"column {column!r} not found, or not unique; the first row is {', '.join(names)[:200]}")
        index = names.index(column)
    else:
        number = 1 if column is None else column
        if (column is None and len(names) > 1) or not 1 <= number <= max(1, len(names)):
            raise ValueError(f"{len(names)} columns; choose one (--column)")
        index = number - 1
    return Shape(min(start + len(row) + 1, size) if header else start, len(names), index, dialect)


def row_ranges(
    file: BinaryIO, format: str, start: int, nbytes: int, dialect: Dialect = CSV
) -> Iterator[tuple[int, int]]:
    """Yield start and stop of parts of a file with whole rows; all but the last have at least ``nbytes``."""
    size = os.fstat(file.fileno()).st_size
    while start < size:
        stop = min(size, start + nbytes)
        if stop < size:
            stop = _row_end(file, start, stop, size, dialect) if format == "csv" else _line_end(file, stop, size)
        yield start, stop
        start = stop


def _line_end(file: BinaryIO, at: int, size: int) -> int:
    """Return the offset of the end of the line with the byte before ``at``."""
    at -= 1
    file.seek(at)
    while block := file.read(BLOCK):
        found = block.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(block)
    return size


def _row_end(file: BinaryIO, start: int, at: int, size: int, dialect: Dialect) -> int:
    """Return the offset of the first end of a CSV row at ``at`` or after; a row starts at ``start``."""
    while start < at:
        file.seek(start)
        block = file.read(min(BLOCK, at - start))
        end = block.rfind(b"\n") + 1
        if end and b'"' not in block:
            start += end
            continue
        # The meaning of a quote depends on all text before it.
        try:
            for row in _rows(Stretch(file, start, size), dialect):
                start += len(row) + 1
                if start >= at:
                    break
        except UnclosedError:
            return size
    return min(start, size)


def _rows(source: Stretch | ListStream, dialect: Dialect, *, return_is_data: bool = True) -> Iterator[bytes]:
    """Yield each row without its line feed."""
    read = source.read
    for block in delimited.rows(read, dialect, read(delimited.BLOCK_BYTES), return_is_data=return_is_data):
        yield from block.rows


def lines_of(file: BinaryIO, start: int, stop: int, crlf: Crlf | None) -> ListStream:
    """Return the lines of a part of a file as a stream.

    :param crlf: as for :func:`shape_of`
    :raises FormatError: on reading: the lines need another ``crlf``
    """
    guard = None if crlf == "keep" else Guard("lines", crlf=crlf, start=start)
    return ListStream(Stretch(file, start, stop), strip=crlf == "strip", guard=guard)


def fields(file: BinaryIO, format: str, shape: Shape, start: int, stop: int) -> Iterator[bytes | str | None]:
    """Yield the chosen field of each row as ``bytes``, :data:`None` for null.

    For a row without the field, yield the reason as a ``str``.

    :raises FormatError: the part of the file is not text of this format
    :raises RowsError: rows end with carriage returns only
    """
    if format == "lines":
        yield from _rows(lines_of(file, start, stop, shape.crlf), TSV)
        return
    source = ListStream(Stretch(file, start, stop), guard=Guard(format, start=start))
    if format == "jsonl":
        for row in _rows(source, TSV):
            if row.strip():
                try:
                    yield item_of(parsed(row), shape.key)
                except ValueError as error:
                    yield str(error)
        return
    dialect = shape.dialect
    try:
        for row in _rows(source, dialect, return_is_data=False):
            yield dialect.field(row.removesuffix(b"\r"), shape.number, shape.width)
    except UnclosedError as error:
        yield str(error)
