"""Tables of CSV and TSV: existing fields keep their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from operator import methodcaller
from typing import Any

from pressmark import _kernels
from pressmark.errors import FormatError, TableError
from pressmark.tabular import delimited
from pressmark.tabular.columns import Column, ItemMapper, index_of
from pressmark.tabular.delimited import Rows, RowsError, dialect_of, refuse_doubtful
from pressmark.tabular.formats import ListStream

__all__ = ["TextBlock", "TextReader"]

# A block of empty rows would have a million, each of which may fail and wait to be reported.
BLOCK_ROWS = 1 << 16
NOT_IN_TSV = "result contains a TAB or a line break, which TSV does not allow"


class TextBlock:
    """Rows of CSV or TSV: see ``Block``.

    :ivar nulls: empty: text has no null
    :ivar inline: the writer of a pipe or at a terminal may wait for the result of a short block
    """

    nulls: frozenset[int] = frozenset()

    def __init__(self, reader: TextReader, rows: Rows, first_line: int) -> None:
        self.faults: dict[int, str] = {}
        self.unwritable: set[int] = set()
        self._dialect = reader.dialect
        self._index = reader.index
        self._width = reader.width
        self._first_line = first_line
        self._read = rows
        self._quoted = rows.quoted
        self.inline = not rows.full
        self._line_numbers: list[int] | None = None
        self._mapped: Any = None
        self._malformed: set[int] = set()

    def __len__(self) -> int:
        return len(self._rows) if self._fields is None else len(self._fields)

    @cached_property
    def _rows(self) -> list[bytes]:
        """The rows without their ends."""
        rows = self._read.rows
        # Usually no row ends with a carriage return.
        if any(map(methodcaller("endswith", b"\r"), rows)):
            rows = [row[:-1] if row.endswith(b"\r") else row for row in rows]
        return rows

    @cached_property
    def _ends(self) -> list[bytes] | None:
        """The ends of the rows; :data:`None` if all are line feeds."""
        rows = self._read.rows
        if any(map(methodcaller("endswith", b"\r"), rows)):
            return [b"\r\n" if row.endswith(b"\r") else b"\n" for row in rows]
        return None

    @cached_property
    def _fields(self) -> Any:
        """The chosen field of all rows as a column of the kernels; :data:`None` if a row is malformed."""
        separator = self._dialect.separator
        column: Any = _kernels.active.ByteColumn
        return column.from_fields(self._read.text, separator, self._quoted, self._index, self._width)

    @cached_property
    def items(self) -> list[bytes]:
        """The values of the chosen field; malformed rows are added to ``faults``."""
        if self._fields is not None:
            return list(self._fields)
        items = []
        for number, row in enumerate(self._rows):
            value = self._dialect.field(row, self._index, self._width)
            if isinstance(value, str):
                self.faults[number] = value
                value = b""
            items.append(value)
        self._malformed = set(self.faults)
        return items

    @cached_property
    def results(self) -> list[bytes]:
        """The results, empty for failed rows."""
        return list(self._mapped)

    def map(self, mapper: ItemMapper) -> None:
        """Map the fields; a result that is not allowed in a field of this format fails."""
        if self._fields is not None:
            self._mapped, self.faults = mapper.column(self._fields)
        else:
            self.results, faults = mapper.texts(self.items)
            self.faults = {**faults, **self.faults}
            for index in self.faults:
                self.results[index] = b""
        self._refuse_results()

    def number(self, index: int) -> int:
        """Return the number of the line in which a row starts."""
        if not self._quoted:
            return self._first_line + index
        if self._line_numbers is None:
            feeds = (row.count(b"\n") + 1 for row in self._rows)
            self._line_numbers = list(accumulate(feeds, initial=self._first_line))
        return self._line_numbers[index]

    def item(self, index: int) -> bytes:
        """Return the field, or a malformed row."""
        return self._rows[index] if index in self._malformed else self.items[index]

    def _refuse_results(self) -> None:
        if self._mapped is None:
            allowed = self._dialect.quotes or self._dialect.allows(b"\0".join(self.results))
        else:
            allowed = self._dialect.quotes or not any(map(self._mapped.indices_containing, (b"\t", b"\n", b"\r")))
        if allowed:
            return
        for index, result in enumerate(self.results):
            if not self._dialect.allows(result):
                self.results[index] = b""
                self.faults[index] = NOT_IN_TSV
                self._mapped = None

    def written(self, kept: list[int] | None) -> bytes:
        """Return the rows ``kept``, or all, each with its result as the last field."""
        if kept is None and self._mapped is not None:
            text: bytes = self._mapped.to_rows(
                self._read.text, self._read.ends, self._dialect.separator, self._dialect.quotes
            )
            return text[:-1] if self._read.open_end else text
        join = self._dialect.separator.join
        rows, results, ends = self._rows, self._dialect.written(self.results), self._ends
        last_kept = kept is None or (bool(kept) and kept[-1] == len(rows) - 1)
        if kept is not None:
            rows = [rows[index] for index in kept]
            results = [results[index] for index in kept]
            ends = ends and [ends[index] for index in kept]
        if not rows:
            return b""
        if ends is None:
            text = b"\n".join([*map(join, zip(rows, results, strict=True)), b""])
        else:
            text = b"".join([join(row) + end for *row, end in zip(rows, results, ends, strict=True)])
        return text[:-1] if self._read.open_end and last_kept else text


class TextReader:
    """A CSV or TSV file, whose first row has been read.

    :param format: ``csv`` or ``tsv``
    :ivar source: the stream of the file
    :ivar width: the number of fields of every row
    :ivar index: the index of the chosen field
    :ivar head: what precedes the first row of the output: the byte-order mark, and the header row with the new column
    :raises FormatError: the column does not exist, or the first row is ambiguous
    :raises TableError: the first row is malformed
    """

    def __init__(self, source: ListStream, format: str, column: Column) -> None:
        assert not isinstance(column.name, tuple)
        try:
            self.dialect = dialect = dialect_of(format, column.delimiter)
        except ValueError as error:
            raise FormatError("", f"--{error}") from None
        header = isinstance(column.name, str) if column.header is None else column.header
        self.name = source.name
        self.source = source
        self._line = 1
        self._chunks = self._read_chunks()
        self.head = source.bom
        self._first: Rows | None = None
        first = next(self._chunks, None)
        if first is None:
            if header:
                raise FormatError(self.name, "empty file; no header row")
            self.width, self.index = 0, 0
            return
        # A row of CSV may contain line feeds.
        written, rest = _first_row(first)
        row = written.removesuffix(b"\r")
        fields = dialect.split(row)
        self.width = len(fields)
        try:
            refuse_doubtful(fields, dialect, column.name, column.header, certain=column.delimiter is not None)
        except RowsError as error:
            raise FormatError(self.name, str(error)) from None
        if header:
            names = [dialect.meant(field).decode("utf-8", "surrogateescape") for field in fields]
            self.index = index_of(column, names, self.name)
            end = (b"\r" if written.endswith(b"\r") else b"") + (b"" if first.open_end and rest is None else b"\n")
            added = dialect.written([column.result.encode("utf-8", "surrogateescape")])
            self.head += dialect.separator.join([row, *added]) + end
            self._line += 1 + written.count(b"\n")
            self._first = rest
        else:
            assert isinstance(column.name, int)
            self.index = column.name - 1
            if self.index >= self.width:
                raise FormatError(self.name, f"column {column.name} not found; the first row has {self.width}")
            self._first = first

    def blocks(self) -> Iterator[TextBlock]:
        """Yield the rows after the header.

        :raises TableError: a row cannot be read; nor can the rows after it
        """
        if self._first is not None:
            first, self._first = self._first, None
            yield self._block(first)
        for chunk in self._chunks:
            yield self._block(chunk)

    def _block(self, rows: Rows) -> TextBlock:
        block = TextBlock(self, rows, self._line)
        self._line += rows.text.count(b"\n") if rows.quoted else len(rows.ends)
        return block

    def _read_chunks(self) -> Iterator[Rows]:
        """Yield at most :data:`BLOCK_ROWS` rows at a time."""
        try:
            read = self.source.read
            for rows in delimited.rows(read, self.dialect, read(delimited.BLOCK_BYTES), counts_fields=True):
                if len(rows.ends) <= BLOCK_ROWS:
                    yield rows
                    continue
                for start in range(0, len(rows.ends), BLOCK_ROWS):
                    yield rows.part(start, start + BLOCK_ROWS)
        except RowsError as error:
            raise TableError(self.name, str(error), self._line) from None


def _first_row(rows: Rows) -> tuple[bytes, Rows | None]:
    """Return the first row without its line feed, and the others, if any."""
    rest = rows.part(1, len(rows.ends)) if len(rows.ends) > 1 else None
    return rows.text[: rows.ends[0] - 1], rest
