"""The index of a folder of bags: never wrong, whatever other programs, kills and clocks do."""

from __future__ import annotations

import errno
import io
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.errors import ObjectError
from pressmark.fs.locks import FileLock
from pressmark.stores.bags import bag_folder, bag_index, walk as bag_walk
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.bags.bag_index import key_of
from support.effort import repeats
from support.preloading import run_preloaded
from support.trees import snapshot, write
from support.users import OTHER, THIRD, as_user, needs_users

COUNT = 60  # more than an index is worthwhile for
INDEX = ".pressmark-work/index"
TEAM = 54300


def bag(path: Path, identifier: str | None) -> Path:
    """Write a bag as other programs do."""
    (path / "data").mkdir(parents=True)
    (path / "bagit.txt").write_text("BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
    (path / "manifest-md5.txt").write_text("")
    if identifier is not None:
        (path / "bag-info.txt").write_text(f"External-Identifier: {identifier}\n")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with bags of another program, and a file to put."""
    write(tmp_path, {"f.txt": b"data", "given/a": b"a", "given/b": b"b"})
    folder = tmp_path / "bags"
    BagFolder.create(folder)
    for number in range(COUNT):
        bag(folder / f"bag-{number}", f"id:{number}")
    return folder


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The names of the bags that are read, by the index or to verify a hit."""
    names: list[bytes] = []
    read_tag_files = bag_walk.read_tag_files

    def counted(base: Any, problems: Any) -> Any:
        names.append(os.path.basename(base.path))
        return read_tag_files(base, problems)

    monkeypatch.setattr(bag_walk, "read_tag_files", counted)
    return names


def is_missing(folder: Path | BagFolder, identifier: str) -> bool:
    """Return whether a bag is not found, given a path by a new process."""
    try:
        (folder if isinstance(folder, BagFolder) else BagFolder(folder)).get(identifier)
    except ObjectError as error:
        if error.kind != "missing":
            raise
        return True
    return False


def look(folder: Path) -> None:
    """Read the folder and write its index, as one process."""
    assert is_missing(folder, "none")
    assert (folder / INDEX).exists()


def names_in_work(folder: Path) -> list[str]:
    return sorted(os.listdir(folder / ".pressmark-work"))


def freeze(patch: pytest.MonkeyPatch, age: int, *directories: Path) -> None:
    """Let directories have been changed a number of seconds ago, whatever changes in them."""
    lstat, then = os.lstat, time.time_ns() - age * 1_000_000_000
    frozen = set(map(os.fsencode, directories))

    def status(path: Any, **options: Any) -> os.stat_result:
        found = lstat(path, **options)
        if isinstance(path, bytes) and path.rstrip(b"/") in frozen:
            return os.stat_result(tuple(found), {"st_mtime_ns": then, "st_ctime_ns": then})  # type: ignore[arg-type]
        return found

    patch.setattr(os, "lstat", status)


# --- cost -------------------------------------------------------------------------------------------------------------


def test_one_change_reads_nothing_else(folder: Path, read: list[bytes]) -> None:
    """With an index, each process reads only the bag that it works on."""
    look(folder)
    assert len(read) == COUNT
    for number in range(5):
        del read[:]
        BagFolder(folder).put(f"new:{number}", folder.parent / "f.txt")
        assert not read
        assert BagFolder(folder).get(f"id:{number}").bag_path.endswith(f"/bag-{number}")
        assert is_missing(folder, f"new:{number + 1}")
        BagFolder(folder).put(f"id:{number}", folder.parent / "f.txt", replace=True)
        BagFolder(folder).delete(f"id:{number}")
        assert is_missing(folder, f"id:{number}")
        assert len(read) < 20


def test_only_new_bags_are_read(folder: Path, read: list[bytes]) -> None:
    """After changes by others, only new and changed bags are read."""
    look(folder)
    del read[:]
    bag(folder / "other", "x:1")
    os.utime(folder / "bag-7", (1, 1))
    assert not is_missing(folder, "x:1")
    assert set(read) == {b"other", b"bag-7"}


def test_too_many_entries_for_one_call(folder: Path, read: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """If the entries of a directory cannot be listed in one call, they are listed one by one, with the same times."""
    bag(folder / "nested" / "bag", "x:0")
    look(folder)
    trees = bag_index.trees
    monkeypatch.setattr(
        bag_index, "trees", lambda top, names, wanted: trees(top, names, wanted._replace(entries=len(names) - 1))
    )
    del read[:]
    bag(folder / "other", "x:1")
    (folder / "bag-7").rename(folder / "renamed")
    bag(folder / "nested" / "second", "x:2")
    for identifier in ("x:0", "x:1", "x:2", "id:7", "id:3"):
        assert not is_missing(folder, identifier)
    assert set(read) == {b"other", b"renamed", b"second", b"bag", b"bag-3"}


@pytest.mark.parametrize("is_same_process", [True, False])
def test_an_old_directory_is_not_listed(folder: Path, monkeypatch: pytest.MonkeyPatch, is_same_process: bool) -> None:
    """If a directory had not changed for a while when it was read, its times alone show that nothing is new in it."""
    bag(folder / "nested" / "bag", "x:0")
    with monkeypatch.context() as patch:
        freeze(patch, 10, folder, folder / "nested")
        store = BagFolder(folder)
        assert is_missing(store, "none")
        bag(folder / "first", "x:1")
        bag(folder / "nested" / "second", "x:2")
        store = store if is_same_process else BagFolder(folder)
        assert [is_missing(store, f"x:{number}") for number in range(3)] == [False, True, True]
    assert [is_missing(store, f"x:{number}") for number in range(3)] == [False, False, False]


def test_many_changes(folder: Path) -> None:
    """The index has bags that were put, removed and put again by many processes, each in the same file."""
    look(folder)
    file = (folder / INDEX).stat().st_ino
    for number in range(0, 16, 2):
        BagFolder(folder).delete(f"id:{number}")
        BagFolder(folder).put(f"id:{number}", folder.parent / "f.txt")
        BagFolder(folder).delete(f"id:{number + 1}")
    assert names_in_work(folder) == ["index"]
    assert (folder / INDEX).stat().st_ino == file
    for number in range(COUNT):
        assert is_missing(folder, f"id:{number}") == (number < 16 and number % 2 == 1)


def test_a_hit_by_name_needs_no_index(folder: Path) -> None:
    """A bag that has the name of its identifier is found, replaced and removed without reading the others."""
    work = folder / ".pressmark-work"
    BagFolder(folder).put("x:1", folder.parent / "f.txt")
    shutil.rmtree(work)
    assert not is_missing(folder, "x:1")
    BagFolder(folder).put("x:1", folder.parent / "given", replace=True)
    BagFolder(folder).delete("x:1")
    assert not work.exists()


def test_a_small_folder_has_no_index(folder: Path) -> None:
    """Nothing is left of the index when few bags are left, whichever names they have."""
    BagFolder(folder).put("own", folder.parent / "f.txt")
    look(folder)
    store = BagFolder(folder)
    for number in range(COUNT - 5):
        shutil.rmtree(folder / f"bag-{number}")
    store.delete(f"id:{COUNT - 5}")
    BagFolder(folder).delete("own")
    assert not (folder / ".pressmark-work").exists()


@pytest.mark.parametrize("change", ["put", "delete"])
def test_times_of_the_folder_are_not_set(folder: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """The folder of a user has the times that the system gives it."""
    look(folder)
    utime = os.utime

    def checked(path: Any, *rest: Any, **options: Any) -> None:
        assert not os.path.samestat(os.stat(path), os.stat(folder))
        utime(path, *rest, **options)

    monkeypatch.setattr(os, "utime", checked)
    if change == "put":
        BagFolder(folder).put("new", folder.parent / "given")
    else:
        BagFolder(folder).delete("id:3")


# --- other programs ---------------------------------------------------------------------------------------------------

CHANGES: dict[str, Callable[[Path], object]] = {
    "a bag": lambda folder: bag(folder / "foreign", "x:1"),
    "a bag moved in": lambda folder: bag(folder.parent / "foreign", "x:1").rename(folder / "foreign"),
    "a bag in a new directory": lambda folder: bag(folder / "a" / "b" / "foreign", "x:1"),
    "a bag in a directory": lambda folder: bag(folder / "nested" / "deep" / "foreign", "x:1"),
    "a bag in place of another": lambda folder: (shutil.rmtree(folder / "bag-3"), bag(folder / "bag-3", "x:1")),
    "a bag in place of another, nested": lambda folder: (
        shutil.rmtree(folder / "nested" / "bag"),
        bag(folder / "nested" / "bag", "x:1"),
    ),
    "a directory becomes a bag": lambda folder: bag_in(folder / "nested" / "deep", "x:1"),
    "the tag files of an unfinished bag": lambda folder: (folder / "young" / "bag-info.txt").write_text(
        "External-Identifier: x:1\n"
    ),
}


def bag_in(path: Path, identifier: str) -> None:
    """Turn a directory into a bag."""
    bag(path.parent / "made", identifier)
    for name in os.listdir(path.parent / "made"):
        os.rename(path.parent / "made" / name, path / name)


@pytest.mark.parametrize("is_same_process", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_by_others(folder: Path, change: str, is_same_process: bool) -> None:
    """A bag that another program adds anywhere is found, even if all clocks stand still; no second one is put."""
    bag(folder / "nested" / "bag", "x:0")
    (folder / "nested" / "deep").mkdir()
    bag(folder / "young", None)
    store = BagFolder(folder)
    for index in (store, BagFolder(folder)):
        assert is_missing(index, "x:1")
    times = {path: os.stat(path) for path in (folder, *folder.rglob("*")) if path.is_dir()}
    CHANGES[change](folder)
    for path, status in times.items():
        if path.exists():
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    if is_same_process:
        assert not is_missing(store, "x:1")
    else:
        store = BagFolder(folder)
    with pytest.raises(ObjectError) as caught:
        store.put("x:1", folder.parent / "f.txt")
    assert caught.value.kind == "exists"
    assert not is_missing(store, "x:1")
    assert not is_missing(folder, "x:1")


def test_a_directory_that_becomes_a_bag(folder: Path) -> None:
    """What is in it belongs to the bag, and is not found as a bag of its own."""
    bag(folder / "nested" / "bag", "x:0")
    store = BagFolder(folder)
    assert not is_missing(store, "x:0")
    bag_in(folder / "nested", "x:1")
    assert [is_missing(store, identifier) for identifier in ("x:1", "x:0")] == [False, True]
    assert [is_missing(folder, identifier) for identifier in ("x:1", "x:0")] == [False, True]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_change_hidden_by_our_own(folder: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """A bag that appears just before or after our own, with one time stamp for both, is found by the next process."""
    look(folder)
    bag(folder.parent / "foreign", "x:1")
    rename_new = bag_folder.rename_new

    def both(source: bytes, target: bytes) -> None:
        if when == "before":
            os.rename(folder.parent / "foreign", folder / "foreign")
        rename_new(source, target)
        if when == "after":
            status = os.stat(folder)
            os.rename(folder.parent / "foreign", folder / "foreign")
            os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))

    with monkeypatch.context() as patch:
        patch.setattr(bag_folder, "rename_new", both)
        BagFolder(folder).put("new", folder.parent / "f.txt")
    assert not is_missing(folder, "x:1")
    with pytest.raises(ObjectError, match="bag exists at 'foreign"):
        BagFolder(folder).put("x:1", folder.parent / "f.txt")


@pytest.mark.parametrize("is_same_process", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_directories_whose_clock_stands_still(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str, is_same_process: bool
) -> None:
    """A change that has the time of the last one is found."""
    bag(folder / "nested" / "bag", "x:0")
    (folder / "nested" / "deep").mkdir()
    bag(folder / "young", None)
    freeze(monkeypatch, -3600, folder, folder / "nested", folder / "nested" / "deep", folder / "young")
    store = BagFolder(folder)
    assert is_missing(store, "x:1")
    CHANGES[change](folder)
    assert not is_missing(store if is_same_process else folder, "x:1")


def test_a_change_while_the_index_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag that appears after the folder was read, before its index is written, is found by the next process."""
    bag(folder.parent / "foreign", "x:1")
    require_shared = bag_index.require_shared

    def changed(path: bytes) -> os.stat_result:
        if (folder.parent / "foreign").exists():
            os.rename(folder.parent / "foreign", folder / "foreign")
        return require_shared(path)

    with monkeypatch.context() as patch:
        patch.setattr(bag_index, "require_shared", changed)
        look(folder)
    assert (folder / "foreign").exists()
    assert not is_missing(folder, "x:1")


def test_an_index_that_another_process_has_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that read a bag before another process read the one in its place does not hide the new bag."""
    look(folder)
    bag(folder / "foreign", "x:1")
    bag(folder.parent / "later", "x:2")
    freeze(monkeypatch, 10, folder)
    with BagFolder(folder).ingest() as batch:
        batch.put("new", folder.parent / "f.txt")  # reads the folder now, and writes the index at the end
        (folder / "foreign").rename(folder.parent / "gone")
        (folder.parent / "later").rename(folder / "foreign")
        assert not is_missing(folder, "x:2")
    assert not is_missing(folder, "x:2")
    assert is_missing(folder, "x:1")


def test_another_folder(folder: Path, tmp_path: Path) -> None:
    """The index of a copied or exchanged folder is not used."""
    look(folder)
    shutil.copytree(folder, tmp_path / "copy")
    shutil.copystat(folder, tmp_path / "copy")
    bag(tmp_path / "copy" / "foreign", "x:1")
    os.utime(tmp_path / "copy", ns=(folder.stat().st_atime_ns, folder.stat().st_mtime_ns))
    assert not is_missing(tmp_path / "copy", "x:1")
    store = BagFolder(folder)
    assert is_missing(store, "x:1")
    folder.rename(tmp_path / "old")
    (tmp_path / "copy").rename(folder)
    assert not is_missing(store, "x:1")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process(folder: Path) -> None:
    """A child process does not take the events of its parent."""
    store = BagFolder(folder)
    assert is_missing(store, "x:1")
    bag(folder / "foreign", "x:1")
    child = os.fork()
    if child == 0:
        os._exit(int(is_missing(store, "x:1")))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not is_missing(store, "x:1")


def test_identifiers_edited_in_place(folder: Path) -> None:
    """A hit is verified. A check finds bags with another identifier than in the index, and a repair forgets that."""
    look(folder)
    (folder / "bag-1" / "bag-info.txt").write_text("External-Identifier: x:1\n")
    (folder / "bag-2" / "bag-info.txt").write_text("External-Identifier: x:2\n")
    assert is_missing(folder, "x:1")
    store = BagFolder(folder)
    outdated = [one for one in store.check().problems if one.kind == "index-outdated"]
    assert [(one.severity, one.path) for one in outdated] == [("warning", INDEX)]
    assert "bag-1 was changed; repair the folder" in outdated[0].message
    store.repair()
    assert [one.kind for one in BagFolder(folder).check().problems] == []
    assert not is_missing(folder, "x:2")
    # A hit that is none any more has everything read again.
    (folder / "bag-2" / "bag-info.txt").write_text("External-Identifier: x:3\n")
    assert is_missing(store, "x:2")
    assert not is_missing(store, "x:3")


def test_a_discarded_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All bags are read again at once, even if the folder was read just before."""
    clock = count()
    monkeypatch.setattr(bag_index, "monotonic", lambda: next(clock))  # each look takes long
    store = BagFolder(folder)
    assert is_missing(store, "none")
    (folder / "bag-1" / "bag-info.txt").write_text("External-Identifier: x:1\n")
    store.repair()
    with pytest.raises(ObjectError, match="bag exists at 'bag-1'"):
        store.put("x:1", folder.parent / "f.txt")


def test_an_unreadable_bag(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bag that could not be read is read again, though nothing in the folder has changed."""
    info = folder / "bag-5" / "bag-info.txt"
    data = info.read_bytes()
    info.unlink()
    info.mkdir()
    look(folder)
    info.rmdir()
    info.write_bytes(data)
    assert not is_missing(folder, "id:5")


@pytest.mark.parametrize("damage", ["removed", "cut", "zeroed", "flipped", "empty"])
def test_a_damaged_index(folder: Path, damage: str) -> None:
    """A damaged index is as good as none."""
    look(folder)
    BagFolder(folder).put("new", folder.parent / "f.txt")
    path = folder / INDEX
    data = path.read_bytes()
    key = key_of("id:44").to_bytes(8, "big")
    keys = [directory for directory in range(len(data)) if data.startswith(key, directory)]
    assert len(keys) == 2  # of the bag, and of the search by identifier
    for directory in (*range(0, len(data), 97), *(start + byte for start in keys for byte in range(8))):
        kept, rest = data[:directory], data[directory:]
        flipped = kept + bytes([rest[0] ^ 1]) + rest[1:]
        path.write_bytes({"cut": kept, "zeroed": kept + bytes(len(rest)), "flipped": flipped}.get(damage, b""))
        if damage == "removed":
            path.unlink()
        store = BagFolder(folder)
        assert is_missing(store, "none")
        for identifier in ("id:3", "id:44", "new"):
            assert not is_missing(store, identifier)
        if damage in ("removed", "empty"):
            break


def make_database(path: Path) -> None:
    """Write a database of another program."""
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE entries (path TEXT)")


#: What else may be in the place of the index, or of its journal, given a file that must not change.
OTHERS: dict[str, Callable[[Path, Path], object]] = {
    "an older format": lambda path, _mine: (
        path.write_text('0123abcd\n{"version": 1}'),
        (path.parent / "index-0123456789abcdef").write_bytes(b"bagindex"),
    ),
    "another database": lambda path, _mine: make_database(path),
    "a link": lambda path, mine: path.symlink_to(mine),
    "a named pipe": lambda path, _mine: os.mkfifo(path),
    "a directory": lambda path, _mine: path.mkdir(),
}


@pytest.mark.parametrize("name", ["index", "index-journal"])
@pytest.mark.parametrize("other", OTHERS)
def test_something_else_in_place_of_the_index(folder: Path, other: str, name: str) -> None:
    """It is neither read, followed nor waited for; the next index replaces it, unless it is a directory."""
    look(folder)
    mine = folder.parent / "f.txt"
    path = folder / ".pressmark-work" / name
    path.unlink(missing_ok=True)
    OTHERS[other](path, mine)
    bag(folder / "foreign", "x:1")
    for identifier in ("x:1", "id:3", "id:44"):
        assert not is_missing(folder, identifier)
    assert is_missing(folder, "none")
    assert mine.read_bytes() == b"data"
    if other != "a directory" and (name, other) != ("index-journal", "an older format"):
        assert names_in_work(folder) == ["index"]
        assert (folder / INDEX).read_bytes().startswith(b"SQLite format 3")
        assert not (folder / INDEX).is_symlink()


def test_a_locked_index(folder: Path, read: list[bytes]) -> None:
    """An index that another process keeps locked is neither used nor waited for until it is free."""
    look(folder)
    bag(folder / "foreign", "x:1")
    del read[:]
    with closing(sqlite3.connect(folder / INDEX)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        store = BagFolder(folder)
        assert not is_missing(store, "x:1")
        assert len(read) > COUNT
        assert not is_missing(store, "id:3")
        BagFolder(folder).put("new", folder.parent / "f.txt")
    for identifier in ("x:1", "id:3", "new"):
        assert not is_missing(folder, identifier)


def test_an_index_that_is_being_written(folder: Path) -> None:
    """A process whose changes cannot be written at once does not wait, and loses nothing."""
    look(folder)
    before = (folder / INDEX).read_bytes()
    bag(folder / "foreign", "x:1")
    with FileLock(folder / ".pressmark-work" / "lock"):
        assert not is_missing(folder, "x:1")
    with closing(sqlite3.connect(folder / INDEX)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        assert not is_missing(folder, "x:1")
    assert (folder / INDEX).read_bytes() == before
    assert not is_missing(folder, "x:1")
    assert (folder / INDEX).read_bytes() != before


def test_a_folder_that_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that cannot be written is no error, and changes nothing."""

    def refuse(*_arguments: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    before = snapshot(folder)
    monkeypatch.setattr(bag_index, "make_shared", refuse)
    assert is_missing(folder, "none")
    assert not is_missing(folder, "id:3")
    assert snapshot(folder) == before


@pytest.fixture
def open_folder(folder: Path) -> Iterator[Path]:
    """The folder, where all users have access to its parents."""
    with tempfile.TemporaryDirectory() as top:
        os.chmod(top, 0o755)
        yield folder.rename(Path(top) / "bags")


@needs_users
@pytest.mark.parametrize("has_index", [True, False])
def test_a_folder_of_another_user(open_folder: Path, has_index: bool) -> None:
    """Users who may only read a folder find all bags, with and without an index, and change nothing."""
    folder = open_folder
    if has_index:
        look(folder)
    bag(folder / "foreign", "x:1")
    before = snapshot(folder)

    def find() -> None:
        store = BagFolder(folder)
        assert not is_missing(store, "x:1")
        assert not is_missing(store, "id:3")
        assert is_missing(store, "none")

    as_user(OTHER, folder, find)
    assert snapshot(folder) == before


@needs_users
def test_an_index_that_a_team_shares(open_folder: Path) -> None:
    """Members of a team who share a folder share its index."""
    folder = open_folder
    os.chown(folder, -1, TEAM)
    os.chmod(folder, 0o2775)

    def put(identifier: str) -> None:
        BagFolder(folder).put(identifier, {"a": io.BytesIO(b"data")})

    as_user(OTHER, folder, lambda: put("x:1"), group=TEAM, umask=0o002)
    before = (folder / INDEX).stat()
    as_user(THIRD, folder, lambda: put("x:2"), group=TEAM, umask=0o002)
    after = (folder / INDEX).stat()
    assert (before.st_uid, after.st_uid) == (OTHER, OTHER)
    assert after.st_mtime_ns > before.st_mtime_ns
    assert not is_missing(folder, "x:2")


def test_ignored_names(folder: Path) -> None:
    """An index on disk is of the whole folder."""
    assert is_missing(BagFolder(folder, ignore=["bag-1*"]), "id:1")
    assert not (folder / INDEX).exists()
    look(folder)
    assert is_missing(BagFolder(folder, ignore=["bag-1*"]), "id:1")
    assert not is_missing(folder, "id:1")


def test_other_readers(folder: Path) -> None:
    """The index is neither a bag nor beside one, and a folder with it is recognised."""
    look(folder)
    (folder / ".pressmark-bags.json").unlink()
    assert stores.kind_of(folder) == "bags"
    store = stores.open(folder)
    assert len(list(store.objects())) == COUNT
    assert store.check().problems == []
    assert store.repair().problems == []
    assert (folder / INDEX).exists()


def test_bags_that_may_be_unfinished(folder: Path, read: list[bytes]) -> None:
    """A new bag without an identifier is read again, unless it has a tag manifest, which is written last."""
    for name in ("young", "whole"):
        bag(folder / name, None)
    (folder / "whole" / "tagmanifest-md5.txt").write_text("")
    look(folder)
    del read[:]
    assert is_missing(folder, "none")
    assert set(read) == {b"young"}


# --- kills and concurrent runs ----------------------------------------------------------------------------------------

WORK = """
import os, random, sys, time
sys.path.insert(0, sys.argv[3])
from test_bag_index import bag
from pathlib import Path
from pressmark import stores
from pressmark.errors import ObjectError

folder, chosen, many = Path(sys.argv[1]), random.Random(int(sys.argv[2])), int(sys.argv[4])
print("ready", flush=True)
for turn in range(many):
    identifier = f"x:{chosen.randrange(30)}"
    store = stores.open(folder)
    try:
        if chosen.random() < 0.2:
            with store.ingest(results=[]) as batch:
                for number in range(4):
                    batch.put(f"x:{chosen.randrange(30)}", folder.parent / "given")
        elif chosen.random() < 0.6:
            store.put(identifier, folder.parent / "f.txt")
        elif chosen.random() < 0.5:
            store.delete(identifier)
        else:
            store.put(identifier, folder.parent / "f.txt", replace=True)
    except ObjectError as error:
        if error.kind not in ("exists", "missing", "changed"):
            raise
    if chosen.random() < 0.3:
        name = f"{sys.argv[2]}-{turn}-{time.time_ns()}"
        bag(folder.parent / "made" / name, f"foreign:{name}").rename(folder / name)
"""


def started(folder: Path, seed: int, many: int) -> subprocess.Popen[bytes]:
    package = str(Path(pressmark.__file__).parent.parent)
    tests = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [package, tests, os.environ.get("PYTHONPATH")]))
    script = ["-c", WORK, str(folder), str(seed), str(Path(__file__).parent), str(many)]
    process = subprocess.Popen(
        [sys.executable, *script], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def verify(folder: Path) -> None:
    """Check that the index has every bag, and no identifier is there twice."""
    fresh = BagFolder(folder, ignore=["no such name"])  # without the index on disk
    records = list(fresh.objects())
    identifiers = [record.id for record in records]
    assert len(set(identifiers)) == len(identifiers)
    store = BagFolder(folder)
    for record in records:
        assert record.id is not None
        assert store.get(record.id).bag_path == str(folder / record.path)
    assert is_missing(store, "none")
    assert not [one for one in store.check().problems if one.kind == "index-outdated"]


@pytest.mark.kill
@pytest.mark.slow_under_sanitizers
def test_killed_at_any_moment(folder: Path) -> None:
    """After a kill, and changes by others between runs, the next process finds every bag and adds none twice."""
    chosen = random.Random(1)
    for number in range(repeats(4)):
        process = started(folder, number, 10_000)
        time.sleep(chosen.uniform(0, 0.4))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if number % 2:
            bag(folder / f"between-{number}", f"between:{number}")
        verify(folder)


@pytest.mark.kill
@pytest.mark.slow_under_sanitizers
def test_processes_at_once(folder: Path) -> None:
    """Processes that change the folder at once, with bags of other programs between, put no identifier twice."""
    for number in range(repeats(1, 20)):
        processes = [started(folder, 3 * number + one, 25) for one in range(3)]
        for process in processes:
            process.communicate(timeout=120)
            assert process.returncode == 0
        verify(folder)


@pytest.mark.kill
@pytest.mark.slow_under_sanitizers
@pytest.mark.parametrize("how", ["kill", f"{errno.EIO}", f"{-errno.ENOSPC}", f"{-errno.EROFS}"])
def test_every_step_of_writing_the_index(disk_faults: str, tmp_path: Path, how: str) -> None:
    """If the index cannot be written, or a process is killed there, the next process finds every bag."""
    script = Path(__file__).with_name("every_index.py")
    assert int(run_preloaded(disk_faults, script, str(tmp_path / "at"), how)) > 20
