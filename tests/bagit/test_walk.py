"""The walk visits everything in a bag once, and nothing outside of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark.bagit import bag_directory as bases, walk as payload
from pressmark.bagit.bag_directory import BagDirectory, ResolvedPath
from pressmark.bagit.walk import BagEntry, walk
from pressmark.errors import BagError

from .watching import watched

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")
DEEP = 900  # more directories than a process may have open, as far as path lengths allow


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(path.encode())


def found(root: Path, links: str = "inside") -> list[str]:
    """Return the walk's results in short: path, resolved path and problem."""
    with BagDirectory(root) as base:
        return [_short(one) for one in walk(base, links=links)]


def _short(one: BagEntry) -> str:
    text = os.fsdecode(one.path)
    if one.kind == "directory":
        text += "/"
    if one.real not in (one.path, None):
        text += f" = {os.fsdecode(one.real or b'')}"
    if one.fault is not None:
        text += f": {one.fault.severity} {one.fault.kind}"
    return text


@posix
def test_the_watch_detects_access(tmp_path: Path) -> None:
    """The watch of these tests detects access outside of the bag, by path and by descriptor."""
    make(tmp_path, "bag/a", "other")
    bag = tmp_path / "bag"
    with watched(bag) as outside:
        os.stat(bag / "a")
        os.stat(tmp_path / "other")
        descriptor = os.open(bag, os.O_RDONLY)
        os.stat("../other", dir_fd=descriptor)
        os.stat("a", dir_fd=descriptor)
        os.close(descriptor)
    assert outside == [str(tmp_path / "other")] * 2


def test_order(tmp_path: Path) -> None:
    """Names are sorted by their bytes, directories precede their content, and files have sizes."""
    make(tmp_path, "b", "a/z", "a/é", "a!", "a.b", "c/d/e", "ü")
    (tmp_path / "empty").mkdir()
    assert found(tmp_path) == ["a/", "a/z", "a/é", "a!", "a.b", "b", "c/", "c/d/", "c/d/e", "empty/", "ü"]
    with BagDirectory(tmp_path) as base:
        assert {one.path: one.size for one in walk(base) if one.kind == "file"}[b"c/d/e"] == 5


@posix
def test_names_are_bytes(tmp_path: Path) -> None:
    """Names may be bytes that are not UTF-8 or not printable."""
    names = sorted([b"\xff", b"new\nline", b" ", b"~", b"-", b"\\", b"C:", b"\x01"])
    for name in names:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
            pass
    with BagDirectory(os.fsencode(tmp_path)) as base:
        assert [one.path for one in walk(base)] == names


def test_many_names_in_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory too large to be sorted at once is returned in sorted runs, and collisions are still found."""
    monkeypatch.setattr(payload, "TOGETHER", 10)
    make(tmp_path, *(f"d/{number:03}" for number in range(95)), "d/a", "d/A", "d/x/y", "d/X")
    paths = found(tmp_path)
    assert len(paths) == 1 + 95 + 5 + 2
    assert sum(path.endswith(": warning name-clash") for path in paths) == 2
    assert {path for path in paths if "clash" not in path} >= {"d/", "d/x/", "d/x/y", "d/X", "d/094"}


def test_collisions(tmp_path: Path) -> None:
    """Names of one directory that differ only in case or normalization are reported after the second one."""
    make(tmp_path, "a/B", "a/b", "A/B", "c/straße", "c/STRASSE", "\u00e9", "e\u0301", "k", "\u212a")
    collisions = [path for path in found(tmp_path) if "clash" in path]
    expected = ["a", "a/b", "c/straße", "\u00e9", "\u212a"]
    assert sorted(collisions) == sorted(f"{path}: warning name-clash" for path in expected)


@posix
def test_links_inside(tmp_path: Path) -> None:
    """Links that stay in the bag are followed in any spelling, with a warning each."""
    bag = tmp_path / "bag"
    make(bag, "data/a", "data/d/b")
    for name, target in {
        "data/l1": "a",
        "data/l2": "l1",
        "data/l3": "../data/d/../a",
        "data/l4": str(bag / "data" / "a"),
        "data/l5": "../../bag/data/a",
        "data/l6": str(bag.parent / "." / "bag" / ".." / "bag" / "data" / "d"),
        "data/l7": "d//b",
        "tag": "data/d/b",
    }.items():
        (bag / name).symlink_to(target)
    with watched(bag) as outside:
        assert found(bag) == [
            "data/",
            "data/a",
            "data/d/",
            "data/d/b",
            "data/l1 = data/a: warning link-inside",
            "data/l2 = data/a: warning link-inside",
            "data/l3 = data/a: warning link-inside",
            "data/l4 = data/a: warning link-inside",
            "data/l5 = data/a: warning link-inside",
            "data/l6/ = data/d: warning link-inside",
            "data/l6/b = data/d/b",
            "data/l7 = data/d/b: warning link-inside",
            "tag = data/d/b: warning link-inside",
        ]
    assert outside == []


@posix
def test_links_outside(tmp_path: Path) -> None:
    """Links that lead out, or nowhere, are errors, and nothing outside is accessed."""
    bag = tmp_path / "bag"
    make(tmp_path, "bag/data/a", "bag-evil/x", "elsewhere/back/data/a")
    (tmp_path / "elsewhere" / "bag").symlink_to("../bag")
    for name, target in {
        "data/l1": "../../bag-evil/x",
        "data/l2": str(tmp_path / "bag-evil" / "x"),
        "data/l3": "/etc",
        "data/l4": "..",
        "data/l5": "../..",
        # It leads back in through an outside link, which the walk must not read.
        "data/l6": "../../elsewhere/bag/data/a",
        "data/l7": "l1",
        "data/m1": "nothing",
        "data/m2": "m2",
        "data/m3": "a/b",
        "data/m4": "../data/nothing/../a",
        "data/m5": "x" * 300,
        # The system refuses a path through a file.
        "data/m6": "a/",
        "data/m7": "a/.",
        "data/m8": "a/../a",
    }.items():
        (bag / name).symlink_to(target)
    with watched(bag) as outside:
        paths = found(bag)
    assert outside == []
    assert {path for path in paths if "data/l" in path} == {
        *(f"data/l{number}: error link-outside" for number in (1, 2, 3, 5, 6, 7)),
        # The base directory itself, which contains the link.
        "data/l4 = : error link-loop",
    }
    assert {path for path in paths if "data/m" in path} == {
        f"data/m{number}: error link-dangling" for number in range(1, 9)
    }


@posix
def test_trusted_links(tmp_path: Path) -> None:
    """Trusted links are followed anywhere, with a warning, and loops are still detected."""
    bag = tmp_path / "bag"
    make(tmp_path, "bag/data/a", "farm/x", "farm/d/y")
    (bag / "data" / "f").symlink_to("../../farm")
    (bag / "data" / "x").symlink_to(tmp_path / "farm" / "x")
    (bag / "data" / "n").symlink_to("../../nothing")
    (tmp_path / "farm" / "home").symlink_to("../bag")
    (tmp_path / "farm" / "here").symlink_to("x")
    (tmp_path / "farm" / "none").symlink_to("nothing")
    os.mkfifo(tmp_path / "farm" / "pipe")
    (tmp_path / "farm" / "p2").symlink_to("pipe")
    assert found(bag, "trusted") == [
        "data/",
        "data/a",
        "data/f/: warning link-outside",
        "data/f/d/",
        "data/f/d/y",
        "data/f/here: warning link-outside",
        "data/f/home: error link-loop",
        "data/f/none: error link-dangling",
        "data/f/p2: error file-special",
        "data/f/pipe: error file-special",
        "data/f/x",
        "data/n: error link-dangling",
        "data/x: warning link-outside",
    ]


@posix
def test_loops(tmp_path: Path) -> None:
    """A directory that a link makes its own descendant is not entered again."""
    make(tmp_path, "data/d/e/file")
    (tmp_path / "data" / "d" / "e" / "up").symlink_to("..")
    (tmp_path / "data" / "side").symlink_to("d/e")
    (tmp_path / "data" / "self").symlink_to(".")
    assert found(tmp_path) == [
        "data/",
        "data/d/",
        "data/d/e/",
        "data/d/e/file",
        "data/d/e/up = data/d: error link-loop",
        "data/self = data: error link-loop",
        "data/side/ = data/d/e: warning link-inside",
        "data/side/file = data/d/e/file",
        "data/side/up/ = data/d: warning link-inside",
        "data/side/up/e = data/d/e: error link-loop",
    ]


def link_to_each_other(root: Path, count: int) -> None:
    """Make directories with a file each, and links from each to all others."""
    for one in range(count):
        make(root, f"{one}/file")
        for other in range(count):
            if other != one:
                (root / str(one) / f"to-{other}").symlink_to(f"../{other}")


@posix
@pytest.mark.parametrize("count", [9, 12])
def test_directories_that_link_to_each_other(tmp_path: Path, count: int) -> None:
    """A few directories with links to each other have more paths than a walk can visit: it ends at a limit."""
    link_to_each_other(tmp_path / "data", count)
    paths = found(tmp_path)
    assert sum(path.endswith(": error links-too-many") for path in paths) == 1
    assert len(paths) < 8000
    # Each directory is read by its own name, and behind a link.
    assert {f"data/{one}/file" for one in range(count)} <= set(paths)
    for one in range(1, count):
        assert any(path.endswith(f"/to-{one}/file = data/{one}/file") for path in paths)


@posix
def test_links_that_multiply(tmp_path: Path) -> None:
    """Two links on each level, which double the files of the next one, end at a limit."""
    levels = 30
    for level in range(levels):
        make(tmp_path, f"data/{level}/file")
        if level + 1 < levels:
            for name in "ab":
                (tmp_path / "data" / str(level) / name).symlink_to(f"../{level + 1}")
    paths = found(tmp_path)
    assert sum(path.endswith(": error links-too-many") for path in paths) == 1
    assert len(paths) < 20_000
    # Everything outside the links is found.
    assert {f"data/{level}/file" for level in range(levels)} <= set(paths)


@posix
def test_links_that_repeat_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for names that several links lead to, not for those that one link does; it grows with the bag."""
    monkeypatch.setattr(payload, "LINKED", 30)
    monkeypatch.setattr(payload, "LINK_COST", 0)
    make(tmp_path, *(f"data/v3/{number:03}" for number in range(40)))
    for name in ("current", "latest"):
        (tmp_path / "data" / name).symlink_to("v3")
    paths = found(tmp_path)
    assert {f"data/{name}/039" for name in ("current", "v3")} <= {path.partition(" ")[0] for path in paths}
    assert [path for path in paths if "error" in path] == ["data/latest/030: error links-too-many"]
    monkeypatch.setattr(payload, "LINK_COST", 1)
    assert not [path for path in found(tmp_path) if "error" in path]


@posix
def test_links_to_versions_with_links(tmp_path: Path) -> None:
    """Several links to a directory of many links to directories, as versions of a collection have, are all followed."""
    for number in range(500):
        make(tmp_path, f"data/pool/{number}/file")
        (tmp_path / "data" / "v3").mkdir(exist_ok=True)
        (tmp_path / "data" / "v3" / str(number)).symlink_to(f"../pool/{number}")
    for name in ("current", "latest", "published"):
        (tmp_path / "data" / name).symlink_to("v3")
    paths = found(tmp_path)
    assert sum(path.partition(" ")[0].endswith("/file") for path in paths) == 5 * 500
    assert not [path for path in paths if "error" in path]


@posix
def test_special_files(tmp_path: Path) -> None:
    """Pipes and sockets are reported and not opened, also behind links."""
    import socket

    make(tmp_path, "data/a")
    os.mkfifo(tmp_path / "data" / "pipe")
    (tmp_path / "data" / "link").symlink_to("pipe")
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as one:
        os.chdir(tmp_path / "data")
        try:
            one.bind("socket")
        finally:
            os.chdir(here)
        assert found(tmp_path) == [
            "data/",
            "data/a",
            "data/link: error file-special",
            "data/pipe: error file-special",
            "data/socket: error file-special",
        ]


def test_leftovers_of_a_change(tmp_path: Path) -> None:
    """The hidden directory of an interrupted change is reported and not entered; elsewhere the name is ordinary."""
    make(tmp_path, ".pressmark-bag/new/x", "data/.pressmark-bag/y")
    for severity, journal in (("warning", "journal.part"), ("error", "journal"), ("error", "journal.undo")):
        make(tmp_path, f".pressmark-bag/{journal}")
        assert found(tmp_path)[:1] == [f".pressmark-bag: {severity} change-unfinished"]
        (tmp_path / ".pressmark-bag" / journal).unlink()
    assert found(tmp_path) == [
        ".pressmark-bag: warning change-unfinished",
        "data/",
        "data/.pressmark-bag/",
        "data/.pressmark-bag/y",
    ]


def test_deep(tmp_path: Path) -> None:
    """Directories may be nested deeper than open files or Python's recursion limit allow."""
    here = os.getcwd()
    os.chdir(tmp_path)
    try:
        for _ in range(DEEP):
            os.mkdir("d")
            os.chdir("d")
        Path("file").write_bytes(b"")
    finally:
        os.chdir(here)
    paths = found(tmp_path)
    assert len(paths) == DEEP + 1
    assert paths[-1] == "d/" * DEEP + "file"


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() == 0, reason="root may read everything")
def test_unreadable_directory(tmp_path: Path) -> None:
    """A directory that cannot be opened is an error; the walk continues."""
    make(tmp_path, "data/d/x", "data/e")
    (tmp_path / "data" / "d").chmod(0)
    try:
        assert found(tmp_path) == ["data/", "data/d/", "data/d: error file-unreadable", "data/e"]
    finally:
        (tmp_path / "data" / "d").chmod(0o700)


def test_directory_that_goes_away(tmp_path: Path) -> None:
    """A directory that is removed or replaced by a link during the walk is an error; the walk continues."""
    make(tmp_path, "bag/data/d/x", "bag/data/e/x", "bag/data/f", "outside/secret")
    paths = []
    with BagDirectory(tmp_path / "bag") as base:
        for one in walk(base):
            paths.append(_short(one))
            if one.path == b"data":
                for name in "de":
                    (tmp_path / "bag" / "data" / name / "x").unlink()
                    (tmp_path / "bag" / "data" / name).rmdir()
                (tmp_path / "bag" / "data" / "e").symlink_to(tmp_path / "outside")
    assert paths[0] == "data/"
    assert paths[-1] in ("data/f", "data/e: error link-outside")
    assert not any("secret" in path for path in paths)


@posix
@pytest.mark.parametrize("by_descriptor", [True, False])
def test_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_descriptor: bool) -> None:
    """Files are opened beneath the base directory and not through links, with or without directory descriptors."""
    if not by_descriptor:
        monkeypatch.setattr("pressmark.fs.beneath.HAS_DESCRIPTORS", False)
    make(tmp_path, "bag/a", "bag/d/b", "other")
    bag = tmp_path / "bag"
    (bag / "link").symlink_to("a")
    (bag / "dir").symlink_to("d")
    os.mkfifo(bag / "pipe")
    (tmp_path / "alias").symlink_to("bag")
    with BagDirectory(tmp_path / "alias") as base:
        assert isinstance(base.beneath, int) == by_descriptor
        with base.open(b"d/b") as file:
            assert file.read() == b"bag/d/b"
        for path in (b"pipe", b"missing", b"dir/b", b"a/x", b"d"):
            with pytest.raises(OSError, match=r"."):
                base.open(path)
        if by_descriptor:
            with pytest.raises(OSError, match=r"."):
                base.open(b"link")
        assert sorted(entry.name for entry in base.scan(b"")) == ["a", "d", "dir", "link", "pipe"]
        assert [entry.name for entry in base.scan(b"d")] == ["b"]
        assert base.resolve(b"link")[:2] == ("file", b"a")
        assert base.resolve(b"dir/b")[:2] == ("file", b"d/b")
        assert base.resolve(b"dir/..")[:2] == ("directory", b"")
        assert base.resolve(b"pipe")[:2] == ("special", b"pipe")
        assert base.resolve(b"../other") == ResolvedPath("outside")
        assert base.resolve(b"../bag/a")[:2] == ("file", b"a")
        assert base.resolve(b"nothing") == ResolvedPath("dangling")
    base.close()  # a second call is harmless
    assert bases.LINKS == 40


def test_base_that_is_not_a_directory(tmp_path: Path) -> None:
    """A path that is not a directory is refused by name."""
    make(tmp_path, "file")
    for path in ("missing", "file", "file/x"):
        with pytest.raises(BagError, match=path):
            BagDirectory(tmp_path / path)
    with pytest.raises(BagError, match="null"):
        BagDirectory("a\0b")
