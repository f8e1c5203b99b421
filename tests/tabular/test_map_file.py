"""``Layout.map_file``: files and streams of every format, from Python."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import FormatError, IdentifierError, LineCounts, NotReversibleError, PathError, Progress, TableError

pytestmark = pytest.mark.usefixtures("implementation")

PAIRTREE = pressmark.Pairtree()
# Each format with the options of its column, a table, and the table with paths.
TABLES: dict[str, tuple[dict[str, Any], bytes, bytes]] = {
    "lines": ({}, b"a:1\nabc", b"a+/1\nab/c"),
    "csv": ({"column": "id"}, b'id,t\r\n"a:1","1\n2"\r\nabc,', b'id,t,path\r\n"a:1","1\n2",a+/1\r\nabc,,ab/c'),
    "tsv": ({"column": 1, "header": False}, b'a:1\t"\nabc\t\n', b'a:1\t"\ta+/1\nabc\t\tab/c\n'),
    "jsonl": (
        {"column": "id"},
        b'{"id": "a:1"}\n\n{ "id" : "abc", "n": 1.0 }\n',
        b'{"id": "a:1", "path": "a+/1"}\n{ "id" : "abc", "n": 1.0, "path": "ab/c"}\n',
    ),
}


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("format", TABLES)
def test_files(tmp_path: Path, format: str, packed: str) -> None:
    """A path decides on format and compression; the counts are those of the uncompressed bytes."""
    options, table, expected = TABLES[format]
    suffix = ("txt" if format == "lines" else format) + packed
    source, target = tmp_path / f"in.{suffix}", tmp_path / f"out.{suffix}"
    source.write_bytes(gzip.compress(table, mtime=0) if packed else table)
    counts = PAIRTREE.map_file(str(source), target, **options)
    written = target.read_bytes()
    assert (gzip.decompress(written) if packed else written) == expected
    assert counts == LineCounts(2, 0, len(table), len(expected))
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name, target.name]


@pytest.mark.parametrize("format", TABLES)
def test_streams(format: str) -> None:
    """Streams are read and written as they are."""
    options, table, expected = TABLES[format]
    target = io.BytesIO()
    progress = Progress()
    counts = PAIRTREE.map_file(
        io.BytesIO(table),
        target,
        format=format,  # type: ignore[arg-type]
        progress=progress,
        **options,
    )
    assert target.getvalue() == expected
    assert (progress.done, progress.failed, progress.bytes) == (counts.items, counts.failed, counts.bytes_read)
    assert not target.closed


def test_parquet(tmp_path: Path) -> None:
    """Parquet is read from a path or a seekable stream."""
    pyarrow: Any = pytest.importorskip("pyarrow")
    parquet: Any = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"id": ["a:1", None, "..", ""]})
    parquet.write_table(table, tmp_path / "in.parquet")
    failed: list[IdentifierError] = []
    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    counts = pressmark.FlatDirect().map_file(source, target, column="id", result="p", on_error="none", errors=failed)
    assert parquet.read_table(target).to_pydict() == {"id": ["a:1", None, "..", ""], "p": ["a:1", None, None, None]}
    assert [error.index for error in failed] == [2, 3]
    assert (counts.items, counts.failed, counts.bytes_written) == (4, 2, target.stat().st_size)
    stream = io.BytesIO()
    PAIRTREE.map_file(io.BytesIO(source.read_bytes()), stream, format="parquet", column=1, on_error="skip")
    paths = parquet.read_table(io.BytesIO(stream.getvalue())).column("path").to_pylist()
    assert paths == ["a+/1", None, PAIRTREE.map_id("..")]


def test_unmap(tmp_path: Path) -> None:
    """``unmap`` reads the column that ``map_file`` added."""
    (tmp_path / "in.csv").write_bytes(b"id\na:1\n")
    PAIRTREE.map_file(tmp_path / "in.csv", tmp_path / "paths.csv", column="id")
    PAIRTREE.map_file(tmp_path / "paths.csv", tmp_path / "ids.csv", column="path", unmap=True)
    assert (tmp_path / "ids.csv").read_bytes() == b"id,path,identifier\na:1,a+/1,a:1\n"
    target = io.BytesIO()
    PAIRTREE.map_file(io.BytesIO(b"a+/1\0"), target, unmap=True, null=True, both=True)
    assert target.getvalue() == b"a:1\ta+/1\0"
    with pytest.raises(PathError):
        PAIRTREE.map_file(io.BytesIO(b"a:/1\n"), target, unmap=True)
    with pytest.raises(NotReversibleError):
        pressmark.layout("0004").map_file(io.BytesIO(b"a\n"), target, unmap=True)


#: Compressed data without their end.
CUT = gzip.compress(b"a\n", mtime=0)[:-1]


@pytest.mark.parametrize(
    ("name", "table", "options", "error", "text"),
    [
        ("in.txt", b"a\n\n", {}, IdentifierError, "identifier is empty"),
        ("in.csv", b"id,t\na,b\n,c\n", {"column": "id"}, IdentifierError, "identifier is empty"),
        ("in.csv", b"id,t\na,b\nc\n", {"column": "id"}, IdentifierError, "row has 1 field; the first row has 2"),
        ("in.csv", b'id,t\na,b\n"c', {"column": "id"}, TableError, "in.csv:3: quote is never closed"),
        ("in.csv", b"id\na\n", {"column": "x"}, FormatError, "in.csv: column 'x' not found; columns: id"),
        ("in.csv", b"id\na\n", {}, FormatError, "in.csv: CSV needs column="),
        ("in.csv", b"id\na\n", {"column": 0}, FormatError, "columns are numbered from 1"),
        ("in.csv", b"id\na\n", {"column": "id", "delimiter": ";;"}, FormatError, "expected one ASCII character"),
        ("in.csv", b"id\na\n", {"column": "id", "on_error": "no"}, ValueError, "on_error='no'"),
        ("in.txt", b"a\r\nb\r\n", {}, FormatError, "in.txt: carriage return at the end of lines"),
        ("in.txt", b"a\n" * 99_999 + b"b\r\n", {}, TableError, "in.txt: carriage return at the end of a line"),
        ("in.xlsx", b"", {}, FormatError, ".xlsx is a spreadsheet"),
        ("in.csv.gz", b"no gzip", {"column": "id"}, TableError, "in.csv.gz: not a gzip file"),
        ("in.txt.gz", CUT, {}, TableError, "in.txt.gz: broken gzip data: unexpected end"),
    ],
)
def test_errors(
    tmp_path: Path, name: str, table: bytes, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    """After an error, the destination is as before."""
    (tmp_path / name).write_bytes(table)
    (tmp_path / "out").write_bytes(b"as before")
    with pytest.raises(error) as caught:
        PAIRTREE.map_file(tmp_path / name, tmp_path / "out", **options)
    assert text in str(caught.value)
    assert (type(caught.value) is TableError) == (error is TableError)
    assert (tmp_path / "out").read_bytes() == b"as before"
    assert len(list(tmp_path.iterdir())) == 2


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    """Errors of the operating system are OSErrors, and no destination is created for a missing source."""
    with pytest.raises(FileNotFoundError):
        PAIRTREE.map_file(tmp_path / "missing", tmp_path / "out")
    (tmp_path / "in").write_bytes(b"a\n")
    with pytest.raises(FileNotFoundError):
        PAIRTREE.map_file(tmp_path / "in", tmp_path / "missing" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("target", ["out.tsv", "out.jsonl.gz", "out.parquet"])
def test_another_format_is_refused(tmp_path: Path, target: str) -> None:
    """A table is written in its own format."""
    with pytest.raises(FormatError, match="convert the table with DuckDB or pyarrow"):
        PAIRTREE.map_file(io.BytesIO(b"id\na\n"), tmp_path / target, format="csv", column="id")
    assert list(tmp_path.iterdir()) == []
