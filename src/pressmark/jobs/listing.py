"""Listings in the work folder: what a walk found, written once, of which each chunk is a stretch of lines."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pressmark.errors import JobError
from pressmark.fs.atomic import OutputFile
from pressmark.fs.names import is_inside
from pressmark.jobs.chunks import BYTES, FILES, Chunk, ChunkBuilder
from pressmark.jobs.workdir import WorkFolder

__all__ = ["Listed", "chunk_lines", "listed_chunks", "read_listing", "refuse_inside"]


def refuse_inside(folder: str | os.PathLike[str], root: str) -> None:
    """Refuse a work folder that is in the directory that the run is about: it would be about itself.

    :raises JobError: it is
    """
    if is_inside(folder, root):
        raise JobError(os.fspath(folder), f"the work folder is in {root}, which the run is about: name another one")


class Listed(NamedTuple):
    """One line of a listing that is being written.

    :ivar record: the line, as in JSON
    :ivar nbytes: of what it stands for
    :ivar directory: where that is; chunks end where this changes
    """

    record: Any
    nbytes: int
    directory: object


def listed_chunks(
    folder: str | os.PathLike[str],
    name: str,
    kind: str,
    lines: Iterable[Listed],
    count: int = FILES,
    nbytes: int = BYTES,
) -> Iterator[Chunk]:
    """Write a listing into the work folder, and give its chunks while it is written.

    :param folder: the work folder, which is there
    :param name: of the listing
    :param kind: of the chunks
    :param count: how many lines make a chunk
    :param nbytes: how many bytes make a chunk
    """
    builder = ChunkBuilder(kind, name, count, nbytes)
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
    """Give the lines of a chunk that is a stretch of a file in the work folder.

    :raises ValueError: the file is not the one that was written
    """
    with (work.path / chunk.source).open("rb") as file:
        file.seek(chunk.start)
        left = chunk.stop - chunk.start
        while left > 0:
            line = file.readline(left)
            if not line.endswith(b"\n"):
                raise ValueError(f"{chunk.source} is damaged at byte {file.tell()}: begin again in another work folder")
            left -= len(line)
            yield line


def read_listing(work: WorkFolder, chunk: Chunk) -> Iterator[Any]:
    """Give the records of a chunk.

    :raises ValueError: the listing is not the one that was written
    """
    return map(json.loads, chunk_lines(work, chunk))
