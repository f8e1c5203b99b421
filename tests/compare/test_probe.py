"""Probes: samples of trees are created, timed, and always removed."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark.compare import compare, probe


def test_a_tree_is_created_and_removed(tmp_path: Path) -> None:
    """Directories are counted, each step is timed, and only the sample is removed."""
    (tmp_path / "mine").write_bytes(b"kept")
    found = probe.probe_tree(tmp_path, ["a/b", "a/c", "d", "a/b"])
    assert (found.objects, found.directories, found.skipped) == (4, 4, 0)
    for times in (found.create, found.stat, found.walk_warm):
        assert times.seconds is not None
        assert times.per_directory is not None
        assert times.reason == ""
    assert (found.walk_cold.seconds is None) == bool(found.walk_cold.reason)
    assert os.listdir(tmp_path) == ["mine"]
    if sys.platform == "linux":
        assert found.file_system
        assert found.kib is not None


def test_rejected_paths(tmp_path: Path) -> None:
    """Paths that lead outside or that the file system rejects are counted."""
    (tmp_path / "probed").mkdir()
    paths = ["../out", "/etc/x", "a//b", "n\0ul", "x" * 300, ".", "good", "g/" * 3000 + "x", "a/probe/x", "a"]
    found = probe.probe_tree(tmp_path / "probed", paths)
    assert (found.objects, found.skipped) == (2, 8)
    assert os.listdir(tmp_path) == ["probed"]
    assert os.listdir(tmp_path / "probed") == []


def test_deep_trees_are_removed(tmp_path: Path) -> None:
    """A tree can be deeper than the recursion limit."""
    found = probe.probe_tree(tmp_path, ["/".join("x" * 1500)])
    assert found.directories == 1500
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("step", ["mkdir", "lstat", "open", "scandir"])
def test_cleanup_after_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, error: BaseException) -> None:
    """The sample is removed after errors and Ctrl-C."""
    original: Callable[..., Any] = getattr(os, step)
    calls = 0

    def failing(*arguments: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise error
        return original(*arguments, **more)

    monkeypatch.setattr(probe.os, step, failing)
    with pytest.raises(type(error)):
        probe.probe_tree(tmp_path, [f"{number}/x" for number in range(9)])
    monkeypatch.undo()
    assert os.listdir(tmp_path) == []


def test_caches_that_cannot_be_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result has a reason instead of a time."""
    monkeypatch.setattr(probe, "_CACHES", str(tmp_path / "absent"))
    cold = probe.probe_tree(tmp_path, ["a"]).walk_cold
    assert (cold.seconds, cold.reason != "") == (None, True)


def test_caches_that_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cold walk is timed after dropping the caches."""
    caches = tmp_path / "caches"
    caches.write_text("")
    (tmp_path / "probed").mkdir()
    monkeypatch.setattr(probe, "_CACHES", str(caches))
    monkeypatch.setattr(probe, "file_system_type", lambda folder: "ext4")
    cold = probe.probe_tree(tmp_path / "probed", ["a"]).walk_cold
    assert (cold.seconds is not None, cold.reason) == (True, "")
    assert caches.read_text() == "3\n"


def test_a_comparison_probes_each_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of directories on disk equals the number in the comparison."""
    monkeypatch.setattr(probe, "_CACHES", str(tmp_path / "absent"))
    ids = [f"ark.{number}" for number in range(60)]
    layouts = [pressmark.layout("0003"), pressmark.layout("0002")]
    found = compare(ids, layouts, probe=tmp_path)
    for result in found.layouts:
        assert result.probe is not None
        assert (result.probe.objects, result.probe.directories) == (60, result.directories.total)
    assert os.listdir(tmp_path) == []


def test_missing_directory(tmp_path: Path) -> None:
    """A missing directory is an error that names it."""
    with pytest.raises(OSError, match="absent"):
        compare(["a"], [pressmark.layout("0002")], probe=tmp_path / "absent")
