"""A million small files through ``pressmark hash`` and ``pressmark verify --root``: memory, and files a second.

    python benchmarks/fixity_million.py [--folder build/million] [--directories 1000] [--files 1000] [--record]

Files have 1 to 2 KiB and are kept in the folder for the next run, four gigabytes of disk and a million inodes; each
command has a process of its own. The first of them also brings the files into the page cache, as far as they fit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from pathlib import Path

import machine
from commands import run_command
from pressmark.threads import resolve_threads
from report import Report

MOST_MEMORY = 200e6  # bytes that were agreed


def make(folder: Path, directories: int, files: int) -> int:
    """Write the files that are not there yet and return the sum of all sizes."""
    draw = random.Random(1)
    block = draw.randbytes(1 << 16)
    total = 0
    for directory in range(directories):
        inside = folder / f"{directory:04}"
        done = inside / f"{files - 1:04}"
        sizes = [draw.randrange(1024, 2049) for _ in range(files)]
        total += sum(sizes)
        if done.exists():
            continue
        inside.mkdir(parents=True, exist_ok=True)
        for number, size in enumerate(sizes):
            begin = (directory * 61 + number * 13) % (len(block) - 2048)
            (inside / f"{number:04}").write_bytes(block[begin : begin + size])
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--directories", type=int, default=1000)
    parser.add_argument("--files", type=int, default=1000, help="of each directory")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "build" / "million")
    parser.add_argument("--record", action="store_true", help="keep the table under benchmarks/record/")
    parser.add_argument("--note", help="a remark for the record: was the machine quiet?")
    call = parser.parse_args()
    files, manifest = call.folder / "files", call.folder / "manifest"
    count, threads = call.directories * call.files, resolve_threads(call.threads)
    call.folder.mkdir(parents=True, exist_ok=True)
    free = os.statvfs(call.folder).f_favail
    if not files.exists() and free < 1.1 * count:
        sys.exit(f"{call.folder}: {free:,} inodes are free, {count:,} are needed")
    report = Report("A million small files")
    if call.note:
        report.say(f"Note: {call.note}", "")
    total = make(files, call.directories, call.files)
    report.say(
        f"{count:,} files of 1 to 2 KiB, {total / 1e6:,.0f} MB, in {call.directories:,} directories; {threads} threads."
    )
    report.say(
        "",
        "| command | s | CPU s | files/s | CPU us / file | max RSS MB | below 200 MB |",
        "|---|---:|---:|---:|---:|---:|---|",
    )
    facts = {}
    hashing = ["hash", str(files), "-a", "sha512", "-o"]
    with_ledger = [*hashing, os.devnull, "--ledger", str(call.folder / "ledger")]
    for name, arguments in (
        ("hash", [*hashing, str(manifest)]),
        ("hash --ledger", with_ledger),
        ("the same again", with_ledger),
        ("verify --root", ["verify", str(manifest), "--root", str(files)]),
    ):
        if arguments[0] == "verify":
            make_relative(manifest, files)
        cost = run_command([*arguments, "--threads", str(threads)])
        if cost.status:
            sys.exit(f"pressmark {name}: ended with {cost.status}")
        facts[name] = cost._asdict()
        report.say(
            f"| {name} | {cost.seconds:,.1f} | {cost.cpu_seconds:,.1f} | {count / cost.seconds:,.0f} |"
            f" {1e6 * cost.cpu_seconds / count:.1f} | {cost.max_rss / 1e6:.1f} |"
            f" {'yes' if cost.max_rss < MOST_MEMORY else 'NO'} |"
        )
    (call.folder / "ledger").unlink()
    report.say("")
    report.finish()
    if call.record:
        path = report.keep()
        facts = {"machine": dict(machine.describe()), "files": count, "bytes": total, "commands": facts}
        path.with_name(f"{path.stem}-fixity-million.json").write_text(json.dumps(facts, indent=1) + "\n")


def make_relative(manifest: Path, files: Path) -> None:
    """Write the manifest again with names below ``files``."""
    begin = os.fsencode(files) + b"/"
    with manifest.open("rb") as old, manifest.with_suffix(".new").open("wb") as new:
        for line in old:
            new.write(line.replace(begin, b"", 1))
    manifest.with_suffix(".new").replace(manifest)


if __name__ == "__main__":
    main()
