"""The bag declaration: its content, and every possible error."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pressmark.bagit.bagit_txt import DECLARATION_LIMIT, VERSIONS, Declaration, declaration_bytes, read_declaration
from pressmark.bagit.problems import KINDS

GOOD = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("encoding", ["UTF-8", "utf-8", "ISO-8859-1"])
def test_declarations_are_read_back(version: tuple[int, int], encoding: str) -> None:
    """Every known version and encoding is read back; any other than UTF-8 causes a warning."""
    declaration = Declaration(version, encoding)
    found, problems = read_declaration(declaration_bytes(declaration))
    assert found == declaration
    assert [one.kind for one in problems] == (["encoding-not-utf8"] if encoding == "ISO-8859-1" else [])
    assert declaration_bytes() == GOOD


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_any_line_end(end: bytes) -> None:
    """LF, CR and CRLF are accepted."""
    assert read_declaration(GOOD.replace(b"\n", end)) == (Declaration(), ())


BAD = {
    "empty": (b"", Declaration(), ["declaration-malformed"]),
    "one line": (b"BagIt-Version: 0.97\n", Declaration((0, 97)), ["declaration-malformed"]),
    "three lines": (GOOD + b"a: b\n", Declaration(), ["declaration-malformed"]),
    "blank line": (GOOD + b"\n", Declaration(), ["declaration-malformed"]),
    "other order": (
        b"Tag-File-Character-Encoding: UTF-8\nBagIt-Version: 1.0\n",
        Declaration(),
        ["declaration-malformed"] * 2,
    ),
    "mark": (b"\xef\xbb\xbf" + GOOD, Declaration(), ["bom"]),
    "UTF-16": (GOOD.decode().encode("utf-16"), Declaration(), None),
    "not UTF-8": (b"BagIt-Version: \xff\n" + GOOD[19:], Declaration(), ["undecodable"]),
    "label's case": (GOOD.replace(b"Version", b"version"), Declaration(), ["declaration-label"]),
    "no blank": (GOOD.replace(b": 1.0", b":0.97"), Declaration((0, 97)), ["declaration-malformed"]),
    "two blanks": (GOOD.replace(b": 1.0", b":  0.97"), Declaration((0, 97)), ["declaration-malformed"]),
    "tab": (GOOD.replace(b": 1.0", b":\t1.0"), Declaration(), ["declaration-malformed"]),
    "blank before": (GOOD.replace(b": 1.0", b" : 1.0"), Declaration(), ["declaration-malformed"]),
    "blank after": (GOOD.replace(b"1.0", b"0.97 "), Declaration((0, 97)), ["declaration-malformed"]),
    "blank after encoding": (GOOD.replace(b"-8", b"-8 "), Declaration(), ["declaration-malformed"]),
    "no version": (GOOD.replace(b"1.0", b"one"), Declaration(), ["declaration-malformed"]),
    "other digits": (GOOD.replace(b"1.0", "\uff11.0".encode()), Declaration(), ["declaration-malformed"]),
    "endless version": (GOOD.replace(b"1.0", b"1" * 5000 + b".0"), Declaration(), ["declaration-malformed"]),
    "unknown version": (GOOD.replace(b"1.0", b"2.0"), Declaration((2, 0)), ["version-unknown"]),
    "never published": (GOOD.replace(b"1.0", b"0.98"), Declaration((0, 98)), ["version-unknown"]),
    "unknown encoding": (GOOD.replace(b"UTF-8", b"UTF-9"), Declaration(), ["encoding-unknown"]),
    "no encoding": (GOOD.replace(b"UTF-8", b"rot13"), Declaration(), ["encoding-unknown"]),
    "unterminated": (GOOD[:-1], Declaration(), ["line-unterminated"]),
    "too large": (GOOD + b"x" * DECLARATION_LIMIT, Declaration(), ["declaration-malformed"]),
}


@pytest.mark.parametrize("what", BAD)
def test_problems_of_declarations(what: str) -> None:
    """Each declaration has exactly its problems, and the most likely meaning."""
    data, declaration, kinds = BAD[what]
    found, problems = read_declaration(data)
    assert found == declaration
    assert all(one.path == "bagit.txt" and "\n" not in one.message for one in problems)
    if kinds is not None:
        assert [one.kind for one in problems] == kinds


@given(st.binary(max_size=100) | st.lists(st.sampled_from([*GOOD.split(b" "), b" ", b"\r", b"\n"])).map(b"".join))
def test_any_input(data: bytes) -> None:
    """Any input gives a version, a known encoding, and problems of known kinds."""
    declaration, problems = read_declaration(data)
    assert all(one.kind in KINDS for one in problems)
    again, none = read_declaration(declaration_bytes(declaration))
    assert again == declaration
    assert {one.kind for one in none} <= {"version-unknown", "encoding-not-utf8"}
    assert problems or data.splitlines() == declaration_bytes(declaration).splitlines()
