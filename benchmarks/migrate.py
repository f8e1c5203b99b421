"""Migrating a Pairtree into an OCFL root, and that root into another layout: beside cp -r and sha512sum, in one run.

    python benchmarks/migrate.py [COUNT] [--folder /dev/shm] [--workers 2] [--runs 2] [--record] [--note TEXT]

Makes a Pairtree of COUNT (89,067) objects of two small files each, from HathiTrust's identifiers where
PRESSMARK_CORPORA has them. In each round, after one another and after what was written before is on the disk:

- ``cp -r`` of the tree, and ``sha512sum`` of the files of the copy: what people do, without any layout or check;
- the migration into an OCFL root of layout 0003, with as many workers;
- the relayout of that root into 0004 by renaming.

The rate of a migration is that of its run, from the first chunk to the merged report, with everything on the disk; cp
and sha512sum need not wait for the disk. Planning is stated beside it. Every time is the best of the rounds; memory is
the most that all processes of the tree had at a time, pages that they share counted in each.

An OCFL object of two small files is seven files, a page each, so on a file system in memory the migration asks for more
than three times as many pages as cp does. Virtual machines may have given free memory back, and get it again slowly:
what a gibibyte costs is stated, before the rounds and after them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import processes
from report import Report
from stores import identifiers, make

OBJECTS = 89_067
SHARE, RENAMES, MEMORY = 0.7, 5_000, 300 << 20

# Prints the seconds of plan and run, and how many objects had which status, as JSON.
_MIGRATION = """
import json, sys, time
from pressmark import migrate

if __name__ == "__main__":
    source, destination, layout, workers, move = sys.argv[1:]
    begin = time.perf_counter()
    plan = migrate.plan(source, destination, to="ocfl", layout=layout, move=move == "move")
    middle = time.perf_counter()
    run = migrate.run(plan, workers=int(workers))
    print(json.dumps([middle - begin, time.perf_counter() - middle, run.by_status, run.by_mode]))
"""


class Figures(NamedTuple):
    """What one migration took.

    :ivar plan: seconds
    :ivar run: seconds
    :ivar memory: bytes
    """

    plan: float
    run: float
    memory: int


def migrated(source: Path, destination: Path, layout: str, workers: int, count: int, move: bool) -> Figures:
    """Migrate in a process of its own."""
    for path in (destination, destination.with_name(f"{destination.name}.migration")):
        shutil.rmtree(path, ignore_errors=True)
    script = destination.with_name("migration.py")
    script.write_text(_MIGRATION)
    command = [sys.executable, script, source, destination, layout, workers, "move" if move else "copy"]
    os.sync()
    done = processes.run(list(map(str, command)), os.environ)
    if done.status:
        sys.exit(done.errors)
    plan, run, by_status, by_mode = json.loads(done.output)
    assert by_status == {"ok": count}, by_status
    assert set(by_mode) == {"rename"} if move else set(by_mode) <= {"copy", "reflink"}, by_mode
    return Figures(plan, run, done.max_rss)


def copied(source: Path, target: Path) -> tuple[float, float]:
    """Return the seconds of cp -r and of sha512sum."""
    shutil.rmtree(target, ignore_errors=True)
    os.sync()
    begin = time.perf_counter()
    subprocess.run(["cp", "-r", source, target], check=True)
    middle = time.perf_counter()
    with open(os.devnull, "wb") as nowhere:
        find = subprocess.Popen(["find", target, "-type", "f", "-print0"], stdout=subprocess.PIPE)
        subprocess.run(["xargs", "-0", "sha512sum"], stdin=find.stdout, stdout=nowhere, check=True)
    assert find.wait() == 0
    seconds = middle - begin, time.perf_counter() - middle
    shutil.rmtree(target)
    return seconds


def gibibyte(folder: Path) -> float:
    """Return the seconds of writing a gibibyte."""
    path = folder / "gibibyte"
    block = bytes(1 << 20)
    begin = time.perf_counter()
    with path.open("wb", buffering=0) as file:
        for _ in range(1 << 10):
            file.write(block)
    seconds = time.perf_counter() - begin
    path.unlink()
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=OBJECTS)
    parser.add_argument("--folder", type=Path, default=None, help="where everything is made; it is removed again")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--record", action="store_true", help="keep the table under benchmarks/record/")
    parser.add_argument("--note", help="a remark for the record: was the machine quiet?")
    call = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="migrate-", dir=call.folder))
    report = Report("Migration beside cp -r and sha512sum")
    if call.note:
        report.say(f"Note: {call.note}", "")
    try:
        ids = identifiers(call.count)
        make(folder / "pairtree", ids)
        (folder / "pairtree" / "pairtree_prefix").unlink()  # an empty one says nothing
        measure(report, call, folder, len(ids))
    finally:
        shutil.rmtree(folder)
    report.finish()
    if call.record:
        report.keep()


def measure(report: Report, call: Any, folder: Path, count: int) -> None:
    """Run the rounds, and print the table."""
    copies: list[tuple[float, float]] = []
    into: list[Figures] = []
    relayouts: list[Figures] = []
    root, other = folder / "root", folder / "other"
    before = gibibyte(folder)
    for _ in range(call.runs):
        copies.append(copied(folder / "pairtree", folder / "copy"))
        into.append(migrated(folder / "pairtree", root, "0003", call.workers, count, False))
        relayouts.append(migrated(root, other, "0004", call.workers, count, True))
        shutil.rmtree(other)
    after = gibibyte(folder)
    cp, sha = min(copies, key=sum)
    first = min(into, key=lambda one: one.run)
    second = min(relayouts, key=lambda one: one.run)
    yardstick = count / (cp + sha)
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=False
    ).stdout.strip()
    report.say(
        f"{count:,} objects of two files, {call.workers} workers, best of {call.runs}, on {kind}; "
        f"a GiB was written there in {before:.1f} s before the rounds, and in {after:.1f} s after them.",
        "",
    )

    def verdict(met: bool, wanted: str) -> str:
        return f"{wanted}: {'met' if met else 'NOT met'}"

    share = count / first.run / yardstick
    report.table(
        ("", "s", "objects/s", "times cp + sha512sum", "plan s", "MB", " wanted"),
        [
            ("cp -r", f"{cp:.2f}", f"{count / cp:,.0f}", "", "", "", ""),
            ("sha512sum", f"{sha:.2f}", f"{count / sha:,.0f}", "", "", "", ""),
            ("cp -r and sha512sum", f"{cp + sha:.2f}", f"{yardstick:,.0f}", "1.00", "", "", ""),
            (
                "Pairtree to OCFL 0003",
                f"{first.run:.2f}",
                f"{count / first.run:,.0f}",
                f"{share:.2f}",
                f"{first.plan:.2f}",
                f"{first.memory >> 20}",
                verdict(share >= SHARE and first.memory < MEMORY, f"≥ {SHARE}, < {MEMORY >> 20} MB"),
            ),
            (
                "OCFL 0003 to 0004 by rename",
                f"{second.run:.2f}",
                f"{count / second.run:,.0f}",
                f"{count / second.run / yardstick:.2f}",
                f"{second.plan:.2f}",
                f"{second.memory >> 20}",
                verdict(
                    count / second.run >= RENAMES and second.memory < MEMORY, f"≥ {RENAMES:,}/s, < {MEMORY >> 20} MB"
                ),
            ),
        ],
    )


if __name__ == "__main__":
    main()
