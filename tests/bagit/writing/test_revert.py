"""Reverting bags: the payload takes the place of the bag, or nothing changes; no file is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import pressmark
from pressmark import fixity
from pressmark.bagit import Bag, make_bag, revert
from pressmark.bagit.writing import revert as reverting
from pressmark.errors import BagError, BagInvalidError
from pressmark.fs import changes
from pressmark.reports import ProgressEvent

from ..bags import Sketch, tree

FILES = {b"a": b"1", b"d/b": b"22", b"data/data": b"333", b"bag-info.txt": b"not of this bag", b"manifest-md5.txt": b""}
STAGING = ".pressmark-bag"
TAG_FILES = ["bag-info.txt", "bagit.txt", "manifest-sha512.txt", "tagmanifest-sha512.txt"]


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """A bag whose payload has names of the bag itself."""
    payload = {b"data/" + path: data for path, data in FILES.items()}
    return Sketch(payload=payload, info=b"Title: x\n").write(tmp_path / "bag")


def test_the_payload_takes_the_place_of_the_bag(bag: Path) -> None:
    """All tag files are removed, and all payload files are the same files as before, not copies."""
    inode = (bag / "data" / "d" / "b").stat().st_ino
    (bag / "data" / "empty").mkdir()
    assert revert(bag) == TAG_FILES
    assert tree(bag) == FILES
    assert (bag / "empty").is_dir()
    assert (bag / "d" / "b").stat().st_ino == inode
    assert not (bag / STAGING).exists()


def test_what_was_created_in_place(tmp_path: Path) -> None:
    """Creating a bag in place and reverting it changes nothing, also through the class, and for a nested bag."""
    folder = tmp_path / "files"
    (folder / "d").mkdir(parents=True)
    (folder / "d" / "b").write_bytes(b"b")
    before = tree(folder)
    assert make_bag(folder).revert() == TAG_FILES
    assert tree(folder) == before
    make_bag(folder)
    inner = tree(folder)
    make_bag(folder, nested=True).revert()
    assert tree(folder) == inner
    assert Bag.open(folder).is_valid()


def test_an_empty_payload(tmp_path: Path) -> None:
    """A bag without payload files becomes an empty directory."""
    folder = Sketch(payload={}, info=None).write(tmp_path / "bag")
    (folder / "data").mkdir(exist_ok=True)
    revert(folder)
    assert list(folder.iterdir()) == []


def test_a_dry_run(bag: Path) -> None:
    """A dry run checks everything and changes nothing."""
    before = tree(bag)
    assert revert(bag, dry_run=True, sums=bag.parent / "sums") == TAG_FILES
    assert tree(bag.parent) == {b"bag/" + path: data for path, data in before.items()}


@pytest.mark.parametrize(("algorithms", "count"), [(["sha512"], 5), (["md5", "sha512"], 10)])
def test_the_checksums_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, algorithms: list[str], count: int
) -> None:
    """The file of checksums is the one that hashing the directory gives; a verification reads it."""
    payload = {b"data/" + path: data for path, data in FILES.items()}
    Sketch(payload=payload, info=None, algorithms=algorithms, tag_algorithms=algorithms).write(tmp_path / "bag")
    monkeypatch.chdir(tmp_path)
    revert("bag", sums="sums")
    assert len(Path("sums").read_bytes().splitlines()) == count
    with fixity.check_manifest("sums") as check:
        verdicts = list(check.verify())
    assert sorted(one.path for one in verdicts) == sorted(f"bag/{os.fsdecode(path)}" for path in FILES)
    assert {one.state for one in verdicts} == {"ok"}


def damaged(folder: Path) -> None:
    (folder / "data" / "a").write_bytes(b"2")


def without_a_file(folder: Path) -> None:
    (folder / "data" / "a").unlink()


def with_a_file(folder: Path) -> None:
    (folder / "data" / "new").write_bytes(b"2")


@pytest.mark.parametrize("change", [damaged, without_a_file, with_a_file])
def test_a_bag_that_is_not_valid(bag: Path, change: Callable[[Path], None]) -> None:
    """A bag with errors stays as it is; the report has them."""
    change(bag)
    before = tree(bag)
    with pytest.raises(BagInvalidError, match="not valid, nothing was changed") as caught:
        revert(bag)
    assert caught.value.report.errors
    assert tree(bag) == before
    if change is damaged:  # only the full level reads the content
        assert revert(bag, level="complete") == TAG_FILES


def test_a_holey_bag(tmp_path: Path) -> None:
    """Files that are not downloaded yet have no content to keep."""
    fetch = b"https://example.org/b 20 data/b\n"
    sketch = Sketch(info=None, fetch=fetch, absent={b"data/b"})
    sketch.payload[b"data/b"] = b"b"
    with pytest.raises(BagInvalidError):
        revert(sketch.write(tmp_path / "bag"))


def test_other_tag_files(bag: Path) -> None:
    """A tag file that may be more than that is only removed if the caller says so."""
    (bag / "notes").mkdir()
    for number in range(12):
        (bag / "notes" / f"{number:02}").write_bytes(b"n")
    before = tree(bag)
    with pytest.raises(BagError, match=r"'notes/00', .*'notes/09' and 2 more: not tag files of BagIt"):
        revert(bag)
    assert tree(bag) == before
    assert len(revert(bag, delete_tag_files=True)) == len(TAG_FILES) + 12
    assert tree(bag) == FILES


LINKS = [("data/l", "../note.txt", False), ("data/d/l", "b", True), ("data/d/l", "../../data/a", False)]


@pytest.mark.parametrize(("path", "target", "is_moved"), LINKS)
def test_symbolic_links(bag: Path, path: str, target: str, is_moved: bool) -> None:
    """A link that stays in the payload moves along; one that would lead elsewhere is refused."""
    (bag / "note.txt").write_bytes(b"the only copy")
    os.symlink(target, bag / path)
    lines = {"b": b"data/d/l", "../note.txt": b"data/l", "../../data/a": b"data/d/l"}
    content = (bag / path).read_bytes()
    manifest = bag / "manifest-sha512.txt"
    digest = fixity.hash_file(bag / path, ["sha512"])["sha512"]
    manifest.write_bytes(manifest.read_bytes() + f"{digest}  ".encode() + lines[target] + b"\n")
    (bag / "tagmanifest-sha512.txt").unlink()
    before = tree(bag)
    if is_moved:
        revert(bag, delete_tag_files=True)
        assert (bag / "d" / "l").read_bytes() == content
    else:
        with pytest.raises(BagError, match="symbolic link that would lead elsewhere"):
            revert(bag, delete_tag_files=True)
        assert tree(bag) == before


def test_what_cannot_be_reverted(bag: Path, tmp_path: Path) -> None:
    """What is no bag, an archive, an address, a payload behind a link, and arguments that are not allowed."""
    (tmp_path / "plain").mkdir()
    with pytest.raises(BagError, match=r"bagit\.txt not found"):
        revert(tmp_path / "plain")
    pressmark.bagit.pack(bag, tmp_path / "bag.zip")
    for name in (tmp_path / "bag.zip", "s3://bucket/bag"):
        with pytest.raises(BagError):
            revert(name)
    with pytest.raises(BagError, match="file is inside the bag"):
        revert(bag, sums=bag / "sums")
    with pytest.raises(ValueError, match="level='oxum'"):
        revert(bag, level="oxum")
    with pytest.raises(BagError, match="nothing was changed"):
        revert(bag, sums=tmp_path / "none" / "sums")
    os.rename(bag / "data", tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", bag / "data")
    with pytest.raises(BagError, match="not a directory"):
        revert(bag)


@pytest.mark.parametrize("where", ["new", "data/new"])
def test_a_file_that_appears_meanwhile(bag: Path, where: str) -> None:
    """A file that appears after the validation is not lost: nothing is changed."""

    def appear(event: object) -> None:
        if isinstance(event, ProgressEvent) and event.stage == "move":
            (bag / where).write_bytes(b"new")

    before = tree(bag)
    with pytest.raises(BagError, match="changed while it was being verified"):
        revert(bag, progress=appear)
    assert tree(bag) == before | {where.encode(): b"new"}
    assert not (bag / STAGING).exists()


def test_a_tag_file_that_appears_before_the_lock(bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another run has changed since the validation is not removed."""
    verify = reverting._verify

    def verify_and_change(*arguments: object) -> None:
        verify(*arguments)  # type: ignore[arg-type]
        (bag / "new").write_bytes(b"new")

    monkeypatch.setattr(reverting, "_verify", verify_and_change)
    before = tree(bag)
    with pytest.raises(BagError, match="changed while it was being verified"):
        revert(bag)
    assert tree(bag) == before | {b"new": b"new"}


def test_an_interrupted_revert_is_finished_by_the_next_call(bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same call finishes it; a dry run says that it has to be finished; no other command takes it for a bag."""
    monkeypatch.setattr(changes, "_reverse", lambda _change: None)

    def stop(event: object) -> None:
        if isinstance(event, ProgressEvent) and event.stage == "move":
            monkeypatch.setattr(changes, "run_phases", interrupt)

    run_phases = changes.run_phases
    calls = 0

    def interrupt(bases: list[bytes], plans: list[list[changes.Phase]], devices: list[int]) -> object:
        nonlocal calls
        calls += 1
        if calls == 2:  # after the new files: half of the moves
            run_phases(bases, [plan[:3] for plan in plans], devices)
            raise KeyboardInterrupt
        return run_phases(bases, plans, devices)

    with pytest.raises(KeyboardInterrupt):
        revert(bag, progress=stop)
    monkeypatch.undo()
    assert not (bag / "bagit.txt").exists()
    journal = json.loads((bag / STAGING / "journal").read_bytes())
    assert (journal["pressmark_bag"], journal["unnested"], journal["request"]) == (3, True, {"command": "revert"})
    with pytest.raises(BagError, match="a change of this bag was interrupted"):
        revert(bag, dry_run=True)
    assert revert(bag) == []
    assert tree(bag) == FILES
