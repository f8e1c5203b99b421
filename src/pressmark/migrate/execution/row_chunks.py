"""Work folders for jobs over a file of rows: the removal of sources, and verifications."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from pressmark import jobs
from pressmark.fs.beneath import open_regular
from pressmark.migrate.entry import Entry
from pressmark.migrate.object_digest import sha256_of
from pressmark.threads import resolve_threads

__all__ = ["make_folder", "open_folder"]


def open_folder(path: str) -> jobs.WorkFolder | None:
    """Open the work folder of a job over rows; :data:`None` if it does not exist."""
    return jobs.WorkFolder.open(path) if os.path.exists(os.path.join(path, "run.json")) else None


def make_folder(path: str, job: Any, rows: str, workers: int | None) -> jobs.WorkFolder:
    """Create the work folder of a job over rows.

    :param workers: number of workers; :data:`None` for one per core
    """
    return jobs.WorkFolder.create(path, job, _row_chunks(rows, resolve_threads(workers)), {"rows": sha256_of(rows)})


def _row_chunks(path: str, workers: int) -> Iterator[jobs.Chunk]:
    """Yield the chunks of a file of rows, for a work folder beside the file."""
    builder = jobs.ChunkBuilder("rows", os.path.join("..", os.path.basename(path)), workers=workers)
    with open_regular(path) as lines:
        for line in lines:
            row = Entry.parse(line)
            done = builder.add(len(line), row.bytes, os.path.dirname(row.source))
            if done is not None:
                yield done
    rest = builder.rest()
    if rest is not None:
        yield rest
