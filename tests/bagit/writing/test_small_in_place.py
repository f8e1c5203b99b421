"""Directories of few small files, read and changed many at a time: the bag is the same as of any other directory."""

from __future__ import annotations

import datetime
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark import _kernels
from pressmark.bagit.bag import Bag, make_bag
from pressmark.bagit.bag_directory import STAGING
from pressmark.bagit.changes import Event
from pressmark.bagit.writing import in_place
from pressmark.bagit.writing.in_place import create_together
from pressmark.bagit.writing.options import CreateOptions
from pressmark.bagit.writing.small_folders import list_small_folders, read_small_folders
from pressmark.errors import BagError
from pressmark.fs import steps
from pressmark.fs.steps import ALONE, FLUSH, MOVE, UNLINK, WRITE, Step
from pressmark.progress_event import EventListener
from pressmark.reports import Problem, ProgressEvent
from support.events import at
from support.implementations import Implementation, use
from support.preloading import preloadable
from support.steps import observed

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
    "none": b"",
    "bagit-2.txt": b"7",
}
INFO = {"Title": ["a b " * 50, "c"], "contact-name": "J\u00e4ne", "Bag-Size": "much", "X": "two\nlines "}
UNUSUAL: dict[str, Callable[[Path], object]] = {
    "large file": lambda folder: (folder / "e").write_bytes(bytes((256 << 10) + 1)),
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


def is_read(folder: Path) -> bool:
    """Return whether all files of a directory are read in memory."""
    return list(read_small_folders([os.fsencode(folder)], STAGING, ("sha512",))) != [None]


def options(**more: object) -> CreateOptions:
    given = {"algorithms": ["sha512"], "info": INFO, "links": "refuse", "tag_files": (), "threads": 2}
    return CreateOptions.from_arguments(**{**given, "read": "parallel", "date": DAY, **more})  # type: ignore[arg-type]


@pytest.mark.usefixtures("implementation")
def test_the_files_of_a_directory(tmp_path: Path) -> None:
    """Paths in the order of a walk, sizes, times and digests; the skipped name is not entered."""
    folder = make(tmp_path / "s")
    (folder / "skipped").write_bytes(b"")
    names = ("md5", "sha1", "sha256", "sha512", "blake2b-256")
    bases = [os.fsencode(folder)] * 5
    [found, *others] = read_small_folders(bases, b"skipped", names)
    assert others == [found] * 4  # enough files to fill lanes
    assert list(read_small_folders(bases[:1], b"skipped", names)) == [found]
    [listed] = list_small_folders(bases[:1], b"skipped")
    # No directory, none of this name, and a name with a NUL.
    unread = [bases[0] + end for end in (b"/b", b"/none", b"\0")]
    assert list(read_small_folders(unread, b"none", names)) == [None] * 3
    assert found is not None
    directories = ["a", "a/b", "data", "empty", "empty/more"]
    entries, computed = found
    assert listed == entries
    assert [os.fsdecode(path) for path, _ in entries] == sorted(
        [*FILES, *directories], key=lambda path: path.split("/")
    )
    for path, facts in entries:
        if os.fsdecode(path) in directories:
            assert facts is None
            continue
        data, status = FILES[os.fsdecode(path)], os.stat(os.path.join(os.fsencode(folder), path))
        digests = {name: hashlib.new(name, data).hexdigest() for name in names[:-1]}
        digests["blake2b-256"] = hashlib.blake2b(data, digest_size=32).hexdigest()
        assert facts == (len(data), status.st_mtime_ns, status.st_ino)
        assert computed.pop(0) == digests
    assert computed == []


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_files(name: str, tmp_path: Path, pair: tuple[Implementation, Implementation]) -> None:
    """Anything unusual is left to the walk."""
    folder = make(tmp_path / "s")
    with use(pair[0]):
        assert is_read(folder)
        UNUSUAL[name](folder)
        assert not is_read(folder)


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
            monkeypatch.setattr(in_place, "_can_be_small", lambda _options: False)
        bags.append(make_bag(folder, info=INFO, date=DAY, progress=EventListener(kept.append), algorithms=algorithms))
        assert flaws(folder) == []
    one, other = tree(tmp_path / "one"), tree(tmp_path / "other")
    assert one == other
    assert os.stat(tmp_path / "one" / "s" / "data").st_mode == os.stat(tmp_path / "other" / "s" / "data").st_mode
    kept = [[event for event in found if isinstance(event, ProgressEvent | Problem)] for found in events.values()]
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

    def alter() -> None:
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
        make_bag(folder, progress=EventListener(at("check", alter)))
    assert not (folder / "bagit.txt").exists()
    assert before.keys() - {b"a/z"} <= tree(folder).keys()


def test_slow_directories(tmp_path: Path) -> None:
    """A directory that takes much longer than others, at 40 ms for each file, is left to calls that Ctrl-C ends."""
    library = preloadable(Path(__file__).parents[2] / "cli" / "slow.c", tmp_path)
    code = (
        "import os, sys; from pressmark.bagit.writing.small_folders import read_small_folders\n"
        "found = read_small_folders(list(map(os.fsencode, sys.argv[1:])), b'', ('sha512',))\n"
        "print([one is not None for one in found])"
    )
    folders = []
    for name, count in ("few", 2), ("many", 40):
        folders.append(tmp_path / name)
        folders[-1].mkdir()
        for number in range(count):
            (folders[-1] / f"slow-{number}").write_bytes(b"x")
    done = subprocess.run(
        [sys.executable, "-c", code, *folders],
        env={**os.environ, "LD_PRELOAD": library, "DELAY": "20000", "OLD_KERNEL": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[True, False]\n"


def test_a_change_in_several_bags(tmp_path: Path) -> None:
    """A directory that changes while several bags are created is left unchanged."""
    folders = [make(tmp_path / f"s{number}") for number in range(6)]
    before = tree(folders[3])

    def change(_base: bytes, step: Step) -> None:
        if step[0] == WRITE:
            (folders[3] / "a" / "z").write_bytes(b"other")

    with observed(change):
        made = list(create_together(list(map(os.fsencode, folders)), options(), False))
    assert [bag is None for bag in made] == [number == 3 for number in range(6)]
    assert {path: data for path, data in tree(folders[3]).items() if STAGING not in path} == {
        **before,
        b"a/z": b"other",
    }
    make_bag(folders[3], date=DAY)
    for folder in folders:
        assert flaws(folder) == []
        assert not (folder / os.fsdecode(STAGING)).exists()


@pytest.mark.parametrize("count", [1, 6])
def test_each_phase_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """All that a phase has changed is on disk before the next; many directories are flushed by one call."""
    folders = [os.fsencode(make(tmp_path / f"s{number}")) for number in range(count)]
    run, all_at_once = _kernels.active.run_steps, steps.flush_filesystem
    # What is written, and then flushed.
    done: list[tuple[list[str], list[str]]] = []

    def observe(bases: list[bytes], lists: list[list[Step]]) -> list[tuple[int, int, int]]:
        assert (bases, len(lists)) == (folders, count)
        done.append(([], []))
        for kind, path, _other in lists[0]:
            if kind in (WRITE, MOVE, UNLINK):
                if done[-1][1]:
                    done.append(([], []))
                done[-1][0].append(os.fsdecode(path))
            elif kind == FLUSH:
                done[-1][1].append(os.fsdecode(path) or ".")
        return run(bases, lists)

    def flush_all(base: bytes) -> None:
        done[-1][1].append("everything")
        all_at_once(base)

    monkeypatch.setattr(_kernels.active, "run_steps", observe)
    monkeypatch.setattr(steps, "flush_filesystem", flush_all)
    assert all(create_together(folders, options(info=None, threads=1), False))
    names = ["manifest-sha512.txt", "tagmanifest-sha512.txt", "bag-info.txt"]
    hidden = os.fsdecode(STAGING)
    new = [f"{hidden}/new/{name}" for name in ["bag-info.txt", "bagit.txt", *names[:2]]]
    expected = [
        ([*new, f"{hidden}/journal.part"], [*new, f"{hidden}/new", f"{hidden}/journal.part"]),
        ([f"{hidden}/journal.part"], [hidden]),
        (["a", "a b", "a.txt", "b", "bagit-2.txt", "data", "empty", "none"], [f"{hidden}/data", "."]),
        ([f"{hidden}/data", *(f"{hidden}/new/{name}" for name in names)], ["."]),
        ([f"{hidden}/new/bagit.txt"], ["."]),
        ([f"{hidden}/journal"], []),
        ([f"{hidden}/lock"], []),
    ]
    if count > 1:
        expected = [(written, ["everything"] if flushed else []) for written, flushed in expected]
    assert [(sorted(one), sorted(other)) for one, other in done if one] == [
        (sorted(one), sorted(other)) for one, other in expected
    ]


def test_directories_left_to_others(tmp_path: Path) -> None:
    """Bags, unusual directories, interrupted changes and missing directories are not changed."""
    folders = {name: make(tmp_path / name) for name in ("plain", "bag", "link", "interrupted", "linked")}
    make_bag(folders["bag"])
    (folders["link"] / "e").symlink_to("b")
    (folders["interrupted"] / os.fsdecode(STAGING)).mkdir()
    (tmp_path / "alias").symlink_to("linked")
    names = ["plain", "bag", "link", "interrupted", "none", "alias"]
    paths = [os.fsencode(tmp_path / name) for name in names]
    before = {name: tree(folders[name]) for name in ("bag", "link", "interrupted")}
    made = dict(zip(names, create_together(paths, options(), False), strict=True))
    assert [name for name, bag in made.items() if bag is not None] == ["plain", "alias"]
    assert before == {name: tree(folders[name]) for name in before}
    assert flaws(folders["plain"]) == flaws(folders["linked"]) == []
    nested = dict(zip(names, create_together(paths[:2], options(), True), strict=False))
    assert all(nested.values())
    assert flaws(folders["plain"]) == []
    assert (folders["bag"] / "data" / "data" / "data" / "bagit.txt").exists()


@pytest.mark.parametrize("path", ["link/../s", "link/.", "link", "s", "s/", "./s", "s/a/.."])
def test_the_directory_that_the_system_opens(
    implementation: Implementation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """After a symbolic link, ".." is the directory above its target."""
    folders = [make(tmp_path / name) for name in ("s", "away/s", "away/deep")]
    (tmp_path / "link").symlink_to("away/deep")
    monkeypatch.chdir(tmp_path)
    expected = Path(os.path.realpath(path))
    with use(implementation):
        make_bag(path, date=DAY)
    assert [folder for folder in folders if (folder / "bagit.txt").exists()] == [expected]


@pytest.mark.parametrize("more", ["s/a", "s", "alias", "s/."])
def test_directories_inside_others(tmp_path: Path, more: str) -> None:
    """If a directory is inside another one, none is changed with others."""
    folder = make(tmp_path / "s")
    (tmp_path / "alias").symlink_to("s/a")
    before = tree(tmp_path)
    paths = [os.fsencode(make(tmp_path / "t")), os.fsencode(folder), os.fsencode(tmp_path / more)]
    assert list(create_together(paths, options(), False)) == [None] * 3
    assert {path: data for path, data in tree(tmp_path).items() if not path.startswith(b"t/")} == before


@pytest.mark.parametrize("step", range(1, 7))
def test_an_exception_between_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """All directories are unchanged, or bags if the last step is done."""
    folders = [make(tmp_path / f"s{number}") for number in range(6)]
    before = tree(folders[0])
    run = _kernels.active.run_steps
    calls = 0

    def interrupted(bases: list[bytes], lists: list[list[Step]]) -> list[tuple[int, int, int]]:
        nonlocal calls
        calls += 1
        if calls == step:
            raise KeyboardInterrupt
        return run(bases, lists)

    monkeypatch.setattr(_kernels.active, "run_steps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(create_together(list(map(os.fsencode, folders)), options(), False))
    assert all(tree(folder) == before for folder in folders)


def test_a_name_that_appears_between_the_moves(tmp_path: Path) -> None:
    """The moves are reversed; the next run takes it into the payload, too."""
    folder = make(tmp_path / "s")
    payload = {**tree(folder), b"new": b"x"}

    def appear(base: bytes, step: Step) -> None:
        if step[0] == ALONE and not os.path.exists(os.path.join(base, STAGING, b"data", b"new")):
            (folder / "new").write_bytes(b"x")

    before = tree(folder)
    with observed(appear), pytest.raises(BagError, match=r"s/new.?: changed, added or removed"):
        make_bag(folder)
    assert tree(folder) == {**before, b"new": b"x"}
    make_bag(folder)
    assert {path[5:]: data for path, data in tree(folder).items() if path.startswith(b"data/")} == payload
    assert flaws(folder) == []
