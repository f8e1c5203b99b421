"""What calls do with a destination whose parent is missing, or that exists, as their docstrings say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark import bagit, migrate, stores
from pressmark.errors import BagError, StoreError

BAGS: dict[str, Callable[[Path, Path], object]] = {
    "create": lambda source, to: bagit.create(source / "files", to),
    "create_holey": lambda source, to: bagit.create_holey(source / "files", to, "https://example.org/data/"),
    "create_archive": lambda source, to: bagit.create_archive(source / "files", f"{to}.zip"),
    "pack": lambda source, to: bagit.pack(source / "bag", f"{to}.zip"),
    "unpack": lambda source, to: bagit.unpack(source / "bag.zip", to),
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_bytes(b"a")
    bagit.create(tmp_path / "files", tmp_path / "bag")
    bagit.pack(tmp_path / "bag", tmp_path / "bag.zip")
    return tmp_path


@pytest.mark.parametrize("name", BAGS)
def test_a_new_bag(source: Path, name: str) -> None:
    """The directory above it must exist, and nothing may exist at the destination."""
    with pytest.raises(BagError, match="directory not found; create it first") as caught:
        BAGS[name](source, source / "none" / "new")
    assert caught.value.path == str(source / "none")
    assert not (source / "none").exists()
    (source / "new").mkdir()
    (source / "new.zip").write_bytes(b"")
    with pytest.raises(BagError, match="destination already exists; choose another name"):
        BAGS[name](source, source / "new")


@pytest.mark.parametrize("kind", stores.KINDS)
def test_a_new_store(tmp_path: Path, kind: str) -> None:
    """Missing directories are created, an empty one is used, and another is refused."""
    layout = "0003" if kind == "ocfl" else None
    assert stores.create(kind, tmp_path / "a" / "b" / "store", layout).kind == kind
    (tmp_path / "empty").mkdir()
    assert stores.create(kind, tmp_path / "empty", layout).kind == kind
    with pytest.raises(StoreError, match="specify an empty or new directory"):
        stores.create(kind, tmp_path / "a", layout)
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="not a directory; specify a directory that is empty or does not exist"):
        stores.create(kind, tmp_path / "file", layout)


def test_a_migration(tmp_path: Path) -> None:
    """The plan creates missing directories for its work folder, the run the destination; objects are added to it."""
    source = stores.create("pairtree", tmp_path / "source")
    source.put("a", {"f": b"a"})
    there = tmp_path / "new" / "root"
    plan = migrate.plan(tmp_path / "source", there, to="ocfl", layout="0003")
    assert not there.exists()
    assert migrate.run(plan, processes=False).ok
    source.put("b", {"f": b"b"})
    again = migrate.plan(tmp_path / "source", there, to="ocfl", layout="0003")
    assert migrate.run(again, processes=False).ok
    assert sorted(str(one.id) for one in stores.open(there).objects()) == ["a", "b"]
