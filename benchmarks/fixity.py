"""Digests of files: ratios to hashlib with a thread pool of the same size, in the same run, files in the page cache.

    python benchmarks/fixity.py [--threads 2] [--runs 3] [--folder /tmp] [--shape medium] [--peers] [algorithms ...]

A line is a set of algorithms (``sha512,md5``) on a shape of files. "hashlib" is ``hashlib.file_digest`` (for the
packages the same over their objects) under a ``ThreadPoolExecutor``, one pass for each algorithm. Every time is the
best of several runs, ours and theirs in turn. PRESSMARK_SIMD forces a vector level.

With --peers also the command line tools that are installed, each on as many processes or threads (Debian: coreutils,
openssl, hashdeep, rhash, b3sum, xxhash).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pressmark
from pressmark import _kernels
from pressmark.fixity import ALGORITHMS, algorithm_names, hash_files, walk

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# Sizes of the files of each shape, in bytes.
SHAPES: dict[str, Callable[[], list[int]]] = {
    "small": lambda: [4 * KIB] * 20_000,
    "medium": lambda: [MIB] * 1_000,
    "large": lambda: [128 * MIB] * 8,
    "huge": lambda: [2 * GIB],
    "mixed": lambda: mixed_sizes(),
}
DEFAULT = (
    *("sha512", "md5", "sha256", "sha1", "sha384", "blake2b-512", "blake3", "xxh128", "sha3-256"),
    *("sha512,md5", "sha256,md5", "sha512,sha256,md5", "sha512,blake3"),
)
# Commands that hash the files whose names xargs hands them; {jobs} is the number of processes or threads.
PEERS = {
    "sha512": {
        "sha512sum": "xargs -0 -n {share} -P {jobs} sha512sum",
        "openssl": "xargs -0 -n {share} -P {jobs} openssl dgst -sha512 -r",
        "rhash": "xargs -0 -n {share} -P {jobs} rhash --sha512",
    },
    "sha256": {
        "sha256sum": "xargs -0 -n {share} -P {jobs} sha256sum",
        "openssl": "xargs -0 -n {share} -P {jobs} openssl dgst -sha256 -r",
        "hashdeep": "xargs -0 -n 100000 hashdeep -c sha256 -j {jobs}",
        "rhash": "xargs -0 -n {share} -P {jobs} rhash --sha256",
    },
    "md5": {
        "md5sum": "xargs -0 -n {share} -P {jobs} md5sum",
        "openssl": "xargs -0 -n {share} -P {jobs} openssl dgst -md5 -r",
        "hashdeep": "xargs -0 -n 100000 hashdeep -c md5 -j {jobs}",
    },
    "blake3": {"b3sum": "xargs -0 -n 100000 b3sum --num-threads {jobs}"},
    "xxh128": {"xxhsum": "xargs -0 -n {share} -P {jobs} xxhsum -H2"},
}


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
    share = max(1, -(-len(paths) // threads))
    share = min(share, 2000)
    words = command.format(jobs=threads, share=share).split()
    subprocess.run(words, input=b"\0".join(map(os.fsencode, paths)), stdout=subprocess.DEVNULL, check=True)


def timed(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def measure(paths: list[str], size: int, combination: str, threads: int, runs: int, peers: bool) -> str:
    names = algorithm_names(combination.split(","))
    actions: dict[str, Callable[[], object]] = {
        "ours": lambda: with_pressmark(paths, names, threads),
        "hashlib": lambda: [with_hashlib(paths, name, threads) for name in names],
    }
    if peers and len(names) == 1:
        for peer, command in PEERS.get(names[0], {}).items():
            if shutil.which(peer):
                actions[peer] = lambda command=command: with_peer(paths, command, threads)
    times: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(runs):
        for name, action in actions.items():
            times[name].append(timed(action))
    best = {name: min(found) for name, found in times.items()}
    ours = best["ours"]
    others = ", ".join(f"{name} {best[name] / ours:.2f} x" for name in best if name not in ("ours", "hashlib"))
    return (
        f"| {combination} | {ours:.3f} | {size / ours / 1e9:.2f} | {len(paths) / ours:,.0f} | {best['hashlib']:.3f} |"
        f" **{best['hashlib'] / ours:.2f}** | {others} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithms", nargs="*", default=DEFAULT)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made; they are removed again")
    parser.add_argument("--shape", action="append", choices=list(SHAPES))
    parser.add_argument("--peers", action="store_true")
    call = parser.parse_args()
    print(
        f"pressmark {pressmark.__version__} ({pressmark.implementation}, {_kernels.active.lane_level()}),"
        f" Python {platform.python_version()}, {call.threads} threads, best of {call.runs}"
    )
    for shape in call.shape or SHAPES:
        with tempfile.TemporaryDirectory(dir=call.folder) as folder:
            sizes = SHAPES[shape]()
            paths = make(Path(folder), sizes)
            assert len(list(walk(folder))) == len(paths)
            # Written pages go to the disk now and not while somebody is measured.
            os.sync()
            print(f"\n## {shape}: {len(sizes):,} files, {sum(sizes) / 1e6:,.0f} MB\n")
            print("| algorithms | s | GB/s | files/s | hashlib s | times hashlib | the others' times |")
            print("|---|---|---|---|---|---|---|")
            for combination in call.algorithms:
                print(measure(paths, sum(sizes), combination, call.threads, call.runs, call.peers))
                sys.stdout.flush()


if __name__ == "__main__":
    main()
