"""The job that maps files of identifiers to paths, or back, in chunks."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Literal

from pressmark.errors import IdentifierError, JobError, PathError
from pressmark.fs.atomic import OutputFile
from pressmark.jobs.chunks import ROWS, Chunk
from pressmark.jobs.receipt_builder import ReceiptBuilder
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.workdir import WorkFolder, job_key
from pressmark.layouts.base import Layout
from pressmark.tabular.delimited import RowsError
from pressmark.tabular.detection import Crlf, FormatError, format_of, is_gzip
from pressmark.tabular.row_ranges import FORMATS, Shape, fields, lines_of, row_ranges, shape_of

__all__ = ["MapIds"]

TEXT_BYTES = 32 << 20  # some million identifiers
BATCH = 1 << 16  # rows
_OUTPUTS = {"lines": "tsv", "parquet": "parquet"}


@dataclass(frozen=True)
class MapIds:
    """Map a column of identifiers to paths, or a column of paths to identifiers.

    The output of a chunk contains both: ``lines`` are identifier, TAB, path; ``parquet`` has the columns ``identifier``
    and ``path``, null for a failed identifier. Failed items are in ``<chunk>.errors.jsonl``, with the number of their
    row in the chunk, from 1, and are not in the lines. Statuses: ``ok``, ``failed``, ``null``.

    :ivar layout: layout of the identifiers or paths
    :ivar unmap: map paths to identifiers
    :ivar column: name, or number from 1; :data:`None` for the only column
    :ivar format: ``parquet``, ``csv``, ``tsv``, ``jsonl`` or ``lines``; :data:`None` for the suffixes of the files
    :ivar header: whether CSV and TSV have a header row; :data:`None` if ``column`` is a name
    :ivar output: ``lines`` or ``parquet``
    :ivar delimiter: the separator of CSV; :data:`None` for a comma
    :ivar crlf: for lines: ``strip`` carriage returns before line feeds and a byte-order mark, or ``keep`` them as part
        of identifiers; :data:`None` refuses files that contain either
    :ivar both: write identifier and path; otherwise lines have the result only
    :ivar on_error: for lines: ``skip`` failed items, or write an ``empty`` result
    """

    layout: Layout
    unmap: bool = False
    column: str | int | None = None
    format: str | None = None
    header: bool | None = None
    output: str = "lines"
    delimiter: str | None = None
    crlf: Crlf | None = None
    both: bool = True
    on_error: Literal["skip", "empty"] = "skip"

    def __post_init__(self) -> None:
        if self.format not in (*FORMATS, "parquet", None):
            raise ValueError(f"format={self.format!r}: expected parquet, {', '.join(FORMATS)}")
        if self.output not in _OUTPUTS:
            raise ValueError(f"output={self.output!r}: expected {' or '.join(_OUTPUTS)}")

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that determine the output, as JSON values."""
        names = ("unmap", "column", "format", "header", "output", "delimiter", "crlf")
        # Absent at their defaults: the key of a run includes the parameters.
        later = {"both": True, "on_error": "skip"}
        changed = {name: getattr(self, name) for name, usual in later.items() if getattr(self, name) != usual}
        return {"layout": self.layout.config(), **{name: getattr(self, name) for name in names}, **changed}

    @property
    def key(self) -> str:
        """The key of the job: see :func:`~pressmark.jobs.job_key`."""
        return job_key("map-ids", self.parameters())

    # --- the plan -------------------------------------------------------------------------------------------------

    def plan(
        self,
        sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        rows: int = ROWS,
        nbytes: int = TEXT_BYTES,
    ) -> Iterator[Chunk]:
        """Yield chunks of files: row groups of Parquet, byte ranges of whole rows of text.

        :param rows: rows per chunk of Parquet; a row group is never divided
        :param nbytes: bytes per chunk of text
        :raises JobError: a file cannot be read, is compressed, is not a list, or lacks the column
        :raises ValueError: ``rows`` or ``nbytes`` is less than 1
        """
        if rows < 1 or nbytes < 1:
            raise ValueError(f"chunks of {rows} rows or {nbytes} bytes: expected 1 or more")
        number = 0
        for source in [sources] if isinstance(sources, (str, os.PathLike)) else sources:
            path = os.path.abspath(source)
            try:
                state = _state(path)
                for start, stop, size in self._parts(path, rows, nbytes):
                    # The id has the state of the file: a file that changes during the run is not mapped.
                    yield Chunk(f"{number:06d}-{state}", "rows", path, start, stop, size)
                    number += 1
            except (OSError, ValueError) as error:
                raise JobError(path, _reason(error)) from None

    def _format(self, path: str) -> str:
        if self.format is None and is_gzip(path):
            raise ValueError("a compressed file cannot be divided; decompress it, or convert it to Parquet")
        return self.format or format_of(path) or "lines"

    def _shape(self, file: BinaryIO, format: str) -> Shape:
        return shape_of(file, format, self.column, self.header, delimiter=self.delimiter, crlf=self.crlf)

    def _parts(self, path: str, rows: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
        format = self._format(path)
        if format != "parquet":
            with open(path, "rb") as file:
                shape = self._shape(file, format)
                for start, stop in row_ranges(file, format, shape.start, nbytes, shape.dialect):
                    yield start, stop, stop - start
            return
        with _pyarrow("parquet").ParquetFile(path) as parquet:
            schema = parquet.schema_arrow
            # Raises an error if the column is not text.
            self.layout.map_arrow(_pyarrow().array([], schema.types[self._index(schema.names)]))
            groups = [parquet.metadata.row_group(number) for number in range(parquet.num_row_groups)]
            start = held = size = 0
            for number, group in enumerate(groups):
                if held and held + group.num_rows > rows:
                    yield start, number, size
                    start, held, size = number, 0, 0
                held += group.num_rows
                size += group.total_byte_size
            if held:
                yield start, len(groups), size

    def _index(self, names: list[str]) -> int:
        """Return the index of the column in Parquet."""
        if isinstance(self.column, str):
            if names.count(self.column) != 1:
                raise ValueError(f"column {self.column!r} not found, or not unique; columns: {', '.join(names)}")
            return names.index(self.column)
        number = 1 if self.column is None else self.column
        if (self.column is None and len(names) != 1) or not 1 <= number <= len(names):
            raise ValueError(f"choose a column: {', '.join(names)}")
        return number - 1

    # --- a chunk --------------------------------------------------------------------------------------------------

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Map the rows of a chunk.

        :raises JobError: the file has changed since the plan, or is not a list to its end
        """
        if chunk.id.rpartition("-")[2] != _state(chunk.source):
            raise JobError(
                chunk.source, "file changed since the run was planned; start a new run in another --work folder"
            )
        name = f"{chunk.id}.{_OUTPUTS[self.output]}"
        format = self._format(chunk.source)
        with ReceiptBuilder(chunk, work) as receipt, work.writing(name) as output:
            receipt.bytes = chunk.nbytes
            sink = (_Table if self.output == "parquet" else _Lines)(self, output, receipt)
            if format == "parquet":
                for column in self._columns(chunk):
                    sink.take_column(column)
            else:
                try:
                    self._take_text(chunk, format, sink)
                except (FormatError, RowsError) as error:
                    raise JobError(chunk.source, str(error)) from None
            sink.finish()
        return receipt.build(self.key, output, name)

    def _take_text(self, chunk: Chunk, format: str, sink: _Lines | _Table) -> None:
        with open(chunk.source, "rb") as file:
            if format == "lines" and isinstance(sink, _Lines):
                sink.take_stream(lines_of(file, chunk.start, chunk.stop, self.crlf))
                return
            shape = self._shape(file, format)
            for items in _batches(fields(file, format, shape, chunk.start, chunk.stop)):
                sink.take(items)

    def _columns(self, chunk: Chunk) -> Iterator[Any]:
        with _pyarrow("parquet").ParquetFile(chunk.source) as parquet:
            names = parquet.schema_arrow.names
            name = names[self._index(names)]
            for batch in parquet.iter_batches(BATCH, range(chunk.start, chunk.stop), [name]):
                yield batch.column(batch.schema.get_field_index(name))

    def reason(self, item: bytes | str) -> str:
        """Return the reason why ``item`` cannot be mapped."""
        try:
            (self.layout.unmap_path if self.unmap else self.layout.map_id)(item)
        except (IdentifierError, PathError) as error:
            return error.reason
        raise AssertionError(f"{item!r} fails only in a batch")


def _batches(items: Iterable[bytes | str | None]) -> Iterator[list[bytes | str | None]]:
    held: list[bytes | str | None] = []
    for item in items:
        held.append(item)
        if len(held) == BATCH:
            yield held
            held = []
    if held:
        yield held


class _Lines:
    """Writes identifier, TAB, path."""

    def __init__(self, job: MapIds, output: OutputFile, receipt: ReceiptBuilder) -> None:
        self._map: Any = job.layout.unmap_lines if job.unmap else job.layout.map_lines
        self._both, self._on_error = job.both, job.on_error
        self._output = output
        self._receipt = receipt
        self._row = 0

    def take_stream(self, source: Any) -> None:
        """Map the lines of a stream."""
        row, failed = self._row, 0

        def fail(error: IdentifierError | PathError) -> None:
            nonlocal failed
            failed += 1
            item = error.identifier if isinstance(error, IdentifierError) else error.path
            self._receipt.fail("failed", row=row + (error.index or 0) + 1, item=_shown(item), reason=error.reason)

        # One thread: each core has its own chunk.
        how = {"threads": 1, "on_error": self._on_error, "both": self._both}
        counts = self._map(source, self._output, on_failure=fail, **how)
        self._row += counts.items
        self._receipt.count("ok", counts.items - failed)

    def take(self, items: Iterable[bytes | str | None]) -> None:
        """Map fields; a ``str`` is the reason for a missing field, and :data:`None` is null."""
        lines = io.BytesIO()
        for item in items:
            if isinstance(item, bytes) and b"\n" not in item:
                lines.write(item + b"\n")
                continue
            # The lines before this row come first, for the row numbers.
            self._pass(lines)
            lines = io.BytesIO()
            self._row += 1
            if item is None:
                self._receipt.count("null")
            elif isinstance(item, str):
                self._receipt.fail("failed", row=self._row, item=None, reason=item)
            else:
                reason = "contains a line feed; use Parquet output"
                self._receipt.fail("failed", row=self._row, item=_shown(item), reason=reason)
        self._pass(lines)

    def _pass(self, lines: io.BytesIO) -> None:
        if lines.tell():
            lines.seek(0)
            self.take_stream(lines)

    def take_column(self, column: Any) -> None:
        """Map an Arrow column."""
        self.take(None if item is None else _as_bytes(item) for item in column.to_pylist())

    def finish(self) -> None:
        """Do nothing: all lines are written."""


class _Table:
    """Writes the columns ``identifier`` and ``path``."""

    def __init__(self, job: MapIds, output: OutputFile, receipt: ReceiptBuilder) -> None:
        self._job = job
        self._map: Any = job.layout.unmap_table if job.unmap else job.layout.map_table
        self._receipt = receipt
        self._row = 0
        self._pa = _pyarrow()
        text = self._pa.large_string()
        self._schema = self._pa.schema([("identifier", text), ("path", text)])
        self._writer = _pyarrow("parquet").ParquetWriter(output, self._schema, compression="zstd")

    def take(self, items: list[bytes | str | None]) -> None:
        """Map fields; a ``str`` is the reason for a missing field, and :data:`None` is null."""
        wrong = {number: item for number, item in enumerate(items) if isinstance(item, str)}
        column = self._pa.array([None if isinstance(item, str) else item for item in items], self._pa.large_binary())
        self.take_column(column, wrong)

    def take_column(self, column: Any, wrong: dict[int, str] | None = None) -> None:
        """Map an Arrow column; nulls of the rows ``wrong`` are fields that could not be read."""
        table = self._pa.table(self._map(column, on_error="none", threads=1))
        given, made = (1, 0) if self._job.unmap else (0, 1)
        columns = [self._text(table.column(number)) for number in range(2)]
        reasons = dict(wrong or {})
        if columns[made].null_count or columns[given].null_count:
            items = column.to_pylist()
            for number, (item, known, result) in enumerate(zip(items, *map(_list, columns), strict=True)):
                if item is None or number in reasons:
                    continue
                if not _is_utf8(_as_bytes(item)):
                    reasons[number] = "not UTF-8, which Parquet requires"
                elif known is None or result is None:
                    reasons[number] = self._reason(item)
            for number in sorted(reasons):
                item = items[number]
                shown = None if item is None else _shown(item)
                self._receipt.fail("failed", row=self._row + number + 1, item=shown, reason=reasons[number])
            nulls = sum(item is None for item in items) - len(wrong or {})
            self._receipt.count("null", nulls)
        else:
            nulls = 0
        self._row += len(column)
        self._receipt.count("ok", len(column) - nulls - len(reasons))
        self._writer.write_table(self._pa.table(columns, schema=self._schema))

    def _reason(self, item: bytes | str) -> str:
        try:
            return self._job.reason(item)
        except AssertionError:
            return "result is not UTF-8, which Parquet requires"

    def _text(self, column: Any) -> Any:
        """Return a column as text; items that are not UTF-8 become null."""
        if column.type != self._pa.large_binary():
            return column.cast(self._pa.large_string())
        items = [item if item is None or _is_utf8(item) else None for item in column.to_pylist()]
        return self._pa.chunked_array([self._pa.array(items, self._pa.large_binary()).cast(self._pa.large_string())])

    def finish(self) -> None:
        """Write the footer."""
        self._writer.close()


def _state(path: str) -> str:
    """Return digits that change with the path, size or modification time of the file."""
    status = os.stat(path)
    text = f"{path}\0{status.st_size}\0{status.st_mtime_ns}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12]


def _reason(error: OSError | ValueError) -> str:
    return " ".join(str(getattr(error, "strerror", None) or error).split())


def _pyarrow(module: str = "") -> Any:
    try:
        return importlib.import_module(f"pyarrow.{module}" if module else "pyarrow")
    except ModuleNotFoundError:
        raise JobError("Parquet", "pyarrow is required; pip install 'pressmark[arrow]'") from None


def _list(column: Any) -> list[Any]:
    items: list[Any] = column.to_pylist()
    return items


def _as_bytes(item: bytes | str) -> bytes:
    return item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item


def _shown(item: bytes | str) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else item


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
