"""Random changes of small archives: GNU tar, UnZip and unpack write the same valid bag from those that are valid."""

from __future__ import annotations

import gzip
import io
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pressmark.bagit import validate
from pressmark.bagit.archive import validate_archive
from pressmark.bagit.archive.unpack import unpack
from pressmark.errors import BagError
from support.effort import LONG

from .handmade import END, Entry, entry_extra, header, long_name, pax, zip_of
from .packing import HAS_ZSTD, compressed
from .test_ambiguous import CLEAR, CLEAR_ZIPS

RUNS = 20_000 if LONG else 240
# UnZip changes other names: it removes versions (";1") and control characters, and converts character sets.
PLAIN_NAME = re.compile(rb"[\w./-]+", re.ASCII)
UNSUPPORTED = 81  # UnZip 6.0 refuses a member that requires a version of the format after 4.6
NUMBERS = b"01234567 \0\x80\xff-"
# The parts of a header that matter: name, size, checksum, type, target, magic, prefix or map.
FIELDS = (
    *((0, 100), (124, 136), (124, 136), (148, 156), (156, 157), (156, 157), (157, 257), (257, 265)),
    *((345, 500), (386, 500), (482, 495)),
)


def is_ok(archive: Path, **options: object) -> bool:
    try:
        return validate_archive(archive, **options).ok  # type: ignore[arg-type]
    except BagError:
        return False
    except BaseException as error:
        raise AssertionError(f"{archive}: {error!r}") from error


def tree(folder: Path) -> dict[bytes, bytes]:
    """Return what a directory contains: ``/`` for a directory, ``>`` and a target, or ``=`` and a content."""
    found = {}
    top = os.fsencode(folder)
    for above, directories, files in os.walk(top):
        for name in directories + files:
            path = os.path.join(above, name)
            if os.path.islink(path):
                there = b">" + os.readlink(path)
            elif os.path.isdir(path):
                there = b"/"
            else:
                with open(path, "rb") as file:
                    there = b"=" + file.read()
            found[os.path.relpath(path, top)] = there
    return found


def unpacked_by(command: list[str], folder: Path) -> dict[bytes, bytes] | None:
    """Return what a program unpacks from an archive into the only top-level directory; :data:`None` if it refuses."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    if done.returncode == UNSUPPORTED:
        return None
    subprocess.run(["chmod", "-R", "u+rwX", "."], cwd=folder, check=True)
    tops = list(folder.iterdir())
    return tree(tops[0]) if len(tops) == 1 else {b"top-level directories": str(tops).encode()}


def check(archive: Path, folder: Path, command: list[str]) -> bool:
    """Check one archive; return whether it is valid."""
    ok = is_ok(archive)
    assert is_ok(archive, threads=1) == ok
    if archive.suffix != ".zip":
        assert is_ok(archive, stream=io.BytesIO(archive.read_bytes())) == ok
    shutil.rmtree(folder / "ours", ignore_errors=True)
    try:
        unpack(archive, folder / "ours")
    except BagError:
        assert not ok
        assert not (folder / "ours").exists()
        return False
    assert ok
    assert validate(folder / "ours").ok
    ours = tree(folder / "ours")
    if command[0] != "unzip" or all(PLAIN_NAME.fullmatch(name) for name in ours):
        assert unpacked_by([*command, str(archive)], folder / "theirs") in (ours, None)
    return True


def check_case(case: str, archive: Path, folder: Path, command: list[str]) -> bool:
    """Check one archive; an error names the case."""
    try:
        return check(archive, folder, command)
    except AssertionError as error:
        raise AssertionError(f"{case}: {error}") from error


# --- changes ----------------------------------------------------------------------------------------------------------


def blocks_of(data: bytes) -> list[bytes]:
    return [data[at : at + 512] for at in range(0, len(data), 512)]


def is_head(block: bytes) -> bool:
    digits = block[148:156].strip(b" \0")
    return (
        bool(digits) and not digits.strip(b"01234567") and int(digits, 8) == sum(block[:148] + b" " * 8 + block[156:])
    )


def changed_tar(data: bytes, chance: random.Random) -> bytes:
    """Return a tar file with a few changes; the checksums of most changed headers are correct."""
    blocks = blocks_of(data.rstrip(b"\0") + bytes(-len(data.rstrip(b"\0")) % 512))
    for _ in range(chance.choice((1, 1, 2, 3))):
        heads = [number for number, block in enumerate(blocks) if is_head(block)]
        number = chance.choice(heads or range(len(blocks)))
        what = chance.randrange(8)
        if what < 4:
            begin, end = chance.choice(FIELDS)
            blocks[number] = changed_header(blocks[number], begin, end, chance)
        elif what == 4:
            extra = chance.choice((long_name(b"bag/data/a"), pax((b"path", b"bag/data/a")), pax((b"size", b"6"))))
            extra = chance.choice((extra, pax((b"mtime", b"1")), long_name(b"a", b"K"), header(b"v", 0, b"V")))
            blocks[number:number] = blocks_of(extra)
        elif what == 5:
            to = chance.choice(heads or [0])
            blocks[to:to] = blocks[number : number + chance.choice((1, 2))]
        elif what == 6:
            del blocks[number : number + chance.choice((1, 2))]
        else:
            place = chance.randrange(len(blocks))
            block = bytearray(blocks[place])
            block[chance.randrange(512)] ^= 1 << chance.randrange(8)
            blocks[place] = bytes(block)
    return b"".join(blocks) + chance.choice((END, END, END, END[:512], b"", END + data))


def changed_header(block: bytes, begin: int, end: int, chance: random.Random) -> bytes:
    found = bytearray(block)
    used = len(found[begin:end].rstrip(b"\0")) + 1
    at = begin + chance.randrange(min(used, end - begin))
    if (begin, end) == (156, 157):
        found[at] = chance.choice(b"01234567\0DKLMNSVXgxA")
    elif begin in (124, 148, 386, 482):
        found[at] = chance.choice(NUMBERS)
    else:
        found[at] = chance.choice(b"/.\0a~\\ \xff" + bytes([found[at] ^ 0x20]))
    if chance.random() < 0.9:
        found[148:156] = b" " * 8
        found[148:156] = b"%06o\0 " % sum(found)
    return bytes(found)


def changed_zip(data: bytes, chance: random.Random) -> bytes:
    """Return a zip file with a few changed bytes, of its headers in most cases."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 2, 3))):
        signatures = [
            match.start()
            for match in re.finditer(rb"PK(?:\x01\x02|\x03\x04|\x05\x06|\x06\x06|\x06\x07|\x07\x08)", found)
        ]
        if signatures and chance.random() < 0.9:
            at = min(chance.choice(signatures) + chance.randrange(4, 60), len(found) - 1)
        else:
            at = chance.randrange(len(found))
        what = chance.randrange(6)
        value = chance.choice((found[at] ^ 1 << chance.randrange(8), 0, 1, 0xFF, chance.randrange(256), 8))
        old = found[at : at + 4]
        found[at] = value
        if what == 0 and len(old) == 4:  # the same change elsewhere, as in both headers
            for place in [match.start() for match in re.finditer(re.escape(bytes(old)), found)]:
                found[place] = value
        elif what == 1:
            found[at:at] = chance.choice((b"\0", b"PK", bytes(4)))
        elif what == 2:
            del found[at]
    return bytes(found)


def zip_seeds(folder: Path) -> list[bytes]:
    """Return zip files: by hand, and of Python with compression, data descriptors and 64-bit sizes."""
    seeds = list(CLEAR_ZIPS.values())
    with zipfile.ZipFile(io.BytesIO(seeds[0])) as first:
        files = {name: first.read(name) for name in first.namelist() if not name.endswith("q")}
    files["bag/data/a"] = b"alpha\n"

    class Stream(io.BytesIO):
        def seekable(self) -> bool:
            return False

    for stream, method, is_64 in ((io.BytesIO(), 8, False), (Stream(), 8, False), (Stream(), 0, True)):
        with zipfile.ZipFile(stream, "w", method) as made:
            for name, data in files.items():
                with made.open(zipfile.ZipInfo(name) if method == 0 else name, "w", force_zip64=is_64) as member:
                    member.write(data)
        seeds.append(stream.getvalue())
    number, size, at = struct.unpack("<H2L", seeds[0][-12:-2])
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, number, number, size, at)
    end += struct.pack("<4sLQL", b"PK\6\7", 0, at + size, 1)
    seeds.append(seeds[0][:-22] + end + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *[0xFFFF] * 2, *[0xFFFFFFFF] * 2, 0))
    entry = Entry(b"bag/tag", b"x", local=entry_extra(0x5455, b"\1\0\0\0\0"), extra=entry_extra(0x5455, b"\1\0\0\0\0"))
    seeds.append(zip_of([*(Entry(name.encode(), data) for name, data in files.items()), entry]))
    return seeds


needs_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="compares programs of Linux")


@pytest.mark.fuzz
@pytest.mark.long
@needs_linux
@pytest.mark.skipif(shutil.which("tar") is None, reason="needs GNU tar")
@pytest.mark.parametrize("seed", range(4))
def test_changed_tar_files(tmp_path: Path, seed: int) -> None:
    """Plain and compressed tar files, which are decompressed by other programs."""
    chance = random.Random(seed)
    seeds = list(CLEAR.values())
    command = ["tar", "--no-same-owner", "--no-same-permissions", "-xf"]
    valid = 0
    for number in range(RUNS // 4):
        data = changed_tar(chance.choice(seeds), chance)
        archive = tmp_path / "x.tar"
        archive.write_bytes(data)
        if number % 8 == 7:
            archive = tmp_path / "x.tar.gz"
            archive.write_bytes(gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :]))
        elif number % 8 == 6 and HAS_ZSTD and shutil.which("zstd"):
            archive = tmp_path / "x.tar.zst"
            archive.write_bytes(compressed(data))
        valid += check_case(f"seed {seed}, number {number}", archive, tmp_path, command)
    assert valid


@pytest.mark.fuzz
@pytest.mark.long
@needs_linux
@pytest.mark.skipif(shutil.which("unzip") is None, reason="needs UnZip")
@pytest.mark.parametrize("seed", range(4))
def test_changed_zip_files(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    seeds = zip_seeds(tmp_path)
    archive = tmp_path / "x.zip"
    for data in seeds:
        archive.write_bytes(data)
        assert check(archive, tmp_path, ["unzip", "-q", "-o"])
    for number in range(RUNS // 4):
        archive.write_bytes(changed_zip(chance.choice(seeds), chance))
        check_case(f"seed {seed}, number {number}", archive, tmp_path, ["unzip", "-q", "-o"])
