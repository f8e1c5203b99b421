"""The storage hierarchy of an OCFL root, walked lazily in the order of names by several threads (section 4.3).

The unit of work is a few sibling directories with everything below them. A thread that has read a certain number of
directories returns the rest, which keeps its position in the order, so a deep branch does not delay the others. Results
wait for those before them. The number of results that threads prepare ahead is bounded, and so is memory use, except
for the names of one directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar, cast

from pressmark.fs.names import decode_fs, encode_fs, glob_matcher, is_junk
from pressmark.fs.trees import DirectoryEntry
from pressmark.fs.walk import ordered_tree
from pressmark.reports import Problem
from pressmark.stores.objects import StoreObject
from pressmark.stores.ocfl.checking.object_names import clashes
from pressmark.stores.ocfl.checking.object_tree import ObjectTree, StoredTree, object_trees
from pressmark.stores.ocfl.declarations import (
    EXTENSIONS,
    MUTABLE_HEAD,
    OBJECT,
    has_mutable_head,
    is_object_directory,
    is_object_name,
    is_object_root,
)
from pressmark.stores.ocfl.inventory import INVENTORY, InventoryError, read_inventory, scan_identifier
from pressmark.stores.ocfl.storage import HEAD, Reads, Storage
from pressmark.stores.problems import problem
from pressmark.stores.recheck import agreed
from pressmark.threads import ordered_map

__all__ = ["Walk", "first_objects", "identify", "ignored", "walk_objects"]

Misplacements = Callable[[Sequence[tuple[bytes, bytes | None, str | None]]], list[list[Problem]]]
InPlace = Callable[[Sequence[str], Sequence[str]], bool]

T = TypeVar("T")
BUDGET = 1024  # directories that a thread reads before it returns the rest: a few milliseconds
AHEAD = 4096  # results that wait for those before them, until no more work is submitted
_INVENTORY = encode_fs(INVENTORY)
DEPTH = 200  # levels per unit of work; Python's stack is limited
# Most directories in an object are one of these.
_USUAL = frozenset({"v1", "v1/content", "v2", "v2/content", "v3", "v3/content"})


class _Group(NamedTuple):
    """Directories that have not been read yet.

    :ivar directory: the directory that contains them
    :ivar names: their names
    :ivar start: index of the first one that is not done
    :ivar inside: the object that contains them
    :ivar together: how many are read in a call
    """

    directory: bytes
    names: Sequence[bytes]
    start: int
    inside: bytes | None
    together: int

    def cut(self, threads: int) -> tuple[_Group, _Group | None]:
        """Return the group, of which a call reads the first names, and a group of the names after those."""
        end = self.start + self.together
        return self, self._replace(start=end) if end < len(self.names) else None


def _runs(out: list[T | Problem | _Group]) -> list[list[T | Problem] | _Group]:
    """Return results and groups in order, with consecutive results together."""
    runs: list[list[T | Problem] | _Group] = []
    for item in out:
        if isinstance(item, _Group):
            runs.append(item)
        elif runs and isinstance(runs[-1], list):
            runs[-1].append(item)
        else:
            runs.append([item])
    return runs


def ignored(patterns: Sequence[str]) -> Callable[[bytes], bool] | None:
    """Return a function that checks whether a name matches one of the globs ``patterns``; :data:`None` without any."""
    if not patterns:
        return None
    matches = glob_matcher(patterns)
    return lambda name: matches(decode_fs(name)) is not None


class Walk(Generic[T]):
    """One walk of a root's hierarchy; iterate it once.

    :param visit: called with each object, in the thread that found it; returns the result, or :data:`None` if the
        object is gone
    :param reads: what to read of many objects in one call; with :data:`None` or ``ignore``, each is read by itself
    :param finish: called with the results of a unit of work before they are yielded
    :param clashes: report names that differ only in case or Unicode normalization
    :param ignore: globs of names to ignore
    :param names: only the directories of these names in the root
    :param budget: the number of directories that a thread reads before it returns the rest
    """

    def __init__(
        self,
        storage: Storage,
        visit: Callable[[ObjectTree], T | None],
        *,
        reads: Reads | None = None,
        finish: Callable[[list[T]], list[T]] = lambda found: found,
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
        self._reads = None if ignore else reads
        self._finish = finish
        self._threads = min(threads, storage.walkers)
        self._clashes = clashes
        self._ignored = ignored(ignore)

    def __iter__(self) -> Iterator[T | Problem]:
        """Yield the results of objects, and problems outside of objects."""
        for run in ordered_tree(_runs(self._top()), self._expand, threads=self._threads, ahead=AHEAD):
            yield from run

    def _group(self, directory: bytes, names: Sequence[bytes], start: int = 0, inside: bytes | None = None) -> _Group:
        return _Group(directory, names, start, inside, self._storage.siblings)

    # --- one unit of work -----------------------------------------------------------------------------------------

    def _expand(self, group: _Group) -> list[list[T | Problem] | _Group]:
        """Read a few directories of a group and everything below them; return the results in order."""
        out: list[T | Problem | _Group] = []
        names = group.names[group.start : group.start + group.together]
        self._siblings(group.directory, names, group.inside, out, self._budget, 0)
        finished = iter(self._finish([item for item in out if not isinstance(item, (Problem, _Group))]))
        return _runs([item if isinstance(item, (Problem, _Group)) else next(finished) for item in out])

    def _siblings(
        self,
        directory: bytes,
        names: Sequence[bytes],
        inside: bytes | None,
        out: list[T | Problem | _Group],
        budget: int,
        depth: int,
    ) -> int:
        """Read directories until the budget is used up, and return the remaining budget."""
        # A call that reads many directories knows no names.
        is_usual = inside is None and not any(is_junk(name, directory=True) for name in names)
        if self._reads is not None and is_usual and budget > 0:
            return self._batch(self._reads, directory, names, out, budget, depth)
        for number, name in enumerate(names):
            if budget <= 0 or depth > DEPTH:
                out.append(self._group(directory, names, number, inside))
                break
            budget = self._directory(directory + b"/" + name if directory else name, inside, out, budget - 1, depth)
        return budget

    def _batch(
        self,
        reads: Reads,
        directory: bytes,
        names: Sequence[bytes],
        out: list[T | Problem | _Group],
        budget: int,
        depth: int,
    ) -> int:
        """Read directories of the hierarchy as :meth:`_siblings` does, most of them in one call."""
        batch = self._storage.trees(directory, names, reads, marker=OBJECT, clashes=self._clashes, budget=budget)
        budget -= len(batch.trees)
        for path, tree, found in object_trees(batch, directory):
            if found is not None:
                names_inside = [encode_fs(name) for name in found.directories if name not in _USUAL and "/" not in name]
                below = [name for name in names_inside if not is_object_directory(name)]
                budget = self._object(found, below, out, budget, depth)
            elif tree.state == "rest":
                out.append(self._group(path.rstrip(b"/"), cast("list[bytes]", [*tree.directories])))
            elif budget > 0 and depth <= DEPTH:
                budget = self._directory(path, None, out, budget - 1, depth)
            else:
                above, name = os.path.split(path)
                out.append(self._group(above, [name]))
        if batch.begun < len(names):
            out.append(self._group(directory, names, batch.begun))
            return 0
        return budget

    def _object(
        self, tree: ObjectTree, below: Sequence[bytes], out: list[T | Problem | _Group], budget: int, depth: int
    ) -> int:
        """Visit an object, and the unknown directories in it, which may contain others."""
        found = self._visit(tree)
        if found is not None:
            out.append(found)
        return self._siblings(tree.path, below, tree.path, out, budget, depth + 1) if below else budget

    def _directory(
        self,
        directory: bytes,
        inside: bytes | None,
        out: list[T | Problem | _Group],
        budget: int,
        depth: int,
    ) -> int:
        junk = inside is None and any(is_junk(name, directory=True) for name in directory.split(b"/"))
        try:
            entries = self._entries(directory, inside)
        except OSError as error:
            kind, message = ("junk", "") if junk else ("unreadable", error.strerror or str(error))
            out.append(problem(kind, directory, message))
            return budget
        if entries is None:
            return budget
        if is_object_root(entries):
            below = [entry.name for entry in entries if entry.kind == "directory" and not is_object_name(entry)]
            if self._ignored is not None:
                below = [name for name in below if not self._ignored(name)]
            tree = StoredTree(self._storage, directory, entries, inside, self._ignored)
            return self._object(tree, below, out, budget, depth)
        if junk:
            out.append(problem("junk", directory))
            return budget
        if inside is not None:
            # An unknown directory in an object is reported with the object.
            below = [entry.name for entry in entries if entry.kind == "directory"]
            return self._siblings(directory, below, inside, out, budget, depth + 1) if below else budget
        if not entries:
            out.append(problem("directory-empty", directory))
            return budget
        return self._siblings(directory, self._folders(directory, entries, out), None, out, budget, depth + 1)

    def _entries(self, directory: bytes, inside: bytes | None) -> list[DirectoryEntry] | None:
        """Return the entries of a directory, or :data:`None` if another run has removed it since its name was read.

        The hierarchy contains only directories. One with other entries, or none, is read again until two looks agree: a
        run may be moving an object in or out.

        :raises OSError: the directory cannot be read
        """

        try:
            found = self._scan(directory)
        except FileNotFoundError:
            pass
        else:
            if self._is_usual(found, inside):
                return found
        return self._agreed_entries(directory, inside)

    def _scan(self, directory: bytes) -> list[DirectoryEntry]:
        entries, is_ignored = self._storage.scan(directory), self._ignored
        if is_ignored is None or is_object_root(entries):  # the object itself knows what OCFL requires there
            return entries
        return [entry for entry in entries if not is_ignored(entry.name)]

    @staticmethod
    def _is_usual(entries: Sequence[DirectoryEntry], inside: bytes | None) -> bool:
        if inside is not None or is_object_root(entries):
            return True
        return bool(entries) and all(entry.kind == "directory" for entry in entries)

    def _agreed_entries(self, directory: bytes, inside: bytes | None) -> list[DirectoryEntry] | None:
        def look() -> list[DirectoryEntry] | FileNotFoundError | None:
            try:
                return self._scan(directory)
            except FileNotFoundError as error:
                # Still listed: it was created again, or cannot be read.
                return error if self._is_listed(directory) else None

        def is_fine(entries: list[DirectoryEntry] | FileNotFoundError | None) -> bool:
            return entries is None or (not isinstance(entries, FileNotFoundError) and self._is_usual(entries, inside))

        def is_same(one: object, other: object) -> bool:
            return one == other or (isinstance(one, FileNotFoundError) and isinstance(other, FileNotFoundError))

        found = agreed(look(), look, is_fine, self._storage.work_directory, is_same=is_same)[0]
        if isinstance(found, FileNotFoundError):
            raise found
        return found

    def _is_listed(self, directory: bytes) -> bool:
        above, name = os.path.split(directory)
        try:
            return any(entry.name == name for entry in self._storage.scan(above))
        except FileNotFoundError:
            return False

    def _folders(
        self,
        directory: bytes,
        entries: Sequence[DirectoryEntry],
        out: list[T | Problem | _Group],
    ) -> list[bytes]:
        """Return the directories among ``entries``, and report everything else."""
        folders = []
        for entry in entries:
            if entry.kind == "directory":
                folders.append(entry.name)
                continue
            path = directory + b"/" + entry.name if directory else entry.name
            if entry.is_link:
                out.append(problem("symbolic-link", path))
            elif entry.kind == "special":
                out.append(problem("special-file", path))
            elif directory:  # any file may be in the root itself
                if is_junk(entry.name):
                    out.append(problem("junk", path, "OCFL does not allow files here (E072)"))
                elif entry.name == b"inventory.json":
                    what = "probably an object's root without its declaration"
                    out.append(problem("file-stray", path, what, code="E003"))
                else:
                    out.append(problem("file-stray", path, code="E072"))
        if self._clashes:
            above = directory + b"/" if directory else b""
            out += [problem("case-clash", above + one, what) for one, what in clashes(folders)]
        return folders

    def _top(self) -> list[T | Problem | _Group]:
        """Return the entries of the root."""
        if self._names is not None:
            return [self._group(b"", self._names)] if self._names else []
        entries = self._scan(b"")
        out: list[T | Problem | _Group] = []
        if any(entry.name.startswith(OBJECT) for entry in entries):
            what = "the storage root contains the declaration of an object"
            out.append(problem("declaration-unknown", b"", what, code="E003"))
        folders = [name for name in self._folders(b"", entries, out) if name != EXTENSIONS]
        if folders:
            out.append(self._group(b"", folders))
        return out


# --- objects ----------------------------------------------------------------------------------------------------------


def walk_objects(
    storage: Storage,
    misplacements: Misplacements,
    in_place: InPlace,
    threads: int,
    ignore: Sequence[str],
    paths: Iterable[tuple[bytes, bytes | None] | Problem] | None = None,
    **part: Any,
) -> Iterator[StoreObject | Problem]:
    """Yield every object with its identifier, and problems outside of objects.

    :param misplacements: as :meth:`pressmark.stores.ocfl.storage_root.StorageRoot.misplacements`
    :param in_place: as :meth:`pressmark.stores.ocfl.storage_root.StorageRoot.in_place`
    :param paths: yield only these objects, each given with the object that contains it, and the problems between them
    :param part: ``names`` and ``budget`` of a :class:`Walk` of a part of the root
    """
    # The objects that contain others.
    around: dict[str, bytes] = {}

    def visit(tree: ObjectTree) -> StoreObject | None:
        path = decode_fs(tree.path)
        if tree.inside is not None:
            around[path] = tree.inside
        found = identify(storage, tree)
        if found is None:
            return None
        identifier, problems = found
        return StoreObject(identifier, path, all(one.severity != "error" for one in problems), None, problems)

    def compare(found: list[StoreObject]) -> list[StoreObject]:
        """Add what is wrong with the paths of objects."""
        identifiers = [one.id for one in found if one.id is not None]
        if not around and len(identifiers) == len(found) and in_place([one.path for one in found], identifiers):
            return found
        items = [(encode_fs(one.path), around.get(one.path), one.id) for one in found]
        return [
            one._replace(
                proper=one.proper and all(problem.severity != "error" for problem in problems),
                problems=(*one.problems, *problems),
            )
            if problems
            else one
            for one, problems in zip(found, misplacements(items), strict=True)
        ]

    def read(item: tuple[bytes, bytes | None] | Problem) -> list[StoreObject | Problem]:
        if isinstance(item, Problem):
            return [item]
        try:
            tree = StoredTree(storage, item[0], storage.scan(item[0]), item[1])
        except FileNotFoundError:
            return []  # another run has removed it
        except OSError as error:
            return [problem("unreadable", item[0], error.strerror or str(error))]
        record = visit(tree)
        return [] if record is None else [*compare([record])]

    if paths is None:
        yield from Walk(storage, visit, reads="ids", finish=compare, threads=threads, ignore=ignore, **part)
        return
    for records in ordered_map(read, paths, threads=threads, name="pressmark-walk"):
        yield from records


def first_objects(storage: Storage, misplacements: Misplacements, in_place: InPlace) -> Iterator[StoreObject]:
    """Yield the objects of :func:`walk_objects` for :class:`pressmark.stores.placement.FirstObjects`."""
    names = [name for name in storage.first_directories() if name != EXTENSIONS]
    found = walk_objects(storage, misplacements, in_place, 1, (), names=names, budget=storage.first)
    yield from islice((item for item in found if isinstance(item, StoreObject)), storage.first)


def identify(storage: Storage, tree: ObjectTree) -> tuple[str | None, tuple[Problem, ...]] | None:
    """Return the identifier in an object's inventory, or why it has none; :data:`None` if another run has removed the
    object.
    """
    where = tree.path + b"/" + _INVENTORY
    # Neither pipes nor links are read.
    if not tree.has_file(INVENTORY):
        return None, (problem("inventory-missing", tree.path),)
    try:
        identifier: Any = scan_identifier(tree.content(INVENTORY, HEAD))
        if identifier is None:
            identifier = read_inventory(storage.read(where)).get("id")
    except FileNotFoundError:
        return (None, (problem("inventory-missing", tree.path),)) if storage.exists(tree.path) else None
    except OSError as error:
        return None, (problem("unreadable", where, error.strerror or str(error)),)
    except InventoryError as error:
        return None, (problem("inventory-malformed", where, str(error)),)
    if not isinstance(identifier, str) or not identifier:
        what = "the inventory has no id, or the id is not a string"
        return None, (problem("inventory-value", where, what, code="E037"),)
    # Few objects have extensions.
    if tree.has_directory(decode_fs(EXTENSIONS)) and has_mutable_head(storage, tree.path):
        return identifier, (problem("mutable-head", os.path.join(tree.path, MUTABLE_HEAD)),)
    return identifier, ()
