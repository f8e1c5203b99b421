"""Length limits, spellings and globs of names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark.fs.names import JUNK, existing_spelling, glob_matcher, is_case_insensitive, is_inside, too_long


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


def test_globs() -> None:
    """A glob matches whole names, case-sensitively, including line feeds and bytes that are not UTF-8."""
    names = ["a.tmp", "b.TMP", "tmp", ".tmp", "a.tmp.x", "a\n.tmp", "a\udcff.tmp", "b1", "b2", "c1"]
    matches = glob_matcher(["*.tmp", "[!c]1"])
    assert [name for name in names if matches(name)] == ["a.tmp", ".tmp", "a\n.tmp", "a\udcff.tmp", "b1"]
    assert [name for name in names if glob_matcher("b?")(name)] == ["b1", "b2"]
    assert not any(map(glob_matcher([]), names))
    for glob in ("", "a/b", "d/", "/"):
        with pytest.raises(ValueError, match="must not be empty or contain a slash"):
            glob_matcher(["x", glob])


def test_junk() -> None:
    """The names of files that macOS and Windows add, in their usual spellings."""
    names = [".DS_Store", "Thumbs.db", "thumbs.db", "desktop.ini", "Desktop.ini", "._a.tif", "._", "__MACOSX"]
    assert all(map(glob_matcher(JUNK), names))
    assert not any(map(glob_matcher(JUNK), ["DS_Store", ".DS_Store2", "_.a", "a._b", "__MACOSX__", "Thumbs.dbx", ".a"]))
