"""``pressmark compare``: compare layouts on your own identifiers."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Iterator, Sequence
from textwrap import TextWrapper
from typing import Any

import click

from pressmark.cli.common.console import CallError, Failure, cause, one_line, say
from pressmark.cli.common.files import InputStream, open_source
from pressmark.cli.common.layout_options import column_named, layout_option, source_options
from pressmark.cli.common.options import PROGRESS, THREADS, WholeNumber, complete_layouts, json_option, null_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count
from pressmark.cli.common.rich_tables import Table, output_width, tables_text
from pressmark.compare.comparison import Comparison, compare
from pressmark.compare.report import STORES, SYSTEMS, Verdict, check_report, safety_of, write_report
from pressmark.compare.result import KINDS
from pressmark.errors import ReportError, SpillError, quoted
from pressmark.html import format_number
from pressmark.paths import PROFILES
from pressmark.progress_event import EventListener, ProgressEvent
from pressmark.tabular.formats import chosen_format
from pressmark.tabular.tables import open_items

__all__ = ["STAGES", "compare_command"]

# Common layouts of storage roots that need no parameters for these identifiers.
DEFAULT_LAYOUTS = ("pairtree", "0002", "0003", "0003:tupleSize=2,numberOfTuples=2", "0004")

# Examples of each kind in the tables; the report and --json list more.
_EXAMPLES = 5
_COLLISIONS = {
    "equal": "same path",
    "case": "same except case",
    "normalization": "same except normalization",
    "inside": "nested",
}
STAGES: dict[str, str | tuple[str, str]] = {
    "read": "reading",
    "map": "mapping",
    "merge": ("sorting", "layout"),
    "probe": ("probing", "layout"),
}

HELP = """\
Compare layouts on the identifiers in FILE.

\b
Examples:
  pressmark compare identifiers.txt
  pressmark compare identifiers.txt --layout 0004 --layout 0012:delimiters=:

The output begins with the layout to choose for each kind of store, two reasons, and the command that creates the store;
then come doubtful identifiers, what speaks against the other layouts, and tables.

For each layout, count collisions, paths that systems do not allow, path lengths, depth, directories and inodes.

The command writes only the report and, with --probe, temporary samples.
"""

EPILOG = """\
\b
More examples:
  pressmark compare table.csv --column id --layout 0004 --directory-limit 1000
  pressmark compare identifiers.txt --files-per-object 20 --versions 3 --json

FILE is a list of identifiers: lines (with -0, NUL-terminated); a column of CSV, TSV, JSON lines or Parquet (--column);
or "-" for standard input. All formats except Parquet can be gzipped. Nulls in Parquet and JSON lines are skipped. If
FILE is a directory, it is opened as a store, and the identifiers of its objects are used. FILE is read once and kept
in a temporary file, not in memory.

"collide" counts identifiers that share a path with another identifier; "nested" counts identifiers whose object is
inside another object, or contains one; "collide, no case" counts identifiers that share a path on a file system that
ignores case or Unicode normalization; "not mapped" counts identifiers without a path. An identifier that occurs more
than once counts once. A layout that is safe for all but a few identifiers is recommended for the rest.

The output also names identifiers that are doubtful under every layout: empty ones, blanks at the ends, no-break and
zero-width characters, several spellings of one DOI or ARK, text that is not UTF-8, and the line "sep=" of Excel.

"directories" counts all directories that the objects need below the root of the store. Inodes are counted for OCFL,
Pairtree or Vitro objects, depending on the layout, with --files-per-object and --versions. The report and --json also
predict how the number of directories grows.

With --json, each layout is a JSON object on a separate line; the last line is {"summary": {...}} with the verdict.

Exit status: 0 every layout maps every identifier to a unique path that POSIX file systems allow, 1 a layout does not,
or a file cannot be read or written, 2 usage error, 130 interrupted.
"""


class _Compare(Command):
    """Refuses two stores, and names the command that compares them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments."""
        if len(args) == 2 and all(map(os.path.isdir, args)):
            raise CallError(f"only one FILE; to compare two stores: pressmark store compare {shlex.join(args)}")
        return super().parse_args(ctx, args)


@click.command("compare", cls=_Compare, help=HELP, epilog=EPILOG, short_help="Compare layouts on your own identifiers.")
@click.argument("file", metavar="FILE", type=click.Path(readable=False, allow_dash=True))
@click.option(
    "--layout",
    "layouts",
    metavar="NAME[:KEY=VALUE,...]",
    shell_complete=complete_layouts,
    multiple=True,
    help='A layout to compare; repeatable. "pressmark layouts" lists the layouts, "pressmark layouts NAME" the keys.'
    f" Default: {', '.join(DEFAULT_LAYOUTS)}.",
)
@source_options
@null_option("Identifiers end with NUL instead of a line feed.")
@click.option(
    "--files-per-object",
    metavar="N",
    type=WholeNumber(min=0),
    default=1,
    show_default=True,
    help="Number of content files in each object, over all versions.",
)
@click.option(
    "--versions",
    metavar="N",
    type=WholeNumber(min=1),
    default=1,
    show_default=True,
    help="Number of versions of each OCFL object.",
)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="all",
    show_default=True,
    help="Check paths against the naming rules of this system, or of all.",
)
@click.option(
    "--root",
    metavar="PATH",
    type=click.Path(path_type=bytes),
    help="The future path of the store; its length counts towards path length limits.",
)
@click.option(
    "--directory-limit",
    metavar="N",
    type=WholeNumber(min=1),
    help="Count directories with more than N entries.",
)
@click.option(
    "--probe",
    metavar="DIR",
    type=click.Path(),
    help="Create sample trees in DIR, a directory on the file system of the future store; measure creation, stat calls"
    " and a walk; and remove the samples.",
)
@click.option("--report", metavar="FILE.html", type=click.Path(), help="Write an HTML report.")
@json_option("layout")
@click.option(
    "--temporary",
    metavar="DIR",
    type=click.Path(),
    help="Directory for temporary files. Default: the temporary directory of the system.",
)
@THREADS
@PROGRESS
def compare_command(
    file: str,
    layouts: tuple[str, ...],
    null: bool,
    files_per_object: int,
    versions: int,
    profile: str,
    root: bytes | None,
    directory_limit: int | None,
    probe: str | None,
    report: str | None,
    as_json: bool,
    temporary: str | None,
    threads: int | None,
    progress: bool | None,
    **source_format: Any,
) -> int:
    """Compare layouts on your own identifiers."""
    layouts = layouts or DEFAULT_LAYOUTS
    chosen = [layout_option(text) for text in layouts]
    for option, directory in (("--probe", probe), ("--temporary", temporary)):
        if directory is not None and not os.path.isdir(directory):
            raise CallError(f"{option} {directory}: directory not found; create it first")
    if report is not None:
        try:
            check_report(report, file)
        except ReportError as error:
            raise CallError(str(error)) from None
    interrupted = "interrupted; run the same command again"
    with (
        _opened(file, null, **source_format) as (identifiers, source),
        Output(progress, "identifier", as_json=as_json, interrupted=interrupted, stages=STAGES) as output,
    ):

        def show(event: object) -> None:
            if source is not None and isinstance(event, ProgressEvent) and event.stage == "read":
                event = event._replace(bytes=source.bytes_read, of_bytes=source.size)
            output.progress(event)

        try:
            comparison = compare(
                identifiers,
                chosen,
                names=layouts,
                files_per_object=files_per_object,
                versions=versions,
                profile=profile,
                root_length=0 if root is None else len(root.rstrip(b"/")),
                directory_limit=directory_limit,
                threads=threads,
                folder=temporary,
                probe=probe,
                source="standard input" if file == "-" else file,
                null=null,
                progress=EventListener(show),
            )
        except SpillError as error:
            raise Failure(f"{error}; choose another directory with --temporary") from None
        except OSError as error:
            raise Failure(f"{error.filename or file}: {cause(error)}") from None
        if not comparison.identifiers:
            raise CallError(f"{'<stdin>' if file == '-' else file}: no identifiers; expected one on each line")
        if report is not None:
            # Write the report before the tables: a broken pipe may end their output.
            try:
                write_report(comparison, report)
            except ReportError as error:
                raise Failure(str(error)) from None
        output.errors += sum(not one.ok for one in comparison.layouts) + comparison.unreadable
        found = comparison.verdict
        if as_json:
            summary: dict[str, Any] = comparison.record()
            for record in summary.pop("layouts"):
                output.record(record)
            output.summary({**summary, "verdict": found.record()})
        else:
            output.data(_text(comparison, found).encode())
    if report is not None:
        output.tell(f"{report}: report written")
    if comparison.unreadable:
        objects = format_count(comparison.unreadable, "object")
        say(f'{file}: {objects} skipped, identifier cannot be read; run "pressmark store check"')
    return output.status


@contextlib.contextmanager
def _opened(
    file: str, null: bool, column: str | None, format_name: str | None, **options: Any
) -> Iterator[tuple[Any, InputStream | None]]:
    """Open FILE and yield its identifiers in a form that ``compare`` accepts, and the file; of a store, no file."""
    if file != "-" and os.path.isdir(file):
        if column or format_name or null or options["delimiter"] or options["crlf"]:
            names = "--column, --format, --delimiter, --crlf and -0"
            raise CallError(f"{file}: a directory is opened as a store; {names} apply to files only")
        # Imported here: most runs do not open a store.
        from pressmark.cli.store.options import StoreFormat

        yield StoreFormat().open(os.fsencode(file), keyword=None), None
        return
    name = "<stdin>" if file == "-" else file
    options |= {"column": column_named(column), "null": null}
    format = chosen_format(name, format=format_name, **options)
    with (
        open_source(file) as source,
        open_items(source, name, format, json_lines=format_name is None, **options) as items,
    ):
        yield items, source


# --- tables -----------------------------------------------------------------------------------------------------------


def _text(comparison: Comparison, found: Verdict) -> str:
    """Return the recommendations, what speaks against the other layouts, and the tables."""
    lines = []
    for one in found.recommendations:
        lines.append(one_line(f"{found.heading} for {STORES[one.structure]}: {one.layout}"))
        lines += [_wrapped(one.text, "  "), f"  {one_line(one.command)}", ""]
    lines.append(f"{found.word}.")
    for group in found.groups:
        lines += ["", f"{group.title}:", *(_wrapped(statement.text, "- ") for statement in group.statements)]
    tables = tables_text(_safety(comparison), _shape(comparison), *_first(comparison), *_probes(comparison))
    return "\n".join([*lines, "", tables])


def _wrapped(text: str, head: str) -> str:
    """Return a text in lines that start below ``head``; names of layouts are not broken."""
    wrapper = TextWrapper(
        output_width(),
        initial_indent=head,
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return wrapper.fill(one_line(text))


def _safety(comparison: Comparison) -> Table:
    profiles = [one for one in SYSTEMS if comparison.profile in ("all", one) and one != "unix"]
    heads = ["layout", "safe", "collide", "nested", "not mapped", "not allowed: Unix", "collide, no case"]
    table = Table(
        f"{format_count(comparison.identifiers, 'identifier')}: collisions and paths that are not allowed",
        [*heads, *(f"not allowed: {SYSTEMS[one]}" for one in profiles), "not reversible"],
        2,
    )
    for one in comparison.layouts:
        counts = [one.collisions.equal, one.collisions.inside_exact, one.unmapped.count]
        counts += [_refused(one, "unix"), one.collisions.folded, *(_refused(one, profile) for profile in profiles)]
        table.add(one.name, safety_of(one, comparison), *map(format_number, [*counts, one.irreversible]))
    return table


def _refused(layout: Any, profile: str) -> int:
    found = layout.refused.get(profile)
    return found.count if found is not None else 0


def _shape(comparison: Comparison) -> Table:
    heads = ["directories", "per object", "depth", "path, mean", "path, longest"]
    heads += ["entries, median", "entries, 99 %", "entries, most"]
    limit = [] if comparison.directory_limit is None else [f"more than {format_number(comparison.directory_limit)}"]
    table = Table(
        "Shape and cost: length of paths in bytes below the root, entries of directories",
        ["layout", *heads, *limit, "inodes per object", "identifiers/s"],
    )
    for one in comparison.layouts:
        lengths, fan_out = one.lengths.path_bytes, one.fan_out
        numbers = [lengths.max, fan_out.p50, fan_out.p99, fan_out.max, *([fan_out.over_limit] if limit else [])]
        cells = [
            format_number(one.directories.total),
            f"{one.directories.per_object:.2f}",
            format_number(one.depth.max),
        ]
        cells += [f"{lengths.mean:.1f}", *map(format_number, numbers)]
        rate = format_number(round(one.throughput.per_second)) if one.throughput.per_second else "-"
        table.add(one.name, *cells, f"{one.costs.inodes_per_object:.2f}", rate)
    if any(not one.throughput.per_second for one in comparison.layouts):
        table.notes.append("identifiers/s: - if there are too few identifiers to measure the speed")
    return table


def _first(comparison: Comparison) -> list[Table]:
    table = Table("Examples", ["layout", "kind", "identifiers", "examples", "path or reason"], 5)
    for one in comparison.layouts:
        for kind in KINDS:
            # One example is enough where it is no defect.
            is_allowed = kind == "inside" and one.nesting
            for group in one.collisions.first.get(kind, ())[: 1 if is_allowed else _EXAMPLES]:
                count = format_number(one.collisions.inside if is_allowed else group.count)
                paths = list(dict.fromkeys(member.path for member in group.members[:2]))
                table.add(one.name, _COLLISIONS[kind], count, _shown(group.members), _texts(paths))
        named = [("not mapped", one.unmapped)]
        named += [(f"not allowed: {SYSTEMS[profile]}", refused) for profile, refused in one.refused.items()]
        for kind, refused in named:
            if refused.count:
                shown = refused.different()
                reason = "; ".join(example.reason for example in shown)
                table.add(one.name, kind, format_number(refused.count), _shown(shown), reason)
    return [table] if table.rows else []


def _shown(members: Sequence[Any]) -> str:
    return _texts([member.id for member in members[:2]])


def _texts(texts: Sequence[str]) -> str:
    return ", ".join(quoted(text) for text in texts)


def _probes(comparison: Comparison) -> list[Table]:
    probes = [(one.name, one.probe) for one in comparison.layouts if one.probe is not None]
    if not probes:
        return []
    first = probes[0][1]
    system = f" ({first.file_system})" if first.file_system else ""
    table = Table(
        f"Microseconds per directory, in {first.folder}{system}",
        ["layout", "objects", "directories", "size", "create", "stat", "walk (warm)", "walk (cold)"],
    )
    reasons: dict[str, None] = {}
    for name, probe in probes:
        times = [probe.create, probe.stat, probe.walk_warm, probe.walk_cold]
        reasons.update((time.reason, None) for time in times if time.reason)
        cells = ["-" if time.per_directory is None else f"{time.per_directory:.1f}" for time in times]
        size = "-" if probe.kib is None else format_bytes(1024 * probe.kib)
        table.add(name, format_number(probe.objects), format_number(probe.directories), size, *cells)
    table.notes += reasons
    return [table]
