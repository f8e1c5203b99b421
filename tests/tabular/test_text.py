"""CSV and TSV through ``map_file``: results, and the bytes of everything else."""

from __future__ import annotations

import contextlib
import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from pressmark import IdentifierError
from pressmark.errors import PressmarkError
from pressmark.layouts import FlatDirect, Layout, Pairtree
from pressmark.tabular import delimited, formats, text
from pressmark.tabular.columns import Column

pytestmark = pytest.mark.usefixtures("implementation")

PAIRTREE = Pairtree()


def mapped_to_its_end(table: bytes, layout: Layout = PAIRTREE, **options: Any) -> tuple[bytes, list[str], str]:
    """Return the output of ``map_file``, its failures, and the error that ended it."""
    errors: list[IdentifierError] = []
    target = io.BytesIO()
    ended = ""
    try:
        layout.map_file(io.BytesIO(table), target, errors=errors, **options)
    except PressmarkError as error:
        ended = f"{type(error).__name__}: {error}"
    return target.getvalue(), [str(error) for error in errors], ended


def mapped(table: bytes, **options: Any) -> tuple[bytes, list[str]]:
    """Return the output of ``map_file`` and its failures, if nothing ended it."""
    written, failed, ended = mapped_to_its_end(table, **options)
    assert ended == ""
    return written, failed


@pytest.mark.parametrize(
    ("options", "table", "expected"),
    [
        ({"column": "id"}, b"id,t\na:1,x\nb,y\n", b"id,t,path\na:1,x,a+/1\nb,y,b\n"),
        ({"column": 2, "header": True}, b"t,id\nx,abc\n", b"t,id,path\nx,abc,ab/c\n"),
        ({"column": 2, "header": False}, b"x,abc\ny,d\n", b"x,abc,ab/c\ny,d,d\n"),
        ({"column": "id", "result": "p p"}, b"id\nabc\n", b"id,p p\nabc,ab/c\n"),
        ({"column": "id", "result": 'a,"b"'}, b"id\nabc\n", b'id,"a,""b"""\nabc,ab/c\n'),
        ({"column": "i,d"}, b'"i,d",t\na,b\n', b'"i,d",t,path\na,b,a\n'),
        ({"column": "id"}, b'\xef\xbb\xbf"id",t\na,b\n', b'\xef\xbb\xbf"id",t,path\na,b,a\n'),
        ({"column": 1, "header": False}, b"\xef\xbb\xbfabc,b\n", b"\xef\xbb\xbfabc,b,ab/c\n"),
        ({"column": "id"}, b"id,t\r\nabc,x\r\nd,y", b"id,t,path\r\nabc,x,ab/c\r\nd,y,d"),
        ({"column": 2, "header": False}, b"x,abc\r\n", b"x,abc,ab/c\r\n"),
        ({"column": 2, "header": False}, b"x,abc\r", b"x,abc,ab/c\r"),
        (
            {"column": "id"},
            b'id,t\nabc,"1\n2, ""3"""\nd,5" disk\n',
            b'id,t,path\nabc,"1\n2, ""3""",ab/c\nd,5" disk,d\n',
        ),
        ({"column": "id"}, b'id,t\n"a""b",\n"a\nb",\n', b'id,t,path\n"a""b",,a^/22/b\n"a\nb",,a^/0a/b\n'),
        ({"column": "id"}, b'id,t\n"m.1",c\n', b'id,t,path\n"m.1",c,"m,/1"\n'),
        ({"column": "id"}, b"id,t\nabc,\xff\0\n\xe9,x\n", b"id,t,path\nabc,\xff\0,ab/c\n\xe9,x,^e/9\n"),
        ({"column": "id"}, b"id,t\n", b"id,t,path\n"),
        ({"column": "id"}, b"id,t", b"id,t,path"),
        ({"column": 1, "header": False}, b"", b""),
        ({"column": 1, "header": False}, b"\xef\xbb\xbf", b"\xef\xbb\xbf"),
        ({"column": 1, "header": False}, b"a\0b\n", b"a\0b,a^/00/b\n"),
    ],
    ids=[
        "by name",
        "by number, header",
        "by number",
        "as",
        "as, quoted",
        "quoted name",
        "BOM and header",
        "BOM",
        "CRLF",
        "CRLF behind the wanted field",
        "CR at the end",
        "quotes carried",
        "quotes wanted",
        "quotes written",
        "bytes",
        "no rows",
        "no rows, no line feed",
        "none",
        "only a BOM",
        "NUL",
    ],
)
def test_csv(options: dict[str, Any], table: bytes, expected: bytes) -> None:
    """The result is a new last field, and everything else keeps its bytes."""
    assert mapped(table, format="csv", **options) == (expected, [])


@pytest.mark.parametrize(
    ("options", "table", "expected"),
    [
        ({"column": "id"}, b"id\tt\nabc\tx\n", b"id\tt\tpath\nabc\tx\tab/c\n"),
        ({"column": 1, "header": False}, b'"a"\t"x\n,"\ty\n', b'"a"\t"x\t^2/2a/^2/2\n,"\ty\t^2/c^/22\n'),
        ({"column": 2, "header": False}, b"x\tabc\r\ny\td\n", b"x\tabc\tab/c\r\ny\td\td\n"),
        (
            {"column": "id"},
            b"\xef\xbb\xbfid\t\xff\nabc\t\x80\0\n",
            b"\xef\xbb\xbfid\t\xff\tpath\nabc\t\x80\0\tab/c\n",
        ),
        ({"column": 1, "header": False}, b"abc", b"abc\tab/c"),
        ({"column": 1, "header": True}, b"id\nabc", b"id\tpath\nabc\tab/c"),
        ({"column": 1, "header": False}, b"a\rb\tc\n", b"a\rb\tc\ta^/0d/b\n"),
    ],
    ids=["by name", "quotes are data", "CRLF", "bytes", "last open", "header, last open", "CR inside"],
)
def test_tsv(options: dict[str, Any], table: bytes, expected: bytes) -> None:
    """TSV works alike, and quotes have no meaning."""
    assert mapped(table, format="tsv", **options) == (expected, [])


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # Text after a malformed field belongs to its row.
        (b'1,"a"b,"x\n2,no row"\n3,c\n', [None, b"c"]),
        (b"1,\r\r\n2,b\n", [b"\r", b"b"]),
        (b'1,a\rb\n2,"a\r\nb"\r\n', [b"a\rb", b"a\r\nb"]),
        (b'1,a"b""\n2,\0\n', [b'a"b""', b"\0"]),
        (b"\n1,b", [None, b"b"]),
    ],
)
def test_unusual_fields(tmp_path: Path, data: bytes, expected: list[bytes | None]) -> None:
    """A row has its field, or an error that harms no other row."""
    (tmp_path / "ids.csv").write_bytes(b"n,id\n" + data)
    with open(tmp_path / "ids.csv", "rb") as source:
        reader = text.TextReader(formats.open_list(source, "csv"), "csv", Column("id"))
        blocks = list(reader.blocks())
    items = [None if index in block.faults else item for block in blocks for index, item in enumerate(block.items)]
    assert items == expected


# --- fidelity -----------------------------------------------------------------------------------------------------

SMALL_BLOCKS = st.sampled_from([4, 7, 64, 1 << 20])
raw = st.binary(max_size=6) | st.sampled_from([b"abc", b'"', b'""', b"\xff", b"\0", b"\r", b" ", b"'"])


@contextlib.contextmanager
def blocks_of(size: int) -> Iterator[None]:
    before = delimited.BLOCK_BYTES
    delimited.BLOCK_BYTES = size
    try:
        yield
    finally:
        delimited.BLOCK_BYTES = before


@st.composite
def tables(draw: st.DrawFn, field: st.SearchStrategy[bytes]) -> tuple[list[list[bytes]], int, list[bytes]]:
    """Draw rows of equal width, the index of a column, and what each row ends with."""
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(field, min_size=width, max_size=width), max_size=8))
    ends = [draw(st.sampled_from([b"\n", b"\r\n"])) for _ in rows]
    if rows and draw(st.booleans()) and rows[-1][-1]:
        ends[-1] = b""
    return rows, draw(st.integers(0, width - 1)), ends


def path_of(identifier: bytes) -> bytes:
    return PAIRTREE.map_id(identifier).encode() if identifier else b""


def is_no_text(table: bytes) -> bool:
    """Whether a line begins with a byte-order mark, or the first bytes are those of another kind of file."""
    mark = b"\xef\xbb\xbf"
    return (
        table.startswith((mark, b"\xff\xfe", b"\xfe\xff"))
        or b"\n" + mark in table
        or any(pattern.match(table) for pattern, _what in formats._FOREIGN)
    )


@given(tables(raw.map(lambda field: field.translate(None, b"\t\n\r"))), SMALL_BLOCKS)
def test_tsv_keeps_every_other_byte(table: tuple[list[list[bytes]], int, list[bytes]], block: int) -> None:
    """TSV output is the input, byte for byte, with one more field."""
    rows, index, ends = table
    given_ = b"".join(b"\t".join(row) + end for row, end in zip(rows, ends, strict=True))
    expected = b"".join(b"\t".join([*row, path_of(row[index])]) + end for row, end in zip(rows, ends, strict=True))
    if is_no_text(given_):
        return
    with blocks_of(block):
        written, failed, ended = mapped_to_its_end(
            given_, format="tsv", column=index + 1, header=False, delimiter=r"\t", on_error="none"
        )
    if "content is UTF-16" in ended:
        assert b"\0" in given_
        return
    assert ended == ""
    assert written == expected
    assert sum("identifier is empty" in line for line in failed) == sum(not row[index] for row in rows)


def quoted(value: bytes) -> bytes:
    return b'"%b"' % value.replace(b'"', b'""')


def may_stand_bare(value: bytes) -> bool:
    return not value.startswith(b'"') and not any(byte in value for byte in (b",", b"\n", b"\r"))


@st.composite
def csv_fields(draw: st.DrawFn) -> bytes:
    value = draw(raw | st.sampled_from([b",", b"a,b", b"\n", b'"\n"', b"a\r\nb", b'5" disk']))
    return value if may_stand_bare(value) and draw(st.booleans()) else quoted(value)


def meaning(field: bytes) -> bytes:
    return field[1:-1].replace(b'""', b'"') if field.startswith(b'"') else field


@given(tables(csv_fields()), SMALL_BLOCKS)
@example(([[b"", b'"a"'], [b'""', b""]], 1, [b"\n", b"\n"]), 4)
@example(([[b'"""\n"""', b'"\n"']], 0, [b"\r\n"]), 4)
def test_csv_keeps_every_other_byte(table: tuple[list[list[bytes]], int, list[bytes]], block: int) -> None:
    """CSV output is the input, byte for byte, with one more field, and the csv module agrees."""
    rows, index, ends = table
    paths = [path_of(meaning(row[index])) for row in rows]
    fields = [path if may_stand_bare(path) and b'"' not in path else quoted(path) for path in paths]
    given_ = b"".join(b",".join(row) + end for row, end in zip(rows, ends, strict=True))
    expected = b"".join(b",".join([*row, field]) + end for row, field, end in zip(rows, fields, ends, strict=True))
    if is_no_text(given_):
        return
    with blocks_of(block):
        written, _failed = mapped(given_, format="csv", column=index + 1, header=False, delimiter=",", on_error="none")
    assert written == expected
    if sys.version_info >= (3, 11) and rows:
        read = list(csv.reader(io.StringIO(written.decode("latin-1"), newline="")))
        means = [[*map(meaning, row), path] for row, path in zip(rows, paths, strict=True)]
        assert [[field.encode("latin-1") for field in row] for row in read] == means


HOSTILE = st.lists(
    st.sampled_from(
        [b"abc", b"a.b", b"", b"\xff", b"\0", b",", b",", b"\t", b"\n", b"\n", b"\r\n", b"\r", b'"', b'""']
    ),
    max_size=24,
).map(b"".join)


@given(
    HOSTILE,
    SMALL_BLOCKS,
    st.sampled_from(["csv", "tsv"]),
    st.sampled_from(["raise", "skip", "none"]),
    st.integers(1, 2),
)
@example(b"abc,x\r\n,y\nd,e", 4, "csv", "skip", 1)
@example(b"abc\ta\rb", 4, "tsv", "none", 2)
def test_whole_blocks_and_single_rows_agree(table: bytes, block: int, kind: str, on_error: str, column: int) -> None:
    """Rows that the kernels cut and join have the output, errors and exit status of rows that Python splits."""
    if is_no_text(table):
        return
    options = {"format": kind, "column": column, "header": False, "on_error": on_error}
    options["delimiter"] = "," if kind == "csv" else r"\t"
    for layout in (PAIRTREE, FlatDirect()):
        with blocks_of(block), pytest.MonkeyPatch.context() as patch:
            whole = mapped_to_its_end(table, layout, **options)
            patch.setattr(text.TextBlock, "_fields", None)
            assert mapped_to_its_end(table, layout, **options) == whole


def test_threads() -> None:
    """The output and the order of failures do not depend on the number of threads."""
    table = b"".join(b'"a:%d","x\n""y"""\n%s,z\n' % (number, b"" if number % 7 else b'""') for number in range(999))
    options = {"format": "csv", "column": 1, "header": False}
    with blocks_of(100):
        for on_error in ("raise", "skip", "none"):
            alone = mapped_to_its_end(table, threads=1, on_error=on_error, **options)
            assert mapped_to_its_end(table, threads=3, on_error=on_error, **options) == alone
