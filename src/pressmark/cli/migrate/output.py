"""The output on stdout: objects, conflicts and warnings, one per line, and a summary in JSON."""

from __future__ import annotations

import re
from typing import Any

from pressmark.cli.common.console import one_line
from pressmark.cli.common.output import Output
from pressmark.errors import DIGEST_DIGITS, quoted
from pressmark.migrate import GOOD, STATUSES
from pressmark.migrate.entry import Entry

__all__ = ["PHASES", "conflict_text", "row_text", "write_conflict", "write_entry", "write_row"]

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


def write_row(output: Output, row: Entry, everything: bool) -> None:
    """Write the row of an object.

    :param everything: also write it if the object is done
    """
    # A good row with an error reports a part left out, or a source kept.
    if everything or row.status not in GOOD or row.error is not None:
        _write(output, row.record() if output.as_json else row_text(row))


def write_entry(output: Output, entry: Entry) -> None:
    """Write the planned path of an object."""
    text = f"{quoted(entry.source_id)}: {quoted(entry.source)} to {quoted(entry.target)}"
    _write(output, entry.record() if output.as_json else text)


def write_conflict(output: Output, record: dict[str, Any]) -> None:
    """Write a conflict or a warning of a plan."""
    _write(output, record if output.as_json else conflict_text(record))


def _write(output: Output, what: dict[str, Any] | str) -> None:
    if isinstance(what, str):
        output.line(one_line(what).encode())
    else:
        output.record(what)


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
