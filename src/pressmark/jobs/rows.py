r"""Rows of text files, by byte ranges that end where a row does.

In lines and TSV a row ends at a line feed, and nothing else means anything but the TAB. CSV is that of RFC 4180, read
strictly: in a field that begins with a quote, line feeds and commas are data.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

__all__ = ["FORMATS", "Shape", "Stretch", "fields", "row_ranges", "shape_of"]

FORMATS = ("lines", "csv", "tsv")
BLOCK = 1 << 20  # 1 MiB
BOM = b"\xef\xbb\xbf"
# One character for each octet: csv reads text, and nothing may be lost.
OCTETS = "latin-1"
# The usual limit of a field, 128 KiB, would have the rest of a longer one taken for rows.
csv.field_size_limit(max(csv.field_size_limit(), 1 << 25))


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
    counted = _Counted(Stretch(file, start, os.fstat(file.fileno()).st_size))
    first = next(_rows(counted, format), [])
    if first is None:
        raise ValueError("its first row is malformed")
    names = [name.decode("utf-8", "surrogateescape") for name in first]
    if isinstance(column, str):
        if not header or names.count(column) != 1:
            raise ValueError(f"it has not one column {column!r}: its first row is {', '.join(names)[:200]}")
        index = names.index(column)
    else:
        number = 1 if column is None else column
        if (column is None and len(names) > 1) or not 1 <= number <= max(1, len(names)):
            raise ValueError(f"say which of its {len(names)} columns is wanted")
        index = number - 1
    return Shape(start + (counted.bytes if header else 0), len(names), index)


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
        counted = _Counted(Stretch(file, start, size))
        for _row in _rows(counted, "csv"):
            if counted.bytes >= len(block):
                break
        start += counted.bytes
    return start


class _Counted:
    """Lines, and how many bytes those have that were given."""

    def __init__(self, lines: Stretch) -> None:
        self.bytes = 0
        self._lines = iter(lines)

    def __iter__(self) -> Iterator[bytes]:
        for line in self._lines:
            self.bytes += len(line)
            yield line


def _rows(lines: _Counted | Stretch, format: str) -> Iterator[list[bytes] | None]:
    """Give the fields of each row, :data:`None` for a row of CSV that is malformed."""
    if format == "tsv":
        for line in lines:
            yield line.removesuffix(b"\n").removesuffix(b"\r").split(b"\t")
        return
    if format == "lines":
        for line in lines:
            yield [line.removesuffix(b"\n")]
        return
    reader = csv.reader((line.decode(OCTETS) for line in lines), strict=True)
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield None
        else:
            yield [field.encode(OCTETS) for field in row]


def fields(file: BinaryIO, format: str, shape: Shape, start: int, stop: int) -> Iterator[bytes | str]:
    """Give the wanted field of each row as bytes, or, as text, why there is none."""
    for row in _rows(Stretch(file, start, stop), format):
        if row is None:
            yield "its row is no CSV: a quote, or a carriage return, is where none may be"
        elif len(row) != shape.width:
            yield f"its row has {len(row)} of the {shape.width} fields that the file's first one has"
        else:
            yield row[shape.number]
