"""The size of objects: many trees in one call, and file by file with the same result; and a naive measure of them."""

from __future__ import annotations

import hashlib
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import _kernels, layout, migrate, stores
from pressmark._kernels.records import Tree, Wanted
from pressmark.migrate.planning import source as measure
from pressmark.stores.registry import store_class

pytestmark = pytest.mark.usefixtures("implementation")

FILES = {"one.txt": b"1", "sub/two.bin": b"2" * 5000, "sub/deeper/\u00e9 three": b"", "b/c/d/e": b"e" * 4096}
IDS = ["ark:/13030/xt12t3", "b", "\u00fc", "x" * 90]


def a_store(kind: str, folder: Path) -> stores.Store:
    """Return a store of some objects, one of them with two versions in an OCFL storage root."""
    store = store_class(kind).create(folder / "store", **{"layout": layout("0003")} if kind == "ocfl" else {})
    source = folder / "files"
    for name, data in FILES.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    for identifier in IDS:
        store.put(identifier, source)
    (source / "one.txt").write_bytes(b"another")
    store.put(IDS[1], source, replace=True)
    return store


def planned(store: stores.Store, folder: Path) -> list[migrate.Entry]:
    plan = migrate.plan(store.root, folder / "new", to=store.kind, layout="0004" if store.kind == "ocfl" else None)
    return list(plan.entries())


def tree_of(store: stores.Store, identifier: str) -> Path:
    """Return the directory that contains just the files of an object."""
    found = store.find(identifier)
    return Path(store.root, found.path, found.encapsulation or "")


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that receives each object that is measured file by file."""
    alone: list[str] = []
    one = measure._measure_files

    def measured_alone(store: Any, record: Any, options: Any) -> Any:
        alone.append(record.id)
        return one(store, record, options)

    monkeypatch.setattr(measure, "_measure_files", measured_alone)
    return alone


def naive(top: Path) -> tuple[int, int, str]:
    """Return the number of files in a tree, their bytes, and the digest of its entries."""
    found = []
    for folder, _folders, names in os.walk(os.fsencode(top)):
        for name in names:
            path = os.path.join(folder, name)
            found.append((os.path.relpath(path, os.fsencode(top)), os.lstat(path)))
    content, status = hashlib.blake2b(digest_size=16), hashlib.blake2b(digest_size=16)
    for name, facts in sorted(found, key=lambda item: item[0]):
        content.update(name + b"\0" + struct.pack("=3q", facts.st_size, *divmod(facts.st_mtime_ns, 10**9)))
        status.update(name + b"\0" + struct.pack("=2q", *divmod(facts.st_ctime_ns, 10**9)))
    return len(found), sum(facts.st_size for _name, facts in found), f"{content.hexdigest()}.{status.hexdigest()}"


@pytest.mark.parametrize("kind", ["ocfl", "pairtree"])
def test_plain_objects_are_measured_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """The objects of a group take one call, and none is looked at again; file by file, the plan is the same."""
    store = a_store(kind, tmp_path)
    alone = watched(monkeypatch)
    calls: list[int] = []
    many = _kernels.active.read_trees

    def counted(top: bytes, names: Any, wanted: Wanted) -> Any:
        if not wanted.marker:  # the walk of an OCFL storage root has one
            calls.append(len(names))
        return many(top, names, wanted)

    def deferred(top: bytes, names: Any, wanted: Wanted) -> Any:
        if wanted.marker:
            return many(top, names, wanted)
        return _kernels.active.TreeBatch.of(
            [Tree(name, "large", 0, 0, 0, 0, 0, {}, {}, [], [], []) for name in names], []
        )

    monkeypatch.setattr(_kernels.active, "read_trees", counted)
    entries = planned(store, tmp_path)
    assert (alone, calls) == ([], [len(IDS)])
    monkeypatch.setattr(_kernels.active, "read_trees", deferred)
    assert planned(store, tmp_path) == entries
    assert sorted(alone) == sorted(IDS)
    by_id = {entry.id: entry for entry in entries}
    assert by_id[IDS[1]].bytes != by_id[IDS[0]].bytes
    assert by_id[IDS[0]].files == len(FILES) + (5 if kind == "ocfl" else 0)  # declaration, inventories, sidecars


@pytest.mark.parametrize("kind", ["ocfl", "pairtree"])
def test_sizes(tmp_path: Path, kind: str) -> None:
    """Each tree of several is measured as one file after another is: also a deep one, one with many files, and times
    beyond 64 bits of nanoseconds since 1970."""
    store = a_store(kind, tmp_path)
    for number, path in enumerate(sorted(tree_of(store, IDS[0]).rglob("*.txt"))):
        os.utime(path, ns=(0, (number - 2) * 5_000_000_000_123_456_789))
    for path in tree_of(store, IDS[1]).rglob("two.bin"):
        os.utime(path, ns=(0, -7))
    deep = tree_of(store, IDS[2]) / "/".join("d" * 300)
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"deep")
    for number in range(5000):
        (tree_of(store, IDS[3]) / f"{number:0200}").touch()
    for entry in planned(store, tmp_path):
        assert (entry.files, entry.bytes, entry.entries) == naive(tree_of(store, entry.id))


def link(top: Path) -> None:
    (top / "sub" / "link").symlink_to("two.bin")


def dangling(top: Path) -> None:
    (top / "link").symlink_to("nowhere")


def folder_link(top: Path) -> None:
    (top / "link").symlink_to("sub")


def empty(top: Path) -> None:
    (top / "sub" / "deeper" / "empty").mkdir()


def pipe(top: Path) -> None:
    os.mkfifo(top / "sub" / "pipe")


def bound(top: Path) -> None:
    before = os.getcwd()
    os.chdir(top)  # the address of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind("socket")
    finally:
        os.chdir(before)


def bare(top: Path) -> None:
    for path in sorted(top.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def closed(top: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("needs a user without all rights")
    (top / "sub").chmod(0)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")
@pytest.mark.parametrize("change", [link, dangling, folder_link, empty, pipe, bound, bare, closed])
def test_unusual_objects_are_measured_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    """A link, a special file or an empty or closed directory defers its object, and no other."""
    store = a_store("pairtree", tmp_path)
    before = planned(store, tmp_path)
    changed = tree_of(store, IDS[0])
    change(changed)
    alone = watched(monkeypatch)
    try:
        found = planned(store, tmp_path)
    finally:
        if change is closed:
            (changed / "sub").chmod(0o700)
    assert alone == [IDS[0]]
    assert [entry for entry in found if entry.id != IDS[0]] == [entry for entry in before if entry.id != IDS[0]]
