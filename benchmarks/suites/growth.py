"""Hash more and more data: time and memory on sparse files of 1 GiB to 1 TiB, one alone and split over a thousand.

A cell is ``pressmark hash --ledger`` in a process of its own. The files are holes, which occupy no disk and are read as
fast as the kernel clears memory. The short form has 1 and 16 GiB; --full adds 256 GiB and 1 TiB, which take hours where
SHA-512 has no AVX-512. XXH128 costs little beside reading: --only xxh128 shows the engine itself in minutes.

Finished cells are in the folder's state.json (build/growth) and are not measured twice, except with --again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

import blake3
import xxhash

from benchmarks import machine
from benchmarks.corpora.files import GIB
from benchmarks.processes import our_environment
from benchmarks.processes import run as run_process
from benchmarks.report import Report

PIECES = 1000
# A single file uses no lanes: SHA-512 runs on one core, BLAKE3 on all.
FORMS = (("split", "sha512"), ("single", "blake3"), ("single", "sha512"), ("split", "xxh128"), ("single", "xxh128"))
SHORT, FULL = (1, 16), (1, 16, 256, 1024)
CHECKED = 16 * GIB  # the largest files whose digests are computed again


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="add 256 GiB and 1 TiB")
    parser.add_argument("--gib", type=float, nargs="+", help="these sizes instead")
    parser.add_argument("--only", metavar="ALGORITHM", choices=sorted({algorithm for _form, algorithm in FORMS}))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--again", action="store_true", help="measure finished cells again")


def run(options: argparse.Namespace, report: Report) -> dict[str, Any]:
    folder = options.folder or Path("build/growth")
    if options.again:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    state = folder / "state.json"
    done: dict[str, dict[str, Any]] = json.loads(state.read_text()) if state.exists() else {}
    sizes = options.gib or (FULL if options.full else SHORT)
    cells = [Cell(gib, *form) for gib in sizes for form in FORMS if options.only in (None, form[1])]
    report.print(f"Sparse files through `pressmark hash --ledger`, {options.threads} threads.", "")
    heads = ("s", "CPU s", "s / GiB", "CPU s / GiB", "GB/s", "max RSS MB", "others' share")
    report.heads("GiB", "files", "algorithm", *heads)
    for cell in cells:
        if cell.name not in done:
            done[cell.name] = measure(cell, folder, options.threads)
            state.write_text(json.dumps(done, indent=1))
        report.row(*cells_of(cell, done[cell.name]))
    report.print("")
    for form, algorithm in dict.fromkeys((cell.form, cell.algorithm) for cell in cells):
        series = [cell for cell in cells if (cell.form, cell.algorithm) == (form, algorithm)]
        small, large = (done[cell.name] for cell in (series[0], series[-1]))
        report.print(
            f"- {form}, {algorithm}: {series[-1].gib / series[0].gib:,.0f} times the data needed"
            f" {large['cpu'] / small['cpu']:,.0f} times the processor time,"
            f" {large['seconds'] / small['seconds']:,.0f} times the time, and"
            f" {large['max_rss'] / small['max_rss']:.2f} times the memory."
        )
    return {"cells": {cell.name: done[cell.name] for cell in cells}}


class Cell(NamedTuple):
    """A size of the data, its form, and an algorithm."""

    gib: float
    form: str
    algorithm: str

    @property
    def name(self) -> str:
        return f"{self.gib:g}-{self.form}-{self.algorithm}"

    @property
    def sizes(self) -> list[int]:
        size = int(self.gib * GIB)
        if self.form == "single":
            return [size]
        return [size // PIECES + (piece < size % PIECES) for piece in range(PIECES)]


def measure(cell: Cell, folder: Path, threads: int) -> dict[str, Any]:
    """Run a cell and check its digests."""
    files, ledger, manifest = (folder / f"{cell.name}{end}" for end in ("", ".ledger", ".manifest"))
    files.mkdir(exist_ok=True)
    for number, size in enumerate(cell.sizes):
        with (files / f"{number:04}").open("wb") as file:
            file.truncate(size)
    ledger.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pressmark", "hash", str(files), "-a", cell.algorithm, "--threads", str(threads)]
    others = machine.OtherWork()
    command += ["--ledger", str(ledger), "-o", str(manifest), "--no-progress"]
    cost = run_process(command, our_environment()).cost
    check(cell, manifest)
    ledger.unlink()
    shutil.rmtree(files)
    return {**cost._asdict(), "others": others.share(), "threads": threads}


def check(cell: Cell, manifest: Path) -> None:
    """Raise an AssertionError if a digest is missing or wrong."""
    digests = [line.split()[0] for line in manifest.read_text().splitlines()]
    by_size: dict[int, set[str]] = {}
    for size, digest in zip(cell.sizes, digests, strict=True):
        by_size.setdefault(size, set()).add(digest)
    for size, found in by_size.items():
        assert len(found) == 1, f"{cell.name}: different digests of the same data"
        assert size > CHECKED or found == {of_zeros(size, cell.algorithm)}, f"{cell.name}: a wrong digest"


def of_zeros(size: int, algorithm: str) -> str:
    """Return the digest of ``size`` zero bytes."""
    hasher: Any
    if algorithm == "blake3":
        hasher = blake3.blake3(max_threads=blake3.blake3.AUTO)
    else:
        hasher = xxhash.xxh128() if algorithm == "xxh128" else hashlib.new(algorithm)
    block = bytes(1 << 24)
    while size:
        piece = block[:size]
        hasher.update(piece)
        size -= len(piece)
    return str(hasher.hexdigest())


def cells_of(cell: Cell, facts: dict[str, Any]) -> list[str]:
    seconds, cpu, others = facts["seconds"], facts["cpu"], facts["others"]
    return [
        f"{cell.gib:,g}",
        f"{len(cell.sizes):,}",
        cell.algorithm,
        f"{seconds:,.1f}",
        f"{cpu:,.1f}",
        f"{seconds / cell.gib:.3f}",
        f"{cpu / cell.gib:.3f}",
        f"{cell.gib * GIB / seconds / 1e9:.2f}",
        f"{facts['max_rss'] / 1e6:.1f}",
        "?" if others is None else f"{others:.0%}",
    ]
