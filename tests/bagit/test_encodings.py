"""Text tag files: character sets, byte-order marks and lines."""

from __future__ import annotations

import io
import os
import re
import tracemalloc

import pytest
from hypothesis import given, strategies as st

from pressmark.bagit import encodings as text
from pressmark.bagit.encodings import LINE_LIMIT, UTF8, Charset, Line, LineReader, find_charset
from pressmark.reports import Problem

NAME = b"tag.txt"


def charset(name: str) -> Charset:
    found = find_charset(name)
    assert found is not None
    return found


def read(data: bytes, encoding: str = "UTF-8", file: io.BytesIO | None = None) -> tuple[list[Line], list[str]]:
    """Return all lines and the kinds of all problems."""
    reader = LineReader(file or io.BytesIO(data), charset(encoding), NAME)
    lines, kinds = [], []
    while (found := reader.line()) is not None:
        if isinstance(found, Problem):
            assert found.path == os.fsdecode(NAME)
            kinds.append(found.kind)
        else:
            lines.append(found)
    return lines, kinds


class Trickle(io.BytesIO):
    """A file that returns a few bytes per read."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self.size_at_a_time = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.size_at_a_time)


ENCODINGS = ["UTF-8", "UTF-16", "UTF-16LE", "UTF-16BE", "UTF-32", "UTF-32LE", "ISO-8859-1", "Shift_JIS", "IBM037"]
# Characters whose bytes resemble line ends in some encoding.
TEXTS = st.text(st.sampled_from("ab \t\u0a0d\u0d0a\u0a00\u0d00\u010a\x85\u2028\x0b\x0c\x1c\r\n"), max_size=12)


@given(TEXTS, st.sampled_from(ENCODINGS), st.integers(1, 9))
def test_lines_end_after_decoding(content: str, encoding: str, size: int) -> None:
    """Only LF, CR and CRLF end a line, also in wide encodings and with short reads."""
    if encoding[:3] != "UTF":
        content = "".join(c for c in content if c in "ab \t\x85\r\n" and (encoding != "IBM037" or c != "\x85"))
    if encoding == "Shift_JIS":
        content = content.replace("\x85", "\u80fd\u8868")
    data = content.encode({"IBM037": "cp037"}.get(encoding, encoding))
    expected = re.split("\r\n|\r|\n", content)
    unterminated = bool(expected.pop()) if expected[-1] == "" else True
    if unterminated and expected and not content.endswith(("\r", "\n")):
        expected = re.split("\r\n|\r|\n", content)
    lines, kinds = read(data, encoding, Trickle(data, size))
    reader = LineReader(io.BytesIO(data), charset(encoding), NAME)
    assert [reader.charset.decode(line.data) for line in lines] == expected
    assert kinds == (["line-unterminated"] if content and not content.endswith(("\r", "\n")) else [])
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    for line in lines:
        assert data[line.offset :].startswith(line.data)


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_split_crlf(cut: int) -> None:
    """CRLF across two blocks is one line end."""
    data = b"ab\r\nc\r\r\nd\n\r"
    lines, kinds = read(data, file=Trickle(data, cut))
    assert [line.data for line in lines] == [b"ab", b"c", b"", b"d", b""]
    assert kinds == []


@pytest.mark.parametrize(
    ("encoding", "data", "kinds", "lines"),
    [
        ("UTF-8", b"\xef\xbb\xbfa\n", ["bom"], ["a"]),
        ("UTF-8", b"\xef\xbba\n", [], None),
        ("UTF-16", b"\xff\xfea\0\n\0", [], ["a"]),
        ("UTF-16", b"\xfe\xff\0a\0\n", [], ["a"]),
        ("UTF-16", b"\0a\0\n", ["bom-missing"], ["a"]),
        ("UTF-16", b"a\0\n\0", ["bom-missing"], ["a"]),
        ("UTF-16", b"", [], []),
        ("UTF-16LE", b"a\0\n\0", [], ["a"]),
        ("UTF-16LE", b"\xff\xfea\0\n\0", ["bom"], ["a"]),
        ("UTF-32", b"\0\0\xfe\xff\0\0\0a\0\0\0\n", [], ["a"]),
        ("UTF-32", b"a\0\0\0\n\0\0\0", ["bom-missing"], ["a"]),
        ("UTF-32BE", b"\0\0\xfe\xff\0\0\0a\0\0\0\n", ["bom"], ["a"]),
    ],
)
def test_byte_order_marks(encoding: str, data: bytes, kinds: list[str], lines: list[str] | None) -> None:
    """A byte-order mark is required by some encodings, not allowed by others, and not part of the first line."""
    reader = LineReader(io.BytesIO(data), charset(encoding), NAME)
    found = read(data, encoding)
    assert found[1] == kinds
    if lines is not None:
        assert [reader.charset.decode(line.data) for line in found[0]] == lines


@pytest.mark.parametrize(
    "name",
    [
        *("UTF-8", "utf-8", "UTF8", "US-ASCII", "ISO-8859-1", "latin1", "ISO_8859-15", "windows-1252", "KOI8-R"),
        *("UTF-16", "UTF-16LE", "UTF-32BE", "Shift_JIS", "EUC-JP", "GB18030", "Big5", "IBM037", "ISO-2022-JP", "UTF-7"),
    ],
)
def test_character_sets(name: str) -> None:
    """Registered character sets are known."""
    found = find_charset(name)
    assert found is not None
    assert found.encode("a")


@pytest.mark.parametrize(
    "name",
    [
        *("rot13", "rot-13", "hex", "base64", "bz2", "zlib", "uu", "quopri", "idna", "punycode", "unicode_escape"),
        *("raw-unicode-escape", "undefined", "mbcs", "utf-8-sig", "", "UTF-9", "../etc/passwd", "a" * 1000, "UTF-8\n"),
        *("os.path", "UTF-8\0", "\uff35TF-8"),
    ],
    ids=ascii,
)
def test_codecs_that_are_not_character_sets(name: str) -> None:
    """Python's other codecs and unknown names are not character sets."""
    assert find_charset(name) is None


def test_an_encoded_line_end() -> None:
    """In UTF-7 a line end can be encoded inside a line: such a line is not text."""
    utf7 = charset("UTF-7")
    with pytest.raises(UnicodeDecodeError):
        utf7.to_utf8(b"a+AAo-b")
    with pytest.raises(UnicodeDecodeError):
        utf7.to_utf8(b"+2AA-")
    assert utf7.to_utf8(b"+AOk-") == "\u00e9".encode()


class Endless(io.RawIOBase):
    """A file too large for memory: one long line, then others."""

    def __init__(self, length: int, rest: bytes, filling: bytes = b"x") -> None:
        self.left = length
        self.rest = rest
        self.chunk = filling * (1 << 18)

    def read(self, size: int = -1) -> bytes:
        if self.left:
            count = min(self.left, len(self.chunk), size)
            self.left -= count
            return self.chunk[:count]
        rest, self.rest = self.rest[:size], self.rest[size:]
        return rest


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16LE"])
def test_an_endless_line(encoding: str) -> None:
    """A hundred million bytes without a line end take no memory; the following lines are read."""
    rest = "\r\nnext\n".encode(charset(encoding).codec)
    length = 100_000_000
    tracemalloc.start()
    reader = LineReader(Endless(length, rest), charset(encoding), NAME)  # type: ignore[arg-type]
    problem, line, nothing = reader.line(), reader.line(), reader.line()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(problem, Problem)
    assert problem.kind == "line-too-long"
    assert f"line 1 is {length} bytes" in problem.message
    assert isinstance(line, Line)
    assert (line.number, charset(encoding).decode(line.data)) == (2, "next")
    assert nothing is None
    assert peak < 8 * LINE_LIMIT


@pytest.mark.parametrize(
    "length", [LINE_LIMIT - 1, LINE_LIMIT, LINE_LIMIT + 1, LINE_LIMIT + text.BLOCK, 2 * LINE_LIMIT]
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b""])
def test_the_longest_line(length: int, end: bytes) -> None:
    """A line of the maximum length is read, a longer one is skipped, with any line end."""
    data = b"first\n" + b"x" * length + end + (b"last\n" if end else b"")
    lines, kinds = read(data)
    long_ones = [] if length > LINE_LIMIT else [b"x" * length]
    assert [line.data for line in lines] == [b"first", *long_ones, *([b"last"] if end else [])]
    assert kinds == ["line-too-long"] * (length > LINE_LIMIT) + ["line-unterminated"] * (not end)
    if end:
        assert lines[-1].number == 3


def test_the_charset_is_a_value() -> None:
    """Character sets are equal by value; UTF-8 is one under all its names."""
    assert charset("utf8") is UTF8
    assert charset("latin1") == charset("latin1")
    assert charset("UTF-16LE").unit == 2
