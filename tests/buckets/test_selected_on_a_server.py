"""Selected objects of stores on a server: the commands print what they print of its directory."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cli.conftest import Call, call  # noqa: F401
from pressmark import stores
from support.trees import snapshot, write
from ways.stores import KINDS, make_store

IDS = ("urn:a", "urn:b", "urn:c")


@pytest.mark.parametrize("kind", KINDS)
def test_commands(kind: str, folder: Path, call: Call, tmp_path: Path) -> None:  # noqa: F811
    local, address = (
        make_store(kind, tmp_path / kind, {one: {"f.txt": one.encode()} for one in IDS}),
        f"s3://books/{kind}",
    )
    shutil.copytree(local, folder / kind)
    (tmp_path / "list").write_text("urn:c\nurn:x\nurn:a\n")
    for arguments in (
        ["check", "urn:a", "urn:x", stores.open(local).find("urn:b").path, "--json"],
        ["check", "--from", "list", "--digests", "--json"],
        ["check", "--match", "urn:[ab]", "--json"],
        ["ls", "--from", "list"],
        ["ls", "--match", "*b", "--json"],
    ):
        found, expected = (call("store", arguments[0], str(at), *arguments[1:]) for at in (address, local))
        lines, others = found.stdout.splitlines(), expected.stdout.splitlines()
        if "--json" in arguments:
            mine, theirs = (json.loads(one.pop())["summary"] for one in (lines, others))
            assert {name: mine[name] for name in theirs} == theirs
        assert (found.exit_code, lines) == (expected.exit_code, others), arguments
    for at in (address, str(local)):
        done = call("store", "get", at, "--from", "list", "-o", f"copies-{at == address}")
        assert done.exit_code == 1
        assert done.stderr.endswith(": 2 objects copied, 1 failed\n")
    assert snapshot(tmp_path / "copies-True") == snapshot(tmp_path / "copies-False")
    assert call("store", "get", address, "--match", "*", "-o", "copies-True").exit_code == 0
    assert sorted(one.name for one in (tmp_path / "copies-True").iterdir()) == ["urn+a", "urn+b", "urn+c"]


def test_stored_digests(folder: Path, call: Call, tmp_path: Path) -> None:  # noqa: F811
    """The files of selected objects only are verified, by the digests that the server keeps."""
    assert call("store", "init", "ocfl", "s3://books/root", "--layout", "0004").exit_code == 0
    (tmp_path / "f.txt").write_bytes(b"data")
    for one in IDS:
        assert call("store", "put", "s3://books/root", one, "f.txt").exit_code == 0
    done = call("store", "check", "s3://books/root", "urn:a", "urn:c", "--digests=stored", "--json")
    summary = json.loads(done.stdout.splitlines()[-1])["summary"]
    assert (done.exit_code, summary["objects"], summary["stored"], summary["unverified"]) == (0, 2, 2, 0)


def test_an_object(folder: Path, call: Call, tmp_path: Path) -> None:  # noqa: F811
    """One OCFL object at an address is checked as on a disk."""
    local = make_store("ocfl", tmp_path / "root", {"urn:a": {"f.txt": b"one"}})
    shutil.copytree(local / stores.open(local).find("urn:a").path, folder / "some" / "object")
    done = call("store", "check", "s3://books/some/object", "--digests", "--json")
    assert (done.exit_code, json.loads(done.stdout.splitlines()[-1])["summary"]["objects"]) == (0, 1)
    write(folder / "some" / "object", {"v1/content/f.txt": b"two"})
    done = call("store", "check", "s3://books/some/object/", "--digests")
    assert (done.exit_code, done.stdout.count("error: content-mismatch: object/v1/content/f.txt")) == (1, 1)
