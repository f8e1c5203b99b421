"""Migrations from Pairtrees and Vitro stores in a bucket in memory: the result is the same as from a disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from pressmark import migrate, stores
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import StoreError
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from support.in_bucket import ADDRESS, fill, serving
from support.trees import snapshot, write


@pytest.fixture(params=["pairtree", "vitro"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, MemoryBucket]:
    """A store on the disk, and a copy in a bucket."""
    path = tmp_path / request.param
    store = stores.create(request.param, path)
    for number in range(20):
        store.put(f"id:{number}x", {"f +.txt": b"data %d" % number})
    if isinstance(store, PairtreeStore):
        store.put("fixed", {"a/b": b"1", "a/c": b"2", "d": b"3"}, encapsulation="thingy")
        write(path / "pairtree_root", {"fi/xe/d/thingy/deep/none": None, "sp/li/t/two/none": None})
        write(path / "pairtree_root", {"sp/li/t/one": b"1", "sp/li/t/two/three": b"3", "ba/re/file": b"4"})
    bucket = MemoryBucket()
    assert fill(bucket, path)
    return path, bucket


@pytest.mark.parametrize("to", ["ocfl", "pairtree", "vitro", "bags"])
def test_the_same_as_from_a_disk(source: tuple[Path, MemoryBucket], to: str, tmp_path: Path) -> None:
    """All objects, by name and content, with the same digests in the record."""
    path, bucket = source
    if to == "vitro" != path.name:
        pytest.skip("objects of several files")
    results = []
    with serving(bucket):
        for number, place in enumerate((str(path), ADDRESS)):
            target = tmp_path / f"new{number}"
            options = {"layout": "0003"} if to == "ocfl" else {}
            plan = migrate.plan(place, target, to=to, work=tmp_path / f"work{number}", improper="take", **options)  # type: ignore[arg-type]
            run = migrate.run(plan, processes=False, workers=1)
            assert run.by_status == {"ok": len(stores.open(path))}
            rows = {row.id: (row.source, row.target, row.digest, row.encapsulation) for row in run.rows()}
            store = stores.open(target)
            assert [one for one in store.check(digests=True).problems if one.severity == "error"] == []
            found = [
                (record.id, name, stored.read_bytes(name))
                for record in store.objects()
                for stored in [store.locate(record)]
                for name, _path in stored.files()
            ]
            results.append((rows, found, snapshot(target) if to in ("pairtree", "vitro") else {}))
    assert results[0] == results[1]


def test_an_object_that_is_gone(source: tuple[Path, MemoryBucket], tmp_path: Path) -> None:
    """An object that was removed after the plan is reported, and the others are migrated."""
    path, bucket = source
    with serving(bucket):
        plan = migrate.plan(ADDRESS, tmp_path / "new", to="bags", work=tmp_path / "work", improper="take")
        key = next(one for one in bucket.keys if one.endswith(b"f^20^2b.txt" if path.name == "vitro" else b"f +.txt"))
        bucket.delete([key])
        run = migrate.run(plan, processes=False, workers=1)
        assert run.by_status == {"ok": len(stores.open(path)) - 1, "source_missing": 1}
        with pytest.raises(StoreError, match="cannot be written in object storage"):
            migrate.plan(path, ADDRESS, to=path.name, work=tmp_path / "other")
