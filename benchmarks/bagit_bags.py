"""Bags made, checked and opened by Pressmark and by the tools that people use: time and memory, side by side.

    python benchmarks/bagit_bags.py [--operation validate ...] [--shape small ...] [--only bagit ...] [--record]
    python benchmarks/bagit_bags.py --lines [--record]       what was agreed, line by line: met or not
    python benchmarks/bagit_bags.py --patience 1800          lets the others open the 3,000,000 lines as well, once

Every run of every tool is a process of its own, ours with two threads, ``bagit`` with one process and with two. All
take turns on the same files, which are in the page cache; a time is the best of them. "s" is the operation alone,
inside the tool's process and after its imports; "whole s" has the start of the interpreter and the imports in it. Of a
tool that is no Python (bagr), both are the whole process. Memory is the largest sum of the resident sets of the process
and all that it started. What takes others long (the long manifests) is run once by them.

A run counts only when its answer is right: the bag is valid or complete and has so many files, and a bag that was made
lists the checksums that hashlib found.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import machine
import processes
from bags import LISTS, SHAPES, Shape, bag_of, files_of, long_manifest, unmade, verify_made
from peers.bagging import OURS, TOOLS, Call, Command, Tool, environment_of
from peers.environments import Unavailable
from report import Report

OPERATIONS = ("create", "create elsewhere", "validate", "open", "complete")
ALGORITHMS = ("sha512", "sha256")
LONG = ("open", "complete")
LISTED, MILLIONS = LISTS


class Line(NamedTuple):
    """What is wanted of a cell: how many times as much as we the other takes."""

    operation: str
    shape: str
    other: str
    measure: str
    wanted: float


LINES = (
    Line("validate", "modest", "bagit, 2", "time", 3.0),
    Line("validate", "medium", "bagit, 2", "time", 3.0),
    Line("open", "listed", "bagit, 1", "time", 15.0),
    Line("open", "listed", "bagit, 1", "memory", 4.0),
    Line("complete", "listed", "bagit, 1", "time", 4.0),
)


class Run(NamedTuple):
    """What one process cost: seconds at work, seconds in all, bytes."""

    seconds: float
    whole: float
    max_rss: int


class Cell:
    """One operation on one bag: who cost what, run by run, or why there is no run."""

    def __init__(self, operation: str, shape: Shape, algorithm: str) -> None:
        self.operation = operation
        self.shape = shape
        self.algorithm = algorithm
        self.runs: dict[str, list[Run]] = {}
        self.failures: dict[str, str] = {}

    def best(self, who: str) -> Run:
        """Return the best of each."""
        runs = self.runs[who]
        return Run(min(r.seconds for r in runs), min(r.whole for r in runs), min(r.max_rss for r in runs))

    def ratios(self, who: str) -> Run | None:
        """Return how many times as much as we they take; :data:`None` where one of us has no run."""
        if OURS.label not in self.runs or who not in self.runs:
            return None
        theirs, ours = self.best(who), self.best(OURS.label)
        return Run(*(their / our for their, our in zip(theirs, ours, strict=True)))

    def median(self, who: str) -> float:
        """Return the middle of the ratios of seconds at work, round by round."""
        pairs = zip(self.runs[who], self.runs[OURS.label], strict=False)
        return statistics.median(their.seconds / our.seconds for their, our in pairs)

    def facts(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        runs = {who: [run._asdict() for run in found] for who, found in self.runs.items()}
        return {
            **{"operation": self.operation, "algorithm": self.algorithm, **self.shape._asdict()},
            **{"runs": runs, "failures": self.failures},
        }


class Bench:
    """The tools that could be had, and the bags.

    :ivar missing: why which tool could not be had
    """

    def __init__(self, folder: Path, tools: list[Tool], runs: int, patience: float) -> None:
        self.folder = folder
        self.missing: dict[str, str] = {}
        self.tools: dict[Tool, Command] = {}
        self._runs = runs
        self._patience = patience
        for tool in tools:
            try:
                self.tools[tool] = tool.make(tool)
            except Unavailable as error:
                self.missing[tool.name] = str(error)

    def measure(self, operation: str, shape: Shape, algorithm: str) -> Cell:
        """Let every tool that can do the operation have its turns."""
        cell = Cell(operation, shape, algorithm)
        wanted = (
            long_manifest(shape, algorithm, self.folder) if not shape.size else bag_of(shape, algorithm, self.folder)
        )
        os.sync()
        _warm(wanted)
        for number in range(self._runs):
            for tool, command in self.tools.items():
                if operation not in tool.operations or tool.label in cell.failures:
                    continue
                others_once = tool is not OURS and operation in LONG
                if others_once and (number or (not shape.size and not self._patience)):
                    continue
                limit = self._patience if others_once and not shape.size else None
                try:
                    run = self._one(tool, command, cell, wanted, limit)
                except (processes.TooSlow, RuntimeError) as error:
                    cell.failures[tool.label] = str(error)
                    continue
                cell.runs.setdefault(tool.label, []).append(run)
        return cell

    def _one(self, tool: Tool, command: Command, cell: Cell, wanted: Path, limit: float | None) -> Run:
        """Run one tool once, and check what it says and made."""
        call = Call(cell.operation, wanted, cell.algorithm)
        making = cell.operation.startswith("create")
        made = self.folder / "made"
        if making:
            shutil.rmtree(made, ignore_errors=True)
        if cell.operation == "create":
            source = self.folder / "source" / f"{cell.shape.folder}"
            if not source.exists():
                shutil.copytree(files_of(cell.shape, self.folder), source, copy_function=os.link)
            # It is renamed into its place, and back when it has been a bag.
            source.rename(made)
            call = call._replace(bag=made)
        elif making:
            call = call._replace(bag=files_of(cell.shape, self.folder), destination=made)
        measured = processes.run(command(call), environment_of(tool), limit)
        if measured.status:
            said = (measured.errors.strip().splitlines() or [f"exit {measured.status}"])[-1]
            raise RuntimeError(f"it failed: {said[:200]}")
        said_by_tool: dict[str, Any] = json.loads(measured.output.splitlines()[-1]) if tool.workers else {}
        if making:
            verify_made(made, cell.algorithm, wanted)
            if cell.operation == "create":
                unmade(made)
                made.rename(source)
            else:
                shutil.rmtree(made)
            # What was written goes to the disk now, and not while the next one is measured.
            os.sync()
        elif said_by_tool["files"] != cell.shape.count:
            raise RuntimeError(f"it saw {said_by_tool['files']} files of {cell.shape.count}")
        if said_by_tool and said_by_tool["version"] != tool.version:
            raise RuntimeError(f"it is version {said_by_tool['version']}, and not {tool.version}")
        seconds = said_by_tool.get("seconds", measured.seconds)
        return Run(seconds, measured.seconds, max(measured.max_rss, said_by_tool.get("max_rss", 0)))


def _warm(bag: Path) -> None:
    """Bring all of a bag into the page cache."""
    for folder, _, names in os.walk(bag):
        for name in names:
            with open(os.path.join(folder, name), "rb", buffering=0) as file:
                while file.read(1 << 22):
                    pass


def shapes_of(operation: str, scale: float) -> Iterator[Shape]:
    """Give the shapes that an operation is measured on."""
    if operation in LONG:
        yield LISTED.scaled(scale)
        if operation == "open":
            yield MILLIONS.scaled(scale)
    else:
        yield from (shape.scaled(scale) for shape in SHAPES)


def tables(report: Report, bench: Bench, call: argparse.Namespace) -> list[Cell]:
    """Measure all cells that were asked for, and say each as soon as it is there."""
    cells = []
    for operation in call.operation or OPERATIONS:
        report.say(
            f"### {operation}",
            "",
            "| files | digest | tool | s | times ours | median | whole s | times ours | MB | times ours |",
            "|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
        )
        for shape in shapes_of(operation, call.scale):
            if call.shape and shape.name not in call.shape:
                continue
            # What is opened has digests, and whose they are makes no difference.
            for algorithm in ALGORITHMS[:1] if operation in LONG else ALGORITHMS:
                cell = bench.measure(operation, shape, algorithm)
                cells.append(cell)
                report.say(*_rows(cell))
        report.say("")
    return cells


def _rows(cell: Cell) -> Iterator[str]:
    size = f" of {cell.shape.size:,}" if cell.shape.size else " lines"
    for who in cell.runs:
        best, ratios = cell.best(who), cell.ratios(who)
        times = [""] * 4
        if ratios is not None and who != OURS.label:
            times = [f"**{ratios.seconds:.2f}**", f"{cell.median(who):.2f}", f"{ratios.whole:.2f}"]
            times.append(f"{ratios.max_rss:.2f}")
        yield (
            f"| {cell.shape.count:,}{size} | {cell.algorithm} | {who} | {best.seconds:.3f} | {times[0]} | {times[1]} |"
            f" {best.whole:.3f} | {times[2]} | {best.max_rss / 1e6:.0f} | {times[3]} |"
        )
    for who, why in cell.failures.items():
        yield f"| {cell.shape.count:,}{size} | {cell.algorithm} | {who} | {why} | | | | | | |"


def lines(report: Report, bench: Bench, call: argparse.Namespace) -> list[Cell]:
    """Measure what was agreed, and say of each line whether it is met."""
    cells: dict[tuple[str, str], Cell] = {}
    shapes = {shape.name: shape for shape in (*SHAPES, *LISTS)}
    report.say(
        "| operation | files | beside | of | wanted | measured | with start | ours | theirs | |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---|",
    )
    for line in LINES:
        if call.operation and line.operation not in call.operation:
            continue
        shape = shapes[line.shape].scaled(call.scale)
        key = (line.operation, line.shape)
        if key not in cells:
            cells[key] = bench.measure(line.operation, shape, ALGORITHMS[0])
        report.say(_said(line, cells[key]))
    report.say("")
    return list(cells.values())


def _said(line: Line, cell: Cell) -> str:
    head = (
        f"| {line.operation} | {cell.shape.count:,} of {cell.shape.size:,} | {line.other} | {line.measure} |"
        f" {line.wanted:g} |"
    )
    ratios = cell.ratios(line.other)
    if ratios is None:
        why = {**cell.failures, OURS.label: cell.failures.get(OURS.label, "")}
        return f"{head} | | | | NOT MEASURED: {why[OURS.label] or why.get(line.other, 'it could not be had')} |"
    ours, theirs = cell.best(OURS.label), cell.best(line.other)
    if line.measure == "memory":
        ratio, with_start = ratios.max_rss, ""
        sides = f"{ours.max_rss / 1e6:.0f} MB | {theirs.max_rss / 1e6:.0f} MB"
    else:
        ratio, with_start = ratios.seconds, f"{ratios.whole:.2f}"
        sides = f"{ours.seconds:.3f} s | {theirs.seconds:.3f} s"
    verdict = "met" if ratio >= line.wanted else "NOT MET"
    return f"{head} **{ratio:.2f}** | {with_start} | {sides} | {verdict} |"


def main() -> int:
    """Make tools and bags, run, tabulate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", action="store_true", help="only what was agreed, and whether it is met")
    parser.add_argument("--operation", action="append", choices=OPERATIONS)
    parser.add_argument("--shape", action="append", choices=[shape.name for shape in (*SHAPES, *LISTS)])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="tools to run, beside Pressmark")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the files, to try it out")
    parser.add_argument("--patience", type=float, default=0, help="seconds for the others with the longest manifest")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "build" / "bags")
    parser.add_argument("--record", action="store_true", help="keep the tables under benchmarks/record/")
    parser.add_argument("--note", help="a remark for the record: was the machine quiet?")
    call = parser.parse_args()
    tools = [tool for tool in TOOLS if tool is OURS or not call.only or tool.name in call.only]
    if call.lines:
        needed = {OURS.label, *(line.other for line in LINES)}
        tools = [tool for tool in tools if tool.label in needed]
    report = Report("BagIt, line by line" if call.lines else "BagIt beside the tools")
    if call.note:
        report.say(f"Note: {call.note}", "")
    (call.folder / "source").mkdir(parents=True, exist_ok=True)
    bench = Bench(call.folder.resolve(), tools, call.runs, call.patience)
    known = {f"{tool.name} {tool.version}": None for tool in bench.tools}
    report.say(
        f"{', '.join(known)}; behind the comma threads of ours, processes of theirs. Best of {call.runs}, of others"
        ' with long manifests one run. Seconds are of the operation alone, "whole" and "with start" of the process.',
        "",
    )
    cells = (lines if call.lines else tables)(report, bench, call)
    for name, reason in bench.missing.items():
        report.say(f"- {name} could not be had: {reason}")
    report.say("" if bench.missing else "Every tool could be had.\n")
    report.finish()
    if call.record:
        path = report.keep()
        facts = {"machine": dict(machine.describe()), "cells": [cell.facts() for cell in cells]}
        name = "bagit-lines" if call.lines else "bagit"
        path.with_name(f"{path.stem}-{name}.json").write_text(json.dumps(facts, indent=1) + "\n")
    return 1 if any(OURS.label in cell.failures for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
