"""A list of checksums after a verification: with the new files, and the new names of moved files."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

from pressmark.errors import ManifestError
from pressmark.fixity.manifest_reader import is_comment
from pressmark.fixity.manifests import manifest_line
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.verification import MISSPELLED, ManifestCheck, Verdict
from pressmark.fs.atomic import is_stream
from pressmark.fs.spilling import TemporaryDatabase
from pressmark.option_names import option

__all__ = ["ManifestUpdate", "UpdateCounts"]

_TABLES = """
CREATE TABLE dropped (line INTEGER PRIMARY KEY);
CREATE TABLE added (number INTEGER PRIMARY KEY, position BLOB, lines BLOB);
"""
_BLOCK = 100  # lines
_COREUTILS = re.compile(rb"[ \t]*\\?([0-9A-Fa-f]+)([ \t][ *]?)")


class UpdateCounts(NamedTuple):
    """The files of a new list.

    :ivar kept: files with the lines of the old list
    :ivar added: new files
    :ivar moved: files with a new name
    :ivar dropped: missing files, which are not in the new list
    """

    kept: int
    added: int
    moved: int
    dropped: int


class ManifestUpdate(TemporaryDatabase):
    """The new version of a list of checksums; a context manager.

    It has the lines of the list, byte for byte, except those of moved files, and lines in the same format for moved and
    new files: in a list that is sorted by name, where they belong, otherwise at its end. A changed, unreadable or
    missing file keeps its line, so that no digest of a damaged file is recorded.

    :param check: the list, a regular file
    :param drop_missing: drop the lines of missing files
    :raises ManifestError: the list cannot be updated
    :raises SpillError: a temporary file cannot be written or read, like all methods
    """

    def __init__(self, check: ManifestCheck, *, drop_missing: bool = False) -> None:
        self._check = check
        self._drop_missing = drop_missing
        self._counts: dict[str, int] = dict.fromkeys(UpdateCounts._fields, 0)
        self._misspelled: Verdict | None = None
        self._has_match = False
        self._marks = dict.fromkeys(("kept", "added"), 0)  # sums over the files, see _mark
        if is_stream(check.path) or not os.path.isfile(check.path):
            raise self._error("only a regular file can be updated; write the list to a file")
        self._status = _status(check.path)
        self._read_style()
        super().__init__(_TABLES)

    @property
    def has_changes(self) -> bool:
        """Whether the new list differs from the old one."""
        return any(self._counts[what] for what in ("added", "moved", "dropped"))

    def add(self, verdict: Verdict) -> bool:
        """Add the verdict of a file, and return whether it is ok in the new list."""
        self._has_match = self._has_match or verdict.state in ("ok", "moved")
        if verdict.kind == MISSPELLED:
            self._misspelled = self._misspelled or verdict
            return False
        is_dropped = verdict.state == "missing" and self._drop_missing
        if is_dropped or verdict.state == "moved":
            self.execute("INSERT INTO dropped VALUES (?)", (verdict.line,))
        if verdict.outcome is not None:
            self._add_line(verdict.outcome._replace(path=self._prefix + verdict.outcome.path))
            self._counts["moved" if verdict.state == "moved" else "added"] += 1
        self._counts["dropped"] += is_dropped
        return verdict.ok or is_dropped or verdict.outcome is not None

    def write(self, file: Any) -> UpdateCounts:
        """Write the new list, after the verdicts of all files were added.

        :param file: has a method ``write``
        :raises ManifestError: the list must not be updated, also if it has changed since; what was written is invalid
        """
        if self._misspelled is not None:
            reason = f"{self._misspelled.message} before the update"
            raise ManifestError(self._check.name, self._misspelled.line, reason)
        if self._check.other_algorithms and not self._has_match:
            raise self._error(f"no file matches, so the algorithm is uncertain; choose it ({option('algorithms')})")
        self._require_same_list()
        try:
            # The new list is parsed while it is written.
            entries = self._check.parse(_Copied(self._blocks(), file))
            marks = sum(_mark(entry.path, entry.digests) for entry in entries)
        except ManifestError as error:
            raise self._error(f"cannot be updated; the new list would be malformed: {error}") from None
        if marks != sum(self._marks.values()):
            raise self._error("cannot be updated; its format is ambiguous; write a new list")
        self._require_same_list()
        return UpdateCounts(**self._counts)

    def _error(self, reason: str, line: int = 0) -> ManifestError:
        return ManifestError(self._check.name, line, reason)

    def _require_same_list(self) -> None:
        if _status(self._check.path) != self._status:
            raise self._error("changed by another program during the verification; run it again")

    # --- the format of the list ---------------------------------------------------------------------------------------

    def _read_style(self) -> None:
        """Set how lines are written, and where they belong."""
        entries = iter(self._check)
        first = None
        # The order of sort, and that of pressmark hash, in which "a/b" is before "a!".
        orders: list[Callable[[bytes], bytes]] = [lambda name: name.replace(b"/", b"\0"), lambda name: name]
        last = b""
        for entry in entries:
            first = first or entry
            if entry.digests.keys() != first.digests.keys() and not entries.has_others:
                what = "files have digests of different algorithms"
                raise self._error(f"{what}; only a list with the same ones for all files can be updated", entry.line)
            name = os.fsencode(entry.path)
            orders = [order for order in orders if order(last) <= order(name)]
            last = name
        if entries.has_others:
            what = f"digests of other algorithms than {option('algorithms')}"
            raise self._error(f"{what}; a list can only be updated with all of them")
        if first is None:
            raise self._error("an empty list cannot be updated; write a new one")
        if not entries.is_plain:
            raise self._error("a list that is compressed or UTF-16 cannot be updated; convert it to UTF-8 text")
        self._position = orders[0] if orders else lambda _name: b""
        self._prefix = "./" if first.path.startswith("./") else ""
        if os.path.isabs(first.path):
            self._prefix = os.path.join(os.path.abspath(os.fsdecode(self._check.root or b"")), "")
        self._format = str(entries.format)
        self._line_end = b"\r\n" if entries.has_crlf else b"\n"
        self._separator, self._is_upper = b"  ", False
        if self._format == "coreutils":
            with open(self._check.path, "rb") as file:
                line = next(islice(file, first.line - 1, None)).removeprefix(codecs.BOM_UTF8)
            found = _COREUTILS.match(line)
            if found is not None:
                self._is_upper, self._separator = found[1].isupper(), found[2]

    def _add_line(self, outcome: Outcome) -> None:
        lines = manifest_line(outcome, self._format)
        if self._format == "coreutils":
            digest, _, name = lines.partition(b"  ")
            lines = (digest.upper() if self._is_upper else digest) + self._separator + name
        position = self._position(os.fsencode(outcome.path))
        row = (position, lines.replace(b"\n", self._line_end))
        self.execute("INSERT INTO added VALUES (NULL, ?, ?)", row)
        self._marks["added"] += _mark(outcome.path, outcome.digests or {})

    # --- the new list -------------------------------------------------------------------------------------------------

    def _blocks(self) -> Iterator[bytes]:
        lines = self._lines()
        return iter(lambda: b"".join(islice(lines, _BLOCK)), b"")

    def _lines(self) -> Iterator[bytes]:
        self._counts["kept"] = self._marks["kept"] = 0
        added = self.rows("SELECT position, lines FROM added ORDER BY position, number")
        dropped = self.rows("SELECT line FROM dropped ORDER BY line")
        new, (drop,) = next(added, None), next(dropped, (None,))
        entries = iter(self._check)
        entry = next(entries, None)
        is_dropped = False
        last = b"\n"
        with open(self._check.path, "rb") as file:
            for number, line in enumerate(file, 1):
                if number == 1 and line.startswith(codecs.BOM_UTF8):
                    yield codecs.BOM_UTF8
                    line = line.removeprefix(codecs.BOM_UTF8)
                if entry is not None and number == entry.line:
                    position = self._position(os.fsencode(entry.path))
                    while new is not None and new[0] < position:
                        yield new[1]
                        new = next(added, None)
                    is_dropped = number == drop
                    if is_dropped:
                        (drop,) = next(dropped, (None,))
                    else:
                        self._counts["kept"] += 1
                        self._marks["kept"] += _mark(entry.path, entry.digests)
                    entry = next(entries, None)
                # Comments between the lines of a dropped entry, and after them, stay.
                if not is_dropped or is_comment(line):
                    yield line
                    last = line
        if new is not None:
            if not last.endswith(b"\n"):
                yield self._line_end
            yield new[1]
            for _position, lines in added:
                yield lines


class _Copied:
    """A binary stream of blocks that are written to a file when they are read."""

    def __init__(self, blocks: Iterator[bytes], file: Any) -> None:
        self._blocks = blocks
        self._file = file

    def read(self, _size: int) -> bytes:
        """Return the next block."""
        block = next(self._blocks, b"")
        self._file.write(block)
        return block


def _mark(path: str, digests: Mapping[str, str]) -> int:
    """Return a number for a file with these digests; lists with the same files have the same sum, in any order."""
    return hash((path, *digests.values()))


def _status(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
