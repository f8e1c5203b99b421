"""An object during its transfer, and its row."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from time import gmtime, monotonic, strftime, time

from pressmark.migrate.object_digest import ALGORITHM
from pressmark.migrate.planning.entry import PlanEntry
from pressmark.migrate.rows import Row
from pressmark.migrate.transfer.failures import TransferFailure

__all__ = ["InFlight"]


@dataclass(slots=True)
class InFlight:
    """The state of an object during its transfer: see :class:`~pressmark.migrate.rows.Row`.

    :ivar note: the parts that the destination does not support
    """

    entry: PlanEntry
    status: str = "copy_failed"
    mode: str | None = None
    files: int = 0
    bytes: int = 0
    digest: str | None = None
    verify: str = "none"
    entries: str = ""
    failure: TransferFailure | None = None
    note: str | None = None
    _started: float = field(default_factory=time)
    _begun: float = field(default_factory=monotonic)
    _seconds: float | None = None

    def fail(self, failure: TransferFailure) -> None:
        """Record a failure."""
        self.status = failure.status
        self.failure = failure

    def pause(self) -> None:
        """Record the duration; the object now waits for others."""
        if self._seconds is None:
            self._seconds = monotonic() - self._begun

    def row(self, host: str) -> Row:
        """Return the row."""
        self.pause()
        entry = self.entry
        return Row(
            entry.id,
            entry.source_id,
            entry.source,
            entry.target,
            self.status,
            self.mode,
            self.files,
            self.bytes,
            None if self.digest is None else ALGORITHM,
            self.digest,
            self.verify,
            None if self.failure is None else self.failure.code,
            self.note if self.failure is None else self.failure.message,
            _moment(self._started),
            round(self._seconds or 0.0, 6),
            host,
            self.entries,
        )


def _moment(seconds: float) -> str:
    """Return seconds since 1970 as date and time as in RFC 3339, in UTC."""
    thousandths = int(seconds * 1000)
    return f"{_second(thousandths // 1000)}.{thousandths % 1000:03d}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))
