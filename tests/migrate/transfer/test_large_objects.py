"""Large objects are copied several at a time; each has its own row, and all share the threads that copy."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrate.samples import Files, errors, held, make, migrate
from pressmark.migrate import object_digest
from pressmark.migrate.entry import Entry
from pressmark.migrate.transfer import object_transfer
from support.implementations import Implementation

DESTINATIONS = ("ocfl", "bags", "pairtree")


def given(count: int = 30) -> dict[str, Files]:
    """Return objects of three large files, and a few small ones between them."""
    found: dict[str, Files] = {}
    for number in range(count):
        size = 10 if number % 5 == 0 else 120_000
        found[f"id{number:03}"] = {name: f"{number}{name}".encode() * (size // 5) for name in ("a", "b/c", "d")}
    return found


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, tuple[str, int]]]:
    """The thread of each object, and the number of threads that copied at that time."""
    threads: dict[str, tuple[str, int]] = {}
    transfer = object_transfer.Transfer._try

    def noted(self: Any, entry: Entry, planned: Entry) -> None:
        transfer(self, entry, planned)
        copying = sum(one.name.startswith("pressmark-copy") for one in threading.enumerate())
        threads[entry.id] = threading.current_thread().name, copying

    monkeypatch.setattr(object_transfer.Transfer, "_try", noted)
    yield threads
    assert not [one for one in threading.enumerate() if one.name.startswith("pressmark-")]


@pytest.mark.parametrize("to", DESTINATIONS)
def test_large_objects_in_threads(
    implementation: Implementation, tmp_path: Path, begun: dict[str, tuple[str, int]], to: str
) -> None:
    """Each row has the digest of its own object, in the order of the plan."""
    objects = given()
    source = make("pairtree", tmp_path / "source", objects, tmp_path / "given")
    rows, store = migrate(source, to, tmp_path / "destination")
    assert [row.error for row in rows.values() if row.status != "ok"] == []
    assert held(store) == objects
    assert errors(store) == []
    assert list(rows) == sorted(objects)
    for identifier, row in rows.items():
        digests = {name: hashlib.sha512(data).hexdigest() for name, data in objects[identifier].items()}
        assert (row.status, row.files, row.digest) == ("ok", 3, object_digest.object_digest(digests))
        large = row.bytes >= object_transfer.LARGE
        assert begun[identifier][0].startswith("pressmark-object") == large
        # As many threads as cores, and one that collects.
        assert begun[identifier][1] <= (os.cpu_count() or 1) + 1


@pytest.mark.parametrize("to", DESTINATIONS)
def test_large_objects_that_fail(tmp_path: Path, begun: dict[str, tuple[str, int]], to: str) -> None:
    """An object that fails does not affect those beside it."""
    objects = given()
    source = make("pairtree", tmp_path / "source", objects, tmp_path / "given")
    _rows, store = migrate(source, to, tmp_path / "destination")
    for identifier in ("id007", "id011"):
        store.delete(identifier)
    store.put("id007", tmp_path / "given" / next(iter(os.listdir(tmp_path / "given"))))
    place = next(record.path for record in source.objects() if record.id == "id011")
    (Path(source.root) / place / "id011" / "link").symlink_to("a")
    store.delete("id012")
    begun.clear()
    rows, store = migrate(source, to, tmp_path / "destination")
    bad = {identifier: row.status for identifier, row in rows.items() if row.status != "exists_same"}
    assert bad == {"id007": "exists_different", "id011": "source_invalid", "id012": "ok"}
    assert held(store)["id012"] == objects["id012"]
    assert errors(store) == []


def test_moves_are_not_copied_in_threads(tmp_path: Path, begun: dict[str, tuple[str, int]]) -> None:
    """Objects that are renamed are moved one after another."""
    objects = given(12)
    source = make("pairtree", tmp_path / "source", objects, tmp_path / "given")
    rows, _store = migrate(source, "pairtree", tmp_path / "destination", move=True)
    assert {row.mode for row in rows.values()} == {"rename"}
    assert {name for name, _copying in begun.values()} == {"MainThread"}
