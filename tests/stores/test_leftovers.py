"""Leftovers of killed runs are finished, undone or reported, never cleared blindly.

The trees are written here name by name, without help from the package.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import pressmark
from pressmark import stores
from pressmark.progress_event import EventListener
from pressmark.stores import RepairStep, Store
from support.trees import snapshot, write

WORKSHOPS = {
    "pairtree": "pairtree_pressmark",
    "vitro": "file_storage_pressmark",
    "ocfl": "extensions/pressmark-staging",
    "bags": ".pressmark-work",
}
RUN = "afb73625dcaa50b7"
# Staged by a run.
PREPARED = {"pairtree": "object/f", "vitro": "object/f", "ocfl": "1/v2/content/f", "bags": "bag/data/f"}


@pytest.fixture(params=WORKSHOPS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store with one object, ``abc``, with the file ``f``."""
    write(tmp_path, {"old/f": b"old", "new/f": b"new", "both/f": b"f", "both/g": b"g"})
    layout = pressmark.layout("0002") if request.param == "ocfl" else None
    made = stores.create(request.param, tmp_path / "store", layout)
    made.put("abc", tmp_path / "old")
    return made


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("store", kinds, indirect=True)


def leave_run(store: Store, *, in_turn: bool) -> Path:
    """Leave what a run leaves that is killed before any move; it may be readable by everyone."""
    staging = Path(store.root) / WORKSHOPS[store.kind]
    (staging / RUN).mkdir(mode=0o755, parents=True)
    write(staging / RUN, {"lock": b"", PREPARED[store.kind]: b"new"})
    if in_turn:
        (staging / "lock").write_bytes(b"")
    return staging


def content(store: Store) -> dict[str, bytes]:
    """Return the object's files."""
    found = store.get("abc")
    return {name: Path(path).read_bytes() for name, path in found.files()}


def kinds(store: Store) -> set[str]:
    """Return the kinds of problems of a check, except OCFL's advice on identifiers."""
    return {one.kind for one in store.check(digests=True).problems} - {"inventory-advice"}


def traces(store: Store) -> list[str]:
    """Return leftovers under names of Pressmark."""
    names = (os.fsdecode(name) for name in snapshot(Path(store.root)))
    return [name for name in names if "pressmark" in name and not name.endswith("bags.json")]


FINISHERS: dict[str, Callable[[Store, Path], object]] = {
    "repair": lambda store, _folder: store.repair(),
    "put": lambda store, folder: store.put("abc", folder / "new", replace=True),
    "delete": lambda store, _folder: store.delete("abc"),
}


@pytest.mark.parametrize("finisher", FINISHERS)
@pytest.mark.parametrize("in_turn", [False, True])
def test_a_private_directory(store: Store, tmp_path: Path, in_turn: bool, finisher: str) -> None:
    """A private directory is reported, the object is unchanged, and the next change or a repair removes it."""
    staging = leave_run(store, in_turn=in_turn)
    before = snapshot(staging)
    assert kinds(store) == {"leftover"}
    assert content(store) == {"f": b"old"}
    assert snapshot(staging) == before, "looking must remove nothing"
    FINISHERS[finisher](store, tmp_path)
    assert traces(store) == []
    assert kinds(store) == set()
    if finisher != "delete":
        assert content(store) == {"f": b"new" if finisher == "put" else b"old"}


def test_a_private_directory_that_cannot_be_removed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its removal is not announced, and it is listed as after every check."""
    staging = leave_run(store, in_turn=False)
    removed: list[object] = []

    def refuse(path: bytes) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr("pressmark.fs.staging.remove_tree", refuse)
    report = store.repair(progress=EventListener(removed.append))
    assert "leftover" in {one.kind for one in report.problems}
    assert not [event for event in removed if isinstance(event, RepairStep)]
    assert staging.exists()
    monkeypatch.undo()
    store.repair(progress=EventListener(removed.append))
    assert "remove" in [event.action for event in removed if isinstance(event, RepairStep)]
    assert not staging.exists()


def test_a_file_among_private_directories(store: Store, tmp_path: Path) -> None:
    """A file among private directories is not a leftover and stays."""
    staging = leave_run(store, in_turn=True)
    (staging / "notes.txt").write_bytes(b"mine")
    store.put("abc", tmp_path / "new", replace=True)
    store.repair()
    assert (staging / "notes.txt").read_bytes() == b"mine"
    assert not (staging / RUN).exists()


# --- interrupted replacements -----------------------------------------------------------------------------------------


def interrupt(store: Store, name: str = "abc") -> tuple[Path, Path]:
    """Put the old object aside without a new one; return both paths."""
    leave_run(store, in_turn=True)
    root = Path(store.root)
    if store.kind == "bags":
        old, path = root / f"{name}.pressmark-old", root / name
    else:
        path = root / "pairtree_root/ab/c" / name
        old = path.parent / "pairtree_pressmark-old" / name
        old.parent.mkdir()
    path.rename(old)
    return old, path


@of_kind("pairtree", "bags")
@pytest.mark.parametrize("finisher", FINISHERS)
def test_the_old_object_put_aside(store: Store, tmp_path: Path, finisher: str) -> None:
    """An old object put aside is readable, and is moved back before any other change."""
    interrupt(store)
    assert kinds(store) == {"leftover", "unfinished"}
    assert content(store) == {"f": b"old"}
    FINISHERS[finisher](store, tmp_path)
    assert traces(store) == []
    assert kinds(store) == set()
    if finisher != "delete":
        assert content(store) == {"f": b"new" if finisher == "put" else b"old"}


@of_kind("pairtree", "bags")
@pytest.mark.parametrize("finisher", FINISHERS)
def test_the_new_object_in_its_place(store: Store, tmp_path: Path, finisher: str) -> None:
    """If the new object is in place, only the old one is removed."""
    old, directory = interrupt(store)
    shutil.copytree(old, directory)
    files = [directory / "data/f", directory / "manifest-sha512.txt"] if store.kind == "bags" else [directory / "f"]
    assert all(path.is_file() for path in files)
    assert content(store) == {"f": b"old"}
    assert kinds(store) >= {"leftover"}
    FINISHERS[finisher](store, tmp_path)
    assert traces(store) == []
    if finisher == "delete":
        assert list(store.objects()) == []
    else:
        assert content(store) == {"f": b"new" if finisher == "put" else b"old"}


@of_kind("pairtree")
def test_a_split_end_half_moved(store: Store) -> None:
    """The moved part of an interrupted repair is read with the rest, and the next repair finishes."""
    path = Path(store.root) / "pairtree_root/ab/c"
    shutil.rmtree(path / "abc")
    write(path, {"pairtree_pressmark-obj/one": b"1", "two": b"2"})
    assert kinds(store) == {"unfinished"}
    assert content(store) == {"one": b"1", "two": b"2"}
    store.repair()
    assert snapshot(path).keys() >= {b"obj/one", b"obj/two"}
    assert traces(store) == []
    assert content(store) == {"one": b"1", "two": b"2"}


@of_kind("vitro")
@pytest.mark.parametrize("finisher", FINISHERS)
def test_a_file_that_was_to_be_renamed(store: Store, tmp_path: Path, finisher: str) -> None:
    """New content under the old name is read under its new name; the next run renames it."""
    staging = leave_run(store, in_turn=True)
    directory = Path(store.root) / "file_storage_root/abc"
    (directory / "f").write_bytes(b"new")
    (staging / "renaming").write_text(json.dumps(["abc", "f", "g", (directory / "f").stat().st_ino]))
    assert kinds(store) == {"leftover", "unfinished"}
    assert content(store) == {"g": b"new"}
    changes: list[object] = []
    if finisher == "repair":
        store.repair(progress=EventListener(changes.append))
        assert {one.action for one in changes if isinstance(one, RepairStep)} == {"finish", "remove"}
    else:
        FINISHERS[finisher](store, tmp_path)
    assert traces(store) == []
    assert [path.name for path in directory.glob("*")] == {"repair": ["g"], "put": ["f"], "delete": []}[finisher]


@of_kind("vitro")
def test_a_record_of_a_change_that_was_not_started(store: Store) -> None:
    """If the content in the journal is absent, the file keeps its name."""
    staging = leave_run(store, in_turn=True)
    (staging / "renaming").write_text(json.dumps(["abc", "f", "g", 1]))
    (staging / "renaming.new").write_bytes(b"[")
    assert content(store) == {"f": b"old"}
    store.repair()
    assert traces(store) == []
    assert content(store) == {"f": b"old"}


@of_kind("ocfl")
def test_a_version_that_was_not_published(store: Store, tmp_path: Path) -> None:
    """A private directory may contain hard links to files of an object: only the links are removed."""
    staging = leave_run(store, in_turn=True)
    path = Path(store.root) / "abc"
    store.put("abc", tmp_path / "new", replace=True)
    (staging / RUN / "1").mkdir(parents=True)
    (staging / RUN / "lock").write_bytes(b"")
    (staging / RUN / "1/f").hardlink_to(path / "v1/content/f")
    assert {"leftover", "hard-link"} == kinds(store)
    assert content(store) == {"f": b"new"}
    store.repair()
    assert kinds(store) == set()
    assert traces(store) == []


@of_kind("ocfl")
def test_a_half_created_root(store: Store, tmp_path: Path) -> None:
    """The same call finishes a half-created root; a foreign file is reported and stays."""
    folder = tmp_path / "half"
    names = {"declaration.pressmark-new": b"ocfl_1.1\n", "ocfl_layout.json": b"{"}
    write(folder, {**names, "notes.txt": b"mine"})
    with pytest.raises(pressmark.StoreError, match=r"notes\.txt"):
        stores.create(store.kind, folder, "0003")
    assert (folder / "notes.txt").read_bytes() == b"mine"
    (folder / "notes.txt").unlink()
    assert stores.create(store.kind, folder, "0003").check().ok
    assert not (folder / "declaration.pressmark-new").exists()


@of_kind("pairtree", "vitro", "bags")
def test_a_half_created_store(store: Store, tmp_path: Path) -> None:
    """The same call writes an interrupted creation's files again; a foreign file is reported and stays."""
    first = {
        "pairtree": {"pairtree_version0_1": b"This dir", "pairtree_prefix": b""},
        "vitro": {"file_storage_namespaces.properties": b"", f"file_storage_pressmark/{RUN}/lock": b""},
        "bags": {".pressmark-bags.json.new": b"{"},
    }
    folder = tmp_path / "half"
    write(folder, {**first[store.kind], "notes.txt": b"mine"})
    with pytest.raises(pressmark.StoreError, match=r"notes\.txt"):
        stores.create(store.kind, folder)
    assert (folder / "notes.txt").read_bytes() == b"mine"
    (folder / "notes.txt").unlink()
    assert stores.create(store.kind, folder).check().ok
