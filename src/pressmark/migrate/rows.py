"""What became of each object: one row, with a status from a short list."""

from __future__ import annotations

import builtins
import json
import re
from typing import Any, NamedTuple

from pressmark.migrate.planning.entry import PlanEntry

__all__ = ["GOOD", "SOURCE_KEPT", "STATUSES", "Row", "RowCounts"]

#: What can become of an object, and what that means.
STATUSES = {
    "ok": "in the destination, and verified as requested",
    "exists_same": "already in the destination, with the same content",
    "exists_different": "the destination has another object or other files at this path; nothing was changed",
    "collision": "the path in the destination belongs to another object, or is inside one",
    "refused_name": "the destination does not allow the identifier or the name of a file",
    "source_missing": "not in the source",
    "source_invalid": "the source object is invalid, or changed while it was read",
    "digest_mismatch": "the content does not match a recorded digest",
    "copy_failed": "reading or writing failed",
    "unverified": "in the destination, but not verified",
}
#: The statuses of objects that need nothing more.
GOOD = frozenset({"ok", "exists_same"})
#: The error code of an object that arrived, and whose source could not be removed.
SOURCE_KEPT = "source_kept"


_encode = json.JSONEncoder(separators=(",", ":")).encode


# Within a JSON string a quotation mark has a backslash before it: these are keys, wherever they are found.
_FACTS = re.compile(
    rb'"status":"(\w+)","mode":(?:null|"(\w+)"),"files":(\d+),"bytes":(\d+),'
    rb'.*,"verify":"(\w+)","error_code":(?:null|"([^"]*)"),"error":(null|")'
)


class RowCounts(NamedTuple):
    """What the sums over rows are made of; see :class:`Row`.

    :ivar noted: it is done, and something of it was left out
    """

    status: str
    mode: str | None
    files: int
    bytes: int
    verify: str
    error_code: str | None
    noted: bool


class Row(NamedTuple):
    """One object of a migration's report.

    :ivar id: its identifier in the destination
    :ivar source_id: its identifier in the source
    :ivar source: its place, relative to the source's root
    :ivar target: its place, relative to the destination's root
    :ivar status: one of :data:`STATUSES`
    :ivar mode: how its files came: ``rename``, ``reflink``, ``copy`` or ``hardlink``; :data:`None` where none did
    :ivar files: how many it has
    :ivar bytes: how many they have together
    :ivar algorithm: of the digest
    :ivar digest: of the whole object; :data:`None` where no byte of it was read
    :ivar verify: what was done: ``none``, ``copy``, ``reread``, or ``moved``: no byte of it went anywhere
    :ivar error_code: a stable word for what went wrong
    :ivar error: one line for people; without a code, what of the object was left out though all is well
    :ivar started: date and time of RFC 3339, in UTC
    :ivar seconds: it took
    :ivar host: the machine that did it
    :ivar changed: when the newest of the source's files was changed last before they were read, content or status, in
        nanoseconds since 1970; 0 where sources stay
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
    changed: int = 0

    def record(self) -> dict[str, Any]:
        """Return it as it stands in JSON."""
        return self._asdict()

    def entry(self) -> PlanEntry:
        """Return the plan's entry of the object, without its encapsulation."""
        return PlanEntry(self.id, self.source_id, self.source, self.target, None, self.files, self.bytes, self.changed)

    def line(self) -> builtins.bytes:
        """Return the row as a line of JSON; lone surrogates, which stand for octets, are escaped."""
        return _encode(self._asdict()).encode() + b"\n"

    @staticmethod
    def counts(line: builtins.bytes) -> RowCounts:
        """Return what counts of a line that :meth:`line` gave, without reading the rest of it.

        :raises ValueError: it is no such line
        """
        found = _FACTS.search(line)
        if found is None:
            raise ValueError("it is no line of a report")
        status, mode, files, size, verify, code, error = found.groups()
        return RowCounts(
            status.decode(),
            None if mode is None else mode.decode(),
            int(files),
            int(size),
            verify.decode(),
            None if code is None else code.decode(),
            status.decode() in GOOD and code is None and error == b'"',
        )

    @classmethod
    def parse(cls, line: builtins.bytes) -> Row:
        """Return the row of a line.

        :raises ValueError: it is no line of a report
        """
        try:
            return cls(**json.loads(line))
        except TypeError as error:
            raise ValueError(str(error)) from None
