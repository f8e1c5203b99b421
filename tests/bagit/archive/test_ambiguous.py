"""Archives that programs unpack in different ways: none of them is valid.

The reader accepts a list of what a header may contain. Here are the fields that the list leaves out. Many were found by
unpacking an archive with GNU tar 1.34, bsdtar 3.6, UnZip 6.0, 7-Zip or Python as well, which wrote other files than
those that had been validated.
"""

from __future__ import annotations

import gzip
import io
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit.archive import validate_archive
from pressmark.bagit.archive.unpack import unpack
from pressmark.errors import BagInvalidError

from .handmade import END, Entry, entry_extra, file, header, long_name, pax, tag_files, zip_of

A = b"alpha\n"
NAME = b"bag/data/a"
GNU = b"ustar  \0"


def tar_of(*members: bytes, a: bytes = A, **more: bytes) -> bytes:
    """Return a tar file of a bag with the payload file ``data/a``, whose member is among ``members``."""
    payload = {b"data/a": a, **{b"data/" + name.encode(): data for name, data in more.items()}}
    return b"".join([*(file(name, data) for name, data in tag_files(payload).items()), *members, END])


def sparse(*records: tuple[str, str]) -> bytes:
    """Return a member with records of sparse files in a pax header."""
    return pax(*((key.encode(), value.encode()) for key, value in records)) + file(NAME, A)


def link(target: bytes, kind: bytes = b"2", name: bytes = b"bag/data/l") -> bytes:
    return pax((b"linkpath", target)) + header(name, 0, kind, b"x")


FILE = file(NAME, A)
OTHER = file(b"bag/data/q", A)
PATH = pax((b"path", NAME))
TIME = pax((b"mtime", b"1"))
SIZE = ("GNU.sparse.size", "6"), ("GNU.sparse.numblocks", "1")

# Archives of the same kinds that all programs unpack alike.
CLEAR: dict[str, bytes] = {
    "pax": tar_of(PATH, OTHER),
    "gnu": tar_of(long_name(NAME), OTHER),
    "gnu name and target": tar_of(
        FILE, long_name(b"bag/data/l"), long_name(NAME, b"K"), header(b"x", 0, b"1", b"x"), l=A
    ),
    "volume name": tar_of(header(b"volume", 0, b"V", magic=GNU), FILE),
    "contiguous": tar_of(file(NAME, A, b"7")),
    "hard link": tar_of(FILE, link(b"./" + NAME, b"1"), l=A),
    "directory of Unix V7": tar_of(FILE, file(b"bag/d/", b"", b"\0")),
    "other numbers": tar_of(
        header(NAME, len(A), mode=(100, b"  644 \0\0"), user=(108, b"\x80" + bytes(7)), group=(116, bytes(8)))
        + FILE[512:],
        header(b"bag/tag", 0, time=(136, b"\xff" * 12)),
    ),
    "prefix": tar_of(header(b"a", len(A), prefix=(345, b"bag/data")) + FILE[512:]),
    "link": tar_of(FILE, link(b"../data//./a"), l=A),
    "global comment": tar_of(pax((b"comment", b"x"), kind=b"g"), FILE),
    "version of NULs": tar_of(header(NAME, len(A), magic=b"ustar\0\0\0") + FILE[512:]),
    "Unix V7": tar_of(header(NAME, len(A), magic=bytes(8), devices=(329, b"0000000\x000000000\0")) + FILE[512:]),
    "records": tar_of(
        pax(
            *((b"path", NAME), (b"size", b"6"), (b"mtime", b"-1.5"), (b"uid", b"1000"), (b"uname", b"\xc3\xa9")),
            *((b"SCHILY.xattr.user.x", b"\xff\n"), (b"LIBARCHIVE.creationtime", b"1"), (b"hdrcharset", b"BINARY")),
        ),
        OTHER,
    ),
}
TARS: dict[str, bytes] = {
    "two pax headers": tar_of(PATH, TIME, OTHER),
    "record with a NUL": tar_of(pax((b"path", NAME), (b"SCHILY.xattr.user.x", b"\0")), OTHER),
    "hard link without a target in its header": tar_of(
        FILE, pax((b"linkpath", NAME)) + header(b"bag/data/l", 0, b"1"), file(b"bag/tag", b""), l=A
    ),
    "unknown record": tar_of(pax((b"VENDOR.type", b"5")), FILE),
    "repeated record": tar_of(pax((b"path", b"bag/q"), (b"path", NAME)), OTHER),
    "time in words": tar_of(pax((b"mtime", b"now")), FILE),
    "length that begins with a zero": tar_of(file(b"x", b"019 path=bag/data/a\n", b"x"), OTHER),
    "empty name in a record": tar_of(pax((b"path", b"")), FILE),
    "other size in a record": tar_of(pax((b"size", b"6")), file(NAME, A, size=0)),
    "character set of a record": tar_of(pax((b"hdrcharset", b"latin1")), FILE),
    "unknown global record": tar_of(pax((b"hdrcharset", b"BINARY"), kind=b"g"), FILE),
    "global header after an extended one": tar_of(PATH, pax((b"comment", b"x"), kind=b"g"), OTHER),
    "long name with a NUL": tar_of(long_name(NAME + b"\0x"), OTHER),
    "volume name in a directory": tar_of(header(b"bag/data/v", 0, b"V", magic=GNU), FILE),
    "unknown type": tar_of(FILE, file(b"bag/data/z", A, b"Z"), z=A),
    "part of a file of several volumes": tar_of(FILE, file(b"bag/data/z", A, b"M"), z=A),
    "unknown magic": tar_of(header(NAME, len(A), magic=b"tar\0\0\0\0\0") + FILE[512:]),
    "bytes after the prefix": tar_of(header(NAME, len(A), star=(508, b"tar\0")) + FILE[512:]),
    "link with a size": tar_of(FILE, header(b"bag/data/l", 1, b"2", b"a"), l=A),
    "hard link with a size": tar_of(FILE, header(b"bag/data/l", 512, b"1", NAME), file(b"bag/tag", b""), l=A),
    "directory with a list of names": tar_of(FILE, header(b"bag/d/", 0, b"D", magic=GNU)),
    "directory with a size": tar_of(FILE, header(b"bag/d/", 512, b"5")),
    "block of zeros in the middle": tar_of(bytes(512), FILE),
    "bytes after a checksum": tar_of(FILE[:155] + b"$" + FILE[156:]),
    "mode after a NUL": tar_of(header(NAME, len(A), mode=(100, b"\x0000644\0\0")) + FILE[512:]),
    "bytes after a number": tar_of(header(NAME, len(A), mode=(100, b"  644 \0x")) + FILE[512:]),
    "two long names": tar_of(long_name(b"bag/data/z"), long_name(NAME), OTHER),
    "pax header, then a long name": tar_of(pax((b"path", b"bag/data/z")), long_name(NAME), OTHER),
    "long name, then a pax header": tar_of(long_name(b"bag/data/z"), PATH, OTHER),
    "size after a NUL": tar_of(file(b"bag/hidden", b"", size=b"\x000000001000"), FILE),
    "blank size": tar_of(FILE, header(b"bag/tag", b" " * 12)),
    "volume name with content": tar_of(header(b"volume", 1024, b"V", magic=GNU), FILE),
    "volume name with a pax header": tar_of(TIME, header(b"volume", 0, b"V", magic=GNU), FILE),
    "contiguous directory": tar_of(file(NAME + b"/", A, b"7")),
    "file with a slash": tar_of(file(NAME + b"/", A)),
    "empty file with a slash": tar_of(FILE, file(b"bag/d/", b"")),
    "old file with a slash": tar_of(file(NAME + b"/", A, b"\0")),
    "long name of a file with a slash": tar_of(FILE, long_name(b"bag/d/"), file(b"bag/d", b"")),
    "hard link with content": tar_of(FILE, header(b"bag/data/l", 1024, b"1", NAME), END, file(b"bag/hidden", b""), l=A),
    "hard link with a size at the end": tar_of(FILE, header(b"bag/data/l", 512, b"1", NAME), l=A),
    **{
        f"{name} in words": tar_of(header(NAME, len(A), field=(at, b"0words\0")) + FILE[512:])
        for name, at in (("mode", 100), ("user", 108), ("group", 116), ("time", 136))
    },
    "device in words": tar_of(header(NAME, len(A), device=(329, b"0words\0")) + FILE[512:]),
    "time without its end": tar_of(header(NAME, len(A), time=(136, b"00000000000x")) + FILE[512:]),
    "prefix without a format": tar_of(header(b"a", len(A), magic=bytes(8), prefix=(345, b"bag/data")) + FILE[512:]),
    "prefix in a header of GNU": tar_of(header(NAME, len(A), magic=GNU, prefix=(345, b"x/y")) + FILE[512:]),
    "file with a dot behind a slash": tar_of(file(NAME + b"/.", A)),
    "unknown format with a prefix": tar_of(header(NAME, len(A), magic=b"ustar00", prefix=(345, b"x/y")) + FILE[512:]),
    "hard link to a slash": tar_of(FILE, link(NAME + b"/", b"1"), l=A),
    "hard link with a pax size": tar_of(FILE, pax((b"size", b"512")), header(b"bag/data/l", 0, b"1", NAME), l=A),
    "directory with a pax size": tar_of(FILE, pax((b"size", b"512")), header(b"bag/d/", 0, b"5")),
    "two sizes": tar_of(pax((b"SCHILY.realsize", b"3")), FILE),
    "link with a NUL": tar_of(FILE, link(b"a\0b"), l=A),
    "link to nothing": tar_of(FILE, header(b"bag/l", 0, b"2")),
    "link that is too long": tar_of(FILE, link(b"./" * 2047 + b"/a"), l=A),
    "link through a file": tar_of(FILE, link(b"a/../a"), l=A),
    "link to a file with a slash": tar_of(FILE, link(b"a/"), l=A),
    "link to a file with a dot": tar_of(FILE, link(b"a/."), l=A),
}


# Sparse files in each format: every one is described as a file of its stored content.
SPARSE: dict[str, bytes] = {
    "old format of GNU": header(NAME, len(A), b"S", magic=GNU, map=(386, b"%011o\0%011o\0" % (0, 6)))
    + file(b"", A)[512:],
    "old format in a ustar header": header(NAME, len(A), b"S") + file(b"", A)[512:],
    "0.0": sparse(*SIZE, ("GNU.sparse.offset", "0"), ("GNU.sparse.numbytes", "6")),
    "0.1": sparse(*SIZE, ("GNU.sparse.map", "0,6")),
    "1.0": sparse(("GNU.sparse.major", "1"), ("GNU.sparse.minor", "0"), ("GNU.sparse.realsize", "6")),
    "size only": sparse(("GNU.sparse.realsize", "6")),
    "Solaris": sparse(("SUN.holesdata", " 0 6")),
    "of a link": pax((b"GNU.sparse.name", NAME)) + header(NAME, 0, b"2", b"data/a"),
}
TARS |= {f"sparse, {case}": tar_of(member) for case, member in SPARSE.items()}
TARS["sparse, of all members"] = tar_of(pax((b"SUN.holesdata", b" 0 6"), kind=b"g"), FILE)


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


def streamed(name: bytes, data: bytes, **more: Any) -> Entry:
    """Return a compressed member whose sums follow it."""
    packed = deflated(data)
    sums = struct.pack("<4s3L", b"PK\7\x08", zlib.crc32(data), len(packed), len(data))
    return Entry(
        name, data, **{"flags": 8, "method": 8, "packed": packed, "sums": (0, 0, 0), "descriptor": sums} | more
    )


def bag_of(*entries: Entry, **more: bytes) -> list[Entry]:
    payload = {b"data/a": A, **{b"data/" + name.encode(): data for name, data in more.items()}}
    return [*(Entry(name, data) for name, data in tag_files(payload).items()), *entries]


def other_name(raw: bytes, name: bytes) -> bytes:
    """Return an extra field with the name in UTF-8."""
    return entry_extra(0x7075, b"\1" + struct.pack("<L", zlib.crc32(raw)) + name)


def two_directories(*, is_64_right: bool) -> bytes:
    """Return a zip file with two central directories, of which the 64-bit end and the other end name one each."""
    evil = b"EVIL!\n"
    head = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 33, zlib.crc32(evil), len(evil), len(evil), len(NAME), 0)
    data = zip_of(bag_of(Entry(NAME, A, hidden=head + NAME + evil)))
    number, size, at = struct.unpack("<H2L", data[-12:-2])
    right = data[at : at + size]
    wrong = bytearray(right)
    record = wrong.rindex(b"PK\1\2")
    wrong[record + 16 : record + 20] = struct.pack("<L", zlib.crc32(evil))
    offset = struct.unpack("<L", wrong[record + 42 : record + 46])[0] - len(head + NAME + evil)
    wrong[record + 42 : record + 46] = struct.pack("<L", offset)
    ends = [at, at + size]
    short, long = ends if is_64_right else reversed(ends)
    found = data[:at] + wrong + right
    end_64 = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, number, number, size, long)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, len(found), 1)
    return found + end_64 + locator + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, number, number, size, short, 0)


def far_locator() -> bytes:
    """Return a zip file whose locator does not lead to the record before it."""
    data = zip_of(bag_of(Entry(NAME, A)))
    number, size, at = struct.unpack("<H2L", data[-12:-2])
    end_64 = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, number, number, size, at)
    return data[:-22] + end_64 + struct.pack("<4sLQL", b"PK\6\7", 0, at, 1) + data[-22:]


def other_part() -> bytes:
    """Return a zip file whose 64-bit end describes one part, and whose other end describes several."""
    data = zip_of(bag_of(Entry(NAME, A)))
    number, size, at = struct.unpack("<H2L", data[-12:-2])
    end_64 = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, number, number, size, at)
    locator = struct.pack("<4sLQL", b"PK\6\7", 0, at + size, 1)
    return data[:-22] + end_64 + locator + data[-22:-18] + b"\0\xec" + data[-16:]


def other_disk() -> bytes:
    """Return a zip file whose locator says that its 64-bit end is on another disk."""
    data = far_locator()
    at = data.rindex(b"PK\6\7")
    end_64 = struct.pack("<Q", data.rindex(b"PK\6\6"))
    return data[: at + 4] + b"\0\0\10\0" + end_64 + data[at + 16 :]


LINK = 0o120777 << 16
LINK_FIELD = entry_extra(0x000D, bytes(12) + b"a")
OLD_LINK = struct.pack("<L3HL", 0, 0o120777, 0, 0, 0)
TWO_NAMES = other_name(b"bag/q", NAME)
ZIPS: dict[str, bytes] = {
    "two names that all programs could write": zip_of(bag_of(Entry(b"bag/q", A, extra=TWO_NAMES, local=TWO_NAMES))),
    "name of another": zip_of(bag_of(Entry(NAME, A, extra=TWO_NAMES, local=TWO_NAMES))),
    "name in another directory": zip_of(
        bag_of(Entry(NAME, A, extra=(names := other_name(NAME, "bag/dätä".encode())), local=names))
    ),
    "unknown extra field, central": zip_of(bag_of(Entry(NAME, A, extra=LINK_FIELD))),
    "unknown extra field, local": zip_of(bag_of(Entry(NAME, A, local=LINK_FIELD))),
    "bytes after the extra fields": zip_of(bag_of(Entry(NAME, A, extra=b"xyz"))),
    "sizes of an odd length": zip_of(bag_of(Entry(NAME, A, extra=entry_extra(1, bytes(9))))),
    **{f"flag {bit}": zip_of(bag_of(Entry(NAME, A, flags=1 << bit))) for bit in (0, 4, 5, 6, 7, 12, 13, 15)},
    "unknown system": zip_of(bag_of(Entry(NAME, A, system=1))),
    "member on another disk": zip_of(bag_of(Entry(NAME, A, disk=1))),
    "directory with a sum": zip_of(bag_of(Entry(NAME, A), Entry(b"bag/d/", b"x", packed=b"", sums=(0, 0, 0)))),
    "bytes between members": zip_of(bag_of(Entry(NAME, A, hidden=bytes(4)))),
    "bytes before the members": b"#!/bin/sh\n" + zip_of(bag_of(Entry(NAME, A))),
    "two ends": zip_of(bag_of(Entry(NAME, A)))[:-2] + b"\x30\0" + zip_of([]) + bytes(26),
    "descriptor that differs": zip_of(bag_of(streamed(NAME, A, descriptor=b"PK\7\x08" + bytes(12)))),
    "local size that differs": zip_of(bag_of(streamed(NAME, A, sums=(0, 0, 5)))),
    "two names, local": zip_of(bag_of(Entry(NAME, A, local=other_name(NAME, b"bag/data/z")))),
    "two names, central": zip_of(bag_of(Entry(b"bag/q", A, extra=other_name(b"bag/q", NAME)))),
    "two names with a flag": zip_of(
        bag_of(Entry(NAME, A, flags=0x800, extra=other_name(NAME, b"bag/z"), local=other_name(NAME, b"bag/z")))
    ),
    "two names, repeated": zip_of(
        bag_of(
            Entry(b"bag/q", A, extra=(names := other_name(b"bag/q", NAME) + other_name(b"bag/q", b"z")), local=names)
        )
    ),
    "link of an old field": zip_of(
        bag_of(Entry(NAME, A), Entry(b"bag/data/l", b"a", attributes=0, extra=entry_extra(0x756E, OLD_LINK)), l=b"a")
    ),
    **{
        f"link of system {system}": zip_of(bag_of(Entry(NAME, A), Entry(b"bag/data/l", b"a", system, LINK), l=A))
        for system in (0, 10, 19)
    },
    "link of an old field, local": zip_of(
        bag_of(Entry(NAME, A), Entry(b"bag/data/l", b"a", local=entry_extra(0x756E, OLD_LINK)), l=b"a")
    ),
    "type of a field, central": zip_of(bag_of(Entry(NAME, A, extra=entry_extra(0x6C78, bytes(8))))),
    "type of a field, local": zip_of(bag_of(Entry(NAME, A, local=entry_extra(0x6C78, bytes(8))))),
    "name of another version": zip_of(
        bag_of(Entry(NAME, A, extra=(name := b"\2".join(other_name(NAME, b"bag/z").split(b"\1", 1))), local=name))
    ),
    "unlisted first member": zip_of([Entry(b"bag/x", b"EVIL!\n")]).partition(b"PK\1\2")[0]
    + zip_of(bag_of(Entry(NAME, A))),
    "directory without a slash": zip_of(bag_of(Entry(NAME, A), Entry(b"bag/d", b"", attributes=0o040755 << 16))),
    "directory of MS-DOS without a slash": zip_of(bag_of(Entry(NAME, A, system=0, attributes=0x10))),
    "volume label": zip_of(bag_of(Entry(NAME, A, system=0, attributes=0x08))),
    "volume label of a directory": zip_of(bag_of(Entry(NAME, A), Entry(b"bag/d/", b"", system=0, attributes=0x18))),
    "link with a slash": zip_of(bag_of(Entry(NAME, A), Entry(b"bag/l/", b"", attributes=LINK))),
    "directory with packed content": zip_of(bag_of(Entry(NAME, A), Entry(b"bag/d/", b"", packed=b"xx"))),
    "file with a dot behind a slash": zip_of(bag_of(Entry(NAME + b"/.", A))),
    "link with a NUL": zip_of(bag_of(Entry(NAME, A), Entry(b"bag/data/l", b"a\0b", attributes=LINK), l=A)),
    "unlisted member": zip_of(bag_of(Entry(NAME, A, hidden=zip_of([Entry(NAME, b"EVIL!\n")]).partition(b"PK\1\2")[0]))),
    "two directories": two_directories(is_64_right=True),
    "two directories, other order": two_directories(is_64_right=False),
    "locator of another place": far_locator(),
    "one of several parts": other_part(),
    "end on another disk": other_disk(),
}
SAME_NAME = other_name(NAME, NAME)
MARK = entry_extra(0xCAFE, b"")
CLEAR_ZIPS: dict[str, bytes] = {
    "two equal names": zip_of(bag_of(Entry(NAME, A, extra=SAME_NAME, local=SAME_NAME))),
    "streamed": zip_of(bag_of(streamed(NAME, A))),
    "streamed with a size": zip_of(bag_of(streamed(NAME, A, sums=(0, 0, 6)))),
    "streamed with all sums": zip_of(bag_of(streamed(NAME, A, sums=None))),
    "streamed with wide sizes": zip_of(
        bag_of(streamed(NAME, A, descriptor=struct.pack("<LQQ", zlib.crc32(A), len(deflated(A)), len(A))))
    ),
    "directory of Java": zip_of(bag_of(Entry(NAME, A), streamed(b"bag/d/", b"", attributes=0))),
    "mark of Java": zip_of(bag_of(Entry(NAME, A, extra=MARK, local=MARK))),
    "sizes of 64 bits": zip_of(
        bag_of(Entry(NAME, A, local=entry_extra(1, struct.pack("<QQ", 6, 6)), sums=(zlib.crc32(A), *[0xFFFFFFFF] * 2)))
    ),
    "link": zip_of(bag_of(Entry(NAME, A), Entry(b"bag/data/l", b"a", attributes=LINK), l=A)),
    "directory": zip_of(bag_of(Entry(NAME, A), Entry(b"bag/d/", b"", attributes=0o040755 << 16 | 0x10))),
    "MS-DOS": zip_of(bag_of(Entry(NAME, A, 0, 0x20), Entry(b"bag/d/", b"", 0, 0x10))),
    "attributes of MS-DOS": zip_of(bag_of(Entry(NAME, A, attributes=0o100644 << 16 | 0x20))),
}


def is_unpacked(archive: Path, folder: Path) -> bool:
    try:
        unpack(archive, folder)
    except BagInvalidError:
        assert not folder.exists()
        return False
    return True


@pytest.mark.parametrize("case", TARS)
def test_ambiguous_tar_files(tmp_path: Path, case: str) -> None:
    archive = tmp_path / "x.tar"
    archive.write_bytes(TARS[case])
    assert not validate_archive(archive).ok
    assert not validate_archive(archive, stream=io.BytesIO(TARS[case])).ok
    assert not is_unpacked(archive, tmp_path / "bag")


@pytest.mark.parametrize("case", SPARSE)
def test_sparse_files_are_refused(tmp_path: Path, case: str) -> None:
    """They are refused by name, with what to do."""
    archive = tmp_path / "x.tar"
    archive.write_bytes(tar_of(SPARSE[case]))
    for level in ("full", "complete"):
        [problem] = validate_archive(archive, level).problems
        assert problem.kind == "archive-malformed"
        assert problem.message == (
            "sparse file 'bag/data/a', which is not supported; unpack the archive, and validate the directory"
        )


@pytest.mark.parametrize("case", ZIPS)
def test_ambiguous_zip_files(tmp_path: Path, case: str) -> None:
    archive = tmp_path / "x.zip"
    archive.write_bytes(ZIPS[case])
    assert not validate_archive(archive).ok
    assert not is_unpacked(archive, tmp_path / "bag")


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("mode in words", "header of 'bag/data/a': malformed mode '0words\\x00\\x00'"),
        ("unknown record", "unknown pax record 'VENDOR.type'"),
        ("unknown type", "unknown type 'Z' of 'bag/data/z'"),
        ("hard link with a size", "'bag/data/l' is not a file, but has a size"),
        ("unknown extra field, local", "unknown extra field 0x000d of 'bag/data/a'"),
        ("flag 12", "unknown flags 0x1000 of 'bag/data/a'"),
        ("bytes between members", "4 bytes at offset 223 are not listed in the central directory"),
    ],
)
def test_the_message_names_the_field(tmp_path: Path, case: str, message: str) -> None:
    archive = tmp_path / ("x.tar" if case in TARS else "x.zip")
    archive.write_bytes((TARS | ZIPS)[case])
    [problem] = validate_archive(archive).problems
    assert (problem.kind, problem.message) == ("archive-malformed", message)


@pytest.mark.parametrize("end", [b"", bytes(512), bytes(700)])
def test_no_end_mark(tmp_path: Path, end: bytes) -> None:
    """It proves nothing that the manifests do not prove; several programs write none."""
    archive = tmp_path / "x.tar"
    whole = tar_of(FILE)[: -len(END)]
    for data in (whole + end, gzip.compress(whole + end)):
        archive.write_bytes(data)
        report = validate_archive(archive)
        assert [(one.kind, one.severity) for one in report.problems] == [("archive-unterminated", "warning")]
        assert validate_archive(archive, stream=io.BytesIO(data)).ok
        assert is_unpacked(archive, tmp_path / f"bag{len(data)}")
    # Without its last member, a bag is not complete; a cut within one is damage.
    archive.write_bytes(whole[:-1024] + end)
    assert {one.kind for one in validate_archive(archive).problems} >= {"archive-unterminated", "file-missing"}
    for cut in (1, 511, 512, 513):
        archive.write_bytes(whole[:-cut])
        assert [one.kind for one in validate_archive(archive).problems] == ["archive-malformed"], cut


@pytest.mark.skipif(os.name != "posix", reason="needs links")
@pytest.mark.parametrize(("ending", "cases"), [("tar", CLEAR), ("zip", CLEAR_ZIPS)])
def test_clear_archives(tmp_path: Path, ending: str, cases: dict[str, bytes]) -> None:
    for number, (case, data) in enumerate(cases.items()):
        archive = tmp_path / f"x.{ending}"
        archive.write_bytes(data)
        assert validate_archive(archive).ok, case
        assert is_unpacked(archive, tmp_path / f"bag{number}"), case
