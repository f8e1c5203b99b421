"""Real packages: columns from each, results read by each, and expressions of polars and functions of DuckDB."""

from __future__ import annotations

import gc
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from arrow.conftest import outstanding_exports
from arrow.foreign import Opaque
from pressmark import ColumnError, HashAndIdNTuple, IdentifierError, Pairtree, StringColumn
from support.implementations import NATIVE, Implementation

pytestmark = [pytest.mark.peers, pytest.mark.usefixtures("_under")]

IDS = ["ark:/13030/xt12t3", None, "b", "a rather long identifier, \u00e9\u4f8b, that no view holds itself", "c.d"]
PATHS = [None if item is None else Pairtree().map_id(item) for item in IDS]
ROWS = list(zip(IDS, PATHS, strict=True))


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Import a package; where it is missing, skip the test, or with --require-peers fail."""

    def load(name: str) -> Any:
        if request.config.getoption("--require-peers", default=False):
            return importlib.import_module(name)
        return pytest.importorskip(name)

    return load


def pyarrow_columns(pa: Any) -> dict[str, Any]:
    plain = pa.array(IDS)
    return {
        "string": plain,
        "large_string": pa.array(IDS, pa.large_string()),
        "string_view": pa.array(IDS, pa.string_view()),
        "binary": pa.array([item and item.encode() for item in IDS], pa.binary()),
        "large_binary": pa.array([item and item.encode() for item in IDS], pa.large_binary()),
        "slice": pa.array(["x", "y", *IDS, "z"])[2:-1],
        "dictionary": plain.dictionary_encode(),
        "dictionary of int8": plain.cast(pa.dictionary(pa.int8(), pa.large_string())),
        "chunked": pa.chunked_array([IDS[:2], [], IDS[2:]], type=pa.string()),
        "table": pa.table({"id": IDS}),
        "batch": pa.record_batch({"id": ["x", *IDS]})[1:],
        "reader": pa.table({"id": IDS}).to_reader(max_chunksize=2),
        "struct": pa.StructArray.from_arrays([plain], names=["id"]),
    }


def listed(column: Any) -> list[str | None]:
    """Return the items of a column of any library, None for a missing one."""
    items = column.to_pylist() if hasattr(column, "to_pylist") else column
    return [item if isinstance(item, str) else None for item in items]


def check(column: Any) -> None:
    assert listed(Pairtree().map(column)) == PATHS


def test_from_pyarrow(peer: Callable[[str], Any]) -> None:
    """Arrays of every text type, slices, dictionaries, chunks, batches, tables and readers are mapped."""
    pa = peer("pyarrow")
    for column in pyarrow_columns(pa).values():
        check(column)
    wide = pa.table({"id": IDS, "year": range(len(IDS))})
    check(wide["id"])
    with pytest.raises(ColumnError, match="a struct of 2 fields; select one of them: 'id', 'year'"):
        Pairtree().map(wide)
    assert Pairtree().map(pa.array([None, None])).to_pylist() == [None, None]
    assert Pairtree().map(pa.array([], pa.string())).to_pylist() == []
    assert Pairtree().map(pa.chunked_array([], pa.string())).to_pylist() == []


def test_from_polars(peer: Callable[[str], Any]) -> None:
    """Series (which are views), categories, enumerations, slices, frames; a lazy frame gets advice."""
    pl = peer("polars")
    check(pl.Series(IDS))
    check(pl.Series(["x", *IDS])[1:])
    check(pl.Series(IDS, dtype=pl.Categorical))
    check(pl.Series(IDS, dtype=pl.Enum([item for item in IDS if item is not None])))
    check(pl.DataFrame({"id": IDS}))
    check(pl.concat([pl.Series(IDS[:2]), pl.Series(IDS[2:])], rechunk=False))
    with pytest.raises(TypeError, match=r"not LazyFrame; call \.collect\(\) first$"):
        Pairtree().map(pl.LazyFrame({"id": IDS}))


def test_from_pandas(peer: Callable[[str], Any]) -> None:
    """Series and frames of pandas' own strings, which it exports with pyarrow's help."""
    peer("pyarrow")
    pd = peer("pandas")
    check(pd.Series(IDS, dtype="str"))
    check(pd.Series(["x", *IDS], dtype="str")[1:])
    check(pd.DataFrame({"id": pd.Series(IDS, dtype="str")}))


def test_from_duckdb(peer: Callable[[str], Any]) -> None:
    """Relations, by the name of a column."""
    duckdb = peer("duckdb")
    check(duckdb.sql("select unnest(?) as id", params=[IDS]))
    check(duckdb.sql("select unnest(?) as id, 7 as year", params=[IDS])["id"])
    many = duckdb.sql("select 'ark:/13960/t' || range as id from range(300000)")
    column = HashAndIdNTuple().map(many, threads=2)
    assert len(column) == 300_000
    assert column[299_999] == HashAndIdNTuple().map_id("ark:/13960/t299999")


def test_duckdb_errors_are_reported(peer: Callable[[str], Any]) -> None:
    """A query that fails during streaming is reported in one line."""
    duckdb = peer("duckdb")
    failing = duckdb.sql("select case when range < 290000 then 'a' else error('no\nmore') end as id from range(300000)")
    with pytest.raises(Exception, match="more") as caught:
        Pairtree().map(failing)
    if isinstance(caught.value, ColumnError):
        assert "\n" not in str(caught.value)


def test_from_nanoarrow(peer: Callable[[str], Any]) -> None:
    """Arrays of one chunk and of several; the latter only export a stream."""
    na = peer("nanoarrow")
    check(na.Array(IDS, na.string()))
    check(na.c_array(IDS, na.string()))
    check(na.c_array_stream(na.c_array(IDS, na.string())))
    check(na.Array.from_chunks([na.c_array(IDS[:2], na.string()), na.c_array(IDS[2:], na.string())]))


def test_the_result_is_of_the_same_library(peer: Callable[[str], Any]) -> None:
    """Arrays, chunked arrays and series give their own kind; a series keeps its name, one of pandas its index."""
    pa, pl, pd = map(peer, ("pyarrow", "polars", "pandas"))
    ids = ["ark:/13030/xt12t3", "", None, "b"]
    paths = [Pairtree().map_id("ark:/13030/xt12t3"), None, None, "b"]
    for column, kind in (
        (pa.array(ids), pa.Array),
        (pa.chunked_array([ids[:2], ids[2:]]), pa.ChunkedArray),
        (pl.Series("id", ids), pl.Series),
        (pd.Series(ids, dtype="str", name="id", index=[7, 5, 3, 1]), pd.Series),
    ):
        errors: list[IdentifierError] = []
        found = Pairtree().map(column, on_error="none", errors=errors)
        assert isinstance(found, kind)
        assert listed(found) == paths
        assert [(error.index, error.id) for error in errors] == [(1, "")]
        assert listed(Pairtree().unmap(found, on_error="none")) == [ids[0], None, None, "b"]
    assert (found.name, list(found.index)) == ("id", [7, 5, 3, 1])
    assert Pairtree().map(pl.Series("id", ["a"])).name == "id"


# --- out ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["array first", "stream first"])
def column(request: pytest.FixtureRequest, peer: Callable[[str], Any]) -> StringColumn:
    """A column in one chunk or in two."""
    found = Pairtree().map(Opaque(peer("pyarrow").chunked_array([IDS[:2], IDS[2:]])))
    if request.param == "array first":
        found.__arrow_c_array__()
    return found


def test_to_pyarrow(peer: Callable[[str], Any], column: StringColumn) -> None:
    """Arrays, chunked arrays, batches, tables and readers are imported repeatedly, also with a requested type."""
    pa = peer("pyarrow")
    for _ in range(2):
        assert pa.chunked_array(column).to_pylist() == PATHS
        assert pa.array(column).to_pylist() == PATHS
        assert pa.array(column).type == pa.large_string()
        for wish in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
            taken = pa.array(column, wish)
            assert taken.type == wish
            assert [
                item if item is None or isinstance(item, str) else item.decode() for item in taken.to_pylist()
            ] == PATHS
        assert pa.chunked_array(column, pa.string()).type == pa.string()
        assert pa.field(column).type == pa.large_string()
        pa.array(column).validate(full=True)


def test_to_polars(peer: Callable[[str], Any], column: StringColumn) -> None:
    """Series and frames."""
    pl = peer("polars")
    for _ in range(2):
        assert pl.Series(column).to_list() == PATHS
        assert pl.Series("path", column).dtype == pl.String
        assert pl.from_arrow(column).to_list() == PATHS


def test_to_pandas(peer: Callable[[str], Any], column: StringColumn) -> None:
    """Series and frames, by from_arrow."""
    pd = peer("pandas")
    for _ in range(2):
        assert [item if isinstance(item, str) else None for item in pd.Series.from_arrow(column)] == PATHS


def test_to_duckdb(peer: Callable[[str], Any], column: StringColumn) -> None:
    """By the name of the variable, in a query."""
    duckdb = peer("duckdb")
    paths = column  # noqa: F841  # DuckDB finds it by this name
    for _ in range(2):
        assert [row[0] for row in duckdb.sql("from paths").fetchall()] == PATHS


def test_to_nanoarrow(peer: Callable[[str], Any], column: StringColumn) -> None:
    """Arrays and streams."""
    na = peer("nanoarrow")
    for _ in range(2):
        assert list(na.Array(column).iter_py()) == PATHS
        assert list(na.Array(na.c_array(column)).iter_py()) == PATHS
        assert list(na.ArrayStream(column).iter_py()) == PATHS


def test_bytes_are_exported_as_binary(peer: Callable[[str], Any]) -> None:
    """Identifiers that are not text are binary for every consumer."""
    pa, pl, duckdb, na = map(peer, ("pyarrow", "polars", "duckdb", "nanoarrow"))
    back = Pairtree().unmap(Opaque(pa.array(["a", "^f/f", None])))
    expected = [b"a", b"\xff", None]
    assert pa.array(back).to_pylist() == expected
    assert pa.array(back, pa.binary()).to_pylist() == expected
    assert pl.Series(back).to_list() == expected
    assert [row[0] for row in duckdb.sql("from back").fetchall()] == expected
    assert list(na.Array(back).iter_py()) == expected


def test_consumers_outlive_the_column(implementation: Implementation, peer: Callable[[str], Any]) -> None:
    """Imported data outlives the column and its source."""
    pa, pl = peer("pyarrow"), peer("polars")
    taken = [pa.array(Pairtree().map(pl.Series(IDS))), pl.Series(Pairtree().map(pa.array(IDS)))]
    taken += [Pairtree().map(pl.Series(IDS)), Pairtree().map(pa.array(IDS)), Pairtree().map(pa.chunked_array([IDS]))]
    gc.collect()
    for column in taken:
        assert list(column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()) == PATHS
    assert implementation != NATIVE or outstanding_exports() > 0


# --- without pyarrow ------------------------------------------------------------------------------------------

WITHOUT_PYARROW = """
import importlib.abc, sys

class Blocker(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pyarrow":
            raise ModuleNotFoundError(f"blocked: {name}", name=name)

sys.meta_path.insert(0, Blocker())
import duckdb, polars as pl, pressmark

layout = pressmark.Pairtree()
ids = ["ark:/13030/xt12t3", None, "b", "x" * 50]
paths = [None if item is None else layout.map_id(item) for item in ids]
assert pl.Series(layout.map(pl.Series(ids))).to_list() == paths
assert layout.map(pl.DataFrame({"id": ids, "year": [1, 2, 3, 4]})["id"]).to_list() == paths
mapped = layout.map(duckdb.sql("select unnest(?) as id", params=[ids]))
assert mapped.to_list() == paths
assert [row[0] for row in duckdb.sql("from mapped").fetchall()] == paths
assert "pyarrow" not in sys.modules
print("done")
"""


def test_without_pyarrow(implementation: Implementation, peer: Callable[[str], Any]) -> None:
    """polars and DuckDB work without pyarrow in a native build."""
    if implementation != NATIVE:
        pytest.skip("the pure implementation requires pyarrow")
    peer("polars")
    peer("duckdb")
    environment = {**os.environ, "PRESSMARK_IMPLEMENTATION": NATIVE.name}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PYARROW],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


# --- expressions and functions --------------------------------------------------------------------------------


def test_polars_expression(peer: Callable[[str], Any]) -> None:
    """A layout works in an expression of polars, also a lazy one."""
    pl = peer("polars")
    layout = Pairtree()
    expression = pl.col("id").map_batches(layout.map, return_dtype=pl.String)
    frame = pl.DataFrame({"id": IDS})
    assert frame.select(expression).to_series().to_list() == PATHS
    assert frame.lazy().select(expression.alias("path")).collect().to_dict(as_series=False) == {"path": PATHS}


def test_duckdb_function(peer: Callable[[str], Any]) -> None:
    """A layout works as an Arrow function of DuckDB."""
    peer("pyarrow")
    duckdb = peer("duckdb")
    layout = Pairtree()
    connection = duckdb.connect()

    def ppath(ids: Any) -> StringColumn:
        return layout.map(ids)

    connection.create_function("ppath", ppath, ["VARCHAR"], "VARCHAR", type="arrow", null_handling="special")
    rows = connection.sql("select id, ppath(id) from (select unnest(?) as id)", params=[IDS]).fetchall()
    assert rows == ROWS
    connection.close()
