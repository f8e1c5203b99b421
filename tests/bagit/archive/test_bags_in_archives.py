"""Bags in archives: opened, validated and refused by the calls for directories, from files and from pipes."""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import sys
import tarfile
import threading
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from pressmark import bagit
from pressmark.bagit import Bag, validate
from pressmark.bagit.archive import Limits, check, read, validate_archive
from pressmark.bagit.problems import BagReport
from pressmark.errors import BagError
from pressmark.fixity import Outcome
from pressmark.fixity.outcomes import FileRange
from support.implementations import Implementation

from ..bags import Sketch
from .packing import FORMATS, HAS_ZSTD, TARS, compressed, pack

USUAL = ["md5", "sha1", "sha256", "sha512"]
needs_zstd = pytest.mark.skipif(not HAS_ZSTD, reason="needs zstandard")


def facts(report: BagReport) -> list[tuple[Any, ...]]:
    return sorted((one.kind, one.severity, one.path, one.message) for one in report.problems)


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    payload = {b"data/a.txt": b"alpha\n" * 1000, b"data/b/noise": random.Random(1).randbytes(400_000), b"data/e": b""}
    size = sum(map(len, payload.values()))
    fetch = b"https://example.org/a 6000 data/a.txt\n"
    sketch = Sketch(payload=payload, info=b"Payload-Oxum: %d.3\nContact-Name: Jane\n" % size, fetch=fetch)
    return sketch.write(tmp_path / "bag")


# --- the calls for directories ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("damaged", [False, True])
def test_every_level(implementation: Implementation, tmp_path: Path, bag: Path, ending: str, damaged: bool) -> None:
    """The report on an archive is that on the directory, at every level, whatever the name of the file is."""
    if damaged:
        (bag / "data" / "a.txt").write_bytes(b"Alpha\n" * 1000)
        (bag / "data" / "more").write_bytes(b"more")
        (bag / "data" / "b" / "noise").unlink()
    archive = pack(bag, tmp_path / f"x.{ending}").rename(tmp_path / "no ending")
    for level in ("full", "complete", "oxum"):
        expected, found = validate(bag, level), validate(archive, level)
        assert facts(found) == facts(expected)
        assert (found.ok, found.counts, found.level) == (expected.ok, expected.counts, level)
        assert expected.ok != damaged
    again = validate(archive, threads=1, read="sequential")
    assert facts(again) == facts(validate(bag))


@pytest.mark.parametrize("ending", FORMATS)
def test_tag_files_of_an_archive(tmp_path: Path, bag: Path, ending: str) -> None:
    """The tag files of an archive are read as those of a directory; the bag can be validated, but not changed."""
    archive = pack(bag, tmp_path / f"x.{ending}")
    expected, found = bagit.open(bag), bagit.open(archive)
    assert (found.version, found.encoding, found.algorithms) == (expected.version, expected.encoding, ("sha512",))
    assert found.info.elements == expected.info.elements
    assert list(found.fetch) == list(expected.fetch)
    with found.payload as listing:
        assert listing.find(b"data/e").keys() == {"sha512"}
    assert found.path == str(archive)
    assert found.validate().ok
    for change in (found.update, found.complete, lambda: bagit.update(archive), lambda: bagit.complete(archive)):
        with pytest.raises(BagError, match="pressmark bag unpack"):
            change()


def test_a_warning_opens(tmp_path: Path, bag: Path) -> None:
    """An archive with bytes behind its end, without an end mark, or with files of macOS beside the bag, is opened."""
    archive = pack(bag, tmp_path / "x.tar")
    whole = archive.read_bytes()
    for data in (whole + b"behind", whole.rstrip(b"\0") + bytes(-len(whole.rstrip(b"\0")) % 512)):
        archive.write_bytes(data)
        assert bagit.open(archive).info.get("Contact-Name") == "Jane"
    above = shutil.copytree(bag, tmp_path / "above" / "bag").parent
    (above / "._bag").write_bytes(b"x")
    assert bagit.open(pack(above, archive, name=".")).info.get("Contact-Name") == "Jane"


def test_archives_that_are_no_bags(tmp_path: Path, bag: Path) -> None:
    """An archive without a bag, or with two members of one name, is not opened; a file without members is invalid."""
    with tarfile.open(tmp_path / "two.tar", "w") as tar:
        tar.add(bag, "bag")
        tar.add(bag / "bag-info.txt", "bag/bag-info.txt")
    with pytest.raises(BagError, match="another member has the same name"):
        bagit.open(tmp_path / "two.tar")
    assert "archive-member" in {one.kind for one in validate(tmp_path / "two.tar").problems}
    (bag / "bagit.txt").unlink()
    with pytest.raises(BagError, match=r"bagit\.txt not found"):
        bagit.open(pack(bag, tmp_path / "x.tar"))
    with tarfile.open(tmp_path / "tops.tar", "w") as tar:
        tar.add(bag, "bag")
        tar.add(bag, "other")
    with pytest.raises(BagError, match="not exactly one top-level directory"):
        bagit.open(tmp_path / "tops.tar")
    (tmp_path / "empty.tar").write_bytes(b"")
    report = validate(tmp_path / "empty.tar")
    assert [one.kind for one in report.problems] == ["archive-malformed"]
    assert report.counts == {"files": 0, "bytes": 0, "tag_files": 0}
    (tmp_path / "notes.txt").write_bytes(b"text\n" * 200)
    for call in (validate, bagit.open):
        with pytest.raises(BagError, match="not a directory"):
            call(tmp_path / "notes.txt")
    with pytest.raises(ValueError, match="ledger"):
        validate(tmp_path / "tops.tar", ledger=tmp_path / "ledger")
    with pytest.raises(ValueError, match="read="):
        validate(tmp_path / "tops.tar", read="backwards")


@pytest.mark.parametrize("ending", FORMATS)
def test_profiles(tmp_path: Path, bag: Path, ending: str) -> None:
    """A profile applies to the bag in an archive, and its serialization to the format."""
    types = {
        "tar": "application/tar",
        "tar.gz": "application/x-gzip",
        "tar.bz2": "application/x-bzip2",
        "tar.xz": "application/x-xz",
        "tar.zst": "application/zstd",
        "zip": "application/zip",
    }
    about = {"Source-Organization": "x", "External-Description": "x", "Version": "1"}
    archive = pack(bag, tmp_path / f"x.{ending}")
    for accepted in types.values():
        profile = bagit.Profile.from_json(
            json.dumps(
                {
                    "BagIt-Profile-Info": about | {"BagIt-Profile-Identifier": "https://example.org/p.json"},
                    "Accept-BagIt-Version": ["1.0"],
                    "Serialization": "required",
                    "Accept-Serialization": [accepted],
                    "Allow-Fetch.txt": True,
                    "Tag-Files-Required": ["missing.txt"],
                }
            ).encode(),
            "profile",
        )
        found = {one.kind for one in validate(archive, profile=profile).problems}
        assert {"profile-tag-file-missing", "profile-identifier"} <= found
        assert ("profile-serialization" in found) == (accepted != types[ending])
        assert "profile-serialization" in {one.kind for one in validate(bag, profile=profile).problems}
        assert {one.kind for one in bagit.open(archive).check_profile(profile)} == found


def test_a_plain_tar_file_is_read_like_a_directory(tmp_path: Path, bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a plain tar file, only headers and tag files are read first; files are hashed where they are."""
    sources: list[FileRange | Outcome] = []
    hash_ranges = check.hash_ranges

    def hashed(descriptor: int, ranges: Any, *args: Any, **options: Any) -> Any:
        given = list(ranges)
        sources.extend(given)
        return hash_ranges(descriptor, given, *args, **options)

    monkeypatch.setattr(check, "hash_ranges", hashed)
    archive = pack(bag, tmp_path / "x.tar")
    assert validate(archive).ok
    assert all(isinstance(one, FileRange) for one in sources)
    with tarfile.open(archive) as tar:
        expected = {(one.offset_data, one.size) for one in tar if one.isreg() and "tagmanifest" not in one.name}
    assert set(sources) == expected
    sources.clear()
    assert validate(pack(bag, tmp_path / "x.tar.gz")).ok
    assert sources == []


def test_a_plain_tar_file_that_changes(tmp_path: Path, bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tar file that changes after its headers were read is never valid."""
    archive = pack(bag, tmp_path / "x.tar")
    hash_ranges = check.hash_ranges

    def hashed(*args: Any, **options: Any) -> Any:
        yield from hash_ranges(*args, **options)
        os.utime(archive, (1, 1))

    monkeypatch.setattr(check, "hash_ranges", hashed)
    assert [one.kind for one in validate(archive).problems] == ["file-changing"]

    def cutting(*args: Any, **options: Any) -> Any:
        os.truncate(archive, archive.stat().st_size // 2)
        return hash_ranges(*args, **options)

    monkeypatch.setattr(check, "hash_ranges", cutting)
    assert {one.kind for one in validate(archive).problems} == {"file-changing"}


@pytest.mark.skipif(not hasattr(os, "preadv"), reason="needs preadv")
def test_stored_members_of_a_zip_file(
    implementation: Implementation, tmp_path: Path, bag: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored members are read where they are, several at a time, and the CRC of each is verified, listed or not."""
    seen: list[FileRange] = []
    hash_ranges = read.hash_ranges

    def hashed(descriptor: int, ranges: Any, *args: Any, **options: Any) -> Any:
        return hash_ranges(descriptor, (seen.append(one) or one for one in ranges), *args, **options)

    monkeypatch.setattr(read, "hash_ranges", hashed)
    (bag / "unlisted.txt").write_bytes(b"an unlisted tag file")
    archive = pack(bag, tmp_path / "x.zip", stored=True)
    assert facts(validate(archive)) == facts(validate(bag))
    assert len(seen) == sum(path.is_file() for path in bag.rglob("*"))
    whole = archive.read_bytes()
    for content in (b"an unlisted tag file", (bag / "data" / "b" / "noise").read_bytes()[-100:], b"BagIt-Version"):
        data = bytearray(whole)
        data[whole.index(content)] ^= 1
        archive.write_bytes(data)
        [found] = validate(archive).problems
        assert (found.kind, found.message) == ("archive-malformed", "CRC mismatch of a member")
    with zipfile.ZipFile(archive, "w") as zipped:  # stored and compressed members
        for number, path in enumerate(sorted(bag.rglob("*"))):
            zipped.write(
                path, Path("bag") / path.relative_to(bag), (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)[number % 2]
            )
    assert facts(validate(archive)) == facts(validate(bag))


# --- pipes ------------------------------------------------------------------------------------------------------------


class Pipe(io.RawIOBase):
    """A stream that cannot seek, and returns few bytes at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._data.read(min(len(buffer), 1000))
        buffer[: len(data)] = data
        return len(data)


def piped(data: bytes) -> BinaryIO:
    return io.BufferedReader(Pipe(data), 700)  # type: ignore[return-value]


@pytest.mark.parametrize("ending", TARS)
@pytest.mark.parametrize("first", ["", "manifest-md5", "manifest-sha256"])
def test_an_archive_from_a_pipe(tmp_path: Path, bag: Path, ending: str, first: str) -> None:
    """An archive from a pipe is read once, wherever its manifests are."""
    Sketch(algorithms=USUAL, tag_algorithms=USUAL).write(tmp_path / "other")
    for each in (bag, tmp_path / "other"):
        archive = pack(each, tmp_path / f"x.{ending}", first=first)
        for level in ("full", "complete", "oxum"):
            found = validate_archive("-", level, stream=piped(archive.read_bytes()))
            assert (facts(found), found.counts) == (facts(validate(each, level)), validate(each, level).counts)
    (tmp_path / "other" / "data" / "a.txt").write_bytes(b"Alpha\n")
    archive = pack(tmp_path / "other", archive, first=first)
    found = validate_archive("-", stream=piped(archive.read_bytes()))
    assert sorted(str(one.algorithm) for one in found.problems if one.kind == "checksum-mismatch") == USUAL


def test_a_real_pipe(tmp_path: Path, bag: Path) -> None:
    """The writer of a pipe is read to its end, also after the end mark."""
    data = pack(bag, tmp_path / "x.tar").read_bytes() + bytes(300_000)
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb") as file:
            file.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    with open(reading, "rb") as file:
        report = validate_archive("-", stream=file)
    writer.join()
    assert report.problems == []


def test_other_algorithms_from_a_pipe(tmp_path: Path) -> None:
    """A bag whose manifests have other algorithms is refused, unless they come before the files."""
    bag = Sketch(algorithms=["sha512", "sha3256"], tag_algorithms=["sha512", "sha3256"]).write(tmp_path / "bag")
    archive = pack(bag, tmp_path / "x.tar")
    with pytest.raises(BagError, match=r"not computed from a pipe \(sha3-256\); save the archive, and validate"):
        validate_archive("-", stream=piped(archive.read_bytes()))
    assert validate_archive("-", "complete", stream=piped(archive.read_bytes())).ok


def test_refused_pipes(tmp_path: Path, bag: Path) -> None:
    """A zip file needs a file, and anything else is no archive."""
    with pytest.raises(BagError, match="zip file cannot be read from a pipe; save it"):
        validate_archive("-", stream=piped(pack(bag, tmp_path / "x.zip").read_bytes()))
    for data in (b"", b"x" * 5000):
        assert [one.kind for one in validate_archive("-", stream=piped(data)).problems] == ["archive-malformed"]


@pytest.mark.parametrize("ending", TARS)
def test_damaged_pipes(tmp_path: Path, bag: Path, ending: str) -> None:
    """A cut archive from a pipe is not valid, and limits apply to what was read."""
    data = pack(bag, tmp_path / f"x.{ending}").read_bytes()
    end = len(data.rstrip(b"\0")) if ending == "tar" else len(data)
    for place in [end * number // 20 for number in range(20)] + [end - 1]:
        assert not validate_archive("-", stream=piped(data[:place])).ok
    if ending != "tar":
        report = validate_archive("-", stream=piped(data), limits=Limits(expanded=1000, ratio=1))
        assert [one.kind for one in report.problems] == ["archive-limit"]
        report = validate_archive("-", stream=piped(data + b"more"))
        kind = "archive-malformed" if ending == "tar.zst" else "archive-extra"
        assert {one.kind for one in report.problems} == {kind}


# --- zstd -------------------------------------------------------------------------------------------------------------


@needs_zstd
def test_frames(tmp_path: Path, bag: Path) -> None:
    """Several frames, skippable ones, and frames without size or checksum are one stream."""
    import zstandard

    plain = pack(bag, tmp_path / "x.tar").read_bytes()
    skipped = b"\x5a\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"
    without = zstandard.ZstdCompressor(write_checksum=False, write_content_size=False).compressobj()
    second = without.compress(plain[9000:20_000]) + without.flush()
    archive = tmp_path / "x.tar.zst"
    whole = skipped + compressed(plain[:9000]) + skipped + second + compressed(plain[20_000:]) + skipped
    archive.write_bytes(whole)
    assert validate(archive).problems == []
    for place in (len(whole) - 1, len(whole) - len(skipped) - 1, len(skipped) + 100):
        archive.write_bytes(whole[:place])
        assert [one.kind for one in validate(archive).problems] == ["archive-malformed"], place


@needs_zstd
def test_the_window_of_zstd_is_limited(tmp_path: Path, bag: Path) -> None:
    """A frame that needs more memory than the limit is refused; that of --long is not."""
    import zstandard

    plain = pack(bag, tmp_path / "x.tar").read_bytes()
    archive = tmp_path / "x.tar.zst"
    for log, expected in ((27, []), (28, ["archive-limit"])):
        parameters = zstandard.ZstdCompressionParameters(window_log=log, enable_ldm=True)
        frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        archive.write_bytes(frame.compress(plain) + frame.flush())
        assert [one.kind for one in validate(archive).problems] == expected


@needs_zstd
@pytest.mark.slow_under_sanitizers
def test_a_bomb_of_zstd(tmp_path: Path) -> None:
    """A frame that expands to much more is refused after the limit."""
    header = tarfile.TarInfo("bag/data/x")
    header.size = 1 << 33
    archive = tmp_path / "x.tar.zst"
    archive.write_bytes(compressed(header.tobuf() + bytes(200 << 20)))
    report = validate_archive(archive, limits=Limits(expanded=64 << 20))
    assert [one.kind for one in report.problems] == ["archive-limit"]


def test_without_zstandard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, one line says what to install."""
    monkeypatch.setitem(sys.modules, "zstandard", None)
    archive = tmp_path / "x.tar.zst"
    archive.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(1000))
    for call in (validate, Bag.open):
        with pytest.raises(BagError, match=r"zstandard; run: pip install 'pressmark\[zstd\]'"):
            call(archive)
