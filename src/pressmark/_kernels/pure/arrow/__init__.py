"""Columns of strings through the Arrow C data interface, in and out, with pyarrow or nanoarrow.

Items are exchanged with the package as bytes.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

from pressmark._kernels.pure.arrow.capsules import Description, is_capsule
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

_NO_LIBRARY = ("no_library",)


def _library() -> ModuleType | None:
    """Return the module for pyarrow or nanoarrow, :data:`None` if neither is installed."""
    for package in ("pyarrow", "nanoarrow"):
        try:
            return importlib.import_module(f"pressmark._kernels.pure.arrow.with_{package}")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] != package:
                raise
    return None


# --- in -----------------------------------------------------------------------------------------------------


def describe_schema(capsule: Any) -> tuple[Any, Problem | None]:
    """Return ``((format, ((name, format, dictionary's format), …), dictionary's format), problem)``."""
    _, description, problem = _read_schema(capsule)
    return description, problem


def _read_schema(capsule: Any) -> tuple[Any, Description | None, Problem | None]:
    library = _library()
    if library is None:
        return None, None, _NO_LIBRARY
    if not is_capsule(capsule, "arrow_schema"):
        return None, None, ("capsule", "arrow_schema")
    try:
        return *library.read_schema(capsule), None
    except library.FAILURES as error:
        return None, None, ("malformed", str(error))


class Source:
    """The items of a checked foreign array. Several threads can read parts of it at the same time."""

    def __init__(self, items: list[bytes | None]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)


def _open(library: ModuleType, array: Any, selection: Sequence[int]) -> tuple[Source | None, Problem | None]:
    children, child, *_ = selection
    try:
        items = library.items_of(array, None if children < 0 else child)
    except library.FAILURES as error:
        return None, ("malformed", str(error))
    return (None, ("index", "column", *items)) if isinstance(items, tuple) else (Source(items), None)


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
            size of an entry in bytes (4 and 8 for offsets, 16 for views); the size of a dictionary index (negative if
            signed, 0 without a dictionary)
        """
        if not is_capsule(self._array, "arrow_array"):
            return None, ("capsule", "arrow_array")
        library = _library()
        assert library is not None, "it read the schema"
        try:
            array = library.read_array(self._kind, self._array)
        except library.FAILURES as error:
            return None, ("malformed", str(error))
        return _open(library, array, selection)


class Stream:
    """A foreign stream of arrays, moved out of its capsule."""

    def __init__(self, library: ModuleType, description: Description, arrays: Iterator[Any]) -> None:
        self._library = library
        self._description = description
        self._arrays = arrays

    @staticmethod
    def take(exporter: Any) -> tuple[Stream | None, Problem | None]:
        """Return ``(Stream, None)``, or ``(None, problem)``; ``exporter`` has ``__arrow_c_stream__``."""
        library = _library()
        if library is None:
            return None, _NO_LIBRARY
        capsule = exporter.__arrow_c_stream__()
        if not is_capsule(capsule, "arrow_array_stream"):
            return None, ("capsule", "arrow_array_stream")
        try:
            return Stream(library, *library.open_stream(capsule, exporter)), None
        except library.FAILURES as error:
            return None, ("stream", str(error))

    def describe(self) -> tuple[Any, Problem | None]:
        """Return the same as :func:`describe_schema`."""
        return self._description, None

    def next(self, selection: Sequence[int]) -> tuple[Source | None, Problem | None]:
        """Return ``(Source, None)``, ``(None, None)`` at the end, or ``(None, problem)``."""
        try:
            array = next(self._arrays, None)
        except self._library.FAILURES as error:
            return None, ("stream", str(error))
        return (None, None) if array is None else _open(self._library, array, selection)

    def close(self) -> None:
        """Release the stream, once."""
        self._arrays = iter(())


# --- columns ------------------------------------------------------------------------------------------------


class Chunk:
    """An immutable run of items and nulls."""

    def __init__(self, items: list[bytes | None]) -> None:
        self.items = items

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
        taken: list[bytes] = []
        nulls: list[int] = []
        total = 0
        for item in self.items[start : start + items]:
            total += len(item or b"")
            if taken and total > size:
                break
            if item is None:
                nulls.append(len(taken))
            taken.append(item or b"")
        return ByteColumn(taken), nulls


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
    made: list[bytes | None] = [
        None if item is None else result for item, result in zip(items, results.items, strict=True)
    ]
    kept = Chunk(items) if keep else None
    for index, code, position in errors:
        item = items[index]
        if item is None:
            continue
        if not nullify:
            return Chunk(made), kept, (index, code, position, item)
        made[index] = None
    return Chunk(made), kept, None


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


def _exporting() -> Any:
    library = _library()
    assert library is not None, "the column was read with it"
    return library


def export_schema(formats: str, names: Sequence[str] | None) -> Any:
    """Return a new ``arrow_schema`` capsule.

    :param formats: the format of each field; if ``names`` is None, the format of the column itself
    :param names: the names of the fields of a struct
    """
    return _exporting().schema(formats, names)


def export_array(formats: str, names: Sequence[str] | None, chunks: Sequence[Chunk]) -> Any:
    """Return a new ``arrow_array`` capsule that shares ``chunks``, one for each field."""
    return _exporting().array(formats, names, [chunk.items for chunk in chunks])


def export_stream(formats: str, names: Sequence[str] | None, batches: Sequence[Sequence[Chunk]]) -> Any:
    """Return a new ``arrow_array_stream`` capsule that shares ``batches``, each with one chunk for each field."""
    return _exporting().stream(formats, names, [[chunk.items for chunk in batch] for batch in batches])
