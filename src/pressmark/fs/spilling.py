"""Errors of temporary files and databases."""

from __future__ import annotations

import errno
import sqlite3
import tempfile
from types import TracebackType

from pressmark.errors import SpillError

__all__ = ["SPILLING"]


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
