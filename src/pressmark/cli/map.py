"""``pressmark map`` and ``pressmark unmap``."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import click

from pressmark.cli.common.console import CallError, Failure, say
from pressmark.cli.common.files import open_source
from pressmark.cli.common.layout_options import NamedLayout, chosen_layout, column_named, column_options, layout_options
from pressmark.cli.common.options import PROGRESS, THREADS, null_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.errors import IdentifierError, NotReversibleError, PathError, quoted
from pressmark.fs.gzipped import unpacked
from pressmark.layouts import Layout
from pressmark.progress_event import Progress, ProgressEvent
from pressmark.tabular.formats import Crlf, check_output, chosen_format

__all__ = ["map_command", "unmap_command"]


class _Direction(NamedTuple):
    """The differences between the two commands."""

    name: str
    short_help: str
    items: str
    item: str
    result: str
    first: str
    more: str


HELP = """\
Write the {result} of every {item} in FILE to standard output.

\b
Examples:
{first}

LAYOUT is an official name or its four-digit alias; "pressmark layouts" lists both. Parameters follow the name, as in
0003:tupleSize=2,numberOfTuples=2, or are given with --set. FILE has one {item} per line; without FILE, or if it is
"-", the command reads standard input. With --column, FILE is a table, and its rows get a new column.
"""

MORE = """\
\b
More examples:
{more}

Paths are relative to the root of an OCFL store, to the directory pairtree_root of a Pairtree, or to file_storage_root
of a Vitro store. A Pairtree with a file pairtree_prefix needs its prefix: --set prefix=ark:/13030/. With
pairtree:paths=object, paths end with the encapsulating directory, and unmap accepts the path of a file in it. With
pairtree:cleaned=true, identifiers are already cleaned; others are refused. pairtree:dialect=unt, caltech or
unpadded-hex maps as the programs that wrote such trees. Settings are combined with commas.

Each line ends with a line feed. If the last line of FILE does not, neither does the last line of the output. With -0,
NUL replaces the line feed in input and output, because an identifier can contain line feeds. Nothing is decoded,
trimmed or skipped: an empty line is an empty {item}, which fails. The output has the same order as FILE. If FILE ends
in .gz, it is decompressed; if OUTPUT ends in .gz, it is compressed.

A list created on Windows has a carriage return before each line feed, and may start with a byte-order mark. If a list
has either, also after its first lines, --crlf is required. In tables, rows that end with carriage returns only, a
byte-order mark inside the file and UTF-16 are refused. The command refuses files that are not lists, which it
recognizes by their names and first bytes: spreadsheets, documents, archives, databases, JSON, and files with
compression other than gzip.

Tables: with --column, FILE is CSV, TSV, JSON lines or Parquet, and one of its columns contains the {items}. Each row is
written with its {result} as a new last column; everything else is unchanged: the bytes of text formats, and the schema,
metadata and compression of Parquet. OUTPUT has the format of FILE; DuckDB and pyarrow convert tables. Without OUTPUT,
text formats are written to standard output.

In TSV, a line feed ends a row and a TAB ends a field; quotes are literal. CSV follows RFC 4180: quoted fields may
contain commas, quotes (doubled) and line feeds. In both, a carriage return before the line feed is part of the row end,
a byte-order mark at the start is not part of a field, and every row must have the same number of fields as the first.
--delimiter replaces the comma of CSV. If --column is a number, --header or --no-header is required. For the hathifiles
(TSV without a header row, in files that end in .txt.gz), use "--format tsv --column 1 --no-header".

In JSON lines, every line is an object, and --column is a key. A null stays null and does not fail.

Parquet requires pyarrow (pip install 'pressmark[arrow]') and a file, not a pipe. The column must be text (string or
binary, or a dictionary of them). A null stays null and does not fail. Rows are read and written in row groups of at
most 32 MiB.

Errors: for each {item} that fails, a line on standard error shows the file, the line number (from 1), the {item}
and the reason; with -0, "item" and its number replace the line number. With "--on-error stop", the first error stops
the run: standard output ends before that {item}, and a file given with -o is not written. With "skip", the line is
omitted. With "empty", an empty line is written (with --both, the missing column is empty). With "skip" and "empty", the
last line on standard error counts the failures. In a table, "skip" omits the row, and "empty" leaves the new field
empty (null in Parquet), but omits a malformed line of JSON; the line number is that of the first line of the row, in
Parquet the row number (from 1). A row with too few or too many fields also fails.
"""

EPILOG = """\
For each {item} that fails, a line on standard error shows the file, the line number, the {item} and the reason.

Exit status: 0 success (also if the reader of a pipe closes it), 1 an item failed, or reading or writing failed, 2 usage
error (nothing was done), 130 interrupted.
"""

MAP = _Direction(
    "map",
    "Map identifiers to storage paths.",
    "identifiers",
    "identifier",
    "path",
    """\
  echo ark:/13030/xt12t3 | pressmark map pairtree
  pressmark map 0004 identifiers.txt -o paths.txt""",
    """\
  pressmark map pairtree --set prefix=ark:/13030/ identifiers.txt
  echo ark+=13030=xt12t3 | pressmark map pairtree:paths=object,cleaned=true
  pressmark map 0012 --set 'delimiters=[":", "/"]' identifiers.txt
  pressmark map 0006 --set delimiter=: --on-error skip identifiers.txt
  pressmark map 0003 --config config.json --both identifiers.txt
  printf 'a\\0b\\nc\\0' | pressmark map pairtree -0 | tr '\\0' '\\n'
  pressmark map 0003 table.csv --column id -o with-paths.csv.gz
  pressmark map pairtree table.csv --column 1 --header --as ppath
  pressmark map pairtree german.csv --column Signatur --delimiter ';'
  pressmark map 0003 records.jsonl --column id -o with-paths.jsonl
  pressmark map pairtree windows.txt --crlf strip
  pressmark map pairtree hathi_full.txt.gz --format tsv --column 1 --no-header
  pressmark map 0004 table.parquet --column id --on-error empty -o new.parquet
  pressmark map pairtree --format tsv --column ppath < table.tsv""",
)

UNMAP = _Direction(
    "unmap",
    "Map storage paths back to identifiers.",
    "paths",
    "path",
    "identifier",
    """\
  echo ar/k+/=1/30/30/=x/t1/2t/3 | pressmark unmap pairtree
  pressmark map 0003 identifiers.txt | pressmark unmap 0003""",
    """\
  pressmark unmap pairtree paths.txt | pressmark map 0003
  echo pairtree_root/ab/c/abc/1.tif | pressmark unmap pairtree:paths=object
  pressmark unmap 0011 --set encodeUTF=true --on-error skip paths.txt
  pressmark unmap pairtree --both --on-error empty paths.txt
  pressmark unmap pairtree table.tsv --column ppath --as id -o identifiers.tsv""",
)

_GO_ON = "to continue after errors, use --on-error empty or --on-error skip"
ON_ERROR: dict[str, Literal["raise", "skip", "none"]] = {"stop": "raise", "skip": "skip", "empty": "none"}


def _command(direction: _Direction, more: str) -> click.Command:
    """Return the command for ``direction``; ``more`` is help text of this command alone."""
    words = direction._asdict()

    @click.command(
        direction.name,
        cls=Command,
        short_help=direction.short_help,
        help=HELP.format_map(words) + more,
        details=MORE.format_map(words),
        page_options="--config --header --delimiter --as --threads",
        epilog=EPILOG.format_map(words),
    )
    @layout_options
    @click.argument("file", metavar="[FILE]", required=False, type=click.Path(readable=False, allow_dash=True))
    @column_options
    @null_option("End items with NUL instead of a line feed, in input and output.")
    @click.option(
        "--both",
        is_flag=True,
        help="Write identifier, TAB, path. An identifier that contains a TAB fails, except with -0.",
    )
    @click.option(
        "--on-error",
        type=click.Choice(list(ON_ERROR)),
        default="stop",
        show_default=True,
        help=f"For {'an identifier' if direction is MAP else 'a path'} that fails: stop (OUTPUT is then not written),"
        " skip it, or write an empty line.",
    )
    @THREADS
    @click.option(
        "--output",
        "-o",
        metavar="OUTPUT",
        type=click.Path(readable=False, allow_dash=True),
        help="Write to the file OUTPUT instead of standard output. OUTPUT is replaced only when the result is"
        " complete; if an error stops the run, it is unchanged. Pipes, devices and open descriptors (/dev/stdout) are"
        " written to.",
    )
    @PROGRESS
    def command(
        layout: NamedLayout,
        settings: tuple[str, ...],
        config: str | None,
        file: str | None,
        column: str | None,
        format_name: str | None,
        header: bool | None,
        delimiter: str | None,
        crlf: Crlf | None,
        as_name: str | None,
        null: bool,
        both: bool,
        on_error: str,
        threads: int | None,
        output: str | None,
        progress: bool | None,
    ) -> int:
        options: dict[str, Any] = {
            "column": column_named(column),
            "format": format_name,
            "header": header,
            "result": as_name,
            "delimiter": delimiter,
            "crlf": crlf,
            "null": null,
            "both": both,
        }
        # Before any file is opened.
        format = chosen_format("<stdin>" if file in (None, "-") else str(file), **options)
        if output is not None:
            check_output(output, format)
        if format == "parquet" and output in (None, "-"):
            raise CallError("Parquet cannot be written to standard output; use -o OUTPUT")
        chosen = chosen_layout(layout, settings, config)
        if direction is UNMAP:
            _require_inverse(chosen)
        is_file = output not in (None, "-")
        interrupted = f"interrupted; {output} is unchanged; run the same command again" if is_file else "interrupted"
        with (
            open_source(file) as source,
            Output(progress, direction.item, data=True, path=output, source=source, interrupted=interrupted) as written,
        ):

            def failure(error: IdentifierError | PathError) -> str:
                number = (error.index or 0) + 1
                where = f"{source.name}: item {number}" if null else f"{source.name}:{number}"
                return f"{where}: {quoted(error.item)}: {error.reason}"

            def show(done: Progress) -> None:
                # Of compressed input, the bytes of the file.
                written.reporter.on_event(
                    ProgressEvent("", done.done, source.bytes_read, done.failed, of_bytes=source.size)
                )
                written.reporter.flush()

            class Failures:
                """Prints each error when it occurs."""

                @staticmethod
                def append(error: IdentifierError | PathError) -> None:
                    written.reporter.fail(failure(error))

            try:
                counts = chosen.map_file(
                    unpacked(source, source.name),
                    written.target,
                    unmap=direction is UNMAP,
                    on_error=ON_ERROR[on_error],
                    threads=threads,
                    errors=Failures(),
                    progress=Progress(show),
                    **options,
                )
            except (IdentifierError, PathError) as error:
                kept = f"; nothing was written to {output}; {_GO_ON}" if column is None and is_file else ""
                raise Failure(f"{failure(error)}{kept}") from None
        if counts.failed:
            noun = direction.item if counts.items == 1 else direction.items
            all_failed = counts.failed == counts.items > 1
            hint = f"; check {'FILE' if column is None else '--column'} and LAYOUT" if all_failed else ""
            say(f"{counts.failed:,} of {counts.items:,} {noun} failed{hint}")
        return written.status

    return command


def _require_inverse(layout: Layout) -> None:
    """Refuse a layout without inverse before any file is opened."""
    if layout.reversible:
        return
    if layout.reversibility == "never":
        raise NotReversibleError(layout.name)
    raise CallError(f"{layout.name} is reversible only {layout.reversibility}")


map_command = _command(MAP, "")
unmap_command = _command(
    UNMAP,
    """
A path fails unless LAYOUT maps an identifier to it. Layouts whose paths do not contain the whole identifier are
refused.
""",
)
