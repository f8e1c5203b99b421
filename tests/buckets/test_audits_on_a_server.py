"""Audits of stores on a server."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from cli.conftest import Call, call  # noqa: F401
from pressmark import stores
from ways.stores import KINDS, make_store

IDS = ("urn:a", "urn:b", "urn:c")


@pytest.mark.parametrize("kind", KINDS)
def test_audit(kind: str, folder: Path, call: Call, tmp_path: Path) -> None:  # noqa: F811
    """In parts, with a damaged, a new and a removed object."""
    local = make_store(kind, tmp_path / kind, {one: {"f.txt": one.encode()} for one in IDS})
    path = {one: stores.open(local).find(one).path for one in IDS}
    shutil.copytree(local, folder / kind)
    audit = ("store", "audit", f"s3://books/{kind}", "--state", "state")
    assert call(*audit, "--max-objects", "2").exit_code == 0
    done = call(*audit, "--json")
    summary = json.loads(done.stdout.splitlines()[-1])["summary"]
    assert (done.exit_code, summary["objects"], summary["coverage"]["verified"]) == (0, 1, 3)
    damaged = next(one for one in (folder / kind / path["urn:a"]).rglob("*") if one.name == "f.txt")
    damaged.write_bytes(b"other")
    shutil.rmtree(folder / kind / path["urn:b"])
    done = call(*audit, "--json")
    *problems, _summary = map(json.loads, done.stdout.splitlines())
    assert ("object-vanished", path["urn:b"]) in [(one["kind"], one["path"]) for one in problems]
    named = [one for one in problems if one["path"].startswith(path["urn:a"]) and one["severity"] == "error"]
    assert named
    # The server still has the old token of the file, which it did not write.
    assert [one["kind"] for one in named] in (["checksum-mismatch"], ["content-mismatch"], ["object-differs"])
    assert done.exit_code == 1


def test_stored_digests(folder: Path, call: Call) -> None:  # noqa: F811
    """The digests that the server has stored are enough, and the state says so."""
    assert call("store", "init", "ocfl", "s3://books/root", "--layout", "0003").exit_code == 0
    (folder.parent.parent / "file").write_bytes(b"content")
    put = ("store", "put", "s3://books/root", "urn:a", str(folder.parent.parent / "file"))
    assert call(*put).exit_code == 0
    done = call("store", "audit", "s3://books/root", "--state", "state", "--digests=stored")
    assert done.exit_code == 0
    assert "1 object, no problem; files: 1 stored" in done.stderr.replace("1 warning", "no problem")
    with sqlite3.connect("state") as base:
        assert base.execute("SELECT how, result FROM objects").fetchall() == [("stored", "ok")]
