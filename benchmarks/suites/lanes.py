"""Measure the vector lanes alone: short messages per second, and GB/s on long ones, next to hashlib on one core."""

from __future__ import annotations

import argparse
import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from benchmarks.timing import take_turns, timed

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "native_lanes"))

from lanes_library import ALGORITHMS, LEVELS, Bank, Lengths, Pointers, build, packed, reference

COUNT, RUNS = 100_000, 7
SHORT = 26  # bytes: an identifier of the large corpora, such as uc1.ark:/13960/t0000a00a
LONG = 256 << 10  # bytes per lane
TURNS = 8


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("algorithms", nargs="*", default=ALGORITHMS, metavar="algorithm")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--core", type=int, default=0)


def run(options: argparse.Namespace, report: Report) -> None:
    os.sched_setaffinity(0, {options.core})
    library = build(options.compiler, ("-O3",), tempfile.mkdtemp(prefix="lanes-"))
    levels = range(library.pm_best_level() + 1)
    names = [LEVELS[level] for level in levels]
    short = [b"uc1.ark:/13960/t%010d" % index for index in range(options.count)]
    assert {len(message) for message in short} == {SHORT}
    # Lengths 15 to 120, evenly spread: one and two blocks, three quarters of neighbours unequal.
    mixed = [bytes([65 + index % 26]) * (15 + index * 7919 % 106) for index in range(options.count)]
    columns = [f"M/s 26 B: {name}" for name in ("hashlib", *names)] + [f"M/s 15-120 B: {name}" for name in names]
    report.heads("algorithm", *columns, *(f"GB/s: {name}" for name in ("hashlib", *names)))
    for name in options.algorithms:
        algorithm = ALGORITHMS.index(name)
        hashed = reference(name)
        some = short[:20_000]
        data = os.urandom(LONG)
        running = hashed()
        rates = [len(some) / best(lambda: [hashed(one).digest() for one in some], options.runs) / 1e6]  # noqa: B023
        for messages in (short, mixed):
            rates += [column_rate(library, level, algorithm, messages, options.runs) for level in levels]
        seconds = best(lambda: [running.update(data) for _ in range(64)], options.runs)  # noqa: B023
        rates.append(LONG * 64 / seconds / 1e9)
        rates += [bank_rate(library, level, algorithm, options.runs) for level in levels]
        report.row(name, *(f"{rate:.2f}" for rate in rates))


def best(action: Callable[[], Any], runs: int) -> float:
    """Return the seconds of the fastest run."""
    return take_turns({"lanes": timed(action)}, runs).best("lanes").seconds


def column_rate(library: Any, level: int, algorithm: int, messages: Sequence[bytes], runs: int) -> float:
    """Return the rate in millions of messages per second."""
    data, offsets = packed(messages)
    size = library.pm_digest_size(algorithm)
    out = ctypes.create_string_buffer(size * len(messages))
    count = ctypes.c_int64(len(messages))
    seconds = best(lambda: library.pm_digest_column(level, algorithm, data, offsets, count, out), runs)
    hashed = reference(ALGORITHMS[algorithm])
    for index in (0, 1, len(messages) // 2, len(messages) - 1):
        assert out.raw[index * size : (index + 1) * size] == hashed(messages[index]).digest()
    return len(messages) / seconds / 1e6


def bank_rate(library: Any, level: int, algorithm: int, runs: int) -> float:
    """Return the rate in GB/s on long messages, one per lane."""
    bank = Bank(library, level, algorithm)
    pieces = [os.urandom(LONG) for _ in range(bank.lanes)]
    pointers, lengths = Pointers(*pieces), Lengths(*map(len, pieces))

    def stream() -> None:
        for _ in range(TURNS):
            library.pm_bank_update(bank.address, pointers, lengths)
        bank.finish_many(range(bank.lanes))

    return bank.lanes * LONG * TURNS / best(stream, runs) / 1e9
