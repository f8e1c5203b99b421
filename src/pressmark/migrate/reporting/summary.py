"""The totals of a run: one pass over its rows, keeping the first rows of each status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pressmark.migrate.entry import GOOD, SOURCE_KEPT, STATUSES, Entry

__all__ = ["FIRST", "Group", "Summary", "count_rows", "summarize"]

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
