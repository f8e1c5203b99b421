"""The objects of a migration, from the plan to the report: their lines, statuses and errors."""

from __future__ import annotations

import builtins
import errno
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pressmark.errors import BagError, FileError, IdentifierError, ObjectError, PressmarkError
from pressmark.fs.beneath import open_regular
from pressmark.stores import StoreObject
from pressmark.stores.exceptions import SourceError
from pressmark.stores.object_sources import UnreadableSourceError

__all__ = [
    "GOOD",
    "OBJECT_ERRORS",
    "ROW_KEYS",
    "SOURCE_KEPT",
    "STATUSES",
    "Entry",
    "Failure",
    "TransferError",
    "failure_of",
    "file_lines",
    "read_entries",
    "status_of_problem",
]

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

# The keys of a line of a plan.
_PLAN_KEYS = ("id", "source_id", "source", "target", "encapsulation", "files", "bytes", "entries")
#: The keys of a row.
ROW_KEYS = (
    *("id", "source_id", "source", "target", "status", "mode", "files", "bytes", "algorithm", "digest", "verify"),
    *("error_code", "error", "started", "seconds", "host", "entries"),
)
_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(slots=True)
class Entry:
    """One object: a planned one, or the row that reports it.

    :ivar id: identifier in the destination
    :ivar source_id: identifier in the source
    :ivar source: path relative to the source
    :ivar target: path relative to the destination
    :ivar status: one of :data:`STATUSES`; ``planned`` until then
    :ivar mode: the copy mode: ``rename``, ``reflink``, ``copy`` or ``hardlink``; :data:`None` if no file was copied
    :ivar files: number of files
    :ivar bytes: total size of all files
    :ivar algorithm: algorithm of the digest
    :ivar digest: digest of the whole object; :data:`None` if it was not read
    :ivar verify: how it was verified: ``none``, ``copy``, ``reread``, ``stored``, or ``moved`` for an object that was
        renamed
    :ivar error_code: a stable word for the error
    :ivar error: error message on one line; without a code, the parts of a migrated object that were left out
    :ivar started: date and time as in RFC 3339, in UTC
    :ivar seconds: duration
    :ivar host: the name of the machine
    :ivar entries: the state of all entries of the object, see
        :func:`~pressmark.migrate.object_digest.entries_digest`. In a row only with ``move`` or hard links, and of
        objects that existed in the destination: the state of the source before it was read, or after its files were
        linked
    :ivar encapsulation: of a planned object, its encapsulating directory in a Pairtree, as in
        :class:`~pressmark.stores.StoreObject`
    """

    id: str
    source_id: str
    source: str
    target: str
    status: str = "planned"
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
    encapsulation: str | None = None

    def record(self) -> dict[str, object]:
        """Return the JSON object of the entry: of a planned object, or of a row."""
        return {key: getattr(self, key) for key in (_PLAN_KEYS if self.status == "planned" else ROW_KEYS)}

    def line(self) -> builtins.bytes:
        """Return the JSON object as a line; surrogates for bytes that are not UTF-8 are escaped."""
        return _encode(self.record()).encode() + b"\n"

    @classmethod
    def parse(cls, line: builtins.bytes) -> Entry:
        """Return the entry of a line.

        :raises ValueError: the line is malformed
        """
        try:
            return cls(**json.loads(line))
        except TypeError as error:
            raise ValueError(str(error)) from None

    @property
    def noted(self) -> bool:
        """Whether the object is done, except for parts that the destination does not support."""
        return self.status in GOOD and self.error_code is None and self.error is not None

    def in_source(self) -> StoreObject:
        """Return the record of the object in the source."""
        return StoreObject(self.source_id, self.source, True, self.encapsulation, ())

    def fail(self, failure: Failure) -> None:
        """Record a failure."""
        self.status, self.error_code, self.error = failure.status, failure.code, failure.message


def read_entries(path: str) -> Iterator[Entry]:
    """Yield the entries of a file.

    :raises OSError: the file cannot be read
    :raises ValueError: a line is malformed
    """
    yield from map(Entry.parse, file_lines(path))


def file_lines(path: str) -> Iterator[bytes]:
    """Yield the lines of a file.

    :raises OSError: the file cannot be read
    """
    with open_regular(path) as lines:
        yield from lines


# --- errors -----------------------------------------------------------------------------------------------------------

#: Errors that may pass, such as those of a network or a busy server.
TRANSIENT = frozenset({errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY, errno.EINTR})
FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

# Statuses by the kind of an ObjectError.
_STATUSES = {
    "mismatch": "digest_mismatch",
    "collision": "collision",
    "object-inside": "collision",
    "reserved": "refused_name",
    "bad-name": "refused_name",
    "exists": "exists_different",
    "mutable-head": "exists_different",
    "missing": "source_missing",
    "ambiguous": "source_invalid",
    "improper": "source_invalid",
    "changed-while-read": "source_invalid",
    "link": "source_invalid",
    "source": "source_invalid",
}
# Statuses by the kind of a FileError; copy_failed for any other kind.
_OF_FILES = {
    "changed-while-read": "source_invalid",
    "missing": "source_invalid",
    "link": "source_invalid",
    "dangling-link": "source_invalid",
    "link-loop": "source_invalid",
    "directory": "source_invalid",
    "directory-loop": "source_invalid",
    "fifo": "source_invalid",
    "socket": "source_invalid",
    "device": "source_invalid",
    "bad-name": "refused_name",
}


# Problems of stores and bags that concern reading, not the object.
_UNREADABLE = frozenset({"unreadable", "file-unreadable", "content-unreadable", "permission", "io-error"})


def status_of_problem(kind: str) -> str:
    """Return the status of a source object with a problem or an error of a kind."""
    return "copy_failed" if kind in _UNREADABLE else "source_invalid"


class Failure(NamedTuple):
    """The error of an object.

    :ivar status: of the row
    :ivar code: a stable word
    :ivar message: one line
    :ivar transient: whether a retry may succeed
    :ivar full: whether the destination is full, so that no other object can be stored
    """

    status: str
    code: str
    message: str
    transient: bool = False
    full: bool = False


class TransferError(PressmarkError):
    """An object cannot be migrated.

    :ivar failure: the error
    """

    kind = "transfer"

    def __init__(self, status: str, code: str, message: str) -> None:
        super().__init__(status, code, message)
        self.failure = Failure(status, code, message)


#: What can be wrong with one object. Any other error ends the run, such as that of a server that no longer answers.
OBJECT_ERRORS = (BagError, FileError, IdentifierError, ObjectError, OSError, SourceError, TransferError)


def failure_of(error: Exception) -> Failure:
    """Return the failure of an object for an exception."""
    if isinstance(error, TransferError):
        return error.failure
    if isinstance(error, IdentifierError):
        return Failure("refused_name", "unmapped", str(error))
    if isinstance(error, FileError):
        return Failure(_OF_FILES.get(error.kind, "copy_failed"), error.kind, str(error), error.kind == "io-error")
    if isinstance(error, OSError):
        return _of_system(error, str(error))
    if isinstance(error, BagError):
        return Failure("source_invalid", "bag", str(error))
    if not isinstance(error, ObjectError):
        raise error
    cause = error.__cause__
    if isinstance(cause, UnreadableSourceError):
        kind = cause.outcome.kind or "io-error"
        return Failure(_OF_FILES.get(kind, "copy_failed"), kind, error.reason, kind == "io-error")
    if isinstance(cause, OSError):
        found = _of_system(cause, error.reason)
        known = _STATUSES.get(error.kind)
        return found if known is None else found._replace(status=known, code=error.kind)
    return Failure(_STATUSES.get(error.kind, "copy_failed"), error.kind, error.reason, error.kind == "changed")


def _of_system(error: OSError, message: str) -> Failure:
    number = error.errno or 0
    if number in FULL:
        return Failure("copy_failed", "no-space", message, full=True)
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return Failure("copy_failed", "permission", message)
    return Failure("copy_failed", "io-error", message, number in TRANSIENT)
