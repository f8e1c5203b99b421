"""The outcome of hashing or copying a file."""

from __future__ import annotations

import os
from typing import NamedTuple

from pressmark.fs.file_errors import message_of

__all__ = ["NOT_WRITTEN", "PROGRESS_EVERY", "Outcome", "failed_outcome", "not_written", "require_written"]

PROGRESS_EVERY = 0.1  # seconds
NOT_WRITTEN = "not-written"


class Outcome(NamedTuple):
    """The digests of a file, or the reason for a failure.

    :ivar path: the path, unchanged; of a copy that cannot be written its own, otherwise that of the source
    :ivar digests: lower-case hex digests by algorithm name, in the requested order; :data:`None` for a failure
    :ivar size: bytes read; for a failure the size of the file, if known
    :ivar mtime_ns: modification time, in nanoseconds since 1970, if known
    :ivar inode: inode number, if known
    :ivar kind: a kind from the table in :mod:`pressmark.fs.file_errors`; :data:`None` for a success
    :ivar message: the reason for the failure, on one line, without the path
    :ivar ctime_ns: time of the last change of its status before it was read, in nanoseconds since 1970; 0 if unknown
    :ivar number: the ``errno`` of a copy that cannot be written, otherwise 0
    """

    path: str | bytes
    digests: dict[str, str] | None
    size: int | None
    mtime_ns: int | None
    inode: int | None
    kind: str | None = None
    message: str = ""
    ctime_ns: int = 0
    number: int = 0

    @property
    def ok(self) -> bool:
        """Whether the file has digests."""
        return self.kind is None


def failed_outcome(path: str | bytes, kind: str, number: int = 0, status: os.stat_result | None = None) -> Outcome:
    """Return the outcome of a file without digests."""
    if status is None:
        return Outcome(path, None, None, None, None, kind, message_of(kind, number))
    return Outcome(path, None, status.st_size, status.st_mtime_ns, status.st_ino, kind, message_of(kind, number))


def not_written(copy: str | bytes, error: OSError) -> Outcome:
    """Return the outcome of a file whose copy cannot be written."""
    number = error.errno or 0
    return Outcome(copy, None, None, None, None, NOT_WRITTEN, error.strerror or str(error), number=number)


def require_written(outcome: Outcome) -> None:
    """Raise the error of a copy that could not be written; other failures are those of its source.

    :raises OSError: the copy could not be written
    """
    if outcome.kind == NOT_WRITTEN:
        raise OSError(outcome.number, outcome.message, outcome.path)
