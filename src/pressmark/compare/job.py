"""Compare layouts with several workers or machines: a job of :mod:`pressmark.jobs` with one chunk for each layout.

Each worker reads all identifiers and compares one layout, so the numbers are those of a single process. A billion
identifiers take about half an hour on one core and some tens of gigabytes of temporary files for each layout. An
interrupted run resumes from its receipts.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from pathlib import Path
from time import monotonic
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

from pressmark.compare.comparison import MEMORY, Comparison, compare, unique_names
from pressmark.compare.result import FORMAT
from pressmark.errors import JobError
from pressmark.jobs import Chunk, Receipt, Summary, WorkFolder, job_key, run_local
from pressmark.layouts import Layout
from pressmark.tabular.detection import Crlf, format_of, is_gzip
from pressmark.tabular.row_ranges import FORMATS, fields, shape_of

__all__ = ["CompareLayouts", "collect", "compare_in_chunks", "open_identifiers"]

Runner = Callable[["CompareLayouts", WorkFolder], Summary]


@dataclass(frozen=True)
class CompareLayouts:
    """Compare layouts on the identifiers of a file, one layout per chunk.

    The output of a chunk is a comparison of one layout, as JSON. The other parameters are those of :func:`compare`.

    :ivar layouts: the layouts
    :ivar names: a distinct name for each layout
    :ivar column: name or number (from 1) of the column; None for a file with a single column
    :ivar format: ``lines``, ``csv``, ``tsv``, ``jsonl`` or ``parquet``; None to use the file name's extension
    :ivar header: whether CSV and TSV have a header row; None if ``column`` is a name
    :ivar delimiter: the delimiter of CSV; None for a comma
    :ivar crlf: for lines: ``strip`` removes a byte-order mark and carriage returns before line feeds, ``keep`` keeps
        them as part of the identifiers, None rejects a file that contains them
    :ivar memory: memory limit for sorting in each worker, in bytes
    :ivar folder: directory for temporary files; None for the worker's system default
    """

    layouts: tuple[Layout, ...]
    names: tuple[str, ...]
    column: str | int | None = None
    format: str | None = None
    header: bool | None = None
    delimiter: str | None = None
    crlf: Crlf | None = None
    files_per_object: int = 1
    versions: int = 1
    profile: str = "all"
    root_length: int = 0
    directory_limit: int | None = None
    memory: int = MEMORY
    folder: str | None = None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that determine the output, as JSON values."""
        names = ("column", "format", "header", "delimiter", "crlf", "files_per_object", "versions", "profile")
        return {
            "root_length": self.root_length,
            "layouts": [layout.config() for layout in self.layouts],
            "names": list(self.names),
            "directory_limit": self.directory_limit,
            **{name: getattr(self, name) for name in names},
        }

    @property
    def key(self) -> str:
        """The key of the job: see :func:`~pressmark.jobs.job_key`."""
        return job_key("compare-layouts", self.parameters(), FORMAT)

    def plan(self, source: str | os.PathLike[str]) -> Iterator[Chunk]:
        """Yield a chunk for each layout.

        :raises JobError: the file cannot be read, is not a list of identifiers, or does not have the column
        """
        path = os.path.abspath(source)
        try:
            format = _format(path, self.format)
            if format != "parquet":
                with open(path, "rb") as file:
                    shape_of(file, format, self.column, self.header, delimiter=self.delimiter, crlf=self.crlf)
        except OSError as error:
            raise JobError(path, str(error.strerror or error)) from None
        except ValueError as error:
            raise JobError(path, str(error)) from None
        state, size = _state(path)
        for number in range(len(self.layouts)):
            # The id contains the state of the file: all layouts must be compared on the same identifiers.
            yield Chunk(f"{number:06d}-{state}", "layouts", path, number, number + 1, size)

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Compare the layout of a chunk.

        :raises JobError: the file has changed since the run was planned
        """
        begin = monotonic()
        if chunk.id.rpartition("-")[2] != _state(chunk.source)[0]:
            raise JobError(
                chunk.source, "file changed since the run was planned; start a new run in another --work folder"
            )
        ids = open_identifiers(chunk.source, self.column, self.format, header=self.header, delimiter=self.delimiter)
        found = compare(
            ids,
            self.layouts[chunk.start : chunk.stop],
            names=self.names[chunk.start : chunk.stop],
            field=self.column if isinstance(self.column, str) else None,
            files_per_object=self.files_per_object,
            versions=self.versions,
            profile=self.profile,
            root_length=self.root_length,
            directory_limit=self.directory_limit,
            # One thread per worker: other chunks use the other cores.
            threads=1,
            memory=self.memory,
            folder=self.folder,
            source=chunk.source,
            crlf=self.crlf,
        )
        name = f"{chunk.id}.json"
        with work.writing(name) as output:
            output.write(json.dumps(found.record()).encode() + b"\n")
        (result,) = found.layouts
        return Receipt(
            chunk.id,
            self.key,
            n=found.identifiers,
            bytes=chunk.nbytes,
            errors=0,
            by_status={"mapped": result.mapped, "unmapped": result.unmapped.count},
            output=name,
            sha256=output.sha256,
            seconds=Receipt.since(begin),
        )


def compare_in_chunks(
    source: str | os.PathLike[str],
    layouts: Sequence[Layout],
    work: str | os.PathLike[str],
    *,
    names: Sequence[str | None] | None = None,
    run: Runner = run_local,
    **parameters: Any,
) -> Comparison:
    """Compare layouts on the identifiers of a file, one layout per worker.

    >>> on_dask = lambda job, work: run_dask(job, work, client)
    >>> compare_in_chunks("ids.txt", layouts, "work", run=on_dask)  # doctest: +SKIP

    :param source: a file of lines, CSV, TSV, JSON lines or Parquet that every worker can read
    :param work: the work folder; an interrupted run of the same job in it is resumed
    :param names: as for :func:`compare`
    :param run: runs the chunks: :func:`pressmark.jobs.run_local` or a similar function
    :param parameters: further parameters of :class:`CompareLayouts`
    :raises JobError: the run cannot start, or is incomplete
    """
    job = CompareLayouts(tuple(layouts), tuple(unique_names(layouts, names)), **parameters)
    try:
        folder = WorkFolder.open(work) if (Path(work) / "run.json").exists() else None
        if folder is None:
            folder = WorkFolder.create(work, job, job.plan(source), job.parameters())
        folder.check(job, job.parameters())
    except OSError as error:
        raise JobError(os.fspath(work), str(error.strerror or error)) from error
    summary = run(job, folder)
    if not summary.complete:
        why = str(summary.failed[0]) if summary.failed else summary.stopped or "the run was stopped"
        left = f"{summary.chunks - summary.done} of {summary.chunks} layouts have not been compared yet"
        raise JobError(str(folder.path), f"{left}: {why}")
    return collect(folder)


def collect(work: WorkFolder) -> Comparison:
    """Return the comparison from a complete run.

    :raises JobError: a layout is missing, or its output does not match its receipt
    """
    parts: list[Comparison] = []
    for chunk in work.chunks():
        receipt = work.receipt(chunk.id)
        if receipt is None or receipt.output is None:
            raise JobError(str(work.path), f"layout {chunk.start + 1} has not been compared yet; resume the run")
        content = work.output_path(receipt.output).read_bytes()
        if hashlib.sha256(content).hexdigest() != receipt.sha256:
            raise JobError(
                str(work.path), f"{receipt.output}: checksum mismatch; start a new run in another --work folder"
            )
        parts.append(_parsed(Comparison, json.loads(content)))
    if not parts:
        raise JobError(str(work.path), "the plan contains no layouts")
    if len({(part.identifiers, part.duplicates) for part in parts}) != 1:
        raise JobError(parts[0].source, "the file changed while it was read; start a new run in another --work folder")
    return replace(
        parts[0],
        layouts=tuple(layout for part in parts for layout in part.layouts),
        seconds=sum(part.seconds for part in parts),
        spilled=sum(part.spilled for part in parts),
    )


def open_identifiers(
    path: str | os.PathLike[str],
    column: str | int | None = None,
    format: str | None = None,
    *,
    header: bool | None = None,
    delimiter: str | None = None,
) -> Any:
    """Return the identifiers of a file in a form that :func:`compare` accepts; they are read lazily.

    The parameters are those of :class:`CompareLayouts`. For a file of lines, pass ``crlf`` to :func:`compare`.

    :raises JobError: a Parquet file needs pyarrow, which is not installed
    :raises ValueError: unknown format or column, or the file is not a list of identifiers
    :raises OSError: the file cannot be read
    """
    format = _format(path, format)
    if format == "parquet":
        return _of_parquet(path, column)
    return Path(path) if format == "lines" else _of_rows(path, column, format, header, delimiter)


def _format(path: str | os.PathLike[str], format: str | None) -> str:
    if format not in (None, "parquet", *FORMATS):
        raise ValueError(f"format={format!r}: expected parquet, {', '.join(FORMATS)}")
    if format is None and is_gzip(path):
        raise ValueError("compressed input is not supported; decompress the file or convert it to Parquet")
    return format or format_of(path) or "lines"


def _of_rows(
    path: str | os.PathLike[str], column: str | int | None, format: str, header: bool | None, delimiter: str | None
) -> Iterator[bytes]:
    with open(path, "rb") as file:
        shape = shape_of(file, format, column, header, delimiter=delimiter)
        for number, item in enumerate(fields(file, format, shape, shape.start, os.fstat(file.fileno()).st_size), 1):
            if isinstance(item, str):
                raise JobError(os.fspath(path), f"row {number}: {item}")
            if item is not None:
                yield item


def _of_parquet(path: str | os.PathLike[str], column: str | int | None) -> Any:
    try:
        pyarrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise JobError("Parquet", "pyarrow is not installed; run: pip install 'pressmark[arrow]'") from None
    file = parquet.ParquetFile(path)
    names = file.schema_arrow.names
    if column is None and len(names) != 1:
        raise ValueError(f"several columns ({', '.join(names)}); choose one (--column)")
    if isinstance(column, int) and not 1 <= column <= len(names):
        raise ValueError(f"column {column} not found; the file has {len(names)}")
    name = column if isinstance(column, str) else names[(column or 1) - 1]
    if names.count(name) != 1:
        raise ValueError(f"column {name!r} not found or not unique; the file has {', '.join(names)}")
    schema = pyarrow.schema([file.schema_arrow.field(name)])
    return pyarrow.RecordBatchReader.from_batches(schema, file.iter_batches(1 << 16, columns=[name]))


def _state(path: str) -> tuple[str, int]:
    """Return a short digest of the file's path, size and modification time; and its size."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise JobError(path, str(error.strerror or error)) from None
    text = f"{path}\0{status.st_size}\0{status.st_mtime_ns}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12], status.st_size


@cache
def _shape(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _parsed(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if is_dataclass(kind) and isinstance(kind, type):
        return kind(**{name: _parsed(one, value[name]) for name, one in _shape(kind).items()})
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        each = [inner[0]] * len(value) if inner[1:] == (...,) else inner
        return tuple(map(_parsed, each, value))
    if origin is Mapping:
        return {key: _parsed(inner[1], one) for key, one in value.items()}
    if origin is UnionType:
        # Optional fields: ``X | None``.
        return _parsed(inner[0], value)
    return value
