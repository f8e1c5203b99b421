"""OCFL: content that an object contains already is stored once, but only where the stored content is intact."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import migrate, stores
from pressmark.stores import OcflRoot
from support.trees import write
from ways.stores import make_store, object_directory

DATA = b"content that is stored once" * 100
OLD = {"a.bin": DATA, "b.txt": b"beta"}
USER = ("--user", "A", "--user-address", "mailto:a@example.org")


def swap(path: Path) -> None:
    """Replace a file by a symbolic link to a copy of it."""
    shutil.copy(path, path.parents[2] / "elsewhere")
    path.unlink()
    path.symlink_to(path.parents[2] / "elsewhere")


def swap_directory(path: Path) -> None:
    shutil.move(path.parent, path.parents[4] / "moved")
    path.parent.symlink_to(path.parents[4] / "moved")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "same size": lambda path: path.write_bytes(b"C" + DATA[1:]),
    "truncated": lambda path: path.write_bytes(DATA[:-1]),
    "empty": lambda path: path.write_bytes(b""),
    "missing": lambda path: path.unlink(),
    "link": swap,
    "link above": swap_directory,
    "pipe": pipe,
    "directory": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.fixture
def root(tmp_path: Path) -> OcflRoot:
    write(tmp_path / "in", OLD)
    opened = stores.open(make_store("ocfl", tmp_path / "root", {"x": OLD}))
    assert isinstance(opened, OcflRoot)
    return opened


def stored(root: OcflRoot) -> Path:
    """Return the first content file of the object, in its first version."""
    return object_directory(Path(root.root), "x") / "v1/content/a.bin"


def contents(root: OcflRoot) -> dict[str, bytes]:
    """Return the files of the newest version, as a reader of the first content path finds them."""
    path = object_directory(Path(root.root), "x")
    inventory = json.loads((path / "inventory.json").read_bytes())
    state = inventory["versions"][inventory["head"]]["state"]
    return {name: (path / inventory["manifest"][digest][0]).read_bytes() for digest in state for name in state[digest]}


#: Ways to write a version with a file whose content is in the object: the arguments, and the files afterwards.
WAYS: dict[str, Callable[[Path], tuple[list[str], dict[str, bytes]]]] = {
    "put --replace": lambda given: (["put", "x", f"{given}", "--replace"], OLD),
    "put --from --replace": lambda given: (["put", "--from", f"{listed(given)}", "--replace"], OLD),
    "update --add": lambda given: (["update", "x", "--add", f"{given}/a.bin=c.bin"], {**OLD, "c.bin": DATA}),
    "update --add of the same name": lambda given: (["update", "x", "--add", f"{given}/a.bin"], OLD),
    "update --add --no-dedup": lambda given: (["update", "x", "--add", f"{given}/a.bin", "--no-dedup"], OLD),
    "update --add with --rename": lambda given: (
        ["update", "x", "--add", f"{given}/a.bin=c.bin", "--rename", "b.txt=d.txt"],
        {"a.bin": DATA, "c.bin": DATA, "d.txt": b"beta"},
    ),
    "update --add in place of --remove": lambda given: (
        ["update", "x", "--add", f"{given}/a.bin=c.bin", "--remove", "a.bin"],
        {"c.bin": DATA, "b.txt": b"beta"},
    ),
}


def listed(given: Path) -> Path:
    path = given.parent / "list.tsv"
    path.write_text(f"x\t{given}\n")
    return path


@pytest.mark.parametrize(
    ("way", "damage"), [*((way, "same size") for way in WAYS), *(("update --add", damage) for damage in DAMAGES)]
)
def test_new_content_is_stored_where_the_old_is_damaged(
    root: OcflRoot, tmp_path: Path, call: Any, way: str, damage: str, implementation: Any
) -> None:
    """A reader finds the new content, and a warning names the damaged one."""
    arguments, expected = WAYS[way](tmp_path / "in")
    path = stored(root)
    DAMAGES[damage](path)
    result = call("store", arguments[0], root.root, *arguments[1:], *USER)
    assert result.exit_code == 0, result.stderr
    assert "v1/content/a.bin' has the digest of a new file, but is damaged" in result.stderr
    assert root.get("x").version == "v2"
    assert "v2 remains" not in result.stderr
    assert contents(root) == expected
    assert DATA in [file.read_bytes() for file in path.parents[2].glob("v2/content/**/*.bin")]


@pytest.mark.parametrize("way", WAYS)
def test_intact_content_is_stored_once(
    root: OcflRoot, tmp_path: Path, call: Any, way: str, implementation: Any
) -> None:
    arguments, expected = WAYS[way](tmp_path / "in")
    result = call("store", arguments[0], root.root, *arguments[1:], *USER)
    assert result.exit_code == 0, result.stderr
    assert "damaged" not in result.stderr
    assert contents(root) == expected
    assert not (object_directory(Path(root.root), "x") / "v2/content").exists()
    assert [found.kind for found in root.check(digests=True).problems if found.severity == "error"] == []


def test_another_intact_copy_takes_its_place(root: OcflRoot, tmp_path: Path, implementation: Any) -> None:
    """Of several content files with the digest, one that is intact is enough."""
    root.update("x", add={"a2.bin": DATA}, dedup=False)
    directory = object_directory(Path(root.root), "x")
    (directory / "v2/content/a2.bin").write_bytes(b"C" + DATA[1:])
    record = root.update("x", add={"c.bin": DATA, "d.bin": DATA})
    assert [found.kind for found in record.problems] == ["content-mismatch"]
    assert record.changes == {"added": 2, "removed": 0, "changed": 0, "renamed": 0, "unchanged": 3}
    assert not (directory / "v3/content").exists()
    stored(root).write_bytes(b"")
    record = root.update("x", add={"e.bin": DATA, "f.bin": DATA})
    assert [found.kind for found in record.problems] == ["content-mismatch"] * 2
    assert [path.name for path in (directory / "v4/content").iterdir()] == ["e.bin"]
    assert contents(root) == {**OLD, **dict.fromkeys(["a.bin", "a2.bin", "c.bin", "d.bin", "e.bin", "f.bin"], DATA)}


def test_what_is_reported(root: OcflRoot, tmp_path: Path, call: Any) -> None:
    """A version that only restores content is one, and counted."""
    stored(root).unlink()
    result = call("store", "put", root.root, "x", f"{tmp_path / 'in'}", "--replace", "--json", *USER)
    record, summary = map(json.loads, result.stdout.splitlines())
    assert record["version"] == "v2"
    assert record["changes"] == {
        "added": 0, "removed": 0, "changed": 0, "renamed": 0, "unchanged": 1, "restored": 1
    }  # fmt: skip
    assert [found["kind"] for found in record["problems"]] == ["content-missing"]
    assert summary["summary"]["warnings"] == 1
    assert "'x': version v2: 1 restored, 1 unchanged" in result.stderr


def test_no_file_is_read_without_a_duplicate(root: OcflRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only stored content that would take the place of a new file is read, and each once."""
    read: list[bytes] = []
    hash_tasks = root.storage.hash_tasks

    def record(tasks: Any, *options: Any) -> Any:
        tasks = list(tasks)
        read.extend(os.path.basename(file) for _key, file in tasks)
        return hash_tasks(tasks, *options)

    monkeypatch.setattr(root.storage, "hash_tasks", record)
    root.update("x", add={"new.txt": b"new", "new2.txt": b"new"}, rename={"b.txt": "c.txt"})
    assert read == []
    root.update("x", add={"again": DATA, "another": DATA, "name": DATA, "e": b"beta"})
    assert sorted(read) == [b"a.bin", b"b.txt"]


def test_many_duplicates(root: OcflRoot, tmp_path: Path, implementation: Any) -> None:
    """More files than are compared together, some of them damaged."""
    files = {f"{number:04}": b"%d" % (number // 2) for number in range(1000)}
    root.put("y", files)
    directory = object_directory(Path(root.root), "y") / "v1/content"
    damaged = sorted(directory.iterdir())[::50]
    for path in damaged:
        path.write_bytes(b"?" * path.stat().st_size)
    record = root.put("y", {**files, "more": b"more"}, replace=True)
    assert len(record.problems) == len(damaged) == 10
    assert record.changes is not None
    assert (record.changes["restored"], record.changes["unchanged"], record.changes["added"]) == (10, 990, 1)
    found = {name: Path(path).read_bytes() for name, path in root.get("y").files()}
    assert found == {**files, "more": b"more"}


def test_a_migration_that_catches_up(tmp_path: Path, implementation: Any) -> None:
    """A source object that has again the content of an older version, which is damaged: it is copied."""
    tree = stores.open(make_store("pairtree", tmp_path / "tree", {"x": {"a.bin": DATA}}))
    plan = migrate.plan(tmp_path / "tree", tmp_path / "root", to="ocfl", layout="0004")
    assert migrate.run(plan).ok
    tree.put("x", {"a.bin": b"other"}, replace=True)
    assert migrate.run(migrate.catch_up(plan)).by_status == {"ok": 1}
    root = stores.open(tmp_path / "root")
    assert isinstance(root, OcflRoot)
    stored(root).write_bytes(b"C" + DATA[1:])
    tree.put("x", {"a.bin": DATA}, replace=True)
    assert migrate.run(migrate.catch_up(plan)).by_status == {"ok": 1}
    assert root.get("x").version == "v3"
    assert contents(root) == {"a.bin": DATA}
