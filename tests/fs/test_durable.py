"""Flushing files to disk."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pressmark import _kernels
from pressmark._kernels.records import FLUSH, Step
from pressmark.fs import durable

fcntl = pytest.importorskip("fcntl")


@pytest.mark.parametrize("supported", [True, False])
def test_the_cache_of_the_drive_on_macos(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, supported: bool) -> None:
    """On macOS, the call that empties the cache of the drive is used; where a file system lacks it, ``fsync``."""
    calls: list[str] = []

    def full(_descriptor: int, command: int) -> int:
        calls.append(f"fcntl {command}")
        if not supported:
            raise OSError
        return 0

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(fcntl, "fcntl", full)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: calls.append("fsync"))
    durable.flush_path(os.fsencode(tmp_path))
    assert calls == ["fcntl 51"] + ["fsync"] * (not supported)


@pytest.mark.parametrize("count", [3, durable.ONE_BY_ONE])
def test_few_paths_are_flushed_one_by_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, count: int) -> None:
    """Files and directories of trees are flushed one by one, directories after their files; many with the file system;
    links are not followed, and a directory that is gone is no error."""
    flushed: list[str] = []

    def flush(paths: list[bytes], steps: list[list[Step]]) -> list[tuple[int, int, int]]:
        assert steps == [[(FLUSH, b"", None)]] * len(paths)
        flushed.extend(os.path.basename(os.fsdecode(path)) for path in paths)
        return [(0, 1, -1)] * len(paths)

    monkeypatch.setattr(_kernels.active, "run_steps", flush)
    monkeypatch.setattr(durable, "flush_filesystem", lambda path: flushed.append("file system"))
    (tmp_path / "tree/sub").mkdir(parents=True)
    (tmp_path / "tree/link").symlink_to(tmp_path / "file")
    (tmp_path / "file").touch()
    for number in range(count):
        (tmp_path / f"tree/sub/{number}").touch()
    durable.flush_trees(os.fsencode(tmp_path / "tree"), os.fsencode(tmp_path / "file"))
    if count > 3 and durable.can_flush_filesystem():
        assert flushed == ["file system"]
    else:
        assert sorted(flushed) == sorted([*map(str, range(count)), "sub", "tree", "file"])
        assert flushed.index("sub") > flushed.index("0")
    flushed.clear()
    folders = [os.fsencode(tmp_path / name) for name in ("tree", "tree/sub")] * count
    durable.flush_directories(folders)
    is_whole = len(folders) > durable.ONE_BY_ONE and durable.can_flush_filesystem()
    assert flushed == (["file system"] if is_whole else ["tree", "sub"] * count)
    monkeypatch.undo()
    durable.flush_directories([os.fsencode(tmp_path), os.fsencode(tmp_path / "gone")])
