"""A source that can be read once is read once, whatever makes a change try again."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark import stores
from pressmark.errors import ObjectError
from pressmark.stores import OcflRoot, Store
from ways.stores import KINDS, make_store

DATA = bytes(range(256)) * 8192  # more than one block


class Stream:
    """Content that can be read once; while it is read, another run changes the store."""

    def __init__(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        self._file = io.BytesIO(DATA)
        self._meanwhile: Callable[[], object] | None = meanwhile

    def read(self, size: int, /) -> bytes:
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return self._file.read(size)


def files(store: Store, identifier: str) -> dict[str, bytes]:
    return {name: Path(path).read_bytes() for name, path in store.get(identifier).files()}


@pytest.fixture(params=KINDS)
def store(request: Any, tmp_path: Path, implementation: Any) -> Store:
    old = {"name.bin": b"old"}
    return stores.open(make_store(request.param, tmp_path / "store", {"x": old, "y": old}))


def other(store: Store) -> Store:
    return stores.open(store.root)


#: What another run does while the source is read.
MEANWHILE: dict[str, Callable[[Store], object]] = {
    "nothing": lambda _store: None,
    "replaced": lambda store: other(store).put("x", {"name.bin": b"meanwhile"}, replace=True),
    "removed": lambda store: other(store).delete("x"),
    "removed and put": lambda store: (other(store).delete("x"), other(store).put("x", {"name.bin": b"again"})),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
@pytest.mark.parametrize("many", [False, True])
def test_replaced(store: Store, meanwhile: str, many: bool) -> None:
    stream = Stream(lambda: MEANWHILE[meanwhile](store))
    if many:
        with store.ingest(replace=True) as batch:
            batch.put("x", {"name.bin": stream})
    else:
        store.put("x", {"name.bin": stream}, replace=True)
    assert files(store, "x") == {"name.bin": DATA}
    assert not [name for name in os.listdir(store.root) if "pressmark-" in name and ".json" not in name]


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_overtaken(store: Store, meanwhile: str) -> None:
    """Another run changes an object after it was staged, before its batch is published."""
    with store.ingest(replace=True) as batch:
        batch.put_all([("x", {"name.bin": DATA}), ("new", {"name.bin": b"new"})])
        MEANWHILE[meanwhile](store)
    assert files(store, "x") == {"name.bin": DATA}
    assert files(store, "new") == {"name.bin": b"new"}


@pytest.mark.parametrize("many", [False, True])
def test_put(store: Store, many: bool) -> None:
    """Another run puts the same object meanwhile: this is reported, and that object stays."""
    stream = Stream(lambda: other(store).put("new", {"name.bin": b"meanwhile"}))
    results: list[Any] = []
    if many:
        with store.ingest(results=results) as batch:
            batch.put("new", {"name.bin": stream})
        error = results[0].error
    else:
        with pytest.raises(ObjectError) as caught:
            store.put("new", {"name.bin": stream})
        error = caught.value
    assert error.kind == "exists"
    assert files(store, "new") == {"name.bin": b"meanwhile"}


@pytest.mark.parametrize("meanwhile", ["nothing", "replaced", "removed and put"])
def test_updated(tmp_path: Path, meanwhile: str, implementation: Any) -> None:
    root = stores.open(make_store("ocfl", tmp_path / "store", {"x": {"name.bin": b"old"}}))
    assert isinstance(root, OcflRoot)
    stream = Stream(lambda: MEANWHILE[meanwhile](root))
    removed = iter(["name.bin"])  # read once as well
    record = root.update("x", add={"a": stream, "b": b"bytes"}, remove=removed)  # type: ignore[arg-type]
    assert files(root, "x") == {"a": DATA, "b": b"bytes"}
    assert record.changes is not None
    assert (record.changes["added"], record.changes["removed"]) == (2, 1)
    assert root.check(digests=True).ok


class Broken(Stream):
    """Content that ends with an error, once; then another run has changed the object."""

    def read(self, size: int, /) -> bytes:
        block = super().read(size)
        if self._file.tell() == len(DATA):
            raise OSError(5, "Input/output error")
        return block


def test_a_source_read_in_part_is_not_read_again(store: Store) -> None:
    stream = Broken(lambda: MEANWHILE["replaced"](store))
    with pytest.raises(ObjectError, match=r"'name\.bin': cannot be read: Input/output error"):
        store.put("x", {"name.bin": stream}, replace=True)
    assert files(store, "x") == {"name.bin": b"meanwhile"}


@pytest.mark.parametrize("replace", [False, True])
def test_a_file_at_its_end(store: Store, replace: bool) -> None:
    """A file that was read before, for example by a call that failed, is refused; an empty one is not."""
    file = io.BytesIO(DATA)
    identifier = "x" if replace else "new"
    file.read()
    with pytest.raises(ObjectError, match=r"'name\.bin': the file is at its end.*; open it again, or call seek\(0\)"):
        store.put(identifier, {"name.bin": file}, replace=replace)
    file.seek(0)
    store.put(identifier, {"name.bin": file}, replace=replace)
    assert files(store, identifier) == {"name.bin": DATA}
    store.put(identifier, {"name.bin": io.BytesIO()}, replace=True)
    assert files(store, identifier) == {"name.bin": b""}


def blocks() -> Iterator[bytes]:
    yield DATA


@pytest.mark.parametrize("many", [False, True])
def test_what_is_no_source(store: Store, tmp_path: Path, many: bool) -> None:
    """A generator, a file under two names, a path that no file can have: each is the error of its object."""
    stream = Stream()
    sources: list[Any] = [
        blocks(),
        {"a": blocks()},
        {"a": None},
        {5: "a"},
        None,
        ["a"],
        "a\0b",
        {"a": "\ud800"},
        *([] if store.kind == "vitro" else [{"a": stream, "b": stream}]),
    ]
    results: list[Any] = []
    if many:
        with store.ingest(results=results) as batch:
            for number, source in enumerate(sources):
                batch.put(f"{number}", source)
        errors = [result.error for result in results]
    else:
        errors = []
        for number, source in enumerate(sources):
            with pytest.raises(ObjectError) as caught:
                store.put(f"{number}", source)
            errors.append(caught.value)
    assert [error.kind for error in errors] == ["source"] * len(sources)
    assert not any("\n" in str(error) for error in errors)
    assert len(list(store.objects())) == 2


def test_named_pipes_are_refused(store: Store, tmp_path: Path) -> None:
    """Without waiting for a writer."""
    os.mkfifo(tmp_path / "pipe")
    for replace in (False, True):
        with pytest.raises(ObjectError):
            store.put("x" if replace else "new", tmp_path / "pipe", replace=replace)
        with pytest.raises(ObjectError):
            store.put("x" if replace else "new", {"name.bin": tmp_path / "pipe"}, replace=replace)
    assert files(store, "x") == {"name.bin": b"old"}
