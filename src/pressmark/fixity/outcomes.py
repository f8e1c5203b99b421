"""What became of one file."""

from __future__ import annotations

import os
from typing import NamedTuple

from pressmark.fs.file_errors import message_of

__all__ = ["Outcome", "failed_outcome"]


class Outcome(NamedTuple):
    """What became of one file: its digests, or why there are none.

    :ivar path: the path as it was given
    :ivar digests: name of the algorithm to lower-case hex, in the order asked for; :data:`None` for a failure
    :ivar size: bytes that were read; for a failure those that the file should have had, or :data:`None`
    :ivar mtime_ns: time of the last modification, nanoseconds since 1970; :data:`None` where it is not known
    :ivar inode: the file's number in its file system; :data:`None` where it is not known
    :ivar kind: a word from the table of :mod:`pressmark.fs.file_errors`; :data:`None` where all went well
    :ivar message: one line that says why, without the path
    """

    path: str | bytes
    digests: dict[str, str] | None
    size: int | None
    mtime_ns: int | None
    inode: int | None
    kind: str | None = None
    message: str = ""

    @property
    def ok(self) -> bool:
        """Whether there are digests."""
        return self.kind is None


def failed_outcome(path: str | bytes, kind: str, number: int = 0, status: os.stat_result | None = None) -> Outcome:
    """Return the outcome of a file that has no digests."""
    if status is None:
        return Outcome(path, None, None, None, None, kind, message_of(kind, number))
    return Outcome(path, None, status.st_size, status.st_mtime_ns, status.st_ino, kind, message_of(kind, number))
