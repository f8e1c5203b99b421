"""Listings in the work folder: the files found by a walk, one per line; each chunk is a range of lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pressmark.errors import JobError
from pressmark.fs.atomic import OutputFile
from pressmark.fs.beneath import open_regular
from pressmark.fs.names import is_inside
from pressmark.jobs.chunks import BYTES, FILES, Chunk, ChunkBuilder
from pressmark.jobs.workdir import WorkFolder

__all__ = ["ListingLine", "chunk_lines", "read_listing", "require_outside", "write_listing"]


def require_outside(folder: str | os.PathLike[str], root: str) -> None:
    """Check that a work folder is outside of the directory that the run reads.

    :raises JobError: the work folder is inside
    """
    if is_inside(folder, root):
        raise JobError(os.fspath(folder), f"work folder inside {root}, which the run reads; choose another one")


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
            line = json.dumps(one.record, separators=(",", ":")).encode() + b"\n"
            chunk = builder.add(len(line), one.nbytes, one.directory)
            if chunk is not None:
                yield chunk
            file.write(line)
    last = builder.rest()
    if last is not None:
        yield last


def chunk_lines(work: WorkFolder, chunk: Chunk) -> Iterator[bytes]:
    """Yield the lines of a chunk whose source is a file in the work folder.

    :raises ValueError: the file is damaged
    """
    with open_regular(work.path / chunk.source) as file:
        file.seek(chunk.start)
        left = chunk.stop - chunk.start
        while left > 0:
            line = file.readline(left)
            if not line.endswith(b"\n"):
                raise ValueError(f"{chunk.source} is damaged at byte {file.tell()}; start again in another --work")
            left -= len(line)
            yield line


def read_listing(work: WorkFolder, chunk: Chunk) -> Iterator[Any]:
    """Yield the records of a chunk.

    :raises ValueError: the listing is damaged
    """
    return map(json.loads, chunk_lines(work, chunk))
