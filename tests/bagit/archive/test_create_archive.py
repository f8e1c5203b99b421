"""Bags that are created as archives."""

from __future__ import annotations

import datetime
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit import create, create_archive, make_bag, unpack
from pressmark.bagit.archive import packed_files
from pressmark.errors import BagError
from pressmark.progress_event import EventListener
from pressmark.reports import Problem
from support.events import at, stages
from support.implementations import Implementation

from ..bags import tree
from .samples import FORMATS, directories, make_payload

TODAY = datetime.date(2026, 11, 23)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    (tmp_path / "s" / "d").mkdir(parents=True)
    (tmp_path / "s" / "a").write_bytes(b"1" * 100)
    (tmp_path / "s" / "d" / "b").write_bytes(b"2" * 300_000)
    return tmp_path / "s"


def refused(words: str, source: Any, file: Path, **options: Any) -> None:
    """Check that nothing is created, with these words in the error."""
    before = sorted(os.listdir(file.parent))
    with pytest.raises(BagError, match=words):
        create_archive(source, file, **options)
    assert sorted(os.listdir(file.parent)) == before


@pytest.mark.parametrize("ending", FORMATS)
def test_the_bag_is_that_of_a_directory(implementation: Implementation, tmp_path: Path, ending: str) -> None:
    """Payload, manifests and bag-info.txt are those of a bag in a directory."""
    (tmp_path / "s").mkdir()
    make_payload(tmp_path / "s")
    (tmp_path / "mets.xml").write_bytes(b"<mets/>")
    options: dict[str, Any] = {
        "info": {"Contact-Name": ["Jane Doe", "Joe Bloggs"]},
        "tag_files": {"metadata/mets.xml": tmp_path / "mets.xml"},
        "date": TODAY,
    }
    create(tmp_path / "s", tmp_path / "bag", algorithms=["sha512", "md5"], **options)
    seen: list[Any] = []
    file = tmp_path / f"b.{ending}"
    bag = create_archive(
        tmp_path / "s", file, progress=EventListener(seen.append), algorithms=["sha512", "md5"], **options
    )
    assert (bag.path, bag.algorithms) == (str(file), ("md5", "sha512"))
    assert bag.validate().ok
    assert stages(seen) == ["examine", "pack", "tag", "check", "move"]
    notices = [event.kind for event in seen if isinstance(event, Problem)]
    assert notices == ["directory-empty"]
    unpack(file, tmp_path / "again")
    assert tree(tmp_path / "again") == tree(tmp_path / "bag")
    assert directories(tmp_path / "again") == directories(tmp_path / "bag")
    create_archive(tmp_path / "s", tmp_path / f"c.{ending}", threads=1, algorithms=["sha512", "md5"], **options)
    first, second = (tmp_path / f"{name}.{ending}" for name in "bc")
    if ending == "tar":
        with tarfile.open(first) as one, tarfile.open(second) as other:
            assert [member.name[1:] for member in one] == [member.name[1:] for member in other]


@pytest.mark.parametrize("ending", FORMATS)
def test_reproducible(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """Under SOURCE_DATE_EPOCH the same files become the same bytes, at any time and with any number of threads."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1234567890")
    for threads in (1, 2):
        os.utime(source / "a", (threads, threads))
        (tmp_path / str(threads)).mkdir()
        bag = create_archive(source, tmp_path / str(threads) / f"b.{ending}", threads=threads)
        assert bag.info.get("Bagging-Date") == "2009-02-13"
    assert (tmp_path / "1" / f"b.{ending}").read_bytes() == (tmp_path / "2" / f"b.{ending}").read_bytes()


def test_members(source: Path, tmp_path: Path) -> None:
    """bagit.txt is first, and the manifests follow the payload; times are those of Bagging-Date, if asked."""
    create_archive(source, tmp_path / "n.tgz", info={"bagging-date": "2026-09-22"}, timestamps="bagging-date")
    with tarfile.open(tmp_path / "n.tgz") as file:
        members = file.getmembers()
    assert [member.name for member in members] == [
        *("n", "n/bagit.txt", "n/data", "n/data/a", "n/data/d", "n/data/d/b"),
        *("n/bag-info.txt", "n/manifest-sha512.txt", "n/tagmanifest-sha512.txt"),
    ]
    assert {(member.mtime, member.uid, member.mode & 0o22) for member in members} == {(1790035200, 0, 0)}


def test_each_file_is_read_once(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digests are computed while the payload is written."""
    read: list[str] = []
    original = packed_files.read_blocks

    def counting(descriptor: int, size: int) -> Any:
        read.append(os.readlink(f"/proc/self/fd/{descriptor}") if os.path.isdir("/proc/self/fd") else "")
        return original(descriptor, size)

    monkeypatch.setattr(packed_files, "read_blocks", counting)
    create_archive(source, tmp_path / "b.tar", algorithms=["sha512", "sha256", "md5"])
    assert len(read) == 2  # small tag files are not written to the disk
    if all(read):
        assert read == [str(source / "a"), str(source / "d" / "b")]


def test_sources(source: Path, tmp_path: Path) -> None:
    """Several sources, single files and followed links are packed as they are copied elsewhere."""
    (tmp_path / "one").write_bytes(b"one")
    (tmp_path / "link").symlink_to("one")
    (source / "inside").symlink_to("a")
    options: dict[str, Any] = {"links": "follow", "date": TODAY}
    given = [source, tmp_path / "one", tmp_path / "link"]
    create(given, tmp_path / "bag", **options)
    create_archive(given, tmp_path / "b.zip", **options)
    unpack(tmp_path / "b.zip", tmp_path / "again")
    assert tree(tmp_path / "again") == tree(tmp_path / "bag")
    create_archive(tmp_path / "one", tmp_path / "single.tar")
    unpack(tmp_path / "single.tar")
    assert (tmp_path / "single" / "data" / "one").read_bytes() == b"one"


def test_excluded_files(source: Path, tmp_path: Path) -> None:
    """Files that match a glob are left out, and reported."""
    (source / "d" / ".DS_Store").write_bytes(b"junk")
    seen: list[Any] = []
    create_archive(source, tmp_path / "b.tar.gz", exclude=[".DS_Store"], progress=EventListener(seen.append))
    assert [event.path for event in seen if isinstance(event, Problem)] == ["d/.DS_Store"]
    unpack(tmp_path / "b.tar.gz")
    assert {path for path in tree(tmp_path / "b") if path.startswith(b"data/")} == {b"data/a", b"data/d/b"}


def test_refused_sources(source: Path, tmp_path: Path) -> None:
    """The sources are checked as for a bag in a directory, before anything is written."""
    refused("inside a source", source, source / "b.tar")
    (source / "link").symlink_to("a")
    refused("symbolic link", source, tmp_path / "b.tar")
    (source / "link").unlink()
    os.mkfifo(source / "pipe")
    refused("named pipe", source, tmp_path / "b.tar")
    (source / "pipe").unlink()
    refused("cannot be written", source, tmp_path / "b.tar.xz")
    (tmp_path / "b.tar").write_bytes(b"old")
    refused("already exists", source, tmp_path / "b.tar")
    with pytest.raises(ValueError, match="use create_archive"):
        create(source, tmp_path / "c.tar")
    with pytest.raises(ValueError, match="use create for a directory"):
        create_archive(source, tmp_path / "c")
    make_bag(source)
    refused("already a bag", source, tmp_path / "c.tar")


@pytest.mark.parametrize("when", ["pack", "check"])
@pytest.mark.parametrize("change", ["add", "remove", "write"])
def test_changed_sources(source: Path, tmp_path: Path, when: str, change: str) -> None:
    """Files that are changed, added or removed meanwhile are found."""

    def alter() -> None:
        if change == "add":
            (source / "new").write_bytes(b"new")
        elif change == "remove":
            (source / "a").unlink()
        else:
            with open(source / "a", "ab") as file:
                file.write(b"more")

    on_event = at(when, alter)
    if when == "pack":
        # The new state is packed as a whole.
        create_archive(source, tmp_path / "b.tar", progress=EventListener(on_event))
        unpack(tmp_path / "b.tar")
        return
    with pytest.raises(BagError):
        create_archive(source, tmp_path / "b.tar", progress=EventListener(on_event))
    assert sorted(os.listdir(tmp_path)) == ["s"]


def test_a_file_that_grows_while_it_is_read(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bag is not created."""
    original = packed_files.read_blocks

    def growing(descriptor: int, size: int) -> Any:
        with open(source / "a", "ab") as file:
            file.write(b"more")
        return original(descriptor, size)

    monkeypatch.setattr(packed_files, "read_blocks", growing)
    refused("size changed", source, tmp_path / "b.tar.gz")
