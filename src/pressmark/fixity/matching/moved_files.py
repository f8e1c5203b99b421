"""Missing and new files with the same digests: files that were moved, and duplicates."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pressmark.fixity.manifest_reader import ManifestEntry
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.spilling import TemporaryDatabase

__all__ = ["MovedFiles"]

_TABLES = """
CREATE TABLE missing (number INTEGER PRIMARY KEY, content BLOB, path BLOB, name BLOB, line INTEGER, kind TEXT,
    message TEXT);
CREATE TABLE new (number INTEGER PRIMARY KEY, original BLOB, path BLOB, digests TEXT, size INTEGER, mtime_ns INTEGER,
    kind TEXT, message TEXT, state TEXT);
CREATE TABLE contents (content BLOB, name BLOB, number INTEGER, PRIMARY KEY (content, name, number)) WITHOUT ROWID;
CREATE INDEX contents_number ON contents (number);
CREATE TABLE moved (missing INTEGER PRIMARY KEY, new INTEGER UNIQUE);
"""
_NEW = "new.path, digests, size, mtime_ns, new.kind, new.message"


class MovedFiles(TemporaryDatabase):
    """Missing and new files; a context manager.

    Files match if all digests of the entry are those of the new file. Of several with the same content, those with the
    same last name match first. Empty files are moved only under their last name, and are never duplicates.

    :raises SpillError: the temporary file cannot be written or read, like all methods
    """

    def __init__(self) -> None:
        super().__init__(_TABLES)
        self._empty: set[bytes] = set()

    def add_missing(self, entry: ManifestEntry, kind: str, message: str) -> None:
        """Add a missing file."""
        path = os.fsencode(entry.path)
        row = (_content(entry.digests), path, _last(path), entry.line, kind, message)
        self.execute("INSERT INTO missing VALUES (NULL, ?, ?, ?, ?, ?, ?)", row)

    def add_new(self, state: str, outcome: Outcome, algorithm_sets: Iterable[Sequence[str]]) -> None:
        """Add a new file, also one that cannot be read; its path is relative to the root.

        :param state: of its verdict
        :param algorithm_sets: the algorithms of each kind of entry, all of which the outcome has
        """
        path, digests = os.fsencode(outcome.path), outcome.digests
        row = (path, json.dumps(digests), outcome.size, outcome.mtime_ns, outcome.kind, outcome.message, state)
        number = self.execute("INSERT INTO new VALUES (NULL, NULL, ?, ?, ?, ?, ?, ?, ?)", row).lastrowid
        if digests is None:
            return
        contents = {_content({name: digests[name] for name in names}) for names in algorithm_sets}
        if outcome.size == 0:
            self._empty |= contents
        for content in contents:
            self.execute("INSERT INTO contents VALUES (?, ?, ?)", (content, _last(path), number))

    def match(self, entries: Iterable[ManifestEntry]) -> None:
        """Match the files; call it after all were added.

        :param entries: all entries of the list, from its beginning
        """
        for condition in ("AND name = ?", ""):
            query = f"SELECT number FROM contents WHERE content = ? {condition} LIMIT 1"
            # A copy of the numbers in the database: the loop changes the other tables.
            rows = self.rows(
                "SELECT number, content, name FROM missing WHERE number NOT IN (SELECT missing FROM moved)"
                " AND content IN (SELECT content FROM contents) ORDER BY number"
            )
            for number, content, name in rows:
                if not condition and content in self._empty:
                    continue
                found = next(self.rows(query, (content, name) if condition else (content,)), None)
                if found is not None:
                    self.execute("INSERT INTO moved VALUES (?, ?)", (number, *found))
                    self.execute("DELETE FROM contents WHERE number = ?", found)
        if not any(self.rows("SELECT 1 FROM contents LIMIT 1")):
            return
        for entry in entries:
            content = _content(entry.digests)
            if content not in self._empty:
                self.execute(
                    "UPDATE new SET original = ? WHERE original IS NULL"
                    " AND number IN (SELECT number FROM contents WHERE content = ?)",
                    (os.fsencode(entry.path), content),
                )

    def missing(self) -> Iterator[tuple[int, str, str, str, Outcome | None]]:
        """Yield line, path, kind and message of each missing file, and the outcome of the new file if it was moved."""
        rows = self.rows(
            f"SELECT line, missing.path, missing.kind, missing.message, {_NEW} FROM missing"
            " LEFT JOIN moved ON moved.missing = missing.number LEFT JOIN new ON new.number = moved.new"
            " ORDER BY missing.number"
        )
        for line, path, kind, message, *new in rows:
            yield line, os.fsdecode(path), kind, message, None if new[0] is None else _outcome(*new)

    def new(self) -> Iterator[tuple[str, Outcome, str | None]]:
        """Yield state and outcome of each other new file, and for a duplicate, the name of the first entry like it."""
        rows = self.rows(
            f"SELECT state, original, {_NEW} FROM new WHERE number NOT IN (SELECT new FROM moved) ORDER BY number"
        )
        for state, original, *new in rows:
            yield state, _outcome(*new), None if original is None else os.fsdecode(original)


def _content(digests: Mapping[str, str]) -> bytes:
    """Return a key for the content of a file."""
    return " ".join(f"{name}:{digests[name]}" for name in sorted(digests)).encode()


def _last(path: bytes) -> bytes:
    return path.rpartition(b"/")[2]


def _outcome(path: bytes, digests: str, size: int | None, mtime_ns: int | None, *error: Any) -> Outcome:
    return Outcome(os.fsdecode(path), json.loads(digests), size, mtime_ns, None, *error)
