"""A file server that fails temporarily or permanently: no existing file counts as missing."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit.bag import Bag, create, make_bag, update
from pressmark.bagit.bag_directory import BagDirectory
from pressmark.bagit.changes.bag_changes import BagChange, is_decided, recover
from pressmark.bagit.fetch.complete import complete
from pressmark.errors import BagError
from pressmark.fs.steps import MOVE, Step
from support.effort import stride
from support.steps import observed

from .bags import Sketch, tree
from .loopback import serving, whole
from .naive import flaws

pytestmark = [pytest.mark.kill, pytest.mark.skipif(os.name != "posix", reason="other calls look up names elsewhere")]

#: The distance between the calls that fail.
STRIDE = stride(3)
LOOKS = ("stat", "lstat", "readlink", "scandir", "listdir")


class Failing:
    """Make file system access number ``at`` through :mod:`os` fail; with ``for_good`` all later ones, too."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, for_good: bool) -> None:
        self.looks = 0
        self._for_good = for_good
        for name in LOOKS:
            real = getattr(os, name)
            look = self._wrapped(real, at)
            for known in ("supports_dir_fd", "supports_fd", "supports_effective_ids", "supports_follow_symlinks"):
                if real in getattr(os, known):
                    patch.setattr(os, known, getattr(os, known) | {look})
            patch.setattr(os, name, look)

    def _wrapped(self, real: Callable[..., Any], at: int) -> Callable[..., Any]:
        def look(path: Any = ".", *args: Any, **options: Any) -> Any:
            self.looks += 1
            if self.looks == at or (self._for_good and self.looks > at):
                raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
            return real(path, *args, **options)

        return look


def make_source(folder: Path) -> None:
    (folder / "s" / "d").mkdir(parents=True)
    (folder / "s" / "a").write_bytes(b"1")
    (folder / "s" / "d" / "b").write_bytes(bytes(1 << 15))


def make_small_source(folder: Path) -> None:
    make_source(folder)
    (folder / "s" / "d" / "b").write_bytes(b"2")


def make_linked_source(folder: Path) -> None:
    make_source(folder)
    (folder / "s" / "l").symlink_to("a")
    (folder / "s" / "m").symlink_to("d")


def make_old_bag(folder: Path) -> None:
    Sketch(info=b"Title: x\n", algorithms=["sha512", "md5"]).write(folder / "s")


@pytest.fixture(scope="module", autouse=True)
def _serving() -> Iterator[None]:
    with serving() as server:
        URL.append(server.answer("/remote", whole(b"fetched")))
        yield


def make_holey_bag(folder: Path) -> None:
    fetched = b"data/e/f"
    sketch = Sketch(info=None, fetch=f"{URL[-1]} 7 data/e/f\n".encode(), absent={fetched})
    sketch.payload[fetched] = b"fetched"
    sketch.write(folder / "s")


#: The address of the file to fetch.
URL: list[str] = []

CASES: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any], str]] = {
    "create": (make_source, lambda at: make_bag(at / "s", info={"X": "y"}), "s"),
    "create small": (make_small_source, lambda at: make_bag(at / "s", info={"X": "y"}), "s"),
    "create elsewhere": (make_linked_source, lambda at: create(at / "s", at / "t", links="follow"), "t"),
    "update": (make_old_bag, lambda at: update(at / "s", add="sha256", drop="md5", info={"Title": "y"}), "s"),
    "complete": (make_holey_bag, lambda at: complete(at / "s", allow_http=True, allow_private=True, threads=1), "s"),
}


def quoted(folder: Path) -> dict[bytes, bytes]:
    """Return the files of a folder, except those in hidden directories."""
    return {path: data for path, data in tree(folder).items() if b".pressmark-" not in path}


@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_every_access_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, for_good: bool) -> None:
    """A run is refused in one line, or completed; nothing is lost, and the same call finishes."""
    make, run, bag = CASES[case]
    at = 1 - STRIDE
    while True:
        at += STRIDE
        folder = tmp_path / str(at)
        folder.mkdir()
        make(folder)
        before = quoted(folder)
        refused = None
        with monkeypatch.context() as patch:
            failing = Failing(patch, at, for_good)
            try:
                done = run(folder)
            except BagError as error:
                refused = str(error)
        looks = failing.looks
        found = quoted(folder)
        if refused is None and getattr(done, "ok", True):
            assert flaws(folder / bag) == [], (at, found)
        else:
            assert "\n" not in (refused or ""), at
            is_left = is_decided(os.fsencode(folder / bag))
            assert is_left or found == before or flaws(folder / bag) == [], (at, refused, found)
            if is_left or found == before:
                run(folder)
        assert flaws(folder / bag) == [], (at, refused)
        shutil.rmtree(folder)
        if looks < at:
            break
    assert at > (5 if case == "create small" else 7)  # a kernel makes most accesses


def blind(patch: pytest.MonkeyPatch, ending: str) -> None:
    """Make access to names with this ending fail."""
    real = os.lstat

    def lstat(path: Any, **options: Any) -> os.stat_result:
        if os.fsdecode(path).endswith(ending):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), path)
        return real(path, **options)

    patch.setattr(os, "lstat", lstat)


def test_moved_files_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a change can be neither made nor undone, and its journal is unreadable, moved files are kept."""
    Sketch().write(tmp_path / "b")
    base = os.fsencode(tmp_path / "b")
    before = tree(tmp_path / "b")

    def change() -> None:
        with BagChange(base) as change:
            Path(os.fsdecode(change.new), "bagit.txt").write_bytes(b"new")
            change.commit({}, [b"bagit.txt", b"bag-info.txt"], [b"bagit.txt"])

    with monkeypatch.context() as patch:
        failing = False

        def fail(_base: bytes, step: Step) -> None:
            """Fail from the first move in."""
            nonlocal failing
            if step[0] == MOVE and step[1].startswith(b".pressmark-bag/new"):
                blind(patch, "journal.undo")
                failing = True
            if failing:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

        with observed(fail), pytest.raises((BagError, OSError)):
            change()
        with pytest.raises(BagError, match="Stale file handle"):
            is_decided(base)
    assert is_decided(base)
    recover(base)
    assert tree(tmp_path / "b") == before


def test_an_unreadable_hidden_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the hidden directory is unreadable, recovery and creation fail."""
    Sketch().write(tmp_path / "b")
    (tmp_path / "b" / ".pressmark-bag").mkdir()
    blind(monkeypatch, ".pressmark-bag")
    for run in (lambda: recover(os.fsencode(tmp_path / "b")), lambda: complete(tmp_path / "b")):
        with pytest.raises(BagError, match="Stale file handle"):
            run()
    blind(monkeypatch, "journal")
    with pytest.raises(BagError, match="Stale file handle"):
        create(tmp_path / "b", tmp_path / "t", nested=True)
    assert os.listdir(tmp_path) == ["b"]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_unreadable_bagit_txt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, elsewhere: bool) -> None:
    """A bag whose bagit.txt is unreadable is not put into another bag."""
    Sketch().write(tmp_path / "b")
    before = tree(tmp_path)
    blind(monkeypatch, "bagit.txt")
    with pytest.raises(BagError, match="Stale file handle"):
        create(tmp_path / "b", tmp_path / "t") if elsewhere else make_bag(tmp_path / "b")
    assert tree(tmp_path) == before


def test_an_unreadable_fetch_txt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable fetch.txt does not count as missing."""
    make_holey_bag(tmp_path)
    bag = Bag.open(tmp_path / "s")
    assert len(bag.fetch) == 1
    whole = BagDirectory.status

    def stale(self: BagDirectory, path: bytes) -> os.stat_result:
        if path == b"fetch.txt":
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return whole(self, path)

    monkeypatch.setattr(BagDirectory, "status", stale)
    with pytest.raises(BagError, match="cannot be accessed"):
        len(bag.fetch)
