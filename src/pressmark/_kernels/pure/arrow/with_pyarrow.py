"""Arrow structures read and created with pyarrow."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from pressmark._kernels.pure.arrow.capsules import Capsules, Description

pa: Any = importlib.import_module("pyarrow")
if not hasattr(pa, "string_view"):  # before 17 it cannot read the schema of a single column
    raise ModuleNotFoundError("pyarrow is older than 17", name="pyarrow")

__all__ = ["FAILURES", "array", "items_of", "open_stream", "read_array", "read_schema", "schema", "stream"]

# The exceptions of pyarrow for invalid structures.
FAILURES = (pa.ArrowException, ValueError, TypeError, OSError, IndexError)

_TYPES = {"u": pa.string(), "U": pa.large_string(), "z": pa.binary(), "Z": pa.large_binary()}
# The same layout, not necessarily UTF-8.
_BINARY = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}

_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


# --- in -----------------------------------------------------------------------------------------------------


def _format(kind: Any) -> str:
    # Only the C structure contains the format string, as its first member.
    capsule = kind.__arrow_c_schema__()
    form: bytes = ctypes.c_char_p.from_address(_capsule_pointer(capsule, b"arrow_schema") or 0).value or b""
    return form.decode("utf-8", "backslashreplace")


def _stored(kind: Any) -> Any:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def _formats(kind: Any) -> tuple[str, str | None]:
    if isinstance(kind, pa.DictionaryType):
        return _format(kind), _format(kind.value_type)
    return _format(kind), None


def _describe(kind: Any) -> Description:
    fields = []
    if isinstance(kind, pa.StructType):
        for number in range(kind.num_fields):
            field = kind.field(number)
            fields.append((field.name, *_formats(_stored(field.type))))
    form, dictionary = _formats(kind)
    return form, tuple(fields), dictionary


def read_schema(capsule: Any) -> tuple[Any, Description]:
    """Return the type in an ``arrow_schema`` capsule, and its description."""
    kind = _stored(pa.field(Capsules(schema=capsule)).type)
    return kind, _describe(kind)


def _binary(kind: Any) -> Any:
    kind = _stored(kind)
    if isinstance(kind, pa.DictionaryType):
        return pa.dictionary(kind.index_type, _binary(kind.value_type), kind.ordered)
    if isinstance(kind, pa.StructType):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return pa.struct([field.with_type(_binary(field.type)) for field in fields])
    return _BINARY.get(kind, kind)


def read_array(kind: Any, capsule: Any) -> Any:
    """Return the array of type ``kind`` in an ``arrow_array`` capsule."""
    return pa.array(Capsules(schema=_binary(kind).__arrow_c_schema__(), array=capsule))


def items_of(column: Any, child: int | None) -> list[bytes | None] | tuple[int, int]:
    """Return the strings of an array; or the number of an item and its index, if that is not in the dictionary.

    :param child: the number of the field, in an array of structs
    """
    if child is not None:
        column.validate()
        # The child's validity then includes that of the structs.
        column = column.flatten()[child]
    return _items(column)


def _items(column: Any) -> list[bytes | None] | tuple[int, int]:
    if not len(column):
        # An empty array need not have buffers, but pyarrow requires them.
        return []
    if not isinstance(column, pa.DictionaryArray):
        column.validate(full=True)
        plain: list[bytes | None] = column.to_pylist()
        return plain
    words = _items(column.dictionary)
    indices = column.indices
    indices.validate(full=True)
    items: list[bytes | None] = []
    for item, index in enumerate(indices.to_pylist()):
        if index is not None and not 0 <= index < len(words):
            return item, index
        items.append(None if index is None else words[index])  # type: ignore[arg-type]  # no dictionary of dictionaries
    return items


def open_stream(capsule: Any, exporter: Any) -> tuple[Description, Iterator[Any]]:
    """Return the description of a stream's arrays, and the arrays.

    pyarrow reads record batches one by one, and any other stream as a whole. The type of ``exporter`` decides, since
    the stream itself shows too late whether it contains record batches.
    """
    source = Capsules(stream=capsule)
    arrays: Iterator[Any]
    if isinstance(exporter, pa.RecordBatchReader):
        reader = pa.RecordBatchReader.from_stream(source)
        kind = pa.struct(list(reader.schema))
        arrays = (batch.to_struct_array() for batch in reader)
    else:
        whole = pa.chunked_array(source)
        kind = _stored(whole.type)
        arrays = iter(whole.chunks)
    return _describe(kind), (read_array(kind, one.__arrow_c_array__()[1]) for one in arrays)


# --- out ----------------------------------------------------------------------------------------------------

# Columns are lists of bytes and None. If ``names`` is None there is one column, otherwise they are the fields of a
# struct.


def _fields(formats: str, names: Sequence[str]) -> Any:
    return pa.schema([pa.field(name, _TYPES[form]) for name, form in zip(names, formats, strict=True)])


def schema(formats: str, names: Sequence[str] | None) -> Any:
    """Return an ``arrow_schema`` capsule."""
    if names is None:
        return pa.field("", _TYPES[formats]).__arrow_c_schema__()
    return _fields(formats, names).__arrow_c_schema__()


def _made(formats: str, names: Sequence[str] | None, columns: Sequence[list[bytes | None]]) -> Any:
    arrays = [pa.array(items, _TYPES[form]) for form, items in zip(formats, columns, strict=True)]
    return arrays[0] if names is None else pa.RecordBatch.from_arrays(arrays, schema=_fields(formats, names))


def array(formats: str, names: Sequence[str] | None, columns: Sequence[list[bytes | None]]) -> Any:
    """Return an ``arrow_array`` capsule."""
    return _made(formats, names, columns).__arrow_c_array__()[1]


def stream(formats: str, names: Sequence[str] | None, batches: Sequence[Sequence[list[bytes | None]]]) -> Any:
    """Return an ``arrow_array_stream`` capsule."""
    made = (_made(formats, names, columns) for columns in batches)
    if names is None:
        return pa.chunked_array(list(made), _TYPES[formats]).__arrow_c_stream__()
    return pa.RecordBatchReader.from_batches(_fields(formats, names), made).__arrow_c_stream__()
