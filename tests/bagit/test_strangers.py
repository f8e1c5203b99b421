"""Bags in directories that other users may write to: their files are neither entered, changed nor announced."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from pressmark.bagit.bag import create
from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.changes.bag_changes import BagChange
from pressmark.errors import BagError
from pressmark.progress_event import EventListener
from support.events import at
from support.users import OTHER, as_user, needs_users, shared_folder

from .naive import flaws

HIDDEN = f".pressmark-{hashlib.sha256(b't').hexdigest()[:16]}.tmp"
#: A world-writable directory, with the sticky bit as in /tmp or without it.
OPEN_TO_ALL = pytest.mark.parametrize("mode", [0o1777, 0o777], ids=["sticky", "open"])


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "s" / "sub").mkdir(parents=True)
    (tmp_path / "s" / "a").write_bytes(b"1" * 100)
    (tmp_path / "s" / "sub" / "b").write_bytes(b"2" * 3000)
    return tmp_path / "s"


@needs_users
@OPEN_TO_ALL
def test_a_planted_directory_is_not_entered(tmp_path: Path, source: Path, mode: int) -> None:
    """A planted hidden directory is not entered: a link in it could lead to other directories."""
    shared = shared_folder(tmp_path / "shared", mode)
    (tmp_path / "ours" / "inside").mkdir(parents=True)
    for path in (tmp_path / "ours", tmp_path / "ours" / "inside"):
        os.chmod(path, 0o755)

    def plant() -> None:
        os.mkdir(HIDDEN, 0o777)
        os.symlink(tmp_path / "ours", f"{HIDDEN}/bag")

    as_user(OTHER, shared, plant)
    with pytest.raises(BagError, match=f"{HIDDEN}.*owned by another user") as caught:
        create(source, shared / "t")
    assert "\n" not in str(caught.value)
    assert stat.S_IMODE((tmp_path / "ours").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "ours" / "inside").stat().st_mode) == 0o755
    assert os.listdir(shared) == [HIDDEN]
    assert os.listdir(shared / HIDDEN) == ["bag"]


@needs_users
def test_a_forged_bag_is_not_announced(tmp_path: Path, source: Path) -> None:
    """A finished bag in another user's hidden directory is not announced."""
    shared = shared_folder(tmp_path / "shared", 0o1777)
    as_user(OTHER, shared, lambda: os.mkdir(HIDDEN, 0o777))

    def forge() -> None:
        os.rename(f"{HIDDEN}/bag", f"{HIDDEN}/theirs")
        os.makedirs(f"{HIDDEN}/bag/data")

    with pytest.raises(BagError):
        create(source, shared / "t", progress=EventListener(at("move", lambda: as_user(OTHER, shared, forge))))
    assert not (shared / "t").exists()


@needs_users
@pytest.mark.parametrize("stage", ["examine", "copy", "check", "tag", "move"])
def test_a_hidden_directory_that_is_exchanged(tmp_path: Path, source: Path, stage: str) -> None:
    """If another user exchanges the hidden directory, the replacement is neither read nor written."""
    if not os.path.isdir("/proc/self/fd"):
        pytest.skip("needs paths that begin with a descriptor")
    shared = shared_folder(tmp_path / "shared", 0o777)

    def forge() -> None:
        os.rename(HIDDEN, "theirs")
        os.makedirs(f"{HIDDEN}/bag/data/sub", 0o777)
        os.mkdir(f"{HIDDEN}/tags", 0o777)

    create(source, shared / "t", progress=EventListener(at(stage, lambda: as_user(OTHER, shared, forge))))
    assert flaws(shared / "t") == []
    assert {path.stat().st_uid for path in (shared / "t").rglob("*")} == {0}
    assert (shared / "t" / "data" / "sub" / "b").read_bytes() == b"2" * 3000
    assert not [path for path in (shared / HIDDEN).rglob("*") if path.is_file()]


@needs_users
@OPEN_TO_ALL
@pytest.mark.parametrize("mode_of_it", [0o777, 0o755, 0o700])
def test_a_planted_directory_in_a_bag(tmp_path: Path, mode: int, mode_of_it: int) -> None:
    """A journal written by another user is not executed."""
    base = shared_folder(tmp_path / "b", mode)
    (base / "mine").write_bytes(b"1")
    as_user(OTHER, base, lambda: os.mkdir(os.fsdecode(STAGING), mode_of_it))
    with pytest.raises(BagError, match="owned by another user"):
        BagChange(os.fsencode(base))
    assert not os.listdir(base / os.fsdecode(STAGING))


def test_the_hidden_directory_is_private(tmp_path: Path, source: Path) -> None:
    """The hidden directory is private; the bag has the usual permissions of new directories."""
    seen = []
    old = os.umask(0o002)
    try:
        create(
            source,
            tmp_path / "t",
            progress=EventListener(at("move", lambda: seen.append((tmp_path / HIDDEN).stat().st_mode))),
        )
    finally:
        os.umask(old)
    assert [stat.S_IMODE(mode) for mode in seen] == [0o700]
    assert stat.S_IMODE((tmp_path / "t").stat().st_mode) == 0o775


@pytest.mark.skipif(os.name != "posix", reason="needs permissions")
def test_a_world_writable_hidden_directory(tmp_path: Path, source: Path) -> None:
    """A world-writable hidden directory is refused."""
    (tmp_path / HIDDEN).mkdir()
    os.chmod(tmp_path / HIDDEN, 0o777)
    with pytest.raises(BagError, match="writable by other users"):
        create(source, tmp_path / "t")


def test_a_foreign_hidden_directory(tmp_path: Path, source: Path) -> None:
    """A foreign directory with the hidden name keeps its files."""
    for name in ("bag", "tags", "other"):
        (tmp_path / HIDDEN / name).mkdir(parents=True)
        (tmp_path / HIDDEN / name / "mine").write_bytes(b"1")
        with pytest.raises(BagError, match="not created by an interrupted run"):
            create(source, tmp_path / "t")
        assert (tmp_path / HIDDEN / name / "mine").read_bytes() == b"1"


def test_another_bag_in_place_of_the_finished_one(tmp_path: Path, source: Path) -> None:
    """Only the bag with the recorded inode is the result of the killed run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pressmark.fs.staging.StagingDirectory.leave", lambda self: self.abandon())
        create(source, tmp_path / "t")
    os.rename(tmp_path / "t", tmp_path / "ours")
    (tmp_path / "t").mkdir()
    with pytest.raises(BagError, match="already exists"):
        create(source, tmp_path / "t")


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_errors_name_paths(tmp_path: Path, source: Path) -> None:
    """Errors name paths, not descriptors."""

    def block() -> None:
        os.mkdir(tmp_path / HIDDEN / "bag" / "bag-info.txt")

    with pytest.raises(BagError) as caught:
        create(source, tmp_path / "t", progress=EventListener(at("tag", block)))
    assert str(tmp_path / HIDDEN / "bag" / "bag-info.txt") in str(caught.value)
    assert sorted(os.listdir(tmp_path)) == ["s"]
