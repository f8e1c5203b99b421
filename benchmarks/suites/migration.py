"""Migrate a Pairtree into an OCFL root, and that root to another layout, next to cp -r and sha512sum.

Creates a Pairtree of --count objects of two small files, from HathiTrust identifiers if PRESSMARK_CORPORA has them.
Each round runs, in turn and after earlier writes are on the disk:

- ``cp -r`` of the tree, ``sync`` and ``sha512sum`` of the copy: common practice, without a layout or a check;
- the migration into an OCFL root of layout 0003;
- the migration of that root to layout 0004 by renaming.

The rate of a migration is that of its run, from the first chunk to the merged report, with everything flushed to the
disk, as the copy of cp is. The plan is timed separately.

An OCFL object of two small files is seven files, a page each: on a file system in memory the migration needs more than
three times the pages of cp. Virtual machines may return free memory and get it back slowly, so the time to write a
gibibyte is measured before and after the rounds. On a disk, the files of all rounds stay until the end: ext4 gives no
new file the inode of one that was removed in the last 35 seconds, and searches several times as long as it writes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.corpora.pairtrees import identifiers, make
from benchmarks.report import Report
from benchmarks.timing import Cost

COUNT, RUNS = 89_067, 2
SHARE, RENAMES, MEMORY = 0.7, 5_000, 300 << 20
COPY, INTO, RELAYOUT = "cp -r and sha512sum", "Pairtree to OCFL 0003", "OCFL 0003 to 0004 by rename"

# Prints the seconds of plan and run, and the counts by status and by mode.
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


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--workers", type=int, default=2)


def run(options: argparse.Namespace, report: Report) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="migrate-", dir=options.folder))
    try:
        ids = identifiers(options.count)
        make(folder / "pairtree", ids)
        return measure(report, options, folder, len(ids))
    finally:
        shutil.rmtree(folder)


def measure(report: Report, options: argparse.Namespace, folder: Path, count: int) -> dict[str, Any]:
    """Run the rounds and print the table."""
    tree = folder / "pairtree"
    before = gibibyte(folder)
    kind = subprocess.run(
        ["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=False
    ).stdout.strip()
    copy, into, relayout = [], [], []
    for number in range(options.runs):
        made = folder / str(number)
        made.mkdir()
        copy.append(copied(tree, made / "copy"))
        if kind == "tmpfs":
            shutil.rmtree(made / "copy")
        into.append(migrated(tree, made / "root", "0003", options.workers, count, False))
        relayout.append(migrated(made / "root", made / "other", "0004", options.workers, count, True))
        if kind == "tmpfs":
            shutil.rmtree(made)
    after = gibibyte(folder)
    report.print(
        f"{count:,} objects of two files, {options.workers} workers, best of {options.runs}, on {kind};"
        f" a GiB was written in {before:.1f} s before the rounds and in {after:.1f} s after them.",
        "",
    )
    yardstick = min(cost.seconds for cost in copy)
    rows = [(COPY, f"{yardstick:.2f}", f"{count / yardstick:,.0f}", "1.00", "", "", "")]
    for name, costs, least in ((INTO, into, SHARE * count / yardstick), (RELAYOUT, relayout, RENAMES)):
        cost = min(costs)
        met = count / cost.seconds >= least and cost.max_rss < MEMORY
        wanted = f"≥ {least:,.0f}/s, < {MEMORY >> 20} MB: {'met' if met else 'NOT met'}"
        figures = (f"{cost.seconds:.2f}", f"{count / cost.seconds:,.0f}", f"{yardstick / cost.seconds:.2f}")
        rows.append((name, *figures, f"{cost.whole - cost.seconds:.2f}", f"{cost.max_rss >> 20}", wanted))
    report.table(("", "s", "objects/s", "times cp + sha512sum", "plan and start s", "MB", " wanted"), rows)
    names = ((COPY, copy), (INTO, into), (RELAYOUT, relayout))
    return {"objects": count, **{name: [cost._asdict() for cost in costs] for name, costs in names}}


def migrated(source: Path, destination: Path, layout: str, workers: int, count: int, move: bool) -> Cost:
    """Migrate in a process of its own."""
    script = destination.with_name("migration.py")
    script.write_text(_MIGRATION)
    os.sync()
    arguments = [source, destination, layout, str(workers), "move" if move else "copy"]
    measured = processes.python_script(script, *arguments)
    _plan, seconds, by_status, by_mode = json.loads(measured.output)
    assert by_status == {"ok": count}, by_status
    assert set(by_mode) == {"rename"} if move else set(by_mode) <= {"copy", "reflink"}, by_mode
    return measured.cost._replace(seconds=seconds)


def copied(source: Path, target: Path) -> Cost:
    """Run cp -r, sync and sha512sum."""
    os.sync()
    command = 'cp -r "$0" "$1" && sync && find "$1" -type f -print0 | xargs -0 sha512sum >/dev/null'
    return processes.run(["sh", "-c", command, source, target]).cost


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
