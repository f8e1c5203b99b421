"""Omitted parts of an object: the plan warns, the row names them, and a move keeps the source."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import migrate, stores
from pressmark.errors import ObjectError
from pressmark.layouts import layout
from pressmark.migrate.entry import SOURCE_KEPT, Entry
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.stores.ocfl.writing import version_writer

from .stores_to_migrate import contents, layout_or_none, made, warnings

HEAD = "extensions/0005-mutable-head"


def write(path: Path, data: bytes = b"x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def root_of(source: Path, identifier: str) -> Path:
    return Path(os.fsdecode(stores.open(source).get(identifier).path))


def stage(path: Path) -> None:
    """Add a mutable HEAD to an object's root, as ocfl-java does (extension 0005)."""
    head = path / HEAD / "head"
    write(head / "content" / "r1" / "staged.txt", b"the only copy")
    write(head / "inventory.json", json.dumps({"head": "v2"}).encode())
    write(path / HEAD / "root-inventory.json.sha512", b"0 inventory.json\n")


def log(path: Path) -> None:
    write(path / "logs" / "fixity.log", b"checked in 2019")


def extension(path: Path) -> None:
    write(path / "extensions" / "0013-future" / "notes.json", b"{}")


def unlisted(path: Path) -> None:
    write(path / "v1" / "content" / "unlisted.txt", b"in no manifest")


def beside(path: Path) -> None:
    write(path / "v1" / "derivatives" / "thumbnail.jpg", b"beside the content")


def stranger(path: Path) -> None:
    write(path / "notes.txt", b"OCFL knows no such file")


def empty(path: Path) -> None:
    (path / "v1" / "content" / "empty").mkdir(parents=True)


def unused(path: Path) -> None:
    """A content file in the manifest but not in any version's state."""
    write(path / "v1" / "content" / "unused.txt", b"unused")
    document = json.loads((path / "inventory.json").read_bytes())
    document["manifest"]["ab" * 64] = ["v1/content/unused.txt"]
    (path / "inventory.json").write_text(json.dumps(document))


WAYS: dict[str, tuple[Callable[[Path], None], str]] = {
    "mutable HEAD": (stage, HEAD),
    "logs": (log, "logs/fixity.log"),
    "extension": (extension, "extensions/0013-future/notes.json"),
    "unlisted": (unlisted, "v1/content/unlisted.txt"),
    "beside content": (beside, "v1/derivatives/thumbnail.jpg"),
    "stranger": (stranger, "notes.txt"),
    "empty": (empty, "v1/content/empty/"),
    "unused": (unused, "v1/content/unused.txt"),
}


def moved(source: Path, to: str, target: Path, **how: object) -> tuple[migrate.Run, dict[str, Entry]]:
    plan = migrate.plan(source, target, to=to, **{"move": True, **how})  # type: ignore[arg-type]
    run = migrate.run(plan, processes=False)
    return run, {row.source_id: row for row in run.rows()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return made(tmp_path / "source", ["kept", "plain"], kind="ocfl", layout=layout_or_none("0004"))


@pytest.mark.parametrize("to", ["pairtree", "bags", "vitro"])
@pytest.mark.parametrize("what", WAYS)
def test_a_move_keeps_an_ocfl_object_of_which_something_does_not_go(
    root: Path, tmp_path: Path, what: str, to: str
) -> None:
    change, named = WAYS[what]
    directory = root_of(root, "kept")
    change(directory)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    # Some of these objects are invalid.
    run, rows = moved(root, to, tmp_path / "new", improper="take")
    assert (run.by_status, run.kept, run.exit_code) == ({"ok": 2}, 1, 1)
    assert rows["kept"].error_code == SOURCE_KEPT
    assert named in str(rows["kept"].error)
    assert rows["plain"].error_code is None
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before
    assert [one.id for one in stores.open(root).objects()] == ["kept"]
    (warning,) = warnings(run.plan)
    assert (warning["kind"], warning["objects"][0]["source_id"]) == ("left-out", "kept")
    assert named in warning["message"]


@pytest.mark.parametrize("what", ["mutable HEAD", "logs"])
def test_without_a_move_it_is_said_what_does_not_go(root: Path, tmp_path: Path, what: str) -> None:
    change, named = WAYS[what]
    change(root_of(root, "kept"))
    for status in ("ok", "exists_same"):
        run, rows = moved(root, "bags", tmp_path / "new", move=False)
        assert (run.ok, run.by_status, run.noted) == (True, {status: 2}, 1)
        assert named in str(rows["kept"].error)
        assert (rows["kept"].error_code, rows["plain"].error) == (None, None)
        assert run.plan.warnings == {"left-out": 1}


def test_an_object_that_is_staged_only_stays(tmp_path: Path) -> None:
    """An object that exists only in a mutable HEAD, with an empty first version, keeps its source."""
    root = OcflRoot.create(tmp_path / "source", layout("0004"))
    (tmp_path / "nothing").mkdir()
    root.put("staged", tmp_path / "nothing")
    path = root_of(tmp_path / "source", "staged")
    stage(path)
    run, rows = moved(tmp_path / "source", "pairtree", tmp_path / "new")
    assert (run.kept, run.exit_code) == (1, 1)
    assert "ocfl-java" in str(rows["staged"].error)
    assert (path / HEAD / "head" / "content" / "r1" / "staged.txt").read_bytes() == b"the only copy"


def test_older_versions_are_said_to_be_left_out(root: Path, tmp_path: Path) -> None:
    write(tmp_path / "new.txt", b"new")
    stores.open(root).put("kept", tmp_path / "new.txt", replace=True)
    run, rows = moved(root, "pairtree", tmp_path / "new", move=False)
    assert (run.ok, run.noted, run.plan.warnings) == (True, 1, {"left-out": 1})
    assert "1 older version" in str(rows["kept"].error)


def test_what_describes_the_versions_themselves_goes_with_them(tmp_path: Path) -> None:
    """Inventories, sidecars, declarations and path mapping files do not keep a source."""
    root = OcflRoot.create(tmp_path / "source", layout("0004"), content_paths=layout("0011"))
    for number, data in enumerate((b"same", b"same", b"other")):
        write(tmp_path / "given" / f"{number}.txt", data)
    root.put("one", tmp_path / "given")
    root.put("two", {})
    path = root_of(tmp_path / "source", "one")
    (path / "logs").mkdir()
    run, _rows = moved(tmp_path / "source", "pairtree", tmp_path / "new")
    assert (run.ok, run.kept, run.plan.warnings) == (True, 0, {})
    assert list(stores.open(tmp_path / "source").objects()) == []


@pytest.mark.parametrize("copy_mode", ["auto", "copy"])
def test_between_storage_roots_all_of_an_object_goes(root: Path, tmp_path: Path, copy_mode: str) -> None:
    directory = root_of(root, "kept")
    stage(directory)
    log(directory)
    files = {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    run, rows = moved(root, "ocfl", tmp_path / "new", layout="0003", copy_mode=copy_mode)
    assert (run.ok, run.kept, run.plan.warnings) == (True, 0, {})
    assert rows["kept"].error is None
    there = root_of(tmp_path / "new", "kept")
    assert {path.relative_to(there): path.read_bytes() for path in there.rglob("*") if path.is_file()} == files
    assert list(stores.open(root).objects()) == []


def test_a_check_warns_of_extensions_of_objects(root: Path) -> None:
    path = root_of(root, "kept")
    stage(path)
    log(path)
    report = stores.open(root).check()
    found = [(one.severity, one.path.rpartition("/")[2]) for one in report.problems if one.kind == "mutable-head"]
    assert found == [("warning", "0005-mutable-head")]


def test_an_encapsulating_directory_that_is_a_link_is_copied(tmp_path: Path) -> None:
    """An encapsulating directory that is a link, as in HathiTrust's trees, is copied: a renamed link would dangle."""
    source = made(tmp_path / "source", ["abc"])
    path = source / "pairtree_root" / "ab" / "c"
    os.rename(path / "abc", tmp_path / "partition")
    (path / "abc").symlink_to(os.path.relpath(tmp_path / "partition", path))
    run, _rows = moved(source, "pairtree", tmp_path / "further" / "below" / "new")
    assert run.ok
    assert contents(tmp_path / "further" / "below" / "new") == {"abc": {"data.txt": b"content"}}
    assert (tmp_path / "partition" / "data.txt").read_bytes() == b"content"


def test_a_mutable_head_is_not_cut_off(root: Path, tmp_path: Path) -> None:
    """A put and a migration refuse an object with a mutable HEAD: ocfl-java would reject a version added below it."""
    directory = root_of(root, "kept")
    write(tmp_path / "new.txt", b"new")
    store = stores.open(root)
    stage(directory)
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    with pytest.raises(ObjectError, match=r"mutable HEAD.*commit it with ocfl-java") as caught:
        store.put("kept", tmp_path / "new.txt", replace=True)
    assert caught.value.kind == "mutable-head"
    trees = made(tmp_path / "trees", ["kept", "plain"], {"data.txt": b"other content"})
    run, rows = moved(trees, "ocfl", root, move=False, replace=True)
    assert run.by_status == {"exists_different": 1, "ok": 1}
    assert rows["kept"].error_code == "mutable-head"
    assert {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()} == before


def test_a_mutable_head_that_comes_while_a_version_is_written(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = root_of(root, "kept")
    write(tmp_path / "new.txt", b"new")
    write_staged = version_writer._write

    def slow(*arguments: Any, **how: Any) -> Any:
        written = write_staged(*arguments, **how)
        stage(directory)
        return written

    monkeypatch.setattr(version_writer, "_write", slow)
    with pytest.raises(ObjectError, match="mutable HEAD"):
        stores.open(root).put("kept", tmp_path / "new.txt", replace=True)
    assert (directory / HEAD / "head" / "content" / "r1" / "staged.txt").read_bytes() == b"the only copy"
    assert sorted(path.name for path in directory.glob("v*")) == ["v1"]


# --- empty directories ----------------------------------------------------------------------------------------------


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    """A Pairtree with two objects, one with empty directories."""
    source = made(tmp_path / "trees", ["kept", "plain"])
    (source / "pairtree_root" / "ke" / "pt" / "kept" / "empty" / "er").mkdir(parents=True)
    return source


@pytest.mark.parametrize("to", ["ocfl", "vitro"])
@pytest.mark.parametrize("drop", [False, True])
def test_a_move_keeps_empty_directories_unless_dropped(trees: Path, tmp_path: Path, to: str, drop: bool) -> None:
    layout = {"layout": "0004"} if to == "ocfl" else {}
    run, rows = moved(trees, to, tmp_path / "new", drop_empty_directories=drop, **layout)
    assert run.plan.warnings == {"left-out": 1}
    assert "empty/er" in warnings(run.plan)[0]["message"]
    assert "empty/er" in str(rows["kept"].error)
    if drop:
        assert (run.ok, run.kept, run.noted, rows["kept"].error_code) == (True, 0, 1, None)
        assert os.listdir(trees / "pairtree_root") == []
    else:
        assert (run.exit_code, run.kept, run.noted, rows["kept"].error_code) == (1, 1, 0, SOURCE_KEPT)
        assert "drop_empty_directories=True" in str(rows["kept"].error)
        assert (trees / "pairtree_root" / "ke" / "pt" / "kept" / "empty" / "er").is_dir()
    assert not (trees / "pairtree_root" / "pl").exists()


def test_what_was_there_already_is_noted_as_well(trees: Path, tmp_path: Path) -> None:
    """A resumed run reports omissions for objects that it stored before, too."""
    for status in ("ok", "exists_same"):
        run, rows = moved(trees, "ocfl", tmp_path / "new", move=False, layout="0004")
        assert (run.ok, run.by_status, run.noted) == (True, {status: 2}, 1)
        assert "empty/er" in str(rows["kept"].error)


def improper(source: Path) -> Path:
    """Make an object of several names, with an empty directory among them."""
    path = source / "pairtree_root" / "ke" / "pt"
    os.rename(path / "kept" / "data.txt", path / "data.txt")
    return path


@pytest.mark.parametrize("to", ["pairtree", "bags"])
@pytest.mark.parametrize("change", [False, True])
def test_empty_directories_go_where_they_can(trees: Path, tmp_path: Path, to: str, change: bool) -> None:
    if change:
        improper(trees)
    run, rows = moved(trees, to, tmp_path / "new", improper="take", copy_mode="copy")
    assert (run.ok, run.kept, run.plan.warnings.get("left-out")) == (True, 0, None)
    assert rows["kept"].error is None
    found = {name for name, _path in stores.open(tmp_path / "new").get("kept").empty_directories()}
    assert found == {"kept/empty/er" if change else "empty/er"}
    assert os.listdir(trees / "pairtree_root") == []
    # And back, out of the bag just made.
    run, _rows = moved(tmp_path / "new", "pairtree", tmp_path / "back", copy_mode="copy")
    assert run.ok
    assert {name for name, _path in stores.open(tmp_path / "back").get("kept").empty_directories()} == found


def test_links_to_empty_directories_are_followed_where_that_is_asked_for(trees: Path, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    (trees / "pairtree_root" / "pl" / "ai" / "n" / "plain" / "link").symlink_to(tmp_path / "nothing")
    run, _rows = moved(trees, "bags", tmp_path / "new", links="follow")
    assert run.ok
    assert (tmp_path / "new" / "plain" / "data" / "link").is_dir()


def test_an_empty_directory_that_the_same_object_has_not(trees: Path, tmp_path: Path) -> None:
    """If the files are equal, only the source's empty directory is reported."""
    made(tmp_path / "new", ["kept", "plain"])
    run, rows = moved(trees, "pairtree", tmp_path / "new")
    assert (run.by_status, run.kept) == ({"exists_same": 2}, 1)
    assert (rows["kept"].error_code, rows["plain"].error_code) == (SOURCE_KEPT, None)
    assert (trees / "pairtree_root" / "ke" / "pt" / "kept" / "empty" / "er").is_dir()


def test_empty_directories_beside_the_payload(tmp_path: Path) -> None:
    """A bag of a migration is unwrapped only if nothing was added beside its payload, not even a directory."""
    source = made(tmp_path / "trees", ["kept"])
    moved(source, "bags", tmp_path / "bags")
    (tmp_path / "bags" / "kept" / "tags").mkdir()
    run, _rows = moved(tmp_path / "bags", "pairtree", tmp_path / "back")
    assert run.ok
    names = {name for name, _path in stores.open(tmp_path / "back").get("kept").files()}
    assert "bagit.txt" in names
    assert [name for name, _path in stores.open(tmp_path / "back").get("kept").empty_directories()] == ["tags"]


def test_strays_of_a_pairtree_are_warnings(tmp_path: Path) -> None:
    """Files in pairtree_root and junk beside objects do not make a migration of good objects fail."""
    source = made(tmp_path / "source", ["abc", "def"], kind="pairtree")
    root = source / "pairtree_root"
    for path in ("notes.txt", ".DS_Store", "ab/.DS_Store", "de/f/Thumbs.db", "zz/._a"):
        write(root / path)
    run, rows = moved(source, "ocfl", tmp_path / "new", layout="0003", move=False)
    assert (run.exit_code, run.by_status, sorted(rows)) == (0, {"ok": 2}, ["abc", "def"])
    assert run.plan.warnings == {"stray": 5}
    assert sorted((one["objects"][0]["source"], one["message"].partition(":")[0]) for one in warnings(run.plan)) == [
        ("pairtree_root/.DS_Store", "junk"),
        ("pairtree_root/ab/.DS_Store", "junk"),
        ("pairtree_root/de/f/Thumbs.db", "junk"),
        ("pairtree_root/notes.txt", "root-file"),
        ("pairtree_root/zz/._a", "junk"),
    ]
    write(root / "zz" / "a.txt")  # a file below a shorty is an object
    write(root / "foo" / "a.txt")  # and a directory in the root is one without an identifier
    run, rows = moved(source, "bags", tmp_path / "bags", move=False)
    assert (run.exit_code, run.by_status) == (1, {"ok": 2, "source_invalid": 2})
    assert set(rows) == {"abc", "def", "zz", ""}


@pytest.mark.parametrize("to", ["pairtree", "ocfl"])
def test_ignored_files_stay_in_the_source(tmp_path: Path, to: str) -> None:
    """Ignored files make no object invalid, are not migrated, and are not removed by a move."""
    source = made(tmp_path / "source", ["abc", "def"], kind="pairtree")
    strays = ["notes.tmp", "pairtree_root/notes.tmp", "pairtree_root/ab/c/notes.tmp", "pairtree_root/zz/notes.tmp"]
    for path in strays:
        write(source / path, b"keep")
    options: dict[str, Any] = {"source_options": {"ignore": ["*.tmp"]}}
    if to == "ocfl":
        options["layout"] = "0003"
    run, _rows = moved(source, to, tmp_path / "new", **options)
    assert (run.exit_code, run.by_status, run.kept, run.plan.warnings) == (0, {"ok": 2}, 0, {})
    left = [path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()]
    assert sorted(left) == sorted([*strays, "pairtree_version0_1"])
    assert not list((tmp_path / "new").rglob("*.tmp"))
    assert [one.id for one in stores.open(tmp_path / "new").objects()] == ["abc", "def"]
