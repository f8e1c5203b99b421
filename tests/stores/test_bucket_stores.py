"""Pairtrees and Vitro stores in a bucket in memory: what differs from a disk, the requests, and what is refused."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pressmark import stores
from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import IdentifierError, ObjectError, StoreError
from pressmark.reports import Problem
from pressmark.stores import Store
from pressmark.stores.directories import bucket_directory
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from pressmark.stores.vitro.vitro_store import VitroStore
from support.in_bucket import ADDRESS, PREFIX, fill, serving
from support.trees import snapshot

VERSION = b"This directory conforms to Pairtree Version 0.1."
NAMESPACES = b"file_storage_namespaces.properties"
#: An object with several files, and what each kind of store calls it.
IDS = {"pairtree": "ab", "vitro": "abc"}


@pytest.fixture
def bucket() -> Iterator[MemoryBucket]:
    found = MemoryBucket()
    with serving(found):
        yield found


def put(bucket: MemoryBucket, *names: str | bytes, **files: bytes) -> PairtreeStore:
    """Write a Pairtree, by names below pairtree_root, and open it."""
    bucket.put(PREFIX + b"pairtree_version0_1", VERSION, over=ANY)
    for name in names:
        bucket.put(PREFIX + b"pairtree_root/" + os.fsencode(name), b"x", over=ANY)
    for other, data in files.items():
        bucket.put(PREFIX + other.encode(), data, over=ANY)
    return PairtreeStore(ADDRESS)


def problems(store: Store) -> list[tuple[str, str]]:
    return [(one.kind, one.path) for one in store.check().problems]


@pytest.fixture(params=["pairtree", "vitro"])
def any_store(request: pytest.FixtureRequest, bucket: MemoryBucket, tmp_path: Path) -> Store:
    """A store with objects, copied to a bucket."""
    kind: str = request.param
    local = stores.create(kind, tmp_path / "local")
    for number in range(3):
        local.put(f"{IDS[kind]}{'x' * number}", {"f.txt": b"data %d" % number})
    assert fill(bucket, tmp_path / "local")
    return stores.open(ADDRESS)


# --- opening ----------------------------------------------------------------------------------------------------------


def test_the_kind_is_detected(any_store: Store, bucket: MemoryBucket, tmp_path: Path) -> None:
    """By the names below the address, or by that of the tree; a store without a sign is taken for a storage root."""
    tree = {"pairtree": "pairtree_root", "vitro": "file_storage_root"}[any_store.kind]
    assert stores.kind_of(f"{ADDRESS}/{tree}") == stores.kind_of(ADDRESS) == any_store.kind
    assert len(stores.open(f"{ADDRESS}/{tree}")) == len(any_store) == 3
    assert stores.kind_of("s3://memory/stores") == "ocfl"
    bucket.put(PREFIX + b"0=ocfl_1.1", b"ocfl_1.1\n")
    with pytest.raises(StoreError, match=f"several kinds of store detected \\({any_store.kind}, ocfl\\); specify"):
        stores.open(ADDRESS)


def test_the_kind_of_a_store_with_many_names(any_store: Store, bucket: MemoryBucket) -> None:
    for number in range(1100):
        bucket.put(b"%bbeside-%04d" % (PREFIX, number), b"")
    assert stores.kind_of(ADDRESS) == any_store.kind


@pytest.mark.parametrize(
    ("key", "kind", "reason"),
    [
        ("other", "pairtree", "not a Pairtree, because pairtree_root is missing; specify an address that contains it"),
        ("pairtree_root", "pairtree", "pairtree_root is not a directory; restore it"),
        ("file_storage_namespaces.properties", "vitro", "file_storage_root is missing; restore it"),
        ("file_storage_root/a/f", "vitro", "file_storage_namespaces.properties is missing; restore it, or create"),
    ],
)
def test_no_store(bucket: MemoryBucket, key: str, kind: str, reason: str) -> None:
    bucket.put(PREFIX + key.encode(), b"")
    with pytest.raises(StoreError, match=reason) as caught:
        stores.open(ADDRESS, kind)
    assert str(caught.value).count("\n") == 0
    assert ADDRESS in str(caught.value)


def test_a_tree_at_the_top_of_a_bucket(bucket: MemoryBucket) -> None:
    bucket.put(b"pairtree_root/ab/foo/f", b"data")
    store = stores.open("s3://memory")
    assert [(one.id, one.path) for one in store.objects()] == [("ab", "pairtree_root/ab")]
    assert list(store.get("ab").files()) == [("f", "s3://memory/pairtree_root/ab/foo/f")]


# --- reading ----------------------------------------------------------------------------------------------------------


def test_one_object(any_store: Store, tmp_path: Path) -> None:
    """An object is found by its identifier and its path, read, and copied; it has the names of its files."""
    id = IDS[any_store.kind]
    record = any_store.find(id)
    assert record.proper
    assert any_store.at(record.path) == record
    assert any_store.exists(id)
    assert not any_store.exists("nothing")
    for found in (any_store.get(id), any_store.locate(record)):
        assert [name for name, _path in found.files()] == ["f.txt"]
        assert found.path.startswith(f"{ADDRESS}/{record.path}")
        assert found.read_bytes("f.txt") == b"data 0"
        found.confirm()
        with pytest.raises(ObjectError, match="'other' not found in the object"):
            found.open("other")
    assert any_store.get(id).copy_to(tmp_path / "copy") == (["f.txt"], [])
    assert snapshot(tmp_path / "copy") == {b"f.txt": b"data 0"}
    with pytest.raises(ObjectError, match="object not found at") as caught:
        any_store.get("nothing")
    assert caught.value.kind == "missing"
    with pytest.raises(ObjectError) as caught:
        any_store.get("y" * 4000)  # longer than a key
    assert caught.value.kind == "missing"
    with pytest.raises(IdentifierError, match="empty"):
        any_store.get("")


@pytest.mark.parametrize("ahead", [1, None])
def test_archived_files(bucket: MemoryBucket, any_store: Store, ahead: int | None) -> None:
    """A check reports each file of an archive class, without a request for it where keys are listed ahead."""
    with serving(bucket, ahead):
        before = bucket.requests
        assert problems(any_store) == []
        count = bucket.requests - before
        files = [key for key in bucket.keys if key.endswith(b".txt")]
        for key in files[1:]:
            bucket.put(key, bucket.keys[key], over=ANY, storage_class="DEEP_ARCHIVE")
        before = bucket.requests
        report = any_store.check()
        assert ahead is not None or bucket.requests - before == count
        found = [("content-archived", key.removeprefix(PREFIX).decode()) for key in files[1:]]
        assert [(one.kind, one.path) for one in report.problems] == found
        assert len(found) == 2
        assert report.ok
        assert report.counts["objects"] == 3
        ignored = [one.path for one in any_store.check(ignore=["f.*"]).problems if one.kind == "content-archived"]
        assert ignored == []


def test_a_large_file_is_positioned(bucket: MemoryBucket) -> None:
    """A file is a seekable stream, which reads nothing that is not asked for."""
    store = put(bucket, "ab/foo/f")
    data = os.urandom(3 << 20)
    bucket.put(PREFIX + b"pairtree_root/ab/foo/f", data, over=ANY)
    before = bucket.received
    with store.get("ab").open("f") as file:
        file.seek(-10, io.SEEK_END)
        assert file.read() == data[-10:]
    assert bucket.received - before < 1 << 20


@pytest.mark.parametrize("names", [("ab/foo/a", "ab/foo/b"), ("ab/a", "ab/b", "ab/cd/foo/x")])
def test_an_object_that_changes(bucket: MemoryBucket, tmp_path: Path, names: tuple[str, ...]) -> None:
    """Content of two versions is never mixed: another file, or one with other content, is an error."""
    store = put(bucket, *names)

    def changed(action: Callable[[], object]) -> None:
        with pytest.raises(ObjectError, match="another process has replaced") as caught:
            action()
        assert caught.value.kind == "changed"

    top = PREFIX + b"pairtree_root/" + names[0].rpartition("/")[0].encode()
    found = store.get("ab")
    bucket.put(PREFIX + b"pairtree_root/ab/cd/foo/other", b"of another object")
    found.confirm()
    bucket.put(top + b"/b", b"new", over=ANY)
    changed(lambda: found.open("b"))
    changed(found.confirm)
    changed(lambda: found.copy_to(tmp_path / "copy"))
    assert found.read_bytes("a") == b"x"
    found = store.get("ab")
    bucket.delete([top + b"/a"])
    changed(lambda: found.open("a"))
    changed(lambda: found.copy_to(tmp_path / "copy"))
    assert os.listdir(tmp_path) == []


def test_a_connection_that_fails(bucket: MemoryBucket, tmp_path: Path) -> None:
    """Nothing half-written stands under its name, and the message has one line."""
    store = put(bucket, *(f"ab/foo/{number}" for number in range(40)))
    found = store.get("ab")

    def fail(call: str, key: bytes) -> None:
        if call == "get" and key.endswith(b"/17"):
            raise OSError(5, "the connection broke", key)

    bucket.on_request = fail
    with pytest.raises(ObjectError, match="the connection broke") as caught:
        found.copy_to(tmp_path / "copy")
    assert str(caught.value).count("\n") == 0
    assert os.listdir(tmp_path) == []


def test_a_listing_that_fails(any_store: Store, bucket: MemoryBucket) -> None:
    """A walk ends with one error, and does not report each directory."""

    def fail(call: str, key: bytes) -> None:
        raise OSError(5, "no connection", key)

    bucket.on_request = fail
    with pytest.raises(StoreError, match="no connection"):
        any_store.check()
    with pytest.raises(ObjectError, match="no connection"):
        any_store.get("xyz")


def test_markers_of_directories(bucket: MemoryBucket) -> None:
    """Empty keys that consoles and s3fs write for directories are no files; an empty directory has nothing else."""
    names = ("", "ab/", "ab/foo/", "ab/foo/full/", "ab/foo/none/", "ab/foo/full/x", "cd/", "ef/gh/", "ij/foo/")
    store = put(bucket, *names, **{"": b""})
    assert [(one.id, one.proper) for one in store.objects()] == [("ab", True), ("ij", True)]
    assert problems(store) == [("empty", "pairtree_root/cd"), ("empty", "pairtree_root/ef/gh")]
    assert all(one.severity == "warning" for one in store.check().problems)
    found = store.get("ab")
    assert list(found.files()) == [("full/x", f"{ADDRESS}/pairtree_root/ab/foo/full/x")]
    assert [name for name, _path in found.empty_directories()] == ["none"]
    assert list(store.get("ij").files()) == []


def test_keys_that_no_disk_has(bucket: MemoryBucket, tmp_path: Path) -> None:
    """Empty parts and dots are reported as they are, and nothing is written outside of a copy."""
    store = put(bucket, "/x", "ab//foo/x", "cd/foo//x", "cd/foo/../../y", "ef/../foo/x", "gh/foo", "gh/foo/x")
    found: list[Problem] = []
    kinds = {one.path: {problem.kind for problem in one.problems} for one in store.objects(problems=found)}
    assert kinds == {
        "pairtree_root/ab": {"bare-file"},
        "pairtree_root/cd": set(),
        "pairtree_root/ef/..": {"undecodable"},
        "pairtree_root/gh": {"split-end"},
    }
    assert [(one.kind, one.path) for one in found] == [("root-file", "pairtree_root//")]
    with pytest.raises(ObjectError, match="not a valid file name"):
        store.get("cd").copy_to(tmp_path / "copy")
    assert os.listdir(tmp_path) == []


def test_keys_that_no_disk_has_in_vitro(bucket: MemoryBucket) -> None:
    bucket.put(PREFIX + NAMESPACES, b"")
    for name in (b"/x", b"abc//f", b"abc/f", b"def//f"):
        bucket.put(PREFIX + b"file_storage_root/" + name, b"")
    assert problems(VitroStore(ADDRESS)) == [
        ("special-file", "file_storage_root//"),
        ("special-file", "file_storage_root/abc//"),
        ("special-file", "file_storage_root/def//"),
    ]


def test_an_interrupted_change(bucket: MemoryBucket) -> None:
    """What a killed run has left on a disk is reported in a copy of it, and not read as if it were whole."""
    names = ("ab/pairtree_pressmark-obj/x", "ab/y", "cd/pairtree_pressmark-old/foo/x", "ef/foo/x")
    store = put(bucket, *names, **{"pairtree_pressmark/0123/lock": b""})
    assert problems(store) == [
        ("leftover", "pairtree_pressmark/0123"),
        ("unfinished", "pairtree_root/ab"),
        ("unfinished", "pairtree_root/cd"),
    ]
    for id in ("ab", "cd"):
        with pytest.raises(ObjectError, match="repair a copy of the store on a disk"):
            store.get(id)


def test_another_program_adds_objects(bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk goes on when keys appear and disappear."""
    monkeypatch.setattr(bucket_directory, "AHEAD", 1)
    store = put(bucket, *(f"{number:02}/foo/x" for number in range(40)))
    walk = store.objects()
    assert next(walk).id == "00"
    bucket.delete([PREFIX + b"pairtree_root/20/foo/x"])
    bucket.put(PREFIX + b"pairtree_root/99/foo/x", b"")
    rest = [one.id for one in walk]
    assert rest[-2:] == ["38", "39"]  # the names in pairtree_root were listed before


# --- requests ---------------------------------------------------------------------------------------------------------

MANY = 4_000


def counted(bucket: MemoryBucket, action: Callable[[], object]) -> Counter[str]:
    calls: Counter[str] = Counter()
    bucket.on_request = lambda call, _key: calls.update([call])
    action()
    bucket.on_request = None
    return calls


@pytest.mark.parametrize(
    "ids",
    [
        [f"{number * 7919 % 1_000_003:06}" for number in range(MANY)],
        [f"ark+=13030=xt{number:05}" for number in range(MANY)],
        [f"{number:04x}-{number * 31:x}-b-c" for number in range(MANY)],
    ],
)
def test_a_walk_lists_a_thousand_keys_in_a_request(
    bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch, ids: list[str]
) -> None:
    """The keys of many objects cost a request for each thousand, and some for the directories with many keys."""
    monkeypatch.setattr(bucket_directory, "AHEAD", 2_000)
    names = ["/".join([*(id[at : at + 2] for at in range(0, len(id), 2)), "obj", file]) for id in ids for file in "ab"]
    store = put(bucket, *names)
    assert len(names) > bucket_directory.AHEAD
    pages = len(names) // 1000
    for action in (lambda: len(store), store.check):
        calls = counted(bucket, action)
        assert set(calls) <= {"list", "get"}
        assert calls["list"] <= 2 * pages + 20
        assert calls["get"] <= 1


def test_requests_of_one_object(any_store: Store, bucket: MemoryBucket) -> None:
    """A look-up lists the directories above the object, whatever else is in the store."""
    id = IDS[any_store.kind]
    calls = counted(bucket, lambda: any_store.get(id).read_bytes("f.txt"))
    assert calls["get"] == 1
    assert calls["list"] <= 5


# --- changes ----------------------------------------------------------------------------------------------------------


def test_changes_are_refused(any_store: Store, bucket: MemoryBucket, tmp_path: Path) -> None:
    """Each in one line with the reason, before anything is read or written."""
    id = IDS[any_store.kind]
    (tmp_path / "f").write_bytes(b"new")
    before = bucket.keys
    actions: list[Callable[[], object]] = [
        lambda: any_store.put("new", tmp_path / "f"),
        lambda: any_store.put(id, tmp_path / "f", replace=True),
        lambda: any_store.put(id, tmp_path / "f", compare=True),
        lambda: list(any_store.put_all([("new", tmp_path / "f")])),
        any_store.ingest,
        lambda: any_store.delete(id),
        lambda: any_store.delete(any_store.find(id)),
        any_store.repair,
        lambda: any_store.repair(dry_run=True),
        lambda: stores.create(any_store.kind, "s3://memory/new"),
    ]
    if isinstance(any_store, VitroStore):
        actions.append(lambda: any_store.declare("http://x/"))
    for action in actions:
        with pytest.raises(
            StoreError, match=r"in object storage is read-only: .*; use an OCFL storage root$"
        ) as caught:
            action()
        assert str(caught.value).count("\n") == 0
    assert bucket.keys == before
    assert any_store.check().ok
