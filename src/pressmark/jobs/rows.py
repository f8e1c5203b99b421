"""Rows of text files, by byte ranges that end where a row does.

In lines a row ends at a line feed, and nothing else means anything; what CSV and TSV are is in
:mod:`pressmark.delimited`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from pressmark import delimited
from pressmark.delimited import BOM, CSV, TSV, RowsError, UnclosedError

__all__ = ["FORMATS", "Shape", "Stretch", "fields", "row_ranges", "shape_of"]

FORMATS = ("lines", "csv", "tsv")
BLOCK = 1 << 20  # 1 MiB
DIALECTS = {"csv": CSV, "tsv": TSV}


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

    def __iter__(self) -> Iterator[bytes]:
        """Give the lines, with their ends."""
        while self._left > 0 and (line := self._file.readline(self._left)):
            self._left -= len(line)
            yield line


class Shape(NamedTuple):
    """What the first row of a file says.

    :ivar start: where the rows of data begin
    :ivar width: how many fields each has
    :ivar number: of the wanted field, counted from 0
    """

    start: int
    width: int
    number: int


def shape_of(file: BinaryIO, format: str, column: str | int | None, header: bool) -> Shape:
    """Return the shape of a file.

    :param column: the name in the header, or the number counted from 1; :data:`None` where there is only one
    :raises ValueError: it has no such column
    """
    if format == "lines":
        return Shape(0, 1, 0)
    file.seek(0)
    start = len(BOM) if file.read(len(BOM)) == BOM else 0
    size = os.fstat(file.fileno()).st_size
    dialect = DIALECTS[format]
    try:
        row = next(_rows(Stretch(file, start, size), format), b"")
    except RowsError as error:
        raise ValueError(f"its first row is malformed: {error}") from None
    names = [dialect.meant(name).decode("utf-8", "surrogateescape") for name in dialect.split(row.removesuffix(b"\r"))]
    if isinstance(column, str):
        if not header or names.count(column) != 1:
            raise ValueError(f"it has not one column {column!r}: its first row is {', '.join(names)[:200]}")
        index = names.index(column)
    else:
        number = 1 if column is None else column
        if (column is None and len(names) > 1) or not 1 <= number <= max(1, len(names)):
            raise ValueError(f"say which of its {len(names)} columns is wanted")
        index = number - 1
    return Shape(min(start + len(row) + 1, size) if header else start, len(names), index)


def row_ranges(file: BinaryIO, format: str, start: int, nbytes: int) -> Iterator[tuple[int, int]]:
    """Give start and stop of parts of a file, each with whole rows and at least so many bytes, but the last."""
    size = os.fstat(file.fileno()).st_size
    while start < size:
        stop = min(size, start + nbytes)
        if stop < size:
            stop = _row_end(file, start, stop, size) if format == "csv" else _line_end(file, stop, size)
        yield start, stop
        start = stop


def _line_end(file: BinaryIO, at: int, size: int) -> int:
    """Return where the line that holds the byte before ``at`` ends."""
    at -= 1
    file.seek(at)
    while block := file.read(BLOCK):
        found = block.find(b"\n")
        if found >= 0:
            return at + found + 1
        at += len(block)
    return size


def _row_end(file: BinaryIO, start: int, at: int, size: int) -> int:
    """Return where the first row of CSV ends that goes up to ``at`` or beyond; one begins at ``start``."""
    while start < at:
        file.seek(start)
        block = file.read(min(BLOCK, at - start))
        end = block.rfind(b"\n") + 1
        if end and b'"' not in block:
            start += end
            continue
        # Quotes mean something only to who has read everything before them.
        try:
            for row in _rows(Stretch(file, start, size), "csv"):
                start += len(row) + 1
                if start >= at:
                    break
        except UnclosedError:
            return size
    return min(start, size)


def _rows(source: Stretch, format: str) -> Iterator[bytes]:
    """Give each row without its line feed."""
    dialect = DIALECTS[format]
    for block in delimited.rows(source.read, dialect, source.read(delimited.BLOCK_BYTES)):
        yield from block.rows


def fields(file: BinaryIO, format: str, shape: Shape, start: int, stop: int) -> Iterator[bytes | str]:
    """Give the wanted field of each row as bytes, or, as text, why there is none."""
    source = Stretch(file, start, stop)
    if format == "lines":
        for line in source:
            yield line.removesuffix(b"\n")
        return
    dialect = DIALECTS[format]
    try:
        for row in _rows(source, format):
            yield dialect.wanted(row.removesuffix(b"\r"), shape.number, shape.width)
    except UnclosedError as error:
        yield str(error)
