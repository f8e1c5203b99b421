"""The jobs of a migration: transferring objects, reading them again, removing their sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import monotonic

from pressmark.jobs.chunks import Chunk
from pressmark.jobs.listing import chunk_lines
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.workdir import WorkFolder, job_key
from pressmark.migrate.entry import GOOD, SOURCE_KEPT, Entry
from pressmark.migrate.options import Options
from pressmark.reports import Progress

__all__ = ["PHASES", "Migrate", "OnEvent", "Remove", "Verify"]

#: The phases of a migration: ``plan`` while planning, ``remove`` and ``prune`` only with ``move``.
PHASES = ("plan", "run", "remove", "prune", "merge", "verify")
OnEvent = Callable[[Progress], object]


@dataclass(frozen=True)
class _Job:
    """A job with the options of a migration."""

    options: Options

    kind = ""

    @property
    def key(self) -> str:
        """The key of the job."""
        return job_key(self.kind, self.options.record())

    def roots(self) -> Iterable[str]:
        """Return the directories that every worker needs."""
        return (self.options.source, self.options.destination)


@dataclass(frozen=True)
class Migrate(_Job):
    """Transfers objects of a plan; writes a row for each to ``<chunk>.jsonl``.

    The lines of a chunk are those of :class:`~pressmark.migrate.entry.Entry`, from ``start`` to ``stop``
    in bytes.
    """

    kind = "migrate"

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Migrate the objects of a chunk.

        :raises StoreError: the source or the destination cannot be used
        """
        from pressmark.migrate.transfer.object_transfer import transfer_chunk

        started = monotonic()
        count = _Counter(chunk, work)
        rows = transfer_chunk(self.options, map(Entry.parse, chunk_lines(work, chunk)), count.add)
        return _of_rows(self, chunk, work, started, rows, _undone(rows))


@dataclass(frozen=True)
class Verify(_Job):
    """Reads the objects of rows again in the destination; writes the rows with the results.

    The lines of a chunk are those of :class:`~pressmark.migrate.entry.Entry`, from ``start`` to ``stop`` in bytes.
    """

    kind = "migrate-verify"

    def roots(self) -> Iterable[str]:
        """Return the destination; the source may no longer exist."""
        return (self.options.destination,)

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Verify the objects of a chunk.

        :raises StoreError: the destination cannot be used
        """
        from pressmark.migrate.transfer.target import verify_object

        started = monotonic()
        store = self.options.open_destination()
        count = _Counter(chunk, work)
        rows = []
        for line in chunk_lines(work, chunk):
            rows.append(verify_object(store, Entry.parse(line)))
            count.add(rows[-1].bytes)
        return _of_rows(self, chunk, work, started, rows, _undone(rows))


@dataclass(frozen=True)
class Remove(_Job):
    """Removes the sources of verified objects; writes all rows, with an error where a source was kept.

    The lines of a chunk are those of :class:`~pressmark.migrate.entry.Entry`, from ``start`` to ``stop`` in bytes.
    """

    kind = "migrate-remove"

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Remove the sources of a chunk's objects.

        :raises StoreError: the source or the destination cannot be used
        """
        from pressmark.migrate.remove import remove_sources

        started = monotonic()
        count = _Counter(chunk, work)
        rows = []
        for row in remove_sources(self.options, map(Entry.parse, chunk_lines(work, chunk))):
            rows.append(row)
            count.add(0)
        # Objects that failed to arrive are no errors of the removal.
        kept = sum(row.error_code == SOURCE_KEPT for row in rows)
        return _of_rows(self, chunk, work, started, rows, kept)


class _Counter:
    """Counts the objects of a chunk that are done, and their bytes."""

    def __init__(self, chunk: Chunk, work: WorkFolder) -> None:
        self._chunk = chunk.id
        self._work = work
        self._objects = self._bytes = 0

    def add(self, nbytes: int) -> None:
        """Count one object."""
        self._objects += 1
        self._bytes += nbytes
        self._work.report(self._chunk, self._objects, self._bytes)


def _undone(rows: list[Entry]) -> int:
    return sum(row.status not in GOOD for row in rows)


def _of_rows(job: _Job, chunk: Chunk, work: WorkFolder, started: float, rows: list[Entry], errors: int) -> Receipt:
    """Write the rows of a chunk, and return its receipt."""
    name = f"{chunk.id}.jsonl"
    sha256 = work.write_output(name, (row.line() for row in rows))
    return Receipt(
        chunk.id,
        job.key,
        n=len(rows),
        bytes=sum(row.bytes for row in rows if row.mode is not None or row.verify == "reread"),
        errors=errors,
        by_status=dict(Counter(row.status for row in rows)),
        output=name,
        sha256=sha256,
        seconds=Receipt.since(started),
    )
