"""Comparisons that are too long for one machine: a layout is a chunk of a run of :mod:`pressmark.jobs`.

Every worker reads all identifiers and makes the whole comparison of its layout, so every number is the one that a
single process would have: nothing is estimated from parts. A billion identifiers take a core some half an hour and some
tens of gigabytes of temporary files for each layout; what is done has a receipt, and a run goes on where it ended.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any

from pressmark.compare.comparison import MEMORY, Comparison, called, compare
from pressmark.compare.result import from_record
from pressmark.errors import JobError
from pressmark.jobs import Chunk, Receipt, Summary, WorkFolder, job_key, run_local
from pressmark.layouts import Layout
from pressmark.tabular.detection import Crlf, format_of, is_gzip
from pressmark.tabular.row_ranges import FORMATS, fields, shape_of

__all__ = ["CompareLayouts", "collect", "compare_sharded", "identifiers_of"]

Runner = Callable[["CompareLayouts", WorkFolder], Summary]


@dataclass(frozen=True)
class CompareLayouts:
    """One layout a chunk, each compared on all identifiers of a file.

    The output of a chunk is a comparison of one layout, as JSON.

    :ivar layouts: to be compared
    :ivar names: what each is called; all differently
    :ivar column: of the file, its name or its number counted from 1; None where there is only one
    :ivar format: ``lines``, ``csv``, ``tsv``, ``jsonl`` or ``parquet``; None for what the file's name ends with
    :ivar header: whether CSV and TSV begin with the names of the columns; None where a column that is a name tells
    :ivar delimiter: that separates the fields of CSV; None for a comma
    :ivar crlf: of lines: ``strip`` carriage returns before line feeds and a byte-order mark, or ``keep`` them as parts
        of identifiers; None refuses a file that has any
    :ivar memory: octets that sorting may take in each worker
    :ivar folder: where a worker's temporary files are; its system's folder if None
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
        """Return what decides its output, as in JSON."""
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
        """What it does."""
        return job_key("compare-layouts", self.parameters())

    def plan(self, source: str | os.PathLike[str]) -> Iterator[Chunk]:
        """Give a chunk for each layout.

        :raises JobError: the file cannot be read, is no list, or has not the column
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
            # The id says which state of the file it is for: layouts are compared on the same identifiers.
            yield Chunk(f"{number:06d}-{state}", "layouts", path, number, number + 1, size)

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Compare one layout."""
        begin = monotonic()
        if chunk.id.rpartition("-")[2] != _state(chunk.source)[0]:
            raise JobError(chunk.source, "it changed since the run was planned: begin again in another work folder")
        ids = identifiers_of(chunk.source, self.column, self.format, header=self.header, delimiter=self.delimiter)
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
            # One thread: the cores have a chunk each.
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


def compare_sharded(
    source: str | os.PathLike[str],
    layouts: Sequence[Layout],
    work: str | os.PathLike[str],
    *,
    names: Sequence[str | None] | None = None,
    run: Runner = run_local,
    **parameters: Any,
) -> Comparison:
    """Compare layouts on the identifiers of a file, each layout by a worker of its own.

    >>> compare_sharded("ids.txt", layouts, "work", run=lambda job, work: run_dask(job, work, client))  # doctest: +SKIP

    :param source: a file of lines, CSV, TSV or Parquet, which every worker sees
    :param work: the work folder; where a run of the same job is there, it is gone on with
    :param names: as for :func:`compare`
    :param run: what does the chunks: :func:`pressmark.jobs.run_local`, or another of its kind
    :param parameters: of :class:`CompareLayouts`
    :raises JobError: the run cannot begin, or did not come to its end
    """
    job = CompareLayouts(tuple(layouts), tuple(called(layouts, names)), **parameters)
    try:
        folder = WorkFolder.open(work) if (Path(work) / "run.json").exists() else None
        if folder is None:
            folder = WorkFolder.create(work, job, job.plan(source), job.parameters())
        folder.check(job, job.parameters())
    except OSError as error:
        raise JobError(os.fspath(work), str(error.strerror or error)) from error
    summary = run(job, folder)
    if not summary.complete:
        why = str(summary.failed[0]) if summary.failed else summary.stopped or "it was stopped"
        left = f"{summary.chunks - summary.done} of {summary.chunks} layouts are not done"
        raise JobError(str(folder.path), f"{left}: {why}")
    return collect(folder)


def collect(work: WorkFolder) -> Comparison:
    """Return the comparison that a complete run has made.

    :raises JobError: a layout is not done, or its output is not what its receipt says
    """
    parts: list[Comparison] = []
    for chunk in work.chunks():
        receipt = work.receipt(chunk.id)
        if receipt is None or receipt.output is None:
            raise JobError(str(work.path), f"layout {chunk.start + 1} is not done: resume the run")
        content = work.output_path(receipt.output).read_bytes()
        if hashlib.sha256(content).hexdigest() != receipt.sha256:
            raise JobError(str(work.path), f"{receipt.output} is not what was written: begin again elsewhere")
        parts.append(from_record(Comparison, json.loads(content)))
    if not parts:
        raise JobError(str(work.path), "there is no layout in its plan")
    if len({(part.identifiers, part.duplicates) for part in parts}) != 1:
        raise JobError(parts[0].source, "it changed while it was read: begin again in another work folder")
    return replace(
        parts[0],
        layouts=tuple(layout for part in parts for layout in part.layouts),
        seconds=sum(part.seconds for part in parts),
        spilled=sum(part.spilled for part in parts),
    )


def identifiers_of(
    path: str | os.PathLike[str],
    column: str | int | None = None,
    format: str | None = None,
    *,
    header: bool | None = None,
    delimiter: str | None = None,
) -> Any:
    """Return the identifiers of a file, as :func:`compare` takes them; they are read when they are asked for.

    What ends the lines of a file of lines is a question to :func:`compare`.

    :param column: as for :class:`CompareLayouts`, as are the others
    :raises JobError: Parquet is read with pyarrow, which is not there
    :raises ValueError: there is no such format or column, or the file is no list
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
        raise ValueError("a compressed file is not read by each worker; unpack it, or make it Parquet")
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
        raise JobError("Parquet", "it is read with pyarrow: pip install 'pressmark[arrow]'") from None
    file = parquet.ParquetFile(path)
    names = file.schema_arrow.names
    if column is None and len(names) != 1:
        raise ValueError(f"say which of its columns is wanted: {', '.join(names)}")
    if isinstance(column, int) and not 1 <= column <= len(names):
        raise ValueError(f"there is no column {column}: it has {len(names)}")
    name = column if isinstance(column, str) else names[(column or 1) - 1]
    if names.count(name) != 1:
        raise ValueError(f"it has not one column {name!r}, but {', '.join(names)}")
    schema = pyarrow.schema([file.schema_arrow.field(name)])
    return pyarrow.RecordBatchReader.from_batches(schema, file.iter_batches(1 << 16, columns=[name]))


def _state(path: str) -> tuple[str, int]:
    """Return a few digits that are others when the file is another one, or was changed; and its size."""
    try:
        status = os.stat(path)
    except OSError as error:
        raise JobError(path, str(error.strerror or error)) from None
    text = f"{path}\0{status.st_size}\0{status.st_mtime_ns}"
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:12], status.st_size
