"""Read zip files: the central directory lists the members, and every local header must match it.

The central directory is read as a stream, so memory use does not depend on the number of members.
"""

from __future__ import annotations

import bz2
import os
import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Any, NamedTuple

from pressmark.bagit.archive.decompression import DECODER_MEMORY, DECODING_ERRORS, lzma
from pressmark.bagit.archive.members import BLOCK, ArchiveFile, Member

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
_IS_64 = 0xFFFFFFFF

_ENCRYPTED, _DESCRIPTOR, _STRONG, _UTF8, _MASKED = 1, 1 << 3, 1 << 6, 1 << 11, 1 << 13
_STORED, _DEFLATED, _BZIP2, _LZMA = 0, 8, 12, 14
_EXTRA_64, _EXTRA_NAME = 0x0001, 0x7075
_UNIX_LIKE = (3, 19)  # systems with names in bytes
# Version, length and properties, before the content.
_LZMA_PROPERTIES = 9  # bytes
# Flags of compression effort and of an LZMA end mark.
_ADVICE = 0b110
_VERSION = 63  # the last version of the format, 6.3: programs refuse members that need a later one
_LINK_LIMIT = 4096  # bytes, of the target of a symbolic link
# Without preadv, a thread that reads a member would move the position of the file.
_READS_ANYWHERE = hasattr(os, "preadv")


class _MemberRecord(NamedTuple):
    """A member in the central directory."""

    raw_name: bytes
    name: bytes
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
        taken = 0
        for entry in self._entries():
            self._file.count_member()
            # Zip bombs consist of overlapping members.
            taken += _LOCAL.size + len(entry.raw_name) + entry.packed
            if taken > self._begin:
                self._file.damaged("overlapping members")
            yield self._member(entry)

    def _member(self, entry: _MemberRecord) -> Member:
        kind = {0: "file", 0o100000: "file", 0o120000: "link", 0o040000: "directory"}.get(entry.mode, "special")
        if entry.name.endswith(b"/"):
            kind = "directory"
        if kind == "directory" and entry.size:
            self._file.damaged("directory with content")
        if kind == "link":
            if entry.size > _LINK_LIMIT:
                self._file.damaged("target of a symbolic link too long")
            return Member(entry.name, kind, 0, lambda: iter(()), b"".join(self._blocks(entry)))
        if kind != "file":
            self._data_offset(entry)
            return Member(entry.name, kind, 0, lambda: iter(()))
        if entry.method == _STORED and _READS_ANYWHERE:
            offset = self._content_offset(entry)
            if entry.packed != entry.size:
                self._file.damaged("length of a member differs from the central directory")
            if entry.flags & _DESCRIPTOR:
                self._check_descriptor(entry, offset + entry.packed)
            return Member(entry.name, kind, entry.size, lambda: self._blocks(entry), b"", offset, entry.crc)
        return Member(entry.name, kind, entry.size, lambda: self._blocks(entry))

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
        if end >= _LOCATOR_64.size and (found := self._find_64(end)) is not None:
            end, disk, first_disk, here, count, size, offset = found
        if disk or first_disk or here != count:
            self._file.damaged("one of several parts; join them")
        # Offsets do not include data that precedes the archive.
        before = end - size - offset
        if before < 0:
            self._file.damaged("wrong offset of the central directory")
        self._before = before
        self.extra += before
        return end - size, end, count

    def _find_64(self, end: int) -> tuple[int, int, int, int, int, int, int] | None:
        mark, _disk, offset, _disks = _LOCATOR_64.unpack(self._at(end - _LOCATOR_64.size, _LOCATOR_64.size))
        if mark != b"PK\6\7":
            return None
        # Usually directly before the locator; else where the locator points.
        for place in (end - _LOCATOR_64.size - _END_64.size, offset):
            if 0 <= place <= end - _LOCATOR_64.size - _END_64.size:
                found = _END_64.unpack(self._at(place, _END_64.size))
                if found[0] == b"PK\6\6" and place + 12 + found[1] == end - _LOCATOR_64.size:
                    return place, *found[4:]
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
        name = self._name(raw_name, flags, made_by >> 8, extras)
        if flags & (_ENCRYPTED | _STRONG | _MASKED):
            self._file.damaged("encrypted member")
        if needed & 0xFF > _VERSION:
            self._file.damaged(f"a member requires version {needed & 0xFF} of the format, later than {_VERSION}")
        return _MemberRecord(raw_name, name, flags, method, crc, packed, size, attributes >> 16 & 0o170000, offset)

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
            found.setdefault(number, extra[at + 4 : at + 4 + size])
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
        if flags & _UTF8:
            name = raw
        elif other[:1] == b"\1" and int.from_bytes(other[1:5], "little") == zlib.crc32(raw):
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
        if _IS_64 in (packed, size):
            size, packed = self._wide(self._extras(rest[length:]), size, packed)
        sums, expected = (crc, packed, size), (entry.crc, entry.packed, entry.size)
        agrees = sums == expected or (flags & _DESCRIPTOR and not any(sums))
        alike = rest[:length] == entry.raw_name and method == entry.method and not (flags ^ entry.flags) & ~_ADVICE
        if not alike or not agrees:
            self._file.damaged("header of a member differs from the central directory")
        begin: int = offset + _LOCAL.size + len(rest)
        return begin

    def _content_offset(self, entry: _MemberRecord) -> int:
        """As :meth:`_data_offset`; the content must end before the central directory."""
        begin = self._data_offset(entry)
        if begin + entry.packed > self._begin:
            self._file.damaged("content of a member overlaps the central directory")
        return begin

    def _blocks(self, entry: _MemberRecord) -> Iterator[bytes]:
        """Yield the content of a member; verify its length and CRC."""
        begin = self._content_offset(entry)
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
        if entry.flags & _DESCRIPTOR:
            self._check_descriptor(entry, begin + entry.packed)

    def _check_descriptor(self, entry: _MemberRecord, position: int) -> None:
        """Compare the data descriptor after the content, in any of its four forms, with the central directory."""
        data = self._at(position, min(24, self._begin - position)) if position < self._begin else b""
        for width in (4, 8):
            sizes = b"".join(number.to_bytes(8, "little")[:width] for number in (entry.packed, entry.size))
            if data.removeprefix(_DESCRIPTOR_MARK).startswith(expected := entry.crc.to_bytes(4, "little") + sizes):
                return
            if data.startswith(expected):  # without the mark, which can equal the CRC
                return
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
        decoder, taken = self._decoder(entry)
        packed = self._packed(entry.packed - taken)
        data = b""
        while not decoder.eof:
            needs_input = not data and getattr(decoder, "needs_input", True)
            if needs_input:
                data = next(packed, b"")
            is_last = needs_input and not data
            try:
                block = decoder.decompress(data, BLOCK)
            except DECODING_ERRORS as error:
                self._file.damaged(f"damaged content of a member ({error})")
            data = getattr(decoder, "unconsumed_tail", b"")
            if block:
                yield block
            elif is_last and not decoder.eof:
                break
        # LZMA data of old packers has no end mark; length and CRC are checked instead.
        if (not decoder.eof and entry.method != _LZMA) or decoder.unused_data or next(packed, b""):
            self._file.damaged("damaged content of a member")

    def _decoder(self, entry: _MemberRecord) -> tuple[Any, int]:
        """Return a decompressor for the content of a member, and the number of bytes already read for it."""
        if entry.method == _DEFLATED:
            return zlib.decompressobj(-15), 0
        if entry.method == _BZIP2:
            return bz2.BZ2Decompressor(), 0
        if entry.method == _LZMA and lzma is not None:
            return self._lzma_decoder(entry), _LZMA_PROPERTIES
        self._file.damaged(f"unsupported compression method {entry.method} of a member")

    def _lzma_decoder(self, entry: _MemberRecord) -> Any:
        """Read the properties before the content; return a decompressor."""
        head = self._file.read(_LZMA_PROPERTIES)
        if entry.packed < _LZMA_PROPERTIES or head[2:4] != b"\5\0" or len(head) < _LZMA_PROPERTIES:
            self._file.damaged("malformed LZMA properties of a member")
        memory = int.from_bytes(head[5:], "little")
        if memory > DECODER_MEMORY:
            self._file.exceeded(f"a member requires more than {DECODER_MEMORY} bytes of memory")
        pb, rest = divmod(head[4], 45)
        lp, lc = divmod(rest, 9)
        filters = [{"id": lzma.FILTER_LZMA1, "dict_size": max(memory, 1 << 12), "lc": lc, "lp": lp, "pb": pb}]
        try:
            return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=filters)
        except DECODING_ERRORS as error:
            self._file.damaged(f"malformed LZMA properties of a member ({error})")
