"""The entries of a plan, the largest objects first."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing

from pressmark.fs.atomic import OutputFile
from pressmark.fs.beneath import open_regular
from pressmark.migrate.planning.entry import PlanEntry

__all__ = ["sort_by_size"]


def sort_by_size(path: str, on_entry: Callable[[int, int, int], object]) -> str:
    """Sort the entries of a file: the largest objects first, those of one size in their order; return their SHA-256.

    :param on_entry: called with the length of each line, the bytes of the object and its number
    """
    with closing(sqlite3.connect("", isolation_level=None)) as base, open_regular(path) as entries:
        base.execute("CREATE TABLE entries (size INTEGER, at INTEGER PRIMARY KEY, length INTEGER)")
        base.execute("BEGIN")
        at = 0
        for line in entries:
            base.execute("INSERT INTO entries VALUES (?, ?, ?)", (PlanEntry.parse(line).bytes, at, len(line)))
            at += len(line)
        rows = base.execute("SELECT at, length, size FROM entries ORDER BY size DESC, at")
        with OutputFile(path) as lines:
            for number, (start, length, size) in enumerate(rows):
                entries.seek(start)
                lines.write(entries.read(length))
                on_entry(length, size, number)
    return lines.sha256
