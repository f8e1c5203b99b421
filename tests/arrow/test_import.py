"""Import of foreign columns of every kind, valid and malformed."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

import pressmark
from arrow import foreign
from arrow.foreign import INDEX_FORMATS, STRING_FORMATS, Array, Data, Stream, changed, dictionary, strings, table
from pressmark import ColumnError, FlatDirect, HashedNTuple, IdentifierError, Pairtree, PathError
from strategies import identifiers
from support.implementations import NATIVE, PURE, Implementation, use
from support.samples import CONFIGURATIONS, sample

pytestmark = pytest.mark.usefixtures("_under")

ITEMS: list[bytes | None] = [
    b"ark:/13030/xt12t3",
    None,
    b"a",
    b"twelve bytes",
    b"thirteen byte",
    "\u00e9\u4f8b\U0001f350".encode(),
    None,
    None,
    b"b" * 40,
    b"c.d",
]
PATHS = [None if item is None else Pairtree().map_id(item) for item in ITEMS]


@pytest.mark.parametrize("form", STRING_FORMATS)
@pytest.mark.parametrize("ahead", [0, 1, 8, 13])
@pytest.mark.parametrize("null_count", [None, -1])
def test_strings(form: str, ahead: int, null_count: int | None) -> None:
    """Every string format is read at any offset, with or without a null count."""
    data = strings(ITEMS, form, ahead=ahead, behind=2, null_count=null_count)
    assert Pairtree().map(Array(data)).to_list() == PATHS


@pytest.mark.parametrize("form", STRING_FORMATS)
def test_data_under_nulls_is_ignored(form: str) -> None:
    """Data under a null is ignored."""
    for under_null in (b"x" * 30, b"\xff\xff", b"/", b""):
        column = FlatDirect().map(Array(strings([b"a", None, b"b"], form, under_null=under_null)))
        assert column.to_list() == ["a", None, "b"]
        assert foreign.read_array(column).format == "U"


@pytest.mark.parametrize("form", STRING_FORMATS)
def test_no_nulls(implementation: Implementation, form: str) -> None:
    """A validity bitmap may be absent, unneeded, or ignored because null_count is 0."""
    for validity, null_count in ((False, 0), (False, -1), (True, 0), (True, -1)):
        data = strings([b"a", b"b"], form, ahead=3, validity=validity, null_count=null_count)
        column = Pairtree().map(Array(data))
        assert column.to_list() == ["a", "b"]
        assert column.null_count == 0
    if implementation == NATIVE:  # pyarrow counts, and refuses
        ignored = changed(strings([b"a", None], form), null_count=0)
        assert Pairtree().map(Array(ignored), on_error="none").to_list()[0] == "a"


@pytest.mark.parametrize("form", STRING_FORMATS)
def test_null_columns(implementation: Implementation, form: str) -> None:
    """A column may be all nulls, or empty, with NULL buffers."""
    assert Pairtree().map(Array(strings([None] * 9, form))).to_list() == [None] * 9
    assert Pairtree().map(Array(strings([], form))).to_list() == []
    if implementation == PURE:
        return  # pyarrow accepts no NULL for offsets
    count = 4 if form[0] == "v" else 3
    for buffers in ((None,) * count, (None, b"", *([b""] * (count - 2)))):
        column = Pairtree().map(Array(Data(form, 0, buffers)))
        assert (len(column), column.to_list(), column.null_count) == (0, [], 0)


@pytest.mark.parametrize("index", INDEX_FORMATS)
@pytest.mark.parametrize("form", STRING_FORMATS)
def test_dictionaries(index: str, form: str) -> None:
    """Dictionaries with every index type are decoded; nulls may be in either."""
    words = strings([b"a", None, b"a longer word of many bytes"], form, ahead=2)
    data = dictionary([2, None, 0, 1, 2], words, index, ahead=3, under_null=100)
    long = Pairtree().map_id("a longer word of many bytes")
    assert Pairtree().map(Array(data)).to_list() == [long, None, "a", None, long]
    assert Pairtree().map(Array(dictionary([], words, index))).to_list() == []
    empty = strings([], form)
    assert Pairtree().map(Array(dictionary([None, None], empty, index))).to_list() == [None, None]


@pytest.mark.skipif(sys.maxsize > 1 << 32, reason="more than 4 GiB fit the address space")
def test_column_beyond_the_address_space(implementation: Implementation) -> None:
    """A dictionary of 1 MiB, with 4 GiB and 1 MiB of items, exhausts the memory of 32 bits; its size does not wrap."""
    words = strings([b"x" * (1 << 20)])
    with pytest.raises(MemoryError):
        Pairtree().map(Array(dictionary([0] * 4097, words, "c")))


def test_unaligned_buffers() -> None:
    """Buffers may be unaligned, as in a mapped file."""
    for form in STRING_FORMATS:
        data = strings(ITEMS, form)
        arrays = Array(data)
        schema, capsule = arrays.__arrow_c_array__()
        array = foreign.array_in(capsule)
        held = []
        for number in range(array.n_buffers):
            raw = data.buffers[number]  # type: ignore[index]
            if raw is not None:
                shifted = bytearray(b"?" + raw)
                held.append(shifted)
                array.buffers[number] = foreign.ctypes.addressof(foreign.ctypes.c_char.from_buffer(shifted)) + 1

        class Shifted:
            def __init__(self, *capsules: object) -> None:
                self.capsules = capsules

            def __arrow_c_array__(self) -> Any:
                return self.capsules

        assert Pairtree().map(Shifted(schema, capsule)).to_list() == PATHS


def test_structs() -> None:
    """A struct's column is read by name, with the offset and nulls of both."""
    present = [True, False, True, True]
    identifiers = strings([b"-", b"-", b"a", b"b", None, b"d"], "U", ahead=5, name="id")
    other = Data("i", 6, (None, b"0" * 24), name="year")
    data = table(other, identifiers, length=4, ahead=2, present=present)
    for null_count in (1, -1):
        one = changed(data, null_count=null_count)
        assert foreign.items_of(Array(one), "id") == [b"a", None, None, b"d"]
    views = strings([b"-", b"-", b"a" * 20, None, b"c"], "vu", ahead=1, under_null=b"y" * 20)
    assert Pairtree().map(Array(table(views, length=3, ahead=2))).to_list() == [
        Pairtree().map_id("a" * 20),
        None,
        "c",
    ]
    coded = dictionary([0, 1, 1, None, 0], strings([b"x", b"y"]), "S", ahead=1)
    data = table(coded, length=4, ahead=1, present=[True, True, True, False])
    assert Pairtree().map(Array(data)).to_list() == ["y", "y", None, None]


def test_items_under_nulls_of_a_struct_are_ignored() -> None:
    """Items under a null of the struct are ignored."""
    views = strings([b"a", b"b" * 20], "vu")
    broken = changed(views, buffers=(None, views.buffers[1][:16] + b"\xff" * 16, *views.buffers[2:]))  # type: ignore[index]
    column = Pairtree().map(Array(table(broken, length=2, present=[True, False])))
    assert column.to_list() == ["a", None]
    coded = dictionary([0, 77], strings([b"a"]))
    column = Pairtree().map(Array(table(coded, length=2, present=[True, False])))
    assert column.to_list() == ["a", None]


def test_streams() -> None:
    """Chunks are kept, empty ones skipped, and each may have its own dictionary."""
    schema = strings([], "u")
    chunks = [strings(part, "u", ahead=number) for number, part in enumerate((ITEMS[:4], [], ITEMS[4:], []))]
    column = Pairtree().map(Stream(schema, *chunks), threads=1)
    assert column.to_list() == PATHS
    assert column.chunk_count == 2
    coded = [dictionary([0, 1], strings([b"a", b"b"])), dictionary([1, None, 0], strings([b"c", b"d"]))]
    assert Pairtree().map(Stream(coded[0], *coded)).to_list() == ["a", "b", "d", None, "c"]
    empty = Pairtree().map(Stream(schema))
    assert (empty.to_list(), empty.chunk_count, len(empty)) == ([], 0, 0)


def test_array_is_preferred_to_stream() -> None:
    """An array is preferred to a stream, which is the fallback."""

    class Both(Array):
        def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
            raise AssertionError("the array was to be had")

    class Chunked(Stream):
        def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
            raise ValueError("not contiguous")

    assert Pairtree().map(Both(strings([b"a"]))).to_list() == ["a"]
    assert Pairtree().map(Chunked(strings([]), strings([b"a"]))).to_list() == ["a"]

    class Failing:
        def __arrow_c_array__(self) -> object:
            raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        Pairtree().map(Failing())


# --- against lists --------------------------------------------------------------------------------------------


@st.composite
def chunks(draw: st.DrawFn) -> tuple[list[list[bytes | None]], Any]:
    """Draw items in chunks, and an object that exports them in some format."""
    items = st.one_of(st.none(), identifiers())
    parts = draw(st.lists(st.lists(items, max_size=20), min_size=1, max_size=4))
    form = draw(st.sampled_from(STRING_FORMATS))

    def laid_out(part: list[bytes | None]) -> Data:
        ahead, under_null = draw(st.integers(0, 9)), draw(st.sampled_from((b"", b"\xff" * 20)))
        data = strings(part, form, ahead=ahead, under_null=under_null, null_count=draw(st.sampled_from((None, -1))))
        if not coded:
            return data
        indices = draw(st.lists(st.one_of(st.none(), st.sampled_from(range(len(part)))), max_size=30)) if part else []
        part[:] = [None if index is None else part[index] for index in indices]
        return dictionary(indices, data, index_form, under_null=draw(st.integers(0, 100)))

    coded, index_form = draw(st.booleans()), draw(st.sampled_from(INDEX_FORMATS))
    arrays = [laid_out(part) for part in parts]
    if len(arrays) == 1 and draw(st.booleans()):
        return parts, Array(arrays[0])
    return parts, Stream(arrays[0], *arrays)


@given(st.data())
def test_same_as_lists(implementations: list[Implementation], data: st.DataObject) -> None:
    """Items of a column have the same paths as in a list, and errors the same index and text."""
    layout = sample(data.draw(st.sampled_from(sorted(CONFIGURATIONS))))
    parts, _ = drawn = data.draw(chunks())
    items = [item for part in parts for item in part]
    texts = [None if item is None else item.decode("utf-8", "surrogateescape") for item in items]
    threads = data.draw(st.integers(1, 3))
    for implementation in implementations:
        with use(implementation):
            paths = iter(layout.map_ids([item for item in items if item is not None], on_error="none"))
            expected = [None if item is None else next(paths) for item in items]
            failures = []
            for index, text in enumerate(texts):
                if text is not None and expected[index] is None:
                    with pytest.raises(IdentifierError) as caught:
                        layout.map_id(text)
                    failures.append((text, index, caught.value.reason))
            # A stream can be read once: export it again each time.
            arrays = drawn[1].arrays
            again = Array(*arrays) if isinstance(drawn[1], Array) else lambda arrays=arrays: Stream(*arrays)

            def column(again: Any = again) -> Any:
                return again if isinstance(again, Array) else again()

            errors: list[IdentifierError] = []
            mapped = layout.map(column(), on_error="none", errors=errors, threads=threads)
            assert mapped.to_list() == expected
            assert [item for batch in foreign.read_stream(mapped) for item in batch.items] == [
                None if path is None else path.encode("utf-8", "surrogateescape") for path in expected
            ]
            assert [error.args for error in errors] == failures
            if not failures:
                assert layout.map(column(), threads=threads).to_list() == expected
                continue
            with pytest.raises(IdentifierError) as caught:
                layout.map(column(), threads=threads)
            assert caught.value.args == failures[0]


@given(st.lists(st.one_of(st.none(), identifiers()), max_size=20))
def test_back_again(implementations: list[Implementation], items: list[bytes | None]) -> None:
    """Paths map back to their identifiers, which need not be UTF-8."""
    layout = Pairtree()
    wanted = [item for item in items if item != b""]
    for implementation in implementations:
        with use(implementation):
            paths = layout.map(Array(strings(wanted, "Z")))
            back = layout.unmap(paths)
            assert [None if item is None else item.encode("utf-8", "surrogateescape") for item in back] == wanted
            exported = foreign.read_array(back)
            assert exported.items == wanted
            assert exported.format == ("U" if all(_is_utf8(item) for item in wanted) else "Z")


def _is_utf8(item: bytes | None) -> bool:
    try:
        (item or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


# --- failing items --------------------------------------------------------------------------------------------


def test_errors_name_the_item_of_the_column() -> None:
    """The index counts all chunks and nulls; the item is a str."""
    parts = [strings([b"a", None]), strings([]), strings([None, b"b", b"", b"c", b""], under_null=b"")]
    with pytest.raises(IdentifierError) as caught:
        Pairtree().map(Stream(parts[0], *parts))
    assert (caught.value.index, caught.value.id) == (4, "")
    assert str(caught.value) == "identifier 4 '': identifier is empty"
    with pytest.raises(PathError) as caught_path:
        Pairtree().unmap(Array(strings([b"a", b"\xff"], "z")))
    assert (caught_path.value.index, caught_path.value.path) == (1, "\udcff")
    column = Pairtree().map(Stream(parts[0], *parts), on_error="none")
    assert column.to_list() == ["a", None, None, "b", None, "c", None]
    assert column.null_count == 4


def test_invalid_arguments() -> None:
    """Invalid arguments are refused in one line before anything is read."""
    layout = Pairtree()
    expected = "expected str, bytes, an iterable of them or an Arrow column, not "
    for wrong, name in ((1, "int"), (None, "NoneType"), (Path("a"), "PosixPath")):
        with pytest.raises(TypeError) as caught:
            layout.map(wrong)  # type: ignore[arg-type]
        assert str(caught.value) == expected + name

    class Lazy:
        def collect(self) -> None:
            raise AssertionError("not ours to call")

    with pytest.raises(TypeError) as caught:
        layout.map(Lazy())  # type: ignore[arg-type]
    assert str(caught.value) == expected + "Lazy; call .collect() first"
    with pytest.raises(ValueError, match=r"^on_error='skip': expected 'raise' or 'none'$"):
        layout.map(Array(strings([])), on_error="skip")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^threads=-1: "):
        layout.map(Array(strings([])), threads=-1)
    with pytest.raises(TypeError, match=r"^column: expected the name of a column, not int$"):
        foreign.items_of(Array(strings([])), 1)  # type: ignore[arg-type]
    with pytest.raises(pressmark.NotReversibleError):
        HashedNTuple().unmap(Array(strings([])))


@pytest.mark.parametrize("answer", [None, (), (1,), 7, (1, 2, 3)])
def test_results_that_are_not_capsules(answer: Any) -> None:
    """A protocol method that returns no capsule is refused."""

    class Wrong:
        def __arrow_c_array__(self) -> Any:
            return answer

    with pytest.raises(TypeError, match=r"^__arrow_c_array__ returned \w+, not two capsules$"):
        Pairtree().map(Wrong())


def test_wrong_capsules() -> None:
    """A capsule with another name, or another object, is refused."""
    data = strings([b"a"])
    array = object()

    def schema() -> object:
        return Array(data)._schema_capsule(data)

    class Wrong:
        def __init__(self, *capsules: Any) -> None:
            self.capsules = capsules

        def __arrow_c_array__(self) -> Any:
            return self.capsules

    class WrongStream:
        def __arrow_c_stream__(self) -> Any:
            return schema()

    for column, name in (
        (Wrong(schema(), array), "array"),
        (Wrong(schema(), schema()), "array"),
        (Wrong(array, schema()), "schema"),
    ):
        with pytest.raises(ColumnError) as caught:
            Pairtree().map(column)
        assert str(caught.value) == f"expected a capsule 'arrow_{name}' of the Arrow PyCapsule protocol"
    with pytest.raises(ColumnError, match="'arrow_array_stream'"):
        Pairtree().map(WrongStream())


# --- refused --------------------------------------------------------------------------------------------------

ONE = Data("i", 1, (None, b"0000"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (ONE, "the column is not text: int32, format 'i'; convert it to text first"),
        (changed(ONE, format="w:16"),
         "the column is not text: fixed-size binary, format 'w:16'; convert it to text first"),
        (changed(ONE, format="tsu:Europe/Rome"),
         "the column is not text: timestamp, format 'tsu:Europe/Rome'; convert it to text first"),
        (changed(ONE, format="+l", children=(strings([b"a"]),)),
         "the column is not text: list, format '+l'; convert it to text first"),
        (changed(ONE, format="+r", children=(ONE, strings([b"a"]))),
         "the column is not text: run-end encoded, format '+r'; convert it to text first"),
        (changed(ONE, format="?"), "the column is not text: unknown, format '?'; convert it to text first"),
        (dictionary([0], ONE),
         "the column is not text: dictionary of int32, format 'i'; convert it to text first"),
        (dictionary([0], strings([b"a"])).__class__(
            "f", 1, (None, b"0000"), dictionary=strings([b"a"])),
         "the column is not text: dictionary of utf8, format 'u'"),
        (table(length=0), "a struct of 0 fields; select one of them: none"),
        (table(strings([b"a"], name="a"), strings([b"b"], name="b"), length=1),
         "a struct of 2 fields; select one of them: 'a', 'b'"),
        (table(table(strings([b"a"]), length=1), length=1),
         "the field '' is not text: struct, format '+s'; convert it to text first"),
    ],
)  # fmt: skip
def test_columns_that_are_not_text(implementation: Implementation, data: Data, message: str) -> None:
    """A column that is not text is refused with the name of its type."""
    if implementation == PURE and (data.format == "?" or (data.dictionary is not None and data.format == "f")):
        return  # pyarrow does not know these types, and has its own messages
    # pyarrow reads the whole stream, and most of these arrays are too short for their schema.
    for column in (Array(data), Stream(data, data) if implementation == NATIVE else Stream(data)):
        with pytest.raises(ColumnError) as caught:
            Pairtree().map(column)
        assert str(caught.value) == message
        if isinstance(column, Array):
            column.keep()


def test_fields() -> None:
    """A missing or ambiguous field, or one that is not text, is refused with the list of fields."""
    data = table(
        strings([b"a"], name="a"), strings([b"b"], name="b"), changed(ONE, name="b"), changed(ONE, name="c"), length=1
    )
    for field, message in (
        ("id", "field 'id' not found; fields: 'a', 'b', 'b', 'c'"),
        ("b", "field 'b' is not unique; fields: 'a', 'b', 'b', 'c'"),
        ("c", "the field 'c' is not text: int32, format 'i'; convert it to text first"),
    ):
        column = Array(data)
        with pytest.raises(ColumnError) as caught:
            foreign.items_of(column, field)
        assert str(caught.value) == message
        column.keep()
    assert foreign.items_of(Array(data), "a") == [b"a"]
    column = Array(strings([b"a"]))
    with pytest.raises(ColumnError) as caught:
        foreign.items_of(column, "id")
    column.keep()
    assert str(caught.value) == "column='id': this is not a table (utf8, format 'u')"


# --- malformed ------------------------------------------------------------------------------------------------


def offsets(*numbers: int, form: str = "u", data: bytes | None = b"abc") -> Data:
    packed = struct.pack(f"={len(numbers)}{'i' if form == 'u' else 'q'}", *numbers)
    return Data(form, len(numbers) - 1, (None, packed, data))


def view(*numbers: int, blocks: tuple[bytes | None, ...] = (b"x" * 20,), sizes: tuple[int, ...] | None = (20,)) -> Data:
    packed = None if sizes is None else struct.pack(f"={len(sizes)}q", *sizes)
    return Data("vu", 1, (None, struct.pack("=4i", *numbers), *blocks, packed))


GOOD = strings([b"a", b"b"])
CODED = dictionary([0, 1], strings([b"a", b"b"]))
MALFORMED = [
    (changed(GOOD, length=-1), "impossible length -1 or offset 0"),
    (changed(GOOD, offset=-1), "impossible length 2 or offset -1"),
    (changed(GOOD, length=1 << 62), f"impossible length {1 << 62} or offset 0"),
    (changed(GOOD, offset=(1 << 63) - 1), f"impossible length 2 or offset {(1 << 63) - 1}"),
    (changed(GOOD, null_count=-2), "null_count is -2; the column has 2 items"),
    (changed(GOOD, null_count=3), "null_count is 3; the column has 2 items"),
    (changed(GOOD, null_count=1), "null_count is 1, without a validity bitmap"),
    (changed(GOOD, n_buffers=2), "2 buffers; 3 are required"),
    (changed(GOOD, n_buffers=-1), "-1 buffers; 3 are required"),
    (changed(GOOD, buffers=None, n_buffers=3), "list of buffers is NULL"),
    (changed(GOOD, buffers=(None, None, b"ab")), "buffer 1 is NULL"),
    (changed(GOOD, buffers=(None, GOOD.buffers[1], None)), "buffer 2 is NULL"),  # type: ignore[index]
    (changed(GOOD, released=True), "released already"),
    (offsets(0, 2, 1), "offsets of item 1 decrease or are out of range"),
    (offsets(-1, 1, 2), "offsets of item 0 decrease or are out of range"),
    (offsets(0, 1, -(1 << 31)), "offsets of item 1 decrease or are out of range"),
    (offsets(0, 2, 1, 3, form="U"), "offsets of item 1 decrease or are out of range"),
    (offsets(-5, 1, form="U"), "offsets of item 0 decrease or are out of range"),
    (offsets(0, 1, (1 << 63) - 1, form="U"), "offsets of item 1 decrease or are out of range"),
    (offsets(0, 1 << 62, form="U"), "offsets of item 0 decrease or are out of range"),
    (view(-1, 0, 0, 0), "view of item 0 points outside the buffers"),
    (view(20, 0, 1, 0), "view of item 0 points outside the buffers"),
    (view(20, 0, -1, 0), "view of item 0 points outside the buffers"),
    (view(20, 0, 0, 1), "view of item 0 points outside the buffers"),
    (view(20, 0, 0, -1), "view of item 0 points outside the buffers"),
    (view((1 << 31) - 1, 0, 0, (1 << 31) - 1), "view of item 0 points outside the buffers"),
    (view(20, 0, 0, 0, sizes=(19,)), "view of item 0 points outside the buffers"),
    (view(20, 0, 0, 0, sizes=(-1,)), "view of item 0 points outside the buffers"),
    (view(20, 0, 0, 0, blocks=(None,)), "view of item 0 points outside the buffers"),
    (view(20, 0, 0, 0, blocks=(), sizes=()), "view of item 0 points outside the buffers"),
    (view(20, 0, 0, 0, sizes=None), "buffer 3 is NULL"),
    (changed(view(1, 0, 0, 0), n_buffers=2), "2 buffers; 3 are required"),
    (changed(CODED, n_buffers=3), "3 buffers; 2 are required"),
    (changed(CODED, buffers=(None, None)), "buffer 1 is NULL"),
    (changed(CODED, dictionary=changed(GOOD, released=True)), "dictionary is missing or was released"),
    (changed(CODED, dictionary=offsets(0, 2, 1)), "the dictionary: offsets of item 1 decrease or are out of range"),
    (changed(CODED, dictionary=view(20, 0, 1, 0)), "the dictionary: view of item 0 points outside the buffers"),
    (changed(CODED, dictionary=changed(GOOD, length=-1)), "the dictionary: impossible length -1 or offset 0"),
    (dictionary([0, 2], strings([b"a", b"b"])), "item 1 has index 2, which is not in the dictionary"),
    (dictionary([0, -1], strings([b"a", b"b"]), "c"), "item 1 has index -1, which is not in the dictionary"),
    (dictionary([0, (1 << 64) - 1], strings([b"a"]), "L"), "item 1 has index -1, which is not in the dictionary"),
    (dictionary([0], strings([])), "item 0 has index 0, which is not in the dictionary"),
]
OF_STRUCTS = [
    (changed(table(GOOD, length=2), n_buffers=0), "the struct: 0 buffers; 1 are required"),
    (changed(table(GOOD, length=2), length=-2), "the struct: impossible length -2 or offset 0"),
    (changed(table(GOOD, length=2), null_count=1), "the struct: null_count is 1, without a validity bitmap"),
    (changed(table(GOOD, length=2), n_children=0), "the struct: 0 children; the schema has 1"),
    (changed(table(GOOD, length=2), n_children=2), "the struct: 2 children; the schema has 1"),
    (changed(table(GOOD, length=2), null_children=True), "the struct: 0 children; the schema has 1"),
    (table(changed(GOOD, released=True), length=2), "the struct: child 0 is missing or was released"),
    (table(GOOD, length=3), "2 items; the struct needs 3"),
    (table(GOOD, length=1, ahead=2), "2 items; the struct needs 3"),
]


native_only = pytest.mark.usefixtures("_native")


@pytest.fixture
def _native(implementation: Implementation) -> None:
    """Run a test only natively: pyarrow has its own messages, and crashes on some structures."""
    if implementation != NATIVE:
        pytest.skip("what is wrong with a structure, pyarrow says in its own words")


@native_only
@pytest.mark.parametrize(("data", "message"), MALFORMED + OF_STRUCTS)
def test_malformed_arrays(data: Data, message: str) -> None:
    """A malformed array is refused in one line, alone, in a stream, and in a struct."""
    with pytest.raises(ColumnError) as caught:
        Pairtree().map(Array(data))
    assert str(caught.value) == f"malformed Arrow column: {message}"
    if not data.released:
        good = {"+s": table(GOOD, length=2), "i": CODED, "u": GOOD}.get(data.format or "")
        if good is not None and (data.dictionary is None or data.dictionary.format == "u"):
            with pytest.raises(ColumnError) as caught:
                Pairtree().map(Stream(data, good, data))
            assert str(caught.value) == f"malformed Arrow column: chunk 1: {message}"
        if (data, message) in MALFORMED and data.length == 2 and data.offset == 0 and "length" not in message:
            with pytest.raises(ColumnError) as caught:
                Pairtree().map(Array(table(data, length=2)))
            assert str(caught.value) == f"malformed Arrow column: {message}"


@native_only
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (changed(GOOD, schema_released=True), "schema has already been released"),
        (changed(GOOD, format=None), "broken schema; a format or a child is missing"),
        (changed(GOOD, n_schema_children=-1), "broken schema; a format or a child is missing"),
        (changed(GOOD, n_schema_children=2), "broken schema; a format or a child is missing"),
        (table(changed(GOOD, format=None), length=2), "broken schema; a format or a child is missing"),
        (table(changed(GOOD, schema_released=True), length=2), "broken schema; a format or a child is missing"),
        (changed(CODED, dictionary=changed(GOOD, format=None)), "broken schema; a format or a child is missing"),
    ],
)
def test_malformed_schemas(data: Data, message: str) -> None:
    """A released or incomplete schema is refused in one line."""
    for column in (Array(data), Stream(data)):
        with pytest.raises(ColumnError) as caught:
            Pairtree().map(column)
        assert str(caught.value) == f"malformed Arrow column: {message}"
        if isinstance(column, Array):
            column.keep()


@pytest.mark.parametrize(
    "data",
    [
        changed(GOOD, n_buffers=2),
        offsets(0, 2, 1),
        offsets(0, 2, 1, 3, form="U"),
        view(20, 0, 1, 0),
        view(20, 0, 0, 1),
        changed(table(GOOD, length=2), n_children=0),
        table(GOOD, length=3),
    ],
)
def test_malformed_structures_are_errors(data: Data) -> None:
    """Every implementation refuses a malformed structure in one line."""
    with pytest.raises(ColumnError) as caught:
        Pairtree().map(Array(data))
    assert str(caught.value).startswith("malformed Arrow column: ")
    assert "\n" not in str(caught.value)


def test_indices_beyond_the_dictionary() -> None:
    """An index outside the dictionary is reported."""
    for index in (2, -1):
        with pytest.raises(ColumnError) as caught:
            Pairtree().map(Array(dictionary([0, index], strings([b"a", b"b"]), "c")))
        message = f"malformed Arrow column: item 1 has index {index}, which is not in the dictionary"
        assert str(caught.value) == message


@native_only
def test_released_streams() -> None:
    """A stream can be read once."""
    stream = Stream(GOOD, released=True)
    with pytest.raises(ColumnError) as caught:
        Pairtree().map(stream)
    assert str(caught.value) == (
        "malformed Arrow column: stream has already been released; a stream can only be read once"
    )


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        ((5, b"the query\nfailed:\n  no memory"), "stream failed: the query failed: no memory"),
        ((22, b""), "stream failed: no message"),
        ((22, None), "stream failed: no message"),
        ((1, b"\xff\xfe"), "stream failed: \\xff\\xfe"),
    ],
)
def test_failing_streams(failure: tuple[int, bytes | None], message: str) -> None:
    """A stream's own message is passed on in one line, for its schema and its arrays."""
    for stream in (
        Stream(GOOD, schema_failure=failure),
        Stream(GOOD, failure=failure),
        Stream(GOOD, GOOD, GOOD, failure=failure),
    ):
        with pytest.raises(ColumnError) as caught:
            Pairtree().map(stream)
        # pyarrow inserts its own character where a message is not UTF-8.
        assert str(caught.value).replace("\ufffd\ufffd", "\\xff\\xfe") == message


def test_columns_dropped_during_an_exception() -> None:
    """A column dropped during an exception releases its array."""

    def fail() -> None:
        raise KeyError("on its way")

    with pytest.raises(KeyError, match="on its way"):
        (Pairtree().map(Array(strings([b"a"], "U"))), fail())
    with pytest.raises(KeyError, match="on its way"):
        (Pairtree().map(Array(GOOD)).__arrow_c_array__(), fail())
