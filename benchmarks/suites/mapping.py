"""Map identifiers: ratios to yardsticks, gains by threads, and a check of every path.

Yardsticks, in the same process and on the same identifiers: "upper" is ``list(map(str.upper, ids))``; "md5", "sha256"
and "sha512" are ``[hashlib.sha256(i.encode()).hexdigest() for i in ids]`` with that digest; "memcpy" copies the bytes
of the paths and their offsets into allocated memory, and "new copy" into memory that the system must first provide, as
the Arrow output needs. Ratio: best time of the subject divided by best time of the yardstick.

--check maps every corpus with every layout and both implementations, from lists, lines and Arrow columns, on one thread
and on two, and compares all paths with checksums.json. --all adds the times to that.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import hashlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchmarks import checksums, corpora
from benchmarks.cases import CASES, Case, Collection, pairs
from benchmarks.inputs import INPUTS, Input, checksum
from benchmarks.report import Report, verdict
from benchmarks.timing import Times, take_turns, timed
from pressmark import _kernels

COUNT, RUNS = 1_000_000, 9
SECONDS = 2.0
THREAD_RUNS = 5
THREAD_FACTOR = 10  # times --count, where two threads are compared with one


class Row(NamedTuple):
    """A subject, its yardstick, and the target ratio on a machine with AVX-512."""

    case: str
    kind: str
    yardstick: str
    target: float | None = None
    implementation: str = "native"


ROWS = (
    Row("pairtree", "list", "upper", 1.0),
    Row("pairtree", "arrow", "upper", 0.25),
    Row("pairtree", "lines", "upper"),
    Row("pairtree", "list", "upper", None, "pure"),
    *(Row(case, kind, "upper") for case in ("vitro", "0002", "0006", "0007") for kind in ("list", "arrow")),
    Row("0011", "list", "upper", 3.0),
    Row("0011", "arrow", "upper"),
    Row("0011-encode", "list", "upper"),
    Row("0011-encode", "arrow", "upper"),
    Row("0003-sha256", "list", "sha256", 0.35),
    Row("0003-sha256", "arrow", "sha256", 0.15),
    Row("0003-sha256", "lines", "sha256"),
    Row("0003-sha256", "list", "sha256", None, "pure"),
    *(Row(f"0003-{digest}", kind, digest) for digest in ("md5", "sha512") for kind in ("list", "arrow")),
    *(Row(case, kind, "sha256") for case in ("0004", "0012") for kind in ("list", "arrow")),
)
# Identifiers per second: twice the rate of a straightforward Python loop.
PURE_PAIRTREE_RATE = 400_000


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpus", choices=corpora.NAMES, default=corpora.real_or_made("hathitrust"))
    parser.add_argument("--check", action="store_true", help="only compare every path with checksums.json")
    parser.add_argument("--all", action="store_true", help="compare every path with checksums.json, with times")
    parser.add_argument("--size", type=int, default=checksums.COUNT, help="identifiers in a batch of --check and --all")
    parser.add_argument("--write-checksums", action="store_true", help="write checksums.json and exit")


def run(options: argparse.Namespace, report: Report) -> None:
    if options.write_checksums:
        checksums.write()
    elif options.check or options.all:
        check(report, options.size, options.runs if options.all else 0)
    else:
        ratios(report, options)


def check(report: Report, size: int, runs: int) -> None:
    """Compare the paths of all cases and inputs; with ``runs``, print the times."""
    if size == checksums.COUNT:
        for key in checksums.stale():
            report.fail(f"checksums.json: {key} is stale")
    available = [(case, found) for case, found in pairs() if corpora.available(found.corpus)]
    threads = [(case, Collection("druid" if case.name == "0010" else "hathitrust")) for case in CASES.values()]
    if runs:
        report.heads("layout", " corpus", " implementation", " input", "threads", "refused", "ids/s", "MB/s out")
    done = 0
    for name in _kernels.IMPLEMENTATIONS:
        with checksums.implementation(name):
            for workers, subjects, count in (
                (1, available, size),
                (2, threads, 20 * size if name == "native" else size),
            ):
                for case, collection in subjects:
                    for kind in INPUTS.values():
                        if workers == 1 or kind.threaded:
                            cells = check_one(report, case, collection, kind, workers, count, runs)
                            done += 1
                            if runs:
                                report.row(case.name, collection.name, name, kind.name, str(workers), *cells)
    report.print(f"{done} mappings compared with the checksums of the pure implementation.", "")


def check_one(
    report: Report, case: Case, collection: Collection, kind: Input, threads: int, count: int, runs: int
) -> list[str]:
    """Compare the paths of one mapping, and return the cells of its row."""
    corpus = collection.load(count)
    layout, prepared = case.make(corpus.delimiter), kind.prepare(corpus.ids)
    wanted = checksums.expected(case.name, collection, count)
    if checksum(kind.paths(kind.run(layout, prepared, threads))) != wanted.sha256:
        report.fail(f"{case.name} on {collection.name}, {kind.name}, {threads} threads, {_kernels.active.NAME}")
    if not runs:
        return []
    action = functools.partial(kind.run, layout, prepared, threads)
    seconds = take_turns({"ours": timed(action)}, runs if _kernels.active.NAME == "native" else 3).best("ours").seconds
    return [str(wanted.failed), f"{count / seconds:,.0f}", f"{wanted.octets / seconds / 1e6:.1f}"]


def ratios(report: Report, options: argparse.Namespace) -> None:
    """Print the three tables of ratios."""
    if _kernels.active.NAME != "native":
        raise SystemExit("the native implementation is not built, and its ratios are what this suite measures")
    gc.disable()
    corpus = corpora.load(options.corpus, options.count, "drawn")
    report.print(
        f"{len(corpus.ids):,} identifiers, {corpus.octets() / len(corpus.ids):.1f} bytes each: {corpus.origin}."
    )
    report.print("One thread.", "")
    heads = ("subject", "ns/id", "M ids/s", "yardstick ns/id", "ratio", "median", " yardstick", " wanted")
    report.table(heads, list(layout_rows(corpus, options.runs)))
    report.print("The Arrow output (paths and offsets) compared with copies of as many bytes:", "")
    heads = ("subject", "MB out", "GB/s", "copy GB/s", "share", "median", " yardstick", " wanted")
    report.table(heads, list(memory_rows(corpus, options.runs)))
    report.print("Two threads compared with one:", "")
    corpus = corpora.load(corpus.name, options.count * THREAD_FACTOR, "drawn")
    heads = ("subject", "ids", "one: M ids/s", "two: M ids/s", "gain", "median", " wanted")
    report.table(heads, list(thread_rows(corpus, options.runs)))


def beside(subject: Callable[[], Any], yardstick: Callable[[], Any], runs: int) -> Times:
    """Time the subject and the yardstick in turn."""
    subjects = {"subject": timed(subject), "yardstick": timed(yardstick)}
    return take_turns(subjects, runs, SECONDS if runs > 1 else 0, warm_up=True)


def layout_rows(corpus: corpora.Corpus, runs: int) -> Iterator[tuple[str, ...]]:
    """Measure every row of ``ROWS``."""
    ids, count = corpus.ids, len(corpus.ids)

    def digests(algorithm: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: [algorithm(identifier.encode()).hexdigest() for identifier in ids]

    yardsticks: dict[str, Callable[[], Any]] = {"upper": lambda: list(map(str.upper, ids))}
    yardsticks |= {name: digests(getattr(hashlib, name)) for name in ("md5", "sha256", "sha512")}
    prepared = {name: kind.prepare(ids) for name, kind in INPUTS.items()}
    for row in ROWS:
        pure = row.implementation == "pure"
        with checksums.implementation(row.implementation):
            layout = CASES[row.case].make(corpus.delimiter)
            action = functools.partial(INPUTS[row.kind].run, layout, prepared[row.kind], 1)
            times = beside(action, yardsticks[row.yardstick], 3 if pure else runs)
        subject, yardstick = times.best("subject").seconds, times.best("yardstick").seconds
        wanted = verdict(subject / yardstick, row.target)
        if pure and row.case == "pairtree":
            wanted = verdict(count / subject, PURE_PAIRTREE_RATE, at_least=True)
        yield (
            f"{row.case} {row.kind}{', pure' if pure else ''}",
            f"{subject / count * 1e9:.1f}",
            f"{count / subject / 1e6:.2f}",
            f"{yardstick / count * 1e9:.0f}",
            f"{subject / yardstick:.3f}",
            f"{times.median('subject', 'yardstick'):.3f}",
            row.yardstick,
            wanted,
        )


def memory_rows(corpus: corpora.Corpus, runs: int) -> Iterator[tuple[str, ...]]:
    """Measure the bytes per second of the Arrow output and of copies of the same size."""
    kind = INPUTS["arrow"]
    column = kind.prepare(corpus.ids)
    for name in ("pairtree", "0003-sha256"):
        layout = CASES[name].make(corpus.delimiter)
        size = sum(map(len, kind.paths(kind.run(layout, column, 1)))) + 8 * (len(corpus.ids) + 1)
        source, warm = ctypes.create_string_buffer(b"x" * size, size), ctypes.create_string_buffer(size)
        for label, copy in (
            ("memcpy", functools.partial(ctypes.memmove, warm, source, size)),
            ("new copy", functools.partial(bytes, memoryview(source))),
        ):
            times = beside(functools.partial(kind.run, layout, column, 1), copy, runs)
            share = times.ratio("yardstick", "subject")
            yield (
                f"{name} arrow",
                f"{size / 1e6:.0f}",
                f"{size / times.best('subject').seconds / 1e9:.2f}",
                f"{size / times.best('yardstick').seconds / 1e9:.2f}",
                f"{share:.3f}",
                f"{times.median('yardstick', 'subject'):.3f}",
                label,
                verdict(share, 0.333, at_least=True) if name == "pairtree" and label == "memcpy" else "",
            )


def thread_rows(corpus: corpora.Corpus, runs: int) -> Iterator[tuple[str, ...]]:
    """Measure the gain by a second thread."""
    count = len(corpus.ids)
    for name in ("pairtree", "0003-sha256"):
        layout = CASES[name].make(corpus.delimiter)
        for kind in (INPUTS["arrow"], INPUTS["lines"]):
            prepared = kind.prepare(corpus.ids)
            run_with = functools.partial(functools.partial, kind.run, layout, prepared)
            times = beside(run_with(2), run_with(1), min(runs, THREAD_RUNS))
            gain = times.ratio("yardstick", "subject")
            yield (
                f"{name} {kind.name}",
                f"{count:,}",
                f"{count / times.best('yardstick').seconds / 1e6:.1f}",
                f"{count / times.best('subject').seconds / 1e6:.1f}",
                f"{gain:.2f}",
                f"{times.median('yardstick', 'subject'):.2f}",
                verdict(gain, 1.7, at_least=True) if kind.name == "arrow" else "",
            )
