"""What FILE and OUTPUT are: lines, CSV, TSV, JSON lines or Parquet, gzipped or not; and the options of columns."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import click

from pressmark.cli.common.console import CallError
from pressmark.cli.common.crlf_option import CRLF_OPTION
from pressmark.errors import quoted
from pressmark.tabular import delimited
from pressmark.tabular.detection import FormatError, format_of, is_gzip

__all__ = [
    "ColumnSpec",
    "Files",
    "Kind",
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
    JSONL = "jsonl"
    PARQUET = "parquet"

    def __str__(self) -> str:
        return {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON lines", "parquet": "Parquet"}.get(self.value, self.value)


class Files(NamedTuple):
    """What is read and what is written."""

    source: Kind
    gunzip: bool
    sink: Kind
    gzip: bool


class ColumnSpec(NamedTuple):
    """The column of a call: where it is in the input, and what the one made of it is called.

    :ivar column: its name, or its number counted from 1
    :ivar header: the first row of CSV and TSV names the columns; :data:`None` where the call does not say
    :ivar result: empty where none is made
    :ivar delimiter: that separates the fields of CSV; :data:`None` where the call does not say
    """

    column: str | int
    header: bool | None
    result: str
    delimiter: str | None = None


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
        CRLF_OPTION,
        click.option(
            "--delimiter",
            metavar="CHARACTER",
            help="What separates the fields of CSV, such as ';', or '\\t' for TAB. Default: a comma.",
        ),
        click.option(
            "--header/--no-header",
            default=None,
            help="The first row of CSV and TSV names the columns, or is data. It names them where --column is a name;"
            " where it is a number, one of the two must be given.",
        ),
        click.option(
            "--format",
            "format_name",
            type=click.Choice([kind.value for kind in Kind]),
            help="What FILE is. Default: what its name ends in (.txt, .csv, .tsv, .tab, .jsonl, .ndjson, .parquet, .pq;"
            " .gz may follow), lines for all other names.",
        ),
        click.option(
            "--column",
            metavar="NAME|NUMBER",
            help="FILE is a table: take its column of that name, or of that number, counted from 1 (digits are always"
            " a number); of JSON lines the key of that name.",
        ),
    ):
        function = decorator(function)
    return function


def chosen_files(
    file: str | None,
    output: str | None,
    format_name: str | None,
    column: str | None,
    delimiter: str | None,
    crlf: str | None,
    null: bool,
    both: bool,
) -> Files:
    """Return what FILE and OUTPUT are, or refuse what does not go together."""
    gzip = output is not None and is_gzip(output)
    target = _target(output)
    if column is not None:
        for given, option in ((null, "-0"), (both, "--both")):
            if given:
                raise CallError(f"{option} does not go with --column: a table has its own rows and columns")
    kind, gunzip = chosen_source(file, format_name, column, delimiter, crlf)
    if kind is Kind.LINES:
        if target in (Kind.PARQUET, Kind.JSONL):
            raise CallError(f"{output}: {target} is made of tables only (--column), not of lines")
        return Files(Kind.LINES, gunzip, Kind.LINES, gzip)
    if target in (None, Kind.LINES):
        if target and kind is Kind.PARQUET:
            raise CallError(f"{output}: a table is written as .csv, .tsv or .parquet")
        target = kind
    assert target is not None
    if Kind.JSONL in (kind, target) and kind is not target:
        raise CallError(f"{output}: {kind} is not written as {target}; JSON lines become JSON lines only")
    if target is Kind.PARQUET:
        if output is None or output == "-":
            raise CallError("Parquet is not written to standard output; give -o OUTPUT (.csv and .tsv give text)")
        if gzip:
            raise CallError(f"{output}: Parquet compresses by itself; leave out the .gz")
    return Files(kind, gunzip, target, gzip)


def chosen_source(
    file: str | None, format_name: str | None, column: str | None, delimiter: str | None, crlf: str | None
) -> tuple[Kind, bool]:
    """Return what FILE is, and whether it is gzipped; lines where no column is asked for."""
    name = _name_of(file)
    gunzip = file is not None and is_gzip(file)
    kind = Kind(format_name) if format_name else _by_name(file)
    if column is None:
        if delimiter is not None:
            raise CallError("--delimiter goes with --column only")
        if kind not in (None, Kind.LINES):
            raise CallError(f"{name}: {kind} needs --column, to say which one to take (or --format lines)")
        return Kind.LINES, gunzip
    if delimiter is not None and format_name is None and kind in (None, Kind.LINES):
        kind = Kind.CSV
    if kind is None:
        raise CallError(f"{name}: nothing tells what kind of table it is; give --format csv, tsv, jsonl or parquet")
    if kind is Kind.LINES:
        reason = "--format says" if format_name else "its name says"
        raise CallError(f"{name}: {reason} that it has no columns; give --format csv, tsv, jsonl or parquet")
    if kind is Kind.PARQUET and gunzip:
        raise CallError(f"{name}: Parquet cannot be read through gzip; unpack it first")
    if crlf is not None:
        raise CallError(f"--crlf is for lines; {kind} takes both line ends")
    if delimiter is not None:
        if kind not in (Kind.CSV, Kind.TSV):
            raise CallError(f"--delimiter is for CSV, and {name} is {kind}")
        try:
            delimited.dialect_of(kind.value, delimiter)
        except ValueError as error:
            raise CallError(f"--{error}") from None
    return kind, gunzip


def wanted_column(
    files: Files,
    column: str | None,
    header: bool | None,
    as_name: str | None,
    default: str,
    delimiter: str | None = None,
) -> ColumnSpec | None:
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
    if files.source in (Kind.PARQUET, Kind.JSONL):
        if header is not None:
            option = f"--{'header' if header else 'no-header'}"
            raise CallError(f"{option} is for CSV and TSV: {files.source} names its columns")
        if files.source is Kind.JSONL and number is not None:
            raise CallError(f"--column {column}: JSON lines have keys, not numbered columns; give the name of one")
        header = True
    elif header is None and number is None:
        header = True
    if number is None and not header:
        raise CallError(f"--column {quoted(column)}: without a header row columns have numbers only")
    if as_name is not None:
        if header is False and files.sink is not Kind.PARQUET:
            raise CallError("--as: without a header row the new column has no name (--header says that there is one)")
        _check_name(as_name, files.sink)
    return ColumnSpec(column if number is None else number, header, default if as_name is None else as_name, delimiter)


def index_of(wanted: ColumnSpec, names: list[str], file: str) -> int:
    """Return where the wanted column is among ``names``, the columns of ``file``."""
    listed = ", ".join(names[:20]) + (f" … ({len(names)} in all)" if len(names) > 20 else "")
    if isinstance(wanted.column, int):
        if wanted.column > len(names):
            raise CallError(f"{file}: no column {wanted.column}; it has {len(names)}: {listed}")
        index = wanted.column - 1
    else:
        found = names.count(wanted.column)
        if found == 0:
            raise CallError(f"{file}: no column {quoted(wanted.column)}; it has {listed}")
        if found > 1:
            raise CallError(f"{file}: {found} columns are called {quoted(wanted.column)}; give the number of one")
        index = names.index(wanted.column)
    if wanted.result and wanted.result in names:
        raise CallError(f"{file}: it has a column {quoted(wanted.result)} already; name the new one with --as")
    return index


def _check_name(name: str, kind: Kind) -> None:
    if not name:
        raise CallError("--as: the name is empty")
    if kind is Kind.TSV and any(character in name for character in "\t\n\r"):
        raise CallError(f"--as {quoted(name)}: a TSV field cannot hold that")
    if kind in (Kind.PARQUET, Kind.JSONL) and not _is_text(name):
        raise CallError(f"--as {quoted(name)}: names in {kind} are UTF-8")


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _name_of(file: str | None) -> str:
    return "<stdin>" if file is None or file == "-" else file


def _target(output: str | None) -> Kind | None:
    """Return what OUTPUT is to be by its name.

    :raises CallError: it is nothing that is written
    """
    try:
        return _by_name(output)
    except CallError:
        what = "its name is that of another kind of file than is written"
        raise CallError(f"{output}: {what}; give it .txt, .csv, .tsv, .jsonl or .parquet") from None


def _by_name(path: str | None) -> Kind | None:
    """Return what a file is by its name.

    :raises CallError: it is nothing that is read or written
    """
    try:
        found = None if path is None else format_of(path)
    except FormatError as error:
        raise CallError(f"{path}: {error}") from None
    return None if found is None else Kind(found)
