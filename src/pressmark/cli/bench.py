"""``pressmark bench``: how fast this machine and this build are."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from typing import Any

import click

from pressmark.bench import (
    Case,
    DigestRates,
    Files,
    LayoutRates,
    Rates,
    bench_digest,
    bench_files,
    bench_layout,
    cases,
    first_read,
    sample_files,
)
from pressmark.bench.digests import LARGE_BYTES, SMALL_BYTES, SMALL_FILES
from pressmark.cli.common.console import CallError, Failure, Interrupted, cause
from pressmark.cli.common.file_progress import counted, shown_bytes
from pressmark.cli.common.fixity_options import THREADS, chosen_algorithms
from pressmark.cli.common.options import layout_option
from pressmark.cli.common.rich_tables import Table, print_tables
from pressmark.compare.comparison import describe_machine
from pressmark.errors import AlgorithmError
from pressmark.fixity import ALGORITHMS, algorithm_names

__all__ = ["bench_command"]

SECTIONS = ("layouts", "digests", "folder")

EPILOG = """\
Figures are of the best of some rounds; work that runs besides makes them worse. "list", "arrow" and "lines" are the
doors map_ids, map_arrow (it needs pyarrow) and map_lines; "plain loop" is the same paths, or digests of files read one
after another, by a few lines of Python; "hashlib" is the digests alone, of identifiers or bytes in memory, and of
BLAKE3 and xxHash those of the packages that compute them. The ratio is the fastest door, or pressmark, to the plain
loop.

FOLDER is read twice: "first read" is as the files came, from the disk or out of memory, for a third of the time; what
was read then is in memory, as far as it fits, and is hashed again. Files larger than 1 GiB are left out.

With --json each line of the tables is an object on a line, and last comes {"summary": {...}} with facts about the
machine. Rates are identifiers or bytes a second; null was not measured.

Exit status: 0 all well, 1 a file of FOLDER could not be read, or none was, 2 usage error, 130 interrupted.

\b
Examples:
  pressmark bench --only layouts --layout 0003:tupleSize=2 --layout pairtree --seconds 1
  pressmark bench --only digests -a sha512,blake3 --json --seconds 1
  pressmark bench files --only folder -a sha512,blake3 --seconds 1
"""


@click.command("bench", epilog=EPILOG, short_help="Throughput of this machine and build.")
@click.argument("folder", metavar="[FOLDER]", required=False, type=click.Path(path_type=bytes))
@click.option(
    "--only",
    type=click.Choice(SECTIONS),
    multiple=True,
    help="Measure only that; repeatable. Default: layouts and digests, and FOLDER if there is one.",
)
@click.option(
    "--layout",
    "layouts",
    metavar="NAME[:KEY=VALUE,...]",
    multiple=True,
    help="Measure this layout instead of all; repeatable. There is a plain loop for the layouts measured by default.",
)
@click.option(
    "--algorithm",
    "-a",
    "algorithms",
    metavar="NAME[,NAME]...",
    multiple=True,
    help="Measure these digests instead of all; repeatable. For FOLDER the default is sha512 alone.",
)
@click.option(
    "--seconds",
    metavar="S",
    type=click.FloatRange(min=0, min_open=True),
    default=15.0,
    show_default=True,
    help="Take about so long. Much less than the default gives figures that mean little.",
)
@THREADS
@click.option("--json", "as_json", is_flag=True, help="Print JSON: one object a line, and last a summary.")
def bench_command(
    folder: bytes | None,
    only: tuple[str, ...],
    layouts: tuple[str, ...],
    algorithms: tuple[str, ...],
    seconds: float,
    threads: int,
    as_json: bool,
) -> int:
    """Measure how fast identifiers become paths here, and files digests, beside hashlib and a plain Python loop.

    Every layout is measured through every door, every digest on many small files and on a large one, which are made
    where temporary files go. With FOLDER, the files below it are hashed, too; nothing in it is changed.
    """
    chosen = set(only) or {"layouts", "digests"} | ({"folder"} if folder is not None else set())
    if "folder" in chosen and folder is None:
        raise CallError("--only folder: give the FOLDER to measure")
    if folder is not None and not os.path.exists(folder):
        raise CallError(f"{os.fsdecode(folder)}: no such file or directory")
    measured = [_case(text) for text in layouts] or list(cases())
    names = chosen_algorithms(algorithms)
    begin = time.perf_counter()
    output = _Output(as_json)
    part = seconds / len(chosen)
    try:
        if "layouts" in chosen:
            for case in measured:
                output.layout(bench_layout(case, part / len(measured), threads))
            output.end_layouts()
        if "digests" in chosen:
            available = names or _available()
            try:
                with sample_files() as samples:
                    for name in available:
                        output.digest(bench_digest(name, samples, part / len(available), threads))
            except OSError as error:
                raise Failure(f"temporary files: {cause(error)}; TMPDIR says where they go") from None
            output.end_digests()
        left_out = _folder(output, folder, names or ("sha512",), part, threads) if folder is not None else 0
    except KeyboardInterrupt:
        raise Interrupted("interrupted") from None
    output.end(time.perf_counter() - begin)
    return Failure.exit_code if left_out else 0


def _case(text: str) -> Case:
    """Return the case that has the layout called ``text``, or a new one without a loop."""
    layout = layout_option(text)
    for case in cases():
        if case.layout == layout:
            return case
    # What 0010 maps has one length: that of its own case's identifiers.
    sample = next(case.sample for case in cases() if type(case.layout) is type(layout))
    return Case(text, layout, sample)


def _available() -> tuple[str, ...]:
    """Return the algorithms that this installation has."""
    found: list[str] = []
    for name in ALGORITHMS:
        try:
            found += algorithm_names(name)
        except AlgorithmError:
            continue
    return tuple(found)


def _folder(output: _Output, folder: bytes, names: tuple[str, ...], seconds: float, threads: int) -> int:
    """Measure the files below ``folder``; return how many could not be read."""
    files, rate = first_read(folder, names[0], seconds / 3, threads)
    shown = os.fsdecode(folder)
    if rate is None:
        raise Failure(f"{shown}: no file there has bytes that can be read")
    for name in names:
        rates = bench_files(files, name, seconds * 2 / 3 / len(names), threads)
        output.folder(shown, files, name, rate if name == names[0] else None, rates)
    output.end_folder()
    return files.failed


class _Output:
    """What is measured, as tables once a section is complete, or as JSON line by line."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._layouts = Table(
            "Identifiers a second", ["layout", "list", "arrow", "lines", "plain loop", "hashlib", "ratio"]
        )
        sizes = f"{counted(SMALL_FILES, 'file')} of {SMALL_BYTES:,} bytes, one of {LARGE_BYTES >> 20} MiB"
        self._digests = Table(
            f"Bytes a second: {sizes}",
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
            cores = counted(int(machine["cores"]), "core")
            click.echo(f"{machine['processor']}, {cores}; {machine['system']} {machine['release']}")

    def layout(self, rates: LayoutRates) -> None:
        """Take the rates of a layout."""
        if self._json:
            self._print({"kind": "layout", **dataclasses.asdict(rates), "ratio": rates.ratio})
        else:
            figures = (rates.list, rates.arrow, rates.lines, rates.loop, rates.hashlib)
            self._layouts.add(rates.layout, *map(_count, figures), _ratio(rates.ratio))

    def digest(self, rates: DigestRates) -> None:
        """Take the rates of a digest."""
        if self._json:
            sizes = {"small": _record(rates.small), "large": _record(rates.large)}
            self._print({"kind": "digest", "algorithm": rates.algorithm, **sizes})
        else:
            cells = []
            for one in (rates.small, rates.large):
                cells += [_size(one.pressmark), _size(one.loop), _size(one.memory), _ratio(one.ratio)]
            self._digests.add(rates.algorithm, *cells)

    def folder(self, name: str, files: Files, algorithm: str, first: float | None, rates: Rates) -> None:
        """Take the rates of a digest on the files of a folder."""
        if self._json:
            counts = {"files": len(files.paths), "bytes": files.bytes, "left_out": files.left_out}
            counts |= {"failed": files.failed, "whole": files.whole}
            rate = {"first_read": first, **_record(rates)}
            self._print({"kind": "folder", "folder": name, "algorithm": algorithm, **counts, **rate})
            return
        if self._folder is None:
            some = "" if files.whole else "the first "
            title = f"Bytes a second: {some}{counted(len(files.paths), 'file')} of {name}, {shown_bytes(files.bytes)}"
            for count, why in ((files.left_out, "larger than 1 GiB left out"), (files.failed, "could not be read")):
                title += f", {count:,} {why}" if count else ""
            self._folder = Table(title, ["digest", "first read", "again", "plain loop", "ratio"])
        self._folder.add(algorithm, _size(first), _size(rates.pressmark), _size(rates.loop), _ratio(rates.ratio))

    def end_layouts(self) -> None:
        """Print their table."""
        self._show(self._layouts)

    def end_digests(self) -> None:
        """Print their table."""
        self._show(self._digests)

    def end_folder(self) -> None:
        """Print its table."""
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
    return "-" if rate is None else shown_bytes(rate)


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f}" if ratio < 100 else f"{ratio:,.0f}"
