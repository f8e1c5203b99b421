"""The numbers of a store report: each is that of a script that counts the files, on a disk and in a bucket."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import StoreError
from pressmark.progress_event import EventListener, ProgressEvent
from pressmark.stores import OcflRoot, Store, StoreReport
from pressmark.stores.ocfl import check
from pressmark.stores.reporting import statistics
from pressmark.stores.reporting.statistics import OTHER, Amount, ObjectNumbers, Statistics, most_frequent
from support.in_bucket import ADDRESS, fill, serving
from support.trees import write

from .counting import CASES, USER, Counted, count_objects, make_store, numbers_of

SEEDS = range(4)


@contextmanager
def opened(kind: str, path: Path, is_remote: bool) -> Iterator[Store]:
    """Open a store, on the disk or copied to a bucket, whose keys are written now."""
    if not is_remote:
        yield stores.open(path, kind)
        return
    bucket = MemoryBucket()
    assert fill(bucket, path)
    with serving(bucket):
        yield stores.open(ADDRESS, kind)


def as_json(report: StoreReport) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(json.dumps(report.record()))
    return record


def check_numbers(report: StoreReport, objects: list[Counted | None]) -> None:
    """Compare all numbers of the content with those of these objects."""
    record, expected = as_json(report), numbers_of(objects)
    assert {name: record[name] for name in expected} == expected
    readable = [one for one in objects if one is not None]
    total = max(sum(size for _name, size in one.files) for one in readable)
    assert record["largest_object"]["bytes"] == total
    assert record["largest_object"]["name"] in [
        one.name for one in readable if sum(size for _name, size in one.files) == total
    ]
    files = [(size, f"{one.name}: {name}") for one in readable for name, size in one.files]
    most = max(size for size, _name in files)
    assert record["largest_file"]["bytes"] == most
    assert (most, record["largest_file"]["name"]) in files


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", CASES)
def test_numbers(kind: str, seed: int, tmp_path: Path) -> None:
    path = make_store(kind, tmp_path / "store", seed)
    report = stores.report(stores.open(path))
    check_numbers(report, [*count_objects(kind, path)])
    assert report.ok
    assert (report.kind, report.root, report.audited) == (kind, str(path), None)
    assert report.layout == {"ocfl": "0004-hashed-n-tuple-storage-layout", "bags": None}.get(kind, kind)


@pytest.mark.parametrize("kind", CASES)
def test_numbers_in_a_bucket(kind: str, tmp_path: Path) -> None:
    """The same as on the disk; but files have the times when their keys were written."""
    path = make_store(kind, tmp_path / "store", 7)
    here = as_json(stores.report(stores.open(path)))
    with opened(kind, path, is_remote=True) as store:
        report = stores.report(store, threads=3)
    there = as_json(report)
    if kind in ("pairtree", "vitro"):
        [month] = there["growth"]
        assert (month["objects"], month["files"], month["bytes"]) == (12, here["files"], here["bytes"])
    for name in ("growth",) if kind in ("pairtree", "vitro") else ():
        del here[name], there[name]
    for record in (here, there):
        del record["store"], record["created"]
        if kind == "bags":
            record["growth"] = [one for one in record["growth"] if one["month"] < "2026"]
    if kind == "bags":  # one bag has no date
        assert sum(one["objects"] for one in here.pop("growth")) >= sum(one["objects"] for one in there.pop("growth"))
    assert there == here


@pytest.mark.parametrize("kind", CASES)
def test_requests(kind: str, tmp_path: Path) -> None:
    """A report on a root makes the requests of a check; on other stores, a few for each object, whatever its files."""
    path = make_store(kind, tmp_path / "store", 6)
    bucket = MemoryBucket()
    assert fill(bucket, path)
    calls: Counter[str] = Counter()
    numbers = []
    with serving(bucket):
        store = stores.open(ADDRESS, kind)
        bucket.on_request = lambda call, _key: calls.update([call])
        for run in (store.check, lambda: stores.report(store)):
            run()
            numbers.append({name: count for name, count in calls.items() if not name.endswith("done")})
            calls.clear()
        bucket.on_request = None
    assert not {"put", "delete", "copy"} & numbers[1].keys()
    if kind == "ocfl":
        assert numbers[1] == numbers[0]
    else:
        assert 0 < sum(numbers[1].values()) - sum(numbers[0].values()) <= 6 * 12


def test_damaged_objects_of_a_root(tmp_path: Path) -> None:
    """An object without a readable inventory counts as such; a lost file does not count."""
    path = make_store("ocfl", tmp_path / "store", 5)
    tops = sorted({one.parent for one in path.rglob("0=ocfl_object_*")})
    assert len(tops) == 12
    (tops[0] / "inventory.json").unlink()
    (tops[1] / "inventory.json").write_text("{")
    lost = next(one for one in sorted((tops[2] / "v1" / "content").rglob("*")) if one.is_file())
    lost.unlink()
    write(tops[3] / "v1" / "content", {"strange.xyz": b"more"})
    write(path, {"beside/file": b"x"})
    for is_remote in (False, True):
        with opened("ocfl", path, is_remote) as store:
            report = stores.report(store)
            found = store.check()
        check_numbers(report, [*count_objects("ocfl", path)])
        assert report.statistics.unreadable == 2
        assert report.errors == len(found.errors)
        assert report.warnings == len(found.problems) - len(found.errors)
        assert not report.ok
        for one in report.problems:
            same = [other for other in found.problems if (other.kind, other.severity) == (one.kind, one.severity)]
            assert (one.count, one.path, one.message) == (len(same), same[0].path, same[0].message)
            assert one.remedy
        assert [one.severity for one in report.problems] == sorted(one.severity for one in report.problems)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"id": "urn:a"}',
        '{"manifest": {}, "versions": [], "head": "v1"}',
        '{"manifest": {"a": [["x"]]}, "versions": {"v1": {"state": {"a": ["x"]}}}, "head": "v1"}',
        '{"manifest": {"a": ["x"]}, "versions": {"v1": {"state": {"a": [{}]}}}, "head": "v1"}',
        '{"manifest": {"a": ["x"]}, "versions": {"v1": null, "v2": {"state": {"a": ["y"]}}}, "head": "v2"}',
        '{"manifest": {"a": ["x"]}, "versions": {"one": {"state": {"a": ["y"]}}}, "head": "one"}',
        '{"manifest": null, "versions": {"v1": {"state": {}}}, "head": "v1"}',
    ],
)
def test_malformed_inventories(text: str, tmp_path: Path) -> None:
    """The object counts, and the others are measured."""
    root = OcflRoot.create(tmp_path / "root", layout="0004", durable=False, user=USER)
    root.put("urn:a", {"x": b"1"})
    root.put("urn:b", {"y.txt": b"22"})
    (tmp_path / "root" / root.find("urn:a").path / "inventory.json").write_text(text)
    found = stores.report(root).statistics
    assert (found.objects, found.unreadable, found.files, found.bytes) == (2, 1, 1, 2)


def test_a_mutable_head_does_not_count(tmp_path: Path) -> None:
    root = OcflRoot.create(tmp_path / "root", layout="0004", durable=False, user=USER)
    root.put("urn:a", {"x.txt": b"1"})
    before = as_json(stores.report(root))
    top = tmp_path / "root" / root.find("urn:a").path
    write(top / "extensions" / "0005-mutable-head" / "head" / "content" / "r1", {"new.txt": b"more"})
    after = as_json(stores.report(root))
    assert [one["kind"] for one in after["problems"]] == ["mutable-head"]
    for name in ("problems", "warnings", "created", "ok", "errors"):
        del before[name], after[name]
    assert after == before


def test_dates_that_are_none(tmp_path: Path) -> None:
    """A version without a date counts in no month, but its files count."""
    root = OcflRoot.create(tmp_path / "root", layout="0004", durable=False, user=USER)
    root.put("urn:a", {"x.txt": b"1"}, created="2020-03-31T23:00:00-05:00")
    root.update("urn:a", add={"y.txt": b"22"}, created="2021-01-01T00:00:00Z")
    inventory = tmp_path / "root" / root.find("urn:a").path / "inventory.json"
    inventory.write_text(inventory.read_text().replace("2021-01-01", "last-year"))
    record = as_json(stores.report(root))
    # The month is that of the date as it is written.
    assert record["growth"] == [
        {"month": "2020-03", "objects": 1, "files": 1, "bytes": 1},
        {"month": None, "objects": 0, "files": 1, "bytes": 2},
    ]
    assert record["dates"] == {"unknown": 1}


def test_files_of_other_centuries(tmp_path: Path) -> None:
    """A time of modification that is no date of a calendar with four digits is unknown."""
    store = stores.create("pairtree", tmp_path / "store")
    for number, when in enumerate((0, 253402300800, 1 << 40)):
        store.put(f"object{number}", {"x": b"1"})
        file = next(
            one for one in (tmp_path / "store" / store.find(f"object{number}").path).rglob("*") if one.is_file()
        )
        try:
            os.utime(file, (when, when))
        except OSError:
            pytest.skip("this file system has no such times")
        if int(file.stat().st_mtime) != when:
            pytest.skip("this file system has no such times")
    record = as_json(stores.report(store))
    assert [(one["month"], one["objects"]) for one in record["growth"]] == [("1970-01", 1), (None, 2)]
    assert record["dates"] == {"modified": 1, "unknown": 2}


def test_an_object_that_cannot_be_read(tmp_path: Path) -> None:
    """A link to nothing: the object is unreadable, and the reason is the problem of the check."""
    store = stores.create("pairtree", tmp_path / "store")
    for one in ("aaa", "bbb"):
        store.put(one, {"x.txt": b"1"})
    folder = next(one for one in (tmp_path / "store" / store.find("aaa").path).iterdir() if one.is_dir())
    (folder / "broken").symlink_to("nowhere")
    report = stores.report(store)
    assert (report.statistics.objects, report.statistics.unreadable, report.statistics.files) == (2, 1, 1)
    assert [(one.kind, one.count) for one in report.problems] == [(one.kind, 1) for one in store.check().problems]
    assert not report.ok


@pytest.mark.parametrize("kind", CASES)
def test_an_empty_store(kind: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"layout": "0004"} if kind == "ocfl" else {}
    store = stores.create(kind, tmp_path / "store", **options)
    record = as_json(stores.report(store))
    assert record["ok"]
    assert (record["objects"], record["files"], record["bytes"], record["versions"]) == (0, 0, 0, 0)
    assert record["growth"] == record["formats"] == record["sizes"] == record["versions_per_object"] == []
    assert record["largest_file"] is record["largest_object"] is record["coverage"] is None


def test_an_object_without_files(tmp_path: Path) -> None:
    root = OcflRoot.create(tmp_path / "root", layout="0004", durable=False, user=USER)
    root.put("urn:a", {"x": b""})
    root.update("urn:a", remove=["x"])
    record = as_json(stores.report(root))
    assert (record["objects"], record["files"], record["stored"]["files"]) == (1, 0, 1)
    assert record["sizes"] == [{"from": 0, "below": 1, "files": 0, "file_bytes": 0, "objects": 1, "object_bytes": 0}]
    assert record["largest_file"] is None
    assert record["largest_object"] == {"bytes": 0, "name": "urn:a"}


def test_a_store_that_cannot_be_read(tmp_path: Path) -> None:
    for kind in ("ocfl", "pairtree", "vitro"):
        options: dict[str, Any] = {"layout": "0004"} if kind == "ocfl" else {}
        store = stores.create(kind, tmp_path / kind, **options)
        shutil.rmtree(tmp_path / kind)
        with pytest.raises(StoreError, match="No such file or directory"):
            stores.report(store)


def test_ignored_names(tmp_path: Path) -> None:
    """They are no problems, as in a check."""
    path = make_store("pairtree", tmp_path / "store", 1)
    write(path / "pairtree_root", {"notes.txt": b"x"})
    store = stores.open(path)
    assert [one.kind for one in stores.report(store).problems] == ["root-file"]
    assert stores.report(store, ignore=["notes.txt"]).problems == ()


@pytest.mark.parametrize("kind", CASES)
def test_progress(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects are counted as they are measured, and a cancelled call ends."""
    monkeypatch.setattr(check, "PROGRESS_EVERY", 0)
    store = stores.open(make_store(kind, tmp_path / "store", 2))
    events: list[ProgressEvent] = []
    stores.report(store, progress=EventListener(events.append))
    assert events[-1].items == 12
    assert len({one.items for one in events}) > 3
    progress = pressmark.Progress()
    progress.cancel()
    with pytest.raises(pressmark.Cancelled):
        stores.report(store, progress=progress)


# --- counters ---------------------------------------------------------------------------------------------------------


def of_files(*names: str, sizes: Sequence[int] = ()) -> Statistics:
    """Return the numbers of one object with files."""
    found = ObjectNumbers("object")
    for name, size in zip(names, sizes or [1] * len(names), strict=True):
        found.add_file(name, size)
    total = Statistics()
    total.add(found)
    return total


def test_rare_endings_are_counted_together() -> None:
    """The most frequent endings have numbers of their own, all others have one number."""
    found = of_files(*(f"{number}.e{number}x" for number in range(30)), *["a.tif"] * 3, "b.e7x", "c")
    listed = most_frequent(found.endings)
    assert [*listed][:3] == ["tif", "e7x", ""]
    assert len(listed) == 21
    assert sum(one.number for one in listed.values()) == 35
    assert listed[OTHER] == Amount(12, 12)
    assert most_frequent(of_files("a.b").endings) == {"b": Amount(1, 1)}


def test_endings_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store in which each file has another ending needs no more memory."""
    monkeypatch.setattr(statistics, "_MOST_ENDINGS", 5)
    total = Statistics()
    for number in range(40):
        for ending in (f"e{number}", "e0"):
            one = ObjectNumbers("object")
            one.add_file(f"x.{ending}", 1)
            total.add(one)
    assert len(total.endings) == 6
    assert total.endings["e0"] == Amount(41, 41)
    assert total.endings[OTHER] == Amount(35, 35)
    assert sum(one["files"] for one in total.record()["formats"]) == 80  # type: ignore[attr-defined]


def test_classes_of_sizes() -> None:
    sizes = (0, 1, 999, 1000, 9999, 10_000, 999_999_999_999, 10**12, 10**18)
    found = of_files(*["x"] * len(sizes), sizes=sizes)
    rows = [(one["from"], one["below"], one["files"]) for one in found.record()["sizes"]]  # type: ignore[attr-defined]
    assert rows[:4] == [(0, 1, 1), (1, 1000, 2), (1000, 10_000, 2), (10_000, 100_000, 1)]
    assert rows[-2:] == [(10**11, 10**12, 1), (10**12, None, 2)]
    assert len(rows) == 12


def test_classes_of_versions() -> None:
    total = Statistics()
    for versions in (1, 1, 5, 6, 10, 11, 100, 101, 5000):
        total.add(ObjectNumbers("x", "versions", "2026-01", versions))
    rows = [(one["from"], one["to"], one["objects"]) for one in total.record()["versions_per_object"]]  # type: ignore[attr-defined]
    assert rows == [(1, 1, 2), (5, 5, 1), (6, 10, 2), (11, 20, 1), (51, 100, 1), (101, None, 2)]
    assert total.all_versions == 5235
