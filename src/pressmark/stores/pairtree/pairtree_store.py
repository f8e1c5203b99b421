"""Changes to a Pairtree: put, adopt, replace and remove objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, Literal

from pressmark.errors import ObjectError, StoreError, quoted
from pressmark.fs.durable import exists, flush_directory
from pressmark.fs.moves import make_parents, prune_empty_parents, rename_new, replace_directory
from pressmark.fs.names import decode_fs, encode_fs, existing_spelling, is_case_insensitive, too_long
from pressmark.fs.staging import RunDirectory
from pressmark.fs.trees import longest_inside
from pressmark.layouts import Layout, Pairtree
from pressmark.reports import Report
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.object_sources import check_source
from pressmark.stores.objects import CopyMode, ObjectSource, OnEvent, Path, StoreObject, encode_path
from pressmark.stores.pairtree.encapsulation import encapsulate
from pressmark.stores.pairtree.interrupted import is_one_directory, take_back
from pressmark.stores.pairtree.pairtree_reader import PairtreeReader
from pressmark.stores.pairtree.spellings import Spellings
from pressmark.stores.pairtree.version_files import (
    encoded_prefix,
    prefix_of,
    version_problems,
    write_prefix,
    write_version,
)
from pressmark.stores.pairtree.walk import OBJECT, REPLACED, RESERVED, ROOT
from pressmark.stores.staging_writer import CopyingWriter, StagedCopy
from pressmark.stores.store_change import Removal, above

__all__ = ["PairtreeStore", "PairtreeWriter"]


class PairtreeStore(PairtreeReader):
    """An existing Pairtree that can be changed; :meth:`create` creates one; see :class:`PairtreeReader`."""

    @classmethod
    def create(cls, path: Path, layout: Layout | None = None, *, prefix: str = "", **options: object) -> PairtreeStore:
        """Create an empty Pairtree in a directory that is empty or does not exist, and open it.

        :param layout: a :class:`pressmark.Pairtree` whose prefix and encapsulation are used
        :param prefix: the common prefix of all identifiers, omitted from paths (section 4)
        :param options: arguments of the class
        :raises StoreError: the directory is not empty, or cannot be written
        """
        if layout is not None:
            if not isinstance(layout, Pairtree):
                raise StoreError(encode_path(path), f"a Pairtree uses the layout pairtree, not {layout.name}")
            prefix = prefix or layout.prefix
            options = {"encapsulation": layout.encapsulation, "prefix_required": layout.prefix_required, **options}
        base = encode_path(path)
        data = encoded_prefix(base, prefix)  # before anything is created
        with store_errors(base):
            os.makedirs(base, exist_ok=True)
            # Files of an interrupted creation are overwritten.
            strangers = sorted(set(os.listdir(base)) - cls.unfinished_names)
            if strangers:
                raise StoreError(
                    base, f"the directory contains {decode_fs(strangers[0])!r}; specify an empty or new directory"
                )
            if prefix_of(base) not in ("", prefix):
                raise StoreError(
                    base, f"the directory contains the prefix of another tree, whose {ROOT} is missing; restore it"
                )
            write_version(base)
            write_prefix(base, data)
            # Last, because this makes the directory a Pairtree.
            os.mkdir(os.path.join(base, encode_fs(ROOT)))
            flush_directory(base)
        return cls(path, **options)  # type: ignore[arg-type]

    def put(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        *,
        replace: bool = False,
        mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        exclude: Sequence[str] | str = (),
        compare: bool = False,
        encapsulation: str | None = None,
    ) -> StoreObject:
        """Store an object atomically in an encapsulating directory.

        A replaced object keeps the name of its encapsulating directory. It is replaced in one step if the system can
        exchange two names (Linux).

        :param encapsulation: the name of the encapsulating directory, instead of the store's choice
        :raises ObjectError: nothing was stored; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in this tree
        """
        options = {"encapsulation": encapsulation} if encapsulation is not None else {}
        return self._put(identifier, source, replace, mode, links, exclude, compare, **options)

    def writer(
        self, mode: CopyMode, links: str = "refuse", replace: bool = False, *, durable_places: bool = True
    ) -> PairtreeWriter:
        self.refuse_changes()
        return PairtreeWriter(self, mode, links, replace, durable_places=durable_places)

    def _new_place(self, identifier: str | bytes, encapsulation: str | None) -> tuple[str, str]:
        """Return the ppath of a new object, and the name of its encapsulating directory."""
        place, _, name = self.layout.object_path(identifier).rpartition("/")
        if encapsulation is not None:
            name = encapsulation
            if not _encapsulates(encode_fs(name)):
                reason = f"{quoted(name)} cannot be the name of an encapsulating directory"
                way_out = "use a name of at least three characters that does not begin with pairtree"
                raise ObjectError(self.root, identifier, "bad-name", f"{reason}; {way_out}")
        too_much = too_long(self._tree, encode_fs(f"{place}/{name}"))
        if too_much:
            raise ObjectError(self.root, identifier, "bad-name", f"{too_much}; use a shorter identifier")
        return place, name

    def _proper(self, place: str, name: str) -> StoreObject:
        """Return the record of a stored object."""
        identifier, problems = self._walk().identified(place)
        return StoreObject(identifier, f"{ROOT}/{place}", True, name, tuple(problems))

    def _exists(self, identifier: str | bytes, place: str) -> ObjectError:
        reason = f"object exists at {ROOT}/{place}; use another identifier, or --replace"
        return ObjectError(self.root, identifier, "exists", reason)

    def refuse_changes(self) -> None:
        if self.dialect is not None:
            raise StoreError(self.root, f"a tree in the dialect {self.dialect} is read-only; migrate it to a new tree")

    def _move_in(
        self,
        staging: RunDirectory,
        identifier: str | bytes,
        new: bytes,
        place: str,
        name: str,
        longest: bytes,
        replace: bool,
    ) -> str:
        """Publish a staged object; return the name of its encapsulating directory. The names are not flushed.

        :param longest: the longest path in it, from :func:`longest_inside`
        """
        ppath = encode_fs(place)
        directory = os.path.join(self._tree, ppath)
        link = self._link(place)
        if link is not None:
            reason = f"{link} is a symbolic link that is not followed; replace the link with its target"
            raise ObjectError(self.root, identifier, "collision", reason)
        if is_case_insensitive(self._tree):
            clash = existing_spelling(self._tree, ppath)
            if clash is not None:
                reason = f"{decode_fs(clash)!r} differs only in case, which this file system ignores"
                raise ObjectError(self.root, identifier, "collision", f"{reason}; use a case-sensitive file system")
        try:
            make_parents(self._tree, ppath)
            found = self._settled(identifier, directory, place, self._ignore)
            if not found.members:
                self._refuse_too_long(identifier, place, name, longest)
                rename_new(new, os.path.join(directory, encode_fs(name)))
            elif replace:
                self._refuse_links(identifier, place)
                name = decode_fs(found.members[0].name) if is_one_directory(found) else decode_fs(OBJECT)
                self._refuse_too_long(identifier, place, name, longest)
                if not is_one_directory(found):
                    encapsulate(directory, found.members)
                self._replace(staging, new, directory, encode_fs(name))
            else:
                raise self._exists(identifier, place)
        except BaseException as error:
            prune_empty_parents(self._tree, ppath, strict=False)
            if isinstance(error, NotADirectoryError):
                reason = "its ppath is blocked by a file; repair the store first"
                raise ObjectError(self.root, identifier, "collision", reason) from None
            raise
        return name

    def _refuse_too_long(self, identifier: str | bytes, place: str, name: str, longest: bytes) -> None:
        reason = too_long(self._tree, encode_fs(f"{place}/{name}") + longest)
        if reason is not None:
            raise ObjectError(self.root, identifier, "bad-name", f"{reason}; use a shorter identifier or file names")

    def _replace(self, staging: RunDirectory, new: bytes, directory: bytes, name: bytes) -> None:
        """Replace the old object, which is moved to the staging directory."""
        old = os.path.join(directory, name)
        aside = os.path.join(directory, REPLACED)
        try:
            # It keeps its name, which shows the next run whether the new object is in place.
            left = replace_directory(new, old, os.path.join(aside, name))
        except BaseException:
            if exists(aside):
                take_back(directory)
            raise
        if left != new:
            os.rename(aside, staging / b"replaced")

    def run_directory(self) -> RunDirectory:
        """Return a private directory for changes; see :class:`pressmark.stores.store_change.ChangedStore`."""
        return RunDirectory(self._work_directory())

    def withdraw(
        self, removal: Removal, identifier: str | bytes | StoreObject, check: Callable[[], object] | None
    ) -> list[bytes]:
        """Move an object out of the store; see :class:`pressmark.stores.store_change.ChangedStore`."""
        self.refuse_changes()
        place = self._existing_place(identifier)
        if isinstance(identifier, StoreObject):
            given, identifier = identifier.path.removeprefix(f"{ROOT}/"), identifier.id or identifier.path
        else:
            given = self._place(identifier)
        if place is None:
            raise self._missing(identifier, given)
        ppath = encode_fs(place)
        directory = os.path.join(self._tree, ppath)
        self._refuse_links(identifier, place)
        to = removal.new_path()
        with removal.staging.lock():
            try:
                found = self._settled(identifier, directory, place, self._ignore)
            except FileNotFoundError:
                raise self._missing(identifier, place) from None
            if not found.members:
                raise self._missing(identifier, place)
            if check is not None:
                check()
            if len(found.members) > 1:
                # Then it can be removed in one step.
                encapsulate(directory, found.members)
            name = OBJECT if len(found.members) > 1 else found.members[0].name
            os.rename(os.path.join(directory, name), to)
            prune_empty_parents(self._tree, ppath, strict=False)
        return above(self._tree, os.path.join(ppath, name))

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Encapsulate all objects, complete interrupted changes, and remove empty ppaths.

        The files of an object that is not properly encapsulated are moved to a directory ``obj`` in the same place;
        identifiers, ppaths and contents do not change (section 2). A second repair changes nothing. Ambiguous problems
        are reported and not changed.

        :param dry_run: report the changes without making them
        :param on_event: called with :class:`RepairStep`: ``encapsulate``, ``finish``, ``prune`` or ``remove``
        """
        from pressmark.stores.pairtree.repair import Repair

        if not dry_run:
            self.refuse_changes()
        run = Repair(self, dry_run, on_event, (*self._ignore, *ignore))
        with store_errors(self._base), run:
            run.report.add(version_problems(self._base))
            for item in self._walk(ignore, readable=True).items():
                run.see(item)
        return run.report


def _encapsulates(name: bytes) -> bool:
    """Return whether a directory of this name can be an encapsulating directory."""
    return len(decode_fs(name)) > 2 and not name.startswith(RESERVED) and b"/" not in name and b"\0" not in name


# --- many objects -----------------------------------------------------------------------------------------------------


class PairtreeWriter(CopyingWriter):
    """Write objects to a Pairtree.

    :param store: the tree
    :param mode: as for :meth:`PairtreeStore.put`, like ``links`` and ``replace``
    """

    _store: PairtreeStore
    _is_directory = True

    def __init__(
        self, store: PairtreeStore, mode: CopyMode, links: str, replace: bool, *, durable_places: bool = True
    ) -> None:
        super().__init__(store, store._tree, mode, links, replace, durable_places=durable_places)
        self._spellings = Spellings(self._base, keeps=True)

    def prepare(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        *,
        encapsulation: str | None = None,
        **copying: Any,
    ) -> int:
        """Stage an object; see :meth:`StagingWriter.prepare`.

        :param encapsulation: the name of the encapsulating directory, instead of the store's choice
        :param copying: options of :meth:`CopyingWriter.copy`
        """
        store = self._store
        place, name = self._place(identifier, encapsulation)
        with object_errors(store.root, identifier):
            check_source(source)

            def copy(new: bytes) -> tuple[int, bytes]:
                size, longest = self.copy(source, new, **copying)
                store._refuse_too_long(identifier, place, name, longest)
                return size, longest

            return self._stage(identifier, encode_fs(f"{place}/{name}"), copy)

    def adopt(self, identifier: str | bytes, directory: bytes, encapsulation: str | None = None) -> None:
        """Publish a directory on the same file system as an encapsulating directory, without copying it.

        :raises ObjectError: it cannot be stored; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in this tree
        """
        place, name = self._place(identifier, encapsulation)
        with object_errors(self._store.root, identifier):
            longest = longest_inside(directory)
        self._wait(identifier, encode_fs(f"{place}/{name}"), directory, longest)

    def _place(self, identifier: str | bytes, encapsulation: str | None) -> tuple[str, str]:
        """Return the ppath of an object to store: that of the existing object, in whatever spelling, or a new one.

        :return: also the name of its encapsulating directory
        :raises ObjectError: of kind ``exists``, unless objects are replaced; or of kind ``duplicate-id``
        """
        store = self._store
        place, name = store._new_place(identifier, encapsulation)
        with object_errors(store.root, identifier):
            existing = store._existing_place(identifier, self._spellings)
            if existing is None:
                return place, name
            if not self._replaces:
                raise store._exists(identifier, existing)
            store._refuse_links(identifier, existing)
            return existing, name

    def _paths(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> list[str | None]:
        found = self._store.layout.object_paths([identifier for identifier, _source in objects])
        others = self._spellings.others
        with store_errors(self._base):
            # An object that may exist in another spelling is looked for one by one.
            return [None if path and any(others(path.rpartition("/")[0])) else path for path in found]

    def _move_checked(self, staged: StagedCopy) -> None:
        place, name = map(decode_fs, os.path.split(staged.place))
        name = self._store._move_in(
            self.staging, staged.identifier, staged.path, place, name, staged.longest, self._replaces
        )
        staged.place = encode_fs(f"{place}/{name}")

    def _record(self, staged: StagedCopy) -> StoreObject:
        place, name = map(decode_fs, os.path.split(staged.place))
        if staged.text is None or not staged.text.isascii():
            return self._store._proper(place, name)
        return StoreObject(staged.text, f"{ROOT}/{place}", True, name, ())
