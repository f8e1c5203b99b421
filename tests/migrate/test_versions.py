"""Versions of OCFL objects: the one that goes to another kind of store, and who makes new ones."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pressmark import migrate, stores
from pressmark.errors import MigrationError
from pressmark.migrate.entry import SOURCE_KEPT, Entry
from pressmark.stores.ocfl.local.local_changes import LocalChanges
from pressmark.stores.ocfl.root import OcflRoot
from pressmark.stores.registry import store_class

from .stores_to_migrate import contents, known_rows, layout_or_none, made, refused, warnings

ANN = {"name": "Ann", "address": "mailto:ann@example.org"}
#: The versions of the objects of a root.
VERSIONS: dict[str, list[dict[str, bytes]]] = {
    "one": [{"a.txt": b"first"}],
    "three": [{"a.txt": b"1"}, {"a.txt": b"2"}, {"b.txt": b"2"}],
    "two": [{"a.txt": b"old"}, {"a.txt": b"new"}],
}


def put(root: OcflRoot, identifier: str, files: dict[str, bytes], folder: Path) -> None:
    given = {}
    for number, (name, data) in enumerate(files.items()):
        given[name] = folder / f"given-{number}"
        given[name].write_bytes(data)
    root.put(identifier, given, replace=True)


@pytest.fixture
def root(source: Path, tmp_path: Path) -> OcflRoot:
    root = OcflRoot(made(source, [], kind="ocfl", layout=layout_or_none("0004")), durable=False)
    for identifier, versions in VERSIONS.items():
        for files in versions:
            put(root, identifier, files, tmp_path)
    return root


def ran(plan: migrate.Plan) -> tuple[migrate.Run, dict[str, Entry]]:
    run = migrate.run(plan, processes=False)
    return run, {row.source_id: row for row in run.rows()}


def blocks(root: Path, identifier: str) -> list[dict[str, Any]]:
    """Return the versions of an object as its inventory lists them."""
    path = Path(stores.open(root).get(identifier).path, "inventory.json")
    return list(json.loads(path.read_bytes())["versions"].values())


# --- from OCFL to other kinds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["pairtree", "vitro", "bags"])
def test_one_version_of_each_object(root: OcflRoot, tmp_path: Path, to: str) -> None:
    """The named version goes; an object without it is reported by the plan and the run, and the rest is migrated."""
    plan = migrate.plan(root.root, tmp_path / "new", to=to, version="v2")
    assert (plan.objects, plan.files, plan.missing) == (2, 2, 1)
    assert plan.warnings == {"left-out": 2, "version-missing": 1}
    (row,) = known_rows(plan)
    assert (row.source_id, row.status, row.error_code) == ("one", "source_missing", "version-missing")
    assert row.error == "version 'v2' not found; the object has v1"
    (warning,) = (one for one in warnings(plan) if one["kind"] == "version-missing")
    assert warning["objects"][0]["source_id"] == "one"
    run, rows = ran(plan)
    assert (run.by_status, run.exit_code) == ({"ok": 2, "source_missing": 1}, 1)
    assert contents(tmp_path / "new") == {name: VERSIONS[name][1] for name in ("three", "two")}
    assert rows["three"].error == f"not migrated, not supported by stores of kind {to}: 2 other versions"
    assert rows["two"].error == f"not migrated, not supported by stores of kind {to}: 1 older version"
    assert migrate.verify(run.plan, processes=False).by_status == {"ok": 2, "source_missing": 1}
    assert (Path(run.work) / "remaining.txt").read_text() == "one\n"


def test_a_version_by_number(root: OcflRoot, tmp_path: Path) -> None:
    """Zero-padding does not matter, to the object or to the option."""
    for number, version in enumerate((2, "2", "v2", "v0002")):
        plan = migrate.plan(root.root, tmp_path / str(number), to="pairtree", version=version, ids=["two"])
        assert plan.options.version == "v2"
        ran(plan)
        assert contents(tmp_path / str(number)) == {"two": VERSIONS["two"][1]}
    for version in ("", "v", "newest", "v-1", "v0", "v1.5"):
        with pytest.raises(ValueError, match=r"expected the name of a version, such as v2"):
            migrate.plan(root.root, tmp_path / "x", to="pairtree", version=version)


def test_versions_that_cannot_be_chosen(root: OcflRoot, tmp_path: Path) -> None:
    error, _ = refused(root.root, tmp_path / "x", to="ocfl", layout="0003", version="v1")
    assert "keeps all versions of each object; omit version=" in str(error)
    made(tmp_path / "tree", ["one"])
    error, _ = refused(tmp_path / "tree", tmp_path / "x", to="bags", version="v1")
    assert "a store of kind pairtree has no versions" in str(error)


def test_a_move_of_one_version_keeps_the_others(root: OcflRoot, tmp_path: Path) -> None:
    run, rows = ran(migrate.plan(root.root, tmp_path / "new", to="pairtree", version="v1", move=True))
    assert (run.by_status, run.kept) == ({"ok": 3}, 2)
    assert {one.id for one in root.objects()} == {"three", "two"}
    assert (rows["three"].error_code, rows["one"].error_code) == (SOURCE_KEPT, None)
    assert "2 other versions" in str(rows["three"].error)


def test_a_run_is_resumed_with_its_version_only(root: OcflRoot, tmp_path: Path) -> None:
    plan = migrate.plan(root.root, tmp_path / "new", to="pairtree", version="v1")
    others = migrate.make_options(root.root, tmp_path / "new", to="pairtree", version="v2")
    with pytest.raises(MigrationError, match=r"different options: version was 'v1', now 'v2'; use the same"):
        migrate.resume(plan, options=others, processes=False)


# --- catching up ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", ["pairtree", "bags"])
def test_a_renamed_file_is_caught_up_with(root: OcflRoot, tmp_path: Path, to: str) -> None:
    """A new version without new content is a change, although no content file differs in size or time."""
    first, _ = ran(migrate.plan(root.root, tmp_path / "new", to=to))
    put(root, "two", {"c.txt": b"new"}, tmp_path)
    plan = migrate.catch_up(first.work)
    assert (plan.objects, plan.unchanged) == (1, 2)
    run, rows = ran(plan)
    assert (run.ok, rows["two"].status) == (True, "ok")
    assert contents(tmp_path / "new") == {
        **{name: versions[-1] for name, versions in VERSIONS.items()},
        "two": {"c.txt": b"new"},
    }
    assert migrate.catch_up(run.work).unchanged == 3


def test_catching_up_with_another_version(root: OcflRoot, tmp_path: Path) -> None:
    """Objects are looked at again, although the files of both versions have the same size and time."""
    first, _ = ran(migrate.plan(root.root, tmp_path / "new", to="pairtree", version="v2", ids=["three", "two"]))
    plan = migrate.catch_up(first.work, version="v3")
    assert (plan.objects, plan.missing, plan.unchanged) == (1, 2, 0)
    second, rows = ran(plan)
    assert {name: row.status for name, row in rows.items()} == {
        "three": "ok",
        "two": "source_missing",
        "one": "source_missing",
    }
    assert contents(tmp_path / "new") == {"three": VERSIONS["three"][2], "two": VERSIONS["two"][1]}
    assert migrate.catch_up(second.work).unchanged == 1


# --- who makes new versions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 40000])
def test_new_versions_name_their_user(source: Path, tmp_path: Path, size: int) -> None:
    """First and later versions have user and message, and a check has nothing to advise."""
    made(source, ["aa1"], {"one.txt": b"1" * size})
    given = {"user": ANN, "message": "from the tape library"}
    first, _ = ran(migrate.plan(source, tmp_path / "new", to="ocfl", layout="0003", destination_options=given))
    (source.parent / "more.txt").write_bytes(b"more")
    stores.PairtreeStore(source, durable=False).put("aa1", source.parent / "more.txt", replace=True)
    bob = {"name": "Bob", "address": "https://example.org/bob"}
    second, rows = ran(migrate.catch_up(first.work, destination_options={"user": bob}))
    assert rows["aa1"].status == "ok"
    v1, v2 = blocks(tmp_path / "new", "aa1")
    assert (v1["user"], v1["message"]) == (ANN, "from the tape library")
    # The message of the first run is not given again, and stays.
    assert (v2["user"], v2["message"]) == (bob, "from the tape library")
    assert second.plan.options.destination_options == {"user": bob, "message": "from the tape library"}
    assert [one.code for one in stores.open(tmp_path / "new").check(digests=True).problems if one.code] == ["W005"]


def test_a_run_is_resumed_with_its_user_only(source: Path, tmp_path: Path) -> None:
    made(source, ["aa1"])
    how: dict[str, Any] = {"to": "ocfl", "layout": "0003"}
    plan = migrate.plan(source, tmp_path / "new", **how, destination_options={"user": ANN})
    for given, words in (
        ({"user": {**ANN, "name": "Bob"}}, "destination user name was 'Ann', now 'Bob'"),
        ({}, "destination user was 'Ann', 'mailto:ann@example.org', now not given"),
        ({"user": ANN, "message": "no"}, "destination message was not given, now 'no'"),
    ):
        others = migrate.make_options(source, tmp_path / "new", **how, destination_options=given)
        with pytest.raises(MigrationError) as caught:
            migrate.resume(plan, options=others, processes=False)
        assert f"different options: {words}; use the same" in str(caught.value)


@pytest.mark.parametrize("given", [{"user": ANN}, {"message": "moved"}])
def test_versions_of_ocfl_objects_keep_their_user(root: OcflRoot, tmp_path: Path, given: dict[str, Any]) -> None:
    error, _ = refused(root.root, tmp_path / "new", to="ocfl", layout="0003", destination_options=given)
    assert f"versions of OCFL objects keep their own {next(iter(given))}; omit the option" in str(error)


# --- into OCFL, as the next version -----------------------------------------------------------------------------------


def given_tree(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def caught_up(source: Path, target: Path, changed: dict[str, bytes], tmp_path: Path) -> tuple[Path, Entry]:
    """Migrate a Pairtree to OCFL, replace its object, and catch up; return the new object and its row."""
    first, _ = ran(migrate.plan(source, target, to="ocfl", layout="0003"))
    stores.PairtreeStore(source, durable=False).put("aa1", given_tree(tmp_path / "changed", changed), replace=True)
    _run, rows = ran(migrate.catch_up(first.work))
    return Path(stores.open(target).get("aa1").path), rows["aa1"]


@pytest.mark.parametrize("has_renameat2", [True, False])
@pytest.mark.parametrize("kind", ["pairtree", "bags"])
def test_one_changed_file_of_many_is_stored_alone(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, has_renameat2: bool
) -> None:
    """Of the files that did not change, nothing is written; of the source, they are read once."""
    if not has_renameat2:
        monkeypatch.setattr("pressmark.fs.moves._renameat2", lambda: None)
    files = {f"sub{number % 7}/{number}.txt": b"%d" % number for number in range(1000)}
    store = store_class(kind).create(source, **{"durable": False} if kind == "pairtree" else {})
    store.put("aa1", given_tree(tmp_path / "given", files))
    first, _ = ran(migrate.plan(source, tmp_path / "new", to="ocfl", layout="0003"))
    files["sub0/7.txt"] = b"changed"
    store.put("aa1", given_tree(tmp_path / "given", files), replace=True)
    read: Counter[str] = Counter()

    def counted(path: Any, *arguments: Any, **how: Any) -> int:
        descriptor = opened(path, *arguments, **how)
        if isinstance(path, (bytes, str)) and os.fsdecode(path).startswith(f"{source}/"):
            read[os.fsdecode(path).rpartition("/")[2]] += 1
        return descriptor

    opened = os.open
    monkeypatch.setattr(os, "open", counted)
    run, rows = ran(migrate.catch_up(first.work))
    monkeypatch.setattr(os, "open", opened)
    assert (run.ok, rows["aa1"].status, rows["aa1"].mode, rows["aa1"].verify) == (True, "ok", "copy", "copy")
    directory = Path(stores.open(tmp_path / "new").get("aa1").path)
    new = sorted(path.name for path in (directory / "v2" / "content").rglob("*") if path.is_file())
    assert new == (["7.txt"] if kind == "pairtree" else ["7.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt"]) or (
        new == ["7.txt", "bag-info.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt"]
    )
    assert {read[f"{number}.txt"] for number in range(1000) if number != 7} == {1}
    assert read["7.txt"] <= 3
    assert not [one for one in stores.open(tmp_path / "new").check(digests=True).problems if one.severity == "error"]


def test_removed_and_renamed_files_store_nothing(source: Path, tmp_path: Path) -> None:
    made(source, ["aa1"], {"one": b"1" * 99, "two": b"2" * 99, "three": b"3"})
    changed = {"renamed/one": b"1" * 99, "two": b"2" * 99}
    directory, row = caught_up(source, tmp_path / "new", changed, tmp_path)
    assert (row.status, row.mode, row.files) == ("ok", None, 2)
    assert contents(tmp_path / "new") == {"aa1": changed}
    assert sorted(path.name for path in (directory / "v2").iterdir()) == ["inventory.json", "inventory.json.sha512"]
    # A name that was a file becomes a directory.
    stores.PairtreeStore(source, durable=False).put(
        "aa1", given_tree(tmp_path / "more", {"two/four": b"4"}), replace=True
    )
    run, _rows = ran(migrate.catch_up(f"{tmp_path}/new.migration-2"))
    assert contents(tmp_path / "new") == {"aa1": {"two/four": b"4"}}
    assert migrate.verify(run.plan, processes=False).ok


def test_an_object_with_another_algorithm(source: Path, tmp_path: Path) -> None:
    """A new version keeps the digest algorithm of its object, and is compared by it."""
    made(source, ["aa1"], {"one": b"1", "two": b"2"})
    root = OcflRoot.create(tmp_path / "new", layout_or_none("0003"), algorithm="sha256", durable=False)
    root.put("aa1", {"one": source.parent / "file-source-0", "gone": source.parent / "file-source-1"})
    _run, rows = ran(migrate.plan(source, tmp_path / "new", to="ocfl", layout="0003", replace=True))
    assert (rows["aa1"].status, rows["aa1"].mode) == ("ok", None)
    assert contents(tmp_path / "new") == {"aa1": {"one": b"1", "two": b"2"}}
    document = stores.OcflRoot(tmp_path / "new").get("aa1").inventory
    assert (document["head"], document["digestAlgorithm"], len(document["manifest"])) == ("v2", "sha256", 2)


def test_an_object_that_changes_while_it_is_compared(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that another run adds meanwhile is not taken for the one that was compared."""
    made(source, ["aa1"], {"one": b"1", "two": b"2"})
    root = OcflRoot.create(tmp_path / "new", layout_or_none("0003"), durable=False)
    root.put("aa1", {"one": source.parent / "file-source-0"})
    update = OcflRoot.update
    others = [b"theirs"]

    def later(root: OcflRoot, identifier: str, **how: Any) -> Any:
        if others:
            (tmp_path / "theirs").write_bytes(others.pop())
            update(root, identifier, add={"theirs": tmp_path / "theirs"})
        return update(root, identifier, **how)

    monkeypatch.setattr(OcflRoot, "update", later)
    run, _rows = ran(migrate.plan(source, tmp_path / "new", to="ocfl", layout="0003", replace=True))
    assert run.ok
    assert contents(tmp_path / "new") == {"aa1": {"one": b"1", "two": b"2"}}
    assert len(root.versions("aa1")) == 3


@pytest.mark.parametrize("step", ["inventory.json", "inventory.json.sha512"])
@pytest.mark.parametrize("change", [True, False])
def test_an_unfinished_version_is_finished(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, change: bool
) -> None:
    """A version that a killed run did not finish is finished before the object is compared or changed."""
    made(source, ["aa1"], {"one": b"1"})
    first, _ = ran(migrate.plan(source, tmp_path / "new", to="ocfl", layout="0003"))
    put_tree = stores.PairtreeStore(source, durable=False)
    put_tree.put("aa1", given_tree(tmp_path / "second", {"one": b"1", "two": b"2"}), replace=True)
    replace = LocalChanges.replace

    def killed(storage: LocalChanges, new: bytes, path: bytes) -> None:
        if path.endswith(b"/" + step.encode()):
            raise KeyboardInterrupt
        replace(storage, new, path)

    monkeypatch.setattr(LocalChanges, "replace", killed)
    monkeypatch.setattr(LocalChanges, "_recover", lambda *_arguments: None)
    with pytest.raises(KeyboardInterrupt):
        ran(migrate.catch_up(first.work))
    monkeypatch.undo()
    root = stores.OcflRoot(tmp_path / "new")
    assert {one.kind for one in root.check().problems} & {"version-unfinished"}
    if change:
        put_tree.put("aa1", given_tree(tmp_path / "third", {"three": b"3"}), replace=True)
    run = migrate.resume(migrate.work_folder(tmp_path / "new"), processes=False)
    assert run.ok
    assert not [one for one in root.check(digests=True).problems if one.severity == "error"]
    states = [{"one": b"1"}, {"one": b"1", "two": b"2"}, *([{"three": b"3"}] if change else [])]
    assert [one.files for one in root.versions("aa1")] == [len(files) for files in states]
    assert contents(tmp_path / "new") == {"aa1": states[-1]}


# --- from OCFL to OCFL, with all versions -----------------------------------------------------------------------------


@pytest.mark.parametrize("move", [False, True])
def test_later_versions_are_added(root: OcflRoot, tmp_path: Path, move: bool) -> None:
    """A catch-up copies the versions that the destination lacks, as they are in the source."""
    first, _ = ran(migrate.plan(root.root, tmp_path / "new", to="ocfl", layout="0003"))
    root = OcflRoot(root.root, durable=False, user=ANN, message="later")
    put(root, "two", {"a.txt": b"newer"}, tmp_path)
    put(root, "two", {"a.txt": b"newest", "c.txt": b"new"}, tmp_path)
    put(root, "one", {"renamed.txt": b"first"}, tmp_path)
    before = {name: root.get(name).inventory for name in VERSIONS}
    plan = migrate.catch_up(first.work, move=move)
    assert (plan.objects, plan.unchanged) == (2, 1)
    run, rows = ran(plan)
    assert (run.ok, run.by_status) == (True, {"ok": 2})
    assert {(row.status, row.verify) for row in rows.values()} == {("ok", "copy")}
    assert (rows["two"].mode, rows["two"].bytes > 0) == ("copy", True)
    target = stores.OcflRoot(tmp_path / "new")
    assert {name: target.get(name).inventory for name in VERSIONS} == before
    assert not [one for one in target.check(digests=True).problems if one.severity == "error"]
    assert migrate.verify(run.plan, processes=False).ok
    assert {one.id for one in root.objects()} == ({"three"} if move else set(VERSIONS))


def different_target(root: Path, new: Path, tmp_path: Path) -> None:
    put(stores.OcflRoot(new), "two", {"a.txt": b"theirs"}, tmp_path)


def logged_source(root: Path, new: Path, tmp_path: Path) -> None:
    log = Path(stores.open(root).get("two").path, "logs")
    log.mkdir()
    (log / "fixity.log").write_text("checked")


def logged_target(root: Path, new: Path, tmp_path: Path) -> None:
    logged_source(new, root, tmp_path)


def without_inventory(root: Path, new: Path, tmp_path: Path) -> None:
    path = Path(stores.open(root).get("two").path, "v3")
    for name in ("inventory.json", "inventory.json.sha512"):
        (path / name).unlink()


def occupied(root: Path, new: Path, tmp_path: Path) -> None:
    path = Path(stores.open(new).get("two").path, "v3")
    path.mkdir()
    (path / "notes.txt").write_text("not a version")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (different_target, "is not an earlier state of this one: 'inventory.json' differs"),
        (logged_source, "is not an earlier state of this one: 'logs/fixity.log' differs"),
        (logged_target, "is not an earlier state of this one: 'logs/fixity.log' differs"),
        (without_inventory, "v3 cannot be added to the object at "),
        (occupied, "is not an earlier state of this one: 'v3/notes.txt' differs"),
    ],
)
def test_versions_that_cannot_be_added(root: OcflRoot, tmp_path: Path, change: Any, words: str) -> None:
    """If the destination has anything else, or the version is not a plain next one, nothing changes."""
    first, _ = ran(migrate.plan(root.root, tmp_path / "new", to="ocfl", layout="0003"))
    put(root, "two", {"a.txt": b"newer"}, tmp_path)
    change(Path(root.root), tmp_path / "new", tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "new").rglob("*") if path.is_file()}
    _run, rows = ran(migrate.catch_up(first.work))
    assert rows["two"].status == "exists_different"
    assert words in str(rows["two"].error)
    assert {path: path.read_bytes() for path in (tmp_path / "new").rglob("*") if path.is_file()} == before


def test_a_version_that_is_damaged_in_the_source(root: OcflRoot, tmp_path: Path) -> None:
    """Content that does not match its inventory is not added."""
    first, _ = ran(migrate.plan(root.root, tmp_path / "new", to="ocfl", layout="0003"))
    put(root, "two", {"a.txt": b"newer"}, tmp_path)
    (Path(root.get("two").path) / "v3" / "content" / "a.txt").write_bytes(b"rotten")
    before = {path: path.read_bytes() for path in (tmp_path / "new").rglob("*") if path.is_file()}
    _run, rows = ran(migrate.catch_up(first.work))
    assert rows["two"].status == "digest_mismatch"
    assert {path: path.read_bytes() for path in (tmp_path / "new").rglob("*") if path.is_file()} == before
