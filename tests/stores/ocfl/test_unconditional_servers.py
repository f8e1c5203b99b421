"""Roots on a server that ignores conditions: refused, or changed by a single writer or with claims."""

from __future__ import annotations

import errno
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pressmark.buckets import upload
from pressmark.buckets.bucket import ANY, KeyChangedError
from pressmark.buckets.memory import MemoryBucket
from pressmark.buckets.probe import STAGING, probe
from pressmark.buckets.unconditional import Unconditional
from pressmark.errors import ObjectError, PressmarkError, StoreError
from pressmark.stores.ocfl.remote import claims, preparing
from pressmark.stores.ocfl.root import OcflRoot
from support.careless_bucket import CarelessBucket

from .bucket_changes import (
    CHANGES,
    DAYS,
    ID,
    LATE,
    LATER,
    NEW,
    OLD,
    Faults,
    Killed,
    errors,
    new_bucket,
    new_root,
    open_root,
    requests_of,
    seen,
)
from .samples import CREATED

REPLACEMENTS: tuple[Any, ...] = ("claims", "single_writer")


@pytest.fixture(autouse=True)
def few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs do not wait long for each other."""
    monkeypatch.setattr(claims, "PAUSE", 0.002)


careless_bucket = partial(new_bucket, kind=CarelessBucket)


def staged(bucket: MemoryBucket) -> list[bytes]:
    return [key for key in bucket.keys if STAGING in key]


# --- what is refused --------------------------------------------------------------------------------------------------


def test_refused() -> None:
    """Without a replacement, nothing is written, and the message names both."""
    bucket = careless_bucket()
    before = bucket.keys
    expected = (
        "the server ignores conditions, so that writers can overwrite each other's files; use claims=True if only"
        " Pressmark writes to the root, or single_writer=True if only this run does; see pressmark store probe"
    )
    with pytest.raises(StoreError) as caught:
        open_root(bucket).put(ID, OLD)
    assert str(caught.value).endswith(expected)
    assert bucket.keys == before


class Late(CarelessBucket):
    """Does not list keys that were just written."""

    def list(self, prefix: bytes, **options: Any) -> Any:
        page = super().list(prefix, **options)
        return page._replace(keys=[one for one in page.keys if b"probe-" not in one.key])


def test_late_listings() -> None:
    """Claims need listings with all keys; a single writer does not."""
    bucket = new_root(Late())
    with pytest.raises(StoreError, match=r"lists new keys late.*use single_writer=True if only this run writes"):
        open_root(bucket, "claims").put(ID, OLD)
    open_root(bucket, "single_writer").put(ID, OLD)
    assert seen(bucket) == OLD


def test_a_server_that_decides() -> None:
    """There, conditions are used, and nothing is claimed."""
    bucket = new_root(MemoryBucket())
    called: list[bytes] = []
    bucket.on_request = lambda call, key: called.append(key) if b"claims" in key else None
    open_root(bucket, "claims").put(ID, OLD)
    assert called == []
    assert seen(bucket) == OLD


@pytest.mark.parametrize("name", REPLACEMENTS)
def test_options(name: str, tmp_path: Path) -> None:
    """They are for roots in object storage, and one excludes the other."""
    create: Any = OcflRoot.create
    with pytest.raises(StoreError, match=f"{name}=True requires an OCFL storage root in object storage; omit it"):
        create(tmp_path / "root", "0003", **{name: True})
    assert not (tmp_path / "root").exists()
    with pytest.raises(StoreError, match="claims=True excludes single_writer=True; omit one of them"):
        OcflRoot("s3://memory/root", claims=True, single_writer=True)


# --- changes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replacement", REPLACEMENTS)
@pytest.mark.parametrize("after", [False, True], ids=["lost request", "lost answer"])
@pytest.mark.parametrize("name", CHANGES)
def test_killed_at_every_request(name: str, after: bool, replacement: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader finds the object as before or as after; a repair alone ends it, and leaves nothing."""
    before, change, result = CHANGES[name]
    number = requests_of(careless_bucket(before), change, replacement)
    assert number > 30
    for fault in range(number + 1):
        bucket = careless_bucket(before)
        bucket.on_request = Faults(fault, after=after)
        try:
            change(open_root(bucket, replacement))
            is_done = True
        except Killed:
            is_done = False
        bucket.on_request = None
        found = seen(bucket)
        assert found in (before, result)
        assert found == result or not is_done
        if fault % 2:
            report = open_root(bucket, replacement).repair(alone=True)
        else:
            monkeypatch.setitem(LATE, "by", DAYS)
            report = open_root(bucket, replacement).repair()
        assert errors(report) == []
        assert seen(bucket) in (before, result)
        assert staged(bucket) == []
        root = open_root(bucket, replacement)
        root.put(ID, LATER, replace=True, created=CREATED)
        assert errors(root.check(digests=True)) == []
        assert seen(bucket) == LATER
        monkeypatch.setitem(LATE, "by", 0.0)


@pytest.mark.parametrize("name", CHANGES)
def test_failed_at_every_request(name: str) -> None:
    """After an error, no claim is left."""
    before, change, _result = CHANGES[name]
    for fault in range(requests_of(careless_bucket(before), change, "claims")):
        bucket = careless_bucket(before)
        left = [fault]

        def fail(call: str, key: bytes, left: list[int] = left) -> None:
            left[0] -= not call.endswith(" done")
            if left[0] == -1 and not (call == "delete" and b"claims" in key):
                left[0] = -2
                raise OSError(errno.EIO, "the connection broke", key)

        bucket.on_request = fail
        with suppress(PressmarkError):
            change(open_root(bucket, "claims"))
        bucket.on_request = None
        assert [key for key in staged(bucket) if b"claims" in key] == [], fault


def test_many_writers() -> None:
    """With claims, the versions of the objects are as many as the updates that were reported as done."""
    bucket = careless_bucket()
    ids = [f"info:many/{number}" for number in range(2)]
    for one in ids:
        open_root(bucket, "claims").put(one, {"n": b"0"}, created=CREATED)
    done: list[str] = []
    unexpected: list[Exception] = []

    def write(writer: int) -> None:
        for number in range(10):
            one = ids[(writer + number) % 2]
            try:
                content = f"{writer}-{number}".encode()
                open_root(bucket, "claims").update(
                    one, add={"n": content, f"{writer}/{number}": content}, created=CREATED
                )
                done.append(one)
            except ObjectError as error:
                if error.kind not in ("changed", "exists"):
                    unexpected.append(error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert unexpected == []
    assert done
    root = open_root(bucket, "claims")
    root.repair(alone=True)
    assert errors(root.check(digests=True)) == []
    assert [len(root.versions(one)) - 1 for one in ids] == [done.count(one) for one in ids]
    assert staged(bucket) == []


# --- claims -----------------------------------------------------------------------------------------------------------


def claim_of(bucket: MemoryBucket) -> tuple[bytes, bytes]:
    """Return the claim that a run writes, by key and content."""
    found: list[bytes] = []
    bucket.on_request = lambda call, key: found.append(key) if call == "put" and b"claims" in key else None
    open_root(bucket, "claims").update(ID, add={"claimed": b"1"})
    bucket.on_request = None
    return found[0][: found[0].rindex(b"/") + 1] + b"other", b""


def test_a_claimed_object() -> None:
    """An object that another run has claimed is not changed; other objects are."""
    bucket = careless_bucket(OLD)
    bucket.put(*claim_of(bucket))
    before = seen(bucket)
    for change in (lambda root: root.put(ID, NEW, replace=True), lambda root: root.delete(ID)):
        with pytest.raises(ObjectError, match=r"another run is changing the object; try again.*\(alone=True\)"):
            change(open_root(bucket, "claims"))
    assert seen(bucket) == before
    assert len(staged(bucket)) == 1
    open_root(bucket, "claims").put("info:x/2", NEW)
    # A repair removes the claim when it is old, or alone.
    open_root(bucket, "claims").repair()
    assert len(staged(bucket)) == 1
    open_root(bucket, "claims").repair(alone=True)
    assert staged(bucket) == []
    open_root(bucket, "claims").put(ID, NEW, replace=True)
    assert seen(bucket) == NEW


def test_a_repair_of_a_claimed_object() -> None:
    """A repair claims the object before it looks at it again, and leaves one that another run is changing."""
    bucket = careless_bucket(OLD)
    claim, content = claim_of(bucket)
    [sidecar] = [key for key in bucket.keys if key.endswith(b"/info%3ax%2f1/inventory.json.sha512")]
    line = bucket.keys[sidecar]
    bucket.put(sidecar, line.replace(b"\n", b"\r\n"))
    bucket.put(claim, content)
    before = bucket.keys
    report = open_root(bucket, "claims").repair()
    [unrepaired] = [one.message for one in report.problems if one.kind == "unrepaired"]
    assert "another run is changing the object" in unrepaired
    assert bucket.keys == before
    bucket.delete([claim])
    called: list[str] = []
    bucket.on_request = lambda call, key: called.append(f"{call} claim" if b"claims" in key else call)
    open_root(bucket, "claims").repair()
    assert bucket.keys[sidecar] == line
    called = called[called.index("put claim") : called.index("delete claim")]
    assert {"get", "put"} <= {*called}


def test_an_object_that_another_run_releases() -> None:
    """A run waits for another one, whose change it then sees."""
    bucket = careless_bucket(OLD)
    key, content = claim_of(bucket)
    bucket.put(key, content)
    left = [3]

    def release(call: str, listed: bytes) -> None:
        if call == "list" and listed + b"other" == key:
            left[0] -= 1
            if not left[0]:
                bucket._stored.pop(key)

    bucket.on_request = release
    open_root(bucket, "claims").put(ID, NEW, replace=True)
    assert seen(bucket) == NEW
    assert staged(bucket) == []


def test_a_long_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim is held from the first file that is sent, and written again, so that no repair removes it."""
    monkeypatch.setattr(preparing, "SENDING", 1)
    monkeypatch.setattr(claims, "RENEWED", -1.0)
    bucket = careless_bucket()
    called: list[str] = []
    bucket.on_request = lambda call, key: called.append(f"{call} claim" if b"claims" in key else f"{call}")
    open_root(bucket, "claims").put(ID, {"a": b"1", "b": b"2", "c": b"3"})
    called = called[called.index("put claim") :]
    assert called.count("put claim") > 1
    assert called.count("delete claim") == 1
    assert called[-3:] != called[:3]
    assert "put" not in called[called.index("delete claim") :]


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_a_server_that_ignores_some_conditions(
    replacement: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server still checks the others."""
    monkeypatch.setattr(preparing, "WHOLE", upload.PART)

    bucket = new_root(CarelessBucket("complete"))
    open_root(bucket).put(ID, OLD)
    is_late = [True]

    def write(call: str, key: bytes) -> None:
        if call == "put" and key.endswith(b"v2/inventory.json") and is_late.pop():
            bucket.on_request = None
            open_root(bucket).put(ID, LATER, replace=True)

    bucket.on_request = write
    (tmp_path / "large").write_bytes(bytes(upload.PART) + b"end")
    open_root(bucket, replacement).update(ID, add={"large": tmp_path / "large"})
    assert is_late == []
    assert seen(bucket) == {**LATER, "large": bytes(upload.PART) + b"end"}
    assert errors(open_root(bucket).check(digests=True)) == []


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_large_files(replacement: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file in parts is stored, too."""
    monkeypatch.setattr(preparing, "WHOLE", upload.PART)
    bucket = careless_bucket()
    completed: list[bytes] = []
    bucket.on_request = lambda call, key: completed.append(key) if call == "complete" else None
    (tmp_path / "large").write_bytes(bytes(upload.PART) + b"end")
    open_root(bucket, replacement).put(ID, tmp_path / "large")
    assert [key for key in completed if key.endswith(b"v1/content/large")] == completed[-1:]
    assert errors(open_root(bucket).check(digests=True)) == []
    assert staged(bucket) == []
    assert list(bucket.uploads(b"")) == []


# --- conditions -------------------------------------------------------------------------------------------------------


def test_conditions() -> None:
    """The conditions of all requests are checked."""
    plain = CarelessBucket()
    bucket: Any = Unconditional(plain, probe(plain, b""))
    first = bucket.put(b"key", b"1")
    part = bucket.part(b"key", upload_id := bucket.start(b"key"), 1, b"part")
    plain.put(b"source", b"source")
    for write in (
        lambda **over: bucket.put(b"key", b"2", **over),
        lambda **over: bucket.copy(b"source", b"key", **over),
        lambda **over: bucket.complete(b"key", upload_id, [part], **over),
    ):
        with pytest.raises(FileExistsError):
            write()
        with pytest.raises(KeyChangedError):
            write(over="0" * 32)
        assert plain.keys[b"key"] == b"1"
    with pytest.raises(KeyChangedError):
        bucket.put(b"missing", b"2", over=first)
    with pytest.raises(KeyChangedError):
        bucket.delete([b"key"], token="0" * 32)
    assert plain.keys == {b"key": b"1", b"source": b"source"}
    second = bucket.put(b"key", b"2", over=first)
    bucket.put(b"other", b"3", over=ANY)
    bucket.delete([b"key"], token=second)
    bucket.delete([b"missing"], token=second)
    assert plain.keys == {b"other": b"3", b"source": b"source"}
