"""Owners of directories and the trust in them; files of known names; removal of trees."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pressmark.fs import owners
from pressmark.fs.atomic import new_file
from pressmark.fs.locks import FileLock
from pressmark.fs.moves import remove_tree
from pressmark.fs.owners import UntrustedError, enter_shared, is_own, require_private, require_shared, resolved
from pressmark.fs.staging import LOCK, StagingDirectory
from support.users import OTHER, THIRD, as_user, needs_users, shared_folder

posix = pytest.mark.skipif(os.name != "posix", reason="needs owners and links")
TEAM = 54300


@pytest.fixture
def path(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path / "d")


def test_a_private_directory_is_created_and_removed(path: bytes) -> None:
    """A private directory exists only during a run, and only one run may use it."""
    with StagingDirectory(path, holds=frozenset({b"x"})) as hidden:
        with pytest.raises(BlockingIOError):
            StagingDirectory(path)
        with open(os.path.join(hidden.inside, b"x"), "wb") as file:
            file.write(b"1")
        assert sorted(os.listdir(path)) == [LOCK, b"x"]
        assert hidden.shown(os.path.join(hidden.inside, b"x")) == os.path.join(path, b"x")
        assert hidden.shown(path + b"-2") == path + b"-2"
        hidden.remove(b"x")
        hidden.remove(b"x")
    assert not os.path.lexists(path)


def test_leftovers_are_recognised(path: bytes) -> None:
    """A directory that cannot be removed keeps its lock, by which the next run recognises it."""
    with StagingDirectory(path, holds=frozenset({b"x"})) as hidden:
        os.mkdir(os.path.join(hidden.inside, b"x"))
    assert sorted(os.listdir(path)) == [LOCK, b"x"]
    with StagingDirectory(path, holds=frozenset({b"x"})) as hidden:
        hidden.remove(b"x")
    assert not os.path.lexists(path)


@posix
def test_the_published_directory_is_the_written_one(path: bytes, tmp_path: Path) -> None:
    """The published directory is the written one, also without paths relative to descriptors."""
    hidden = StagingDirectory(path)
    hidden.inside = hidden.path
    os.mkdir(path + b"/bag")
    os.rename(path, path + b"-ours")
    os.makedirs(path + b"/bag")
    with pytest.raises(UntrustedError, match="replaced by another user"):
        hidden.publish(b"bag", os.fsencode(tmp_path / "t"))
    os.rename(path, path + b"-theirs")
    os.rename(path + b"-ours", path)
    made = os.lstat(path + b"/bag")
    assert os.path.samestat(hidden.publish(b"bag", os.fsencode(tmp_path / "t")), made)
    hidden.leave()
    assert sorted(os.listdir(tmp_path)) == ["d-theirs", "t"]


@posix
def test_file_systems_without_owners(path: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a file system with one owner and all permissions, new files have those too, and are accepted."""
    os.mkdir(path)
    os.chmod(path, 0o777)
    with pytest.raises(UntrustedError, match="writable by other users"):
        require_private(path, os.lstat(path))
    monkeypatch.setattr(os, "geteuid", lambda: THIRD)
    with pytest.raises(UntrustedError, match="writable by other users"):
        require_private(path, os.lstat(path))  # owners equal those of new files; permissions do not
    found = os.lstat(path)
    monkeypatch.setattr(owners, "_new_file_status", lambda _folder: found)
    require_private(path, found)
    assert is_own(found, path)


@needs_users
def test_private_directories(path: bytes, tmp_path: Path) -> None:
    """A private directory needs our owner and mode, and links are not followed."""
    shared = shared_folder(tmp_path / "s", 0o777)
    as_user(OTHER, shared, lambda: os.mkdir("theirs", 0o700))
    theirs = os.fsencode(shared / "theirs")
    with pytest.raises(UntrustedError, match=f"owned by another user .uid {OTHER}."):
        require_private(theirs, os.lstat(theirs))
    assert not is_own(os.lstat(theirs), os.fsencode(shared))
    os.symlink(tmp_path, path)
    with pytest.raises(UntrustedError, match="is a symbolic link"):
        StagingDirectory(path)
    assert os.listdir(shared) == ["theirs"]

    def enter() -> None:
        with pytest.raises(UntrustedError, match="owned by another user"):
            StagingDirectory(b"ours")  # which cannot even be opened

    (shared / "ours").mkdir(mode=0o700)
    as_user(OTHER, shared, enter)


@needs_users
@pytest.mark.parametrize(
    ("above", "mode", "user", "group", "why"),
    [
        (0o755, 0o755, 0, 0, None),
        (0o700, 0o775, 0, 0, None),  # by our umask
        (0o755, 0o777, 0, 0, "writable by everybody"),
        (0o1777, 0o777, 0, 0, "writable by everybody"),
        (0o1777, 0o700, OTHER, OTHER, "another user"),
        (0o777, 0o755, OTHER, TEAM, "another user"),
        (0o777, 0o777, 0, 0, None),
        (0o2775, 0o2775, OTHER, TEAM, None),
        (0o2775, 0o775, OTHER, OTHER, "writable by its group"),
        (0o2755, 0o775, OTHER, TEAM, "writable by its group"),
        (0o2775, 0o777, OTHER, TEAM, "writable by everybody"),
        (0o3775, 0o2775, OTHER, TEAM, None),
    ],
)
def test_trusted_like_the_parent_directory(
    tmp_path: Path, above: int, mode: int, user: int, group: int, why: str | None
) -> None:
    """A directory is trusted if only users trusted with its parent can change it."""
    shared = shared_folder(tmp_path / "s", above, TEAM)
    (shared / "d").mkdir()
    os.chown(shared / "d", user, group)
    os.chmod(shared / "d", mode)
    if why is None:
        assert require_shared(str(shared / "d")).st_uid == user
        enter_shared(os.fsencode(shared / "d") + b"/")
        return
    with pytest.raises(UntrustedError, match=why):
        require_shared(os.fsencode(shared / "d"))


@posix
def test_a_file_is_new(tmp_path: Path) -> None:
    """A file under the name is replaced; the target of a link, or a hard link, is not changed."""
    mine = tmp_path / "mine"
    mine.write_bytes(b"precious")
    for make in (lambda path: path.symlink_to(mine), lambda path: path.hardlink_to(mine), Path.touch, lambda _path: 0):
        make(tmp_path / "new")
        with open(tmp_path / "new", "wb", opener=new_file) as file:
            file.write(b"1")
        assert (mine.read_bytes(), (tmp_path / "new").read_bytes()) == (b"precious", b"1")
        (tmp_path / "new").unlink()
    (tmp_path / "new").mkdir()
    with pytest.raises(OSError), open(tmp_path / "new", "wb", opener=new_file):  # noqa: PT011
        pass


@posix
def test_locks_are_files_of_their_own(tmp_path: Path) -> None:
    """A pipe or a hard link in place of a lock is refused."""
    path = tmp_path / "lock"
    (tmp_path / "mine").touch()
    for make in (os.mkfifo, lambda path: os.link(tmp_path / "mine", path), lambda path: os.symlink("mine", path)):
        make(path)
        with pytest.raises(UntrustedError):
            FileLock(os.fsencode(path))
        path.unlink()


@needs_users
def test_links_of_others_are_not_written_through(tmp_path: Path) -> None:
    """In a world-writable directory, links of other users are refused; our own and a team's are followed."""
    shared = shared_folder(tmp_path / "s", 0o1777)
    as_user(OTHER, shared, lambda: os.symlink("/etc/passwd", "theirs"))
    os.symlink("elsewhere", shared / "ours")
    with pytest.raises(UntrustedError, match="another user"):
        resolved(str(shared / "theirs"))
    assert resolved(str(shared / "ours")) == str(shared / "elsewhere")
    os.chmod(shared, 0o775)
    assert resolved(str(shared / "theirs")) == "/etc/passwd"


@needs_users
def test_an_unreadable_tree_is_removed(tmp_path: Path) -> None:
    """Unreadable directories are opened up for removal; the target of a link keeps its mode."""
    shared = shared_folder(tmp_path / "s", 0o777)

    def work() -> None:
        os.makedirs("keep/inside")
        os.chmod("keep", 0o755)
        os.makedirs("d/closed/deeper")
        os.symlink("../../keep", "d/closed/link")
        Path("d/closed/deeper/file").touch()
        for name, mode in (("d/closed/deeper", 0o000), ("d/closed", 0o500), ("d", 0o300)):
            os.chmod(name, mode)
        directory = os.open(".", os.O_RDONLY)
        remove_tree(b"d", dir_fd=directory)
        os.close(directory)
        assert os.listdir(".") == ["keep"]
        os.mkdir("d")
        os.mkdir("d/closed", 0)
        remove_tree(b"d")

    as_user(OTHER, shared, work)
    assert os.listdir(shared) == ["keep"]
    assert stat.S_IMODE((shared / "keep").stat().st_mode) == 0o755
