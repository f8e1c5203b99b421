"""The rows of a report: the status of each object."""

from __future__ import annotations

import builtins
import json
from typing import Any, NamedTuple

from pressmark.migrate.planning.entry import PlanEntry

__all__ = ["GOOD", "SOURCE_KEPT", "STATUSES", "Row"]

#: The statuses of objects, and their meanings.
STATUSES = {
    "ok": "in the destination, and verified as requested",
    "exists_same": "already in the destination, with the same content",
    "exists_different": "another object or other files are at this path; nothing was changed",
    "collision": "the path in the destination belongs to another object, or is inside one",
    "refused_name": "the destination does not allow the identifier or the name of a file",
    "source_missing": "not in the source",
    "source_invalid": "the source object is invalid, or changed while it was read",
    "digest_mismatch": "the content does not match a recorded digest",
    "copy_failed": "reading or writing failed",
    "unverified": "in the destination, but not verified",
}
#: The statuses of objects that are done.
GOOD = frozenset({"ok", "exists_same"})
#: The error code of an object whose source could not be removed.
SOURCE_KEPT = "source_kept"


_encode = json.JSONEncoder(separators=(",", ":")).encode


class Row(NamedTuple):
    """One object of a report.

    :ivar id: identifier in the destination
    :ivar source_id: identifier in the source
    :ivar source: path relative to the source
    :ivar target: path relative to the destination
    :ivar status: one of :data:`STATUSES`
    :ivar mode: the copy mode: ``rename``, ``reflink``, ``copy`` or ``hardlink``; :data:`None` if no file was copied
    :ivar files: number of files
    :ivar bytes: total size of all files
    :ivar algorithm: algorithm of the digest
    :ivar digest: digest of the whole object; :data:`None` if it was not read
    :ivar verify: how it was verified: ``none``, ``copy``, ``reread``, or ``moved`` for an object that was renamed
    :ivar error_code: a stable word for the error
    :ivar error: error message on one line; without a code, the parts of a migrated object that were left out
    :ivar started: date and time as in RFC 3339, in UTC
    :ivar seconds: duration
    :ivar host: the name of the machine
    :ivar entries: with ``move`` or hard links, and of objects that existed in the destination, the state of the source
        before it was read, or after its files were linked; empty otherwise. See
        :func:`~pressmark.migrate.object_state.entries_digest`
    """

    id: str
    source_id: str
    source: str
    target: str
    status: str
    mode: str | None = None
    files: int = 0
    bytes: int = 0
    algorithm: str | None = None
    digest: str | None = None
    verify: str = "none"
    error_code: str | None = None
    error: str | None = None
    started: str = ""
    seconds: float = 0.0
    host: str = ""
    entries: str = ""

    def record(self) -> dict[str, Any]:
        """Return the JSON object of the row."""
        return self._asdict()

    def entry(self) -> PlanEntry:
        """Return the plan's entry of the object, without its encapsulation."""
        return PlanEntry(self.id, self.source_id, self.source, self.target, None, self.files, self.bytes, self.entries)

    def line(self) -> builtins.bytes:
        """Return the row as a line of JSON; surrogates for bytes that are not UTF-8 are escaped."""
        return _encode(self._asdict()).encode() + b"\n"

    @property
    def noted(self) -> bool:
        """Whether the object is done, except for parts that the destination does not support."""
        return self.status in GOOD and self.error_code is None and self.error is not None

    @classmethod
    def parse(cls, line: builtins.bytes) -> Row:
        """Return the row of a line.

        :raises ValueError: the line is malformed
        """
        try:
            return Row(**json.loads(line))
        except TypeError as error:
            raise ValueError(str(error)) from None
