"""Parquet through ``map_file``: results, and everything else in the file."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark.layouts import FlatDirect, HashAndIdNTuple, HashedNTuple, Pairtree
from pressmark.tabular.columns import Column

pa: Any = pytest.importorskip("pyarrow")
pq: Any = pytest.importorskip("pyarrow.parquet")

from pressmark.tabular import parquet  # noqa: E402 - it needs pyarrow

pytestmark = pytest.mark.usefixtures("implementation")

FLAT = FlatDirect()
PAIRTREE = Pairtree()
IDS = ["abc", None, "a:1", "ü"]
PATHS = ["ab/c", None, "a+/1", "^c/3^/bc"]


def written(path: Path, name: str = "path") -> list[Any]:
    column: list[Any] = pq.read_table(path).column(name).to_pylist()
    return column


TEXT = [
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.dictionary(pa.int32(), pa.string()),
    *([pa.string_view()] if hasattr(pa, "string_view") and int(pa.__version__.split(".")[0]) >= 20 else []),
]


@pytest.mark.parametrize("kind", TEXT, ids=str)
def test_kinds_of_text(tmp_path: Path, kind: Any) -> None:
    """Strings, binaries and dictionaries are mapped; null stays null and is no failure."""
    items = [item and item.encode() for item in IDS] if "binary" in str(kind) else IDS
    table = pa.table(
        {"n": [1, 2, 3, 4], "id": pa.array(items, pa.string() if "dict" in str(kind) else None).cast(kind)}
    )
    pq.write_table(table, tmp_path / "in.parquet")
    assert PAIRTREE.map_file(tmp_path / "in.parquet", tmp_path / "out.parquet", column="id").failed == 0
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.column_names == ["n", "id", "path"]
    assert out.drop_columns(["path"]) == table
    assert out.schema.field("path").type == pa.string()
    assert written(tmp_path / "out.parquet") == PATHS
    PAIRTREE.map_file(tmp_path / "out.parquet", tmp_path / "back.pq", column="path", unmap=True)
    assert written(tmp_path / "back.pq", "identifier") == IDS


def rich_table() -> Any:
    """Return a table with columns of many types, and metadata of its own and of a column."""
    fields = [
        pa.field("id", pa.string(), nullable=False, metadata={"unit": "none"}),
        pa.field("list", pa.list_(pa.int32())),
        pa.field("struct", pa.struct([("x", pa.float32()), ("y", pa.list_(pa.string()))])),
        pa.field("map", pa.map_(pa.string(), pa.int8())),
        pa.field("when", pa.timestamp("us", "UTC")),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("word", pa.dictionary(pa.int32(), pa.string())),
        pa.field("fixed", pa.binary(2)),
        pa.field("flag", pa.bool_()),
        pa.field("nothing", pa.null()),
    ]
    row = {
        "id": "abc",
        "list": [1, None],
        "struct": {"x": 0.5, "y": ["z"]},
        "map": [("k", 1)],
        "when": datetime(2024, 1, 2, tzinfo=UTC),
        "price": Decimal("1.50"),
        "word": "w",
        "fixed": b"\0\xff",
        "flag": True,
        "nothing": None,
    }
    empty = {**dict.fromkeys(row), "id": "d"}
    return pa.Table.from_pylist([row, empty] * 50, pa.schema(fields, {"owner": "library"}))


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "lz4", "brotli"])
def test_everything_else_is_kept(tmp_path: Path, codec: str) -> None:
    """Values, schema, metadata, codec and row groups are preserved."""
    pq.write_table(rich_table(), tmp_path / "in.parquet", compression=codec, row_group_size=30)
    # As read back: pyarrow writes the items of lists under the name of the format's document.
    table = pq.read_table(tmp_path / "in.parquet")
    HashAndIdNTuple().map_file(tmp_path / "in.parquet", tmp_path / "out.parquet", column=1)
    out = pq.read_table(tmp_path / "out.parquet")
    assert out.drop_columns(["path"]).equals(table, check_metadata=True)
    assert written(tmp_path / "out.parquet") == HashAndIdNTuple().map_ids(table.column("id").to_pylist())
    before, after = (pq.ParquetFile(tmp_path / name).metadata for name in ("in.parquet", "out.parquet"))
    assert before.num_row_groups == after.num_row_groups == 4
    for group in range(4):
        assert before.row_group(group).num_rows == after.row_group(group).num_rows
        names = {after.row_group(group).column(number).compression for number in range(after.num_columns)}
        assert names == {before.row_group(0).column(0).compression}


def test_the_lz4_of_hadoop(tmp_path: Path) -> None:
    """pyarrow reads it and cannot write it: the output is compressed with Zstandard, and a warning says so."""
    table = pa.table({"id": ["a:b", "c"]})
    pq.write_table(table, tmp_path / "in.pq", compression="lz4", use_dictionary=False, write_statistics=False)
    data = bytearray((tmp_path / "in.pq").read_bytes())
    # The codec in the footer, after the name of the column: LZ4_RAW becomes LZ4.
    codec = data.rindex(b"\x02id\x15\x0e") + 4
    data[codec] = 2 * 5
    (tmp_path / "in.pq").write_bytes(data)
    with pytest.warns(pressmark.TableWarning, match="in.pq: compression not supported for writing"):
        PAIRTREE.map_file(tmp_path / "in.pq", tmp_path / "out.pq", column="id")
    assert pq.read_table(tmp_path / "out.pq").column("id") == table.column("id")
    written = pq.ParquetFile(tmp_path / "out.pq").metadata.row_group(0)
    assert [written.column(number).compression for number in range(2)] == ["ZSTD", "ZSTD"]


def test_a_column_without_values(tmp_path: Path) -> None:
    """A column whose values are all missing has the null type; its paths are null."""
    pq.write_table(pa.table({"id": pa.nulls(3), "n": [1, 2, 3]}), tmp_path / "in.pq")
    PAIRTREE.map_file(tmp_path / "in.pq", tmp_path / "out.pq", column="id")
    written = pq.read_table(tmp_path / "out.pq")
    assert written.column("path").to_pylist() == [None] * 3
    assert written.schema.field("id").type == pa.null()


def test_codecs_and_dictionaries_of_each_column(tmp_path: Path) -> None:
    """Codecs and dictionaries of each column are preserved; the result uses those of its source."""
    table = pa.table({"id": ["a", "b"], "t": ["x", "x"]})
    pq.write_table(table, tmp_path / "in.pq", compression={"id": "snappy", "t": "gzip"}, use_dictionary=["t"])
    FLAT.map_file(tmp_path / "in.pq", tmp_path / "out.pq", column="id")
    group = pq.ParquetFile(tmp_path / "out.pq").metadata.row_group(0)
    columns = [group.column(number) for number in range(3)]
    assert [column.compression for column in columns] == ["SNAPPY", "GZIP", "SNAPPY"]
    assert [column.has_dictionary_page for column in columns] == [False, True, False]


def test_long_row_groups_are_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups are limited in rows and in bytes; short ones are not merged."""
    pq.write_table(pa.table({"id": [f"id-{n}" for n in range(1000)]}), tmp_path / "in.pq")
    monkeypatch.setattr(parquet, "BATCH_ROWS", 70)
    monkeypatch.setattr(parquet, "GROUP_ROWS", 140)
    FLAT.map_file(tmp_path / "in.pq", tmp_path / "out.pq", column="id")
    metadata = pq.ParquetFile(tmp_path / "out.pq").metadata
    assert [metadata.row_group(number).num_rows for number in range(8)] == [140] * 7 + [20]
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1)
    monkeypatch.setattr(parquet, "BATCH_BYTES", 100)
    FLAT.map_file(tmp_path / "in.pq", tmp_path / "out.pq", column="id")
    assert pq.ParquetFile(tmp_path / "out.pq").metadata.num_row_groups > 20
    assert written(tmp_path / "out.pq") == [f"id-{n}" for n in range(1000)]


def test_long_rows_come_few_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long rows are limited too, also where a dictionary stores them once."""
    pq.write_table(pa.table({"id": [f"id-{n}" for n in range(1000)], "t": ["x" * 1000] * 1000}), tmp_path / "in.pq")
    assert (tmp_path / "in.pq").stat().st_size < 100_000
    monkeypatch.setattr(parquet, "BATCH_BYTES", 50_000)
    with open(tmp_path / "in.pq", "rb") as file:
        blocks = list(parquet.ParquetReader(file, "in.pq", Column("id")).blocks())
    assert max(map(len, blocks)) < 50
    assert [blocks[0].number(0), blocks[1].number(0)] == [1, 1 + len(blocks[0])]
    assert sum(map(len, blocks)) == 1000


def test_dictionaries_that_differ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row group has its own dictionary; null inside one is null."""
    kind = pa.dictionary(pa.int32(), pa.string())
    groups = [["a", "b", "a"], ["c", None, "b"], ["d"]]
    with pq.ParquetWriter(tmp_path / "in.pq", pa.schema([("id", kind), ("t", kind)])) as writer:
        for group in groups:
            column = pa.array(group).dictionary_encode().cast(kind)
            writer.write_table(pa.table({"id": column, "t": column}))
    monkeypatch.setattr(parquet, "BATCH_ROWS", 2)
    FLAT.map_file(tmp_path / "in.pq", tmp_path / "out.pq", column="id")
    out = pq.read_table(tmp_path / "out.pq")
    items = [item for group in groups for item in group]
    assert out.to_pylist() == [{"id": item, "t": item, "path": item} for item in items]
    assert out.schema.types == [kind, kind, pa.string()]


@pytest.mark.parametrize("groups", [0, 1])
def test_no_rows(tmp_path: Path, groups: int) -> None:
    """The output of an empty table has its columns."""
    schema = pa.schema([("id", pa.string()), ("n", pa.int64())])
    with pq.ParquetWriter(tmp_path / "in.pq", schema) as writer:
        for _ in range(groups):
            writer.write_table(schema.empty_table())
    FLAT.map_file(tmp_path / "in.pq", tmp_path / "out.pq", column="id", result="x")
    out = pq.read_table(tmp_path / "out.pq")
    assert (out.column_names, out.num_rows) == (["id", "n", "x"], 0)


def test_threads(tmp_path: Path) -> None:
    """The output does not depend on the number of threads."""
    ids = [f"id-{n}" if n % 7 else None for n in range(200_000)]
    pq.write_table(pa.table({"id": ids}), tmp_path / "in.pq")
    for threads in (1, 3):
        HashedNTuple().map_file(tmp_path / "in.pq", tmp_path / str(threads), column=1, threads=threads)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "3").read_bytes()
