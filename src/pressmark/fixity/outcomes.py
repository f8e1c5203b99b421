"""The outcome of hashing or copying a file, and sources that are not files."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from pressmark.fs.file_errors import message_of

__all__ = [
    "NOT_WRITTEN",
    "PROGRESS_EVERY",
    "Content",
    "Fetched",
    "FileRange",
    "Outcome",
    "Readable",
    "failed_outcome",
    "not_written",
    "require_written",
]

PROGRESS_EVERY = 0.1  # seconds
NOT_WRITTEN = "not-written"
LARGE = 1 << 14  # bytes of content


class Outcome(NamedTuple):
    """The digests of a file, or the reason for a failure.

    :ivar path: the path, as :func:`os.fsdecode` returns it; of a copy that cannot be written its own, otherwise that of
        the source
    :ivar digests: lower-case hex digests by algorithm name, in the requested order; :data:`None` for a failure
    :ivar size: bytes read; for a failure the size of the file, if known
    :ivar mtime_ns: modification time, in nanoseconds since 1970, if known
    :ivar inode: inode number, if known
    :ivar kind: a kind from the table in :mod:`pressmark.fs.file_errors`; :data:`None` for a success
    :ivar message: the reason for the failure, on one line, without the path
    :ivar ctime_ns: time of the last change of its status before it was read, in nanoseconds since 1970; 0 if unknown
    :ivar number: the ``errno`` of a copy that cannot be written, otherwise 0
    """

    path: str
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
    path = os.fsdecode(path)
    if status is None:
        return Outcome(path, None, None, None, None, kind, message_of(kind, number))
    return Outcome(path, None, status.st_size, status.st_mtime_ns, status.st_ino, kind, message_of(kind, number))


def not_written(copy: str | bytes, error: OSError) -> Outcome:
    """Return the outcome of a file whose copy cannot be written."""
    number = error.errno or 0
    return Outcome(os.fsdecode(copy), None, None, None, None, NOT_WRITTEN, error.strerror or str(error), number=number)


def require_written(outcome: Outcome) -> None:
    """Raise the error of a copy that could not be written; other failures are those of its source.

    :raises OSError: the copy could not be written
    """
    if outcome.kind == NOT_WRITTEN:
        raise OSError(outcome.number, outcome.message, outcome.path)


class FileRange(NamedTuple):
    """A part of an open file.

    :ivar offset: where it begins
    :ivar size: its length in bytes
    """

    offset: int
    size: int


class Readable(Protocol):
    """A file that is open in binary mode, such as an upload or :class:`io.BytesIO`."""

    def read(self, size: int, /) -> bytes: ...


class Fetched:
    """A file that is not on this computer, as a source to hash; many are fetched at a time.

    :ivar path: the path of its outcome
    """

    path: bytes

    def outcome(self, names: Sequence[str], on_bytes: Callable[[int], object]) -> Outcome:
        """Fetch the file, and return its outcome.

        :param names: official names of the algorithms
        :param on_bytes: called with the size of each block; it may raise to end the call
        """
        raise NotImplementedError


class Content:
    """Content that is not in a file, as a source to hash or copy. It is read in the calling thread.

    :param data: bytes-like, or an open binary file, which is read once, from its position to its end
    :param name: the path of its outcome
    :ivar data: the content as given
    """

    __slots__ = ("data", "name")

    def __init__(self, data: bytes | bytearray | memoryview | Readable, name: str | bytes = b"") -> None:
        self.data: Any = data
        self.name = name

    @property
    def is_large(self) -> bool:
        """Whether it takes memory or a connection while it waits: an open file, or more than 16 KiB."""
        return hasattr(self.data, "read") or len(self.data) > LARGE

    def blocks(self, size: int) -> Iterator[memoryview]:
        """Yield the content in blocks of any size.

        :param size: how many bytes to ask an open file for
        :raises ValueError: it cannot be read, or is not binary; the message says what to do
        """
        if not hasattr(self.data, "read"):
            yield memoryview(self.data).cast("B")
            return
        is_first = True
        while True:
            try:
                block = self.data.read(size)
            except (OSError, ValueError) as error:  # ValueError: the file is closed
                raise ValueError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
            if isinstance(block, str):
                raise ValueError("the file is not open in binary mode; specify an open binary file")
            if not isinstance(block, (bytes, bytearray, memoryview)):
                raise ValueError("read() does not return bytes; specify an open binary file")
            if not block:
                if is_first and self._position():
                    what = "the file is at its end, so that nothing is left to read"
                    raise ValueError(f"{what}; open it again, or call seek(0) first")
                return
            is_first = False
            yield memoryview(block).cast("B")

    def _position(self) -> int:
        """Return how far an open file has been read; 0 if it does not know."""
        with contextlib.suppress(AttributeError, OSError, ValueError):
            position = self.data.tell()
            return position if isinstance(position, int) else 0
        return 0
