"""``--one-file-system``: directories on other file systems are left out, and named once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pressmark.bagit.bag_directory import BagDirectory
from pressmark.fs.beneath import OpenAnywhere
from pressmark.stores import object_sources
from support.mounts import mounted, other_device

from .conftest import Call

MOUNT = "mount"


@pytest.fixture(params=["mounted", "another device number"])
def files(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory ``files`` with another file system in it, at ``mount``."""
    folder = tmp_path / "files"
    (folder / "d").mkdir(parents=True)
    (folder / "a").write_bytes(b"a")
    (folder / "d" / "b").write_bytes(b"b")

    def fill() -> None:
        (folder / "d" / MOUNT / "deep").mkdir(parents=True)
        (folder / "d" / MOUNT / "deep" / "c").write_bytes(b"c")

    if request.param == "mounted":
        with mounted(folder / "d" / MOUNT):
            fill()
            yield folder
        return
    fill()

    def on_another(status: Callable[..., os.stat_result]) -> Callable[..., os.stat_result]:
        def changed(*arguments: object, **options: object) -> os.stat_result:
            found = status(*arguments, **options)
            return other_device(found) if MOUNT in os.fsdecode(arguments[-1]) else found  # type: ignore[arg-type]

        return changed

    monkeypatch.setattr(OpenAnywhere, "stat", on_another(OpenAnywhere.stat))
    monkeypatch.setattr(BagDirectory, "status", on_another(BagDirectory.status))
    monkeypatch.setattr(object_sources.os, "stat", on_another(os.stat))
    yield folder


def test_hash_and_verify(call: Call, files: Path) -> None:
    listed = "pressmark: excluded: files/d/mount/\n"
    for more in ((), ("--workers", "0")):
        done = call("hash", "files", "--one-file-system", *more)
        names = [line.partition("  ")[2] for line in done.stdout.splitlines()]
        if more and not done.stderr:
            continue  # workers are processes without the device number of this test
        assert (names, done.stderr, done.exit_code) == (["files/a", "files/d/b"], listed, 0)
    assert len(call("hash", "files").stdout.splitlines()) == 3
    (files.parent / "sums").write_text(call("hash", "files", "--one-file-system").stdout)
    assert "new: files/d/mount/deep/c" in call("verify", "sums", "--root", "files/..").stdout
    done = call("verify", "sums", "--root", ".", "--one-file-system")
    assert (done.stdout, done.exit_code) == ("", 0)
    assert done.stderr.count("excluded: ./files/d/mount/\n") == 1
    done = call("verify", "sums", "--root", ".", "--one-file-system", "--json")
    *found, summary = map(json.loads, done.stdout.splitlines())
    assert [one["path"] for one in found] == ["files/d/mount"]
    assert summary["summary"]["excluded"] == 1
    # A file of the manifest is verified wherever it is.
    (files.parent / "sums").write_text(call("hash", "files").stdout)
    (files / "d" / MOUNT / "deep" / "c").write_bytes(b"changed")
    done = call("verify", "sums", "--root", ".", "--one-file-system")
    assert (done.stdout, done.exit_code) == ("changed: files/d/mount/deep/c\n", 1)


@pytest.mark.parametrize("destination", ["bag", "bag.tar"])
def test_bags(call: Call, files: Path, destination: str) -> None:
    done = call("bag", "create", "files", "-o", destination, "--one-file-system")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("d/mount") == 1
    assert "2 files" in done.stderr
    assert call("bag", "validate", destination).exit_code == 0
    done = call("bag", "create", "files", "-o", f"whole-{destination}")
    assert "3 files" in done.stderr


def test_bags_of_a_table(call: Call, files: Path) -> None:
    (files.parent / "table.csv").write_text("path\nfiles\n")
    done = call("bag", "create", "--table", "table.csv", "-o", "bags", "--one-file-system")
    assert done.exit_code == 0, done.stderr
    assert sorted(path.name for path in (files.parent / "bags" / "files" / "data").rglob("*")) == ["a", "b", "d"]


@pytest.mark.parametrize("kind", ["ocfl", "pairtree", "bags"])
@pytest.mark.parametrize("is_listed", [False, True])
def test_stores(call: Call, files: Path, kind: str, is_listed: bool) -> None:
    layout = ("--layout", "0004") if kind == "ocfl" else ()
    assert call("store", "init", kind, "store", *layout).exit_code == 0
    (files.parent / "objects").write_text("urn:1\tfiles\n")
    words = ("--from", "objects") if is_listed else ("urn:1", "files")
    done = call("store", "put", "store", *words, "--one-file-system")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("mount") == 1
    assert "excluded" in done.stderr
    listed = call("store", "ls", "store", "urn:1")
    assert "mount" not in listed.stdout
    assert call("store", "get", "store", "urn:1", "copy").exit_code == 0
    assert sorted(path.name for path in (files.parent / "copy").rglob("*")) == ["a", "b", "d"]
    # A second version is selected in the same way.
    done = call("store", "put", "store", "urn:1", "files", "--one-file-system", "--replace")
    assert done.stderr.count("mount") == 1


def test_a_link_to_another_file_system(call: Call, tmp_path: Path) -> None:
    """A link that is followed is left out like a mount point; one to a file is read."""
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev or not os.access(elsewhere, os.W_OK):
        pytest.skip("/dev/shm is no other file system")
    (tmp_path / "files").mkdir()
    target = elsewhere / f"pressmark-{os.getpid()}"
    target.mkdir()
    try:
        (target / "x").write_bytes(b"x")
        (tmp_path / "files" / "directory").symlink_to(target)
        (tmp_path / "files" / "file").symlink_to(target / "x")
        done = call("hash", "files", "--one-file-system")
        assert done.stderr == "pressmark: excluded: files/directory/\n"
        assert done.stdout.endswith("  files/file\n")
        assert done.stdout.count("\n") == 1
    finally:
        (target / "x").unlink()
        target.rmdir()
