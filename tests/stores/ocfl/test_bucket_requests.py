"""How many requests a root in a bucket needs: each costs money and 10 to 100 ms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import current_thread, enumerate as enumerate_threads, main_thread
from time import sleep

import pytest

from pressmark.buckets.memory import MemoryBucket
from pressmark.stores.ocfl.remote.remote_storage import RemoteStorage

from .bucket import PREFIX
from .bucket_changes import new_root, open_root

COUNT = 300


def requests(bucket: MemoryBucket, call: Callable[[], object]) -> Counter[str]:
    """Return the requests of a call, by their names."""
    found: Counter[str] = Counter()
    bucket.on_request = lambda name, _key: found.update([] if name.endswith(" done") else [name])
    call()
    bucket.on_request = None
    return found


def test_requests() -> None:
    """A new object takes a listing and a request a file; a listing and a check take one for each object."""
    bucket = new_root(MemoryBucket())
    root = open_root(bucket)
    root.put("first", {"f": b"1"})  # with the probe
    assert requests(bucket, lambda: root.put("x", {"f": b"1"})) == {"list": 1, "put": 6}
    assert requests(bucket, lambda: root.update("x", add={"g": b"2"})).total() <= 22
    new = [(f"b{number}", {"f": b"2"}) for number in range(COUNT)]
    stored = requests(bucket, lambda: list(root.put_all(new)))
    assert (stored["list"] <= 12, stored["put"]) == (True, 6 * COUNT), stored
    objects = COUNT + 2
    listed = requests(bucket, lambda: list(open_root(bucket).objects()))
    assert (listed["list"] <= 12, listed["get"] <= objects + 4) == (True, True), listed
    checked = requests(bucket, lambda: open_root(bucket).check())
    assert (checked["list"] <= 14, checked["get"] <= objects + 8) == (True, True), checked
    assert requests(bucket, lambda: open_root(bucket).get("b5").read_bytes("f")).total() <= 50
    assert requests(bucket, lambda: open_root(bucket).repair()).total() <= 2 * objects + 100


def test_many_at_a_time() -> None:
    """Requests for different objects do not wait for each other, neither before their sources are read nor later."""
    bucket = new_root(MemoryBucket())
    root = open_root(bucket)
    root.put("first", {"f": b"1"})  # with the probe
    serial: Counter[str] = Counter()
    bucket.on_request = lambda name, _key: serial.update([name] if current_thread() is main_thread() else [])
    list(root.put_all((f"b{number}", {"f": b"2"}) for number in range(COUNT)))
    assert serial["list"] <= 8


def test_objects_that_are_beside_each_other() -> None:
    """Many objects in one directory are listed once."""
    bucket = new_root(MemoryBucket())
    bucket.delete([PREFIX + b"ocfl_layout.json"])
    layout = b'{"extension": "0002-flat-direct-storage-layout", "description": "x"}'
    bucket.put(PREFIX + b"ocfl_layout.json", layout)
    list(open_root(bucket).put_all((f"b{number}", {"f": b"2"}) for number in range(COUNT)))
    root = open_root(bucket)
    assert requests(bucket, lambda: list(root.objects()))["list"] <= 8
    assert [one.id for one in root.objects()] == sorted(f"b{number}" for number in range(COUNT))
    assert root.check(digests=True).counts["objects"] == COUNT


def test_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A walk on many cores sends no more requests at a time than on two."""
    monkeypatch.setattr(RemoteStorage, "siblings", 20)
    bucket = new_root(MemoryBucket())
    list(open_root(bucket).put_all((f"b{number}", {"f": b"2"}) for number in range(COUNT)))
    root, most = open_root(bucket), 0

    def note(_name: str, _key: bytes) -> None:
        nonlocal most
        most = max(most, sum(thread.name.startswith("pressmark-request") for thread in enumerate_threads()))
        sleep(0.001)

    bucket.on_request = note
    assert len(list(root.objects(threads=64))) == COUNT
    assert 16 <= most <= 32
