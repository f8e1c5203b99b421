"""A folder of bags in object storage: what is read of it is what is read of the same folder on a disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from bagit.archive.packing import FORMATS, pack
from bagit.bags import PAYLOAD, Sketch
from pressmark import bagit, stores
from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import DamagedObjectError, ObjectError, StoreError
from pressmark.reports import Report
from pressmark.stores import BagFolder
from support.memory_addresses import put_tree, use_memory

FOLDER = "s3://memory/shelf/bags"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> MemoryBucket:
    """An empty bucket that the addresses of this module lead to."""
    return use_memory(monkeypatch)


@pytest.fixture
def local(tmp_path: Path, bucket: MemoryBucket) -> Path:
    """A folder of bags, and its copy in the bucket."""
    folder = tmp_path / "bags"
    Sketch(info=b"External-Identifier: id:1\nPayload-Oxum: 20.2\n").write(folder / "one")
    Sketch().write(folder / "without")
    Sketch(info=b"External-Identifier: id:3\n").write(folder / "shelf" / "deep")
    Sketch(info=b"External-Identifier: id:1\n").write(folder / "twice")
    Sketch(info=b"External-Identifier: a\nExternal-Identifier: b\n").write(folder / "several")
    damaged = Sketch(info=b"External-Identifier: id:5\n").write(folder / "damaged")
    (damaged / "data" / "a.txt").write_bytes(b"ALPHA\n")
    lacking = Sketch(info=b"External-Identifier: id:6\n").write(folder / "lacking")
    (lacking / "bagit.txt").unlink()
    (lacking / "data" / "b" / "c.txt").unlink()
    for ending in FORMATS:
        pack(
            Sketch(info=b"External-Identifier: id:%b\n" % ending.encode()).write(tmp_path / ending),
            folder / f"x.{ending}",
        )
    (folder / "broken.zip").write_bytes(b"PK\3\4 broken")
    (folder / "beside.txt").write_bytes(b"beside")
    (folder / ".DS_Store").write_bytes(b"")
    put_tree(bucket, folder, "shelf/bags")
    return folder


def listed(folder: BagFolder, **options: Any) -> tuple[list[tuple[Any, ...]], list[tuple[str, str]]]:
    problems: list[Any] = []
    records = [
        (one.id, one.path, one.proper, sorted((found.kind, found.path, found.message) for found in one.problems))
        for one in folder.objects(problems=problems, **options)
    ]
    return records, sorted((one.kind, one.path) for one in problems)


def found(report: Report) -> tuple[list[tuple[str, str, str]], dict[str, int]]:
    return sorted((one.kind, one.severity, one.path) for one in report.problems), report.counts


def test_objects(local: Path) -> None:
    """Identifiers, paths and problems are those of the folder on the disk, in the same order."""
    assert listed(BagFolder(FOLDER)) == listed(BagFolder(local))
    assert listed(BagFolder(FOLDER), ignore=["shelf"]) == listed(BagFolder(local), ignore=["shelf"])
    by_name = {"identifiers": "name"}
    assert listed(BagFolder(FOLDER, **by_name)) == listed(BagFolder(local, **by_name))  # type: ignore[arg-type]


@pytest.mark.parametrize("digests", [False, True])
def test_check(local: Path, digests: bool) -> None:
    """A check finds what it finds on the disk; without digests, no payload is read."""
    assert found(BagFolder(FOLDER).check(digests=digests)) == found(BagFolder(local).check(digests=digests))


def test_a_check_without_digests_reads_no_payload(bucket: MemoryBucket, tmp_path: Path) -> None:
    payload = {b"data/large": bytes(1 << 20)}
    put_tree(bucket, Sketch(payload=payload, info=None).write(tmp_path / "bags" / "one"), "shelf/bags/one")
    bucket.received = 0
    assert BagFolder(FOLDER).check().ok
    assert bucket.received < 10_000


def test_listing_reads_small_files_only(bucket: MemoryBucket, tmp_path: Path) -> None:
    """A listing costs three requests a bag, whatever is in it."""
    payload = {b"data/%d/%d" % (n % 5, n): b"" for n in range(50)}
    for number in range(20):
        put_tree(bucket, Sketch(payload=payload, info=b"A: b\n").write(tmp_path / str(number)), f"shelf/bags/{number}")
    bucket.requests = 0
    assert len(list(BagFolder(FOLDER).objects())) == 20
    assert bucket.requests <= 2 + 3 * 20


@pytest.mark.parametrize("id", ["id:3", "without", *(f"id:{ending}" for ending in FORMATS)])
def test_one_bag(local: Path, id: str, tmp_path: Path) -> None:
    """Each bag is found by its identifier; its files are listed, read and copied, and compared with their digests."""
    remote, expected = BagFolder(FOLDER).get(id), BagFolder(local).get(id)
    names = [name for name, _path in expected.files()]
    assert [name for name, _path in remote.files()] == names
    for name in names:
        assert remote.read_bytes(name) == expected.read_bytes(name)
    with pytest.raises(ObjectError, match="not found in the object"):
        remote.read_bytes("none")
    with pytest.raises(ObjectError, match="not found in the object"):
        remote.read_bytes("../bagit.txt", verify=False)
    remote.copy_to(tmp_path / "remote")
    expected.copy_to(tmp_path / "expected")
    assert _files(tmp_path / "remote") == _files(tmp_path / "expected")
    assert remote.bag().info.elements == expected.bag().info.elements
    record = BagFolder(FOLDER).find(id)
    assert BagFolder(FOLDER).locate(record).read_bytes(names[0]) == expected.read_bytes(names[0])


def _files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_damaged_bags(local: Path, tmp_path: Path, bucket: MemoryBucket) -> None:
    """Damaged content is never returned as verified, and no part of a copy stays."""
    folder = BagFolder(FOLDER)
    damaged = folder.get("id:5")
    with pytest.raises(DamagedObjectError, match=r"not match its sha512 digest .* \(verify=False\)"):
        damaged.read_bytes("a.txt")
    assert damaged.read_bytes("a.txt", verify=False) == b"ALPHA\n"
    assert damaged.read_bytes("b/c.txt") == PAYLOAD[b"data/b/c.txt"]
    with pytest.raises(DamagedObjectError):
        damaged.copy_to(tmp_path / "copy")
    assert not os.path.lexists(tmp_path / "copy")
    key = b"shelf/bags/x.zip"
    archive = folder.get("id:zip")
    bucket.put(key, bucket.keys[key].replace(b"data/a.txt", b"data/A.txt"), over=ANY)
    with pytest.raises(DamagedObjectError):
        archive.copy_to(tmp_path / "copy")


def test_missing(local: Path) -> None:
    """An identifier that no bag has, and one that several have."""
    folder = BagFolder(FOLDER)
    with pytest.raises(ObjectError, match="no bag with this identifier found"):
        folder.get("none")
    with pytest.raises(ObjectError) as raised:
        folder.get("id:1")
    assert raised.value.kind == "duplicate-id"
    assert folder.at("shelf/deep") is not None
    assert folder.at("shelf") is None
    assert folder.at("../bags/one") is None


def test_a_layout(tmp_path: Path, bucket: MemoryBucket) -> None:
    """The folder's own setting decides, and bags are found by their paths."""
    local = BagFolder.create(tmp_path / "bags", "0002")
    local.put("abc", {"a.txt": b"a"})
    put_tree(bucket, tmp_path / "bags", "shelf/bags")
    remote = stores.open(FOLDER)
    assert isinstance(remote, BagFolder)
    assert remote.identifiers == "layout"
    bucket.requests = 0
    assert remote.get("abc").read_bytes("a.txt") == b"a"
    assert bucket.requests <= 20


def test_kinds(local: Path, bucket: MemoryBucket) -> None:
    """A folder of bags is recognized by its bags, or by its own file."""
    assert stores.kind_of(FOLDER) == "bags"
    assert stores.kind_of(FOLDER + "/shelf") == "bags"
    with pytest.raises(StoreError, match="a bag, not a store; use pressmark bag"):
        stores.kind_of(FOLDER + "/one")
    assert stores.kind_of("s3://memory/none") == "ocfl"
    bucket.put(b"root/0=ocfl_1.1", b"ocfl_1.1\n")
    assert stores.kind_of("s3://memory/root") == "ocfl"
    bucket.put(b"empty/.pressmark-bags.json", b'{"identifiers": "name", "layout": null}')
    assert stores.kind_of("s3://memory/empty") == "bags"
    assert list(stores.open("s3://memory/empty").objects()) == []


def test_changes_are_refused(local: Path, bucket: MemoryBucket, tmp_path: Path) -> None:
    """Everything that changes a folder names the reason in one line, and changes nothing."""
    keys = bucket.keys
    folder = BagFolder(FOLDER)
    for call in (
        lambda: folder.put("new", {"a.txt": b"a"}),
        lambda: folder.put("id:3", {"a.txt": b"a"}, replace=True),
        lambda: folder.delete("id:3"),
        lambda: folder.repair(),
        lambda: folder.repair(dry_run=True),
        lambda: BagFolder.create("s3://memory/new"),
        lambda: folder.ingest(),
    ):
        with pytest.raises(StoreError, match="a folder of bags is only read in object storage; "):
            call()
    assert bucket.keys == keys


def test_keys_of_probes_are_no_bags(local: Path, bucket: MemoryBucket) -> None:
    """A probe that was interrupted leaves keys in the folder."""
    before = listed(BagFolder(FOLDER))
    bucket.put(b"shelf/bags/extensions/pressmark-staging/probe-0/key", b"1")
    assert listed(BagFolder(FOLDER)) == before
    assert bagit.validate(FOLDER + "/one").ok
