"""Arrow structures read and created with nanoarrow, for installations without pyarrow."""

from __future__ import annotations

import importlib
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from pressmark._kernels.pure.arrow.capsules import Capsules, Description

na: Any = importlib.import_module("nanoarrow")

__all__ = ["FAILURES", "array", "items_of", "open_stream", "read_array", "read_schema", "schema", "stream"]

# The exceptions of nanoarrow for invalid structures.
FAILURES = (RuntimeError, ValueError, TypeError, OSError, IndexError)

_TYPES = {"u": na.string(), "U": na.large_string(), "z": na.binary(), "Z": na.large_binary()}
# A view contains a string of at most this many bytes after its length; otherwise length, prefix, block and offset.
_INLINE = 12
_VIEW = struct.Struct("=i4sii")


# --- in -----------------------------------------------------------------------------------------------------


def _values(kind: Any) -> str | None:
    form: str | None = None if kind.dictionary is None else kind.dictionary.format
    return form


def read_schema(capsule: Any) -> tuple[Any, Description]:
    """Return the schema in an ``arrow_schema`` capsule, and its description."""
    kind = na.c_schema(Capsules(schema=capsule))
    return kind, _describe(kind)


def _describe(kind: Any) -> Description:
    fields = tuple((field.name or "", field.format, _values(field)) for field in kind.children)
    return kind.format, fields, _values(kind)


def read_array(kind: Any, capsule: Any) -> Any:
    """Return the array of type ``kind`` in an ``arrow_array`` capsule."""
    return na.c_array(Capsules(schema=kind.__arrow_c_schema__(), array=capsule))


def items_of(whole: Any, child: int | None) -> list[bytes | None] | tuple[int, int]:
    """Return the strings of an array; or the number of an item and its index, if that is not in the dictionary.

    :param child: the number of the field, in an array of structs
    """
    there = _validity(whole, whole.offset, len(whole))
    if child is None:
        return _items(whole, whole.offset, there)
    column = whole.child(child)
    if len(column) < whole.offset + len(whole):
        raise ValueError(f"{len(column)} items; the struct needs {whole.offset + len(whole)}")
    first = column.offset + whole.offset
    both = [one and other for one, other in zip(there, _validity(column, first, len(whole)), strict=True)]
    return _items(column, first, both)


def _validity(column: Any, first: int, count: int) -> list[bool]:
    bits = column.view().buffer(0)
    if column.null_count == 0 or not memoryview(bits).nbytes:
        return [True] * count
    return [bool(bit) for bit in bits.elements(first, count)]


def _items(column: Any, first: int, there: Sequence[bool]) -> list[bytes | None] | tuple[int, int]:
    """Return the items from ``first``; None for those that are not ``there``."""
    count = len(there)
    if not count:
        return []
    view = column.view()
    if column.dictionary is not None:
        words = _items(column.dictionary, column.dictionary.offset, _whole(column.dictionary))
        coded: list[bytes | None] = []
        for item, (exists, index) in enumerate(zip(there, view.buffer(1).elements(first, count), strict=True)):
            if exists and not 0 <= index < len(words):
                return item, index
            coded.append(words[index] if exists else None)  # type: ignore[arg-type]  # no dictionary of dictionaries
        return coded
    if column.schema.format[0] == "v":
        return _views(view, first, there)
    data = memoryview(view.buffer(2))
    ends = memoryview(view.buffer(1))[first : first + count + 1]
    places = zip(pairwise(ends), there, strict=True)
    return [bytes(data[start:end]) if exists else None for (start, end), exists in places]


def _whole(column: Any) -> list[bool]:
    return _validity(column, column.offset, len(column))


def _views(view: Any, first: int, there: Sequence[bool]) -> list[bytes | None]:
    # The iterator over views in nanoarrow 0.9.0 crashes.
    views = bytes(memoryview(view.buffer(1)))
    blocks = [memoryview(view.buffer(number)) for number in range(2, view.n_buffers - 1)]
    items: list[bytes | None] = []
    for item, exists in enumerate(there, first):
        size, _, block, offset = _VIEW.unpack_from(views, 16 * item)
        if not exists:
            items.append(None)
        elif size <= _INLINE:
            items.append(views[16 * item + 4 : 16 * item + 4 + size])
        else:
            items.append(bytes(blocks[block][offset : offset + size]))
    return items


def open_stream(capsule: Any, _exporter: Any) -> tuple[Description, Iterator[Any]]:
    """Return the description of a stream's arrays, and the arrays."""
    source = na.c_array_stream(Capsules(stream=capsule))
    kind = source.get_schema()

    def arrays() -> Iterator[Any]:
        try:
            yield from source
        finally:
            source.release()

    return _describe(kind), arrays()


# --- out ----------------------------------------------------------------------------------------------------

# Columns are lists of bytes and None. If ``names`` is None there is one column, otherwise they are the fields of a
# struct.


def _kind(formats: str, names: Sequence[str] | None) -> Any:
    if names is None:
        return na.c_schema(_TYPES[formats])
    fields = {name: _TYPES[form] for name, form in zip(names, formats, strict=True)}
    return na.c_schema(na.struct(fields, nullable=False))


def schema(formats: str, names: Sequence[str] | None) -> Any:
    """Return an ``arrow_schema`` capsule."""
    return _kind(formats, names).__arrow_c_schema__()


def _column(form: str, items: list[bytes | None]) -> Any:
    if form in "zZ":
        return na.c_array(items, _TYPES[form])
    return na.c_array([None if item is None else item.decode() for item in items], _TYPES[form])


def _made(formats: str, names: Sequence[str] | None, columns: Sequence[list[bytes | None]]) -> Any:
    arrays = [_column(form, items) for form, items in zip(formats, columns, strict=True)]
    if names is None:
        return arrays[0]
    return na.c_array_from_buffers(_kind(formats, names), len(columns[0]), [None], null_count=0, children=arrays)


def array(formats: str, names: Sequence[str] | None, columns: Sequence[list[bytes | None]]) -> Any:
    """Return an ``arrow_array`` capsule."""
    return _made(formats, names, columns).__arrow_c_array__()[1]


def stream(formats: str, names: Sequence[str] | None, batches: Sequence[Sequence[list[bytes | None]]]) -> Any:
    """Return an ``arrow_array_stream`` capsule."""
    made = [_made(formats, names, columns) for columns in batches]
    source: Any = importlib.import_module("nanoarrow.c_array_stream").CArrayStream.from_c_arrays(
        made, _kind(formats, names)
    )
    return source.__arrow_c_stream__()
