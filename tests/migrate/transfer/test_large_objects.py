"""The files of many objects are copied in one run; each object has its own row."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrate.samples import Files, errors, held, make, migrate
from pressmark.migrate import object_digest
from support.copies import count_copies
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
def runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The number of files in each run of copies."""
    yield count_copies(monkeypatch)
    assert not [one for one in threading.enumerate() if one.name.startswith("pressmark-")]


@pytest.mark.parametrize("to", DESTINATIONS)
def test_large_objects(implementation: Implementation, tmp_path: Path, runs: list[int], to: str) -> None:
    """Each row has the digest of its own object, in the order of the plan; the files of all are copied in one run."""
    objects = given()
    source = make("pairtree", tmp_path / "source", objects, tmp_path / "given")
    runs.clear()
    rows, store = migrate(source, to, tmp_path / "destination", copy_mode="copy")
    assert [row.error for row in rows.values() if row.status != "ok"] == []
    assert runs == [3 * len(objects)]
    assert held(store) == objects
    assert errors(store) == []
    assert list(rows) == sorted(objects)
    for identifier, row in rows.items():
        digests = {name: hashlib.sha512(data).hexdigest() for name, data in objects[identifier].items()}
        assert (row.status, row.files, row.digest) == ("ok", 3, object_digest.object_digest(digests))


@pytest.mark.parametrize("to", DESTINATIONS)
def test_large_objects_that_fail(tmp_path: Path, to: str) -> None:
    """An object that fails does not affect those beside it."""
    objects = given()
    source = make("pairtree", tmp_path / "source", objects, tmp_path / "given")
    _rows, store = migrate(source, to, tmp_path / "destination")
    for identifier in ("id007", "id011"):
        store.delete(identifier)
    store.put("id007", tmp_path / "given" / next(iter(os.listdir(tmp_path / "given"))))
    path = next(record.path for record in source.objects() if record.id == "id011")
    (Path(source.root) / path / "id011" / "link").symlink_to("a")
    store.delete("id012")
    rows, store = migrate(source, to, tmp_path / "destination")
    bad = {identifier: row.status for identifier, row in rows.items() if row.status != "exists_same"}
    assert bad == {"id007": "exists_different", "id011": "source_invalid", "id012": "ok"}
    assert held(store)["id012"] == objects["id012"]
    assert errors(store) == []


def test_moved_objects_are_not_copied(tmp_path: Path, runs: list[int]) -> None:
    """Objects that are renamed are moved one after another."""
    objects = given(12)
    source = make("pairtree", tmp_path / "source", objects, tmp_path / "given")
    runs.clear()
    rows, _store = migrate(source, "pairtree", tmp_path / "destination", move=True)
    assert {row.mode for row in rows.values()} == {"rename"}
    assert runs == []
