"""How time and memory grow with the work: sparse files of 1 GiB to 1 TiB, one alone and split over a thousand.

    python benchmarks/fixity_growth.py [--full] [--only xxh128] [--folder build/growth] [--record]
        [--note TEXT] [--again]

A cell is a real ``pressmark hash`` with a ledger, in a process of its own: its wall and processor seconds and the most
memory that it had at any moment. Files are holes, which cost no disk and are read as fast as the kernel clears memory.
The short form has 1 and 16 GiB, a minute or two; --full also 256 GiB and 1 TiB, hours where SHA-512 has no AVX-512.
XXH128 costs next to nothing beside reading: with --only xxh128 the whole series shows the engine itself in minutes.

A run that was killed goes on: finished cells are in the folder's state.json and not done again (but with --again), and
inside a cell the ledger makes the finished pieces count; the seconds of all its parts are added up.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import blake3
import xxhash

import machine
from commands import run_command
from report import Report

GIB = 1 << 30
PIECES = 1000
# Form of the files and algorithm. A single file is not for lanes: SHA-512 has one core there, BLAKE3 all of them.
FORMS = (("split", "sha512"), ("single", "blake3"), ("single", "sha512"), ("split", "xxh128"), ("single", "xxh128"))
SHORT, FULL = (1, 16), (1, 16, 256, 1024)
CHECKED = 16  # GiB: up to here, hashlib computes the digest of a whole cell's file again
HEADS = (
    *("GiB", "files", "algorithm", "s", "CPU s", "s / GiB", "CPU s / GiB", "GB/s", "max RSS MB"),
    *("others' share", "times begun"),
)


class Cell(NamedTuple):
    gib: int
    form: str
    algorithm: str

    @property
    def name(self) -> str:
        return f"{self.gib}-{self.form}-{self.algorithm}"

    @property
    def sizes(self) -> list[int]:
        size = self.gib * GIB
        if self.form == "single":
            return [size]
        return [size // PIECES + (piece < size % PIECES) for piece in range(PIECES)]


class State:
    """What is done, in a file that is always whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.cells: dict[str, dict[str, Any]] = json.loads(path.read_text()) if path.exists() else {}

    def keep(self, cell: Cell, **facts: Any) -> dict[str, Any]:
        self.cells[cell.name] = {**self.cells.get(cell.name, {}), **facts}
        temporary = self._path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.cells, indent=1))
        temporary.replace(self._path)
        return self.cells[cell.name]


def make(folder: Path, sizes: list[int]) -> None:
    """Make the holes that are not there yet; those that are keep their time, by which the ledger knows them."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, size in enumerate(sizes):
        path = folder / f"{number:04}"
        if not path.exists() or path.stat().st_size != size:
            with path.open("wb") as file:
                file.truncate(size)


def run(cell: Cell, folder: Path, state: State, threads: int) -> dict[str, Any]:
    """Run a cell, or the rest of one, and return what it cost."""
    files = folder / f"{cell.gib}-{cell.form}"
    make(files, cell.sizes)
    ledger, manifest = folder / f"{cell.name}.ledger", folder / f"{cell.name}.manifest"
    before = state.cells.get(cell.name, {})
    spent, used = before.get("seconds", 0.0), before.get("cpu_seconds", 0.0)
    state.keep(cell, begun=before.get("begun", 0) + 1)
    arguments = ["hash", str(files), "-a", cell.algorithm, "--threads", str(threads)]
    arguments += ["--ledger", str(ledger), "-o", str(manifest)]
    others = machine.OtherWork()

    def so_far(seconds: float, cpu_seconds: float) -> None:
        state.keep(cell, seconds=round(spent + seconds, 3), cpu_seconds=round(used + cpu_seconds, 3))

    # Should we be killed, what this part has cost is known.
    cost = run_command(arguments, so_far)
    if cost.status:
        sys.exit(f"{cell.name}: pressmark hash ended with {cost.status}")
    check(cell, manifest)
    facts = state.keep(
        cell,
        seconds=round(spent + cost.seconds, 3),
        cpu_seconds=round(used + cost.cpu_seconds, 3),
        max_rss=max(cost.max_rss, before.get("max_rss", 0)),
        others=others.share(),
        threads=threads,
        done=datetime.datetime.now().isoformat(timespec="seconds"),
    )
    ledger.unlink()
    return facts


def check(cell: Cell, manifest: Path) -> None:
    """Fail where a digest is missing or wrong; those of very long files are too dear to be computed twice."""
    digests = [line.split()[0] for line in manifest.read_text().splitlines()]
    sizes = cell.sizes
    assert len(digests) == len(sizes), f"{cell.name}: {len(digests)} digests of {len(sizes)} files"
    by_size: dict[int, set[str]] = {}
    for size, digest in zip(sizes, digests, strict=True):
        by_size.setdefault(size, set()).add(digest)
    for size, found in by_size.items():
        assert len(found) == 1, f"{cell.name}: different digests of the same data"
        if size <= CHECKED * GIB:
            assert found == {of_zeros(size, cell.algorithm)}, f"{cell.name}: a wrong digest"


def of_zeros(size: int, algorithm: str) -> str:
    block = bytes(1 << 24)
    hasher: Any
    if algorithm == "blake3":
        hasher = blake3.blake3(max_threads=blake3.blake3.AUTO)
    else:
        hasher = xxhash.xxh128() if algorithm == "xxh128" else hashlib.new(algorithm)
    while size:
        piece = block[:size]
        hasher.update(piece)
        size -= len(piece)
    digest: str = hasher.hexdigest()
    return digest


def row(cell: Cell, facts: dict[str, Any]) -> list[str]:
    seconds, cpu = facts["seconds"], facts["cpu_seconds"]
    others = facts["others"]
    return [
        f"{cell.gib:,}",
        f"{len(cell.sizes):,}",
        cell.algorithm,
        f"{seconds:,.1f}",
        f"{cpu:,.1f}",
        f"{seconds / cell.gib:.3f}",
        f"{cpu / cell.gib:.3f}",
        f"{cell.gib * GIB / seconds / 1e9:.2f}",
        f"{facts['max_rss'] / 1e6:.1f}",
        "?" if others is None else f"{others:.0%}",
        str(facts["begun"]),
    ]


def growth(report: Report, state: State, cells: list[Cell]) -> None:
    """Say of each form how the largest cell compares with the smallest."""
    for form, algorithm in dict.fromkeys((cell.form, cell.algorithm) for cell in cells):
        series = [cell for cell in cells if (cell.form, cell.algorithm) == (form, algorithm)]
        small, large = (state.cells[cell.name] for cell in (series[0], series[-1]))
        times = series[-1].gib / series[0].gib
        report.say(
            f"- {form}, {algorithm}: {times:,.0f} times the work took"
            f" {large['cpu_seconds'] / small['cpu_seconds']:,.0f} times the processor seconds,"
            f" {large['seconds'] / small['seconds']:,.0f} times the wall seconds, and"
            f" {large['max_rss'] / small['max_rss']:.2f} times the memory."
        )
    report.say("")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="also 256 GiB and 1 TiB")
    parser.add_argument("--only", metavar="ALGORITHM", choices=sorted({algorithm for _form, algorithm in FORMS}))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each cell")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "build" / "growth")
    parser.add_argument("--record", action="store_true", help="keep the tables under benchmarks/record/")
    parser.add_argument("--note", help="a remark for the record: was the machine quiet?")
    parser.add_argument("--again", action="store_true", help="forget cells that are done")
    call = parser.parse_args()
    if call.again and call.folder.exists():
        shutil.rmtree(call.folder)
    call.folder.mkdir(parents=True, exist_ok=True)
    state = State(call.folder / "state.json")
    forms = [form for form in FORMS if call.only in (None, form[1])]
    cells = [Cell(gib, *form) for gib in (FULL if call.full else SHORT) for form in forms]
    report = Report(f"Fixity as the work grows{f', {call.only}' if call.only else ''}")
    if call.note:
        report.say(f"Note: {call.note}", "")
    report.say(
        f"Sparse files through `pressmark hash --ledger`, {call.threads} threads, one process a cell; Python"
        f" {platform.python_version()}.",
        "",
        f"| {' | '.join(HEADS)} |",
        f"|{'---:|' * len(HEADS)}",
    )
    for cell in cells:
        facts = state.cells.get(cell.name, {})
        if "done" not in facts:
            facts = run(cell, call.folder, state, call.threads)
        report.say(f"| {' | '.join(row(cell, facts))} |")
    report.say("")
    growth(report, state, cells)
    report.finish()
    if call.record:
        path = report.keep()
        facts = {"machine": dict(machine.describe()), "cells": {cell.name: state.cells[cell.name] for cell in cells}}
        path.with_name(f"{path.stem}-fixity-growth{f'-{call.only}' if call.only else ''}.json").write_text(
            json.dumps(facts, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
