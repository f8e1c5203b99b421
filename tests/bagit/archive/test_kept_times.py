"""Modification times and permission bits in archives: kept from files to archive, and from archive to files."""

from __future__ import annotations

import datetime
import os
import shutil
import stat
import struct
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit import create, create_archive, create_from_table, pack, unpack
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import BagError
from support.implementations import Implementation
from support.memory_addresses import use_memory

from ..bags import Sketch
from .handmade import END, Entry, entry_extra, file, header, pax, tag_files, zip_of
from .samples import DAY, FORMATS

# Names, permission bits and times of files and directories: before 1970, of leap seconds, and after 2038.
FACTS = {
    "run.sh": (0o755, 1_000_000_000),
    "private": (0o600, -150_000_000),
    "fixed": (0o444, 1_483_228_799),
    "d/later": (0o640, 4_000_000_001),
    "d/empty": (0o750, 86_401),
    "d": (0o750, 3),
    "": (0o711, 1_234_567_891),
}


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Files and directories with the times and permission bits of :data:`FACTS`."""
    source = tmp_path / "source"
    (source / "d" / "empty").mkdir(parents=True)
    for name in FACTS:
        if not (source / name).is_dir():
            (source / name).write_text(name)
    for name, (mode, seconds) in FACTS.items():
        (source / name).chmod(mode)
        os.utime(source / name, ns=(0, seconds * 10**9 + 500_000_000))
        if (source / name).stat().st_mtime_ns // 10**9 != seconds:
            pytest.skip("file system without this time")
    return source


def facts(folder: Path) -> dict[str, tuple[int, int]]:
    """Return permission bits and times, in seconds, of all files and directories."""
    paths = [folder, *folder.rglob("*")]
    return {
        "" if path == folder else str(path.relative_to(folder)): (stat.S_IMODE(path.stat().st_mode), seconds(path))
        for path in paths
    }


def seconds(path: Path) -> int:
    return path.stat().st_mtime_ns // 10**9


def packed(source: Path, file: Path) -> None:
    """Create a bag in a directory, and pack it."""
    pack(create(source, file.parent / "bag"), file)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("write", [packed, create_archive])
def test_times_and_permission_bits_are_kept(
    implementation: Implementation, source: Path, tmp_path: Path, write: Callable[[Path, Path], object], ending: str
) -> None:
    """Files and directories of the payload have them in the archive, and again when it is unpacked."""
    archive = tmp_path / f"a.{ending}"
    write(source, archive)
    unpack(archive, tmp_path / "new")
    assert facts(tmp_path / "new" / "data") == FACTS


@pytest.mark.parametrize("ending", FORMATS)
def test_tag_files(source: Path, tmp_path: Path, ending: str) -> None:
    """A copied tag file keeps its time. New ones have one time, so that an upload can be continued."""
    options = {"tag_files": [source / "run.sh"], "info": {"Bagging-Date": "2026-09-22"}}
    create_archive(source, tmp_path / f"a.{ending}", **options)  # type: ignore[arg-type]
    unpack(tmp_path / f"a.{ending}", tmp_path / "new")
    found = {path.name: seconds(path) for path in (tmp_path / "new").iterdir()}
    assert (found.pop("run.sh"), found.pop("data")) == (1_000_000_000, 1_234_567_891)
    assert (set(found.values()), seconds(tmp_path / "new")) == ({DAY}, DAY)


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("timestamps", ["keep", "bagging-date"])
def test_the_same_bag_becomes_the_same_bytes(source: Path, tmp_path: Path, ending: str, timestamps: str) -> None:
    """The number of threads makes no difference; the time of a file does if it is kept."""
    bag = tmp_path / "bag"
    create(source, bag)

    def archive(folder: str, threads: int) -> bytes:
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / f"a.{ending}"
        return Path(pack(bag, path, timestamps=timestamps, threads=threads)).read_bytes()

    first = archive("1", 1)
    assert archive("2", 3) == first
    os.utime(bag / "data" / "run.sh", (5, 5))
    assert (archive("3", 1) == first) == (timestamps == "bagging-date")
    (bag / "data" / "run.sh").chmod(0o700)
    assert (archive("4", 1) == first) == (timestamps == "bagging-date")


@pytest.mark.parametrize("write", [packed, create_archive])
def test_one_time_for_all(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[..., object]
) -> None:
    """SOURCE_DATE_EPOCH asks for archives that are the same each time, unless times are kept on purpose."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000")
    write(source, tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert {(one.mode, one.mtime) for one in tar} == {(0o644, 1000), (0o755, 1000)}
    create_archive(source, tmp_path / "b.tar", timestamps="keep")
    with tarfile.open(tmp_path / "b.tar") as tar:
        assert tar.getmember("b/data/private").mtime == -150_000_000
        assert (tar.getmember("b/data/run.sh").mode, tar.getmember("b/bagit.txt").mtime) == (0o755, 1000)


def test_special_bits_and_owners_are_not_packed(tmp_path: Path) -> None:
    """Setuid, setgid, sticky and the owner stay behind."""
    (tmp_path / "s" / "d").mkdir(parents=True)
    (tmp_path / "s" / "a").write_bytes(b"a")
    (tmp_path / "s" / "a").chmod(0o6755)
    (tmp_path / "s" / "d").chmod(0o3777)
    create_archive(tmp_path / "s", tmp_path / "a.tar")
    create_archive(tmp_path / "s", tmp_path / "a.zip")
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert [oct(tar.getmember(f"a/data/{name}").mode) for name in "ad"] == ["0o755", "0o777"]
        assert {(one.uid, one.gid, one.uname, one.gname) for one in tar} == {(0, 0, "", "")}
    with zipfile.ZipFile(tmp_path / "a.zip") as found:
        modes = [found.getinfo(f"a/data/{name}").external_attr >> 16 for name in ("a", "d/")]
    assert modes == [stat.S_IFREG | 0o755, stat.S_IFDIR | 0o777]


def test_unknown_timestamps(source: Path, tmp_path: Path) -> None:
    """Another word is refused, and nothing is written."""
    with pytest.raises(ValueError, match="timestamps='now': expected keep, bagging-date"):
        create_archive(source, tmp_path / "a.tar", timestamps="now")
    assert os.listdir(tmp_path) == ["source"]


def test_in_a_bucket(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive that is sent to a bucket has them, and so has the bag that is unpacked from there."""
    bucket: MemoryBucket = use_memory(monkeypatch)
    create_archive(source, tmp_path / "a.tar.gz")
    create_archive(source, "s3://memory/a.tar.gz")
    assert bucket.get(b"a.tar.gz").read() == (tmp_path / "a.tar.gz").read_bytes()
    unpack("s3://memory/a.tar.gz", tmp_path / "new")
    assert facts(tmp_path / "new" / "data") == FACTS


def test_from_a_table(source: Path, tmp_path: Path) -> None:
    """The archives of a table have the times of their files, or one time for all."""
    (tmp_path / "items.csv").write_text(f"path\n{source}\n")
    for timestamps, expected in (("keep", 1_000_000_000), ("bagging-date", DAY)):
        day = datetime.date(2026, 9, 22)
        how: dict[str, Any] = {"archive": "tar", "date": day, "timestamps": timestamps}
        (made,) = create_from_table(tmp_path / "items.csv", tmp_path / timestamps, **how)
        with tarfile.open(made.path) as tar:
            assert tar.getmember("source/data/run.sh").mtime == expected


# --- archives of others -----------------------------------------------------------------------------------------------

PAYLOAD = {b"bag/data/a": b"alpha", b"bag/data/d/b": b"beta"}
A, B = PAYLOAD
REST = [(name, data) for name, data in tag_files({name[4:]: data for name, data in PAYLOAD.items()}).items()]
FIRST, LAST = -11_644_473_600, 253_402_300_799


def tar_with(folder: Path, *members: bytes) -> Path:
    (folder / "bag.tar").write_bytes(b"".join([*members, *(file(name, data) for name, data in REST), END]))
    return folder / "bag.tar"


def member(name: bytes, mode: bytes = b"0000644\0", mtime: bytes = b"00000000000\0", kind: bytes = b"0") -> bytes:
    data = PAYLOAD.get(name, b"")
    return header(name, len(data), kind, mode=(100, mode), mtime=(136, mtime)) + data + bytes(-len(data) % 512)


BINARY = {number: number.to_bytes(12, "big", signed=True) for number in (-7, -(1 << 80))}
TAR_TIMES = {
    "octal": (member(A, mtime=b"00000001750\0"), 1000 * 10**9),
    "octal, with blanks": (member(A, mtime=b"      1750 \0"), 1000 * 10**9),
    "none": (member(A, mtime=b" " * 11 + b"\0"), 0),
    "the last octal": (member(A, mtime=b"7" * 11 + b"\0"), (8**11 - 1) * 10**9),
    "binary, negative": (member(A, mtime=BINARY[-7]), -7 * 10**9),
    "binary, huge": (member(A, mtime=b"\x80" + b"\xff" * 11), LAST * 10**9 + 999_999_999),
    "binary, before all": (member(A, mtime=b"\xff" + BINARY[-(1 << 80)][1:]), FIRST * 10**9),
    "pax": (pax((b"mtime", b"1000.25")) + member(A, mtime=b"00000000001\0"), 1000_250_000_000),
    "pax, many digits": (pax((b"mtime", b"1000.1234567899")) + member(A), 1000_123_456_789),
    "pax, negative": (pax((b"mtime", b"-1.5")) + member(A), -1_500_000_000),
    "pax, nearly 0": (pax((b"mtime", b"-0.5")) + member(A), -500_000_000),
    "pax, huge": (pax((b"mtime", b"9" * 20 + b".9")) + member(A), LAST * 10**9 + 999_999_999),
    "pax, before all": (pax((b"mtime", b"-" + b"9" * 20)) + member(A), FIRST * 10**9),
}


@pytest.mark.parametrize("case", TAR_TIMES)
def test_times_in_tar_files(tmp_path: Path, case: str) -> None:
    """Times of any form are read; one that a system cannot set becomes the nearest one."""
    first, expected = TAR_TIMES[case]
    unpack(tar_with(tmp_path, first, member(B)), tmp_path / "new")
    (tmp_path / "same").write_bytes(b"")
    os.utime(tmp_path / "same", ns=(expected, expected))  # a file system has limits, too
    assert (tmp_path / "new" / "data" / "a").stat().st_mtime_ns == (tmp_path / "same").stat().st_mtime_ns


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_permission_bits_of_tar_files(tmp_path: Path, mask: int) -> None:
    """Neither special bits nor what the umask denies; the owner can read each file and change each directory."""
    os.umask(mask)
    for mode, of_file, of_directory in (
        (b"0000000\0", 0o400, 0o700),
        (b"0007777\0", 0o777, 0o777),
        (b"0000222\0", 0o622, 0o722),
        (b"0000555\0", 0o555, 0o755),
        (b"\x80" + b"\xff" * 7, 0o777, 0o777),
    ):
        members = [member(b"bag/data/d", mode, kind=b"5"), member(A, mode), member(B, mode)]
        unpack(tar_with(tmp_path, *members), tmp_path / "new")
        found = {path: mode for path, (mode, _time) in facts(tmp_path / "new" / "data").items()}
        assert (found["a"], found["d/b"], found["d"]) == (of_file & ~mask, of_file & ~mask, of_directory & ~mask)
        shutil.rmtree(tmp_path / "new")


def test_directories_in_any_order(tmp_path: Path) -> None:
    """A directory gets its time when all its members are written; without a member of its own, it is a new one."""
    one, two = (member(b"bag/data/d", b"0000750\0", b"0000000000%d\0" % number, kind=b"5") for number in (1, 2))
    for number, members in enumerate(([two, member(A), member(B)], [member(A), member(B), one, two])):
        unpack(tar_with(tmp_path, *members), tmp_path / f"new{number}")
        assert facts(tmp_path / f"new{number}" / "data")["d"] == (0o750, 2)
    begin = time.time() - 60
    unpack(tar_with(tmp_path, member(A), member(B)), tmp_path / "new")
    assert facts(tmp_path / "new" / "data")["d"][0] == 0o755
    assert (tmp_path / "new" / "data" / "d").stat().st_mtime > begin


def zip_with(folder: Path, first: Entry) -> Path:
    """Write a zip file, whose entries have the date 1980-01-01."""
    others = [Entry(name, data) for name, data in REST]
    (folder / "bag.zip").write_bytes(zip_of([first, Entry(B, PAYLOAD[B]), *others]))
    return folder / "bag.zip"


def extra(number: int, data: bytes) -> dict[str, bytes]:
    return dict.fromkeys(("extra", "local"), entry_extra(number, data))


DAY_ONE = int(time.mktime((1980, 1, 1, 0, 0, 0, 0, 0, -1))) * 10**9
NTFS = struct.pack("<L2H3Q", 0, 1, 24, 116_444_736_000_000_000 + 15, 0, 0)
ZIP_TIMES = {
    "local": ({}, DAY_ONE),
    "UTC": (extra(0x5455, b"\1" + struct.pack("<l", 77)), 77 * 10**9),
    "UTC, before 1970": (extra(0x5455, b"\3" + struct.pack("<2l", -77, 5)), -77 * 10**9),
    "UTC, of another kind": (extra(0x5455, b"\2" + struct.pack("<l", 77)), DAY_ONE),
    "UTC, cut": (extra(0x5455, b"\1\0"), DAY_ONE),
    "Windows": (extra(0x000A, NTFS), 1500),
    "Windows, huge": (extra(0x000A, NTFS[:8] + b"\xff" * 24), LAST * 10**9 + 999_999_999),
    "Windows, cut": (extra(0x000A, b"\0"), DAY_ONE),
}


@pytest.mark.parametrize("case", ZIP_TIMES)
def test_times_in_zip_files(tmp_path: Path, case: str) -> None:
    """The time in UTC counts if there is one, then that of Windows, then the local one."""
    how, expected = ZIP_TIMES[case]
    unpack(zip_with(tmp_path, Entry(A, PAYLOAD[A], **how)), tmp_path / "new")  # type: ignore[arg-type]
    (tmp_path / "same").write_bytes(b"")
    os.utime(tmp_path / "same", ns=(expected, expected))
    assert (tmp_path / "new" / "data" / "a").stat().st_mtime_ns == (tmp_path / "same").stat().st_mtime_ns


@pytest.mark.parametrize("date", [0, 0xFFFF, 15 << 5 | 31, 33])
def test_impossible_dates_in_zip_files(tmp_path: Path, date: int) -> None:
    """A date that no calendar has becomes one; no date is the first day of 1980."""
    path = zip_with(tmp_path, Entry(A, PAYLOAD[A]))
    data = path.read_bytes()
    path.write_bytes(data.replace(struct.pack("<2H", 0, 33), struct.pack("<2H", 0xFFFF if date else 0, date)))
    unpack(path, tmp_path / "new")
    found = (tmp_path / "new" / "data" / "a").stat().st_mtime_ns
    assert found == DAY_ONE if date == 0 else found >= DAY_ONE


def test_permission_bits_of_zip_files(tmp_path: Path) -> None:
    """Those of Unix count; an entry of MS-DOS, or without any, becomes an ordinary file."""
    for number, (system, attributes, expected) in enumerate(
        [
            (3, 0o104750 << 16, 0o750),
            (3, 0o100000 << 16, 0o644),
            (3, 0, 0o644),
            (0, 0, 0o644),
            (0, 0o100777 << 16, 0o644),
        ]
    ):
        path = zip_with(tmp_path, Entry(A, PAYLOAD[A], system, attributes))
        unpack(path, tmp_path / f"new{number}")
        assert facts(tmp_path / f"new{number}" / "data")["a"][0] == expected


@pytest.mark.parametrize("far", [-3_000_000_000, -1, 1 << 31, 9_000_000_000])
def test_times_that_many_programs_do_not_read_in_zip_files(tmp_path: Path, far: int) -> None:
    """Other programs get the nearest one; the exact time is in a field of Windows."""
    bag = Sketch(info=None).write(tmp_path / "bag")
    os.utime(bag / "data" / "a.txt", (far, far))
    if seconds(bag / "data" / "a.txt") != far:
        pytest.skip("file system without this time")
    with zipfile.ZipFile(pack(bag, tmp_path / "a.zip")) as found:
        member = found.getinfo("a/data/a.txt")
        first, last = (1980, 1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58)
        assert member.date_time == max(first, min(last, time.gmtime(far // 2 * 2)[:6]))
    pack(bag, tmp_path / "a.tar")
    for ending in ("zip", "tar"):
        unpack(tmp_path / f"a.{ending}", tmp_path / ending)
        assert seconds(tmp_path / ending / "data" / "a.txt") == far


def test_a_bad_bag_leaves_nothing(tmp_path: Path) -> None:
    """Directories without permissions do not keep the rest of a failed run."""
    members = [member(b"bag/data/d", b"0000000\0", kind=b"5"), member(B), file(A, b"other")]
    with pytest.raises(BagError):
        unpack(tar_with(tmp_path, *members), tmp_path / "new")
    assert os.listdir(tmp_path) == ["bag.tar"]
