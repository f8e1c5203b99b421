"""Stores in directories that other users may write to: foreign leftovers are reported, and teams can share a store."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import stores
from pressmark.errors import ObjectError, StoreError
from pressmark.fs.owners import UntrustedError
from pressmark.fs.staging import RunDirectory, kind_of_leftover, leftovers, own_leftovers
from pressmark.progress_event import EventListener
from support.users import OTHER, THIRD, as_user, needs_users, shared_folder

TEAM = 54300
#: The staging directory of each kind of store.
WORKSHOPS = {
    "pairtree": "pairtree_pressmark",
    "vitro": "file_storage_pressmark",
    "ocfl": "extensions/pressmark-staging",
    "bags": ".pressmark-work",
}
OPTIONS: dict[str, dict[str, Any]] = {"ocfl": {"layout": "0004"}}
IDENTIFIER = "info:x/1"


def made(folder: Path, kind: str) -> Any:
    make: Callable[..., Any] = stores.create
    return make(kind, folder, **OPTIONS.get(kind, {}))


def kill_in(folder: str) -> None:
    """Leave the leftovers of a killed run."""
    staging = RunDirectory(os.fsencode(folder))
    staging.__enter__()
    Path(os.fsdecode(staging / b"bag")).mkdir()
    (Path(os.fsdecode(staging / b"bag")) / "file").write_bytes(b"theirs")


def put(store: Any, source: Path) -> None:
    store.put(IDENTIFIER, source)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(b"1")
    return tmp_path / "file"


@needs_users
@pytest.mark.parametrize("kind", WORKSHOPS)
@pytest.mark.parametrize("mode", [0o1777, 0o777])
def test_a_planted_staging_directory(tmp_path: Path, source: Path, kind: str, mode: int) -> None:
    """In a world-writable directory, another user's staging directory is refused."""
    store = made(tmp_path / "store", kind)
    folder = tmp_path / "store" / WORKSHOPS[kind]
    folder.parent.mkdir(exist_ok=True)
    os.chmod(folder.parent, mode)
    as_user(OTHER, folder.parent, lambda: os.mkdir(folder.name, 0o777))
    with pytest.raises(ObjectError, match="owned by another user"):
        put(store, source)
    assert os.listdir(folder) == []


@needs_users
@pytest.mark.parametrize("kind", ["pairtree", "ocfl", "bags"])
@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_a_team_can_change_what_one_of_them_stores(tmp_path: Path, kind: str, many: bool) -> None:
    """Every new directory belongs to the team, which may write to it, whatever the mode of the source."""
    store = made(tmp_path / "store", kind)
    for path in (tmp_path / "store", *(tmp_path / "store").iterdir()):
        if path.is_dir():
            os.chown(path, -1, TEAM)
            os.chmod(path, 0o2775)
    (tmp_path / "source" / "sub").mkdir(parents=True)
    (tmp_path / "source" / "sub" / "a").write_bytes(b"1")
    for path in (tmp_path / "source" / "sub", tmp_path / "source"):
        path.chmod(0o755)
    before = set((tmp_path / "store").rglob("*"))
    umask = os.umask(0o002)
    try:
        if many:
            with store.ingest() as batch:
                for number in range(3):
                    batch.put(f"x:{number}", tmp_path / "source")
        else:
            store.put("x:1", tmp_path / "source")
    finally:
        os.umask(umask)
    new = [path for path in set((tmp_path / "store").rglob("*")) - before if path.is_dir()]
    assert len(new) > 2
    wrong = [path for path in new if path.stat().st_gid != TEAM or path.stat().st_mode & 0o2020 != 0o2020]
    assert wrong == []


@needs_users
@pytest.mark.parametrize("kind", WORKSHOPS)
def test_leftovers_of_another_user(tmp_path: Path, source: Path, kind: str) -> None:
    """Another user's leftovers are reported, and only that user's runs remove them."""
    store = made(tmp_path / "store", kind)
    folder = tmp_path / "store" / WORKSHOPS[kind]
    folder.parent.mkdir(exist_ok=True)
    for path in {tmp_path / "store", folder.parent}:
        os.chown(path, -1, TEAM)
        os.chmod(path, 0o2775)
    as_user(OTHER, folder.parent, lambda: kill_in(folder.name), group=TEAM, umask=0o002)
    (left,) = leftovers(os.fsencode(folder))
    assert (kind_of_leftover(left), own_leftovers(os.fsencode(folder))) == ("leftover-foreign", [])
    put(store, source)
    for _ in range(2):
        found = [one for one in store.check().problems if one.kind.startswith("leftover")]
        assert [one.kind for one in found] == ["leftover-foreign"]
        assert found[0].path == os.path.relpath(os.fsdecode(left), tmp_path / "store")
        for dry_run in (True, False):
            changes: list[Any] = []
            report = store.repair(dry_run=dry_run, progress=EventListener(changes.append))
            assert changes == []
            assert "leftover-foreign" in {one.kind for one in report.problems}
    assert Path(os.fsdecode(left), "bag", "file").read_bytes() == b"theirs"

    def again() -> None:
        with RunDirectory(os.fsencode(folder.name)):
            pass

    as_user(OTHER, folder.parent, again, group=TEAM, umask=0o002)
    assert not folder.exists()


@needs_users
def test_a_team_shares_a_staging_directory(tmp_path: Path) -> None:
    """Members of a team share a staging directory, beside each other's leftovers."""
    shared = shared_folder(tmp_path / "store", 0o2775, TEAM)
    as_user(OTHER, shared, lambda: kill_in("staging"), group=TEAM, umask=0o002)
    assert stat.S_IMODE((shared / "staging").stat().st_mode) == 0o2775

    def work() -> None:
        with RunDirectory(b"staging") as staging, staging.lock():
            assert len(os.listdir("staging")) == 3
            # Only whether another user's lock is held is visible.
            (left,) = leftovers(b"staging")
            with pytest.raises(PermissionError):
                os.listdir(left)

    as_user(THIRD, shared, work, group=TEAM, umask=0o002)
    assert len(os.listdir(shared / "staging")) == 1


@needs_users
def test_a_world_writable_staging_directory(tmp_path: Path) -> None:
    """A world-writable staging directory is refused."""
    shared = shared_folder(tmp_path / "store", 0o2775, TEAM)
    as_user(OTHER, shared, lambda: os.mkdir("staging", 0o777), group=TEAM)
    with pytest.raises(UntrustedError, match="writable by everybody"), RunDirectory(os.fsencode(shared / "staging")):
        pass
    os.chmod(shared / "staging", 0o775)
    with RunDirectory(os.fsencode(shared / "staging")):
        pass


@needs_users
def test_a_store_is_not_declared_through_a_link(tmp_path: Path) -> None:
    """A temporary file of a known name is created anew; the target of a link in its place is not changed."""
    (tmp_path / "mine").write_bytes(b"precious")
    shared = shared_folder(tmp_path / "store", 0o777)
    as_user(OTHER, shared, lambda: os.symlink(tmp_path / "mine", ".pressmark-bags.json.new"))
    made(shared, "bags")
    assert (tmp_path / "mine").read_bytes() == b"precious"
    assert not (shared / ".pressmark-bags.json").is_symlink()
    with pytest.raises(StoreError):
        made(shared, "bags")
