"""A run in short: one pass over its rows, of which only the first few are kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pressmark.migrate.rows import GOOD, SOURCE_KEPT, STATUSES, Row

__all__ = ["FIRST", "Clock", "Group", "Summary", "count_rows", "summarize"]

#: So many rows of each status that is not good are kept.
FIRST = 100
_SECONDS = 50_000


@dataclass
class Group:
    """Rows that have something in common.

    :ivar objects: how many rows
    :ivar files: of them
    :ivar bytes: of them
    :ivar codes: how many have which ``error_code``
    :ivar first: the first :data:`FIRST` of them, where they are to be shown
    """

    objects: int = 0
    files: int = 0
    bytes: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    first: list[Row] = field(default_factory=list)

    def add(self, row: Row, keep: bool = False) -> None:
        """Count a row, and keep it if it is among the first."""
        self.objects += 1
        self.files += row.files
        self.bytes += row.bytes
        if row.error_code is not None:
            self.codes[row.error_code] += 1
        if keep and len(self.first) < FIRST:
            self.first.append(row)

    def record(self) -> dict[str, int]:
        """Return the numbers as they stand in JSON."""
        return {"objects": self.objects, "files": self.files, "bytes": self.bytes}


class Clock:
    """When something was done, and for how long: pauses between a run and its resumption do not count."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._last: float | None = None
        # Stretches of time in which something was done; they grow where there are too many.
        self._stretch = 1
        self._busy: set[int] = set()

    def add(self, started: str, seconds: float) -> None:
        """Take note of what was done from a time of RFC 3339 on."""
        try:
            begin = datetime.fromisoformat(started).timestamp()
        except ValueError:
            return
        end = begin + seconds
        self._first = begin if self._first is None else min(self._first, begin)
        self._last = end if self._last is None else max(self._last, end)
        first, last = int(begin // self._stretch), int(end // self._stretch)
        if first == last:
            self._busy.add(first)
        else:
            self._busy.update(range(first, last + 1))
        while len(self._busy) > _SECONDS:
            self._stretch *= 10
            self._busy = {one // 10 for one in self._busy}

    @property
    def busy(self) -> float:
        """Seconds in which something was done; nearly, where there were pauses."""
        if self._first is None or self._last is None:
            return 0.0
        return min(self._last - self._first, float(len(self._busy) * self._stretch))

    @property
    def started(self) -> str | None:
        """The first time, as RFC 3339 has it."""
        return _time(self._first)

    @property
    def ended(self) -> str | None:
        """The last."""
        return _time(self._last)


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


@dataclass
class Summary:
    """How many objects, files and bytes there are of each sort.

    :ivar whole: all rows
    :ivar done: those that are in the destination, and verified
    :ivar by_status: of each status that there is, in the order of :data:`~pressmark.migrate.rows.STATUSES`
    :ivar by_mode: of each way in which files came, of those that are done
    :ivar by_verify: of each way of verifying, of those that are done
    :ivar by_host: of each machine
    :ivar kept: done, but the source could not be removed
    :ivar noted: done, and something is said of them: what could not be kept though all is well
    :ivar clock: when it was done
    """

    whole: Group = field(default_factory=Group)
    done: Group = field(default_factory=Group)
    by_status: dict[str, Group] = field(default_factory=dict)
    by_mode: dict[str, Group] = field(default_factory=dict)
    by_verify: dict[str, Group] = field(default_factory=dict)
    by_host: dict[str, Group] = field(default_factory=dict)
    kept: Group = field(default_factory=Group)
    noted: Group = field(default_factory=Group)
    clock: Clock = field(default_factory=Clock)

    def add(self, row: Row) -> None:
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
            elif row.error is not None:
                self.noted.add(row, keep=True)
        if row.host:
            self.by_host.setdefault(row.host, Group()).add(row)
        if row.started:
            self.clock.add(row.started, row.seconds)

    def arrange(self) -> None:
        """Put statuses in their order, and everything else in that of its names."""
        order = {status: number for number, status in enumerate(STATUSES)}
        self.by_status = dict(sorted(self.by_status.items(), key=lambda item: order.get(item[0], len(order))))
        for name in ("by_mode", "by_verify", "by_host"):
            setattr(self, name, dict(sorted(getattr(self, name).items())))

    @property
    def undone(self) -> int:
        """Objects that are not in the destination, or not verified."""
        return self.whole.objects - self.done.objects

    def record(self) -> dict[str, Any]:
        """Return it as it stands in JSON, without rows."""
        busy = self.clock.busy
        groups = {name: getattr(self, name) for name in ("by_status", "by_mode", "by_verify", "by_host")}
        return {
            **self.whole.record(),
            "done": self.done.record(),
            "kept": self.kept.objects,
            "noted": self.noted.objects,
            **{name: {key: group.record() for key, group in found.items()} for name, found in groups.items()},
            "started": self.clock.started,
            "ended": self.clock.ended,
            "seconds": round(busy, 3),
            "objects_per_second": round(self.done.objects / busy, 1) if busy else None,
            "bytes_per_second": round(self.done.bytes / busy) if busy else None,
        }


def count_rows(summary: Summary, lines: Iterable[bytes]) -> Iterator[tuple[bytes, Row]]:
    """Give each line with its row, after it was count_rows.

    :param lines: a row each, as JSON
    :raises ValueError: a line is no row
    """
    for line in lines:
        row = Row.parse(line)
        summary.add(row)
        yield line, row
    summary.arrange()


def summarize(lines: Iterable[bytes]) -> Summary:
    """Return what rows say together.

    :param lines: a row each, as JSON
    :raises ValueError: a line is no row
    """
    summary = Summary()
    for _ in count_rows(summary, lines):
        pass
    return summary
