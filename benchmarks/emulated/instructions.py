"""Count the instructions per byte of the digests, under qemu with count_instructions.c: see ci/emulate.

Prints a table in Markdown: the lanes at each level of this processor, and hashlib (OpenSSL's routines), without and
with the instructions that the processor has for digests.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "native_lanes"))

from lanes_library import ALGORITHMS, LEVELS, Bank, Lengths, Pointers, build, reference

NAMES = ("md5", "sha1", "sha256", "sha512", "blake2b-512")
SIZES = 1 << 14, 3 << 14  # bytes; the difference leaves out what does not depend on the size
# The plugin is in this process, and prints to its standard error.
READER, WRITER = os.pipe()


def executed() -> int:
    """Return the number of instructions of this process until now."""
    os.getppid()
    return int(os.read(READER, 100))


def per_byte(digest: Callable[[int], object], streams: int = 1) -> float:
    """Return the instructions per byte of ``digest``, which hashes so many bytes in each of several streams."""
    counts = []
    for size in SIZES:
        digest(size)
        before = executed()
        digest(size)
        counts.append(executed() - before)
    return (counts[1] - counts[0]) / (SIZES[1] - SIZES[0]) / streams


def of_lanes(library: ctypes.CDLL, level: int, name: str) -> float:
    bank = Bank(library, level, ALGORITHMS.index(name))
    data = os.urandom(max(SIZES))
    pointers = Pointers(*[data] * bank.lanes)
    return per_byte(
        lambda size: library.pm_bank_update(bank.address, pointers, Lengths(*[size] * bank.lanes)), bank.lanes
    )


def of_hashlib(name: str) -> float:
    data = memoryview(os.urandom(max(SIZES)))
    running = reference(name)()
    return per_byte(lambda size: running.update(data[:size]))


def main() -> None:
    errors = os.dup(2)
    os.dup2(WRITER, 2)
    if sys.argv[1:] == ["hashlib"]:
        print(json.dumps([of_hashlib(name) for name in NAMES]))
        return
    others = []
    for environment in ({"OPENSSL_armcap": "0"}, {}):
        command = [sys.executable, __file__, "hashlib"]
        done = subprocess.run(command, env=os.environ | environment, stdout=subprocess.PIPE, stderr=errors, check=True)
        others.append(json.loads(done.stdout))
    with tempfile.TemporaryDirectory() as folder:
        library = build(os.environ["CC"], ("-O3",), folder)
    levels = range(library.pm_best_level() + 1)
    print("| instructions per byte |", " | ".join((*LEVELS[: len(levels)], "OpenSSL, base", "OpenSSL, best")), "|")
    print("|---|" + "--:|" * (len(levels) + 2))
    for index, name in enumerate(NAMES):
        counts = [of_lanes(library, level, name) for level in levels] + [other[index] for other in others]
        print(f"| {name} |", " | ".join(f"{count:.1f}" for count in counts), "|")


main()
