"""Holes of sparse files: every copy of files keeps them, with the same content and digests."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark import bagit, migrate, stores
from pressmark.errors import BagError
from pressmark.fixity import hash_file
from pressmark.fixity.copying import copy_files
from pressmark.fixity.hasher import LARGE, READ_SIZE
from support.implementations import Implementation

HOLE = 1 << 16  # the smallest hole that is looked for
# Size of a file, and its pieces of data; the rest are holes.
FILES: dict[str, tuple[int, list[tuple[int, int]]]] = {
    "all": (200_000, []),
    "least": (HOLE, []),
    "end": (3 << 20, [(0, 5000)]),
    "begin": (3 << 20, [((3 << 20) - 5000, 5000)]),
    "odd": (5 * READ_SIZE + 17, [(HOLE - 1, 2), (READ_SIZE + 4000, 100), (5 * READ_SIZE, 17)]),
    "zeros at the end": ((2 << 20) + 5, [(0, 10), ((1 << 20) + 3, 20)]),
    "large": (LARGE + (3 << 20) + 1, [(1 << 20, 4096), (LARGE, 4096)]),
}


def taken(path: Path) -> int:
    """Return the bytes that a file takes on the disk."""
    return path.stat().st_blocks * 512


def write(path: Path, size: int, pieces: list[tuple[int, int]]) -> None:
    with open(path, "wb") as file:
        for offset, length in pieces:
            file.seek(offset)
            file.write(random.Random(offset).randbytes(length))
        file.truncate(size)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """The files, on a file system that keeps holes."""
    source = tmp_path / "source"
    source.mkdir()
    for name, (size, pieces) in FILES.items():
        write(source / name, size, pieces)
    if not hasattr(os, "SEEK_HOLE") or taken(source / "large") > 1 << 20:
        pytest.skip("file system without holes")
    return source


def check_copies(source: Path, folder: Path) -> None:
    """Check that the copies have the content of the files, and take little more space than their data."""
    copies = {path.name: path for path in folder.rglob("*") if path.name in FILES}
    assert copies.keys() == FILES.keys()
    for name, (size, pieces) in FILES.items():
        copy, original = copies[name], source / name
        assert (copy.stat().st_size, copy.stat().st_mtime_ns) == (size, original.stat().st_mtime_ns)
        assert copy.read_bytes() == original.read_bytes()
        assert taken(copy) <= taken(original) + 2 * HOLE * len(pieces), name


@pytest.mark.parametrize("read", ["parallel", "sequential"])
@pytest.mark.parametrize("names", [["sha512"], ["blake3", "md5"], []])
def test_copies(implementation: Implementation, source: Path, tmp_path: Path, names: list[str], read: str) -> None:
    """One file and many, in lanes, in blocks and by several threads, with digests and without."""
    (tmp_path / "to").mkdir()
    tasks = [(name, os.fsencode(source / name), os.fsencode(tmp_path / "to" / name)) for name in FILES]
    for name, outcome in copy_files(tasks, names, threads=3, read=read):
        assert outcome.digests == (hash_file(source / name, names) if names else {})
    check_copies(source, tmp_path / "to")


def test_zeros_of_other_files_are_written(implementation: Implementation, tmp_path: Path) -> None:
    """A file without holes is copied as it is: its space stays reserved."""
    size = 3 * READ_SIZE
    (tmp_path / "a").write_bytes(bytes(size))
    if taken(tmp_path / "a") < size:
        pytest.skip("file system that compresses")
    list(copy_files([(0, os.fsencode(tmp_path / "a"), os.fsencode(tmp_path / "b"))], ["md5"]))
    assert taken(tmp_path / "b") >= size


def put(source: Path, to: Path, kind: str) -> None:
    layout = "0003" if kind == "ocfl" else None
    stores.create(kind, to, layout=layout).put("a:1", source)


def migrated(source: Path, to: Path, kind: str) -> None:
    stores.create("pairtree", to / "trees").put("a:1", source)
    check_copies(source, to / "trees")
    plan = migrate.plan(to / "trees", to / "moved", to=kind, layout="0003" if kind == "ocfl" else None)
    assert migrate.run(plan, processes=False).by_status == {"ok": 1}


KINDS = ("ocfl", "pairtree", "bags")
WAYS: dict[str, Callable[[Path, Path], object]] = {
    "bag": lambda source, to: bagit.create(source, to / "bag"),
    **{f"put {kind}": lambda source, to, kind=kind: put(source, to / "store", kind) for kind in KINDS},
    **{f"migrate to {kind}": lambda source, to, kind=kind: migrated(source, to, kind) for kind in ("ocfl", "bags")},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_copy(implementation: Implementation, source: Path, tmp_path: Path, way: str) -> None:
    """Bags, stores and migrations keep the holes."""
    (tmp_path / "to").mkdir()
    WAYS[way](source, tmp_path / "to")
    for folder in ("bag", "store", "moved"):
        if (tmp_path / "to" / folder).exists():
            check_copies(source, tmp_path / "to" / folder)


def test_get(implementation: Implementation, source: Path, tmp_path: Path) -> None:
    """An object that is copied out of a store has them."""
    put(source, tmp_path / "root", "ocfl")
    stores.open(tmp_path / "root").get("a:1").copy_to(tmp_path / "out")
    check_copies(source, tmp_path / "out")


def test_space_for_a_bag(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag of sparse files needs no space for the holes."""
    free = sum(taken(path) for path in source.iterdir())
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=free))
    assert bagit.create(source, tmp_path / "bag").validate().ok
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage._replace(free=free - 1))
    with pytest.raises(BagError, match="not enough disk space"):
        bagit.create(source, tmp_path / "other")
