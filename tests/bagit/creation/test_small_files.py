"""Directories of few small files, read in one call: the bag is the same as of any other directory."""

from __future__ import annotations

import datetime
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark.bagit.bag import Bag, create
from pressmark.bagit.bag_directory import STAGING, BagDirectory
from pressmark.bagit.changes import Event, Notice, Stage
from pressmark.bagit.creation import in_place
from pressmark.bagit.creation.small_files import SmallFiles
from pressmark.errors import BagError
from pressmark.fixity import ALGORITHMS, Progress
from pressmark.fs import durable
from support.implementations import PURE, Implementation, use

from ..bags import tree
from ..naive import flaws

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")

DAY = datetime.date(2026, 11, 21)
FILES = {
    "b": b"1",
    "a/z": b"2" * 5000,
    "a b": b"3",
    "a/b/c": b"4",
    "a.txt": b"5",
    "data/bagit.txt": b"6",
    "bagit-2.txt": b"7",
}
INFO = {"Title": ["a b " * 50, "c"], "contact-name": "J\u00e4ne", "Bag-Size": "much", "X": " two\nlines "}
UNUSUAL: dict[str, Callable[[Path], object]] = {
    "empty file": lambda folder: (folder / "e").touch(),
    "large file": lambda folder: (folder / "e").write_bytes(bytes(1 << 15)),
    "link": lambda folder: (folder / "e").symlink_to("b"),
    "pipe": lambda folder: os.mkfifo(folder / "e"),
    "not ASCII": lambda folder: (folder / "\u00e9").write_bytes(b"1"),
    "percent sign": lambda folder: (folder / "100%").write_bytes(b"1"),
    "line feed": lambda folder: (folder / "a\n").write_bytes(b"1"),
    "backslash": lambda folder: (folder / "a\\b").write_bytes(b"1"),
    "case": lambda folder: (folder / "B").write_bytes(b"1"),
    "many": lambda folder: [(folder / f"x{number}").write_bytes(b"1") for number in range(200)],
}


def make(folder: Path) -> Path:
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "empty" / "more").mkdir(parents=True)
    return folder


def read(folder: Path) -> SmallFiles | None:
    with BagDirectory(folder) as base:
        return SmallFiles.read(base, ("sha512",))


def test_the_files_of_a_directory(implementation: Implementation, tmp_path: Path) -> None:
    """Paths in the order of a walk, sizes, times and digests; the skipped name is not entered."""
    folder = make(tmp_path / "s")
    (folder / "skipped").write_bytes(b"")
    names = ("md5", "sha1", "sha256", "sha512", "blake2b-256")
    hashers = tuple((name, ALGORITHMS[name].make) for name in names)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        found = implementation.kernels.read_small_folder(descriptor, b"skipped", hashers)
        listed = implementation.kernels.read_small_folder(descriptor, b"skipped", (), False)
        assert implementation.kernels.read_small_folder(descriptor, b"none", hashers) is None  # an empty file
    finally:
        os.close(descriptor)
    if implementation == PURE:
        assert found is listed is None
        return
    directories = ["a", "a/b", "data", "empty", "empty/more"]
    paths = sorted([*FILES, *directories], key=lambda path: path.split("/"))
    assert [os.fsdecode(path) for path, _ in found] == paths
    for path, facts in found:
        if os.fsdecode(path) in directories:
            assert facts is None
            continue
        data, status = FILES[os.fsdecode(path)], os.stat(os.path.join(os.fsencode(folder), path))
        digests = {name: hashlib.new(name, data).hexdigest() for name in names[:-1]}
        digests["blake2b-256"] = hashlib.blake2b(data, digest_size=32).hexdigest()
        assert facts == (len(data), status.st_mtime_ns, status.st_ino, digests)
    assert [(path, facts and (*facts[:3], {})) for path, facts in found] == listed


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_files(name: str, tmp_path: Path, pair: tuple[Implementation, Implementation]) -> None:
    """Anything unusual is left to the walk."""
    folder = make(tmp_path / "s")
    with use(pair[0]):
        assert read(folder) is not None
        UNUSUAL[name](folder)
        assert read(folder) is None


@pytest.mark.parametrize("algorithms", [["sha512"], ["md5", "sha256"], ["sha3-256"]])
def test_the_bag_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithms: list[str]) -> None:
    """Files, events and the returned bag do not depend on how the files are read."""
    events: dict[str, list[Event]] = {"one": [], "other": []}
    bags = []
    for name, kept in events.items():
        folder = make(tmp_path / name / "s")
        for path in (folder, *folder.rglob("*")):
            os.utime(path, ns=(10**18, 10**18))
        if name == "other":
            monkeypatch.setattr(SmallFiles, "read", lambda *_arguments: None)
        bags.append(create(folder, None, algorithms, INFO, date=DAY, on_event=kept.append))
        assert flaws(folder) == []
    one, other = tree(tmp_path / "one"), tree(tmp_path / "other")
    assert one == other
    assert os.stat(tmp_path / "one" / "s" / "data").st_mode == os.stat(tmp_path / "other" / "s" / "data").st_mode
    kept = [[event for event in found if isinstance(event, Stage | Notice | Progress)] for found in events.values()]
    assert kept[0] == kept[1]
    assert len(events["one"]) == len(events["other"])
    opened = Bag.open(tmp_path / "one" / "s")
    for bag in bags:
        assert bag.info.elements == opened.info.elements
        assert bag.info.to_bytes() == opened.info.to_bytes()
        assert (bag.manifests, bag.tag_manifests, bag.version) == (
            opened.manifests,
            opened.tag_manifests,
            opened.version,
        )


@pytest.mark.parametrize("change", ["write", "add", "remove", "link", "touch"])
def test_changes_are_noticed(tmp_path: Path, change: str) -> None:
    """A file that changes after it was read prevents the bag."""
    folder = make(tmp_path / "s")
    before = tree(folder)

    def alter(event: Event) -> None:
        if not (isinstance(event, Stage) and event.name == "check"):
            return
        file = folder / "a" / "z"
        if change == "write":
            file.write_bytes(b"other")
        elif change == "add":
            (folder / "new").write_bytes(b"x")
        elif change == "touch":
            os.utime(file, ns=(5, 5))
        else:
            file.unlink()
            if change == "link":
                file.symlink_to("../b")

    with pytest.raises(BagError, match="changed, added or removed while the bag was being created"):
        create(folder, on_event=alter)
    assert not (folder / "bagit.txt").exists()
    assert before.keys() - {b"a/z"} <= tree(folder).keys()


@pytest.mark.usefixtures("pair")
def test_tag_files_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tag file and its directory are on disk before the journal has its name."""
    folder = make(tmp_path / "s")
    order: list[str] = []
    fsync, rename = os.fsync, os.rename

    def flush(descriptor: int) -> None:
        order.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    def move(source: bytes, target: bytes) -> None:
        order.append(f"-> {os.path.basename(os.fsdecode(target))}")
        rename(source, target)

    if not os.path.exists("/proc/self/fd"):
        pytest.skip("needs /proc")
    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(os, "rename", move)
    monkeypatch.setattr(in_place, "_stage", None)
    create(folder)
    before = order[: order.index("-> journal")]
    assert sorted(before[:4]) == ["bag-info.txt", "bagit.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt"]
    assert before[4:] == ["new", "journal.part"]
    assert order[len(before) + 1] == os.fsdecode(STAGING)


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a tag file cannot be written, nothing is changed."""
    folder = make(tmp_path / "s")
    before = tree(folder)

    def full(_descriptor: int, _data: bytes) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(durable.os, "write", full)
    with pytest.raises(BagError, match="No space left on device; nothing was changed"):
        create(folder)
    assert tree(folder) == before
