"""The objects of the source that a plan considers, all or those of a list, without invalid ones; and their size."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, cast

from pressmark.errors import IdentifierError, ObjectError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.trees import Wanted, trees
from pressmark.migrate.entry import Entry, TransferError, status_of_problem
from pressmark.migrate.object_digest import FileState, entries_digest
from pressmark.migrate.options import Options
from pressmark.migrate.planning.conflicts import ConflictMember, PlanConflicts
from pressmark.migrate.transfer.content import INVENTORY_ENTRY, Content, content_of, file_state
from pressmark.migrate.transfer.places import Place, place_of
from pressmark.migrate.transfer.reading import bag_directory, locate_source, read_content
from pressmark.reports import ERROR, WARNING, Problem
from pressmark.stores import Store, StoreObject
from pressmark.stores.exceptions import object_errors

if TYPE_CHECKING:
    from pressmark.stores import OcflRoot
    from pressmark.stores.ocfl.ocfl_object import OcflObject

__all__ = ["Measure", "SourceObjects", "measure"]

# Identifiers that are looked up together.
_BATCH = 1024
# Problems of an object's path: the destination gives it the right one.
_ONLY_MISPLACED = frozenset({"misplaced", "path-ocfl-java", "identifier-unplaced", "not-canonical", "hidden"})
# Problems that may hide objects from the walk.
_HIDING = frozenset({"unreadable", "link", "link-dangling", "link-loop", "symbolic-link"})
# Problems of a file in a directory without an object, by kind of store.
_CONTENT = {
    "ocfl": {"file-stray": "files without the declaration of an object"},
    "bags": {"beside": "files without the bagit.txt of a bag"},
}
# Files that only an object has.
_OF_OBJECT = re.compile(r"inventory\.json(\..*)?|(tag)?manifest-.*\.txt|bag-info\.txt")
_VERSION = re.compile(r"/v[0-9]+(?=/|$)")
_BLOCK = 4096  # bytes on a disk
# The status of every file in a tree of any size.
_STATUS = Wanted(content="none", entries=1 << 40)


class _Unrecognised:
    """Directories that contain files, as objects do, and no object.

    :param kinds: the meaning of the problem of such a file, by its kind
    :ivar last_object: the path of the last object of the walk
    :ivar found: by path, whether a file proves that it is meant as an object, and its problem
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self.last_object = ""
        self.found: dict[str, tuple[bool, str]] = {}

    def add(self, file: str, kind: str) -> None:
        """Add a file that does not belong to any object."""
        directory, _, name = file.rpartition("/")
        version = _VERSION.search(directory)
        if version is not None:
            directory = directory[: version.start()]
        if not directory or any(certain and _is_below(directory, one) for one, (certain, _) in self.found.items()):
            return
        certain = version is not None or _OF_OBJECT.fullmatch(name) is not None
        if not certain and _is_below(self.last_object, directory):
            return
        self.found[directory] = certain, kind

    def rows(self, before: str | None) -> Iterator[Entry]:
        """Yield the rows of the directories before an object in the order of the walk; before its end all."""
        # Files beside directories with objects are no objects.
        found = {
            one: kind for one, (certain, kind) in self.found.items() if certain or not _is_below(before or "", one)
        }
        self.found = {}
        last = None
        for directory, kind in found.items():
            if last is None or not _is_below(directory, last):
                last = directory
                what = f'{self._kinds[kind]}; restore it, or move the files away ("pressmark store check" lists them)'
                yield _row("", directory, kind, what)


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _row(identifier: str, path: str, kind: str, message: str) -> Entry:
    """Return the row of an object that is left out."""
    status = "source_missing" if kind == "missing" else status_of_problem(kind)
    return Entry(identifier, identifier, path, "", status, error_code=kind, error=message)


class SourceObjects:
    """Walks the source, or looks up a list of identifiers; each item is an object to plan or a row to report.

    :param options: options of the migration
    :param store: the source
    :param folder: the work folder
    :param threads: of the walk
    :param conflicts: receives warnings, and with ``improper`` set to ``refuse`` errors
    :param resources: of the plan
    """

    def __init__(
        self,
        options: Options,
        store: Store,
        folder: str,
        threads: int,
        conflicts: PlanConflicts,
        resources: ExitStack,
    ) -> None:
        self._improper = options.improper
        self._store = store
        self._folder = folder
        self._threads = threads
        self._conflicts = conflicts
        self._resources = resources

    def all(self) -> Iterator[StoreObject | Entry]:
        """Yield every object of the source."""
        hidden: list[Entry] = []
        contents = _CONTENT.get(self._store.kind, {})
        unrecognised = _Unrecognised(contents)

        def stray(problems: list[Problem]) -> None:
            for found in problems:
                self._conflicts.add("stray", [ConflictMember(None, found.path)], f"{found.kind}: {found.message}")
                if found.kind in _HIDING:
                    hidden.append(_row("", found.path, found.kind, found.message))
                elif found.kind in contents:
                    unrecognised.add(found.path, found.kind)
            problems.clear()

        def rows(before: str | None) -> Iterator[Entry]:
            while hidden:
                yield hidden.pop(0)
            for row in unrecognised.rows(before):
                if self._improper == "refuse":
                    self._conflicts.add("improper", [ConflictMember(None, row.source)], row.error or "")
                yield row

        outside: list[Problem] = []
        for record in self._store.objects(threads=self._threads, problems=outside):
            stray(outside)
            if hidden or unrecognised.found:  # most sources contain only objects
                yield from rows(record.path)
            unrecognised.last_object = record.path
            yield record
        stray(outside)
        yield from rows(None)

    def listed(self, identifiers: Iterator[str]) -> Iterator[StoreObject | Entry]:
        """Yield the objects of a list, each once."""
        from pressmark.migrate.id_index import IdentifierIndex  # most plans have no list

        listed = self._resources.enter_context(IdentifierIndex(self._folder))
        listed.fill((identifier, "") for identifier in identifiers)
        for identifier, _first, number, _same in listed.repeated():
            self._conflicts.add(
                "list-repeated",
                [ConflictMember(identifier, "")],
                f"duplicate identifier at position {number + 1} of the list",
            )
        # In other stores, each look-up may need a walk of the source.
        if self._store.kind in ("pairtree", "vitro") or not (self._store.kind == "bags" or self._is_scattered()):
            for identifier, _ in listed.items():
                yield self._look_up(identifier)
            return
        batch: list[StoreObject] = []
        for item in chain(self.all(), [None]):
            if isinstance(item, StoreObject) and item.id is not None:
                batch.append(item)
            if batch and (item is None or len(batch) == _BATCH):
                wanted = listed.find([one.id or "" for one in batch])
                yield from (one for one, value in zip(batch, wanted, strict=True) if value is not None)
                batch = []
        for identifier, _ in listed.unused():
            yield _row(identifier, "", "missing", "the source has no object with this identifier")

    def _look_up(self, identifier: str) -> StoreObject | Entry:
        """Return the record of an object, or a row that reports why it cannot be migrated."""
        try:
            return self._store.find(identifier)
        except IdentifierError as error:
            return _row(identifier, "", "missing", error.reason)
        except ObjectError as error:
            return _row(identifier, "", error.kind, error.reason)

    def _is_scattered(self) -> bool:
        """Return whether the objects of an OCFL storage root are not at the paths of its layout."""
        root = cast("OcflRoot", self._store)
        return root.layout is None or root.first_objects.misplaced() is not None

    def invalid_row(self, record: StoreObject) -> Entry | None:
        """Return the row of an object that is left out because it is invalid; :data:`None` for any other."""
        if record.id is not None and (record.proper or self._improper == "take"):
            return None
        wrong = [one for one in record.problems if one.severity == ERROR and one.kind not in _ONLY_MISPLACED]
        if record.id is not None and not wrong:
            return None
        first = wrong[0] if wrong else next(iter(record.problems), None)
        kind, message = (first.kind, first.message) if first is not None else ("identifier-missing", "")
        message = message or "the identifier cannot be read"
        if self._improper == "refuse":
            self._conflicts.add("improper", [ConflictMember(record.id, record.path)], f"{kind}: {message}")
        return _row(record.id or "", record.path, kind, message)

    def warn_left_out(self, row: Entry) -> None:
        """Add the warning for an object that is left out."""
        member = ConflictMember(row.source_id or None, row.source)
        if row.status == "source_missing":
            self._conflicts.add(str(row.error_code), [member], row.error or "")
        elif self._improper != "refuse":
            self._conflicts.add("improper", [member], f"{row.error_code}: {row.error}", severity=WARNING)


# --- the size of objects: the number, bytes, names and state of their files -------------------------------------------


class Measure(NamedTuple):
    """The size of an object.

    :ivar files: number of files
    :ivar bytes: total size of all files
    :ivar entries: the state of all entries, of an OCFL object also of its inventory:
        :func:`~pressmark.migrate.object_digest.entries_digest`
    :ivar blocks: bytes on a disk with blocks of 4 KiB
    :ivar directories: number of directories with files
    :ivar unreadable: why the object cannot be read; :data:`None` if it can
    :ivar left_out: the parts that the destination does not support, or :data:`None`
    :ivar missing: why the object is not migrated: it does not have the version to migrate; :data:`None` if it has
    """

    files: int
    bytes: int
    entries: str
    blocks: int
    directories: int
    unreadable: str | None = None
    left_out: str | None = None
    missing: str | None = None


def measure(store: Store, records: Sequence[StoreObject], options: Options) -> Iterator[tuple[Measure, list[str]]]:
    """Yield the size of each object, and the names of the files that the destination receives."""
    if store.bucket is not None:
        yield from (_measure_files(store, record, options) for record in records)
        return
    remaining = iter(records)
    for batch in trees(b"", [_tree(store, record, options) or b"" for record in records], _STATUS, 1):
        sizes, mtimes, ctimes = batch.sizes, batch.mtimes, batch.ctimes
        states, is_seen = batch.states, {"unwanted"}.issuperset(batch.states)
        for tree, record in zip(batch.trees, remaining, strict=False):
            files = cast("dict[bytes, int]", tree.files)
            is_plain = is_seen or all(states[number] == "unwanted" for number in files.values())
            if not files or tree.others or tree.empty or not is_plain:
                yield _measure_files(store, record, options)
            else:
                yield _measured([(name, sizes[at], mtimes[at], ctimes[at]) for name, at in files.items()])


def _tree(store: Store, record: StoreObject, options: Options) -> bytes | None:
    """Return the directory that contains just the files of an object; :data:`None` if only the store knows them."""
    top = os.fsencode(store.root) + b"/" + encode_fs(record.path)
    if record.encapsulation is not None:
        return top + b"/" + encode_fs(record.encapsulation)
    return top if options.source_kind == "ocfl" and options.verbatim else None


def _measure_files(store: Store, record: StoreObject, options: Options) -> tuple[Measure, list[str]]:
    """Return the size and the names of one object, file by file; it may contain links, or be unreadable."""
    files: list[FileState] = []
    inventory: list[FileState] = []
    content = Content([], {}, [])
    unreadable = missing = None
    place = place_of(store)
    try:
        with object_errors(store.root, record.id or ""):
            content = _content(store, record, options, inventory)
            paths = [path for _name, path in content.files]
            # What is in the directory of an object is not followed; the store has resolved other links.
            are_links = content.top is not None and not place.is_remote
            statuses = list(map(os.lstat, paths)) if are_links else content.statuses()
            files.extend(file_state(name, status) for (name, _), status in zip(content.files, statuses, strict=True))
    except (ObjectError, TransferError) as error:
        unreadable = error.reason if isinstance(error, ObjectError) else error.failure.message
        if options.version is not None and isinstance(error, ObjectError) and error.kind == "missing":
            unreadable, missing = None, error.reason
    size, names = _measured(files, inventory, [name for name, _path in content.empty])
    left_out = None if options.verbatim else content.left_out(options.to)
    return size._replace(unreadable=unreadable, left_out=left_out, missing=missing), names


def _measured(
    files: list[FileState], inventory: Sequence[FileState] = (), empty: Sequence[bytes] = ()
) -> tuple[Measure, list[str]]:
    """Return the size and the names of an object.

    :param inventory: the inventory that names the files, which does not count
    :param empty: the names of empty directories
    """
    names = [decode_fs(file[0]) for file in files]
    sizes = [file[1] for file in files]
    blocks = sum([-(-size // _BLOCK) for size in sizes]) * _BLOCK
    directories = len({name.rpartition("/")[0] for name in names})
    entries = entries_digest([*files, *inventory], empty)
    return Measure(len(files), sum(sizes), entries, blocks, directories), names


def _content(store: Store, record: StoreObject, options: Options, inventory: list[FileState]) -> Content:
    """Return the files to migrate, and the parts of the object that stay behind.

    :param inventory: receives the inventory that names the files, under a name that no file has
    """
    top, place = _tree(store, record, options), place_of(store)
    if top is not None:
        found = _listing(top, place)
        # The store resolves links.
        if record.encapsulation is None or not any(os.path.islink(path) for _name, path in found.files):
            return found
    stored = locate_source(options, store, record)
    bag = bag_directory(store, stored)
    if bag is not None and options.verbatim:
        return _listing(bag, place)
    if bag is not None:
        identifier = record.id or ""
        return read_content(options, store, Entry(identifier, identifier, record.path, ""))
    if store.kind == "ocfl":
        from pressmark.migrate.transfer.ocfl_content import ocfl_content  # only for OCFL objects

        # Files keep their content paths when another version renames them.
        stored = cast("OcflObject", stored)
        inventory.append(file_state(INVENTORY_ENTRY, stored._read))
        return ocfl_content(stored, place)
    return content_of(stored, place)


def _listing(top: bytes, place: Place) -> Content:
    """Return everything below a directory except directories, and its empty directories."""
    found = place.list(top)
    return Content([*found.files, *found.others], {}, list(found.empty), top=top, place=place, listed=found.statuses)
