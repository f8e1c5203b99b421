r"""The syntax of CSV and TSV: where rows and fields end, and what fields mean. All that reads such files goes by it.

TSV: a row ends at a line feed, a field at a TAB, and every other byte, quotes among them, is data. CSV is that of
RFC 4180: a field that begins with a quote goes on to the quote that ends it, with line feeds, commas and doubled quotes
within; a quote inside any other field is data. In both, a carriage return before the line feed belongs to the end of
the row.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from pressmark.errors import quoted

__all__ = [
    "BLOCK_BYTES",
    "CSV",
    "ROW_BYTES",
    "TSV",
    "Dialect",
    "Rows",
    "RowsError",
    "UnclosedError",
    "dialect_of",
    "refuse_doubtful",
    "rows",
]

BLOCK_BYTES = 1 << 20  # 1 MiB
# A row must fit into memory; without a limit, a quote that nothing closes would take the rest of any file for one row.
ROW_BYTES = 1 << 25  # 32 MiB


class _Patterns(NamedTuple):
    """What quotes enclose, which they do where a field begins; and the rest of a row from its first quote on."""

    enclosed: re.Pattern[bytes]
    rest_of_row: re.Pattern[bytes]


@functools.cache
def _patterns(separator: bytes) -> _Patterns:
    other = re.escape(separator)
    # The quote comes before the look behind it because a search for a fixed byte is ten times faster; the look-ahead
    # keeps a doubled quote together where the text goes on behind what is in memory.
    quoted = rb'"(?<![^%b\n]")[^"]*+(?:""[^"]*+)*"(?!")' % other
    # Quotes behind the one that ends a field, or in a field that does not begin with one, are data.
    rest = rb'(?:(?:%b[^%b\n]*+|"(?<=[^%b\n]"))[^"\n]*+)*\n' % (quoted, other, other)
    return _Patterns(re.compile(quoted), re.compile(rest))


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
            enclosed = iter(_patterns(self.separator).enclosed.findall(row))
            fields = [next(enclosed) + field[1:] if field.startswith(b'"') else field for field in fields]
        return fields

    def split_roughly(self, row: bytes) -> list[bytes]:
        """Return the fields of ``row`` with one quote in the place of all that quotes enclose."""
        if self.quotes and b'"' in row:
            # All separators that are left then are some.
            row = _patterns(self.separator).enclosed.sub(b'"', row)
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
            return f"row has {'1 field' if len(fields) == 1 else f'{len(fields)} fields'}; the first row has {width}"
        if not self.quotes or not fields[index].startswith(b'"'):
            return fields[index]
        value = self.value(self.split(row)[index])
        return "text after the closing quote of the field" if value is None else value

    def holds(self, value: bytes) -> bool:
        """Return whether a field can hold ``value``."""
        return self.quotes or not (b"\t" in value or b"\n" in value or b"\r" in value)

    def written(self, values: list[bytes]) -> list[bytes]:
        """Return ``values``, which fields can hold, as they are written."""
        if not self.quotes:
            return values
        together = b"\0".join(values)
        separator = self.separator
        if not any(octet in together for octet in (separator, b'"', b"\n", b"\r")):
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
# What separates fields in the files of others: semicolons where a comma is the decimal mark.
_SEPARATORS = (b",", b";", b"\t", b"|")


def dialect_of(format: str, delimiter: str | None = None) -> Dialect:
    r"""Return the dialect of a format.

    :param format: ``csv`` or ``tsv``
    :param delimiter: that separates the fields of CSV, an ASCII character, ``\t`` for TAB; :data:`None` for a comma
    :raises ValueError: there is no such delimiter
    """
    dialect = _DIALECTS[format]
    if delimiter is None:
        return dialect
    separator = b"\t" if delimiter == r"\t" else delimiter.encode("utf-8", "surrogateescape")
    if len(separator) != 1 or separator in b'"\r\n\0' or separator >= b"\x80":
        raise ValueError(rf"delimiter {delimiter!r}: expected one ASCII character, or \t")
    if format == "tsv" and separator != b"\t":
        raise ValueError(f"delimiter {delimiter!r}: TSV is separated by TABs; use --format csv")
    return dialect._replace(separator=separator)


def refuse_doubtful(
    fields: list[bytes], dialect: Dialect, column: str | int | None, header: bool | None, certain: bool
) -> None:
    """Refuse a first row where the call does not say for certain what it is.

    :param fields: as they are written
    :param column: the name in the header, or the number counted from 1; :data:`None` for the only one
    :param header: whether the row names the columns; :data:`None` where nobody says
    :param certain: the separator was asked for
    :raises RowsError: fields seem to have another separator; or a number does not tell whether the row is a header
    """
    names = [dialect.meant(field).decode("utf-8", "surrogateescape") for field in fields]
    number = column if column is not None else 1 if len(fields) == 1 else 0
    if isinstance(number, int):
        wanted = fields[number - 1 : number] if number else []
        suspicious = wanted or fields
    else:
        wanted, suspicious = [], [] if number in names else fields
    for separator in () if certain else _SEPARATORS:
        for field in suspicious:
            if separator == dialect.separator or separator not in field or (dialect.quotes and field[:1] == b'"'):
                continue
            found, used = (r"'\t'" if one == b"\t" else f"'{one.decode()}'" for one in (separator, dialect.separator))
            how = f"{'' if dialect.quotes else '--format csv '}--delimiter {found}"
            what = f"first row has the field {quoted(field)}"
            raise RowsError(f"{what}; use {how}, or --delimiter {used} if this is one field")
    if wanted and isinstance(number, int) and header is None:
        what = f"first row has {quoted(names[number - 1])} in column {number}"
        raise RowsError(f"{what}; use --header if that is a column name, --no-header if it is data")


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
        found, held = _quoted_rows(text, dialect) if quoted else _plain_rows(text)
        if found:
            yield Rows(found, quoted, not data)
        if held and not data:
            raise UnclosedError("quote is never closed")
        if len(held) > ROW_BYTES:
            raise RowsError(f"row is longer than {ROW_BYTES >> 20} MiB")
        # As much again as is held: a long row is not looked at anew for each block that it grows by.
        data = data and read(max(BLOCK_BYTES, len(held)))


def _plain_rows(text: bytes) -> tuple[list[bytes], bytes]:
    found = text.split(b"\n")
    return found, found.pop()


def _quoted_rows(text: bytes, dialect: Dialect) -> tuple[list[bytes], bytes]:
    found = []
    rest_of_row = _patterns(dialect.separator).rest_of_row
    start = 0
    while (end := text.find(b"\n", start)) >= 0:
        quote = text.find(b'"', start, end)
        if quote >= 0:
            match = rest_of_row.match(text, quote)
            if match is None:
                break
            end = match.end() - 1
        found.append(text[start:end])
        start = end + 1
    return found, text[start:]
