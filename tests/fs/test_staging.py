"""Private directories of runs: removed at the end, locked one at a time, and cleared after a kill."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import pressmark
from pressmark.fs.locks import FileLock
from pressmark.fs.owners import UntrustedError
from pressmark.fs.staging import LOCK, RunDirectory, leftovers
from support.trees import snapshot, write


@pytest.fixture
def folder(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def test_a_run_directory_leaves_nothing(folder: bytes) -> None:
    """The directory exists while at least one run uses it."""
    path = os.path.join(folder, b"shop")
    with RunDirectory(path) as one, RunDirectory(path) as other:
        assert one.path != other.path
        Path(os.fsdecode(one / b"file")).write_bytes(b"x")
        assert leftovers(path) == []
        with one.lock(), pytest.raises(BlockingIOError):
            FileLock(os.path.join(path, LOCK))
    assert os.listdir(folder) == []


def test_leftovers_are_removed(folder: bytes) -> None:
    """A run removes leftovers of killed runs, not those of live runs."""
    path = os.path.join(folder, b"shop")
    code = (
        "import os, sys; from pressmark.fs.staging import RunDirectory\n"
        "with RunDirectory(os.fsencode(sys.argv[1])) as shop:\n"
        "    os.makedirs(shop / b'closed/inside'); open(shop / b'closed/inside/file', 'w').close()\n"
        "    os.chmod(shop / b'closed', 0)\n"
        "    turn = shop.lock(); os.kill(os.getpid(), 9)"
    )
    package = str(Path(pressmark.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", code, path], env={**os.environ, "PYTHONPATH": package}, check=False)
    with FileLock(os.path.join(folder, b"other"), wait=True):
        assert len(leftovers(path)) == 1
    os.mkdir(os.path.join(path, b"just-made"))
    with RunDirectory(path) as shop:
        assert sorted(os.listdir(path)) == sorted([LOCK, os.path.basename(shop.path)])
        assert leftovers(path) == []
    assert os.listdir(folder) == []


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_files_behind_links_are_not_leftovers(folder: bytes, tmp_path: Path) -> None:
    """Files behind a link in the staging directory, or in its place, are not leftovers and stay."""
    write(tmp_path / "theirs", {"work/file": b"x"})
    os.mkdir(os.path.join(folder, b"shop"))
    os.symlink(tmp_path / "theirs" / "work", os.path.join(folder, b"shop", b"0123"))
    os.symlink(tmp_path / "theirs", os.path.join(folder, b"link"))
    before = snapshot(tmp_path)
    with RunDirectory(os.path.join(folder, b"shop")):
        pass
    with (
        pytest.raises(UntrustedError, match="is a symbolic link; move it elsewhere"),
        RunDirectory(os.path.join(folder, b"link")),
    ):
        pass
    assert leftovers(os.path.join(folder, b"shop")) == leftovers(os.path.join(folder, b"link")) == []
    assert snapshot(tmp_path) == before


def test_one_lock_at_a_time(folder: bytes) -> None:
    """Only one run at a time holds the lock, and every run gets it."""
    inside = []
    busy = threading.Event()

    def work() -> None:
        for _ in range(50):
            with RunDirectory(os.path.join(folder, b"shop")) as shop, shop.lock():
                assert not busy.is_set()
                busy.set()
                inside.append(1)
                busy.clear()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(inside) == 200
    assert os.listdir(folder) == []
