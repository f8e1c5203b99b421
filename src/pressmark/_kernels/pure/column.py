"""Columns of byte strings, and the loop that runs a kernel over one."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from pressmark._kernels.tables import ErrorCode

__all__ = ["ByteColumn", "Inverse", "Kernel", "KernelError", "first_difference"]

# The index of the item, a tables.ErrorCode, and a position.
ItemError = tuple[int, int, int]


class KernelError(Exception):
    """An item has no result. Raised inside the pure kernels only; :meth:`Kernel.__call__` catches it."""

    def __init__(self, code: ErrorCode, position: int = -1) -> None:
        super().__init__(code, position)
        self.code = code
        self.position = position


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
    def from_fields(cls, rows: bytes, separator: bytes, index: int, width: int) -> ByteColumn | None:
        """Return field ``index`` of each row, or None if a row does not have ``width`` fields.

        :param rows: each ends with a line feed; a carriage return before it belongs to the end of the row
        :param separator: a single byte
        """
        fields = [row.removesuffix(b"\r").split(separator) for row in rows.split(b"\n")[:-1]]
        if any(len(found) != width for found in fields):
            return None
        return cls([found[index] for found in fields])

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

    def to_rows(self, rows: bytes, separator: bytes, quotes: bool) -> bytes:
        """Return each of ``rows`` with an item as a new last field.

        :param rows: as many as items, each with a line feed; a carriage return before it belongs to the end of the row
        :param separator: a single byte
        :param quotes: quote fields as CSV requires
        """
        written = []
        for row, item in zip(rows.split(b"\n"), self.items, strict=False):
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
