"""The storage hierarchy of an OCFL root, walked lazily in the order of names by several threads (section 4.3).

The unit of work is a few sibling directories with everything below them. A thread that has read a certain number of
directories returns the rest, which keeps its position in the order, so a deep branch does not delay the others. Results
wait for those before them. The number of results that threads prepare ahead is bounded, and so is memory use, except
for the names of one directory.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from pressmark.fs.names import decode_fs, encode_fs, glob_matcher, is_junk
from pressmark.fs.trees import DirectoryEntry
from pressmark.fs.walk import ordered_tree
from pressmark.reports import Problem
from pressmark.stores.ocfl.declarations import EXTENSIONS, OBJECT, VERSIONS, is_object_name, is_object_root
from pressmark.stores.ocfl.inventory import INVENTORY, InventoryError, read_inventory, scan_identifier
from pressmark.stores.ocfl.layout_files import WORK_DIRECTORY
from pressmark.stores.ocfl.storage import PlainObjects, Storage
from pressmark.stores.placement import FIRST
from pressmark.stores.problems import problem
from pressmark.stores.recheck import agreed
from pressmark.stores.store import StoreObject

__all__ = ["BatchReader", "FoundObject", "Walk", "first_objects", "ignored", "walk_objects"]

Misplacements = Callable[[Sequence[tuple[bytes, bytes | None, str | None]]], list[list[Problem]]]
InPlace = Callable[[Sequence[str], Sequence[str]], bool]

T = TypeVar("T")
SIBLINGS = 64  # directories submitted together
BUDGET = 1024  # directories that a thread reads before it returns the rest: a few milliseconds
AHEAD = 4096  # results that wait for those before them, until no more work is submitted
_INVENTORY = encode_fs(INVENTORY)
# The first bytes of an inventory, searched for the identifier before the whole inventory is read.
_HEAD = 4096  # bytes
DEPTH = 200  # levels per unit of work; Python's stack is limited


class FoundObject(NamedTuple, Generic[T]):
    """An object in the hierarchy.

    :ivar place: its directory, relative to the root
    :ivar inside: the object that contains it; :data:`None` for most
    :ivar value: returned by the visitor
    """

    place: bytes
    inside: bytes | None
    value: T


class BatchReader(NamedTuple, Generic[T]):
    """How a walk reads objects without unusual features, many in one call.

    :ivar reads: what it reads of them, and ``version``: see
        :meth:`pressmark.stores.ocfl.storage.Storage.scan_objects`
    :ivar split: called with such objects in the thread that found them; returns them one by one, or :data:`None` to
        have the walk yield them together
    """

    reads: str
    split: Callable[[PlainObjects], Iterable[FoundObject[T]] | None] = lambda _found: None
    version: str = VERSIONS[0]


class _Group(NamedTuple):
    """Directories that have not been read yet.

    :ivar place: the directory that contains them
    :ivar names: their names
    :ivar start: index of the first one that is not done
    :ivar inside: the object that contains them
    """

    place: bytes
    names: Sequence[bytes]
    start: int
    inside: bytes | None

    def cut(self, threads: int) -> tuple[_Group, _Group | None]:
        """Return the group, of which a call reads the first names, and a group of the names after those."""
        end = self.start + SIBLINGS
        return self, self._replace(start=end) if end < len(self.names) else None


# What a walk yields.
_Found = FoundObject[T] | PlainObjects | Problem


def _runs(out: list[_Found[T] | _Group]) -> list[list[_Found[T]] | _Group]:
    """Return results and groups in order, with consecutive results together."""
    runs: list[list[_Found[T]] | _Group] = []
    for item in out:
        if isinstance(item, _Group):
            runs.append(item)
        elif runs and isinstance(runs[-1], list):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def _size(run: list[_Found[T]]) -> int:
    """Return the number of results in a list."""
    return sum([len(item.places) if isinstance(item, PlainObjects) else 1 for item in run])


def ignored(patterns: Sequence[str]) -> Callable[[bytes], bool]:
    """Return a function that checks whether a name matches one of the globs ``patterns``."""
    matches = glob_matcher(patterns)
    return lambda name: matches(decode_fs(name)) is not None


class Walk(Generic[T]):
    """One walk of a root's hierarchy; iterate it once.

    :param visit: called with the place and the entries of each object, in the thread that found it
    :param reader: reads the objects that need not be visited; unused with ``ignore``
    :param finish: called with the objects of a unit of work before they are yielded
    :param clashes: report names that differ only in case or Unicode normalization
    :param ignore: globs of names to ignore
    :param names: only the directories of these names in the root
    :param budget: the number of directories that a thread reads before it returns the rest
    """

    def __init__(
        self,
        storage: Storage,
        visit: Callable[[bytes, Sequence[DirectoryEntry]], T],
        *,
        reader: BatchReader[T] | None = None,
        finish: Callable[[list[FoundObject[T]]], list[FoundObject[T]]] = lambda found: found,
        threads: int = 1,
        clashes: bool = False,
        ignore: Sequence[str] = (),
        names: Sequence[bytes] | None = None,
        budget: int | None = None,
    ) -> None:
        self._storage = storage
        self._names = names
        self._budget = budget or BUDGET
        self._visit = visit
        self._reader = None if ignore else reader
        self._finish = finish
        self._threads = threads
        self._clashes = clashes
        self._ignored = ignored(ignore) if ignore else None
        self._work_directory = storage.path(EXTENSIONS + b"/" + WORK_DIRECTORY)

    def __iter__(self) -> Iterator[FoundObject[T] | PlainObjects | Problem]:
        """Yield objects, and problems outside of objects."""
        top = _runs(self._top())
        for run in ordered_tree(top, self._expand, threads=self._threads, ahead=AHEAD, size=_size):
            yield from run

    # --- one unit of work -----------------------------------------------------------------------------------------

    def _expand(self, group: _Group) -> list[list[_Found[T]] | _Group]:
        """Read a few directories of a group and everything below them; return the results in order."""
        out: list[_Found[T] | _Group] = []
        names = group.names[group.start : group.start + SIBLINGS]
        self._siblings(group.place, names, group.inside, out, self._budget, 0)
        found = [item for item in out if isinstance(item, FoundObject)]
        if found:
            finished = iter(self._finish(found))
            out = [next(finished) if isinstance(item, FoundObject) else item for item in out]
        return _runs(out)

    def _siblings(
        self,
        place: bytes,
        names: Sequence[bytes],
        inside: bytes | None,
        out: list[_Found[T] | _Group],
        budget: int,
        depth: int,
    ) -> int:
        """Read directories until the budget is used up, and return the remaining budget."""
        # A call that reads many directories knows no names.
        is_usual = inside is None and not any(is_junk(name, directory=True) for name in names)
        if self._reader is not None and is_usual and budget > 0:
            return self._batch(self._reader, place, names, out, budget, depth)
        for number, name in enumerate(names):
            if budget <= 0 or depth > DEPTH:
                out.append(_Group(place, names, number, inside))
                break
            budget = self._directory(place + b"/" + name if place else name, inside, out, budget - 1, depth)
        return budget

    def _batch(
        self,
        reader: BatchReader[T],
        place: bytes,
        names: Sequence[bytes],
        out: list[_Found[T] | _Group],
        budget: int,
        depth: int,
    ) -> int:
        """Read directories of the hierarchy as :meth:`_siblings` does, most of them in one call."""
        left, found = self._storage.scan_objects(place, names, reader.reads, reader.version, self._clashes, budget)
        for path, content in found:
            if isinstance(content, PlainObjects):
                objects = reader.split(content)
                out += [content] if objects is None else objects
            elif content is not None:
                out.append(_Group(path, content, 0, None))
            elif budget > 0 and depth <= DEPTH:
                # The call has used its own budget.
                budget = self._directory(path, None, out, budget - 1, depth)
            else:
                above, name = os.path.split(path)
                out.append(_Group(above, [name], 0, None))
        return min(budget, left)

    def _directory(
        self,
        place: bytes,
        inside: bytes | None,
        out: list[_Found[T] | _Group],
        budget: int,
        depth: int,
    ) -> int:
        junk = inside is None and any(is_junk(name, directory=True) for name in place.split(b"/"))
        try:
            entries = self._entries(place, inside)
        except OSError as error:
            out.append(problem("junk", place) if junk else problem("unreadable", place, error.strerror or str(error)))
            return budget
        if entries is None:
            return budget
        if is_object_root(entries):
            out.append(FoundObject(place, inside, self._visit(place, entries)))
            below = [entry.name for entry in entries if entry.kind == "directory" and not is_object_name(entry)]
            return self._siblings(place, below, place, out, budget, depth + 1) if below else budget
        if junk:
            out.append(problem("junk", place))
            return budget
        if inside is not None:
            # An unknown directory in an object is reported with the object.
            below = [entry.name for entry in entries if entry.kind == "directory"]
            return self._siblings(place, below, inside, out, budget, depth + 1) if below else budget
        if not entries:
            out.append(problem("directory-empty", place))
            return budget
        return self._siblings(place, self._folders(place, entries, out), None, out, budget, depth + 1)

    def _entries(self, place: bytes, inside: bytes | None) -> list[DirectoryEntry] | None:
        """Return the entries of a directory, or :data:`None` if another run has removed it since its name was read.

        The hierarchy contains only directories. One with other entries, or none, is read again until two looks agree: a
        run may be moving an object in or out.

        :raises OSError: the directory cannot be read
        """

        try:
            found = self._scan(place)
        except FileNotFoundError:
            pass
        else:
            if self._is_usual(found, inside):
                return found
        return self._settled_entries(place, inside)

    def _scan(self, place: bytes) -> list[DirectoryEntry]:
        entries, is_ignored = self._storage.scan(place), self._ignored
        return entries if is_ignored is None else [entry for entry in entries if not is_ignored(entry.name)]

    @staticmethod
    def _is_usual(entries: Sequence[DirectoryEntry], inside: bytes | None) -> bool:
        if inside is not None or is_object_root(entries):
            return True
        return bool(entries) and all(entry.kind == "directory" for entry in entries)

    def _settled_entries(self, place: bytes, inside: bytes | None) -> list[DirectoryEntry] | None:
        def look() -> list[DirectoryEntry] | FileNotFoundError | None:
            try:
                return self._scan(place)
            except FileNotFoundError as error:
                # Still listed: it was created again, or cannot be read.
                return error if self._is_listed(place) else None

        def is_fine(entries: list[DirectoryEntry] | FileNotFoundError | None) -> bool:
            return entries is None or (not isinstance(entries, FileNotFoundError) and self._is_usual(entries, inside))

        def is_same(one: object, other: object) -> bool:
            return one == other or (isinstance(one, FileNotFoundError) and isinstance(other, FileNotFoundError))

        found = agreed(look(), look, is_fine, self._work_directory, is_same=is_same)[0]
        if isinstance(found, FileNotFoundError):
            raise found
        return found

    def _is_listed(self, place: bytes) -> bool:
        above, name = os.path.split(place)
        try:
            return any(entry.name == name for entry in self._storage.scan(above))
        except FileNotFoundError:
            return False

    def _folders(
        self,
        place: bytes,
        entries: Sequence[DirectoryEntry],
        out: list[_Found[T] | _Group],
    ) -> list[bytes]:
        """Return the directories among ``entries``, and report everything else."""
        folders = []
        for entry in entries:
            if entry.kind == "directory":
                folders.append(entry.name)
                continue
            path = place + b"/" + entry.name if place else entry.name
            if entry.is_link:
                out.append(problem("symbolic-link", path))
            elif entry.kind == "special":
                out.append(problem("special-file", path))
            elif place:  # any file may be in the root itself
                if is_junk(entry.name):
                    out.append(problem("junk", path, "OCFL does not allow files here (E072)"))
                elif entry.name == b"inventory.json":
                    what = "probably an object's root without its declaration"
                    out.append(problem("file-stray", path, what, code="E003"))
                else:
                    out.append(problem("file-stray", path, code="E072"))
        if self._clashes:
            out += [
                problem("case-clash", place + b"/" + one if place else one, what) for one, what in _clashes(folders)
            ]
        return folders

    def _top(self) -> list[_Found[T] | _Group]:
        """Return the entries of the root."""
        if self._names is not None:
            return [_Group(b"", self._names, 0, None)] if self._names else []
        entries = self._scan(b"")
        out: list[_Found[T] | _Group] = []
        if any(entry.name.startswith(OBJECT) for entry in entries):
            what = "the storage root contains the declaration of an object"
            out.append(problem("declaration-unknown", b"", what, code="E003"))
        folders = [name for name in self._folders(b"", entries, out) if name != EXTENSIONS]
        if folders:
            out.append(_Group(b"", folders, 0, None))
        return out


def _clashes(names: Sequence[bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield the names that equal an earlier one except for case and normalization."""
    seen: dict[bytes, bytes] = {}
    for name in names:
        if name.isascii():
            folded = name.lower()
        else:
            text = os.fsdecode(name)
            folded = os.fsencode(unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold()))
        other = seen.setdefault(folded, name)
        if other is not name:
            yield name, f"differs from {os.fsdecode(other)!r} only in case or Unicode normalization"


# --- objects ----------------------------------------------------------------------------------------------------------


class _Identity(NamedTuple):
    """The result of reading an object's inventory.

    :ivar identifier: :data:`None` if it has none
    :ivar problems: the reasons
    """

    identifier: str | None
    problems: tuple[Problem, ...]


def walk_objects(
    storage: Storage,
    misplacements: Misplacements,
    in_place: InPlace,
    threads: int,
    ignore: Sequence[str],
    **part: Any,
) -> Iterator[StoreObject | Problem]:
    """Yield every object with its identifier, and problems outside of objects.

    :param misplacements: as :meth:`pressmark.stores.ocfl.storage_root.StorageRoot.misplacements`
    :param in_place: as :meth:`pressmark.stores.ocfl.storage_root.StorageRoot.in_place`
    :param part: ``names`` and ``budget`` of a :class:`Walk` of a part of the root
    """

    def identify(place: bytes, entries: Sequence[DirectoryEntry]) -> _Identity | None:
        return _identify(storage, place, entries)

    def split(found: PlainObjects) -> list[FoundObject[_Identity | None]] | None:
        if in_place(found.places, found.identifiers):
            return None
        pairs = zip(found.places, found.identifiers, strict=True)
        return [FoundObject(encode_fs(place), None, _Identity(identifier, ())) for place, identifier in pairs]

    def compare(found: list[FoundObject[_Identity | None]]) -> list[FoundObject[_Identity | None]]:
        """Add what is wrong with the places of objects."""
        there = [(item, item.value) for item in found if item.value is not None]
        wrong = misplacements([(item.place, item.inside, value.identifier) for item, value in there])
        worse = {
            item.place: item._replace(value=value._replace(problems=(*value.problems, *problems)))
            for (item, value), problems in zip(there, wrong, strict=True)
            if problems
        }
        return [worse.get(item.place, item) for item in found] if worse else found

    reader = BatchReader("identities", split)
    for item in Walk(storage, identify, reader=reader, finish=compare, threads=threads, ignore=ignore, **part):
        if isinstance(item, PlainObjects):
            for identifier, place in zip(item.identifiers, item.places, strict=True):
                yield StoreObject(identifier, place, True, None, ())
        elif not isinstance(item, FoundObject):
            yield item
        elif item.value is not None:
            identifier, problems = item.value
            proper = not problems or all(one.severity != "error" for one in problems)
            yield StoreObject(identifier, decode_fs(item.place), proper, None, problems)


def first_objects(storage: Storage, misplacements: Misplacements, in_place: InPlace) -> Iterator[StoreObject]:
    """Yield the objects of :func:`walk_objects` for :class:`pressmark.stores.placement.FirstObjects`."""
    names = [name for name in storage.first_directories() if name != EXTENSIONS]
    for item in walk_objects(storage, misplacements, in_place, 1, (), names=names, budget=FIRST):
        if isinstance(item, StoreObject):
            yield item


def _identify(storage: Storage, place: bytes, entries: Sequence[DirectoryEntry]) -> _Identity | None:
    """Return the identifier in an object's inventory; :data:`None` if another run has removed the object."""
    where = place + b"/" + _INVENTORY
    # Neither pipes nor links are read.
    if not any(entry.name == _INVENTORY and entry.kind == "file" for entry in entries):
        return _Identity(None, (problem("inventory-missing", place),))
    try:
        identifier: Any = scan_identifier(storage.read(where, _HEAD))
        if identifier is None:
            identifier = read_inventory(storage.read(where)).get("id")
    except FileNotFoundError:
        return _Identity(None, (problem("inventory-missing", place),)) if storage.exists(place) else None
    except OSError as error:
        return _Identity(None, (problem("unreadable", where, error.strerror or str(error)),))
    except InventoryError as error:
        return _Identity(None, (problem("inventory-malformed", where, str(error)),))
    if not isinstance(identifier, str) or not identifier:
        what = "the inventory has no id, or the id is not a string"
        return _Identity(None, (problem("inventory-value", where, what, code="E037"),))
    return _Identity(identifier, ())
