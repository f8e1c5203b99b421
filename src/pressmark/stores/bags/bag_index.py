"""The paths of the bags in a folder by identifier: bags of other programs may be anywhere, with any name.

Each scan reads only new bags, so that filling a folder takes linear time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from time import monotonic, time_ns

from pressmark.fs.entries import DirectoryEntry, kind_of_entry
from pressmark.fs.names import encode_fs
from pressmark.stores.store import StoreObject

__all__ = ["BagIndex"]

# A scan stays recent for this multiple of its duration.
_PATIENCE = 20
# The coarsest resolution of file system timestamps; later changes may not show within it.
_TICK = 2_000_000_000  # nanoseconds


class BagIndex:
    """The bags of a folder, as of the last scan.

    :param base: the folder
    :param read: yields the bags at and below some of its entries
    """

    def __init__(self, base: bytes, read: Callable[[Iterable[DirectoryEntry]], Iterable[object]]) -> None:
        self._base = base
        self._read = read
        self._places: dict[str, bytes] = {}
        # Inodes of the bags directly in the folder, to recognise them.
        self._known: dict[bytes, int] = {}
        self._stamp: int | None = None
        self._seconds = 0.0
        self._ended = 0.0

    def find(self, identifier: str) -> bytes | None:
        """Return the path of the first bag with an identifier; :data:`None` if the last scan found no such bag."""
        return self._places.get(identifier)

    def is_fresh(self) -> bool:
        """Return whether the folder itself has not changed since the last scan."""
        return self._stamp == self._time()

    def is_recent(self) -> bool:
        """Return whether the last scan was recent, relative to its duration."""
        return monotonic() - self._ended < _PATIENCE * self._seconds

    def look(self, *, whole: bool = False) -> None:
        """Find new and removed bags.

        :param whole: read all bags again
        :raises OSError: the folder cannot be read
        """
        begin = monotonic()
        # First, so that later changes are found the next time.
        stamp = self._time()
        settled = time_ns() - stamp > _TICK
        inodes: dict[bytes, int] = {}
        fresh: list[DirectoryEntry] = []
        with os.scandir(self._base) as entries:
            for entry in entries:
                inode = entry.inode()
                inodes[entry.name] = inode
                if whole or self._known.get(entry.name) != inode:
                    fresh.append(DirectoryEntry(entry.name, kind_of_entry(entry), entry.is_symlink()))
        if not whole and any(name not in inodes or inodes[name] != inode for name, inode in self._known.items()):
            # A bag is gone: another one with its identifier may have been skipped.
            self.look(whole=True)
            return
        if whole:
            self._places, self._known = {}, {}
        fresh.sort()
        for item in self._read(fresh):
            if isinstance(item, StoreObject) and item.id is not None:
                place = encode_fs(item.path)
                self._places.setdefault(item.id, place)
                if place in inodes:
                    self._known[place] = inodes[place]
        self._stamp = stamp if settled else None
        self._ended = monotonic()
        self._seconds = self._ended - begin

    def note(self, identifier: str, place: bytes) -> None:
        """Record a bag that was stored at a path."""
        self._places[identifier] = place
        if b"/" not in place:
            self._known[place] = os.lstat(os.path.join(self._base, place)).st_ino

    def forget(self, identifier: str, place: bytes) -> None:
        """Record that a bag was removed."""
        self._places.pop(identifier, None)
        self._known.pop(place, None)

    def _time(self) -> int:
        return os.stat(self._base).st_mtime_ns
