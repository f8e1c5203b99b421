"""The column of a table that a command reads: ``--column``, ``--header`` and ``--as``."""

from __future__ import annotations

from typing import NamedTuple

from pressmark.cli.common.console import CallError
from pressmark.cli.common.file_formats import Files, Kind
from pressmark.errors import quoted

__all__ = ["ColumnSpec", "chosen_column", "index_of"]


class ColumnSpec(NamedTuple):
    """The column to map, and the name of the column of the results.

    :ivar column: name of the column, or its number from 1
    :ivar header: whether the first row of CSV and TSV has the column names; :data:`None` if unspecified
    :ivar result: the name of the new column; empty without a new column
    :ivar delimiter: the separator of CSV; :data:`None` for a comma
    """

    column: str | int
    header: bool | None
    result: str
    delimiter: str | None = None


def chosen_column(
    files: Files,
    column: str,
    header: bool | None,
    as_name: str | None,
    default: str,
    delimiter: str | None = None,
) -> ColumnSpec:
    """Return the column of a call; ``default`` names its result."""
    number = int(column) if column.isascii() and column.isdigit() else None
    if number == 0:
        raise CallError("--column 0: columns are numbered from 1")
    if files.source in (Kind.PARQUET, Kind.JSONL):
        if header is not None:
            option = f"--{'header' if header else 'no-header'}"
            raise CallError(f"{option} applies to CSV and TSV only")
        if files.source is Kind.JSONL and number is not None:
            raise CallError(f"--column {column}: JSON lines have keys, not numbered columns; use the name of a key")
        header = True
    elif header is None and number is None:
        header = True
    if number is None and not header:
        raise CallError(f"--column {quoted(column)}: columns have no names without a header row; use a number")
    if as_name is not None:
        if header is False and files.sink is not Kind.PARQUET:
            raise CallError("--as: the new column has no name without a header row; use --header if there is one")
        _check_name(as_name, files.sink)
    return ColumnSpec(column if number is None else number, header, default if as_name is None else as_name, delimiter)


def index_of(spec: ColumnSpec, names: list[str], file: str) -> int:
    """Return the index of the column among ``names``, the columns of ``file``."""
    listed = ", ".join(names[:20]) + (f" … ({len(names)} in all)" if len(names) > 20 else "")
    if isinstance(spec.column, int):
        if spec.column > len(names):
            raise CallError(f"{file}: column {spec.column} not found; columns: {listed}")
        index = spec.column - 1
    else:
        found = names.count(spec.column)
        if found == 0:
            raise CallError(f"{file}: column {quoted(spec.column)} not found; columns: {listed}")
        if found > 1:
            raise CallError(f"{file}: column {quoted(spec.column)} is not unique; use its number")
        index = names.index(spec.column)
    if spec.result and spec.result in names:
        raise CallError(f"{file}: column {quoted(spec.result)} already exists; use --as NAME")
    return index


def _check_name(name: str, kind: Kind) -> None:
    if not name:
        raise CallError("--as: column name is empty")
    if kind is Kind.TSV and any(character in name for character in "\t\n\r"):
        raise CallError(f"--as {quoted(name)}: not allowed in a TSV field")
    if kind in (Kind.PARQUET, Kind.JSONL) and not _is_text(name):
        raise CallError(f"--as {quoted(name)}: column names in {kind} must be UTF-8")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
