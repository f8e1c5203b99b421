"""Hash files: ratios to hashlib on a thread pool of the same size, and to command line tools.

A row is a set of algorithms ("sha512,md5") on a shape of files in the page cache. "hashlib" is ``hashlib.file_digest``
(for other algorithms the same over the objects of their packages) on a ``ThreadPoolExecutor``, one pass for each
algorithm. All read the same files in turn. PRESSMARK_SIMD forces a vector level.

--peers adds the tools that are installed, each on as many processes or threads; on Debian, ``apt-get install coreutils
openssl hashdeep rhash b3sum xxhash`` installs them. --lines measures the targets only, and reports which are met.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora.files import SHAPES, Shape, paths_of, warm, write_files
from benchmarks.report import Report
from benchmarks.timing import Times, take_turns, timed
from pressmark import _kernels
from pressmark.fixity import ALGORITHMS, algorithm_names, hash_files
from pressmark.threads import resolve_threads

RUNS = 5
USUAL = ("small", "medium", "large", "huge", "mixed")
DEFAULT = (
    *("sha512", "md5", "sha256", "sha1", "sha384", "blake2b-512", "blake3", "xxh128", "sha3-256"),
    *("sha512,md5", "sha256,md5", "sha512,sha256,md5", "sha512,blake3"),
)
# The command line tools of each set of algorithms.
PEERS = {
    "sha512": ("sha512sum", "openssl dgst -sha512 -r", "rhash --sha512"),
    "sha384": ("sha384sum", "openssl dgst -sha384 -r"),
    "sha256": ("sha256sum", "openssl dgst -sha256 -r", "hashdeep -c sha256", "rhash --sha256"),
    "sha1": ("sha1sum", "openssl dgst -sha1 -r", "hashdeep -c sha1", "rhash --sha1"),
    "md5": ("md5sum", "openssl dgst -md5 -r", "hashdeep -c md5", "rhash --md5"),
    "blake2b-512": ("b2sum", "openssl dgst -blake2b512 -r"),
    "sha3-256": ("openssl dgst -sha3-256 -r", "rhash --sha3-256"),
    "blake3": ("b3sum",),
    "xxh128": ("xxhsum -H2",),
    # Several digests from one read: only these two tools have them.
    "sha256,md5": ("hashdeep -c sha256,md5", "rhash --sha256 --md5"),
    "sha512,md5": ("rhash --sha512 --md5",),
    "sha512,sha256,md5": ("rhash --sha512 --sha256 --md5",),
}
# The options of the tools that have threads; of the others xargs runs several processes.
THREADS = {"hashdeep": "-j", "b3sum": "--num-threads"}
FILES_OF_A_PROCESS = 2000

# The least ratio to hashlib in every cell: with AVX-512, and without.
NEVER_SLOWER, NEVER_SLOWER_NARROW = 0.9, 0.95


class Line(NamedTuple):
    """The target ratio of one cell; ``level`` is the vector level that it applies to, or that is forced."""

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


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("algorithms", nargs="*", default=DEFAULT)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--shape", action="append", choices=USUAL)
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the files, for a trial run")
    parser.add_argument("--peers", action="store_true", help="include the command line tools")
    parser.add_argument("--lines", action="store_true", help="measure the targets only")


def run(options: argparse.Namespace, report: Report) -> dict[str, Any]:
    threads = resolve_threads(options.threads)
    report.print(f"{threads} threads, best of {options.runs}; {'; '.join(versions())}.", "")
    cells = (measure_targets if options.lines else measure_all)(report, options, threads)
    return {"cells": [cell.facts() for cell in cells]}


class Cell(NamedTuple):
    """One row of a table."""

    shape: str
    algorithms: str
    level: str
    files: int
    size: int
    times: Times

    def ratio(self, other: str) -> float:
        """Return the time of ``other`` divided by the time of Pressmark."""
        return self.times.ratio(other, "ours")

    def facts(self) -> dict[str, Any]:
        """Return the cell for a JSON record."""
        return {**self._asdict(), "times": self.times.facts()}


@contextmanager
def warm_files(shape: Shape, folder: Path | None) -> Iterator[list[str]]:
    """Provide the paths of a shape's files, which are in the page cache."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        write_files(Path(made), shape.sizes())
        warm(Path(made))
        yield paths_of(Path(made))


def with_hashlib(paths: list[str], names: Sequence[str], threads: int) -> None:
    for name in names:
        made = ALGORITHMS[name].make

        def one(path: str, made: Callable[[int], Any] = made) -> str:
            with open(path, "rb") as file:
                return hashlib.file_digest(file, lambda: made(1)).hexdigest()

        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(one, paths):
                pass


def with_pressmark(paths: list[str], names: Sequence[str], threads: int) -> None:
    for outcome in hash_files(paths, names, threads):
        assert outcome.ok, outcome


def with_tool(paths: list[str], command: str, threads: int) -> None:
    option = THREADS.get(command.split()[0])
    if option:
        words = ["xargs", "-0", "-n", "100000", *command.split(), option, str(threads)]
    else:
        share = min(max(1, -(-len(paths) // threads)), FILES_OF_A_PROCESS)
        words = ["xargs", "-0", "-n", str(share), "-P", str(threads), *command.split()]
    subprocess.run(words, input=b"\0".join(map(os.fsencode, paths)), stdout=subprocess.DEVNULL, check=True)


def measure(shape: str, paths: list[str], combination: str, threads: int, runs: int, others: Sequence[str]) -> Cell:
    """Time Pressmark and ``others`` in turn; tools that are not installed are left out."""
    names = algorithm_names(combination.split(","))
    subjects = {"ours": timed(functools.partial(with_pressmark, paths, names, threads))}
    commands = {command.split()[0]: command for command in PEERS.get(combination, ())}
    for other in others:
        if other == "hashlib":
            subjects[other] = timed(functools.partial(with_hashlib, paths, names, threads))
        elif other in commands and shutil.which(other):
            subjects[other] = timed(functools.partial(with_tool, paths, commands[other], threads))
    times = take_turns(subjects, runs)
    return Cell(shape, combination, _kernels.active.lane_level(), len(paths), sum(map(os.path.getsize, paths)), times)


def measure_all(report: Report, options: argparse.Namespace, threads: int) -> list[Cell]:
    """Measure every shape with every set of algorithms."""
    cells = []
    for name in options.shape or USUAL:
        shape = SHAPES[name].scaled(options.scale)
        with warm_files(shape, options.folder) as paths:
            report.print(f"### {name}: {len(paths):,} files, {sum(map(os.path.getsize, paths)) / 1e6:,.0f} MB", "")
            report.heads("algorithms", "s", "GB/s", "files/s", "hashlib s", "hashlib / ours", "median", " tools / ours")
            for combination in options.algorithms:
                tools = PEERS.get(combination, ()) if options.peers else ()
                others = ["hashlib", *(command.split()[0] for command in tools)]
                cell = measure(name, paths, combination, threads, options.runs, others)
                cells.append(cell)
                ours = cell.times.best("ours").seconds
                report.row(
                    combination,
                    f"{ours:.3f}",
                    f"{cell.size / ours / 1e9:.2f}",
                    f"{len(paths) / ours:,.0f}",
                    f"{cell.times.best('hashlib').seconds:.3f}",
                    f"**{cell.ratio('hashlib'):.2f}**",
                    f"{cell.times.median('hashlib', 'ours'):.2f}",
                    ", ".join(f"{other} {cell.ratio(other):.2f}" for other in others[1:] if other in cell.times.runs),
                )
            report.print("")
    wanted = NEVER_SLOWER if cells[0].level == "avx512" else NEVER_SLOWER_NARROW
    worst = min(cells, key=lambda cell: cell.ratio("hashlib"))
    verdict = "met" if worst.ratio("hashlib") >= wanted else "NOT MET"
    report.print(
        f"Lowest ratio to hashlib: {worst.algorithms} on {worst.shape}, {worst.ratio('hashlib'):.2f};"
        f" wanted in every cell at least {wanted}: {verdict}.",
        "",
    )
    return cells


def measure_targets(report: Report, options: argparse.Namespace, threads: int) -> list[Cell]:
    """Measure the cells that have a target."""
    from pressmark._kernels import native as digests

    cells = []
    forced, known = digests.level(), digests.levels()
    runnable = known[: known.index(digests.best_level()) + 1]
    report.heads("files", " algorithms", " vectors", " beside", "wanted", "measured", "median", " ")
    try:
        for name in USUAL:
            chosen = [line for line in LINES if line.shape == name]
            if not chosen or (options.shape and name not in options.shape):
                continue
            with warm_files(SHAPES[name].scaled(options.scale), options.folder) as paths:
                for line in chosen:
                    narrow = line.level in ("avx2", "portable")
                    if narrow and line.level not in runnable:
                        continue
                    digests.use_level(line.level if narrow else forced)
                    cell = measure(name, paths, line.algorithms, threads, options.runs, [line.yardstick])
                    cells.append(cell)
                    report.row(line.shape, line.algorithms, cell.level, line.yardstick, *_verdict(line, cell))
    finally:
        digests.use_level(forced)
    report.print("")
    return cells


def _verdict(line: Line, cell: Cell) -> tuple[str, ...]:
    if line.yardstick not in cell.times.runs:
        return (str(line.wanted), "", "", "not installed")
    ratio = cell.ratio(line.yardstick)
    verdict = "met" if ratio >= line.wanted else "NOT MET"
    if line.level is not None and line.level != cell.level:
        verdict = f"{verdict.lower()}; the target is for {line.level}"
    return (str(line.wanted), f"**{ratio:.2f}**", f"{cell.times.median(line.yardstick, 'ours'):.2f}", verdict)


def versions() -> list[str]:
    """Return the first line of each tool's version."""
    found = []
    options = {"openssl": "version", "hashdeep": "-V"}
    for tool in ("sha512sum", "openssl", "hashdeep", "rhash", "b3sum", "xxhsum"):
        if shutil.which(tool):
            command = [tool, options.get(tool, "--version")]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            found.append(f"{tool}: {(done.stdout + done.stderr).strip().splitlines()[0]}")
    return found
