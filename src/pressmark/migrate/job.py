"""The jobs of a migration: transferring objects, reading them again, removing their sources.

The chunks of the first job consist of lines of a plan, those of the others of rows of a run. Each job writes a row for
each object to ``<chunk>.jsonl``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import monotonic

from pressmark.jobs.chunks import Chunk, chunk_lines
from pressmark.jobs.receipts import Receipt
from pressmark.jobs.workdir import WorkFolder, job_key
from pressmark.layouts.job_layouts import BringsLayouts
from pressmark.migrate.entry import GOOD, SOURCE_KEPT, Entry
from pressmark.migrate.options import Options
from pressmark.reports import ProgressEvent

__all__ = ["PHASES", "Migrate", "OnEvent", "Remove", "Verify"]

#: The phases of a migration: ``plan`` while planning, ``remove`` and ``prune`` only with ``move``.
PHASES = ("plan", "run", "remove", "prune", "merge", "verify")
OnEvent = Callable[[ProgressEvent], object]

# Called for each object that is done, with the number of bytes to count.
_OnObject = Callable[[int], object]


@dataclass(frozen=True)
class _Job(BringsLayouts, ABC):
    """A job with the options of a migration."""

    options: Options

    kind = ""

    @property
    def key(self) -> str:
        """The key of the job."""
        return job_key(self.kind, self.options.record())

    def roots(self) -> Iterable[str]:
        """Return the directories that every worker needs."""
        return self.options.local_roots("source", "destination")

    def run(self, chunk: Chunk, work: WorkFolder) -> Receipt:
        """Process the objects of a chunk.

        :raises StoreError: the source or the destination cannot be used
        """
        started = monotonic()
        objects = nbytes = 0

        def count(more: int) -> None:
            nonlocal objects, nbytes
            objects += 1
            nbytes += more
            work.report(chunk.id, objects, nbytes)

        rows = list(self._rows(map(Entry.parse, chunk_lines(work, chunk)), count))
        name = f"{chunk.id}.jsonl"
        sha256 = work.write_output(name, (row.line() for row in rows))
        return Receipt(
            chunk.id,
            self.key,
            n=len(rows),
            bytes=sum(row.bytes for row in rows if row.mode is not None or row.verify == "reread"),
            errors=sum(map(self._is_error, rows)),
            by_status=dict(Counter(row.status for row in rows)),
            output=name,
            sha256=sha256,
            seconds=Receipt.since(started),
        )

    @abstractmethod
    def _rows(self, entries: Iterator[Entry], on_object: _OnObject) -> Iterable[Entry]:
        """Process objects, and return a row for each, in their order."""

    def _is_error(self, row: Entry) -> bool:
        return row.status not in GOOD


class Migrate(_Job):
    """Transfers the objects of a plan."""

    kind = "migrate"

    def _rows(self, entries: Iterator[Entry], on_object: _OnObject) -> Iterable[Entry]:
        from pressmark.migrate.transfer.object_transfer import transfer_chunk  # a plan transfers nothing

        return transfer_chunk(self.options, entries, on_object)


class Verify(_Job):
    """Reads objects again in the destination."""

    kind = "migrate-verify"

    def roots(self) -> Iterable[str]:
        """Return the destination; the source may no longer exist."""
        return self.options.local_roots("destination")

    def _rows(self, entries: Iterator[Entry], on_object: _OnObject) -> Iterable[Entry]:
        from pressmark.migrate.transfer.places import each
        from pressmark.migrate.transfer.reading import verify_object  # a plan reads no target

        store = self.options.open_destination()
        for row in each(lambda entry: verify_object(store, entry), entries, store):
            yield row
            on_object(row.bytes)


class Remove(_Job):
    """Removes the sources of verified objects; the rows have an error where a source was kept."""

    kind = "migrate-remove"

    def _rows(self, entries: Iterator[Entry], on_object: _OnObject) -> Iterable[Entry]:
        from pressmark.migrate.remove import remove_source  # a plan removes nothing
        from pressmark.migrate.transfer.places import each

        source, destination = self.options.open_source(), self.options.open_destination()
        for row in each(
            lambda entry: remove_source(self.options, source, destination, entry), entries, source, destination
        ):
            yield row
            on_object(0)

    def _is_error(self, row: Entry) -> bool:
        # Objects that failed to arrive are no errors of the removal.
        return row.error_code == SOURCE_KEPT
