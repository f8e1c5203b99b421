"""The lists of a plan, of identifiers and of new identifiers: their check, and their digests.

A resumed run must have the lists of its plan. They are compared by what they contain, so a list may move, and its
format may change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from pressmark.errors import MigrationError
from pressmark.fs.names import encode_fs
from pressmark.migrate.id_index import IdentifierIndex
from pressmark.migrate.planning.id_map import read_map
from pressmark.tabular.identifiers import ListError, check_list, check_map, read_identifiers

if TYPE_CHECKING:
    from pressmark.migrate.options import Options
    from pressmark.migrate.planning.id_map import IdentifierMap
    from pressmark.migrate.planning.plan import Plan
    from pressmark.tabular.identifiers import Identifiers

__all__ = ["HashedIdentifiers", "check_lists", "list_errors", "map_lines", "refuse_other_lists"]

Crlf = Literal["strip", "keep"]


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
    except ListError as error:
        raise MigrationError(options.source, options.destination, str(error)) from None


def check_lists(ids: Identifiers | None, crlf: Crlf | None, new_ids: IdentifierMap | None) -> None:
    """Check that the files of lists exist and are lists.

    :raises ListError: one is not
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
            if plan.ids_sha256 != listed.sha256:
                _refuse(plan, _differs("--ids", plan.ids_sha256))
        if new_ids is not None:
            with IdentifierIndex(plan.work) as index:
                read_map(new_ids, index)
                found = hashlib.sha256()
                for line in map_lines(index):
                    found.update(line)
            if plan.map_sha256 != found.hexdigest():
                _refuse(plan, _differs("--map", plan.map_sha256))


def _differs(option: str, planned: str) -> str:
    differ = "other identifiers in" if planned else "no list in"
    what = f"was started with different options: {differ} {option}"
    return f"{what}; omit {option} to continue it, or choose another --work to start a new migration"


def _refuse(plan: Plan, what: str) -> None:
    raise MigrationError(plan.options.source, plan.options.destination, f"{plan.work}: this migration {what}")
