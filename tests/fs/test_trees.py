"""Directory entries and their kinds, and trees in memory in order."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from pressmark.fs.trees import Wanted, kind_of_entry, scan, trees
from support.implementations import Implementation
from support.trees import write

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")


@pytest.fixture
def folder(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def test_scanning(folder: bytes, tmp_path: Path) -> None:
    """Entries are sorted by the bytes of their names, with their kinds and link targets."""
    write(tmp_path, {"file": b"", "dir/": None, b"\xff": b"", "A": b""})
    for name, target in (("l-dir", "dir"), ("l-file", "file"), ("l-none", "none"), ("l-self", "l-self")):
        (tmp_path / name).symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    assert scan(folder) == [
        *((b"A", "file", False), (b"dir", "directory", False), (b"file", "file", False), (b"l-dir", "directory", True)),
        *((b"l-file", "file", True), (b"l-none", "dangling", True), (b"l-self", "dangling", True)),
        *((b"pipe", "special", False), (b"\xff", "file", False)),
    ]
    assert {entry.kind for entry in scan(folder, follow=False) if entry.is_link} == {"link"}


class _Unknown:
    """An entry without a type in the directory, on a disk that then fails."""

    name = b"name"
    path = b"/nowhere/name"

    def __init__(self, is_link: bool) -> None:
        self._is_link = is_link

    def is_symlink(self) -> bool:
        return self._is_link

    def is_dir(self) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    is_file = is_dir


def test_inaccessible_entries_are_not_special_files() -> None:
    """An entry whose status cannot be read does not count as a special file, which might be moved away."""
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        kind_of_entry(_Unknown(False))  # type: ignore[arg-type]
    assert kind_of_entry(_Unknown(True), follow=True) == "dangling"  # type: ignore[arg-type]


# --- trees in memory --------------------------------------------------------------------------------------------------


def states(batches: Iterable[Any]) -> list[tuple[bytes, str, int]]:
    """Return path, state and number of files of each tree."""
    return [(tree.path, tree.state, len(tree.files)) for batch in batches for tree in batch.trees]


@posix
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_trees_are_in_order(implementation: Implementation, tmp_path: Path, threads: int) -> None:
    """Many trees, more than calls can read: each once, in the order of the names."""
    names = [f"{number * 7919 % 300:03}" for number in range(300)]
    for name in names:
        (tmp_path / name).mkdir()
        # A call returns after 1 MiB.
        (tmp_path / name / "file").write_bytes(bytes(100_000 if int(name) % 3 else 10))
    given = [*names, "missing", *names]
    found = states(trees(os.fsencode(tmp_path), map(os.fsencode, given), threads=threads))
    expected = {"missing": ("unreadable", 0)}
    assert found == [(os.fsencode(name), *expected.get(name, ("whole", 1))) for name in given]
    assert states(trees(os.fsencode(tmp_path), [], threads=threads)) == []


@posix
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("budget", [1, 7, 1 << 40])
def test_trees_below_directories_are_in_order(
    implementation: Implementation, tmp_path: Path, threads: int, budget: int
) -> None:
    """Trees with a marker are found at any depth in the order of their paths, whatever a call leaves."""
    expected = []
    for number in range(200):
        # Directories with many trees and with one, which is deeper.
        name = f"{number % 3}/{number:03}" if number % 5 else f"deep/{number:03}/x/y"
        (tmp_path / name / "inside").mkdir(parents=True)
        (tmp_path / name / "0=tree").write_bytes(bytes(30_000))
        expected.append((os.fsencode(name), "whole", 1))
    (tmp_path / "1" / "odd").mkdir()
    expected.append((b"1/odd", "odd", 0))
    wanted = Wanted(marker=b"0=", budget=budget)
    for names in sorted(os.listdir(os.fsencode(tmp_path))), [b""]:
        found = states(trees(os.fsencode(tmp_path), names, wanted, threads))
        assert found == sorted(expected, key=lambda tree: tree[0].replace(b"/", b"\0"))


@posix
@pytest.mark.parametrize("threads", [1, 2])
def test_names_that_fail(implementation: Implementation, tmp_path: Path, threads: int) -> None:
    """An error of the names is raised after all trees before it."""

    def names() -> Iterator[bytes]:
        for number in range(100):
            yield b"%d" % number
        raise KeyError("names")

    found = trees(os.fsencode(tmp_path), names(), threads=threads)
    assert states(islice(found, 2)) == [(b"%d" % number, "unreadable", 0) for number in range(100)]
    with pytest.raises(KeyError, match="names"):
        next(found)


@posix
def test_an_abandoned_walk_reads_no_more(implementation: Implementation, tmp_path: Path) -> None:
    """Names are taken as they are needed, and closing the iterator ends its threads."""
    taken = 0

    def names() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"missing"

    before = threading.active_count()
    found = trees(os.fsencode(tmp_path), names(), threads=2)
    next(found)
    found.close()  # type: ignore[attr-defined]
    deadline = monotonic() + 10
    while threading.active_count() > before and monotonic() < deadline:
        sleep(0.01)
    assert threading.active_count() == before
    assert taken < 1000


@posix
def test_names_of_any_bytes_below_directories(implementation: Implementation, tmp_path: Path) -> None:
    """The names that a call leaves are bytes also where paths are text."""
    top = os.fsencode(tmp_path)
    for name in (b"a\xff", b"b\xfe"):
        os.makedirs(os.path.join(top, b"\xff", name))
        Path(os.fsdecode(os.path.join(top, b"\xff", name, b"0=\xff"))).touch()
    found = trees(top, [b"\xff"], Wanted(marker=b"0=", budget=1, text=True), threads=2)
    assert [(tree.path, *tree.files) for batch in found for tree in batch.trees] == [
        (b"\xff/a\xff", "0=\udcff"),
        (b"\xff/b\xfe", "0=\udcff"),
    ]
