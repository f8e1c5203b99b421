"""The paths of the bags in a folder by identifier: bags of other programs may be anywhere, with any name.

A bag that is found is verified by its own tag files. A bag is reported as missing only if the folder, and each
directory of bags in it, is unchanged since it was read; otherwise changed directories are read again:

* A :class:`~pressmark.stores.bags.directory_watch.DirectoryWatch` reports changes of the folder itself, where the
  system can. Otherwise, and for the time between two processes, times of content and status are compared.
* A time is used only if it was old when the directory was read, because two changes may have the same time.
* A bag that another program may still be writing is read again for a while.

An identifier that is edited in a bag that has one is found by the walk of :meth:`BagFolderReader.objects`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from math import isqrt
from threading import RLock
from time import monotonic, time_ns

from pressmark.fs.file_errors import kind_of_mode
from pressmark.fs.locks import FileLock
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.owners import make_shared, require_shared
from pressmark.fs.staging import LOCK
from pressmark.fs.trees import DirectoryEntry
from pressmark.reports import Problem
from pressmark.stores.bags import archives
from pressmark.stores.bags.directory_watch import DirectoryWatch
from pressmark.stores.bags.index_file import (
    NAME,
    Head,
    IndexedBag,
    Stamp,
    Table,
    key_of,
    read_head,
    remove_index,
    write_head,
    write_table,
)
from pressmark.stores.store import StoreObject

__all__ = ["BagIndex"]

# Without a watch, what was read stays recent for this multiple of its duration. An index on disk is written as rarely.
_PATIENCE = 20
# The coarsest resolution of file system timestamps; later changes may not show within it.
_TICK = 2_000_000_000  # nanoseconds
# Programs write the identifier after all digests, and may write it slowly.
_YOUNG = 3_600_000_000_000  # nanoseconds
_SLOW = 60_000_000_000
# Reading fewer bags takes less time than an index.
_WORTHWHILE = 50
# After storing this share of the bags, merging all into the table takes little time.
_MANY = 1 / 50
_DAMAGED = (OSError, ValueError)


class BagIndex:
    """The bags of a folder, as far as they were read.

    :param base: the folder
    :param work: its work directory, for the index on disk
    :param is_kept: whether the index is kept on disk
    :param scan: returns the entries of a directory in the folder that are not ignored; :data:`None` if it is a bag
    :param read: yields the bags and problems at and below a path of a kind; first calls its last argument with the path
        of each directory and archive that it reads
    """

    def __init__(
        self,
        base: bytes,
        work: bytes,
        is_kept: bool,
        scan: Callable[[bytes], list[DirectoryEntry] | None],
        read: Callable[[bytes, str, Callable[[bytes], object]], Iterable[StoreObject | Problem]],
    ) -> None:
        self._base, self._work, self._is_kept = base, work, is_kept
        self._scan, self._read = scan, read
        self._turn = RLock()
        self._is_loaded = False
        self._watch: DirectoryWatch | None = None
        # All names in the folder are known, except the changed ones, which the watch has reported; without a watch,
        # all names are known while the folder has this stamp.
        self._is_root_known = False
        self._changed: set[bytes] = set()
        self._is_changed = False  # by this process, since the last claim
        self._root: Stamp | None = None
        self._version = 0  # counts changes of the following
        self._clear()
        self._saved = self._version  # the one on disk
        self._next_save = self._seconds = self._ended = 0.0

    def _clear(self) -> None:
        self._root = None
        self._is_root_known = False
        self._table: Table | None = None
        self._table_name = b""
        self._directories: dict[bytes, Stamp | None] = {}
        self._unfinished: dict[bytes, Stamp | None] = {}
        self._added: dict[bytes, IndexedBag] = {}
        self._removed: set[bytes] = set()
        self._by_key: dict[str, list[bytes]] = {}
        self._version += 1

    # --- finding ------------------------------------------------------------------------------------------------------

    def places(self, identifier: str, *, soon: bool = False, whole: bool = False) -> list[bytes]:
        """Return the paths of the bags that had an identifier when they were read, in order; read what has changed.

        :param soon: bags that other programs have just added need not be found
        :param whole: read all bags again
        :raises OSError: the folder cannot be read
        """
        with self._turn:
            self._refresh(soon, whole)
            try:
                return self._find(key_of(identifier))
            except _DAMAGED:  # the table
                self._refresh(False, True)
                return self._find(key_of(identifier))

    def _find(self, key: str) -> list[bytes]:
        found = {place for place in self._by_key.get(key, ()) if place in self._added and self._added[place].key == key}
        if self._table is not None:
            found.update(filter(self._is_in_table, self._table.find(key)))
        return sorted(found, key=lambda place: place.split(b"/"))

    def keys(self, *, refresh: bool = False) -> dict[bytes, str]:
        """Return the keys of the bags by path, as they were read.

        :param refresh: read what has changed
        :raises OSError: the folder cannot be read
        """
        with self._turn:
            self._load()
            if refresh:
                self._refresh(False, False)
            try:
                return {place: bag.key for place, bag in self._all().items()}
            except _DAMAGED:
                return {}

    def is_complete(self) -> bool:
        """Return whether the system reports changes of the folder, and each bag has a known identifier."""
        try:
            return self._watch is not None and not self._unfinished and not self._find(key_of(None))
        except _DAMAGED:  # the table
            return False

    def is_on_disk(self) -> bool:
        """Return whether there is an index on disk."""
        return os.path.lexists(os.path.join(self._work, NAME))

    def discard(self) -> None:
        """Clear the index, and remove it from disk.

        :raises OSError: it cannot be removed
        """
        with self._turn:
            self._clear()
            remove_index(self._work)

    def open(self) -> None:
        """Read the index on disk, if that has not been done; before a change, so that it need not be read again."""
        with self._turn:
            if self._is_kept:
                self._load()

    def note(self, identifier: str, place: bytes) -> None:
        """Record a bag that was stored at a path."""
        with self._turn:
            status = os.lstat(os.path.join(self._base, place))
            self._add(place, IndexedBag(key_of(identifier), status.st_ino, status.st_ctime_ns))
            self._unfinished.pop(place, None)
            self._is_changed = True

    def forget(self, place: bytes) -> None:
        """Record that a bag was removed."""
        with self._turn:
            self._remove(place)
            self._is_changed = True

    # --- reading what has changed -------------------------------------------------------------------------------------

    def _refresh(self, soon: bool, whole: bool) -> None:
        self._load()
        begin = monotonic()
        is_recent = soon and begin - self._ended < _PATIENCE * self._seconds
        is_root_fresh = self._is_root_fresh(is_recent)
        stale = [] if is_recent else self._stale()
        if whole or not is_root_fresh or self._changed or stale:
            try:
                self._look(is_root_fresh, stale, whole)
            except _DAMAGED:  # the table; or the folder, which fails again
                self._look(False, [], True)
        if not is_recent:
            self._ended = monotonic()
            self._seconds = self._ended - begin

    def _is_root_fresh(self, is_recent: bool) -> bool:
        """Return whether all names in the folder itself are known, except the changed ones."""
        if self._watch is None:
            return is_recent or (self._root is not None and self._root == _stamp(self._base))
        names = self._watch.names()
        if names is None:
            self._is_root_known = False
            self._start_watch()
        else:
            self._changed |= names - {os.path.basename(self._work)}
        return self._is_root_known

    def _stale(self) -> list[bytes]:
        """Return the paths in the folder that have changed, or may have changed."""
        for place, stamp in list(self._unfinished.items()):
            # A broken archive may be repaired at any time.
            if stamp is not None and _age(stamp) > _YOUNG and archives.stem(os.path.basename(place)) is None:
                del self._unfinished[place]
        return [
            place
            for places in (self._directories, self._unfinished)
            for place, stamp in places.items()
            if stamp is None or stamp != _stamp(os.path.join(self._base, place))
        ]

    def _look(self, is_root_fresh: bool, stale: list[bytes], whole: bool) -> None:
        """Read what has changed."""
        if whole:
            self._clear()
        if whole or not is_root_fresh:
            self._root, self._is_root_known = None, False
            # First, so that later changes are found the next time.
            stamp = _stamp(self._base)
            self._compare(b"", self._all())
            self._root, self._is_root_known = _settled(stamp), True
            self._version += 1
        for name in sorted(self._changed):
            self._examine(name)
            self._changed.discard(name)
        known = self._all() if any(place in self._directories for place in stale) else None
        for place in stale:
            if place in self._directories or place in self._unfinished:
                self._examine(place, known)

    def _examine(self, place: bytes, known: dict[bytes, IndexedBag] | None = None) -> None:
        """Read a path again.

        :param known: all bags, to read only what has changed in a directory of bags
        """
        try:
            status = os.lstat(os.path.join(self._base, place))
        except (FileNotFoundError, NotADirectoryError):
            self._remove(place)
            return
        if known is not None and place in self._directories and stat.S_ISDIR(status.st_mode):
            self._compare(place, known)
            return
        bag = self._added.get(place)
        if (
            bag is None or place in self._unfinished or bag[1:] != (status.st_ino, status.st_ctime_ns)
        ):  # otherwise noted
            self._remove(place)
            self._read_again(place, kind_of_mode(status.st_mode) or "file")

    def _compare(self, directory: bytes, known: dict[bytes, IndexedBag]) -> None:
        """Read the new and changed entries of a directory, and remove the ones that are gone.

        :raises OSError: the folder itself cannot be read
        """
        path = os.path.join(self._base, directory)
        stamp = _stamp(path)
        try:
            entries = self._scan(directory)
        except OSError:
            if not directory:
                raise
            self._directories[directory] = None
            return
        if entries is None:
            self._remove(directory)
            self._read_again(directory, "directory")
            return
        places = {os.path.join(directory, entry.name): entry.kind for entry in entries if _may_be_bag(entry)}
        start = len(directory) + 1 if directory else 0
        for place in [*known, *self._directories]:
            if not start or place.startswith(directory + b"/"):
                end = place.find(b"/", start)
                top = place if end < 0 else place[:end]
                if top not in places:
                    self._remove(top)
        for place, kind in places.items():
            if place in self._directories or place in self._unfinished:
                continue  # examined on its own
            bag = known.get(place)
            if bag is None or not _is_same(os.path.join(self._base, place), bag):
                self._remove(place)
                self._read_again(place, kind)
        if directory:
            self._directories[directory] = _settled(stamp)
            self._version += 1

    def _read_again(self, place: bytes, kind: str) -> None:
        """Record the bags at and below a path, the directories of bags, and what may be unfinished."""
        seen: dict[bytes, Stamp | None] = {}

        def visit(visited: bytes) -> None:
            seen[visited] = _stamp(os.path.join(self._base, visited))

        self._directories[place] = None  # until all of it is read
        for item in self._read(place, kind, visit):
            found = encode_fs(item.path)
            if isinstance(item, Problem):
                if item.kind in ("unreadable", "leftover"):
                    seen[found] = None
                continue
            stamp = seen.pop(found, None)
            inode, _, changed = stamp or (0, 0, 0)
            self._add(found, IndexedBag(key_of(item.id), inode, changed))
            if item.id is None:
                self._unfinished[found] = None if _is_unreadable(item) else _settled(stamp)
            elif _age(stamp) < _YOUNG and _is_named_after(item) and not self._has_tag_manifest(found):
                self._unfinished[found] = stamp if _age(stamp) > _SLOW else None
        del self._directories[place]
        self._directories.update({directory: _settled(stamp) for directory, stamp in seen.items()})
        self._version += 1

    def _has_tag_manifest(self, place: bytes) -> bool:
        """Return whether a bag has a tag manifest, which is written after all other tag files."""
        try:
            return any(name.startswith(b"tagmanifest-") for name in os.listdir(os.path.join(self._base, place)))
        except OSError:
            return False

    def _add(self, place: bytes, bag: IndexedBag) -> None:
        self._added[place] = bag
        self._by_key.setdefault(bag.key, []).append(place)
        self._version += 1

    def _remove(self, place: bytes) -> None:
        """Remove a path and everything below it."""
        if self._directories.pop(place, self) is not self:
            for items in (self._added, self._directories, self._unfinished):
                for found in [one for one in items if one.startswith(place + b"/")]:
                    del items[found]
        self._added.pop(place, None)
        self._unfinished.pop(place, None)
        if self._table is not None:
            self._removed.add(place)
        self._version += 1

    def _is_removed(self, place: bytes) -> bool:
        while place:
            if place in self._removed:
                return True
            place = place.rpartition(b"/")[0]
        return False

    def _all(self) -> dict[bytes, IndexedBag]:
        """Return all bags.

        :raises ValueError: the table is damaged
        """
        found = dict(self._added)
        if self._table is not None:
            found.update((place, bag) for place, bag in self._table.all() if self._is_in_table(place))
        return found

    def _is_in_table(self, place: bytes) -> bool:
        """Return whether the table is right about a path."""
        return place not in self._added and not self._is_removed(place)

    # --- the index on disk --------------------------------------------------------------------------------------------

    def _load(self) -> None:
        if self._is_loaded:
            return
        self._is_loaded = True
        self._start_watch()  # before any stamp is compared
        head = read_head(self._work) if self._is_kept else None
        if head is None:
            return
        try:
            table = Table(os.path.join(self._work, head.table)) if head.table else None
        except _DAMAGED:
            return
        self._table, self._table_name = table, head.table
        self._directories, self._unfinished = head.directories, head.unfinished
        self._added, self._removed = head.added, head.removed
        for place, bag in self._added.items():
            self._by_key.setdefault(bag.key, []).append(place)
        self._root = self._directories.pop(b"", None)
        self._is_root_known = self._root is not None and self._root == _stamp(self._base)
        self._saved = self._version

    def _start_watch(self) -> None:
        self._watch = None
        with suppress(OSError):
            self._watch = DirectoryWatch(self._base)

    def save(self, *, soon: bool = True, stored: int = 0) -> None:
        """Write the index to disk if it has changed and saves later runs the time of reading the folder.

        The index is optional, so errors are ignored.

        :param soon: not if it was written recently
        :param stored: the number of bags that the caller has stored
        """
        begin = monotonic()
        if not self._is_kept or self._version == self._saved or (soon and begin < self._next_save):
            return
        with self._turn, suppress(*_DAMAGED):
            count = len(self._added) + (self._table.count - len(self._removed) if self._table is not None else 0)
            if count >= _WORTHWHILE or len(self._all()) >= _WORTHWHILE:
                # Every run reads the bags beside the table, and the last one of these writes it.
                self._save(self._work, 0 if stored > _MANY * count else isqrt(count))
            elif self.is_on_disk():
                remove_index(self._work)
        self._next_save = monotonic() + _PATIENCE * (monotonic() - begin)

    def _save(self, work: bytes, most: int) -> None:
        """Write the index.

        :param most: the number of changes beside the table; more are merged into it
        """
        if not (self._is_root_known or self._watch is None):
            return
        with suppress(FileExistsError):
            make_shared(work)
        require_shared(work)
        root, version = self._claim(), self._version
        with FileLock(os.path.join(work, LOCK)):
            beside = len(self._added) + len(self._removed)
            table = os.path.join(work, self._table_name)
            if self._table is None or beside > most or not os.path.lexists(table):
                name = write_table(work, self._all())
                self._table, self._table_name = Table(os.path.join(work, name)), name
                self._added, self._by_key, self._removed = {}, {}, set()
            directories = {b"": root, **self._directories}
            write_head(work, Head(self._table_name, directories, self._unfinished, self._added, self._removed))
        self._saved = version

    def _claim(self) -> Stamp | None:
        """Return a stamp that the folder has only while all names in it are known; :data:`None` without one."""
        if self._watch is None:
            return self._root
        for _ in range(3):
            self._refresh(False, False)
            # Instead of waiting for the clock; a reader does not change the folder.
            mark = self._watch.mark() if self._is_changed and self._watch is not None else None
            stamp = _stamp(self._base)
            if self._watch is None or stamp is None:
                return None
            if not self._watch.settle(max(stamp[1:]), is_marked=stamp[1] == mark):
                return None
            if self._is_root_fresh(False) and not self._changed and _stamp(self._base) == stamp:
                self._is_changed = False
                return stamp
        return None


def _stamp(path: bytes) -> Stamp | None:
    """Return the stamp of a file or directory; :data:`None` if it does not exist or is not accessible."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _age(stamp: Stamp | None) -> int:
    """Return the time since the last change, in nanoseconds."""
    return 0 if stamp is None else time_ns() - max(stamp[1:])


def _settled(stamp: Stamp | None) -> Stamp | None:
    """Return a stamp that any later change alters; :data:`None` if the last change was just now."""
    return stamp if _age(stamp) > _TICK else None


def _may_be_bag(entry: DirectoryEntry) -> bool:
    return entry.kind == "directory" or (entry.kind == "file" and archives.stem(entry.name) is not None)


def _is_named_after(item: StoreObject) -> bool:
    """Return whether a bag may have its identifier from its name."""
    name = os.path.basename(encode_fs(item.path))
    return item.id == decode_fs(archives.stem(name) or name)


def _is_unreadable(item: StoreObject) -> bool:
    return item.id is None and any(one.kind in ("unreadable", "file-unreadable") for one in item.problems)


def _is_same(path: bytes, bag: IndexedBag) -> bool:
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return bag[1:] == (status.st_ino, status.st_ctime_ns)
