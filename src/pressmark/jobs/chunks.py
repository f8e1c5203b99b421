"""The parts that a run is cut into."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

__all__ = ["BYTES", "FILES", "ROWS", "Chunk", "ChunkBuilder"]

#: How much a chunk has at most, as a rule: enough to cost seconds, so that handing it out costs nothing beside.
ROWS, FILES, BYTES = 1_000_000, 2_000, 4 << 30

# It is a part of file names, up to its end or the first full stop.
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")


class Chunk(NamedTuple):
    """A part of a run: what one worker does at a time, and does again as a whole where that failed.

    :ivar id: its name among the run's chunks: ASCII letters, digits, ``-`` and ``_``
    :ivar kind: what is counted from ``start`` to ``stop``: ``rows``, ``paths``, ``objects``, …; the job knows
    :ivar source: where these are; a relative path is one in the work folder
    :ivar start: the first
    :ivar stop: the one behind the last
    :ivar nbytes: how many bytes they have, where that is known
    """

    id: str
    kind: str
    source: str
    start: int
    stop: int
    nbytes: int

    def line(self) -> bytes:
        """Return the chunk as a line of JSON; lone surrogates, which stand for octets, are escaped."""
        return json.dumps(self._asdict(), separators=(",", ":")).encode() + b"\n"

    @classmethod
    def parse(cls, line: bytes) -> Chunk:
        """Return the chunk of a line.

        :raises ValueError: it is no line of a plan
        """
        try:
            return cls(**json.loads(line)).checked()
        except TypeError as error:
            raise ValueError(str(error)) from None

    def checked(self) -> Chunk:
        """Return it, if it can stand in a plan.

        :raises ValueError: it cannot
        """
        for name, value in self._asdict().items():
            if type(value) is not (str if name in ("id", "kind", "source") else int):
                raise ValueError(f"a chunk's {name} cannot be {value!r}")
        if min(self.start, self.nbytes) < 0 or self.stop < self.start:
            raise ValueError(f"chunk {self.id!r} cannot go from {self.start} to {self.stop} with {self.nbytes} bytes")
        if not _ID.fullmatch(self.id):
            raise ValueError(f"a chunk cannot be called {self.id!r}: letters, digits, - and _ only")
        return self


class ChunkBuilder:
    """Cuts a listing, as it is written, into chunks that end where a directory does.

    Two workers that are in the same directory make and remove each other's parents; so only a directory that is far too
    large for a chunk is divided.

    :param kind: of the chunks
    :param source: the listing's name in the work folder; chunks have byte offsets in it
    :param count: how many entries make a chunk
    :param nbytes: how many bytes make a chunk
    """

    def __init__(self, kind: str, source: str, count: int = FILES, nbytes: int = BYTES) -> None:
        if count < 1 or nbytes < 1:
            raise ValueError(f"chunks of {count} entries or {nbytes} bytes: expected 1 or more")
        self._kind = kind
        self._source = source
        self._limit = (count, nbytes)
        self._number = self._start = self._stop = self._count = self._bytes = 0
        self._directory: object = None

    def add(self, length: int, nbytes: int, directory: object) -> Chunk | None:
        """Take in the next entry, and return the chunk that ends before it, if one does.

        :param length: of its line in the listing
        :param nbytes: of what it stands for
        :param directory: where that is; anything that can be compared
        """
        full = self._count >= self._limit[0] or self._bytes >= self._limit[1]
        overfull = self._count >= 2 * self._limit[0] or self._bytes >= 2 * self._limit[1]
        done = self.rest() if overfull or (full and directory != self._directory) else None
        self._directory = directory
        self._stop += length
        self._count += 1
        self._bytes += nbytes
        return done

    def rest(self) -> Chunk | None:
        """Return the chunk of what was added since the last one, if anything was."""
        if self._start == self._stop:
            return None
        done = Chunk(f"{self._number:06d}", self._kind, self._source, self._start, self._stop, self._bytes)
        self._number += 1
        self._start, self._count, self._bytes = self._stop, 0, 0
        return done
