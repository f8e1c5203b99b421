"""Damaged and lost files come back from a good copy, and nothing else changes."""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import bagit, stores
from pressmark.errors import StoreError
from pressmark.progress_event import EventListener
from pressmark.reports import Report
from pressmark.stores import RepairStep, Store
from pressmark.stores.registry import store_class
from support.trees import snapshot, write

FILES = {"a.txt": b"first", "sub/b.txt": b"second" * 1000, "sub/same.txt": b"first"}
KINDS = ["ocfl", "bags"]


def created(kind: str, folder: Path, **options: Any) -> Store:
    layout = pressmark.layout("0002") if kind == "ocfl" else None
    return store_class(kind).create(folder, layout, **options)


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store of two objects, and copies of it and of their files beside it."""
    write(tmp_path / "files", FILES)
    store = created(request.param, tmp_path / "store")
    store.put("one", tmp_path / "files")
    store.put("two", {"a.txt": b"of the other"})
    shutil.copytree(tmp_path / "store", tmp_path / "copy", symlinks=True)
    return store


def path_of(store: Store, identifier: str, name: str) -> Path:
    return next(Path(os.fsdecode(path)) for found, path in store.get(identifier).files() if found == name)


def changed_in_place(path: Path) -> None:
    path.write_bytes(b"X" + path.read_bytes()[1:])


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lost(path: Path) -> None:
    path.unlink()


def errors(report: Report) -> list[tuple[str, str]]:
    return [(one.kind, one.path) for one in report.problems if one.kind != "inventory-advice"]


def mended(store: Store, good: Path, *identifiers: str, **how: Any) -> tuple[Report, list[str]]:
    """Mend objects, and return the report and the paths of the files that were replaced."""
    steps: list[RepairStep] = []
    report = stores.mend(store, good, identifiers, progress=EventListener(steps.append), **how)  # type: ignore[arg-type]
    assert {step.action for step in steps} <= {"mend"}
    return report, [step.path for step in steps]


@pytest.mark.parametrize("damage", [changed_in_place, cut, lost])
def test_a_damaged_file(store: Store, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """A damaged, cut or lost file is replaced by that of a copy of the store, and all else stays as it was."""
    before = snapshot(tmp_path / "store")
    path = path_of(store, "one", "sub/b.txt")
    mode = path.stat().st_mode
    damage(path)
    assert errors(store.check(digests=True))
    report, paths = mended(store, tmp_path / "copy")
    assert errors(report) == []
    assert paths == [str(path.relative_to(tmp_path / "store"))]
    assert report.counts["mended"] == 1
    assert report.counts["objects"] == 2
    assert path.stat().st_mode == mode
    assert {name: data for name, data in snapshot(tmp_path / "store").items() if b"index" not in name} == {
        name: data for name, data in before.items() if b"index" not in name
    }
    assert errors(store.check(digests=True)) == []


def test_a_dry_run_changes_nothing(store: Store, tmp_path: Path) -> None:
    """A dry run names the same files, and writes nothing."""
    for name in FILES:
        changed_in_place(path_of(store, "one", name)) if name != "a.txt" else None
    before = snapshot(tmp_path / "store")
    report, paths = mended(store, tmp_path / "copy", dry_run=True)
    assert len(paths) >= 1
    assert snapshot(tmp_path / "store") == before
    assert report.ok
    assert mended(store, tmp_path / "copy")[1] == paths


@pytest.mark.parametrize("form", ["files", "renamed", "bag", "pairtree", "object"])
def test_other_good_copies(store: Store, tmp_path: Path, form: str) -> None:
    """Files come from a directory, whatever their names, from a bag, from a store of another kind, from an object."""
    good = tmp_path / "good"
    if form == "files":
        good = tmp_path / "files"
    elif form == "renamed":
        write(good, {str(number): data for number, data in enumerate(FILES.values())})
    elif form == "bag":
        shutil.copytree(tmp_path / "files", good)
        bagit.make_bag(good)
    elif form == "pairtree":
        stores.create("pairtree", good).put("one", tmp_path / "files")
    else:
        good = Path(os.fsdecode(stores.open(tmp_path / "copy").get("one").path))
    path = path_of(store, "one", "sub/b.txt")
    changed_in_place(path)
    report, paths = mended(store, good, "one")
    assert errors(report) == []
    assert len(paths) == 1
    assert path.read_bytes() == FILES["sub/b.txt"]
    assert errors(store.check(digests=True)) == []


def test_what_the_copy_lacks(store: Store, tmp_path: Path) -> None:
    """A file without a good one stays as it is and is reported; the others are mended."""
    path, other = path_of(store, "one", "sub/b.txt"), path_of(store, "two", "a.txt")
    changed_in_place(path)
    lost(other)
    write(tmp_path / "good", {"x": FILES["sub/b.txt"], "a.txt": b"also damaged"})
    report, paths = mended(store, tmp_path / "good")
    assert paths == [str(path.relative_to(tmp_path / "store"))]
    assert errors(report) == [("unmended", str(other.relative_to(tmp_path / "store")))]
    assert "lost, and the good copy has no file with its sha512 digest" in report.problems[0].message
    assert not other.exists()
    assert not [name for name in snapshot(tmp_path / "store") if name.endswith(b"/lock")]


def test_only_the_given_objects(store: Store, tmp_path: Path) -> None:
    """Other objects are not read; an unknown identifier is reported, and the others are mended."""
    for identifier in ("one", "two"):
        changed_in_place(path_of(store, identifier, "a.txt"))
    report, paths = mended(store, tmp_path / "copy", "none", "two")
    assert [one.kind for one in report.problems] == ["unrepaired"]
    assert len(paths) == 1
    assert path_of(store, "two", "a.txt").read_bytes() == b"of the other"
    assert path_of(store, "one", "a.txt").read_bytes() != b"first"


def test_no_good_copy(store: Store, tmp_path: Path) -> None:
    """A copy that is missing, or is the store itself, is refused; so is a store without digests."""
    with pytest.raises(StoreError, match="No such file"):
        stores.mend(store, tmp_path / "nowhere")
    with pytest.raises(StoreError, match="the store itself"):
        stores.mend(store, tmp_path / "copy" / ".." / "store")
    tree = stores.create("pairtree", tmp_path / "tree")
    tree.put("one", tmp_path / "files")
    with pytest.raises(StoreError, match="record no digests"):
        stores.mend(tree, tmp_path / "files")


def test_a_copy_that_changes_while_it_is_read(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A good file that changes before it is copied is not taken."""
    from pressmark.stores.repairing import mending

    path = path_of(store, "one", "sub/b.txt")
    changed_in_place(path)
    damaged = path.read_bytes()
    copy = mending.copy_files

    def late(tasks: Any, *given: Any, **how: Any) -> Any:
        changed_in_place(Path(os.fsdecode(tasks[0][1])))
        return copy(tasks, *given, **how)

    monkeypatch.setattr(mending, "copy_files", late)
    report, paths = mended(store, tmp_path / "copy", "one")
    assert paths == []
    assert [one.kind for one in report.problems] == ["unrepaired"]
    assert "changed while it was read" in report.problems[0].message
    assert path.read_bytes() == damaged


def test_an_object_that_another_run_changes(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that another run has replaced meanwhile is kept."""
    from pressmark.stores.repairing import mending

    path = path_of(store, "one", "sub/b.txt")
    changed_in_place(path)
    copy = mending.copy_files

    def replacing(*given: Any, **how: Any) -> Any:
        monkeypatch.undo()
        stores.open(store.root).put("one", {"new.txt": b"new"}, replace=True)
        return copy(*given, **how)

    monkeypatch.setattr(mending, "copy_files", replacing)
    report, paths = mended(store, tmp_path / "copy", "one")
    assert paths == []
    assert [one.kind for one in report.problems] == ["unrepaired"]
    assert [name for name, _path in store.get("one").files()] == ["new.txt"]


def test_a_new_file_that_cannot_be_read(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The damaged file is put back if the new one is not what it should be in its place."""
    from pressmark.stores.repairing import mending

    path = path_of(store, "one", "sub/b.txt")
    changed_in_place(path)
    damaged = path.read_bytes()
    exchange = mending.exchange

    def spoiling(new: bytes, target: bytes) -> bool:
        done = exchange(new, target)
        cut(Path(os.fsdecode(target)))
        monkeypatch.undo()
        return done

    monkeypatch.setattr(mending, "exchange", spoiling)
    report, paths = mended(store, tmp_path / "copy", "one")
    assert paths == []
    assert "check the disk" in report.problems[0].message
    assert path.read_bytes() == damaged


def test_links_are_not_followed(store: Store, tmp_path: Path) -> None:
    """Neither is a link in the copy a good file, nor is anything written behind a link in the object."""
    path = path_of(store, "one", "sub/b.txt")
    write(tmp_path / "good", {})
    (tmp_path / "good").mkdir(exist_ok=True)
    (tmp_path / "good/b.txt").symlink_to(tmp_path / "files/sub/b.txt")
    lost(path)
    assert mended(store, tmp_path / "good", "one")[1] == []
    shutil.rmtree(path.parent)
    (tmp_path / "elsewhere").mkdir()
    path.parent.symlink_to(tmp_path / "elsewhere")
    report, paths = mended(store, tmp_path / "files", "one")
    assert str(path.relative_to(tmp_path / "store")) not in paths
    assert report.problems
    assert os.listdir(tmp_path / "elsewhere") == []


# --- bags ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def bags(tmp_path: Path) -> Store:
    write(tmp_path / "files", FILES)
    store = stores.create("bags", tmp_path / "store")
    store.put("one", tmp_path / "files")
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    return store


def test_a_damaged_manifest(bags: Store, tmp_path: Path) -> None:
    """A damaged manifest comes back first; it says which payload files are damaged."""
    bag = tmp_path / "store/one"
    text = (bag / "manifest-sha512.txt").read_text()
    (bag / "manifest-sha512.txt").write_text(text.replace(text[:4], "dead", 1))
    cut(bag / "data/sub/b.txt")
    (bag / "bag-info.txt").write_text("Contact-Name: nobody\nExternal-Identifier: one\n")
    report, paths = mended(bags, tmp_path / "copy")
    assert errors(report) == []
    assert set(paths) >= {"one/bag-info.txt", "one/manifest-sha512.txt", "one/data/sub/b.txt"}
    assert snapshot(bag) == snapshot(tmp_path / "copy/one")


def test_names_in_another_spelling(tmp_path: Path) -> None:
    """A file whose name is normalised otherwise than in the manifest is not lost."""
    store = stores.create("bags", tmp_path / "store")
    store.put("one", {"caf\u00e9.txt": b"x", "other": b"y"})
    data = tmp_path / "store/one/data"
    os.rename(data / "caf\u00e9.txt", data / unicodedata.normalize("NFD", "caf\u00e9.txt"))
    write(tmp_path / "good", {"x": b"x", "y": b"y"})
    (data / "other").write_bytes(b"z")
    before = sorted(os.listdir(data))
    report, paths = mended(store, tmp_path / "good")
    assert paths == ["one/data/other"]
    assert errors(report) == []
    assert sorted(os.listdir(data)) == before


def test_files_to_be_fetched_are_not_lost(tmp_path: Path) -> None:
    write(tmp_path / "in", FILES)
    (tmp_path / "store").mkdir()
    bagit.create_holey(tmp_path / "in", tmp_path / "store/one", "https://example.org/")
    store = stores.open(tmp_path / "store", "bags")
    write(tmp_path / "good", FILES)
    report, paths = mended(store, tmp_path / "good")
    assert paths == []
    assert errors(report) == []


def test_a_serialized_bag_stays(bags: Store, tmp_path: Path) -> None:
    """A serialized bag is not looked into, and not changed."""
    bagit.pack(tmp_path / "copy/one", tmp_path / "store/two.tar")
    before = (tmp_path / "store/two.tar").read_bytes()
    report, paths = mended(bags, tmp_path / "files")
    assert (errors(report), paths) == ([], [])
    assert (tmp_path / "store/two.tar").read_bytes() == before
