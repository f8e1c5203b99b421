"""The outcome of hashing or copying a file."""

from __future__ import annotations

import os
from typing import NamedTuple

from pressmark.fs.file_errors import message_of

__all__ = ["PROGRESS_EVERY", "Outcome", "failed_outcome"]

PROGRESS_EVERY = 0.1  # seconds


class Outcome(NamedTuple):
    """The digests of a file, or the reason for a failure.

    :ivar path: the path, unchanged
    :ivar digests: lower-case hex digests by algorithm name, in the requested order; :data:`None` for a failure
    :ivar size: bytes read; for a failure the size of the file, if known
    :ivar mtime_ns: modification time, in nanoseconds since 1970, if known
    :ivar inode: inode number, if known
    :ivar kind: a kind from the table in :mod:`pressmark.fs.file_errors`; :data:`None` for a success
    :ivar message: the reason for the failure, on one line, without the path
    :ivar ctime_ns: time of the last change of its status before it was read, in nanoseconds since 1970; 0 if unknown
    """

    path: str | bytes
    digests: dict[str, str] | None
    size: int | None
    mtime_ns: int | None
    inode: int | None
    kind: str | None = None
    message: str = ""
    ctime_ns: int = 0

    @property
    def ok(self) -> bool:
        """Whether the file has digests."""
        return self.kind is None


def failed_outcome(path: str | bytes, kind: str, number: int = 0, status: os.stat_result | None = None) -> Outcome:
    """Return the outcome of a file without digests."""
    if status is None:
        return Outcome(path, None, None, None, None, kind, message_of(kind, number))
    return Outcome(path, None, status.st_size, status.st_mtime_ns, status.st_ino, kind, message_of(kind, number))
