"""Pairtrees and Vitro stores on a server, by the command line: what its directory contains, read through S3."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.conftest import Call, call  # noqa: F401
from pressmark import stores
from support.trees import snapshot, write

from .servers import versitygw

REASONS = {
    "pairtree": "a Pairtree in object storage is read-only: an object of several files cannot be stored in one step",
    "vitro": "a Vitro store in object storage is read-only: a file and its name cannot be replaced in one step",
}


@pytest.fixture
def books(tmp_path: Path, aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of a bucket ``books`` on a server of its own."""
    with versitygw(tmp_path) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        folder = tmp_path / "data" / "books"
        folder.mkdir()
        yield folder


@pytest.mark.parametrize("kind", ["pairtree", "vitro"])
def test_commands(kind: str, books: Path, call: Call, tmp_path: Path) -> None:  # noqa: F811
    """Each command that reads prints what it prints of the directory; the others are refused."""
    local, address = str(books / kind), f"s3://books/{kind}"
    store = stores.create(kind, local)
    large = os.urandom(3 << 20)
    for id, data in (("ark:/13030/xt12t3", b"page 1"), ("ark:/13030/xt12t3x", large), ("é+ b", b"page 2")):
        store.put(id, {"page 1.tif": data})
    tree = "pairtree_root" if kind == "pairtree" else "file_storage_root"
    write(books / kind, {f"{tree}/zz/z/one": b"1", f"{tree}/zz/z/two": b"2", f"{tree}/go/n/": None, "stray": b""})
    if kind == "pairtree":
        store.put("many", {f"{number:02}.txt": b"%d" % number for number in range(40)})
    before = snapshot(books)
    for command in ("ls", "check", "check --digests", "ls --json"):
        name, *options = command.split()
        mine, theirs = (call("store", name, place, *options) for place in (local, address))
        # The server shows no empty directory.
        expected = [line for line in mine.stdout.splitlines() if f"{tree}/go/n" not in line]
        found = theirs.stdout.splitlines()
        if options == ["--json"]:
            assert json.loads(found.pop())["summary"]["objects"] == json.loads(expected.pop())["summary"]["objects"]
        assert found == expected
        assert (theirs.exit_code, name) == (mine.exit_code, name)
    for id in ("ark:/13030/xt12t3x", "é+ b", f"{tree}/zz/z", "many"):
        for number, place in enumerate((local, address)):
            done = call("store", "get", place, id, f"copy{number}")
            assert done.exit_code == (0 if kind == "pairtree" else id in ("many", f"{tree}/zz/z")), done.output
        assert snapshot(tmp_path / "copy0") == snapshot(tmp_path / "copy1")
        for number in range(2):
            shutil.rmtree(tmp_path / f"copy{number}", ignore_errors=True)
    done = call("store", "cat", address, "ark:/13030/xt12t3", "page 1.tif")
    assert (done.exit_code, done.stdout) == (0, "page 1")
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "f").write_bytes(b"new")
    for text in (
        f"put {address} x new",
        f"put {address} many new --replace",
        f"update {address} many --add new/f",
        f"rm {address} ark:/13030/xt12t3",
        f"repair {address}",
        f"init {kind} {address}",
    ):
        done = call("store", *text.split())
        assert (done.exit_code, done.stdout) == (2, ""), text
        assert done.stderr == f"pressmark: '{address}': {REASONS[kind]}; use an OCFL storage root\n", text
    assert snapshot(books) == before
