"""Removal of whole trees with any content."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from pressmark.fs.moves import remove_tree
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


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
@pytest.mark.parametrize("refused", ["unlink", "rmdir", "open"])
def test_a_removal_that_is_refused(
    folder: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str, number: int
) -> None:
    """A removal that the system refuses ends with its error after a few attempts, on every version of Python."""
    write(tmp_path, {"tree/a/b/c": b"1", "tree/d": b"2"})
    calls = 0

    def refuse(*_arguments: Any, **_options: Any) -> None:
        nonlocal calls
        calls += 1
        assert calls < 20
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, refused, refuse)
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            remove_tree(os.path.join(folder, b"tree"))
    assert caught.value.errno == number
    remove_tree(os.path.join(folder, b"tree"))
    assert not (tmp_path / "tree").exists()
