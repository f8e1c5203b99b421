"""The paths of the bags in a folder by identifier: bags of other programs may be anywhere, with any name.

A bag that is found is verified by its own tag files. A bag is reported as missing only if no directory of bags has
changed since it was read. A changed directory is listed, and its new and changed entries are read:

* The times of a directory count only if they were old when it was read, because two changes may have the same time.
* A bag that another program may still be writing is read again for a while.

An identifier that is edited in a bag that has one is found by :class:`~pressmark.stores.bags.walk.BagWalk`.

The index is an SQLite database in memory. Of many bags, there is a copy ``index`` in the work directory, with a journal
``index-journal`` while it is written. The copy is a cache: if it is damaged or locked, all bags are read.
"""

from __future__ import annotations

import errno
import os
import stat
import weakref
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from functools import lru_cache
from hashlib import blake2b
from threading import RLock
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pressmark.fs.atomic import new_file
from pressmark.fs.file_errors import kind_of_mode
from pressmark.fs.locks import FileLock
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.owners import make_shared, require_shared
from pressmark.fs.staging import LOCK
from pressmark.fs.trees import Wanted, scan, trees
from pressmark.reports import Problem
from pressmark.stores.bags import archives
from pressmark.stores.objects import StoreObject

if TYPE_CHECKING:
    import sqlite3  # imported on first use: most runs need no index

__all__ = ["NAME", "BagIndex", "key_of"]

#: The name of the index on disk.
NAME = b"index"

# What was read stays recent for this multiple of its duration.
_PATIENCE = 20
# The index on disk is written so rarely, as a multiple of the duration; other processes read what is not in it.
_RARELY = 100
# The coarsest resolution of file system timestamps; later changes may not show within it.
_TICK = 2_000_000_000  # nanoseconds
# Programs write the identifier after all digests, and may write it slowly.
_YOUNG = 3_600_000_000_000  # nanoseconds
_SLOW = 60_000_000_000
# Reading fewer bags takes less time than an index.
_WORTHWHILE = 50
# How long to wait for a process that writes the index.
_TIMEOUT = 1.0  # seconds

# The kinds of entries. Directories of bags, and bags that may be unfinished, are watched: looked at each time.
_BAG, _DIRECTORY, _UNFINISHED = range(3)
_SCHEMA = f"""
PRAGMA journal_mode = OFF;
CREATE TABLE entries (
    path BLOB PRIMARY KEY, kind INTEGER NOT NULL, key INTEGER, inode INTEGER, modified INTEGER, changed INTEGER
) WITHOUT ROWID;
CREATE INDEX by_key ON entries (key);
CREATE INDEX watched ON entries (path) WHERE kind > {_BAG};
INSERT INTO entries VALUES (x'', {_DIRECTORY}, NULL, NULL, NULL, NULL);
"""
_ROW = "SELECT * FROM entries WHERE path = ?"
_TREE = f"{_ROW} UNION ALL SELECT * FROM entries WHERE path > ? AND path < ?"
# Whether a bag has a key, or one may be unfinished.
_FOUND = f"""
SELECT 1 FROM entries INDEXED BY by_key WHERE key = ?
UNION ALL SELECT 1 FROM entries INDEXED BY watched WHERE kind > {_BAG} AND kind = {_UNFINISHED} LIMIT 1
"""
_DELETE = "DELETE FROM entries WHERE path = ?"
_INSERT = "INSERT OR REPLACE INTO entries VALUES (?, ?, ?, ?, ?, ?)"
# Differs from the user_version if the index is damaged, and between indexes with different bags.
_VERSION = "SELECT coalesce(sum(key % 2147483647), 0) % 2147483647 FROM entries INDEXED BY by_key"
_LARGEST = (1 << 63) - 1  # of SQLite's integers
_INODES = 0 if os.name == "nt" else _LARGEST  # a listing has none on Windows

# Inode number, times of the last change of content and of status, in nanoseconds; without them an entry is read again.
_Stamp = tuple[int, int, int] | tuple[None, None, None]
_UNKNOWN = (None, None, None)
_STATUS = Wanted(content="none", entries=1 << 40, inside=False)


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@lru_cache(maxsize=2048)  # of a batch: each is looked for several times
def key_of(identifier: str) -> int:
    """Return the digest of an identifier."""
    return int.from_bytes(blake2b(encode_fs(identifier), digest_size=8).digest(), "big") & _LARGEST


def _in_turn(
    method: Callable[Concatenate[BagIndex, Arguments], Result],
) -> Callable[Concatenate[BagIndex, Arguments], Result]:
    """Let one thread at a time call a method; if the index on disk turns out to be damaged, read all bags."""

    def call(self: BagIndex, /, *arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        with self._turn:
            try:
                return method(self, *arguments, **options)
            except _sqlite_error():
                self._clear()
                return method(self, *arguments, **options)

    return call


class BagIndex:
    """The bags of a folder, as far as they were read.

    :param base: the folder
    :param work: its work directory, for the index on disk
    :param is_kept: whether the index is kept on disk
    :param is_bag: returns whether a directory is a bag
    :param read: yields the bags and problems at and below a path of a kind, except ignored ones; first calls its last
        argument with the path of each directory and archive that it reads
    """

    def __init__(
        self,
        base: bytes,
        work: bytes,
        is_kept: bool,
        is_bag: Callable[[bytes], bool],
        read: Callable[[bytes, str, Callable[[bytes], object]], Iterable[StoreObject | Problem]],
    ) -> None:
        self._base, self._work, self._is_kept = base, work, is_kept
        self._is_bag, self._read = is_bag, read
        self._turn = RLock()
        self._memory: sqlite3.Connection | None = None
        # The index on disk: its version, if it is that of the one in memory; and its rows of entries that have changed.
        self._version: int | None = None
        self._changed: dict[bytes, Any] = {}
        self._next_save = self._seconds = self._ended = 0.0

    # --- finding ------------------------------------------------------------------------------------------------------

    @_in_turn
    def paths(self, identifier: str, *, soon: bool = False, whole: bool = False) -> list[bytes]:
        """Return the paths of the bags that had an identifier when they were read, in order; read what has changed.

        :param soon: bags that other programs have just added need not be found
        :param whole: read all bags again
        :raises OSError: the folder cannot be read
        """
        if whole:
            self._clear()
        self._refresh(soon)
        rows = self._rows("SELECT path FROM entries WHERE key = ?", key_of(identifier))
        return sorted((path for (path,) in rows), key=lambda path: path.split(b"/"))

    @_in_turn
    def lacks(self, identifier: str) -> bool:
        """Return whether no bag has an identifier, and all are readable; as :meth:`paths` with ``soon``."""
        self._refresh(True)
        return not self._rows(_FOUND, key_of(identifier))

    @_in_turn
    def keys(self, *, refresh: bool = False) -> dict[bytes, int | None]:
        """Return the keys of the bags by path, as they were read.

        :param refresh: read what has changed
        :raises OSError: the folder cannot be read
        """
        if refresh:
            self._refresh(False)
        elif self._memory is None and not self.is_on_disk():
            return {}
        return dict(self._rows(f"SELECT path, key FROM entries WHERE kind != {_DIRECTORY}"))

    @_in_turn
    def note(self, identifier: str, path: bytes) -> None:
        """Record a bag that was stored at a path."""
        if self._memory is not None:  # otherwise it is read with the other changes
            self._put(path, _BAG, key_of(identifier), self._stamp(path))

    @_in_turn
    def forget(self, path: bytes) -> None:
        """Record that a bag was removed."""
        if self._memory is not None or (self._is_kept and self.is_on_disk()):
            self._remove(path)

    # --- reading what has changed -------------------------------------------------------------------------------------

    def _refresh(self, soon: bool) -> None:
        if soon and monotonic() - self._ended < _PATIENCE * self._seconds:
            return
        database, begin = self._database, monotonic()
        watched = f"SELECT * FROM entries INDEXED BY watched WHERE kind > {_BAG} ORDER BY path"
        for row in database.execute(watched).fetchall():
            path, kind, key, *stamp = row
            if stamp[0] is None or tuple(stamp) != self._stamp(path):
                self._look(path)
            elif kind == _UNFINISHED and key is not None and time_ns() - max(stamp[1:]) > _YOUNG:
                self._changed.setdefault(path, row)
                self._put(path, _BAG, key, stamp)
        self._ended = monotonic()
        self._seconds = self._ended - begin

    def _look(self, path: bytes) -> None:
        """Read what has changed in a directory, or a bag that may be unfinished."""
        row = self._row(path)
        if row is None or row[1] == _BAG:  # read together with the directory above
            return
        self._changed.setdefault(path, row)
        listed = None
        if row[1] == _DIRECTORY:
            # First, so that later changes are found the next time.
            stamp = _if_old(self._stamp(path), time_ns())
            try:
                listed = self._list(path)
            except OSError:
                if not path:
                    raise
        if listed is None:
            self._read_again(path)
        else:
            self._compare(path, listed)
            self._put(path, _DIRECTORY, None, stamp)

    def _list(self, directory: bytes) -> list[tuple[Any, ...]] | None:
        """Return path and stamp of each directory and archive in a directory; :data:`None` if it is a bag.

        :raises OSError: it cannot be read, or is not a directory
        """
        top = os.path.join(self._base, directory)
        if directory and (os.path.islink(top) or self._is_bag(top)):
            return None
        start = directory and directory + b"/"
        found: list[tuple[Any, ...]] = []
        batch = next(trees(top, [b""], _STATUS))
        tree: Any = batch.trees[0]
        if tree.state == "whole" and not any(one.kind in ("device", "closed") for one in tree.others):
            paths = [start + name for name in tree.directories]
            inodes = [number & _INODES for number in batch.folder_inodes]
            found.extend(zip(paths, inodes, batch.folder_mtimes, batch.folder_ctimes, strict=True))
            others = [name for name in tree.files if archives.stem(name) is not None]
        else:  # too many entries for one call, or some of them on another file system
            others = [
                entry.name
                for entry in scan(top, follow=False)
                if entry.kind == "directory" or (entry.kind == "file" and archives.stem(entry.name) is not None)
            ]
        return found + [(start + name, *self._stamp(start + name)) for name in others]

    def _compare(self, directory: bytes, listed: list[tuple[Any, ...]]) -> None:
        """Read the new and changed entries of a directory, and remove the ones that are gone."""
        bags = set(self._below(directory, f"kind = {_BAG}"))
        watched = {row[0] for row in self._below(directory, f"kind > {_BAG}")}
        new = [row[0] for row in listed if row not in bags]
        old = bags.difference(listed) if len(listed) - len(new) < len(bags) else ()
        depth = directory.count(b"/") + 2 if directory else 1
        changed = (*watched, *(row[0] for row in old))
        known = {b"/".join(path.split(b"/", depth)[:depth]) for path in changed}
        for path in known and known.difference(row[0] for row in listed):
            self._remove(path)
        for path in new:
            if path not in watched:  # otherwise it is looked at by itself
                self._read_again(path, path in known)

    def _read_again(self, path: bytes, is_known: bool = True) -> None:
        """Read the bags at and below a path, the directories that contain them, and what may be unfinished."""
        now = time_ns()
        stamps: dict[bytes, _Stamp] = {}
        rows: list[tuple[bytes, int, int | None, _Stamp]] = []
        try:
            status = os.lstat(os.path.join(self._base, path))
        except (FileNotFoundError, NotADirectoryError):
            self._remove(path)
            return

        def visit(visited: bytes) -> None:  # before it is read
            stamps[visited] = _stamp_of(status) if visited == path else self._stamp(visited)

        for item in self._read(path, kind_of_mode(status.st_mode) or "file", visit):
            if isinstance(item, Problem):
                if item.kind in ("unreadable", "leftover"):
                    stamps[next(reversed(stamps))] = _UNKNOWN
                continue
            bag = encode_fs(item.path)
            stamp = stamps.pop(bag, _UNKNOWN)
            key = None if item.id is None else key_of(item.id)
            is_unreadable = key is None and any(one.kind in ("unreadable", "file-unreadable") for one in item.problems)
            if is_unreadable:  # not reported as missing
                key = next((row[2] for row in self._rows(_ROW, bag)), None)
            is_young = _if_old(stamp, now, _YOUNG) == _UNKNOWN and _is_named_after(item)
            if item.id is not None and not (is_young and not self._is_finished(bag)):
                rows.append((bag, _BAG, key, stamp))
            else:
                rows.append((bag, _UNFINISHED, key, _UNKNOWN if is_unreadable else _if_old(stamp, now, _SLOW)))
        rows += [(visited, _DIRECTORY, None, _if_old(stamp, now)) for visited, stamp in stamps.items()]
        if is_known:
            self._remove(path)
        for row in rows:
            self._put(*row)

    def _is_finished(self, path: bytes) -> bool:
        """Return whether a bag has a tag manifest, which is written after all other tag files."""
        try:
            return any(name.startswith(b"tagmanifest-") for name in os.listdir(os.path.join(self._base, path)))
        except OSError:
            return False

    def _stamp(self, path: bytes) -> _Stamp:
        """Return the stamp of a path; unknown if it does not exist or is not accessible."""
        try:
            status = os.lstat(os.path.join(self._base, path))  # with a slash after the folder, which may be a link
        except OSError:
            return _UNKNOWN
        return _stamp_of(status)

    # --- entries ------------------------------------------------------------------------------------------------------

    @property
    def _database(self) -> sqlite3.Connection:
        """The database in memory; it is read from disk on first use."""
        if self._memory is None:
            self._clear()
            if self._is_kept:
                self._load()
        assert self._memory is not None
        return self._memory

    def _rows(self, query: str, *values: Any) -> list[Any]:
        return self._database.execute(query, values).fetchall()

    def _row(self, path: bytes) -> Any:
        return self._database.execute(_ROW, (path,)).fetchone()

    def _below(self, directory: bytes, condition: str) -> list[Any]:
        """Return path and stamp of the entries below a directory that fulfil a condition."""
        query = f"SELECT path, inode, modified, changed FROM entries WHERE {condition} AND path > ?"
        if not directory:
            return self._rows(query, b"")
        return self._rows(f"{query} AND path < ?", directory + b"/", directory + b"0")

    def _put(self, path: bytes, kind: int, key: int | None, stamp: Iterable[int | None]) -> None:
        self._changed.setdefault(path, None)
        self._database.execute(_INSERT, (path, kind, key, *stamp))

    def _remove(self, path: bytes) -> None:
        """Remove a path and everything below it."""
        for row in self._rows(_TREE, path, path + b"/", path + b"0"):
            self._changed.setdefault(row[0], row)
            self._database.execute(_DELETE, row[:1])

    def _clear(self) -> None:
        """Remove all entries, so that all bags are read again."""
        if self._memory is not None:
            self._memory.close()
        self._memory = _connect(b":memory:")
        weakref.finalize(self, self._memory.close)
        self._memory.executescript(_SCHEMA)
        self._version, self._changed, self._seconds = None, {}, 0.0

    # --- the index on disk --------------------------------------------------------------------------------------------

    def is_on_disk(self) -> bool:
        """Return whether there is an index on disk."""
        return os.path.lexists(os.path.join(self._work, NAME))

    def discard(self) -> None:
        """Clear the index, and remove it from disk.

        :raises OSError: it cannot be removed
        """
        with self._turn:
            self._clear()
            self._remove_file()

    def save(self, *, soon: bool = True) -> None:
        """Write the changes to disk if there are many bags. The index is optional, so errors are ignored.

        :param soon: not if it was written recently
        """
        begin = monotonic()
        if not self._is_kept or not self._changed or (soon and begin < self._next_save):
            return
        with self._turn, suppress(OSError, _sqlite_error()):
            is_new = self._version is None or not self.is_on_disk()
            changed = [path for path, row in self._changed.items() if is_new or self._row(path) != row]
            if not changed:
                self._changed = {}
                return
            ((count,),) = self._rows(f"SELECT count(*) FROM entries WHERE kind != {_DIRECTORY}")
            if count >= _WORTHWHILE:
                with suppress(FileExistsError):
                    make_shared(self._work)
                require_shared(self._work)
                with FileLock(os.path.join(self._work, LOCK)):
                    self._replace() if is_new else self._update(changed)
            elif self.is_on_disk():
                self._remove_file()
            self._changed = {}
        self._next_save = monotonic() + _RARELY * (monotonic() - begin)

    def _open(self) -> sqlite3.Connection:
        """Open the index on disk.

        :raises OSError: it does not exist, or is not ours
        """
        require_shared(self._work)
        names = [name for name in os.listdir(self._work) if name.startswith(NAME)]
        # Neither follow a link nor wait for a named pipe.
        if NAME not in names or not all(_is_file(os.path.join(self._work, name)) for name in names):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), self._work)
        return _connect(os.path.join(self._work, NAME))

    def _load(self) -> None:
        """Read the index on disk, unless it is damaged, of another format, or locked for long."""
        with suppress(OSError, _sqlite_error()), closing(self._open()) as disk:
            disk.execute("BEGIN")
            ((version,),) = disk.execute("PRAGMA user_version")  # waits for the lock; backup would wait for ever
            disk.backup(self._database)
            if self._rows(_VERSION) == [(version,)]:
                self._version = version
                return
        self._clear()

    def _update(self, changed: list[bytes]) -> None:
        """Write changed entries."""
        with closing(self._open()) as disk:
            disk.execute("BEGIN IMMEDIATE")
            ((before,),) = disk.execute("PRAGMA user_version")
            disk.executemany(_DELETE, ((path,) for path in changed))
            disk.executemany(_INSERT, filter(None, map(self._row, changed)))
            if before != self._version:
                # Entries of another process may be older than the stamps of our directories, and the reverse.
                disk.execute(f"UPDATE entries SET inode = NULL WHERE kind = {_DIRECTORY}")
            ((after,),) = disk.execute(_VERSION)
            disk.execute(f"PRAGMA user_version = {after}")
            disk.execute("COMMIT")
        self._version = after if before == self._version else -1

    def _replace(self) -> None:
        """Write all entries."""
        self._remove_file()
        path = os.path.join(self._work, NAME)
        os.close(new_file(path, os.O_WRONLY | os.O_CREAT))  # with the usual permissions
        ((version,),) = self._rows(_VERSION)
        self._database.execute(f"PRAGMA user_version = {version}")
        try:
            with closing(_connect(path)) as disk:
                self._database.backup(disk)
        except BaseException:
            self._remove_file()
            raise
        self._version = version

    def _remove_file(self) -> None:
        """Remove the index on disk, also one of an earlier format."""
        self._version = None
        if os.path.islink(self._work):  # not ours: its target may have other files that begin with "index"
            return
        with suppress(FileNotFoundError):
            for name in os.listdir(self._work):
                if name.startswith(NAME):
                    os.unlink(os.path.join(self._work, name))


def _sqlite_error() -> type[Exception]:
    import sqlite3

    return sqlite3.Error


def _connect(path: bytes) -> sqlite3.Connection:
    import sqlite3

    return sqlite3.connect(path, timeout=_TIMEOUT, isolation_level=None, check_same_thread=False)


def _stamp_of(status: os.stat_result) -> _Stamp:
    return status.st_ino & _INODES, min(status.st_mtime_ns, _LARGEST), min(status.st_ctime_ns, _LARGEST)


def _if_old(stamp: _Stamp, now: int, age: int = _TICK) -> _Stamp:
    """Return a stamp that every later change alters; an unknown one if the last change was just now."""
    return stamp if stamp[0] is not None and now - max(stamp[1:]) > age else _UNKNOWN


def _is_file(path: bytes) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)


def _is_named_after(item: StoreObject) -> bool:
    """Return whether a bag may have its identifier from its name."""
    name = os.path.basename(encode_fs(item.path))
    return item.id == decode_fs(archives.stem(name) or name)
