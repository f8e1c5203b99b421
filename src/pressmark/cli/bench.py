"""``pressmark bench``: throughput of this machine and build."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from typing import Any

import click

from pressmark.bench import (
    DigestRates,
    Files,
    LayoutRates,
    Rates,
    bench_digest,
    bench_files,
    bench_layout,
    default_layouts,
    first_read,
    sample_files,
)
from pressmark.bench.digests import LARGE_BYTES, SMALL_BYTES, SMALL_FILES
from pressmark.cli.common.console import CallError, Failure, Interrupted, cause, say_not_compiled
from pressmark.cli.common.file_progress import format_bytes, format_count
from pressmark.cli.common.fixity_options import THREADS, complete_algorithms, parse_algorithms
from pressmark.cli.common.options import complete_layouts, layout_option
from pressmark.cli.common.program import Command
from pressmark.cli.common.rich_tables import Table, print_tables
from pressmark.compare.comparison import describe_machine
from pressmark.errors import AlgorithmError
from pressmark.fixity import ALGORITHMS, algorithm_names

__all__ = ["bench_command"]

SECTIONS = ("layouts", "digests", "folder")

EPILOG = """\
\b
More examples:
  pressmark bench files --only folder -a sha512,blake3 --seconds 1

Each rate is the fastest of several rounds; other load on the machine lowers it. "list", "arrow" (needs pyarrow) and
"lines" are identifiers in a Python list, an Arrow column and lines of text. "pure Python" is the same list mapped by
the pure implementation, and "hashlib" the digest of each identifier alone. For files, "plain loop" reads and hashes one
file after another, and "hashlib" hashes bytes in memory; BLAKE3 and xxHash come from their own packages. The ratio is
the fastest rate of Pressmark divided by that of pure Python or of the plain loop.

FOLDER is hashed twice. "first read" hashes the files, on disk or in the cache, for a third of the time budget; "again"
hashes the same files once more. Files larger than 1 GiB are skipped.

With --json, each row of the tables is a JSON object on a separate line. The last line is {"summary": {...}}, which
describes the machine. Rates are identifiers or bytes per second; null means not measured.

Exit status: 0 success, 1 a file of FOLDER could not be read, or FOLDER contains no data, 2 usage error, 130
interrupted.
"""

HELP = """\
Measure how fast this machine and build map identifiers and hash files.

\b
Examples:
  pressmark bench --only layouts --layout 0003:tupleSize=2 --layout pairtree --seconds 1
  pressmark bench --only digests -a sha512,blake3 --json --seconds 1

Every layout is measured on 100,000 identifiers, every digest on 1,000 small files and a large one, which are written to
a temporary folder. With FOLDER, the files below it are also hashed; nothing in it is changed.
"""


@click.command(
    "bench", cls=Command, help=HELP, epilog=EPILOG, short_help="Measure throughput of this machine and build."
)
@click.argument("folder", metavar="[FOLDER]", required=False, type=click.Path(path_type=bytes))
@click.option(
    "--only",
    type=click.Choice(SECTIONS),
    multiple=True,
    help="Measure only this section; repeatable. Default: layouts and digests, and folder if FOLDER is given.",
)
@click.option(
    "--layout",
    "layouts",
    metavar="NAME[:KEY=VALUE,...]",
    shell_complete=complete_layouts,
    multiple=True,
    help="Measure only this layout; repeatable.",
)
@click.option(
    "--algorithm",
    "-a",
    "algorithms",
    metavar="NAME[,NAME]...",
    multiple=True,
    shell_complete=complete_algorithms,
    help="Measure only these digests; repeatable. The default for FOLDER is sha512.",
)
@click.option(
    "--seconds",
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    default=15.0,
    show_default=True,
    help="Time budget in seconds. Values much lower than the default give unreliable rates.",
)
@THREADS
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, then a summary.")
def bench_command(
    folder: bytes | None,
    only: tuple[str, ...],
    layouts: tuple[str, ...],
    algorithms: tuple[str, ...],
    seconds: float,
    threads: int,
    as_json: bool,
) -> int:
    """Measure the requested sections."""
    chosen = set(only) or {"layouts", "digests"} | ({"folder"} if folder is not None else set())
    if "folder" in chosen and folder is None:
        raise CallError("--only folder needs FOLDER")
    if folder is not None and not os.path.exists(folder):
        raise CallError(f"{os.fsdecode(folder)}: no such file or directory")
    measured = {text: layout_option(text) for text in layouts} or default_layouts()
    names = parse_algorithms(algorithms)
    begin = time.perf_counter()
    output = _Output(as_json)
    say_not_compiled()
    part = seconds / len(chosen)
    try:
        if "layouts" in chosen:
            for title, layout in measured.items():
                output.layout(bench_layout(title, layout, part / len(measured), threads))
            output.end_layouts()
        if "digests" in chosen:
            available = names or _available()
            try:
                with sample_files() as samples:
                    for name in available:
                        output.digest(bench_digest(name, samples, part / len(available), threads))
            except OSError as error:
                raise Failure(f"temporary files: {cause(error)}; set TMPDIR to another directory") from None
            output.end_digests()
        left_out = _folder(output, folder, names or ("sha512",), part, threads) if folder is not None else 0
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    output.end(time.perf_counter() - begin)
    return Failure.exit_code if left_out else 0


def _available() -> tuple[str, ...]:
    """Return the algorithms of this installation."""
    found: list[str] = []
    for name in ALGORITHMS:
        try:
            found += algorithm_names(name)
        except AlgorithmError:
            continue
    return tuple(found)


def _folder(output: _Output, folder: bytes, names: tuple[str, ...], seconds: float, threads: int) -> int:
    """Measure the files below ``folder``; return the number of files that could not be read."""
    files, rate = first_read(folder, names[0], seconds / 3, threads)
    shown = os.fsdecode(folder)
    if rate is None:
        raise Failure(f"{shown}: no file with readable bytes")
    for name in names:
        rates = bench_files(files, name, seconds * 2 / 3 / len(names), threads)
        output.folder(shown, files, name, rate if name == names[0] else None, rates)
    output.end_folder()
    return files.failed


class _Output:
    """Prints results: a table at the end of each section, or JSON line by line."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._layouts = Table(
            "Identifiers per second", ["layout", "list", "arrow", "lines", "pure Python", "hashlib", "ratio"]
        )
        sizes = f"{format_count(SMALL_FILES, 'file')} of {SMALL_BYTES:,} bytes, one of {LARGE_BYTES >> 20} MiB"
        self._digests = Table(
            f"Bytes per second: {sizes}",
            [
                "digest",
                "small files",
                "plain loop",
                "hashlib",
                "ratio",
                "large file",
                "plain loop",
                "hashlib",
                "ratio",
            ],
        )
        self._folder: Table | None = None
        if not as_json:
            machine = describe_machine()
            level = f", vector level {machine['level']}" if machine["level"] else ""
            click.echo(
                f"pressmark {machine['pressmark']}, {machine['implementation']}{level}; Python {machine['python']}"
            )
            cores = format_count(int(machine["cores"]), "core")
            click.echo(f"{machine['processor']}, {cores}; {machine['system']} {machine['release']}")

    def layout(self, rates: LayoutRates) -> None:
        """Add the rates of a layout."""
        if self._json:
            self._print({"kind": "layout", **dataclasses.asdict(rates), "ratio": rates.ratio})
        else:
            figures = (rates.list, rates.arrow, rates.lines, rates.pure, rates.hashlib)
            self._layouts.add(rates.layout, *map(_count, figures), _ratio(rates.ratio))

    def digest(self, rates: DigestRates) -> None:
        """Add the rates of a digest."""
        if self._json:
            sizes = {"small": _record(rates.small), "large": _record(rates.large)}
            self._print({"kind": "digest", "algorithm": rates.algorithm, **sizes})
        else:
            cells = []
            for one in (rates.small, rates.large):
                cells += [_size(one.pressmark), _size(one.loop), _size(one.memory), _ratio(one.ratio)]
            self._digests.add(rates.algorithm, *cells)

    def folder(self, name: str, files: Files, algorithm: str, first: float | None, rates: Rates) -> None:
        """Add the rates of a digest on the files of a folder."""
        if self._json:
            counts = {"files": len(files.paths), "bytes": files.bytes, "left_out": files.left_out}
            counts |= {"failed": files.failed, "whole": files.whole}
            rate = {"first_read": first, **_record(rates)}
            self._print({"kind": "folder", "folder": name, "algorithm": algorithm, **counts, **rate})
            return
        if self._folder is None:
            some = "" if files.whole else "the first "
            size = format_count(len(files.paths), "file")
            title = f"Bytes per second: {some}{size} of {name}, {format_bytes(files.bytes)}"
            for count, why in ((files.left_out, "larger than 1 GiB left out"), (files.failed, "could not be read")):
                title += f", {count:,} {why}" if count else ""
            self._folder = Table(title, ["digest", "first read", "again", "plain loop", "ratio"])
        self._folder.add(algorithm, _size(first), _size(rates.pressmark), _size(rates.loop), _ratio(rates.ratio))

    def end_layouts(self) -> None:
        """Print the table of the section."""
        self._show(self._layouts)

    def end_digests(self) -> None:
        """Print the table of the section."""
        self._show(self._digests)

    def end_folder(self) -> None:
        """Print the table of the section."""
        assert self._json or self._folder is not None
        self._show(self._folder)

    def end(self, seconds: float) -> None:
        """Print the summary."""
        if self._json:
            self._print({"summary": {"seconds": round(seconds, 3), "machine": describe_machine()}})

    def _show(self, table: Table | None) -> None:
        if not self._json and table is not None:
            print_tables(table)

    def _print(self, record: dict[str, Any]) -> None:
        click.echo(json.dumps(record))


def _record(rates: Rates) -> dict[str, float | None]:
    return {**dataclasses.asdict(rates), "ratio": rates.ratio}


def _count(rate: float | None) -> str:
    if rate is None:
        return "-"
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= unit:
            return f"{rate / unit:.3g} {letter}"
    return f"{rate:.3g}"


def _size(rate: float | None) -> str:
    return "-" if rate is None else format_bytes(rate)


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"
