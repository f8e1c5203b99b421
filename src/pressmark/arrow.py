"""Arrow columns in and out through the PyCapsule protocol.

Columns come from anything with ``__arrow_c_array__`` or ``__arrow_c_stream__`` (pyarrow, polars, pandas, DuckDB,
nanoarrow, arro3 …) and leave as :class:`StringColumn` or :class:`StringTable`, which all of those read. The native
implementation imports nobody's package; the pure one needs pyarrow or nanoarrow, imported for the first column.

Documents: https://arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html and
CDataInterface/PyCapsuleInterface.html.
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from pressmark.errors import ColumnError

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = [
    "ArrowArrayExportable",
    "ArrowSchemaExportable",
    "ArrowStreamExportable",
    "PackedColumn",
    "StringColumn",
    "StringTable",
    "map_column",
    "packed_columns",
]

# Items that are worth a thread's while: some milliseconds of work.
PART_ITEMS = 1 << 16
# Parts for each thread of a long chunk, so that a thread that got the quick ones finds more to do.
PARTS_PER_THREAD = 4
# Parts in flight for each thread: one being mapped, one waiting.
WINDOW = 2
# Bytes from which a concatenation is copied by several threads.
MANY_OCTETS = 1 << 24
NARROW_OCTETS = (1 << 31) - 1


# --- the protocols, as the Arrow document words them ------------------------------------------------------------


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
    """An object that gives a stream of Arrow arrays: "ArrowStream Export"."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


# --- what a column may be ---------------------------------------------------------------------------------------

# Format string -> octets of an entry of its second buffer: offsets of 32 or 64 bits, views.
_STRINGS = {"u": 4, "U": 8, "vu": 16, "z": 4, "Z": 8, "vz": 16}
# Format string of a dictionary's indices -> their octets, negative where signed.
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
_BEGINNINGS = {
    "d:": "decimal",
    "w:": "fixed-size binary",
    "ts": "timestamp",
    "tD": "duration",
    "+w:": "fixed-size list",
    "+ud:": "dense union",
    "+us:": "sparse union",
}


def _words(form: str, dictionary: str | None = None) -> str:
    """Return what a format string means, and itself."""
    if dictionary is not None:
        return f"dictionary of {_words(dictionary)}"
    if form in _WORDS:
        return f"{_WORDS[form]}, format {form!r}"
    for beginning, words in _BEGINNINGS.items():
        if form.startswith(beginning):
            return f"{words}, format {form!r}"
    return f"unknown, format {form!r}"


class _Selection(NamedTuple):
    """Where in an array the strings are: see ``Array.take`` of the kernels."""

    children: int
    child: int
    entry_octets: int
    index_octets: int


# What describe_schema of the kernels returns.
_Description = tuple[str, tuple[tuple[str, str, str | None], ...], str | None]


def _select(description: _Description, field: str | None) -> _Selection:
    form, fields, dictionary = description
    if form != "+s" or dictionary is not None:
        if field is not None:
            raise ColumnError(f"field={field!r}: not a struct with fields, but one column ({_words(form, dictionary)})")
        return _Selection(-1, 0, *_strings("the column", form, dictionary))
    names = [name for name, _, _ in fields]
    listed = ", ".join(map(repr, names)) or "none"
    if field is None:
        if len(names) != 1:
            raise ColumnError(f"a struct of {len(names)} fields: say which one (field=…) of {listed}")
        number = 0
    else:
        found = names.count(field)
        if found == 0:
            raise ColumnError(f"no field {field!r}: there are {listed}")
        if found > 1:
            raise ColumnError(f"{found} fields are called {field!r}: there are {listed}")
        number = names.index(field)
    name, form, dictionary = fields[number]
    return _Selection(len(fields), number, *_strings(f"the field {name!r}", form, dictionary))


def _strings(what: str, form: str, dictionary: str | None) -> tuple[int, int]:
    """Return the octets of an entry and of an index, or refuse what is no text."""
    values = form if dictionary is None else dictionary
    if values in _STRINGS and (dictionary is None or form in _INDICES):
        return _STRINGS[values], 0 if dictionary is None else _INDICES[form]
    advice = "; convert it to text first" if values not in _STRINGS else ""
    raise ColumnError(f"{what} holds no text: {_words(form, dictionary)}{advice}")


# --- what can be wrong with one ---------------------------------------------------------------------------------

_OF_SCHEMA = {
    "schema_released": "its schema was released already",
    "schema_broken": "its schema is broken: a format or a child is missing",
    "stream_released": "its stream was released already: a stream can be read once",
}
_OF_ARRAY = {
    "released": "it was released already",
    "length": "impossible length {} or offset {}",
    "null_count": "null_count {} of {} items",
    "buffers": "{} buffers where {} are needed",
    "no_buffers": "its list of buffers is NULL",
    "no_validity": "null_count is {}, but there is no validity bitmap",
    "children": "{} children where its schema has {}",
    "child": "child {} is missing or was released",
    "short_child": "{} items where the struct needs {}",
    "dictionary": "its dictionary is missing or was released",
    "no_buffer": "buffer {} is NULL",
    "offsets": "the offsets of item {} fall or are out of range",
    "view": "the view of item {} points outside the buffers",
    "index": "item {} has the index {}, which is not in the dictionary",
}
_PARTS = {"column": "", "struct": "the struct: ", "dictionary": "the dictionary: "}


def _malformed(problem: Sequence[Any], chunk: int | None = None) -> ColumnError:
    """Return the error for what a kernel reported."""
    code, *details = problem
    if code == "capsule":
        return ColumnError(f"expected a capsule {details[0]!r}, as the Arrow PyCapsule protocol says")
    if code == "no_library":
        return ColumnError(
            "Arrow columns need pyarrow (17 or newer) or nanoarrow where Pressmark was built without a C compiler; "
            "pip install 'pressmark[arrow]' or pip install nanoarrow"
        )
    place = "" if chunk is None else f"chunk {chunk}: "
    if code in ("stream", "malformed"):
        # A producer's message may have many lines; the first thing it says is what matters, but keep it all.
        said = " ".join(details[0].split()) or "it gives no message"
        what = "the stream failed: " if code == "stream" else f"malformed Arrow column: {place}"
        return ColumnError(what + said)
    if code in _OF_SCHEMA:
        return ColumnError(f"malformed Arrow column: {_OF_SCHEMA[code]}")
    part, *numbers = details
    return ColumnError(f"malformed Arrow column: {place}{_PARTS[part]}{_OF_ARRAY[code].format(*numbers)}")


# --- in ---------------------------------------------------------------------------------------------------------


def _sources(kernels: ModuleType, column: Any, field: str | None) -> Iterator[Any]:
    """Yield the chunks of ``column``, each checked."""
    if field is not None and not isinstance(field, str):
        raise TypeError(f"field: expected the name of a field, not {type(field).__name__}")
    array_method = getattr(column, "__arrow_c_array__", None)
    stream_method = getattr(column, "__arrow_c_stream__", None)
    if array_method is None and stream_method is None:
        advice = "; call .collect() first" if callable(getattr(column, "collect", None)) else ""
        raise TypeError(
            f"expected an Arrow column, an object with __arrow_c_array__ or __arrow_c_stream__, "
            f"not {type(column).__name__}{advice}"
        )
    if array_method is not None:
        try:
            pair = array_method()
        except Exception:
            # Chunked arrays of nanoarrow and others have both, and refuse the first.
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
    """Some items of a source, of which the first is the column's item number ``first``."""

    source: Any
    start: int
    stop: int
    first: int


def _parts(sources: Iterable[Any], threads: int) -> Iterator[list[_Piece]]:
    """Yield work for one thread at a time: a part of a long chunk, or several short chunks."""
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
    field: str | None,
    threads: int,
    keep: bool = False,
) -> tuple[list[Any], list[Any]]:
    """Pass every item of ``column`` through ``kernel``: see ``Layout.map_arrow``.

    :param error_of: words a fault, from the item, its index in the column, the fault's code and position
    :param keep: return the items too
    :return: the chunks of the results, and of the items
    """
    if on_error not in ("raise", "none"):
        raise ValueError(f"on_error={on_error!r}: expected 'raise' or 'none'")
    results: list[Any] = []
    kept: list[Any] = []

    def work(pieces: list[_Piece]) -> list[Any]:
        outcomes = []
        for source, start, stop, _ in pieces:
            outcomes.append(kernels.map_part(kernel, source, start, stop, on_error == "none", keep))
            if outcomes[-1][2] is not None:
                break
        return outcomes

    def accept(pieces: list[_Piece], outcomes: list[Any]) -> None:
        for piece, (result, items, fault) in zip(pieces, outcomes, strict=False):
            if fault is not None:
                index, code, position, item = fault
                raise error_of(item.decode("utf-8", "surrogateescape"), piece.first + index, code, position)
            results.append(result)
            kept.append(items)

    pending: deque[tuple[list[_Piece], Future[list[Any]]]] = deque()
    executor = None
    sources = _sources(kernels, column, field)
    try:
        for pieces in _in_order(_parts(sources, threads), lambda: _drain(pending, accept)):
            short = sum(piece.stop - piece.start for piece in pieces) < PART_ITEMS
            if threads == 1 or (short and executor is None):
                accept(pieces, work(pieces))
                continue
            if executor is None:
                from concurrent.futures import ThreadPoolExecutor

                executor = ThreadPoolExecutor(threads)
            pending.append((pieces, executor.submit(work, pieces)))
            if len(pending) >= WINDOW * threads:
                done, future = pending.popleft()
                accept(done, future.result())
        _drain(pending, accept)
    finally:
        if executor is not None:
            executor.shutdown(wait=True, cancel_futures=True)
        sources.close()  # type: ignore[attr-defined]  # a generator: it releases its stream
    return results, kept


def _in_order(parts: Iterator[list[_Piece]], drain: Callable[[], None]) -> Iterator[list[_Piece]]:
    """Yield ``parts``; where reading them fails, let the errors of items before that come first."""
    while True:
        try:
            part = next(parts, None)
        except Exception:
            drain()
            raise
        if part is None:
            return
        yield part


def _drain(pending: deque[Any], accept: Callable[[list[_Piece], list[Any]], None]) -> None:
    while pending:
        pieces, future = pending.popleft()
        accept(pieces, future.result())


# --- out --------------------------------------------------------------------------------------------------------


def _concatenated(kernels: ModuleType, chunks: Sequence[Any], threads: int) -> Any:
    """Return one chunk of all ``chunks``."""
    if len(chunks) == 1:
        return chunks[0]
    whole = kernels.Concatenation(chunks)
    if threads > 1 and sum(chunk.size for chunk in chunks) >= MANY_OCTETS:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as executor:
            for _ in executor.map(whole.copy, range(len(chunks))):
                pass
    else:
        for number in range(len(chunks)):
            whole.copy(number)
    return whole.result()


def _natural_format(chunks: Sequence[Any]) -> str:
    """Return ``U`` where all items are UTF-8, otherwise ``Z``."""
    return "U" if all(chunk.is_utf8() for chunk in chunks) else "Z"


def _granted(natural: str, wanted: str | None, largest: int) -> str:
    """Return the format that a consumer gets who asked for ``wanted``, for arrays of ``largest`` octets at most."""
    if wanted in ("u", "z") and largest > NARROW_OCTETS:
        return natural
    if wanted in ("z", "Z") or (wanted == "u" and natural == "U"):
        return wanted
    return natural


def _wanted(kernels: ModuleType, requested_schema: Any) -> _Description | None:
    """Return what a consumer asks for, None if that cannot be read: a request is only a wish."""
    if requested_schema is None:
        return None
    description, problem = kernels.describe_schema(requested_schema)
    return None if problem is not None else description


class StringColumn:
    """A column of strings and nulls, in one or more chunks, that every Arrow consumer can read.

    ``Layout.map_arrow`` and ``unmap_arrow`` return it. It is exported as ``large_utf8``; a column with an item that is
    not UTF-8 (identifiers may be any octets) cannot be, and is exported as ``large_binary``. Consumers may ask for
    ``utf8``, ``binary`` or ``large_binary``, and get it where the items allow it. Python sees ``str``, octets that are
    not UTF-8 as the surrogates of :func:`os.fsdecode`, and None for null.

    Every export is new and shares the column's memory, which lives until the last of them is released.
    """

    __slots__ = ("_chunks", "_count", "_kernels", "_null_count", "_threads")

    def __init__(self, kernels: ModuleType, chunks: Iterable[Any], threads: int = 1) -> None:
        """Take chunks of ``kernels``; columns are made by layouts.

        :param threads: how many may copy when the chunks are concatenated
        """
        self._kernels = kernels
        self._chunks = tuple(chunks)
        self._threads = threads
        self._count: int = sum(map(len, self._chunks))
        self._null_count: int = sum(chunk.null_count for chunk in self._chunks)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<StringColumn of {self._count} items, {self._null_count} null, in {len(self._chunks)} chunks>"

    @property
    def null_count(self) -> int:
        """How many items are null."""
        return self._null_count

    @property
    def chunk_count(self) -> int:
        """How many chunks a stream of the column has; ``__arrow_c_array__`` makes one of them."""
        return len(self._chunks)

    def __getitem__(self, index: int) -> str | None:
        """Return one item.

        :raises IndexError: there is none at ``index``
        """
        if not hasattr(index, "__index__"):
            raise TypeError(f"expected an index, not {type(index).__name__}; slice to_list() instead")
        place = operator.index(index)
        if place < 0:
            place += self._count
        if not 0 <= place < self._count:
            raise IndexError(f"index {index} in a column of {self._count} items")
        for chunk in self._chunks:
            if place < len(chunk):
                item: bytes | None = chunk.item(place)
                return None if item is None else item.decode("utf-8", "surrogateescape")
            place -= len(chunk)
        raise AssertionError("a column is as long as its chunks")

    def __iter__(self) -> Iterator[str | None]:
        for chunk in self._chunks:
            # Not the whole chunk at once: it may be the whole column.
            for index in range(len(chunk)):
                item = chunk.item(index)
                yield None if item is None else item.decode("utf-8", "surrogateescape")

    def packed(self, kernels: ModuleType, items: int, octets: int) -> Iterator[tuple[Any, list[int]]]:
        """Yield the items in pieces that ``kernels`` take, with the indices in each of its nulls, which are empty.

        :param items: how many a piece has at most
        :param octets: how many bytes a piece has at most; a single item may have more
        """
        for chunk in self._chunks:
            start = 0
            while start < len(chunk):
                piece, nulls = chunk.byte_column(start, items, octets)
                start += len(piece)
                yield (piece if kernels is self._kernels else kernels.ByteColumn.from_buffers(*piece.buffers())), nulls

    def to_list(self) -> list[str | None]:
        """Return all items as a list."""
        return [item for chunk in self._chunks for item in chunk.to_list()]

    def __eq__(self, other: object) -> bool:
        """Whether ``other`` is a column of the same items, however each is cut into chunks."""
        if not isinstance(other, StringColumn):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _one(self) -> Any:
        """Concatenate, once; the single chunk replaces the others, whose memory is given back."""
        chunks = self._chunks
        if len(chunks) != 1:
            chunks = (_concatenated(self._kernels, chunks, self._threads),)
            self._chunks = chunks
        return chunks[0]

    def _format(self, chunks: Sequence[Any], requested_schema: Any) -> str:
        wanted = _wanted(self._kernels, requested_schema)
        largest = max((chunk.size for chunk in chunks), default=0)
        return _granted(_natural_format(chunks), None if wanted is None else wanted[0], largest)

    def __arrow_c_schema__(self) -> object:
        """Return an ``arrow_schema`` capsule: "ArrowSchema Export"."""
        return self._kernels.export_schema(_natural_format(self._chunks), None)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return ``arrow_schema`` and ``arrow_array`` capsules: "ArrowArray Export"."""
        chunk = self._one()
        form = self._format((chunk,), requested_schema)
        return self._kernels.export_schema(form, None), self._kernels.export_array(form, None, (chunk,))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return an ``arrow_array_stream`` capsule, an array a chunk: "ArrowStream Export"."""
        chunks = self._chunks
        form = self._format(chunks, requested_schema)
        return self._kernels.export_stream(form, None, [(chunk,) for chunk in chunks])


class PackedColumn:
    """A block of strings and nulls in one buffer, as the kernels take it: for many that are passed on and forgotten.

    :ivar kernels: whose block it is
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
        """Return the octets of one item, which is within."""
        item: bytes = self.batch[index]
        return item

    def packed(self, kernels: ModuleType, items: int, octets: int) -> Iterator[tuple[Any, list[int]]]:
        """Yield it as a whole, whatever its size: see :meth:`StringColumn.packed`."""
        if len(self):
            piece = self.batch if kernels is self.kernels else kernels.ByteColumn.from_buffers(*self.batch.buffers())
            yield piece, self.nulls


def packed_columns(
    kernels: ModuleType, column: Any, field: str | None, items: int, octets: int
) -> Iterator[PackedColumn]:
    """Yield the items of an Arrow column in blocks; a stream is read as they are asked for.

    :param items: how many a block has at most
    :param octets: how many bytes a block has at most; a single item may have more
    :raises ColumnError: the column is malformed, holds no text, or has not the field
    :raises TypeError: ``column`` offers neither protocol
    """
    # What its results are does not matter: the items are kept.
    kernel = kernels.DirectMap()
    for source in _sources(kernels, column, field):
        for start in range(0, len(source), items):
            _, kept, _ = kernels.map_part(kernel, source, start, min(start + items, len(source)), True, True)
            for piece, nulls in StringColumn(kernels, (kept,)).packed(kernels, items, octets):
                yield PackedColumn(kernels, piece, nulls)


class StringTable:
    """The columns ``identifier`` and ``path``, for consumers that want a struct.

    ``Layout.map_table`` and ``unmap_table`` return it; ``pyarrow.table``, ``polars.DataFrame``,
    ``pandas.DataFrame.from_arrow`` and DuckDB (``from table``) read it. Each column is exported as
    :class:`StringColumn` is.
    """

    __slots__ = ("_identifiers", "_kernels", "_paths", "_threads")

    #: The names of the columns, in their order.
    names = ("identifier", "path")

    def __init__(self, kernels: ModuleType, identifiers: Iterable[Any], paths: Iterable[Any], threads: int = 1) -> None:
        """Take as many chunks, of the same lengths, for either column; tables are made by layouts."""
        self._kernels = kernels
        self._identifiers = tuple(identifiers)
        self._paths = tuple(paths)
        self._threads = threads

    def __len__(self) -> int:
        return sum(map(len, self._paths))

    def __repr__(self) -> str:
        return f"<StringTable of {len(self)} rows, in {self.chunk_count} chunks>"

    @property
    def identifier(self) -> StringColumn:
        """The identifiers."""
        return StringColumn(self._kernels, self._identifiers, self._threads)

    @property
    def path(self) -> StringColumn:
        """The paths."""
        return StringColumn(self._kernels, self._paths, self._threads)

    @property
    def chunk_count(self) -> int:
        """How many chunks a stream of the table has."""
        return len(self._paths)

    def __iter__(self) -> Iterator[tuple[str | None, str | None]]:
        return zip(self.identifier, self.path, strict=True)

    def _formats(self, columns: Sequence[Sequence[Any]], requested_schema: Any) -> str:
        wanted = _wanted(self._kernels, requested_schema)
        formats = [None] * len(columns) if wanted is None else [form for _, form, _ in wanted[1]]
        if len(formats) != len(columns):
            formats = [None] * len(columns)
        return "".join(
            _granted(_natural_format(column), form, max((chunk.size for chunk in column), default=0))
            for column, form in zip(columns, formats, strict=True)
        )

    def __arrow_c_schema__(self) -> object:
        """Return an ``arrow_schema`` capsule: "ArrowSchema Export"."""
        formats = self._formats((self._identifiers, self._paths), None)
        return self._kernels.export_schema(formats, self.names)

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Return ``arrow_schema`` and ``arrow_array`` capsules of a struct: "ArrowArray Export"."""
        if len(self._paths) != 1:
            self._identifiers = (_concatenated(self._kernels, self._identifiers, self._threads),)
            self._paths = (_concatenated(self._kernels, self._paths, self._threads),)
        identifiers, paths = self._identifiers, self._paths
        formats = self._formats((identifiers, paths), requested_schema)
        return (
            self._kernels.export_schema(formats, self.names),
            self._kernels.export_array(formats, self.names, (identifiers[0], paths[0])),
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return an ``arrow_array_stream`` capsule of structs: "ArrowStream Export"."""
        columns = (self._identifiers, self._paths)
        formats = self._formats(columns, requested_schema)
        return self._kernels.export_stream(formats, self.names, list(zip(*columns, strict=True)))
