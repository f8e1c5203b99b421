"""Digests of files: ratios to hashlib with a thread pool of the same size, and to the tools that people use.

    python benchmarks/fixity.py [--shape medium] [--peers] [--record] [--note TEXT] [algorithms ...]
    python benchmarks/fixity.py --lines [--record] [--note TEXT]     what was agreed, line by line: met or not
    python benchmarks/fixity.py --install                            Debian packages of the tools, first of all

A row is a set of algorithms (``sha512,md5``) on a shape of files, which are in the page cache. "hashlib" is
``hashlib.file_digest`` (for the packages the same over their objects) under a ``ThreadPoolExecutor``, one pass for each
algorithm. Everybody reads the same files in turn, several times; a time is the best of them, and "median" is the middle
of the ratios to hashlib round by round: far from the ratio of the best it means a noisy machine. PRESSMARK_SIMD forces
a vector level.

With --peers also the command line tools that are installed, each on as many processes or threads.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import machine
from pressmark import _kernels
from pressmark.fixity import ALGORITHMS, algorithm_names, hash_files
from pressmark.threads import resolve_threads
from report import Report

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# Sizes of the files of each shape, in bytes.
SHAPES: dict[str, Callable[[], list[int]]] = {
    "small": lambda: [4 * KIB] * 20_000,
    "medium": lambda: [MIB] * 1_000,
    "large": lambda: [128 * MIB] * 8,
    "huge": lambda: [4 * GIB],
    "mixed": lambda: mixed_sizes(),
}
DEFAULT = (
    *("sha512", "md5", "sha256", "sha1", "sha384", "blake2b-512", "blake3", "xxh128", "sha3-256"),
    *("sha512,md5", "sha256,md5", "sha512,sha256,md5", "sha512,blake3"),
)
# What hashes the files whose names xargs hands it; {jobs} is the number of processes or threads.
PROCESSES = "xargs -0 -n {share} -P {jobs} "
AT_ONCE = "xargs -0 -n 100000 "
PEERS = {
    "sha512": {
        "sha512sum": PROCESSES + "sha512sum",
        "openssl": PROCESSES + "openssl dgst -sha512 -r",
        "rhash": PROCESSES + "rhash --sha512",
    },
    "sha384": {"sha384sum": PROCESSES + "sha384sum", "openssl": PROCESSES + "openssl dgst -sha384 -r"},
    "sha256": {
        "sha256sum": PROCESSES + "sha256sum",
        "openssl": PROCESSES + "openssl dgst -sha256 -r",
        "hashdeep": AT_ONCE + "hashdeep -c sha256 -j {jobs}",
        "rhash": PROCESSES + "rhash --sha256",
    },
    "sha1": {
        "sha1sum": PROCESSES + "sha1sum",
        "openssl": PROCESSES + "openssl dgst -sha1 -r",
        "hashdeep": AT_ONCE + "hashdeep -c sha1 -j {jobs}",
        "rhash": PROCESSES + "rhash --sha1",
    },
    "md5": {
        "md5sum": PROCESSES + "md5sum",
        "openssl": PROCESSES + "openssl dgst -md5 -r",
        "hashdeep": AT_ONCE + "hashdeep -c md5 -j {jobs}",
        "rhash": PROCESSES + "rhash --md5",
    },
    "blake2b-512": {"b2sum": PROCESSES + "b2sum", "openssl": PROCESSES + "openssl dgst -blake2b512 -r"},
    "sha3-256": {"openssl": PROCESSES + "openssl dgst -sha3-256 -r", "rhash": PROCESSES + "rhash --sha3-256"},
    "blake3": {"b3sum": AT_ONCE + "b3sum --num-threads {jobs}"},
    "xxh128": {"xxhsum": PROCESSES + "xxhsum -H2"},
    # Several digests from one read: nobody else has them but these two.
    "sha256,md5": {
        "hashdeep": AT_ONCE + "hashdeep -c sha256,md5 -j {jobs}",
        "rhash": PROCESSES + "rhash --sha256 --md5",
    },
    "sha512,md5": {"rhash": PROCESSES + "rhash --sha512 --md5"},
    "sha512,sha256,md5": {"rhash": PROCESSES + "rhash --sha512 --sha256 --md5"},
}
PACKAGES = ("coreutils", "openssl", "hashdeep", "rhash", "b3sum", "xxhash")
FILES_OF_A_PROCESS = 2000

# Never slower than this times hashlib, in any cell: with AVX-512, and without.
NEVER_SLOWER, NEVER_SLOWER_NARROW = 0.9, 0.95


class Line(NamedTuple):
    """What is wanted of one cell; ``level`` is the vector level that it was agreed for, or that is forced."""

    shape: str
    algorithms: str
    yardstick: str
    wanted: float
    level: str | None = None


LINES = (
    Line("medium", "sha512", "hashlib", 3.0, "avx512"),
    Line("medium", "md5", "hashlib", 4.0, "avx512"),
    Line("medium", "sha256", "hashlib", 1.4, "avx512"),
    Line("medium", "sha1", "hashlib", 1.4, "avx512"),
    Line("medium", "sha512,sha256,md5", "hashlib", 2.5, "avx512"),
    Line("small", "sha512", "hashlib", 2.0, "avx512"),
    Line("huge", "blake3", "b3sum", 0.9),
    *(
        Line("medium", algorithms, "hashlib", NEVER_SLOWER_NARROW, level)
        for level in ("avx2", "portable")
        for algorithms in ("sha512", "md5", "sha256", "sha1", "sha384", "blake2b-512", "sha512,sha256,md5")
    ),
    *(
        Line("small", algorithms, "hashlib", NEVER_SLOWER_NARROW, level)
        for level in ("avx2", "portable")
        for algorithms in ("sha512", "md5", "sha256")
    ),
)


def mixed_sizes() -> list[int]:
    """Sizes as on a disk, evenly spread over the powers of two from 1 KiB to 64 MiB; always the same."""
    draw = random.Random(20)
    return [int(2 ** draw.uniform(10, 26)) for _ in range(300)]


def make(folder: Path, sizes: list[int]) -> list[str]:
    """Write the files and return their paths."""
    block = random.Random(7).randbytes(4 * MIB)
    paths = []
    for number, size in enumerate(sizes):
        path = folder / f"{number // 1000:03}" / f"{number:06}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            left = size
            while left:
                # Every file is another one, at no cost.
                piece = block[number % 4096 : number % 4096 + left]
                left -= file.write(piece)
        paths.append(str(path))
    return paths


@contextlib.contextmanager
def files_of(shape: str, folder: Path | None) -> Iterator[tuple[list[str], int]]:
    """Give the paths of a shape's files, which are in the page cache, and the sum of their sizes."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        sizes = SHAPES[shape]()
        paths = make(Path(made), sizes)
        # Written pages go to the disk now and not while somebody is measured.
        os.sync()
        for path in paths:
            with open(path, "rb", buffering=0) as file:
                while file.read(4 * MIB):
                    pass
        yield paths, sum(sizes)


def with_hashlib(paths: list[str], name: str, threads: int) -> None:
    made = ALGORITHMS[name].make

    def one(path: str) -> str:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, lambda: made(1)).hexdigest()  # type: ignore[arg-type]

    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(one, paths):
            pass


def with_pressmark(paths: list[str], names: tuple[str, ...], threads: int) -> None:
    for outcome in hash_files(paths, names, threads):
        assert outcome.ok, outcome


def with_peer(paths: list[str], command: str, threads: int) -> None:
    share = min(max(1, -(-len(paths) // threads)), FILES_OF_A_PROCESS)
    words = command.format(jobs=threads, share=share).split()
    subprocess.run(words, input=b"\0".join(map(os.fsencode, paths)), stdout=subprocess.DEVNULL, check=True)


def timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


class Cell(NamedTuple):
    """One row: who took how many seconds, round by round."""

    shape: str
    algorithms: str
    level: str
    files: int
    size: int
    seconds: dict[str, list[float]]

    def best(self, who: str) -> float:
        return min(self.seconds[who])

    def ratio(self, who: str) -> float:
        """How many times as long as we take they take."""
        return self.best(who) / self.best("ours")

    def median(self, who: str) -> float:
        return statistics.median(
            theirs / ours for theirs, ours in zip(self.seconds[who], self.seconds["ours"], strict=True)
        )


def measure(
    shape: str, paths: list[str], size: int, combination: str, threads: int, runs: int, others: Sequence[str]
) -> Cell:
    """Time ourselves and all ``others`` in turn; a tool that is not installed is left out."""
    names = algorithm_names(combination.split(","))
    actions: dict[str, Callable[[], object]] = {"ours": lambda: with_pressmark(paths, names, threads)}
    for other in others:
        if other == "hashlib":
            actions[other] = lambda: [with_hashlib(paths, name, threads) for name in names]
        elif shutil.which(other) and other in PEERS.get(combination, {}):
            command = PEERS[combination][other]
            actions[other] = lambda command=command: with_peer(paths, command, threads)
    seconds: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(runs):
        for name, action in actions.items():
            seconds[name].append(timed(action))
    return Cell(shape, combination, _kernels.active.lane_level(), len(paths), size, seconds)


def tables(report: Report, call: argparse.Namespace, threads: int) -> list[Cell]:
    """Measure every shape with every set of algorithms, and say each row as soon as it is there."""
    cells = []
    for shape in call.shape or SHAPES:
        with files_of(shape, call.folder) as (paths, size):
            report.say(
                f"### {shape}: {len(paths):,} files, {size / 1e6:,.0f} MB",
                "",
                "| algorithms | s | GB/s | files/s | hashlib s | times hashlib | median | the others' times |",
                "|---|---:|---:|---:|---:|---:|---:|---|",
            )
            for combination in call.algorithms:
                others = ["hashlib", *(PEERS.get(combination, {}) if call.peers else ())]
                cell = measure(shape, paths, size, combination, threads, call.runs, others)
                cells.append(cell)
                ours = cell.best("ours")
                peers = ", ".join(f"{who} {cell.ratio(who):.2f}" for who in cell.seconds if who in others[1:])
                report.say(
                    f"| {combination} | {ours:.3f} | {size / ours / 1e9:.2f} | {len(paths) / ours:,.0f} |"
                    f" {cell.best('hashlib'):.3f} | **{cell.ratio('hashlib'):.2f}** | {cell.median('hashlib'):.2f} |"
                    f" {peers} |"
                )
            report.say("")
    wanted = NEVER_SLOWER if _kernels.active.lane_level() == "avx512" else NEVER_SLOWER_NARROW
    worst = min(cells, key=lambda cell: cell.ratio("hashlib"))
    verdict = "met" if worst.ratio("hashlib") >= wanted else "NOT MET"
    report.say(
        f"Slowest beside hashlib: {worst.algorithms} on {worst.shape}, {worst.ratio('hashlib'):.2f};"
        f" wanted in every cell at least {wanted}: {verdict}.",
        "",
    )
    return cells


def lines(report: Report, call: argparse.Namespace, threads: int) -> list[Cell]:
    """Measure what was agreed, and say of each line whether it is met."""
    from pressmark._kernels.native import _digests as digests

    cells = []
    best, forced = digests.best_level(), digests.level()
    known = digests.levels()
    report.say(
        "| files | algorithms | vectors | beside | wanted | measured | median | |",
        "|---|---|---|---|---:|---:|---:|---|",
    )
    try:
        for shape in SHAPES:
            chosen = [line for line in LINES if line.shape == shape]
            if not chosen or (call.shape and shape not in call.shape):
                continue
            with files_of(shape, call.folder) as (paths, size):
                for line in chosen:
                    narrow = line.level in ("avx2", "portable")
                    if narrow and known.index(line.level) > known.index(best):
                        continue
                    digests.use_level(line.level if narrow else forced)
                    cell = measure(shape, paths, size, line.algorithms, threads, call.runs, [line.yardstick])
                    cells.append(cell)
                    report.say(_said(line, cell))
    finally:
        digests.use_level(forced)
    report.say("")
    return cells


def _said(line: Line, cell: Cell) -> str:
    head = f"| {line.shape} | {line.algorithms} | {cell.level} | {line.yardstick} | {line.wanted} |"
    if line.yardstick not in cell.seconds:
        return f"{head} | | {line.yardstick} is not installed (--install) |"
    ratio = cell.ratio(line.yardstick)
    verdict = "met" if ratio >= line.wanted else "NOT MET"
    if line.level is not None and line.level != cell.level:
        verdict = f"{'met' if ratio >= line.wanted else 'not met'}; agreed for {line.level}, not here"
    return f"{head} **{ratio:.2f}** | {cell.median(line.yardstick):.2f} | {verdict} |"


def install() -> None:
    """Install the tools as Debian's packages."""
    if shutil.which("apt-get") is None:
        sys.exit("--install: there is no apt-get here; install by hand: " + ", ".join(PACKAGES))
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run([*sudo, "apt-get", "update", "-qq"], check=True, env=environment)
    # One by one: an older release may lack one, and the others are still worth having.
    for package in PACKAGES:
        done = subprocess.run([*sudo, "apt-get", "install", "-y", "-qq", package], check=False, env=environment)
        if done.returncode:
            print(f"{package} could not be installed", file=sys.stderr)


def versions() -> list[str]:
    """Return the first line of what each tool says of its version."""
    found = []
    calls = {"sha512sum": "--version", "openssl": "version", "hashdeep": "-V", "rhash": "--version"}
    for tool, option in {**calls, "b3sum": "--version", "xxhsum": "--version"}.items():
        if shutil.which(tool):
            done = subprocess.run([tool, option], capture_output=True, text=True, check=False)
            found.append(f"{tool}: {(done.stdout + done.stderr).strip().splitlines()[0]}")
    return found


def keep(report: Report, cells: list[Cell], name: str) -> None:
    """Keep the tables in the day's record, and all times beside it."""
    path = report.keep()
    facts: dict[str, Any] = {"machine": dict(machine.describe()), "cells": [cell._asdict() for cell in cells]}
    path.with_name(f"{path.stem}-{name}.json").write_text(json.dumps(facts, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithms", nargs="*", default=DEFAULT)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made; they are removed again")
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    parser.add_argument("--peers", action="store_true", help="beside the command line tools, too")
    parser.add_argument("--lines", action="store_true", help="only what was agreed, and whether it is met")
    parser.add_argument("--install", action="store_true", help="install the tools and do nothing else")
    parser.add_argument("--record", action="store_true", help="keep the tables under benchmarks/record/")
    parser.add_argument("--note", help="a remark for the record: was the machine quiet?")
    call = parser.parse_args()
    if call.install:
        install()
        return
    threads = resolve_threads(call.threads)
    report = Report("Fixity, line by line" if call.lines else "Fixity beside hashlib and the tools")
    if call.note:
        report.say(f"Note: {call.note}", "")
    report.say(f"{threads} threads, best of {call.runs}; {'; '.join(versions())}.", "")
    cells = lines(report, call, threads) if call.lines else tables(report, call, threads)
    report.finish()
    if call.record:
        keep(report, cells, "fixity-lines" if call.lines else "fixity")


if __name__ == "__main__":
    main()
