"""The formats of FILE and OUTPUT: lines, CSV, TSV, JSON lines or Parquet; and the options of columns."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple, TypeVar

import click

from pressmark.cli.common.console import CallError
from pressmark.cli.common.files import CRLF_OPTION
from pressmark.tabular.detection import FormatError, format_of, is_gzip

__all__ = [
    "Files",
    "Kind",
    "chosen_files",
    "chosen_source",
    "column_options",
    "source_options",
]

Function = TypeVar("Function", bound=Callable[..., Any])


class Kind(Enum):
    """The formats of ``--format``."""

    LINES = "lines"
    CSV = "csv"
    TSV = "tsv"
    JSONL = "jsonl"
    PARQUET = "parquet"

    def __str__(self) -> str:
        return {"csv": "CSV", "tsv": "TSV", "jsonl": "JSON lines", "parquet": "Parquet"}.get(self.value, self.value)


class Files(NamedTuple):
    """The formats of input and output."""

    source: Kind
    gunzip: bool
    sink: Kind
    gzip: bool


def column_options(function: Function) -> Function:
    """Add ``--column``, ``--format``, ``--header`` and ``--as`` to a command."""
    as_option = click.option(
        "--as",
        "as_name",
        metavar="NAME",
        help='Name of the new column. Default: "path" (unmap: "identifier").',
    )
    return source_options(as_option(function))


def source_options(function: Function) -> Function:
    """Add the options for the format of FILE and the column of its items."""
    for decorator in (
        CRLF_OPTION,
        click.option(
            "--delimiter",
            metavar="CHARACTER",
            help="Field separator of CSV, for example ';', or '\\t' for TAB. Default: a comma.",
        ),
        click.option(
            "--header/--no-header",
            default=None,
            help="The first row of CSV and TSV contains column names, or contains data. Required if --column is a"
            " number.",
        ),
        click.option(
            "--format",
            "format_name",
            type=click.Choice([kind.value for kind in Kind]),
            help="Format of FILE. Default: by its suffix (.txt, .csv, .tsv, .tab, .jsonl, .ndjson, .parquet, .pq; .gz"
            " may follow), lines for other names.",
        ),
        click.option(
            "--column",
            metavar="NAME|NUMBER",
            help="Read FILE as a table, and use this column: a name, or a number from 1 (digits are always"
            " interpreted as a number); for JSON lines, a key.",
        ),
    ):
        function = decorator(function)
    return function


def chosen_files(
    file: str | None,
    output: str | None,
    format_name: str | None,
    column: str | None,
    header: bool | None,
    delimiter: str | None,
    crlf: str | None,
    null: bool,
    both: bool,
) -> Files:
    """Return the formats of FILE and OUTPUT.

    :raises CallError: the options contradict each other
    """
    gzip = output is not None and is_gzip(output)
    target = _target(output)
    if column is not None:
        for given, option in ((null, "-0"), (both, "--both")):
            if given:
                raise CallError(f"{option} cannot be combined with --column")
    kind, gunzip = chosen_source(file, format_name, column, header, delimiter, crlf)
    if kind is Kind.LINES:
        if target in (Kind.PARQUET, Kind.JSONL):
            raise CallError(f"{output}: {target} output needs --column")
        return Files(Kind.LINES, gunzip, Kind.LINES, gzip)
    if target in (None, Kind.LINES):
        if target and kind is Kind.PARQUET:
            raise CallError(f"{output}: unsupported output format; use .csv, .tsv or .parquet")
        target = kind
    assert target is not None
    if Kind.JSONL in (kind, target) and kind is not target:
        raise CallError(f"{output}: {kind} cannot be written as {target}; JSON lines are written as JSON lines only")
    if target is Kind.PARQUET:
        if output is None or output == "-":
            raise CallError("Parquet cannot be written to standard output; use -o OUTPUT")
        if gzip:
            raise CallError(f"{output}: Parquet output cannot be gzipped; omit .gz")
    return Files(kind, gunzip, target, gzip)


def chosen_source(
    file: str | None,
    format_name: str | None,
    column: str | None,
    header: bool | None,
    delimiter: str | None,
    crlf: str | None,
) -> tuple[Kind, bool]:
    """Return the format of FILE, and whether it is gzipped; lines if no column is chosen."""
    name = _name_of(file)
    gunzip = file is not None and is_gzip(file)
    kind = Kind(format_name) if format_name else _by_name(file)
    if column is None:
        if delimiter is not None:
            raise CallError("--delimiter needs --column")
        if kind not in (None, Kind.LINES):
            raise CallError(f"{name}: {kind} needs --column; use --format lines for a list")
        if header is not None:
            raise CallError(f"--{'header' if header else 'no-header'} needs --column")
        return Kind.LINES, gunzip
    if delimiter is not None and format_name is None and kind in (None, Kind.LINES):
        kind = Kind.CSV
    if kind is None:
        raise CallError(f"{name}: unknown table format; use --format csv, tsv, jsonl or parquet")
    if kind is Kind.LINES:
        raise CallError(f"{name}: lines have no columns; use --format csv, tsv, jsonl or parquet")
    if kind is Kind.PARQUET and gunzip:
        raise CallError(f"{name}: gzipped Parquet is not supported; decompress it first")
    if crlf is not None:
        raise CallError(f"--crlf applies to lines only, not to {kind}")
    if delimiter is not None:
        if kind not in (Kind.CSV, Kind.TSV):
            raise CallError(f"--delimiter applies to CSV only; {name} is {kind}")
        from pressmark.tabular.delimited import dialect_of

        try:
            dialect_of(kind.value, delimiter)
        except ValueError as error:
            raise CallError(f"--{error}") from None
    return kind, gunzip


def _name_of(file: str | None) -> str:
    return "<stdin>" if file is None or file == "-" else file


def _target(output: str | None) -> Kind | None:
    """Return the format of OUTPUT by its name.

    :raises CallError: the format is not supported
    """
    try:
        return _by_name(output)
    except CallError:
        raise CallError(f"{output}: unsupported output format; use .txt, .csv, .tsv, .jsonl or .parquet") from None


def _by_name(path: str | None) -> Kind | None:
    """Return the format of a file by its name.

    :raises CallError: the format is not supported
    """
    try:
        found = None if path is None else format_of(path)
    except FormatError as error:
        raise CallError(f"{path}: {error}") from None
    return None if found is None else Kind(found)
