"""Removal of whole trees with any content."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark.fs.removal import remove_tree
from support.trees import snapshot, write


@pytest.fixture
def folder(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def test_removing(folder: bytes, tmp_path: Path) -> None:
    """A tree is removed completely; links are not followed; a missing tree is no error."""
    write(tmp_path, {"keep/x": b"1", "tree/a/b": b"2"})
    (tmp_path / "tree" / "link").symlink_to("../keep")
    (tmp_path / "link").symlink_to("keep")
    for name in (b"tree", b"link", b"missing"):
        remove_tree(os.path.join(folder, name))
    assert snapshot(tmp_path) == {b"keep": None, b"keep/x": b"1"}


def test_a_tree_of_any_depth_is_removed(tmp_path: Path) -> None:
    """A tree deeper than Python's recursion limit is removed."""
    names: list[str] = []
    for _ in range(1300):
        names.append("d")
        (tmp_path / "/".join(names)).mkdir()
    (tmp_path / "/".join(names) / "file").write_bytes(b"x")
    remove_tree(os.fsencode(tmp_path / "d"))
    assert os.listdir(tmp_path) == []
