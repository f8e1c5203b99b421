"""The walk: every file once, in a fixed order, and safe from loops."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark.fixity import Outcome, walk
from pressmark.fs.beneath import OpenAnywhere
from support.mounts import other_device

DEEP = 1100  # more directories than Python's recursion limit

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX files")


def names(root: Path, **options: object) -> list[str]:
    found = []
    for item in walk(root, **options):  # type: ignore[arg-type]
        if isinstance(item, Outcome):
            found.append(f"{os.path.relpath(os.fsdecode(item.path), root)}: {item.kind}")
        else:
            found.append(os.path.relpath(os.fsdecode(item), root))
    return found


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(path.encode())


def test_order(tmp_path: Path) -> None:
    """Names are sorted by their bytes, directories among files."""
    make(tmp_path, "b", "a/z", "a/é", "a!", "a.b", "c/d/e", "B", "ü")
    (tmp_path / "empty").mkdir()
    assert names(tmp_path) == ["B", "a/z", "a/é", "a!", "a.b", "b", "c/d/e", "ü"]
    assert list(walk(os.fsencode(tmp_path))) == list(walk(tmp_path)) == list(walk(str(tmp_path)))


def test_root_that_is_not_a_directory(tmp_path: Path) -> None:
    """A file as root is returned unchanged, and a missing one is left to its reader."""
    make(tmp_path, "a")
    assert list(walk(tmp_path / "a")) == [str(tmp_path / "a")]
    assert list(walk(tmp_path / "x")) == [str(tmp_path / "x")]
    with pytest.raises(ValueError, match="links="):
        list(walk(tmp_path, links="maybe"))


@posix
def test_links(tmp_path: Path) -> None:
    """Links are followed, skipped or refused; a loop of directories is reported and not entered."""
    make(tmp_path, "t/a/file", "other/x")
    root = tmp_path / "t"
    (root / "a" / "up").symlink_to("..")
    (root / "dangling").symlink_to("nowhere")
    (root / "link").symlink_to("a/file")
    (root / "outside").symlink_to("../other")
    (root / "self").symlink_to("self")
    assert names(root) == ["a/file", "a/up: directory-loop", "dangling", "link", "outside/x", "self"]
    assert names(root, links="skip") == ["a/file"]
    assert names(root, links="refuse") == [
        "a/file",
        "a/up: link",
        "dangling: link",
        "link: link",
        "outside: link",
        "self: link",
    ]
    # A link given by name is followed, even if links below are not.
    (tmp_path / "there").symlink_to("t")
    assert names(tmp_path / "there", links="skip") == ["a/file"]
    assert list(walk(tmp_path / "there", links="refuse")) == [str(tmp_path / "there")]


@posix
def test_special_files(tmp_path: Path) -> None:
    """Named pipes are reported."""
    make(tmp_path, "a")
    os.mkfifo(tmp_path / "p")
    assert names(tmp_path) == ["a", "p: fifo"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_directories(tmp_path: Path) -> None:
    """An unreadable directory is an outcome in its place."""
    make(tmp_path, "a", "d/x", "e")
    (tmp_path / "d").chmod(0)
    try:
        assert names(tmp_path) == ["a", "d: permission", "e"]
    finally:
        (tmp_path / "d").chmod(0o700)


@posix
def test_left_out(tmp_path: Path) -> None:
    """A run's own files are skipped by identity, not by name."""
    make(tmp_path, "a", "b", "d/a")
    status = (tmp_path / "a").stat()
    os.link(tmp_path / "a", tmp_path / "d" / "again")
    assert names(tmp_path, leave_out={(status.st_dev, status.st_ino)}) == ["b", "d/a"]
    assert names(tmp_path, leave_out={(status.st_dev + 1, status.st_ino)}) == ["a", "b", "d/a", "d/again"]
    # Also a file that is named itself, as by "*" in a shell that has created the output.
    assert list(walk(tmp_path / "a", leave_out={(status.st_dev, status.st_ino)})) == []


@pytest.mark.slow_under_sanitizers
def test_deep_trees(tmp_path: Path) -> None:
    """Depth needs no recursion."""
    path = str(tmp_path)
    for _ in range(DEEP):
        path = os.path.join(path, "d")
        os.mkdir(path)
    Path(path, "file").write_bytes(b"x")
    try:
        assert list(walk(tmp_path)) == [os.path.join(path, "file")]
    finally:
        # The removal of temporary folders is recursive.
        os.unlink(os.path.join(path, "file"))
        for _ in range(DEEP):
            os.rmdir(path)
            path = os.path.dirname(path)


def test_excluded_names(tmp_path: Path) -> None:
    """Files and directories with matching names are left out, and each is reported once, in order."""
    make(tmp_path, "a", "b.tmp", "c/.DS_Store", "c/d.tmp/e", "c/f", "x.tmp")
    (tmp_path / "g.tmp").symlink_to("a")
    for root in (str(tmp_path), os.fsencode(tmp_path)):
        left_out: list[str | bytes] = []
        found = walk(root, exclude=["*.tmp", ".DS_Store"], excluded=left_out)
        assert [os.path.relpath(os.fsdecode(path), tmp_path) for path in found] == ["a", "c/f"]
        excluded = list(map(os.fsdecode, left_out))
        assert [os.path.relpath(path, tmp_path) + path[len(path.rstrip("/")) :] for path in excluded] == [
            *("b.tmp", "g.tmp", "x.tmp", "c/.DS_Store", "c/d.tmp/"),
        ]
    # The root itself is not compared.
    assert list(walk(tmp_path / "x.tmp", exclude="*.tmp")) == [str(tmp_path / "x.tmp")]
    assert names(tmp_path / "c" / "d.tmp", exclude="*.tmp") == ["e"]
    with pytest.raises(ValueError, match="slash"):
        list(walk(tmp_path, exclude=["c/f"]))


@posix
def test_excluded_names_are_not_examined(tmp_path: Path) -> None:
    """An excluded pipe is not an error, and an excluded directory is not opened."""
    make(tmp_path, "a")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "up").symlink_to("..")
    assert names(tmp_path, exclude=["pi?e", "loop"]) == ["a"]


@posix
def test_directories_that_link_to_each_other(tmp_path: Path) -> None:
    """A directory is read once by its own name and once through a link; further links are reported as left out."""
    numbers = range(9)
    for one in numbers:
        make(tmp_path, f"{one}/file")
        for other in numbers:
            if other != one:
                (tmp_path / str(one) / f"to-{other}").symlink_to(f"../{other}")
    excluded: list[str] = []
    found = [
        os.path.relpath(os.fsdecode(path), tmp_path)
        for path in walk(tmp_path, once=True, excluded=excluded)
        if not isinstance(path, Outcome)
    ]
    assert {f"{one}/file" for one in numbers} <= set(found)
    assert {os.path.realpath(tmp_path / path) for path in found} == {str(tmp_path / f"{one}/file") for one in numbers}
    assert len(found) <= 2 * len(numbers)
    assert excluded
    assert all(os.fsdecode(path).endswith("/") for path in excluded)


@posix
def test_several_links_to_a_directory(tmp_path: Path) -> None:
    """The directory keeps its own name, whether a link to it comes before or after it; a second link is reported."""
    make(tmp_path, "t/m/x", "other/y")
    for name in ("a", "z"):
        (tmp_path / "t" / name).symlink_to("m")
        (tmp_path / "t" / f"{name}-other").symlink_to("../other")
    excluded: list[str] = []
    found = walk(tmp_path / "t", once=True, excluded=excluded)
    assert [os.path.relpath(os.fsdecode(path), tmp_path / "t") for path in found] == ["a/x", "a-other/y", "m/x"]
    assert [os.path.basename(os.fsdecode(path)[:-1]) for path in excluded] == ["z", "z-other"]
    assert list(walk(tmp_path / "t", links="skip")) == [str(tmp_path / "t" / "m" / "x")]


def test_one_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Directories on another file system than the root are reported and not entered, however deep; files are read."""
    make(tmp_path, "a/mount/x", "b", "mount/y", "z/mount")
    stat = OpenAnywhere.stat

    def on_another(self: OpenAnywhere, path: str | bytes) -> os.stat_result:
        found = stat(self, path)
        return other_device(found) if "mount" in os.fsdecode(path) else found

    monkeypatch.setattr(OpenAnywhere, "stat", on_another)
    excluded: list[str] = []
    found = walk(tmp_path, one_file_system=True, excluded=excluded)
    assert [os.path.relpath(str(path), tmp_path) for path in found] == ["b", "z/mount"]
    assert [os.path.relpath(path, tmp_path) + path[-1] for path in excluded] == ["a/mount/", "mount/"]
    assert len(names(tmp_path)) == 4
    # What the root itself is on does not matter.
    assert names(tmp_path / "mount", one_file_system=True) == ["y"]
