"""The lines of entries: those of a plan, and those of a report."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from pressmark.migrate.entry import ROW_KEYS, Entry

TEXTS = st.text() | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape"))
NUMBERS = st.integers(-(2**70), 2**70)
ENTRIES = st.builds(
    Entry, TEXTS, TEXTS, TEXTS, TEXTS, files=NUMBERS, bytes=NUMBERS, entries=TEXTS, encapsulation=st.none() | TEXTS
)
STATE = "0123456789abcdef0123456789abcdef.fedcba9876543210fedcba9876543210"
PLANNED = Entry("a/é", "a", "pairtree_root/a", "x/a", files=2, bytes=30, entries=STATE, encapsulation="obj\udcff")


def test_the_line_of_a_plan() -> None:
    """A planned object has eight keys, in ASCII."""
    line = (
        b'{"id":"a/\\u00e9","source_id":"a","source":"pairtree_root/a","target":"x/a","encapsulation":"obj\\udcff",'
        b'"files":2,"bytes":30,"entries":"0123456789abcdef0123456789abcdef.fedcba9876543210fedcba9876543210"}\n'
    )
    assert PLANNED.line() == line
    assert Entry.parse(line) == PLANNED
    assert list(PLANNED.record()) == list(json.loads(line))
    without = replace(PLANNED, encapsulation=None)
    assert without.line() == line.replace(b'"obj\\udcff"', b"null")
    assert Entry.parse(without.line()) == without


def test_the_line_of_a_row() -> None:
    """An object with any other status has seventeen keys; the encapsulating directory is not among them."""
    row = replace(
        PLANNED,
        status="ok",
        mode="copy",
        algorithm="sha512",
        digest="ab",
        verify="copy",
        error="left out",
        started="2026-01-02T03:04:05.678Z",
        seconds=0.25,
        host="h",
    )
    line = (
        b'{"id":"a/\\u00e9","source_id":"a","source":"pairtree_root/a","target":"x/a","status":"ok","mode":"copy",'
        b'"files":2,"bytes":30,"algorithm":"sha512","digest":"ab","verify":"copy","error_code":null,'
        b'"error":"left out","started":"2026-01-02T03:04:05.678Z","seconds":0.25,"host":"h",'
        b'"entries":"0123456789abcdef0123456789abcdef.fedcba9876543210fedcba9876543210"}\n'
    )
    assert row.line() == line
    assert Entry.parse(line) == replace(row, encapsulation=None)
    assert list(row.record()) == list(json.loads(line)) == list(ROW_KEYS)


@given(ENTRIES)
def test_line(entry: Entry) -> None:
    """A line is the JSON object of the entry in ASCII, whatever its texts contain."""
    for one in (entry, replace(entry, status="ok", encapsulation=None)):
        line = one.line()
        assert line == json.dumps(one.record(), separators=(",", ":")).encode("ascii") + b"\n"
        assert Entry.parse(line) == one


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":"a"}',
        b"[]",
        b"1",
        b"{",
        b'{"id":"a","source_id":"a","source":"a","target":"b","encapsulation":null,"files":1,"bytes":2,"changed":3}',
    ],
)
def test_what_is_no_entry(line: bytes) -> None:
    """Also an entry of an earlier format, without the state of the object."""
    with pytest.raises(ValueError, match=r"Entry|mapping|Expecting"):
        Entry.parse(line + b"\n")
