"""A repair gathers every object in one directory, and keeps every byte and identifier."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

from pressmark.errors import ObjectError, StoreError
from pressmark.progress_event import EventListener
from pressmark.reports import Problem, Report
from pressmark.stores import RepairStep
from pressmark.stores.pairtree import pairtree_store as pairtree
from pressmark.stores.pairtree.pairtree_store import PairtreeStore
from pressmark.stores.pairtree.walk import Walk
from support.trees import snapshot, write

from ..conftest import Tree
from .test_walk import TREES, build


def known(report: Report) -> list[Problem]:
    """Return the problems of a report, except that these trees have no version file."""
    return [problem for problem in report.problems if problem.kind != "version-missing"]


def kinds(store: PairtreeStore) -> list[str]:
    return sorted(problem.kind for problem in store.check().problems if problem.kind != "version-missing")


def files(store: PairtreeStore) -> dict[str, dict[str, bytes]]:
    """Return place -> name -> content; names are relative to the object's own directory."""
    return {
        record.path: {name: Path(path).read_bytes() for name, path in store.locate(record).files()}
        for record in store.objects()
    }


def test_the_specification(tree: Tree) -> None:
    """The split end of section 2 of the specification is repaired as drawn there."""
    base = tree("be/nt/README.txt", "be/nt/report.pdf", "be/nt/ef/foo/x")
    events: list[object] = []
    report = PairtreeStore(base).repair(progress=EventListener(events.append))
    assert sorted(snapshot(base / "pairtree_root" / "be" / "nt")) == [
        *(b"ef", b"ef/foo", b"ef/foo/x", b"obj", b"obj/README.txt", b"obj/report.pdf"),
    ]
    assert events == [RepairStep("encapsulate", "pairtree_root/be/nt", ("README.txt", "report.pdf"))]
    assert report.counts == {"objects": 2, "repaired": 1}
    assert report.ok
    assert kinds(PairtreeStore(base)) == []


def test_moved_and_kept_names(tree: Tree) -> None:
    """Every improper object is repaired; reserved names, shorties and an object at the root stay."""
    names = (
        *(
            "ab",
            "cd/xy",
            "be/nt/obj/old",
            "be/nt/more",
            "be/nt/pairtree_x",
            "be/nt/ef/foo/x",
            "zz/z/ab/c",
            "zz/z/foo/d",
        ),
        *("top/x", "em/pt/y/", "ok/foo/x"),
    )
    base = tree(*names[1:])
    root = base / "pairtree_root"
    before = files(PairtreeStore(base))
    first = snapshot(base)
    expected: list[object] = []
    PairtreeStore(base).repair(dry_run=True, progress=EventListener(expected.append))
    assert snapshot(base) == first
    events: list[object] = []
    report = PairtreeStore(base).repair(progress=EventListener(events.append))
    assert events == expected
    assert files(PairtreeStore(base)) == before
    assert sorted(os.listdir(root / "be" / "nt")) == ["ef", "obj", "pairtree_x"]
    assert sorted(os.listdir(root / "be" / "nt" / "obj")) == ["more", "obj"]
    assert sorted(os.listdir(root / "zz" / "z" / "obj")) == ["ab", "foo"]
    assert sorted(os.listdir(root)) == ["be", "cd", "ok", "top", "zz"]
    assert sorted(problem.kind for problem in known(report)) == ["empty-id", "reserved"]
    again: list[object] = []
    second = snapshot(base)
    assert PairtreeStore(base).repair(progress=EventListener(again.append)).counts["repaired"] == 0
    assert (again, snapshot(base)) == ([], second)


@settings(max_examples=settings.default.max_examples // 2)
@given(TREES)
def test_any_tree(tree: dict[bytes, object]) -> None:
    """In any tree, identifiers and bytes are kept, every object is encapsulated, and repair is idempotent."""
    with tempfile.TemporaryDirectory() as folder:
        build(os.path.join(os.fsencode(folder), b"pairtree_root"), tree)
        store = PairtreeStore(folder, durable=False)
        before, ids = files(store), [record.id for record in store.objects()]
        store.repair()
        assert files(store) == before
        assert [record.id for record in store.objects()] == ids
        assert all(record.proper for record in store.objects() if record.path != "pairtree_root")
        assert not {"empty", "unfinished"} & set(kinds(store))
        done = snapshot(Path(folder))
        store.repair()
        assert snapshot(Path(folder)) == done


def test_ignored_names_stay(tree: Tree) -> None:
    """Ignored names are not moved and cause no move."""
    base = tree("ab/foo/x", "ab/.DS_Store", "cd/one", "cd/two", "cd/.DS_Store")
    PairtreeStore(base).repair(ignore=[".DS_Store"])
    root = base / "pairtree_root"
    assert sorted(os.listdir(root / "ab")) == [".DS_Store", "foo"]
    assert sorted(os.listdir(root / "cd")) == [".DS_Store", "obj"]


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_links(tree: Tree, tmp_path: Path) -> None:
    """Links of an object keep their targets; if that is impossible, the object is not changed."""
    base = tree("ab/one", "ab/two", "cd/one", "cd/sub/x", "ef/foo/x")
    root = base / "pairtree_root"
    write(tmp_path, {"outside": b"o"})
    (root / "ab" / "near").symlink_to("one")
    (root / "ab" / "far").symlink_to("../ef/foo/x")
    (root / "ab" / "absolute").symlink_to(tmp_path / "outside")
    (root / "cd" / "sub" / "in").symlink_to("../one")
    (root / "cd" / "sub" / "out").symlink_to("../../ef/foo/x")
    before = files(PairtreeStore(base))
    report = PairtreeStore(base).repair()
    assert files(PairtreeStore(base)) == before
    found = snapshot(root)
    assert found[b"ab/obj/near"] == b"-> one"
    assert found[b"ab/obj/far"] == b"-> ../../ef/foo/x"
    assert b"cd/obj" not in found
    assert [(problem.kind, problem.path) for problem in report.problems if problem.section != "4"] == [
        ("link-unmoved", "pairtree_root/cd/sub/out"),
        ("split-end", "pairtree_root/cd"),
    ]
    os.unlink(root / "cd" / "sub" / "out")
    assert PairtreeStore(base).repair().ok
    assert snapshot(root)[b"cd/obj/sub/in"] == b"-> ../one"


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
@pytest.mark.parametrize("dry_run", [True, False])
def test_an_empty_directory_behind_a_link(tree: Tree, tmp_path: Path, dry_run: bool) -> None:
    """An empty directory that cannot be removed is still reported."""
    base = tree("xy/foo/x")
    (tmp_path / "empty").mkdir()
    (base / "pairtree_root" / "ab").symlink_to(tmp_path / "empty")
    events: list[object] = []
    report = PairtreeStore(base).repair(dry_run=dry_run, progress=EventListener(events.append))
    assert events == []
    assert [problem.kind for problem in known(report)] == ["empty"]
    assert (tmp_path / "empty").is_dir()


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_link_with_a_reserved_name(tree: Tree, tmp_path: Path) -> None:
    """Nothing is moved through a link that stands where the repair gathers names."""
    base = tree("ab/one", "ab/two", "cd/one", "cd/two")
    (tmp_path / "theirs").mkdir()
    (base / "pairtree_root" / "ab" / "pairtree_pressmark-obj").symlink_to(tmp_path / "theirs")
    store = PairtreeStore(base)
    assert store.repair().counts["repaired"] == 1
    assert kinds(store) == ["reserved", "split-end"]
    with pytest.raises(ObjectError, match="pairtree_pressmark-obj"):
        store.delete("ab")
    assert os.listdir(tmp_path / "theirs") == []
    assert sorted(os.listdir(base / "pairtree_root" / "ab")) == ["one", "pairtree_pressmark-obj", "two"]


def refuse_removal(monkeypatch: pytest.MonkeyPatch, ending: bytes) -> None:
    """Let the removal of the directory fail whose path ends so."""
    rmdir = os.rmdir

    def refused(path: bytes) -> None:
        if path.endswith(ending):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        rmdir(path)

    monkeypatch.setattr("os.rmdir", refused)


def test_a_refused_object(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused object is reported, and the others are repaired."""
    # A name appeared again after the repair was interrupted.
    base = tree("ab/pairtree_pressmark-obj/one", "ab/one", "cd/two", "ef/", "gh/three")
    before = snapshot(base / "pairtree_root" / "ab")
    store = PairtreeStore(base)
    refuse_removal(monkeypatch, b"/ef")
    events: list[object] = []
    report = store.repair(progress=EventListener(events.append))
    assert [event.path for event in events if isinstance(event, RepairStep)] == [
        "pairtree_root/cd",
        "pairtree_root/gh",
    ]
    assert (report.ok, report.counts) == (False, {"objects": 3, "repaired": 2})
    assert [(problem.kind, problem.path) for problem in known(report)] == [
        ("unrepaired", "pairtree_root/ab"),
        ("unfinished", "pairtree_root/ab"),
        ("unrepaired", "pairtree_root/ef"),
        ("empty", "pairtree_root/ef"),
    ]
    root = base / "pairtree_root"
    assert [problem.message for problem in report.problems if problem.kind == "unrepaired"] == [
        f"'{root}/ab/one': File exists; name collision (this file system may ignore case); rename one of the files",
        f"'{root}/ef': Permission denied; run as a user with access",
    ]
    assert snapshot(base / "pairtree_root" / "ab") == before


def test_parents_that_cannot_be_removed(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removed directory is not reported as empty; the parent that cannot be removed is."""
    store = PairtreeStore(tree("ab/cd/ef/"))
    refuse_removal(monkeypatch, b"/ab/cd")
    events: list[object] = []
    report = store.repair(progress=EventListener(events.append))
    assert events == [RepairStep("prune", "pairtree_root/ab/cd/ef")]
    assert [(problem.kind, problem.path) for problem in known(report)] == [("unrepaired", "pairtree_root/ab/cd")]


@pytest.mark.parametrize("name", ["ab/cd/", "ab/x"])
def test_a_dry_run_while_another_run_repairs(tree: Tree, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A dry run ignores what another run removes meanwhile."""
    store = PairtreeStore(tree(name))
    items = Walk.items

    def gone(self: Walk, *arguments: Any) -> Any:
        found = list(items(self, *arguments))
        shutil.rmtree(os.path.join(store.root, "pairtree_root", "ab"))
        return found

    monkeypatch.setattr(Walk, "items", gone)
    assert known(store.repair(dry_run=True)) == []


def test_a_repair_without_a_staging_directory(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure to create the staging directory ends the repair with a one-line error."""

    def refused(_folder: bytes) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", b"pairtree_pressmark")

    monkeypatch.setattr("pressmark.stores.walked_store.RunDirectory", refused)
    with pytest.raises(StoreError, match="user with access"):
        PairtreeStore(tree("ab/one", "cd/one")).repair()


def test_interrupted_changes(tree: Tree) -> None:
    """The next repair finishes a killed run's change, and until then the object reads as a whole."""
    base = tree(
        *("ab/pairtree_pressmark-obj/one", "ab/two", "cd/pairtree_pressmark-obj/one"),
        *("ef/pairtree_pressmark-old/foo/x", "gh/pairtree_pressmark-old/foo/x", "gh/foo/y"),
        *("ij/pairtree_pressmark-old/foo/x", "ij/a", "ij/b"),
        *("kl/pairtree_pressmark-old/a", "kl/pairtree_pressmark-old/b", "mn/pairtree_pressmark-old/a"),
    )
    (base / "pairtree_pressmark" / "0123").mkdir(parents=True)
    (base / "pairtree_pressmark" / "0123" / "object").write_bytes(b"")
    store = PairtreeStore(base)
    before = {path: sorted(names) for path, names in files(store).items()}
    assert before == {
        "pairtree_root/ab": ["one", "two"],
        "pairtree_root/cd": ["one"],
        "pairtree_root/ef": ["x"],
        "pairtree_root/gh": ["y"],
        "pairtree_root/ij": ["a", "b", "foo/x"],
        "pairtree_root/kl": ["a", "b"],
        "pairtree_root/mn": ["a"],
    }
    assert kinds(store) == ["leftover", "split-end", *["unfinished"] * 7]
    with store.get("ab").open("one") as file:
        assert file.read() == b"x"
    events: list[object] = []
    store.repair(progress=EventListener(events.append))
    assert [event.action for event in events if isinstance(event, RepairStep)] == ["remove", *["finish"] * 7]
    assert {path: sorted(names) for path, names in files(store).items()} == before
    assert kinds(store) == []
    assert sorted(os.listdir(base)) == ["pairtree_root"]


@pytest.mark.parametrize("stray", [".DS_Store", "other/x"])
def test_an_interrupted_replacement_beside_other_names(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stray: str
) -> None:
    """Other files beside an interrupted replacement are not mistaken for the new object; the old one stays."""
    base = tree("ab/foo/x", f"ab/{stray}")
    write(tmp_path, {"new": b"new"})

    def killed(*_names: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pressmark.fs.moves.exchange", lambda _one, _other: False)
        patch.setattr("pressmark.fs.moves.rename_new", killed)
        patch.setattr("pressmark.fs.moves.restore", killed)
        patch.setattr(pairtree, "take_back", killed)
        with pytest.raises(KeyboardInterrupt):
            PairtreeStore(base, ignore=[stray.partition("/")[0]]).put("ab", tmp_path / "new", replace=True)
    store = PairtreeStore(base)
    before = {path: sorted(names) for path, names in files(store).items()}
    is_junk = stray == ".DS_Store"
    assert before == {"pairtree_root/ab": ["x"] if is_junk else ["foo/x", stray]}
    assert store.repair().counts["repaired"] == 1
    assert {path: sorted(names) for path, names in files(store).items()} == before
    assert kinds(store) == (["junk"] if is_junk else [])
    assert (base / "pairtree_root" / "ab" / stray).exists() == is_junk


def test_reading_while_an_object_is_replaced(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an atomic exchange, a reader finds the new object that appears between two reads."""
    base = tree("ab/pairtree_pressmark-old/foo/x", "ab/other/y")
    path = base / "pairtree_root" / "ab"
    os.rename(path / "other", base / "new")
    replaced = pairtree.replaced_names

    def appears(directory: bytes) -> list[bytes]:
        if (base / "new").exists():
            os.rename(base / "new", path / "foo")
        return replaced(directory)

    monkeypatch.setattr(pairtree, "replaced_names", appears)
    assert [name for name, _path in PairtreeStore(base).get("ab").files()] == ["y"]


def test_reading_while_the_old_object_is_put_aside(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    """An old object seen first in place and then put aside is not counted twice."""
    path = tree("ab/foo/x", "ab/pairtree_pressmark-old/") / "pairtree_root" / "ab"
    replaced = pairtree.replaced_names

    def put_aside(directory: bytes) -> list[bytes]:
        if (path / "foo").exists():
            os.rename(path / "foo", path / "pairtree_pressmark-old" / "foo")
        return replaced(directory)

    monkeypatch.setattr(pairtree, "replaced_names", put_aside)
    assert [name for name, _path in PairtreeStore(path.parent).get("ab").files()] == ["x"]


def test_other_dialects_are_not_changed(tree: Tree) -> None:
    """A tree in another program's dialect is not changed."""
    store = PairtreeStore(tree("ab/x"), dialect="unt")
    assert store.repair(dry_run=True).counts["repaired"] == 1
    for action in (store.repair, lambda: store.put("a", "x"), lambda: store.delete("ab")):
        with pytest.raises(StoreError, match="read-only"):
            action()


def test_texts_of_events(tree: Tree) -> None:
    """Paths in events are text with surrogates, as in problems."""
    events: list[object] = []
    PairtreeStore(tree(b"\xff/x")).repair(dry_run=True, progress=EventListener(events.append))
    assert [event.path for event in events if isinstance(event, RepairStep)] == ["pairtree_root/\udcff"]
