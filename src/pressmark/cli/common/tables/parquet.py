"""Parquet, through pyarrow: row group by row group, with schema, metadata and compression of what is carried along."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.files import Source
from pressmark.cli.common.tables.columns import ColumnSpec, index_of
from pressmark.cli.common.tables.mapper import Mapper
from pressmark.errors import ColumnError, quoted

# By name, because it need not be there where types are checked. Whoever imports this module says so if it is not here.
pa: Any = importlib.import_module("pyarrow")
pc: Any = importlib.import_module("pyarrow.compute")
pq: Any = importlib.import_module("pyarrow.parquet")

__all__ = ["ArrowBlock", "ParquetReader", "ParquetWriter"]

# A column chunk of a row group may have hundreds of megabytes: it is read as it is needed.
READ_BYTES = 1 << 20  # 1 MiB
BATCH_ROWS = 1 << 16
BATCH_BYTES = 1 << 23  # 8 MiB
SAMPLE_ROWS = 256
# Row groups are as in the source unless those are longer: what is written at once is held in memory.
GROUP_ROWS = 1 << 20
GROUP_BYTES = 1 << 25  # 32 MiB
# What Parquet calls a codec, where pyarrow does not call it so; what nobody writes any more becomes the default.
CODECS = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4", "LZO": "zstd"}
DEFAULT_CODEC = "zstd"


class ArrowBlock:
    """A record batch: see ``Block``.

    :ivar group: the number of its row group
    """

    def __init__(self, batch: Any, reader: ParquetReader, first_row: int, group: int) -> None:
        self.faults: dict[int, str] = {}
        self.unwritable: set[int] = set()
        self.group = group
        self._batch = batch
        self._column = batch.column(reader.index)
        self._name = reader.name
        self._first_row = first_row
        self._results: Any = None

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def map(self, mapper: Mapper) -> None:
        """Map the wanted column."""
        results = pa.array(mapper.array(self._column))
        if results.null_count != self._column.null_count:
            failed = pc.and_(pc.is_null(results), pc.is_valid(self._column))
            for index in pc.indices_nonzero(failed).to_pylist():
                item = self.item(index)
                # A dictionary may hold null, which is no failure either.
                if item is not None:
                    self.faults[index] = mapper.reason(item)
        if results.type == pa.large_binary():
            items = results.to_pylist()
            for index, item in enumerate(items):
                if item is not None and not _is_utf8(item):
                    self.faults[index] = f"{mapper.result} is not UTF-8, which Parquet requires"
                    items[index] = None
            results = pa.array(items, pa.large_binary())
        self._results = results.cast(pa.string())

    def number(self, index: int) -> int:
        """Return the number of a row in the file."""
        return self._first_row + index

    def item(self, index: int) -> bytes | None:
        """Return the octets of the item of a row: nothing has seen to it that text in Parquet is UTF-8."""
        scalar = self._column[index]
        if isinstance(scalar, pa.DictionaryScalar):
            scalar = scalar.value
        buffer = scalar.as_buffer()
        return None if buffer is None else bytes(buffer)

    def batch(self, kept: list[int] | None, schema: Any) -> Any:
        """Return the rows ``kept``, or all, with their results."""
        batch = pa.record_batch([*self._batch.columns, self._results], schema=schema)
        return batch if kept is None else batch.take(pa.array(kept, pa.int64()))

    def values(self) -> list[list[bytes]]:
        """Return every row with its result as text."""
        with _named(self._name):
            columns = [_texts(column) for column in [*self._batch.columns, self._results]]
        return [list(row) for row in zip(*columns, strict=True)]


class ParquetReader:
    """A Parquet file whose schema has been read."""

    def __init__(self, source: Source, wanted: ColumnSpec) -> None:
        self.name = source.name
        self._row_bytes = 0.0
        if not source.file.seekable():
            raise CallError(f"{self.name}: Parquet input must be seekable; a pipe is not")
        with _named(self.name):
            self.file = pq.ParquetFile(_Input(source), buffer_size=READ_BYTES, pre_buffer=False)
            self.schema = self.file.schema_arrow
        self.index = index_of(wanted, self.schema.names, self.name)
        kind = self.schema.types[self.index]
        if not _is_text(kind):
            raise CallError(f"{self.name}: column {quoted(self.schema.names[self.index])} is {kind}, not text")

    def header(self) -> list[bytes]:
        """Return the names of the columns; refuse those that text cannot hold."""
        for field in self.schema:
            try:
                _texts(pa.array([], field.type))
            except pa.ArrowException:
                message = f"column {quoted(field.name)} is {field.type}, which cannot be written as text"
                raise CallError(f"{self.name}: {message}") from None
        return [name.encode() for name in self.schema.names]

    def blocks(self) -> Iterator[ArrowBlock]:
        """Yield record batches, none of which spans row groups."""
        row = 1
        for group in range(self.file.num_row_groups):
            with _named(self.name):
                batches = self.file.iter_batches(self._batch_rows(group), row_groups=[group])
            while True:
                with _named(self.name):
                    batch = next(batches, None)
                if batch is None:
                    break
                self._row_bytes = max(self._row_bytes, batch.nbytes / max(1, batch.num_rows))
                yield ArrowBlock(batch, self, row, group)
                row += batch.num_rows

    @contextlib.contextmanager
    def column(self) -> Iterator[Any]:
        """Give the wanted column alone, as an Arrow stream."""
        # Through the stream comes only its text, with the traceback in it.
        failures: list[Failure] = []
        field = self.schema.field(self.index)
        # By its name come all columns of that name.
        before = self.schema.names[: self.index].count(field.name)

        def batches() -> Iterator[Any]:
            try:
                for group in range(self.file.num_row_groups):
                    with _named(self.name):
                        some = self.file.iter_batches(self._batch_rows(group), row_groups=[group], columns=[field.name])
                    while True:
                        with _named(self.name):
                            batch = next(some, None)
                        if batch is None:
                            break
                        yield batch.select([batch.schema.get_all_field_indices(field.name)[before]])
            except Failure as error:
                failures.append(error)
                raise

        try:
            yield pa.RecordBatchReader.from_batches(pa.schema([field]), batches())
        except ColumnError:
            if failures:
                raise failures[0] from None
            raise

    def _batch_rows(self, group: int) -> int:
        """Return how many rows of a row group to read at once: few where they are long."""
        described = self.file.metadata.row_group(group)
        if self._row_bytes == 0:
            # The file says how long rows are in it, where a dictionary may hold the long part of many of them once.
            for batch in self.file.iter_batches(SAMPLE_ROWS, row_groups=[group]):
                self._row_bytes = batch.nbytes / max(1, batch.num_rows)
                break
        stored = described.total_byte_size / max(1, described.num_rows)
        return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(1, stored, self._row_bytes))))


class ParquetWriter:
    """Writes rows of any kind of table as Parquet."""

    def __init__(self, sink: Any, reader: Any, wanted: ColumnSpec) -> None:
        self._output = _Output(sink)
        self._group: int | None = None
        self._held: list[Any] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._writer: Any = None
        self._rows: list[list[bytes]] | None = None
        if isinstance(reader, ParquetReader):
            schema, self._options = reader.schema, _options_of(reader, wanted.result)
        else:
            # Without a header row, columns are called by the numbers that --column counts.
            names = reader.names or [f"column_{number}" for number in range(1, reader.width + 1)]
            for name in names:
                if not _is_utf8(name.encode("utf-8", "surrogateescape")):
                    raise CallError(f"{reader.name}: column name {quoted(name)} is not UTF-8")
            if wanted.result in names:
                raise CallError(f"{reader.name}: column {quoted(wanted.result)} already exists; use --as NAME")
            schema = pa.schema([(name, pa.string()) for name in names])
            self._options = {"compression": DEFAULT_CODEC, "use_dictionary": names}
        self._schema = schema.append(pa.field(wanted.result, pa.string()))

    def begin(self) -> None:
        """Write the magic bytes."""
        with _named(self._output.name):
            self._writer = pq.ParquetWriter(self._output, self._schema, **self._options)

    def check(self, block: Any) -> None:
        """Fail rows of text that a table of text columns cannot hold."""
        self._rows = None
        if isinstance(block, ArrowBlock):
            return
        self._rows = rows = block.values()
        width = len(self._schema)
        for index in block.faults:
            if len(rows[index]) != width:
                block.unwritable.add(index)
        if _is_utf8(b"\0".join(map(b"\0".join, rows))):
            return
        for index, row in enumerate(rows):
            for number, field in enumerate(row, 1):
                if not _is_utf8(field):
                    what = "result" if number == len(row) else f"field {number}"
                    block.faults.setdefault(index, f"{what} is not UTF-8, which Parquet requires")
                    # Of a row that fails, the result is null.
                    if number < len(row):
                        block.unwritable.add(index)

    def write(self, block: Any, kept: list[int] | None) -> None:
        """Take rows, and write them when a row group of the source is complete, or enough is held."""
        if block.group != self._group:
            self._flush()
            self._group = block.group
        batch = block.batch(kept, self._schema) if self._rows is None else self._batch_of(block, kept)
        self._held.append(batch)
        self._held_rows += batch.num_rows
        self._held_bytes += batch.nbytes
        if self._held_rows >= GROUP_ROWS or self._held_bytes >= GROUP_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write what is held, and the footer."""
        self._flush()
        with _named(self._output.name):
            self._writer.close()
        self._output.flush()

    def abandon(self) -> None:
        """Let pyarrow close its writer, which adds a footer, but not into the output."""
        self._output.abandoned = True
        if self._writer is not None:
            with contextlib.suppress(Exception):
                self._writer.close()

    def _batch_of(self, block: Any, kept: list[int] | None) -> Any:
        assert self._rows is not None
        chosen = range(len(self._rows)) if kept is None else kept
        failed = block.faults
        rows = [self._rows[index] if index not in failed else [*self._rows[index][:-1], None] for index in chosen]
        columns = zip(*rows, strict=True) if rows else [[] for _ in self._schema]
        arrays = [pa.array(column, pa.binary()).cast(pa.string()) for column in columns]
        return pa.record_batch(arrays, schema=self._schema)

    def _flush(self) -> None:
        if self._held_rows:
            # Each batch may bring a dictionary of its own; a column chunk can have but one.
            table = pa.Table.from_batches(self._held, self._schema).unify_dictionaries()
            with _named(self._output.name):
                self._writer.write_table(table, row_group_size=self._held_rows)
            del table
            self._held = []
            # Pools keep what they may need again, which adds up to a hundred megabytes over many row groups.
            pa.default_memory_pool().release_unused()
        self._held = []
        self._held_rows = self._held_bytes = 0


class _Input:
    """A source as pyarrow reads files; it counts what is read."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.closed = False
        self.seek = source.file.seek
        self.tell = source.file.tell

    def read(self, size: int = -1) -> bytes:
        data = self._source.file.read(size)
        self._source.bytes_read += len(data)
        return data

    def close(self) -> None:
        """Leave that to whoever opened it."""


class _Output:
    """A sink as pyarrow writes files; nothing more gets through once it is abandoned."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self.name: str = sink.name
        self.closed = False
        self.abandoned = False

    def write(self, data: Any) -> int:
        if self.abandoned:
            return len(data)
        written: int = self._sink.write(data)
        return written

    def flush(self) -> None:
        if not self.abandoned:
            self._sink.flush()

    def close(self) -> None:
        """Leave that to whoever opened it."""


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Turn what pyarrow raises into one line about the file ``name``."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (pa.ArrowException, OSError) as error:
        text = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise Failure(f"{name}: {text}") from None


def _options_of(reader: ParquetReader, result: str) -> dict[str, Any]:
    """Return how to write a file like that of ``reader``: the codecs, and which columns have a dictionary."""
    if not reader.file.num_row_groups:
        return {"compression": DEFAULT_CODEC}
    group = reader.file.metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    codecs = {one.path_in_schema: CODECS.get(one.compression, one.compression.lower()) for one in columns}
    name = reader.schema.names[reader.index]
    codecs[result] = codec = codecs.get(name, DEFAULT_CODEC)
    dictionaries = [one.path_in_schema for one in columns if "DICTIONARY" in " ".join(one.encodings)]
    # The results are not among them: no two of them are the same, as a rule.
    return {
        # A column inside another may be called otherwise when written, so that one codec for all is the safer way.
        "compression": codec if len(set(codecs.values())) == 1 else codecs,
        "use_dictionary": dictionaries,
        "use_deprecated_int96_timestamps": any(one.physical_type == "INT96" for one in columns),
    }


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    names = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    # Views are younger than the oldest pyarrow that will do.
    return any(test(kind) for name in names if (test := getattr(pa.types, f"is_{name}", None)))


def _texts(array: Any) -> list[bytes]:
    """Return every item as text, null as none."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not _is_text(array.type):
        array = pc.cast(array, pa.large_string())
    return [b"" if item is None else item for item in pc.cast(array, pa.large_binary()).to_pylist()]


def _is_utf8(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True
