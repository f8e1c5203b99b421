"""Arrow structures read and made by pyarrow, for the pure implementation."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from pressmark._kernels.pure.arrow.capsules import Capsules, Description

pa: Any = importlib.import_module("pyarrow")
if not hasattr(pa, "string_view"):  # before 17 it reads no schema of one column either
    raise ModuleNotFoundError("pyarrow is older than 17", name="pyarrow")

__all__ = ["FAILURES", "array", "items_of", "open_stream", "read_array", "read_schema", "schema", "stream"]

# What pyarrow raises of structures that do not hold together.
FAILURES = (pa.ArrowException, ValueError, TypeError, OSError, IndexError)

_TYPES = {"u": pa.string(), "U": pa.large_string(), "z": pa.binary(), "Z": pa.large_binary()}
# The same layout without the promise of UTF-8.
_BINARY = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}

_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


# --- in -----------------------------------------------------------------------------------------------------


def _format(kind: Any) -> str:
    # pyarrow shows format strings nowhere but in the structure, of which it is the first member.
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
    """Return the type that is in a capsule ``arrow_schema``, and what it is."""
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
    """Return the array of a type that is in a capsule ``arrow_array``."""
    return pa.array(Capsules(schema=_binary(kind).__arrow_c_schema__(), array=capsule))


def items_of(column: Any, child: int | None) -> list[bytes | None] | tuple[int, int]:
    """Return the strings of an array; or an item, and its index that the dictionary does not have.

    :param child: which one, in an array of structs
    """
    if child is not None:
        column.validate()
        # The validity of the structs is part of the child's then.
        column = column.flatten()[child]
    return _items(column)


def _items(column: Any) -> list[bytes | None] | tuple[int, int]:
    if not len(column):
        # Of nothing, buffers need not be there, and pyarrow would miss them.
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
    """Return what a stream's arrays are, and the arrays.

    pyarrow reads only record batches one by one, and what else is in a stream as a whole. Whether a stream is one of
    record batches shows too late, so ``exporter`` decides.
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

# Columns are given as lists of bytes and None; where ``names`` is None there is one, else they are fields of a struct.


def _fields(formats: str, names: Sequence[str]) -> Any:
    return pa.schema([pa.field(name, _TYPES[form]) for name, form in zip(names, formats, strict=True)])


def schema(formats: str, names: Sequence[str] | None) -> Any:
    """Return a capsule ``arrow_schema``."""
    if names is None:
        return pa.field("", _TYPES[formats]).__arrow_c_schema__()
    return _fields(formats, names).__arrow_c_schema__()


def _made(formats: str, names: Sequence[str] | None, columns: Sequence[list[bytes | None]]) -> Any:
    arrays = [pa.array(items, _TYPES[form]) for form, items in zip(formats, columns, strict=True)]
    return arrays[0] if names is None else pa.RecordBatch.from_arrays(arrays, schema=_fields(formats, names))


def array(formats: str, names: Sequence[str] | None, columns: Sequence[list[bytes | None]]) -> Any:
    """Return a capsule ``arrow_array``."""
    return _made(formats, names, columns).__arrow_c_array__()[1]


def stream(formats: str, names: Sequence[str] | None, batches: Sequence[Sequence[list[bytes | None]]]) -> Any:
    """Return a capsule ``arrow_array_stream``."""
    made = (_made(formats, names, columns) for columns in batches)
    if names is None:
        return pa.chunked_array(list(made), _TYPES[formats]).__arrow_c_stream__()
    return pa.RecordBatchReader.from_batches(_fields(formats, names), made).__arrow_c_stream__()
