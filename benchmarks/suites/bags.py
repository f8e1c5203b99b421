"""Create, validate and open bags, compared with other tools: time and memory.

Each run of each tool is a process of its own, Pressmark with two threads, ``bagit`` with one process and with two. All
use the same files in turn, which are in the page cache. "s" is the operation alone, after the imports; "whole s" is the
process. bagr reports the process only. Memory is the largest sum of the resident sets of the process and its children.
Other tools open long manifests once.

A run counts only if its answer is right: the bag is valid or complete and has the right number of files, and a new bag
lists the digests that hashlib computed. --lines measures the targets only, and reports which are met. --small measures
many bags of two small files, each tool in one process; "command" is one pressmark command for all of them, as a whole
process beside the loop of the other tool. --archives measures packing a bag, creating it as an archive, and unpacking
it, each one pressmark command, beside tar, a compressor and sha512sum on the same files, one after another. The bags
stay in the folder (build/bags): 3 GB of disk, 600,000 inodes.
Pressmark flushes a new bag to the disk, other tools do not.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import processes
from benchmarks.corpora.files import LISTS, SHAPES, Shape, bag_of, files_of, long_manifest, unmade, verify_made, warm
from benchmarks.peers.bagging import OURS, TOOLS, Call, Command, Tool, environment_of
from benchmarks.peers.environments import Unavailable
from benchmarks.report import Report
from benchmarks.timing import Cost, Failed, Times, take_turns
from pressmark.bagit import validate

RUNS = 5
OPERATIONS = ("create", "create elsewhere", "validate", "open", "complete")
ALGORITHMS = ("sha512", "sha256")
LONG = ("open", "complete")
# Bags of two files, by name and size.
SMALL_BAGS, SMALL_FILES = 2000, {"one.txt": 1 << 10, "two.bin": 10 << 10}
SMALL_OTHER = "bagit, 1"
# What compresses and decompresses standard input, by the ending of the archive.
COMPRESSORS = {"tar": ("cat", "cat"), "tar.zst": ("zstd -T0 -q", "zstd -d -q"), "tar.gz": ("pigz", "pigz -d")}
OTHER = "tar, sha512sum"
USUAL = ("small", "modest", "medium", "large")


class Line(NamedTuple):
    """A target: the cost of another tool divided by the cost of Pressmark."""

    operation: str
    shape: str
    other: str
    field: str
    wanted: float


LINES = (
    Line("validate", "modest", "bagit, 2", "seconds", 3.0),
    Line("validate", "medium", "bagit, 2", "seconds", 3.0),
    Line("open", "listed", "bagit, 1", "seconds", 15.0),
    Line("open", "listed", "bagit, 1", "max_rss", 4.0),
    Line("complete", "listed", "bagit, 1", "seconds", 4.0),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lines", action="store_true", help="measure the targets only")
    parser.add_argument("--small", action="store_true", help="measure many small bags only")
    parser.add_argument("--archives", action="store_true", help="measure packing and unpacking only")
    parser.add_argument("--operation", action="append", choices=OPERATIONS)
    parser.add_argument("--shape", action="append", choices=[*USUAL, *LISTS])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="tools to run, besides Pressmark")
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the files, for a trial run")
    parser.add_argument("--patience", type=float, default=0, help="seconds for others to open the longest manifest")


def run(options: argparse.Namespace, report: Report) -> dict[str, Any]:
    folder = (options.folder or Path("build/bags")).resolve()
    (folder / "source").mkdir(parents=True, exist_ok=True)
    tools = [tool for tool in TOOLS if tool is OURS or not options.only or tool.name in options.only]
    if options.lines:
        needed = {OURS.label, *(line.other for line in LINES)}
        tools = [tool for tool in tools if tool.label in needed]
    if options.archives:
        tools = [OURS]
    if options.small:
        tools = [tool for tool in tools if tool.label in (OURS.label, SMALL_OTHER)]
    bench = Bench(folder, tools, options.runs, options.patience)
    names = {f"{tool.name} {tool.version}": None for tool in bench.tools}
    report.print(f"{', '.join(names)}. After the comma: threads of Pressmark, processes of others.", "")
    measure: Callable[[Report, Bench, argparse.Namespace], Iterator[Cell]] = measure_all
    for is_chosen, part in (
        (options.archives, measure_archives),
        (options.small, measure_small),
        (options.lines, measure_targets),
    ):
        measure = part if is_chosen else measure
    cells = list(measure(report, bench, options))
    for name, reason in bench.missing.items():
        report.print(f"- {name} is not available: {reason}")
    for cell in cells:
        if OURS.label in cell.times.failures:
            report.fail(f"{cell.operation}, {cell.shape.name}: {cell.times.failures[OURS.label]}")
    return {"cells": [cell.facts() for cell in cells]}


class Cell(NamedTuple):
    """One operation on the bag of one shape."""

    operation: str
    shape: Shape
    algorithm: str
    times: Times

    def facts(self) -> dict[str, Any]:
        """Return the cell for a JSON record."""
        return {
            **{"operation": self.operation, "algorithm": self.algorithm},
            **self.shape._asdict(),
            **self.times.facts(),
        }


class Bench:
    """The available tools.

    :ivar missing: the reasons why other tools are not available
    """

    def __init__(self, folder: Path, tools: list[Tool], runs: int, patience: float) -> None:
        self.missing: dict[str, str] = {}
        self.tools: dict[Tool, Command] = {}
        self._folder = folder
        self._runs = runs
        self._patience = patience
        for tool in tools:
            try:
                self.tools[tool] = tool.make(tool)
            except Unavailable as error:
                self.missing[tool.name] = str(error)

    def measure(self, operation: str, shape: Shape, algorithm: str) -> Cell:
        """Run every tool that supports the operation."""
        make = bag_of if shape.size else long_manifest
        wanted = make(shape, algorithm, self._folder)
        warm(wanted)
        subjects: dict[str, Callable[[], Cost]] = {}
        for tool, command in self.tools.items():
            others_long = tool is not OURS and operation in LONG
            limit = self._patience if others_long and not shape.size else None
            if operation in tool.operations and limit != 0:
                call = Call(operation, wanted, algorithm)
                subjects[tool.label] = self._subject(tool, command, call, shape, limit)
        once = {label for label in subjects if operation in LONG and label != OURS.label}
        return Cell(operation, shape, algorithm, take_turns(subjects, self._runs, once=once))

    def _subject(
        self, tool: Tool, command: Command, call: Call, shape: Shape, limit: float | None
    ) -> Callable[[], Cost]:
        if call.operation.startswith("create"):
            return lambda: self._create(tool, command, call, shape)

        def read() -> Cost:
            measured = processes.run(command(call), environment_of(tool), limit)
            answer = measured.json()
            if answer["files"] != shape.count:
                raise Failed(f"{answer['files']} files instead of {shape.count}")
            return _cost(tool, measured.cost, answer)

        return read

    def _create(self, tool: Tool, command: Command, call: Call, shape: Shape) -> Cost:
        """Create a bag, check it, and remove it; its files stay in the page cache."""
        made, source = self._folder / "made", self._folder / "source" / shape.folder
        in_place = call.operation == "create"
        shutil.rmtree(made, ignore_errors=True)
        if in_place:
            if not source.exists():
                shutil.copytree(files_of(shape, self._folder), source, copy_function=os.link)
            source.rename(made)
            target = call._replace(bag=made)
        else:
            target = call._replace(bag=files_of(shape, self._folder), destination=made)
        measured = processes.run(command(target), environment_of(tool))
        verify_made(made, call.algorithm, call.bag)
        if in_place:
            unmade(made)
            made.rename(source)
        else:
            shutil.rmtree(made)
        os.sync()
        return _cost(tool, measured.cost, measured.json() if tool.workers else {})

    def measure_small(self, count: int) -> Iterator[Cell]:
        """Create and validate ``count`` bags of two files in one process, and validate them by one command."""
        shape = Shape("small bags", 2 * count, -1)
        tops = {tool.label: self._folder / "each" / tool.name for tool in self.tools}

        def fresh(tool: Tool) -> list[str]:
            top = tops[tool.label]
            shutil.rmtree(top, ignore_errors=True)
            for number in range(count):
                (top / f"{number:06}").mkdir(parents=True)
                for name, size in SMALL_FILES.items():
                    (top / f"{number:06}" / name).write_bytes(random.Random(number).randbytes(size))
            return sorted(map(str, top.iterdir()))

        def run(tool: Tool, command: Command, operation: str) -> Cost:
            if operation == "create each":
                fresh(tool)
            answer = processes.run(command(Call(operation, tops[tool.label], ALGORITHMS[0])), environment_of(tool))
            found = answer.json()
            if operation == "validate each" and found["files"] != shape.count:
                raise Failed(f"{found['files']} files instead of {shape.count}")
            return _cost(tool, answer.cost, found)

        def subjects(operation: str) -> dict[str, Callable[[], Cost]]:
            return {
                tool.label: lambda tool=tool, command=command: run(tool, command, operation)  # type: ignore[misc]
                for tool, command in self.tools.items()
            }

        def whole(*words: str) -> Cost:
            bags = fresh(OURS) if words[0] == "create" else sorted(map(str, tops[OURS.label].iterdir()))
            line = (sys.executable, "-m", "pressmark", "bag", *words, *bags)
            cost = processes.run(line, environment_of(OURS)).cost
            return cost._replace(seconds=cost.whole)

        for operation in ("create each", "validate each"):
            yield Cell(operation, shape, ALGORITHMS[0], take_turns(subjects(operation), self._runs))
        for words in (("create",), ("validate",), ("validate", "--workers", "1"), ("validate", "--workers", "2")):
            others = {label: run for label, run in subjects(f"{words[0]} each").items() if label != OURS.label}
            ours = {OURS.label: lambda words=words: whole(*words)}  # type: ignore[misc]
            times = take_turns({**ours, **others}, self._runs)
            yield Cell(f"command {' '.join(words)}", shape, ALGORITHMS[0], times)

    def measure_archives(self, shape: Shape, ending: str) -> Iterator[Cell]:
        """Pack and unpack a bag, and create it as an archive, beside tar, a compressor and sha512sum."""
        bag = bag_of(shape, ALGORITHMS[0], self._folder)
        warm(bag)
        new = self._folder / "archives"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir()
        ours, theirs, packed = new / f"ours.{ending}", new / f"theirs.{ending}", new / f"packed.{ending}"
        pressmark = (sys.executable, "-m", "pressmark", "bag")
        sums = f"cd {bag} && find . -type f -print0 | xargs -0 sha512sum > {new}/sums"
        pack, unpack = COMPRESSORS[ending]
        pack = f"tar -cf - -C {bag.parent} {bag.name} | {pack} > {theirs} && {sums}"
        unpack = f"mkdir {theirs} && {unpack} < {packed} | tar -xf - -C {theirs} && cd {theirs}/packed && "

        def run(*command: str | Path) -> Cost:
            for made in (ours, theirs):
                shutil.rmtree(made, ignore_errors=True) if made.is_dir() else made.unlink(missing_ok=True)
            cost = processes.run(command, environment_of(OURS)).cost
            return cost._replace(seconds=cost.whole)

        def shell(line: str) -> Cost:
            return run("bash", "-c", f"set -o pipefail; {line}")

        def command(*words: str | Path) -> Cost:
            cost = run(*pressmark, *words)
            if not validate(ours).ok:
                raise Failed(f"{ours} is not valid")
            return cost

        def times(line: str, *words: str | Path) -> Times:
            return take_turns({OURS.label: lambda: command(*words), OTHER: lambda: shell(line)}, self._runs)

        for operation, source in (("pack", bag), ("create an archive", bag / "data")):
            yield Cell(operation, shape, ending, times(pack, operation.split()[0], source, "-o", ours))
        processes.run([*pressmark, "pack", bag, "-o", packed], environment_of(OURS))
        line = f"{unpack} sha512sum --quiet -c manifest-sha512.txt"
        yield Cell("unpack", shape, ending, times(line, "unpack", packed, "-o", ours))
        shutil.rmtree(new)


def _cost(tool: Tool, cost: Cost, answer: dict[str, Any]) -> Cost:
    if answer and answer["version"] != tool.version:
        raise Failed(f"version {answer['version']} instead of {tool.version}")
    return cost._replace(seconds=answer.get("seconds", cost.seconds))


def measure_all(report: Report, bench: Bench, options: argparse.Namespace) -> Iterator[Cell]:
    """Measure all operations on all shapes."""
    for operation in options.operation or OPERATIONS:
        report.print(f"### {operation}", "")
        ours = ("s", "/ ours", "median", "whole s", "/ ours", "MB", "/ ours")
        report.heads("files", " digest", " tool", *ours)
        names = (tuple(LISTS) if operation == "open" else ("listed",)) if operation in LONG else USUAL
        for name in names:
            if options.shape and name not in options.shape:
                continue
            shape = (SHAPES | LISTS)[name].scaled(options.scale)
            # The algorithm makes no difference to opening.
            for algorithm in ALGORITHMS[:1] if operation in LONG else ALGORITHMS:
                cell = bench.measure(operation, shape, algorithm)
                print_rows(report, cell)
                yield cell
        report.print("")


def measure_small(report: Report, bench: Bench, options: argparse.Namespace) -> Iterator[Cell]:
    """Measure many small bags."""
    report.heads("operation", "bags", " tool", "bags/s", "/ ours")
    for cell in bench.measure_small(max(20, int(SMALL_BAGS * options.scale))):
        bags = cell.shape.count // 2
        for tool in cell.times.runs:
            ratio = f"{cell.times.ratio(tool, OURS.label):.2f}" if OURS.label in cell.times.runs else ""
            report.row(cell.operation, f"{bags:,}", tool, f"{bags / cell.times.best(tool).seconds:,.0f}", ratio)
        for tool, reason in cell.times.failures.items():
            report.row(cell.operation, f"{bags:,}", tool, reason, "")
        yield cell
    report.print("")


def measure_archives(report: Report, bench: Bench, options: argparse.Namespace) -> Iterator[Cell]:
    """Measure packing and unpacking. A ratio of the other programs above 1 means that Pressmark is faster."""
    report.heads("operation", "files", " format", "s", "others s", "others / ours", "processor s", "others / ours")
    for name in options.shape or ("modest", "medium", "large"):
        for ending, programs in COMPRESSORS.items():
            if any(shutil.which(program.split()[0]) is None for program in programs):
                report.print(f"- {programs[0]} is not available")
                continue
            for cell in bench.measure_archives(SHAPES[name].scaled(options.scale), ending):
                times = cell.times
                row = (cell.operation, f"{cell.shape.count:,} of {cell.shape.size:,}", ending)
                if times.failures:
                    report.row(*row, *times.failures.values())
                else:
                    best, other = times.best(OURS.label), times.best(OTHER)
                    ratios = [f"{times.ratio(OTHER, OURS.label, field):.2f}" for field in ("seconds", "cpu")]
                    figures = (f"{best.seconds:.3f}", f"{other.seconds:.3f}", ratios[0], f"{best.cpu:.3f}", ratios[1])
                    report.row(*row, *figures)
                yield cell
    report.print("")


def print_rows(report: Report, cell: Cell) -> None:
    size = f" of {cell.shape.size:,}" if cell.shape.size else " lines"
    head = (f"{cell.shape.count:,}{size}", cell.algorithm)
    times = cell.times
    for tool in times.runs:
        best = times.best(tool)
        ratios = dict.fromkeys(("seconds", "whole", "max_rss"), "")
        median = ""
        if tool != OURS.label and OURS.label in times.runs:
            ratios = {field: f"{times.ratio(tool, OURS.label, field):.2f}" for field in ratios}
            median = f"{times.median(tool, OURS.label):.2f}"
        seconds, whole, memory = ratios.values()
        figures = (f"{best.seconds:.3f}", seconds, median, f"{best.whole:.3f}", whole, f"{best.max_rss / 1e6:.0f}")
        report.row(*head, tool, *figures, memory)
    for tool, reason in times.failures.items():
        report.row(*head, tool, reason, *[""] * 6)


def measure_targets(report: Report, bench: Bench, options: argparse.Namespace) -> Iterator[Cell]:
    """Measure the cells that have a target."""
    cells: dict[tuple[str, str], Cell] = {}
    report.heads("operation", " files", " beside", " of", "wanted", "measured", "with start", "ours", "theirs", " ")
    for line in LINES:
        if options.operation and line.operation not in options.operation:
            continue
        key = (line.operation, line.shape)
        if key not in cells:
            shape = (SHAPES | LISTS)[line.shape].scaled(options.scale)
            cells[key] = bench.measure(line.operation, shape, ALGORITHMS[0])
            yield cells[key]
        shape, times = cells[key].shape, cells[key].times
        files = f"{shape.count:,} of {shape.size:,}"
        report.row(line.operation, files, line.other, line.field, f"{line.wanted:g}", *_verdict(line, times))
    report.print("")


def _verdict(line: Line, times: Times) -> tuple[str, ...]:
    if not {OURS.label, line.other} <= set(times.runs):
        reason = times.failures.get(OURS.label) or times.failures.get(line.other, "not available")
        return ("", "", "", "", f"NOT MEASURED: {reason}")
    ratio = times.ratio(line.other, OURS.label, line.field)
    whole = f"{times.ratio(line.other, OURS.label, 'whole'):.2f}" if line.field == "seconds" else ""
    sides = [getattr(times.best(tool), line.field) for tool in (OURS.label, line.other)]
    shown = [f"{side:.3f} s" if line.field == "seconds" else f"{side / 1e6:.0f} MB" for side in sides]
    return (f"**{ratio:.2f}**", whole, *shown, "met" if ratio >= line.wanted else "NOT MET")
