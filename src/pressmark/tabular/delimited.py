r"""The syntax of CSV and TSV: ends of rows and fields, and values of fields.

TSV: a line feed ends a row, a TAB ends a field, and every other byte, including quotes, is data. CSV follows RFC 4180:
a field that starts with a quote extends to the closing quote, with line feeds, commas and doubled quotes inside; a
quote inside any other field is data. In both, a carriage return before the line feed belongs to the end of the row.
"""

from __future__ import annotations

import functools
import re
from array import array
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from pressmark import _kernels
from pressmark.errors import quoted
from pressmark.option_names import option
from pressmark.tabular.formats import first_return

__all__ = [
    "BLOCK_BYTES",
    "CSV",
    "ROW_BYTES",
    "TSV",
    "Dialect",
    "Rows",
    "RowsError",
    "dialect_of",
    "refuse_doubtful",
    "rows",
]

BLOCK_BYTES = 1 << 20  # 1 MiB
# A row must fit in memory; without a limit, an unclosed quote would read the rest of a file as one row.
ROW_BYTES = 1 << 25  # 32 MiB


@functools.cache
def _enclosed(separator: bytes) -> re.Pattern[bytes]:
    """Return the pattern of a quoted field in a whole row."""
    # The quote comes before the look-behind because the search for a fixed byte is ten times faster.
    return re.compile(rb'"(?<![^%b\n]")[^"]*+(?:""[^"]*+)*"(?!")' % re.escape(separator))


class RowsError(ValueError):
    """A row that cannot be read; nor can the rows after it."""


class Dialect(NamedTuple):
    """The separator of fields, and whether fields can be quoted."""

    separator: bytes
    quotes: bool

    def split(self, row: bytes) -> list[bytes]:
        """Return the fields of ``row`` as written."""
        fields = self.split_roughly(row)
        if self.quotes and b'"' in row:
            enclosed = iter(_enclosed(self.separator).findall(row))
            fields = [next(enclosed) + field[1:] if field.startswith(b'"') else field for field in fields]
        return fields

    def split_roughly(self, row: bytes) -> list[bytes]:
        """Return the fields of ``row``, each quoted part replaced by one quote."""
        if self.quotes and b'"' in row:
            # The remaining separators separate fields.
            row = _enclosed(self.separator).sub(b'"', row)
        return row.split(self.separator)

    def value(self, field: bytes) -> bytes | None:
        """Return the value of a field; :data:`None` if text follows the closing quote."""
        if not self.quotes or not field.startswith(b'"'):
            return field
        inner = field[1:-1]
        if len(field) < 2 or not field.endswith(b'"') or inner.count(b'"') != 2 * inner.count(b'""'):
            return None
        return inner.replace(b'""', b'"')

    def meant(self, field: bytes) -> bytes:
        """Return the value of a field, or a malformed field unchanged."""
        value = self.value(field)
        return field if value is None else value

    def field(self, row: bytes, index: int, width: int) -> bytes | str:
        """Return the value of a field of a row, or as ``str`` the reason for a missing value.

        :param index: index of the field
        :param width: the required number of fields
        """
        fields = self.split_roughly(row)
        if len(fields) != width:
            return f"row has {'1 field' if len(fields) == 1 else f'{len(fields)} fields'}; the first row has {width}"
        if not self.quotes or not fields[index].startswith(b'"'):
            return fields[index]
        value = self.value(self.split(row)[index])
        return "text after the closing quote of the field" if value is None else value

    def allows(self, value: bytes) -> bool:
        """Return whether ``value`` is allowed in a field."""
        return self.quotes or not (b"\t" in value or b"\n" in value or b"\r" in value)

    def written(self, values: list[bytes]) -> list[bytes]:
        """Return ``values`` as they are written in fields."""
        if not self.quotes:
            return values
        together = b"\0".join(values)
        separator = self.separator
        if not any(one in together for one in (separator, b'"', b"\n", b"\r")):
            return values
        return [
            b'"%b"' % value.replace(b'"', b'""')
            if separator in value or b'"' in value or b"\n" in value or b"\r" in value
            else value
            for value in values
        ]


CSV = Dialect(b",", True)
TSV = Dialect(b"\t", False)
_DIALECTS = {"csv": CSV, "tsv": TSV}
# Common separators; semicolons where the decimal mark is a comma.
_SEPARATORS = (b",", b";", b"\t", b"|")


def dialect_of(format: str, delimiter: str | None = None) -> Dialect:
    r"""Return the dialect of a format.

    :param format: ``csv`` or ``tsv``
    :param delimiter: the separator of CSV, an ASCII character, ``\t`` for TAB; :data:`None` for a comma
    :raises ValueError: the delimiter is not supported
    """
    dialect = _DIALECTS[format]
    if delimiter is None:
        return dialect
    separator = b"\t" if delimiter == r"\t" else delimiter.encode("utf-8", "surrogateescape")
    if len(separator) != 1 or separator in b'"\r\n\0' or separator >= b"\x80":
        raise ValueError(rf"delimiter {delimiter!r}: expected one ASCII character, or \t")
    if format == "tsv" and separator != b"\t":
        raise ValueError(f"delimiter {delimiter!r}: TSV is separated by TABs; use {option('format', 'csv')}")
    return dialect._replace(separator=separator)


def refuse_doubtful(
    fields: list[bytes], dialect: Dialect, column: str | int, header: bool | None, certain: bool
) -> None:
    """Refuse a first row that is ambiguous.

    :param fields: the fields as written
    :param column: the name in the header, or the number from 1
    :param header: whether the row has the column names; :data:`None` if unspecified
    :param certain: whether the separator was specified
    :raises RowsError: the separator seems to be another one; or the row may or may not be a header
    """
    names = [dialect.meant(field).decode("utf-8", "surrogateescape") for field in fields]
    if isinstance(column, int):
        chosen = fields[column - 1 : column]
        suspicious = chosen or fields
    else:
        chosen, suspicious = [], [] if column in names else fields
    for separator in () if certain else _SEPARATORS:
        for field in suspicious:
            if separator == dialect.separator or separator not in field or (dialect.quotes and field[:1] == b'"'):
                continue
            found, used = (option("delimiter", one.decode()) for one in (separator, dialect.separator))
            how = found if dialect.quotes else f"{option('format', 'csv')} and {found}"
            what = f"first row has the field {quoted(field)}"
            raise RowsError(f"{what}; use {how}, or {used} if this is one field")
    if chosen and isinstance(column, int) and header is None:
        what = f"first row has {quoted(names[column - 1])} in column {column}"
        how = f"use {option('header', True)} if that is a column name, {option('header', False)} if it is data"
        raise RowsError(f"{what}; {how}")


class Rows(NamedTuple):
    """Consecutive rows.

    :ivar text: the rows, each with its line feed
    :ivar ends: the offset in ``text`` after each row
    :ivar quoted: whether the rows may contain quotes
    :ivar open_end: whether the last one has no line feed in the file; in ``text`` it has one
    :ivar full: whether the source had as many bytes as were asked for, and probably has more
    """

    text: bytes
    ends: array[int]
    quoted: bool
    open_end: bool
    full: bool

    @property
    def rows(self) -> list[bytes]:
        """The rows, without line feeds."""
        if not self.quoted:
            return self.text.split(b"\n")[:-1]
        return [self.text[start : end - 1] for start, end in pairwise((0, *self.ends))]

    def part(self, start: int, stop: int) -> Rows:
        """Return the rows from ``start`` to ``stop``."""
        before = (0, *self.ends[:start])[-1]
        ends = array("q", [end - before for end in self.ends[start:stop]])
        text = self.text[before : (before, *self.ends[start:stop])[-1]]
        return self._replace(text=text, ends=ends, open_end=self.open_end and stop >= len(self.ends))


def rows(
    read: Callable[[int], bytes],
    dialect: Dialect,
    data: bytes,
    *,
    return_is_data: bool = False,
    counts_fields: bool = False,
) -> Iterator[Rows]:
    """Yield the rows of a file, block by block.

    :param read: returns at most the given number of bytes, and ``b""`` at the end
    :param data: the first bytes, without a byte-order mark
    :param return_is_data: accept carriage returns as row ends, which are data; otherwise they are refused
    :param counts_fields: the caller refuses a row with more fields than the first; then only tables of one column need
        the search for carriage returns, which takes longer than all else where rows end with CR LF
    :raises RowsError: a quote is never closed, a row exceeds :data:`ROW_BYTES`, or rows end with carriage returns
    """
    held = b""
    asked = BLOCK_BYTES
    while data or held:
        # The last row may have no line feed.
        text = held + (data or b"\n")
        quoted = dialect.quotes and b'"' in text
        ends = _kernels.active.row_ends(text, dialect.separator, quoted)
        end = ends[-1] if ends else 0
        held = text[end:]
        if end:
            block = Rows(text[:end], ends, quoted, not data, len(data) >= asked)
            unchecked = return_is_data or b"\r" not in text or (counts_fields and dialect.separator in text)
            before = None if unchecked else _before_return(block, dialect)
            yield from [block] if before is None else [before] * bool(before.ends)
            if before is not None:
                raise RowsError("rows end with carriage returns only; convert them to line feeds")
        if held and not data:
            raise RowsError("quote is never closed")
        if len(held) > ROW_BYTES:
            raise RowsError(f"row is longer than {ROW_BYTES >> 20} MiB")
        # Double the text, so that a long row is not scanned again for each block.
        asked = max(BLOCK_BYTES, len(held))
        data = data and read(asked)


def _before_return(block: Rows, dialect: Dialect) -> Rows | None:
    """Return the rows before the first one with carriage returns as line ends; :data:`None` without such a row."""
    if not block.quoted:
        found = first_return(block.text[:-1] if block.open_end else block.text, open_end=block.open_end)
        return None if found < 0 else block.part(0, block.text.count(b"\n", 0, found))
    enclosed = _enclosed(dialect.separator)
    for index, row in enumerate(block.rows):
        open_end = block.open_end and index == len(block.ends) - 1
        if b"\r" in row and first_return(enclosed.sub(b'"', row), open_end=open_end) >= 0:
            return block.part(0, index)
    return None
