"""Unpacking: a valid bag as a whole, or nothing; whoever made the archive."""

from __future__ import annotations

import io
import os
import random
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit import unpack
from pressmark.bagit.archive import Limits
from pressmark.errors import BagError, BagInvalidError
from pressmark.progress_event import EventListener
from support.effort import repeats
from support.events import at, stages

from ..bags import Sketch, tree
from .samples import directories, new_bag
from .test_archive import info, members_of, pack as pack_by_library, tar_of


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """A small valid bag."""
    noise = random.Random(1).randbytes(20_000)
    payload = {b"data/a.txt": b"alpha\n" * 1000, b"data/b/noise": noise, b"data/empty": b""}
    return Sketch(payload=payload, info=b"Title: x\n").write(tmp_path / "bag")


def refused(words: str, file: Path, **options: Any) -> BagError:
    """Check that unpacking fails with these words, and leaves nothing."""
    before = sorted(os.listdir(file.parent))
    with pytest.raises(BagError, match=words) as caught:
        unpack(file, file.parent / "new", **options)
    assert "\n" not in str(caught.value)
    assert sorted(os.listdir(file.parent)) == before
    return caught.value


@pytest.mark.parametrize(
    ("ending", "first"),
    [
        *((ending, first) for ending in ("tar", "tar.gz", "zip") for first in ("manifest", "data", "bagit")),
        *(("tar.bz2", "manifest"), ("tar.xz", "data")),
    ],
)
def test_archives_of_other_tools(tmp_path: Path, ending: str, first: str) -> None:
    """Archives of Python's libraries are unpacked, in whatever order the members are."""
    bag = new_bag(tmp_path / "bag")
    file = pack_by_library(bag, tmp_path / f"other name.{ending}", first=first)
    found = unpack(file)
    assert found.path == str(tmp_path / "other name")
    assert tree(tmp_path / "other name") == tree(bag)
    assert directories(tmp_path / "other name") == directories(bag)
    assert file.exists()


@pytest.mark.parametrize("algorithms", [["sha384"], ["blake2b", "md5"], ["blake3"]])
def test_unusual_algorithms_after_the_payload(tmp_path: Path, algorithms: list[str]) -> None:
    """Files whose digests were not computed while they were written are read again."""
    bag = Sketch(algorithms=algorithms, tag_algorithms=["sha512"], info=None).write(tmp_path / "bag")
    seen: list[Any] = []
    unpack(
        pack_by_library(bag, tmp_path / "a.tar.gz", first="data"), tmp_path / "new", progress=EventListener(seen.append)
    )
    assert tree(tmp_path / "new") == tree(bag)
    assert stages(seen) == ["unpack", "hash", "move"]
    (bag / "data" / "a.txt").write_bytes(b"alphA\n")
    (tmp_path / "below").mkdir()
    refused("data/a.txt", pack_by_library(bag, tmp_path / "below" / "b.tar.gz", first="data"))


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "zip"])
def test_damaged_bags(bag: Path, tmp_path: Path, ending: str) -> None:
    """All problems of the bag are reported."""
    (bag / "data" / "a.txt").write_bytes(b"other")
    (bag / "data" / "new").write_bytes(b"new")
    (bag / "data" / "empty").unlink()
    seen: list[Any] = []
    file = pack_by_library(bag, tmp_path / f"a.{ending}")
    error = refused("bag is not valid, nothing was unpacked: .*; and 2 more", file, progress=EventListener(seen.append))
    assert isinstance(error, BagInvalidError)
    assert {(one.kind, one.path) for one in error.report.errors} == {
        ("checksum-mismatch", "data/a.txt"),
        ("file-unlisted", "data/new"),
        ("file-missing", "data/empty"),
    }


HOSTILE = {
    "above": ([info("../evil")], "'..' segment"),
    "above, in the bag": ([info("bag/../../evil")], "'..' segment"),
    "absolute": ([info("/tmp/evil")], "absolute path"),
    "twice": ([info("bag/data/a.txt")], "another member has the same name"),
    "a directory at a file's path": ([info("bag/data/a.txt", tarfile.DIRTYPE)], "occupied by a file|same name"),
    "a file at a directory's path": ([info("bag/data")], "same name"),
    "below a file": ([info("bag/data/a.txt/x")], "occupied by a file"),
    "another top-level directory": ([info("other/x")], "exactly one top-level directory"),
    "a top-level file": ([info("x")], "exactly one top-level directory"),
    "through a link": (
        [info("bag/data/link", tarfile.SYMTYPE, "/tmp"), info("bag/data/link/evil")],
        "occupied by a file|same name",
    ),
    "through a link that comes later": (
        [info("bag/data/link/evil"), info("bag/data/link", tarfile.SYMTYPE, "/tmp")],
        "occupied by a file|same name",
    ),
    "a link to the outside": ([info("bag/data/link", tarfile.SYMTYPE, "/etc/passwd")], "outside the bag"),
    "a link to nothing": ([info("bag/data/link", tarfile.SYMTYPE, "x")], "missing target"),
    "a hard link to nothing": ([info("bag/data/link", tarfile.LNKTYPE, "bag/x")], "not an earlier file"),
    "a hard link to the outside": ([info("bag/data/link", tarfile.LNKTYPE, "/etc/passwd")], "not an earlier file"),
    "a hard link at a file's path": ([info("bag/data/a.txt", tarfile.LNKTYPE, "bag/bagit.txt")], "same name"),
    "a named pipe": ([info("bag/data/pipe", tarfile.FIFOTYPE)], "named pipe"),
    "a device": ([info("bag/tty", tarfile.CHRTYPE)], "device"),
    "a long name": ([info("bag/data/" + "x" * 256)], "name too long"),
}


@pytest.mark.parametrize("case", HOSTILE)
@pytest.mark.parametrize("ending", ["tar", "tar.gz"])
def test_hostile_members(bag: Path, tmp_path: Path, case: str, ending: str) -> None:
    """A member that cannot be unpacked safely is reported, and nothing is written outside the hidden directory."""
    members, words = HOSTILE[case]
    top = tmp_path / "top"
    top.mkdir()
    refused(words, tar_of(top / f"a.{ending}", *members_of(bag), *members))
    assert sorted(os.listdir(tmp_path)) == ["bag", "top"]


def test_hostile_zip_files(bag: Path, tmp_path: Path) -> None:
    """Zip files are checked like tar files."""
    for name, words in (("../evil", "'..' segment"), ("bag/data/a.txt", "same name"), ("C:/evil", "drive letter")):
        file = pack_by_library(bag, tmp_path / "a.zip")
        with zipfile.ZipFile(file, "a") as made, pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *_, **_options: None)
            made.writestr(name, b"x")
        refused(words, file)


def test_links(bag: Path, tmp_path: Path) -> None:
    """Symbolic links in the bag and hard links to earlier files are kept."""
    (bag / "link").symlink_to("data/a.txt")
    os.link(bag / "data" / "a.txt", bag / "hard")
    file = pack_by_library(bag, tmp_path / "a.tar.gz", first="data")
    unpack(file, tmp_path / "new")
    assert os.readlink(tmp_path / "new" / "link") == "data/a.txt"
    assert (tmp_path / "new" / "hard").read_bytes() == (bag / "hard").read_bytes()
    assert tree(tmp_path / "new") == tree(bag)


def test_a_link_in_a_directory_without_a_member(bag: Path, tmp_path: Path) -> None:
    """The directory of a symbolic link is created like that of a file."""
    link = info("bag/data/below/link", tarfile.SYMTYPE, "../a.txt")
    manifest = next(path for path in bag.iterdir() if path.name.startswith("manifest-"))
    line = next(line for line in manifest.read_text().splitlines() if line.endswith("data/a.txt"))
    manifest.write_text(f"{manifest.read_text()}{line.replace('data/a.txt', 'data/below/link')}\n")
    for tag_manifest in bag.glob("tagmanifest-*"):
        tag_manifest.unlink()
    file = tar_of(tmp_path / "a.tar", *members_of(bag), link)
    unpack(file, tmp_path / "new")
    assert os.readlink(tmp_path / "new" / "data" / "below" / "link") == "../a.txt"


def test_names_that_differ_in_case(bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system takes two names for one, the second member is refused, and nothing is overwritten."""
    real = os.open

    def folding(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        if flags & os.O_EXCL and os.path.basename(path) == b"A.TXT":
            path = os.path.join(os.path.dirname(path), b"a.txt")
        return real(path, flags, *arguments, **options)

    file = tar_of(tmp_path / "a.tar", *members_of(bag), info("bag/data/A.TXT"))
    monkeypatch.setattr(os, "open", folding)
    refused("A.TXT': another member has the same name", file)


def test_large_tag_files(tmp_path: Path) -> None:
    """Only the tag files that the draft describes are limited, as in a validation."""
    bag = Sketch(info=None).write(tmp_path / "bag")
    (bag / "scan.pdf").write_bytes(bytes(5_000_000))
    file = pack_by_library(bag, tmp_path / "a.tar")
    unpack(file, tmp_path / "other", limits=Limits(tag_files=1_000_000))
    assert tree(tmp_path / "other") == tree(bag)
    refused("manifests larger than", file, limits=Limits(tag_files=1, per_member=0))


def test_owners_and_special_bits_are_not_restored(bag: Path, tmp_path: Path) -> None:
    """No file runs as another user, belongs to one, or is writable for others where the umask says no."""
    members = members_of(bag)
    for member, _ in members:
        member.mode, member.uid, member.mtime = 0o6777, 12345, 1
    unpack(tar_of(tmp_path / "a.tar", *members), tmp_path / "new")
    umask = os.umask(0)
    os.umask(umask)
    for path in (tmp_path / "new").rglob("*"):
        assert path.stat().st_mode & 0o7777 == 0o777 & ~umask
        assert path.stat().st_uid == os.geteuid()


def test_limits(tmp_path: Path) -> None:
    """An archive that expands beyond the limits is refused."""
    bag = Sketch(payload={b"data/zeros": bytes(5_000_000)}, info=None).write(tmp_path / "bag")
    for ending in ("tar.gz", "zip"):
        file = pack_by_library(bag, tmp_path / f"a.{ending}")
        refused("expands to more than", file, limits=Limits(expanded=1_000_000, ratio=2))
        refused("more than 2 members", file, limits=Limits(members=2))


def test_changed_archives(bag: Path, tmp_path: Path) -> None:
    """Truncated and changed archives become the same bag or nothing."""
    whole = tree(bag)
    for ending in ("tar", "tar.gz", "zip"):
        file = pack_by_library(bag, tmp_path / f"a.{ending}")
        data = file.read_bytes()
        draw = random.Random(5)
        cuts = [data[: draw.randrange(len(data))] for _ in range(repeats(6, 50))]
        flips = []
        for _ in range(repeats(20, 200)):
            at = draw.randrange(len(data))
            flips.append(data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :])
        for number, changed in enumerate([*cuts, *flips]):
            file.write_bytes(changed)
            try:
                unpack(file, tmp_path / "new")
            except BagError:
                assert not (tmp_path / "new").exists()
            else:
                # Padding, times and owners.
                assert number >= len(cuts) or ending == "tar"
                found = tree(tmp_path / "new")
                assert {path: data for path, data in found.items() if path in whole} == whole
                for path in sorted((tmp_path / "new").rglob("*"), reverse=True):
                    path.rmdir() if path.is_dir() else path.unlink()
                (tmp_path / "new").rmdir()
        file.unlink()
        assert os.listdir(tmp_path) == ["bag"]


def test_an_archive_that_changes_meanwhile(bag: Path, tmp_path: Path) -> None:
    """An archive that is written to while it is read is refused."""
    file = pack_by_library(bag, tmp_path / "a.tar")

    def grow() -> None:
        with open(file, "ab") as changed:
            changed.write(bytes(512))

    refused("archive changed while it was read", file, progress=EventListener(at("unpack", grow)))


def test_destinations(bag: Path, tmp_path: Path) -> None:
    """An existing directory is never changed, and unusable names are refused."""
    file = pack_by_library(bag, tmp_path / "a.tar")
    (tmp_path / "a").mkdir()
    with pytest.raises(BagError, match="already exists"):
        unpack(file)
    assert os.listdir(tmp_path / "a") == []
    file.rename(tmp_path / "b")
    with pytest.raises(BagError, match="specify a directory"):
        unpack(tmp_path / "b")
    with pytest.raises(BagError, match="directory not found"):
        unpack(tmp_path / "b", tmp_path / "x" / "y")
    with pytest.raises(BagError, match="No such file"):
        unpack(tmp_path / "missing.tar")
    (tmp_path / "text.tar").write_bytes(b"no archive" * 100)
    refused("unknown archive format", tmp_path / "text.tar")
    with tarfile.open(tmp_path / "empty.tar", "w"):
        pass
    refused("exactly one top-level directory", tmp_path / "empty.tar")


def test_one_thread(bag: Path, tmp_path: Path) -> None:
    """Digests are computed in the calling thread."""
    file = tmp_path / "a.tar"
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as made:
        for member, data in members_of(bag):
            member.size = len(data)
            made.addfile(member, io.BytesIO(data))
    assert tree(tmp_path / "new") == {}
    unpack(file, tmp_path / "new", threads=1)
    assert tree(tmp_path / "new") == tree(bag)
