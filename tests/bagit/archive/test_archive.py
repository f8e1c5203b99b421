"""Serialized bags: the verdict of the unpacked bag, and damaged, hostile or unusual archives."""

from __future__ import annotations

import bz2
import errno
import functools
import gzip
import io
import lzma
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit import validate
from pressmark.bagit.archive import Limits, open_archive, read, table, validate_archive
from pressmark.bagit.archive.members import clean_name
from pressmark.bagit.archive.unpack import unpack
from pressmark.errors import ArchiveError, BagError, SpillError
from pressmark.fs.moves import remove_tree
from pressmark.reports import ProgressEvent
from support.effort import LONG
from support.events import listening

from ..bags import Sketch
from ..rules import RULES
from .handmade import tag_files
from .packing import FORMATS, TARS, compressed, pack

CASES = {f"{number}: {case.words}": case for number, rule in enumerate(RULES, 1) for case in rule.cases}


def kinds(archive: Path, **options: Any) -> set[str]:
    return {found.kind for found in validate_archive(archive, **options).problems}


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """A valid bag with compressible and incompressible payload."""
    noise = random.Random(1).randbytes(20_000)
    payload = {b"data/a.txt": b"alpha\n" * 1000, b"data/b/noise": noise, b"data/empty": b""}
    size = sum(map(len, payload.values()))
    return Sketch(payload=payload, info=b"Payload-Oxum: %d.3\n" % size).write(tmp_path / "bag")


def tar_of(path: Path, *members: tuple[tarfile.TarInfo, bytes], **options: Any) -> Path:
    """Write a tar file of members and their contents."""
    with tarfile.open(path, "w:gz" if path.name.endswith("gz") else "w", **options) as tar:
        for member, data in members:
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def members_of(bag: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    return [
        (tarfile.TarInfo(f"bag/{path.relative_to(bag)}"), path.read_bytes())
        for path in sorted(bag.rglob("*"))
        if path.is_file()
    ]


def info(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, b""


# --- the verdict ------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("ending", ["tar", "tar.gz", "zip"])
@pytest.mark.parametrize("case", CASES)
def test_the_verdict_is_that_of_the_unpacked_bag(tmp_path: Path, case: str, ending: str) -> None:
    """Every bag of the rules table has the same problems in an archive."""
    bag = CASES[case].write(tmp_path / "bag")
    if ending == "zip" and any(path.is_symlink() or not (path.is_file() or path.is_dir()) for path in bag.rglob("*")):
        pytest.skip("zipfile packs what a link leads to")
    if any(path.is_socket() for path in bag.rglob("*")):
        pytest.skip("tar has no sockets")
    if ending == "zip" and any("\udc80" <= letter <= "\udcff" for path in bag.rglob("*") for letter in path.name):
        pytest.skip("zipfile packs names that are UTF-8")
    archive = pack(bag, tmp_path / f"packed.{ending}")
    # The levels take the same members, whatever the format is.
    for level in ("full", "complete", "oxum") if LONG or ending == "tar" else ("full",):
        of_directory, of_archive = validate(bag, level), validate_archive(archive, level)
        facts = [
            sorted((one.kind, one.severity, one.path, one.message, one.expected, one.found) for one in report.problems)
            for report in (of_directory, of_archive)
        ]
        assert facts[1] == facts[0]
        assert of_archive.counts == of_directory.counts
        assert of_archive.ok == of_directory.ok


@pytest.mark.parametrize("first", ["", "manifest", "tagmanifest", "data", "bagit"])
@pytest.mark.parametrize("ending", FORMATS)
def test_members_may_come_in_any_order(tmp_path: Path, ending: str, first: str) -> None:
    """Members may have any order; if a manifest follows the payload, a second pass computes missing digests."""
    algorithms = ["sha512", "blake2b512", "sha3256"]
    bag = Sketch(algorithms=algorithms, tag_algorithms=["md5", "sha3512"]).write(tmp_path / "bag")
    archive = pack(bag, tmp_path / f"x.{ending}", first=first)
    assert kinds(archive) == {"tag-manifest-algorithms"}
    (bag / "data" / "a.txt").write_bytes(b"Alpha\n")
    archive = pack(bag, archive, first=first)
    wrong = [one.algorithm for one in validate_archive(archive).problems if one.kind == "checksum-mismatch"]
    assert sorted(map(str, wrong)) == ["blake2b-512", "sha3-256", "sha512"]


@pytest.mark.parametrize("threads", [1, None])
def test_large_files_are_hashed_in_pieces(tmp_path: Path, threads: int | None) -> None:
    """Digests of large files are correct with and without threads, and progress is reported."""
    payload = {b"data/large": random.Random(2).randbytes(3_000_000)}
    bag = Sketch(payload=payload, info=b"Payload-Oxum: 3000000.1\n").write(tmp_path / "bag")
    for ending in ("tar", "tar.gz", "zip"):
        archive = pack(bag, tmp_path / f"x.{ending}")
        events: list[object] = []
        report = validate_archive(archive, threads=threads, progress=listening(events.append))
        assert (report.problems, report.counts["bytes"]) == ([], 3_000_000)
        assert all(isinstance(event, ProgressEvent) for event in events)


@pytest.mark.skipif(os.name != "posix", reason="needs links and pipes")
def test_links_and_special_files(tmp_path: Path, bag: Path) -> None:
    """Symbolic links are checked as in a directory, hard links are files, and nothing else is opened."""
    members = members_of(bag)
    outside = [info("bag/data/a", tarfile.SYMTYPE, "../../x"), info("bag/b", tarfile.SYMTYPE, "/etc/passwd")]
    assert kinds(tar_of(tmp_path / "x.tar", *members, *outside)) == {"link-outside"}
    odd = [info("bag/fifo", tarfile.FIFOTYPE), info("bag/null", tarfile.CHRTYPE)]
    assert kinds(tar_of(tmp_path / "y.tar", *members, *odd)) == {"file-special"}
    loop = [
        info("bag/c", tarfile.SYMTYPE, "d"),
        info("bag/d", tarfile.SYMTYPE, "c"),
        info("bag/e", tarfile.SYMTYPE, "f"),
    ]
    assert kinds(tar_of(tmp_path / "l.tar", *members, *loop)) == {"link-dangling"}
    through = [info("bag/data/l", tarfile.SYMTYPE, "b"), info("bag/data/l/evil")]
    assert "archive-member" in kinds(tar_of(tmp_path / "t.tar", *members, *through))
    # A file with two names is packed as a file and a link to it.
    (bag / "data" / "linked").hardlink_to(bag / "data" / "b" / "noise")
    manifest = bag / "manifest-sha512.txt"
    lines = manifest.read_bytes()
    noise = next(line for line in lines.splitlines() if b"noise" in line)
    manifest.write_bytes(lines + noise.replace(b"data/b/noise", b"data/linked") + b"\n")
    (bag / "bag-info.txt").unlink()
    (bag / "tagmanifest-sha512.txt").unlink()
    for ending in ("tar", "tar.gz"):
        archive = pack(bag, tmp_path / f"hard.{ending}")
        with tarfile.open(archive) as tar:
            assert any(member.islnk() for member in tar)
        assert kinds(archive) == set()
    for target in ("bag/missing", "bag/data", "../x", ""):
        hard = info("bag/tag", tarfile.LNKTYPE, target)
        assert kinds(tar_of(tmp_path / "h.tar", *members, hard)) == {"archive-member"}
    with zipfile.ZipFile(pack(bag, tmp_path / "z.zip"), "a") as zipped:
        link = zipfile.ZipInfo("bag/link")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        zipped.writestr(link, "../outside")
    assert kinds(tmp_path / "z.zip") == {"link-outside"}


# --- names ------------------------------------------------------------------------------------------------------------

DANGEROUS = (
    *(
        "..\\..\\x",
        "C:/x",
        "c:x",
        "../x",
        "bag/../../x",
        "/x",
        "//x",
        "\\\\server\\x",
        "~/x",
        "bag/..\\x",
        "bag/a\\..\\b",
    ),
    *("/", "bag/" + "n" * 256, "bag/" + "/".join(["n" * 200] * 25)),
)


@pytest.mark.parametrize("name", DANGEROUS, ids=lambda name: name[:20])
def test_dangerous_names(tmp_path: Path, bag: Path, name: str) -> None:
    """Dangerous names are reported in both formats, and nothing is written anywhere."""
    nest = tmp_path / "nest"
    nest.mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert clean_name(name.encode())[1] is not None
    assert kinds(tar_of(nest / "x.tar", *members_of(bag), info(name))) == {"archive-member"}
    archive = pack(bag, nest / "x.zip")
    with zipfile.ZipFile(archive, "a") as zipped:
        zipped.writestr(zipfile.ZipInfo(name), "" if name.endswith("/") else "x")
    assert kinds(archive) == {"archive-member"}
    os.unlink(nest / "x.tar")
    os.unlink(nest / "x.zip")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_name_with_a_nul(tmp_path: Path, bag: Path) -> None:
    """A name in a pax header may contain a NUL."""
    member, data = info("bag/x")
    member.pax_headers = {"path": "bag/x\0y"}
    archive = tar_of(tmp_path / "x.tar", *members_of(bag), (member, data), format=tarfile.PAX_FORMAT)
    assert kinds(archive) == {"archive-malformed"}


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name(tmp_path: Path, bag: Path) -> None:
    """Two members of one name, or of equivalent names, are an error; directories may repeat."""
    for name, expected in (("bag/data/a.txt", True), ("./bag//data/./a.txt", True), ("bag/data/a.txt/below", True)):
        archive = tar_of(tmp_path / "x.tar", *members_of(bag), info(name))
        assert ("archive-member" in kinds(archive)) == expected
    archive = tar_of(
        tmp_path / "x.tar", *members_of(bag), info("bag/data", tarfile.DIRTYPE), info("./", tarfile.DIRTYPE)
    )
    assert kinds(archive) == set()
    assert "archive-member" in kinds(tar_of(tmp_path / "x.tar", *members_of(bag), info("bag/data")))
    archive = pack(bag, tmp_path / "x.zip")
    with zipfile.ZipFile(archive, "a") as zipped:
        zipped.writestr("bag/data/a.txt", (bag / "data" / "a.txt").read_bytes())
    assert kinds(archive) == {"archive-member"}


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_tar_formats(tmp_path: Path, form: int) -> None:
    """Long names, names outside ASCII, and large numbers are read in every tar format."""
    names = [b"data/" + b"d" * 60 + b"/" + b"n" * 90]
    if form != tarfile.USTAR_FORMAT:
        names += [b"data/" + b"/".join([b"d" * 120] * 20), "data/é".encode(), b"data/\xff"]
    payload = {name: name for name in names}
    bag = Sketch(payload=payload, info=None).write(tmp_path / "bag")
    with tarfile.open(tmp_path / "x.tar", "w", format=form) as tar:
        tar.add(bag, "bag", filter=_with_a_large_number if form != tarfile.USTAR_FORMAT else None)
    of_directory = validate(bag)
    assert validate_archive(tmp_path / "x.tar").problems == of_directory.problems


def _with_a_large_number(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = 1 << 40
    return member


@pytest.mark.skipif(shutil.which("tar") is None or sys.platform != "linux", reason="needs GNU tar")
@pytest.mark.parametrize("form", ["gnu", "pax", "v7"])
def test_archives_of_gnu_tar(tmp_path: Path, form: str) -> None:
    """Archives of GNU tar are read, except sparse files, which are refused in all their formats."""
    bag = Sketch(payload={b"data/hole": bytes(2_000_000), b"data/a": b"a"}, info=None).write(tmp_path / "bag")
    (bag / "data" / "hole").write_bytes(b"")
    os.truncate(bag / "data" / "hole", 2_000_000)
    archive = tmp_path / "x.tar.gz"
    make = ["tar", "-czf", archive, f"-H{form}", "-C", tmp_path]
    subprocess.run([*make, "bag"], check=True)
    assert kinds(archive) == set()
    for version in {"gnu": ["0.0"], "pax": ["0.0", "0.1", "1.0"], "v7": []}[form]:
        subprocess.run([*make, "--sparse", f"--sparse-version={version}", "bag"], check=True)
        [problem] = validate_archive(archive).problems
        assert (problem.kind, problem.message[:28]) == ("archive-malformed", "sparse file 'bag/data/hole',")


# --- damage -----------------------------------------------------------------------------------------------------------


def touched(archive: Path, data: bytes) -> None:
    """Assert that a damaged archive gives no traceback and is not valid."""
    archive.write_bytes(data)
    try:
        report = validate_archive(archive)
    except BaseException as error:  # the exact error does not matter
        raise AssertionError(f"{archive}: {error!r}") from error
    assert not report.ok, archive


@pytest.mark.parametrize("ending", TARS[1:])
def test_damaged_trailers(tmp_path: Path, bag: Path, ending: str) -> None:
    """A trailer with a wrong checksum or any flipped bit, or none, is an error."""
    archive = pack(bag, tmp_path / f"x.{ending}")
    whole = archive.read_bytes()
    touched(archive, whole[:-8] + bytes(255 - byte for byte in whole[-8:]))
    touched(archive, whole[:-8])
    for bit in range(64):
        # The last byte of bzip2 is padding with undefined content; a checksum of zstd has four bytes.
        if (ending != "tar.bz2" or bit < 56) and (ending != "tar.zst" or bit >= 32):
            data = bytearray(whole)
            data[-8 + bit // 8] ^= 1 << bit % 8
            touched(archive, data)


def test_bytes_after_the_end(tmp_path: Path, bag: Path) -> None:
    """Trailing zeros are padding, a second stream is part of the first, and other bytes are reported."""
    for ending in FORMATS:
        archive = pack(bag, tmp_path / f"x.{ending}")
        whole = archive.read_bytes()
        archive.write_bytes(whole + b"more than nothing")
        # zstd itself refuses them: they may be the checksum that a damaged header no longer announces.
        is_damage = ending == "tar.zst"
        assert kinds(archive) == {"archive-malformed" if is_damage else "archive-extra"}, ending
        assert validate_archive(archive).ok != is_damage
        archive.write_bytes(whole + bytes(5000))
        assert kinds(archive) == set(), ending
    plain = (tmp_path / "x.tar").read_bytes().rstrip(b"\0") + bytes(1024 + 511)
    plain = plain[: len(plain) // 512 * 512]
    compressions = [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", compressed)]
    for name, compress in compressions[: len(TARS) - 1]:
        archive = tmp_path / f"x.tar.{name}"
        archive.write_bytes(compress(plain[:10_000]) + compress(plain[10_000:]) + bytes(64))
        assert kinds(archive) == set(), name
        archive.write_bytes(compress(plain[:10_000]) + bytes(64) + compress(plain[10_000:]))
        assert kinds(archive) == (set() if name == "xz" else {"archive-malformed"}), name
        archive.write_bytes(compress(plain[:10_000]) + b"x" + compress(plain[10_000:]))
        assert kinds(archive) == {"archive-malformed"}, name


def test_a_header_in_the_middle(tmp_path: Path, bag: Path) -> None:
    """A bad header in the middle is damage, even where other readers see the end of the archive."""
    archive = tar_of(tmp_path / "x.tar", *members_of(bag), (tarfile.TarInfo("bag/zz"), b"unlisted"))
    with tarfile.open(archive) as tar:
        place = tar.getmember("bag/zz").offset
    data = bytearray(archive.read_bytes())
    data[place] ^= 1
    touched(archive, data)
    archive.write_bytes(data[:place] + bytes(512) + data[place + 512 :])
    assert kinds(archive) == {"archive-malformed"}


def test_zip_headers_must_match(tmp_path: Path, bag: Path) -> None:
    """Name, method, sizes and CRC must agree between a ZIP file's local and central headers."""
    archive = pack(bag, tmp_path / "x.zip")
    whole = archive.read_bytes()
    with zipfile.ZipFile(archive) as zipped:
        member = zipped.getinfo("bag/data/b/noise")
    at = member.header_offset
    central = whole.rindex(b"bag/data/b/noise") - 46
    for place in (*range(at, at + 4), *range(at + 14, at + 26), at + 8, at + 30):
        data = bytearray(whole)
        data[place] ^= 1
        touched(archive, data)
    for place in (central + 16, central + 20, central + 24, central + 42, len(whole) - 22 + 10, len(whole) - 22 + 16):
        data = bytearray(whole)
        data[place] ^= 1
        touched(archive, data)
    data = bytearray(whole)
    data[central + 6] = 64
    touched(archive, data)
    assert "version 64" in validate_archive(archive).problems[0].message
    data = bytearray(whole)
    for place in (at + 6, central + 8):
        data[place] |= 1
    touched(archive, data)
    assert "encrypted" in validate_archive(archive).problems[0].message


def test_zip_formats(tmp_path: Path, bag: Path) -> None:
    """Streamed, ZIP64 and compressed ZIP files, and those without directory entries, are read."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.data = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: Any, /) -> int:
            self.data += bytes(data)
            return len(data)

    methods = {
        zipfile.ZIP_STORED: "",
        zipfile.ZIP_DEFLATED: "",
        zipfile.ZIP_BZIP2: "bzip2",
        zipfile.ZIP_LZMA: "LZMA",
    }
    for method, unsupported in methods.items():
        for force in (False, True):
            pipe = Pipe()
            with zipfile.ZipFile(pipe, "w", method) as zipped:  # type: ignore[arg-type]
                for path in sorted(bag.rglob("*")):
                    if path.is_file():
                        name = zipfile.ZipInfo(f"bag/{path.relative_to(bag).as_posix()}")
                        name.compress_type = method
                        with zipped.open(name, "w", force_zip64=force) as member:
                            member.write(path.read_bytes())
            archive = tmp_path / "x.zip"
            archive.write_bytes(pipe.data)
            for level in ("full", "complete"):
                problems = validate_archive(archive, level).problems
                assert {one.kind for one in problems} == ({"archive-malformed"} if unsupported else set())
                for one in problems:
                    reason = f"'bag/bag-info.txt' is compressed by {unsupported}, which is not supported"
                    assert one.message == f"{reason}; unpack the archive, and validate the directory"
    # The ZIP64 end record, otherwise only used from 4 GiB or 65,536 members on.
    data = pack(bag, archive).read_bytes()
    mark, disk, first, here, count, size, offset, _ = struct.unpack("<4s4H2LH", data[-22:])
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, here, count, size, offset)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(data) - 22, 1)
    last = struct.pack("<4s4H2LH", mark, disk, first, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    archive.write_bytes(data[:-22] + end + locator + last)
    assert kinds(archive) == set()
    archive.write_bytes(data[:-22] + end + locator.replace(b"PK\6\7\0", b"PK\6\7\1") + last)
    assert kinds(archive) <= {"archive-malformed"}


@pytest.mark.skipif(shutil.which("zip") is None, reason="needs Info-ZIP")
def test_archives_of_info_zip(tmp_path: Path, bag: Path) -> None:
    """Info-ZIP fills in only some of the fields before a descriptor."""
    archive = tmp_path / "x.zip"
    for options in (["-fd"], ["-fd", "-0"], []):
        with open(archive, "wb") as file:
            if options:
                archive.unlink()
                subprocess.run(["zip", "-qr", *options, archive, "bag"], check=True, cwd=tmp_path)
            else:  # to a pipe
                piped = subprocess.run(["zip", "-qr", "-", "bag"], check=True, cwd=tmp_path, stdout=subprocess.PIPE)
                file.write(piped.stdout)
        assert kinds(archive) == set(), options


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_sizes_beyond_any_file(tmp_path: Path, bag: Path, method: int) -> None:
    """A member whose 64-bit size no file can have is malformed, at every level."""
    archive = pack(bag, tmp_path / "x.zip")
    size = (1 << 64) - 1
    with zipfile.ZipFile(archive, "a", method) as zipped:
        zipped.writestr("bag/data/large", b"x" * 100)
        zipped.filelist[-1].file_size = size
        zipped._didModify = True  # type: ignore[attr-defined]
    for level in ("full", "complete", "oxum"):
        assert kinds(archive, level=level) == {"archive-malformed"}


def test_names_in_zip_files(tmp_path: Path) -> None:
    """Names in ZIP files are UTF-8 if flagged, bytes from Unix, and code page 437 otherwise."""
    bag = Sketch(payload={"data/é".encode(): b"e"}, info=None).write(tmp_path / "bag")
    text, old = "bag/data/é".encode(), "bag/data/é".encode("cp437")
    field = b"\1" + struct.pack("<L", zlib.crc32(b"bag/data/_")) + text
    field = struct.pack("<HH", 0x7075, len(field)) + field
    forms = [(text, 0x800, 0, b""), (text, 0, 3, b""), (old, 0, 0, b""), (b"bag/data/_", 0, 0, field)]
    for name, flags, system, extra in forms:
        archive = tmp_path / "x.zip"
        with zipfile.ZipFile(archive, "w") as zipped:
            for path in bag.rglob("*.txt"):
                zipped.write(path, Path("bag") / path.relative_to(bag))
            member = zipfile.ZipInfo("bag/data/@" + "@" * (len(name) - 10))
            member.create_system, member.extra = system, extra
            zipped.writestr(member, b"e")
        data = archive.read_bytes().replace(member.filename.encode(), name)
        data = _with_flags(data, name, flags)
        archive.write_bytes(data)
        assert kinds(archive) == set(), name
    archive.write_bytes(_with_flags(data.replace(b"bag/data/_", b"bag/data/\xff"), b"bag/data/\xff", 0x800))
    assert kinds(archive) == {"archive-malformed"}


def _with_flags(data: bytes, name: bytes, flags: int) -> bytes:
    changed = bytearray(data)
    local, central = data.index(name) - 30, data.rindex(name) - 46
    struct.pack_into("<H", changed, local + 6, flags)
    struct.pack_into("<H", changed, central + 8, flags)
    return bytes(changed)


# --- archive bombs ----------------------------------------------------------------------------------------------------


def with_checksum(header: bytearray) -> bytes:
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


def raw(name: str, kind: bytes, size: int, **options: Any) -> bytes:
    """Return a header without content."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT, **options)


@functools.cache
def bombs() -> dict[str, bytes]:
    """Return small archives that expand to large ones, by description."""
    end = bytes(1024)
    pax = b"%d path=%s\n"
    huge = 1 << 40
    deep = b"/".join([b"d"] * 2000)
    return {
        "pax header of 1 TiB": raw("x", b"x", huge) + bytes(1 << 20),
        "long name of 1 TiB": raw("x", b"L", huge) + bytes(1 << 20),
        "many pax headers": (raw("x", b"x", 512) + (b"512 comment=" + b"x" * 499 + b"\n")) * 4000 + end,
        "many long names": raw("x", b"L", 0) * 10_000 + end,
        "a member that is longer than the archive": raw("bag/data/x", b"0", huge) + bytes(10_000),
        "zeros": raw("bag/data/x", b"0", 1 << 33) + bytes(1 << 20),
        "directories": raw("x", b"L", len(deep)) + deep.ljust(4096, b"\0") + raw("x", b"5", 0) + end,
        "malformed pax": raw("x", b"x", 20) + (pax % (99, b"x")).ljust(512, b"\0") + end,
        "pax length of 0": raw("x", b"x", 6) + b"0 a=b\n".ljust(512, b"\0") + end,
        "global name": raw("x", b"g", 9) + b"9 path=x\n".ljust(512, b"\0") + end,
        "pax at the end": raw("x", b"x", 9) + b"9 path=x\n".ljust(512, b"\0") + end,
        "size of 80 bits": with_checksum(
            bytearray(raw("x/y", b"0", 0)[:124] + b"\x80" + b"\x7f" * 11 + raw("x/y", b"0", 0)[136:])
        )
        + end,
        "pax size of 20 digits": raw("x", b"x", 29)
        + (b"29 size=" + b"9" * 20 + b"\n").ljust(512, b"\0")
        + raw("x/y", b"0", 0)
        + end,
        "negative size": with_checksum(bytearray(raw("x", b"0", 0)[:124] + b"\xff" * 12 + raw("x", b"0", 0)[136:]))
        + end,
        "size in words": with_checksum(bytearray(raw("x", b"0", 0)[:124] + b"size in word" + raw("x", b"0", 0)[136:]))
        + end,
    }


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("what", bombs())
def test_tar_bombs(tmp_path: Path, bag: Path, what: str, compressed: bool) -> None:
    """A tar bomb is refused quickly."""
    data = bombs()[what]
    archive = tmp_path / ("x.tar.gz" if compressed else "x.tar")
    good = b"".join(
        member.tobuf() + content + bytes(-len(content) % 512)
        for member, content in ((m, c) for m, c in members_of(bag) if not setattr(m, "size", len(c)))
    )
    archive.write_bytes(gzip.compress(good + data) if compressed else good + data)
    for level in ("full", "complete"):
        found = kinds(archive, level=level, limits=Limits(members=1000, expanded=64 << 20))
        assert found <= {"archive-malformed", "archive-limit"}
        assert found, what


def test_ratio(tmp_path: Path) -> None:
    """A small archive must not expand without limit; a large one may expand more."""
    assert Limits().expansion(10) == 1 << 30
    assert Limits().expansion(1 << 30) == 200 << 30
    bag = Sketch(payload={b"data/zeros": bytes(4_000_000)}, info=None).write(tmp_path / "bag")
    for ending in FORMATS[1:]:
        archive = pack(bag, tmp_path / f"x.{ending}")
        assert kinds(archive) == set()
        assert kinds(archive, limits=Limits(expanded=2_000_000, ratio=2)) == {"archive-limit"}
    assert kinds(pack(bag, tmp_path / "x.tar"), limits=Limits(expanded=2_000_000, ratio=2)) == set()


def test_limits(tmp_path: Path, bag: Path) -> None:
    """Members and tag files are limited; the error names the option that raises the limit."""
    for ending in FORMATS:
        archive = pack(bag, tmp_path / f"x.{ending}")
        for limits in (Limits(members=3), Limits(manifests=2), Limits(tag_files=100, per_member=1)):
            report = validate_archive(archive, limits=limits)
            assert [one.kind for one in report.problems] == ["archive-limit"]
            assert "unpack it" in report.problems[0].message
    with (
        pytest.raises(ArchiveError, match="more than 3 members") as caught,
        open_archive(archive, Limits(members=3)) as a,
    ):
        list(a.members())
    assert caught.value.kind == "archive-limit"


def test_zip_bombs(tmp_path: Path, bag: Path) -> None:
    """Overlapping members, wrong lengths and an oversized central directory are refused."""
    archive = pack(bag, tmp_path / "x.zip")
    data = archive.read_bytes()
    _, _, _, _, count, size, offset, _ = struct.unpack("<4s4H2LH", data[-22:])
    central = data[offset : offset + size]
    many = data[:offset] + central * 5
    many += struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, count * 5, count * 5, size * 5, offset, 0)
    touched(archive, many)
    assert "overlap" in validate_archive(archive).problems[0].message
    for wrong in (count - 1, count + 1, 0):
        touched(archive, data[:-22] + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, wrong, wrong, size, offset, 0))
    for length in (0, 10, 1 << 31):
        changed = bytearray(data)
        with zipfile.ZipFile(io.BytesIO(data)) as zipped:
            member = zipped.getinfo("bag/data/a.txt")
        struct.pack_into("<L", changed, member.header_offset + 22, length)
        struct.pack_into("<L", changed, data.rindex(b"bag/data/a.txt") - 46 + 24, length)
        touched(archive, changed)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak of memory from /proc")
def test_memory_is_flat(tmp_path: Path) -> None:
    """Memory does not grow with the number of members or of zeros."""
    script = """
import sys
from pressmark.bagit.archive import validate_archive
report = validate_archive(sys.argv[1])
print([line for line in open("/proc/self/status") if line.startswith("VmHWM")][0].split()[1], len(report.problems))
"""
    small = pack(Sketch().write(tmp_path / "small"), tmp_path / "small.tar.gz")
    zeros = tmp_path / "zeros.tar.gz"
    with gzip.open(zeros, "wb", 1) as file:
        file.write(raw("bag/data/x", b"0", 64 << 20))
        for _ in range(64):
            file.write(bytes(1 << 20))
        file.write(bytes(1024))
    names = tmp_path / "names.tar.gz"
    with gzip.open(names, "wb", 1) as file:
        for number in range(10_000):
            file.write(raw(f"bag/data/{number % 100}/{'n' * 60}{number}", b"0", 0))
        file.write(bytes(1024))
    peaks = {}
    for archive in (small, zeros, names):
        done = subprocess.run([sys.executable, "-c", script, archive], capture_output=True, text=True, check=True)
        peaks[archive] = int(done.stdout.split()[0])
    assert peaks[zeros] < peaks[small] + 16_000
    assert peaks[names] < peaks[small] + 20_000  # mostly for problems


# --- system errors ----------------------------------------------------------------------------------------------------


def test_a_full_disk_is_not_a_problem_of_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is reported as such, not as a problem of the bag."""
    payload = {b"data/%d" % number: b"" for number in range(200)}
    archive = pack(Sketch(payload=payload, info=None).write(tmp_path / "bag"), tmp_path / "x.tar.gz")
    monkeypatch.setattr(table, "TAG_FILES_IN_MEMORY", 1000)
    assert kinds(archive) == set()

    def full(*_args: object, **_options: object) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    problems: list[object] = []
    with pytest.raises(SpillError, match=r"No space left.*TMPDIR") as caught:
        validate_archive(archive, progress=listening(on_problem=problems.append))
    assert isinstance(caught.value.__cause__, OSError)
    assert problems == []


def test_a_full_disk_of_the_table(tmp_path: Path, bag: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk reported by the database is an error of the system."""
    connect = table.sqlite3.connect

    def small(*args: Any, **options: Any) -> Any:
        base = connect(*args, **options)
        base.execute("PRAGMA max_page_count = 4")
        return base

    monkeypatch.setattr(table.sqlite3, "connect", small)
    archive = pack(bag, tmp_path / "x.tar")
    archive = tar_of(archive, *members_of(bag), *(info(f"bag/data/{'n' * 200}{number}") for number in range(200)))
    with pytest.raises(SpillError, match="full") as caught:
        validate_archive(archive)
    assert isinstance(caught.value.__cause__, OSError)


def test_system_errors(tmp_path: Path) -> None:
    """A system error, or a path that is not a file, is an error, not a verdict."""
    with pytest.raises(BagError, match="No such file"):
        validate_archive(tmp_path / "missing.tar")
    with pytest.raises(BagError):
        validate_archive(tmp_path)
    with pytest.raises(ValueError, match="level"):
        validate_archive(tmp_path, "whole")


@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_an_archive_that_changes(tmp_path: Path, bag: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """An archive that changes during the read is not reported as damaged."""
    archive = pack(bag, tmp_path / "x.tar")

    def changing(name: bytes, kind: str = "directory") -> tuple[bytes, str | None]:
        os.truncate(archive, size)
        return clean_name(name)

    monkeypatch.setattr(read, "clean_name", changing)
    assert kinds(archive) == {"file-changing"}


def test_members_are_listed(tmp_path: Path, bag: Path) -> None:
    """Members are listed by name, kind and size, and their content can be read once."""
    for ending in FORMATS:
        with open_archive(pack(bag, tmp_path / f"x.{ending}")) as archive:
            found = {
                member.name.rstrip(b"/"): (member.kind, member.size, b"".join(member.blocks()))
                for member in archive.members()
            }
            assert found[b"bag/data/b"][:2] == ("directory", 0)
            content = (bag / "data" / "a.txt").read_bytes()
            assert found[b"bag/data/a.txt"] == ("file", len(content), content)
            assert archive.seekable == (ending in ("tar", "zip"))
            # A second pass starts at the first member, without content.
            assert {member.name.rstrip(b"/") for member in archive.members()} == set(found)


def test_a_file_without_digests_does_not_match(bag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listed file whose digest was not computed is a problem, not a match."""
    archive = pack(bag, tmp_path / "bag.tar.gz")
    assert validate_archive(archive).problems == []
    monkeypatch.setattr(read.Members, "digests", lambda _members, _node: {})
    found = validate_archive(archive).problems
    assert {one.kind for one in found} == {"file-unreadable"}
    assert {one.path for one in found} >= {"data/a.txt", "data/b/noise", "data/empty"}


TOPS = {
    "two directories": (
        ["other/x"],
        "not exactly one top-level directory: 'bag', 'other'; pack the directory of the bag only",
    ),
    "a file": (["x", "y"], "not exactly one top-level directory: 'bag', 'x', 'y'; pack the directory of the bag only"),
}


@pytest.mark.parametrize("ending", FORMATS)
def test_what_lies_at_the_top(bag: Path, tmp_path: Path, ending: str) -> None:
    """An archive with something beside the bag is malformed; the message names it, or that the bag has no directory."""
    whole = shutil.copytree(bag, tmp_path / "whole" / "bag").parent
    for number, (names, message) in enumerate(TOPS.values()):
        above = shutil.copytree(whole, tmp_path / str(number))
        for name in names:
            (above / name).parent.mkdir(exist_ok=True)
            (above / name).write_bytes(b"x")
        [problem] = validate_archive(pack(above, tmp_path / f"x.{ending}", name=".")).problems
        assert (problem.kind, problem.message) == ("archive-malformed", message)
    [problem] = validate_archive(pack(bag, tmp_path / f"x.{ending}", name=".")).problems
    message = "files of the bag are at the top of the archive; pack the directory of the bag"
    assert (problem.kind, problem.message) == ("archive-malformed", message)


@pytest.mark.parametrize("first", ["", "._bag", "__MACOSX"])
@pytest.mark.parametrize("ending", FORMATS)
def test_files_of_an_operating_system(bag: Path, tmp_path: Path, ending: str, first: str) -> None:
    """Beside the bag they are a warning, and are not unpacked; in it, they are its files."""
    above = shutil.copytree(bag, tmp_path / "whole" / "bag").parent
    (above / "__MACOSX" / "bag").mkdir(parents=True)
    for name in ("._bag", ".DS_Store", "__MACOSX/bag/._data"):
        (above / name).write_bytes(b"x")
    archive = pack(above, tmp_path / f"x.{ending}", name=".", first=first)
    report = validate_archive(archive)
    assert [(one.kind, one.severity) for one in report.problems] == [("archive-junk", "warning")]
    assert re.fullmatch(
        "[45] members that an operating system added beside the bag, such as '.*'", report.problems[0].message
    )
    unpack(archive, tmp_path / "new")
    assert validate(tmp_path / "new").problems == []
    assert sorted(os.listdir(tmp_path / "new")) == sorted(os.listdir(bag))
    (above / "bag" / "data" / "._a.txt").write_bytes(b"x")
    found = validate_archive(pack(above, archive, name=".")).problems
    assert ("file-unlisted", "data/._a.txt") in {(one.kind, one.path) for one in found}
    if os.name == "posix":  # programs unpack through a link
        link = tmp_path / "whole" / "__MACOSX" / "link"
        link.symlink_to("..")
        if ending != "zip":
            assert "archive-malformed" in kinds(pack(above, archive, name="."))


def test_deep_directories(tmp_path: Path) -> None:
    """A small archive names no more directories than its size allows, and a deep one is unpacked."""
    deep = "/".join(["d"] * 1100)
    payload = {b"data/a": b"a", b"data/%b/f" % deep.encode(): b"f"}
    files = tag_files(payload) | {b"bag/" + name: data for name, data in payload.items()}
    members = [(tarfile.TarInfo(name.decode()), data) for name, data in files.items()]
    archive = tar_of(tmp_path / "x.tar.gz", *members)
    assert kinds(archive) == set()
    unpack(archive, tmp_path / "new")
    remove_tree(os.fsencode(tmp_path / "new"))  # pytest cannot
    more = [info(f"bag/{number}/{deep}") for number in range(30)]
    archive = tar_of(tmp_path / "x.tar.gz", *members, *more)
    [problem] = validate_archive(archive).problems
    message = f"more than 20000 members and directories, in {archive.stat().st_size} bytes"
    assert (problem.kind, problem.message.partition(";")[0]) == ("archive-limit", message)
