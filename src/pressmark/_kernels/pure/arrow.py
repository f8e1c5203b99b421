"""Columns of strings through the Arrow C data interface, in and out: the readable twin, by ctypes.

Capsules and callbacks are CPython's: this module needs CPython. Imports copy the items and release the foreign array at
once; exports keep their buffers in a table here until the consumer releases them.

CPython cannot survive a callback into Python while an exception is on its way through the thread (ctypes loses the
exception, and the interpreter then crashes for the lack of one), and capsules are often dropped just then. So
capsules have no destructor here: the table holds them, and those that nobody else holds are cleared at the next call.
The callbacks that release an array, which belong to the consumer, cannot be spared that way: an array that a consumer
took from the pure twin must not be a temporary value of an expression that raises. The native twin has no such limit.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from array import array
from collections.abc import Callable, Sequence
from ctypes import c_char_p, c_int, c_int64, c_void_p, pythonapi
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from pressmark._kernels.pure.packed import Kernel, Packed

__all__ = [
    "Chunk",
    "Concatenation",
    "Source",
    "Stream",
    "describe_schema",
    "export_array",
    "export_schema",
    "export_stream",
    "map_part",
    "outstanding_exports",
    "take_array",
]

# (name, then what goes with it): see pressmark.columns.
Problem = tuple[Any, ...]

FLAG_NULLABLE = 2
# Nothing real is longer; as in native/arrow.h.
LONGEST = 1 << 47
# Views hold strings up to this length themselves.
INLINE = 12
NO_MEMORY = 12  # ENOMEM


class ArrowSchema(ctypes.Structure):
    """``struct ArrowSchema``; callbacks and strings as addresses, to be read with care."""


class ArrowArray(ctypes.Structure):
    """``struct ArrowArray``."""


class ArrowArrayStream(ctypes.Structure):
    """``struct ArrowArrayStream``."""


ArrowSchema._fields_ = [
    ("format", c_void_p),
    ("name", c_void_p),
    ("metadata", c_void_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", ctypes.POINTER(c_void_p)),
    ("dictionary", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]
ArrowArray._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", ctypes.POINTER(c_void_p)),
    ("children", ctypes.POINTER(c_void_p)),
    ("dictionary", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]
ArrowArrayStream._fields_ = [
    ("get_schema", c_void_p),
    ("get_next", c_void_p),
    ("get_last_error", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]

# CFUNCTYPE releases the GIL around a call, and takes it for a callback: producers and consumers run threads.
_Release = ctypes.CFUNCTYPE(None, c_void_p)
_GetOne = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
_GetError = ctypes.CFUNCTYPE(c_char_p, c_void_p)
_GiveError = ctypes.CFUNCTYPE(c_void_p, c_void_p)

_is_valid = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, c_char_p)(("PyCapsule_IsValid", pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))


def _release(structure: Any) -> None:
    """Release a foreign structure that was moved here."""
    if structure.release:
        _Release(structure.release)(ctypes.addressof(structure))
        structure.release = None


# --- in -----------------------------------------------------------------------------------------------------


def _text(address: int | None) -> str:
    return ctypes.string_at(address).decode("utf-8", "backslashreplace") if address else ""


def _describe(schema: ArrowSchema) -> tuple[Any, Problem | None]:
    if not schema.release:
        return None, ("schema_released",)
    if not schema.format or schema.n_children < 0 or (schema.n_children > 0 and not schema.children):
        return None, ("schema_broken",)
    children = []
    for number in range(schema.n_children):
        address = schema.children[number]
        if not address:
            return None, ("schema_broken",)
        child = ArrowSchema.from_address(address)
        if not child.release or not child.format:
            return None, ("schema_broken",)
        dictionary, broken = _dictionary_format(child)
        if broken:
            return None, ("schema_broken",)
        children.append((_text(child.name), _text(child.format), dictionary))
    dictionary, broken = _dictionary_format(schema)
    if broken:
        return None, ("schema_broken",)
    return (_text(schema.format), tuple(children), dictionary), None


def _dictionary_format(schema: ArrowSchema) -> tuple[str | None, bool]:
    """Return the format of the dictionary's values, None where there is none, and whether it is broken."""
    if not schema.dictionary:
        return None, False
    dictionary = ArrowSchema.from_address(schema.dictionary)
    return _text(dictionary.format), not dictionary.format


def describe_schema(capsule: Any) -> tuple[Any, Problem | None]:
    """Return ``((format, ((name, format, dictionary's format), …), dictionary's format), problem)``."""
    if not _is_valid(capsule, b"arrow_schema"):
        return None, ("capsule", "arrow_schema")
    return _describe(ArrowSchema.from_address(_pointer(capsule, b"arrow_schema")))


class _Malformed(Exception):
    """Inside this module: the foreign array is not what the specification says."""

    def __init__(self, *problem: Any) -> None:
        super().__init__(*problem)
        self.problem = problem


class Source:
    """The items of a foreign array that was checked; parts of it can be read in several threads at once."""

    def __init__(self, items: list[bytes | None]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)


def take_array(capsule: Any, selection: Sequence[int]) -> tuple[Source | None, Problem | None]:
    """Move the array out of its capsule and return ``(Source, None)``, or ``(None, problem)``.

    ``selection`` says what the schema promised: the struct's number of children or -1, the child's number, the octets
    of an entry (4 and 8 for offsets, 16 for views), and those of a dictionary index (negative if signed, 0 for none).
    """
    if not _is_valid(capsule, b"arrow_array"):
        return None, ("capsule", "arrow_array")
    given = ArrowArray.from_address(_pointer(capsule, b"arrow_array"))
    taken = ArrowArray.from_buffer_copy(given)
    # Moving is copying and forgetting: the capsule's destructor must find nothing to release.
    given.release = None
    return _open(taken, selection)


def _open(taken: ArrowArray, selection: Sequence[int]) -> tuple[Source | None, Problem | None]:
    """Copy the items of an array that is ours, and release it."""
    try:
        if not taken.release:
            return None, ("released", "column")
        return Source(_read_column(taken, *selection)), None
    except _Malformed as malformed:
        return None, malformed.problem
    finally:
        _release(taken)


def _read_column(top: ArrowArray, children: int, child: int, entry: int, index: int) -> list[bytes | None]:
    column, ahead, count = top, 0, top.length
    outer = None
    if children >= 0:
        outer = _check(top, "struct", 1)
        if top.n_children != children or not top.children:
            raise _Malformed("children", "struct", top.n_children if top.children else 0, children)
        address = top.children[child]
        if address:
            column = ArrowArray.from_address(address)
        if not address or not column.release:
            raise _Malformed("child", "struct", child)
        if column.length < top.offset + top.length:
            raise _Malformed("short_child", "column", column.length, top.offset + top.length)
        ahead = top.offset
    if index == 0:
        strings = _Strings(column, "column", entry, ahead, count)
        return strings.read(_both(_bits(outer, ahead, count), strings.validity()))
    bitmap = _check(column, "column", 2)
    dictionary = ArrowArray.from_address(column.dictionary) if column.dictionary else None
    if dictionary is None or not dictionary.release:
        raise _Malformed("dictionary", "column")
    strings = _Strings(dictionary, "dictionary", entry, 0, dictionary.length)
    words = strings.read(strings.validity())
    if count > 0 and not column.buffers[1]:
        raise _Malformed("no_buffer", "column", 1)
    there = _both(_bits(outer, ahead, count), _bits(bitmap, column.offset + ahead, count))
    indices = _indices(column.buffers[1], index, column.offset + ahead, count)
    items: list[bytes | None] = []
    for item, (is_there, number) in enumerate(zip(there, indices, strict=True)):
        if not is_there:
            items.append(None)
            continue
        if not 0 <= number < len(words):
            raise _Malformed("index", "column", item, number)
        items.append(words[number])
    return items


def _check(foreign: ArrowArray, part: str, n_buffers: int, at_least: bool = False) -> int | None:
    """Check one array's own numbers; return the address of its validity bitmap, None where there are no nulls."""
    if not 0 <= foreign.length <= LONGEST or not 0 <= foreign.offset <= LONGEST:
        raise _Malformed("length", part, foreign.length, foreign.offset)
    if not -1 <= foreign.null_count <= foreign.length:
        raise _Malformed("null_count", part, foreign.null_count, foreign.length)
    if foreign.n_buffers < n_buffers if at_least else foreign.n_buffers != n_buffers:
        raise _Malformed("buffers", part, foreign.n_buffers, n_buffers)
    if not foreign.buffers:
        raise _Malformed("no_buffers", part)
    if foreign.null_count > 0 and not foreign.buffers[0]:
        raise _Malformed("no_validity", part, foreign.null_count)
    return None if foreign.null_count == 0 else foreign.buffers[0]


def _bits(bitmap: int | None, first: int, count: int) -> list[bool]:
    """Return ``count`` bits from bit ``first`` on; all of them set where there is no bitmap."""
    if bitmap is None or count == 0:
        return [True] * count
    octets = ctypes.string_at(bitmap + first // 8, (first % 8 + count + 7) // 8)
    return [bool(octets[position >> 3] >> (position & 7) & 1) for position in range(first % 8, first % 8 + count)]


def _both(one: Sequence[bool], other: Sequence[bool]) -> list[bool]:
    return [first and second for first, second in zip(one, other, strict=True)]


_TYPECODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


def _integers(address: int, size: int, first: int, count: int) -> array[int]:
    """Copy ``count`` integers of ``size`` octets, signed where that is negative, aligned or not."""
    typecode = _TYPECODES[abs(size)]
    numbers = array(typecode.lower() if size < 0 else typecode)
    numbers.frombytes(ctypes.string_at(address + first * abs(size), count * abs(size)))
    return numbers


def _indices(address: int | None, size: int, first: int, count: int) -> Sequence[int]:
    if not address:
        return ()
    # An unsigned index beyond int64 is reported as the native twin sees it.
    return _integers(address, -8 if size == 8 else size, first, count)


class _Strings:
    """Strings as they lie in a foreign array: ``count`` items, ``ahead`` behind its offset."""

    def __init__(self, foreign: ArrowArray, part: str, entry: int, ahead: int, count: int) -> None:
        self.bitmap = _check(foreign, part, 3, at_least=entry == 16)
        self.buffers = foreign.buffers
        self.n_buffers = foreign.n_buffers
        self.part = part
        self.entry = entry
        self.first = foreign.offset + ahead
        self.count = count
        if count > 0:
            if not self.buffers[1]:
                raise _Malformed("no_buffer", part, 1)
            if entry == 16:
                if self.n_buffers > 3 and not self.buffers[self.n_buffers - 1]:
                    raise _Malformed("no_buffer", part, self.n_buffers - 1)
            else:
                self.offsets = _integers(self.buffers[1], -entry, self.first, count + 1)
                self._check_offsets()

    def _check_offsets(self) -> None:
        for item, (start, end) in enumerate(pairwise(self.offsets)):
            if not 0 <= start <= end <= LONGEST:
                raise _Malformed("offsets", self.part, item)
        if not self.buffers[2] and self.offsets[-1] > self.offsets[0]:
            raise _Malformed("no_buffer", self.part, 2)

    def validity(self) -> list[bool]:
        return _bits(self.bitmap, self.first, self.count)

    def read(self, there: Sequence[bool]) -> list[bytes | None]:
        """Return the items, None where not ``there``."""
        if self.count == 0:
            return []
        if self.entry == 16:
            return self._read_views(there)
        start = self.offsets[0]
        size = self.offsets[-1] - start
        data = ctypes.string_at(self.buffers[2] + start, size) if size else b""
        return [
            data[low - start : high - start] if is_there else None
            for (low, high), is_there in zip(pairwise(self.offsets), there, strict=True)
        ]

    def _read_views(self, there: Sequence[bool]) -> list[bytes | None]:
        block_count = self.n_buffers - 3
        sizes = _integers(self.buffers[self.n_buffers - 1], -8, 0, block_count) if block_count else array("q")
        views = ctypes.string_at(self.buffers[1] + 16 * self.first, 16 * self.count)
        parts = array("i", views)
        items: list[bytes | None] = []
        for item, is_there in enumerate(there):
            length, _, block, offset = parts[4 * item : 4 * item + 4]
            if not is_there:
                items.append(None)
            elif 0 <= length <= INLINE:
                items.append(views[16 * item + 4 : 16 * item + 4 + length])
            elif (
                length > INLINE
                and 0 <= block < block_count
                and offset >= 0
                and self.buffers[2 + block]
                and offset + length <= sizes[block]
            ):
                items.append(ctypes.string_at(self.buffers[2 + block] + offset, length))
            else:
                raise _Malformed("view", self.part, item)
        return items


class Stream:
    """A foreign stream of arrays, moved out of its capsule."""

    def __init__(self, stream: ArrowArrayStream) -> None:
        self.stream = stream
        self.address = ctypes.addressof(stream)

    def __del__(self) -> None:
        self.close()

    @staticmethod
    def take(capsule: Any) -> tuple[Stream | None, Problem | None]:
        """Return ``(Stream, None)``, or ``(None, problem)``."""
        if not _is_valid(capsule, b"arrow_array_stream"):
            return None, ("capsule", "arrow_array_stream")
        given = ArrowArrayStream.from_address(_pointer(capsule, b"arrow_array_stream"))
        if not given.release:
            return None, ("stream_released",)
        taken = Stream(ArrowArrayStream.from_buffer_copy(given))
        given.release = None
        return taken, None

    def _failure(self, number: int) -> Problem:
        message = None
        if self.stream.get_last_error:
            message = _GetError(self.stream.get_last_error)(self.address)
        return "stream", number, (message or b"").decode("utf-8", "backslashreplace")

    def describe(self) -> tuple[Any, Problem | None]:
        """Return what :func:`describe_schema` does."""
        schema = ArrowSchema()
        status = _GetOne(self.stream.get_schema)(self.address, ctypes.addressof(schema))
        if status != 0:
            return None, self._failure(status)
        try:
            return _describe(schema)
        finally:
            _release(schema)

    def next(self, selection: Sequence[int]) -> tuple[Source | None, Problem | None]:
        """Return ``(Source, None)``, ``(None, None)`` at the end, or ``(None, problem)``."""
        taken = ArrowArray()
        status = _GetOne(self.stream.get_next)(self.address, ctypes.addressof(taken))
        if status != 0:
            return None, self._failure(status)
        if not taken.release:
            return None, None
        return _open(taken, selection)

    def close(self) -> None:
        """Release the stream, once."""
        _release(self.stream)


# --- columns ------------------------------------------------------------------------------------------------


class Chunk:
    """A run of items and nulls that no longer changes."""

    def __init__(self, items: list[bytes | None]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    @property
    def null_count(self) -> int:
        return self.items.count(None)

    @property
    def octets(self) -> int:
        """How many bytes the items have together."""
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
        """Return the item at ``index``, which is within, as ``bytes``, or None."""
        return self.items[index]

    def to_list(self) -> list[str | None]:
        """Return the items as ``str``, octets that are not UTF-8 as surrogates of ``os.fsdecode``, nulls as None."""
        return [None if item is None else item.decode("utf-8", "surrogateescape") for item in self.items]

    def packed(self, start: int, items: int, octets: int) -> tuple[Packed, list[int]]:
        """Return a copy of the items from ``start``, which is within, on, and the indices in it of nulls.

        :param items: how many at most
        :param octets: how many bytes of them at most; a single item may have more
        """
        taken: list[bytes] = []
        nulls: list[int] = []
        size = 0
        for item in self.items[start : start + items]:
            size += len(item or b"")
            if taken and size > octets:
                break
            if item is None:
                nulls.append(len(taken))
            taken.append(item or b"")
        return Packed(taken), nulls


def map_part(
    kernel: Kernel, source: Source, start: int, stop: int, nullify: bool, keep: bool
) -> tuple[Chunk, Chunk | None, tuple[int, int, int, bytes] | None]:
    """Map the items from ``start`` to ``stop`` of ``source``.

    :param nullify: let items with a fault become null
    :param keep: return the items too
    :return: the results; the items or None; and None, or the first fault of an item that is no null as
        ``(its index in the part, code, position, the item)``
    """
    items = source.items[start:stop]
    packed = Packed([b"" if item is None else item for item in items])
    results, faults = kernel(packed)
    made: list[bytes | None] = [
        None if item is None else result for item, result in zip(items, results.items, strict=True)
    ]
    kept = Chunk(items) if keep else None
    for index, code, position in faults:
        item = items[index]
        if item is None:
            continue
        if not nullify:
            return Chunk(made), kept, (index, code, position, item)
        made[index] = None
    return Chunk(made), kept, None


class Concatenation:
    """Several chunks made one; :meth:`copy` may be called for all of them at once, in any order."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = list(chunks)

    def copy(self, number: int) -> None:
        """Copy the items of chunk ``number``."""

    def result(self) -> Chunk:
        """Return the whole, after all of them were copied."""
        return Chunk([item for chunk in self.chunks for item in chunk.items])


# --- out ----------------------------------------------------------------------------------------------------


class _Export(NamedTuple):
    """What a structure that was given out lives on; buffers and strings only need to be kept."""

    held: tuple[Any, ...]


class _ExportedStream:
    def __init__(self, formats: str, names: Sequence[str] | None, batches: Sequence[Sequence[Chunk]]) -> None:
        self.formats = formats
        self.names = names
        self.batches = iter(batches)
        self.message: bytes | None = None


_keys = itertools.count(1)
# By the key that is the structure's private_data: what it lives on, until it is released.
_exports: dict[int, Any] = {}
# Capsules that were given out, with the structures in them; cleared when nobody else holds the capsule.
_capsules: dict[int, tuple[Any, Any]] = {}
_sweeping = threading.Lock()


def outstanding_exports() -> int:
    """Return how many exported structures no consumer has released yet, fields of structs among them."""
    _sweep()
    return len(_exports)


def _held(entry: tuple[Any, Any]) -> int:
    return sys.getrefcount(entry[0])


# What the count is when the table alone holds a capsule.
_HELD_HERE = _held((object(), None))


def _sweep() -> None:
    with _sweeping:
        for key, entry in list(_capsules.items()):
            # The list above holds the entries, not what is in them.
            if _held(entry) <= _HELD_HERE:
                del _capsules[key]
                _release(entry[1])


def _capsule(structure: Any, name: bytes) -> Any:
    _sweep()
    capsule = _new_capsule(ctypes.addressof(structure), name, None)
    _capsules[next(_keys)] = (capsule, structure)
    return capsule


def _give_out(structure: Any, release: Any, held: Any) -> None:
    key = next(_keys)
    _exports[key] = held
    structure.private_data = key
    structure.release = release


def _release_schema(address: int) -> None:
    _release_tree(ArrowSchema.from_address(address))


def _release_array(address: int) -> None:
    _release_tree(ArrowArray.from_address(address))


def _release_tree(structure: Any) -> None:
    for number in range(structure.n_children):
        child = type(structure).from_address(structure.children[number])
        # A field that was moved away has no release any more and lives on by itself.
        if child.release:
            _release_tree(child)
    structure.release = None
    _exports.pop(structure.private_data, None)


def _release_stream(address: int) -> None:
    stream = ArrowArrayStream.from_address(address)
    stream.release = None
    _exports.pop(stream.private_data, None)


_NAMES = {name: ctypes.create_string_buffer(name.encode()) for name in ("", "identifier", "path")}
_FORMATS = {form: ctypes.create_string_buffer(form.encode()) for form in ("U", "u", "Z", "z", "+s")}
# The addresses of our callbacks; filled below, once those are defined.
_CALLBACKS: dict[str, int | None] = {}


def _pointers(structures: Sequence[Any]) -> Any:
    return (c_void_p * len(structures))(*map(ctypes.addressof, structures))


def _fill_schema(schema: ArrowSchema, form: str, name: str, children: Sequence[ArrowSchema] = ()) -> None:
    addresses = _pointers(children)
    schema.format = ctypes.addressof(_FORMATS[form])
    schema.name = ctypes.addressof(_NAMES[name])
    schema.flags = 0 if form == "+s" else FLAG_NULLABLE
    schema.n_children = len(children)
    if children:
        schema.children = addresses
    _give_out(schema, _CALLBACKS["schema"], (children, addresses))


def _put_schema(schema: ArrowSchema, formats: str, names: Sequence[str] | None) -> None:
    if names is None:
        _fill_schema(schema, formats, "")
        return
    fields = [ArrowSchema() for _ in formats]
    for field, form, name in zip(fields, formats, names, strict=True):
        _fill_schema(field, form, name)
    _fill_schema(schema, "+s", "", fields)


def _fill_array(
    foreign: ArrowArray, length: int, null_count: int, buffers: Sequence[Any], children: Sequence[ArrowArray] = ()
) -> None:
    addresses = (c_void_p * len(buffers))(*(None if buffer is None else ctypes.addressof(buffer) for buffer in buffers))
    child_addresses = _pointers(children)
    foreign.length = length
    foreign.null_count = null_count
    foreign.n_buffers = len(buffers)
    foreign.buffers = addresses
    foreign.n_children = len(children)
    if children:
        foreign.children = child_addresses
    _give_out(foreign, _CALLBACKS["array"], (buffers, addresses, children, child_addresses))


def _fill_strings(foreign: ArrowArray, form: str, chunk: Chunk) -> None:
    items = chunk.items
    data = b"".join(item for item in items if item is not None)
    ends = accumulate((0 if item is None else len(item) for item in items), initial=0)
    offsets = array("i" if form in "uz" else "q", ends)
    bitmap = None
    null_count = chunk.null_count
    if null_count:
        octets = bytearray((len(items) + 7) // 8)
        for index, item in enumerate(items):
            if item is not None:
                octets[index >> 3] |= 1 << (index & 7)
        bitmap = (ctypes.c_char * len(octets)).from_buffer(octets)
    stored = (ctypes.c_char * (len(offsets) * offsets.itemsize)).from_buffer(offsets)
    _fill_array(foreign, len(items), null_count, (bitmap, stored, ctypes.create_string_buffer(data, len(data) + 1)))


def _put_array(foreign: ArrowArray, formats: str, names: Sequence[str] | None, chunks: Sequence[Chunk]) -> None:
    if names is None:
        _fill_strings(foreign, formats, chunks[0])
        return
    fields = [ArrowArray() for _ in formats]
    for field, form, chunk in zip(fields, formats, chunks, strict=True):
        _fill_strings(field, form, chunk)
    _fill_array(foreign, len(chunks[0]), 0, (None,), fields)


def _stream_callback(address: int, put: Callable[[_ExportedStream], None]) -> int:
    exported = _exports[ArrowArrayStream.from_address(address).private_data]
    try:
        put(exported)
    except MemoryError:
        exported.message = b"out of memory"
        return NO_MEMORY
    return 0


def _stream_schema(address: int, out: int) -> int:
    ctypes.memset(out, 0, ctypes.sizeof(ArrowSchema))
    return _stream_callback(
        address, lambda exported: _put_schema(ArrowSchema.from_address(out), exported.formats, exported.names)
    )


def _stream_next(address: int, out: int) -> int:
    def put(exported: _ExportedStream) -> None:
        chunks = next(exported.batches, None)
        # The end of a stream is an array without a release.
        if chunks is not None:
            _put_array(ArrowArray.from_address(out), exported.formats, exported.names, chunks)

    ctypes.memset(out, 0, ctypes.sizeof(ArrowArray))
    return _stream_callback(address, put)


_OUT_OF_MEMORY = ctypes.create_string_buffer(b"out of memory")


def _stream_error(address: int) -> int | None:
    exported = _exports[ArrowArrayStream.from_address(address).private_data]
    return ctypes.addressof(_OUT_OF_MEMORY) if exported.message else None


# ctypes frees a callback with its object: these live as long as the module.
_KEPT_CALLBACKS: dict[str, Any] = {
    "schema": _Release(_release_schema),
    "array": _Release(_release_array),
    "stream": _Release(_release_stream),
    "get_schema": _GetOne(_stream_schema),
    "get_next": _GetOne(_stream_next),
    "get_last_error": _GiveError(_stream_error),
}
_CALLBACKS.update({name: ctypes.cast(callback, c_void_p).value for name, callback in _KEPT_CALLBACKS.items()})


def export_schema(formats: str, names: Sequence[str] | None) -> Any:
    """Return a new ``arrow_schema`` capsule.

    :param formats: the format of each field; where ``names`` is None, the one of the column itself
    :param names: of the fields of a struct
    """
    schema = ArrowSchema()
    _put_schema(schema, formats, names)
    return _capsule(schema, b"arrow_schema")


def export_array(formats: str, names: Sequence[str] | None, chunks: Sequence[Chunk]) -> Any:
    """Return a new ``arrow_array`` capsule that shares ``chunks``, one a field."""
    foreign = ArrowArray()
    _put_array(foreign, formats, names, chunks)
    return _capsule(foreign, b"arrow_array")


def export_stream(formats: str, names: Sequence[str] | None, batches: Sequence[Sequence[Chunk]]) -> Any:
    """Return a new ``arrow_array_stream`` capsule that shares ``batches``, each a chunk a field."""
    stream = ArrowArrayStream()
    stream.get_schema = _CALLBACKS["get_schema"]
    stream.get_next = _CALLBACKS["get_next"]
    stream.get_last_error = _CALLBACKS["get_last_error"]
    _give_out(stream, _CALLBACKS["stream"], _ExportedStream(formats, names, batches))
    return _capsule(stream, b"arrow_array_stream")
