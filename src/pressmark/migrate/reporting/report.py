"""Writing the report of a migration: an HTML page, or the rows as JSON lines, CSV or Parquet, by the suffix of the file
name. Rows are streamed, and a file is replaced atomically."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Any, BinaryIO

from pressmark.errors import ReportError
from pressmark.fs.atomic import open_output
from pressmark.fs.gzipped import packed
from pressmark.html import check_writable, write_page
from pressmark.migrate.entry import ROW_KEYS, Entry
from pressmark.migrate.execution.run_result import Run, Summary, count_rows, outcome_of, summarize
from pressmark.migrate.planning.plan import Plan

__all__ = ["FORMATS", "check_report", "format_of", "replaced", "report"]

# Rows in a row group of Parquet, which is held in memory.
_ROWS = 20_000
# Rows that are written together as text.
_LINES = 100
#: Formats by suffix.
FORMATS = {
    ".html": "html",
    ".htm": "html",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
}
_GZIPPED = ("jsonl", "csv")
# The optional package that a format needs, and the extra that installs it.
_NEEDS = {"html": ("jinja2", "report"), "parquet": ("pyarrow", "arrow")}


def report(plan_or_work: Run | Plan | str | os.PathLike[str], path: str | os.PathLike[str]) -> Summary:
    """Write the report of a finished or unfinished run: an HTML page, or the rows as a table.

    >>> from pressmark import migrate, stores
    >>> store = stores.create("pairtree", "old")
    >>> stored = store.put("a", {"page.txt": b"page 1"})
    >>> run = migrate.run(migrate.plan("old", "new", to="ocfl", layout="0003"), processes=False)
    >>> migrate.report(run, "rows.csv").whole.objects
    1

    :param plan_or_work: the run, its plan or its work folder; for a verification the result of
        :func:`pressmark.migrate.verify`
    :param path: ``.html`` for the page; ``.jsonl``, ``.csv`` or ``.parquet`` for the rows, the first two also ``.gz``.
        The file is replaced atomically.
    :return: the totals of the report
    :raises ReportError: the file cannot be written, or needs a package that is not installed
    :raises MigrationError: there is no plan
    :raises JobError: the work folder of the run is damaged
    """
    target = os.fspath(path)
    chosen = format_of(target)
    outcome = outcome_of(plan_or_work)
    if chosen == "html":
        from pressmark.migrate.reporting.page import page_text

        summary = summarize(outcome.lines())
        summary.seconds = outcome.seconds
        write_page(target, page_text(outcome, summary))
    else:
        summary = Summary(seconds=outcome.seconds)
        _write_rows(target, chosen, count_rows(summary, outcome.lines()))
    return summary


def check_report(path: str | os.PathLike[str]) -> None:
    """Check that a report can be written.

    :raises ReportError: the format is unknown, a package is not installed, or the directory does not exist
    """
    target = os.fspath(path)
    format_of(target)
    check_writable(target)


def format_of(path: str) -> str:
    """Return the format of a file, by its name.

    :raises ReportError: the suffix is unknown, or the format needs a package that is not installed
    """
    name = path.lower()
    found = FORMATS.get(os.path.splitext(name.removesuffix(".gz"))[1])
    if found is None or (name.endswith(".gz") and found not in _GZIPPED):
        raise ReportError(path, "unknown report format; use .html, .csv, .jsonl, .csv.gz, .jsonl.gz or .parquet")
    package, extra = _NEEDS.get(found, (None, ""))
    if package is not None and importlib.util.find_spec(package) is None:
        instead = "use a file name that ends in .csv or .jsonl"
        raise ReportError(path, f"needs {package}: pip install 'pressmark[{extra}]', or {instead}")
    return found


# --- rows -------------------------------------------------------------------------------------------------------------


def _write_rows(path: str, format: str, rows: Iterable[tuple[bytes, Entry]]) -> None:
    """Write rows to a file.

    :param rows: each with its line of JSON
    :raises ReportError: the file cannot be written
    """
    with replaced(path) as file, packed(file, path) as sink:
        if format == "parquet":
            _write_parquet(sink, rows)
        elif format == "jsonl":
            for line, _row in rows:
                sink.write(line)
        else:
            for block in _csv(row for _line, row in rows):
                sink.write(block)


@contextmanager
def replaced(path: str) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` when the block ends without an exception.

    :raises ReportError: the file cannot be written
    """
    try:
        with open_output(path, durable=False) as file:
            yield file
    except OSError as error:
        raise ReportError(path, f"cannot be written ({error.strerror or error}); choose another file") from error


# --- text -------------------------------------------------------------------------------------------------------------


def _csv(rows: Iterator[Entry]) -> Iterator[bytes]:
    """Yield a CSV file in parts; bytes that are not UTF-8 are written unchanged, as in lists of identifiers."""
    buffer = io.StringIO(newline="")
    table = csv.writer(buffer, lineterminator="\n")
    # Readers treat a carriage return as a line end, and the csv module quotes only its own line terminator.
    quoted = csv.writer(buffer, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(ROW_KEYS)
    while True:
        for row in islice(rows, _LINES):
            (quoted if _has_return(row) else table).writerow(row.record().values())
        text = buffer.getvalue()
        if not text:
            return
        yield _encode(text)
        buffer.seek(0)
        buffer.truncate()


def _has_return(row: Entry) -> bool:
    return any("\r" in text for text in (row.id, row.source_id, row.source, row.target, row.error or ""))


def _encode(text: str) -> bytes:
    """Return a text as bytes; surrogates that represent no byte are escaped."""
    parts = []
    while True:
        try:
            parts.append(text.encode("utf-8", "surrogateescape"))
            return b"".join(parts)
        except UnicodeEncodeError as error:
            parts.append(text[: error.start].encode("utf-8", "surrogateescape"))
            parts.append(text[error.start : error.end].encode("utf-8", "backslashreplace"))
            text = text[error.end :]


# --- Parquet ----------------------------------------------------------------------------------------------------------


def _write_parquet(file: BinaryIO, rows: Iterable[tuple[bytes, Entry]]) -> None:
    """Write rows as Parquet; bytes that are not UTF-8 are written as ``\\udc80`` to ``\\udcff``."""
    pyarrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    types = {"files": pyarrow.int64(), "bytes": pyarrow.int64()}
    types |= {"seconds": pyarrow.float64(), "started": pyarrow.timestamp("us", "UTC")}
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in ROW_KEYS])
    left = (row.record().values() for _line, row in rows)
    try:
        with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            while some := list(islice(left, _ROWS)):
                columns = [
                    pyarrow.array(map(_CELLS.get(field.name, _cell), values), field.type)
                    for field, values in zip(schema, zip(*some, strict=True), strict=True)
                ]
                writer.write_table(pyarrow.table(columns, schema=schema))
    except pyarrow.ArrowException as error:
        raise ReportError(getattr(file, "name", ""), str(error).splitlines()[0]) from error


def _cell(value: Any) -> Any:
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _time(value: str) -> datetime | None:
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


_CELLS = {"started": _time}
