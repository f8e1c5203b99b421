"""Compare five layouts on millions of identifiers, next to a DuckDB query that only groups and counts.

The identifiers have the shapes of HathiTrust identifiers, and some occur twice. The comparison reads them from a file
of lines. DuckDB reads the paths of each layout from Parquet files and answers one question of twenty: how many
identifiers share their path. Each has a process of its own; the answers must be the same. The identifiers stay in the
folder (build/compare).
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from benchmarks import processes
from benchmarks.report import Report

COUNT = 10_000_000
MOST_MEMORY = 1e9  # bytes
BLOCK = 1 << 18

_LAYOUTS = """
import json, sys, time
from pathlib import Path
import pressmark
folder, memory = Path(sys.argv[1]), int(sys.argv[2])
LAYOUTS = {
    "pairtree": pressmark.layout("pairtree"),
    "0003": pressmark.layout("0003"),
    "0003 2x2": pressmark.layout("0003", tuple_size=2, number_of_tuples=2),
    "0012": pressmark.layout("0012", delimiters=["."]),
    "0002": pressmark.layout("0002"),
}
begin = time.perf_counter()
"""
_OURS = """
from pressmark.compare import compare
found = compare(folder / "ids.txt", list(LAYOUTS.values()), names=list(LAYOUTS), memory=memory, folder=folder)
print(json.dumps({
    "seconds": time.perf_counter() - begin,
    "spilled": found.spilled,
    "threads": found.threads,
    "shared": {one.name: one.collisions.equal for one in found.layouts},
    "directories": {one.name: one.directories.total for one in found.layouts},
    "mapping": {one.name: one.throughput.seconds for one in found.layouts},
}))
"""
_PARQUET = """
import pyarrow, pyarrow.parquet
schema = pyarrow.schema([("path", pyarrow.large_string())])
writers = {name: pyarrow.parquet.ParquetWriter(folder / f"{name}.parquet", schema) for name in LAYOUTS}
with (folder / "ids.txt").open("rb") as file:
    while lines := file.readlines(6 << 20):
        ids = pyarrow.array([line[:-1] for line in lines], pyarrow.large_binary())
        for name, writer in writers.items():
            paths = pyarrow.chunked_array(LAYOUTS[name].map_arrow(ids))
            writer.write_table(pyarrow.table([paths], schema=schema))
for writer in writers.values():
    writer.close()
print(json.dumps({"seconds": time.perf_counter() - begin}))
"""
_DUCKDB = """
import duckdb
connection = duckdb.connect(config={"memory_limit": "900MB", "temp_directory": str(folder / "duckdb")})
begin = time.perf_counter()
query = "select coalesce(sum(n), 0) from (select count(*) n from read_parquet(?) group by path having n > 1)"
shared = {n: int(connection.execute(query, [str(folder / f"{n}.parquet")]).fetchone()[0]) for n in LAYOUTS}
print(json.dumps({"seconds": time.perf_counter() - begin, "shared": shared}))
"""
PROGRAMS = {
    "compare: all metrics, from identifiers": _OURS,
    "mapping to Parquet, for DuckDB": _PARQUET,
    "DuckDB: groups and counts equal paths": _DUCKDB,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--memory", type=int, default=256 << 20, help="bytes of memory for sorting")


def run(options: argparse.Namespace, report: Report) -> dict[str, Any]:
    folder = (options.folder or Path("build/compare")).resolve() / str(options.count)
    folder.mkdir(parents=True, exist_ok=True)
    write_identifiers(folder / "ids.txt", options.count)
    facts: dict[str, Any] = {}
    for name, code in PROGRAMS.items():
        measured = processes.python(_LAYOUTS + code, folder, str(options.memory))
        facts[name] = json.loads(measured.output) | {"max_rss": measured.cost.max_rss, "cpu": measured.cost.cpu}
    ours, _, theirs = facts.values()
    if ours["shared"] != theirs["shared"]:
        report.fail(f"identifiers that share their path: {ours['shared']} here, {theirs['shared']} by DuckDB")
    report.print(
        f"{options.count:,} identifiers, {len(ours['shared'])} layouts, {ours['threads']} threads,"
        f" {options.memory >> 20} MiB to sort in, {ours['spilled'] / 1e6:,.0f} MB of temporary files.",
        "",
    )
    report.heads("program", "s", "CPU s", "ids/s of each layout", "max RSS MB", " below 1 GB")
    for name, found in facts.items():
        rate = options.count * len(ours["shared"]) / found["seconds"]
        below = "" if found is not ours else "yes" if found["max_rss"] < MOST_MEMORY else "NO"
        memory = f"{found['max_rss'] / 1e6:,.0f}"
        report.row(name, f"{found['seconds']:.1f}", f"{found['cpu']:.1f}", f"{rate:,.0f}", memory, below)
    report.print("", f"Identifiers that share their path: {ours['shared']}.", "")
    return {"identifiers": options.count, **facts}


def write_identifiers(file: Path, count: int) -> None:
    """Write the identifiers, one per line, unless the file exists."""
    if file.exists():
        return
    draw = random.Random(3)
    with file.with_suffix(".new").open("wb") as lines:
        for start in range(0, count, BLOCK):
            numbers = [draw.randrange(1 << 40) for _ in range(min(BLOCK, count - start))]
            lines.write(b"".join(map(_identifier, numbers)))
    file.with_suffix(".new").rename(file)


def _identifier(number: int) -> bytes:
    kind = number % 4
    if kind == 0:
        return b"uc1.ark:/13960/t%09x\n" % (number >> 4)
    if kind == 1:
        # Parts of works: under 0012 those of the same number share a path.
        return b"miun.aje%07d.%04d.001\n" % (number % 10**7, number % 9973)
    return b"mdp.39015%010d\n" % (number % 10**10)
