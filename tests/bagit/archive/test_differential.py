"""Random small archives: from those that are valid, all programs and unpack write the same valid bag.

The programs are GNU tar, bsdtar, UnZip, 7-Zip and Python. One that is not installed is left out, and so is one that
refuses the archive. PRESSMARK_FUZZ_MINUTES sets the duration of the long form of each test.
"""

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
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count, takewhile
from pathlib import Path
from time import monotonic

import pytest

from pressmark.bagit import validate
from pressmark.bagit.archive import validate_archive
from pressmark.bagit.archive.unpack import unpack
from pressmark.errors import BagError
from support.effort import LONG

from .handmade import END, Entry, entry_extra, file, header, long_name, pax, tag_files, zip_of
from .packing import HAS_ZSTD, compressed
from .test_ambiguous import CLEAR, CLEAR_ZIPS
from .writers import WRITERS, Missing, new_source

Program = Callable[[Path, Path], bool]  # unpacks an archive into a directory; returns whether it accepts the archive

RUNS = 20_000 if LONG else 400
SEEDS = 4
# UnZip changes other names: it removes versions (";1") and control characters, and converts character sets.
PLAIN_NAME = re.compile(rb"[\w./-]+", re.ASCII)
NUMBERS = b"01234567 \0\x80\xff-"
# The parts of a header that matter: name, size, checksum, type, target, magic, prefix or map.
FIELDS = (
    *((0, 100), (100, 124), (124, 136), (124, 136), (136, 148), (148, 156), (156, 157), (156, 157), (157, 257)),
    *((257, 265), (329, 345)),
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


def unpacked_by(program: Program, archive: Path, folder: Path) -> dict[bytes, bytes] | None:
    """Return what a program unpacks into the only top-level directory; :data:`None` if it refuses."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    if not program(archive, folder):
        return None
    subprocess.run(["chmod", "-R", "u+rwX", "."], cwd=folder, check=True)
    # Python and 7-Zip write an empty file for the name of a volume.
    tops = [one for one in folder.iterdir() if one.is_dir() and not one.is_symlink()]
    return tree(tops[0]) if len(tops) == 1 else {b"top-level directories": str(tops).encode()}


def command(*words: str) -> Program:
    def unpack_by(archive: Path, folder: Path) -> bool:
        done = subprocess.run(
            [*words, archive], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
        return done.returncode == 0

    return unpack_by


def by_python(archive: Path, folder: Path) -> bool:
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as zipped:
                zipped.extractall(folder)
        else:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="tar")
    except Exception:  # any: Python refuses it
        return False
    return True


TAR_PROGRAMS: dict[str, Program] = {
    "tar": command("tar", "--no-same-owner", "--no-same-permissions", "-xf"),
    "bsdtar": command("bsdtar", "--no-same-owner", "--no-same-permissions", "-xf"),
    "7z": command("7z", "x", "-y", "-snl"),
    "python": by_python,
}
ZIP_PROGRAMS: dict[str, Program] = {
    "unzip": command("unzip", "-q", "-o"),
    "bsdtar": TAR_PROGRAMS["bsdtar"],
    "7z": TAR_PROGRAMS["7z"],
    "python": by_python,
}
COMPRESSED = ("tar", "bsdtar")  # programs that decompress a tar file themselves


def programs_for(archive: Path) -> dict[str, Program]:
    """Return the installed programs that unpack an archive."""
    found = ZIP_PROGRAMS if archive.suffix == ".zip" else TAR_PROGRAMS
    if archive.suffix not in (".zip", ".tar"):
        found = {name: found[name] for name in COMPRESSED}
    return {name: program for name, program in found.items() if name == "python" or shutil.which(name)}


def check(archive: Path, folder: Path) -> bool:
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
    is_plain = all(PLAIN_NAME.fullmatch(name) for name in ours)
    for name, program in programs_for(archive).items():
        # Names in no known character set are those of the locale for bsdtar, and of CP437 in a zip file.
        if not is_plain and (name not in COMPRESSED or archive.suffix == ".zip"):
            continue
        expected = ours
        if name == "python" and archive.suffix == ".zip":  # it writes links as files
            expected = {path: b"=" + there[1:] if there[:1] == b">" else there for path, there in ours.items()}
        assert unpacked_by(program, archive, folder / "theirs") in (expected, None), name
    return True


def check_case(case: str, archive: Path, folder: Path) -> bool:
    """Check one archive; an error names the case, and the archive is kept."""
    try:
        return check(archive, folder)
    except AssertionError as error:
        raise AssertionError(f"{case}: {archive}: {error}") from error


def trials(seed: int) -> Iterator[int]:
    """Yield the numbers of the trials; PRESSMARK_FUZZ_MINUTES replaces their count in the long form."""
    minutes = float(os.environ.get("PRESSMARK_FUZZ_MINUTES", 0)) if LONG else 0
    if not minutes:
        yield from range(RUNS // SEEDS)
    end = monotonic() + minutes * 60 / SEEDS
    yield from takewhile(lambda _: monotonic() < end, count(seed * 10**9) if minutes else ())


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


def seeds_of_programs(folder: Path, ending: str) -> list[bytes]:
    """Return archives of a small bag by the installed programs, in the long form: they depend on the machine."""
    payload = {b"data/" + b"d" * 60 + b"/" + b"n" * 60: b"long\n", b"data/a": b"alpha\n"}
    source = new_source(folder / "source", payload, linked=True)
    seeds = []
    archive = folder / f"seed.{ending}"
    for writer in WRITERS.values() if LONG else ():
        if writer.ending == ending and not writer.builds:
            archive.unlink(missing_ok=True)
            with suppress(Missing, AssertionError):  # a format of short names
                writer.write(source, archive)
                seeds.append(archive.read_bytes())
    return seeds


def drawn_tar(chance: random.Random) -> bytes:
    """Return a tar file of a bag whose one member has a header with drawn fields."""

    def number(width: int, value: int = 0) -> bytes:
        plain = b"%0*o\0" % (width - 1, value)
        forms = b"%*o \0" % (width - 2, value), b"%0*o " % (width - 1, value), b"%0*o" % (width, value)
        odd = bytes(width), b" " * width, b"\x80" + value.to_bytes(width - 1, "big"), b"\xff" * width, b"-1\0"
        return chance.choice((plain, plain, plain, *forms, *odd, plain[:-2] + b"8\0", b"\0" + plain[:-1]))

    name = chance.choice((b"bag/data/a", b"bag/data/a", b"./bag/data/a", b"bag/data/a/", b"x", b"data/a", b"a"))
    target = chance.choice((b"", b"", b"bag/bagit.txt", b"../bagit.txt", b"a"))
    fields = {
        "mode": (100, number(8, 0o644)),
        "user": (108, number(8)),
        "group": (116, number(8)),
        "time": (136, number(12)),
        "prefix": (345, chance.choice((b"", b"", b"", b"bag", b"bag/data", b"\0bag"))),
        "last": (500, chance.choice((b"", b"", b"", b"bag", bytes(8) + b"tar\0"))),
    }
    size = chance.choice((number(12, 6), number(12, 6), number(12, 0), number(12, 512)))
    kind = chance.choice(b"0000\0\x0071257DVSMNKLxgXAZ").to_bytes(1, "big")
    magic = chance.choice(
        (b"ustar\x0000", b"ustar\x0000", b"ustar  \0", bytes(8), b"ustar\0\0\0", b"ustar00\0", b"ustar\0  ")
    )
    member = header(name, size, kind, target, magic, **fields) + b"alpha\n".ljust(512, b"\0")
    records = [
        *((b"path", b"bag/data/a"), (b"path", b"bag/data/b"), (b"linkpath", b"a"), (b"size", b"6"), (b"size", b"512")),
        *((b"mtime", b"1.5"), (b"mtime", b"x"), (b"uid", b"1"), (b"comment", b"\0"), (b"hdrcharset", b"BINARY")),
        *((b"SCHILY.xattr.a", b"\0"), (b"SCHILY.filetype", b"dir"), (b"GNU.sparse.name", b"x"), (b"VENDOR.x", b"1")),
        *((b"SCHILY.realsize", b"6"), (b"GNU.sparse.realsize", b"3"), (b"LIBARCHIVE.symlinktype", b"dir")),
    ]
    before = [b"", b"", b"", long_name(b"bag/data/a"), long_name(b"bag/data/a", b"K")]
    before += [
        pax(*chance.sample(records, chance.randrange(1, 4)), kind=kind) for kind in (b"x", b"x", b"x", b"X", b"g")
    ]
    files = tag_files({b"data/a": b"alpha\n"} if chance.random() < 0.7 else {})
    members = [file(path, data) for path, data in files.items()]
    extra = chance.choice((b"", b"", file(b"bag/data/a", b"alpha\n"), header(b"bag/data/", 0, b"5")))
    members += [extra, b"".join(chance.choices(before, k=chance.choice((1, 1, 1, 2)))) + member]
    if chance.random() < 0.3:
        chance.shuffle(members)
    return b"".join(members) + chance.choice((END, END, END[:512], b""))


def drawn_zip(chance: random.Random) -> bytes:
    """Return a zip file of a bag whose one member has headers with drawn fields."""
    content = b"alpha\n"
    packed = zlib.compress(content, wbits=-15)
    name = chance.choice(
        (b"bag/data/a", b"bag/data/a", b"bag/data/a", b"bag/data/a/", b"./bag/data/a", b"bag\\data\\a")
    )
    sums = zlib.crc32(content), len(packed), len(content)
    extras = [
        *(entry_extra(number, b"") for number in (0xCAFE, 0x0001, 0x6C78, 0x9901, 0x7075)),
        *(entry_extra(0x7075, b"\1" + struct.pack("<L", zlib.crc32(name)) + other) for other in (name, b"bag/data/b")),
        *(entry_extra(0x756E, struct.pack("<L3HL", 0, mode, 0, 0, 0)) for mode in (0o100644, 0o120777, 0o040755)),
        *(entry_extra(0x0001, struct.pack("<QQ", *wide)) for wide in ((6, sums[1]), (0, 0), (6, 6))),
        *(entry_extra(0x5455, b"\1\0\0\0\0"), entry_extra(0x000D, bytes(12) + b"bagit.txt"), b"\0\0", b"xyz"),
    ]
    local = chance.choice((None, (0, 0, 0), (sums[0], 0, 0), (0, 0, 6), (0, *[0xFFFFFFFF] * 2), (0, 0, 5)))
    wide = struct.pack("<LQQ", *sums)
    short = struct.pack("<3L", *sums)
    member = Entry(
        name,
        content,
        system=chance.choice((0, 3, 3, 3, 10, 19, 7)),
        attributes=chance.choice((0, 0x20, 0x10, 0o100644 << 16, 0o100644 << 16, 0o120777 << 16, 0o040755 << 16)),
        flags=chance.choice((0, 8, 8, 8, 2, 0x800, 1 << chance.randrange(16))),
        extra=b"".join(chance.choices((b"", b"", *extras), k=chance.choice((1, 1, 2)))),
        local=b"".join(chance.choices((b"", b"", *extras), k=chance.choice((1, 1, 2)))),
        hidden=chance.choice(
            (*[b""] * 8, bytes(4), zip_of([Entry(b"bag/data/a", b"evil!\n")]).partition(b"PK\1\2")[0])
        ),
        packed=packed,
        method=8,
        sums=local,
        descriptor=chance.choice((b"", b"PK\7\x08" + short, b"PK\7\x08" + short, short, wide, b"PK\7\x08" + wide)),
    )
    if chance.random() < 0.3:
        member.local = member.extra
    if chance.random() < 0.3:
        member.method, member.packed = 0, content
    files = tag_files({b"data/a": content} if chance.random() < 0.9 else {})
    entries = [*(Entry(path, data) for path, data in files.items()), member]
    chance.shuffle(entries)
    whole = zip_of(entries)
    return chance.choice((*[whole] * 6, whole + b"x", whole[:-2] + b"\x16\0" + zip_of([]), b"x" + whole))


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
@pytest.mark.parametrize("seed", range(SEEDS))
def test_changed_tar_files(tmp_path: Path, seed: int) -> None:
    """Plain and compressed tar files, which are decompressed by other programs."""
    chance = random.Random(seed)
    seeds = list(CLEAR.values()) + seeds_of_programs(tmp_path, "tar")
    valid = 0
    for number in trials(seed):
        data = drawn_tar(chance) if chance.random() < 0.5 else changed_tar(chance.choice(seeds), chance)
        archive = tmp_path / "x.tar"
        archive.write_bytes(data)
        if number % 8 == 7:
            archive = tmp_path / "x.tar.gz"
            archive.write_bytes(gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :]))
        elif number % 8 == 6 and HAS_ZSTD and shutil.which("zstd"):
            archive = tmp_path / "x.tar.zst"
            archive.write_bytes(compressed(data))
        valid += check_case(f"seed {seed}, number {number}", archive, tmp_path)
    assert valid


@pytest.mark.fuzz
@pytest.mark.long
@needs_linux
@pytest.mark.parametrize("seed", range(SEEDS))
def test_changed_zip_files(tmp_path: Path, seed: int) -> None:
    """Zip files with changed bytes, or with drawn fields."""
    chance = random.Random(seed)
    seeds = zip_seeds(tmp_path) + seeds_of_programs(tmp_path, "zip")
    archive = tmp_path / "x.zip"
    valid = 0
    for number in trials(seed):
        archive.write_bytes(drawn_zip(chance) if chance.random() < 0.5 else changed_zip(chance.choice(seeds), chance))
        valid += check_case(f"seed {seed}, number {number}", archive, tmp_path)
    assert valid


@needs_linux
@pytest.mark.parametrize("case", [*CLEAR, *(f"zip, {case}" for case in CLEAR_ZIPS), "zip, as seeds"])
def test_programs_agree(tmp_path: Path, case: str) -> None:
    """All installed programs unpack the same files from the archives that the fuzzer changes."""
    kind, comma, name = case.partition(", ")
    archive = tmp_path / ("x.zip" if comma else "x.tar")
    for data in zip_seeds(tmp_path) if name == "as seeds" else [CLEAR_ZIPS[name] if comma else CLEAR[kind]]:
        archive.write_bytes(data)
        assert check(archive, tmp_path)
