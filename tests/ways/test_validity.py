"""What is not recognised counts: it is a row of a migration, and so is an invalid object, whatever the destination."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import migrate, stores
from pressmark.errors import MigrationError
from support.trees import write
from ways.stores import KINDS, changing_commands, make_store, object_directory, reading_commands

FILES = {"a.txt": b"alpha"}
OBJECTS = {"abcdefgh": FILES, "abcdefgz": FILES}
INVENTORY, SIDECAR = "inventory.json", "inventory.json.sha512"


def removed(*names: str) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        for name in names:
            path = directory / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return change


def added(name: str, content: bytes = b"x") -> Callable[[Path], None]:
    return lambda path: write(path, {name: content})


def edited(**values: Any) -> Callable[[Path], None]:
    """Change the inventory, with a sidecar that fits."""

    def change(path: Path) -> None:
        data = json.dumps({**json.loads((path / INVENTORY).read_bytes()), **values}).encode()
        for folder in (path, path / "v1"):
            (folder / INVENTORY).write_bytes(data)
            (folder / SIDECAR).write_text(f"{hashlib.sha512(data).hexdigest()} {INVENTORY}\n")

    return change


def second_version(change: Callable[[Path], None]) -> Callable[[Path], None]:
    """Change an object that has a second version, in which the file differs."""

    def whole(path: Path) -> None:
        root = next(one for one in path.parents if (one / "ocfl_layout.json").exists())
        (root.parent / "a.txt").write_bytes(b"beta")
        stores.open(root).put("abcdefgh", {"a.txt": root.parent / "a.txt"}, replace=True)
        change(path)

    return whole


def not_encapsulated(path: Path) -> None:
    (directory,) = path.iterdir()
    (directory / "a.txt").rename(path / "a.txt")
    directory.rmdir()


#: By kind of store, ways in which an object is none, or an invalid one.
INVALID: dict[str, dict[str, Callable[[Path], None]]] = {
    "ocfl": {
        "no declaration": removed("0=ocfl_object_1.1"),
        "no declaration, no inventory": removed("0=ocfl_object_1.1", INVENTORY, SIDECAR),
        "content only": removed("0=ocfl_object_1.1", INVENTORY, SIDECAR, f"v1/{INVENTORY}", f"v1/{SIDECAR}"),
        "no inventory": removed(INVENTORY),
        "no sidecar": removed(SIDECAR),
        "wrong sidecar": added(SIDECAR, b"0" * 128 + b" inventory.json\n"),
        "wrong declaration": added("0=ocfl_object_1.1", b"x"),
        "file in the object": added("notes.txt"),
        "file in a version": added("v1/notes.txt"),
        "file in the content": added("v1/content/notes.txt"),
        "unknown key": edited(unknown=1),
        "other version": added("v9/notes.txt"),
        "other inventory in the version": added(f"v1/{INVENTORY}", b"{}"),
        "damaged": added("v1/content/a.txt", b"damaged"),
        "missing in an older version": second_version(removed("v1/content/a.txt")),
        "damaged in an older version": second_version(added("v1/content/a.txt", b"Alpha")),
    },
    "bags": {
        "no bagit.txt": removed("bagit.txt"),
        "data only": removed("bagit.txt", "bag-info.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt"),
        "no manifest": removed("manifest-sha512.txt"),
        "no data": removed("data"),
        "extra": added("data/notes.txt"),
        "damaged": added("data/a.txt", b"damaged"),
    },
    "pairtree": {
        "not encapsulated": not_encapsulated,
        "beside the object": added("notes.txt"),
    },
    "vitro": {"two files": added("b.txt"), "file name": lambda path: (path / "a.txt").rename(path / "a b")},
}


def migrated(store: Path, kind: str, to: str) -> migrate.Run:
    layout = {"layout": "0004"} if to == "ocfl" else {}
    plan = migrate.plan(store, store.parent / f"to-{to}", to=to, source_kind=kind, **layout)
    return migrate.run(plan, processes=False)


CASES = [(kind, way) for kind, ways in INVALID.items() for way in ways]


@pytest.mark.parametrize(("kind", "way"), CASES)
def test_an_invalid_object_is_a_row(kind: str, way: str, tmp_path: Path, implementation: Any) -> None:
    """The other object is migrated, the invalid one is listed, and the exit status is 1, to every kind of store."""
    store = make_store(kind, tmp_path / "store", OBJECTS)
    INVALID[kind][way](object_directory(store, "abcdefgh"))
    for to in KINDS:
        if (kind, to) == ("bags", "vitro"):
            continue  # a bag has several files
        run = migrated(store, kind, to)
        statuses = {row.id or "": row.status for row in run.rows()}
        assert (run.exit_code, len(statuses)) == (1, 2), to
        assert statuses.pop("abcdefgz") == "ok"
        assert set(statuses.values()) <= {"source_invalid", "digest_mismatch"}, to


def add_junk(directory: Path) -> None:
    for name in (".DS_Store", "Thumbs.db", "desktop.ini", "._a.txt", "._a.zip"):
        write(directory, {name: b"x"})
    for name in ("lost+found", ".snapshot", "@eaDir", "__MACOSX"):
        write(directory, {f"{name}/sub/file": b"x"})


@pytest.mark.parametrize("kind", KINDS)
def test_junk_changes_no_exit_status(kind: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    """Files and directories of operating systems are no objects, wherever objects may lie, even if unreadable."""
    store = make_store(kind, tmp_path / "store", OBJECTS)
    object_path = object_directory(store, "abcdefgh")
    tree = store / {"pairtree": "pairtree_root", "vitro": "file_storage_root"}.get(kind, "")
    # In the object itself, OCFL allows no other file; a tag file of a bag may have any name.
    for directory in {store, tree, object_path.parent, object_path.parent if kind == "ocfl" else object_path}:
        add_junk(directory)
    os.chmod(tree / "lost+found", 0)
    for arguments in (("ls",), ("check",), ("check", "--digests"), ("repair", "--dry-run"), ("repair",)):
        shown = call("store", arguments[0], f"{store}", *arguments[1:])
        assert shown.exit_code == 0, shown.output
        assert "2 objects" in shown.stderr
    for to in KINDS:
        if (kind, to) != ("bags", "vitro"):
            run = migrated(store, kind, to)
            assert (run.exit_code, run.by_status) == (0, {"ok": 2}), to
    os.chmod(tree / "lost+found", 0o755)
    junk = {path for path in store.rglob("*") if path.name == "Thumbs.db" and not path.is_relative_to(object_path)}
    commands = {
        **reading_commands(kind, store, "abcdefgh", "a.txt", tmp_path / "out"),
        **changing_commands(kind, store, "abcdefgz", "a.txt", tmp_path / "store-source-0" / "a.txt"),
    }
    commands["put"] = ("store", "put", f"{store}", "abcdefgy", f"{tmp_path / 'store-source-0' / 'a.txt'}")
    for command, arguments in commands.items():
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        if command not in ("rm", "update --rename"):
            assert call(*arguments).exit_code == 0, command
    assert call(*commands["rm"]).exit_code == 0
    assert junk == {path for path in junk if path.exists()}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("pairtree", "abcdefgz/.rsync-partial/a.txt"),
        ("pairtree", "abcdefgz/.a.txt.Ab3dE6"),
        ("pairtree", "abcdefgz/a.txt.filepart"),
        ("pairtree", ".rsync-partial/a.txt"),
        ("vitro", ".a.txt.Ab3dE6"),
    ],
)
def test_an_object_of_an_incomplete_transfer_is_named(kind: str, name: str, tmp_path: Path, call: Any) -> None:
    """A warning; not if the object has other files as well."""
    store = make_store(kind, tmp_path / "store", {"abcdefgh": FILES})
    directory = object_directory(store, "abcdefgh").parent / "gz"
    write(directory, {name: b"x"})
    found = call("store", "check", f"{store}")
    assert (found.exit_code, found.stdout.count("warning: partial: ")) == (0, 1), found.output
    if name.startswith("abcdefgz"):
        write(directory / "abcdefgz", {"b.txt": b"x"})
        assert call("store", "check", f"{store}").stdout == ""


def test_an_object_with_the_name_of_junk(tmp_path: Path, call: Any, implementation: Any) -> None:
    """What was stored under such an identifier or file name is found."""
    store = make_store("pairtree", tmp_path / "store", {"@eaDir": FILES})
    assert call("store", "ls", f"{store}").stdout == "@eaDir\tpairtree_root/@e/aD/ir\n"
    assert migrated(store, "pairtree", "bags").by_status == {"ok": 1}
    store = make_store("vitro", tmp_path / "vitro", {"abc": {"Thumbs.db": b"x"}})
    assert call("store", "cat", f"{store}", "abc", "Thumbs.db").stdout == "x"
    assert call("store", "ls", f"{store}", "abc").stdout == "Thumbs.db\n"


@pytest.mark.parametrize("kind", ["ocfl", "bags"])
def test_a_file_beside_objects_is_a_warning(kind: str, tmp_path: Path, implementation: Any) -> None:
    store = make_store(kind, tmp_path / "store", OBJECTS)
    write(object_directory(store, "abcdefgh").parent, {"README": b"x"})
    run = migrated(store, kind, "pairtree")
    assert (run.exit_code, run.by_status, run.plan.warnings["stray"]) == (0, {"ok": 2}, 1)


def test_an_invalid_object_refuses_the_plan_on_request(tmp_path: Path) -> None:
    store = make_store("ocfl", tmp_path / "store", OBJECTS)
    removed("0=ocfl_object_1.1")(object_directory(store, "abcdefgh"))
    with pytest.raises(MigrationError, match="improper"):
        migrate.plan(store, tmp_path / "new", to="bags", improper="refuse")
