"""What FILE and OUTPUT are: lines, CSV, TSV or Parquet, gzipped or not; and the options of columns."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import click

from pressmark.cli.talk import CallError
from pressmark.errors import shown

__all__ = [
    "Files",
    "Kind",
    "Wanted",
    "chosen_files",
    "chosen_source",
    "column_options",
    "index_of",
    "source_options",
    "wanted_column",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class Kind(Enum):
    """The kinds of files that items can be in, by the words of ``--format``."""

    LINES = "lines"
    CSV = "csv"
    TSV = "tsv"
    PARQUET = "parquet"

    def __str__(self) -> str:
        return {"csv": "CSV", "tsv": "TSV", "parquet": "Parquet"}.get(self.value, self.value)


ENDINGS = {".txt": Kind.LINES, ".csv": Kind.CSV, ".tsv": Kind.TSV, ".parquet": Kind.PARQUET, ".pq": Kind.PARQUET}


class Files(NamedTuple):
    """What is read and what is written."""

    source: Kind
    gunzip: bool
    sink: Kind
    gzip: bool


class Wanted(NamedTuple):
    """The column of a call: where it is in the input, and what the one made of it is called.

    :ivar column: its name, or its number counted from 1
    :ivar header: the first row of CSV and TSV names the columns
    :ivar result: empty where none is made
    """

    column: str | int
    header: bool
    result: str


def column_options(function: Function) -> Function:
    """Add ``--column``, ``--format``, ``--header`` and ``--as`` to a command."""
    as_option = click.option(
        "--as",
        "as_name",
        metavar="NAME",
        help='Name the new column NAME instead of "path" (unmap: "identifier").',
    )
    return source_options(as_option(function))


def source_options(function: Function) -> Function:
    """Add the options that say what FILE is, and where in it the items are."""
    for decorator in (
        click.option(
            "--header/--no-header",
            default=None,
            help="The first row of CSV and TSV names the columns, or does not. Default: it does where --column is a"
            " name, and does not where it is a number.",
        ),
        click.option(
            "--format",
            "format_name",
            type=click.Choice([kind.value for kind in Kind]),
            help="What FILE is. Default: what its name ends in (.txt, .csv, .tsv, .parquet, .pq; .gz may follow),"
            " lines for all other names.",
        ),
        click.option(
            "--column",
            metavar="NAME|NUMBER",
            help="FILE is a table: take its column of that name, or of that number, counted from 1 (digits are always"
            " a number).",
        ),
    ):
        function = decorator(function)
    return function


def chosen_files(
    file: str | None, output: str | None, format_name: str | None, column: str | None, null: bool, both: bool
) -> Files:
    """Return what FILE and OUTPUT are, or refuse what does not go together."""
    gzip = _is_gzip(output)
    target = _by_ending(output)
    if column is not None:
        for given, option in ((null, "-0"), (both, "--both")):
            if given:
                raise CallError(f"{option} does not go with --column: a table has its own rows and columns")
    kind, gunzip = chosen_source(file, format_name, column)
    if kind is Kind.LINES:
        if target is Kind.PARQUET:
            raise CallError(f"{output}: Parquet is made of tables only (--column), not of lines")
        return Files(Kind.LINES, gunzip, Kind.LINES, gzip)
    if target in (None, Kind.LINES):
        if target and kind is Kind.PARQUET:
            raise CallError(f"{output}: a table is written as .csv, .tsv or .parquet")
        target = kind
    assert target is not None
    if target is Kind.PARQUET:
        if output is None or output == "-":
            raise CallError("Parquet is not written to standard output; give -o OUTPUT (.csv and .tsv give text)")
        if gzip:
            raise CallError(f"{output}: Parquet compresses by itself; leave out the .gz")
    return Files(kind, gunzip, target, gzip)


def chosen_source(file: str | None, format_name: str | None, column: str | None) -> tuple[Kind, bool]:
    """Return what FILE is, and whether it is gzipped; lines where no column is asked for."""
    name = _name_of(file)
    kind = Kind(format_name) if format_name else _by_ending(file)
    gunzip = _is_gzip(file)
    if column is None:
        if kind not in (None, Kind.LINES):
            raise CallError(f"{name}: {kind} needs --column, to say which one to take (or --format lines)")
        return Kind.LINES, gunzip
    if kind is None:
        raise CallError(f"{name}: nothing tells what kind of table it is; give --format csv, tsv or parquet")
    if kind is Kind.LINES:
        reason = "--format says" if format_name else "its name says"
        raise CallError(f"{name}: {reason} that it has no columns; give --format csv, tsv or parquet")
    if kind is Kind.PARQUET and gunzip:
        raise CallError(f"{name}: Parquet cannot be read through gzip; unpack it first")
    return kind, gunzip


def wanted_column(
    files: Files, column: str | None, header: bool | None, as_name: str | None, default: str
) -> Wanted | None:
    """Return the column of a call, or :data:`None` where it is about lines; ``default`` names its result."""
    if column is None:
        if header is not None:
            raise CallError(f"--{'header' if header else 'no-header'} goes with --column only")
        if as_name is not None:
            raise CallError("--as goes with --column only")
        return None
    number = int(column) if column.isascii() and column.isdigit() else None
    if number == 0:
        raise CallError("--column 0: columns are counted from 1")
    if files.source is Kind.PARQUET:
        if header is not None:
            raise CallError(f"--{'header' if header else 'no-header'} is for CSV and TSV: Parquet knows its columns")
        header = True
    elif header is None:
        header = number is None
    if number is None and not header:
        raise CallError(f"--column {shown(column)}: without a header row columns have numbers only")
    if as_name is not None:
        if not header and files.sink is not Kind.PARQUET:
            raise CallError("--as: without a header row the new column has no name (--header says that there is one)")
        _check_name(as_name, files.sink)
    return Wanted(column if number is None else number, header, default if as_name is None else as_name)


def index_of(wanted: Wanted, names: list[str], file: str) -> int:
    """Return where the wanted column is among ``names``, the columns of ``file``."""
    listed = ", ".join(names[:20]) + (f" … ({len(names)} in all)" if len(names) > 20 else "")
    if isinstance(wanted.column, int):
        if wanted.column > len(names):
            raise CallError(f"{file}: no column {wanted.column}; it has {len(names)}: {listed}")
        index = wanted.column - 1
    else:
        found = names.count(wanted.column)
        if found == 0:
            raise CallError(f"{file}: no column {shown(wanted.column)}; it has {listed}")
        if found > 1:
            raise CallError(f"{file}: {found} columns are called {shown(wanted.column)}; give the number of one")
        index = names.index(wanted.column)
    if wanted.result and wanted.result in names:
        raise CallError(f"{file}: it has a column {shown(wanted.result)} already; name the new one with --as")
    return index


def _check_name(name: str, kind: Kind) -> None:
    if not name:
        raise CallError("--as: the name is empty")
    if kind is Kind.TSV and any(character in name for character in "\t\n\r"):
        raise CallError(f"--as {shown(name)}: a TSV field cannot hold that")
    if kind is Kind.PARQUET and not _is_text(name):
        raise CallError(f"--as {shown(name)}: names in Parquet are UTF-8")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _name_of(file: str | None) -> str:
    return "<stdin>" if file is None or file == "-" else file


def _is_gzip(path: str | None) -> bool:
    return path is not None and path.lower().endswith(".gz")


def _by_ending(path: str | None) -> Kind | None:
    if path is None:
        return None
    if _is_gzip(path):
        path = path[: -len(".gz")]
    return ENDINGS.get(os.path.splitext(path)[1].lower())
