"""Detection of formats by names and first bytes, and the stream of the bytes after them."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from pressmark import Pairtree
from pressmark.errors import FormatError
from pressmark.fs import gzipped
from pressmark.layouts import streams as lines
from pressmark.layouts.blocks import identifier_blocks
from pressmark.tabular.formats import ListStream, format_of, open_list
from support.implementations import Implementation
from support.streams import Pieces, map_lines

TEXT = st.text("ab\r\n", max_size=40).map(str.encode)


def whole(stream: ListStream, sizes: Iterable[int]) -> bytes:
    """Read a stream to its end, this many bytes at a time."""
    parts: list[bytes] = []
    for size in sizes:
        part = stream.read(size)
        assert len(part) <= size
        if not part:
            assert stream.read(size) == b""
            break
        parts.append(part)
    return b"".join(parts)


class Dribble(io.BytesIO):
    """A pipe that holds at most two bytes."""

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(min(size or 0, 2))


@given(TEXT, st.integers(0, 40), st.lists(st.integers(1, 9), min_size=1, max_size=5), st.booleans())
def test_a_stream_is_the_file(text: bytes, head: int, sizes: list[int], strip: bool) -> None:
    """With ``strip``, a stream is the file without each carriage return before a line feed or the end."""
    stream = ListStream(Dribble(text[head:]), "text", text[:head], strip=strip)
    expected = (text + b"\n").replace(b"\r\n", b"\n")[:-1] if strip else text
    assert whole(stream, sizes * (len(text) + 2)) == expected


def test_full_blocks(implementation: Implementation) -> None:
    """The blocks of a stripped file are as full as those of a file without carriage returns."""
    stream = open_list(io.BytesIO(b"ab\r\n" * (3 << 18)), crlf="strip")
    sizes = [len(block) for block in iter(lambda: stream.read(lines.BLOCK_BYTES), b"")]
    # The bytes read ahead come first, the rest last.
    assert sizes[1:-1] == [lines.BLOCK_BYTES] * (sum(sizes[1:-1]) // lines.BLOCK_BYTES)
    assert max(sizes[0], sizes[-1]) < lines.BLOCK_BYTES
    assert sum(sizes) == 3 * (3 << 18)
    stream, written = open_list(io.BytesIO(b"ab\r\ncd\r"), crlf="strip"), io.BytesIO()
    map_lines(Pairtree(), stream, written)  # type: ignore[arg-type]
    assert written.getvalue() == b"ab\ncd"


def test_lines_are_returned_at_once() -> None:
    """A line from a pipe is returned before the next one arrives."""

    def slowly() -> Iterable[bytes]:
        yield b"one\r\n"
        raise AssertionError("read too far")

    stream = open_list(Pieces(slowly()), crlf="strip")
    assert stream.read(1 << 20) == b"one\n"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a", None),
        ("a.txt", "lines"),
        ("A.TXT.GZ", "lines"),
        ("a.tab", "tsv"),
        ("a.ndjson.gz", "jsonl"),
        ("dir.xlsx/a.csv", "csv"),
        ("a.pq", "parquet"),
        (".zip", None),
    ],
)
def test_names(name: str, expected: str | None) -> None:
    assert format_of(name) == expected


@pytest.mark.parametrize("name", ["a.Xlsx", "a.tar.gz", "a.csv.zst", "a.json", "a.pdf.gz"])
def test_foreign_names(name: str) -> None:
    with pytest.raises(FormatError, match="; "):
        format_of(name)


@pytest.mark.parametrize(
    "data",
    [
        b"PAR1234\n",
        b"PAR1\n",
        b"BZh91\n",
        b"PKP-1\n",
        b"\xff\xfe\xe9\n",
        b"<http://example.org/1>\n",
        b"{550e8400}\n",
        b"[x]\n",
        b"Obj1\n",
        b"a\rb\n",
        b"\xef\xbb\n",
    ],
)
def test_identifiers_that_resemble_a_format(data: bytes) -> None:
    """Identifiers that resemble another format are accepted."""
    assert open_list(io.BytesIO(data)).read(100) == data


def test_json_is_not_a_list_of_lines() -> None:
    for data in (b'{"id": "a"}\n', b'[{"id": "a"}]', b'{\n  "id": "a"\n}\n', b'["a", "b"]\n'):
        with pytest.raises(FormatError, match="JSON"):
            open_list(io.BytesIO(data))
        assert open_list(io.BytesIO(data), json_lines=False).read(100) == data


def test_tables_have_no_byte_order_mark() -> None:
    stream = open_list(io.BytesIO(b"\xef\xbb\xbfid\r\na\r\n"), "csv")
    assert (stream.bom, stream.read(100)) == (b"\xef\xbb\xbf", b"id\r\na\r\n")


def test_files_of_identifiers(tmp_path: Path, implementation: Implementation) -> None:
    """A path is checked; a stream is read unchanged."""
    path = tmp_path / "ids"
    path.write_bytes(b"a\r\nb\r\n")
    with pytest.raises(FormatError, match=r"ids: carriage return at the end of lines; use crlf='strip'"):
        list(identifier_blocks(path))
    for crlf, expected in (("strip", [b"a", b"b"]), ("keep", [b"a\r", b"b\r"])):
        (block,) = identifier_blocks(path, crlf=crlf)  # type: ignore[arg-type]
        assert [block.column[index] for index in range(len(block.column))] == expected
    (block,) = identifier_blocks(io.BytesIO(b"a\r\n"))
    assert block.column[0] == b"a\r"


@given(st.lists(st.binary(max_size=50), max_size=5), st.integers(1, 20), st.integers(1, 20))
def test_gunzip_inverts_gzip(members: list[bytes], read: int, size: int) -> None:
    """Reads of any size return the full number of bytes until the end."""
    packed = b"".join(map(gzip.compress, members)) or zlib.compress(b"", wbits=31)
    before, gzipped.READ_BYTES = gzipped.READ_BYTES, read
    try:
        source = gzipped.GunzippedStream(io.BytesIO(packed), "x")
        parts = list(iter(lambda: source.read(size), b""))
    finally:
        gzipped.READ_BYTES = before
    assert b"".join(parts) == b"".join(members)
    assert all(len(part) == size for part in parts[:-1])
