"""The chunks of a run, and its listings: the files found by a walk, one per line; a chunk is a range of lines."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pressmark.errors import JobError, quoted_path
from pressmark.fs.atomic import OutputFile
from pressmark.fs.beneath import open_regular
from pressmark.fs.names import is_inside

__all__ = [
    "BYTES",
    "FILES",
    "Chunk",
    "ChunkBuilder",
    "ListingLine",
    "chunk_lines",
    "read_listing",
    "require_outside",
    "write_listing",
]

# The usual limits of a chunk: seconds of work, so that the cost of scheduling is negligible.
#: The usual number of files in a chunk, 2,000.
FILES = 2_000
#: The usual size of a chunk in bytes, 4 GiB.
BYTES = 4 << 30
# Chunks for each worker, so that all workers end at about the same time.
PARTS = 4
# Entries and bytes of a listing that is divided into that many parts, and of a chunk below which the cost of
# scheduling would show.
SMALL = (4_000, 512 << 20)
LEAST = (100, 16 << 20)

# json.dumps would make an encoder for each line, and json.loads look for the encoding of each.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode
# An id is part of file names, up to their first full stop.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class Chunk(NamedTuple):
    """A part of a run: the unit of work of one worker, repeated as a whole if it fails.

    :ivar id: unique in the run: ASCII letters, digits, ``-`` and ``_``
    :ivar kind: the unit of ``start`` and ``stop``, chosen by the job: ``paths``, ``bags``, ``objects``, …
    :ivar source: the file that contains the items; a relative path is relative to the work folder
    :ivar start: first item, or byte offset of its line
    :ivar stop: end of the range, exclusive
    :ivar nbytes: size of the items in bytes, 0 if unknown
    """

    id: str
    kind: str
    source: str
    start: int
    stop: int
    nbytes: int

    def line(self) -> bytes:
        """Return the chunk as a line of JSON; surrogates of undecodable bytes are escaped."""
        return json.dumps(self._asdict(), separators=(",", ":")).encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Chunk:
        """Parse a line of a plan.

        :raises ValueError: the line is not a chunk
        """
        try:
            return cls(**json.loads(line)).checked()
        except TypeError as error:
            raise ValueError(str(error)) from None

    def checked(self) -> Chunk:
        """Return the chunk itself if its fields are valid.

        :raises ValueError: a field is invalid
        """
        for name, value in self._asdict().items():
            if type(value) is not (str if name in ("id", "kind", "source") else int):
                raise ValueError(f"invalid chunk: {name} is {value!r}")
        if min(self.start, self.nbytes) < 0 or self.stop < self.start:
            raise ValueError(f"invalid chunk {self.id!r}: start {self.start}, stop {self.stop}, nbytes {self.nbytes}")
        if not _ID.fullmatch(self.id):
            raise ValueError(f"invalid chunk id {self.id!r}; use letters, digits, - and _")
        return self


class ChunkBuilder:
    """Divides a listing into chunks while it is written. Chunks end where the directory changes.

    Two workers in one directory would create and remove each other's parent directories; only a directory of twice the
    size of a chunk is divided.

    :param kind: kind of the chunks
    :param source: name of the listing in the work folder; chunks are ranges of byte offsets in it
    :param count: entries per chunk
    :param nbytes: bytes per chunk
    :param workers: :data:`PARTS` chunks for each worker: no chunk is more than its part of the chunks before it, or of
        a listing of the size :data:`SMALL`; :data:`LEAST` is allowed
    """

    def __init__(
        self, kind: str, source: str, count: int = FILES, nbytes: int = BYTES, workers: int | None = None
    ) -> None:
        if count < 1 or nbytes < 1:
            raise ValueError(f"chunks of {count} entries or {nbytes} bytes: expected 1 or more")
        self._kind = kind
        self._source = source
        self._limit = (count, nbytes)
        self._parts = None if workers is None else PARTS * workers
        self._number = self._start = self._stop = self._count = self._bytes = 0
        self._all = (0, 0)  # entries and bytes of all chunks so far
        self._most, self._most_bytes = self._limits()  # of the next chunk
        self._directory: object = None

    def add(self, length: int, nbytes: int, directory: object) -> Chunk | None:
        """Add the next entry, and return the chunk that ends before it, if any.

        :param length: bytes of its line in the listing
        :param nbytes: size of the item
        :param directory: directory of the item; compared with ``==``
        """
        full = self._count >= self._most or self._bytes >= self._most_bytes
        overfull = full and (self._count >= 2 * self._most or self._bytes >= 2 * self._most_bytes)
        done = self.rest() if overfull or (full and directory != self._directory) else None
        self._directory = directory
        self._stop += length
        self._count += 1
        self._bytes += nbytes
        return done

    def _limits(self) -> tuple[int, ...]:
        """Return the entries and the bytes that fill the next chunk."""
        if self._parts is None:
            return self._limit
        return tuple(
            min(limit, max(least, max(small, done) // self._parts))
            for limit, least, small, done in zip(self._limit, LEAST, SMALL, self._all, strict=True)
        )

    def rest(self) -> Chunk | None:
        """Return the chunk of the entries since the last chunk, if any."""
        if self._start == self._stop:
            return None
        done = Chunk(f"{self._number:06d}", self._kind, self._source, self._start, self._stop, self._bytes)
        self._number += 1
        self._all = (self._all[0] + self._count, self._all[1] + self._bytes)
        self._start, self._count, self._bytes = self._stop, 0, 0
        self._most, self._most_bytes = self._limits()
        return done


def require_outside(folder: str | os.PathLike[str], root: str) -> None:
    """Check that a work folder is outside of the directory that the run reads.

    :raises JobError: the work folder is inside
    """
    if is_inside(folder, root):
        raise JobError(
            os.fspath(folder), f"work folder inside {quoted_path(root)}, which the run reads; choose another one"
        )


class ListingLine(NamedTuple):
    """A line of a listing.

    :ivar record: a JSON value
    :ivar nbytes: size of the item
    :ivar directory: directory of the item; chunks end where it changes
    """

    record: Any
    nbytes: int
    directory: object


def write_listing(
    folder: str | os.PathLike[str],
    name: str,
    kind: str,
    lines: Iterable[ListingLine],
    count: int = FILES,
    nbytes: int = BYTES,
    workers: int | None = None,
) -> Iterator[Chunk]:
    """Write a listing to the work folder, and yield its chunks while it is written.

    :param folder: the work folder, which exists
    :param name: name of the listing
    :param kind: kind of the chunks
    :param count: lines per chunk
    :param nbytes: bytes per chunk
    :param workers: number of workers, for smaller chunks of a short listing: see :class:`ChunkBuilder`
    """
    builder = ChunkBuilder(kind, name, count, nbytes, workers)
    with OutputFile(Path(folder) / name) as file:
        for one in lines:
            line = _encode(one.record).encode() + b"\n"
            chunk = builder.add(len(line), one.nbytes, one.directory)
            if chunk is not None:
                yield chunk
            file.write(line)
    last = builder.rest()
    if last is not None:
        yield last


class _Folder(Protocol):
    """A work folder, whose module imports this one."""

    path: Path


def chunk_lines(work: _Folder, chunk: Chunk) -> Iterator[bytes]:
    """Yield the lines of a chunk whose source is a file in the work folder.

    :raises ValueError: the file is damaged
    """
    with open_regular(work.path / chunk.source) as file:
        file.seek(chunk.start)
        left = chunk.stop - chunk.start
        while left > 0:
            line = file.readline(left)
            if not line.endswith(b"\n"):
                raise ValueError(f"{chunk.source} is damaged at byte {file.tell()}; start again in another work folder")
            left -= len(line)
            yield line


def read_listing(work: _Folder, chunk: Chunk) -> Iterator[Any]:
    """Yield the records of a chunk.

    :raises ValueError: the listing is damaged
    """
    return (_decode(line.decode()) for line in chunk_lines(work, chunk))
