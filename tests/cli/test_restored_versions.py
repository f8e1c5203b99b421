"""`pressmark store restore`: what it reports, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pressmark import stores
from pressmark.stores import OcflRoot

from .conftest import Call, Result

PATH = "b82/4aa/9f0/id%3a1"


@pytest.fixture
def root(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with an object of two versions."""
    monkeypatch.setenv("PRESSMARK_USER", "Ann")
    monkeypatch.setenv("PRESSMARK_USER_ADDRESS", "mailto:ann@example.org")
    (tmp_path / "scans/d").mkdir(parents=True)
    (tmp_path / "scans/a").write_bytes(b"a")
    (tmp_path / "scans/d/b").write_bytes(b"b")
    for arguments in (
        ["init", "ocfl", "root", "--layout", "0003"],
        ["put", "root", "id:1", "scans"],
        ["update", "root", "id:1", "--remove", "a", "--rename", "d/b=d/c"],
    ):
        assert call("store", *arguments).exit_code == 0
    return tmp_path / "root"


def restore(call: Call, *arguments: str) -> Result:
    return call("store", "restore", "root", "id:1", *arguments)


def test_an_object_and_a_directory(root: Path, call: Call) -> None:
    """The path of a directory may end with a slash, as a shell completes it."""
    done = restore(call, "--version", "1", "d/", "--message", "Back", "--created", "2026-01-02T03:04:05Z")
    assert (done.exit_code, done.stdout) == (0, f"id:1\t{PATH}\n")
    assert done.stderr == "pressmark: 'id:1': version v3: files of v1 restored: 1 renamed, 0 unchanged\n"
    assert call("store", "log", "root", "id:1").stdout.splitlines()[2] == (
        "v3\t2026-01-02T03:04:05Z\t1\t1\tAnn <mailto:ann@example.org>\tBack"
    )
    done = call("store", "restore", "root", PATH, "--version", "v1", "--json")
    record, summary = map(json.loads, done.stdout.splitlines())
    assert (record["id"], record["changes"]["added"], record["changes"]["unchanged"]) == ("id:1", 1, 1)
    assert summary == {"summary": {"ok": True, "stored": 1, "failed": 0, "warnings": 0}}
    done = restore(call, "--version", "v1")
    what = "no changes, 2 unchanged; v4 remains the newest version; content was not read"
    assert done.stderr == f"pressmark: 'id:1': {what}\n"
    assert call("store", "check", "root", "--digests").exit_code == 0


def test_the_message(root: Path, call: Call) -> None:
    """The history shows that a version is a restoration, if neither the call nor the root has a message."""
    done = restore(call, "--version", "1")
    assert done.stderr == "pressmark: 'id:1': version v3: v1 restored: 1 added, 1 renamed, 0 unchanged\n"
    assert restore(call, "--version", "v2", "d").exit_code == 0
    stores.open(root, kind="ocfl").restore("id:1", 1)
    OcflRoot(root, message="Own").restore("id:1", 2)
    log = [line.split("\t")[-1] for line in call("store", "log", "root", "id:1").stdout.splitlines()]
    assert log == [*["Stored by pressmark"] * 2, "Restored v1", "Restored files of v2", "Restored v1", "Own"]


def test_damaged_content(root: Path, call: Call) -> None:
    (root / PATH / "v1/content/a").write_bytes(b"x")
    done = restore(call, "--version", "v1", "--json")
    assert done.exit_code == 1
    what = "content of 'v1/content/a': sha512 digest mismatch; restore the file from a good copy"
    assert done.stderr == f"pressmark: 'root': object 'id:1': {what}\n"
    assert json.loads(done.stdout) == {"summary": {"ok": False, "stored": 0, "failed": 1, "warnings": 0}}
    assert restore(call, "--version", "v1", "--no-verify").exit_code == 0


def test_what_is_refused(root: Path, call: Call) -> None:
    for status, arguments, words in (
        (2, [], "missing option '--version'; pressmark store log lists the versions of an object\n"),
        (2, ["--version", "last"], "'last' is not a version; specify one such as v2"),
        (1, ["--version", "v9"], "version 'v9' not found; the object has v1 to v2"),
        (1, ["--version", "v1", "none"], "'none' is not in v1"),
    ):
        done = restore(call, *arguments)
        assert (done.exit_code, done.stdout) == (status, "")
        assert words in done.stderr
    call("store", "init", "pairtree", "pairs")
    done = call("store", "restore", "pairs", "id:1", "--version", "v1")
    what = "restore: a store of kind pairtree has no versions; restore the object from a backup"
    assert (done.exit_code, done.stderr) == (2, f"pressmark: {what}\n")


def test_a_mutable_head(root: Path, call: Call) -> None:
    """The lists name it, and nothing changes the object."""
    head = root / PATH / "extensions/0005-mutable-head/head/inventory.json"
    head.parent.mkdir(parents=True)
    head.write_bytes(b"{}")
    note = "without the staged changes of its mutable HEAD: only ocfl-java commits them"
    assert call("store", "ls", "root").stderr == "pressmark: root: 1 object, 1 with a mutable HEAD\n"
    assert call("store", "ls", "root", "id:1").stderr == f"pressmark: 'id:1': version v2: 1 file; {note}\n"
    assert call("store", "log", "root", "id:1").stderr == f"pressmark: 'id:1': 2 versions; {note}\n"
    checked = call("store", "check", "root")
    assert checked.exit_code == 0
    assert "warning: mutable-head: " in checked.stdout + checked.stderr
    for done in (restore(call, "--version", "v1"), call("store", "rm", "root", "id:1")):
        assert (done.exit_code, "commit it with ocfl-java first" in done.stderr) == (1, True)
