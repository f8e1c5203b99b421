"""What of an object does not go with it to another kind of store, in words: for plans, rows and removals."""

from __future__ import annotations

from collections.abc import Sequence

from pressmark.fs.names import decode_fs
from pressmark.stores.ocfl.declarations import MUTABLE_HEAD
from pressmark.stores.ocfl.ocfl_object import OcflObject

__all__ = ["HOLDS_EMPTY", "empty_text", "listed", "unversioned_texts"]

#: Kinds of stores whose objects may have empty directories.
HOLDS_EMPTY = frozenset({"pairtree", "bags"})
_NAMED = 3


def unversioned_texts(found: OcflObject) -> list[str]:
    """Return what an OCFL object has besides its newest version.

    :raises ObjectError: it cannot be looked at
    """
    texts = []
    older = len(found.inventory["versions"]) - 1
    if older:
        texts.append("1 older version" if older == 1 else f"{older} older versions")
    others = found.unversioned()
    rest = [path for path in others if not path.startswith(MUTABLE_HEAD)]
    if len(rest) < len(others):
        texts.append(f"staged content in {decode_fs(MUTABLE_HEAD)} (commit it with ocfl-java first)")
    if rest:
        texts.append(listed(rest))
    return texts


def empty_text(names: Sequence[bytes]) -> str:
    """Return how many empty directories an object has, with the names of the first."""
    count = "1 empty directory" if len(names) == 1 else f"{len(names)} empty directories"
    return f"{count} ({listed(names)})"


def listed(names: Sequence[bytes]) -> str:
    """Return the first names of several."""
    more = len(names) - _NAMED
    return ", ".join([*map(decode_fs, names[:_NAMED]), *([f"and {more} more"] if more > 0 else [])])
