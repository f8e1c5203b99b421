"""Tables: rows are read in blocks, one column of each block is mapped, and the rows are written with the results.

A table is written in the format in which it was read, so rows keep their bytes, and Parquet its schema, metadata and
compression.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from pressmark.errors import FormatError, TableError, quoted
from pressmark.fs.gzipped import unpacked
from pressmark.tabular.columns import Column, ItemMapper
from pressmark.tabular.formats import Crlf, open_list

__all__ = ["Block", "Writer", "open_items", "open_table", "open_writer"]


class Block(Protocol):
    """Consecutive rows, one column of which is mapped.

    :ivar faults: reasons of failed rows, by index in the block
    :ivar unwritable: indices of failed rows that cannot be written even with an empty result
    :ivar inline: map it in the calling thread, after the blocks before it
    """

    faults: dict[int, str]
    unwritable: set[int]
    inline: bool

    def __len__(self) -> int: ...

    def map(self, mapper: ItemMapper) -> None:
        """Map the items, and add failed rows to ``faults``."""

    def number(self, index: int) -> int:
        """Return the number of a row for messages, from 1."""

    def item(self, index: int) -> Any:
        """Return the item of a failed row for messages."""

    def written(self, kept: list[int] | None) -> Any:
        """Return the rows ``kept``, or all, with their results, as the writer accepts them."""


class Writer(Protocol):
    """A table that is written.

    :ivar bytes_written: the number of bytes written
    """

    @property
    def bytes_written(self) -> int: ...

    def begin(self) -> None:
        """Write the header."""

    def write(self, block: Any, rows: Any) -> None:
        """Write rows of a block, which its ``written`` returned."""

    def finish(self) -> None:
        """Write the end of the table."""

    def abandon(self) -> None:
        """End without marking the output as complete."""


class _TextWriter:
    """Writes rows of CSV, TSV and JSON lines."""

    def __init__(self, sink: Any, head: bytes) -> None:
        self._sink = sink
        self._head = head
        self.bytes_written = 0

    def begin(self) -> None:
        self._write(self._head)

    def write(self, block: Any, rows: bytes) -> None:
        self._write(rows)
        # Slow input is passed on immediately.
        self._sink.flush()

    def finish(self) -> None:
        self._sink.flush()

    def abandon(self) -> None:
        """Do nothing: lines have no end mark."""

    def _write(self, data: bytes) -> None:
        self._sink.write(data)
        self.bytes_written += len(data)


def open_table(source: Any, name: str, format: str, column: Column) -> Any:
    """Return the reader of a table, whose first rows or schema have been read.

    Its ``blocks()`` are the rows, and ``source.bytes_read`` counts the bytes read.

    :param source: a binary stream, decompressed; seekable for Parquet
    :param name: its name in messages
    :param format: ``csv``, ``tsv``, ``jsonl`` or ``parquet``
    :raises FormatError: it has another format, or lacks the column; or Parquet cannot be read without pyarrow
    :raises TableError: it is damaged
    """
    # One format is imported: a run reads one table.
    if format == "parquet":
        return _parquet().ParquetReader(source, name, column)
    listed = open_list(source, format, name=name)
    if format == "jsonl":
        from pressmark.tabular.json_lines import JsonReader

        return JsonReader(listed, column)
    from pressmark.tabular.text import TextReader

    return TextReader(listed, format, column)


def open_writer(reader: Any, format: str, sink: Any) -> Writer:
    """Return the writer of rows of ``reader`` to the binary stream ``sink``."""
    writer: Writer = _parquet().ParquetWriter(sink, reader) if format == "parquet" else _TextWriter(sink, reader.head)
    return writer


@contextmanager
def open_items(
    source: Any,
    name: str,
    format: str,
    *,
    column: str | int | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    crlf: Crlf | None = None,
    null: bool = False,
    json_lines: bool = True,
) -> Iterator[Any]:
    """Open the items of a file: the stream of a list, an Arrow column of Parquet, an iterator for other tables.

    :param source: a binary stream; seekable for Parquet
    :param name: its name in messages; decompressed if it ends in ``.gz``
    :param format: as :func:`~pressmark.tabular.formats.chosen_format` returns it for the other options
    :param json_lines: refuse lines that are JSON
    :raises FormatError: it has another format, or lacks the column; or Parquet cannot be read without pyarrow
    :raises TableError: it is malformed or damaged, possibly only when items are read
    """
    data = unpacked(source, name)
    if column is None:
        yield open_list(data, name=name, delimiter=b"\0" if null else b"\n", crlf=crlf, json_lines=json_lines)
        return
    reader = open_table(data, name, format, Column(column, header, "", delimiter))
    if format != "parquet":
        yield _items(reader)
        return
    with reader.column() as items:
        yield items


def _items(reader: Any) -> Iterator[bytes]:
    """Yield the items of CSV, TSV or JSON lines that are not null."""
    for block in reader.blocks():
        items = block.items
        for index, reason in sorted(block.faults.items())[:1]:
            raise TableError(reader.name, f"{quoted(block.item(index))}: {reason}", block.number(index))
        yield from (item for index, item in enumerate(items) if index not in block.nulls) if block.nulls else items


def _parquet() -> Any:
    try:
        from pressmark.tabular import parquet
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise FormatError("", "reading Parquet needs pyarrow: pip install 'pressmark[arrow]'") from None
    except ImportError as error:
        raise FormatError("", f"reading Parquet needs pyarrow, which failed to load: {error}") from None
    return parquet
