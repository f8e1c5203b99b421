"""The outcome of hashing or copying a file, sources that are not files, and batches of files with their outcomes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, cast

from pressmark.fs.beneath import below_root
from pressmark.fs.file_errors import message_of
from pressmark.fs.names import decode_all, encode_all

__all__ = [
    "NOT_WRITTEN",
    "PROGRESS_EVERY",
    "Columns",
    "Content",
    "Fetched",
    "FileBatch",
    "FileRange",
    "HashedFiles",
    "Item",
    "Outcome",
    "Path",
    "Readable",
    "Source",
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


Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]
Source = Path | Content | Fetched | Outcome
Item = Source | FileRange
# The columns of tasks: keys, sources, and the paths of their copies if they are copied.
Columns = Sequence[Sequence[Any]]


def _path(item: Item) -> str:
    """Return the path of an item of the input; a part of a file has none."""
    if isinstance(item, FileRange):
        return ""
    if isinstance(item, Content):
        return os.fsdecode(item.name)
    if isinstance(item, Fetched):
        return os.fsdecode(item.path)
    return item.path if isinstance(item, Outcome) else os.fsdecode(item)


def _encoded(item: Item, path: str) -> bytes:
    """Return ``path`` as bytes; as an empty path if it is invalid, or the item is no file."""
    if isinstance(item, (Content, Fetched, FileRange, Outcome)) or "\0" in path:
        return b""  # the kernel leaves empty paths, which are examined here
    try:
        return os.fsencode(path)
    except ValueError:
        return b""


class FileBatch:
    """Consecutive files of the input.

    :param columns: of their tasks
    :param is_real: whether all paths are from :func:`~pressmark.fs.beneath.real_path`
    :ivar keys: the keys of the input
    :ivar given: its files, parts of a file or outcomes
    :ivar joined: the paths as bytes, separated by NUL; those that are no paths of files are empty
    :ivar copies: the paths of their copies, or :data:`None`
    :ivar sizes: the size of each queued file, by its index
    :ivar block: the results of the kernel, if it has hashed a part of the files
    :ivar unfinished: number of files that are not done
    :ivar yielded: number of files that were yielded
    """

    __slots__ = ("_outcomes", "_paths", "block", "copies", "given", "joined", "keys", "sizes", "unfinished", "yielded")

    def __init__(self, columns: Columns, is_real: bool) -> None:
        self.keys, sources, *copies = columns
        self.copies: list[bytes] | None = list(copies[0]) if copies else None
        self.given = given = list(sources)
        kinds = set(map(type, given))
        self._paths: list[str] | None = None
        joined: bytes | None = None
        if kinds == {str}:
            self._paths = given
            joined = encode_all(given)
        elif kinds == {bytes}:
            joined = b"\0".join(given)
        if joined is None or joined.count(0) != len(given) - 1:
            joined = b"\0".join(map(_encoded, given, self.paths))
        if is_real:
            joined = b"\0".join([path and below_root(path) for path in joined.split(b"\0")])
        self.joined = joined
        self.sizes: dict[int, int] = {}
        self.block: Any = None
        self.unfinished = len(given)
        self.yielded = 0
        self._outcomes: list[Outcome | None] | None = None

    def __len__(self) -> int:
        return len(self.given)

    def sources(self) -> list[Any]:
        """Return the sources of files in lanes: their paths as bytes, or the parts of a file."""
        paths = self.joined.split(b"\0")
        return [given if isinstance(given, FileRange) else path for given, path in zip(self.given, paths, strict=True)]

    @property
    def paths(self) -> list[str]:
        """The paths of the files. Encoded ones are decoded only when they are needed: lines of manifests are bytes."""
        if self._paths is None:
            if set(map(type, self.given)) == {bytes}:
                self._paths = decode_all(self.given)
            else:
                self._paths = list(map(_path, self.given))
        return self._paths

    @property
    def outcomes(self) -> list[Outcome | None]:
        """The outcomes, :data:`None` for files that are not done."""
        if self._outcomes is None:
            if self.block is None:
                self._outcomes = [None] * len(self)
            else:
                self._outcomes = self.block.results(self.paths, Outcome)
        return self._outcomes

    def copy(self, index: int) -> bytes | None:
        """Return the path of the copy of a file, if it is copied."""
        return None if self.copies is None else self.copies[index]

    def end(self) -> int:
        """Return the index of the first file that is not done."""
        if not self.unfinished:
            return len(self)
        if self._outcomes is None and self.block is None:
            return self.yielded
        return self.outcomes.index(None, self.yielded)


class HashedFiles:
    """Consecutive files that are done."""

    def __init__(self, batch: FileBatch, begin: int, end: int) -> None:
        self._batch = batch
        self._begin, self._end = begin, end
        # The kernel has hashed all.
        self._whole = end - begin == len(batch) and batch.block is not None and batch.block.done == end

    def __len__(self) -> int:
        return self._end - self._begin

    def keys(self) -> Sequence[Any]:
        """Return the keys of the files."""
        return self._batch.keys[self._begin : self._end]

    def outcomes(self) -> list[Outcome]:
        """Return the outcomes of the files."""
        return cast(list[Outcome], self._batch.outcomes[self._begin : self._end])

    def failures(self) -> list[Outcome]:
        """Return the outcomes of the files that have no digests."""
        return [] if self._whole else [outcome for outcome in self.outcomes() if outcome.kind is not None]

    def kernel_lines(self, tags: list[bytes] | None) -> bytes | None:
        """Return the lines of the files in a manifest, if the kernel can create them; otherwise :data:`None`.

        :param tags: of each algorithm, for the BSD format; :data:`None` for the coreutils format
        """
        lines: bytes | None = self._batch.block.lines(tags) if self._whole else None
        return lines
