"""Damaged content is not served: every way of reading a file of an object with digests."""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from pressmark import stores
from pressmark.errors import DamagedObjectError, FixityError, ObjectError
from pressmark.progress_event import EventListener
from support.trees import snapshot, write
from ways.stores import KINDS, make_store, object_directory

FILES = {"a.txt": b"alpha" * 20_000, "sub/b.txt": b"beta", "empty": b""}
PAYLOAD = {"ocfl": "v1/content", "bags": "data"}
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "flipped": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "emptied": lambda data: b"",
    "shortened": lambda data: data[:-1],
    "extended": lambda data: data + b"x",
}


def read_lines(file: BinaryIO) -> None:
    for _line in file:
        pass


def read_blocks(file: BinaryIO) -> None:
    while file.read(1000):
        pass


def read_into(file: BinaryIO) -> None:
    buffer = bytearray(1 << 20)
    while file.readinto(buffer):  # type: ignore[attr-defined]
        pass


def read_exactly(file: BinaryIO) -> None:
    file.read(os.fstat(file.fileno()).st_size or 1)


READS: dict[str, Callable[[BinaryIO], object]] = {
    "read": lambda file: file.read(),
    "blocks": read_blocks,
    "exactly": read_exactly,
    "lines": read_lines,
    "readinto": read_into,
    "text": lambda file: io.TextIOWrapper(file, "latin-1").read(),
    "copyfileobj": lambda file: shutil.copyfileobj(file, io.BytesIO()),
}


def damage(store: Path, kind: str, name: str, how: str, identifier: str = "x") -> None:
    path = object_directory(store, identifier) / PAYLOAD[kind] / name
    path.write_bytes(DAMAGES[how](path.read_bytes()))


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("kind", PAYLOAD)
def test_damaged_content_is_an_error(kind: str, how: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    store = make_store(kind, tmp_path / "store", {"x": FILES, "y": FILES})
    damage(store, kind, "a.txt", how)
    before = set(os.listdir(tmp_path))
    for mode in ("auto", "copy"):
        result = call("store", "get", "store", "x", "out", "--copy-mode", mode)
        assert result.exit_code == 1
        assert "'a.txt': content does not match its sha512 digest" in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert set(os.listdir(tmp_path)) == before
    result = call("store", "cat", "store", "x", "a.txt")
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 1
    assert call("store", "cat", "store", "x", "sub/b.txt").stdout == "beta"
    result = call("store", "get", "store", "x", "out", "--json")
    assert '"kind": "content-mismatch"' in result.stdout
    found = stores.open(store).get("x")
    with pytest.raises(FixityError) as caught:
        found.read_bytes("a.txt")
    assert isinstance(caught.value, DamagedObjectError)
    assert caught.value.kind == "content-mismatch"
    for read in READS.values():
        with found.open("a.txt") as file, pytest.raises(FixityError):
            read(file)
    assert found.read_bytes("empty") == b""
    # Without verification, the content is that of the disk.
    on_disk = DAMAGES[how](FILES["a.txt"])
    assert found.read_bytes("a.txt", verify=False) == on_disk
    assert call("store", "cat", "store", "x", "a.txt", "--no-verify").stdout_bytes == on_disk
    assert call("store", "get", "store", "x", "out", "--no-verify").exit_code == 0
    assert (tmp_path / "out" / "a.txt").read_bytes() == on_disk
    assert call("store", "get", "store", "y", "other").exit_code == 0


@pytest.mark.parametrize("kind", PAYLOAD)
def test_a_stream_is_not_verified_after_a_seek(kind: str, tmp_path: Path, implementation: Any) -> None:
    store = make_store(kind, tmp_path / "store", {"x": FILES})
    damage(store, kind, "a.txt", "flipped")
    found = stores.open(store).get("x")
    with found.open("a.txt") as file:
        file.seek(50_000)
        assert file.read() == FILES["a.txt"][50_000:]
    with found.open("a.txt") as file:  # closed before the end
        assert file.read(1)
    # The position, without a move, is no seek.
    with found.open("a.txt") as file:
        assert file.tell() == 0
        with pytest.raises(FixityError):
            file.read()


def test_another_version_is_compared_with_its_own_digests(tmp_path: Path, call: Any, implementation: Any) -> None:
    store = make_store("ocfl", tmp_path / "store", {"x": {"a.txt": b"first"}})
    (tmp_path / "new").write_bytes(b"second")
    assert call("store", "update", "store", "x", "--add", "new=a.txt").exit_code == 0
    damage(store, "ocfl", "a.txt", "flipped")
    assert call("store", "cat", "store", "x", "a.txt").stdout == "second"
    for command in ("cat", "get"):
        arguments = ["a.txt"] if command == "cat" else ["out"]
        result = call("store", command, "store", "x", *arguments, "--version", "v1")
        assert result.exit_code == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("how", [*DAMAGES, "missing"])
def test_a_second_content_file_is_read_instead(how: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    store = make_store("ocfl", tmp_path / "store", {"x": {"a.txt": b"content", "other.txt": b"other"}})
    (tmp_path / "copy").write_bytes(b"content")
    assert call("store", "update", "store", "x", "--add", "copy=b.txt", "--no-dedup").exit_code == 0
    if how == "missing":
        (object_directory(store, "x") / "v1/content/a.txt").unlink()
    else:
        damage(store, "ocfl", "a.txt", how)
    assert call("store", "cat", "store", "x", "a.txt").stdout == "content"
    assert call("store", "get", "store", "x", "out").exit_code == 0
    assert snapshot(tmp_path / "out") == {b"a.txt": b"content", b"b.txt": b"content", b"other.txt": b"other"}
    assert stores.open(store).get("x").read_bytes("a.txt") == b"content"


def test_a_damaged_inventory_does_not_verify_content(tmp_path: Path, call: Any, implementation: Any) -> None:
    store = make_store("ocfl", tmp_path / "store", {"x": {"a.txt": b"one", "b.txt": b"two"}})
    inventory = object_directory(store, "x") / "inventory.json"
    inventory.write_bytes(inventory.read_bytes().replace(b'"a.txt"', b'"c.txt"'))
    for arguments in (["cat", "store", "x", "c.txt"], ["get", "store", "x", "out"]):
        result = call("store", *arguments)
        assert result.exit_code == 1
        assert "inventory.json does not match 'inventory.json.sha512'" in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_bag_is_read_whole_or_not_at_all(tmp_path: Path, call: Any, implementation: Any) -> None:
    store = make_store("bags", tmp_path / "store", {"missing": FILES, "unlisted": FILES})
    (object_directory(store, "missing") / "data/sub/b.txt").unlink()
    (object_directory(store, "unlisted") / "data/more").write_bytes(b"more")
    result = call("store", "get", "store", "missing", "out")
    assert (result.exit_code, "listed in a manifest, but not found" in result.stderr) == (1, True)
    for arguments in (["get", "store", "unlisted", "out"], ["cat", "store", "unlisted", "more"]):
        result = call("store", *arguments)
        assert (result.exit_code, "no manifest with a known algorithm lists it" in result.stderr) == (1, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("ending", ["tar", "zip", "gztar"])
def test_a_serialized_bag_is_validated(ending: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    store = make_store("bags", tmp_path / "store", {"good": FILES, "bad": FILES})
    damage(store, "bags", "a.txt", "flipped", "bad")
    (tmp_path / "folder").mkdir()
    for identifier in ("good", "bad"):
        bag = object_directory(store, identifier)
        shutil.make_archive(str(tmp_path / "folder" / identifier), ending, bag.parent, bag.name)
    names = {path.name.partition(".")[0]: path.name for path in (tmp_path / "folder").iterdir()}
    for identifier, status in (("good", 0), ("bad", 1)):
        result = call("store", "get", "folder", identifier, f"out-{identifier}", "--kind", "bags")
        assert (result.exit_code, (tmp_path / f"out-{identifier}").exists()) == (status, not status), result.stderr
        result = call("store", "cat", "folder", identifier, names[identifier], "--kind", "bags")
        assert result.exit_code == status
        assert ("'data/a.txt': sha512 is" in result.stderr) is bool(status)


@pytest.mark.parametrize("kind", PAYLOAD)
def test_get_beside_a_writer_returns_one_version_whole(kind: str, tmp_path: Path, implementation: Any) -> None:
    """Each copy has the files of one version, or fails because the object was changed."""
    versions = [{"a.txt": b"%d" % number * 1000, "b.txt": b"%d" % number * 10} for number in range(10)]
    store = make_store(kind, tmp_path / "store", {"x": versions[0]})
    sources = []
    for number, files in enumerate(versions):
        sources.append(tmp_path / f"version-{number}")
        write(sources[-1], dict(files.items()))
    is_ended = threading.Event()

    def replace() -> None:
        writer = stores.open(store)
        for source in sources * 3:
            writer.put("x", source, replace=True)
        is_ended.set()

    thread = threading.Thread(target=replace)
    thread.start()
    copies = 0
    try:
        while not is_ended.is_set() or not copies:
            target = tmp_path / f"copy-{copies}"
            try:
                stores.open(store).get("x").copy_to(os.fsencode(target))
            except DamagedObjectError:
                raise
            except ObjectError:  # the object was changed
                assert not target.exists()
                continue
            copies += 1
            assert {os.fsdecode(name): data for name, data in snapshot(target).items()} in versions
    finally:
        thread.join()


@pytest.mark.parametrize("kind", KINDS)
def test_repair_says_that_content_was_not_read(kind: str, tmp_path: Path, call: Any, implementation: Any) -> None:
    make_store(kind, tmp_path / "store", {"info:x": FILES})
    for more in ([], ["--dry-run"]):
        result = call("store", "repair", "store", *more)
        assert result.exit_code == 0
        problems = "1 warning" if kind == "ocfl" else "no problem"
        assert result.stderr.endswith(f"structure: 1 object, {problems}; content was not read\n")
        summary = json.loads(call("store", "repair", "store", "--json", *more).stdout.splitlines()[-1])["summary"]
        assert summary["content_read"] is False


def damaged(kind: str, path: Path) -> Path:
    """Create a store with many problems that need no content to be seen."""
    objects = {f"info:{number}": FILES for number in range(6)}
    store = make_store(kind, path, objects)
    tops = [object_directory(store, identifier) for identifier in objects]
    if kind == "ocfl":
        (tops[0] / "v1/content/extra").write_bytes(b"extra")
        (tops[1] / "v1/content/a.txt").unlink()
        (tops[2] / "inventory.json.sha512").write_bytes(b"damaged")
        (tops[3] / "0=ocfl_object_1.1").write_bytes(b"other")
        (tops[4] / "stray").write_bytes(b"")
        (tops[5] / "v1/content/none").mkdir()
        (store / "extensions/unknown").mkdir()
        (store / "stray").write_bytes(b"")
        (store / "empty/below").mkdir(parents=True)
    elif kind == "bags":
        (tops[0] / "data/extra").write_bytes(b"extra")
        (tops[1] / "data/a.txt").unlink()
        (tops[2] / "bagit.txt").write_bytes(b"damaged")
        (tops[3] / "manifest-sha512.txt").unlink()
        (tops[4] / "bag-info.txt").write_bytes(b"Payload-Oxum: 1.1\n")
        shutil.make_archive(str(store / "serialized"), "tar", tops[5].parent, tops[5].name)
        (store / "empty/below").mkdir(parents=True)
    elif kind == "pairtree":
        root = store / "pairtree_root"
        write(root, {"ab/file": b"", "cd/one/a": b"", "cd/two/b": b"", "xy/.DS_Store": b"", "zz/": None, "lost": b""})
        (root / "ef").symlink_to("nowhere")
        (store / "pairtree_version0_1").write_bytes(b"other")
        (store / "beside").write_bytes(b"")
    else:
        root = store / "file_storage_root"
        write(root, {"lost": b"", "ab/c/one": b"", "ab/c/two": b"", "ab/d/": None, "z~q/x/file": b""})
        (store / "beside").write_bytes(b"")
    return store


@pytest.mark.parametrize("kind", KINDS)
def test_repair_reports_what_check_reports(kind: str, tmp_path: Path, implementation: Any) -> None:
    store = stores.open(damaged(kind, tmp_path / "store"))
    before = store.check().problems
    steps: list[Any] = []
    planned = store.repair(dry_run=True, progress=EventListener(steps.append))
    repaired = {step.path for step in steps if hasattr(step, "action")}
    reported = {(one.kind, one.path) for one in planned.problems}
    left = [one for one in before if (one.kind, one.path) not in reported]
    assert all(any(one.path.startswith(path) or path.startswith(one.path) for path in repaired) for one in left), left
    report = store.repair()
    assert {(one.kind, one.path, one.severity) for one in report.problems} == {
        (one.kind, one.path, one.severity) for one in store.check().problems
    }
    assert {one.severity for one in report.problems} == {"error", "warning"}
