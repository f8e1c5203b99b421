"""Many objects at once: each whole or absent, in order, reported when it is stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.errors import IdentifierError, IngestError, ObjectError, StoreError
from pressmark.stores import IngestResult, Store, StoreObject
from support.trees import snapshot, write

Result = IngestResult[StoreObject]


def created(kind: str, folder: Path, **options: Any) -> Store:
    layout = pressmark.layout("0002") if kind == "ocfl" else None
    return stores.create(kind, folder, layout, **options)


def content(store: Store, identifier: str) -> dict[str, bytes]:
    return {name: Path(path.decode()).read_bytes() for name, path in store.get(identifier).files()}


@pytest.fixture(params=stores.KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return created(request.param, tmp_path / "store")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write(tmp_path / "in", {"name.bin": b"content"})
    return tmp_path / "in"


def problems(store: Store) -> list[str]:
    return [found.kind for found in store.check(digests=True).problems if found.kind != "inventory-advice"]


def test_objects_in_order(store: Store, source: Path) -> None:
    """Objects are stored, their results come in order, and failed objects are among them with their errors."""
    store.put("b", source)
    results: list[Result] = []
    with store.ingest(on_result=results.append, max_objects=3) as batch:
        for identifier in ("a", "b", "\ud800", "c", "d", "c"):
            batch.put(identifier, source if identifier != "d" else source / "missing")
    assert [result.identifier for result in results] == ["a", "b", "\ud800", "c", "d", "c"]
    assert isinstance(results[2].error, IdentifierError)
    missing = "io-error" if store.kind == "bags" else "source"
    kinds = [getattr(result.error, "kind", None) for result in results]
    assert kinds == [None, "exists", None, None, missing, "exists"]
    for result in results:
        assert (result.record is None) == (result.error is not None)
        assert result.error is None or "\n" not in str(result.error)
        if result.record is not None:
            assert result.record == next(found for found in store.objects() if found.id == result.identifier)
    assert (batch.stored, batch.failed) == (2, 4)
    assert {name: content(store, name) for name in "abc"} == {name: {"name.bin": b"content"} for name in "abc"}
    assert not problems(store)
    assert not [name for name in snapshot(Path(store.root)) if b"pressmark-" in name and b".json" not in name]


def test_the_result_equals_that_of_put(store: Store, source: Path, tmp_path: Path) -> None:
    """An object is the same, whether it is stored alone or with others."""
    alone = created(store.kind, tmp_path / "alone")
    results: list[Result] = []
    with store.ingest(on_result=results.append) as batch:
        batch.put("abc", source)
        batch.put(b"xyz", source / "name.bin")
    records = [alone.put("abc", source), alone.put(b"xyz", source / "name.bin")]
    assert [result.record for result in results] == records
    assert list(store.objects()) == list(alone.objects())
    found, expected = (snapshot(Path(one.root)) for one in (store, alone))
    assert found.keys() == expected.keys()


def test_failed_objects_are_raised_at_the_end(store: Store, source: Path) -> None:
    """Without a callback, failed objects are an error at the end, and the other objects are stored."""

    def ingest() -> None:
        with store.ingest() as batch:
            for identifier in "abcd":
                batch.put(identifier, source / "missing" if identifier in "bc" else source)

    with pytest.raises(IngestError, match=r"2 of 4 objects not stored: .*'b'.*(No such file|not found)") as caught:
        ingest()
    assert caught.value.path == store.root
    assert "\n" not in str(caught.value)
    assert [error.identifier for error in caught.value.errors if isinstance(error, ObjectError)] == ["b", "c"]
    assert sorted(str(found.id) for found in store.objects()) == ["a", "d"]


def test_the_error_of_the_block_comes_first(store: Store, source: Path) -> None:
    """An exception in the block is not replaced by failed objects, and what was flushed stays."""

    def ingest() -> None:
        with store.ingest() as batch:
            batch.put("a", source)
            batch.put("b", source / "missing")
            batch.flush()
            raise KeyError

    with pytest.raises(KeyError):
        ingest()
    assert [found.id for found in store.objects()] == ["a"]
    assert not problems(store)


def test_flush(store: Store, source: Path) -> None:
    """After a flush, all objects are stored and reported."""
    results: list[Result] = []
    with store.ingest(on_result=results.append) as batch:
        batch.put("a", source)
        batch.put("b", source)
        batch.flush()
        assert [result.identifier for result in results] == ["a", "b"]
        assert content(store, "b") == {"name.bin": b"content"}
        batch.flush()
    assert len(results) == batch.stored == 2


def test_batches_are_bounded_in_time(store: Store, source: Path) -> None:
    """A batch that has waited for its time is published with the next object."""
    results: list[Result] = []
    with store.ingest(on_result=results.append, max_seconds=0) as batch:
        for number in range(3):
            batch.put(str(number), source)
            assert len(results) == number + 1


def test_replacing(store: Store, source: Path) -> None:
    """With replace, existing objects are replaced, also those of the same batch."""
    store.put("a", source)
    write(source.parent / "new", {"new.bin": b"new"})
    results: list[Result] = []
    with store.ingest(replace=True, on_result=results.append) as batch:
        for identifier, given in (("b", "in"), ("a", "new"), ("b", "new"), ("c", "new")):
            batch.put(identifier, source.parent / given)
    assert [(result.identifier, result.error) for result in results] == [(name, None) for name in "babc"]
    assert [content(store, name) for name in "abc"] == [{"new.bin": b"new"}] * 3
    assert not problems(store)


def test_put_outside_of_the_block(store: Store, source: Path) -> None:
    """Objects are put only inside of the block."""
    batch = store.ingest()
    with pytest.raises(ValueError, match="not in a with block"):
        batch.put("a", source)
    with batch:
        batch.put("a", source)
    with pytest.raises(ValueError, match="not in a with block"):
        batch.put("b", source)
    assert [found.id for found in store.objects()] == ["a"]


def test_a_store_that_cannot_be_written_to(tmp_path: Path, source: Path) -> None:
    """Errors of the whole store are raised at once."""
    stores.create("pairtree", tmp_path / "tree")
    tree = stores.open(tmp_path / "tree", dialect="unt")
    with pytest.raises(StoreError, match="read-only"), tree.ingest() as batch:
        batch.put("a", source)
