"""Columns of byte strings, and the loop that runs a kernel over one."""

from __future__ import annotations

import functools
import re
import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from pressmark._kernels.tables import ErrorCode

__all__ = ["ByteColumn", "Inverse", "Kernel", "KernelError", "first_difference", "row_ends"]

# The index of the item, a tables.ErrorCode, and a position.
ItemError = tuple[int, int, int]


class KernelError(Exception):
    """An item has no result. Raised inside the pure kernels only; :meth:`Kernel.__call__` catches it."""

    def __init__(self, code: ErrorCode, position: int = -1) -> None:
        super().__init__(code, position)
        self.code = code
        self.position = position


class _Patterns(NamedTuple):
    """Patterns of a quoted field, and of the rest of a row from its first quote."""

    enclosed: re.Pattern[bytes]
    rest_of_row: re.Pattern[bytes]


@functools.cache
def _patterns(separator: bytes) -> _Patterns:
    other = re.escape(separator)
    # The quote comes before the look-behind because the search for a fixed byte is ten times faster. The look-ahead
    # keeps a doubled quote together at the end of a block.
    enclosed = rb'"(?<![^%b\n]")[^"]*+(?:""[^"]*+)*"(?!")' % other
    # Quotes after the closing quote, or in a field that does not start with one, are data.
    rest = rb'(?:(?:%b[^%b\n]*+|"(?<=[^%b\n]"))[^"\n]*+)*\n' % (enclosed, other, other)
    return _Patterns(re.compile(enclosed), re.compile(rest))


def row_ends(text: bytes, separator: bytes, quotes: bool) -> array[int]:
    """Return the offset after the line feed of each row of CSV or TSV, as an ``array('q')``.

    The last row may be incomplete: it has no end.

    :param separator: a single byte
    :param quotes: a field that starts with a quote extends to the closing quote, with line feeds inside
    """
    ends: array[int] = array("q")
    rest_of_row = _patterns(separator).rest_of_row
    start = 0
    while (feed := text.find(b"\n", start)) >= 0:
        start, quote = feed + 1, text.find(b'"', start, feed) if quotes else -1
        if quote >= 0:
            match = rest_of_row.match(text, quote)
            if match is None:
                break
            start = match.end()
        ends.append(start)
    return ends


class ByteColumn:
    """A column of byte strings: one contiguous buffer and int64 offsets, as Arrow's ``large_binary``.

    The pure implementation stores the items and joins them only in :meth:`buffers`.
    """

    __slots__ = ("items",)

    def __init__(self, items: list[bytes]) -> None:
        self.items = items

    @classmethod
    def from_texts(
        cls, texts: Sequence[str | bytes], start: int = 0, stop: int = sys.maxsize
    ) -> tuple[ByteColumn, list[ItemError]]:
        """Return a column of items that are ``str`` or ``bytes``, and the errors.

        A ``str`` is encoded as UTF-8, and surrogates of ``os.fsdecode`` become their bytes. An item that cannot be
        encoded is empty in the column and has an error.

        :param texts: a list or tuple, of which the items from ``start`` to ``stop`` are used
        """
        items: list[bytes] = []
        errors: list[ItemError] = []
        for index, text in enumerate(texts[start:stop]):
            if isinstance(text, str):
                try:
                    item = text.encode("utf-8", "surrogateescape")
                except UnicodeEncodeError as error:
                    item = b""
                    errors.append((index, ErrorCode.SURROGATE, error.start))
            elif isinstance(text, bytes):
                item = text
            else:
                item = b""
                errors.append((index, ErrorCode.NOT_TEXT, -1))
            items.append(item)
        return cls(items), errors

    @classmethod
    def from_lines(cls, block: bytes, delimiter: bytes) -> ByteColumn:
        """Split ``block`` at each ``delimiter``, a single byte; the last item need not end with it."""
        items = block.split(delimiter)
        if not items[-1]:
            items.pop()
        return cls(items)

    @classmethod
    def from_fields(cls, rows: bytes, separator: bytes, quotes: bool, index: int, width: int) -> ByteColumn | None:
        """Return the value of field ``index`` of each row, or None if a row does not have ``width`` fields.

        None also if text follows the closing quote of the field.

        :param rows: whole rows, as :func:`row_ends` finds them; a carriage return before the line feed belongs to the
            end of the row
        :param separator: a single byte
        :param quotes: fields may be quoted as in CSV
        """
        enclosed = _patterns(separator).enclosed
        items = []
        for start, end in pairwise((0, *row_ends(rows, separator, quotes))):
            row = rows[start : end - 1].removesuffix(b"\r")
            quoted = quotes and b'"' in row
            # The remaining separators separate fields.
            fields = (enclosed.sub(b'"', row) if quoted else row).split(separator)
            if len(fields) != width:
                return None
            item = fields[index]
            if quoted and item.startswith(b'"'):
                if item != b'"':
                    return None
                before = sum(field.startswith(b'"') for field in fields[:index])
                item = enclosed.findall(row)[before][1:-1].replace(b'""', b'"')
            items.append(item)
        return cls(items)

    @classmethod
    def from_buffers(cls, data: bytes, offsets: array[int]) -> ByteColumn:
        """Return the column of ``data`` and an ``array('q')`` of n + 1 ascending offsets into it."""
        return cls([bytes(data[start:end]) for start, end in pairwise(offsets)])

    def buffers(self) -> tuple[bytes, array[int]]:
        """Return the contiguous data and an ``array('q')`` of n + 1 offsets into it."""
        return b"".join(self.items), array("q", accumulate(map(len, self.items), initial=0))

    def to_texts(self) -> list[str]:
        """Return the items as ``str``; bytes that are not UTF-8 become the surrogates of ``os.fsdecode``."""
        return [item.decode("utf-8", "surrogateescape") for item in self.items]

    def to_lines(self, delimiter: bytes, skip: Iterable[int] = (), before: ByteColumn | None = None) -> bytes:
        """Return the items, each followed by ``delimiter``.

        :param skip: the ascending indices of items to leave out
        :param before: a column of the same length; each line then starts with its item and a TAB
        """
        lines = self.items
        if before is not None:
            lines = [first + b"\t" + second for first, second in zip(before.items, lines, strict=True)]
        dropped = set(skip)
        if dropped:
            lines = [line for index, line in enumerate(lines) if index not in dropped]
        return delimiter.join([*lines, b""])

    def to_rows(self, rows: bytes, ends: array[int], separator: bytes, quotes: bool) -> bytes:
        """Return each of ``rows`` with an item as a new last field.

        :param rows: whole rows; a carriage return before the line feed belongs to the end of the row
        :param ends: the offset after each row, as :func:`row_ends` returns them
        :param separator: a single byte
        :param quotes: quote fields as CSV requires
        """
        if len(ends) != len(self.items):
            raise ValueError("as many items as rows are required")
        written = []
        for (first, end), item in zip(pairwise((0, *ends)), self.items, strict=True):
            row = rows[first : end - 1]
            start = row.removesuffix(b"\r")
            if quotes and any(byte in item for byte in (separator, b'"', b"\n", b"\r")):
                item = b'"%b"' % item.replace(b'"', b'""')
            written += [start, separator, item, row[len(start) :], b"\n"]
        return b"".join(written)

    def blanked(self, indices: Iterable[int]) -> ByteColumn:
        """Return a copy in which the items at ``indices`` are empty."""
        chosen = set(indices)
        return ByteColumn([b"" if index in chosen else item for index, item in enumerate(self.items)])

    def indices_containing(self, byte: bytes) -> list[int]:
        """Return the ascending indices of the items that contain ``byte``."""
        return [index for index, item in enumerate(self.items) if byte in item]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> bytes:
        return self.items[index]


class Kernel:
    """A mapping with its parameters: accepts a column, returns a column and the errors.

    A subclass maps a single item. An item without a result is empty in the returned column.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def map(self, item: bytes) -> bytes:
        raise NotImplementedError

    def __call__(self, packed: ByteColumn) -> tuple[ByteColumn, list[ItemError]]:
        results: list[bytes] = []
        errors: list[ItemError] = []
        map_item, append, limit = self.map, results.append, self.limit
        for item in packed.items:
            try:
                if len(item) > limit:
                    raise KernelError(ErrorCode.TOO_LONG)
                append(map_item(item))
            except KernelError as error:
                errors.append((len(results), error.code, error.position))
                append(b"")
        return ByteColumn(results), errors


class Inverse:
    """A strict inverse: decodes each path, maps the identifier again, and accepts it only if the path is the same."""

    def __init__(self, decode: Kernel, map_again: Kernel) -> None:
        self.decode = decode
        self.map_again = map_again
        self.limit = decode.limit

    def __call__(self, packed: ByteColumn) -> tuple[ByteColumn, list[ItemError]]:
        identifiers, errors = self.decode(packed)
        refused = {index for index, _, _ in errors}
        again, _ = self.map_again(identifiers)
        for index, (path, canonical) in enumerate(zip(packed.items, again.items, strict=True)):
            if path != canonical and index not in refused:
                identifiers.items[index] = b""
                errors.append((index, ErrorCode.NOT_CANONICAL, first_difference(path, canonical)))
        errors.sort()
        return identifiers, errors


def first_difference(one: bytes, other: bytes) -> int:
    """Return the offset of the first different byte, or the shorter length."""
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return position
    return min(len(one), len(other))
