"""Changes of a root in a bucket: killed at every request, with every answer lost, and by many writers at once."""

from __future__ import annotations

import errno
import random
import threading
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pressmark.buckets import upload
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import ObjectError, PressmarkError
from pressmark.stores.ocfl.remote import preparing, remote_changes
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
    restore,
    seen,
    upgrade,
)
from .samples import CREATED


@pytest.mark.parametrize("after", [False, True], ids=["lost request", "lost answer"])
@pytest.mark.parametrize("error", [Killed, OSError], ids=["killed", "failed"])
@pytest.mark.parametrize("name", CHANGES)
def test_interrupted_at_every_request(
    name: str, error: type[BaseException], after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader finds the object as before or as after, never a third state; and the next run finishes it."""
    before, change, result = CHANGES[name]
    for number in range(requests_of(new_bucket(before), change) + 1):
        bucket = new_bucket(before)
        bucket.on_request = Faults(number, after=after, error=error)
        try:
            change(open_root(bucket))
            is_done = True
        except (Killed, PressmarkError):
            is_done = False
        bucket.on_request = None
        found = seen(bucket)
        assert found in (before, result)
        assert found == result or not is_done

        # A repair alone leaves one of the two states.
        open_root(bucket).repair()
        found = seen(bucket)
        assert found in (before, result)
        # Whoever comes next puts the object; after a removal, once that run is surely dead.
        if name == "delete":
            monkeypatch.setitem(LATE, "by", DAYS)
        open_root(bucket).put(ID, LATER, replace=True, created=CREATED)
        assert seen(bucket) == LATER
        monkeypatch.setitem(LATE, "by", 0.0)
        root = open_root(bucket)
        root.repair()
        assert errors(root.check(digests=True)) == []


@pytest.mark.parametrize("after", [False, True], ids=["lost request", "lost answer"])
@pytest.mark.parametrize("error", [Killed, OSError], ids=["killed", "failed"])
@pytest.mark.parametrize("change", [upgrade, restore])
@pytest.mark.parametrize("finisher", ["change", "repair"])
def test_a_version_without_content(
    finisher: str, change: Callable[[OcflRoot], None], error: type[BaseException], after: bool
) -> None:
    """A version that is interrupted at any request is finished by a repair, or by the same call, which sends no
    content; earlier versions are as before.
    """
    number = 0
    while True:
        bucket = new_bucket(OLD, version="1.0", algorithm="sha256")
        if change is restore:
            open_root(bucket).put(ID, NEW, replace=True, created=CREATED)
        kept = {key: data for key, data in bucket.keys.items() if b"/v" in key}
        result = OLD if change is restore else seen(bucket)
        faults = bucket.on_request = Faults(number, after=after, error=error)
        try:
            change(open_root(bucket))
            is_done = True
        except (Killed, PressmarkError):
            is_done = False
        bucket.on_request = None
        assert seen(bucket) in (result, NEW)
        assert seen(bucket) == result or not is_done
        if finisher == "repair":
            open_root(bucket).repair()
            assert errors(open_root(bucket).check(digests=True)) == []
            assert seen(bucket) in (result, NEW)
        change(open_root(bucket))
        assert seen(bucket) == result
        root = open_root(bucket)
        assert errors(root.check(digests=True)) == []
        assert list(root.get(ID).inventory["versions"]) == (["v1", "v2"] if change is upgrade else ["v1", "v2", "v3"])
        assert {key: bucket.keys[key] for key in kept} == kept
        new = [key for key in bucket.keys.keys() - kept.keys() if b"/v" in key]
        names = {key.rpartition(b"/v")[2].partition(b"/")[2] for key in new}
        algorithm = b"sha512" if change is upgrade else b"sha256"
        assert names == {b"inventory.json", b"inventory.json." + algorithm}
        if faults.left >= 0:
            break
        number += 1
    assert number > 10


@pytest.mark.parametrize("kills", [False, True], ids=["alone", "killed"])
def test_many_writers(kills: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The versions of the objects are as many as the updates that were reported as done, and all are whole."""
    bucket = new_bucket()
    ids = [f"info:many/{number}" for number in range(3)]
    for one in ids:
        open_root(bucket).put(one, {"n": b"0"}, created=CREATED)
    done: list[str] = []
    maybe: list[str] = []

    def write(writer: int) -> None:
        chance = random.Random(writer)
        for number in range(12):
            one = chance.choice(ids)
            try:
                root = open_root(Mortal(bucket, chance) if kills else bucket)
                root.update(one, add={"n": f"{writer}-{number}".encode(), f"{writer}/{number}": b"x"}, created=CREATED)
                done.append(one)
            except Killed:
                maybe.append(one)
            except ObjectError as error:
                if error.kind not in ("changed", "exists"):
                    raise

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    root = open_root(bucket)
    monkeypatch.setitem(LATE, "by", DAYS)
    root.repair()
    assert errors(root.check(digests=True)) == []
    for one in ids:
        versions = len(root.versions(one)) - 1
        assert done.count(one) <= versions <= done.count(one) + maybe.count(one)


@pytest.mark.parametrize("seed", range(4))
def test_upgrades_beside_writers(seed: int) -> None:
    """Whoever adds a version while another run upgrades the object finishes what is there, and loses nothing."""
    bucket = new_bucket(version="1.0")
    ids = [f"info:many/{number}" for number in range(3)]
    for one in ids:
        open_root(bucket, algorithm="sha256").put(one, {"n": b"0"}, created=CREATED)
    done: list[str] = []
    wrong: list[object] = []

    def write(writer: int) -> None:
        chance = random.Random(seed * 10 + writer)
        for number in range(5):
            one = chance.choice(ids)
            try:
                open_root(bucket).update(one, add={f"{writer}/{number}": b"x"}, created=CREATED)
                done.append(one)
            except ObjectError as error:
                if error.kind not in ("changed", "exists"):
                    wrong.append(error)

    def upgrade_all() -> None:
        for result in open_root(bucket).upgrade(to="1.1", algorithm="sha512", created=CREATED):
            if result.error is not None and result.error.kind not in ("changed", "exists"):
                wrong.append(result.error)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    threads += [threading.Thread(target=upgrade_all) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    upgrade_all()
    root = open_root(bucket)
    assert errors(root.check(digests=True)) == []
    for one in ids:
        assert len(root.versions(one)) == done.count(one) + 2
        assert root.get(one).inventory["digestAlgorithm"] == "sha512"


class Mortal:
    """A bucket for one process, which is killed at some request, and makes no more."""

    def __init__(self, bucket: MemoryBucket, chance: random.Random) -> None:
        self._bucket = bucket
        self._left = chance.randrange(60)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._bucket, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                raise Killed
            result = found(*arguments, **options)
            if self._left == 0:
                raise Killed
            return result

        return call


@pytest.mark.parametrize("alone", [False, True])
def test_a_repair_removes_everything(alone: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some days, or alone, a repair finishes or removes what a killed run has left, without another put."""
    for name, (before, change, result) in CHANGES.items():
        for number in range(requests_of(new_bucket(before), change)):
            bucket = new_bucket(before)
            bucket.on_request = Faults(number, after=False)
            with pytest.raises(Killed):
                change(open_root(bucket))
            bucket.on_request = None
            monkeypatch.setitem(LATE, "by", 0.0 if alone else DAYS)
            root = open_root(bucket)
            root.repair(alone=alone)
            assert errors(root.check(digests=True)) == [], (name, number)
            assert seen(bucket) in (before, result)
            assert [key for key in bucket.keys if b"pressmark-staging" in key] == []
            monkeypatch.setitem(LATE, "by", 0.0)


@pytest.mark.parametrize("change", ["update", "replace"])
def test_an_object_without_its_declaration(change: str) -> None:
    """The next change of an object finishes it, if its run was killed before the last request."""
    bucket = new_bucket()

    def kill(call: str, key: bytes) -> None:
        if call == "put" and b"/0=ocfl_object" in key:
            raise Killed

    bucket.on_request = kill
    with pytest.raises(Killed):
        open_root(bucket).put(ID, OLD, created=CREATED)
    bucket.on_request = None
    if change == "update":
        open_root(bucket).update(ID, add={"n": b"n"})
    else:
        open_root(bucket).put(ID, {**OLD, "n": b"n"}, replace=True)
    assert seen(bucket) == {**OLD, "n": b"n"}
    assert errors(open_root(bucket).check(digests=True)) == []


def test_a_late_helper() -> None:
    """A run that finishes a new object late removes nothing of a version that another run has added meanwhile."""
    bucket = new_bucket()

    def kill(call: str, key: bytes) -> None:
        if call == "put" and not key.endswith(b"v1/inventory.json") and key.endswith(b"/inventory.json"):
            raise Killed

    bucket.on_request = kill
    with pytest.raises(Killed):
        open_root(bucket).put(ID, OLD, created=CREATED)

    def overtake(call: str, key: bytes) -> None:
        if call == "get" and key.endswith(b"v1/inventory.json"):
            bucket.on_request = None
            root = open_root(bucket)
            root.repair()
            root.put(ID, LATER, replace=True, created=CREATED)

    bucket.on_request = overtake
    root = open_root(bucket)
    with root.changes() as changes:
        assert changes.recover(root.name_and_path(ID)[1])
    assert bucket.on_request is None
    assert seen(bucket) == LATER
    assert errors(root.check(digests=True)) == []


def test_a_large_file_that_was_sent_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted upload is continued by the next put, and removed by a repair once it is old."""
    monkeypatch.setattr(preparing, "WHOLE", upload.PART)
    (tmp_path / "large").write_bytes(bytes(2 * upload.PART) + b"end")
    for is_continued in (True, False):
        bucket = new_bucket()

        def interrupt(call: str, key: bytes) -> None:
            if call == "complete" and key.endswith(b"/large"):
                raise KeyboardInterrupt

        bucket.on_request = interrupt
        with pytest.raises(KeyboardInterrupt):
            open_root(bucket).put(ID, tmp_path / "large")
        bucket.on_request = None
        assert len(list(bucket.uploads(b""))) == 1
        if is_continued:
            sent = bucket.sent
            open_root(bucket).put(ID, tmp_path / "large")
            assert bucket.sent - sent < upload.PART
        else:
            open_root(bucket).repair()
            assert len(list(bucket.uploads(b""))) == 1
            monkeypatch.setitem(LATE, "by", DAYS)
            assert [step.action for step in open_root(bucket).repair().steps] == ["remove"]
        assert list(bucket.uploads(b"")) == []
        assert errors(open_root(bucket).check(digests=True)) == []


def test_a_removal_that_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to delete, an object stays, and no later repair removes it."""
    bucket = new_bucket(OLD)

    def deny(call: str, key: bytes) -> None:
        if call == "delete" and b"probe-" not in key:
            raise PermissionError(errno.EACCES, "access denied", key)

    bucket.on_request = deny
    with pytest.raises(ObjectError, match="access denied"):
        open_root(bucket).delete(ID)
    bucket.on_request = None
    monkeypatch.setitem(LATE, "by", DAYS)
    repaired = open_root(bucket).repair()
    assert (repaired.ok, repaired.steps) == (True, [])
    assert seen(bucket) == OLD
    assert [key for key in bucket.keys if b"pressmark-staging" in key] == []


@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_removal_in_parts(is_reversed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request removes several keys one by one: whichever are left, no run takes them for an object."""
    whole = {**OLD, "a.txt": b"newer", "b.txt": b"b"}
    for number in range(20):
        bucket = new_bucket(OLD)
        open_root(bucket).update(ID, add={"a.txt": b"newer"}, created=CREATED)
        open_root(bucket).update(ID, add={"b.txt": b"b"}, created=CREATED)
        remove, left = bucket.delete, number

        def remove_some(keys: Sequence[bytes], *, token: str | None = None, remove: Any = remove) -> None:
            nonlocal left
            some = sorted(keys, reverse=is_reversed)[: left if b"probe-" not in keys[0] else None]
            remove(some, token=token)
            left -= len(some) if b"probe-" not in keys[0] else 0
            if len(some) < len(keys):
                raise Killed

        monkeypatch.setattr(bucket, "delete", remove_some)
        try:
            open_root(bucket).delete(ID)
        except Killed:
            monkeypatch.setattr(bucket, "delete", remove)
        else:
            break
        assert seen(bucket) == (None if number else whole), number
        if number and any(b"/v" in key for key in bucket.keys):
            with pytest.raises(ObjectError, match="another run is removing the object"):
                open_root(bucket).put(ID, NEW)
        monkeypatch.setitem(LATE, "by", DAYS)
        open_root(bucket).repair()
        monkeypatch.setitem(LATE, "by", 0.0)
        assert seen(bucket) == (None if number else whole), number
        assert len(bucket.keys) == 2 or not number, (number, list(bucket.keys))
    assert number > 12


def test_a_long_removal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its note is written again before others take the run for killed, and not more often."""
    for pause, notes in ((0, 1), (remote_changes.ALIVE / 2, 3)):
        bucket = new_bucket(OLD)
        written: list[bytes] = []

        def note(call: str, key: bytes, written: list[bytes] = written) -> None:
            written += [key] if call == "put" and b"/removals/" in key else []

        bucket.on_request = note
        monkeypatch.setattr(remote_changes, "monotonic", count(0, pause).__next__)
        open_root(bucket).delete(ID)
        assert len(written) == notes


def test_a_server_that_ignores_the_condition_of_uploads(tmp_path: Path) -> None:
    """Large files are refused there, because another writer could overwrite them; small ones are stored."""
    bucket = new_root(CarelessBucket("complete"))
    (tmp_path / "large").write_bytes(bytes(upload.WHOLE + 1))
    with pytest.raises(ObjectError, match="files over 64 MiB can be overwritten; use claims=True"):
        open_root(bucket).put(ID, tmp_path / "large")
    assert seen(bucket) is None
    open_root(bucket).put(ID, OLD)
    assert seen(bucket) == OLD


def test_a_new_version_beside_lost_content() -> None:
    """An update does not depend on the content of earlier versions, which it does not read."""
    bucket = new_bucket(OLD)
    [lost] = [key for key in bucket.keys if key.endswith(b"v1/content/same.txt")]
    bucket.delete([lost])
    open_root(bucket).update(ID, add={"new.txt": b"new"}, created=CREATED)
    found = open_root(bucket).get(ID)
    assert (found.version, found.read_bytes("new.txt"), found.read_bytes("a.txt")) == ("v2", b"new", b"old")


def test_a_removal_that_ended_at_once() -> None:
    """An object whose inventory alone was removed, without a note, comes back with all its versions."""
    bucket = new_bucket(OLD)
    open_root(bucket).update(ID, add={"a.txt": b"newer"}, created=CREATED)
    before = bucket.keys
    top = next(key for key in before if key.endswith(b"v2/inventory.json")).removesuffix(b"v2/inventory.json")
    bucket.delete([key for key in before if key in (top + b"inventory.json", top + b"0=ocfl_object_1.1")])
    assert seen(bucket) is None
    open_root(bucket).repair(alone=True)
    assert {key: data for key, data in bucket.keys.items() if key.startswith(top)} == {
        key: data for key, data in before.items() if key.startswith(top)
    }
