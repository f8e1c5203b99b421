"""JSON lines: existing keys keep their bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from pressmark.cli.common.console import Failure
from pressmark.cli.common.tables.columns import ColumnSpec
from pressmark.cli.common.tables.mapper import Mapper
from pressmark.errors import quoted
from pressmark.tabular import delimited
from pressmark.tabular.delimited import TSV, RowsError
from pressmark.tabular.json_lines import item_of, parsed

__all__ = ["JsonBlock", "JsonReader", "JsonWriter"]

BLOCK_ROWS = 1 << 16


class JsonBlock:
    """A ``Block`` of lines of JSON.

    :ivar items: the values of the key, empty for null and for malformed lines
    :ivar nulls: indices of lines in which the value is null
    """

    def __init__(self, spec: ColumnSpec, rows: list[bytes], numbers: list[int], open_end: bool) -> None:
        self.faults: dict[int, str] = {}
        self.unwritable: set[int] = set()
        self.nulls: set[int] = set()
        self.items: list[bytes] = []
        self._rows = rows
        self._numbers = numbers
        self._open_end = open_end
        self._results: list[bytes] = []
        for index, row in enumerate(rows):
            try:
                self.items.append(self._item(index, row, spec))
            except ValueError as error:
                self.faults[index] = str(error)
                self.items.append(b"")
        self._malformed = set(self.faults)

    def _item(self, index: int, row: bytes, spec: ColumnSpec) -> bytes:
        assert isinstance(spec.column, str)
        self.unwritable.add(index)  # until it proves to be an object without the new key
        record = parsed(row)
        if spec.result and isinstance(record, dict) and spec.result in record:
            raise ValueError(f"key {spec.result!r} already exists; use --as NAME")
        if isinstance(record, dict):
            self.unwritable.remove(index)
        item = item_of(record, spec.column)
        if item is None:
            self.nulls.add(index)
        return item or b""

    def __len__(self) -> int:
        return len(self._rows)

    def map(self, mapper: Mapper) -> None:
        """Map the values; null stays null."""
        self._results, faults = mapper.texts(self.items)
        missing = self.nulls | self._malformed
        self.faults.update((index, reason) for index, reason in faults.items() if index not in missing)

    def number(self, index: int) -> int:
        """Return the number of the line."""
        return self._numbers[index]

    def item(self, index: int) -> bytes:
        """Return the value, or a malformed line."""
        return self._rows[index] if index in self._malformed else self.items[index]

    def written(self, kept: list[int] | None, name: bytes) -> bytes:
        """Return the lines ``kept``, or all, each with its result under ``name`` as the last key."""
        lines = []
        for index in range(len(self._rows)) if kept is None else kept:
            row = self._rows[index].rstrip()
            before = row[:-1].rstrip()  # without the closing brace
            comma = b"" if before.endswith(b"{") else b", "
            if index in self.faults or index in self.nulls:
                result = b"null"
            else:
                result = json.dumps(self._results[index].decode("utf-8", "surrogateescape")).encode()
            lines.append(b"%b%b%b: %b}%b\n" % (before, comma, name, result, self._rows[index][len(row) :]))
        text = b"".join(lines)
        last = kept is None or (bool(kept) and kept[-1] == len(self._rows) - 1)
        return text[:-1] if self._open_end and last else text


class JsonReader:
    """A file of JSON lines."""

    def __init__(self, source: Any, spec: ColumnSpec) -> None:
        self.name: str = source.name
        self._source = source
        self._spec = spec

    def blocks(self) -> Iterator[JsonBlock]:
        """Yield the lines that are not empty."""
        number = 0
        read = self._source.read1
        try:
            for found in delimited.rows(read, TSV, read(delimited.BLOCK_BYTES), return_is_data=True):
                lines = found.rows
                for start in range(0, len(lines), BLOCK_ROWS):
                    some = lines[start : start + BLOCK_ROWS]
                    numbers = [at for at, row in enumerate(some, number + 1) if row.strip()]
                    rows = [some[at - number - 1] for at in numbers]
                    number += len(some)
                    open_end = found.open_end and start + len(some) == len(lines) and bool(some[-1].strip())
                    yield JsonBlock(self._spec, rows, numbers, open_end)
        except RowsError as error:
            raise Failure(f"{self.name}:{number + 1}: {error}") from None

    def items(self) -> Iterator[bytes]:
        """Yield the values that are not null.

        :raises Failure: a line is malformed
        """
        for block in self.blocks():
            for index, reason in sorted(block.faults.items())[:1]:
                raise Failure(f"{self.name}:{block.number(index)}: {quoted(block.item(index))}: {reason}")
            yield from (item for index, item in enumerate(block.items) if index not in block.nulls)


class JsonWriter:
    """Writes lines of JSON as they were read, each with its result as the last key."""

    def __init__(self, sink: Any, spec: ColumnSpec) -> None:
        self._sink = sink
        self._name = json.dumps(spec.result).encode()

    def begin(self) -> None:
        """Do nothing: JSON lines have no header."""

    def check(self, block: JsonBlock) -> None:
        """Accept every result."""

    def write(self, block: JsonBlock, kept: list[int] | None) -> None:
        """Write and flush, so slow input is passed on immediately."""
        self._sink.write(block.written(kept, self._name))
        self._sink.flush()

    def finish(self) -> None:
        """Flush the output."""
        self._sink.flush()

    def abandon(self) -> None:
        """Do nothing: lines have no end mark."""
