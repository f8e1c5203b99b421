"""Map a column of a table, beside DuckDB, which writes the same table with an upper-case column, and polars."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import corpora
from benchmarks.conftest import Measure
from benchmarks.peers import environments
from benchmarks.processes import python
from pressmark import layout

_DUCKDB = """
import sys, duckdb
source, target = sys.argv[1:]
duckdb.execute("SET threads TO 2")
table = duckdb.read_parquet(source) if source.endswith("parquet") else duckdb.read_csv(source, header=True)
made = table.project("*, upper(id) AS path")
made.write_parquet(target) if source.endswith("parquet") else made.write_csv(target)
"""
_POLARS = """
import sys, polars, pressmark
source, target = sys.argv[1:]
table = polars.read_parquet(source)
layout = pressmark.layout("0003")
paths = (getattr(layout, "map", None) or layout.map_arrow)(table["id"])  # the name of older commits
table.with_columns(polars.Series(paths).alias("path")).write_parquet(target)
"""
FORMS = ("csv", "parquet")


def title(form: str) -> str:
    return f"map a {form} table"


@pytest.fixture(scope="session")
def table(memory: Path, count: int) -> Callable[[str], tuple[Path, list[str]]]:
    """Return a table of identifiers and numbers, and the identifiers."""

    @functools.cache
    def made(form: str) -> tuple[Path, list[str]]:
        import pyarrow
        from pyarrow import csv, parquet

        ids = corpora.load("hathitrust", 5 * count, "drawn").ids
        columns: Any = pyarrow.table({"id": ids, "number": range(len(ids))})
        file = memory / f"table.{form}"
        parquet.write_table(columns, file) if form == "parquet" else csv.write_csv(columns, file)
        return file, ids

    return made


@pytest.mark.parametrize("form", FORMS)
def test_map(measure: Measure, pressmark: tuple[str, ...], table: Callable[..., Any], memory: Path, form: str) -> None:
    file, ids = table(form)
    target = memory / f"mapped.{form}"

    def check(_output: str) -> None:
        from pyarrow import csv, parquet

        made = parquet.read_table(target) if form == "parquet" else csv.read_csv(target)
        assert made.column("path").to_pylist() == layout("0003").map_ids(ids)

    words = (*pressmark, "map", "0003", file, "--column", "id", "-o", target, "--no-progress")
    measure.command(title(form), *words, before=functools.partial(target.unlink, True), check=check, ids=len(ids))


@pytest.mark.peers
def test_polars(measure: Measure, table: Callable[..., Any], memory: Path) -> None:
    """The same by a script of five lines: polars reads and writes, ``map`` maps."""
    file, ids = table("parquet")
    target = memory / "mapped by polars.parquet"

    def check(_output: str) -> None:
        from pyarrow import parquet

        assert parquet.read_table(target).column("path").to_pylist() == layout("0003").map_ids(ids)

    words = (environments.interpreter("tables"), "-c", _POLARS, file, target)
    measure.command(title("parquet"), *words, before=functools.partial(target.unlink, True), check=check, ids=len(ids))


@pytest.mark.yardstick
@pytest.mark.parametrize("form", FORMS)
def test_duckdb(measure: Measure, table: Callable[..., Any], memory: Path, form: str) -> None:
    file, ids = table(form)
    target = memory / f"upper.{form}"
    python("import duckdb")  # compiles it

    def check(_output: str) -> None:
        from pyarrow import csv, parquet

        made = parquet.read_table(target) if form == "parquet" else csv.read_csv(target)
        assert made.column("path").to_pylist() == list(map(str.upper, ids))

    words = (sys.executable, "-c", _DUCKDB, file, target)
    measure.command(title(form), *words, before=functools.partial(target.unlink, True), check=check, ids=len(ids))
