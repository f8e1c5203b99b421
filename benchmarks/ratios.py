"""Mapping speed as ratios to yardsticks of the same process: one table, comparable between machines.

    python benchmarks/ratios.py [COUNT] [--corpus NAME] [--record] [--note TEXT]

Yardsticks, on the same identifiers: ``upper`` is ``list(map(str.upper, ids))``; ``md5``, ``sha256`` and ``sha512`` are
``[hashlib.sha256(i.encode()).hexdigest() for i in ids]`` with that digest; ``memcpy`` copies the bytes of the paths and
their offsets into memory that is there already, and ``new copy`` into memory that the system must hand out first, as it
must to the Arrow door. Yardstick and subject run in turn, after a warm-up, so that noise hits both; a time is the
best of its runs, making the result only (freeing it is not timed). ``median`` is the middle of the ratios pair by pair:
far from ``ratio`` it means a noisy machine.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import hashlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import cases
import corpora
import doors
from checksums import twin
from pressmark import _kernels
from report import Report

RUNS = 9  # at least, and as many as fit in
SECONDS = 2.0
THREAD_RUNS = 5
THREAD_FACTOR = 10  # identifiers where two threads are held against one, for each of COUNT


class Row(NamedTuple):
    """A subject, its yardstick, and the ratio that is wanted of it on a machine with AVX-512."""

    case: str
    door: str
    yardstick: str
    target: float | None = None
    implementation: str = "native"


ROWS = (
    Row("pairtree", "list", "upper", 1.0),
    Row("pairtree", "arrow", "upper", 0.25),
    Row("pairtree", "lines", "upper"),
    Row("pairtree", "list", "upper", None, "pure"),
    Row("vitro", "list", "upper"),
    Row("vitro", "arrow", "upper"),
    Row("0002", "list", "upper"),
    Row("0002", "arrow", "upper"),
    Row("0006", "list", "upper"),
    Row("0006", "arrow", "upper"),
    Row("0007", "list", "upper"),
    Row("0007", "arrow", "upper"),
    Row("0011", "list", "upper", 3.0),
    Row("0011", "arrow", "upper"),
    Row("0011-encode", "list", "upper"),
    Row("0011-encode", "arrow", "upper"),
    Row("0003-sha256", "list", "sha256", 0.35),
    Row("0003-sha256", "arrow", "sha256", 0.15),
    Row("0003-sha256", "lines", "sha256"),
    Row("0003-sha256", "list", "sha256", None, "pure"),
    Row("0003-md5", "list", "md5"),
    Row("0003-md5", "arrow", "md5"),
    Row("0003-sha512", "list", "sha512"),
    Row("0003-sha512", "arrow", "sha512"),
    Row("0004", "list", "sha256"),
    Row("0004", "arrow", "sha256"),
    Row("0012", "list", "sha256"),
    Row("0012", "arrow", "sha256"),
)
# The pure twin's wanted rate is absolute: twice what a straightforward Python loop makes.
PURE_PAIRTREE_RATE = 400_000


def seconds(action: Callable[[], Any]) -> float:
    """Return how long ``action`` takes; what it made is freed after the clock has stopped."""
    start = time.perf_counter()
    result = action()
    stop = time.perf_counter()
    del result
    return stop - start


class Pair(NamedTuple):
    """The best times of subject and yardstick, and the middle one of their ratios."""

    subject: float
    yardstick: float
    median: float

    @property
    def ratio(self) -> float:
        return self.subject / self.yardstick


def interleaved(subject: Callable[[], Any], yardstick: Callable[[], Any], runs: int = RUNS) -> Pair:
    """Time both in turn, after one run of each that does not count."""
    seconds(yardstick)
    seconds(subject)
    # Which of the two comes first alternates, so that neither always finds the other's leavings in the cache.
    times: list[dict[Callable[[], Any], float]] = []
    started = time.perf_counter()
    while len(times) < runs or time.perf_counter() - started < SECONDS:
        order = (yardstick, subject) if len(times) % 2 else (subject, yardstick)
        times.append({action: seconds(action) for action in order})
    return Pair(
        min(time_of[subject] for time_of in times),
        min(time_of[yardstick] for time_of in times),
        statistics.median(time_of[subject] / time_of[yardstick] for time_of in times),
    )


def yardsticks(ids: list[str]) -> dict[str, Callable[[], Any]]:
    """Return the loops that the mapping is held against."""

    def digests(algorithm: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: [algorithm(identifier.encode()).hexdigest() for identifier in ids]

    loops: dict[str, Callable[[], Any]] = {"upper": lambda: list(map(str.upper, ids))}
    return loops | {name: digests(getattr(hashlib, name)) for name in ("md5", "sha256", "sha512")}


def verdict(value: float, target: float | None, at_least: bool = False) -> str:
    """Say whether a target is met."""
    if target is None:
        return ""
    met = value >= target if at_least else value <= target
    return f"{'≥' if at_least else '≤'} {target:,g} {'met' if met else 'MISSED'}"


def layouts_table(report: Report, corpus: corpora.Corpus) -> None:
    """Print every row of ``ROWS``."""
    loops = yardsticks(corpus.ids)
    count = len(corpus.ids)
    prepared: dict[str, Any] = {}
    rows = []
    for row in ROWS:
        if row.door == "arrow" and not doors.has_arrow():
            continue
        door = doors.DOORS[row.door]
        if row.door not in prepared:
            prepared[row.door] = door.prepare(corpus.ids)
        with twin(row.implementation):
            layout = cases.CASES[row.case].make(corpus.delimiter)
            pure = row.implementation == "pure"
            pair = interleaved(
                functools.partial(door.run, layout, prepared[row.door], 1), loops[row.yardstick], 3 if pure else RUNS
            )
        wanted = verdict(pair.ratio, row.target)
        if pure and row.case == "pairtree":
            wanted = verdict(count / pair.subject, PURE_PAIRTREE_RATE, at_least=True)
        rows.append(
            (
                f"{row.case} {row.door}{', pure' if pure else ''}",
                f"{pair.subject / count * 1e9:.1f}",
                f"{count / pair.subject / 1e6:.2f}",
                f"{pair.yardstick / count * 1e9:.0f}",
                f"{pair.ratio:.3f}",
                f"{pair.median:.3f}",
                row.yardstick,
                wanted,
            )
        )
    heads = ("subject", "ns/id", "M ids/s", "yardstick ns/id", "ratio", "median", " of yardstick", " wanted")
    report.table(heads, rows)


def memory_table(report: Report, corpus: corpora.Corpus) -> None:
    """Print the Arrow door's output in bytes a second, against copies of the same bytes."""
    door = doors.DOORS["arrow"]
    column = door.prepare(corpus.ids)
    rows = []
    for name in ("pairtree", "0003-sha256"):
        layout = cases.CASES[name].make(corpus.delimiter)
        octets = sum(map(len, door.paths(door.run(layout, column, 1))))
        moved = octets + 8 * (len(corpus.ids) + 1)
        source = ctypes.create_string_buffer(b"x" * moved, moved)
        warm = ctypes.create_string_buffer(moved)
        for label, copy in (
            ("memcpy", functools.partial(ctypes.memmove, warm, source, moved)),
            ("new copy", functools.partial(bytes, memoryview(source))),
        ):
            pair = interleaved(functools.partial(door.run, layout, column, 1), copy)
            share = 1 / pair.ratio
            rows.append(
                (
                    f"{name} arrow",
                    f"{moved / 1e6:.0f}",
                    f"{moved / pair.subject / 1e9:.2f}",
                    f"{moved / pair.yardstick / 1e9:.2f}",
                    f"{share:.3f}",
                    f"{1 / pair.median:.3f}",
                    label,
                    verdict(share, 0.333, at_least=True) if name == "pairtree" and label == "memcpy" else "",
                )
            )
    heads = ("subject", "MB out", "GB/s", "copy GB/s", "share", "median", " of", " wanted")
    report.table(heads, rows)


def threads_table(report: Report, corpus: corpora.Corpus) -> None:
    """Print what a second thread gains."""
    rows = []
    for name in ("pairtree", "0003-sha256"):
        for door_name in ("arrow", "lines"):
            if door_name == "arrow" and not doors.arrow_threads():
                continue
            door = doors.DOORS[door_name]
            layout = cases.CASES[name].make(corpus.delimiter)
            prepared = door.prepare(corpus.ids)
            pair = interleaved(
                functools.partial(door.run, layout, prepared, 2),
                functools.partial(door.run, layout, prepared, 1),
                THREAD_RUNS,
            )
            rows.append(
                (
                    f"{name} {door_name}",
                    f"{len(corpus.ids):,}",
                    f"{len(corpus.ids) / pair.yardstick / 1e6:.1f}",
                    f"{len(corpus.ids) / pair.subject / 1e6:.1f}",
                    f"{1 / pair.ratio:.2f}",
                    f"{1 / pair.median:.2f}",
                    verdict(1 / pair.ratio, 1.7, at_least=True) if door_name == "arrow" else "",
                )
            )
    report.table(("subject", "ids", "one: M ids/s", "two: M ids/s", "gain", "median", " wanted"), rows)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", nargs="?", type=int, default=1_000_000, help="identifiers (default %(default)s)")
    parser.add_argument(
        "--corpus", choices=corpora.NAMES, default=corpora.real_or_made("hathitrust"), help="default %(default)s"
    )
    parser.add_argument("--record", action="store_true", help="keep the tables in benchmarks/record/")
    parser.add_argument("--note", help="what else a reader of the record must know")
    options = parser.parse_args()
    if _kernels.active.NAME != "native":
        sys.exit("ratios are of the native implementation, which is not built")
    gc.disable()
    report = Report(f"Ratios to yardsticks of the same process: {options.corpus}")
    if options.note:
        report.say(f"Note: {options.note}", "")
    corpus = corpora.load(options.corpus, options.count, "drawn")
    report.say(f"{len(corpus.ids):,} identifiers, {corpus.octets() / len(corpus.ids):.1f} bytes each: {corpus.origin}.")
    report.say("One thread; ratio = best time of the subject / best time of the yardstick.", "")
    layouts_table(report, corpus)
    if doors.has_arrow():
        report.say("The Arrow door's output (paths and offsets) against copies of as many bytes:", "")
        memory_table(report, corpus)
    report.say("Two threads against one:", "")
    threads_table(report, corpora.load(corpus.name, options.count * THREAD_FACTOR, "drawn"))
    report.finish()
    if options.record:
        report.keep()


if __name__ == "__main__":
    main()
