"""The index of a folder of bags on disk: never wrong, whatever other programs, kills and clocks do."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from math import isqrt
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.errors import ObjectError
from pressmark.stores.bags import bag_index, directory_watch, index_file
from pressmark.stores.bags.bag_folder import BagFolder
from pressmark.stores.bags.bag_index import BagIndex
from pressmark.stores.bags.index_file import Table
from support.effort import repeats
from support.trees import snapshot, write

COUNT = 60  # more than an index is worthwhile for
INDEX = ".pressmark-work/index"
WATCHES = sys.platform.startswith("linux")


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
    """The bags that are read, by the index or to verify a hit."""
    places: list[bytes] = []
    described = BagFolder._described

    def counted(self: BagFolder, place: bytes, own: bytes) -> Any:
        places.append(place)
        return described(self, place, own)

    monkeypatch.setattr(BagFolder, "_described", counted)
    return places


def unwatched(patch: pytest.MonkeyPatch) -> None:
    """Make the system unable to watch directories."""
    patch.setattr(directory_watch, "_library", lambda: None)


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


# --- cost -------------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not WATCHES, reason="the system reports no changes of directories")
def test_one_change_reads_nothing_else(folder: Path, read: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """With an index, each process reads only the bag that it works on, and never lists the folder."""
    look(folder)
    assert len(read) == COUNT
    listed: list[bytes] = []
    scan = BagFolder._scan
    monkeypatch.setattr(BagFolder, "_scan", lambda self, place: listed.append(place) or scan(self, place))
    for number in range(5):
        del read[:]
        BagFolder(folder).put(f"new:{number}", folder.parent / "f.txt")
        assert set(read) == {b"new+%d" % number}
        assert BagFolder(folder).get(f"id:{number}").bag_path.endswith(b"/bag-%d" % number)
        assert is_missing(folder, f"new:{number + 1}")
        BagFolder(folder).put(f"id:{number}", folder.parent / "f.txt", replace=True)
        BagFolder(folder).delete(f"id:{number}")
        assert is_missing(folder, f"id:{number}")
        assert len(read) < 20
    assert listed == []


def test_only_new_bags_are_read(folder: Path, read: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """After changes by others, also without a watch, only new and changed bags are read."""
    for is_watched in (True, False):
        if not is_watched:
            unwatched(monkeypatch)
        look(folder)
        del read[:]
        bag(folder / f"other-{is_watched}", f"other:{is_watched}")
        os.utime(folder / "bag-7", (1, 1))
        assert not is_missing(folder, f"other:{is_watched}")
        assert set(read) == {b"other-%a" % is_watched, b"bag-7"}


@pytest.mark.parametrize("is_watched", [True, False])
def test_the_table(folder: Path, read: list[bytes], monkeypatch: pytest.MonkeyPatch, is_watched: bool) -> None:
    """Bags in the table, beside it, and removed from it are found, or not; the table is written again at times."""
    if not is_watched:
        unwatched(monkeypatch)
    monkeypatch.setattr(bag_index, "isqrt", lambda _count: 5)
    monkeypatch.setattr(index_file, "_PAGE", 7)
    look(folder)
    tables = set()
    for number in range(0, 16, 2):
        BagFolder(folder).delete(f"id:{number}")
        BagFolder(folder).put(f"id:{number}", folder.parent / "f.txt")
        BagFolder(folder).delete(f"id:{number + 1}")
        tables |= {name for name in os.listdir(folder / ".pressmark-work") if name.startswith("index-")}
    assert len(tables) > 2
    assert sorted(os.listdir(folder / ".pressmark-work")) == ["index", max(os.listdir(folder / ".pressmark-work"))]
    for number in range(COUNT):
        assert is_missing(folder, f"id:{number}") == (number < 16 and number % 2 == 1)


def test_few_bags_are_beside_the_table(folder: Path) -> None:
    """Every run reads them: none after a batch, and the square root of the number of all bags after single ones."""
    look(folder)

    def beside() -> int:
        head = index_file.read_head(os.fsencode(folder / ".pressmark-work"))
        assert head is not None
        return len(head.added)

    with BagFolder(folder).ingest() as batch:
        for number in range(20):
            batch.put(f"new:{number}", folder.parent / "f.txt")
    assert beside() == 0
    found = []
    for number in range(20, 35):
        BagFolder(folder).put(f"new:{number}", folder.parent / "f.txt")
        found.append(beside())
    most = isqrt(COUNT + 35)
    assert max(found) == most < 15
    assert found[: most + 1] == [*range(1, most + 1), 0]
    assert not any(is_missing(folder, f"new:{number}") for number in range(35))


def test_a_put_reads_a_page_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of the identifier, and that of bags without one: with the offsets, four reads beside the start."""
    look(folder)
    reads: list[int] = []
    read = Table._read
    monkeypatch.setattr(Table, "_read", lambda self, *where: (reads.append(where[0]), read(self, *where))[1])
    BagFolder(folder).put("new", folder.parent / "f.txt")
    assert len(reads) == len(set(reads)) <= 5


def test_a_small_folder_has_no_index(tmp_path: Path, folder: Path) -> None:
    """Nothing is left of the index when few bags are left."""
    look(folder)
    store = BagFolder(folder)
    for number in range(COUNT - 5):
        shutil.rmtree(folder / f"bag-{number}")
    store.delete(f"id:{COUNT - 5}")
    BagFolder(folder).delete(f"id:{COUNT - 4}")
    assert not (folder / ".pressmark-work").exists()


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
@pytest.mark.parametrize("is_watched", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_changes_by_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str, is_watched: bool, is_same_process: bool
) -> None:
    """A bag that another program adds anywhere is found, even if all clocks stand still; no second one is put."""
    if not is_watched:
        unwatched(monkeypatch)
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
    monkeypatch.setattr(bag_index, "_PATIENCE", 0)
    if not is_same_process:
        store = BagFolder(folder)
    with pytest.raises(ObjectError) as caught:
        store.put("x:1", folder.parent / "f.txt")
    assert caught.value.kind == "exists"
    assert not is_missing(store, "x:1")
    assert not is_missing(folder, "x:1")


@pytest.mark.parametrize("is_watched", [True, False])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_change_hidden_by_our_own(folder: Path, monkeypatch: pytest.MonkeyPatch, is_watched: bool, when: str) -> None:
    """A bag that appears just before or after our own, with one time stamp for both, is found by the next process."""
    if not is_watched:
        unwatched(monkeypatch)
    look(folder)
    bag(folder.parent / "foreign", "x:1")
    move_in = BagFolder._move_in

    def both(self: BagFolder, identifier: Any, new: bytes, place: bytes) -> None:
        if when == "before":
            os.rename(folder.parent / "foreign", folder / "foreign")
        move_in(self, identifier, new, place)
        if when == "after":
            status = os.stat(folder)
            os.rename(folder.parent / "foreign", folder / "foreign")
            os.utime(folder, ns=(status.st_atime_ns, status.st_mtime_ns))

    with monkeypatch.context() as patch:
        patch.setattr(BagFolder, "_move_in", both)
        BagFolder(folder).put("new", folder.parent / "f.txt")
    assert not is_missing(folder, "x:1")
    with pytest.raises(ObjectError, match="bag exists at foreign"):
        BagFolder(folder).put("x:1", folder.parent / "f.txt")


@pytest.mark.parametrize("is_same_process", [True, False])
@pytest.mark.parametrize("is_watched", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_directories_whose_clock_stands_still(
    folder: Path, monkeypatch: pytest.MonkeyPatch, change: str, is_watched: bool, is_same_process: bool
) -> None:
    """A change within the same tick of the clock as the last one is found."""
    if not is_watched:
        unwatched(monkeypatch)
    now = time.time_ns()
    monkeypatch.setattr(
        bag_index, "_stamp", lambda path: (os.stat(path).st_ino, now, now) if os.path.exists(path) else None
    )
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _clock: now)
    monkeypatch.setattr(bag_index, "_PATIENCE", 0)
    bag(folder / "nested" / "bag", "x:0")
    (folder / "nested" / "deep").mkdir()
    bag(folder / "young", None)
    store = BagFolder(folder)
    assert is_missing(store, "x:1")
    CHANGES[change](folder)
    assert not is_missing(store if is_same_process else folder, "x:1")


@pytest.mark.skipif(not WATCHES, reason="the system reports no changes of directories")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_change_while_the_index_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    """A bag that appears while the index waits for the clock is found by the next process."""
    look(folder)
    bag(folder.parent / "foreign", "x:1")
    settle = directory_watch.DirectoryWatch.settle

    def changed(self: directory_watch.DirectoryWatch, time: int, *, is_marked: bool) -> bool:
        if when == "before" and (folder.parent / "foreign").exists():
            os.rename(folder.parent / "foreign", folder / "foreign")
        is_certain = settle(self, time, is_marked=is_marked)
        if (folder.parent / "foreign").exists():
            os.rename(folder.parent / "foreign", folder / "foreign")
        return is_certain

    with monkeypatch.context() as patch:
        patch.setattr(directory_watch.DirectoryWatch, "settle", changed)
        BagFolder(folder).put("new", folder.parent / "f.txt")
    assert (folder / "foreign").exists()
    assert not is_missing(folder, "x:1")


@pytest.mark.skipif(not WATCHES, reason="the system reports no changes of directories")
def test_a_clock_that_stands_still(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the time of the folder cannot tell a later change, the index does not vouch for it."""
    look(folder)
    monkeypatch.setattr(time, "clock_gettime_ns", lambda _clock: 0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "utime", denied)  # as for others than the owner
        BagFolder(folder).put("new", folder.parent / "f.txt")
    read = index_file.read_head(os.fsencode(folder / ".pressmark-work"))
    assert read is not None
    assert read.directories[b""] is None


def denied(path: Any, **_options: Any) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), path)


@pytest.mark.skipif(not WATCHES, reason="the system reports no changes of directories")
@pytest.mark.parametrize("change", ["put", "delete"])
def test_a_later_change_in_the_same_tick(folder: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """A change that has the time of our own is found by the next process; nothing waits, and no name is read again."""
    look(folder)
    bag(folder.parent / "foreign", "x:1")
    utime = os.utime
    times: list[int] = []

    def marked(path: bytes, *, ns: tuple[int, int]) -> None:
        times.append(os.stat(path).st_mtime_ns)
        utime(path, ns=ns)

    def stamp(path: bytes) -> tuple[int, int, int] | None:
        """Return a stamp without the time of the last change of status, which stands still."""
        return (os.stat(path).st_ino, os.stat(path).st_mtime_ns, 0) if os.path.exists(path) else None

    monkeypatch.setattr(bag_index, "_stamp", stamp)
    with monkeypatch.context() as patch:
        patch.setattr(directory_watch, "sleep", None)
        patch.setattr(os, "utime", marked)
        if change == "put":
            BagFolder(folder).put("new", folder.parent / "f.txt")
        else:
            BagFolder(folder).delete("id:3")
    with monkeypatch.context() as patch:
        patch.setattr(directory_watch, "sleep", None)
        patch.setattr(BagIndex, "_compare", None)
        assert is_missing(folder, "x:1")
    os.rename(folder.parent / "foreign", folder / "foreign")
    os.utime(folder, ns=(times[-1], times[-1]))
    assert not is_missing(folder, "x:1")


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
    assert [(one.severity, os.fsdecode(one.path)) for one in outdated] == [("warning", INDEX)]
    assert "bag-1 was changed; repair the folder" in outdated[0].message
    store.repair()
    assert [one.kind for one in BagFolder(folder).check().problems] == []
    assert not is_missing(store, "x:1")
    assert not is_missing(folder, "x:2")
    # A hit that is none any more has everything read again.
    (folder / "bag-2" / "bag-info.txt").write_text("External-Identifier: x:3\n")
    assert is_missing(store, "x:2")
    assert not is_missing(store, "x:3")


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


@pytest.mark.parametrize("name", ["index", "table"])
@pytest.mark.parametrize("damage", ["removed", "cut", "zeroed", "flipped", "empty"])
def test_a_damaged_index(folder: Path, name: str, damage: str) -> None:
    """A damaged index is as good as none."""
    look(folder)
    BagFolder(folder).put("beside", folder.parent / "f.txt")
    work = folder / ".pressmark-work"
    whole = {one: one.read_bytes() for one in work.iterdir()}
    path = next(one for one in whole if one.name.startswith("index-" if name == "table" else "index"))
    data = whole[path]
    at = data.find(b"bag-44" if name == "table" else b"beside")
    for place in range(max(0, at - 60), at + 5) if damage == "flipped" else range(0, len(data), 97):
        for one in work.iterdir():
            one.unlink()
        for one, content in whole.items():
            one.write_bytes(content)
        kept, rest = data[:place], data[place:]
        flipped = kept + bytes([rest[0] ^ 1]) + rest[1:]
        path.write_bytes({"cut": kept, "zeroed": kept + bytes(len(rest)), "flipped": flipped}.get(damage, b""))
        if damage == "removed":
            path.unlink()
        store = BagFolder(folder)
        assert is_missing(store, "none")
        for identifier in ("id:3", "id:44", "beside"):
            assert not is_missing(store, identifier)
        if damage in ("removed", "empty"):
            break


def test_a_folder_that_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index that cannot be written is no error, and changes nothing."""

    def refuse(*_arguments: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    before = snapshot(folder)
    with monkeypatch.context() as patch:
        patch.setattr(bag_index, "make_shared", refuse)
        assert is_missing(folder, "none")
        assert not is_missing(folder, "id:3")
    assert snapshot(folder) == before
    look(folder)
    before = snapshot(folder / ".pressmark-work")
    (folder / "bag-0").rename(folder / "renamed")
    with monkeypatch.context() as patch:
        patch.setattr(bag_index, "write_head", refuse)
        patch.setattr(bag_index, "write_table", refuse)
        assert not is_missing(folder, "id:0")
    assert snapshot(folder / ".pressmark-work") == before
    assert not is_missing(folder, "id:0")


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
            with store.ingest(on_result=lambda result: None) as batch:
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
        assert store._index.places(record.id) == [os.fsencode(record.path)]
        assert not is_missing(store, record.id)
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


@pytest.mark.parametrize("step", range(12))
def test_killed_while_the_index_is_written(folder: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """At each step of writing the index, a kill leaves the old one, the new one or none."""
    if not hasattr(os, "fork"):
        pytest.skip("no fork")
    look(folder)
    bag(folder / "foreign", "x:1")
    monkeypatch.setattr(bag_index, "isqrt", lambda _count: 0)
    child = os.fork()
    if child == 0:
        left = [step]

        def dying(real: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*arguments, **options)

            return call

        for name in ("replace", "unlink", "fsync", "open", "listdir"):
            setattr(os, name, dying(getattr(os, name)))
        save = BagIndex.save
        store = BagFolder(folder)
        left[0] = 1 << 30
        store._index.places("x:2")
        left[0] = step
        save(store._index)
        os._exit(0)
    os.waitpid(child, 0)
    verify(folder)
    assert not is_missing(folder, "x:1")
