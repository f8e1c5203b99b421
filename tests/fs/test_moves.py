"""Moves that never replace, and directories created and pruned above them."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from ctypes import CDLL
from pathlib import Path
from typing import Any

import pytest

from pressmark.fs import moves
from pressmark.fs.durable import exists
from pressmark.fs.moves import (
    exchange,
    make_parents,
    prune_empty_parents,
    rename_new,
    replace_directory,
    restore,
)
from support.trees import snapshot, write


@pytest.fixture
def folder(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


class LibraryWithoutRenameat2:
    """A C library like musl."""

    def __init__(self, _name: None, use_errno: bool) -> None:
        self.syscall = CDLL(None, use_errno=use_errno).syscall


@pytest.mark.parametrize("native", ["function", "system call", ""])
def test_moves(folder: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, native: str) -> None:
    """A move never replaces anything, not even an empty directory; an exchange is atomic or refused."""
    if native == "system call":
        monkeypatch.setattr(ctypes, "CDLL", LibraryWithoutRenameat2)
        rename = moves._renameat2.__wrapped__()
        if rename is None:
            pytest.skip("the number of the system call is not known here")
        monkeypatch.setattr(moves, "_renameat2", lambda: rename)
    elif not native:
        monkeypatch.setattr(moves, "_renameat2", lambda: None)
    write(tmp_path, {"a": b"1", "b": b"2", "empty/": None, "full/x": b"3"})
    a, b, empty, full, new = (os.path.join(folder, name) for name in (b"a", b"b", b"empty", b"full", b"new"))
    for old, target in ((a, b), (full, empty), (a, empty)):
        with pytest.raises(FileExistsError):
            rename_new(old, target)
    rename_new(full, new)
    assert sorted(os.listdir(folder)) == [b"a", b"b", b"empty", b"new"]
    if exchange(a, new):
        assert native
        assert os.path.isdir(a)
        with pytest.raises(FileNotFoundError):
            exchange(a, full)
    else:
        assert os.path.isfile(a)


@pytest.mark.parametrize("native", [True, False])
def test_a_directory_is_replaced(folder: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, native: bool) -> None:
    """The old directory is complete at every moment; if the new one cannot be moved in, the old one is restored."""
    if not native:
        monkeypatch.setattr(moves, "_renameat2", lambda: None)
    write(tmp_path, {"place/old": b"1", "new/new": b"2"})
    place, new, aside, missing = (os.path.join(folder, name) for name in (b"place", b"new", b"kept/place", b"missing"))
    before = snapshot(tmp_path / "place")
    with pytest.raises(FileNotFoundError):
        replace_directory(missing, place, aside)
    assert snapshot(tmp_path / "place") == before
    left = replace_directory(new, place, aside)
    assert left in (new, aside)
    assert native or left == aside
    assert (os.listdir(place), os.listdir(left)) == ([b"new"], [b"old"])
    assert not restore(left, place)
    os.rename(place, missing)
    assert restore(left, place)
    assert os.listdir(place) == [b"old"]
    assert not restore(left, place)


def test_parents_are_created_and_pruned(folder: bytes) -> None:
    """Parents are created and pruned while other runs do the same."""
    assert make_parents(folder, b"a/b/c") == [b"a", b"a/b", b"a/b/c"]
    assert make_parents(folder, b"a/b/d") == [b"a/b/d"]
    assert prune_empty_parents(folder, b"a/b/c") == [b"a/b/c"]
    assert prune_empty_parents(folder, b"a/b/missing/x") == []
    assert prune_empty_parents(folder, b"a/b/d") == [b"a/b/d", b"a/b", b"a"]
    assert os.path.isdir(folder)
    write(Path(os.fsdecode(folder)), {"file": b""})
    with pytest.raises(NotADirectoryError):
        make_parents(folder, b"file/x")
    with pytest.raises(FileNotFoundError):
        make_parents(os.path.join(folder, b"missing"), b"x")

    def work() -> None:
        for _ in range(300):
            make_parents(folder, b"p/q/r/s")
            prune_empty_parents(folder, b"p/q/r/s")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    prune_empty_parents(folder, b"p/q/r/s")
    assert os.listdir(folder) == [b"file"]


def test_inaccessible_paths_may_exist(folder: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A move to a path with unknown status is refused, also without a rename that never replaces."""
    write(tmp_path, {"old": b"1", "new": b"2"})
    look = os.lstat

    def refused(path: Any, **options: Any) -> os.stat_result:
        if os.path.basename(path) == b"new":
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return look(path, **options)

    monkeypatch.setattr(moves, "_rename_by", lambda *_args: False)
    monkeypatch.setattr(os, "lstat", refused)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        rename_new(os.path.join(folder, b"old"), os.path.join(folder, b"new"))
    monkeypatch.undo()
    assert snapshot(tmp_path) == {b"old": b"1", b"new": b"2"}
    assert not exists(os.path.join(folder, b"old", b"below"))
