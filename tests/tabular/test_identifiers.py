"""Lists of identifiers in every format."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from pressmark.errors import TableError
from pressmark.tabular.delimited import CSV, TSV, Dialect
from pressmark.tabular.formats import ListStream
from pressmark.tabular.identifiers import read_identifiers, table_rows


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("ids.txt", b"one\ntwo three\n\nfour\nfive", ["one", "two three", "four", "five"]),
        ("ids", b"one\0two\nlines\0\0three", ["one", "two\nlines", "three"]),
        ("ids.txt", b"\xff\xfe\n\xc3\xa9\n", ["\udcff\udcfe", "é"]),
        ("ids.txt.gz", b"one\ntwo\n", ["one", "two"]),
        ("ids.csv", b'name,id\nx,one\ny,"two, three"\nz,\n', ["one", "two, three"]),
        ("ids.csv", b"\xef\xbb\xbfid\none\n", ["one"]),
        ("ids.tsv", b'id\tsource_id\n1\t"one"\n', ['"one"']),
        ("ids.csv.gz", b"identifier\none\n", ["one"]),
        ("ids.csv", b'n,id\n1,a"b\n\n2,\r\r\n3,"c\r\nd"\r\n', ['a"b', "\r", "c\r\nd"]),
        ("ids.jsonl", b'"one"\n{"source_id": "two", "id": "2"}\n\n"a\\nb"\n', ["one", "two", "a\nb"]),
        ("ids.txt", b"", []),
    ],
)
def test_files_of_identifiers(tmp_path: Path, name: str, content: bytes, expected: list[str]) -> None:
    assert list(read_identifiers(written(tmp_path / name, content))) == expected
    assert list(read_identifiers(os.fspath(tmp_path / name))) == expected


@given(
    st.lists(
        st.sampled_from(
            [b"a", b",", b"\t", b"\n", b"\r\n", b"\r", b"\xc3", b"\xa9", b"\xe2\x82", b"\0", b"\xe2\x80\xa8"]
        )
    ).map(b"".join),
    st.sampled_from([CSV, TSV]),
)
@example(b"\xe2\x82\na,\xc3", CSV)
def test_whole_blocks_and_single_rows_agree(table: bytes, dialect: Dialect) -> None:
    """Rows of a block that is decoded at once are those that are decoded one by one, with the same line numbers."""
    expected = []
    for number, row in enumerate(table.split(b"\n"), 1):
        content = row.removesuffix(b"\r")
        if content:
            fields = content.split(dialect.separator)
            expected.append((number, [field.decode("utf-8", "surrogateescape") for field in fields]))
    assert list(table_rows("t", ListStream(io.BytesIO(table), "t"), dialect)) == expected


def test_line_ends_of_windows(tmp_path: Path) -> None:
    """Windows line ends are stripped only on request in lines, and always in tables."""
    path = written(tmp_path / "ids.txt", b"\xef\xbb\xbfone\r\ntwo\r\n")
    with pytest.raises(TableError, match=r"ids\.txt: byte-order mark .*crlf='strip'"):
        list(read_identifiers(path))
    assert list(read_identifiers(path, crlf="strip")) == ["one", "two"]
    assert list(read_identifiers(path, crlf="keep")) == ["\ufeffone\r", "two\r"]
    with pytest.raises(ValueError, match="crlf='no'"):
        list(read_identifiers(path, crlf="no"))  # type: ignore[arg-type]


def test_columns_are_named(tmp_path: Path) -> None:
    table = written(tmp_path / "ids.csv", b"id,barcode\n1,one\n2,two\n")
    assert list(read_identifiers(table, "barcode")) == ["one", "two"]
    assert list(read_identifiers(written(tmp_path / "same.csv", b"n,id,id\n1,one,two\n"))) == ["one"]
    with pytest.raises(TableError, match="column 'shelf' not found"):
        list(read_identifiers(table, "shelf"))
    with pytest.raises(TableError, match="column source_id, id or identifier not found"):
        list(read_identifiers(written(tmp_path / "other.csv", b"a,b\n1,2\n")))


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("ids.csv", b"a,id\n1\n", r"ids\.csv:2: row has 1 fields"),
        ("ids.csv", b'id\na\n"b"c\nd\n', r"ids\.csv:3: text after the closing quote"),
        ("ids.csv", b'id\na\n"b\nc\nd\n', r"ids\.csv:3: quote is never closed"),
        ("ids.jsonl", b'"one"\n[1]\n', r"ids\.jsonl:2: expected an identifier as a JSON string"),
        ("ids.jsonl", b"one\n", r"ids\.jsonl:1: not JSON"),
        ("ids.txt", b"x" * (3 << 20), "not a list of identifiers"),
        ("ids.txt", b"a\n" * (1 << 19) + b"b\0c\n", "unexpected NUL"),
    ],
)
def test_malformed_lists(tmp_path: Path, name: str, content: bytes, match: str) -> None:
    with pytest.raises(TableError, match=match):
        list(read_identifiers(written(tmp_path / name, content)))


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "ids.parquet"
    parquet.write_table(pyarrow.table({"n": [1, 2, 3], "id": ["one", None, "é"]}), path)
    assert list(read_identifiers(path)) == ["one", "é"]
    with pytest.raises(TableError, match="not text"):
        list(read_identifiers(path, "n"))
    with pytest.raises(TableError, match=r"ids\.parquet"):
        list(read_identifiers(written(path, b"no parquet")))


@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "dictionary"])
def test_parquet_whose_text_is_not_utf8(tmp_path: Path, kind: str) -> None:
    """Invalid UTF-8 stands for the same bytes as in lines."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    raw = pyarrow.array([b"one", b"\xff", b"\xc3\xa9"], pyarrow.binary())
    column = raw.view(pyarrow.string()) if kind in ("string", "dictionary") else raw
    if kind == "large_string":
        column = raw.cast(pyarrow.large_binary()).view(pyarrow.large_string())
    elif kind == "dictionary":
        column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, 2], pyarrow.int32()), column)
    parquet.write_table(pyarrow.table({"id": column}), tmp_path / "ids.parquet")
    assert list(read_identifiers(tmp_path / "ids.parquet")) == ["one", "\udcff", "é"]
