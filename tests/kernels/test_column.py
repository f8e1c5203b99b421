"""Columns of byte strings: all constructors and conversions return the original items."""

from __future__ import annotations

import re
from array import array
from itertools import accumulate

import pytest
from hypothesis import example, given, strategies as st

from pressmark._kernels.tables import ErrorCode
from strategies import identifiers, texts
from support.implementations import Implementation
from support.outcomes import common_outcome

COLUMNS = (
    [],
    [b""],
    [b"", b""],
    [b"a"],
    [b"", b"a", b"", b"bc", b""],
    [b"\0", b"\xff\xfe", "\u00e9\U0001f350".encode(), b"\n"],
    [b"x" * length for length in range(70)],
    [b"y" * 100_000, b"", b"z"],
)


def packed_of(implementation: Implementation, items: list[bytes]):
    packed, faults = implementation.kernels.ByteColumn.from_texts(items)
    assert faults == []
    return packed


@pytest.mark.parametrize("items", COLUMNS, ids=lambda items: f"{len(items)} items, {sum(map(len, items))} bytes")
def test_a_column_keeps_its_items(implementation: Implementation, items: list[bytes]) -> None:
    """Length, items, texts and buffers of a column match its input, and its buffers make an equal column."""
    packed = packed_of(implementation, items)
    data, offsets = packed.buffers()
    assert len(packed) == len(items)
    assert [packed[index] for index in range(len(items))] == items
    assert packed.to_texts() == [item.decode("utf-8", "surrogateescape") for item in items]
    assert data == b"".join(items)
    assert (offsets.typecode, offsets.tolist()) == ("q", list(accumulate(map(len, items), initial=0)))
    again = implementation.kernels.ByteColumn.from_buffers(data, offsets)
    assert again.buffers() == (data, offsets)
    with pytest.raises(IndexError):
        packed[len(items)]


def test_buffers_may_begin_anywhere(implementation: Implementation) -> None:
    """Offsets need not start at 0 or end at the end of the data, as in slices of Arrow arrays."""
    packed = implementation.kernels.ByteColumn.from_buffers(b"abcdef", array("q", [2, 3, 3, 5]))
    assert [packed[index] for index in range(3)] == [b"c", b"", b"de"]


@pytest.mark.parametrize("delimiter", [b"\n", b"\0", b"/", b"\xff"])
def test_lines_are_cut_and_joined(implementation: Implementation, delimiter: bytes) -> None:
    """A block is split at its delimiters only and joined to the same block, with or without a final delimiter."""
    packed_type = implementation.kernels.ByteColumn
    for items in ([], [b""], [b"", b""], [b"a", b"", b"bc"], [b"a\r", b"\t"], [b"x" * 5000] * 3):
        block = b"".join(item + delimiter for item in items)
        packed = packed_type.from_lines(block, delimiter)
        assert [packed[index] for index in range(len(packed))] == items
        assert packed.to_lines(delimiter) == block
        unended = packed_type.from_lines(block + b"z", delimiter)
        assert unended.to_lines(delimiter) == block + b"z" + delimiter


def written_rows(text: bytes, separator: bytes, quotes: bool) -> list[tuple[int, list[bytes]]]:
    """Return the offset after each whole row, and its fields as written, byte by byte."""
    rows, fields, field, inside = [], [], b"", False
    for number, byte in enumerate(text[index : index + 1] for index in range(len(text))):
        if quotes and byte == b'"' and not inside and not field:
            inside = True
        elif inside and byte == b'"' and field.startswith(b'"'):
            # The closing quote follows an even number of others, and no quote follows it.
            doubled = (len(field) - len(field.rstrip(b'"'))) - (not field.strip(b'"'))
            inside = doubled % 2 == 1 or text[number + 1 : number + 2] == b'"'
        elif not inside and byte in (separator, b"\n"):
            fields.append(field)
            field = b""
            if byte == b"\n":
                fields[-1] = fields[-1].removesuffix(b"\r")
                rows.append((number + 1, fields))
                fields = []
            continue
        field += byte
    return rows


@given(
    st.lists(
        st.sampled_from([b"", b"a", b"bcdefghij", b'"', b'"', b'""', b",", b"\t", b"\r", b"\n", b"\n", b"\0\xff"])
    ),
    st.lists(st.sampled_from([b"", b"x", b'y"z', b",", b"\n", b"\r", b";", b'"']), max_size=6),
    st.sampled_from([b",", b"\t"]),
    st.booleans(),
)
@example([b'"', b"a", b"\n", b'"', b",", b"\n"], [], b",", True)
@example([b'"', b"a", b'""', b"bcdefghij", b'"', b",", b"\r", b"\n"], [b","], b",", True)
def test_fields_are_cut_and_added(
    implementation: Implementation, parts: list[bytes], new: list[bytes], separator: bytes, quotes: bool
) -> None:
    """A field of each row is cut if all rows have as many fields; a new field goes before the end of the row."""
    packed_type = implementation.kernels.ByteColumn
    text = b"".join(parts)
    rows = written_rows(text, separator, quotes)
    ends = implementation.kernels.row_ends(text, separator, quotes)
    assert (ends.typecode, list(ends)) == ("q", [end for end, _fields in rows])
    text = text[: ends[-1] if ends else 0]
    width = len(rows[0][1]) if rows else 1
    for index in range(width):
        found = packed_type.from_fields(text, separator, quotes, index, width)
        if {len(fields) for _end, fields in rows} - {width}:
            assert found is None
            continue
        values = [fields[index] for _end, fields in rows]
        if quotes and any(value.startswith(b'"') and not re.fullmatch(rb'"([^"]|"")*"', value) for value in values):
            assert found is None
            continue
        assert list(found) == [
            value[1:-1].replace(b'""', b'"') if quotes and value.startswith(b'"') else value for value in values
        ]
    new = (new + [b""] * len(rows))[: len(rows)]
    special = (separator, b'"', b"\n", b"\r")
    expected = b""
    for start, end, field in zip((0, *ends), ends, new, strict=False):
        content = text[start : end - 1].removesuffix(b"\r")
        if quotes and any(byte in field for byte in special):
            field = b'"%b"' % field.replace(b'"', b'""')
        expected += content + separator + field + text[start + len(content) : end]
    assert packed_of(implementation, new).to_rows(text, ends, separator, quotes) == expected
    with pytest.raises(ValueError, match=r".+"):
        packed_of(implementation, [*new, b""]).to_rows(text, ends, separator, quotes)


def test_lines_may_be_left_out_and_paired(implementation: Implementation) -> None:
    """Skipped indices are left out; with another column, each line has two items with a TAB between them."""
    one = packed_of(implementation, [b"a", b"", b"c"])
    other = packed_of(implementation, [b"1", b"2", b""])
    for skip in ((0,), [1], range(1, 3), (0, 1, 2), ()):
        kept = [index for index in range(3) if index not in skip]
        assert one.to_lines(b"\n", skip) == b"".join(one[index] + b"\n" for index in kept)
        assert one.to_lines(b"\n", skip, other) == b"".join(other[i] + b"\t" + one[i] + b"\n" for i in kept)
    with pytest.raises(ValueError, match=r".+"):
        one.to_lines(b"\n", (), packed_of(implementation, [b"a"]))


def test_items_may_be_blanked_and_searched(implementation: Implementation) -> None:
    """``blanked`` keeps the length of a column; ``indices_containing`` returns each item with a byte once."""
    packed = packed_of(implementation, [b"a", b"xx", b"", b"bx", b"x"])
    assert packed.indices_containing(b"x") == [1, 3, 4]
    assert packed.indices_containing(b"\0") == []
    blanked = packed.blanked({1, 4})
    assert [blanked[index] for index in range(5)] == [b"a", b"", b"", b"bx", b""]
    assert [packed[index] for index in range(5)] == [b"a", b"xx", b"", b"bx", b"x"]
    assert packed_of(implementation, []).indices_containing(b"x") == []


def test_invalid_items_are_reported(implementation: Implementation) -> None:
    """An unpaired surrogate is reported with its index, and a wrong type as such; both items are empty."""
    packed, faults = implementation.kernels.ByteColumn.from_texts(
        ["a", "b\ud800", None, "\udcff", 5, "\u00e9\U0001f350\udfff"]
    )
    assert faults == [
        (1, ErrorCode.SURROGATE, 1),
        (2, ErrorCode.NOT_TEXT, -1),
        (4, ErrorCode.NOT_TEXT, -1),
        (5, ErrorCode.SURROGATE, 2),
    ]
    assert [packed[index] for index in range(6)] == [b"a", b"", b"", b"\xff", b"", b""]


@given(items=st.lists(st.one_of(texts(), identifiers())), byte=st.sampled_from((b"\n", b"a", b"\xa9", b"\0")))
def test_columns_are_alike(pair: tuple[Implementation, Implementation], items: list[str | bytes], byte: bytes) -> None:
    """Both implementations encode, split, join, search and decode identically."""
    from pressmark import _kernels

    def forms() -> tuple[object, ...]:
        packed, faults = _kernels.active.ByteColumn.from_texts(items)
        block = packed.to_lines(byte)
        cut = _kernels.active.ByteColumn.from_lines(block[:-1], byte)
        data, offsets = packed.buffers()
        return faults, block, cut.buffers(), data, offsets, packed.to_texts(), packed.indices_containing(byte)

    assert common_outcome(forms)[0] == "ok"
