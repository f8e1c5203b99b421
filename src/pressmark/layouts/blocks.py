"""Identifiers in blocks: read once from lists, Arrow columns or lines, and mapped by several layouts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from time import thread_time
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

from pressmark import _kernels
from pressmark._kernels.tables import ErrorCode
from pressmark.arrow import (
    ArrowArrayExportable,
    ArrowStreamExportable,
    PackedColumn,
    StringColumn,
    packed_columns,
)
from pressmark.errors import IdentifierError
from pressmark.layouts.base import Layout
from pressmark.layouts.streams import ItemFile, cut_blocks, name_of
from pressmark.tabular.formats import Crlf, chosen_format
from pressmark.tabular.tables import open_items

__all__ = [
    "Block",
    "IdentifierSource",
    "MappedBlock",
    "Running",
    "failure_reason",
    "identifier_blocks",
    "map_block",
    "running",
    "starting_with",
]

#: Identifiers to read once: a path or a binary stream of lines, a column of Arrow, or any iterable.
IdentifierSource: TypeAlias = (
    os.PathLike[str] | BinaryIO | ArrowArrayExportable | ArrowStreamExportable | Iterable[str | bytes]
)

# Per block: few enough for identifiers and paths to stay in the processor's cache, many enough to spread the cost of a
# call.
ITEMS = 1 << 16
BYTES = 8 << 20


class Block(NamedTuple):
    """Consecutive identifiers.

    :ivar column: the identifiers as bytes; a null is not an identifier
    :ivar faults: the errors of items that no layout can map, by index; these items are null in the column
    """

    column: PackedColumn
    faults: dict[int, IdentifierError]

    @property
    def identifiers(self) -> int:
        """The number of identifiers, with faults and without nulls."""
        return len(self.column) - len(self.column.nulls) + len(self.faults)

    def text(self, index: int) -> str:
        """Return an identifier as text."""
        if index in self.faults:
            item = self.faults[index].id
            return item if isinstance(item, str) else os.fsdecode(item)
        return self.column[index].decode("utf-8", "surrogateescape")


class MappedBlock(NamedTuple):
    """The paths of a block.

    :ivar paths: the paths; null for an identifier without one
    :ivar failures: index, error code and position of each identifier without a path, in order
    :ivar seconds: the processor time of the mapping
    """

    paths: PackedColumn
    failures: list[tuple[int, int, int]]
    seconds: float


def map_block(layout: Layout, block: Block) -> MappedBlock:
    """Return the paths of a block under a layout."""
    bound = layout._mapping()
    begin = thread_time()
    results, faults = bound.kernel(block.column.batch)
    seconds = thread_time() - begin
    null = set(block.column.nulls)
    # Nulls were packed as empty items, so the kernel's codes for them do not count.
    failures = [fault for fault in faults if fault[0] not in null]
    absent = sorted({*null, *(index for index, _, _ in failures)})
    return MappedBlock(PackedColumn(bound.kernels, results, absent), failures, seconds)


def failure_reason(layout: Layout, block: Block, failure: tuple[int, int, int]) -> str:
    """Return the reason of one of :attr:`MappedBlock.failures`."""
    index, code, position = failure
    error = layout._mapping().error_of(block.column[index], None, code, position)
    return error.reason if isinstance(error, IdentifierError) else str(error)


def starting_with(column: PackedColumn, prefix: bytes) -> list[int]:
    """Return the ascending indices of the items that start with ``prefix``."""
    found: list[int] = column.kernels.starts_with(column.batch, prefix)
    return found


def identifier_blocks(
    ids: IdentifierSource,
    *,
    column: str | int | None = None,
    format: str | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    crlf: Crlf | None = None,
    null: bool = False,
) -> Iterator[Block]:
    """Yield identifiers in blocks.

    ``ids`` is the path (:class:`os.PathLike`) or the binary stream of a file, an Arrow column (see :meth:`Layout.map`),
    a :class:`StringColumn`, or an iterable of ``str`` and ``bytes``. It is read once, and lazily.

    :param column: the column of an Arrow table, or of a file, whose other options are those of ``map_file``
    :raises TypeError: ``ids`` has another type, or an item is neither ``str`` nor ``bytes``
    :raises ColumnError: an Arrow column is malformed, is not text, or lacks the field
    :raises FormatError: the file has another format or lacks the column, or the arguments contradict each other
    :raises TableError: the file is malformed, or needs ``crlf``
    :raises OSError: the file cannot be read
    """
    kernels = _kernels.active
    if isinstance(ids, (str, bytes)):
        raise TypeError(f"expected identifiers, not a single {type(ids).__name__}; use a list, or a Path for a file")
    if isinstance(ids, os.PathLike) or (hasattr(ids, "read") and (column is not None or format is not None)):
        name = name_of(cast("ItemFile", ids))
        table: dict[str, Any] = {"column": column, "header": header, "delimiter": delimiter, "crlf": crlf, "null": null}
        chosen = chosen_format(name, format=format, **table)
        with ExitStack() as stack:
            file = stack.enter_context(open(ids, "rb")) if isinstance(ids, os.PathLike) else ids
            items = stack.enter_context(open_items(file, name, chosen, json_lines=format is None, **table))
            yield from identifier_blocks(items, null=null)
    elif hasattr(ids, "read"):
        yield from _of_lines(ids, b"\0" if null else b"\n")
    elif isinstance(ids, StringColumn):
        for piece, nulls in ids.packed(kernels, ITEMS, BYTES):
            yield Block(PackedColumn(kernels, piece, nulls), {})
    elif isinstance(ids, (ArrowStreamExportable, ArrowArrayExportable)):
        if isinstance(column, int):
            raise TypeError(f"column={column}: expected the name of a field of the Arrow table")
        for packed in packed_columns(kernels, ids, column, ITEMS, BYTES):
            yield Block(packed, {})
    elif isinstance(ids, Iterable):
        yield from _of_texts(ids)
    else:
        raise TypeError(f"expected identifiers, a file of them or a column, not {type(ids).__name__}")


def _of_lines(source: Any, delimiter: bytes) -> Iterator[Block]:
    kernels = _kernels.active
    for block, _, _ in cut_blocks(source, delimiter, kernels.DirectMap().limit):
        yield Block(PackedColumn(kernels, kernels.ByteColumn.from_lines(block, delimiter)), {})


def _of_texts(texts: Iterable[Any]) -> Iterator[Block]:
    kernels = _kernels.active
    iterator = iter(texts)
    number = 0
    for items in _gathered(iterator):
        piece, faults = kernels.ByteColumn.from_texts(items)
        wrong: dict[int, IdentifierError] = {}
        for index, code, position in faults:
            item = items[index]
            if code == ErrorCode.NOT_TEXT:
                raise TypeError(f"identifier {number + index}: expected str or bytes, not {type(item).__name__}")
            reason = f"unpaired surrogate at index {position}"
            wrong[index] = IdentifierError(item, number + index, reason)
        yield Block(PackedColumn(kernels, piece, sorted(wrong)), wrong)
        number += len(items)


def _gathered(iterator: Iterator[Any]) -> Iterator[list[Any]]:
    """Yield lists of at most :data:`ITEMS` items, or about :data:`BYTES` bytes."""
    waiting: list[Any] = []
    size = 0
    # Few items at a time, so that long ones do not fill the memory.
    while items := list(islice(iterator, 1 << 10)):
        waiting += items
        size += sum(len(item) for item in items if isinstance(item, (str, bytes)))
        if len(waiting) >= ITEMS or size >= BYTES:
            yield waiting
            waiting, size = [], 0
    if waiting:
        yield waiting


class Running(NamedTuple):
    """The kernels in use.

    :ivar implementation: ``native`` or ``pure``
    :ivar level: the vector level of digests; ``none`` in plain Python
    :ivar side_by_side: whether the kernels release the GIL
    """

    implementation: str
    level: str
    side_by_side: bool


def running() -> Running:
    """Return the kernels in use."""
    kernels = _kernels.active
    return Running(kernels.NAME, kernels.LEVEL, kernels.RELEASES_GIL)
