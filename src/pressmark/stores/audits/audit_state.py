"""The state of the audits of a store: one SQLite file with its objects, and when and how each was verified.

Each verification has a number, its *turn*. So the order of verifications does not depend on clocks: the turn of an
object that was never verified is 0, and that of a damaged object is negative, because it is verified again in the next
run. A round has begun after a turn, and all objects with an earlier turn are due.

One run uses the file at a time, locked by SQLite. Without a write-ahead log, which needs shared memory, the file may be
on a network file system. What a run has committed survives its death.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from threading import RLock
from time import monotonic, time
from types import TracebackType
from typing import Any, NamedTuple

from pressmark.errors import AuditError, quoted_path
from pressmark.fs.names import decode_fs, encode_fs

__all__ = ["AuditState", "Coverage", "KnownObject", "LastResults", "Verification", "last_results"]

FORMAT = 1
# Marks the file, as SQLite suggests: "PrAu".
APPLICATION = 0x50724175
COMMIT_EVERY = 0.5  # seconds
# Paths in one statement.
AT_ONCE = 500
_CACHE = -16384  # KiB, negative as SQLite wants them
_SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value);
CREATE TABLE rounds (number INTEGER PRIMARY KEY, turn INTEGER NOT NULL, begun INTEGER NOT NULL, ended INTEGER);
CREATE TABLE runs (number INTEGER PRIMARY KEY, round INTEGER NOT NULL, begun INTEGER NOT NULL, ended INTEGER NOT NULL,
    seconds REAL NOT NULL, objects INTEGER NOT NULL, bytes INTEGER NOT NULL, errors INTEGER NOT NULL,
    again INTEGER NOT NULL);
CREATE TABLE objects (number INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, inside TEXT, id TEXT,
    first_seen INTEGER NOT NULL, turn INTEGER NOT NULL DEFAULT 0, verified INTEGER, size INTEGER, how TEXT, result TEXT,
    digest TEXT, written TEXT);
CREATE INDEX due ON objects (turn, verified, size);
CREATE TABLE reported (problem TEXT PRIMARY KEY) WITHOUT ROWID;
"""
_COLUMNS = "number, path, inside, id, turn, verified, size, result, digest, written"
_BEGIN_ANEW = "choose another file, or begin a new one: move this file elsewhere"


class KnownObject(NamedTuple):
    """An object in the state.

    :ivar number: its number in the state
    :ivar path: its path in the store
    :ivar inside: the object that contains it; :data:`None` for most
    :ivar id: its identifier, if known
    :ivar turn: the number of its last verification; 0 if it was never verified, negative if it was damaged
    :ivar verified: when it was verified last, in seconds since 1970; :data:`None` for never
    :ivar size: the number of bytes that were verified
    :ivar result: ``ok``, or the kinds of its errors; :data:`None` if it was never verified
    :ivar digest: of its inventory, its manifests, or its files
    :ivar written: of the times when its files were written, where nothing else describes them
    """

    number: int
    path: bytes
    inside: bytes | None
    id: str | None
    turn: int
    verified: int | None
    size: int | None
    result: str | None
    digest: str | None
    written: str | None


class Verification(NamedTuple):
    """The result of verifying an object, as the state records it; see :class:`KnownObject`.

    :ivar how: ``read``, or ``stored`` if the server's digests were used
    """

    id: str | None
    size: int
    how: str
    result: str
    digest: str | None = None
    written: str | None = None


class Coverage(NamedTuple):
    """How much of a store is verified.

    :ivar objects: number of objects
    :ivar verified: those that were verified in the period, or in the current round
    :ivar never: those that were never verified
    :ivar damaged: those with errors when they were verified last
    :ivar oldest: when the object was verified that was verified longest ago, in seconds since 1970
    :ivar bytes_left: an estimate of the size of the objects that are not verified in the period
    """

    objects: int
    verified: int
    never: int
    damaged: int
    oldest: int | None
    bytes_left: int


def _text(path: bytes | str | None) -> str | bytes | None:
    """Return a path or an identifier as text; as bytes if it is not UTF-8."""
    if path is None:
        return None
    encoded = encode_fs(path)
    try:
        return encoded.decode()
    except UnicodeDecodeError:
        return encoded


def _known(row: Sequence[Any]) -> KnownObject:
    number, path, inside, identifier, *rest = row
    return KnownObject(
        number,
        encode_fs(path),
        None if inside is None else encode_fs(inside),
        None if identifier is None else decode_fs(encode_fs(identifier)),
        *rest,
    )


class AuditState:
    """The state in an open file, locked for one run; a context manager. Several threads may use it.

    :param path: the file, created if it does not exist
    :param store: the directory or the address of the store
    :param kind: the kind of the store
    :ivar round: the number of the current round
    :ivar listed: when all objects were listed last, in seconds since 1970; :data:`None` for never
    :raises AuditError: another run uses the file, or it is not the state of this store
    """

    def __init__(self, path: str | bytes | os.PathLike[str], store: str, kind: str) -> None:
        self._path: str = os.fsdecode(path)
        self._lock = RLock()
        self._next_commit = monotonic() + COMMIT_EVERY
        self._begun, self._begin = int(time()), monotonic()
        self.objects = self.bytes = self.errors = self._again = 0
        self.listed: int | None = None
        if os.path.exists(path) and not os.path.isfile(path):
            raise AuditError(self._path, "not a regular file; choose another file for the state")
        with self._errors():
            # A second run fails at once.
            self._base = sqlite3.connect(self._path, timeout=0.2, isolation_level=None, check_same_thread=False)
        try:
            with self._errors():
                self._open(store, kind)
                self._begin_run()
        except BaseException:
            self._base.close()
            raise

    def __enter__(self) -> AuditState:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        with self._lock:
            try:
                self.commit()
            except AuditError:
                if kind is None:
                    raise
            finally:
                self._base.close()

    def _errors(self) -> AbstractContextManager[None]:
        return _sqlite_errors(self._path)

    def _execute(self, query: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        return self._base.execute(query, values)

    def _one(self, query: str, values: Sequence[object] = ()) -> Any:
        """Return the first column of the first row; :data:`None` without a row."""
        row = self._execute(query, values).fetchone()
        return None if row is None else row[0]

    # --- opening --------------------------------------------------------------------------------------------------

    def _open(self, store: str, kind: str) -> None:
        for setting in ("locking_mode=EXCLUSIVE", f"cache_size={_CACHE}"):
            self._execute(f"PRAGMA {setting}")
        self._execute("BEGIN EXCLUSIVE")
        found = self._one("PRAGMA application_id")
        if found == 0 and self._one("SELECT COUNT(*) FROM sqlite_master") == 0:
            self._execute(f"PRAGMA application_id={APPLICATION}")
            self._execute(f"PRAGMA user_version={FORMAT}")
            for statement in filter(str.strip, _SCHEMA.split(";")):
                self._execute(statement)
            self._set(store=_text(store), kind=kind, listed=None)
            self._execute("INSERT INTO rounds (turn, begun) VALUES (0, ?)", [self._begun])
            self._execute("COMMIT")
            self._execute("BEGIN")
            return
        self.listed = _checked_meta(self._base, self._path, store, kind)["listed"]

    def _begin_run(self) -> None:
        """Begin a run."""
        self._round_turn: int
        self.round, self._round_turn = self._execute("SELECT number, turn FROM rounds ORDER BY number DESC").fetchone()
        turns = self._one("SELECT MAX(turn) FROM objects") or 0, -(self._one("SELECT MIN(turn) FROM objects") or 0)
        # An object may have been removed that was verified last.
        self._turn: int = max(*turns, self._round_turn)
        self._next: int = (self._one("SELECT MAX(number) FROM objects") or 0) + 1
        self._is_complete = self._turn > self._round_turn and not self._one(
            "SELECT COUNT(*) FROM (SELECT 1 FROM objects WHERE turn BETWEEN ? AND ? LIMIT 1)",
            [-self._round_turn, self._round_turn],
        )
        self._start: int = self._turn
        last = self._execute("SELECT objects, again FROM runs ORDER BY number DESC LIMIT 1").fetchone()
        self._is_again_first = last is None or last[0] == 0 or last[0] > last[1]
        row = [self.round, self._begun, self._begun]
        self._run = self._execute("INSERT INTO runs VALUES (NULL, ?, ?, ?, 0, 0, 0, 0, 0)", row).lastrowid
        self._last_again, self._last_new, self._last_old = -self._start - 1, 0, 0
        # A bit for each number of an object that was seen in this run.
        self._seen = bytearray(self._next // 8 + 1)

    def begin_round(self) -> bool:
        """Begin a round if the last one is complete, and return whether this run begins one."""
        with self._lock, self._errors():
            if self._is_complete:
                self._execute("UPDATE rounds SET ended = ? WHERE number = ?", [self._begun, self.round])
                self._execute("INSERT INTO rounds (turn, begun) VALUES (?, ?)", [self._turn, self._begun])
                self._execute("DELETE FROM reported")
                self.round, self._round_turn = self.round + 1, self._turn
                self._execute("UPDATE runs SET round = ? WHERE number = ?", [self.round, self._run])
                self._is_complete = False
                return True
        return self._turn == 0

    def _set(self, **values: object) -> None:
        self._base.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def commit(self, *, soon: bool = False) -> None:
        """Write everything to the disk.

        :param soon: only if the last time is half a second ago
        """
        with self._lock, self._errors():
            if soon and monotonic() < self._next_commit:
                return
            counts = [self.objects, self.bytes, self.errors, self._again]
            self._execute(
                "UPDATE runs SET ended = ?, seconds = ?, objects = ?, bytes = ?, errors = ?, again = ?"
                " WHERE number = ?",
                [int(time()), monotonic() - self._begin, *counts, self._run],
            )
            self._execute("COMMIT")
            self._execute("BEGIN")
            self._next_commit = monotonic() + COMMIT_EVERY

    # --- listing --------------------------------------------------------------------------------------------------

    def add(self, found: Sequence[tuple[bytes, bytes | None, str | None]]) -> list[bytes]:
        """Add the objects that are not known yet, mark all as seen, and return the paths of the new ones.

        :param found: path, surrounding object and identifier of each
        """
        with self._lock, self._errors():
            known = {one.path for one in self.known([path for path, _inside, _id in found])}
            new = [one for one in dict.fromkeys(found) if one[0] not in known]
            rows = [
                (number, _text(path), _text(inside), _text(identifier), self._begun)
                for number, (path, inside, identifier) in enumerate(new, self._next)
            ]
            self._base.executemany(
                "INSERT INTO objects (number, path, inside, id, first_seen) VALUES (?, ?, ?, ?, ?)", rows
            )
            for number in range(self._next, self._next + len(rows)):
                self._mark(number)
            self._next += len(rows)
        self.commit(soon=True)
        return [path for path, _inside, _id in new]

    def known(self, paths: Sequence[bytes]) -> list[KnownObject]:
        """Mark the known objects among these paths as seen, and return them in the order of the paths."""
        found: dict[bytes, KnownObject] = {}
        with self._lock, self._errors():
            for begin in range(0, len(paths), AT_ONCE):
                some = [*map(_text, paths[begin : begin + AT_ONCE])]
                marks = ",".join("?" * len(some))
                for row in self._execute(f"SELECT {_COLUMNS} FROM objects WHERE path IN ({marks})", some):
                    one = _known(row)
                    found[one.path] = one
                    self._mark(one.number)
        return [found[path] for path in dict.fromkeys(paths) if path in found]

    def _mark(self, number: int) -> None:
        if number >> 3 >= len(self._seen):
            self._seen.extend(bytes(max(4096, (number >> 3) + 1 - len(self._seen))))
        self._seen[number >> 3] |= 1 << (number & 7)

    def unseen(self) -> Iterator[KnownObject]:
        """Yield the known objects that were not seen in this run."""
        with self._lock:
            end = self._next
        for begin in range(0, end, 8 * AT_ONCE):
            part = self._seen[begin >> 3 : (begin >> 3) + AT_ONCE]
            missing = [
                begin + 8 * at + bit
                for at, byte in enumerate(part)
                if byte != 0xFF
                for bit in range(8)
                if not byte >> bit & 1 and begin + 8 * at + bit < end
            ]
            for first in range(0, len(missing), AT_ONCE):
                some = missing[first : first + AT_ONCE]
                marks = ",".join("?" * len(some))
                with self._lock, self._errors():
                    rows = self._execute(f"SELECT {_COLUMNS} FROM objects WHERE number IN ({marks})", some).fetchall()
                yield from map(_known, rows)

    def complete_listing(self) -> None:
        """Record that all objects were listed."""
        with self._lock, self._errors():
            self.listed = int(time())
            self._set(listed=self.listed)

    def remove(self, one: KnownObject) -> bool:
        """Remove an object that no longer exists, and return whether the state had it."""
        with self._lock, self._errors():
            return bool(self._execute("DELETE FROM objects WHERE number = ?", [one.number]).rowcount)

    def is_first(self, problem: str) -> bool:
        """Return whether a problem outside of objects is not yet recorded as reported in this round; record it."""
        with self._lock, self._errors():
            added = self._execute("INSERT OR IGNORE INTO reported VALUES (?)", [_text(problem)])
            return bool(added.rowcount)

    # --- verification ---------------------------------------------------------------------------------------------

    def due(self, count: int, before: int | None) -> list[KnownObject]:
        """Return the next objects that are due in this run, in their order.

        Those that had errors come first, one before each three others, or after them if the last run verified no
        others: they must not keep the others from their turn, however many or large they are.

        :param count: maximum number of objects
        :param before: only those that were verified before this time, in seconds since 1970; :data:`None` for those
            that were not verified in this round
        """
        with self._lock, self._errors():
            again = self._rows("turn > ? AND turn < 0 ORDER BY turn", [self._last_again], max(1, count // 4))
            if again:
                self._last_again = again[-1].turn
            count -= len(again)
            found: list[KnownObject] = []
            # Objects that were never verified have neither time nor size: in the index, they have the order of numbers.
            where = "turn = 0 AND verified IS NULL AND size IS NULL AND number > ? ORDER BY number"
            if len(found) < count:
                new = self._rows(where, [self._last_new], count - len(found))
                if new:
                    self._last_new = new[-1].number
                found += new
            if len(found) < count:
                found += self._old(count - len(found), before)
        for number, one in enumerate(again):
            found.insert(4 * number + (0 if self._is_again_first else 3), one)
        return found

    def _old(self, count: int, before: int | None) -> list[KnownObject]:
        if before is None:
            where, values = "turn > ? AND turn <= ? ORDER BY turn", [self._last_old, self._round_turn]
        else:
            # A time in the future is of a clock that was wrong.
            where = "turn > ? AND turn <= ? AND (verified < ? OR verified > ?) ORDER BY turn"
            values = [self._last_old, self._start, before, int(time())]
        found = self._rows(where, values, count)
        # Nothing else becomes due in this run.
        self._last_old = found[-1].turn if found else self._start
        return found

    def _rows(self, where: str, values: Sequence[object], count: int) -> list[KnownObject]:
        query = f"SELECT {_COLUMNS} FROM objects WHERE {where} LIMIT ?"
        return [*map(_known, self._execute(query, [*values, count]))]

    def is_due(self, one: KnownObject, before: int | None) -> bool:
        """Return whether an object is due; ``before`` is that of :meth:`due`."""
        if one.turn < 0:
            return one.turn >= -self._start
        if one.turn == 0 or before is None:
            return one.turn <= self._round_turn
        assert one.verified is not None
        return one.turn <= self._start and not before <= one.verified <= int(time())

    def record(self, one: KnownObject, result: Verification) -> None:
        """Record a verification. Digests of a damaged object are kept as they were."""
        with self._lock, self._errors():
            is_ok = result.result == "ok"
            self._turn += 1
            self.objects += 1
            self.bytes += result.size
            self.errors += not is_ok
            self._again += one.turn < 0
            self._execute(
                "UPDATE objects SET turn = ?, verified = ?, id = COALESCE(?, id), size = ?, how = ?, result = ?,"
                " digest = COALESCE(?, digest), written = COALESCE(?, written) WHERE number = ?",
                [
                    self._turn if is_ok else -self._turn,
                    int(time()),
                    _text(result.id),
                    result.size,
                    result.how,
                    result.result,
                    result.digest,
                    result.written,
                    one.number,
                ],
            )
        self.commit(soon=True)

    def others_with_id(self, one: KnownObject, identifier: str) -> bytes | None:
        """Return the path of another object that has the same identifier; :data:`None` without one."""
        with self._lock, self._errors():
            self._execute("CREATE INDEX IF NOT EXISTS ids ON objects (id)")
            query = "SELECT path FROM objects WHERE id = ? AND number != ? ORDER BY number LIMIT 1"
            found = self._one(query, [_text(identifier), one.number])
        return None if found is None else encode_fs(found)

    # --- summary --------------------------------------------------------------------------------------------------

    def coverage(self, since: int | None) -> Coverage:
        """Return how much is verified.

        :param since: since this time; :data:`None` for the current round
        """
        edge, when = self._round_turn, ""
        if since is not None:
            edge, when = 0, "AND verified BETWEEN :since AND :now"
        ranges = ("turn = 0", "turn < 0", "turn > 0", f"turn < -:edge {when}", f"turn > :edge {when}")
        values = {"edge": edge, "since": since, "now": int(time())}
        with self._lock, self._errors():
            # One pass over an index with sums of conditions takes three times as long as these.
            never, damaged, sound, *in_period = [
                self._base.execute(
                    "SELECT COUNT(*), MIN(verified), COALESCE(SUM(size), 0) FROM objects INDEXED BY due"
                    f" WHERE {condition}",
                    values,
                ).fetchone()
                for condition in ranges
            ]
        known = damaged[0] + sound[0]
        size = damaged[2] + sound[2]
        left = size - sum(one[2] for one in in_period) + (never[0] * size / known if known else 0)
        return Coverage(
            never[0] + known,
            sum(one[0] for one in in_period),
            never[0],
            damaged[0],
            min((one[1] for one in (damaged, sound) if one[1] is not None), default=None),
            int(left),
        )

    def last_run(self) -> tuple[int, int] | None:
        """Return the numbers of objects and bytes of the last run that verified any; :data:`None` without one."""
        with self._lock, self._errors():
            query = "SELECT objects, bytes FROM runs WHERE objects > 0 ORDER BY number DESC LIMIT 1"
            found: tuple[int, int] | None = self._execute(query).fetchone()
        return found

    def damaged(self, count: int) -> list[KnownObject]:
        """Return the first objects that had errors when they were verified last."""
        with self._lock, self._errors():
            return self._rows("turn < 0 ORDER BY turn", [], count)

    def every(self) -> float | None:
        """Return the mean number of seconds between the begins of the last runs that verified objects; :data:`None`
        with only one.
        """
        query = "SELECT begun FROM runs WHERE objects > 0 ORDER BY number DESC LIMIT 8"
        with self._lock, self._errors():
            begun = [row[0] for row in self._execute(query)]
        return (begun[0] - begun[-1]) / (len(begun) - 1) if len(begun) > 1 and begun[0] > begun[-1] else None


# --- reading ----------------------------------------------------------------------------------------------------------


class LastResults(NamedTuple):
    """The last verification of each object that a state knows.

    :ivar objects: number of objects
    :ivar periods: for each number of days, the objects without errors that were verified in them
    :ivar earlier: those without errors that were verified longer ago
    :ivar damaged: those with errors when they were verified last
    :ivar never: those that were never verified
    :ivar oldest: when the object was verified that was verified longest ago, in seconds since 1970
    :ivar kinds: for each kind of error, number of objects and path of the first one
    """

    objects: int
    periods: dict[int, int]
    earlier: int
    damaged: int
    never: int
    oldest: int | None
    kinds: dict[str, tuple[int, str]]


def last_results(
    path: str | bytes | os.PathLike[str], store: str, kind: str, days: Sequence[int], now: int
) -> LastResults:
    """Return how the objects of a store were verified last, without changing the state.

    :param path: the file of the state
    :param store: as for :class:`AuditState`, like ``kind``
    :param days: numbers of days
    :param now: seconds since 1970
    :raises AuditError: the file does not exist, an audit uses it, or it is not the state of this store
    """
    name = os.fsdecode(path)
    if not os.path.isfile(path):
        raise AuditError(name, "no such file; specify the state of an audit of this store")
    with _sqlite_errors(name), closing(sqlite3.connect(name, timeout=0.2, isolation_level=None)) as base:
        base.execute("PRAGMA query_only=1")
        base.execute("BEGIN")
        _checked_meta(base, name, store, kind)
        sums = "".join(f", SUM(turn > 0 AND verified >= {now - 86_400 * one})" for one in days)
        objects, intact, damaged, never, oldest, *within = base.execute(
            f"SELECT COUNT(*), SUM(turn > 0), SUM(turn < 0), SUM(turn = 0), MIN(verified){sums}"
            " FROM objects INDEXED BY due"
        ).fetchone()
        periods = {one: number or 0 for one, number in zip(days, within, strict=True)}
        kinds: Counter[str] = Counter()
        first: dict[str, str] = {}
        groups = "SELECT result, COUNT(*), path, MIN(number) FROM objects WHERE turn < 0 GROUP BY result ORDER BY 4"
        for result, count, where, _number in base.execute(groups):
            for one in result.split():
                kinds[one] += count
                first.setdefault(one, decode_fs(encode_fs(where)))
        return LastResults(
            objects,
            periods,
            (intact or 0) - max(periods.values()),
            damaged or 0,
            never or 0,
            oldest,
            {one: (count, first[one]) for one, count in kinds.most_common()},
        )


def _checked_meta(base: sqlite3.Connection, path: str, store: str, kind: str) -> dict[str, Any]:
    """Return what a state records of itself.

    :raises AuditError: it is not the state of this store
    """
    if base.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise AuditError(path, "not the state of an audit; choose another file")
    if base.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
        raise AuditError(path, f"written by another version of Pressmark; {_BEGIN_ANEW}")
    meta = dict(base.execute("SELECT key, value FROM meta"))
    if (meta["store"], meta["kind"]) != (_text(store), kind):
        what = f"the state of another store, {quoted_path(meta['store'])} ({meta['kind']})"
        raise AuditError(path, f"{what}; choose another file")
    return meta


@contextmanager
def _sqlite_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        # A disk that fails is not a usage error.
        number = {sqlite3.SQLITE_FULL: errno.ENOSPC, sqlite3.SQLITE_IOERR: errno.EIO}.get(_code(error))
        cause = error if number is None else OSError(number, str(error), path)
        raise AuditError(path, _reason(error)) from cause


def _code(error: sqlite3.DatabaseError) -> int:
    return int(getattr(error, "sqlite_errorcode", 0) & 0xFF)


def _reason(error: sqlite3.DatabaseError) -> str:
    """Return the reason of an error, and what to do."""
    code = _code(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "in use by another run; wait for it to finish"
    if code == sqlite3.SQLITE_NOTADB:
        return f"not the state of an audit ({error}); choose another file"
    if code == sqlite3.SQLITE_CORRUPT:
        return f"damaged, or not the state of an audit ({error}); {_BEGIN_ANEW}"
    if code == sqlite3.SQLITE_FULL:
        return "no space left on the device"
    if code == sqlite3.SQLITE_CANTOPEN:
        return "the file cannot be opened; choose a file in a directory that exists and can be written"
    if code == sqlite3.SQLITE_READONLY:
        return "the file cannot be written; correct its permissions, or choose another file"
    return f"the state cannot be read or written ({error})"
