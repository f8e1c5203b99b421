"""Every public class that holds data can be pickled, and sent to another process."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import bagit, compare, fixity, jobs, migrate, stores
from pressmark.arrow import StringColumn
from pressmark.bagit import archive
from pressmark.compare.report.verdict import judge
from pressmark.errors import PressmarkError
from pressmark.jobs.receipts import FailedChunk
from pressmark.layouts import Boolean, Choice, Integer, Text
from pressmark.reports import Problem, Report
from pressmark.stores.problems import KINDS
from support.implementations import Implementation, use
from support.samples import CONFIGURATIONS, sample
from test_faces import FACES

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)
# Public classes that are not data: what is open on this machine, interfaces, and types of options.
NOT_DATA = {
    *("ArrowArrayExportable", "ArrowSchemaExportable", "ArrowStreamExportable", "ErrorList", "PackedColumn"),
    *("Archive", "BagFolder", "ChunkBuilder", "Content", "Digest", "Ingest", "Ledger", "ManifestCheck", "PathIndex"),
    *("PathLengths", "PairtreeStore", "OcflRoot", "Store", "StoreComparison", "StoredObject", "VitroStore"),
    "WorkFolder",
    *("Check", "DaskClient", "Job", "Layout", "Progress"),
}
# Data that is neither a dataclass nor a named tuple.
DATA = {"Bag", "BagInfo", "Boolean", "Choice", "Integer", "Kinds", "StringColumn", "Text"}


def again(value: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(value, protocol))


# --- columns ---------------------------------------------------------------------------------------------------------


def column(implementation: Implementation, *chunks: list[bytes | None]) -> StringColumn:
    """Return a column of these chunks."""
    kernels = implementation.kernels
    return StringColumn(
        kernels,
        [
            kernels.Chunk.from_column(
                kernels.ByteColumn.from_texts([item or b"" for item in chunk])[0],
                [index for index, item in enumerate(chunk) if item is None],
            )
            for chunk in chunks
        ],
    )


CHUNKS: list[list[list[bytes | None]]] = [
    [],
    [[]],
    [[None]],
    [[b"a", None, b"", b"\xc3\xa9", b"\xff"], [], [b"x" * 1000, None]],
    [[None if index % 7 == 3 else b"%d" % index for index in range(20)]],
]


@pytest.mark.parametrize("chunks", CHUNKS, ids=["none", "empty", "null", "several", "many"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_columns(implementation: Implementation, chunks: list[list[bytes | None]], protocol: int) -> None:
    """A column keeps its items and nulls; also as a copy."""
    expected = column(implementation, *chunks)
    items = [item for chunk in chunks for item in chunk]
    for found in (again(expected, protocol), copy.copy(expected), copy.deepcopy(expected)):
        assert found == expected
        assert [None if item is None else item.decode("utf-8", "surrogateescape") for item in items] == found.to_list()
        assert (len(found), found.null_count) == (len(items), items.count(None))


def test_columns_between_implementations(pair: tuple[Implementation, Implementation]) -> None:
    """A column that one implementation pickles is loaded by the other."""
    for here, there in (pair, pair[::-1]):
        with use(here):
            stored = pickle.dumps(column(here, *CHUNKS[3]))
        with use(there):
            found = pickle.loads(stored)
        assert found == column(there, *CHUNKS[3])


def test_columns_out_of_band(implementation: Implementation) -> None:
    """Protocol 5 transfers the bytes of each chunk out of band."""
    expected = column(implementation, *CHUNKS[3])
    buffers: list[pickle.PickleBuffer] = []
    stored = pickle.dumps(expected, 5, buffer_callback=buffers.append)
    assert b"x" * 1000 not in stored
    assert len(buffers) == 2
    assert pickle.loads(stored, buffers=[bytearray(buffer) for buffer in buffers]) == expected


def test_chunks_of_columns(implementation: Implementation) -> None:
    """A chunk copies the items of its column; an index outside of it is an error."""
    kernels = implementation.kernels
    packed = kernels.ByteColumn.from_buffers(b"abc", array("q", [0, 1, 3]))
    chunk = kernels.Chunk.from_column(packed, [0])
    del packed
    assert (chunk.to_list(), chunk.null_count, len(chunk)) == ([None, "bc"], 1, 2)
    with pytest.raises(IndexError):
        kernels.Chunk.from_column(kernels.ByteColumn.from_texts(["a"])[0], [1])


# --- results ---------------------------------------------------------------------------------------------------------


def migrated(folder: Path) -> Iterator[Any]:
    """Yield what a migration returns."""
    store = stores.create("pairtree", folder / "books")
    for number in range(3):
        store.put(f"b{number}", {"file": folder / "file"})
    plan = migrate.plan(folder / "books", folder / "moved", to="ocfl", layout="0003", work=folder / "work")
    run = migrate.run(plan, processes=False)
    assert run.ok
    yield from (plan, plan.options, run, list(run.rows()))
    work = jobs.WorkFolder.open(folder / "work")
    yield from (work.summary(), list(work.receipts()), list(work.chunks()))
    yield FailedChunk("000000", "OSError", "why", True, False)


def stored(folder: Path) -> Iterator[Any]:
    """Yield what stores return."""
    root = stores.create("ocfl", folder / "root", "0003")
    results: list[Any] = []
    with root.ingest(results=results) as batch:
        batch.put("a", {"file": folder / "file"})
    yield results
    root.put("a", {"other": folder / "file"}, replace=True)
    found = root.get("a")
    yield from (
        list(root.objects()),
        root.check(),
        found.versions(),
        found.diff(),
        stores.CheckStore(str(folder / "root")),
        stores.PutObjects(str(folder / "root")),
    )
    yield from (stores.RepairStep("remove", b"a", (b"b",)), stores.report(root))


def bagged(folder: Path) -> Iterator[Any]:
    """Yield what bags return."""
    bag = bagit.create([folder / "file"], folder / "bag")
    (folder / "bag/data/more").touch()
    yield from (bag.info, bagit.validate(folder / "bag"), bagit.ValidateBags())
    yield from (archive.Limits(), bag)


def hashed(folder: Path) -> Iterator[Any]:
    """Yield what hashing returns."""
    yield list(fixity.hash_files([folder / "file", folder / "missing"], ["md5"]))


def compared(folder: Path) -> Iterator[Any]:
    """Yield what a comparison returns."""
    found = compare.compare(["a:b", "a=b", "", "x:b"], ["pairtree", pressmark.layout("0012", delimiters=[":"])])
    yield found
    yield judge(found)


def named(folder: Path) -> Iterator[Any]:
    """Yield what is created by its arguments."""
    yield from map(sample, CONFIGURATIONS)
    yield KINDS
    yield from (pressmark.LineCounts(1, 0, 2, 3), Problem("kind", "error", "1", b"\xff"), Report([], {"files": 1}))
    for check in (Boolean(), Choice(["a"]), Integer(1, 2), Text(empty=False, without={"/": "a slash"})):
        found = again(check)
        assert (type(found), found.allowed) == (type(check), check.allowed)


SOURCES = (migrated, stored, bagged, hashed, compared, named)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)
def test_results(tmp_path: Path, source: Any) -> None:
    """A result is equal after a round trip."""
    (tmp_path / "file").write_bytes(b"12")
    for value in source(tmp_path):
        for protocol in (2, pickle.HIGHEST_PROTOCOL):
            found = again(value, protocol)
            assert type(found) is type(value)
            assert repr(found) == repr(value)


def public_classes() -> dict[str, type]:
    """Return the public classes, by name."""
    faces = (*FACES, "arrow", "compare.report", "errors", "reports")
    modules = [importlib.import_module(f"pressmark.{name}".rstrip(".")) for name in faces]
    found = {f"{module.__name__}.{name}": getattr(module, name) for module in modules for name in module.__all__}
    return {name: value for name, value in found.items() if inspect.isclass(value)}


@pytest.mark.parametrize("name", public_classes())
def test_every_class(name: str) -> None:
    """Every record can be pickled, also one that no call above returns; other classes are data above, or no data."""
    cls: Any = public_classes()[name]
    if cls.__name__ in NOT_DATA:
        return
    if hasattr(cls, "_fields"):
        assert again(cls._make(cls._fields)) == cls._make(cls._fields)
    elif hasattr(cls, "__dataclass_fields__"):
        record: Any = object.__new__(cls)
        for field in dataclasses.fields(cls):
            object.__setattr__(record, field.name, field.name)
        found = again(record)
        assert [getattr(found, field.name) for field in dataclasses.fields(cls)] == [
            field.name for field in dataclasses.fields(cls)
        ]
    elif not issubclass(cls, BaseException):
        assert cls.__name__ in DATA


# --- errors ----------------------------------------------------------------------------------------------------------

ERRORS = {name: cls for name, cls in public_classes().items() if issubclass(cls, PressmarkError)}


@pytest.mark.parametrize("name", ERRORS)
def test_every_error(name: str) -> None:
    """An error keeps its type, its text and its attributes."""
    cls = ERRORS[name]
    values: dict[str, Any] = {"index": 1, "line": 2, "position": 3, "report": Report(), "results": [], "count": 1}
    names = [
        parameter.name
        for parameter in inspect.signature(cls.__init__).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and parameter.name != "self"
    ]
    error = cls(*(values.get(one, one) for one in names))
    for protocol in PROTOCOLS:
        found = again(error, protocol)
        assert (type(found), str(found), repr(vars(found))) == (cls, str(error), repr(vars(error)))
