r"""The syntax of CSV and TSV: where rows and fields end, and what fields mean. All that reads such files goes by it.

TSV: a row ends at a line feed, a field at a TAB, and every other byte, quotes among them, is data. CSV is that of
RFC 4180: a field that begins with a quote goes on to the quote that ends it, with line feeds, commas and doubled quotes
within; a quote inside any other field is data. In both, a carriage return before the line feed belongs to the end of
the row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["BLOCK_BYTES", "BOM", "CSV", "ROW_BYTES", "TSV", "Dialect", "Rows", "RowsError", "UnclosedError", "rows"]

BLOCK_BYTES = 1 << 20  # 1 MiB
# A row must fit into memory; without a limit, a quote that nothing closes would take the rest of any file for one row.
ROW_BYTES = 1 << 25  # 32 MiB
BOM = b"\xef\xbb\xbf"

# What quotes enclose, which they do where a field begins. The quote comes before the look behind it because a search
# for a fixed byte is ten times faster; the look-ahead keeps a doubled quote together where the text goes on behind what
# is in memory.
_QUOTED = rb'"(?<![^,\n]")[^"]*+(?:""[^"]*+)*"(?!")'
_ENCLOSED = re.compile(_QUOTED)
# The rest of a row from its first quote on. Quotes behind the one that ends a field, or in a field that does not begin
# with one, are data.
_REST_OF_ROW = re.compile(rb"(?:(?:" + _QUOTED + rb'[^,\n]*+|"(?<=[^,\n]"))[^"\n]*+)*\n')


class RowsError(ValueError):
    """A row cannot be read, nor anything behind it; the text says why."""


class UnclosedError(RowsError):
    """The last row has a quote that nothing closes: it is all that is left of the file."""


class Dialect(NamedTuple):
    """How fields are kept apart, and whether quotes mean anything."""

    separator: bytes
    quotes: bool

    def split(self, row: bytes) -> list[bytes]:
        """Return the fields of ``row`` as they are written."""
        fields = self.split_roughly(row)
        if self.quotes and b'"' in row:
            enclosed = iter(_ENCLOSED.findall(row))
            fields = [next(enclosed) + field[1:] if field.startswith(b'"') else field for field in fields]
        return fields

    def split_roughly(self, row: bytes) -> list[bytes]:
        """Return the fields of ``row`` with one quote in the place of all that quotes enclose."""
        if self.quotes and b'"' in row:
            # All separators that are left then are some.
            row = _ENCLOSED.sub(b'"', row)
        return row.split(self.separator)

    def value(self, field: bytes) -> bytes | None:
        """Return what a field means; :data:`None` where something follows the quote that ends it."""
        if not self.quotes or not field.startswith(b'"'):
            return field
        inner = field[1:-1]
        if len(field) < 2 or not field.endswith(b'"') or inner.count(b'"') != 2 * inner.count(b'""'):
            return None
        return inner.replace(b'""', b'"')

    def meant(self, field: bytes) -> bytes:
        """Return what a field means, or itself where it is malformed."""
        value = self.value(field)
        return field if value is None else value

    def wanted(self, row: bytes, index: int, width: int) -> bytes | str:
        """Return what one field of a row means, or, as text, why there is none.

        :param index: of the field
        :param width: how many fields the row must have
        """
        fields = self.split_roughly(row)
        if len(fields) != width:
            return (
                f"its row has {'1 field' if len(fields) == 1 else f'{len(fields)} fields'}, the first one has {width}"
            )
        if not self.quotes or not fields[index].startswith(b'"'):
            return fields[index]
        value = self.value(self.split(row)[index])
        return "something follows the quote that ends its field" if value is None else value

    def holds(self, value: bytes) -> bool:
        """Return whether a field can hold ``value``."""
        return self.quotes or not (b"\t" in value or b"\n" in value or b"\r" in value)

    def written(self, values: list[bytes]) -> list[bytes]:
        """Return ``values``, which fields can hold, as they are written."""
        if not self.quotes:
            return values
        together = b"\0".join(values)
        if not any(octet in together for octet in (b",", b'"', b"\n", b"\r")):
            return values
        return [
            b'"%b"' % value.replace(b'"', b'""')
            if b"," in value or b'"' in value or b"\n" in value or b"\r" in value
            else value
            for value in values
        ]


CSV = Dialect(b",", True)
TSV = Dialect(b"\t", False)


class Rows(NamedTuple):
    """Some rows that follow each other.

    :ivar rows: without their line feeds
    :ivar quoted: whether quotes are in them
    :ivar open_end: whether the last one has no line feed
    """

    rows: list[bytes]
    quoted: bool
    open_end: bool


def rows(read: Callable[[int], bytes], dialect: Dialect, data: bytes) -> Iterator[Rows]:
    """Give the rows of a file, those of a block together.

    :param read: gives so many of the next bytes at most, and ``b""`` at the end
    :param data: the first bytes, without a byte order mark; ``b""`` where there are none
    :raises UnclosedError: a quote is never closed
    :raises RowsError: a row is longer than :data:`ROW_BYTES`
    """
    held = b""
    while data or held:
        # A last row without line feed is cut like every other.
        text = held + (data or b"\n")
        quoted = dialect.quotes and b'"' in text
        found, held = _quoted_rows(text) if quoted else _plain_rows(text)
        if found:
            yield Rows(found, quoted, not data)
        if held and not data:
            raise UnclosedError("the quote that opens in this row is never closed")
        if len(held) > ROW_BYTES:
            raise RowsError(f"a row of more than {ROW_BYTES >> 20} MiB")
        # As much again as is held: a long row is not looked at anew for each block that it grows by.
        data = data and read(max(BLOCK_BYTES, len(held)))


def _plain_rows(text: bytes) -> tuple[list[bytes], bytes]:
    found = text.split(b"\n")
    return found, found.pop()


def _quoted_rows(text: bytes) -> tuple[list[bytes], bytes]:
    found = []
    start = 0
    while (end := text.find(b"\n", start)) >= 0:
        quote = text.find(b'"', start, end)
        if quote >= 0:
            match = _REST_OF_ROW.match(text, quote)
            if match is None:
                break
            end = match.end() - 1
        found.append(text[start:end])
        start = end + 1
    return found, text[start:]
