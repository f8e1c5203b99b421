"""The pure implementation with pyarrow, equal to the native one, and without it."""

from __future__ import annotations

from typing import Any

import pytest

from arrow import foreign
from pressmark import ColumnError, FlatDirect, IdentifierError, Pairtree
from support.implementations import PURE, Implementation, use
from support.processes import run_python

IDS = ["ark:/13030/xt12t3", None, "b", "a rather long identifier, é例, that no view holds itself", "", "c.d"]


@pytest.fixture
def pa() -> Any:
    """pyarrow, which the pure implementation uses."""
    pyarrow = pytest.importorskip("pyarrow", minversion="17")
    with use(PURE):
        yield pyarrow


def columns() -> dict[str, Any]:
    pa = pytest.importorskip("pyarrow")
    plain = pa.array(IDS)
    mask = pa.array([False, False, True, False, False, False])
    return {
        "string": plain,
        "large_string": pa.array(IDS, pa.large_string()),
        "string_view": pa.array(IDS, pa.string_view()),
        "binary": pa.array([item and item.encode() for item in IDS], pa.binary()),
        "large_binary": pa.array([item and item.encode() for item in IDS], pa.large_binary()),
        "binary_view": pa.array([item and item.encode() for item in IDS], pa.binary_view()),
        "not UTF-8": pa.array([b"a", b"\xff", None, b"\xffx" * 20], pa.binary()),
        "slice": pa.array(["x", "y", *IDS, "z"])[2:-1],
        "slice of views": pa.array(["x", "y" * 30, *IDS, "z"], pa.string_view())[2:-1],
        "all null": pa.array([None, None], pa.string()),
        "null type": pa.nulls(3)[1:],
        "struct of the null type": pa.StructArray.from_arrays([pa.nulls(3)], names=["id"])[1:],
        "empty": pa.array([], pa.string()),
        "empty slice": pa.array(IDS)[3:3],
        "dictionary": plain.dictionary_encode(),
        "dictionary of int8": plain.cast(pa.dictionary(pa.int8(), pa.large_string()))[1:],
        "dictionary with a null": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array(["a", None])),
        "extension": pa.ExtensionArray.from_storage(pa.json_(), plain) if hasattr(pa, "json_") else plain,
        "struct": pa.StructArray.from_arrays([plain], names=["id"]),
        "struct with nulls": pa.StructArray.from_arrays([plain], names=["id"], mask=mask)[1:],
        "struct of views": pa.StructArray.from_arrays([pa.array(IDS, pa.string_view())], names=["id"], mask=mask)[2:],
        "empty slice of a struct of views": pa.StructArray.from_arrays([pa.array(IDS, pa.string_view())], ["id"])[6:],
        "chunked": pa.chunked_array([IDS[:2], [], IDS[2:]], type=pa.string()),
        "chunked views": pa.chunked_array([IDS[:2], [], IDS[2:]], type=pa.string_view()),
        "chunked structs": pa.chunked_array([pa.StructArray.from_arrays([plain], names=["id"], mask=mask)[1:]] * 2),
        "no chunk": pa.chunked_array([], pa.string()),
        "batch": pa.record_batch({"id": ["x", *IDS]})[1:],
        "table": pa.table({"id": IDS}),
    }


def read(column: Any) -> tuple[Any, ...]:
    """Return all results of a column, and of its consumers."""
    errors: list[IdentifierError] = []
    mapped = FlatDirect().map(foreign.Opaque(column), on_error="none", errors=errors, threads=1)
    asked = [foreign.read_array(mapped, foreign.requested_schema(wish)[0]) for wish in ("u", "z", "Z", "vu")]
    error = None
    try:
        FlatDirect().map(column)
    except IdentifierError as caught:
        error = str(caught)
    return (
        (mapped.to_list(), mapped.chunk_count, mapped.null_count, error, [str(error) for error in errors]),
        *((one.format, one.items, one.null_count) for one in (*asked, *foreign.read_stream(mapped))),
        foreign.read_array(mapped).items,
    )


@pytest.mark.parametrize("name", columns())
def test_equal_results(pair: tuple[Implementation, Implementation], pa: Any, name: str) -> None:
    """Every kind of column has the native results, chunks, nulls, errors and exports."""
    found = read(columns()[name])
    with use(pair[0]):
        assert found == read(columns()[name])


def test_equal_refusals(pa: Any) -> None:
    """A column that is not text, and a missing field, are refused with the same message."""
    wide = pa.table({"id": IDS, "year": range(len(IDS))})
    for column, field, message in (
        (pa.array([1]), None, "the column is not text: int64, format 'l'; convert it to text first"),
        (pa.array([1], pa.timestamp("us", "Europe/Rome")), None,
         "the column is not text: timestamp, format 'tsu:Europe/Rome'; convert it to text first"),
        (pa.array([["a"]]), None, "the column is not text: list, format '+l'; convert it to text first"),
        (pa.array([1]).dictionary_encode(), None,
         "the column is not text: dictionary of int64, format 'l'; convert it to text first"),
        (wide, None, "a struct of 2 fields; select one of them: 'id', 'year'"),
        (wide, "year", "the field 'year' is not text: int64, format 'l'; convert it to text first"),
        (wide, "no", "field 'no' not found; fields: 'id', 'year'"),
        (pa.array(["a"]), "id", "column='id': this is not a table (utf8, format 'u')"),
    ):  # fmt: skip
        with pytest.raises(ColumnError) as caught:
            foreign.items_of(column, field)
        assert str(caught.value) == message


def test_a_reader_is_streamed(pa: Any) -> None:
    """A reader of record batches is streamed: mapping needs no more memory than a batch."""
    schema = pa.schema([("id", pa.string())])
    given: list[int] = []

    def batches() -> Any:
        for number in range(100):
            given.append(number)
            yield pa.record_batch([["" if number == 3 else "a"]], schema)

    with pytest.raises(IdentifierError, match="identifier 3 "):
        Pairtree().map(pa.RecordBatchReader.from_batches(schema, batches()), threads=1)
    from pressmark.layouts.blocks import identifier_blocks

    del given[:]
    blocks = identifier_blocks(pa.RecordBatchReader.from_batches(schema, batches()))
    assert next(blocks).identifiers == 1
    assert len(given) < 10
    blocks.close()  # type: ignore[attr-defined]


def test_a_stream_that_fails(pa: Any) -> None:
    """The producer's message is passed on in one line."""
    schema = pa.schema([("id", pa.string())])

    def batches() -> Any:
        yield pa.record_batch([["a"]], schema)
        raise ValueError("the disk\nis gone")

    with pytest.raises(ColumnError) as caught:
        Pairtree().map(pa.RecordBatchReader.from_batches(schema, batches()))
    assert str(caught.value).startswith("stream failed: ")
    assert "the disk is gone" in str(caught.value)


# --- in a process of its own --------------------------------------------------------------------------------------

RAISING = """
import gc
import pyarrow as pa
from pressmark import Pairtree

class Opaque:
    def __init__(self, column):
        self.__arrow_c_array__ = column.__arrow_c_array__

def boom():
    raise KeyError("on its way")

layout = Pairtree()
gc.freeze()  # collections skip what was imported
for make in (
    lambda: [pa.array(layout.map(pa.array(["a"]))), boom()],
    lambda: [pa.chunked_array(layout.map(pa.array(["a"]))), boom()],
    lambda: [layout.map(Opaque(pa.array(["a"]))).__arrow_c_array__(), boom()],
    lambda: [layout.map(Opaque(pa.array(["a"]))).__arrow_c_stream__(), boom()],
):
    for _ in range(20):
        try:
            make()
        except KeyError as error:
            assert str(error) == "'on its way'"
        else:
            raise AssertionError("it raises")
        gc.collect()
print("done")
"""


def test_arrays_dropped_during_an_exception(implementation: Implementation) -> None:
    """A consumer's array dropped during an exception is released."""
    pytest.importorskip("pyarrow")
    done = run_python(RAISING, implementation=implementation.name)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None  # the import system takes that for a missing module
import pressmark

layout = pressmark.Pairtree()
assert layout.map_ids(["a", "bc"]) == ["a", "bc"]

class Column:
    def __arrow_c_array__(self, requested_schema=None):
        return None, None

class Stream:
    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError("not asked for")

for column in (Column(), Stream()):
    for call in (layout.map, layout.unmap):
        try:
            call(column)
        except pressmark.ColumnError as error:
            print(error)
"""


MESSAGE = "without native extensions, Arrow columns need pyarrow (17 or newer); pip install 'pressmark[arrow]'"


def test_without_pyarrow() -> None:
    """Without a native build and pyarrow, lists are mapped, and columns refused in one line."""
    done = run_python(WITHOUT_PYARROW, implementation="pure")
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, [MESSAGE] * 4, "")


def test_an_old_pyarrow() -> None:
    """Before 17, pyarrow has no views and cannot read the schema of a single column: it counts as missing."""
    missing = 'sys.modules["pyarrow"] = None'
    assert missing in WITHOUT_PYARROW
    code = WITHOUT_PYARROW.replace(missing, 'sys.modules["pyarrow"] = type(sys)("pyarrow")')
    done = run_python(code, implementation="pure")
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, [MESSAGE] * 4, "")


def test_pyarrow_is_imported_for_the_first_column() -> None:
    """Lists are mapped without it."""
    pytest.importorskip("pyarrow")
    code = """
import sys
import pressmark
assert pressmark.Pairtree().map_ids(["a"]) == ["a"]
assert "pyarrow" not in sys.modules
import pyarrow
assert pressmark.Pairtree().map(pyarrow.array(["a"])).to_pylist() == ["a"]
"""
    done = run_python(code, implementation="pure")
    assert (done.returncode, done.stderr) == (0, "")
