"""The result of a run, whether it is finished or not: its state, its rows, and their totals."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import NamedTuple

from pressmark import jobs
from pressmark.errors import JobError, ReportError
from pressmark.fs.atomic import OutputFile, Replacement
from pressmark.fs.beneath import read_regular
from pressmark.fs.names import encode_fs
from pressmark.jobs.chunks import chunk_lines
from pressmark.jobs.receipts import FailedChunk
from pressmark.migrate.entry import GOOD, SOURCE_KEPT, STATUSES, Entry, file_lines, read_entries
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.workdir import KNOWN, REMAINING, ROWS, WARNINGS, state
from pressmark.reports import ProgressEvent
from pressmark.summaries import format_bytes

__all__ = [
    *("FIRST", "Group", "MergedRows", "Outcome", "Run", "Summary"),
    *("count_rows", "merge_rows", "outcome_of", "remaining_path", "summarize", "write_remaining"),
]


@dataclass(frozen=True, repr=False)
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
    failed: tuple[FailedChunk, ...] = ()
    stopped: str | None = None
    pruned: int = 0
    seconds: float = 0.0
    processed: int = 0
    processed_bytes: int = 0
    rows_path: str = ""

    def __repr__(self) -> str:
        numbers = ", ".join(f"{number:,} {name}" for name, number in self._numbers())
        return f"<Run {self.work!r}: {self._state()}; {numbers or 'no objects'}; {format_bytes(self.bytes)}>"

    def _repr_html_(self) -> str:
        from pressmark.summaries import html_table  # only notebooks need it

        caption = f"Run: {self._state()}; {self.files:,} files, {format_bytes(self.bytes)}"
        return html_table(caption, ("status", "objects"), self._numbers())

    def _state(self) -> str:
        return "ok" if self.ok else "complete, not ok" if self.complete else "not complete"

    def _numbers(self) -> list[tuple[str, int]]:
        others = {"source kept": self.kept, "remaining": self.remaining, "failed chunks": len(self.failed)}
        return [*self.by_status.items(), *((name, number) for name, number in others.items() if number)]

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

    def record(self) -> dict[str, object]:
        """Return the JSON object of the result, without the plan."""
        record = {key: value for key, value in asdict(self).items() if key not in ("plan", "rows_path")}
        return {"ok": self.ok, "complete": self.complete, **record, "failed": [one._asdict() for one in self.failed]}


# --- the totals: one pass over the rows, keeping the first of each status ---------------------------------------------


#: Rows kept of each status that is not good.
FIRST = 100


@dataclass
class Group:
    """The totals of some rows.

    :ivar objects: number of rows
    :ivar files: number of files
    :ivar bytes: total size of all files
    :ivar codes: number of rows with each ``error_code``
    :ivar modes: number of rows with each copy mode
    :ivar first: the first :data:`FIRST` rows, if they are kept
    """

    objects: int = 0
    files: int = 0
    bytes: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    modes: Counter[str] = field(default_factory=Counter)
    first: list[Entry] = field(default_factory=list)

    def add(self, row: Entry, keep: bool = False) -> None:
        """Count a row.

        :param keep: keep it if it is among the first
        """
        self.objects += 1
        self.files += row.files
        self.bytes += row.bytes
        if row.error_code is not None:
            self.codes[row.error_code] += 1
        if row.mode is not None:
            self.modes[row.mode] += 1
        if keep and len(self.first) < FIRST:
            self.first.append(row)

    def record(self) -> dict[str, int]:
        """Return the JSON object of the totals."""
        return {"objects": self.objects, "files": self.files, "bytes": self.bytes}


@dataclass
class Summary:
    """The totals of a report.

    :ivar whole: all rows
    :ivar done: objects in the destination, verified
    :ivar by_status: by status, in the order of :data:`~pressmark.migrate.entry.STATUSES`
    :ivar by_mode: objects that are done, by copy mode
    :ivar by_verify: objects that are done, by verification
    :ivar kept: objects that are done, but whose source could not be removed
    :ivar noted: objects that are done without parts that the destination cannot hold
    :ivar started: the start of the first object
    :ivar ended: the end of the last object
    :ivar seconds: working time of all workers together
    """

    whole: Group = field(default_factory=Group)
    done: Group = field(default_factory=Group)
    by_status: dict[str, Group] = field(default_factory=dict)
    by_mode: dict[str, Group] = field(default_factory=dict)
    by_verify: dict[str, Group] = field(default_factory=dict)
    kept: Group = field(default_factory=Group)
    noted: Group = field(default_factory=Group)
    started: datetime | None = None
    ended: datetime | None = None
    seconds: float = 0.0

    def add(self, row: Entry) -> None:
        """Count a row."""
        good = row.status in GOOD
        self.whole.add(row)
        self.by_status.setdefault(row.status, Group()).add(row, keep=not good)
        if good:
            self.done.add(row)
            if row.mode is not None:
                self.by_mode.setdefault(row.mode, Group()).add(row)
            self.by_verify.setdefault(row.verify, Group()).add(row)
            if row.error_code == SOURCE_KEPT:
                self.kept.add(row, keep=True)
            elif row.noted:
                self.noted.add(row, keep=True)
        if row.started:
            started = datetime.fromisoformat(row.started)
            ended = started + timedelta(seconds=row.seconds)
            self.started = min(self.started or started, started)
            self.ended = max(self.ended or ended, ended)

    def arrange(self) -> None:
        """Sort the statuses by their order, and all other groups by name."""
        order = {status: number for number, status in enumerate(STATUSES)}
        self.by_status = dict(sorted(self.by_status.items(), key=lambda item: order.get(item[0], len(order))))
        for name in ("by_mode", "by_verify"):
            setattr(self, name, dict(sorted(getattr(self, name).items())))

    @property
    def undone(self) -> int:
        """The number of objects that are not done."""
        return self.whole.objects - self.done.objects

    def record(self) -> dict[str, object]:
        """Return the JSON object of the totals, without rows."""
        groups = {name: getattr(self, name) for name in ("by_status", "by_mode", "by_verify")}
        return {
            **self.whole.record(),
            "done": self.done.record(),
            "kept": self.kept.objects,
            "noted": self.noted.objects,
            **{name: {key: group.record() for key, group in found.items()} for name, found in groups.items()},
            "started": None if self.started is None else self.started.isoformat(timespec="seconds"),
            "ended": None if self.ended is None else self.ended.isoformat(timespec="seconds"),
            "seconds": self.seconds,
        }


def count_rows(summary: Summary, lines: Iterable[bytes]) -> Iterator[tuple[bytes, Entry]]:
    """Yield each line with its row, after counting it.

    :param lines: rows as JSON
    :raises ValueError: a line is malformed
    """
    for line in lines:
        row = Entry.parse(line)
        summary.add(row)
        yield line, row
    summary.arrange()


def summarize(lines: Iterable[bytes]) -> Summary:
    """Return the totals of rows.

    :param lines: rows as JSON
    :raises ValueError: a line is malformed
    """
    summary = Summary()
    for _ in count_rows(summary, lines):
        pass
    return summary


# --- the rows ---------------------------------------------------------------------------------------------------------


class MergedRows(NamedTuple):
    """A file of rows.

    :ivar path: the file
    :ivar totals: of the rows
    :ivar sha256: of the file, if this call wrote it
    """

    path: str
    totals: Summary
    sha256: str = ""

    @property
    def removable(self) -> bool:
        """Whether an object has a source to remove; renamed objects have none any more."""
        return bool(self.totals.by_verify.keys() - {"moved"})

    @property
    def undone(self) -> int:
        """The number of objects that are not done or whose source is still there."""
        return self.totals.undone + self.totals.kept.objects

    def progress(self, phase: str, plan: Plan) -> ProgressEvent:
        """Return the event for a phase after the transfer."""
        done = self.totals
        return ProgressEvent(phase, done.whole.objects, done.done.bytes, self.undone, plan.objects, plan.bytes)

    def run(self, plan: Plan, before: jobs.Summary, after: jobs.Summary, pruned: int, seconds: float) -> Run:
        """Return the result of a call that began with the receipts ``before``."""
        totals = self.totals
        return Run(
            work=plan.work,
            plan=plan,
            objects=totals.whole.objects,
            files=totals.done.files,
            bytes=totals.done.bytes,
            by_status={status: group.objects for status, group in sorted(totals.by_status.items())},
            by_mode=dict(sorted(totals.whole.modes.items())),
            kept=totals.kept.objects,
            noted=totals.noted.objects,
            remaining=max(0, plan.objects - after.n),
            failed=after.failed,
            stopped=after.stopped,
            pruned=pruned,
            seconds=seconds,
            processed=after.n - before.n,
            processed_bytes=after.bytes - before.bytes,
            rows_path=self.path,
        )


def _output_lines(work: jobs.WorkFolder) -> Iterator[bytes]:
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


def merge_rows(path: str, work: jobs.WorkFolder, known: str | None = None) -> MergedRows:
    """Write the rows of the chunks that are done to a file, atomically.

    :param path: the file
    :param work: the work folder of the chunks
    :param known: a file with the rows of objects that the plan left out
    """
    totals = Summary()
    with OutputFile(path) as file:
        for line, _row in count_rows(totals, chain(_output_lines(work), () if known is None else file_lines(known))):
            file.write(line)
    return MergedRows(path, totals, file.sha256)


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


# --- for reports ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """The state of a run.

    :ivar plan: of the run
    :ivar state: ``planned``, ``begun`` or ``finished``
    :ivar rows_path: the file with all rows; :data:`None` until the rows of the chunks are merged
    :ivar verification: whether the rows are those of a verification
    :ivar unread: of a verification, the number of objects that it has not read yet
    """

    plan: Plan
    state: str
    rows_path: str | None
    verification: bool = False
    unread: int | None = None

    def lines(self) -> Iterator[bytes]:
        """Yield the rows as lines of JSON: in the order of the plan, then the objects that it left out.

        :raises JobError: the rows of a chunk are missing or damaged
        :raises ReportError: a file with rows cannot be read
        """
        if self.rows_path is not None:
            yield from _lines(self.rows_path)
            return
        yield from _output_lines(jobs.WorkFolder.open(self.plan.work))
        yield from _lines(os.path.join(self.plan.work, KNOWN))

    @property
    def remaining_path(self) -> str | None:
        """The file with the identifiers of the objects that are not done; :data:`None` if all are."""
        return remaining_path(self.plan.work)

    @property
    def seconds(self) -> float:
        """The working time of all workers of the run together, whether it was resumed or not."""
        return jobs.WorkFolder.open(self.plan.work).summary().seconds

    def warnings(self) -> Iterator[dict[str, object]]:
        """Yield the warnings of the plan."""
        path = os.path.join(self.plan.work, WARNINGS)
        if os.path.exists(path):
            yield from map(json.loads, _lines(path))


def outcome_of(what: Run | Plan | str | os.PathLike[str]) -> Outcome:
    """Return the state of a run.

    :raises MigrationError: there is no plan
    """
    if isinstance(what, Run):
        verification = os.path.dirname(what.rows_path) != what.work
        if verification:
            found = "finished" if what.complete else "begun"
            return Outcome(what.plan, found, what.rows_path, True, what.remaining)
        what = what.plan
    plan = Plan.of(what)
    found = state(plan.work)
    rows = os.path.join(plan.work, ROWS)
    # The merged rows of an unfinished run may be outdated.
    return Outcome(plan, found, rows if found == "finished" else None)


def _lines(path: str) -> Iterator[bytes]:
    try:
        yield from file_lines(path)
    except OSError as error:
        raise ReportError(path, f"cannot be read ({error.strerror}); resume the run to write it again") from error
