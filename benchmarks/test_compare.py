"""Compare layouts on a user's identifiers, beside a DuckDB query that only groups and counts equal paths."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.conftest import Measure
from pressmark import Layout, layout
from pressmark.compare import compare

GROUP = "compare five layouts"


def layouts() -> dict[str, Layout]:
    return {
        "pairtree": layout("pairtree"),
        "0003": layout("0003"),
        "0003 2x2": layout("0003", tuple_size=2, number_of_tuples=2),
        "0012": layout("0012", delimiters=["."]),
        "0002": layout("0002"),
    }


def identifier(number: int) -> bytes:
    kind = number % 4
    if kind == 0:
        return b"uc1.ark:/13960/t%09x\n" % (number >> 4)
    if kind == 1:
        # Parts of works: under 0012 those of the same number share a path.
        return b"miun.aje%07d.%04d.001\n" % (number % 10**7, number % 9973)
    return b"mdp.39015%010d\n" % (number % 10**10)


@pytest.fixture(scope="session")
def lines(memory: Path) -> Callable[[int], Path]:
    """Return a file of identifiers; some occur twice."""

    @functools.cache
    def made(count: int) -> Path:
        draw = random.Random(3)
        file = memory / f"compare-{count}.txt"
        with file.open("wb") as out:
            out.writelines(identifier(draw.randrange(1 << 40)) for _ in range(count))
        return file

    return made


@functools.cache
def shared(file: Path) -> dict[str, int]:
    """Return the number of identifiers of each layout that share their path, counted in Python."""
    ids = file.read_text().splitlines()
    found = {}
    for name, one in layouts().items():
        counts: dict[str, int] = {}
        for path in one.map_ids(ids):
            counts[path or ""] = counts.get(path or "", 0) + 1
        found[name] = sum(number for number in counts.values() if number > 1)
    return found


def test_compare(measure: Measure, lines: Callable[[int], Path], memory: Path, count: int) -> None:
    file = lines(count)

    def check(found: Any) -> None:
        assert {one.name: one.collisions.equal for one in found.layouts} == shared(file)

    def run() -> Any:
        return compare(file, list(layouts().values()), names=list(layouts()), folder=memory)

    measure.call(GROUP, run, check=check, ids=count)


@pytest.mark.yardstick
def test_duckdb(measure: Measure, lines: Callable[[int], Path], count: int) -> None:
    import duckdb
    import pyarrow

    file = lines(count)
    ids = file.read_text().splitlines()
    tables = {name: pyarrow.table({"path": one.map_ids(ids)}) for name, one in layouts().items()}
    query = "select coalesce(sum(n), 0) from (select count(*) n from paths group by path having n > 1)"

    def check(found: dict[str, int]) -> None:
        assert found == shared(file)

    def run() -> dict[str, int]:
        found = {}
        for name, paths in tables.items():
            with duckdb.connect() as connection:
                connection.register("paths", paths)
                row = connection.execute(query).fetchone()
                found[name] = int(row[0]) if row else 0
        return found

    measure.call(GROUP, run, check=check, ids=count)
