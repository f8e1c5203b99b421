"""Read zip files: the central directory lists the members, and every local header must match it.

The members follow each other from the first byte to the central directory, so programs that read from a pipe, and know
the local headers only, find the same. The tables list what a header may contain. Everything else is refused, and the
message names the field: programs unpack it to different files, as ``tests/bagit/archive/test_ambiguous.py`` shows.

The central directory is read as a stream, so memory use does not depend on the number of members.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from struct import Struct
from typing import Any, NamedTuple

from pressmark.bagit.archive.members import BLOCK, NTFS_EPOCH, ArchiveFile, Member
from pressmark.errors import quoted

__all__ = ["MAGIC", "ZipReader"]

#: The first bytes of a zip file: a member, or the end of an empty archive.
MAGIC = (b"PK\3\4", b"PK\5\6")

_END = Struct("<4s4H2LH")
_END_64 = Struct("<4sQ2H2L4Q")
_LOCATOR_64 = Struct("<4sLQL")
_CENTRAL = Struct("<4s6H3L5H2L")
_LOCAL = Struct("<4s5H3L2H")
_EXTRA = Struct("<2H")
_DESCRIPTOR_MARK = b"PK\7\x08"
_COMMENT_LIMIT = 0xFFFF
_IS_16, _IS_64 = 0xFFFF, 0xFFFFFFFF

_ENCRYPTED, _DESCRIPTOR, _STRONG, _UTF8, _MASKED = 1, 1 << 3, 1 << 6, 1 << 11, 1 << 13
_STORED, _DEFLATED = 0, 8
_METHODS = {9: "deflate64", 12: "bzip2", 14: "LZMA", 93: "zstd", 95: "xz"}  # those that others write
_UNIX = 3
_UNIX_LIKE = (_UNIX, 19)  # systems with names in bytes: Unix, macOS
_SYSTEMS = (0, *_UNIX_LIKE, 10, 11, 14)  # and MS-DOS, and three of Windows
_DOS_LABEL, _DOS_DIRECTORY = 0x08, 0x10  # attributes of a volume label and a directory
_PARTS = "one of several parts; join them"

_EXTRA_64, _EXTRA_NAME, _EXTRA_MODE = 0x0001, 0x7075, 0x756E
_EXTRA_UTC, _EXTRA_NTFS = 0x5455, 0x000A  # times: Info-ZIP, and Windows
_NTFS_TIMES = b"\1\0\x18\0"  # tag and size
# Extra fields that change neither name, type nor content of a member; the first three are checked.
_EXTRAS = frozenset(
    (
        *(_EXTRA_64, _EXTRA_NAME, _EXTRA_MODE),
        *(_EXTRA_UTC, _EXTRA_NTFS),
        *(0x5855, 0x7855, 0x7875),  # times and owners
        *(0x4453, 0x6375),  # access list of Windows, comment
        *(0xA220, 0xCAFE, 0xD935),  # padding of Microsoft, mark of Java, alignment of Android
    )
)
_SIZES_64 = (8, 16, 24, 28)  # of the field with numbers of 64 bits
_NAME_VERSION = b"\1"
# Flags of the effort of compression.
_ADVICE = 0b110
_VERSION = 63  # the last version of the format, 6.3: programs refuse members that need a later one
_LINK_LIMIT = 4096  # bytes, of the target of a symbolic link
# Without preadv, a thread that reads a member would move the position of the file.
_READS_ANYWHERE = hasattr(os, "preadv")


class _MemberRecord(NamedTuple):
    """A member in the central directory.

    :ivar kind: bits of its mode
    :ivar facts: as of a :class:`Member`
    """

    raw_name: bytes
    name: bytes
    system: int
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    kind: int
    offset: int
    facts: Callable[[], tuple[int, int]]


class ZipReader:
    """The members of a zip file."""

    seekable = is_terminated = True

    def __init__(self, file: ArchiveFile) -> None:
        self.extra = 0
        self._file = file
        # Start, end and number of members of the central directory.
        self._begin, self._end, self._count = self._find_directory()

    def members(self) -> Iterator[Member]:
        """Yield all members, once, in the order of the central directory.

        :raises ArchiveError: the archive is damaged, or exceeds a limit
        """
        runs: list[list[int]] = []  # start and end of members without a gap between them
        taken = 0
        for entry in self._entries():
            self._file.count_member()
            begin = self._data_offset(entry)
            end = self._end_of(entry, begin)
            if runs and entry.offset == runs[-1][1]:
                runs[-1][1] = end
            else:
                runs.append([entry.offset, end])
            # Zip bombs consist of overlapping members.
            taken += end - entry.offset
            if taken > self._begin:
                self._file.damaged("overlapping members")
            yield self._member(entry, begin)
        last = 0
        for start, end in sorted(runs):
            if start < last:
                self._file.damaged("overlapping members")
            self._check_gap(last, start)
            last = end
        self._check_gap(last, self._begin)

    def _end_of(self, entry: _MemberRecord, begin: int) -> int:
        """Return where a member ends whose content begins at ``begin``: before the central directory."""
        end = begin + entry.packed
        if end > self._begin:
            self._file.damaged("content of a member overlaps the central directory")
        return end + self._descriptor(entry, end) if entry.flags & _DESCRIPTOR else end

    def _check_gap(self, start: int, end: int) -> None:
        """Refuse bytes between members: there, programs that read from a pipe unpack others or stop."""
        if start != end:
            self._file.damaged(f"{end - start} bytes at offset {start} are not listed in the central directory")

    def _member(self, entry: _MemberRecord, begin: int) -> Member:
        kind = {0: "file", 0o100000: "file", 0o120000: "link", 0o040000: "directory"}.get(entry.kind, "special")
        if entry.name.endswith(b"/"):
            kind = "directory"
        if kind == "directory" and (entry.packed or entry.size or entry.crc):
            # Programs of Java compress nothing to two bytes.
            for _block in self._blocks(entry, begin):
                self._file.damaged(f"directory {quoted(entry.name)} with content")
        if kind == "link":
            if entry.size > _LINK_LIMIT:
                self._file.damaged("target of a symbolic link too long")
            return Member(entry.name, kind, 0, lambda: iter(()), b"".join(self._blocks(entry, begin)))
        if kind != "file":
            return Member(entry.name, kind, 0, lambda: iter(()), facts=entry.facts)
        if entry.method == _STORED and entry.packed != entry.size:
            self._file.damaged("length of a member differs from the central directory")
        where: tuple[int, int | None] = -1, None
        if entry.method == _STORED and _READS_ANYWHERE and self._file.is_local:
            where = begin, entry.crc
        return Member(entry.name, kind, entry.size, lambda: self._blocks(entry, begin), b"", *where, entry.facts)

    def names(self) -> Iterator[bytes]:
        """Yield the names of all members; their local headers are not read."""
        return (entry.name for entry in self._entries())

    # --- the central directory ----------------------------------------------------------------------------------------

    def _at(self, position: int, size: int) -> bytes:
        if position < 0:
            self._file.damaged("wrong offset of the central directory")
        self._file.seek(position)
        data = self._file.read(size)
        if len(data) < size:
            self._file.damaged("truncated")
        return data

    def _find_directory(self) -> tuple[int, int, int]:
        tail = self._at(max(0, self._file.size - _END.size - _COMMENT_LIMIT), min(self._file.size, 65557))
        at = tail.rfind(b"PK\5\6")
        if at < 0 or len(tail) - at < _END.size:
            self._file.damaged("truncated, or not a zip file: end of central directory not found")
        end = self._file.size - len(tail) + at
        _, disk, first_disk, here, count, size, offset, comment = _END.unpack_from(tail, at)
        behind = tail[at + _END.size + comment :]
        if len(tail) - at - _END.size < comment:
            self._file.damaged("truncated in the comment")
        # Zeros are padding to a block.
        self.extra = len(behind.lstrip(b"\0"))
        if end >= _LOCATOR_64.size and (found := self._find_64(end)) is not None:
            short = (disk, first_disk, here, count, size, offset)
            end, disk, first_disk, here, count, size, offset = found
            limits = (*[_IS_16] * 4, _IS_64, _IS_64)
            for one, full, limit in zip(short, (disk, first_disk, here, count, size, offset), limits, strict=True):
                if one not in (full, limit):
                    self._file.damaged("two ends of the central directory that differ")
        if disk or first_disk or here != count:
            self._file.damaged(_PARTS)
        if offset + size != end:
            self._file.damaged("wrong offset of the central directory, or bytes before the first member")
        # Some programs take the end whose comment ends the file.
        if behind and tail.count(b"PK\5\6") > 1:
            self._file.damaged("several ends of the central directory")
        return offset, end, count

    def _find_64(self, end: int) -> tuple[int, int, int, int, int, int, int] | None:
        mark, disk, offset, disks = _LOCATOR_64.unpack(self._at(end - _LOCATOR_64.size, _LOCATOR_64.size))
        if mark != b"PK\6\7":
            return None
        if disk or disks > 1:
            self._file.damaged(_PARTS)
        place = end - _LOCATOR_64.size - _END_64.size
        mark, size, *found = _END_64.unpack(self._at(place, _END_64.size))
        if mark != b"PK\6\6" or size != _END_64.size - 12 or offset != place:
            self._file.damaged("malformed 64-bit end of the central directory, or its locator")
        return place, *found[2:]

    def _entries(self) -> Iterator[_MemberRecord]:
        data = b""
        at = 0
        position = self._begin
        for _ in range(self._count):
            if len(data) - at < 4 * _COMMENT_LIMIT and position < self._end:
                more = self._at(position, min(BLOCK * 2, self._end - position))
                position += len(more)
                data, at = data[at:] + more, 0
            if len(data) - at < _CENTRAL.size:
                self._file.damaged("truncated central directory")
            fields = _CENTRAL.unpack_from(data, at)
            mark, lengths = fields[0], fields[10:13]
            whole = _CENTRAL.size + sum(lengths)
            if mark != b"PK\1\2" or len(data) - at < whole:
                self._file.damaged("malformed central directory")
            begin = at + _CENTRAL.size
            raw_name = data[begin : begin + lengths[0]]
            extra = data[begin + lengths[0] : begin + lengths[0] + lengths[1]]
            at += whole
            yield self._entry(fields, raw_name, extra)
        if at != len(data) or position != self._end:
            self._file.damaged("more members in the central directory than its end states")

    def _entry(self, fields: tuple[Any, ...], raw_name: bytes, extra: bytes) -> _MemberRecord:
        _, made_by, needed, flags, method, clock, date, crc, packed, size = fields[:10]
        disk, _internal, attributes, offset = fields[13:17]
        extras = self._extras(raw_name, extra)
        size, packed, offset = self._wide(extras, size, packed, offset)
        system = made_by >> 8
        name = self._name(raw_name, flags, system, extras)
        if flags & (_ENCRYPTED | _STRONG | _MASKED):
            self._file.damaged(f"encrypted member {quoted(name)}")
        if flags & ~(_ADVICE | _DESCRIPTOR | _UTF8):
            self._file.damaged(f"unknown flags {flags:#06x} of {quoted(name)}")
        if method not in (_STORED, _DEFLATED):
            how = f"{quoted(name)} is compressed by {_METHODS.get(method, f'method {method}')}"
            self._file.damaged(f"{how}, which is not supported; unpack the archive, and validate the directory")
        if needed & 0xFF > _VERSION:
            self._file.damaged(f"a member requires version {needed & 0xFF} of the format, later than {_VERSION}")
        if system not in _SYSTEMS:
            self._file.damaged(f"unknown system {system} of {quoted(name)}")
        if disk:
            self._file.damaged(_PARTS)
        kind = attributes >> 16 & 0o170000
        self._check_type(name, system, attributes, kind)
        self._check_extra_type(name, kind, extras)
        mode = attributes >> 16 & 0o777 if system in _UNIX_LIKE else 0
        mode = mode or (0o777 if name.endswith(b"/") else 0o666)
        facts = partial(_facts, mode, clock, date, extras)
        return _MemberRecord(raw_name, name, system, flags, method, crc, packed, size, kind, offset, facts)

    def _check_type(self, name: bytes, system: int, attributes: int, mode: int) -> None:
        """Check that all programs take a member for a file, or all for a directory or a link."""
        if name.endswith(b"/"):
            # unzip leaves out a volume label, also one that is named as a directory.
            is_clear = mode in (0, 0o040000, 0o100000) and (system == _UNIX or not attributes & _DOS_LABEL)
        elif system == _UNIX and mode:
            is_clear = mode != 0o040000
        else:
            is_clear = mode in (0, 0o100000) and not attributes & (_DOS_LABEL | _DOS_DIRECTORY)
        if not is_clear:
            self._file.damaged(f"attributes of {quoted(name)}: programs disagree whether it is a file or a directory")

    def _check_extra_type(self, name: bytes, mode: int, extras: dict[int, bytes]) -> None:
        """Check that no extra field contradicts its type."""
        if int.from_bytes(extras.get(_EXTRA_MODE, b"")[4:6], "little") & 0o170000 not in (0, mode):
            self._file.damaged(f"extra field of {quoted(name)} contradicts its type")

    def _extras(self, name: bytes, extra: bytes) -> dict[int, bytes]:
        """Return the extra fields of a member by their numbers."""
        found: dict[int, bytes] = {}
        at = 0
        while at + 4 <= len(extra):
            number, size = _EXTRA.unpack_from(extra, at)
            if at + 4 + size > len(extra):
                self._file.damaged(f"malformed extra field {number:#06x} of {quoted(name)}")
            if number not in _EXTRAS:
                self._file.damaged(f"unknown extra field {number:#06x} of {quoted(name)}")
            if number in found:
                self._file.damaged(f"repeated extra field {number:#06x} of {quoted(name)}")
            found[number] = extra[at + 4 : at + 4 + size]
            at += 4 + size
        if extra[at:].strip(b"\0"):
            self._file.damaged(f"malformed extra fields of {quoted(name)}")
        if _EXTRA_64 in found and len(found[_EXTRA_64]) not in _SIZES_64:
            self._file.damaged(f"malformed 64-bit sizes of {quoted(name)}")
        return found

    def _wide(self, extras: dict[int, bytes], *numbers: int) -> list[int]:
        """Return numbers, with those that exceed 32 bits from the extra field."""
        field = extras.get(_EXTRA_64, b"")
        found = []
        for number in numbers:
            if number == _IS_64:
                if len(field) < 8:
                    self._file.damaged("missing 64-bit sizes of a member")
                number, field = self._file.checked_size(int.from_bytes(field[:8], "little")), field[8:]
            found.append(number)
        return found

    def _name(self, raw: bytes, flags: int, system: int, extras: dict[int, bytes]) -> bytes:
        """Return the name of a member as unpacking would write it."""
        other = self._other_name(raw, extras)
        if flags & _UTF8:
            name = raw
            if other not in (None, raw):
                self._file.damaged(f"member has two names: {quoted(raw)} and {quoted(other or b'')}")
        elif other is not None:
            name = other
        elif system in _UNIX_LIKE:
            return raw
        else:
            return raw.decode("cp437").encode("utf-8")
        try:
            name.decode("utf-8")
        except UnicodeDecodeError:
            self._file.damaged(f"name {quoted(raw)} marked as UTF-8 is not UTF-8")
        return name

    def _other_name(self, raw: bytes, extras: dict[int, bytes]) -> bytes | None:
        """Return the name in an extra field, in UTF-8; some programs ignore it: only non-ASCII letters may differ."""
        field = extras.get(_EXTRA_NAME)
        if field is None:
            return None
        other = field[5:]
        if field[:1] != _NAME_VERSION or int.from_bytes(field[1:5], "little") != zlib.crc32(raw):
            self._file.damaged(
                f"extra field with the name of {quoted(raw)} has an unknown version, or belongs to another name"
            )
        if other != raw and (other.isascii() or other.count(b"/") != raw.count(b"/")):
            self._file.damaged(f"member has two names: {quoted(raw)} and {quoted(other)}")
        return other

    # --- content ------------------------------------------------------------------------------------------------------

    def _data_offset(self, entry: _MemberRecord) -> int:
        """Compare the local header of a member with the central directory; return the offset of the content."""
        mark, _needed, flags, method, _time, _date, crc, packed, size, length, extra_length = _LOCAL.unpack(
            self._at(entry.offset, _LOCAL.size)
        )
        rest = self._file.read(length + extra_length)
        if mark != b"PK\3\4" or len(rest) < length + extra_length:
            self._file.damaged("wrong offset of a member in the central directory")
        extras = self._extras(rest[:length], rest[length:])
        size, packed = self._wide(extras, size, packed)
        self._check_extra_type(entry.name, entry.kind, extras)
        sums, expected = (crc, packed, size), (entry.crc, entry.packed, entry.size)
        # Before a descriptor, programs leave out what they do not know.
        agrees = sums == expected or (
            flags & _DESCRIPTOR and all(one in (0, other) for one, other in zip(sums, expected, strict=True))
        )
        alike = rest[:length] == entry.raw_name and method == entry.method and not (flags ^ entry.flags) & ~_ADVICE
        if not alike or not agrees or self._name(rest[:length], flags, entry.system, extras) != entry.name:
            self._file.damaged(f"header of {quoted(entry.name)} differs from the central directory")
        begin: int = entry.offset + _LOCAL.size + len(rest)
        return begin

    def _blocks(self, entry: _MemberRecord, begin: int) -> Iterator[bytes]:
        """Yield the content of a member, which begins at ``begin``; verify its length and CRC."""
        self._file.seek(begin)
        crc = done = 0
        for block in self._unpacked(entry):
            crc = zlib.crc32(block, crc)
            done += len(block)
            self._file.count_expanded(len(block))
            if done > entry.size:
                break
            yield block
        if done != entry.size:
            self._file.damaged("length of a member differs from the central directory")
        if crc != entry.crc:
            self._file.damaged("CRC mismatch of a member")

    def _descriptor(self, entry: _MemberRecord, position: int) -> int:
        """Compare the data descriptor after the content, in any of its four forms, with the central directory.

        :return: its size
        """
        data = self._at(position, min(24, self._begin - position)) if position < self._begin else b""
        for width in (8, 4):
            sizes = b"".join(number.to_bytes(8, "little")[:width] for number in (entry.packed, entry.size))
            expected = entry.crc.to_bytes(4, "little") + sizes
            # The mark may be left out, and can equal the CRC.
            for one in (_DESCRIPTOR_MARK + expected, expected):
                if data.startswith(one):
                    return len(one)
        self._file.damaged("data descriptor of a member differs from the central directory")

    def _packed(self, size: int) -> Iterator[bytes]:
        while size:
            block = self._file.read(min(size, BLOCK))
            if not block:
                self._file.damaged("truncated inside a member")
            size -= len(block)
            yield block

    def _unpacked(self, entry: _MemberRecord) -> Iterator[bytes]:
        if entry.method == _STORED:
            yield from self._packed(entry.packed)
            return
        decoder = zlib.decompressobj(-15)
        data = b""
        packed = self._packed(entry.packed)
        while not decoder.eof:
            is_last = not data and not (data := next(packed, b""))
            try:
                block = decoder.decompress(data, BLOCK)
            except zlib.error as error:
                self._file.damaged(f"damaged content of a member ({error})")
            data = decoder.unconsumed_tail
            if block:
                yield block
            elif is_last and not decoder.eof:
                break
        if not decoder.eof or decoder.unused_data or next(packed, b""):
            self._file.damaged("damaged content of a member")


def _facts(mode: int, clock: int, date: int, extras: dict[int, bytes]) -> tuple[int, int]:
    """Return the mode of a member, and its modification time in nanoseconds since 1970.

    :param clock: its time of MS-DOS, local and in steps of two seconds
    :param date: its date of MS-DOS
    """
    utc, ntfs = extras.get(_EXTRA_UTC, b""), extras.get(_EXTRA_NTFS, b"")
    if len(utc) >= 5 and utc[0] & 1:
        return mode, int.from_bytes(utc[1:5], "little", signed=True) * 10**9
    if ntfs[4:8] == _NTFS_TIMES:
        return mode, int.from_bytes(ntfs[8:16], "little") * 100 + NTFS_EPOCH * 10**9
    day = 1980 + (date >> 9), max(1, date >> 5 & 15), max(1, date & 31)  # those who know no time write 0
    return mode, int(time.mktime((*day, clock >> 11, clock >> 5 & 63, clock % 32 * 2, 0, 0, -1))) * 10**9
