"""Whether the objects of a store are where its layout puts them, judged by the first ones.

A store whose first objects are in place is taken for sound, and is never walked for one object. In any other, an object
that is not at the path of its identifier is looked for everywhere, and a new object is refused until the caller
specifies the layout.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from itertools import islice

from pressmark.errors import IdentifierError, StoreError, quoted
from pressmark.layouts import Layout
from pressmark.option_names import option
from pressmark.stores.objects import StoreObject

__all__ = ["FIRST", "FirstObjects", "first_directories"]

#: The number of objects that are read.
FIRST = 100
# Directories that are listed at most, so that a flat store with millions of objects costs little.
_LISTED = 5_000


class FirstObjects:
    """The first objects of a store; they are read when they are needed, and kept.

    :param read: returns the objects, in the order of the walk
    :param is_misplaced: returns whether an object is not where the layout puts it
    """

    def __init__(self, read: Callable[[], Iterable[StoreObject]], is_misplaced: Callable[[StoreObject], bool]) -> None:
        self._read = read
        self._is_misplaced = is_misplaced
        self._objects: list[StoreObject] | None = None

    def paths(self, identifier: str) -> list[str]:
        """Return the paths of the first objects with an identifier."""
        return [one.path for one in self._first() if one.id == identifier]

    def misplaced(self, *, anew: bool = False) -> StoreObject | None:
        """Return the first object that is not where the layout puts it; :data:`None` if all are in place.

        :param anew: read the objects again if all were in place
        """
        is_old = self._objects is not None
        found = next(filter(self._is_misplaced, self._first()), None)
        if found is None and anew and is_old:
            self._objects = None
            found = next(filter(self._is_misplaced, self._first()), None)
        return found

    def refuse_misplaced(self, root: str, layout: Layout) -> None:
        """Check that new objects have a path.

        :param root: the store, for the message
        :raises StoreError: an object is not where the layout puts it
        """
        found = self.misplaced()
        if found is None:
            return
        try:
            what = f"puts it at {quoted(layout.map_id(found.id or ''))}"
        except IdentifierError:
            what = "cannot map its identifier"
        reason = f"object {quoted(found.id or '')} is at {quoted(found.path)}, but layout {layout.name} {what}"
        raise StoreError(root, f"{reason}; specify the layout of new objects ({option('layout')})")

    def _first(self) -> list[StoreObject]:
        if self._objects is None:
            self._objects = list(islice(self._read(), FIRST))
        return self._objects


def first_directories(directory: bytes) -> list[bytes]:
    """Return the names of the directories in a directory, in order; of very many, those that the system lists first.

    :raises OSError: the directory cannot be read
    """
    with os.scandir(directory) as entries:
        return sorted(islice((one.name for one in entries if one.is_dir(follow_symlinks=False)), _LISTED))
