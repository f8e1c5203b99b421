"""Outputs in directories that other users may write to: their links are not followed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from support.users import OTHER, as_user, needs_users, shared_folder

from .conftest import Call


@needs_users
@pytest.mark.parametrize("command", [("map", "pairtree", "ids"), ("hash", "ids")])
def test_a_planted_link(call: Call, tmp_path: Path, command: tuple[str, ...]) -> None:
    """As the kernel in /tmp, the command follows no planted link."""
    (tmp_path / "ids").write_bytes(b"x\n")
    (tmp_path / "mine").write_bytes(b"precious")
    shared = shared_folder(tmp_path / "shared", 0o777)
    as_user(OTHER, shared, lambda: os.symlink(tmp_path / "mine", "out"))
    result = call(*command, "-o", str(shared / "out"))
    assert result.exit_code == 2
    assert "owned by another user" in result.stderr
    assert result.stderr.count("\n") == 1
    assert (tmp_path / "mine").read_bytes() == b"precious"
    os.chown(shared / "out", 0, 0, follow_symlinks=False)
    os.chmod(tmp_path / "mine", 0o640)
    assert call(*command, "-o", str(shared / "out")).exit_code == 0
    assert stat.S_IMODE((tmp_path / "mine").stat().st_mode) == 0o640
    assert (shared / "out").is_symlink()


@needs_users
@pytest.mark.parametrize("command", [("map", "pairtree", "ids"), ("hash", "ids")])
def test_the_file_of_another_user(call: Call, tmp_path: Path, command: tuple[str, ...]) -> None:
    """A replaced file keeps its owner, group and mode; one in a directory like /tmp may be planted, and is refused."""
    (tmp_path / "ids").write_bytes(b"x\n")
    for name in ("list", "list.gz"):
        (tmp_path / name).write_bytes(b"old")
        os.chown(tmp_path / name, OTHER, OTHER)
        (tmp_path / name).chmod(0o640)
        assert call(*command, "-o", name).exit_code == 0
        status = (tmp_path / name).stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (OTHER, OTHER, 0o640)
        assert (tmp_path / name).read_bytes() != b"old"
    shared = shared_folder(tmp_path / "shared", 0o1777)
    (shared / "out").write_bytes(b"old")
    os.chown(shared / "out", OTHER, OTHER)
    result = call(*command, "-o", str(shared / "out"))
    assert result.exit_code == 2
    assert f"owned by another user (uid {OTHER})" in result.stderr
    assert (shared / "out").read_bytes() == b"old"
