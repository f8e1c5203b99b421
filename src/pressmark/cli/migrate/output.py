"""The output on stdout: objects, conflicts and warnings, one per line, and a summary in JSON."""

from __future__ import annotations

import json
import re
from typing import Any

from pressmark.cli.common.console import one_line
from pressmark.cli.common.files import BufferedLines, OutputStream
from pressmark.errors import DIGEST_DIGITS, quoted
from pressmark.migrate import GOOD, STATUSES, Entry

__all__ = ["PHASES", "OutputLines", "conflict_text", "row_text"]

# Objects of a conflict that its line names.
_MEMBERS = 10

#: The phases in words.
PHASES = {
    "": "planning",
    "plan": "planning",
    "run": "migrating",
    "remove": "removing sources",
    "prune": "removing empty directories",
    "merge": "merging rows",
    "verify": "verifying",
}


class OutputLines:
    """Writes buffered lines; a closed pipe does not end the migration.

    :param as_json: JSON instead of text
    :param everything: also list objects that are done
    """

    def __init__(self, sink: OutputStream, as_json: bool, everything: bool) -> None:
        self._lines = BufferedLines(sink, go_on=True)
        self._as_json = as_json
        self._everything = everything

    def row(self, row: Entry) -> None:
        """Write the row of an object, unless it is done and not to be listed."""
        # A good row with an error reports a part left out, or a source kept.
        if self._everything or row.status not in GOOD or row.error is not None:
            self._add(row.record() if self._as_json else row_text(row))

    def entry(self, entry: Entry) -> None:
        """Write the planned path of an object, if all objects are to be listed."""
        if self._everything:
            text = f"{quoted(entry.source_id)}: {quoted(entry.source)} to {quoted(entry.target)}"
            self._add(entry.record() if self._as_json else text)

    def conflict(self, record: dict[str, Any]) -> None:
        """Write a conflict or a warning of a plan."""
        self._add(record if self._as_json else conflict_text(record))

    def summary(self, record: dict[str, Any]) -> None:
        """Write the summary in JSON, and flush."""
        if self._as_json:
            self._add({"summary": record})
        self.flush()

    def flush(self) -> None:
        """Write buffered lines."""
        self._lines.flush()

    def _add(self, what: dict[str, Any] | str) -> None:
        line = one_line(what) if isinstance(what, str) else json.dumps(what)
        self._lines.add(line.encode() + b"\n")


# In "its sha512 is …, not …".
_DIGEST = re.compile(rf"\b(is|not) ([0-9a-f]{{{DIGEST_DIGITS}}})[0-9a-f]+\b")


def row_text(row: Entry) -> str:
    """Return the row of an object as text, with shortened digests."""
    return _DIGEST.sub(r"\1 \2…", _row_text(row))


def _row_text(row: Entry) -> str:
    who = quoted(row.source_id) if row.source_id else quoted(row.source)
    also = f" as {quoted(row.id)}" if row.id != row.source_id else ""
    if row.status in GOOD:
        return f"{row.status} {who}{also}: {row.error or f'{quoted(row.source)} to {quoted(row.target)}'}"
    return f"{row.status} {who}{also}: {row.error or STATUSES[row.status]}"


def conflict_text(record: dict[str, Any]) -> str:
    """Return a conflict or a warning as text, with its objects."""
    members = record["objects"]
    named = [_member_text(member) for member in members[:_MEMBERS]]
    more = record["count"] - len(named)
    who = " and ".join([*named, *([f"{more:,} more"] if more > 0 else [])])
    return f"{record['severity']} {record['kind']}{f' {who}' if who else ''}: {record['message']}"


def _member_text(member: dict[str, Any]) -> str:
    identifier, source, target = member["source_id"], member["source"], member["target"]
    text = quoted(source) if source else ""
    if identifier is not None:
        text = f"{quoted(identifier)} ({source})" if source else quoted(identifier)
    return f"{text} at {quoted(target)}" if target is not None else text
