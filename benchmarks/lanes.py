"""Figures: million short messages a second and GB/s on long ones, per algorithm and level, beside hashlib on one core.

python benchmarks/lanes.py [--compiler gcc] [--core 0] [algorithm ...]
"""

import argparse
import ctypes
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "native_lanes"))

from lanes_library import ALGORITHMS, LEVELS, Bank, Lengths, Pointers, build, packed, reference

SHORT = 26  # bytes: an identifier of the large corpora, such as uc1.ark:/13960/t0000a00a
MESSAGES = 100_000  # 2.6 MB in, up to 6.4 MB out
LONG = 256 << 10  # bytes a lane
REPEATS = 7


def best(call):
    """The shortest of several runs, in seconds: the others met an interruption."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)


def column_rate(library, level, algorithm, messages):
    data, offsets = packed(messages)
    size = library.pm_digest_size(algorithm)
    out = ctypes.create_string_buffer(size * len(messages))
    count = ctypes.c_int64(len(messages))
    library_call = library.pm_digest_column
    seconds = best(lambda: library_call(level, algorithm, data, offsets, count, out))
    hashed = reference(ALGORITHMS[algorithm])
    for index in (0, 1, len(messages) // 2, len(messages) - 1):
        assert out.raw[index * size : (index + 1) * size] == hashed(messages[index]).digest()
    return len(messages) / seconds / 1e6


def bank_rate(library, level, algorithm, turns=8):
    bank = Bank(library, level, algorithm)
    pieces = [os.urandom(LONG) for _ in range(bank.lanes)]
    pointers, lengths = Pointers(*pieces), Lengths(*map(len, pieces))

    def stream():
        for _ in range(turns):
            library.pm_bank_update(bank.address, pointers, lengths)
        bank.finish_many(range(bank.lanes))

    return bank.lanes * LONG * turns / best(stream) / 1e9


def hashlib_rates(algorithm, messages):
    hashed = reference(algorithm)
    some = messages[:20_000]
    short = len(some) / best(lambda: [hashed(message).digest() for message in some]) / 1e6
    data = os.urandom(LONG)

    def stream():
        running = hashed()
        for _ in range(64):
            running.update(data)

    return short, LONG * 64 / best(stream) / 1e9


def mixed_lengths(count):
    """Lengths 15 .. 120, evenly spread and reproducible: one and two blocks, three quarters of neighbours unequal."""
    return [bytes([65 + index % 26]) * (15 + index * 7919 % 106) for index in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithms", nargs="*", default=ALGORITHMS, metavar="algorithm")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--core", type=int, default=0)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {arguments.core})
    library = build(arguments.compiler, ("-O3",), tempfile.mkdtemp(prefix="lanes-"))
    levels = range(library.pm_best_level() + 1)
    messages = [b"uc1.ark:/13960/t%010d" % index for index in range(MESSAGES)]
    assert {len(message) for message in messages} == {SHORT}
    mixed = mixed_lengths(MESSAGES)
    header = ["hashlib", *(LEVELS[level] for level in levels)]
    print("| algorithm | M/s 26 B: " + " | ".join(header) + " | M/s 15-120 B: " + " | ".join(header[1:]), end="")
    print(" | GB/s: " + " | ".join(header) + " |")
    print("|---" * (3 * len(header)) + "|")
    for name in arguments.algorithms:
        algorithm = ALGORITHMS.index(name)
        short, long = hashlib_rates(name, messages)
        row = [short, *(column_rate(library, level, algorithm, messages) for level in levels)]
        row += [column_rate(library, level, algorithm, mixed) for level in levels]
        row += [long, *(bank_rate(library, level, algorithm) for level in levels)]
        print(f"| {name} | " + " | ".join(f"{figure:.2f}" for figure in row) + " |", flush=True)


if __name__ == "__main__":
    main()
