"""An index of identifiers on disk, for maps, lists and the objects of earlier runs."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from types import TracebackType
from typing import Any

from pressmark.fs.names import decode_fs, encode_fs
from pressmark.migrate.workdir import SCRATCH

__all__ = ["IdentifierIndex"]

# Identifiers in one statement.
_AT_ONCE = 500
_CACHE = -65536  # KiB, negative as SQLite wants them


class IdentifierIndex:
    """Identifiers with a value each, in a temporary file; a context manager that removes the file.

    Identifiers may contain any bytes. The index needs one bit of memory for each.

    Every method raises :class:`OSError` if the file cannot be read or written.

    :param folder: the directory of the file
    :raises OSError: the file cannot be created
    """

    def __init__(self, folder: str) -> None:
        descriptor, self._path = tempfile.mkstemp(SCRATCH[1], SCRATCH[0], folder)
        os.close(descriptor)
        # One process uses the file: no locks, which some network file systems lack, and no recovery.
        self._base = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            for setting in ("journal_mode=OFF", "synchronous=OFF", "locking_mode=EXCLUSIVE", f"cache_size={_CACHE}"):
                list(self._execute(f"PRAGMA {setting}"))
            list(self._execute("CREATE TABLE items (number INTEGER PRIMARY KEY, identifier BLOB, value BLOB)"))
            list(self._execute("BEGIN"))
        except OSError:
            self.__exit__(None, None, None)
            raise
        self._count = 0
        self._used = bytearray()

    def __len__(self) -> int:
        return self._count

    def __enter__(self) -> IdentifierIndex:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._base.close()
        os.unlink(self._path)

    def fill(self, items: Iterable[tuple[str, str]]) -> None:
        """Add all identifiers and values, in their order; to be called once."""
        rows = ((encode_fs(identifier), encode_fs(value)) for identifier, value in items)
        while block := list(islice(rows, 10_000)):
            with self._disk_errors():
                self._base.executemany("INSERT INTO items (identifier, value) VALUES (?, ?)", block)
            self._count += len(block)
        # Sorted at once: inserting into an index would write all over the file.
        list(self._execute("CREATE INDEX by_identifier ON items (identifier)"))
        list(self._execute("COMMIT"))
        self._used = bytearray(self._count // 8 + 1)

    def repeated(self) -> Iterator[tuple[str, int, int, bool]]:
        """Yield repeated identifiers with the numbers of both occurrences, and whether their values are equal.

        Numbers count from 0, in the order of :meth:`fill`.
        """
        before: tuple[bytes, int, bytes] | None = None
        for identifier, number, value in self._execute(
            "SELECT identifier, number, value FROM items ORDER BY identifier, number"
        ):
            if before is not None and before[0] == identifier:
                yield decode_fs(identifier), before[1] - 1, number - 1, before[2] == value
            else:
                before = identifier, number, value

    def find(self, identifiers: Sequence[str]) -> list[str | None]:
        """Return the value of each identifier, :data:`None` for unknown ones; of repeated ones, the first value."""
        found: dict[bytes, tuple[int, bytes]] = {}
        asked = [encode_fs(identifier) for identifier in identifiers]
        for start in range(0, len(asked), _AT_ONCE):
            some = asked[start : start + _AT_ONCE]
            marks = ",".join("?" * len(some))
            query = f"SELECT identifier, number, value FROM items WHERE identifier IN ({marks}) ORDER BY number"
            for identifier, number, value in self._execute(query, some):
                self._mark(number - 1)
                found.setdefault(identifier, (number, value))
        return [decode_fs(found[one][1]) if one in found else None for one in asked]

    def _execute(self, query: str, values: Sequence[bytes] = ()) -> Iterator[Any]:
        """Execute a statement, and yield its rows."""
        with self._disk_errors():
            yield from self._base.execute(query, values)

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            number = errno.ENOSPC if error.sqlite_errorcode == sqlite3.SQLITE_FULL else errno.EIO
            raise OSError(number, str(error), self._path) from error

    def _mark(self, number: int) -> None:
        self._used[number >> 3] |= 1 << (number & 7)

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield identifiers and values in the order of :meth:`fill`, repeated identifiers once."""
        yield from self._but(bytearray(self._count // 8 + 1))

    def unused(self) -> Iterator[tuple[str, str]]:
        """Yield the :meth:`items` that :meth:`find` has not returned."""
        yield from self._but(bytearray(self._used))

    def _but(self, left_out: bytearray) -> Iterator[tuple[str, str]]:
        """Yield the items whose bit is not set, repeated identifiers once."""
        for _identifier, _first, number, _same in self.repeated():
            left_out[number >> 3] |= 1 << (number & 7)
        for number, identifier, value in self._execute("SELECT number, identifier, value FROM items"):
            if not left_out[number - 1 >> 3] >> (number - 1 & 7) & 1:
                yield decode_fs(identifier), decode_fs(value)
