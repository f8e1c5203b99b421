"""The objects of the source that a plan considers: all, or those of a list; invalid ones are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, cast

from pressmark.fs.names import decode_fs
from pressmark.migrate.entry import Entry, status_of_problem
from pressmark.migrate.planning.conflicts import ConflictMember, PlanConflicts
from pressmark.reports import ERROR, WARNING, Problem
from pressmark.stores import Store, StoreObject

if TYPE_CHECKING:
    from pressmark.migrate.options import Options
    from pressmark.stores import OcflRoot

__all__ = ["SourceObjects"]

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


class _Unrecognised:
    """Directories that contain files, as objects do, and no object.

    :param kinds: the meaning of the problem of such a file, by its kind
    :ivar last_object: the path of the last object of the walk
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        self._kinds = kinds
        self.last_object = ""
        # By path, whether a file proves that it is meant as an object, and its problem.
        self._found: dict[str, tuple[bool, str]] = {}

    def add(self, file: str, kind: str) -> None:
        """Add a file that does not belong to any object."""
        directory, _, name = file.rpartition("/")
        version = _VERSION.search(directory)
        if version is not None:
            directory = directory[: version.start()]
        if not directory or any(certain and _is_below(directory, one) for one, (certain, _) in self._found.items()):
            return
        certain = version is not None or _OF_OBJECT.fullmatch(name) is not None
        if not certain and _is_below(self.last_object, directory):
            return
        self._found[directory] = certain, kind

    def rows(self, before: str | None) -> Iterator[Entry]:
        """Yield the rows of the directories before an object in the order of the walk; before its end all."""
        if not self._found:
            return
        # Files beside directories with objects are no objects.
        found = {
            one: kind for one, (certain, kind) in self._found.items() if certain or not _is_below(before or "", one)
        }
        self._found = {}
        last = None
        for directory, kind in found.items():
            if last is None or not _is_below(directory, last):
                last = directory
                what = f'{self._kinds[kind]}; restore it, or move the files away ("pressmark store check" lists them)'
                yield _row(directory, kind, what)


def _is_below(path: str, directory: str) -> bool:
    return path == directory or path.startswith(f"{directory}/")


def _row(place: str, kind: str, message: str) -> Entry:
    return Entry("", "", place, "", status_of_problem(kind), error_code=kind, error=message)


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

        def stray(found: Problem) -> None:
            place = decode_fs(found.path)
            self._conflicts.add("stray", [ConflictMember(None, place)], f"{found.kind}: {found.message}")
            if found.kind in _HIDING:
                hidden.append(_row(place, found.kind, found.message))
            elif found.kind in contents:
                unrecognised.add(place, found.kind)

        def rows(before: str | None) -> Iterator[Entry]:
            while hidden:
                yield hidden.pop(0)
            for row in unrecognised.rows(before):
                if self._improper == "refuse":
                    self._conflicts.add("improper", [ConflictMember(None, row.source)], row.error or "")
                yield row

        for record in self._store.objects(threads=self._threads, on_problem=stray):
            yield from rows(record.path)
            unrecognised.last_object = record.path
            yield record
        yield from rows(None)

    def listed(self, identifiers: Iterator[str]) -> Iterator[StoreObject | Entry]:
        """Yield the objects of a list, each once."""
        from pressmark.migrate.id_index import IdentifierIndex
        from pressmark.migrate.planning.lookup import look_up, missing

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
                yield look_up(self._store, identifier)
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
            yield missing(identifier, "the source has no object with this identifier")

    def _is_scattered(self) -> bool:
        """Return whether the objects of an OCFL storage root are not at the paths of its layout."""
        root = cast("OcflRoot", self._store)
        return root.layout is None or root.first_objects.misplaced() is not None

    def invalid_row(self, record: StoreObject) -> Entry | None:
        """Return the row of an object that is left out because it is invalid; :data:`None` for any other."""
        wrong = [] if record.proper else [one for one in record.problems if one.severity == ERROR]
        wrong = [one for one in wrong if one.kind not in _ONLY_MISPLACED]
        if record.id is not None and (not wrong or self._improper == "take"):
            return None
        first = wrong[0] if wrong else next(iter(record.problems), None)
        kind, message = (first.kind, first.message) if first is not None else ("identifier-missing", "")
        message = message or "the identifier cannot be read"
        if self._improper == "refuse":
            self._conflicts.add("improper", [ConflictMember(record.id, record.path)], f"{kind}: {message}")
        identifier = record.id or ""
        return Entry(identifier, identifier, record.path, "", status_of_problem(kind), error_code=kind, error=message)

    def warn_left_out(self, row: Entry) -> None:
        """Add the warning for an object that is left out."""
        member = ConflictMember(row.source_id or None, row.source)
        if row.status == "source_missing":
            self._conflicts.add(str(row.error_code), [member], row.error or "")
        elif self._improper != "refuse":
            self._conflicts.add("improper", [member], f"{row.error_code}: {row.error}", severity=WARNING)
