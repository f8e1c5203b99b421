"""Read tar files: POSIX (ustar and pax), GNU and Unix V7, strictly and in one pass.

The tables list what a header may contain. Everything else is refused, and the message names the field: programs unpack
it to different files, as ``tests/bagit/archive/test_ambiguous.py`` shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from pressmark.bagit.archive.decompression import Stream
from pressmark.bagit.archive.members import BLOCK, ArchiveFile, Member
from pressmark.errors import quoted

__all__ = ["TarReader", "is_header"]

RECORD = 512  # bytes per block
_ZEROS = bytes(RECORD)

_KINDS = {
    **dict.fromkeys((b"\0", b"0", b"7"), "file"),
    b"1": "hardlink",
    b"2": "link",
    b"5": "directory",
    **dict.fromkeys((b"3", b"4", b"6"), "special"),
}
_GNU_NAME = {b"L": b"path", b"K": b"linkpath"}
_VOLUME = b"V"  # the name of a volume, of GNU
_GLOBAL = b"g"
# Types of extended headers that describe one member, together.
_EXTENDED = (b"L", b"K", b"LK", b"KL", b"x", b"X")
_SPARSE = b"S"

# Formats by their magic and version, and where the fields end that they define.
_FORMATS = {
    bytes(8): 345,  # Unix V7; GNU tar adds the numbers of devices
    **dict.fromkeys((b"ustar\x0000", b"ustar\0\0\0", b"ustar\0  "), 500),
    b"ustar  \0": 345,  # GNU; a time of access would follow, which Python takes for a prefix of the name
}
# What these bytes may be, by the magic.
_BEHIND = {
    bytes(6): "a prefix of the name",
    b"ustar\0": "the times of star",
    b"ustar ": "times of access and change, which Python takes for a prefix of the name",
}
# Of their fields, those where some programs end the archive if they are no number, octal or in GNU's binary form.
_NUMBERS = {
    "mode": slice(100, 108),
    "user ID": slice(108, 116),
    "group ID": slice(116, 124),
    "size": slice(124, 136),
    "modification time": slice(136, 148),
    "major number of a device": slice(329, 337),
    "minor number of a device": slice(337, 345),
}
_NUMBER = re.compile(rb" *[0-7]*[ \0]*|[\x80\xff].*", re.DOTALL)
_USUAL_NUMBERS = re.compile(rb"(?:[0-7]{6}[0-7 ]\0){3}(?:[0-7]{11}[ \0]){2}")
_USUAL_DEVICES = re.compile(rb"(?:[0-7]{6}[0-7 ]\0){2}|\0{16}")
_LARGEST_OCTAL = 8**11 - 1  # bytes in a file

# The records of pax headers that decide nothing else than they say, and the form of their values.
_ANY = re.compile(rb".*", re.DOTALL)
_TEXT = re.compile(rb"[^\0]+")
_INTEGER = re.compile(rb"-?[0-9]{1,20}")
_TIME = re.compile(rb"-?[0-9]{1,20}(?:\.[0-9]*)?")
_RECORDS = {
    **dict.fromkeys((b"path", b"linkpath"), _TEXT),
    **dict.fromkeys((b"size", b"SCHILY.realsize"), re.compile(rb"[0-9]{1,20}")),
    **dict.fromkeys((b"mtime", b"atime", b"ctime", b"LIBARCHIVE.creationtime"), _TIME),
    **dict.fromkeys((b"uid", b"gid"), _INTEGER),
    **dict.fromkeys((b"SCHILY." + key for key in (b"dev", b"ino", b"nlink", b"devmajor", b"devminor")), _INTEGER),
    **dict.fromkeys((b"uname", b"gname", b"comment", b"charset", b"SCHILY.fflags", b"MSWINDOWS.rawsd"), _ANY),
    b"hdrcharset": re.compile(rb"BINARY|ISO-IR 10646 2000 UTF-8"),
    b"LIBARCHIVE.symlinktype": re.compile(rb"file|dir"),
}
_DECISIVE = frozenset((b"path", b"linkpath", b"size"))
# Beginnings of the names of access lists and attributes.
_ATTRIBUTES = (b"SCHILY.acl.", b"SCHILY.xattr.", b"LIBARCHIVE.xattr.", b"RHT.security.")
# Records that a global header may contain.
_GLOBAL_RECORDS = frozenset((b"comment", b"mtime", b"atime", b"ctime", b"uid", b"gid", b"uname", b"gname"))
# Beginnings of the keywords of sparse files: of GNU tar, and of Solaris.
_SPARSE_RECORDS = (b"GNU.sparse.", b"SUN.holesdata")
_LENGTH = re.compile(rb"[1-9][0-9]{0,19} ")


class _Header(NamedTuple):
    """A header block.

    :ivar size: size of the content that follows, in bytes
    :ivar block: the whole header
    """

    name: bytes
    size: int
    type: bytes
    target: bytes
    block: bytes


class TarReader:
    """The members of a tar file.

    :param stream: the stream of the tar file, at its start
    :ivar extra: number of bytes after the end mark that are not padding; known after the last member
    :ivar is_terminated: whether the end mark of two blocks of zeros is complete; known after the last member
    """

    def __init__(self, file: ArchiveFile, stream: Stream) -> None:
        self.seekable = stream.seekable
        self.extra = 0
        self.is_terminated = True
        self._file = file
        self._stream = stream
        # Remaining bytes of the current member: of its content and of its padding.
        self._left = self._padding = 0

    def members(self) -> Iterator[Member]:
        """Yield all members, once.

        :raises ArchiveError: the archive is damaged, or exceeds a limit
        """
        records: dict[bytes, bytes] = {}
        held = b""  # types of extended headers for the next member
        while (header := self._header()) is not None:
            if header.type in _EXTENDED:
                held += header.type
                if held not in _EXTENDED:
                    self._file.damaged("several extended headers of a member, which programs combine differently")
                records |= self._records(header)
            elif header.type == _GLOBAL:
                self._check_global(self._records(header), held)
            elif header.type == _VOLUME:
                self._check_volume(header, held)
            else:
                self._file.count_member()
                yield self._member(header, records)
                records, held = {}, b""
                if not self._stream.skip(self._left + self._padding):
                    self._file.damaged("truncated inside a member")
                self._left = self._padding = 0
        if held:
            self._file.damaged("extended header without a member at the end")
        self._finish()

    # --- headers ------------------------------------------------------------------------------------------------------

    def _header(self) -> _Header | None:
        """Return the next header; :data:`None` at the end."""
        block = self._stream.read(RECORD)
        if not block.strip(b"\0"):
            second = self._stream.read(RECORD)
            self.is_terminated = second == _ZEROS
            if second.strip(b"\0"):
                self._file.damaged("incomplete end mark: only one block of zeros")
            return None
        if len(block) < RECORD:
            self._file.damaged("truncated inside a header")
        if not is_header(block):
            self._file.damaged("wrong checksum of a header")
        name = _text(block[:100])
        kind, magic = block[156:157], block[257:265]
        if magic not in _FORMATS:
            self._file.damaged(f"header of {quoted(name)}: magic and version {quoted(magic)} of an unknown format")
        if kind != _SPARSE and block.count(0, _FORMATS[magic]) != RECORD - _FORMATS[magic]:  # a sparse file has its map
            what = f"bytes after the fields of its format, such as {_BEHIND[magic[:6]]}"
            self._file.damaged(f"header of {quoted(name)}: {what}")
        if not _USUAL_NUMBERS.match(block, 100) or not _USUAL_DEVICES.match(block, 329):
            self._check_numbers(name, block)
        if magic[:6] == b"ustar\0" and (prefix := _text(block[345:500])):
            name = prefix + b"/" + name
        return _Header(name, self._size(block[124:136]), kind, _text(block[157:257]), block)

    def _check_numbers(self, name: bytes, block: bytes) -> None:
        for what, place in _NUMBERS.items():
            field = block[place]
            is_blank = what == "size" and not field.strip(b" \0") and b" " in field
            if not _NUMBER.fullmatch(field) or is_blank or (what == "size" and field[0] == 0xFF):
                self._file.damaged(f"header of {quoted(name)}: malformed {what} {quoted(field)}")

    def _size(self, field: bytes) -> int:
        return self._file.checked_size(_number(field))

    def _records(self, header: _Header) -> dict[bytes, bytes]:
        """Return the records of an extended header, with pax keywords."""
        self._file.check_header(header.size)
        data = self._stream.read(header.size)
        if len(data) < header.size or not self._stream.skip(-header.size % RECORD):
            self._file.damaged("truncated in an extended header")
        if header.type in _GNU_NAME:
            name = data.rstrip(b"\0")
            if not name or b"\0" in name:
                self._file.damaged("long name is empty or contains a NUL")
            return {_GNU_NAME[header.type]: name}
        records: dict[bytes, bytes] = {}
        at = 0
        while at < len(data):
            length = _LENGTH.match(data, at)
            end = at + int(length[0]) if length else 0
            key, equals, value = data[length.end() : end].partition(b"=") if length else (b"", b"", b"")
            if not key or not equals or end > len(data) or not value.endswith(b"\n"):
                self._file.damaged("malformed pax header")
            if key in records and not key.startswith(_SPARSE_RECORDS):
                self._file.damaged(f"repeated pax record {quoted(key)}")
            records[key] = value[:-1]
            at = end
        return records

    def _check_global(self, records: dict[bytes, bytes], held: bytes) -> None:
        if held:
            self._file.damaged("global pax header between an extended header and its member")
        for key, value in records.items():
            if key not in _GLOBAL_RECORDS:
                self._file.damaged(f"global pax record {quoted(key)} would change the members")
            self._check_record(key, value)

    def _check_volume(self, header: _Header, held: bytes) -> None:
        # Python unpacks a volume name as an empty file.
        if header.size or held or b"/" in header.name:
            self._file.damaged("volume name has a directory, content or an extended header")

    def _check_record(self, key: bytes, value: bytes) -> None:
        form = _RECORDS.get(key) or (_ANY if key.startswith(_ATTRIBUTES) else None)
        if form is None:
            self._file.damaged(f"unknown pax record {quoted(key)}")
        if not form.fullmatch(value):
            self._file.damaged(f"malformed pax record {quoted(key)}")

    # --- members ------------------------------------------------------------------------------------------------------

    def _extended(self, header: _Header, records: dict[bytes, bytes]) -> tuple[bytes, bytes, int]:
        """Return name, target and size of a member by its extended header."""
        name, target = records.get(b"path", header.name), records.get(b"linkpath", header.target)
        if header.type == _SPARSE or any(key.startswith(_SPARSE_RECORDS) for key in records):
            what = f"sparse file {quoted(records.get(b'GNU.sparse.name', name))}"
            self._file.damaged(f"{what}, which is not supported; unpack the archive, and validate the directory")
        for key, value in records.items():
            self._check_record(key, value)
            if b"\0" in value and not _DECISIVE.isdisjoint(records):
                self._file.damaged(
                    f"pax record {quoted(key)} contains a NUL; 7-Zip would ignore the name or size beside it"
                )
        if b"linkpath" in records and not header.target:
            self._file.damaged(f"target of {quoted(name)} is only in its extended header; bsdtar would unpack a file")
        size = self._file.checked_size(int(records.get(b"size", header.size)))
        # A header has no place for a larger size, and programs leave something else there.
        if (size != header.size and size <= _LARGEST_OCTAL) or int(records.get(b"SCHILY.realsize", size)) != size:
            self._file.damaged(f"{quoted(name)} has two sizes")
        return name, target, size

    def _member(self, header: _Header, records: dict[bytes, bytes]) -> Member:
        name, target, size = header.name, header.target, header.size
        if records or header.type == _SPARSE:
            name, target, size = self._extended(header, records)
        kind = _KINDS.get(header.type)
        if kind is None:
            self._file.damaged(f"unknown type {quoted(header.type)} of {quoted(name)}")
        if header.type == b"\0" and header.name.endswith(b"/"):
            kind = "directory"  # Unix V7 format
            if b"path" in records:
                self._file.damaged(f"directory {quoted(name)} in the format of Unix V7 has an extended header")
        if size and kind != "file":
            self._file.damaged(f"{quoted(name)} is not a file, but has a size")
        self._left, self._padding = size, -size % RECORD
        facts = partial(_facts, header.block, records.get(b"mtime"))
        if kind != "file":
            return Member(name, kind, 0, lambda: iter(()), target, facts=facts)
        is_read_later = self.seekable and self._file.is_local
        offset = self._file.position if is_read_later else -1
        return Member(name, kind, size, self._blocks, offset=offset, facts=facts)

    def _blocks(self) -> Iterator[bytes]:
        """Yield the content of the member."""
        while self._left:
            block = self._stream.some(self._left)
            if not block:
                self._file.damaged("truncated inside a member")
            self._left -= len(block)
            yield block

    # --- the end ------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Read the stream to its end, which verifies its checksum, and count the bytes that are not padding."""
        while block := self._stream.some(BLOCK):
            # Zeros are padding to a record or tape block.
            self.extra += len(block.lstrip(b"\0")) if not self.extra else len(block)
        self.extra += self._stream.remainder()


def is_header(block: bytes) -> bool:
    """Return whether a block of 512 bytes is the header of a member, by its checksum."""
    field = block[148:156].lstrip(b" ").rstrip(b" \0")  # with other bytes, bsdtar leaves out the member
    if not field or field.strip(b"01234567"):
        return False
    unsigned = sum(block) - sum(block[148:156]) + 8 * 0x20
    if int(field, 8) == unsigned:
        return True
    # Some old programs summed signed bytes.
    negative = sum(byte > 127 for byte in block[:148] + block[156:])
    return int(field, 8) == unsigned - 256 * negative


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number(field: bytes) -> int:
    """Return a number, octal or in GNU's binary form, which is well-formed."""
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big", signed=field[0] == 0xFF)
    return int(field.strip(b" \0") or b"0", 8)


def _facts(block: bytes, time: bytes | None) -> tuple[int, int]:
    """Return the mode of a header, and its modification time in nanoseconds.

    :param time: that of a pax record, which is well-formed
    """
    mode = _number(block[100:108])
    if time is None:
        return mode, _number(block[136:148]) * 10**9
    seconds, _, fraction = time.partition(b".")
    rest = int(fraction[:9].ljust(9, b"0"))
    return mode, int(seconds) * 10**9 + (-rest if time.startswith(b"-") else rest)
