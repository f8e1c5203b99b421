"""Versions of OCFL objects: the one that goes to another kind of store, and who makes new ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pressmark import migrate, stores
from pressmark.errors import MigrationError
from pressmark.migrate.rows import SOURCE_KEPT, Row
from pressmark.stores.ocfl.root import OcflRoot

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


def ran(plan: migrate.Plan) -> tuple[migrate.Run, dict[str, Row]]:
    run = migrate.run(plan, threads=True)
    return run, {row.source_id: row for row in run.rows()}


def blocks(root: Path, identifier: str) -> list[dict[str, Any]]:
    """Return the versions of an object as its inventory lists them."""
    path = Path(os.fsdecode(stores.open(root).get(identifier).path), "inventory.json")
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
    assert migrate.verify(run.plan, threads=True).by_status == {"ok": 2, "source_missing": 1}
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
    assert "keeps all versions of each object; omit the version" in str(error)
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
        migrate.resume(plan, options=others, threads=True)


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
    stores.open(source, durable=False).put("aa1", source.parent / "more.txt", replace=True)
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
            migrate.resume(plan, options=others, threads=True)
        assert f"different options: {words}; use the same" in str(caught.value)


@pytest.mark.parametrize("given", [{"user": ANN}, {"message": "moved"}])
def test_versions_of_ocfl_objects_keep_their_user(root: OcflRoot, tmp_path: Path, given: dict[str, Any]) -> None:
    error, _ = refused(root.root, tmp_path / "new", to="ocfl", layout="0003", destination_options=given)
    assert f"versions of OCFL objects keep their own {next(iter(given))}; omit the option" in str(error)
