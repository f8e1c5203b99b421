"""Hash and verify a million small files: memory, and files per second.

The files have 1 to 2 KiB and stay in the folder (build/million) for the next run: 4 GB of disk and a million inodes.
Each command has a process of its own. The first one also brings the files into the page cache, as far as they fit.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.corpora.files import write_files
from benchmarks.processes import our_environment
from benchmarks.processes import run as run_process
from benchmarks.report import Report

COUNT = 1_000_000
MOST_MEMORY = 200e6  # bytes


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--threads", type=int, default=0)


def run(options: argparse.Namespace, report: Report) -> dict[str, Any]:
    folder = options.folder or Path("build/million")
    count = options.count
    files, manifest = folder.resolve() / f"files-{count}", folder.resolve() / "manifest"
    folder.mkdir(parents=True, exist_ok=True)
    if not files.exists():
        free = os.statvfs(folder).f_favail
        if free < 1.1 * count:
            raise SystemExit(f"{folder}: {count:,} inodes needed, {free:,} free")
        write_files(files, sizes(count))
    total = sum(sizes(count))
    report.print(f"{count:,} files of 1 to 2 KiB, {total / 1e6:,.0f} MB; {options.threads or 'all'} threads.", "")
    report.heads("command", "s", "CPU s", "files/s", "CPU us / file", "max RSS MB", "< 200 MB")
    hashing = ["hash", str(files), "-a", "sha512", "-o"]
    with_ledger = [*hashing, os.devnull, "--ledger", str(folder / "ledger")]
    facts = {}
    for name, arguments in (
        ("hash", [*hashing, str(manifest)]),
        ("hash --ledger", with_ledger),
        ("hash --ledger, again", with_ledger),
        ("verify --root", ["verify", str(manifest), "--root", str(files)]),
    ):
        if arguments[0] == "verify":
            make_relative(manifest, files)
        command = [sys.executable, "-m", "pressmark", *arguments, "--threads", str(options.threads), "--no-progress"]
        cost = run_process(command, our_environment()).cost
        facts[name] = cost._asdict()
        report.row(
            name,
            f"{cost.seconds:,.1f}",
            f"{cost.cpu:,.1f}",
            f"{count / cost.seconds:,.0f}",
            f"{1e6 * cost.cpu / count:.1f}",
            f"{cost.max_rss / 1e6:.1f}",
            "yes" if cost.max_rss < MOST_MEMORY else "NO",
        )
    (folder / "ledger").unlink()
    return {"files": count, "bytes": total, "commands": facts}


def sizes(count: int) -> Iterator[int]:
    draw = random.Random(1)
    return (draw.randrange(1024, 2049) for _ in range(count))


def make_relative(manifest: Path, files: Path) -> None:
    """Rewrite the manifest with paths relative to ``files``."""
    begin = os.fsencode(files) + b"/"
    with manifest.open("rb") as old, manifest.with_suffix(".new").open("wb") as new:
        for line in old:
            new.write(line.replace(begin, b"", 1))
    manifest.with_suffix(".new").replace(manifest)
