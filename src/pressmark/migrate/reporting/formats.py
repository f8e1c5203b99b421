"""Rows as JSON lines, CSV or Parquet, by what a file's name ends in; streamed, and in place as a whole."""

from __future__ import annotations

import csv
import gzip
import importlib
import importlib.util
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from itertools import islice
from typing import Any, BinaryIO, NamedTuple

from pressmark.errors import ReportError
from pressmark.fs.atomic import Replacement
from pressmark.fs.owners import resolved
from pressmark.migrate.rows import Row

__all__ = ["FORMATS", "Format", "format_of", "replaced", "write_rows"]

# Rows in a row group of Parquet, all of them in memory.
_ROWS = 20_000
# Rows that are written together as text.
_LINES = 100


class _Needs(NamedTuple):
    """What a format needs that may not be installed."""

    package: str
    extra: str
    instead: str


class Format(Enum):
    """What a report can be."""

    HTML = "html"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"

    def check(self, path: str) -> None:
        """Make sure that what it needs is there.

        :raises ReportError: it is not
        """
        needs = _NEEDS.get(self)
        if needs is not None and importlib.util.find_spec(needs.package) is None:
            raise ReportError(
                path, f"it needs {needs.package}: pip install 'pressmark[{needs.extra}]', or {needs.instead}"
            )


_NEEDS = {
    Format.HTML: _Needs("jinja2", "report", "name a file that ends in .csv or .jsonl"),
    Format.PARQUET: _Needs("pyarrow", "arrow", "name a file that ends in .csv or .jsonl"),
}
#: Formats by what names end in.
FORMATS = {
    ".html": Format.HTML,
    ".htm": Format.HTML,
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
}
_GZIPPED = (Format.JSONL, Format.CSV)


def format_of(path: str) -> Format:
    """Return what a file is to be, by its name.

    :raises ReportError: the name does not tell
    """
    name = path.lower()
    found = FORMATS.get(os.path.splitext(name.removesuffix(".gz"))[1])
    if found is None or (name.endswith(".gz") and found not in _GZIPPED):
        raise ReportError(
            path, "a report is a .html, .csv, .jsonl or .parquet, the second and third also .gz: name it so"
        )
    return found


def write_rows(path: str, format: Format, rows: Iterable[tuple[bytes, Row]]) -> None:
    """Write rows as a file.

    :param rows: each with its line of JSON
    :raises ReportError: it cannot be written
    """
    if format is Format.PARQUET:
        with replaced(path) as file:
            _write_parquet(file, rows)
        return
    with replaced(path) as file:
        if path.lower().endswith(".gz"):
            # Without the time, the same rows are the same file.
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                _write_text(packed, format, rows)
        else:
            _write_text(file, format, rows)


@contextmanager
def replaced(path: str) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` when the block ends without an exception.

    :raises ReportError: the system refuses
    """
    try:
        with Replacement(resolved(path), durable=False) as file:
            yield file
    except OSError as error:
        raise ReportError(path, f"it cannot be written ({error.strerror or error}); name another file") from error


# --- text -------------------------------------------------------------------------------------------------------------


def _write_text(file: Any, format: Format, rows: Iterable[tuple[bytes, Row]]) -> None:
    if format is Format.JSONL:
        for line, _row in rows:
            file.write(line)
        return
    for block in _csv(row for _line, row in rows):
        file.write(block)


def _csv(rows: Iterator[Row]) -> Iterator[bytes]:
    """Give a CSV file in parts; octets that are not UTF-8 are themselves, as in a list of identifiers."""
    held = io.StringIO(newline="")
    table = csv.writer(held, lineterminator="\n")
    # Readers take a carriage return for a line end, and the module does not quote one where lines end otherwise.
    quoted = csv.writer(held, lineterminator="\n", quoting=csv.QUOTE_ALL)
    table.writerow(Row._fields)
    while True:
        for row in islice(rows, _LINES):
            (quoted if _has_return(row) else table).writerow(row)
        text = held.getvalue()
        if not text:
            return
        yield _octets(text)
        held.seek(0)
        held.truncate()


def _has_return(row: Row) -> bool:
    return any("\r" in text for text in (row.id, row.source_id, row.source, row.target, row.error or ""))


def _octets(text: str) -> bytes:
    """Return a text as octets; surrogates that stand for none are made visible."""
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


def _write_parquet(file: BinaryIO, rows: Iterable[tuple[bytes, Row]]) -> None:
    """Write rows as Parquet; octets that are not UTF-8, which its texts cannot hold, as ``\\udc80`` to ``\\udcff``."""
    pyarrow = importlib.import_module("pyarrow")
    parquet = importlib.import_module("pyarrow.parquet")
    types = {"files": pyarrow.int64(), "bytes": pyarrow.int64(), "changed": pyarrow.int64()}
    types |= {"seconds": pyarrow.float64(), "started": pyarrow.timestamp("us", "UTC")}
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in Row._fields])
    left = (row for _line, row in rows)
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
