"""Tables through a layout: one column of each block of rows is mapped, and the rows are written with the result.

``text`` reads and writes CSV and TSV, ``parquet`` Parquet; both give and take blocks, so that each of the three can
become any other. ``json_lines`` become JSON lines only. Rows of text that stay what they are keep their bytes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.file_formats import Files, Kind
from pressmark.cli.common.files import Source, checked_list
from pressmark.cli.common.line_progress import LineProgress
from pressmark.cli.common.tables.columns import ColumnSpec
from pressmark.cli.common.tables.mapper import Mapper
from pressmark.layouts import LineCounts
from pressmark.tabular.delimited import dialect_of

__all__ = ["pass_table", "table_column"]


class Block(Protocol):
    """Some rows, one column of which gets mapped.

    :ivar faults: why rows fail, by their index in the block
    :ivar unwritable: those of them that the output cannot hold even with an empty result
    """

    faults: dict[int, str]
    unwritable: set[int]

    def __len__(self) -> int: ...

    def map(self, mapper: Mapper) -> None:
        """Make the results, and note what has none in ``faults``."""

    def number(self, index: int) -> int:
        """Return the number of a row in messages, counted from 1."""

    def item(self, index: int) -> bytes | str:
        """Return what to show of a row that fails."""


class Reader(Protocol):
    """A table to be read."""

    def blocks(self) -> Iterator[Any]:
        """Yield its rows."""


class Writer(Protocol):
    """A table to be written."""

    def begin(self) -> None:
        """Write what comes before the rows."""

    def check(self, block: Any) -> None:
        """Note in ``block.faults`` what this kind of table cannot hold."""

    def write(self, block: Any, kept: list[int] | None) -> None:
        """Write the rows ``kept``, or all, with their results."""

    def finish(self) -> None:
        """Write what comes behind the rows."""

    def abandon(self) -> None:
        """End without making what was written look complete."""


def pass_table(
    files: Files,
    wanted: ColumnSpec,
    mapper: Mapper,
    on_error: str,
    source: Source,
    data: Any,
    sink: Any,
    reporter: LineProgress,
) -> LineCounts:
    """Read the table ``source``, and write it with the result of its wanted column as the new last one.

    :param on_error: ``"raise"``, ``"skip"`` or ``"empty"``
    :param data: where the bytes of ``source`` come from: itself, or what unpacks it
    :param sink: where the bytes go to
    """
    reader, writer = _opened(files, wanted, source, data, sink)
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


def table_column(kind: Kind, wanted: ColumnSpec, source: Source, data: Any) -> AbstractContextManager[Any]:
    """Open the wanted column of the table ``source``: an Arrow stream, or an iterator of octets.

    :param data: where the bytes of ``source`` come from: itself, or what unpacks it
    """
    if kind is Kind.PARQUET:
        column: AbstractContextManager[Any] = _parquet("reading").ParquetReader(source, wanted).column()
        return column
    return nullcontext(_text_reader(kind, wanted, data).items())


def _pass_block(
    block: Block,
    writer: Writer,
    on_error: str,
    mapper: Mapper,
    source: Source,
    reporter: LineProgress,
    counts: LineCounts,
) -> LineCounts:
    failed = sorted(block.faults)
    stop = None
    kept = None
    if failed and on_error == "skip":
        kept = [index for index in range(len(block)) if index not in block.faults]
    elif failed:
        # A row that cannot be written at all ends the run even where its result may be empty.
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


def _opened(files: Files, wanted: ColumnSpec, source: Source, data: Any, sink: Any) -> tuple[Reader, Writer]:
    # Each only where it is needed: pyarrow may be absent, and takes its time.
    if Kind.PARQUET in (files.source, files.sink):
        parquet = _parquet("reading" if files.source is Kind.PARQUET else "writing")
    reader: Any
    if files.source is Kind.PARQUET:
        reader = parquet.ParquetReader(source, wanted)
    else:
        reader = _text_reader(files.source, wanted, data)
    if files.sink is Kind.PARQUET:
        return reader, parquet.ParquetWriter(sink, reader, wanted)
    if files.sink is Kind.JSONL:
        from pressmark.cli.common.tables import jsonl as json_lines

        return reader, json_lines.JsonWriter(sink, wanted)
    from pressmark.cli.common.tables import text

    if files.sink is files.source:
        return reader, text.SameTextWriter(sink, reader, wanted)
    return reader, text.TextWriter(sink, reader.header(), dialect_of(files.sink.value), wanted)


def _text_reader(kind: Kind, wanted: ColumnSpec, data: Any) -> Any:
    """Return the reader of CSV, TSV or JSON lines, after its first bytes were examined."""
    listed = checked_list(data, kind.value, False, None)
    if kind is Kind.JSONL:
        from pressmark.cli.common.tables import jsonl as json_lines

        return json_lines.JsonReader(listed, wanted)
    from pressmark.cli.common.tables import text

    return text.TextReader(listed, dialect_of(kind.value, wanted.delimiter), wanted)


def _parquet(verb: str) -> Any:
    try:
        return importlib.import_module("pressmark.cli.common.tables.parquet")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        raise CallError(f"{verb} Parquet needs pyarrow: pip install 'pressmark[arrow]'") from None
    except ImportError as error:
        raise CallError(f"{verb} Parquet needs pyarrow, which does not load: {error}") from None
