"""JSON lines: one object per line, of which one key has the item. Existing keys keep their bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pressmark.errors import TableError
from pressmark.option_names import option
from pressmark.tabular import delimited
from pressmark.tabular.columns import Column, ItemMapper
from pressmark.tabular.delimited import TSV, RowsError
from pressmark.tabular.formats import ListStream

__all__ = ["JsonBlock", "JsonReader", "parsed"]

BLOCK_ROWS = 1 << 16


def parsed(line: bytes) -> Any:
    """Return the value of a line.

    :raises ValueError: the line is not JSON in UTF-8
    """
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None


class JsonBlock:
    """A ``Block`` of lines of JSON.

    :ivar items: the values of the key, empty for null and for malformed lines
    :ivar nulls: indices of lines in which the value is null
    :ivar inline: always: Python parses and writes JSON, so threads would only wait for each other
    """

    inline = True

    def __init__(self, column: Column, rows: list[bytes], numbers: list[int], open_end: bool) -> None:
        self.faults: dict[int, str] = {}
        self.unwritable: set[int] = set()
        self.nulls: set[int] = set()
        self.items: list[bytes] = []
        self._rows = rows
        self._numbers = numbers
        self._open_end = open_end
        self._key = json.dumps(column.result).encode()
        self._results: list[bytes] = []
        for index, row in enumerate(rows):
            try:
                self.items.append(self._item(index, row, column))
            except ValueError as error:
                self.faults[index] = str(error)
                self.items.append(b"")
        self._malformed = set(self.faults)

    def _item(self, index: int, row: bytes, column: Column) -> bytes:
        self.unwritable.add(index)  # until it proves to be an object without the new key
        record = parsed(row)
        if not isinstance(record, dict):
            raise ValueError("not a JSON object")
        if column.result and column.result in record:
            raise ValueError(f"key {column.result!r} already exists; choose another name ({option('result')})")
        self.unwritable.remove(index)
        if column.name not in record:
            raise ValueError(f"key {column.name!r} not found")
        item = record[column.name]
        if item is None:
            self.nulls.add(index)
            return b""
        if not isinstance(item, str):
            raise ValueError(f"the value of {column.name!r} is not a string")
        try:
            # As in all JSON of Pressmark, a surrogate of os.fsdecode means its byte.
            return item.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise ValueError(f"unpaired surrogate at index {error.start}") from None

    def __len__(self) -> int:
        return len(self._rows)

    def map(self, mapper: ItemMapper) -> None:
        """Map the values; null stays null."""
        self._results, faults = mapper.texts(self.items)
        missing = self.nulls | self._malformed
        self.faults.update((index, reason) for index, reason in faults.items() if index not in missing)

    def number(self, index: int) -> int:
        """Return the number of the line."""
        return self._numbers[index]

    def row(self, index: int) -> bytes:
        """Return a line."""
        return self._rows[index]

    def item(self, index: int) -> bytes:
        """Return the value, or a malformed line."""
        return self._rows[index] if index in self._malformed else self.items[index]

    def written(self, kept: list[int] | None) -> bytes:
        """Return the lines ``kept``, or all, each with its result as the last key."""
        lines = []
        for index in range(len(self._rows)) if kept is None else kept:
            row = self._rows[index].rstrip()
            before = row[:-1].rstrip()  # without the closing brace
            comma = b"" if before.endswith(b"{") else b", "
            if index in self.faults or index in self.nulls:
                result = b"null"
            else:
                result = json.dumps(self._results[index].decode("utf-8", "surrogateescape")).encode()
            lines.append(b"%b%b%b: %b}%b\n" % (before, comma, self._key, result, self._rows[index][len(row) :]))
        text = b"".join(lines)
        last = kept is None or (bool(kept) and kept[-1] == len(self._rows) - 1)
        return text[:-1] if self._open_end and last else text


class JsonReader:
    """A file of JSON lines.

    :ivar source: the stream of the file
    :ivar head: empty: JSON lines have no header
    """

    head = b""

    def __init__(self, source: ListStream, column: Column) -> None:
        self.name = source.name
        self.source = source
        self._column = column

    def blocks(self) -> Iterator[JsonBlock]:
        """Yield the lines that are not empty.

        :raises TableError: a line is too long
        """
        number = 0
        read = self.source.read
        try:
            for found in delimited.rows(read, TSV, read(delimited.BLOCK_BYTES), return_is_data=True):
                lines = found.rows
                for start in range(0, len(lines), BLOCK_ROWS):
                    some = lines[start : start + BLOCK_ROWS]
                    numbers = [at for at, row in enumerate(some, number + 1) if row.strip()]
                    rows = [some[at - number - 1] for at in numbers]
                    number += len(some)
                    open_end = found.open_end and start + len(some) == len(lines) and bool(some[-1].strip())
                    yield JsonBlock(self._column, rows, numbers, open_end)
        except RowsError as error:
            raise TableError(self.name, str(error), number + 1) from None
