"""What a migration says on standard output: objects, refusals and warnings, a line each, and a summary in JSON."""

from __future__ import annotations

import json
from typing import Any

from pressmark.cli.common.buffered_lines import BufferedLines
from pressmark.cli.common.console import one_line
from pressmark.cli.common.files import Sink
from pressmark.errors import quoted
from pressmark.migrate import GOOD, STATUSES, PlanEntry, Row

__all__ = ["Lines", "refusal_text", "row_text"]

# So many objects of a clash are named on its line; the file has more.
_SIDES = 10


class Lines:
    """Writes lines, some of them at a time; a reader who leaves does not end the migration.

    :param as_json: JSON instead of text
    :param everything: rows of objects that are done, too
    """

    def __init__(self, sink: Sink, as_json: bool, everything: bool) -> None:
        self._lines = BufferedLines(sink, go_on=True)
        self._as_json = as_json
        self._everything = everything

    def row(self, row: Row) -> None:
        """Write what became of an object, if that is wanted."""
        # A row that is good and has an error says what was left out, or that the source was kept.
        if self._everything or row.status not in GOOD or row.error is not None:
            self._add(row.record() if self._as_json else row_text(row))

    def entry(self, entry: PlanEntry) -> None:
        """Write what would be done with an object, if that is wanted."""
        if self._everything:
            text = f"{quoted(entry.source_id)}: {quoted(entry.source)} to {quoted(entry.target)}"
            self._add(entry._asdict() if self._as_json else text)

    def refusal(self, record: dict[str, Any]) -> None:
        """Write what a plan refuses, or warns of."""
        self._add(record if self._as_json else refusal_text(record))

    def summary(self, record: dict[str, Any]) -> None:
        """Write the summary, where that is wanted, and everything before."""
        if self._as_json:
            self._add({"summary": record})
        self.flush()

    def flush(self) -> None:
        """Write what waits."""
        self._lines.flush()

    def _add(self, what: dict[str, Any] | str) -> None:
        line = one_line(what) if isinstance(what, str) else json.dumps(what)
        self._lines.add(line.encode() + b"\n")


def row_text(row: Row) -> str:
    """Return what became of an object, for people."""
    who = quoted(row.source_id) if row.source_id else quoted(row.source)
    also = f" as {quoted(row.id)}" if row.id != row.source_id else ""
    if row.status in GOOD:
        return f"{row.status} {who}{also}: {row.error or f'{quoted(row.source)} to {quoted(row.target)}'}"
    return f"{row.status} {who}{also}: {row.error or STATUSES[row.status]}"


def refusal_text(record: dict[str, Any]) -> str:
    """Return what a plan refuses, or warns of, for people: with all sides."""
    sides = record["objects"]
    named = [_side(side) for side in sides[:_SIDES]]
    more = record["count"] - len(named)
    who = " and ".join([*named, *([f"{more:,} more"] if more > 0 else [])])
    return f"{record['severity']} {record['kind']}{f' {who}' if who else ''}: {record['message']}"


def _side(side: dict[str, Any]) -> str:
    place = quoted(side["source"]) if side["source"] else ""
    if side["source_id"] is not None:
        place = f"{quoted(side['source_id'])} ({side['source']})" if side["source"] else quoted(side["source_id"])
    return f"{place} at {quoted(side['target'])}" if side["target"] is not None else place
