"""The index of a folder of bags on disk: a cache that may be absent, and is ignored if it is damaged.

::

    .pressmark-work/
    ├── index           checksum, then JSON: watched paths, and the bags that were added or removed since the table
    └── index-<random>  the table: bags in pages by the digest of the identifier, each page with a checksum

Both are written under temporary names and then renamed. One lookup reads one page of the table.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import weakref
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

from pressmark.fs.atomic import Replacement
from pressmark.fs.beneath import READ, read_regular, require_regular
from pressmark.fs.names import decode_fs, encode_fs

__all__ = [
    *("NAME", "Head", "IndexedBag", "Stamp", "Table"),
    *("key_of", "read_head", "remove_index", "write_head", "write_table"),
]

NAME = b"index"
_VERSION = 1
_PAGE = 64  # bags in a page, on average
_KEPT = 8  # pages in memory: one put looks several times
_START = struct.Struct("<8sQQ")  # magic, numbers of bags and pages
_MAGIC = b"bagindex"
_OFFSET = struct.Struct("<QQ")

#: Inode number, time of the last change of content and of status, in nanoseconds.
Stamp = tuple[int, int, int]


class IndexedBag(NamedTuple):
    """A bag in the index.

    :ivar key: the digest of its identifier; empty if that is unknown
    :ivar inode: inode number of its directory or file
    :ivar changed: time of the last change of its status, in nanoseconds
    """

    key: str
    inode: int
    changed: int


class Head(NamedTuple):
    """The content of the file ``index``.

    :ivar table: name of the table; empty without one
    :ivar directories: the directories that contain bags, with their stamps; :data:`None`: always read again
    :ivar unfinished: the same for bags and archives that other programs may still be writing
    :ivar added: bags by path that are not in the table, or differ from it
    :ivar removed: paths in the table that, including everything below them, no longer exist
    """

    table: bytes
    directories: dict[bytes, Stamp | None]
    unfinished: dict[bytes, Stamp | None]
    added: dict[bytes, IndexedBag]
    removed: set[bytes]


def key_of(identifier: str | None) -> str:
    """Return the digest of an identifier; empty without one."""
    return "" if identifier is None else blake2b(encode_fs(identifier), digest_size=8).hexdigest()


def read_head(folder: bytes) -> Head | None:
    """Read the file ``index``; :data:`None` if it does not exist or is damaged."""
    try:
        if os.path.islink(folder):
            return None
        checksum, _, data = read_regular(os.path.join(folder, NAME)).partition(b"\n")
        if int(checksum, 16) != crc32(data):
            return None
        found = json.loads(data)
        if found["version"] != _VERSION:
            return None
        return Head(
            encode_fs(found["table"]),
            _stamps(found["directories"]),
            _stamps(found["unfinished"]),
            {encode_fs(place): IndexedBag(*bag) for place, *bag in found["added"]},
            set(map(encode_fs, found["removed"])),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _stamps(listed: list[tuple[str, Stamp | None]]) -> dict[bytes, Stamp | None]:
    return {encode_fs(place): None if stamp is None else (stamp[0], stamp[1], stamp[2]) for place, stamp in listed}


def write_head(folder: bytes, head: Head) -> None:
    """Replace the file ``index``, and remove tables that it does not use.

    :raises OSError: it cannot be written
    """
    data = json.dumps(
        {
            "version": _VERSION,
            "table": decode_fs(head.table),
            "directories": [(decode_fs(place), stamp) for place, stamp in head.directories.items()],
            "unfinished": [(decode_fs(place), stamp) for place, stamp in head.unfinished.items()],
            "added": [(decode_fs(place), *bag) for place, bag in head.added.items()],
            "removed": [decode_fs(place) for place in head.removed],
        }
    ).encode()
    # Not flushed: the checksum reveals a loss.
    with Replacement(os.path.join(folder, NAME), part=os.path.join(folder, NAME + b".new"), durable=False) as file:
        file.write(b"%08x\n" % crc32(data) + data)
    _remove(folder, {NAME, head.table})


def remove_index(folder: bytes) -> None:
    """Remove the index.

    :raises OSError: it cannot be removed
    """
    if os.path.islink(folder):  # not ours: its target may have other files that begin with "index"
        return
    with suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, NAME))
    _remove(folder, set())


def _remove(folder: bytes, kept: set[bytes]) -> None:
    with suppress(FileNotFoundError):
        for name in os.listdir(folder):
            if name.startswith(NAME) and name not in kept:
                with suppress(OSError):
                    os.unlink(os.path.join(folder, name))


def write_table(folder: bytes, bags: Mapping[bytes, IndexedBag]) -> bytes:
    """Write a table durably, and return its name.

    :raises OSError: it cannot be written
    """
    pages: list[list[bytes]] = [[] for _ in range(len(bags) // _PAGE + 1)]
    for place, (key, inode, changed) in bags.items():
        pages[_page(key, len(pages))].append(b"%b %d %d %b\0" % (key.encode(), inode, changed, place))
    blocks = []
    for number, lines in enumerate(pages):
        body = b"".join(lines)
        blocks.append(_checksum(number, body) + body)
    offset = _START.size + 8 * (len(blocks) + 1)
    offsets = [offset]
    for block in blocks:
        offset += len(block)
        offsets.append(offset)
    name = NAME + b"-" + secrets.token_hex(8).encode()
    with Replacement(os.path.join(folder, name)) as file:
        file.write(_START.pack(_MAGIC, len(bags), len(blocks)))
        file.write(struct.pack(f"<{len(offsets)}Q", *offsets))
        file.writelines(blocks)
    return name


def _page(key: str, pages: int) -> int:
    return int(key or "0", 16) * pages >> 64


def _checksum(number: int, body: bytes) -> bytes:
    return struct.pack("<I", crc32(body, number))


class Table:
    """A table of bags.

    :ivar count: their number
    :raises OSError: it cannot be read
    :raises ValueError: it is damaged; also raised by the methods
    """

    def __init__(self, path: bytes) -> None:
        self._descriptor = require_regular(os.open(path, READ | getattr(os, "O_NOFOLLOW", 0)))
        self.close = weakref.finalize(self, os.close, self._descriptor)
        start = self._read(0, _START.size)
        if len(start) != _START.size or not start.startswith(_MAGIC):
            raise ValueError("not a table of bags")
        _magic, self.count, self._pages = _START.unpack(start)
        self._recent: dict[int, bytes] = {}

    def find(self, key: str) -> Iterator[bytes]:
        """Yield the paths of the bags with a key."""
        start = b"\0" + key.encode() + b" "
        number = _page(key, self._pages)
        if number not in self._recent:
            if len(self._recent) == _KEPT:
                self._recent.clear()
            self._recent[number] = b"\0" + self._body(number)
        body = self._recent[number]
        at = body.find(start)
        while at >= 0:
            end = body.index(b"\0", at + 1)
            yield body[at:end].split(b" ", 3)[3]
            at = body.find(start, end)

    def all(self) -> Iterator[tuple[bytes, IndexedBag]]:
        """Yield path and bag of all."""
        for number in range(self._pages):
            for line in self._body(number).split(b"\0")[:-1]:
                key, inode, changed, place = line.split(b" ", 3)
                yield place, IndexedBag(key.decode(), int(inode), int(changed))

    def _body(self, number: int) -> bytes:
        """Return the lines of a page, as :func:`write_table` writes them."""
        offsets = self._read(_START.size + 8 * number, _OFFSET.size)
        start, stop = _OFFSET.unpack(offsets) if len(offsets) == _OFFSET.size else (0, 0)
        if not 4 <= stop - start < 1 << 30:
            raise ValueError("damaged")
        data = self._read(start, stop - start)
        if data[:4] != _checksum(number, data[4:]):
            raise ValueError("damaged")
        return data[4:]

    def _read(self, offset: int, size: int) -> bytes:
        if hasattr(os, "pread"):  # forked processes share the position
            return os.pread(self._descriptor, size, offset)
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        return os.read(self._descriptor, size)
