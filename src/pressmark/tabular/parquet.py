"""Parquet by pyarrow, row group by row group; schema, metadata and compression of other columns stay the same."""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pressmark.errors import ColumnError, FormatError, TableError, TableWarning, quoted
from pressmark.tabular.columns import Column, ItemMapper, index_of
from pressmark.threads import Threads

if TYPE_CHECKING:
    from concurrent.futures import Future

# By name: pyarrow need not be installed for type checks. The importer of this module reports its absence.
pa: Any = importlib.import_module("pyarrow")
pq: Any = importlib.import_module("pyarrow.parquet")

__all__ = ["ArrowBlock", "ParquetReader", "ParquetWriter"]

# A column chunk of a row group may have hundreds of megabytes.
READ_BYTES = 1 << 20  # 1 MiB
BATCH_ROWS = 1 << 16
BATCH_BYTES = 1 << 23  # 8 MiB
SAMPLE_ROWS = 256
SHORT_ROWS = 1 << 12
# Larger row groups of the source are divided: a row group is held in memory until it is written.
GROUP_ROWS = 1 << 20
GROUP_BYTES = 1 << 25  # 32 MiB
# The names of codecs in pyarrow, where they differ from those in Parquet; an obsolete codec becomes the default.
CODECS = {"UNCOMPRESSED": "none", "LZ4_RAW": "lz4"}
DEFAULT_CODEC = "zstd"


class ArrowBlock:
    """A record batch: see ``Block``.

    :ivar group: the number of its row group
    :ivar inline: few rows take less time than another thread needs to start
    """

    def __init__(self, batch: Any, reader: ParquetReader, first_row: int, group: int) -> None:
        self.faults: dict[int, str] = {}
        self.unwritable: set[int] = set()
        self.group = group
        self._batch = batch
        self._column = batch.column(reader.index)
        self._schema = reader.result_schema
        self.inline = batch.num_rows < SHORT_ROWS
        self._first_row = first_row
        self._results: Any = None

    def __len__(self) -> int:
        return int(self._batch.num_rows)

    def map(self, mapper: ItemMapper) -> None:
        """Map the column."""
        # As text if all are UTF-8. Conversion by pa.array would load pyarrow.compute, which takes longer than to map a
        # small table.
        capsules = mapper.array(self._column).__arrow_c_array__(pa.string().__arrow_c_schema__())
        results = pa.Array._import_from_c_capsule(*capsules)
        if results.null_count != self._column.null_count:
            pc: Any = importlib.import_module("pyarrow.compute")  # in most runs no row fails
            failed = pc.and_(pc.is_null(results), pc.is_valid(self._column))
            for index in pc.indices_nonzero(failed).to_pylist():
                item = self.item(index)
                # A dictionary may contain null, which is not a failure.
                if item is not None:
                    self.faults[index] = mapper.reason(item)
        if results.type == pa.large_binary():
            items = results.to_pylist()
            for index, item in enumerate(items):
                if item is not None and not _is_utf8(item):
                    self.faults[index] = f"{mapper.result} is not UTF-8, which Parquet requires"
                    items[index] = None
            results = pa.array(items, pa.large_binary()).cast(pa.string())
        self._results = results

    def number(self, index: int) -> int:
        """Return the number of a row in the file."""
        return self._first_row + index

    def item(self, index: int) -> bytes | None:
        """Return the item of a row as bytes: text in Parquet may be invalid UTF-8."""
        scalar = self._column[index]
        if isinstance(scalar, pa.DictionaryScalar):
            scalar = scalar.value
        buffer = scalar.as_buffer()
        return None if buffer is None else bytes(buffer)

    def written(self, kept: list[int] | None) -> Any:
        """Return the rows ``kept``, or all, with their results."""
        batch = pa.record_batch([*self._batch.columns, self._results], schema=self._schema)
        return batch if kept is None else batch.take(pa.array(kept, pa.int64()))


class ParquetReader:
    """A Parquet file whose schema has been read.

    :param source: a seekable binary stream
    :ivar source: the stream, with ``bytes_read``
    :ivar result_schema: the schema with the column of results
    :raises FormatError: the column does not exist or is not text, or the source is not seekable
    :raises TableError: the file is damaged
    """

    def __init__(self, source: Any, name: str, column: Column) -> None:
        self.name = name
        self.result = column.result
        self._row_bytes = 0.0
        if not source.seekable():
            raise FormatError(name, "Parquet input must be seekable; a pipe is not")
        self.source = _Input(source)
        with _named(name):
            self.file = pq.ParquetFile(self.source, buffer_size=READ_BYTES, pre_buffer=False)
            self.schema = self.file.schema_arrow
        self.result_schema = self.schema.append(pa.field(column.result, pa.string()))
        self.index = index_of(column, self.schema.names, name)
        kind = self.schema.types[self.index]
        if not _is_text(kind):
            raise FormatError(name, f"column {quoted(self.schema.names[self.index])} is {kind}, not text")

    def blocks(self) -> Iterator[ArrowBlock]:
        """Yield record batches, none of which spans row groups.

        :raises TableError: the file is damaged
        """
        row = 1
        for group, batch in self._batches():
            yield ArrowBlock(batch, self, row, group)
            row += batch.num_rows

    def items(self) -> Iterator[bytes]:
        """Yield the items that are not null.

        :raises TableError: the file is damaged
        """
        for batch in self._column_batches():
            items = batch.column(0)
            if pa.types.is_dictionary(items.type):
                items = items.dictionary_decode()
            # Text in Parquet may be invalid UTF-8.
            yield from (item for item in items.cast(pa.large_binary()).to_pylist() if item is not None)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the values of each row.

        :raises TableError: the file is damaged, or a value is not UTF-8
        """
        for _group, batch in self._batches():
            with _named(self.name):
                try:
                    columns = [column.to_pylist() for column in batch.columns]
                except UnicodeDecodeError as error:
                    raise TableError(self.name, f"text is not UTF-8: {error.reason}") from None
            yield from zip(*columns, strict=True)

    @contextlib.contextmanager
    def column(self) -> Iterator[Any]:
        """Yield the column as an Arrow stream.

        :raises TableError: the file is damaged
        """
        # The stream passes only the text of an error on, with a traceback.
        failures: list[TableError] = []

        def batches() -> Iterator[Any]:
            try:
                yield from self._column_batches()
            except TableError as error:
                failures.append(error)
                raise

        try:
            yield pa.RecordBatchReader.from_batches(pa.schema([self.schema.field(self.index)]), batches())
        except ColumnError:
            if failures:
                raise failures[0] from None
            raise

    def _column_batches(self) -> Iterator[Any]:
        """Yield record batches of the column alone."""
        name = self.schema.names[self.index]
        # pyarrow reads all columns of this name.
        before = self.schema.names[: self.index].count(name)
        for _group, batch in self._batches([name]):
            yield batch.select([batch.schema.get_all_field_indices(name)[before]])

    def _batches(self, columns: list[str] | None = None) -> Iterator[tuple[int, Any]]:
        """Yield the number of the row group and each of its record batches."""
        for group in range(self.file.num_row_groups):
            with _named(self.name):
                batches = self.file.iter_batches(self._batch_rows(group), row_groups=[group], columns=columns)
            while True:
                with _named(self.name):
                    batch = next(batches, None)
                if batch is None:
                    break
                self._row_bytes = max(self._row_bytes, batch.nbytes / max(1, batch.num_rows))
                yield group, batch

    def _batch_rows(self, group: int) -> int:
        """Return the number of rows of a row group to read at once; few if they are long."""
        described = self.file.metadata.row_group(group)
        if self._row_bytes == 0:
            # The stored size is too small if a dictionary has the long values of many rows once.
            for batch in self.file.iter_batches(SAMPLE_ROWS, row_groups=[group]):
                self._row_bytes = batch.nbytes / max(1, batch.num_rows)
                break
        stored = described.total_byte_size / max(1, described.num_rows)
        return max(1, min(BATCH_ROWS, int(BATCH_BYTES / max(1, stored, self._row_bytes))))


class ParquetWriter:
    """Writes rows like those of a Parquet file, each with its result as a new last column.

    A row group is encoded, compressed and written by another thread while the rows of the next one are read and mapped.
    """

    def __init__(self, sink: Any, reader: ParquetReader) -> None:
        self._output = _Output(sink)
        self._group: int | None = None
        self._held: list[Any] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._writer: Any = None
        self._stack = contextlib.ExitStack()
        self._pool: Threads | None = None
        self._writing: Future[None] | None = None
        self._options = _options_of(reader)
        self._schema = reader.result_schema

    @property
    def bytes_written(self) -> int:
        """The number of bytes written."""
        return self._output.bytes_written

    def begin(self) -> None:
        """Write the magic bytes."""
        with _named(self._output.name):
            self._writer = pq.ParquetWriter(self._output, self._schema, **self._options)
        # The end of a run waits for the thread, and writing to a pipe that nobody reads would never end.
        if self._output.is_regular():
            self._pool = self._stack.enter_context(Threads(1, "pressmark-write"))

    def write(self, block: ArrowBlock, batch: Any) -> None:
        """Add rows of a block; write them at the end of a row group of the source, or if enough are held."""
        if block.group != self._group:
            self._flush()
            self._group = block.group
        self._held.append(batch)
        self._held_rows += batch.num_rows
        self._held_bytes += batch.nbytes
        if self._held_rows >= GROUP_ROWS or self._held_bytes >= GROUP_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write the rows that are held, and the footer."""
        self._flush()
        self._await_group()
        self._stack.close()
        with _named(self._output.name):
            self._writer.close()
        self._output.flush()

    def abandon(self) -> None:
        """Close the writer of pyarrow, and discard the footer that it adds."""
        self._output.abandoned = True
        self._stack.close()
        if self._writer is not None:
            with contextlib.suppress(Exception):
                self._writer.close()

    def _flush(self) -> None:
        """Have the rows that are held written, once those before them are."""
        self._await_group()
        batches, self._held = self._held, []
        rows, self._held_rows, self._held_bytes = self._held_rows, 0, 0
        if not rows:
            return
        if self._pool is None:
            self._write_group(batches, rows)
        else:
            self._writing = self._pool.submit(self._write_group, batches, rows)

    def _await_group(self) -> None:
        """Wait for the row group that is being written.

        :raises TableError: it cannot be written
        """
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.result()

    def _write_group(self, batches: list[Any], rows: int) -> None:
        # Each batch may have its own dictionary; a column chunk has only one.
        table = pa.Table.from_batches(batches, self._schema).unify_dictionaries()
        batches.clear()
        with _named(self._output.name):
            self._writer.write_table(table, row_group_size=rows)


class _Input:
    """A stream as a file of pyarrow, which counts the bytes read."""

    def __init__(self, source: Any) -> None:
        self._read = source.read
        self.bytes_read = 0
        self.closed = False
        self.seek = source.seek
        self.tell = source.tell

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes; fewer only at the end."""
        parts: list[bytes] = []
        missing = size
        while missing and (part := self._read(missing)):
            parts.append(part)
            missing -= len(part)
        self.bytes_read += size - missing
        return b"".join(parts)

    def close(self) -> None:
        """Do nothing: the file is closed where it was opened."""


class _Output:
    """A sink as a file of pyarrow; it discards all data once it is abandoned."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        name = getattr(sink, "name", "")
        self.name = name if isinstance(name, str) else ""
        self.bytes_written = 0
        self.closed = False
        self.abandoned = False

    def is_regular(self) -> bool:
        """Return whether the sink is a regular file."""
        try:
            return stat.S_ISREG(os.fstat(self._sink.fileno()).st_mode)
        except (AttributeError, OSError):
            return False

    def write(self, data: Any) -> int:
        if not self.abandoned:
            self._sink.write(data)
            self.bytes_written += len(data)
        return len(data)

    def flush(self) -> None:
        if not self.abandoned:
            self._sink.flush()

    def close(self) -> None:
        """Do nothing: the file is closed where it was opened."""


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Turn an error of pyarrow into a :class:`TableError` about the file ``name``."""
    try:
        yield
    except BrokenPipeError:
        raise
    except (pa.ArrowException, OSError) as error:
        text = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise TableError(name, text) from None


def _options_of(reader: ParquetReader) -> dict[str, Any]:
    """Return how to write a file like that of ``reader``: the codecs, and which columns have a dictionary."""
    if not reader.file.num_row_groups:
        return {"compression": DEFAULT_CODEC}
    group = reader.file.metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    found = {one.path_in_schema: _codec(one.compression) for one in columns}
    if None in found.values():
        what = "compression not supported for writing"
        warnings.warn(f"{reader.name}: {what}; the output is compressed with Zstandard", TableWarning, stacklevel=2)
    codecs = {path: codec or DEFAULT_CODEC for path, codec in found.items()}
    name = reader.schema.names[reader.index]
    codecs[reader.result] = codec = codecs.get(name, DEFAULT_CODEC)
    dictionaries = [one.path_in_schema for one in columns if "DICTIONARY" in " ".join(one.encodings)]
    # Results get no dictionary: they rarely repeat.
    return {
        # A nested column may have another name when written, so one codec for all is safer.
        "compression": codec if len(set(codecs.values())) == 1 else codecs,
        "use_dictionary": dictionaries,
        "use_deprecated_int96_timestamps": any(one.physical_type == "INT96" for one in columns),
    }


def _codec(name: str) -> str | None:
    """Return the codec in which to write a column that is compressed with ``name``; :data:`None` if there is none."""
    codec = CODECS.get(name, name.lower())
    if codec == "none":
        return codec
    # pyarrow reads the LZ4 of Hadoop, whose name it does not know, but does not write it.
    return codec if codec != "unknown" and pa.Codec.is_available(codec) else None


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    # Values that are all missing have the null type.
    names = ("null", "string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    # The oldest supported pyarrow has no views.
    return any(test(kind) for name in names if (test := getattr(pa.types, f"is_{name}", None)))


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
