"""Lists of identifiers, read lazily: lines, CSV, TSV, JSON lines, Parquet, or any iterable.

================== ===================================================================================================
suffix             content
================== ===================================================================================================
``.csv``, ``.tsv`` a header row; identifiers in the chosen column, by default ``source_id``, ``id`` or ``identifier``
``.jsonl``         also ``.ndjson``: a JSON string per line, or an object with such a key, as in the rows of a report
``.parquet``       as CSV; needs pyarrow
other              an identifier per line, or NUL-delimited identifiers
``.gz`` after it   the same, compressed
================== ===================================================================================================

Other files are refused by their names and first bytes, see :mod:`pressmark.tabular.detection`.
"""

from __future__ import annotations

import gzip
import importlib
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from pressmark.tabular import delimited
from pressmark.tabular.delimited import TSV, Dialect, RowsError, dialect_of
from pressmark.tabular.detection import Crlf, FormatError, ListStream, format_of, is_gzip, open_list
from pressmark.tabular.json_lines import parsed

__all__ = [
    "COLUMNS",
    "Identifiers",
    "ListError",
    "check_list",
    "check_map",
    "examined",
    "read_identifiers",
    "reading",
    "table_rows",
]

Identifiers = str | os.PathLike[str] | Iterable[str | bytes]
#: Columns and keys of identifiers; the first that exists is used.
COLUMNS = ("source_id", "id", "identifier")
_BLOCK = 1 << 20  # bytes
# A longer identifier means that the file is not a list.
_LONGEST = 1 << 20


class ListError(ValueError):
    """A list of identifiers that cannot be read."""


def read_identifiers(given: Identifiers, column: str | None = None, crlf: Crlf | None = None) -> Iterator[str]:
    """Yield the identifiers of a list, in order; skip empty lines.

    :param given: the path of a file, or identifiers
    :param column: the column of a table
    :param crlf: for lines: ``strip`` carriage returns before line feeds and a byte-order mark, or ``keep`` both
    :raises ListError: the list is malformed, or cannot be read
    """
    if not isinstance(given, (str, os.PathLike)):
        for item in given:
            yield _decode(item) if isinstance(item, bytes) else item
        return
    path = os.fspath(given)
    format = _format(path)
    if format == "parquet":
        yield from _parquet(path, column)
        return
    with reading(path) as file:
        listed = examined(path, file, format, crlf)
        if format == "lines":
            yield from _lines(path, listed)
        elif format == "jsonl":
            yield from _json_lines(path, listed, column)
        else:
            yield from _table(path, listed, dialect_of(format), column)


def check_list(given: object, crlf: Crlf | None = None) -> None:
    """Check that the file of a list exists and is a list, before a run starts.

    :param given: as for :func:`read_identifiers`, or :data:`None`
    :raises ListError: the file does not exist, or is not a list
    """
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        if _is_readable(path) and (format := _format(path)) != "parquet":
            with reading(path) as file:
                examined(path, file, format, crlf)


def check_map(given: object) -> None:
    """Check that the file of a map exists and is CSV or TSV, before a run starts.

    :param given: the path of a file; anything else is not checked
    :raises ListError: the file does not exist, or is neither CSV nor TSV
    """
    if isinstance(given, (str, os.PathLike)):
        path = os.fspath(given)
        if _format(path) in ("jsonl", "parquet"):
            raise ListError(f"{path}: a map must be CSV or TSV; convert it")
        if _is_readable(path):
            with reading(path) as file:
                examined(path, file, "csv")


def _is_readable(path: str) -> bool:
    """Return whether a file can be opened more than once; a pipe cannot."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        raise _refusal(path, error) from error


def _format(path: str) -> str:
    try:
        return format_of(path) or "lines"
    except FormatError as error:
        raise ListError(f"{path}: {error}") from None


def examined(path: str, file: BinaryIO, format: str, crlf: Crlf | None = None) -> ListStream:
    """Return the stream of a list, after checking its first bytes.

    :raises ListError: the file is not a list
    """
    try:
        return open_list(
            file,
            format,
            delimiter=None,
            crlf=crlf,
            json_lines=False,
            refuse=lambda reason: ListError(f"{path}: {reason}"),
        )
    except FormatError as error:
        raise ListError(f"{path}: {error}") from None


@contextmanager
def reading(path: str) -> Iterator[BinaryIO]:
    """Open a file for reading; decompress it if its name ends in ``.gz``.

    :raises ListError: the file cannot be read
    """
    try:
        with gzip.open(path, "rb") if is_gzip(path) else open(path, "rb") as file:
            yield file  # type: ignore[misc]
    except OSError as error:
        raise _refusal(path, error) from error
    except (EOFError, zlib.error) as error:
        raise ListError(f"{path}: damaged gzip data ({error}); replace it with an intact copy") from error


def _refusal(path: str, error: OSError) -> ListError:
    return ListError(f"{path}: {error.strerror or error}; use a readable file")


def table_rows(path: str, listed: ListStream, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Yield each row of CSV or TSV that is not empty, and the number of the line in which it starts.

    :raises ListError: a row is malformed
    """
    line = 1
    separator = dialect.separator.decode()
    try:
        read = listed.read
        for block in delimited.rows(read, dialect, read(_BLOCK), return_is_data=not listed.guarded):
            if block.split is None:
                # A block without quotes is decoded at once.
                lines = _decode(block.text).split("\n")
                for number, text in enumerate(lines[:-1], line):
                    content = text.removesuffix("\r")
                    if content:
                        yield number, content.split(separator)
                line += len(lines) - 1
                continue
            for row in block.split:
                written = row.removesuffix(b"\r")
                if b'"' in written:
                    fields = [dialect.value(field) for field in dialect.split(written)]
                    if None in fields:
                        raise ListError(f"{path}:{line}: text after the closing quote of a field")
                    yield line, [_decode(field) for field in fields if field is not None]
                elif written:
                    yield line, _decode(written).split(separator)
                line += 1 + row.count(b"\n")
    except RowsError as error:
        raise ListError(f"{path}:{line}: {error}") from None


def _decode(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _lines(path: str, listed: ListStream) -> Iterator[str]:
    left = b""
    end = None
    number = 0
    while block := listed.read(_BLOCK):
        # Identifiers contain no NUL, so a NUL is a delimiter; then they may contain line feeds.
        if end is None:
            end = b"\0" if b"\0" in block else b"\n"
        *whole, left = (left + block).split(end)
        if len(left) > _LONGEST:
            raise ListError(f"{path}: identifier of more than {_LONGEST} bytes; not a list of identifiers")
        for line in whole:
            number += 1
            if end == b"\n" and b"\0" in line:
                raise ListError(
                    f"{path}:{number}: unexpected NUL; end all identifiers with NUL, or all with line feeds"
                )
            if line:
                yield _decode(line)
    if left:
        yield _decode(left)


def _chosen(where: str, names: list[str], column: str | None) -> str:
    """Return the column of the identifiers."""
    for one in COLUMNS if column is None else (column,):
        if one in names:
            return one
    missing = repr(column) if column is not None else f"{', '.join(COLUMNS[:-1])} or {COLUMNS[-1]}"
    raise ListError(f"{where}: column {missing} not found; columns: {', '.join(map(repr, names[:20]))}")


def _table(path: str, listed: ListStream, dialect: Dialect, column: str | None) -> Iterator[str]:
    rows = table_rows(path, listed, dialect)
    _line, names = next(rows, (1, []))
    at = names.index(_chosen(path, names, column))
    for line, row in rows:
        if len(row) <= at:
            raise ListError(f"{path}:{line}: row has {len(row)} fields; the identifier is in field {at + 1}")
        if row[at]:
            yield row[at]


def _json_lines(path: str, listed: ListStream, column: str | None) -> Iterator[str]:
    for number, line in enumerate(_rows(path, listed), 1):
        if not line.strip():
            continue
        try:
            item: Any = parsed(line)
        except ValueError as error:
            raise ListError(f"{path}:{number}: {error}") from None
        if isinstance(item, dict):
            item = item[_chosen(f"{path}:{number}", list(item), column)]
        if not isinstance(item, str):
            raise ListError(f"{path}:{number}: expected an identifier as a JSON string")
        if item:
            yield item


def _rows(path: str, listed: ListStream) -> Iterator[bytes]:
    try:
        for block in delimited.rows(listed.read, TSV, listed.read(_BLOCK), return_is_data=True):
            yield from block.rows
    except RowsError as error:
        raise ListError(f"{path}: {error}") from None


def _parquet(path: str, column: str | None) -> Iterator[str]:
    try:
        pyarrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise ListError(f"{path}: Parquet needs pyarrow; install pressmark[arrow], or use lines or CSV") from None
    try:
        with parquet.ParquetFile(path) as file:
            name = _chosen(path, file.schema_arrow.names, column)
            for batch in file.iter_batches(columns=[name]):
                items = batch.column(0)
                if pyarrow.types.is_dictionary(items.type):
                    items = items.dictionary_decode()
                # Text in Parquet may be invalid UTF-8.
                if pyarrow.types.is_string(items.type) or pyarrow.types.is_large_string(items.type):
                    items = items.cast(pyarrow.large_binary())
                for item in items.to_pylist():
                    if item is not None and not isinstance(item, (str, bytes)):
                        raise ListError(f"{path}: column {name!r} is not text")
                    if item:
                        yield _decode(item) if isinstance(item, bytes) else item
    except (OSError, pyarrow.ArrowException) as error:
        raise ListError(f"{path}: {str(error).splitlines()[0]}") from None
