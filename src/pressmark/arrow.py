"""Import and export of Arrow columns through the PyCapsule protocol.

Columns are imported from any object with ``__arrow_c_array__`` or ``__arrow_c_stream__`` (pyarrow, polars, pandas,
DuckDB, nanoarrow, arro3 …), and exported as :class:`StringColumn`, which all of these can read.
The native implementation imports no other package; the pure-Python implementation requires pyarrow, and imports
it for the first column.

Documents: https://arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html and
CDataInterface/PyCapsuleInterface.html.
"""

from __future__ import annotations

import operator
import sys
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from types import ModuleType
from typing import Any, NamedTuple, Protocol, SupportsIndex, TypeVar, runtime_checkable

from pressmark import _kernels
from pressmark.errors import ColumnError
from pressmark.threads import Threads, ordered_map

__all__ = [
    "ArrowArrayExportable",
    "ArrowSchemaExportable",
    "ArrowStreamExportable",
    "ErrorList",
    "LibraryColumn",
    "PackedColumn",
    "StringColumn",
    "as_column_of",
    "map_column",
    "packed_columns",
]

# The least number of items for a thread: some milliseconds of work.
PART_ITEMS = 1 << 16
# Parts of a long chunk for each thread, so that the load is balanced.
PARTS_PER_THREAD = 4
# The least size of a concatenation in bytes for several threads.
MANY_BYTES = 1 << 24
NARROW_BYTES = (1 << 31) - 1


# --- the protocols, by their names in the Arrow document --------------------------------------------------------


@runtime_checkable
class ArrowSchemaExportable(Protocol):
    """An object that describes its Arrow type: "ArrowSchema Export"."""

    def __arrow_c_schema__(self) -> object: ...


@runtime_checkable
class ArrowArrayExportable(Protocol):
    """An object that is one contiguous Arrow array: "ArrowArray Export"."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


@runtime_checkable
class ArrowStreamExportable(Protocol):
    """An object that is a stream of Arrow arrays: "ArrowStream Export"."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


_Error = TypeVar("_Error", contravariant=True)


class ErrorList(Protocol[_Error]):
    """A list of errors, or another object with its method ``append``."""

    def append(self, error: _Error, /) -> object:
        """Receive an error."""


class _PolarsSeries(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def drop_nulls(self) -> object: ...


class _PandasSeries(Protocol):
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def dropna(self) -> object: ...


class _PyarrowColumn(Protocol):
    def drop_null(self) -> object: ...


#: A column of pyarrow, polars or pandas: the result of a mapping is one of the same library.
LibraryColumn = TypeVar("LibraryColumn", bound="_PolarsSeries | _PandasSeries | _PyarrowColumn")


# --- types of columns -------------------------------------------------------------------------------------------

# Format string -> bytes per entry of its second buffer: offsets of 32 or 64 bits, views. A column of the null type, as
# libraries make of values that are all missing, has none.
_STRINGS = {"u": 4, "U": 8, "vu": 16, "z": 4, "Z": 8, "vz": 16, "n": 0}
# Format string of the indices of a dictionary -> bytes per index, negative if signed.
_INDICES = {"c": -1, "C": 1, "s": -2, "S": 2, "i": -4, "I": 4, "l": -8, "L": 8}

_WORDS = {
    "n": "null",
    "b": "boolean",
    "c": "int8",
    "C": "uint8",
    "s": "int16",
    "S": "uint16",
    "i": "int32",
    "I": "uint32",
    "l": "int64",
    "L": "uint64",
    "e": "float16",
    "f": "float32",
    "g": "float64",
    "z": "binary",
    "Z": "large_binary",
    "vz": "binary_view",
    "u": "utf8",
    "U": "large_utf8",
    "vu": "utf8_view",
    "tdD": "date32",
    "tdm": "date64",
    "tts": "time32 (seconds)",
    "ttm": "time32 (milliseconds)",
    "ttu": "time64 (microseconds)",
    "ttn": "time64 (nanoseconds)",
    "tiM": "interval (months)",
    "tiD": "interval (days, milliseconds)",
    "tin": "interval (months, days, nanoseconds)",
    "+l": "list",
    "+L": "large_list",
    "+vl": "list_view",
    "+vL": "large_list_view",
    "+s": "struct",
    "+m": "map",
    "+r": "run-end encoded",
}
_PREFIXES = {
    "d:": "decimal",
    "w:": "fixed-size binary",
    "ts": "timestamp",
    "tD": "duration",
    "+w:": "fixed-size list",
    "+ud:": "dense union",
    "+us:": "sparse union",
}


def _words(form: str, dictionary: str | None = None) -> str:
    """Return the meaning of a format string, and the string."""
    if dictionary is not None:
        return f"dictionary of {_words(dictionary)}"
    if form in _WORDS:
        return f"{_WORDS[form]}, format {form!r}"
    for prefix, words in _PREFIXES.items():
        if form.startswith(prefix):
            return f"{words}, format {form!r}"
    return f"unknown, format {form!r}"


class _Selection(NamedTuple):
    """The position of the strings in an array: see ``Array.take`` of the kernels."""

    children: int
    child: int
    entry_bytes: int
    index_bytes: int


# The result of describe_schema of the kernels.
_Description = tuple[str, tuple[tuple[str, str, str | None], ...], str | None]


def _select(description: _Description, field: str | None) -> _Selection:
    form, fields, dictionary = description
    if form != "+s" or dictionary is not None:
        if field is not None:
            raise ColumnError(f"column={field!r}: this is not a table ({_words(form, dictionary)})")
        return _Selection(-1, 0, *_strings("the column", form, dictionary))
    names = [name for name, _, _ in fields]
    listed = ", ".join(map(repr, names)) or "none"
    if field is None:
        if len(names) != 1:
            raise ColumnError(f"a struct of {len(names)} fields; select one of them: {listed}")
        number = 0
    else:
        found = names.count(field)
        if found == 0:
            raise ColumnError(f"field {field!r} not found; fields: {listed}")
        if found > 1:
            raise ColumnError(f"field {field!r} is not unique; fields: {listed}")
        number = names.index(field)
    name, form, dictionary = fields[number]
    return _Selection(len(fields), number, *_strings(f"the field {name!r}", form, dictionary))


def _strings(what: str, form: str, dictionary: str | None) -> tuple[int, int]:
    """Return the bytes per entry and per index.

    :raises ColumnError: the type is not text
    """
    values = form if dictionary is None else dictionary
    if values in _STRINGS and (dictionary is None or form in _INDICES):
        return _STRINGS[values], 0 if dictionary is None else _INDICES[form]
    advice = "; convert it to text first" if values not in _STRINGS else ""
    raise ColumnError(f"{what} is not text: {_words(form, dictionary)}{advice}")


# --- errors -----------------------------------------------------------------------------------------------------

_OF_SCHEMA = {
    "schema_released": "schema has already been released",
    "schema_broken": "broken schema; a format or a child is missing",
    "stream_released": "stream has already been released; a stream can only be read once",
}
_OF_ARRAY = {
    "released": "released already",
    "length": "impossible length {} or offset {}",
    "null_count": "null_count is {}; the column has {} items",
    "buffers": "{} buffers; {} are required",
    "no_buffers": "list of buffers is NULL",
    "no_validity": "null_count is {}, without a validity bitmap",
    "children": "{} children; the schema has {}",
    "child": "child {} is missing or was released",
    "short_child": "{} items; the struct needs {}",
    "dictionary": "dictionary is missing or was released",
    "no_buffer": "buffer {} is NULL",
    "offsets": "offsets of item {} decrease or are out of range",
    "view": "view of item {} points outside the buffers",
    "index": "item {} has index {}, which is not in the dictionary",
}
_PARTS = {"column": "", "struct": "the struct: ", "dictionary": "the dictionary: "}


def _malformed(problem: Sequence[Any], chunk: int | None = None) -> ColumnError:
    """Return the error for a problem that a kernel reported."""
    code, *details = problem
    if code == "capsule":
        return ColumnError(f"expected a capsule {details[0]!r} of the Arrow PyCapsule protocol")
    if code == "no_library":
        return ColumnError(
            "without native extensions, Arrow columns need pyarrow (17 or newer); pip install 'pressmark[arrow]'"
        )
    location = "" if chunk is None else f"chunk {chunk}: "
    if code in ("stream", "malformed"):
        # The message of a producer may have many lines.
        said = " ".join(details[0].split()) or "no message"
        what = "stream failed: " if code == "stream" else f"malformed Arrow column: {location}"
        return ColumnError(what + said)
    if code in _OF_SCHEMA:
        return ColumnError(f"malformed Arrow column: {_OF_SCHEMA[code]}")
    part, *numbers = details
    return ColumnError(f"malformed Arrow column: {location}{_PARTS[part]}{_OF_ARRAY[code].format(*numbers)}")


# --- in ---------------------------------------------------------------------------------------------------------


def _sources(kernels: ModuleType, column: Any, field: str | None = None) -> Generator[Any]:
    """Yield the checked chunks of ``column``."""
    if field is not None and not isinstance(field, str):
        raise TypeError(f"column: expected the name of a column, not {type(field).__name__}")
    array_method = getattr(column, "__arrow_c_array__", None)
    stream_method = getattr(column, "__arrow_c_stream__", None)
    if array_method is not None:
        try:
            pair = array_method()
        except Exception:
            # Chunked arrays of nanoarrow and others have both methods, and the first one raises.
            if stream_method is None:
                raise
        else:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise TypeError(f"__arrow_c_array__ returned {type(pair).__name__}, not two capsules")
            array = kernels.Array(*pair)
            selection = _select(_checked(array.describe()), field)
            yield _checked(array.take(selection))
            return
    stream = _checked(kernels.Stream.take(column))
    try:
        selection = _select(_checked(stream.describe()), field)
        number = 0
        while (source := _checked(stream.next(selection), number)) is not None:
            yield source
            number += 1
    finally:
        stream.close()


def _checked(outcome: tuple[Any, Sequence[Any] | None], chunk: int | None = None) -> Any:
    result, problem = outcome
    if problem is not None:
        raise _malformed(problem, chunk)
    return result


class _Piece(NamedTuple):
    """Consecutive items of a source; ``first`` is the index of the first one in the column."""

    source: Any
    start: int
    stop: int
    first: int


def _parts(sources: Iterable[Any], threads: int) -> Iterator[list[_Piece]]:
    """Yield work for one thread: a part of a long chunk, or several short chunks."""
    gathered: list[_Piece] = []
    items = first = 0
    for source in sources:
        count = len(source)
        size = max(PART_ITEMS, -(-count // (PARTS_PER_THREAD * threads))) if threads > 1 else max(count, 1)
        for start in range(0, count, size):
            stop = min(start + size, count)
            gathered.append(_Piece(source, start, stop, first + start))
            items += stop - start
            if items >= PART_ITEMS:
                yield gathered
                gathered, items = [], 0
        first += count
    if gathered:
        yield gathered


def map_column(
    kernels: ModuleType,
    kernel: Any,
    error_of: Callable[[str, int, int, int], Exception],
    column: Any,
    on_error: str,
    errors: ErrorList[Any] | None,
    threads: int,
) -> StringColumn:
    """Return the results of ``kernel`` for every item of ``column``: see ``Layout.map``.

    :param error_of: returns an exception, from an item, its index in the column, the error code and the position
    """
    results: list[Any] = []

    def work(pieces: list[_Piece]) -> tuple[list[_Piece], list[Any]]:
        outcomes: list[Any] = []
        for source, start, stop, _ in pieces:
            outcomes.append(kernels.map_part(kernel, source, start, stop, on_error == "none", errors is not None))
            if outcomes[-1][2] is not None:
                break
        return pieces, outcomes

    def error(first: int, fault: tuple[int, int, int, bytes]) -> Exception:
        index, code, position, item = fault
        return error_of(item.decode("utf-8", "surrogateescape"), first + index, code, position)

    with closing(_sources(kernels, column)) as sources, Threads(threads, "pressmark-column") as pool:
        for pieces, outcomes in pool.map(work, _parts(sources, threads), inline=_is_short_column):
            for piece, (result, items, fault) in zip(pieces, outcomes, strict=False):
                if fault is not None:
                    raise error(piece.first, fault)
                if errors is not None and result.null_count > items.null_count:
                    for index in range(len(result)):
                        if result.item(index) is None and items.item(index) is not None:
                            # Alone, for its error.
                            at = piece.start + index
                            *_, fault = kernels.map_part(kernel, piece.source, at, at + 1, False, True)
                            errors.append(error(piece.first + index, fault))
                results.append(result)
    return StringColumn(kernels, results, threads)


def _is_short_column(pieces: list[_Piece]) -> bool:
    """Return whether a part is a whole column with few items; of a longer column, only the last part is short."""
    return pieces[0].first == 0 and sum(piece.stop - piece.start for piece in pieces) < PART_ITEMS


# --- out --------------------------------------------------------------------------------------------------------


def _concatenated(kernels: ModuleType, chunks: Sequence[Any], threads: int) -> Any:
    """Return ``chunks`` as one chunk."""
    if len(chunks) == 1:
        return chunks[0]
    whole = kernels.Concatenation(chunks)
    workers = threads if sum(chunk.size for chunk in chunks) >= MANY_BYTES else 1
    for _ in ordered_map(whole.copy, range(len(chunks)), threads=workers, name="pressmark-column"):
        pass
    return whole.result()


def _natural_format(chunks: Sequence[Any]) -> str:
    """Return ``U`` if all items are UTF-8, otherwise ``Z``."""
    return "U" if all(chunk.is_utf8() for chunk in chunks) else "Z"


def _granted(natural: str, requested: str | None, largest: int) -> str:
    """Return the format for a consumer that requested ``requested``, for arrays of at most ``largest`` bytes."""
    if requested in ("u", "z") and largest > NARROW_BYTES:
        return natural
    if requested in ("z", "Z") or (requested == "u" and natural == "U"):
        return requested
    return natural


def _requested(kernels: ModuleType, requested_schema: Any) -> _Description | None:
    """Return the requested schema, None if it is invalid: a request need not be granted."""
    if requested_schema is None:
        return None
    description, problem = kernels.describe_schema(requested_schema)
    return None if problem is not None else description


class StringColumn:
    """A column of strings and nulls, in one or more chunks, that every Arrow consumer can read.

    ``Layout.map`` and ``unmap`` return it for columns of most libraries. It is exported as ``large_utf8``, or as
    ``large_binary`` if an item is not UTF-8 (identifiers may be any bytes). Consumers can request ``utf8``, ``binary``
    or ``large_binary``, which is granted if the items allow it. In Python an item is a ``str``, with the surrogates of
    :func:`os.fsdecode` for bytes that are not UTF-8, or None for null.

    Exports share the memory of the column, which is freed when the last of them is released. A column can be pickled;
    with protocol 5, its bytes can be transferred out of band.
    """

    __slots__ = ("_chunks", "_count", "_kernels", "_null_count", "_threads")

    def __init__(self, kernels: ModuleType, chunks: Iterable[object], threads: int = 1) -> None:
        """Create a column of chunks of ``kernels``; called by layouts.

        :param threads: maximum number of threads for concatenating the chunks
        """
        self._kernels = kernels
        self._chunks: tuple[Any, ...] = tuple(chunks)
        self._threads = threads
        self._count: int = sum(map(len, self._chunks))
        self._null_count: int = sum(chunk.null_count for chunk in self._chunks)

    def __len__(self) -> int:
        return self._count

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Return what :mod:`pickle` stores: the chunks. Protocol 5 can transfer their bytes out of band."""
        from pickle import PickleBuffer  # few programs pickle columns

        pieces = []
        for chunk in filter(len, self._chunks):
            column, nulls = chunk.byte_column(0, len(chunk), chunk.size)
            data, offsets = column.buffers()
            pieces.append((PickleBuffer(data) if operator.index(protocol) >= 5 else data, offsets, nulls))
        return _unpickled_column, (pieces, self._threads)

    def __repr__(self) -> str:
        from pressmark.summaries import FIRST, shorten

        first = ", ".join(shorten(repr(item)) for item in islice(self, FIRST))
        more = ", …" if self._count > FIRST else ""
        return f"<StringColumn of {self._count:,} items, {self._null_count:,} null: [{first}{more}]>"

    def _repr_html_(self) -> str:
        from pressmark.summaries import FIRST, html_table

        caption = f"{self._count:,} items, {self._null_count:,} null"
        return html_table(caption, ("",), ((item,) for item in islice(self, FIRST)))

    @property
    def null_count(self) -> int:
        """The number of nulls."""
        return self._null_count

    @property
    def chunk_count(self) -> int:
        """The number of chunks in a stream of the column; ``__arrow_c_array__`` concatenates them."""
        return len(self._chunks)

    def __getitem__(self, index: int) -> str | None:
        """Return one item.

        :raises IndexError: ``index`` is out of range
        """
        if not hasattr(index, "__index__"):
            raise TypeError(f"expected an index, not {type(index).__name__}; slice to_list() instead")
        position = operator.index(index)
        if position < 0:
            position += self._count
        if not 0 <= position < self._count:
            raise IndexError(f"index {index} in a column of {self._count} items")
        for chunk in self._chunks:
            if position < len(chunk):
                item: bytes | None = chunk.item(position)
                return None if item is None else item.decode("utf-8", "surrogateescape")
            position -= len(chunk)
        raise AssertionError("a column is as long as its chunks")

    def __iter__(self) -> Iterator[str | None]:
        for chunk in self._chunks:
            # One by one: a chunk may be the whole column.
            for index in range(len(chunk)):
                item = chunk.item(index)
                yield None if item is None else item.decode("utf-8", "surrogateescape")

    def packed(self, kernels: ModuleType, items: int, nbytes: int) -> Iterator[tuple[object, list[int]]]:
        """Yield batches for ``kernels``, each with the indices of its nulls, which are empty items.

        :param items: the largest number of items in a batch
        :param nbytes: the largest size of a batch in bytes; a single item may be larger
        """
        for chunk in self._chunks:
            start = 0
            while start < len(chunk):
                piece, nulls = chunk.byte_column(start, items, nbytes)
                start += len(piece)
                yield (piece if kernels is self._kernels else kernels.ByteColumn.from_buffers(*piece.buffers())), nulls

    def to_list(self) -> list[str | None]:
        """Return all items as a list."""
        return [item for chunk in self._chunks for item in chunk.to_list()]

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` is a column of the same items, in any chunks."""
        if not isinstance(other, StringColumn):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _one(self) -> Any:
        """Return the column as one chunk, which replaces the others."""
        chunks = self._chunks
        if len(chunks) != 1:
            chunks = (_concatenated(self._kernels, chunks, self._threads),)
            self._chunks = chunks
        return chunks[0]

    def _format(self, chunks: Sequence[Any], requested_schema: Any) -> str:
        requested = _requested(self._kernels, requested_schema)
        largest = max((chunk.size for chunk in chunks), default=0)
        return _granted(_natural_format(chunks), None if requested is None else requested[0], largest)

    def __arrow_c_schema__(self) -> object:
        """Return an ``arrow_schema`` capsule: "ArrowSchema Export"."""
        return self._kernels.export_schema(_natural_format(self._chunks), None)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return ``arrow_schema`` and ``arrow_array`` capsules: "ArrowArray Export"."""
        chunk = self._one()
        form = self._format((chunk,), requested_schema)
        return self._kernels.export_schema(form, None), self._kernels.export_array(form, None, (chunk,))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return an ``arrow_array_stream`` capsule with an array per chunk: "ArrowStream Export"."""
        chunks = self._chunks
        form = self._format(chunks, requested_schema)
        return self._kernels.export_stream(form, None, [(chunk,) for chunk in chunks])


def _unpickled_column(pieces: Iterable[tuple[Any, array[int], list[int]]], threads: int) -> StringColumn:
    """Return the column of its pickled chunks, in the implementation that runs here."""
    kernels = _kernels.active
    chunks = [
        kernels.Chunk.from_column(kernels.ByteColumn.from_buffers(bytes(data), offsets), nulls)
        for data, offsets, nulls in pieces
    ]
    return StringColumn(kernels, chunks, threads)


def as_column_of(column: Any, result: StringColumn) -> Any:
    """Return ``result`` as a column of the library that created ``column``: pyarrow, polars or pandas.

    A polars or pandas series keeps its name, one of pandas its index. For a column of another library, ``result`` is
    returned as it is; that library can read it.
    """
    # A library that was not imported created no column.
    pyarrow, polars, pandas = map(sys.modules.get, ("pyarrow", "polars", "pandas"))
    if polars is not None and isinstance(column, polars.Series):
        return polars.Series(result).alias(column.name)
    if pyarrow is not None and isinstance(column, pyarrow.ChunkedArray):
        return pyarrow.chunked_array(result)
    if pyarrow is not None and isinstance(column, pyarrow.Array):
        return pyarrow.array(result)
    if pandas is not None and isinstance(column, pandas.Series):
        if not hasattr(pandas.Series, "from_arrow"):  # before pandas 3
            return pandas.Series(result.to_list(), index=column.index, name=column.name, dtype=object)
        return pandas.Series.from_arrow(result).set_axis(column.index).rename(column.name)
    return result


class PackedColumn:
    """A block of strings and nulls in one buffer, in the form of the kernels.

    :ivar kernels: the implementation that created ``batch``
    :ivar batch: the items; nulls are empty
    :ivar nulls: the ascending indices of nulls
    """

    __slots__ = ("batch", "kernels", "nulls")

    def __init__(self, kernels: ModuleType, batch: Any, nulls: Sequence[int] = ()) -> None:
        self.kernels = kernels
        self.batch = batch
        self.nulls = list(nulls)

    def __len__(self) -> int:
        return len(self.batch)

    def __getitem__(self, index: int) -> bytes:
        """Return one item; ``index`` must be in range."""
        item: bytes = self.batch[index]
        return item

    def packed(self, kernels: ModuleType, items: int, nbytes: int) -> Iterator[tuple[object, list[int]]]:
        """Yield the whole block, regardless of its size: see :meth:`StringColumn.packed`."""
        if len(self):
            piece = self.batch if kernels is self.kernels else kernels.ByteColumn.from_buffers(*self.batch.buffers())
            yield piece, self.nulls


def packed_columns(
    kernels: ModuleType, column: Any, field: str | None, items: int, nbytes: int
) -> Iterator[PackedColumn]:
    """Yield the items of an Arrow column in blocks; a stream is read lazily.

    :param items: the largest number of items in a block
    :param nbytes: the largest size of a block in bytes; a single item may be larger
    :raises ColumnError: the column is malformed, is not text, or lacks the field
    :raises TypeError: ``column`` has neither ``__arrow_c_array__`` nor ``__arrow_c_stream__``
    """
    # The results of this kernel do not matter: only the items are used.
    kernel = kernels.DirectMap()
    for source in _sources(kernels, column, field):
        for start in range(0, len(source), items):
            _, kept, _ = kernels.map_part(kernel, source, start, min(start + items, len(source)), True, True)
            for piece, nulls in StringColumn(kernels, (kept,)).packed(kernels, items, nbytes):
                yield PackedColumn(kernels, piece, nulls)
