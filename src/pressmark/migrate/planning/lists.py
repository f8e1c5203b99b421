"""The lists of a plan: of identifiers, and maps of new identifiers (``--map FILE``).

The file of a map has two columns, the old and the new identifier, separated by tabs or as CSV; a first line
``old,new``, ``source_id,id`` or ``source,target`` is a header. Objects that are not in the map keep their identifiers.

A resumed run must have the lists of its plan. They are compared by what they contain, so a list may move, and its
format may change.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pressmark.errors import MigrationError, TableError, quoted
from pressmark.fs.names import encode_fs
from pressmark.migrate.id_index import IdentifierIndex
from pressmark.option_names import option
from pressmark.tabular.delimited import CSV, TSV
from pressmark.tabular.formats import Crlf
from pressmark.tabular.identifiers import check_list, check_map, open_list_file, read_identifiers, table_rows

if TYPE_CHECKING:
    from pressmark.migrate.options import Options
    from pressmark.migrate.planning.plan import Plan
    from pressmark.tabular.identifiers import Identifiers

__all__ = [
    "HashedIdentifiers",
    "IdentifierMap",
    "check_lists",
    "list_errors",
    "map_lines",
    "read_map",
    "refuse_other_lists",
]

IdentifierMap = str | os.PathLike[str] | Mapping[str, str] | Iterable[tuple[str, str]]
_HEADERS = (["old", "new"], ["source_id", "id"], ["source", "target"])


def read_map(identifier_map: IdentifierMap, index: IdentifierIndex) -> None:
    """Read a map into an index.

    :raises TableError: the map is malformed, has two new identifiers for an object, or cannot be read
    """
    where = "the map"
    if isinstance(identifier_map, (str, os.PathLike)):
        where = os.fspath(identifier_map)
        index.fill(pair for _line, pair in _pairs(where))
    else:
        index.fill(_checked(identifier_map.items() if isinstance(identifier_map, Mapping) else identifier_map))
    for identifier, first, second, same in index.repeated():
        if not same:
            lines = _lines_of(where, first, second) if where != "the map" else f"pairs {first + 1} and {second + 1}"
            what = f"two new identifiers for {quoted(identifier)}, in {lines}"
            raise TableError(where, f"{what}; keep one")


def _checked(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for number, (old, new) in enumerate(pairs, 1):
        if not old or not new:
            raise TableError("the map", f"pair {number} has an empty identifier")
        yield old, new


def _pairs(path: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield line numbers and pairs of a file."""
    with open_list_file(path, "csv") as listed:
        first = listed.head.partition(b"\n")[0]
        for line, row in table_rows(path, listed, TSV if b"\t" in first else CSV):
            if line == 1 and [name.lower() for name in row] in _HEADERS:
                continue
            if len(row) != 2 or not all(row):
                raise TableError(path, "expected an old and a new identifier, separated by a tab or a comma", line)
            yield line, (row[0], row[1])


def _lines_of(path: str, first: int, second: int) -> str:
    """Return the lines of two pairs, for a message."""
    found = [line for number, (line, _pair) in enumerate(_pairs(path)) if number in (first, second)]
    return f"lines {found[0]} and {found[1]}"


class HashedIdentifiers:
    """The identifiers of a list, which are hashed as they are read once.

    :ivar sha256: SHA-256 in hex of the identifiers read so far, in order
    """

    def __init__(self, ids: Identifiers, column: str | None, crlf: Crlf | None) -> None:
        self._ids = read_identifiers(ids, column, crlf)
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[str]:
        for identifier in self._ids:
            self._hash.update(encode_fs(identifier) + b"\0")
            yield identifier

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


@contextmanager
def list_errors(options: Options) -> Iterator[None]:
    """Convert the errors of lists.

    :raises MigrationError: a list cannot be read
    """
    try:
        yield
    except TableError as error:
        raise MigrationError(options.source, options.destination, str(error)) from None


def check_lists(ids: Identifiers | None, crlf: Crlf | None, new_ids: IdentifierMap | None) -> None:
    """Check that the files of lists exist and are lists.

    :raises TableError: one is not
    """
    check_list(ids, crlf)
    check_map(new_ids)


def map_lines(index: IdentifierIndex) -> Iterator[bytes]:
    """Yield the lines of the file of a map."""
    for pair in index.items():
        yield json.dumps(pair).encode() + b"\n"


def refuse_other_lists(
    plan: Plan, ids: Identifiers | None, column: str | None, crlf: Crlf | None, new_ids: IdentifierMap | None
) -> None:
    """Refuse lists that differ from those of the plan; :data:`None` is not compared.

    :raises MigrationError: a list differs, or cannot be read
    """
    with list_errors(plan.options):
        check_lists(ids, crlf, new_ids)
        if ids is not None:
            listed = HashedIdentifiers(ids, column, crlf)
            for _identifier in listed:
                pass
            _refuse_other(plan, option("ids"), plan.ids_sha256, listed.sha256)
        if new_ids is not None:
            with IdentifierIndex(plan.work) as index:
                read_map(new_ids, index)
                found = hashlib.sha256()
                for line in map_lines(index):
                    found.update(line)
            _refuse_other(plan, option("new_ids"), plan.map_sha256, found.hexdigest())


def _refuse_other(plan: Plan, listed: str, planned: str, current: str) -> None:
    """Refuse a list with another digest than the one of the plan."""
    if planned == current:
        return
    differ = "other identifiers in" if planned else "no list in"
    what = f"this migration was started with different options: {differ} {listed}; omit {listed} to continue it, or"
    what += " choose another work folder to start a new migration"
    raise MigrationError(plan.options.source, plan.options.destination, f"{plan.work}: {what}")
