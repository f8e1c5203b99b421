"""Five layouts compared on millions of identifiers: time and memory, beside a DuckDB query that only groups and counts.

    python benchmarks/compare.py [COUNT] [--folder build/compare] [--record]

Identifiers are drawn in the shapes of HathiTrust's, some of them twice. The comparison reads them from a file of lines.
DuckDB gets the paths of each layout, mapped before, as Parquet, and answers one question of the twenty: how many share
their path with another. Each has a process of its own; the answers must be the same.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import machine
import pressmark
from pressmark.compare import compare
from report import Report

MOST_MEMORY = 1e9  # bytes that were agreed
BLOCK = 1 << 18

LAYOUTS = {
    "pairtree": pressmark.layout("pairtree"),
    "0003": pressmark.layout("0003"),
    "0003 2x2": pressmark.layout("0003", tuple_size=2, number_of_tuples=2),
    "0012 .": pressmark.layout("0012", delimiters=["."]),
    "0002": pressmark.layout("0002"),
}


def write_identifiers(file: Path, count: int) -> None:
    """Write as many lines, unless they are there."""
    if file.exists():
        return
    draw = random.Random(3)
    with file.with_suffix(".new").open("wb") as lines:
        for start in range(0, count, BLOCK):
            numbers = [draw.randrange(1 << 40) for _ in range(min(BLOCK, count - start))]
            lines.write(b"".join(_identifier(number) for number in numbers))
    file.with_suffix(".new").rename(file)


def _identifier(number: int) -> bytes:
    kind = number % 4
    if kind == 0:
        return b"uc1.ark:/13960/t%09x\n" % (number >> 4)
    if kind == 1:
        # Parts of works: under 0012 those of the same number share a path.
        return b"miun.aje%07d.%04d.001\n" % (number % 10**7, number % 9973)
    return b"mdp.39015%010d\n" % (number % 10**10)


# --- what runs in processes of their own ------------------------------------------------------------------------------


def run_ours(folder: Path, memory: int) -> dict[str, Any]:
    """Compare."""
    begin = time.perf_counter()
    found = compare(folder / "ids.txt", list(LAYOUTS.values()), names=list(LAYOUTS), memory=memory, folder=folder)
    return {
        "seconds": time.perf_counter() - begin,
        "spilled": found.spilled,
        "threads": found.threads,
        "shared": {one.name: one.collisions.equal for one in found.layouts},
        "directories": {one.name: one.directories.total for one in found.layouts},
        "mapping": {one.name: one.throughput.seconds for one in found.layouts},
    }


def run_paths(folder: Path) -> dict[str, Any]:
    """Write the paths of every layout as Parquet."""
    import pyarrow
    import pyarrow.parquet

    begin = time.perf_counter()
    schema = pyarrow.schema([("path", pyarrow.large_string())])
    writers = {name: pyarrow.parquet.ParquetWriter(_parquet(folder, name), schema) for name in LAYOUTS}
    with (folder / "ids.txt").open("rb") as file:
        while lines := file.readlines(BLOCK * 24):
            ids = pyarrow.array([line[:-1] for line in lines], pyarrow.large_binary())
            for name, writer in writers.items():
                paths = pyarrow.chunked_array(LAYOUTS[name].map_arrow(ids))
                writer.write_table(pyarrow.table([paths], schema=schema))
    for writer in writers.values():
        writer.close()
    return {"seconds": time.perf_counter() - begin}


def run_duckdb(folder: Path) -> dict[str, Any]:
    """Group and count."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "900MB", "temp_directory": str(folder / "duckdb")})
    begin = time.perf_counter()
    shared = {}
    for name in LAYOUTS:
        query = "select coalesce(sum(n), 0) from (select count(*) n from read_parquet(?) group by path having n > 1)"
        (answer,) = connection.execute(query, [str(_parquet(folder, name))]).fetchone()
        shared[name] = int(answer)
    return {"seconds": time.perf_counter() - begin, "shared": shared, "version": duckdb.__version__}


def _parquet(folder: Path, name: str) -> Path:
    return folder / f"{''.join(filter(str.isalnum, name))}.parquet"


# --- the table --------------------------------------------------------------------------------------------------------


def alone(what: str, folder: Path, memory: int) -> dict[str, Any]:
    """Run one of the three in a process, and return what it says with its own use of memory."""
    command = [sys.executable, __file__, "--run", what, "--folder", str(folder), "--memory", str(memory)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=10_000_000, help="identifiers")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parents[1] / "build" / "compare")
    parser.add_argument("--memory", type=int, default=256 << 20, help="octets that sorting may take")
    parser.add_argument("--record", action="store_true", help="keep the table under benchmarks/record/")
    parser.add_argument("--note", help="a remark for the record: was the machine quiet?")
    parser.add_argument("--run", choices=("ours", "paths", "duckdb"), help=argparse.SUPPRESS)
    call = parser.parse_args()
    if call.run:
        found = {"ours": lambda: run_ours(call.folder, call.memory), "paths": lambda: run_paths(call.folder)}.get(
            call.run, lambda: run_duckdb(call.folder)
        )()
        used = resource.getrusage(resource.RUSAGE_SELF)
        # Linux says KiB.
        found |= {"max_rss": used.ru_maxrss * 1024, "cpu": used.ru_utime + used.ru_stime}
        print(json.dumps(found))
        return
    folder = call.folder / str(call.count)
    folder.mkdir(parents=True, exist_ok=True)
    report = Report("Layouts compared on many identifiers")
    if call.note:
        report.say(f"Note: {call.note}", "")
    write_identifiers(folder / "ids.txt", call.count)
    found = {what: alone(what, folder, call.memory) for what in ("ours", "paths", "duckdb")}
    ours, theirs = found["ours"], found["duckdb"]
    if ours["shared"] != theirs["shared"]:
        sys.exit(f"identifiers that share their path: {ours['shared']} here, {theirs['shared']} by DuckDB")
    report.say(
        f"{call.count:,} identifiers, {len(LAYOUTS)} layouts, {ours['threads']} threads,"
        f" {call.memory >> 20} MiB to sort in, {ours['spilled'] / 1e6:,.0f} MB of temporary files.",
        "",
        "| what | s | CPU s | ids/s of each layout | max RSS MB | below 1 GB |",
        "|---|---:|---:|---:|---:|---|",
    )
    names = {
        "ours": "compare: all numbers, from identifiers",
        "paths": "mapping to Parquet, for DuckDB",
        "duckdb": f"DuckDB {theirs['version']}: groups and counts equal paths",
    }
    for what, one in found.items():
        rate = call.count * len(LAYOUTS) / one["seconds"]
        below = "yes" if one["max_rss"] < MOST_MEMORY else "NO"
        report.say(
            f"| {names[what]} | {one['seconds']:.1f} | {one['cpu']:.1f} | {rate:,.0f} | {one['max_rss'] / 1e6:,.0f} |"
            f" {below if what == 'ours' else ''} |"
        )
    report.say("", f"Identifiers that share their path, by both: {ours['shared']}.", "")
    report.finish()
    if call.record:
        path = report.keep()
        facts = {"machine": dict(machine.describe()), "identifiers": call.count, **found}
        path.with_name(f"{path.stem}-compare.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
