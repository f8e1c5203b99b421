"""Whole rows of tables: the same rows from each format, and what is malformed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from pressmark.errors import FormatError, TableError
from pressmark.tabular.records import TableRow, read_records

ROWS = [
    TableRow(2, [("path", "a"), ("Title", "x, y"), ("n", "1")]),
    TableRow(3, [("path", "ü"), ("n", "2.5")]),
]


def rows(path: Path, *columns: str, **how: str) -> list[TableRow]:
    return list(read_records(str(path), columns or ("path",), **how))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_text(tmp_path: Path, name: str) -> None:
    """Empty cells and empty rows are left out; the number is that of the line."""
    quote, tab = ("", "\t") if ".tsv" in name else ('"', ",")
    lines = ["path,Title,n", f"a,{quote}x; y{quote},1", "ü,,2.5", ",,", ""]
    data = "\n".join(lines).replace(",", tab).replace(";", ",").encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert rows(tmp_path / name) == ROWS


def test_json_lines(tmp_path: Path) -> None:
    """Numbers are text; null is empty; a list has several cells."""
    records = [{"path": "a", "Title": ["x", "y"], "n": 1}, {"path": "b", "n": None, "m": 2.5, "e": ""}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records) + "\n5\n{\n")
    found = rows(tmp_path / "t.jsonl")
    assert found[:2] == [
        TableRow(1, [("path", "a"), ("Title", "x"), ("Title", "y"), ("n", "1")]),
        TableRow(2, [("path", "b"), ("m", "2.5")]),
    ]
    assert [(one.number, one.fault[:17]) for one in found[2:]] == [(4, "not a JSON object"), (5, "not JSON: Expecti")]


@pytest.mark.parametrize("value", [True, {"a": 1}, [[1]], [True]])
def test_values_that_are_not_text(tmp_path: Path, value: object) -> None:
    """A value that has no text is a fault of its row."""
    (tmp_path / "t.jsonl").write_text(json.dumps({"path": "a", "x": value}) + "\n")
    assert rows(tmp_path / "t.jsonl") == [TableRow(1, [], "the value of 'x' is neither text nor a number")]


def test_parquet(tmp_path: Path) -> None:
    """Columns may have the same name; null is empty; the number is that of the row."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = [["a", "b"], [1, None], [["x", "y"], []], ["t", "u"]]
    table = pyarrow.Table.from_arrays(list(map(pyarrow.array, columns)), names=["path", "n", "l", "n"])
    parquet.write_table(table, tmp_path / "t.parquet")
    assert rows(tmp_path / "t.parquet") == [
        TableRow(1, [("path", "a"), ("n", "1"), ("l", "x"), ("l", "y"), ("n", "t")]),
        TableRow(2, [("path", "b"), ("n", "u")]),
    ]
    with pytest.raises(FormatError, match="column 'nope' not found; columns: path, n, l, n"):
        rows(tmp_path / "t.parquet", "path", "nope")


def test_rows_of_another_length(tmp_path: Path) -> None:
    """A row with too few or too many fields is a fault of this row; the others are read."""
    (tmp_path / "t.csv").write_text("path;n\na\nb;1\nc;1;2\n")
    assert rows(tmp_path / "t.csv", delimiter=";") == [
        TableRow(2, [], "row has 1 fields; expected 2"),
        TableRow(3, [("path", "b"), ("n", "1")]),
        TableRow(4, [], "row has 3 fields; expected 2"),
    ]


REFUSED = [
    ("t.csv", "id,n\n1,2\n", "column 'path' not found; columns: id, n"),
    ("t.csv", "path,path\n1,2\n", "column 'path' is not unique"),
    ("t.csv", "path,\n1,2\n", "column 2 has no name; add one"),
    ("t.txt", "path\n1\n", "lines have no columns"),
    ("t.xlsx", "", "spreadsheet"),
]


@pytest.mark.parametrize(("name", "text", "reason"), REFUSED)
def test_what_is_refused(tmp_path: Path, name: str, text: str, reason: str) -> None:
    """Without the columns, or as another format, no row is read."""
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=reason):
        rows(tmp_path / name)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    """The error names the file, and the line where it is known."""
    with pytest.raises(TableError, match=r"none\.csv: No such file or directory; use a readable file"):
        rows(tmp_path / "none.csv")
    (tmp_path / "t.csv").write_text('path\n"a"b\n')
    with pytest.raises(TableError, match=r"t\.csv:2: text after the closing quote"):
        rows(tmp_path / "t.csv")
