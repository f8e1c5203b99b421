"""A failure of one object is its own status, and the rest is migrated."""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.fixity import Outcome, pool
from pressmark.fs.moves import exchange
from pressmark.migrate.entry import GOOD, Entry
from pressmark.migrate.transfer import object_transfer as transfer
from pressmark.stores import Store
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.ocfl.root import OcflRoot
from support.preloading import preloadable

from .samples import Files, errors, held, make, migrate, options, tree, write

GIVEN: dict[str, Files] = {
    name: {"one": name.encode(), "two/three": b"23" * 50} for name in ("aa1", "bb2", "cc3", "dd4")
}

# They make objects large enough to be copied at the same time as others.
LARGE_FILES: Files = {f"large-{number}": bytes([number]) * 200_000 for number in range(3)}

Faulty = Callable[..., dict[str, Entry]]


@pytest.fixture(scope="session")
def reads(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that makes opening or reading a file fail."""
    return preloadable(Path(__file__).with_name("faults.c"), tmp_path_factory.mktemp("faults"))


def faulty(source: Store, to: str, folder: Path, preload: str, *arguments: str, **more: object) -> dict[str, Entry]:
    """Migrate in a child process, and return the rows."""
    file = folder.with_name("options.json")
    file.write_text(json.dumps(options(source, to, folder, **more).record()))  # type: ignore[arg-type]
    tests = Path(__file__).parents[1]
    path = os.pathsep.join(
        filter(None, [str(Path(pressmark.__file__).parent.parent), str(tests), os.environ.get("PYTHONPATH")])
    )
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("faulty.py"), file, *arguments],
        env={**os.environ, "PYTHONPATH": path, "LD_PRELOAD": preload, "OLD_KERNEL": "1"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    rows = map(Entry.parse, done.stdout.splitlines(keepends=True))
    return {row.id: row for row in rows}


@pytest.mark.parametrize("large", [{}, LARGE_FILES], ids=["small", "large"])
@pytest.mark.parametrize("to", ["ocfl", "pairtree", "bags"])
def test_files_that_cannot_be_read(tmp_path: Path, reads: str, to: str, large: Files) -> None:
    """Bad disks, unreadable files and changing files have distinct statuses; transient errors are retried."""
    good = {name: {**files, **large} for name, files in GIVEN.items()}
    given = {
        **good,
        "io": {"one": b"1", "eio-x": b"2", **large},
        "closed": {"denied-x": b"1", **large},
        "changing": {"append-x": b"12345", "other": b"1", **large},
        "passing": {"passing-x": b"1", **large},
    }
    source = make("pairtree", tmp_path / "source", given, tmp_path / "given")
    rows = faulty(source, to, tmp_path / "destination", reads)
    found = {name: (row.status, row.error_code) for name, row in rows.items()}
    bad = {name: found.pop(name) for name in ("io", "closed", "changing")}
    if to == "bags":
        assert {status for status, _code in bad.values()} <= {"source_invalid", "copy_failed"}
    else:
        assert bad == {
            "io": ("copy_failed", "io-error"),
            "closed": ("copy_failed", "permission"),
            "changing": ("source_invalid", "changed-while-read"),
        }
        assert found.pop("passing") == ("ok", None)
    found.pop("passing", None)
    assert set(found.values()) == {("ok", None)}
    assert all("\n" not in str(row.error) for row in rows.values())
    store = stores.open(tmp_path / "destination")
    assert errors(store) == []
    assert {name: held(store)[name] for name in good} == good
    assert not set(held(store)) & set(bad)


@pytest.mark.parametrize("large", [{}, LARGE_FILES], ids=["small", "large"])
@pytest.mark.parametrize("to", ["ocfl", "pairtree"])
def test_a_full_disk_ends_it_quickly(tmp_path: Path, disk_faults: str, to: str, large: Files) -> None:
    """On a full disk, migrated objects are complete, and the others fail for lack of space."""
    given = {name: {**files, **large} for name, files in GIVEN.items()}
    source = make("pairtree", tmp_path / "source", given, tmp_path / "given")
    rows = faulty(source, to, tmp_path / "destination", disk_faults, "40" if to == "ocfl" else "30", str(-errno.ENOSPC))
    found = {(row.status, row.error_code) for row in rows.values()}
    assert ("copy_failed", "no-space") in found
    assert found <= {("copy_failed", "no-space"), ("ok", None)}
    store = stores.open(tmp_path / "destination")
    store.repair()
    assert errors(store) == []
    assert set(held(store)) == {name for name, row in rows.items() if row.status == "ok"}


def test_a_destination_that_may_not_be_written_to(tmp_path: Path, disk_faults: str) -> None:
    """A write that is refused fails only its object."""
    source = make("pairtree", tmp_path / "source", GIVEN, tmp_path / "given")
    rows = faulty(source, "ocfl", tmp_path / "destination", disk_faults, "20", str(errno.EACCES))
    assert sorted((row.status, row.error_code) for row in rows.values()) == [
        ("copy_failed", "permission"),
        *[("ok", None)] * 3,
    ]


def test_a_flipped_byte_is_found_by_reading_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification compares the destination with what was copied, not with its inventory."""
    source = make("pairtree", tmp_path / "source", GIVEN, tmp_path / "given")

    def flip(root: bytes) -> None:
        for record in stores.open(root).objects():
            if record.id == "bb2":
                path = Path(os.fsdecode(root), record.path, "v1", "content", "one")
                path.write_bytes(b"xx2")

    monkeypatch.setattr(transfer, "flush_filesystem", flip)
    rows, _ = migrate(source, "ocfl", tmp_path / "root", verify="reread")
    assert {name: row.status for name, row in rows.items()} == {
        name: "digest_mismatch" if name == "bb2" else "ok" for name in GIVEN
    }
    # Detected again, and never treated as equal.
    again, _ = migrate(source, "ocfl", tmp_path / "root")
    assert {name: row.status for name, row in again.items()} == {
        name: "digest_mismatch" if name == "bb2" else "exists_same" for name in GIVEN
    }


@pytest.mark.parametrize("to", ["ocfl", "pairtree", "bags"])
def test_objects_that_are_there(tmp_path: Path, to: str) -> None:
    """An equal object is skipped, a different one is kept, or replaced on request."""
    source = make("pairtree", tmp_path / "source", GIVEN, tmp_path / "given")
    migrate(source, to, tmp_path / "there")
    write(tmp_path / "source" / "pairtree_root" / "bb" / "2" / "bb2", {"one": b"changed"})
    before = tree(tmp_path / "there")
    rows, store = migrate(source, to, tmp_path / "there")
    assert {name: row.status for name, row in rows.items()} == {
        name: "exists_different" if name == "bb2" else "exists_same" for name in GIVEN
    }
    assert tree(tmp_path / "there") == before
    rows, store = migrate(source, to, tmp_path / "there", replace=True)
    assert {name: row.status for name, row in rows.items()} == {
        name: "ok" if name == "bb2" else "exists_same" for name in GIVEN
    }
    assert held(store)["bb2"]["one"] == b"changed"
    assert errors(store) == []


def test_places_that_others_hold(tmp_path: Path) -> None:
    """A path held by another object, or inside one, is a collision."""
    from pressmark import layout

    flat = layout("0012", delimiters=["."])
    source = make("pairtree", tmp_path / "source", {"n1.abc": {"one": b"1"}, "n2.abc": {"two": b"2"}}, tmp_path / "in")
    rows, root = migrate(source, "ocfl", tmp_path / "root", layout=flat.config())
    assert sorted(row.status for row in rows.values()) == ["collision", "ok"]
    assert errors(root) == []


def test_bags_that_are_not_what_their_manifests_say(tmp_path: Path) -> None:
    """Payload and tag files are compared during the copy; incomplete bags are refused."""
    bags = BagFolder.create(tmp_path / "bags")
    for name in ("good", "payload", "tag", "incomplete", "more"):
        bags.put(name, write(tmp_path / "in" / name, {"one": b"1"}))
    write(tmp_path / "bags", {"payload/data/one": b"2", "more/data/two": b"2"})
    (tmp_path / "bags" / "incomplete" / "data" / "one").unlink()
    text = (tmp_path / "bags" / "tag" / "bag-info.txt").read_text()
    (tmp_path / "bags" / "tag" / "bag-info.txt").write_text(text.replace("Payload-Oxum", "Payload-Oxum "))
    for to in ("ocfl", "pairtree", "bags"):
        rows, store = migrate(bags, to, tmp_path / f"to-{to}")
        found = {name: row.status for name, row in rows.items()}
        assert found["tag"] in ("digest_mismatch", "source_invalid")
        assert {**found, "tag": ""} == {
            "good": "ok",
            "payload": "digest_mismatch",
            "tag": "",
            "incomplete": "source_invalid",
            "more": "source_invalid",
        }
        assert set(held(store)) == {"good"}


@pytest.mark.parametrize("to", ["ocfl", "pairtree", "bags"])
@pytest.mark.parametrize("kind", ["bags", "ocfl"])
def test_what_another_process_changes_is_no_damage(
    kind: str, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage is the same when it is read again."""
    source = make(kind, tmp_path / "source", GIVEN, tmp_path / "given")
    paths = {
        name: next(path for path in (tmp_path / "source" / source.find(name).path).rglob("one"))
        for name in ("aa1", "bb2", "cc3")
    }
    sound = paths["aa1"].read_bytes()
    for path in paths.values():
        path.write_bytes(bytes(len(path.read_bytes())))
    times = itertools.count()

    def wait(_seconds: float) -> None:
        paths["aa1"].write_bytes(sound)
        size = paths["bb2"].stat().st_size
        paths["bb2"].write_bytes(b"%0*d" % (size, next(times)))

    monkeypatch.setattr(transfer, "sleep", wait)
    rows, _store = migrate(source, to, tmp_path / "to")
    assert {name: (row.status, row.error_code) for name, row in rows.items()} == {
        "aa1": ("ok", None),
        "bb2": ("source_invalid", "changed-while-read"),
        "cc3": ("digest_mismatch", "mismatch"),
        "dd4": ("ok", None),
    }


def test_a_bag_is_validated_whatever_look_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid bag never arrives, whichever system call fails."""
    bag = BagFolder.create(tmp_path / "bags").put("aa1", write(tmp_path / "given", {"one": b"1"}))
    source = make("pairtree", tmp_path / "source", {}, tmp_path / "in")
    write(tmp_path / "bags", {f"{bag.path}/data/one": b"2"})
    source.put("aa1", tmp_path / "bags" / bag.path)
    stat = os.stat
    looks = at = 0

    def failing(path: Any, *arguments: Any, **how: Any) -> os.stat_result:
        nonlocal looks
        if isinstance(path, bytes) and b"pressmark-work/" in path and os.path.basename(path).isdigit():
            looks += 1
            if looks == at:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return stat(path, *arguments, **how)

    monkeypatch.setattr(transfer, "WAITS", ())
    monkeypatch.setattr(os, "stat", failing)
    while looks >= at:
        at, looks = at + 1, 0
        rows, store = migrate(source, "bags", tmp_path / f"to-{at}")
        assert rows["aa1"].status not in GOOD
        assert held(store) == {}
    assert at > 2


def test_ocfl_objects_that_are_not_what_their_inventories_say(tmp_path: Path) -> None:
    """A broken OCFL object does not arrive as a good one, whether moved, copied whole, or by its newest version."""
    source = make("ocfl", tmp_path / "source", GIVEN, tmp_path / "given")
    for name in ("aa1", "bb2"):
        path = tmp_path / "source" / pressmark.layout("0004").map_id(name)
        if name == "aa1":
            write(path / "v1" / "content", {"one": b"xxx"})
        else:
            (path / "inventory.json.sha512").write_text("0" * 128 + " inventory.json\n")
    rows, _ = migrate(source, "ocfl", tmp_path / "copied")
    assert {name: row.status for name, row in rows.items()} == {
        "aa1": "digest_mismatch",
        "bb2": "source_invalid",
        "cc3": "ok",
        "dd4": "ok",
    }
    rows, _ = migrate(source, "pairtree", tmp_path / "tree")
    assert rows["aa1"].status == "digest_mismatch"
    rows, root = migrate(source, "ocfl", tmp_path / "moved", move=True)
    # A moved object is not read; verification reads it.
    assert {name: row.status for name, row in rows.items()} == {
        "aa1": "ok",
        "bb2": "source_invalid",
        "cc3": "ok",
        "dd4": "ok",
    }
    assert isinstance(root, OcflRoot)
    assert [record.id for record in source.objects()] == ["bb2"]


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("to", ["pairtree", "bags"])
def test_a_file_that_an_inventory_names_and_the_object_lacks(tmp_path: Path, to: str, there: bool) -> None:
    """A missing content file is a damaged source, whether the object is copied, moved or compared."""
    source = make("ocfl", tmp_path / "source", GIVEN, tmp_path / "given")
    if there:
        migrate(source, to, tmp_path / "moved")
    (tmp_path / "source" / pressmark.layout("0004").map_id("aa1") / "v1" / "content" / "one").unlink()
    for name in ("copied", "moved"):
        rows, _ = migrate(source, to, tmp_path / name, move=name == "moved")
        assert rows["aa1"].status == "source_invalid"
        assert "No such file" in str(rows["aa1"].error)
        assert all(rows[other].status in ("ok", "exists_same") for other in ("bb2", "cc3", "dd4"))


def test_what_is_gone_or_linked(tmp_path: Path) -> None:
    """Objects removed since the plan are reported; symbolic links are refused or followed."""
    from pressmark.migrate.transfer.object_transfer import transfer_chunk

    from .samples import entries

    source = make("pairtree", tmp_path / "source", GIVEN, tmp_path / "given")
    path = tmp_path / "source" / "pairtree_root" / "bb" / "2" / "bb2"
    (tmp_path / "elsewhere").write_bytes(b"elsewhere")
    (path / "link").symlink_to(tmp_path / "elsewhere")
    chosen = options(source, "ocfl", tmp_path / "root")
    chosen.create_destination()
    plan = entries(chosen)
    source.delete("aa1")
    found = {row.id: row.status for row in transfer_chunk(chosen, plan)}
    assert found == {"aa1": "source_missing", "bb2": "source_invalid", "cc3": "ok", "dd4": "ok"}
    rows, store = migrate(source, "ocfl", tmp_path / "root", links="follow")
    assert rows["bb2"].status == "ok"
    assert held(store)["bb2"]["link"] == b"elsewhere"


def between_files(monkeypatch: pytest.MonkeyPatch, then: Callable[[], object]) -> None:
    """Call a hook once, after ``first`` is copied and before ``then`` is."""
    copied, done = threading.Event(), threading.Event()
    transfer = pool.transfer

    def hooked(source: str, *how: Any, copy: bytes | None = None) -> Outcome:
        if copy is None:
            return transfer(source, *how)
        if source.endswith("/then") and not done.is_set():
            assert copied.wait(60)
            then()
            done.set()
        try:
            return transfer(source, *how, copy=copy)
        finally:
            if source.endswith("/first"):
                copied.set()

    queue = pool.Run._queue

    def without_lanes(run: pool.Run, first: int, batch: Any) -> None:
        run._lanes_too = False
        queue(run, first, batch)

    monkeypatch.setattr(pool, "transfer", hooked)
    monkeypatch.setattr(pool.Run, "_queue", without_lanes)


# More than the kernel for small objects accepts, which opens the directory only once.
OLD, NEW = (dict.fromkeys(("first", "then"), version * 40000) for version in (b"old", b"new"))


@pytest.mark.parametrize("to", ["ocfl", "pairtree", "bags"])
@pytest.mark.parametrize("kind", ["encapsulated", "loose", "bag"])
def test_an_object_that_is_replaced_between_two_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, to: str
) -> None:
    """Files of two versions are not stored as one object, and nothing of it remains."""
    source, path, given = replaceable(kind, tmp_path)

    def swap() -> None:
        if not exchange(os.fsencode(path), os.fsencode(given)):
            pytest.skip("this file system cannot exchange two directories")

    between_files(monkeypatch, swap)
    rows, store = migrate(source, to, tmp_path / "destination", copy_mode="copy")
    assert rows["aa1"].status == "source_invalid"
    assert rows["aa1"].error_code == "changed-while-read"
    assert "changed" in str(rows["aa1"].error)
    assert held(store) == {}
    assert errors(store) == []
    again, store = migrate(source, to, tmp_path / "destination", copy_mode="copy")
    assert again["aa1"].status == "ok"
    assert set(held(store)) == {"aa1"}


@pytest.mark.parametrize("to", ["ocfl", "pairtree", "bags"])
@pytest.mark.parametrize("kind", ["encapsulated", "loose", "bag"])
def test_what_is_put_beside_an_object_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, to: str
) -> None:
    """A file added beside an object is not a change of the object."""
    source, path, _given = replaceable(kind, tmp_path)
    beside = path / "xy" if kind == "loose" else path.parent / "xy"
    between_files(monkeypatch, lambda: write(beside / "xyz", {"one": b"1"}))
    rows, store = migrate(source, to, tmp_path / "destination", copy_mode="copy")
    assert rows["aa1"].status == "ok"
    assert set(held(store)) == {"aa1"}


def replaceable(kind: str, folder: Path) -> tuple[Store, Path, Path]:
    """Make a source of one object, and return it, the object's directory, and another version of the object."""
    if kind == "bag":
        bags = BagFolder.create(folder / "source")
        bags.put("aa1", write(folder / "old", {"one": b"1"}))
        for number, version in enumerate((OLD, NEW)):
            # Tag files that no tag manifest lists.
            bag = Path(shutil.copytree(folder / "source" / "aa1", folder / str(number)))
            next(bag.glob("tagmanifest-*")).unlink()
            write(bag / "more", version)
        shutil.rmtree(folder / "source" / "aa1")
        os.rename(folder / "0", folder / "source" / "aa1")
        return bags, folder / "source" / "aa1", folder / "1"
    source = make("pairtree", folder / "source", {"aa1": OLD}, folder / "given")
    path = folder / "source" / "pairtree_root" / "aa" / "1"
    if kind == "encapsulated":
        return source, path / "aa1", write(folder / "new", NEW)
    for name in OLD:
        os.rename(path / "aa1" / name, path / name)
    os.rmdir(path / "aa1")
    return source, path, write(folder / "new", NEW)
