"""Read zip files: the central directory lists the members, and every local header must match it.

The central directory is read as a stream, so memory use does not depend on the number of members. Whatever programs
unpack to different files is refused, as ``tests/bagit/archive/test_ambiguous.py`` lists it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Any, NamedTuple

from pressmark.bagit.archive.members import BLOCK, ArchiveFile, Member
from pressmark.errors import quoted

__all__ = ["MAGIC", "ZipReader"]

#: The first bytes of a zip file: a member, or the end of an empty archive. Other data may precede them.
MAGIC = (b"PK\3\4", b"PK\5\6")

_END = Struct("<4s4H2LH")
_END_64 = Struct("<4sQ2H2L4Q")
_LOCATOR_64 = Struct("<4sLQL")
_CENTRAL = Struct("<4s6H3L5H2L")
_LOCAL = Struct("<4s5H3L2H")
_DESCRIPTOR_MARK = b"PK\7\x08"
_COMMENT_LIMIT = 0xFFFF
_IS_16, _IS_64 = 0xFFFF, 0xFFFFFFFF

_ENCRYPTED, _DESCRIPTOR, _STRONG, _UTF8, _MASKED = 1, 1 << 3, 1 << 6, 1 << 11, 1 << 13
_STORED, _DEFLATED = 0, 8
_METHODS = {9: "deflate64", 12: "bzip2", 14: "LZMA", 93: "zstd", 95: "xz"}  # those that others write
_EXTRA_64, _EXTRA_NAME, _EXTRA_MODE, _EXTRA_TYPE = 0x0001, 0x7075, 0x756E, 0x6C78
_DECISIVE = (_EXTRA_64, _EXTRA_NAME, _EXTRA_MODE)
_UNIX = 3
_UNIX_LIKE = (_UNIX, 19)  # systems with names in bytes
_DOS_LABEL, _DOS_DIRECTORY = 0x08, 0x10  # attributes of a volume label and a directory
_PARTS = "one of several parts; join them"
# Flags of the effort of compression.
_ADVICE = 0b110
_VERSION = 63  # the last version of the format, 6.3: programs refuse members that need a later one
_LINK_LIMIT = 4096  # bytes, of the target of a symbolic link
# Without preadv, a thread that reads a member would move the position of the file.
_READS_ANYWHERE = hasattr(os, "preadv")


class _MemberRecord(NamedTuple):
    """A member in the central directory."""

    raw_name: bytes
    name: bytes
    system: int
    flags: int
    method: int
    crc: int
    packed: int
    size: int
    mode: int
    offset: int


class ZipReader:
    """The members of a zip file."""

    seekable = True

    def __init__(self, file: ArchiveFile) -> None:
        self.extra = 0
        self._file = file
        # Start, end and number of members of the central directory.
        self._begin, self._end, self._count = self._find_directory()

    def members(self) -> Iterator[Member]:
        """Yield all members, once, in the order of the central directory.

        :raises ArchiveError: the archive is damaged, or exceeds a limit
        """
        runs: list[list[int]] = [[0, 0]]  # start and end of members without a gap between them
        taken = 0
        for entry in self._entries():
            self._file.count_member()
            begin = self._data_offset(entry)
            end = self._end_of(entry, begin)
            start = entry.offset + self._before
            if start == runs[-1][1]:
                runs[-1][1] = end
            else:
                runs.append([start, end])
            # Zip bombs consist of overlapping members.
            taken += end - start
            if taken > self._begin:
                self._file.damaged("overlapping members")
            yield self._member(entry, begin)
        self._check_gaps(sorted(runs))

    def _end_of(self, entry: _MemberRecord, begin: int) -> int:
        """Return where a member ends whose content begins at ``begin``: before the central directory."""
        end = begin + entry.packed
        if end > self._begin:
            self._file.damaged("content of a member overlaps the central directory")
        return end + self._descriptor(entry, end) if entry.flags & _DESCRIPTOR else end

    def _check_gaps(self, runs: list[list[int]]) -> None:
        """Count the bytes between members. Programs that read from a pipe unpack members that are hidden there."""
        ends = [end for _start, end in runs]
        starts = [*(start for start, _end in runs[1:]), self._begin]
        for end, start in zip(ends, starts, strict=True):
            if start < end:
                self._file.damaged("overlapping members")
            self.extra += start - end
            if self._contains_header(end, start):
                self._file.damaged("member that the central directory does not list")

    def _contains_header(self, start: int, end: int) -> bool:
        self._file.seek(start)
        last = b""
        for block in self._packed(end - start):
            if b"PK\3\4" in last + block:
                return True
            last = block[-3:]
        return False

    def _member(self, entry: _MemberRecord, begin: int) -> Member:
        kind = {0: "file", 0o100000: "file", 0o120000: "link", 0o040000: "directory"}.get(entry.mode, "special")
        if entry.name.endswith(b"/"):
            kind = "directory"
        if kind == "directory" and (entry.size or (entry.method == _STORED and entry.packed)):
            self._file.damaged("directory with content")
        if kind == "link":
            if entry.size > _LINK_LIMIT:
                self._file.damaged("target of a symbolic link too long")
            return Member(entry.name, kind, 0, lambda: iter(()), b"".join(self._blocks(entry, begin)))
        if kind != "file":
            return Member(entry.name, kind, 0, lambda: iter(()))
        if entry.method == _STORED and _READS_ANYWHERE:
            if entry.packed != entry.size:
                self._file.damaged("length of a member differs from the central directory")
            return Member(entry.name, kind, entry.size, lambda: self._blocks(entry, begin), b"", begin, entry.crc)
        return Member(entry.name, kind, entry.size, lambda: self._blocks(entry, begin))

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
        self.extra = len(tail) - at - _END.size - comment
        if self.extra < 0:
            self._file.damaged("truncated in the comment")
        stated = None
        if end >= _LOCATOR_64.size and (found := self._find_64(end)) is not None:
            short = (disk, first_disk, here, count, size, offset)
            stated, end, disk, first_disk, here, count, size, offset = found
            limits = (*[_IS_16] * 4, _IS_64, _IS_64)
            for one, full, limit in zip(short, (disk, first_disk, here, count, size, offset), limits, strict=True):
                if one not in (full, limit):
                    self._file.damaged("two ends of the central directory that differ")
        if disk or first_disk or here != count:
            self._file.damaged(_PARTS)
        # Offsets do not include data that precedes the archive.
        before = end - size - offset
        if before < 0 or stated not in (None, end, end - before):
            self._file.damaged("wrong offset of the central directory")
        self._before = before
        return end - size, end, count

    def _find_64(self, end: int) -> tuple[int, int, int, int, int, int, int, int] | None:
        mark, disk, offset, disks = _LOCATOR_64.unpack(self._at(end - _LOCATOR_64.size, _LOCATOR_64.size))
        if mark != b"PK\6\7":
            return None
        if disk or disks > 1:
            self._file.damaged(_PARTS)
        # Usually directly before the locator; else where the locator points.
        for place in (end - _LOCATOR_64.size - _END_64.size, offset):
            if 0 <= place <= end - _LOCATOR_64.size - _END_64.size:
                found = _END_64.unpack(self._at(place, _END_64.size))
                if found[0] == b"PK\6\6" and place + 12 + found[1] == end - _LOCATOR_64.size:
                    return offset, place, *found[4:]
        self._file.damaged("malformed end of the central directory")

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
        _, made_by, needed, flags, method, _time, _date, crc, packed, size = fields[:10]
        attributes, offset = fields[15:17]
        extras = self._extras(extra)
        size, packed, offset = self._wide(extras, size, packed, offset)
        system = made_by >> 8
        name = self._name(raw_name, flags, system, extras)
        if flags & (_ENCRYPTED | _STRONG | _MASKED):
            self._file.damaged("encrypted member")
        if method not in (_STORED, _DEFLATED):
            how = f"{quoted(name)} is compressed by {_METHODS.get(method, f'method {method}')}"
            self._file.damaged(f"{how}, which is not supported; unpack the archive, and validate the directory")
        if needed & 0xFF > _VERSION:
            self._file.damaged(f"a member requires version {needed & 0xFF} of the format, later than {_VERSION}")
        mode = attributes >> 16 & 0o170000
        self._check_type(name, system, attributes, mode, extras)
        return _MemberRecord(raw_name, name, system, flags, method, crc, packed, size, mode, offset)

    def _check_type(self, name: bytes, system: int, attributes: int, mode: int, extras: dict[int, bytes]) -> None:
        """Check that all programs take a member for a file, or all for a directory or a link."""
        if name.endswith(b"/"):
            is_clear = mode in (0, 0o040000, 0o100000)
        elif system == _UNIX and mode:
            is_clear = mode != 0o040000
        else:
            is_clear = mode in (0, 0o100000) and not attributes & (_DOS_LABEL | _DOS_DIRECTORY)
        if not is_clear:
            self._file.damaged("programs disagree whether a member is a file, a directory or a link")
        self._check_extra_type(mode, extras)

    def _check_extra_type(self, mode: int, extras: dict[int, bytes]) -> None:
        """Check that no extra field states another type."""
        if _EXTRA_MODE not in extras and _EXTRA_TYPE not in extras:
            return
        extra_mode = int.from_bytes(extras.get(_EXTRA_MODE, b"")[4:6], "little") & 0o170000
        if _EXTRA_TYPE in extras or extra_mode not in (0, mode):
            self._file.damaged("extra field states another type of a member")

    def _extras(self, extra: bytes) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        at = 0
        while at + 4 <= len(extra):
            number, size = (
                int.from_bytes(extra[at : at + 2], "little"),
                int.from_bytes(extra[at + 2 : at + 4], "little"),
            )
            if at + 4 + size > len(extra):
                self._file.damaged("malformed extra field of a member")
            if number in _DECISIVE and number in found:
                self._file.damaged("repeated extra field of a member")
            found[number] = extra[at + 4 : at + 4 + size]
            at += 4 + size
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
        other = extras.get(_EXTRA_NAME, b"")
        if other[:1] not in (b"", b"\1"):
            self._file.damaged("extra field with a name of an unknown version")
        has_other = bool(other) and int.from_bytes(other[1:5], "little") == zlib.crc32(raw)
        if flags & _UTF8:
            name = raw
            if has_other and other[5:] != raw:
                self._file.damaged("member with two names")
        elif has_other:
            name = other[5:]
        elif system in _UNIX_LIKE:
            return raw
        else:
            return raw.decode("cp437").encode("utf-8")
        try:
            name.decode("utf-8")
        except UnicodeDecodeError:
            self._file.damaged("name marked as UTF-8 is not UTF-8")
        return name

    # --- content ------------------------------------------------------------------------------------------------------

    def _data_offset(self, entry: _MemberRecord) -> int:
        """Compare the local header of a member with the central directory; return the offset of the content."""
        offset = entry.offset + self._before
        mark, _needed, flags, method, _time, _date, crc, packed, size, length, extra_length = _LOCAL.unpack(
            self._at(offset, _LOCAL.size)
        )
        rest = self._file.read(length + extra_length)
        if mark != b"PK\3\4" or len(rest) < length + extra_length:
            self._file.damaged("wrong offset of a member in the central directory")
        extras = self._extras(rest[length:])
        size, packed = self._wide(extras, size, packed)
        self._check_extra_type(entry.mode, extras)
        sums, expected = (crc, packed, size), (entry.crc, entry.packed, entry.size)
        # Before a descriptor, programs leave out what they do not know.
        agrees = sums == expected or (
            flags & _DESCRIPTOR and all(one in (0, other) for one, other in zip(sums, expected, strict=True))
        )
        alike = rest[:length] == entry.raw_name and method == entry.method and not (flags ^ entry.flags) & ~_ADVICE
        if not alike or not agrees or self._name(rest[:length], flags, entry.system, extras) != entry.name:
            self._file.damaged("header of a member differs from the central directory")
        begin: int = offset + _LOCAL.size + len(rest)
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
                self._file.damaged("truncated in the content of a member")
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
