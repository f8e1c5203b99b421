"""The rows of a run, merged into one file, and the result of the run."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pressmark import jobs
from pressmark.errors import JobError
from pressmark.fs.atomic import OutputFile, Replacement
from pressmark.fs.beneath import open_regular, read_regular
from pressmark.fs.names import encode_fs
from pressmark.jobs.listing import chunk_lines
from pressmark.migrate.entry import GOOD, SOURCE_KEPT, Entry, read_entries
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.workdir import REMAINING

__all__ = ["MergedRows", "Run", "merge_rows", "output_lines", "remaining_path", "write_remaining"]


@dataclass(frozen=True)
class Run:
    """The result of a migration or a verification.

    :ivar work: the work folder
    :ivar plan: plan of the migration
    :ivar objects: number of objects with a row
    :ivar files: number of files of the objects that are done
    :ivar bytes: total size of the objects that are done
    :ivar by_status: number of objects with each status
    :ivar by_mode: number of objects with each copy mode: ``rename``, ``reflink``, ``copy``, ``hardlink``
    :ivar kept: with ``move``, number of objects that are done, but whose source could not be removed
    :ivar noted: number of objects that are done, except for parts that the destination does not support
    :ivar remaining: number of planned objects without a row
    :ivar failed: chunks that failed
    :ivar stopped: why the run stopped early: ``stop``, ``max_errors``; :data:`None` if it did not
    :ivar pruned: number of empty directories that were removed from the source
    :ivar seconds: duration of this call
    :ivar processed: number of objects that this call processed; an earlier call may have processed others
    :ivar processed_bytes: number of bytes that this call copied or read again
    :ivar rows_path: the file with the rows
    """

    work: str
    plan: Plan
    objects: int
    files: int
    bytes: int
    by_status: dict[str, int]
    by_mode: dict[str, int]
    kept: int = 0
    noted: int = 0
    remaining: int = 0
    failed: tuple[jobs.FailedChunk, ...] = ()
    stopped: str | None = None
    pruned: int = 0
    seconds: float = 0.0
    processed: int = 0
    processed_bytes: int = 0
    rows_path: str = ""

    @property
    def complete(self) -> bool:
        """Whether every chunk is done."""
        return not self.remaining and not self.failed and self.stopped is None

    @property
    def ok(self) -> bool:
        """Whether every object is in the destination, and verified."""
        return self.complete and not self.kept and not self.by_status.keys() - GOOD

    @property
    def exit_code(self) -> int:
        """The exit status of the command: 0 if :attr:`ok`, else 1."""
        return 0 if self.ok else 1

    def rows(self) -> Iterator[Entry]:
        """Return every row, in the order of the plan."""
        return read_entries(self.rows_path)

    def record(self) -> dict[str, Any]:
        """Return the JSON object of the result, without the plan."""
        record = {key: value for key, value in asdict(self).items() if key not in ("plan", "rows_path")}
        return {"ok": self.ok, "complete": self.complete, **record, "failed": [one._asdict() for one in self.failed]}


class MergedRows:
    """The totals of a file of rows."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sha256 = ""  # of the finished file
        self.objects = self.files = self.bytes = self.kept = self.noted = self.planned = 0
        self.removable = False
        self.by_status: Counter[str] = Counter()
        self.by_mode: Counter[str] = Counter()

    def add(self, row: Entry) -> None:
        """Count a row."""
        self.objects += 1
        self.by_status[row.status] += 1
        if row.mode is not None:
            self.by_mode[row.mode] += 1
        if row.status in GOOD:
            self.files += row.files
            self.bytes += row.bytes
            self.kept += row.error_code == SOURCE_KEPT
            self.noted += row.noted
            # Renamed objects have no source any more.
            self.removable = self.removable or row.verify != "moved"

    @property
    def undone(self) -> int:
        """The number of objects that are not done or whose source is still there."""
        return self.kept + sum(count for status, count in self.by_status.items() if status not in GOOD)

    def run(
        self, plan: Plan, before: jobs.Summary, after: jobs.Summary, pruned: int, seconds: float, folder: str = ""
    ) -> Run:
        """Return the result of a call that began with the receipts ``before``."""
        return Run(
            work=plan.work,
            plan=plan,
            objects=self.objects,
            files=self.files,
            bytes=self.bytes,
            by_status=dict(sorted(self.by_status.items())),
            by_mode=dict(sorted(self.by_mode.items())),
            kept=self.kept,
            noted=self.noted,
            remaining=max(0, plan.objects - self.planned),
            failed=after.failed,
            stopped=after.stopped,
            pruned=pruned,
            seconds=seconds,
            processed=after.n - before.n,
            processed_bytes=after.bytes - before.bytes,
            rows_path=os.path.join(folder or plan.work, self.name),
        )


def output_lines(work: jobs.WorkFolder) -> Iterator[bytes]:
    """Yield the rows of the chunks that are done, in the order of the plan.

    :raises JobError: a file differs from its receipt, or cannot be read
    """
    for receipt in work.receipts():
        if receipt.output is None:
            continue
        path = work.output_path(receipt.output)
        try:
            rows = read_regular(path)  # of one chunk
        except OSError as error:
            raise JobError(str(path), f"cannot be read ({error.strerror}); the run needs it") from error
        # Checked before any line is yielded: a damaged file may have no rows at all.
        if hashlib.sha256(rows).hexdigest() != receipt.sha256:
            raise JobError(
                str(path), "changed since it was written; move it elsewhere and resume the run to repeat its chunk"
            )
        yield from rows.splitlines(keepends=True)


def merge_rows(folder: str, name: str, work: jobs.WorkFolder, known: str | None = None) -> MergedRows:
    """Write the rows of the chunks that are done to a file, atomically.

    :param folder: the folder of the file
    :param work: the work folder of the chunks
    :param known: a file with the rows of objects that the plan left out
    """
    merged = MergedRows(name)
    with OutputFile(os.path.join(folder, name)) as file:
        for line in output_lines(work):
            merged.add(Entry.parse(line))
            file.write(line)
        merged.planned = merged.objects
        if known is not None:
            with open_regular(known) as more:
                for line in more:
                    merged.add(Entry.parse(line))
                    file.write(line)
    merged.sha256 = file.sha256
    return merged


def write_remaining(plan: Plan, work: jobs.WorkFolder, rows: str | None) -> None:
    """Write the source identifiers of objects that are not done, NUL-terminated if one contains a line end.

    :param rows: the file with the rows; :data:`None` if all objects with a row are done
    """

    def remaining() -> Iterator[bytes]:
        for row in () if rows is None else read_entries(rows):
            if (row.status not in GOOD or row.error_code == SOURCE_KEPT) and row.source_id:
                yield encode_fs(row.source_id)
        for chunk in work.remaining():
            for line in chunk_lines(work, chunk):
                yield encode_fs(Entry.parse(line).source_id)

    end = b"\0" if any(b"\n" in one or one.endswith(b"\r") for one in remaining()) else b"\n"
    path = os.path.join(plan.work, REMAINING)
    with Replacement(path, part=f"{path}.new", durable=False) as file:
        for one in remaining():
            file.write(one + end)


def remaining_path(work: str) -> str | None:
    """Return the file with the identifiers of the objects that are not done; :data:`None` if all are."""
    path = os.path.join(work, REMAINING)
    return path if os.path.exists(path) and os.path.getsize(path) else None
