"""Ledgers in directories that other users may write to: foreign digests are not trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark.errors import LedgerError
from pressmark.fixity import Ledger
from support.users import OTHER, as_user, needs_users, shared_folder


def opened(path: Path) -> None:
    with Ledger(path, "md5", ["x"]):
        pass


@needs_users
def test_a_planted_ledger(tmp_path: Path) -> None:
    """Another user's ledger is refused: its owner could write any digest."""
    shared = shared_folder(tmp_path / "shared", 0o1777)
    as_user(OTHER, shared, lambda: Path("l").write_bytes(b""))
    with pytest.raises(LedgerError, match="owned by another user"):
        opened(shared / "l")
    (tmp_path / "mine").write_bytes(b"")
    as_user(OTHER, shared, lambda: os.symlink(tmp_path / "mine", "link"))
    with pytest.raises(LedgerError, match="owned by another user"):
        opened(shared / "link")
    assert (tmp_path / "mine").read_bytes() == b""


@needs_users
def test_a_ledger_of_a_team(tmp_path: Path) -> None:
    """Members of a team may continue each other's runs."""
    shared = shared_folder(tmp_path / "shared", 0o2775, 54300)
    as_user(OTHER, shared, lambda: Path("l").write_bytes(b""), group=54300, umask=0o002)
    opened(shared / "l")


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_link_of_ours(tmp_path: Path) -> None:
    """The user's own link to a ledger is followed."""
    (tmp_path / "link").symlink_to("l")
    opened(tmp_path / "link")
    assert (tmp_path / "l").stat().st_size > 0
