"""Work folders in directories that other users may write to: planted files are neither written to nor used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark import migrate, stores
from pressmark.errors import JobError, MigrationError
from pressmark.jobs.workdir import WorkFolder, locked
from pressmark.migrate.planning.plan import write_record
from support.users import OTHER, as_user, needs_users, shared_folder

TEAM = 54300


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(b"1")
    store = stores.create("pairtree", tmp_path / "source")
    store.put("x1", tmp_path / "file")
    return tmp_path / "source"


def plan(source: Path, destination: Path) -> migrate.Plan:
    return migrate.plan(source, destination, to="ocfl", layout="0004")


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_planted_link(tmp_path: Path, source: Path) -> None:
    """The target of a planted link is not written to."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "new.migration").symlink_to(tmp_path / "mine")
    with pytest.raises(MigrationError, match="is a symbolic link") as caught:
        plan(source, tmp_path / "new")
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path / "mine") == []


@needs_users
@pytest.mark.parametrize("mode", [0o1777, 0o777])
def test_a_planted_folder(tmp_path: Path, source: Path, mode: int) -> None:
    """A work folder of another user is refused: its owner could exchange the plan."""
    shared = shared_folder(tmp_path / "shared", mode)
    as_user(OTHER, shared, lambda: os.mkdir("new.migration", 0o777))
    with pytest.raises(MigrationError, match="owned by another user"):
        plan(source, shared / "new")
    assert os.listdir(shared / "new.migration") == []


@needs_users
def test_a_folder_of_a_team(tmp_path: Path, source: Path) -> None:
    """A team's folder is trusted as much as its parent directory."""
    shared = shared_folder(tmp_path / "shared", 0o2775, TEAM)
    as_user(OTHER, shared, lambda: os.mkdir("new.migration", 0o777), group=TEAM)
    with pytest.raises(MigrationError, match="writable by everybody"):
        plan(source, shared / "new")
    os.chmod(shared / "new.migration", 0o2775)
    found = plan(source, shared / "new")
    assert migrate.run(found, processes=False, workers=1).complete


@needs_users
def test_a_planted_plan_is_not_carried_out(tmp_path: Path, source: Path) -> None:
    """Another user's plan is refused: it could move our files."""
    shared = shared_folder(tmp_path / "shared", 0o1777)
    work = Path(plan(source, shared / "new").work)
    for path in (work, *work.rglob("*")):
        os.chown(path, OTHER, OTHER)
    for go_on in (migrate.run, migrate.resume):
        with pytest.raises(MigrationError, match="owned by another user"):
            go_on(work)
    with pytest.raises(JobError, match="owned by another user"):
        WorkFolder.open(work)
    assert not (shared / "new").exists()


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_files_of_known_names(tmp_path: Path) -> None:
    """Lock files and temporary files of known names do not follow links."""
    mine = tmp_path / "mine"
    mine.write_bytes(b"precious")
    for name in ("driver.lock", "record.json.new"):
        (tmp_path / name).symlink_to(mine)
    with (
        pytest.raises(PermissionError, match="is a symbolic link; move it elsewhere"),
        locked(tmp_path / "driver.lock"),
    ):
        pass
    (tmp_path / "driver.lock").unlink()
    (tmp_path / "driver.lock").hardlink_to(mine)
    with pytest.raises(PermissionError, match="not a lock file"), locked(tmp_path / "driver.lock"):
        pass
    write_record(str(tmp_path / "record.json"), {"a": 1})
    assert mine.read_bytes() == b"precious"
    assert (tmp_path / "record.json").read_text() == '{\n  "a": 1\n}\n'
