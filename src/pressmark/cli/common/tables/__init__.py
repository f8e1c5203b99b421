"""Tables through a layout: one column of each block of rows is mapped, and the rows are written with the result.

``text`` reads and writes CSV and TSV, ``parquet`` Parquet; each of the three can be converted to the others. JSON lines
are written as JSON lines only. Rows that keep their format keep their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.file_formats import Files, Kind
from pressmark.cli.common.files import InputStream, checked_list
from pressmark.cli.common.progress import LineProgress
from pressmark.cli.common.tables.columns import ColumnSpec
from pressmark.cli.common.tables.mapper import Mapper
from pressmark.layouts import LineCounts
from pressmark.tabular.delimited import dialect_of

__all__ = ["pass_table", "table_column"]


class Block(Protocol):
    """Consecutive rows, one column of which is mapped.

    :ivar faults: reasons of failed rows, by index in the block
    :ivar unwritable: indices of failed rows that cannot be written even with an empty result
    """

    faults: dict[int, str]
    unwritable: set[int]

    def __len__(self) -> int: ...

    def map(self, mapper: Mapper) -> None:
        """Map the items, and add failed rows to ``faults``."""

    def number(self, index: int) -> int:
        """Return the number of a row for messages, from 1."""

    def item(self, index: int) -> bytes | str:
        """Return the item of a failed row for messages."""


class Reader(Protocol):
    """A table that is read."""

    def blocks(self) -> Iterator[Any]:
        """Yield the rows."""


class Writer(Protocol):
    """A table that is written."""

    def begin(self) -> None:
        """Write the header."""

    def check(self, block: Any) -> None:
        """Add rows that this format cannot represent to ``block.faults``."""

    def write(self, block: Any, kept: list[int] | None) -> None:
        """Write the rows ``kept``, or all, with their results."""

    def finish(self) -> None:
        """Write the end of the table."""

    def abandon(self) -> None:
        """End without marking the output as complete."""


def pass_table(
    files: Files,
    spec: ColumnSpec,
    mapper: Mapper,
    on_error: str,
    source: InputStream,
    data: Any,
    sink: Any,
    reporter: LineProgress,
) -> LineCounts:
    """Read the table ``source``, and write it with the results of a column as a new last column.

    :param on_error: ``"raise"``, ``"skip"`` or ``"empty"``
    :param data: the bytes of ``source``, decompressed
    :param sink: the output
    """
    reader, writer = _opened(files, spec, source, data, sink)
    counts = LineCounts()
    try:
        writer.begin()
        for block in reader.blocks():
            block.map(mapper)
            writer.check(block)
            counts = _pass_block(block, writer, on_error, mapper, source, reporter, counts)
        writer.finish()
    except BaseException:
        writer.abandon()
        raise
    return counts


def table_column(kind: Kind, spec: ColumnSpec, source: InputStream, data: Any) -> AbstractContextManager[Any]:
    """Open a column of the table ``source``: an Arrow stream, or an iterator of ``bytes``.

    :param data: the bytes of ``source``, decompressed
    """
    if kind is Kind.PARQUET:
        column: AbstractContextManager[Any] = _parquet("reading").ParquetReader(source, spec).column()
        return column
    return nullcontext(_text_reader(kind, spec, data).items())


def _pass_block(
    block: Block,
    writer: Writer,
    on_error: str,
    mapper: Mapper,
    source: InputStream,
    reporter: LineProgress,
    counts: LineCounts,
) -> LineCounts:
    failed = sorted(block.faults)
    stop = None
    kept = None
    if failed and on_error == "skip":
        kept = [index for index in range(len(block)) if index not in block.faults]
    elif failed:
        # A row that cannot be written ends the run, even if results may be empty.
        stop = failed[0] if on_error == "raise" else min(block.unwritable, default=None)
        if stop is not None:
            kept = list(range(stop))
            failed = [index for index in failed if index < stop]
    writer.write(block, kept)
    for index in failed:
        reporter.on_failure(mapper.error(block.item(index), block.number(index), block.faults[index]))
    if stop is not None:
        error = mapper.error(block.item(stop), block.number(stop), block.faults[stop])
        raise Failure(reporter.failure_text(error))
    counts = LineCounts(counts.items + len(block), counts.failed + len(failed), source.bytes_read, counts.bytes_written)
    reporter.on_progress(counts)
    return counts


def _opened(files: Files, spec: ColumnSpec, source: InputStream, data: Any, sink: Any) -> tuple[Reader, Writer]:
    # pyarrow may be absent, and takes long to import.
    if Kind.PARQUET in (files.source, files.sink):
        parquet = _parquet("reading" if files.source is Kind.PARQUET else "writing")
    reader: Any
    if files.source is Kind.PARQUET:
        reader = parquet.ParquetReader(source, spec)
    else:
        reader = _text_reader(files.source, spec, data)
    if files.sink is Kind.PARQUET:
        return reader, parquet.ParquetWriter(sink, reader, spec)
    if files.sink is Kind.JSONL:
        from pressmark.cli.common.tables import jsonl as json_lines

        return reader, json_lines.JsonWriter(sink, spec)
    from pressmark.cli.common.tables import text

    if files.sink is files.source:
        return reader, text.SameTextWriter(sink, reader, spec)
    return reader, text.TextWriter(sink, reader.header(), dialect_of(files.sink.value), spec)


def _text_reader(kind: Kind, spec: ColumnSpec, data: Any) -> Any:
    """Return the reader of CSV, TSV or JSON lines, after checking its first bytes."""
    listed = checked_list(data, kind.value, False, None)
    if kind is Kind.JSONL:
        from pressmark.cli.common.tables import jsonl as json_lines

        return json_lines.JsonReader(listed, spec)
    from pressmark.cli.common.tables import text

    return text.TextReader(listed, dialect_of(kind.value, spec.delimiter), spec)


def _parquet(verb: str) -> Any:
    try:
        from pressmark.cli.common.tables import parquet
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise CallError(f"{verb} Parquet needs pyarrow: pip install 'pressmark[arrow]'") from None
    except ImportError as error:
        raise CallError(f"{verb} Parquet needs pyarrow, which failed to load: {error}") from None
    return parquet
