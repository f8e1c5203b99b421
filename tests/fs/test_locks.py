"""Locks that record their owner."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from pressmark.fs.locks import FileLock, LockHeldError, host, is_owner_lock


def test_an_owner_is_named(tmp_path: Path) -> None:
    """The owner is in the file and in the error; after release the file stays without an owner."""
    path = str(tmp_path / "lock")
    with FileLock(path, owner=True):
        assert json.loads(Path(path).read_text()) == [host(), os.getpid()]
        with pytest.raises(LockHeldError) as caught:
            FileLock(path, owner=True)
        assert caught.value.owner == f"process {os.getpid()} on {host()}"
        assert is_owner_lock(path)
    assert Path(path).read_bytes() == b""
    assert is_owner_lock(path)
    Path(path).write_text("mine")
    assert not is_owner_lock(path)


@pytest.mark.parametrize("has_locks", [True, False])
def test_an_owner_elsewhere_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_locks: bool) -> None:
    """The owner recorded by another machine counts, and so does any owner on a file system without locks."""
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "lock"
    if not has_locks:

        def refuse(*_arguments: object) -> None:
            raise OSError(errno.ENOLCK, "no locks here")

        monkeypatch.setattr(fcntl, "flock", refuse)
    path.write_text('["elsewhere", 12]')
    with pytest.raises(LockHeldError) as caught:
        FileLock(str(path), owner=True)
    assert caught.value.owner == "process 12 on elsewhere"
    # A dead process of this machine holds no lock; a live one only where locks do not work.
    path.write_text(json.dumps([host(), 2**22 + 1]))
    FileLock(str(path), owner=True).release()
    path.write_text(json.dumps([host(), os.getpid()]))
    if has_locks:
        FileLock(str(path), owner=True).release()
    else:
        with pytest.raises(LockHeldError):
            FileLock(str(path), owner=True)


def test_without_an_owner_the_file_is_removed(tmp_path: Path) -> None:
    """A lock file without an owner is removed on release, and stays when abandoned."""
    path = os.fsencode(tmp_path / "lock")
    with FileLock(path):
        assert os.path.exists(path)
        with pytest.raises(BlockingIOError):
            FileLock(path)
    assert not os.path.exists(path)
    FileLock(path).abandon()
    assert os.path.exists(path)
    FileLock(path).release()
