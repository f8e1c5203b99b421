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
