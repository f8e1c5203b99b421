"""Archives that programs unpack in different ways: none of them is valid.

Each was found by unpacking it with GNU tar 1.34, bsdtar 3.6 or UnZip 6.0 as well, which wrote other files than those
that had been validated.
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path

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
    return pax((b"linkpath", target)) + header(name, 0, kind)


FILE = file(NAME, A)
OTHER = file(b"bag/data/q", A)
PATH = pax((b"path", NAME))
TIME = pax((b"mtime", b"1"))
SIZE = ("GNU.sparse.size", "6"), ("GNU.sparse.numblocks", "1")

# Archives of the same kinds that all programs unpack alike.
CLEAR: dict[str, bytes] = {
    "pax": tar_of(PATH, OTHER),
    "gnu": tar_of(long_name(NAME), OTHER),
    "gnu name and target": tar_of(FILE, long_name(b"bag/data/l"), long_name(NAME, b"K"), header(b"x", 0, b"1"), l=A),
    "volume name": tar_of(header(b"volume", 0, b"V", magic=GNU), FILE),
    "contiguous": tar_of(file(NAME, A, b"7")),
    "hard link": tar_of(FILE, link(b"./" + NAME, b"1"), l=A),
    "hard link with a size": tar_of(FILE, header(b"bag/data/l", 512, b"1", NAME), file(b"bag/tag", b""), l=A),
    "directory of Unix V7": tar_of(FILE, file(b"bag/d/", b"", b"\0")),
    "other numbers": tar_of(
        header(NAME, len(A), mode=(100, b"  644 \0x"), user=(108, b"\x80" + bytes(7)), group=(116, bytes(8)))
        + FILE[512:],
        header(b"bag/tag", 0, time=(136, b"\xff" * 12)),
    ),
    "prefix": tar_of(header(b"a", len(A), prefix=(345, b"bag/data")) + FILE[512:]),
    "link": tar_of(FILE, link(b"../data//./a"), l=A),
    "global comment": tar_of(pax((b"comment", b"x"), kind=b"g"), FILE),
}
TARS: dict[str, bytes] = {
    "two pax headers": tar_of(PATH, TIME, OTHER),
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
OLD_LINK = struct.pack("<L3HL", 0, 0o120777, 0, 0, 0)
ZIPS: dict[str, bytes] = {
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
CLEAR_ZIPS: dict[str, bytes] = {
    "two equal names": zip_of(
        bag_of(Entry(b"bag/q", A, extra=other_name(b"bag/q", NAME), local=other_name(b"bag/q", NAME)))
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


def test_bytes_between_members(tmp_path: Path) -> None:
    """No program takes them for a member; the zeros of a padding are such bytes."""
    archive = tmp_path / "x.zip"
    archive.write_bytes(zip_of(bag_of(Entry(NAME, A, hidden=bytes(4096)))))
    report = validate_archive(archive)
    message = "4096 bytes before, between or after the members belong to none of them"
    assert [(one.kind, one.severity, one.message) for one in report.problems] == [("archive-extra", "warning", message)]
    assert is_unpacked(archive, tmp_path / "bag")


@pytest.mark.skipif(os.name != "posix", reason="needs links")
@pytest.mark.parametrize(("ending", "cases"), [("tar", CLEAR), ("zip", CLEAR_ZIPS)])
def test_clear_archives(tmp_path: Path, ending: str, cases: dict[str, bytes]) -> None:
    for number, (case, data) in enumerate(cases.items()):
        archive = tmp_path / f"x.{ending}"
        archive.write_bytes(data)
        assert validate_archive(archive).ok, case
        assert is_unpacked(archive, tmp_path / f"bag{number}"), case
