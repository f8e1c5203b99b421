"""CSV and TSV: existing fields keep their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from operator import methodcaller
from typing import Any

from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.tables.columns import ColumnSpec, index_of
from pressmark.cli.common.tables.mapper import Mapper
from pressmark.errors import quoted
from pressmark.tabular import delimited
from pressmark.tabular.delimited import Dialect, Rows, RowsError, refuse_doubtful

__all__ = ["SameTextWriter", "TextBlock", "TextReader", "TextWriter"]

# A block of empty rows would have a million, each of which may fail and wait to be reported.
BLOCK_ROWS = 1 << 16
NO_FIELD = "{} contains a TAB or a line break, which TSV does not allow"


class TextBlock:
    """Rows of CSV or TSV: see ``Block``.

    :ivar group: the same for all: text has no row groups
    """

    group = 0

    def __init__(self, reader: TextReader, rows: Rows, first_line: int) -> None:
        self.faults: dict[int, str] = {}
        self.unwritable: set[int] = set()
        self._dialect = reader.dialect
        self._index = reader.index
        self._width = reader.width
        self._first_line = first_line
        self._read = rows
        self._quoted = rows.quoted
        self._line_numbers: list[int] | None = None
        # Columns of the kernels, if all rows have as many fields as the first, and none is quoted.
        self._fields: Any = None
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
    def items(self) -> list[bytes]:
        """The values of the chosen field; malformed rows are added to ``faults``."""
        if self._fields is not None:
            return list(self._fields)
        items = self._cut(self._index)
        self._malformed = set(self.faults)
        return items

    @cached_property
    def results(self) -> list[bytes]:
        """The results, empty for failed rows."""
        return list(self._mapped)

    def _cut(self, index: int) -> list[bytes]:
        separator, width = self._dialect.separator, self._width
        rows = self._rows
        if not self._quoted and set(map(methodcaller("count", separator), rows)) <= {width - 1}:
            if index == 0:
                return [row.partition(separator)[0] for row in rows]
            return [row.split(separator, index + 1)[index] for row in rows]
        items = []
        for number, row in enumerate(rows):
            value = self._dialect.field(row, index, width)
            if isinstance(value, str):
                self.faults[number] = value
                value = b""
            items.append(value)
        return items

    def map(self, mapper: Mapper) -> None:
        """Map the fields."""
        if not self._quoted:
            self._fields = mapper.fields(self._read.text, self._dialect.separator, self._index, self._width)
        if self._fields is not None:
            self._mapped, self.faults = mapper.column(self._fields)
            return
        self.results, faults = mapper.texts(self.items)
        self.faults = {**faults, **self.faults}
        for index in self.faults:
            self.results[index] = b""

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

    def refuse_results(self) -> None:
        """Fail the rows whose result is not allowed in a field of this format."""
        if self._mapped is None:
            allowed = self._dialect.quotes or self._dialect.allows(b"\0".join(self.results))
        else:
            allowed = self._dialect.quotes or not any(map(self._mapped.indices_containing, (b"\t", b"\n", b"\r")))
        if allowed:
            return
        for index, result in enumerate(self.results):
            if not self._dialect.allows(result):
                self.results[index] = b""
                self.faults[index] = NO_FIELD.format("result")
                self._mapped = None

    def written(self, kept: list[int] | None) -> bytes:
        """Return the rows ``kept``, or all, each with its result as the last field."""
        if kept is None and self._mapped is not None:
            text: bytes = self._mapped.to_rows(self._read.text, self._dialect.separator, self._dialect.quotes)
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

    def values(self) -> list[list[bytes]]:
        """Return the values of every row and its result; malformed fields unchanged."""
        meant, split = self._dialect.meant, self._dialect.split
        rows = []
        for row, result in zip(self._rows, self.results, strict=True):
            fields = split(row)
            if self._quoted:
                fields = [meant(field) if field.startswith(b'"') else field for field in fields]
            rows.append([*fields, result])
        return rows


class TextReader:
    """A CSV or TSV file, whose first row has been read.

    :param source: the stream of the file, without the byte-order mark, which is in ``source.bom``
    :ivar width: the number of fields of every row
    :ivar index: the index of the chosen field
    :ivar head: the header row as written, and its end
    """

    def __init__(self, source: Any, dialect: Dialect, spec: ColumnSpec) -> None:
        self.dialect = dialect
        self.name: str = source.name
        self._source = source
        self._line = 1
        self._chunks = self._read_chunks()
        self.bom: bytes = getattr(source, "bom", b"")
        self.head: tuple[bytes, bytes] | None = None
        self._first: Rows | None = None
        first = next(self._chunks, None)
        if first is None:
            if spec.header:
                raise CallError(f"{self.name}: empty file; no header row")
            self.names: list[str] | None = None
            self.width, self.index = 0, 0
            return
        # A row of CSV may contain line feeds.
        written, rest = _first_row(first)
        row = written.removesuffix(b"\r")
        fields = dialect.split(row)
        self.width = len(fields)
        self.names = None
        try:
            refuse_doubtful(fields, dialect, spec.column, spec.header, certain=spec.delimiter is not None)
        except RowsError as error:
            raise CallError(f"{self.name}: {error}") from None
        if spec.header:
            self.names = [dialect.meant(field).decode("utf-8", "surrogateescape") for field in fields]
            self.index = index_of(spec, self.names, self.name)
            end = b"" if first.open_end and rest is None else b"\n"
            self.head = row, (b"\r" if written.endswith(b"\r") else b"") + end
            self._line += 1 + written.count(b"\n")
            self._first = rest
        else:
            assert isinstance(spec.column, int)
            self.index = spec.column - 1
            if self.index >= self.width:
                raise CallError(f"{self.name}: column {spec.column} not found; the first row has {self.width}")
            self._first = first

    def header(self) -> list[bytes] | None:
        """Return the column names; :data:`None` without a header row."""
        return None if self.names is None else [name.encode("utf-8", "surrogateescape") for name in self.names]

    def blocks(self) -> Iterator[TextBlock]:
        """Yield the rows after the header."""
        if self._first is not None:
            first, self._first = self._first, None
            yield self._block(first)
        for chunk in self._chunks:
            yield self._block(chunk)

    def items(self) -> Iterator[bytes]:
        """Yield the field of every row.

        :raises Failure: a row is malformed
        """
        for block in self.blocks():
            items = block.items
            for index, reason in sorted(block.faults.items())[:1]:
                raise Failure(f"{self.name}:{block.number(index)}: {quoted(block.item(index))}: {reason}")
            yield from items

    def _block(self, rows: Rows) -> TextBlock:
        block = TextBlock(self, rows, self._line)
        if rows.split is None:
            self._line += rows.text.count(b"\n")
        else:
            self._line += len(rows.split) + sum(map(methodcaller("count", b"\n"), rows.split))
        return block

    def _read_chunks(self) -> Iterator[Rows]:
        """Yield at most :data:`BLOCK_ROWS` rows at a time."""
        try:
            read = self._source.read1
            for rows in delimited.rows(read, self.dialect, read(delimited.BLOCK_BYTES), counts_fields=True):
                if rows.split is None and rows.text.count(b"\n") <= BLOCK_ROWS:
                    yield rows
                    continue
                found = rows.rows
                for start in range(0, len(found), BLOCK_ROWS):
                    some = found[start : start + BLOCK_ROWS]
                    open_end = rows.open_end and start + len(some) == len(found)
                    if rows.split is None:
                        yield Rows(b"\n".join([*some, b""]), None, open_end)
                    else:
                        yield Rows(b"", some, open_end)
        except RowsError as error:
            raise Failure(f"{self.name}:{self._line}: {error}") from None


def _first_row(rows: Rows) -> tuple[bytes, Rows | None]:
    """Return the first row without its line feed, and the others, if any."""
    if rows.split is None:
        row, _, text = rows.text.partition(b"\n")
        return row, rows._replace(text=text) if text else None
    return rows.split[0], rows._replace(split=rows.split[1:]) if len(rows.split) > 1 else None


class SameTextWriter:
    """Writes rows in the format in which they were read, each with its result as the last field."""

    def __init__(self, sink: Any, reader: TextReader, spec: ColumnSpec) -> None:
        self._sink = sink
        self._reader = reader
        self._spec = spec

    def begin(self) -> None:
        """Write the header row."""
        reader = self._reader
        self._sink.write(reader.bom)
        if reader.head is not None:
            row, end = reader.head
            name = reader.dialect.written([self._spec.result.encode("utf-8", "surrogateescape")])
            self._sink.write(reader.dialect.separator.join([row, *name]) + end)

    def check(self, block: TextBlock) -> None:
        """Fail results that are not allowed in a field."""
        block.refuse_results()

    def write(self, block: TextBlock, kept: list[int] | None) -> None:
        """Write and flush, so slow input is passed on immediately."""
        self._sink.write(block.written(kept))
        self._sink.flush()

    def finish(self) -> None:
        """Flush the header of a table without rows."""
        self._sink.flush()

    def abandon(self) -> None:
        """Do nothing: lines have no end mark."""


class TextWriter:
    """Writes rows of any format as CSV or TSV."""

    def __init__(self, sink: Any, header: list[bytes] | None, dialect: Dialect, spec: ColumnSpec) -> None:
        self._sink = sink
        self._dialect = dialect
        self._header = header and [*header, spec.result.encode("utf-8", "surrogateescape")]
        self._rows: list[list[bytes]] = []

    def begin(self) -> None:
        """Write the header row."""
        if self._header is not None:
            for name in self._header:
                if not self._dialect.allows(name):
                    raise CallError(f"{self._sink.name}: column name {quoted(name)} is not allowed in a field")
            self._write_rows([self._header])

    def check(self, block: Any) -> None:
        """Fail rows with a value that is not allowed in a field."""
        self._rows = block.values()
        if self._dialect.quotes or self._dialect.allows(b"\0".join(map(b"\0".join, self._rows))):
            return
        for index, row in enumerate(self._rows):
            for number, field in enumerate(row, 1):
                if not self._dialect.allows(field):
                    what = "result" if number == len(row) else f"field {number}"
                    block.faults.setdefault(index, NO_FIELD.format(what))
                    if number == len(row):
                        row[-1] = b""
                    else:
                        block.unwritable.add(index)

    def write(self, _block: Any, kept: list[int] | None) -> None:
        """Write and flush."""
        self._write_rows(self._rows if kept is None else [self._rows[index] for index in kept])
        self._sink.flush()

    def finish(self) -> None:
        """Flush the header of a table without rows."""
        self._sink.flush()

    def abandon(self) -> None:
        """Do nothing: lines have no end mark."""

    def _write_rows(self, rows: list[list[bytes]]) -> None:
        join, written = self._dialect.separator.join, self._dialect.written
        if len(set(map(len, rows))) == 1:
            # Column by column: one check shows that no field of a column needs quotes.
            lines = map(join, zip(*map(written, map(list, zip(*rows, strict=True))), strict=True))
        else:
            lines = map(join, map(written, rows))
        self._sink.write(b"\n".join([*lines, b""]))
