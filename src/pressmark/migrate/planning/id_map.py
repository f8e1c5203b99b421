"""Maps of new identifiers: ``--map FILE``.

The file has two columns, the old and the new identifier, separated by tabs or as CSV; a first line ``old,new``,
``source_id,id`` or ``source,target`` is a header. Objects that are not in the map keep their identifiers.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from pressmark.errors import quoted
from pressmark.migrate.id_index import IdentifierIndex
from pressmark.tabular.delimited import CSV, TSV
from pressmark.tabular.identifiers import ListError, examined, reading, table_rows

__all__ = ["IdentifierMap", "read_map"]

IdentifierMap = str | os.PathLike[str] | Mapping[str, str] | Iterable[tuple[str, str]]
_HEADERS = (["old", "new"], ["source_id", "id"], ["source", "target"])


def read_map(given: IdentifierMap, index: IdentifierIndex) -> None:
    """Read a map into an index.

    :raises ListError: the map is malformed, has two new identifiers for an object, or cannot be read
    """
    where = "the map"
    if isinstance(given, (str, os.PathLike)):
        where = os.fspath(given)
        index.fill(pair for _line, pair in _pairs(where))
    else:
        index.fill(_checked(given.items() if isinstance(given, Mapping) else given))
    for identifier, first, second, same in index.repeated():
        if not same:
            lines = _lines_of(where, first, second) if where != "the map" else f"pairs {first + 1} and {second + 1}"
            what = f"two new identifiers for {quoted(identifier)}, in {lines}"
            raise ListError(f"{where}: {what}; keep one")


def _checked(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    for number, (old, new) in enumerate(pairs, 1):
        if not old or not new:
            raise ListError(f"the map: pair {number} has an empty identifier")
        yield old, new


def _pairs(path: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield line numbers and pairs of a file."""
    with reading(path) as file:
        listed = examined(path, file, "csv")
        first = listed.head.partition(b"\n")[0]
        for line, row in table_rows(path, listed, TSV if b"\t" in first else CSV):
            if line == 1 and [name.lower() for name in row] in _HEADERS:
                continue
            if len(row) != 2 or not all(row):
                raise ListError(f"{path}:{line}: expected an old and a new identifier, separated by a tab or a comma")
            yield line, (row[0], row[1])


def _lines_of(path: str, first: int, second: int) -> str:
    """Return the lines of two pairs, for a message."""
    found = [line for number, (line, _pair) in enumerate(_pairs(path)) if number in (first, second)]
    return f"lines {found[0]} and {found[1]}"
