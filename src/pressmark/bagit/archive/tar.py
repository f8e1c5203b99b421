"""Read tar files: POSIX (ustar and pax), GNU and Unix V7, strictly and in one pass.

Unlike the standard library, this reader treats these as damage: a header with a wrong checksum in the middle, and a
missing end mark of two zero blocks. And whatever programs unpack to different files is refused, as
``tests/bagit/archive/test_ambiguous.py`` lists it: so are sparse files, whose maps each program reads in its own way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from pressmark.bagit.archive.decompression import Stream
from pressmark.bagit.archive.members import BLOCK, ArchiveFile, Member
from pressmark.errors import quoted

__all__ = ["TarReader", "is_header"]

RECORD = 512  # bytes per block
_ZEROS = bytes(RECORD)
_NO_PREFIX = bytes(155)

_KINDS = {
    **dict.fromkeys((b"\0", b"0", b"7"), "file"),
    b"1": "hardlink",
    b"2": "link",
    b"5": "directory",
    b"D": "directory",  # GNU, with a list of names
    **dict.fromkeys((b"3", b"4", b"6"), "special"),
}
# Types of extended headers, which describe the next member.
_EXTENDED = frozenset((b"L", b"K", b"x", b"X"))
_GNU_NAME = {b"L": b"path", b"K": b"linkpath"}
_USTAR = b"ustar\0"
# Mode, user, group and time, which decide nothing here, but end the archive for programs that cannot read them.
_NUMBERS = (slice(100, 108), slice(108, 116), slice(116, 124), slice(136, 148))
_NUMBER = re.compile(rb"[\x80\xff].*| *[0-7]*(?:[ \0].*)?", re.DOTALL)
# All of them in their usual form, and the size.
_USUAL_NUMBERS = re.compile(rb"(?:[0-7]{6}[0-7 ]\0){3}.{12}[0-7]{11}[ \0]", re.DOTALL)
# Beginnings of the keywords of sparse files: of GNU tar, and of Solaris.
_SPARSE = (b"GNU.sparse.", b"SUN.holesdata")


class _Header(NamedTuple):
    """A header block.

    :ivar size: size of the content that follows, in bytes
    """

    name: bytes
    size: int
    type: bytes
    target: bytes


class TarReader:
    """The members of a tar file.

    :param stream: the stream of the tar file, at its start
    """

    def __init__(self, file: ArchiveFile, stream: Stream) -> None:
        self.seekable = stream.seekable
        self.extra = 0
        self._file = file
        self._stream = stream
        # Remaining bytes of the current member: of its content and of its padding.
        self._left = self._padding = 0

    def members(self) -> Iterator[Member]:
        """Yield all members, once.

        :raises ArchiveError: the archive is damaged, or exceeds a limit
        """
        records: list[tuple[bytes, bytes]] = []
        held = b""  # types of extended headers for the next member
        is_open = False
        while (header := self._header()) is not None:
            if header.type in _EXTENDED:
                held += header.type
                if held not in (b"L", b"K", b"LK", b"KL", b"x", b"X"):
                    self._file.damaged("several extended headers of a member, which programs combine differently")
                records += self._records(header)
                continue
            if header.type == b"g":
                self._check_global(self._records(header))
                continue
            self._file.count_member()
            if header.type != b"V":  # GNU volume name
                yield self._member(header, records)
            elif header.size or held:
                self._file.damaged("volume name with content or an extended header")
            records, held = [], b""
            self._skip()
            is_open = header.type == b"1" and header.size > 0
        if is_open:  # elsewhere, the next header shows that none follows
            self._file.damaged("hard link with content")
        if held:
            self._file.damaged("extended header without a member at the end")
        self._finish()

    # --- headers ------------------------------------------------------------------------------------------------------

    def _header(self) -> _Header | None:
        """Return the next header; :data:`None` at the end mark."""
        block = self._block()
        if block == _ZEROS:
            if self._block() != _ZEROS:
                self._file.damaged("incomplete end mark: only one block of zeros")
            return None
        if not is_header(block):
            self._file.damaged("wrong checksum of a header")
        name = _text(block[:100])
        if block[345:500] != _NO_PREFIX and block[156:157] != b"S":  # where a sparse file has its map
            if block[257:263] != _USTAR:
                self._file.damaged("prefix of a name in a header of another format than ustar")
            if prefix := _text(block[345:500]):
                name = prefix + b"/" + name
        if not _USUAL_NUMBERS.match(block, 100) and not all(_NUMBER.fullmatch(block[field]) for field in _NUMBERS):
            self._file.damaged("malformed number in a header")
        return _Header(name, self._number(block[124:136]), block[156:157], _text(block[157:257]))

    def _block(self) -> bytes:
        block = self._stream.read(RECORD)
        if len(block) < RECORD:
            self._file.damaged("truncated: no end mark")
        return block

    def _number(self, field: bytes) -> int:
        """Return a number in octal or in GNU's binary form."""
        if field[0] == 0x80:
            return self._file.checked_size(int.from_bytes(field[1:], "big"))
        digits = field.partition(b"\0")[0].strip(b" ")
        if digits.strip(b"01234567") or (not digits and field.strip(b"\0")):
            self._file.damaged("malformed number in a header")
        return int(digits, 8) if digits else 0

    def _content(self, header: _Header) -> bytes:
        """Return the content of an extended header."""
        self._file.check_header(header.size)
        data = self._stream.read(header.size)
        if len(data) < header.size:
            self._file.damaged("truncated in an extended header")
        self._stream.skip(-header.size % RECORD)
        return data

    def _records(self, header: _Header) -> list[tuple[bytes, bytes]]:
        """Return the records of an extended header, with pax keywords."""
        data = self._content(header)
        if header.type in _GNU_NAME:
            return [(_GNU_NAME[header.type], _text(data))]
        records = []
        at = 0
        while at < len(data):
            length, blank, _ = data[at : at + 21].partition(b" ")
            end = at + int(length) if blank and length.isdigit() else 0
            key, equals, value = data[at + len(length) + 1 : end].partition(b"=")
            if not key or not equals or end > len(data) or not value.endswith(b"\n"):
                self._file.damaged("malformed pax header")
            records.append((key, value[:-1]))
            at = end
        return records

    def _check_global(self, records: list[tuple[bytes, bytes]]) -> None:
        if any(key in (b"path", b"linkpath", b"size") or key.startswith(_SPARSE) for key, _ in records):
            self._file.damaged("global pax header with a name, size or map")

    # --- members ------------------------------------------------------------------------------------------------------

    def _member(self, header: _Header, records: list[tuple[bytes, bytes]]) -> Member:
        about = dict(records)
        name, target = about.get(b"path", header.name), about.get(b"linkpath", header.target)
        size = self._decimal(about[b"size"]) if b"size" in about else header.size
        kind = _KINDS.get(header.type, "special")
        if header.type == b"\0" and name.endswith(b"/") and not size:
            kind = "directory"  # Unix V7 format
        # Links, directories and devices have no content, whatever the size.
        has_content = _KINDS.get(header.type, "file") == "file" or header.type == b"D"
        if header.type == b"S" or (about and any(key.startswith(_SPARSE) for key in about)):
            what = f"sparse file {quoted(about.get(b'GNU.sparse.name', name))}"
            self._file.damaged(f"{what}, which is not supported; unpack the archive, and validate the directory")
        if records and size and not has_content:
            self._file.damaged("extended header of a member without content states a size")
        self._left = size if has_content else 0
        self._padding = -self._left % RECORD
        if b"SCHILY.realsize" in about and self._decimal(about[b"SCHILY.realsize"]) != size:
            self._file.damaged("two sizes of a member")
        if kind != "file":
            return Member(name, kind, 0, lambda: iter(()), target)
        return Member(name, kind, size, self._blocks, offset=self._file.position if self.seekable else -1)

    def _decimal(self, value: bytes) -> int:
        if not value.isdigit() or len(value) > 20:
            self._file.damaged("malformed number in a pax header")
        return self._file.checked_size(int(value))

    def _blocks(self) -> Iterator[bytes]:
        """Yield the content of the member."""
        while self._left:
            block = self._stream.some(self._left)
            if not block:
                self._file.damaged("truncated in the content of a member")
            self._left -= len(block)
            yield block

    def _skip(self) -> None:
        """Skip the rest of the member; the next read shows whether the archive is truncated."""
        self._stream.skip(self._left + self._padding)
        self._left = self._padding = 0

    # --- the end ------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """Read the stream to its end, which verifies its checksum, and count the bytes that are not padding."""
        while block := self._stream.some(BLOCK):
            # Zeros are padding to a record or tape block.
            self.extra += len(block.lstrip(b"\0")) if not self.extra else len(block)
        self.extra += self._stream.remainder()


def is_header(block: bytes) -> bool:
    """Return whether a block of 512 bytes is the header of a member, by its checksum."""
    field = block[148:156].partition(b"\0")[0].strip(b" ")
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
