"""Export of columns and tables: every export is new, and none leaks."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

from arrow import foreign
from arrow.conftest import outstanding_exports
from arrow.foreign import Array, Stream, strings
from pressmark import Pairtree, StringColumn, arrow as columns
from support.implementations import NATIVE, Implementation

pytestmark = pytest.mark.usefixtures("_under")

ITEMS = [b"ark:/13030/xt12t3", None, b"b", "é".encode()]
PATHS = [None if item is None else Pairtree().map_id(item).encode() for item in ITEMS]


def column(parts: int = 1) -> StringColumn:
    arrays = [strings(ITEMS, ahead=number) for number in range(parts)]
    return Pairtree().map(Stream(arrays[0], *arrays), threads=1)


def outstanding() -> int:
    gc.collect()
    return outstanding_exports()


def test_schema() -> None:
    """The schema can be requested alone."""
    capsule = column().__arrow_c_schema__()
    schema = foreign.schema_in(capsule)
    assert (schema.format, schema.name, schema.flags, schema.n_children) == (b"U", b"", 2, 0)


def test_array_and_stream() -> None:
    """Both protocols return the items; several chunks become one array."""
    several = column(3)
    assert several.chunk_count == 3
    assert [(part.format, part.items) for part in foreign.read_stream(several)] == [("U", PATHS)] * 3
    assert foreign.read_array(several).items == PATHS * 3
    assert several.chunk_count == 1
    assert foreign.read_array(several).items == PATHS * 3
    assert [part.items for part in foreign.read_stream(several)] == [PATHS * 3]
    empty = Pairtree().map(Stream(strings([])))
    assert foreign.read_stream(empty) == []
    assert foreign.read_array(empty).items == []


def test_bytes() -> None:
    """A column with an item that is not UTF-8 is binary; a requested schema cannot make it text."""
    paths = Pairtree().map(Array(strings([b"caf\xc3\xa9", b"\xff", None], "z")))
    assert foreign.read_array(paths).format == "U"
    back = Pairtree().unmap(paths)
    assert back.to_list() == ["café", "\udcff", None]
    for wish in (None, "u", "U", "vu"):
        capsule, held = (None, None) if wish is None else foreign.requested_schema(wish)
        found = foreign.read_array(back, capsule)
        assert (found.format, found.items) == ("Z", [b"caf\xc3\xa9", b"\xff", None])
        del held
    assert foreign.schema_in(back.__arrow_c_schema__()).format == b"Z"
    # Two halves of a character in two items are not UTF-8, although their concatenation is.
    halves = Pairtree().unmap(Array(strings([b"^c", b"^c/3", b"^a/9"])), on_error="none")
    assert foreign.read_array(halves).format == "Z"


def test_requests() -> None:
    """Requests for utf8, binary and large_binary are met; other requests are ignored."""
    for wish, given in (("u", "u"), ("z", "z"), ("Z", "Z"), ("U", "U"), ("vu", "U"), ("i", "U"), ("+s", "U")):
        capsule, held = foreign.requested_schema(wish)
        found = foreign.read_array(column(2), capsule)
        assert (found.format, found.items) == (given, PATHS * 2)
        # A request may be consumed by its reader.
        capsule, held = foreign.requested_schema(wish)
        assert [part.format for part in foreign.read_stream(column(2), capsule)] == [given] * 2
        del held
    assert foreign.read_array(column(), object()).format == "U"


def test_narrow_offsets_must_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """utf8 cannot hold 2 GiB: beyond that the request is ignored, by the largest array of a stream."""
    monkeypatch.setattr(columns, "NARROW_BYTES", 40)
    capsule, _held = foreign.requested_schema("u")
    assert [part.format for part in foreign.read_stream(column(2), capsule)] == ["u"] * 2
    assert foreign.read_array(column(2), capsule).format == "U"


def test_exports_are_new() -> None:
    """Each export is a separate structure: two consumers may share a column."""
    one = column()
    first, second = one.__arrow_c_array__(), one.__arrow_c_array__()
    arrays = [foreign.take_array(array) for _, array in (first, second)]
    schemas = [foreign.take_schema(schema) for schema, _ in (first, second)]
    foreign.release(arrays[0])
    foreign.release(schemas[0])
    assert foreign.read(schemas[1], arrays[1]).items == PATHS
    foreign.release(arrays[1])
    foreign.release(schemas[1])
    assert foreign.read_stream(one)[0].items == foreign.read_stream(one)[0].items == PATHS


def test_capsules_dropped(implementation: Implementation) -> None:
    """Unopened capsules release their content."""
    if implementation != NATIVE:
        pytest.skip("the capsules are those of another package")
    before = outstanding()
    one = column(2)
    held = [one.__arrow_c_schema__(), one.__arrow_c_stream__(), *one.__arrow_c_array__()]
    assert outstanding() == before + 4
    del held
    assert outstanding() == before


def test_export_outlives_the_column() -> None:
    """Arrays, streams and their arrays outlive the column."""
    schema_capsule, array_capsule = column().__arrow_c_array__()
    schema, array = foreign.take_schema(schema_capsule), foreign.take_array(array_capsule)
    del schema_capsule, array_capsule
    gc.collect()
    assert foreign.read(schema, array).items == PATHS
    foreign.release(schema)
    foreign.release(array)

    stream = foreign.take_stream(column(2).__arrow_c_stream__())
    gc.collect()
    array, schema = foreign.CArray(), foreign.CSchema()
    address = foreign.ctypes.addressof(stream)
    assert foreign.GET(stream.get_schema)(address, foreign.ctypes.addressof(schema)) == 0
    assert foreign.GET(stream.get_next)(address, foreign.ctypes.addressof(array)) == 0
    foreign.release(stream)
    assert foreign.read(schema, array).items == PATHS
    foreign.release(schema)
    foreign.release(array)


def test_release_in_another_thread(implementation: Implementation) -> None:
    """Consumers may release in any thread, concurrently."""
    one = column(2)
    one.__arrow_c_array__()
    taken: list[Any] = []
    for _ in range(50):
        schema_capsule, array_capsule = one.__arrow_c_array__()
        taken += [foreign.take_schema(schema_capsule), foreign.take_array(array_capsule)]
    before = outstanding()
    threads = [
        threading.Thread(target=lambda part=taken[number::4]: [foreign.release(each) for each in part])
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outstanding() == before - (100 if implementation == NATIVE else 0)
    assert foreign.read_array(one).items == PATHS * 2


def test_as_a_sequence() -> None:
    """A column has a length, items, an order and an equality."""
    one = column(2)
    texts = [None if path is None else path.decode() for path in PATHS] * 2
    assert (len(one), one.null_count, list(one), one.to_list()) == (8, 2, texts, texts)
    assert [one[index] for index in range(-8, 8)] == texts * 2
    for index in (8, -9):
        with pytest.raises(IndexError, match=f"^index {index} in a column of 8 items$"):
            one[index]
    with pytest.raises(TypeError, match=r"^expected an index, not slice; slice to_list\(\) instead$"):
        one[1:]  # type: ignore[index]
    assert repr(one) == f"<StringColumn of 8 items, 2 null: {texts}>"
    other = column(2)
    foreign.read_array(other)
    assert one == other
    assert one != column(1)
    assert one != texts
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
