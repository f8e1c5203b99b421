"""Packing bags: reproducible archives of valid bags, or nothing."""

from __future__ import annotations

import io
import os
import random
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit import archive, create_archive, make_bag, pack, unpack, walk
from pressmark.bagit.archive.write import PlainOutput, TarWriter, ZipWriter
from pressmark.errors import BagError, BagInvalidError
from pressmark.progress_event import EventListener
from pressmark.reports import Problem
from support.events import at, stages
from support.implementations import Implementation

from ..bags import Sketch, tree
from .samples import DAY, FORMATS, directories, new_bag


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """A small valid bag."""
    return Sketch(info=b"Bagging-Date: 2026-09-22\n").write(tmp_path / "bag")


def refused(words: str, error: type[BagError], bag: Path, file: Path, **options: Any) -> BagError:
    """Check that packing fails with these words, and leaves nothing."""
    before = sorted(os.listdir(file.parent)) if file.parent.is_dir() else None
    with pytest.raises(error, match=words) as caught:
        pack(bag, file, **options)
    assert "\n" not in str(caught.value)
    assert before is None or sorted(os.listdir(file.parent)) == before
    return caught.value


@pytest.mark.parametrize("ending", FORMATS)
def test_a_packed_bag_is_unpacked_as_it_was(implementation: Implementation, tmp_path: Path, ending: str) -> None:
    """All names, contents and directories are kept, with one and with several threads."""
    bag = new_bag(tmp_path / "bag")
    for threads in (1, 3):
        file = tmp_path / f"{threads}.{ending}"
        assert pack(bag, file, threads=threads) == str(file)
        assert archive.validate_archive(file).problems == []
        unpack(file, tmp_path / f"{threads}", threads=threads)
        assert tree(tmp_path / f"{threads}") == tree(bag)
        assert directories(tmp_path / f"{threads}") == directories(bag)


@pytest.mark.parametrize("ending", FORMATS)
def test_copies_of_a_bag_become_the_same_bytes(tmp_path: Path, ending: str) -> None:
    """With one time for all, times, modes, the order of directories and the number of threads make no difference."""
    bag = new_bag(tmp_path / "bag")
    pack(bag, tmp_path / f"a.{ending}", timestamps="bagging-date", threads=1)
    other = tmp_path / "other"
    for path in sorted(bag.rglob("*"), key=lambda path: path.name[::-1]):
        if path.is_file():
            target = other / path.relative_to(bag)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            target.chmod(0o755)
    for path in bag.rglob("*"):
        if path.is_dir():
            (other / path.relative_to(bag)).mkdir(exist_ok=True, mode=0o700)
    (tmp_path / "below").mkdir()
    pack(other, tmp_path / "below" / f"a.{ending}", timestamps="bagging-date", threads=4)
    assert (tmp_path / "below" / f"a.{ending}").read_bytes() == (tmp_path / f"a.{ending}").read_bytes()


def test_members_of_tar_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """bagit.txt is first, then the other tag files, then the payload, sorted; owners are fixed, and modes if asked."""
    bag = new_bag(tmp_path / "bag")
    with tarfile.open(pack(bag, tmp_path / "name.tar", timestamps="bagging-date")) as file:
        members = file.getmembers()
        names = [member.name for member in members]
    assert names[:9] == [
        "name",
        "name/bagit.txt",
        "name/bag-info.txt",
        "name/manifest-md5.txt",
        "name/manifest-sha512.txt",
        "name/metadata",
        "name/metadata/mets.xml",
        "name/tagmanifest-md5.txt",
        "name/tagmanifest-sha512.txt",
    ]
    assert names[9] == "name/data"
    payload = [os.fsencode(name).split(b"/") for name in names[9:]]
    assert payload == sorted(payload)
    facts = {(one.isdir(), one.mode, one.uid, one.gid, one.uname, one.gname, one.mtime) for one in members}
    assert facts == {(True, 0o755, 0, 0, "", "", DAY), (False, 0o644, 0, 0, "", "", DAY)}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1234567890")
    with tarfile.open(pack(bag, tmp_path / "dated.tar")) as file:
        assert {member.mtime for member in file} == {1234567890}


@pytest.mark.parametrize("way", [pack, create_archive])
def test_large_directories_are_sorted_as_a_whole(
    way: Callable[[Path, Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order in which a file system lists a large directory makes no difference."""
    (tmp_path / "s").mkdir()
    for number in random.Random(1).sample(range(100), 100):
        (tmp_path / "s" / str(number)).write_bytes(b"")
    source = tmp_path / "s"
    if way is pack:
        make_bag(source)
    monkeypatch.setattr(walk, "TOGETHER", 7)
    way(source, tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as file:
        names = [name for name in file.getnames() if name.startswith("a/data/")]
    assert len(names) == 100
    assert names == sorted(names)


def test_members_of_zip_files(bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zip files have the same order and modes, and times from 1980 on."""
    with zipfile.ZipFile(pack(bag, tmp_path / "name.zip", timestamps="bagging-date")) as file:
        members = file.infolist()
    assert [member.filename for member in members[:3]] == ["name/", "name/bagit.txt", "name/bag-info.txt"]
    modes = {(member.is_dir(), member.external_attr >> 16, member.create_system) for member in members}
    assert modes == {(True, stat.S_IFDIR | 0o755, 3), (False, stat.S_IFREG | 0o644, 3)}
    assert {member.date_time for member in members} == {(2026, 9, 22, 0, 0, 0)}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    with zipfile.ZipFile(pack(bag, tmp_path / "old.zip")) as file:
        assert {member.date_time for member in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}


@pytest.mark.parametrize("info", [None, b"Bagging-Date: soon\n", b"Bagging-Date: 1900-01-01\n"])
def test_time_of_bags_without_a_date(tmp_path: Path, info: bytes | None) -> None:
    """Without a valid date, the time is 0."""
    bag = Sketch(info=info).write(tmp_path / "bag")
    with tarfile.open(pack(bag, tmp_path / "bag.tar", timestamps="bagging-date")) as file:
        assert {member.mtime for member in file} == {0}


def test_invalid_time(bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An invalid SOURCE_DATE_EPOCH is refused."""
    for value in ("soon", "-1", "1" * 20, "\u0661"):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
        refused("SOURCE_DATE_EPOCH.*expected a number of seconds", BagError, bag, tmp_path / "b.tar")


def test_default_name(bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The archive is written beside the bag."""
    assert pack(bag) == f"{bag}.tar"
    monkeypatch.chdir(bag)
    os.remove(f"{bag}.tar")
    assert pack(".") == f"{bag}.tar"


# --- damaged bags -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_damaged_files_are_listed_and_nothing_is_written(tmp_path: Path, ending: str) -> None:
    """All mismatches are reported, of payload and tag files."""
    bag = new_bag(tmp_path / "bag")
    (bag / "data" / "many" / "7").unlink()  # a hard link
    (bag / "data" / "many" / "7").write_bytes(b"other")
    (bag / "data" / "sizes" / "1048577").unlink()
    (bag / "data" / "sizes" / "1048577").write_bytes(b"a" * 1_048_577)
    (bag / "metadata" / "mets.xml").write_bytes(b"<nets/>")
    seen: list[Any] = []
    error = refused(
        "no archive was created: .*; and 6 more",
        BagInvalidError,
        bag,
        tmp_path / f"b.{ending}",
        progress=EventListener(seen.append),
    )
    assert isinstance(error, BagInvalidError)
    assert [(one.kind, one.path) for one in error.report.problems] == [
        *[("checksum-mismatch", "metadata/mets.xml")] * 2,
        *[("checksum-mismatch", "data/many/7")] * 2,
        *[("checksum-mismatch", "data/sizes/1048577")] * 2,
        ("oxum-mismatch", "bag-info.txt"),
    ]


def test_an_incomplete_bag_is_refused_before_it_is_read(bag: Path, tmp_path: Path) -> None:
    """Missing and unlisted files are found before anything is packed."""

    def refused_with(problem: str) -> None:
        seen: list[Any] = []
        error = refused("no archive", BagInvalidError, bag, tmp_path / "b.tar", progress=EventListener(seen.append))
        assert isinstance(error, BagInvalidError)
        assert [found.kind for found in error.report.errors][:1] == [problem]
        assert stages(seen) == ["examine"]

    (bag / "data" / "new").write_bytes(b"new")
    refused_with("file-unlisted")
    (bag / "data" / "new").unlink()
    (bag / "data" / "a.txt").rename(tmp_path / "a.txt")
    refused_with("file-missing")
    (tmp_path / "a.txt").rename(bag / "data" / "a.txt")
    (bag / "manifest-sha512.txt").write_bytes(b"nonsense\n")
    refused_with("line-malformed")


@pytest.mark.parametrize("change", ["add", "remove", "replace", "unlisted"])
def test_a_bag_that_changes_meanwhile(bag: Path, tmp_path: Path, change: str) -> None:
    """Changes between the check of the names and the read are found."""

    def alter() -> None:
        if change == "add":
            (bag / "data" / "new").write_bytes(b"")
        elif change == "remove":
            (bag / "data" / "a.txt").unlink()
        elif change == "unlisted":
            (bag / "notes.txt").write_bytes(b"new")
        else:
            (bag / "data" / "a.txt").write_bytes(b"alphA\n")

    kind = "checksum-mismatch" if change == "replace" else "file-changing"
    with pytest.raises(BagInvalidError) as caught:
        pack(bag, tmp_path / "b.tar", progress=EventListener(at("pack", alter)))
    assert kind in {found.kind for found in caught.value.report.errors}
    assert sorted(os.listdir(tmp_path)) == ["bag"]


def test_a_file_that_changes_while_it_is_read(bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that grows, shrinks or disappears while it is read is refused."""
    from pressmark.bagit.archive import packed_files

    original = packed_files.read_blocks

    def growing(descriptor: int, size: int) -> Any:
        with open(bag / "data" / "a.txt", "ab") as file:
            file.write(b"more")
        return original(descriptor, size)

    monkeypatch.setattr(packed_files, "read_blocks", growing)
    error = refused("size changed", BagInvalidError, bag, tmp_path / "b.tar.gz")
    assert isinstance(error, BagInvalidError)
    assert error.report.errors[0].kind == "file-changing"


def test_a_file_that_cannot_be_read(bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the disk is a problem of the file."""
    from pressmark.bagit.archive import packed_files
    from pressmark.fixity.copying import ReadError

    def failing(_descriptor: int, _size: int) -> Any:
        raise ReadError(5)
        yield b""

    monkeypatch.setattr(packed_files, "read_blocks", failing)
    refused("Input/output error", BagInvalidError, bag, tmp_path / "b.zip")


def test_incomplete_downloads(tmp_path: Path) -> None:
    """A bag whose files are still to be downloaded is packed and unpacked; other missing files are refused."""
    fetch = b"https://example.org/a 6 data/a.txt\n"
    info = b"Payload-Oxum: 20.2\n"
    bag = Sketch(fetch=fetch, absent={b"data/a.txt"}, info=info).write(tmp_path / "bag")
    seen: list[Any] = []
    unpack(pack(bag, tmp_path / "b.tar", progress=EventListener(seen.append)), tmp_path / "again")
    assert tree(tmp_path / "again") == tree(bag)
    assert [event.kind for event in seen if isinstance(event, Problem)] == ["file-not-fetched"]
    (bag / "data" / "b" / "c.txt").unlink()
    refused("c.txt", BagInvalidError, bag, tmp_path / "c.tar")


def test_links(bag: Path, tmp_path: Path) -> None:
    """A link inside the bag is packed as its target; a link that leads outside is refused."""
    (bag / "data" / "a.txt").rename(bag / "data" / "real")
    (bag / "data" / "a.txt").symlink_to("real")
    manifest = (bag / "manifest-sha512.txt").read_bytes()
    digest = manifest.splitlines()[0].partition(b" ")[0]
    (bag / "manifest-sha512.txt").write_bytes(manifest + digest + b"  data/real\n")
    (bag / "tagmanifest-sha512.txt").unlink()
    pack(bag, tmp_path / "b.tar")
    with tarfile.open(tmp_path / "b.tar") as file:
        assert {member.type for member in file} == {tarfile.REGTYPE, tarfile.DIRTYPE}
        member = file.extractfile("b/data/a.txt")
        assert member is not None
        assert member.read() == b"alpha\n"
    (tmp_path / "outside").write_bytes(b"alpha\n")
    (bag / "data" / "a.txt").unlink()
    (bag / "data" / "a.txt").symlink_to("../../outside")
    refused("outside the bag", BagInvalidError, bag, tmp_path / "c.tar")


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname == "Darwin", reason="needs names that are not UTF-8")
def test_names_that_are_not_utf8(bag: Path, tmp_path: Path) -> None:
    """Directories and unlisted tag files may have any name in tar files, but not in zip files."""
    os.mkdir(os.path.join(os.fsencode(bag), b"data", b"\xff\n"))
    unpack(pack(bag, tmp_path / "b.tar"), tmp_path / "again")
    assert directories(tmp_path / "again") == directories(bag)
    refused("not UTF-8", BagInvalidError, bag, tmp_path / "b.zip")
    refused("not UTF-8", BagError, bag, Path(os.fsdecode(os.path.join(os.fsencode(tmp_path), b"\xff.zip"))))


# --- destinations -----------------------------------------------------------------------------------------------------


def test_destinations(bag: Path, tmp_path: Path) -> None:
    """An existing file is never replaced, and unusable destinations are refused."""
    (tmp_path / "b.tar").write_bytes(b"old")
    refused("already exists", BagError, bag, tmp_path / "b.tar")
    assert (tmp_path / "b.tar").read_bytes() == b"old"
    refused("inside the bag", BagError, bag, bag / "b.tar")
    refused("directory not found", BagError, bag, tmp_path / "missing" / "b.tar")
    for name in ("b", "b.7z", ".tar", "b.tar.xz", "b.tar.bz2"):
        refused("cannot be written; use a name that ends with .tar, .tar.gz", BagError, bag, tmp_path / name)
    refused("bagit.txt not found", BagError, tmp_path / "bag" / "data", tmp_path / "c.tar")
    with pytest.raises(BagError, match="No such file"):
        pack(tmp_path / "missing", tmp_path / "c.tar")


def test_a_destination_that_appears_meanwhile(bag: Path, tmp_path: Path) -> None:
    """A file that another program creates is not replaced."""

    on_event = at("move", lambda: (tmp_path / "b.tar").write_bytes(b"other"))
    with pytest.raises(BagError, match="already exists"):
        pack(bag, tmp_path / "b.tar", progress=EventListener(on_event))
    assert (tmp_path / "b.tar").read_bytes() == b"other"
    assert sorted(os.listdir(tmp_path)) == ["b.tar", "bag"]


def test_two_runs(bag: Path, tmp_path: Path) -> None:
    """Two runs do not write the same archive."""

    on_event = at("pack", lambda: refused("in use by another run", BagError, bag, tmp_path / "b.tar"))
    pack(bag, tmp_path / "b.tar", progress=EventListener(on_event))


# --- large files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(8 << 30) - 1, 8 << 30, 5 << 40])
def test_headers_of_large_files_in_tar_files(tmp_path: Path, size: int) -> None:
    """Sizes from 8 GiB are in an extended header."""
    with open(tmp_path / "a.tar", "wb") as file:
        TarWriter(PlainOutput(file)).file(b"a/b", size, [], 0, 0o644)
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert tar.next().size == size  # type: ignore[union-attr]
    with archive.open_archive(tmp_path / "a.tar") as ours:
        assert next(ours.members()).size == size


def test_headers_of_large_files_in_zip_files() -> None:
    """The header of a file from 4 GiB has space for 64-bit sizes."""
    for size, is_large in ((1 << 30, False), (4 << 30, True)):
        file = io.BytesIO()
        writer = ZipWriter(file)
        writer.file(b"a", size, [b"x"], 0, 0o644)
        writer.close()
        assert (b"\1\0\x10\0" in file.getvalue()[:60]) == is_large


@pytest.mark.parametrize("time", [0, 1234567890, 8**11 - 1, 8**11, -1, 253_402_300_799])
@pytest.mark.parametrize("size", [0, 1, 8**11 - 1, 8**11])
def test_headers_are_those_of_the_standard_library(size: int, time: int) -> None:
    """Short and long, ASCII and other names have the headers that tarfile writes."""
    for name in (b"a", b"x" * 99, b"x" * 100, b"x" * 101, b"a/\n b", "ü".encode(), b"\xff", bytes(range(1, 128))[:100]):
        file = io.BytesIO()
        TarWriter(PlainOutput(file)).file(name, size, [], time, 0o750)  # type: ignore[arg-type]
        member = tarfile.TarInfo(os.fsdecode(name))
        member.size, member.mtime, member.mode = size, time, 0o750
        expected = member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        assert file.getvalue()[: len(expected)] == expected, name
