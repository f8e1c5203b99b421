"""Length limits and spellings of names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark.fs.names import existing_spelling, is_case_insensitive, is_inside, too_long


@pytest.fixture
def folder(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def test_lengths(folder: bytes) -> None:
    """A path that no file system accepts is recognised without a system call."""
    assert too_long(folder, b"a/" + b"x" * 255) is None
    assert "256 bytes" in (too_long(folder, b"a/" + b"x" * 256) or "")
    deep = b"/".join([b"ab"] * 1000)
    assert too_long(folder, deep) is None
    assert "4095" in (too_long(folder, deep * 2) or "")


def test_spelling(folder: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another spelling of a name is found only on a case-insensitive file system."""
    (tmp_path / "Abc" / "def").mkdir(parents=True)
    path = os.path.join(folder, b"Abc")
    if is_case_insensitive(path):
        assert existing_spelling(folder, b"aBC/def") == b"aBC"
        return
    assert existing_spelling(folder, b"Abc/def/new") is None
    assert existing_spelling(folder, b"aBC/def") is None
    real = os.lstat
    monkeypatch.setattr(os, "lstat", lambda name: real(name.replace(b"aBC", b"Abc")))
    assert is_case_insensitive(path)


def test_inside(tmp_path: Path) -> None:
    """A path is inside a directory by its real path, of any type, and not by a common prefix."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    inside = ["a", "a/b", "a/b/absent", "link", "link/b", "a/../a/x"]
    outside = ["ab", "a/..", "absent", "link/.."]
    assert all(is_inside(tmp_path / path, os.fsencode(tmp_path / "a")) for path in inside)
    assert not any(is_inside(os.fspath(tmp_path / path), tmp_path / "a") for path in outside)
    assert is_inside(tmp_path, "/")
    assert is_inside(tmp_path / "a" / "b", tmp_path / "link")
