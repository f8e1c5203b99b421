"""A producer and a consumer of the Arrow C data interface in ctypes: a third implementation of the document.

It does not use the structures of the library. Producers export any data that a test requests, including malformed data.
When they are released, they overwrite their buffers, so that a later read is detected.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Sequence
from ctypes import POINTER, c_char_p, c_int, c_int64, c_void_p, py_object, pythonapi
from dataclasses import dataclass, field, replace
from typing import Any

from pressmark import _kernels
from pressmark.arrow import packed_columns


class Opaque:
    """A column of a library, exported by an object of no library: its paths are a ``StringColumn``."""

    def __init__(self, column: Any) -> None:
        for method in ("__arrow_c_array__", "__arrow_c_stream__"):
            if hasattr(column, method):
                setattr(self, method, getattr(column, method))


def items_of(column: Any, field: str | None) -> list[bytes | None]:
    """Return the items of a column of a table, as comparisons read it."""
    found: list[bytes | None] = []
    for block in packed_columns(_kernels.active, column, field, 3, 1 << 20):
        found += [None if index in block.nulls else block[index] for index in range(len(block))]
    return found


class CSchema(ctypes.Structure):
    pass


class CArray(ctypes.Structure):
    pass


class CStream(ctypes.Structure):
    pass


RELEASE = ctypes.CFUNCTYPE(None, c_void_p)
GET = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
LAST_ERROR = ctypes.CFUNCTYPE(c_void_p, c_void_p)

CSchema._fields_ = [
    ("format", c_char_p),
    ("name", c_char_p),
    ("metadata", c_char_p),
    ("flags", c_int64),
    ("n_children", c_int64),
    ("children", POINTER(POINTER(CSchema))),
    ("dictionary", POINTER(CSchema)),
    ("release", c_void_p),
    ("private_data", c_void_p),
]
CArray._fields_ = [
    ("length", c_int64),
    ("null_count", c_int64),
    ("offset", c_int64),
    ("n_buffers", c_int64),
    ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)),
    ("children", POINTER(POINTER(CArray))),
    ("dictionary", POINTER(CArray)),
    ("release", c_void_p),
    ("private_data", c_void_p),
]
CStream._fields_ = [
    ("get_schema", c_void_p),
    ("get_next", c_void_p),
    ("get_last_error", c_void_p),
    ("release", c_void_p),
    ("private_data", c_void_p),
]

new_capsule = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))


def address_of(callback: Any) -> int | None:
    return ctypes.cast(callback, c_void_p).value


# --- producing ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Data:
    """One array with its schema, buffers as bytes (None: NULL)."""

    format: str | None
    length: int
    buffers: tuple[bytes | None, ...] | None
    null_count: int = 0
    offset: int = 0
    name: str = ""
    children: tuple[Data, ...] = ()
    dictionary: Data | None = None
    released: bool = False  # exported without a release
    schema_released: bool = False
    n_buffers: int | None = None  # the stated number; None: the correct one
    n_children: int | None = None  # the number that the array states
    n_schema_children: int | None = None  # the number that the schema states
    null_children: bool = False  # the array's list of children is NULL


class Arrays:
    """Exported structures, and how often they were released."""

    made: list[Arrays] = []  # noqa: RUF012  # all of this test

    def __init__(self, *arrays: Data) -> None:
        self.arrays = arrays
        self.given = 0
        self.released = 0
        self._held: list[Any] = []
        self._buffers: list[Any] = []
        self._release_schema = RELEASE(self._on_schema)
        self._release_offered = RELEASE(self._on_offered)
        self._release_array = RELEASE(self._on_array)
        Arrays.made.append(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.arrays}: given {self.given}, released {self.released}>"

    def _on_schema(self, address: int) -> None:
        CSchema.from_address(address).release = None
        self.released += 1

    def _on_offered(self, address: int) -> None:
        CSchema.from_address(address).release = None

    def _on_array(self, address: int) -> None:
        CArray.from_address(address).release = None
        self.released += 1
        for buffer in self._buffers:
            ctypes.memset(buffer, 0xEE, ctypes.sizeof(buffer))

    def _fill_schema(self, schema: CSchema, data: Data, top: bool = True) -> None:
        # ctypes would keep these alive only as long as its view of the structure.
        form, name = None if data.format is None else data.format.encode(), data.name.encode()
        self._held += [form, name]
        schema.format, schema.name = form, name
        schema.n_children = len(data.children) if data.n_schema_children is None else data.n_schema_children
        children = [CSchema() for _ in data.children]
        for child, child_data in zip(children, data.children, strict=True):
            self._fill_schema(child, child_data, top=False)
        pointers = (POINTER(CSchema) * len(children))(*map(ctypes.pointer, children))
        if children:
            schema.children = pointers
        if data.dictionary is not None:
            dictionary = CSchema()
            self._fill_schema(dictionary, data.dictionary, top=False)
            schema.dictionary = ctypes.pointer(dictionary)
            self._held.append(dictionary)
        self._held += [children, pointers]
        if not data.schema_released:
            schema.release = address_of(self._release_schema)
            self.given += top

    def _fill_array(self, array: CArray, data: Data, top: bool = True) -> None:
        array.length, array.null_count, array.offset = data.length, data.null_count, data.offset
        if data.buffers is not None:
            # Of exact length, for the sanitizers; an empty buffer has an arbitrary address.
            buffers = [
                None if packed is None else (ctypes.c_char * len(packed)).from_buffer(bytearray(packed))
                for packed in data.buffers
            ]
            pointers = (c_void_p * len(buffers))(
                *(None if buffer is None else ctypes.addressof(buffer) for buffer in buffers)
            )
            array.buffers = pointers
            self._buffers += [buffer for buffer in buffers if buffer is not None]
            self._held += [buffers, pointers]
        array.n_buffers = len(data.buffers or ()) if data.n_buffers is None else data.n_buffers
        array.n_children = len(data.children) if data.n_children is None else data.n_children
        children = [CArray() for _ in data.children]
        for child, child_data in zip(children, data.children, strict=True):
            self._fill_array(child, child_data, top=False)
        child_pointers = (POINTER(CArray) * len(children))(*map(ctypes.pointer, children))
        if children and not data.null_children:
            array.children = child_pointers
        if data.dictionary is not None and data.dictionary.format is not None:
            dictionary = CArray()
            self._fill_array(dictionary, data.dictionary, top=False)
            array.dictionary = ctypes.pointer(dictionary)
            self._held.append(dictionary)
        self._held += [children, child_pointers]
        if not data.released:
            array.release = address_of(self._release_array)
            self.given += top

    def _schema_capsule(self, data: Data) -> object:
        schema = CSchema()
        self._held.append(schema)
        self._fill_schema(schema, data)
        # Without a destructor: some consumers read schemas in place, others move them away; neither is counted.
        if schema.release:
            self.given -= 1
            schema.release = address_of(self._release_offered)
        return new_capsule(ctypes.addressof(schema), b"arrow_schema", None)


class Array(Arrays):
    """An object with ``__arrow_c_array__``."""

    def keep(self) -> None:
        """Assert that the array stayed in its capsule, which would release it if it had a destructor."""
        assert self.given == self.released + 1
        self.given = self.released

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        (data,) = self.arrays
        array = CArray()
        self._held.append(array)
        self._fill_array(array, data)
        return self._schema_capsule(data), new_capsule(ctypes.addressof(array), b"arrow_array", None)


class Stream(Arrays):
    """An object with ``__arrow_c_stream__``: a schema, then the arrays, and possibly a failure at the end."""

    def __init__(
        self,
        schema: Data,
        *arrays: Data,
        failure: tuple[int, bytes | None] | None = None,
        schema_failure: tuple[int, bytes | None] | None = None,
        released: bool = False,
    ) -> None:
        super().__init__(schema, *arrays)
        self.schema = schema
        self.rest = list(arrays)
        self.failure = failure
        self.schema_failure = schema_failure
        self.without_release = released
        self._message: Any = None
        self._callbacks = (
            GET(self._get_schema),
            GET(self._get_next),
            LAST_ERROR(self._last_error),
            RELEASE(self._on_stream),
        )

    def _fail(self, failure: tuple[int, bytes | None]) -> int:
        number, message = failure
        self._message = None if message is None else ctypes.create_string_buffer(message)
        return number

    def _get_schema(self, _stream: int, out: int) -> int:
        if self.schema_failure is not None:
            return self._fail(self.schema_failure)
        ctypes.memset(out, 0, ctypes.sizeof(CSchema))
        self._fill_schema(CSchema.from_address(out), self.schema)
        return 0

    def _get_next(self, _stream: int, out: int) -> int:
        if not self.rest and self.failure is not None:
            # Data that a careless producer leaves in the structure is not an array, although pyarrow accepts it.
            ctypes.memset(out, 0xEE if _kernels.active.NAME == "native" else 0, ctypes.sizeof(CArray))
            return self._fail(self.failure)
        ctypes.memset(out, 0, ctypes.sizeof(CArray))
        if self.rest:
            self._fill_array(CArray.from_address(out), self.rest.pop(0))
        return 0

    def _last_error(self, _stream: int) -> int | None:
        return None if self._message is None else ctypes.addressof(self._message)

    def _on_array(self, address: int) -> None:
        # Other arrays of this stream may still be read.
        CArray.from_address(address).release = None
        self.released += 1

    def _on_stream(self, address: int) -> None:
        CStream.from_address(address).release = None
        self.released += 1

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        stream = CStream(*map(address_of, self._callbacks))
        self._held.append(stream)
        if self.without_release:
            stream.release = None
        else:
            self.given += 1
        return new_capsule(ctypes.addressof(stream), b"arrow_array_stream", None)


STRING_FORMATS = ("u", "U", "vu", "z", "Z", "vz")
INDEX_FORMATS = ("c", "C", "s", "S", "i", "I", "l", "L")
_STRUCT = {"c": "b", "C": "B", "s": "h", "S": "H", "i": "i", "I": "I", "l": "q", "L": "Q"}


def bitmap(bits: Iterable[bool]) -> bytes:
    """Pack bits, lowest first; unused bits of the last byte are 1, which must not matter."""
    listed = list(bits)
    packed = bytearray(b"\xff" * ((len(listed) + 7) // 8))
    for position, bit in enumerate(listed):
        if not bit:
            packed[position >> 3] &= ~(1 << (position & 7))
    return bytes(packed)


def strings(
    items: Sequence[bytes | None],
    form: str = "u",
    *,
    ahead: int = 0,
    behind: int = 0,
    validity: bool | None = None,
    null_count: int | None = None,
    under_null: bytes = b"",
    name: str = "",
) -> Data:
    """Lay out ``items`` as ``form``.

    :param ahead: items before the offset of the array
    :param behind: items after its end
    :param validity: whether the array has a bitmap; None: if it has nulls
    :param null_count: the stated number of nulls; None: the correct one
    :param under_null: the data under the nulls
    """
    every = [b"\xffahead of the offset"] * ahead + list(items) + [b"\xffbehind the end"] * behind
    present = [item is not None for item in every]
    stored = [under_null if item is None else item for item in every]
    buffers: tuple[bytes | None, ...]
    if form[0] == "v":
        views, blocks = b"", [b"", b""]
        for number, item in enumerate(stored):
            if len(item) <= 12:
                views += struct.pack("=i12s", len(item), item)
            else:
                block = number % 2
                views += struct.pack("=i4sii", len(item), item[:4], block, len(blocks[block]))
                blocks[block] += item
        sizes = struct.pack("=2q", *map(len, blocks))
        buffers = (views, *blocks, sizes)
    else:
        # The first offset need not be 0.
        data = b"\xffbefore the first item"
        ends = [len(data)]
        for item in stored:
            data += item
            ends.append(len(data))
        buffers = (struct.pack(f"={len(ends)}{'i' if form in 'uz' else 'q'}", *ends), data)
    nulls = sum(item is None for item in items)
    with_bitmap = nulls > 0 if validity is None else validity
    return Data(
        form,
        len(items),
        (bitmap(present) if with_bitmap else None, *buffers),
        nulls if null_count is None else null_count,
        ahead,
        name,
    )


def dictionary(
    indices: Sequence[int | None], words: Data, form: str = "i", *, ahead: int = 0, under_null: int = 0, name: str = ""
) -> Data:
    """Lay out indices of ``form`` into ``words``."""
    every = [0] * ahead + [under_null if index is None else index for index in indices]
    present = [True] * ahead + [index is not None for index in indices]
    return Data(
        form,
        len(indices),
        (bitmap(present), struct.pack(f"={len(every)}{_STRUCT[form]}", *every)),
        -1,
        ahead,
        name,
        dictionary=words,
    )


def table(
    *fields: Data, length: int, ahead: int = 0, present: Sequence[bool] | None = None, null_count: int | None = None
) -> Data:
    """Lay out a struct, with nulls of its own where not ``present``."""
    bits = None if present is None else bitmap([True] * ahead + list(present))
    nulls = 0 if present is None else present.count(False)
    return Data("+s", length, (bits,), nulls if null_count is None else null_count, ahead, children=fields)


def changed(data: Data, **changes: Any) -> Data:
    return replace(data, **changes)


# --- consuming ------------------------------------------------------------------------------------------------


@dataclass
class Read:
    """The content of an exported structure."""

    format: str
    items: list[Any]
    name: str = ""
    null_count: int = 0
    fields: list[Read] = field(default_factory=list)


# The results belong to the capsule, and are valid as long as it exists.
def schema_in(capsule: object) -> CSchema:
    return CSchema.from_address(capsule_pointer(capsule, b"arrow_schema"))


def array_in(capsule: object) -> CArray:
    return CArray.from_address(capsule_pointer(capsule, b"arrow_array"))


def stream_in(capsule: object) -> CStream:
    return CStream.from_address(capsule_pointer(capsule, b"arrow_array_stream"))


def release(structure: Any) -> None:
    assert structure.release
    RELEASE(structure.release)(ctypes.addressof(structure))
    assert not structure.release


def moved(structure: Any) -> Any:
    """Move a structure away, as consumers do."""
    taken = type(structure).from_buffer_copy(structure)
    structure.release = None
    return taken


def take_schema(capsule: object) -> CSchema:
    return moved(schema_in(capsule))


def take_array(capsule: object) -> CArray:
    return moved(array_in(capsule))


def take_stream(capsule: object) -> CStream:
    return moved(stream_in(capsule))


def read(schema: CSchema, array: CArray) -> Read:
    """Read an array of strings, or a struct of them."""
    assert schema.format is not None
    form = schema.format.decode()
    assert schema.release
    assert array.release
    assert not schema.metadata
    assert not array.dictionary
    assert array.offset == 0
    found = Read(form, [], schema.name.decode(), array.null_count)
    if form == "+s":
        assert array.n_buffers == 1
        assert array.buffers[0] is None
        assert schema.n_children == array.n_children
        found.fields = [
            read(schema.children[number].contents, array.children[number].contents)
            for number in range(array.n_children)
        ]
        assert all(len(column.items) == array.length for column in found.fields)
        found.items = list(zip(*(column.items for column in found.fields), strict=True))
        return found
    assert array.n_buffers == 3
    assert array.n_children == schema.n_children == 0
    size = 4 if form in "uz" else 8
    count = array.length
    packed = ctypes.string_at(array.buffers[1], (count + 1) * size)
    offsets = struct.unpack(f"={count + 1}{'i' if size == 4 else 'q'}", packed)
    bits = None if array.buffers[0] is None else ctypes.string_at(array.buffers[0], (count + 7) // 8)
    for position in range(count):
        start, end = offsets[position : position + 2]
        assert 0 <= start <= end
        item = ctypes.string_at(array.buffers[2] + start, end - start)
        is_null = bits is not None and not bits[position >> 3] >> (position & 7) & 1
        found.items.append(None if is_null else item)
        if form in "uU" and not is_null:
            item.decode()
    assert found.items.count(None) == array.null_count
    return found


def read_array(exporter: Any, requested: object | None = None) -> Read:
    """Consume ``__arrow_c_array__``, moving and releasing as a good consumer does."""
    schema_capsule, array_capsule = exporter.__arrow_c_array__(requested)
    schema, array = take_schema(schema_capsule), take_array(array_capsule)
    del schema_capsule, array_capsule
    found = read(schema, array)
    release(schema)
    release(array)
    return found


def read_stream(exporter: Any, requested: object | None = None) -> list[Read]:
    """Consume ``__arrow_c_stream__``."""
    stream = take_stream(exporter.__arrow_c_stream__(requested))
    address = ctypes.addressof(stream)
    schema = CSchema()
    assert GET(stream.get_schema)(address, ctypes.addressof(schema)) == 0
    found = []
    while True:
        array = CArray()
        assert GET(stream.get_next)(address, ctypes.addressof(array)) == 0
        if not array.release:
            break
        found.append(read(schema, array))
        release(array)
    assert not LAST_ERROR(stream.get_last_error)(address)
    assert GET(stream.get_next)(address, ctypes.addressof(array)) == 0
    assert not array.release
    release(schema)
    release(stream)
    return found


def requested_schema(form: str, *fields: str) -> tuple[object, Any]:
    """Return a capsule with a requested schema, and the objects that must stay alive meanwhile."""
    arrays = Arrays()
    children = tuple(Data(child, 0, ()) for child in fields)
    return arrays._schema_capsule(Data(form, 0, (), children=children)), arrays
