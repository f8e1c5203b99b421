"""Tar and zip files made by hand, header by header, so that they can contain what no packer writes."""

from __future__ import annotations

import hashlib
import struct
import zlib
from dataclasses import dataclass

__all__ = ["END", "Entry", "entry_extra", "file", "header", "long_name", "pax", "tag_files", "zip_of"]

END = bytes(1024)
_BAGIT = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"


def tag_files(payload: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the tag files of a bag, by their names in the archive."""
    lines = [b"%b  %b\n" % (hashlib.sha256(data).hexdigest().encode(), name) for name, data in payload.items()]
    return {b"bag/bagit.txt": _BAGIT, b"bag/manifest-sha256.txt": b"".join(lines)}


# --- tar --------------------------------------------------------------------------------------------------------------


def header(
    name: bytes,
    size: int | bytes = 0,
    kind: bytes = b"0",
    target: bytes = b"",
    magic: bytes = b"ustar\x0000",
    **fields: tuple[int, bytes],
) -> bytes:
    """Return a header; ``fields`` are offsets and bytes."""
    block = bytearray(512)
    digits = size if isinstance(size, bytes) else b"%011o\0" % size
    for at, data in (
        *((0, name), (100, b"0000755\0" if kind == b"5" else b"0000644\0"), (108, b"0000000\0"), (116, b"0000000\0")),
        *((124, digits), (136, b"00000000000\0"), (148, b" " * 8), (156, kind), (157, target), (257, magic)),
        *fields.values(),
    ):
        block[at : at + len(data)] = data
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 512)


def file(name: bytes, data: bytes, kind: bytes = b"0", size: int | bytes | None = None) -> bytes:
    """Return a member with content."""
    return header(name, len(data) if size is None else size, kind) + _padded(data)


def pax(*records: tuple[bytes, bytes], kind: bytes = b"x") -> bytes:
    """Return a pax header."""
    data = b""
    for key, value in records:
        length = rest = len(key) + len(value) + 3
        while len(str(length)) + rest != length:
            length = len(str(length)) + rest
        data += b"%d %b=%b\n" % (length, key, value)
    return file(b"PaxHeaders/x", data, kind)


def long_name(name: bytes, kind: bytes = b"L") -> bytes:
    """Return a GNU header with a long name or target."""
    data = name + b"\0"
    return header(b"././@LongLink", len(data), kind, magic=b"ustar  \0") + _padded(data)


# --- zip --------------------------------------------------------------------------------------------------------------


@dataclass
class Entry:
    """A member of a zip file.

    ``extra`` is that of the central directory, ``local`` of the local header; ``packed`` is its content if that is not
    stored as it is. ``sums`` are CRC, packed size and size in the local header, and ``descriptor`` follows the content.
    """

    name: bytes
    data: bytes
    system: int = 3
    attributes: int = 0o100644 << 16
    flags: int = 0
    extra: bytes = b""
    local: bytes = b""
    hidden: bytes = b""
    packed: bytes | None = None
    method: int = 0
    sums: tuple[int, int, int] | None = None
    descriptor: bytes = b""
    disk: int = 0


def entry_extra(number: int, data: bytes) -> bytes:
    """Return an extra field."""
    return struct.pack("<2H", number, len(data)) + data


def zip_of(entries: list[Entry], *, ends: bytes | None = None) -> bytes:
    """Return a zip file. ``hidden`` bytes of an entry precede its local header."""
    out, directory = b"", b""
    for one in entries:
        out += one.hidden
        packed = one.data if one.packed is None else one.packed
        head = 20, one.flags, one.method, 0, 33
        sums = zlib.crc32(one.data), len(packed), len(one.data)
        directory += struct.pack("<4sH", b"PK\1\2", one.system << 8 | 20)
        lengths = len(one.name), len(one.extra), 0
        directory += struct.pack("<5H3L5H2L", *head, *sums, *lengths, one.disk, 0, one.attributes, len(out))
        directory += one.name + one.extra
        out += struct.pack("<4s5H3L2H", b"PK\3\4", *head, *(one.sums or sums), len(one.name), len(one.local))
        out += one.name + one.local + packed + one.descriptor
    number = len(entries)
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, number, number, len(directory), len(out), 0)
    return out + directory + (end if ends is None else ends)
