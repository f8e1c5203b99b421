"""Archives of bags by real programs and libraries: all of them are accepted, and unpacked to the same bag."""

from __future__ import annotations

import hashlib
import os
import shutil
import struct
import sys
import zlib
from pathlib import Path

import pytest

from pressmark.bagit.archive import Limits, validate_archive
from pressmark.bagit.archive.unpack import unpack

from .handmade import Entry, entry_extra, tag_files, zip_of
from .writers import WRITERS, Missing, new_source

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="runs programs of Linux")

PAYLOAD = {
    b"data/a.txt": b"alpha\n",
    b"data/empty": b"",
    "data/größe 日本.txt".encode(): b"unicode\n",
    b"data/" + b"d" * 60 + b"/" + b"n" * 90: b"long\n",
    b"data/noise": bytes(number * number % 251 for number in range(300_000)),
}
LARGE = (1 << 32) + 1  # bytes; more than 32 bits
# Without names outside ASCII, or longer than 100 bytes.
OLD_FORMATS = ("gnu tar v7", "bsdtar v7", "php phar")
# What else a writer says, beside nothing.
WARNINGS: dict[str, set[str]] = {}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a bag: short, empty, long and hard-linked files, and a name outside ASCII."""
    return new_source(tmp_path_factory.mktemp("source"), PAYLOAD, linked=True)


def written(name: str, source: Path, folder: Path) -> Path:
    """Return an archive by a writer; skip the test if it is missing."""
    out = folder / f"x.{WRITERS[name].ending}"
    try:
        WRITERS[name].write(source, out)
    except Missing as missing:
        pytest.skip(f"{name}: {missing}")
    return out


def check_writer(name: str, source: Path, folder: Path) -> None:
    if name in OLD_FORMATS:
        source = new_source(folder / "old", {b"data/a.txt": b"alpha\n", b"data/empty": b""})
    archive = written(name, source, folder)
    found = [one for one in validate_archive(archive).problems if one.kind not in WARNINGS.get(name, ())]
    assert found == []
    if archive.suffix != ".zip":
        with open(archive, "rb") as stream:
            assert validate_archive(archive, stream=stream).ok
    unpack(archive, folder / "new")
    shutil.rmtree(folder / "new")


@pytest.mark.parametrize("name", [name for name, writer in WRITERS.items() if not writer.builds])
def test_programs(tmp_path: Path, source: Path, name: str) -> None:
    check_writer(name, source, tmp_path)


@pytest.mark.long(only=True)
@pytest.mark.repository
@pytest.mark.parametrize("name", [name for name, writer in WRITERS.items() if writer.builds])
def test_libraries(tmp_path: Path, source: Path, name: str) -> None:
    check_writer(name, source, tmp_path)


@pytest.mark.long(only=True)
@pytest.mark.repository
@pytest.mark.parametrize("name", ["zip pipe", "go zip", "java jdk"])
def test_large_members(tmp_path: Path, name: str) -> None:
    """A member of more than 4 GiB, whose sizes have 64 bits."""
    source = new_source(tmp_path / "source", {b"data/a": b"a"})
    bag = source / "bag"
    with open(bag / "data" / "large", "wb") as file:
        file.truncate(LARGE)
    with open(bag / "data" / "large", "rb") as file:
        line = f"{hashlib.file_digest(file, 'sha256').hexdigest()}  data/large\n"
    with open(bag / "manifest-sha256.txt", "a") as manifest:
        manifest.write(line)
    archive = written(name, source, tmp_path)
    assert archive.stat().st_size < LARGE
    assert validate_archive(archive, limits=Limits(expanded=1 << 40)).problems == []


# --- by hand, from their documented shapes ----------------------------------------------------------------------------


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def files_of_a_bag() -> dict[bytes, bytes]:
    payload = {b"data/a.txt": b"alpha\n", "data/größe.txt".encode(): b"unicode\n"}
    return tag_files(payload) | {b"bag/" + name: data for name, data in payload.items()}


def by_ditto() -> bytes:
    """Of ``ditto -c -k --sequesterRsrc --keepParent`` and Finder: times and owners, descriptors, and __MACOSX."""
    local, central = entry_extra(0x5855, bytes(12)), entry_extra(0x5855, bytes(8))
    entries = []

    def add(name: bytes, data: bytes) -> None:
        packed = deflated(data)
        sums = struct.pack("<4s3L", b"PK\7\x08", zlib.crc32(data), len(packed), len(data))
        more = {"flags": 8, "method": 8, "packed": packed, "sums": (0, 0, 0), "descriptor": sums}
        entries.append(Entry(name, data, extra=central, local=local, **more))  # type: ignore[arg-type]

    for name in (b"bag/", b"bag/data/"):
        entries.append(Entry(name, b"", attributes=0o040755 << 16, extra=central, local=local))
    for name, data in files_of_a_bag().items():
        add(name, data)
        if name.endswith(b"a.txt"):
            add(b"__MACOSX/bag/data/._a.txt", b"\0\5\x16\7")
    add(b"bag/.DS_Store"[4:], b"\0\0\0\1Bud1")
    return zip_of(entries)


def by_explorer() -> bytes:
    """Of "Send to compressed folder" in Windows Explorer: MS-DOS, no directories, a flag for names outside ASCII."""
    return zip_of(
        [
            Entry(name, data, 0, 0x20, 0 if name.isascii() else 0x800, packed=deflated(data) if data else b"", method=8)
            for name, data in files_of_a_bag().items()
        ]
    )


def by_dotnet_stream() -> bytes:
    """Of System.IO.Compression into a stream that cannot seek: descriptors, and the effort in the flags."""
    entries = []
    for name, data in files_of_a_bag().items():
        packed = deflated(data)
        sums = struct.pack("<4s3L", b"PK\7\x08", zlib.crc32(data), len(packed), len(data))
        flags = 0x8 | (0 if name.isascii() else 0x800)
        entries.append(Entry(name, data, 0, 0, flags, packed=packed, method=8, sums=(0, 0, 0), descriptor=sums))
    return zip_of(entries)


@pytest.mark.parametrize("write", [by_ditto, by_explorer, by_dotnet_stream])
def test_shapes(tmp_path: Path, write: object) -> None:
    archive = tmp_path / "x.zip"
    archive.write_bytes(write())  # type: ignore[operator]
    kinds = {one.kind for one in validate_archive(archive).problems}
    assert kinds == ({"archive-junk"} if write is by_ditto else set())
    unpack(archive, tmp_path / "bag")
    assert sorted(os.listdir(tmp_path / "bag")) == ["bagit.txt", "data", "manifest-sha256.txt"]
