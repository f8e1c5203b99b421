"""Whole rows of tables: CSV, TSV, JSON lines and Parquet, of which one column has a special meaning."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pressmark.errors import FormatError, TableError, quoted
from pressmark.fs.gzipped import unpacked
from pressmark.tabular.columns import Column, index_of
from pressmark.tabular.delimited import dialect_of
from pressmark.tabular.formats import chosen_format, open_list
from pressmark.tabular.identifiers import table_rows
from pressmark.tabular.json_lines import JsonReader, parsed
from pressmark.tabular.tables import open_table

__all__ = ["TableRow", "read_records"]

_SCALARS = (str, int, float, decimal.Decimal, datetime.date, datetime.time)


class TableRow(NamedTuple):
    """A row of a table.

    :ivar number: the number of its line, in Parquet of the row, from 1
    :ivar cells: column and value of each cell that is not empty, in order
    :ivar fault: why the row is malformed; empty if it is not
    """

    number: int
    cells: list[tuple[str, str]]
    fault: str = ""


def read_records(
    path: str, columns: Iterable[str], *, format: str | None = None, delimiter: str | None = None
) -> Iterator[TableRow]:
    """Yield the rows of a table that are not empty.

    :param path: of a file; decompressed if its name ends in ``.gz``
    :param columns: names of columns that must exist
    :param format: ``csv``, ``tsv``, ``jsonl`` or ``parquet``; :data:`None` for that of its name
    :param delimiter: the separator of CSV
    :raises FormatError: it has another format, or lacks a column; or Parquet cannot be read without pyarrow
    :raises TableError: it is damaged, or cannot be read
    """
    wanted = list(columns)
    chosen = chosen_format(path, column=wanted[0], format=format, delimiter=delimiter)
    try:
        with open(path, "rb") as file:
            if chosen == "parquet":
                yield from _parquet(open_table(file, path, chosen, Column(wanted[0])), wanted)
                return
            listed = open_list(unpacked(file, path), chosen, name=path)
            if chosen == "jsonl":
                yield from _json(JsonReader(listed, Column(wanted[0])))
                return
            rows = table_rows(path, listed, dialect_of(chosen, delimiter))
            _line, names = next(rows, (1, []))
            _require(path, names, wanted)
            for line, row in rows:
                if len(row) != len(names):
                    yield TableRow(line, [], f"row has {len(row)} fields; expected {len(names)}")
                elif any(row):
                    yield TableRow(line, [cell for cell in zip(names, row, strict=True) if cell[1]])
    except OSError as error:
        raise TableError(path, f"{error.strerror or error}; use a readable file") from error


def _require(path: str, names: list[str], wanted: list[str]) -> None:
    """Refuse a table without the columns, or with a column without a name.

    :raises FormatError: it lacks one
    """
    for name in wanted:
        index_of(Column(name), names, path)
    if "" in names:
        raise FormatError(path, f"column {names.index('') + 1} has no name; add one")


def _parquet(reader: Any, wanted: list[str]) -> Iterator[TableRow]:
    names = reader.schema.names
    _require(reader.name, names, wanted)
    for number, values in enumerate(reader.rows(), 1):
        yield _row(number, zip(names, values, strict=True))


def _json(reader: JsonReader) -> Iterator[TableRow]:
    for block in reader.blocks():
        for index in range(len(block)):
            number = block.number(index)
            try:
                record = parsed(block.row(index))
            except ValueError as error:
                yield TableRow(number, [], str(error))
                continue
            if isinstance(record, dict):
                yield _row(number, record.items())
            else:
                yield TableRow(number, [], "not a JSON object")


def _row(number: int, values: Iterable[tuple[str, Any]]) -> TableRow:
    """Return a row of typed values; a list has a cell for each of its values."""
    cells = []
    for name, value in values:
        for one in value if isinstance(value, list) else [value]:
            if one is None or one == "":
                continue
            if isinstance(one, bool) or not isinstance(one, _SCALARS):
                return TableRow(number, [], f"the value of {quoted(name)} is neither text nor a number")
            cells.append((name, str(one)))
    return TableRow(number, cells)
