"""Many bags at once: equal to those of put, prepared with few checks, and never a second one for an identifier."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark.errors import ObjectError
from pressmark.fixity import Outcome, copying
from pressmark.fixity.outcomes import failed_outcome
from pressmark.stores import IngestResult, StoreObject, object_sources
from pressmark.stores.bags import walk as bag_walk
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.bags.new_bag import BagCopy
from support.implementations import Implementation, use
from support.trees import write

from .test_bag_index import bag, is_missing

Result = IngestResult[StoreObject]

SOURCES: dict[str, dict[str | bytes, bytes | None]] = {
    "small": {"a.xml": b"a" * 1000, "b.tif": b"b" * 10_000},
    "nested": {"a/b/c": b"1", "a-b": b"2", "a/d": b"3", "z": b"4"},
    "names": {"100%.txt": b"1", "\u00e4": b"2", "a b": b"3"},
    "equal": {"a": b"same", "b": b"same"},
    "empty directory": {"a": b"1", "sub": None},
    "large": {"a": bytes(200_000)},
    "many": {f"{number:02}": b"%d" % number for number in range(20)},
    "tilde": {"~name": b"1", "b": b"2"},
}
IDENTIFIERS = {name: f"ark:/1/{name.replace(' ', '')}" for name in SOURCES}


@pytest.fixture
def given(tmp_path: Path) -> Path:
    """The sources."""
    for number, (name, files) in enumerate(SOURCES.items()):
        write(tmp_path / "given" / name, files)
        for path in sorted((tmp_path / "given" / name).rglob("*"), reverse=True):
            os.utime(path, (number, number * 1000))
            os.chmod(path, 0o755 if path.is_dir() else 0o640)
        os.utime(tmp_path / "given" / name, (1, 2))
    return tmp_path / "given"


def files(folder: Path) -> dict[str, Any]:
    """Return permission bits, times of the payload and content of all files."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        status = path.stat()
        times = status.st_mtime_ns if "/data" in f"/{name}" else None
        found[name] = (status.st_mode, times, path.read_bytes() if path.is_file() else None)
    return found


@pytest.mark.parametrize("manner", [{}, {"layout": pressmark.layout("0004")}, {"identifiers": "name"}])
def test_bags_equal_those_of_put(
    tmp_path: Path, given: Path, manner: dict[str, Any], implementations: list[Implementation]
) -> None:
    """The same bytes, permission bits, times and records, whichever way a bag is made; most small ones in one call."""
    for implementation in implementations:
        with use(implementation):
            one = BagFolder.create(tmp_path / f"{implementation}-one", **manner, info={"Source-Organization": "A B"})
            many = BagFolder.create(tmp_path / f"{implementation}-many", **manner, info={"Source-Organization": "A B"})
            identifiers = {name: name if "identifiers" in manner else IDENTIFIERS[name] for name in SOURCES}
            records = [one.put(identifiers[name], given / name, copy_mode="copy") for name in SOURCES]
            results: list[Result] = []
            with many.ingest(copy_mode="copy", results=results) as batch:
                for name in SOURCES:
                    batch.put(identifiers[name], given / name)
            assert [result.record for result in results] == records
            assert files(Path(one.root)) == files(Path(many.root))
            assert many.check(digests=True).problems == []


@pytest.mark.parametrize("change", ["content", "added", "removed", "failed"])
@pytest.mark.parametrize("name", ["large", "names"])
def test_a_source_that_changes(
    tmp_path: Path, given: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: str
) -> None:
    """No bag is stored, whether the source is listed with others or walked; the next put stores what is there then."""
    source = given / name
    (source / "b").write_bytes(b"2")

    def copied(tasks: Any, *rest: Any, **more: Any) -> Iterator[tuple[Any, Outcome]]:
        outcomes = list(copying.copy_files(tasks, *rest, **more))
        if change == "failed":
            key, outcome = outcomes[1]
            outcomes[1] = key, failed_outcome(outcome.path, "unreadable", 5)
        elif change == "removed":
            (source / "b").unlink()
        else:
            (source / ("b" if change == "content" else "c")).write_bytes(b"other")
        yield from outcomes

    store = BagFolder.create(tmp_path / "store")
    with monkeypatch.context() as patch:
        patch.setattr(object_sources, "copy_files", copied)
        with pytest.raises(ObjectError) as refused:
            store.put("x:1", source)
    assert refused.value.kind == ("unreadable" if change == "failed" else "changed-while-read")
    assert is_missing(store, "x:1")
    store.put("x:1", source)
    now = {path.name: path.read_bytes() for path in source.iterdir()}
    assert {path.name: path.read_bytes() for path in Path(store.root, "x+1", "data").iterdir()} == now
    assert store.check(digests=True).problems == []


def test_a_bag_of_another_program_between(tmp_path: Path, given: Path) -> None:
    """A bag that appears after an object was prepared is found, whatever its name; a file there is a collision."""
    store = BagFolder.create(tmp_path / "store")
    results: list[Result] = []
    with store.ingest(results=results) as batch:
        for name in ("a", "b", "c", "d"):
            batch.put(f"x:{name}", given / "small")
        bag(Path(store.root, "foreign"), "x:a")
        bag(Path(store.root, "x+b"), "x:b")
        Path(store.root, "x+c").write_bytes(b"")
        assert not is_missing(store, "x:a")  # otherwise it might be too new
    errors = [getattr(result.error, "kind", None) for result in results]
    assert errors == ["exists", "exists", "collision", None]
    assert sorted(os.listdir(store.root)) == [".pressmark-bags.json", "foreign", "x+b", "x+c", "x+d"]
    assert store.get("x:a").bag_path.endswith("/foreign")


def test_a_batch_writes_one_index(tmp_path: Path, given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a batch, the next process knows all bags without reading them."""
    store = BagFolder.create(tmp_path / "store")
    with store.ingest() as batch:
        for number in range(60):
            batch.put(f"x:{number}", given / "small")
    assert (tmp_path / "store" / ".pressmark-work" / "index").exists()
    monkeypatch.setattr(bag_walk, "read_tag_files", lambda *_arguments: pytest.fail("read"))
    with pytest.raises(ObjectError, match="no bag"):
        BagFolder(tmp_path / "store").get("none")


def test_a_source_around_the_folder(tmp_path: Path, given: Path) -> None:
    """A small source that contains the folder is refused."""
    store = BagFolder.create(given / "small" / "store")
    results: list[Result] = []
    with store.ingest(copy_mode="copy", results=results) as batch:
        batch.put("x:1", given / "small")
    assert "cannot copy a directory into itself" in str(results[0].error)
    assert is_missing(store, "x:1")


def test_a_bag_that_cannot_be_written(tmp_path: Path, given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the disk is that of the object, and nothing is left of it."""
    store = BagFolder.create(tmp_path / "store")

    finish = BagCopy.finish

    def full(copy: BagCopy) -> None:
        if not isinstance(copy.source, dict):
            raise OSError(28, os.strerror(28))
        finish(copy)

    results: list[Result] = []
    with monkeypatch.context() as patch, store.ingest(copy_mode="copy", results=results) as batch:
        patch.setattr(BagCopy, "finish", full)
        batch.put("x:1", given / "small")
        batch.put("x:2", {"a": io.BytesIO(b"1")})
    assert [getattr(result.error, "kind", None) for result in results] == ["no-space", None]
    assert sorted(os.listdir(store.root)) == [".pressmark-bags.json", "x+2"]
