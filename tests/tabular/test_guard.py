"""Bytes that lead to wrong paths are refused wherever they are in a list, by every reader of lists."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from pressmark.errors import FormatError, TableError
from pressmark.layouts.blocks import identifier_blocks
from pressmark.tabular.formats import BOM, ListStream, open_list
from pressmark.tabular.identifiers import read_identifiers
from support.implementations import Implementation
from support.streams import Pieces

GOOD = b"".join(b"id%06d\n" % number for number in range(9000))  # more than the first bytes that are checked at once
LISTS = {
    "CR LF": b"a\r\nb\r\n",
    "CR LF at the end": b"a\r",
    "CR": b"a\rb\rc\r",
    "CR, then a file with LF": b"a\rb\rc\n",
    "CR without the last one": b"a\rb",
    "byte-order mark": BOM + b"a\nb\n",
    "byte-order mark after a file without last line end": b"a" + BOM + b"b\n",
    "UTF-16": "ab\ncd\n".encode("utf-16-le"),
}
TABLES = {
    "CR": b"a\rb\rc\r",
    "CR, then a file with LF": b"a\rb\rc\n",
    "CR without the last one": b"a\rb",
    "byte-order mark": BOM + b"id\na\n",
    "UTF-16": "abcdef\n".encode("utf-16-le"),
    "UTF-16, big end first": "abcdef\n".encode("utf-16-be"),
}


def read(stream: ListStream) -> bytes:
    return b"".join(iter(lambda: stream.read(1 << 16), b""))


@pytest.mark.parametrize("size", [1, 3, 1 << 16])
@pytest.mark.parametrize("kind", LISTS)
def test_lists(kind: str, size: int) -> None:
    """The bytes may be cut anywhere."""
    data = LISTS[kind]
    with pytest.raises(TableError, match="; "):
        read(
            open_list(
                Pieces(
                    [GOOD[:60_000], GOOD[60_000:], *(data[start : start + size] for start in range(0, len(data), size))]
                )
            )
        )


@pytest.mark.parametrize("size", [1, 2, 5, 1 << 16])
def test_strip_removes_every_mark_and_return(size: int) -> None:
    """A byte-order mark at the start of any line is removed, one inside a line refused."""
    joined = BOM + b"a\r\nb\r\n" + BOM + b"c\r\n" + b"\xef\n" + BOM[:2] + b"\n" + BOM
    pieces = [joined[start : start + size] for start in range(0, len(joined), size)]
    assert read(open_list(Pieces(pieces), crlf="strip")) == b"a\nb\nc\n\xef\n\xef\xbb\n"
    for refused in (b"a" + BOM + b"b\r\n", b"a\rb\rc\r\n"):
        with pytest.raises(TableError, match="crlf='keep'"):
            read(open_list(Pieces([GOOD[:60_000], GOOD[60_000:], refused]), crlf="strip"))
    everything = GOOD + b"".join(LISTS.values())
    assert read(open_list(io.BytesIO(everything), crlf="keep")) == everything


@pytest.mark.parametrize("kind", LISTS)
def test_files_of_lists(tmp_path: Path, kind: str, implementation: Implementation) -> None:
    path = tmp_path / "ids"
    path.write_bytes(GOOD + LISTS[kind])
    with pytest.raises(TableError, match=r"ids: .*; "):
        list(identifier_blocks(path))
    with pytest.raises(TableError, match=r"ids: .*; "):
        list(read_identifiers(path))
    (tmp_path / "ids.gz").write_bytes(gzip.compress(GOOD + LISTS[kind]))
    with pytest.raises(TableError, match=r"ids\.gz: .*; "):
        list(read_identifiers(tmp_path / "ids.gz"))


@pytest.mark.parametrize("format", ["csv", "tsv"])
@pytest.mark.parametrize("kind", TABLES)
def test_files_of_tables(tmp_path: Path, kind: str, format: str, implementation: Implementation) -> None:
    path = tmp_path / f"ids.{format}"
    path.write_bytes(b"id\n" + GOOD + TABLES[kind])
    with pytest.raises(TableError, match="; "):
        list(read_identifiers(path))


@pytest.mark.parametrize(
    "head",
    [
        b"id\ra\r",
        b"id\ra",
        "id\na\n".encode("utf-16-le"),
        "id\na\n".encode("utf-16-be"),
        "id".encode("utf-16-le"),
        "id\n識別\n".encode("utf-16-le"),
    ],
)
@pytest.mark.parametrize("format", ["csv", "tsv", "jsonl"])
def test_tables_by_their_first_bytes(head: bytes, format: str) -> None:
    with pytest.raises(FormatError, match="; convert"):
        open_list(io.BytesIO(head), format)


def test_line_feeds_in_quoted_fields_end_no_row() -> None:
    with pytest.raises(FormatError, match="rows end with carriage returns only"):
        open_list(io.BytesIO(b'"id"\r"a\nb"\rc\r'), "csv")


def test_quotes_inside_fields_begin_no_quoted_field() -> None:
    text = b'5" disk,"a"\n"\r",b'
    assert open_list(io.BytesIO(text), "csv").read(1000) == text
    open_list(io.BytesIO(b'\xef\xbb\xbf"a\nb"\n"a\rb"'), "csv")


@pytest.mark.parametrize("text", ["ab\r\ncd\r\n", "Ābcdefgh\n" * 9])
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_lists_in_utf16(tmp_path: Path, text: str, codec: str) -> None:
    data = text.encode(codec)
    for delimiter in (b"\n", b"\0", None):
        with pytest.raises(FormatError, match="UTF-16"):
            open_list(io.BytesIO(data), delimiter=delimiter)
    assert open_list(io.BytesIO(data), delimiter=b"\0", crlf="keep").read(1000) == data


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("csv", b'id,t\n"a\rb\rc","d\re\r\n\r"\n'),  # line ends of old Macs in quoted fields
        ("csv", b"id,t\r\na,b\r\n" * 9000),
        ("csv", b"id,t\na,b\rc\n"),
        ("csv", "id,t\na,\ufeffb\n".encode()),
        ("csv", b"id,t\n\0,\0\n\0,\0\n"),
        ("csv", b"id,t\r"),
        ("tsv", b'id\tt\na"\tb\rc\n'),
        ("jsonl", b'{"id": "\\r\\r"}\r\n'),
        ("lines", b"a\rb\n" * 20000),
        ("lines", "Ā\uff01\n".encode() * 9000),
    ],
)
def test_sound_files_are_accepted(tmp_path: Path, format: str, data: bytes) -> None:
    path = tmp_path / f"ids.{format}"
    path.write_bytes(data)
    if format == "lines":
        (tmp_path / "ids.txt").write_bytes(data)
        assert list(read_identifiers(tmp_path / "ids.txt"))[-1] == data.decode().split("\n")[-2]
    else:
        list(read_identifiers(path))
    assert read(open_list(io.BytesIO(data), format)) == data


def test_one_letter_items_that_end_with_nul() -> None:
    assert open_list(io.BytesIO(b"a\0b\0c\0"), delimiter=b"\0").read(100) == b"a\0b\0c\0"
