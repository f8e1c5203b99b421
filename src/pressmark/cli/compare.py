"""``pressmark compare``: what layouts would make of one's own identifiers."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import click

from pressmark._kernels.tables import MAX_IDENTIFIER_BYTES
from pressmark.cli.common.console import CallError, Failure, Interrupted, cause, one_line, say
from pressmark.cli.common.file_formats import Files, chosen_source, source_options, wanted_column
from pressmark.cli.common.file_progress import counted
from pressmark.cli.common.files import open_sink, open_source
from pressmark.cli.common.fixity_options import PROGRESS, THREADS
from pressmark.cli.common.gzipped import unpacked
from pressmark.cli.common.lists import checked
from pressmark.cli.common.options import layout_option
from pressmark.cli.common.progress import DISPLAY_AFTER, LOG_EVERY, Display, Manner, manner_of
from pressmark.cli.common.rich_tables import Table, print_tables
from pressmark.cli.store.options import command_errors, open_store
from pressmark.compare import Comparison, Progress, compare
from pressmark.compare.report import SYSTEMS, Verdict, check_report, faults, verdict, write_report
from pressmark.compare.result import KINDS
from pressmark.errors import ReportError, SpillError, quoted
from pressmark.html import number
from pressmark.layouts.streams import cut_blocks
from pressmark.paths import PROFILES
from pressmark.tabular.detection import Crlf

__all__ = ["compare_command"]

# Groups of each kind that a terminal shows; the report and --json have more.
_SHOWN = 5
_CLASHES = {
    "equal": "same path",
    "case": "same but for case",
    "normalization": "same but for forms",
    "inside": "inside",
}

EPILOG = """\
What FILE may be: lines, one identifier each (with -0 ended by NUL); with --column CSV, TSV, JSON lines or Parquet (all
but Parquet may be gzipped); a directory: the identifiers of the objects of the store that it is; "-" for standard
input. Null in Parquet and JSON lines is no identifier. FILE is read once, and not held in memory.

Collisions are counted as the number of identifiers that share their path with another one. "inside" counts those
whose directory is within another's, or holds another's. "folded" counts those that would share a path where a file
system tells neither case nor normal forms of Unicode apart. Identifiers that occur more than once share a path under
every layout.

Directories are those that all objects' paths need, below the root of the store. Inodes are for objects of OCFL,
Pairtree or Vitro, whichever the layout is for, with --files-per-object and --versions. How the numbers grow is in the
report and in --json.

With --json each layout is an object on a line, and last comes {"summary": {...}} with the verdict.

Exit status: 0 every layout has a path of its own for every identifier, 1 some layout has collisions, or identifiers
without a path that a POSIX file system takes, or something could not be read or written; 2 usage error, 130
interrupted.

\b
Examples:
  pressmark compare identifiers.txt --layout pairtree --layout 0003 --layout 0003:tupleSize=2,numberOfTuples=2
  pressmark compare identifiers.txt --layout 0004 --layout 0012:delimiters=: --json
  pressmark compare table.csv --column id --layout pairtree --layout 0004 --directory-limit 10000
  pressmark compare identifiers.txt --layout 0003 --files-per-object 20 --versions 3 --root /data/store
"""


@click.command("compare", epilog=EPILOG, short_help="What layouts would make of your identifiers.")
@click.argument("file", metavar="FILE", type=click.Path(readable=False, allow_dash=True))
@click.option(
    "--layout",
    "layouts",
    metavar="NAME[:KEY=VALUE,...]",
    multiple=True,
    required=True,
    help='Compare this layout; repeatable. Parameters by their keys in the specification; "pressmark layouts NAME"'
    " lists them.",
)
@source_options
@click.option("--null", "-0", is_flag=True, help="Lines end with NUL, not with a line feed.")
@click.option(
    "--files-per-object",
    metavar="N",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Files of content in an object, in all its versions together.",
)
@click.option(
    "--versions",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Versions of an OCFL object.",
)
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default="all",
    show_default=True,
    help="Hold paths against what systems of this kind refuse, or against all of them.",
)
@click.option(
    "--root",
    metavar="PATH",
    type=click.Path(path_type=bytes),
    help="The directory that the store will be in: its length counts where systems limit that of whole paths.",
)
@click.option(
    "--directory-limit",
    metavar="N",
    type=click.IntRange(min=1),
    help="How many entries a directory should have at most: those with more are counted.",
)
@click.option(
    "--probe",
    metavar="DIR",
    type=click.Path(),
    help="Build samples of the trees in a new directory in DIR, on the file system that the store will be on; time"
    " create, stat and walk; and remove them.",
)
@click.option("--report", metavar="FILE.html", type=click.Path(), help="Write the report, one page, to FILE.html.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object a layout and line, and last a summary.")
@click.option(
    "--temporary",
    metavar="DIR",
    type=click.Path(),
    help="Where to put what memory does not hold. Default: where temporary files go.",
)
@THREADS
@PROGRESS
def compare_command(
    file: str,
    layouts: tuple[str, ...],
    column: str | None,
    format_name: str | None,
    header: bool | None,
    delimiter: str | None,
    crlf: Crlf | None,
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
    threads: int,
    progress: bool | None,
) -> int:
    """Map the identifiers of FILE by several layouts, and say what becomes of them: what collides, how deep and wide
    the trees are, how long the paths, how many directories and inodes, and how that grows.

    Nothing is written, except the report, and with --probe the samples, which are removed again.
    """
    chosen = [layout_option(text) for text in layouts]
    for option, place in (("--probe", probe), ("--temporary", temporary)):
        if place is not None and not os.path.isdir(place):
            raise CallError(f"{option} {place}: no such directory")
    if report is not None:
        _check(report, file)
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(open_sink(None, None))
        skipped = _Skipped()
        identifiers = stack.enter_context(_opened(file, column, format_name, header, delimiter, crlf, null, skipped))
        told = stack.enter_context(_Told(manner_of(progress, sink), len(chosen)))
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
                on_event=told.on_event,
            )
        except SpillError as error:
            raise Failure(f"{error}; --temporary names another place") from None
        except OSError as error:
            raise Failure(f"{error.filename or file}: {cause(error)}") from None
        except KeyboardInterrupt:
            raise Interrupted("interrupted") from None
    if not comparison.identifiers:
        raise CallError(f"{'<stdin>' if file == '-' else file}: there is no identifier in it")
    if report is not None:
        # Before the tables: whoever reads those may leave at any moment.
        try:
            write_report(comparison, report)
        except ReportError as error:
            raise Failure(str(error)) from None
    found = verdict(comparison)
    if as_json:
        _print_json(comparison, found)
    else:
        _print(comparison, found)
    if report is not None:
        say(f"{report}: the report is written")
    skipped.tell(file)
    return 0 if all(one.ok for one in comparison.layouts) and not skipped.count else Failure.exit_code


# --- in ---------------------------------------------------------------------------------------------------------------


def _check(report: str, file: str) -> None:
    """Refuse, before the work, a report that cannot be made."""
    with contextlib.suppress(OSError):
        if os.path.samefile(report, file):
            raise CallError(f"{report}: input and report are the same file")
    try:
        check_report(report)
    except ReportError as error:
        raise CallError(str(error)) from None


class _Skipped:
    """How many objects of a store have no identifier that can be read."""

    def __init__(self) -> None:
        self.count = 0

    def tell(self, file: str) -> None:
        """Say it."""
        if self.count:
            objects = counted(self.count, "object")
            say(f'{file}: {objects} left out: no identifier can be read; "pressmark store check" tells')


@contextlib.contextmanager
def _opened(
    file: str,
    column: str | None,
    format_name: str | None,
    header: bool | None,
    delimiter: str | None,
    crlf: Crlf | None,
    null: bool,
    skipped: _Skipped,
) -> Iterator[Any]:
    """Give the identifiers of FILE, in a form that can be compared."""
    if file != "-" and os.path.isdir(file):
        if column or format_name or null or delimiter or crlf:
            options = "--column, --format, --delimiter, --crlf and -0"
            raise CallError(f"{file}: it is a directory, so it is read as a store; {options} are for files")
        with command_errors():
            yield _of_store(file, skipped)
        return
    kind, gunzip = chosen_source(file, format_name, column, delimiter, crlf)
    if null and column is not None:
        raise CallError("-0 does not go with --column: a table has its own rows")
    wanted = wanted_column(Files(kind, gunzip, kind, False), column, header, None, "", delimiter)
    with open_source(file) as source:
        data: Any = unpacked(source, gunzip)
        if wanted is None:
            data = checked(data, "lines", null, crlf, json_lines=format_name is None)
            # As a stream go lines that end with a line feed.
            yield _null_ended(data) if null else data
        else:
            # Imported where it is needed: most runs are about lines.
            from pressmark.cli.common.tables import table_column

            with table_column(kind, wanted, source, data) as items:
                yield items


def _of_store(file: str, skipped: _Skipped) -> Iterator[str]:
    for found in open_store(os.fsencode(file), None, None, None).objects():
        if found.id is None:
            skipped.count += 1
        else:
            yield found.id


def _null_ended(data: Any) -> Iterator[bytes]:
    # As lines are: what no NUL ends, such as all of a file of lines, is held only until it is too long.
    for block, _, _ in cut_blocks(data, b"\0", MAX_IDENTIFIER_BYTES):
        yield from block.removesuffix(b"\0").split(b"\0")


# --- meanwhile --------------------------------------------------------------------------------------------------------


class _Told:
    """Tells how far a comparison is; a context manager that leaves no display behind."""

    def __init__(self, manner: Manner, layouts: int) -> None:
        self._manner = manner
        self._layouts = layouts
        self._display: Display | None = None
        self._begin = time.monotonic()
        self._next_log = self._begin + LOG_EVERY

    def __enter__(self) -> _Told:
        return self

    def __exit__(self, *_exception: object) -> None:
        if self._display is not None:
            self._display.stop()

    def on_event(self, event: Progress) -> None:
        """Take note of an event."""
        if self._manner is Manner.NONE:
            return
        now = time.monotonic()
        if self._manner is Manner.LOG:
            if now >= self._next_log:
                self._next_log = now + LOG_EVERY
                say(self._text(event, now))
        elif now - self._begin >= DISPLAY_AFTER:
            if self._display is None:
                self._display = Display(None, transient=True)
            self._display.update(0, self._text(event, now))

    def _text(self, event: Progress, now: float) -> str:
        if event.step == "read":
            rate = event.identifiers / max(1e-9, now - self._begin)
            return f"{counted(event.identifiers, 'identifier')}, {rate:,.0f} a second"
        verb = {"merge": "sorted", "probe": "probed"}.get(event.step, event.step)
        return f"{counted(event.identifiers, 'identifier')}: {event.layouts} of {self._layouts} layouts {verb}"


# --- out --------------------------------------------------------------------------------------------------------------


def _print_json(comparison: Comparison, found: Verdict) -> None:
    for one in comparison.layouts:
        click.echo(json.dumps(one.record()))
    summary = {key: value for key, value in comparison.record().items() if key != "layouts"}
    statements = [statement._asdict() for statement in found.statements]
    summary["verdict"] = {"kind": found.kind, "word": found.word, "statements": statements}
    click.echo(json.dumps({"summary": summary}))


def _print(comparison: Comparison, found: Verdict) -> None:
    click.echo(f"{found.word}.")
    for statement in found.statements:
        click.echo(f"- {one_line(statement.text)}")
    click.echo()
    print_tables(_safety(comparison), _shape(comparison), *_first(comparison), *_probes(comparison))


def _safety(comparison: Comparison) -> Table:
    profiles = [one for one in SYSTEMS if comparison.profile in ("all", one) and one != "unix"]
    heads = ["layout", "safe", "share a path", "inside", "no path", "refused: Unix", "folded"]
    table = Table(
        f"{counted(comparison.identifiers, 'identifier')}: collisions and refusals",
        [*heads, *(f"refused: {SYSTEMS[one]}" for one in profiles), "irreversible"],
        2,
    )
    for one in comparison.layouts:
        counts = [one.clashes.equal, one.clashes.inside_exact, one.unmapped.count]
        counts += [_refused(one, "unix"), one.clashes.folded, *(_refused(one, profile) for profile in profiles)]
        safe = "no" if faults(one, comparison.duplicates) else "yes"
        table.add(one.name, safe, *map(number, [*counts, one.irreversible]))
    return table


def _refused(layout: Any, profile: str) -> int:
    found = layout.refused.get(profile)
    return found.count if found is not None else 0


def _shape(comparison: Comparison) -> Table:
    heads = ["directories", "an object", "depth", "path: mean", "longest", "entries: p50", "p99", "most"]
    limit = [] if comparison.directory_limit is None else [f"over {number(comparison.directory_limit)}"]
    table = Table(
        "Shape and cost: lengths in octets below the root, entries of a directory",
        ["layout", *heads, *limit, "inodes an object", "identifiers/s"],
    )
    for one in comparison.layouts:
        over = [] if comparison.directory_limit is None else [number(one.fan_out.over_limit)]
        octets, fan_out = one.lengths.path_octets, one.fan_out
        cells = [number(one.directories.total), f"{one.directories.per_object:.2f}", number(one.depth.max)]
        cells += [f"{octets.mean:.1f}", *map(number, (octets.max, fan_out.p50, fan_out.p99, fan_out.max)), *over]
        rate = number(round(one.throughput.per_second)) if one.throughput.per_second else "-"
        table.add(one.name, *cells, f"{one.costs.inodes_per_object:.2f}", rate)
    return table


def _first(comparison: Comparison) -> list[Table]:
    table = Table("First collisions and refusals", ["layout", "kind", "identifiers", "such as", "path or reason"], 5)
    for one in comparison.layouts:
        for kind in KINDS:
            for group in one.clashes.first.get(kind, ())[:_SHOWN]:
                paths = list(dict.fromkeys(member.path for member in group.members[:2]))
                table.add(one.name, _CLASHES[kind], number(group.count), _shown(group.members), _texts(paths))
        named = [("no path", one.unmapped)]
        named += [(f"refused: {SYSTEMS[profile]}", refused) for profile, refused in one.refused.items()]
        for kind, refused in named:
            for example in refused.first[:_SHOWN]:
                table.add(one.name, kind, "1", quoted(example.identifier), example.reason)
    return [table] if table.rows else []


def _shown(members: Sequence[Any]) -> str:
    return _texts([member.identifier for member in members[:2]])


def _texts(texts: Sequence[str]) -> str:
    return ", ".join(quoted(text) for text in texts)


def _probes(comparison: Comparison) -> list[Table]:
    probes = [(one.name, one.probe) for one in comparison.layouts if one.probe is not None]
    if not probes:
        return []
    first = probes[0][1]
    system = f" ({first.file_system})" if first.file_system else ""
    table = Table(
        f"Microseconds a directory, in {first.folder}{system}",
        ["layout", "objects", "directories", "KiB", "create", "stat", "walk, warm", "walk, cold"],
    )
    reasons: dict[str, None] = {}
    for name, probe in probes:
        times = [probe.create, probe.stat, probe.walk_warm, probe.walk_cold]
        reasons.update((time.reason, None) for time in times if time.reason)
        cells = ["-" if time.per_directory is None else f"{time.per_directory:.1f}" for time in times]
        kib = "-" if probe.kib is None else number(probe.kib)
        table.add(name, number(probe.objects), number(probe.directories), kib, *cells)
    table.notes += reasons
    return [table]
