"""Migrations from and to buckets in memory; :mod:`tests.buckets.test_migrations` runs them on a server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pressmark import bagit, migrate, stores
from pressmark.buckets import remote_content, upload
from pressmark.buckets.address import parse
from pressmark.buckets.bucket import KeyStatus, Part
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import JobError, MigrationError, PressmarkError, StoreError
from pressmark.migrate.planning.planner import make_plan
from pressmark.stores.ocfl.remote import prepared, preparing
from pressmark.stores.ocfl.root import OcflRoot
from support.careless_bucket import CarelessBucket

USER = {"name": "A Curator", "address": "mailto:curator@example.org"}
FILES = {"a.txt": b"one", "deep/b.bin": bytes(range(256)), "empty": b""}
IDS = [f"info:x/{number}" for number in range(5)]
ROOT = "s3://books/root"


@pytest.fixture(autouse=True)
def buckets(monkeypatch: pytest.MonkeyPatch) -> dict[str, CountingBucket]:
    """Buckets by name, which addresses lead to."""
    found: dict[str, CountingBucket] = {}

    def open_bucket(address: str | bytes, *_settings: Any) -> tuple[CountingBucket, bytes]:
        name, prefix = parse(address)
        return found.setdefault(name, new_bucket(name)), prefix

    monkeypatch.setattr("pressmark.buckets.address.open_bucket", open_bucket)
    return found


class CountingBucket(MemoryBucket):
    """A bucket that counts the bytes of content that arrive for each key."""

    def __init__(self) -> None:
        super().__init__()
        self.content: Counter[bytes] = Counter()

    def put(self, key: bytes, data: bytes | memoryview, **how: Any) -> str:
        with self._counted(key, len(data)):
            return super().put(key, data, **how)

    def part(self, key: bytes, upload: str, number: int, data: bytes | memoryview) -> Part:
        with self._counted(key, len(data)):
            return super().part(key, upload, number, data)

    @contextmanager
    def _counted(self, key: bytes, size: int) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:  # on its way
            raise
        except OSError:
            self.content[key] += size if b"/content/" in key else 0
            raise
        self.content[key] += size if b"/content/" in key else 0


def new_bucket(name: str) -> CountingBucket:
    bucket = CountingBucket()
    bucket.url = f"s3://{name}"
    return bucket


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether files are read whole, and sent in one request; or in parts."""
    if request.param == "large":
        monkeypatch.setattr(upload, "PART", 100)
        monkeypatch.setattr(upload, "MIN_PART", 100)
        monkeypatch.setattr(preparing, "WHOLE", 100)
        monkeypatch.setattr(prepared, "WHOLE", 100)
        monkeypatch.setattr(remote_content, "SMALL", 100)
    return str(request.param)


def ocfl(where: Any, ids: list[str] = IDS) -> OcflRoot:
    """Make a storage root whose objects have three versions."""
    root = stores.OcflRoot.create(where, "0004", user=USER)
    for number, one in enumerate(ids):
        root.put(one, FILES)
        root.update(one, add={"new": f"{number}".encode()}, message="Add a file")
        root.update(one, remove=["a.txt"], rename={"deep/b.bin": "moved"})
    return root


def contents(root: Any) -> dict[str, dict[str, bytes]]:
    found = {}
    for record in root.objects():
        one = root.get(record.id)
        found[record.id] = {name: one.read_bytes(name) for name, _path in one.files()}
    return found


def migrated(source: Any, destination: Any, work: Path, **options: Any) -> migrate.Run:
    plan = migrate.plan(str(source), str(destination), work=work, **options)
    assert plan.requests > 0
    return migrate.run(plan, processes=False, workers=1)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def keys_below(bucket: MemoryBucket, prefix: str) -> dict[str, bytes]:
    start = prefix.encode() + b"/"
    return {key[len(start) :].decode(): data for key, data in bucket.keys.items() if key.startswith(start)}


@pytest.mark.parametrize("kind", ["pairtree", "bags", "ocfl"])
def test_from_the_disk(tmp_path: Path, kind: str, size: str) -> None:
    """Objects of any kind of store become objects of a root in a bucket."""
    if kind == "ocfl":
        source: Any = ocfl(tmp_path / "source")
    else:
        source = stores.create(kind, tmp_path / "source")
        for one in IDS:
            source.put(one, FILES)
    run = migrated(source.root, ROOT, tmp_path / "work", to="ocfl", layout="0004", verify="reread")
    assert (run.by_status, run.complete) == ({"ok": 5}, True)
    there = stores.OcflRoot(ROOT)
    assert there.check(digests=True).errors == []
    if kind != "bags":
        assert contents(there) == contents(source)
    assert {len(there.versions(one)) for one in IDS} == {3 if kind == "ocfl" else 1}


def test_all_versions_stay_as_they_are(tmp_path: Path, buckets: dict[str, CountingBucket], size: str) -> None:
    """From root to root, each byte is the same: on the disk, in a bucket, in another bucket, and on the disk again."""
    ocfl(tmp_path / "source")
    places = [tmp_path / "source", ROOT, "s3://other", tmp_path / "back"]
    for number, (one, other) in enumerate(pairwise(places)):
        run = migrated(one, other, tmp_path / f"work{number}", to="ocfl", layout="0003")
        assert (run.by_status, run.complete) == ({"ok": 5}, True)
    expected = tree(tmp_path / "source")
    names = {name.rpartition("/")[2]: data for name, data in expected.items()}
    assert contents(stores.OcflRoot(tmp_path / "back")) == contents(stores.OcflRoot(tmp_path / "source"))
    objects = [path for path in expected if "inventory.json" in path or "content" in path]
    back = tree(tmp_path / "back")
    assert len(back) == len(expected)
    assert {path.rpartition("/")[2] for path in back} == names.keys()
    assert sorted(expected[path] for path in objects) == sorted(
        data for path, data in back.items() if "inventory.json" in path or "content" in path
    )
    for place in places[1:]:
        assert stores.OcflRoot(place).check(digests=True).errors == []


@pytest.mark.parametrize("to", ["pairtree", "bags", "ocfl"])
def test_to_the_disk(tmp_path: Path, to: str, size: str) -> None:
    source = ocfl(ROOT)
    how = {"layout": "0003"} if to == "ocfl" else {}
    run = migrated(ROOT, tmp_path / "there", tmp_path / "work", to=to, verify="reread", **how)
    assert (run.by_status, run.complete) == ({"ok": 5}, True)
    assert contents(stores.open(tmp_path / "there")) == contents(source)
    assert migrate.verify(tmp_path / "work", processes=False).complete


@pytest.mark.parametrize("to", ["ocfl", "bags", "pairtree"])
def test_from_a_folder_of_bags(tmp_path: Path, to: str) -> None:
    """Bags in a bucket, trees and archives, are migrated as from a disk."""
    (tmp_path / "in" / "d").mkdir(parents=True)
    (tmp_path / "in" / "d" / "a.txt").write_bytes(b"a")
    bags = stores.create("bags", tmp_path / "bags")
    # Packed from one bag: an archive keeps the times of its files.
    two = bagit.create(tmp_path / "in", tmp_path / "two", info={"External-Identifier": "id:2"})
    for place, name in (("s3://books/bags", "s3://books/bags/one"), (bags.root, str(tmp_path / "bags" / "one"))):
        bagit.create(tmp_path / "in", name, info={"External-Identifier": "id:1"})
        bagit.pack(two, f"{place}/two.tar.gz")
    found = []
    for number, source in enumerate((bags.root, "s3://books/bags")):
        there = tmp_path / f"there{number}"
        how = {"layout": "0003"} if to == "ocfl" else {}
        plan = migrate.plan(source, there, to=to, work=tmp_path / f"work{number}", **how)
        run = migrate.run(plan, processes=False)
        assert (run.by_status, run.complete) == ({"ok": 2}, True)
        assert migrate.verify(plan, processes=False).complete
        found.append(contents(stores.open(there)))
    assert found[0] == found[1]


def test_a_catch_up(tmp_path: Path) -> None:
    """New objects and new versions follow, and nothing else."""
    source = ocfl(tmp_path / "source")
    migrated(source.root, ROOT, tmp_path / "work", to="ocfl", layout="0004")
    source.update(IDS[0], add={"more": b"more"})
    source.put("info:x/new", FILES)
    plan = migrate.catch_up(tmp_path / "work", work=tmp_path / "work2")
    assert plan.objects == 2
    run = migrate.run(plan, processes=False)
    assert (run.by_status, run.complete) == ({"ok": 2}, True)
    assert contents(stores.OcflRoot(ROOT)) == contents(source)
    assert len(stores.OcflRoot(ROOT).versions(IDS[0])) == 4
    assert stores.OcflRoot(ROOT).check(digests=True).errors == []


def test_a_catch_up_from_a_bucket(tmp_path: Path) -> None:
    source = ocfl(ROOT)
    migrated(ROOT, tmp_path / "there", tmp_path / "work", to="ocfl", layout="0004")
    source.update(IDS[0], add={"more": b"more"})
    plan = migrate.catch_up(tmp_path / "work", work=tmp_path / "work2")
    assert plan.objects == 1
    assert migrate.run(plan, processes=False).by_status == {"ok": 1}
    assert contents(stores.OcflRoot(tmp_path / "there")) == contents(source)


@pytest.mark.parametrize(("one", "other"), [("source", ROOT), (ROOT, "there"), (ROOT, "s3://other/there")])
def test_a_move(tmp_path: Path, buckets: dict[str, CountingBucket], one: str, other: str) -> None:
    """Sources are removed once their copies are verified."""
    source, there = (place if place.startswith("s3:") else str(tmp_path / place) for place in (one, other))
    expected = contents(ocfl(source))
    run = migrated(source, there, tmp_path / "work", to="ocfl", layout="0004", move=True)
    assert (run.by_status, run.complete, run.kept) == ({"ok": 5}, True, 0)
    assert contents(stores.OcflRoot(there)) == expected
    assert list(stores.OcflRoot(source).objects()) == []
    for place in (source, there):
        assert stores.OcflRoot(place).check(digests=True).errors == []


def test_objects_that_exist(tmp_path: Path) -> None:
    """An object that is there is compared, and replaced only if that is asked for."""
    source = stores.create("pairtree", tmp_path / "source")
    for one in IDS[:3]:
        source.put(one, FILES)
    root = stores.OcflRoot.create(ROOT, "0004", user=USER)
    root.put(IDS[0], FILES)
    root.put(IDS[1], {"other": b"other"})
    run = migrated(source.root, ROOT, tmp_path / "work", to="ocfl")
    assert run.by_status == {"exists_same": 1, "exists_different": 1, "ok": 1}
    run = migrated(source.root, ROOT, tmp_path / "work2", to="ocfl", replace=True)
    assert run.by_status == {"exists_same": 2, "ok": 1}
    assert contents(root) == contents(source)
    assert root.check(digests=True).errors == []


def test_digests_of_the_server(tmp_path: Path, buckets: dict[str, CountingBucket]) -> None:
    """Kept digests are compared without reading content; without one, the object is not verified."""
    source = ocfl(tmp_path / "source")
    run = migrated(source.root, ROOT, tmp_path / "work", to="ocfl", layout="0004", verify="stored")
    assert (run.by_status, run.complete) == ({"ok": 5}, True)
    assert {row.verify for row in run.rows()} == {"stored"}

    class Forgetful(CountingBucket):
        def head(self, key: bytes) -> KeyStatus:
            return super().head(key)._replace(digests={})

    buckets["books"] = Forgetful()
    buckets["books"].url = "s3://books"
    run = migrated(source.root, ROOT, tmp_path / "work2", to="ocfl", layout="0004", verify="stored")
    assert run.by_status == {"unverified": 5}
    assert all("the server keeps no sha512 digest of" in str(row.error) for row in run.rows())
    with pytest.raises(MigrationError, match="a disk keeps no digests"):
        migrate.plan(ROOT, tmp_path / "there", to="pairtree", work=tmp_path / "work3", verify="stored")
    with pytest.raises(MigrationError, match="object storage does not support reflink"):
        migrate.plan(ROOT, tmp_path / "there", to="pairtree", work=tmp_path / "work3", copy_mode="reflink")


def test_damage_in_a_bucket(tmp_path: Path, buckets: dict[str, CountingBucket]) -> None:
    """An object with wrong content is reported, and the others are migrated."""
    ocfl(ROOT)
    [wrong] = [key for key in buckets["books"].keys if key.endswith(b"content/new")][2:3]
    buckets["books"].put_as_other(wrong, b"x")
    run = migrated(ROOT, tmp_path / "there", tmp_path / "work", to="ocfl", layout="0004")
    assert run.by_status["ok"] == 4
    [row] = [row for row in run.rows() if row.status != "ok"]
    assert row.status == "digest_mismatch"
    assert stores.OcflRoot(tmp_path / "there").check(digests=True).errors == []


def test_what_is_refused(tmp_path: Path) -> None:
    source = ocfl(tmp_path / "source", IDS[:1])
    for to in ("pairtree", "vitro", "bags"):
        with pytest.raises(StoreError, match=f"a store of kind {to} cannot be written in object storage"):
            migrate.plan(source.root, "s3://books/new", to=to, work=tmp_path / "work")
    with pytest.raises(StoreError, match="the work folder cannot be in object storage"):
        migrate.plan(source.root, ROOT, to="ocfl", layout="0004", work="s3://books/work")
    ocfl(ROOT, IDS[:1])
    for one, other in ((ROOT, ROOT), (ROOT, f"{ROOT}/below"), (f"{ROOT}/x", ROOT)):
        with pytest.raises(PressmarkError, match=r"same directory|inside|not a storage root|no such|0=ocfl"):
            migrate.plan(one, other, to="ocfl", layout="0004", work=tmp_path / "work")


def test_a_kill_at_every_request(tmp_path: Path, buckets: dict[str, CountingBucket], size: str) -> None:
    """An object of three versions is in the bucket whole or not at all; the next run ends it."""
    source = ocfl(tmp_path / "source", IDS[:1])
    expected = contents(source)
    number = 0
    while True:
        number += 1
        buckets.clear()
        bucket = buckets["books"] = new_bucket("books")
        stores.OcflRoot.create(ROOT, "0004", user=USER)
        plan = migrate.plan(source.root, ROOT, to="ocfl", work=tmp_path / f"work{number}")
        asked = iter(range(10**6))

        def kill(_call: str, key: bytes, asked: Iterator[int] = asked, number: int = number) -> None:
            if next(asked) >= number:
                raise KeyboardInterrupt

        bucket.on_request = kill
        try:
            migrate.run(plan, processes=False, workers=1)
        except KeyboardInterrupt:
            is_killed = True
        else:
            is_killed = False
        bucket.on_request = None
        assert contents(stores.OcflRoot(ROOT)) in ({}, expected)
        if not is_killed:
            break
        run = migrate.resume(plan, processes=False)
        assert run.complete, number
        # Content is not sent again, only what was on its way.
        assert sum(bucket.content.values()) <= 260, number
        assert set(run.by_status) <= {"ok", "exists_same"}, (number, [row.error for row in run.rows()])
        root = stores.OcflRoot(ROOT)
        root.repair(alone=True)
        assert contents(root) == expected
        assert root.check(digests=True).errors == []
    assert number > 10


@pytest.mark.parametrize(
    ("source", "destination", "options"),
    [
        ("disk", ROOT, {}),
        ("disk", ROOT, {"verify": "stored"}),
        (ROOT, "disk", {"to": "pairtree"}),
        (ROOT, "disk", {"move": True}),
        (ROOT, "s3://other", {"verify": "reread"}),
        (ROOT, "s3://other", {"move": True}),
    ],
)
def test_the_number_of_requests(
    tmp_path: Path, buckets: dict[str, CountingBucket], source: str, destination: str, options: dict[str, Any]
) -> None:
    """A plan says about how many requests its run sends."""
    places = [place if place.startswith("s3:") else str(tmp_path / place) for place in (source, destination)]
    ocfl(places[0], [f"info:x/{number}" for number in range(20)])
    options = {"to": "ocfl", **options}
    if options["to"] == "ocfl":
        options["layout"] = "0004"
    plan = migrate.plan(*places, work=tmp_path / "work", **options)
    before = sum(bucket.requests for bucket in buckets.values())
    assert migrate.run(plan, processes=False, workers=1).by_status == {"ok": 20}
    sent = sum(bucket.requests for bucket in buckets.values()) - before
    # Content of other versions is read, too, and inventories need no digest.
    assert 0.6 * sent <= plan.requests <= 1.6 * sent, sent


def test_copies_on_the_server(
    tmp_path: Path, buckets: dict[str, CountingBucket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Content does not leave a server that knows the digests of source and copy; otherwise it is read."""
    monkeypatch.setattr(preparing, "SMALL", -1)
    source = ocfl(ROOT)
    expected = contents(source)
    there = buckets["other"] = new_bucket("other")
    buckets["books"].received = 0
    run = migrated(ROOT, "s3://other/there", tmp_path / "work", to="ocfl", layout="0003", verify="stored")
    assert (run.by_status, run.complete) == ({"ok": 5}, True)
    assert there.content.total() == 0
    assert contents(stores.OcflRoot("s3://other/there")) == expected
    assert stores.OcflRoot("s3://other/there").check(digests=True).errors == []

    class Forgetful(CountingBucket):
        def head(self, key: bytes) -> KeyStatus:
            return super().head(key)._replace(digests={})

    for bucket in (Forgetful(), CountingBucket()):
        bucket.server = "memory" if isinstance(bucket, Forgetful) else "another"
        bucket.url = "s3://other"
        buckets["other"] = bucket
        run = migrated(ROOT, "s3://other/there", tmp_path / f"work{bucket.server}", to="ocfl", layout="0003")
        assert (run.by_status, run.complete) == ({"ok": 5}, True)
        assert bucket.content.total() > 0
        assert contents(stores.OcflRoot("s3://other/there")) == expected
        assert stores.OcflRoot("s3://other/there").check(digests=True).errors == []


@pytest.mark.parametrize("move", [False, True])
@pytest.mark.parametrize("kind", ["pairtree", "ocfl"])
def test_the_requests_of_an_object(
    tmp_path: Path, buckets: dict[str, CountingBucket], kind: str, move: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a plan and a run ask of the source grows by so many requests for each object."""
    if kind == "pairtree" and move:
        pytest.skip("read-only")
    asked: list[Counter[str]] = []
    for number in (10, 20):
        buckets["books"] = bucket = new_bucket("books")
        ids = [f"info:x/{one}" for one in range(10, 10 + number)]
        if kind == "ocfl":
            ocfl(ROOT, ids)
        else:
            store = stores.create("pairtree", tmp_path / f"source{number}")
            for one in ids:
                store.put(one, FILES)
            for path, data in tree(tmp_path / f"source{number}").items():
                bucket.put(f"root/{path}".encode(), data)
        for phase in ("plan", "run"):
            calls: Counter[str] = Counter()
            asked.append(calls)
            bucket.on_request = lambda call, _key, calls=calls: calls.update([call])  # type: ignore[misc]
            if phase == "plan":
                work = tmp_path / f"work{number}"
                plan = migrate.plan(
                    ROOT, str(tmp_path / f"there{number}"), to="ocfl", layout="0004", work=work, move=move
                )
            else:
                assert migrate.run(plan, processes=False, workers=1).by_status == {"ok": number}
    planned, run = ({call: n / 10 for call, n in (asked[2 + one] - asked[one]).items()} for one in (0, 1))
    # Its inventory and all its keys; the others are of the walk.
    assert planned["list"] < 2
    if kind == "pairtree":  # its directory, and its keys before they are read and after
        assert run == {"list": 3, "get": 3}
    elif not move:  # its inventory for the algorithm, then each of its thirteen keys
        assert run == {"list": 1, "get": 14}
    else:
        assert {call: n for call, n in run.items() if "done" not in call} == {
            **{"list": 5, "get": 16, "put": 1, "head": 1, "delete": 4}
        }


@pytest.mark.parametrize("late", ["after the copy", "while it is removed"])
@pytest.mark.parametrize("change", ["new key", "other content"])
def test_a_source_that_changes(tmp_path: Path, buckets: dict[str, CountingBucket], change: str, late: str) -> None:
    """A source that another program changes after it was copied is kept."""
    ocfl(ROOT, IDS[:2])
    bucket = buckets["books"]
    content = next(key for key in bucket.keys if key.endswith(b"content/new"))
    changed = content + b"er" if change == "new key" else content
    top = content[: content.index(b"/v")]
    there = buckets["other"] = new_bucket("other")
    plan = migrate.plan(ROOT, "s3://other/there", to="ocfl", layout="0004", work=tmp_path / "work", move=True)

    def interfere(call: str, key: bytes) -> None:
        # The last key of an object in the destination; the look whether it is there, just before the source is removed.
        is_copied = call == "put" and key.endswith(top.rpartition(b"/")[2] + b"/0=ocfl_object_1.1")
        is_checked = call == "get" and key.endswith(top.rpartition(b"/")[2] + b"/inventory.json")
        if is_checked if late == "while it is removed" else is_copied:
            bucket.put_as_other(changed, b"changed")

    there.on_request = interfere
    run = migrate.run(plan, processes=False, workers=1)
    assert (run.by_status, run.kept) == ({"ok": 2}, 1)
    [row] = [row for row in run.rows() if row.error]
    assert row.error == "source kept: changed after it was copied; migrate the object again"
    assert len([key for key in bucket.keys if key.startswith(top)]) == 13 + (change == "new key")
    assert len(list(stores.OcflRoot("s3://other/there").objects())) == 2


@pytest.mark.parametrize("is_there", [False, True])
def test_a_run_that_is_refused(tmp_path: Path, buckets: dict[str, CountingBucket], is_there: bool) -> None:
    """A server that ignores conditions: nothing stays, and another plan takes the place of the first."""

    class Lying(CarelessBucket, CountingBucket):
        pass

    buckets["books"] = bucket = Lying()
    bucket.url = "s3://books"
    source = ocfl(tmp_path / "source", IDS[:2])
    if is_there:
        stores.OcflRoot.create(ROOT, "0004", claims=True)
    before = bucket.keys
    how: dict[str, Any] = {"to": "ocfl", "layout": "0004", "work": tmp_path / "work"}
    plan = migrate.plan(source.root, ROOT, **how)
    for start in (migrate.run, migrate.resume):
        with pytest.raises(MigrationError, match="the server ignores conditions"):
            start(plan, processes=False)
        assert (migrate.state(plan.work), bucket.keys) == ("planned", before)
    run = migrated(source.root, ROOT, **how, destination_options={"claims": True})
    assert run.by_status == {"ok": 2}


@pytest.mark.parametrize(
    ("source", "destination", "options"),
    [
        ("disk", ROOT, {"to": "ocfl", "layout": "0004"}),
        ("disk", ROOT, {"to": "ocfl", "layout": "0004", "verify": "reread"}),
        (ROOT, "disk", {"to": "pairtree"}),
        (ROOT, "disk", {"to": "ocfl", "layout": "0003", "move": True}),
    ],
)
def test_a_server_that_is_gone(
    tmp_path: Path, buckets: dict[str, CountingBucket], source: str, destination: str, options: dict[str, Any]
) -> None:
    """The run ends with one error: no other object begins, those that are done are kept, and a resumed run ends."""
    places = [place if place.startswith("s3:") else str(tmp_path / place) for place in (source, destination)]
    ids = [f"info:x/{number}" for number in range(24)]
    expected = contents(ocfl(places[0], ids))
    plan = make_plan(migrate.make_options(*places, **options), chunk_objects=2, work=tmp_path / "work")
    assert plan.chunks > 6
    bucket = buckets["books"]
    begin = bucket.requests

    def fall_silent(_call: str, _key: bytes) -> None:
        if bucket.requests > begin + wanted:
            raise StoreError(bucket.url, "no request was answered") from TimeoutError("silent")

    # As many requests as about half of the run sends.
    wanted = plan.requests // 2
    bucket.on_request = fall_silent
    with pytest.raises(JobError, match="'s3://books': no request was answered"):
        migrate.run(plan, processes=False, workers=1)
    # Each thread of the chunk that ran may have asked once more, or tidied up.
    assert bucket.requests < begin + wanted + 60
    bucket.on_request = None
    done = migrate.resume(plan, processes=False, workers=1)
    assert done.complete
    assert set(done.by_status) <= {"ok", "exists_same"}
    assert done.processed < len(ids)
    assert contents(stores.open(places[1])) == expected
