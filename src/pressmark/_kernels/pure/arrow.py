"""Columns of strings through the Arrow C data interface, in and out, with pyarrow.

pyarrow is imported for the first column. Items are exchanged with it as bytes.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
from collections.abc import Iterator, Sequence
from typing import Any

from pressmark._kernels.pure.column import ByteColumn, Kernel

__all__ = [
    "Array",
    "Chunk",
    "Concatenation",
    "Source",
    "Stream",
    "describe_schema",
    "export_array",
    "export_schema",
    "export_stream",
    "map_part",
]

# A name and values; see pressmark.arrow.
Problem = tuple[Any, ...]
# A format, the fields of a struct (name, format, format of a dictionary's values), and the dictionary's format.
Description = tuple[str, tuple[tuple[str, str, str | None], ...], str | None]

_NO_LIBRARY = ("no_library",)
# Functions of pyarrow that return the type of a format.
_TYPES = {"u": "string", "U": "large_string", "z": "binary", "Z": "large_binary"}
# The same layout, not necessarily UTF-8.
_BINARY = {"string": "binary", "large_string": "large_binary", "string_view": "binary_view"}

_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@functools.cache
def _pyarrow() -> Any:
    """Return pyarrow; :data:`None` if it is not installed, or older than 17."""
    try:
        pyarrow = importlib.import_module("pyarrow")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pyarrow":
            raise
        return None
    # Before 17 it cannot read the schema of a single column.
    return pyarrow if hasattr(pyarrow, "string_view") else None


def _failures() -> tuple[type[Exception], ...]:
    """Return the exceptions of pyarrow for invalid structures."""
    return _pyarrow().ArrowException, ValueError, TypeError, OSError, IndexError


def _type(form: str) -> Any:
    return getattr(_pyarrow(), _TYPES[form])()


class Capsules:
    """Capsules of a foreign object, offered again by the Arrow PyCapsule protocol."""

    def __init__(self, schema: Any = None, array: Any = None, stream: Any = None) -> None:
        self.schema = schema
        self.array = array
        self.stream = stream

    def __arrow_c_schema__(self) -> Any:
        return self.schema

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self.schema, self.array

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.stream


def _is_capsule(value: Any, name: str) -> bool:
    """Return whether ``value`` is a capsule called ``name``."""
    # Only its repr contains the name of a capsule, and its type has no public name before Python 3.13.
    return type(value).__name__ == "PyCapsule" and repr(value).startswith(f'<capsule object "{name}" ')


# --- in -----------------------------------------------------------------------------------------------------


def describe_schema(capsule: Any) -> tuple[Any, Problem | None]:
    """Return ``((format, ((name, format, dictionary's format), …), dictionary's format), problem)``."""
    _, description, problem = _read_schema(capsule)
    return description, problem


def _read_schema(capsule: Any) -> tuple[Any, Description | None, Problem | None]:
    """Return the type in an ``arrow_schema`` capsule and its description, or a problem."""
    pa = _pyarrow()
    if pa is None:
        return None, None, _NO_LIBRARY
    if not _is_capsule(capsule, "arrow_schema"):
        return None, None, ("capsule", "arrow_schema")
    try:
        kind = _stored(pa.field(Capsules(schema=capsule)).type)
        return kind, _describe(kind), None
    except _failures() as error:
        return None, None, ("malformed", str(error))


def _describe(kind: Any) -> Description:
    fields = []
    if isinstance(kind, _pyarrow().StructType):
        for number in range(kind.num_fields):
            field = kind.field(number)
            fields.append((field.name, *_formats(_stored(field.type))))
    form, dictionary = _formats(kind)
    return form, tuple(fields), dictionary


def _formats(kind: Any) -> tuple[str, str | None]:
    if isinstance(kind, _pyarrow().DictionaryType):
        return _format(kind), _format(kind.value_type)
    return _format(kind), None


def _format(kind: Any) -> str:
    # Only the C structure contains the format string, as its first member.
    capsule = kind.__arrow_c_schema__()
    form: bytes = ctypes.c_char_p.from_address(_capsule_pointer(capsule, b"arrow_schema") or 0).value or b""
    return form.decode("utf-8", "backslashreplace")


def _stored(kind: Any) -> Any:
    return kind.storage_type if isinstance(kind, _pyarrow().BaseExtensionType) else kind


class Source:
    """The items of a checked foreign array. Several threads can read parts of it at the same time."""

    def __init__(self, items: list[bytes | None]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)


def _read_array(kind: Any, capsule: Any) -> Any:
    """Return the array of type ``kind`` in an ``arrow_array`` capsule."""
    return _pyarrow().array(Capsules(schema=_binary(kind).__arrow_c_schema__(), array=capsule))


def _binary(kind: Any) -> Any:
    """Return the type with the same layout that need not be UTF-8."""
    pa = _pyarrow()
    kind = _stored(kind)
    if isinstance(kind, pa.DictionaryType):
        return pa.dictionary(kind.index_type, _binary(kind.value_type), kind.ordered)
    if isinstance(kind, pa.StructType):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return pa.struct([field.with_type(_binary(field.type)) for field in fields])
    return next((getattr(pa, other)() for name, other in _BINARY.items() if kind == getattr(pa, name)()), kind)


def _open(column: Any, selection: Sequence[int]) -> tuple[Source | None, Problem | None]:
    children, child, *_ = selection
    try:
        if not len(column):
            # An empty array need not have buffers, but pyarrow requires them.
            return Source([]), None
        if children >= 0:
            _check_struct(column)
            # The child's validity then includes that of the structs.
            column = column.flatten()[child]
        items = _items(column)
    except _failures() as error:
        return None, ("malformed", str(error))
    return (None, ("index", "column", *items)) if isinstance(items, tuple) else (Source(items), None)


def _check_struct(column: Any) -> None:
    try:
        column.validate()
    except _pyarrow().ArrowInvalid as error:
        # pyarrow refuses an empty array of views with an offset, such as the dictionary of a slice.
        if "for length: 0 and offset: " not in str(error):
            raise


def _items(column: Any) -> list[bytes | None] | tuple[int, int]:
    """Return the strings of an array; or the number of an item and its index, if that is not in the dictionary."""
    if not len(column):
        # An empty array need not have buffers, but pyarrow requires them.
        return []
    if not isinstance(column, _pyarrow().DictionaryArray):
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


class Array:
    """A foreign array with its schema, in their capsules."""

    def __init__(self, schema: Any, array: Any) -> None:
        self._schema = schema
        self._array = array
        self._kind: Any = None

    def describe(self) -> tuple[Any, Problem | None]:
        """Return the same as :func:`describe_schema`."""
        self._kind, description, problem = _read_schema(self._schema)
        return description, problem

    def take(self, selection: Sequence[int]) -> tuple[Source | None, Problem | None]:
        """Move the array out of its capsule and return ``(Source, None)``, or ``(None, problem)``.

        :param selection: from the schema: the number of children of the struct, or -1; the number of the child; the
            size of an entry in bytes (4 and 8 for offsets, 16 for views, 0 for the null type); the size of a dictionary
            index (negative if signed, 0 without a dictionary)
        """
        if not _is_capsule(self._array, "arrow_array"):
            return None, ("capsule", "arrow_array")
        try:
            array = _read_array(self._kind, self._array)
        except _failures() as error:
            return None, ("malformed", str(error))
        return _open(array, selection)


class Stream:
    """A foreign stream of arrays, moved out of its capsule.

    pyarrow reads record batches one by one, and any other stream as a whole. The type of ``exporter`` decides, since
    the stream itself shows too late whether it contains record batches.
    """

    def __init__(self, capsule: Any, exporter: Any) -> None:
        pa = _pyarrow()
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
        self._description = _describe(kind)
        self._arrays: Iterator[Any] = (_read_array(kind, one.__arrow_c_array__()[1]) for one in arrays)

    @staticmethod
    def take(exporter: Any) -> tuple[Stream | None, Problem | None]:
        """Return ``(Stream, None)``, or ``(None, problem)``; ``exporter`` has ``__arrow_c_stream__``."""
        if _pyarrow() is None:
            return None, _NO_LIBRARY
        capsule = exporter.__arrow_c_stream__()
        if not _is_capsule(capsule, "arrow_array_stream"):
            return None, ("capsule", "arrow_array_stream")
        try:
            return Stream(capsule, exporter), None
        except _failures() as error:
            return None, ("stream", str(error))

    def describe(self) -> tuple[Any, Problem | None]:
        """Return the same as :func:`describe_schema`."""
        return self._description, None

    def next(self, selection: Sequence[int]) -> tuple[Source | None, Problem | None]:
        """Return ``(Source, None)``, ``(None, None)`` at the end, or ``(None, problem)``."""
        try:
            array = next(self._arrays, None)
        except _failures() as error:
            return None, ("stream", str(error))
        return (None, None) if array is None else _open(array, selection)

    def close(self) -> None:
        """Release the stream, once."""
        self._arrays = iter(())


# --- columns ------------------------------------------------------------------------------------------------


class Chunk:
    """An immutable run of items and nulls."""

    def __init__(self, items: list[bytes | None]) -> None:
        self.items = items

    @classmethod
    def from_column(cls, column: ByteColumn, nulls: Sequence[int]) -> Chunk:
        """Return the items of ``column``, of which those at the indices ``nulls`` are null."""
        items: list[bytes | None] = list(column.items)
        for index in nulls:
            items[index] = None
        return cls(items)

    def __len__(self) -> int:
        return len(self.items)

    @property
    def null_count(self) -> int:
        return self.items.count(None)

    @property
    def size(self) -> int:
        """The number of bytes of all items."""
        return sum(len(item) for item in self.items if item is not None)

    def is_utf8(self) -> bool:
        """Return whether every item is UTF-8."""
        try:
            for item in self.items:
                if item is not None:
                    item.decode()
        except UnicodeDecodeError:
            return False
        return True

    def item(self, index: int) -> bytes | None:
        """Return the item at ``index``, which must exist, as ``bytes``, or None."""
        return self.items[index]

    def to_list(self) -> list[str | None]:
        """Return items as ``str`` and nulls as None; bytes that are not UTF-8 become surrogates of ``os.fsdecode``."""
        return [None if item is None else item.decode("utf-8", "surrogateescape") for item in self.items]

    def byte_column(self, start: int, items: int, size: int) -> tuple[ByteColumn, list[int]]:
        """Return a copy of the items from ``start``, which must exist, and the indices of nulls in the copy.

        :param items: the maximum number of items
        :param size: the maximum number of bytes; a single item may have more
        """
        values: list[bytes] = []
        nulls: list[int] = []
        total = 0
        for item in self.items[start : start + items]:
            total += len(item or b"")
            if values and total > size:
                break
            if item is None:
                nulls.append(len(values))
            values.append(item or b"")
        return ByteColumn(values), nulls


def map_part(
    kernel: Kernel, source: Source, start: int, stop: int, nullify: bool, keep: bool
) -> tuple[Chunk, Chunk | None, tuple[int, int, int, bytes] | None]:
    """Map the items from ``start`` to ``stop`` of ``source``.

    :param nullify: make items with an error null
    :param keep: return the items too
    :return: the results; the items or None; and None, or the first error of an item that is not null, as
        ``(index in the part, code, position, item)``
    """
    items = source.items[start:stop]
    packed = ByteColumn([b"" if item is None else item for item in items])
    results, errors = kernel(packed)
    values: list[bytes | None] = [
        None if item is None else result for item, result in zip(items, results.items, strict=True)
    ]
    kept = Chunk(items) if keep else None
    for index, code, position in errors:
        item = items[index]
        if item is None:
            continue
        if not nullify:
            return Chunk(values), kept, (index, code, position, item)
        values[index] = None
    return Chunk(values), kept, None


class Concatenation:
    """The concatenation of chunks. :meth:`copy` may be called for several chunks at the same time, in any order."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = list(chunks)

    def copy(self, number: int) -> None:
        """Copy the items of chunk ``number``."""

    def result(self) -> Chunk:
        """Return the concatenation, after all chunks were copied."""
        return Chunk([item for chunk in self.chunks for item in chunk.items])


# --- out ----------------------------------------------------------------------------------------------------


def _fields(formats: str, names: Sequence[str]) -> Any:
    pa = _pyarrow()
    return pa.schema([pa.field(name, _type(form)) for name, form in zip(names, formats, strict=True)])


def _exported(formats: str, names: Sequence[str] | None, chunks: Sequence[Chunk]) -> Any:
    pa = _pyarrow()
    arrays = [pa.array(chunk.items, _type(form)) for form, chunk in zip(formats, chunks, strict=True)]
    return arrays[0] if names is None else pa.RecordBatch.from_arrays(arrays, schema=_fields(formats, names))


def export_schema(formats: str, names: Sequence[str] | None) -> Any:
    """Return a new ``arrow_schema`` capsule.

    :param formats: the format of each field; if ``names`` is None, the format of the column itself
    :param names: the names of the fields of a struct
    """
    kind = _pyarrow().field("", _type(formats)) if names is None else _fields(formats, names)
    return kind.__arrow_c_schema__()


def export_array(formats: str, names: Sequence[str] | None, chunks: Sequence[Chunk]) -> Any:
    """Return a new ``arrow_array`` capsule that shares ``chunks``, one for each field."""
    return _exported(formats, names, chunks).__arrow_c_array__()[1]


def export_stream(formats: str, names: Sequence[str] | None, batches: Sequence[Sequence[Chunk]]) -> Any:
    """Return a new ``arrow_array_stream`` capsule that shares ``batches``, each with one chunk for each field."""
    pa = _pyarrow()
    exported = (_exported(formats, names, chunks) for chunks in batches)
    if names is None:
        return pa.chunked_array(list(exported), _type(formats)).__arrow_c_stream__()
    return pa.RecordBatchReader.from_batches(_fields(formats, names), exported).__arrow_c_stream__()
