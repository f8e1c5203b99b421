"""Errors of objects: their status, a stable code, a message, and whether a retry may succeed."""

from __future__ import annotations

import errno
from typing import NamedTuple

from pressmark.errors import BagError, FileError, IdentifierError, ObjectError, PressmarkError
from pressmark.stores.object_sources import UnreadableSourceError

__all__ = ["TransferError", "TransferFailure", "failure_of", "status_of_problem"]

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


class TransferFailure(NamedTuple):
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
        self.failure = TransferFailure(status, code, message)


def failure_of(error: Exception) -> TransferFailure:
    """Return the failure of an object for an exception."""
    if isinstance(error, TransferError):
        return error.failure
    if isinstance(error, IdentifierError):
        return TransferFailure("refused_name", "unmapped", str(error))
    if isinstance(error, FileError):
        return TransferFailure(
            _OF_FILES.get(error.kind, "copy_failed"), error.kind, str(error), error.kind == "io-error"
        )
    if isinstance(error, OSError):
        return _of_system(error, str(error))
    if isinstance(error, BagError):
        return TransferFailure("source_invalid", "bag", str(error))
    if not isinstance(error, ObjectError):
        raise error
    cause = error.__cause__
    if isinstance(cause, UnreadableSourceError):
        kind = cause.outcome.kind or "io-error"
        return TransferFailure(_OF_FILES.get(kind, "copy_failed"), kind, error.reason, kind == "io-error")
    if isinstance(cause, OSError):
        found = _of_system(cause, error.reason)
        known = _STATUSES.get(error.kind)
        return found if known is None else found._replace(status=known, code=error.kind)
    return TransferFailure(_STATUSES.get(error.kind, "copy_failed"), error.kind, error.reason, error.kind == "changed")


def _of_system(error: OSError, message: str) -> TransferFailure:
    number = error.errno or 0
    if number in FULL:
        return TransferFailure("copy_failed", "no-space", message, full=True)
    if number in (errno.EACCES, errno.EPERM, errno.EROFS):
        return TransferFailure("copy_failed", "permission", message)
    return TransferFailure("copy_failed", "io-error", message, number in TRANSIENT)
