"""Checks during changes to the store: work in progress is not a problem, lasting problems are reported."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark import jobs, stores
from pressmark.fs.locks import FileLock
from pressmark.fs.staging import RunDirectory
from pressmark.jobs import WorkFolder
from pressmark.reports import Problem
from pressmark.stores import Store, recheck
from pressmark.stores.bags import archives, check as bags_check, walk as reader
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.recheck import LOOKS
from support.events import listening
from support.trees import write

KINDS = ("pairtree", "vitro", "bags")
# The staging directory of each kind of store.
SHOPS = {"pairtree": "pairtree_pressmark", "vitro": "file_storage_pressmark", "bags": ".pressmark-work"}


def made(kind: str, tmp_path: Path) -> Store:
    """Return a store with one object of one file."""
    write(tmp_path, {"given/f": b"old", "new/f": b"new"})
    store = stores.create(kind, tmp_path / "store")
    store.put("abc", tmp_path / "given")
    return store


@pytest.fixture(params=KINDS)
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return made(request.param, tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> BagFolder:
    store = made("bags", tmp_path)
    assert isinstance(store, BagFolder)
    return store


def found(store: Store, *, digests: bool = True) -> tuple[list[str], int]:
    """Return the kinds of problems of a check, and the number of objects."""
    streamed: list[Problem] = []
    report = store.check(digests=digests, progress=listening(on_problem=streamed.append))
    assert report.problems == streamed
    return [one.kind for one in streamed], report.counts["objects"]


def once(call: Callable[[], object]) -> Callable[[], None]:
    """Return a function that calls ``call`` once, and then does nothing."""
    calls = [call]

    def run() -> None:
        if calls:
            calls.pop()()

    return run


def before(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], object]) -> list[int]:
    """Call a hook before each call of a function; return a list that grows with each."""
    real = getattr(module, name)
    calls: list[int] = []

    def call(*args: Any, **options: Any) -> Any:
        calls.append(len(calls))
        act()
        return real(*args, **options)

    monkeypatch.setattr(module, name, call)
    return calls


def after(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, act: Callable[[], object]) -> list[int]:
    """Call a hook after each call of a function; return a list that grows with each."""
    real = getattr(module, name)
    calls: list[int] = []

    def call(*args: Any, **options: Any) -> Any:
        calls.append(len(calls))
        result = real(*args, **options)
        act()
        return result

    monkeypatch.setattr(module, name, call)
    return calls


def damage(folder: BagFolder) -> None:
    (Path(folder.root) / "abc/data/f").unlink()


def replace(folder: BagFolder, tmp_path: Path) -> None:
    BagFolder(folder.root).put("abc", tmp_path / "new", replace=True)


# --- bags: while they are validated


@pytest.mark.parametrize("digests", [True, False])
def test_a_bag_that_is_replaced(
    tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch, digests: bool
) -> None:
    """Problems of the old bag, seen while it was replaced, are not reported for the new one."""
    damage(folder)
    calls = after(monkeypatch, bags_check, "validate", once(lambda: replace(folder, tmp_path)))
    assert found(folder, digests=digests) == ([], 1)
    assert len(calls) == 2
    assert folder.check().counts == {"objects": 1, "proper": 1, "files": 1, "bytes": 3}


def test_a_bag_that_is_removed(folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag removed meanwhile is not counted or reported."""
    damage(folder)
    after(monkeypatch, bags_check, "validate", once(lambda: BagFolder(folder.root).delete("abc")))
    report = folder.check(digests=True)
    assert report.problems == []
    assert report.counts == {"objects": 0, "proper": 0, "files": 0, "bytes": 0}


def test_problems_of_a_bag(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems of an unchanged bag are reported, and the bag is not read twice."""
    folder.put("x", tmp_path / "given")
    damage(folder)
    changed = once(lambda: BagFolder(folder.root).put("x", tmp_path / "new", replace=True))
    calls = after(monkeypatch, bags_check, "validate", changed)
    kinds, count = found(folder)
    assert (set(kinds), count) == ({"file-missing", "oxum-mismatch"}, 2)
    assert len(calls) == 2


def test_problems_of_the_new_bag(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Problems of the new bag are reported."""

    def act() -> None:
        replace(folder, tmp_path)
        (Path(folder.root) / "abc/data/f").write_bytes(b"NEW")

    damage(folder)
    after(monkeypatch, bags_check, "validate", once(act))
    assert found(folder) == (["checksum-mismatch"], 1)


def test_a_directory_in_place_of_a_bag(folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag directory that is no longer a bag is reported."""

    def act() -> None:
        for name in ("bagit.txt", "bag-info.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt"):
            (Path(folder.root) / "abc" / name).unlink()

    damage(folder)
    (Path(folder.root) / "abc/data/g").write_bytes(b"")
    after(monkeypatch, bags_check, "validate", once(act))
    assert found(folder) == (["beside"], 0)


def test_a_bag_that_keeps_changing(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag that changes at every attempt is an error, and the check ends."""

    def act() -> None:
        replace(folder, tmp_path)
        damage(folder)

    damage(folder)
    calls = after(monkeypatch, bags_check, "validate", act)
    assert found(folder) == (["object-changing"], 1)
    assert len(calls) == LOOKS


def test_a_file_that_changes(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file written to during the read is read again."""
    real = bags_check.validate
    results = [lambda report: report.add([Problem("file-changing", "error", "3", "data/f")])]

    def validate(*args: Any, **options: Any) -> Any:
        report = real(*args, **options)
        if results:
            results.pop()(report)
        return report

    monkeypatch.setattr(bags_check, "validate", validate)
    assert found(folder) == ([], 1)
    results += [lambda report: report.add([Problem("file-changing", "error", "3", "data/f")])] * 100
    assert found(folder) == (["file-changing"], 1)
    assert len(results) == 100 - bags_check.REREADS


def test_a_second_bag_of_an_identifier(folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag moved during the walk is not a duplicate; a real duplicate is reported."""
    base = Path(folder.root)
    walked = folder.objects()
    next(walked)
    (base / "abc").rename(base / "later")
    shutil.copytree(base / "later", base / "later2")
    # Names are read before bags: only another walk finds new bags.
    assert list(walked) == []
    assert found(folder) == (["duplicate-id"], 2)
    changes = once(lambda: os.utime(base / "later2"))
    (base / "later2/data/f").unlink()
    after(monkeypatch, bags_check, "validate", lambda: len(calls) == 2 and changes())
    calls = before(monkeypatch, reader, "read_tag_files", lambda: None)
    assert sorted(found(folder)[0]) == ["duplicate-id", "file-missing", "oxum-mismatch"]
    assert len(calls) > 2


def test_a_first_bag_that_was_removed(folder: BagFolder) -> None:
    """A bag is not a duplicate of a removed one."""
    base = Path(folder.root)
    shutil.copytree(base / "abc", base / "b")
    walked = folder.objects()
    assert next(walked).path == "abc"
    shutil.rmtree(base / "abc")
    assert [(one.path, one.problems) for one in walked] == [("b", ())]


def test_bags_in_place_of_a_bag(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several bags in place of one bag are each validated."""
    base = Path(folder.root)

    def act() -> None:
        folder.put("x", tmp_path / "new")
        shutil.rmtree(base / "abc")
        (base / "abc").mkdir()
        (base / "x").rename(base / "abc/x")
        shutil.copytree(base / "abc/x", base / "abc/y")
        (base / "abc/y/data/f").write_bytes(b"NEW")

    damage(folder)
    after(monkeypatch, bags_check, "validate", once(act))
    assert found(folder) == (["checksum-mismatch"], 2)


# --- bags: while the folder is walked


@pytest.mark.parametrize("digests", [True, False])
def test_a_serialized_bag_that_was_removed(
    tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch, digests: bool
) -> None:
    """An archive removed meanwhile is not reported as malformed."""
    base = Path(folder.root)
    shutil.make_archive(str(tmp_path / "b"), "zip", base, "abc")
    folder.delete("abc")
    (tmp_path / "b.zip").rename(base / "abc.zip")
    with monkeypatch.context() as patch:
        before(patch, archives, "describe", once((base / "abc.zip").unlink))
        assert found(folder, digests=digests) == ([], 0)
    (base / "abc.zip").write_bytes(b"no archive")
    assert found(folder, digests=digests)[0].count("archive-malformed") == 1


def test_a_tag_file_that_was_removed(tmp_path: Path, folder: BagFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a bag is replaced during the read, the new tag files count."""
    info = Path(folder.root) / "abc/bag-info.txt"
    info.unlink()
    info.mkdir()  # a directory, which cannot be read as a file
    before(monkeypatch, recheck, "await_turn", once(lambda: replace_by_hand(folder, tmp_path)))
    assert found(folder) == ([], 1)


def replace_by_hand(folder: BagFolder, tmp_path: Path) -> None:
    other = BagFolder.create(tmp_path / "other")
    other.put("abc", tmp_path / "new")
    shutil.rmtree(Path(folder.root) / "abc")
    (tmp_path / "other/abc").rename(Path(folder.root) / "abc")


# --- all kinds: moves in progress -------


def in_turn(store: Store, monkeypatch: pytest.MonkeyPatch, finish: Callable[[], object]) -> list[float]:
    """Hold the lock as a run does, and release it when the check waits; return each waiting time."""
    staging = RunDirectory(os.path.join(os.fsencode(store.root), SHOPS[store.kind].encode()))
    staging.__enter__()
    turn = staging.lock()
    waited: list[float] = []

    def end() -> None:
        finish()
        turn.release()
        staging.__exit__(None, None, None)

    ended = once(end)

    def wait(seconds: float) -> None:
        waited.append(seconds)
        ended()

    monkeypatch.setattr(recheck, "sleep", wait)
    return waited


def between(store: Store) -> tuple[Path, Path]:
    """Bring the object into the state between two steps of a change; return the file to rename and its new name."""
    root = Path(store.root)
    if store.kind == "bags":
        # Replaced without an atomic exchange.
        (root / "abc").rename(root / "abc.pressmark-old")
        return root / "abc.pressmark-old", root / "abc"
    if store.kind == "pairtree":
        directory = root / "pairtree_root/ab/c"
        (directory / "pairtree_pressmark-old").mkdir()
        (name,) = (path.name for path in directory.iterdir() if path.name != "pairtree_pressmark-old")
        (directory / name).rename(directory / "pairtree_pressmark-old" / name)
        return directory / "pairtree_pressmark-old" / name, directory / name
    directory = root / "file_storage_root/abc"
    os.link(directory / "f", directory / "g")  # as a concurrent reader of the directory may see a rename
    return directory / "f", directory / "g"


def finished(store: Store, old: Path, new: Path) -> None:
    old.replace(new) if store.kind != "vitro" else old.unlink()
    if store.kind == "pairtree":
        old.parent.rmdir()


def test_an_object_in_the_middle_of_a_change(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check waits for the run that is changing the object."""
    old, new = between(any_store)
    waited = in_turn(any_store, monkeypatch, lambda: finished(any_store, old, new))
    assert found(any_store) == ([], 1)
    assert len(waited) == 1


def test_an_object_that_was_left_in_the_middle(any_store: Store) -> None:
    """An interrupted change without a live run is reported."""
    between(any_store)
    kinds, count = found(any_store)
    assert (kinds, count) == (["files-several" if any_store.kind == "vitro" else "unfinished"], 1)


def test_a_directory_that_is_about_to_be_filled_or_removed(
    any_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty directory is reported only if it remains."""
    trees = {"pairtree": "pairtree_root/zz", "vitro": "file_storage_root/zz", "bags": "zz"}
    at = Path(any_store.root) / trees[any_store.kind]
    at.mkdir()
    assert found(any_store) == (["empty"], 1)
    with monkeypatch.context() as patch:
        in_turn(any_store, patch, at.rmdir)
        assert found(any_store) == ([], 1)
    at.mkdir()
    with monkeypatch.context() as patch:
        names = {"pairtree": "object", "vitro": "f", "bags": "bag"}
        source = Path(any_store.get("abc").path)
        source = {"pairtree": source, "vitro": source / "f", "bags": source.parent}[any_store.kind]
        copy = shutil.copytree if source.is_dir() else shutil.copy
        in_turn(any_store, patch, lambda: copy(source, at / names[any_store.kind]))
        kinds, count = found(any_store)
    assert (set(kinds) - {"duplicate-id"}, count) == (set(), 2)


def test_a_lock_that_is_not_released(any_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run stopped while it holds the lock does not block a check; problems are reported."""
    between(any_store)
    waited: list[float] = []
    monkeypatch.setattr(recheck, "sleep", waited.append)
    staging = Path(any_store.root) / SHOPS[any_store.kind]
    staging.mkdir(exist_ok=True)
    with FileLock(os.fsencode(staging / "lock")):
        assert len(found(any_store)[0]) == 1
    assert len(waited) >= recheck.PAUSES


def test_an_object_that_keeps_changing(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that changes at every attempt is an error."""
    old, new = between(any_store)
    turns = iter(range(10**6))

    def change(_folder: bytes) -> None:
        if any_store.kind == "bags":
            (old / "bag-info.txt").write_text(f"External-Identifier: abc{next(turns)}\n")
        else:
            (new.parent / f"other{next(turns)}").write_bytes(b"")

    change(b"")
    change(b"")
    for module in (recheck, bags_check):
        monkeypatch.setattr(module, "await_turn", change)
    kinds, count = found(any_store, digests=False)
    assert "object-changing" in kinds
    assert count == 1


def test_unreadable_directories_are_reported(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable directory is reported, however often it is read."""
    trees = {"pairtree": "pairtree_root/ab", "vitro": "file_storage_root/abc", "bags": "abc"}
    at = os.fsencode(Path(any_store.root) / trees[any_store.kind])
    real = os.scandir

    def scandir(path: Any = ".") -> Any:
        if path == at:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    if any_store.kind == "pairtree":
        monkeypatch.setattr("pressmark.stores.pairtree.walk.Walk._take_in", lambda *_arguments: None)
        walk = any_store.walk  # type: ignore[attr-defined]
        (item,) = walk._looked_at("ab")[0]
        assert [one.kind for one in walk.second_look(item)] == ["unreadable"]
        return
    assert found(any_store) == (["unreadable"], 0)


@pytest.mark.parametrize("any_store", ["vitro", "bags"], indirect=True)
def test_a_directory_that_can_be_read_again(any_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a directory becomes readable again, everything below it is checked."""
    any_store.put("abcdef", tmp_path / "given")
    at = Path(any_store.root) / ("file_storage_root/abc" if any_store.kind == "vitro" else "abc")
    if any_store.kind == "bags":
        at.rename(at.with_name("moved"))
        at.mkdir()
        at.with_name("moved").rename(at / "moved")
    failing = [PermissionError(errno.EACCES, os.strerror(errno.EACCES))]
    real = os.scandir

    def scandir(path: Any = ".") -> Any:
        if path == os.fsencode(at) and failing:
            raise failing.pop()
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert found(any_store) == ([], 2)


def test_a_run_that_is_starting(any_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A private directory without a lock is reported only if a killed run left it."""
    staging = Path(any_store.root) / SHOPS[any_store.kind]
    (staging / "run").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr(recheck, "sleep", lambda _seconds: (staging / "run").rmdir())
        assert found(any_store) == ([], 1)
    (staging / "run").mkdir()
    assert found(any_store) == (["leftover"], 1)
    (staging / "run" / "object").write_bytes(b"")
    (staging / "run" / "lock").write_bytes(b"")
    assert found(any_store) == (["leftover"], 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_named_pipe_in_place_of_the_lock(any_store: Store) -> None:
    """A named pipe in place of the lock does not block a check."""
    between(any_store)
    staging = Path(any_store.root) / SHOPS[any_store.kind]
    staging.mkdir(exist_ok=True)
    os.mkfifo(staging / "lock")
    assert {"files-several", "unfinished"} & set(found(any_store)[0])


# --- jobs


def test_bags_of_a_job(tmp_path: Path, folder: BagFolder) -> None:
    """A bag changed since the plan is checked in its current state; a removed one is reported as gone."""
    for identifier in ("b", "c"):
        folder.put(identifier, tmp_path / "given")
    (Path(folder.root) / "b/bag-info.txt").write_text("no element\n")
    job = stores.CheckStore(folder.root)
    work = WorkFolder.create(tmp_path / "work", job, job.plan(tmp_path / "work"), job.parameters())
    folder.delete("abc")
    folder.put("b", tmp_path / "new", replace=True)
    (Path(folder.root) / "c/data/f").unlink()
    assert jobs.run_local(job, work, 1, processes=False).by_status == {"gone": 1, "ok": 1, "wrong": 1}
