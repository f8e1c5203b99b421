"""What stores do on a disk: private directories, turns, moves, and the removal of what is empty."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import pressmark
from pressmark import stores
from pressmark.errors import ObjectError
from pressmark.fs.durable import exists
from pressmark.fs.locks import FileLock
from pressmark.fs.owners import UntrustedError
from pressmark.fs.removal import remove_tree
from pressmark.stores import directories
from pressmark.stores.directories import LOCK, Refused, Workshop, copy_source, leftovers, scan

from .conftest import snapshot, write


@pytest.fixture
def folder(tmp_path: Path) -> bytes:
    return os.fsencode(tmp_path)


def test_a_workshop_leaves_nothing(folder: bytes) -> None:
    """It is there as long as somebody is in it, and two may be."""
    path = os.path.join(folder, b"shop")
    with Workshop(path) as one, Workshop(path) as other:
        assert one.path != other.path
        Path(os.fsdecode(one / b"file")).write_bytes(b"x")
        assert directories.leftovers(path) == []
        with one.turn(), pytest.raises(BlockingIOError):
            FileLock(os.path.join(path, LOCK))
    assert os.listdir(folder) == []


def test_leftovers_are_removed(folder: bytes) -> None:
    """What a killed run has left goes when the next one begins; what a living one has stays."""
    path = os.path.join(folder, b"shop")
    code = (
        "import os, sys; from pressmark.stores.directories import Workshop\n"
        "with Workshop(os.fsencode(sys.argv[1])) as shop:\n"
        "    os.makedirs(shop / b'closed/inside'); open(shop / b'closed/inside/file', 'w').close()\n"
        "    os.chmod(shop / b'closed', 0)\n"
        "    turn = shop.turn(); os.kill(os.getpid(), 9)"
    )
    package = str(Path(pressmark.__file__).parent.parent)
    subprocess.run([sys.executable, "-c", code, path], env={**os.environ, "PYTHONPATH": package}, check=False)
    with FileLock(os.path.join(folder, b"other"), wait=True):
        assert len(directories.leftovers(path)) == 1
    os.mkdir(os.path.join(path, b"just-made"))
    with Workshop(path) as shop:
        assert sorted(os.listdir(path)) == sorted([LOCK, os.path.basename(shop.path)])
        assert directories.leftovers(path) == []
    assert os.listdir(folder) == []


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_nothing_behind_a_link_is_a_leftover(folder: bytes, tmp_path: Path) -> None:
    """What a link in the workshop, or one in its place, leads to is somebody's own: nothing in it is removed."""
    write(tmp_path / "theirs", {"work/file": b"x"})
    os.mkdir(os.path.join(folder, b"shop"))
    os.symlink(tmp_path / "theirs" / "work", os.path.join(folder, b"shop", b"0123"))
    os.symlink(tmp_path / "theirs", os.path.join(folder, b"link"))
    before = snapshot(tmp_path)
    with Workshop(os.path.join(folder, b"shop")):
        pass
    with (
        pytest.raises(UntrustedError, match="it is a symbolic link; remove it"),
        Workshop(os.path.join(folder, b"link")),
    ):
        pass
    assert leftovers(os.path.join(folder, b"shop")) == leftovers(os.path.join(folder, b"link")) == []
    assert snapshot(tmp_path) == before


def test_turns(folder: bytes) -> None:
    """Only one has the turn; everybody gets it."""
    inside = []
    busy = threading.Event()

    def work() -> None:
        for _ in range(50):
            with Workshop(os.path.join(folder, b"shop")) as shop, shop.turn():
                assert not busy.is_set()
                busy.set()
                inside.append(1)
                busy.clear()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(inside) == 200
    assert os.listdir(folder) == []


@pytest.mark.parametrize("native", [True, False])
def test_moves(folder: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, native: bool) -> None:
    """A move never replaces, not even an empty directory; an exchange is at once or not at all."""
    if not native:
        monkeypatch.setattr(directories, "_renameat2", lambda: None)
    write(tmp_path, {"a": b"1", "b": b"2", "empty/": None, "full/x": b"3"})
    a, b, empty, full, new = (os.path.join(folder, name) for name in (b"a", b"b", b"empty", b"full", b"new"))
    for old, target in ((a, b), (full, empty), (a, empty)):
        with pytest.raises(FileExistsError):
            directories.rename_new(old, target)
    directories.rename_new(full, new)
    assert sorted(os.listdir(folder)) == [b"a", b"b", b"empty", b"new"]
    if directories.exchange(a, new):
        assert native
        assert os.path.isdir(a)
        with pytest.raises(FileNotFoundError):
            directories.exchange(a, full)
    else:
        assert os.path.isfile(a)


def test_parents_come_and_go(folder: bytes) -> None:
    """Directories are made on the way, and removed upward as far as they are empty, while others do the same."""
    assert directories.make_parents(folder, b"a/b/c") == [b"a", b"a/b", b"a/b/c"]
    assert directories.make_parents(folder, b"a/b/d") == [b"a/b/d"]
    assert directories.prune_upward(folder, b"a/b/c") == [b"a/b/c"]
    assert directories.prune_upward(folder, b"a/b/missing/x") == []
    assert directories.prune_upward(folder, b"a/b/d") == [b"a/b/d", b"a/b", b"a"]
    assert os.path.isdir(folder)
    write(Path(os.fsdecode(folder)), {"file": b""})
    with pytest.raises(NotADirectoryError):
        directories.make_parents(folder, b"file/x")
    with pytest.raises(FileNotFoundError):
        directories.make_parents(os.path.join(folder, b"missing"), b"x")

    def work() -> None:
        for _ in range(300):
            directories.make_parents(folder, b"p/q/r/s")
            directories.prune_upward(folder, b"p/q/r/s")

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    directories.prune_upward(folder, b"p/q/r/s")
    assert os.listdir(folder) == [b"file"]


def test_removing(folder: bytes, tmp_path: Path) -> None:
    """A tree goes whole; links in it are not followed; what is not there is gone already."""
    write(tmp_path, {"keep/x": b"1", "tree/a/b": b"2"})
    (tmp_path / "tree" / "link").symlink_to("../keep")
    (tmp_path / "link").symlink_to("keep")
    for name in (b"tree", b"link", b"missing"):
        remove_tree(os.path.join(folder, name))
    assert snapshot(tmp_path) == {b"keep": None, b"keep/x": b"1"}


def test_scanning(folder: bytes, tmp_path: Path) -> None:
    """Names come by their octets, with what they are and what links lead to."""
    write(tmp_path, {"file": b"", "dir/": None, b"\xff": b"", "A": b""})
    for name, target in (("l-dir", "dir"), ("l-file", "file"), ("l-none", "none"), ("l-self", "l-self")):
        (tmp_path / name).symlink_to(target)
    os.mkfifo(tmp_path / "pipe")
    assert scan(folder) == [
        *((b"A", "file", False), (b"dir", "directory", False), (b"file", "file", False), (b"l-dir", "directory", True)),
        *((b"l-file", "file", True), (b"l-none", "dangling", True), (b"l-self", "dangling", True)),
        *((b"pipe", "special", False), (b"\xff", "file", False)),
    ]
    assert {entry.kind for entry in scan(folder, follow=False) if entry.is_link} == {"link"}


class _Unknown:
    """An entry of a file system that does not say in its lists what a name is; and then the disk fails."""

    name = b"name"
    path = b"/nowhere/name"

    def __init__(self, is_link: bool) -> None:
        self._is_link = is_link

    def is_symlink(self) -> bool:
        return self._is_link

    def is_dir(self) -> bool:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    is_file = is_dir


def test_what_cannot_be_looked_at_is_no_file() -> None:
    """A directory of other objects that counted as a special file would go with the object beside it."""
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        directories.kind_of_entry(_Unknown(False))  # type: ignore[arg-type]
    assert directories.kind_of_entry(_Unknown(True), follow=True) == "dangling"  # type: ignore[arg-type]


def test_what_cannot_be_looked_at_may_be_there(folder: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is moved to where nobody can say what there is, also where the system has no such rename."""
    write(tmp_path, {"old": b"1", "new": b"2"})
    look = os.lstat

    def refused(path: Any, **options: Any) -> os.stat_result:
        if os.path.basename(path) == b"new":
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return look(path, **options)

    monkeypatch.setattr(directories, "_rename_by", lambda *_args: False)
    monkeypatch.setattr(os, "lstat", refused)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        directories.rename_new(os.path.join(folder, b"old"), os.path.join(folder, b"new"))
    monkeypatch.undo()
    assert snapshot(tmp_path) == {b"old": b"1", b"new": b"2"}
    assert not exists(os.path.join(folder, b"old", b"below"))


def test_lengths(folder: bytes) -> None:
    """A path that no file system takes is known beforehand."""
    assert directories.too_long(folder, b"a/" + b"x" * 255) is None
    assert "256 bytes" in (directories.too_long(folder, b"a/" + b"x" * 256) or "")
    deep = b"/".join([b"ab"] * 1000)
    assert directories.too_long(folder, deep) is None
    assert "4095" in (directories.too_long(folder, deep * 2) or "")


def test_spelling(folder: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this file system names differ by case; on one that folds it, another spelling is found out."""
    (tmp_path / "Abc" / "def").mkdir(parents=True)
    path = os.path.join(folder, b"Abc")
    if directories.folds_case(path):
        assert directories.misspelled(folder, b"aBC/def") == b"aBC"
        return
    assert directories.misspelled(folder, b"Abc/def/new") is None
    assert directories.misspelled(folder, b"aBC/def") is None
    real = os.lstat
    monkeypatch.setattr(directories.os, "lstat", lambda name: real(name.replace(b"aBC", b"Abc")))
    assert directories.folds_case(path)


def test_copying_what_holds_the_copy(folder: bytes, tmp_path: Path) -> None:
    """A directory is not copied into itself, by whatever name."""
    write(tmp_path / "around", {"file": b"x", "store/": None})
    (tmp_path / "link").symlink_to("around/store")
    for store in (b"around/store", b"link"):
        target = os.path.join(folder, store, b"object")
        for source in (tmp_path / "around", {"name": tmp_path / "around" / "store" / ".."}):
            with pytest.raises(Refused, match="it would be copied into itself") as caught:
                copy_source(source, target)
            assert caught.value.kind == "source"
            os.rmdir(target)  # nothing is in it


def test_copying_a_link_to_what_holds_the_copy(folder: bytes, tmp_path: Path) -> None:
    """A link that is followed to what holds the copy is refused before anything is copied; others are not."""
    write(tmp_path / "in", {"a/": None, "b/file": b"x"})
    write(tmp_path / "store", {"object/file": b"y"})
    link = tmp_path / "in" / "a" / "link"
    target = os.path.join(folder, b"store", b"new")
    for place in ("store", "."):
        link.symlink_to(tmp_path / place)
        with pytest.raises(Refused, match="in/a/link: it would be copied into itself"):
            copy_source(tmp_path / "in", target, links="follow")
        assert os.listdir(target) == [b"a"]
        shutil.rmtree(target)
        link.unlink()
    link.symlink_to(tmp_path / "store" / "object")
    assert copy_source(tmp_path / "in", target, links="follow") == 2


def test_copying(folder: bytes, tmp_path: Path) -> None:
    """The digests of what is copied can be had, and names of a mapping must not be in each other's way."""
    write(tmp_path / "in", {"a": b"1", "b/c": b"2"})
    digests = {}
    target = os.path.join(folder, b"out")
    count = copy_source(
        tmp_path / "in",
        target,
        algorithms=("md5",),
        on_file=lambda name, outcome: digests.update({name: (outcome.digests or {})["md5"]}),
    )
    assert count == 2
    assert digests == {b"a": "c4ca4238a0b923820dcc509a6f75849b", b"b/c": "c81e728d9d4c2f636f067f89cc14862c"}
    assert snapshot(tmp_path / "out") == {b"a": b"1", b"b": None, b"b/c": b"2"}
    with pytest.raises(OSError, match=r"exists|directory"):
        copy_source({"x": tmp_path / "in" / "a", "x/y": tmp_path / "in" / "a"}, os.path.join(folder, b"odd"))
    with pytest.raises(Refused, match="no name"):
        copy_source({"..": tmp_path / "in" / "a"}, os.path.join(folder, b"up"))


def test_a_tree_of_any_depth_is_removed(tmp_path: Path) -> None:
    """One directory that could not be removed would end every later change of its store."""
    names: list[str] = []
    for _ in range(1300):
        names.append("d")
        (tmp_path / "/".join(names)).mkdir()
    (tmp_path / "/".join(names) / "file").write_bytes(b"x")
    remove_tree(os.fsencode(tmp_path / "d"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(("name", "why"), [("pipe", "named pipe"), ("nowhere", "leads nowhere"), ("self", "symbolic")])
def test_what_no_store_takes(tmp_path: Path, name: str, why: str) -> None:
    """All stores go through a source alike, and say alike what is wrong with it."""
    write(tmp_path, {"in/below/": None})
    if name == "pipe":
        os.mkfifo(tmp_path / "in" / "below" / name)
    else:
        (tmp_path / "in" / "below" / name).symlink_to("nothing" if name == "nowhere" else name)
    said = set()
    for kind in ("pairtree", "ocfl"):
        store = stores.create(kind, tmp_path / kind, pressmark.layout("0002") if kind == "ocfl" else None)
        with pytest.raises(ObjectError, match=why) as caught:
            store.put("abc", tmp_path / "in", links="follow")
        assert caught.value.reason.endswith("; leave it out")
        said.add(caught.value.reason)
    assert len(said) == 1


@pytest.mark.parametrize("kind", ["pairtree", "ocfl"])
def test_a_source_that_cannot_be_looked_at_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Whichever look fails, a directory is never taken for something in a directory of its name."""
    source = tmp_path / "source"
    write(source, {"one": b"1", "two/three": b"23"})
    stat = os.stat
    looks = at = 0

    def failing(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        nonlocal looks
        looks += path == os.fsencode(source)
        if path == os.fsencode(source) and looks == at:
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return stat(path, *arguments, **options)

    monkeypatch.setattr(os, "stat", failing)
    while looks >= at:
        at, looks = at + 1, 0
        store = stores.create(kind, tmp_path / str(at), pressmark.layout("0002") if kind == "ocfl" else None)
        try:
            store.put("name", source)
        except ObjectError:
            assert list(store.objects()) == []
        else:
            assert [name for name, _path in store.get("name").files()] == ["one", "two/three"]
    assert at > 2
