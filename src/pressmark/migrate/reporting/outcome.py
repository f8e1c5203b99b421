"""The result of a run: its state, its rows, their totals, and what to do about each status."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pressmark.errors import ReportError
from pressmark.fs.beneath import open_regular
from pressmark.jobs import WorkFolder
from pressmark.migrate.entry import GOOD, SOURCE_KEPT, STATUSES, Entry
from pressmark.migrate.execution.run_result import Run, output_lines, remaining_path
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.workdir import KNOWN, ROWS, WARNINGS, state

__all__ = ["FIRST", "REMEDIES", "Group", "Outcome", "Summary", "count_rows", "outcome_of", "remedies_for", "summarize"]


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
        yield from output_lines(WorkFolder.open(self.plan.work))
        yield from _lines(os.path.join(self.plan.work, KNOWN))

    @property
    def remaining_path(self) -> str | None:
        """The file with the identifiers of the objects that are not done; :data:`None` if all are."""
        return remaining_path(self.plan.work)

    @property
    def seconds(self) -> float:
        """The working time of all workers of the run together, whether it was resumed or not."""
        return WorkFolder.open(self.plan.work).summary().seconds

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
        with open_regular(path) as file:
            yield from file
    except OSError as error:
        raise ReportError(path, f"cannot be read ({error.strerror}); resume the run to write it again") from error


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
    :ivar first: the first :data:`FIRST` rows, if they are kept
    """

    objects: int = 0
    files: int = 0
    bytes: int = 0
    codes: Counter[str] = field(default_factory=Counter)
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

    def record(self) -> dict[str, Any]:
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


# --- remedies ---------------------------------------------------------------------------------------------------------


#: What to do for each of :data:`pressmark.migrate.entry.STATUSES`.
REMEDIES = {
    "ok": "nothing",
    "exists_same": "nothing",
    "exists_different": "compare both objects; if the one in the source is correct, migrate it again with --replace",
    "collision": "give the object another identifier (--map), choose another layout, or move the other object",
    "refused_name": "rename the file in the source, give the object another identifier (--map), or choose another"
    " layout or --profile",
    "source_missing": "correct the list of identifiers or the --version, or restore the object in the source",
    "source_invalid": "repair the source (pressmark store check lists the problems, pressmark store repair fixes some),"
    " then migrate the object again",
    "digest_mismatch": "the source is damaged or was misread; replace it with an intact copy, then migrate the object"
    " again",
    "copy_failed": "fix the cause of the error (space, permissions, disk, network), then migrate the object again",
    "unverified": "verify the object with --verify-again",
}
# After a verification the destination is at fault.
_VERIFIED = {
    "digest_mismatch": "the object in the destination is damaged; check the disk, then migrate the object again with"
    " --ids and --replace while its source exists",
    "copy_failed": "the object is missing from the destination or unreadable; find the cause, then migrate it"
    " again with --ids",
    "unverified": "the object in the destination cannot be read, or has no recorded digest; compare it with its source",
}


def remedies_for(verification: bool) -> dict[str, str]:
    """Return the remedies for the statuses of a run or a verification."""
    return {**REMEDIES, **_VERIFIED} if verification else REMEDIES
