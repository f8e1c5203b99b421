"""The lines of a plan."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from pressmark.migrate.planning.entry import PlanEntry

TEXTS = st.text() | st.binary().map(lambda data: data.decode("utf-8", "surrogateescape"))
NUMBERS = st.integers(-(2**70), 2**70)


@given(st.builds(PlanEntry, TEXTS, TEXTS, TEXTS, TEXTS, st.none() | TEXTS, NUMBERS, NUMBERS, TEXTS))
def test_line(entry: PlanEntry) -> None:
    """A line is the JSON object of the entry in ASCII, and its keys keep their order."""
    line = entry.line()
    assert line == json.dumps(entry._asdict(), separators=(",", ":")).encode("ascii") + b"\n"
    assert PlanEntry.parse(line) == entry


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
    with pytest.raises(ValueError, match=r"PlanEntry|mapping|Expecting"):
        PlanEntry.parse(line + b"\n")
