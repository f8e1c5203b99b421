"""Where the bags of a folder are, by their identifiers: those that others have made may lie anywhere, called anyhow.

Looking again reads only bags that have come since, so that a folder fills in time that is linear in its bags.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from time import monotonic, time_ns

from pressmark.fs.entries import DirectoryEntry, kind_of_entry
from pressmark.fs.names import encode_fs
from pressmark.stores.store import StoreObject

__all__ = ["BagIndex"]

# After a look, so many times as long as that took pass before it is out of date.
_PATIENCE = 20
# What comes within one tick of a file system's clock does not show in the folder's time. The coarsest ticks are these.
_TICK = 2_000_000_000  # nanoseconds


class BagIndex:
    """The bags of a folder, as they were when it was looked at last.

    :param base: the folder
    :param read: gives the bags at and below some of its entries
    """

    def __init__(self, base: bytes, read: Callable[[Iterable[DirectoryEntry]], Iterable[object]]) -> None:
        self._base = base
        self._read = read
        self._places: dict[str, bytes] = {}
        # Bags directly in the folder that were read, with what tells them from others of the same name.
        self._known: dict[bytes, int] = {}
        self._stamp: int | None = None
        self._seconds = 0.0
        self._ended = 0.0

    def find(self, identifier: str) -> bytes | None:
        """Return where the first bag with an identifier was; :data:`None` where there was none."""
        return self._places.get(identifier)

    def is_fresh(self) -> bool:
        """Return whether nothing has come or gone directly in the folder since it was looked at."""
        return self._stamp == self._time()

    def is_recent(self) -> bool:
        """Return whether it was looked at a moment ago, as folders of this size go."""
        return monotonic() - self._ended < _PATIENCE * self._seconds

    def look(self, *, whole: bool = False) -> None:
        """Look what has come and gone.

        :param whole: read all bags again
        :raises OSError: the folder cannot be read
        """
        begin = monotonic()
        # Before anything else: what comes meanwhile is found the next time.
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
            # One is gone: another with its identifier, which was passed over, may have its turn now.
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
        """Note a bag that was put at a place."""
        self._places[identifier] = place
        if b"/" not in place:
            self._known[place] = os.lstat(os.path.join(self._base, place)).st_ino

    def forget(self, identifier: str, place: bytes) -> None:
        """Note that a bag was removed."""
        self._places.pop(identifier, None)
        self._known.pop(place, None)

    def _time(self) -> int:
        return os.stat(self._base).st_mtime_ns
