"""Temporary databases, and errors of temporary files."""

from __future__ import annotations

import errno
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

from pressmark.errors import SpillError

__all__ = ["SPILLING", "TemporaryDatabase"]


class _Spilling:
    """Turns errors of temporary files into a :class:`SpillError`."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if not isinstance(error, sqlite3.OperationalError | OSError):
            return
        if isinstance(error, sqlite3.OperationalError):
            number = errno.ENOSPC if "full" in str(error) else errno.EIO
            reason, cause = str(error), OSError(number, str(error))
        else:
            reason, cause = error.strerror or str(error), error
        advice = "free some space, or set TMPDIR to another directory"
        raise SpillError(
            tempfile.gettempdir(), f"a temporary file cannot be written or read ({reason}); {advice}"
        ) from cause


#: A context in which errors of temporary files are no faults of the input.
SPILLING = _Spilling()


class TemporaryDatabase:
    """Tables of which a few megabytes are in memory; a context manager.

    :param tables: SQL statements that create them
    :param memory: bytes in memory
    :raises SpillError: the temporary file cannot be written or read, like all methods
    """

    def __init__(self, tables: str, memory: int = 2 << 20) -> None:
        # SQLite removes the file of a database without a name.
        self._base = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        settings = f"journal_mode=OFF; PRAGMA temp_store=FILE; PRAGMA cache_size=-{memory >> 10}"
        with SPILLING:
            self._base.executescript(f"PRAGMA {settings}; {tables} BEGIN;")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._base.close()

    def execute(self, statement: str, values: Sequence[object] = ()) -> sqlite3.Cursor:
        """Execute a statement; the cursor has the first row of a query."""
        with SPILLING:
            return self._base.execute(statement, values)

    def execute_many(self, statement: str, values: Iterable[Sequence[object]]) -> None:
        """Execute a statement with each of these values."""
        with SPILLING:
            self._base.executemany(statement, values)

    def rows(self, query: str, values: Sequence[object] = ()) -> Iterator[Any]:
        """Yield the rows of a query."""
        with SPILLING:
            yield from self._base.execute(query, values)
