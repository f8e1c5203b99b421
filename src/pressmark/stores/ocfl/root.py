"""OCFL storage roots, versions 1.0 and 1.1: objects where their layout places them.

::

    <root>/
    ├── 0=ocfl_1.1                           the declaration
    ├── ocfl_layout.json                     names the layout
    ├── extensions/<layout>/config.json      its parameters
    ├── extensions/pressmark-staging/        while something is changed: see :mod:`pressmark.fs.run_directories`
    └── …/<object>/                          see :mod:`pressmark.stores.ocfl.object_check`

An object appears by one rename and goes by one rename, while no other run of Pressmark moves anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from pressmark.errors import ObjectError, StoreError
from pressmark.fs.durable import flush_directory, flush_tree
from pressmark.fs.names import decode_fs
from pressmark.fs.removal import remove_tree
from pressmark.fs.run_directories import RunDirectory
from pressmark.reports import Report
from pressmark.stores.exceptions import store_errors
from pressmark.stores.ocfl.declarations import (
    MUTABLE_HEAD,
    OBJECT,
    VERSIONS,
    declaration,
    has_mutable_head,
    is_object_name,
)
from pressmark.stores.ocfl.object_writer import Manners, Provenance, write_object, write_version
from pressmark.stores.ocfl.storage_root import TRIES, Held, StorageRoot
from pressmark.stores.problems import problem
from pressmark.stores.store import CopyMode, OnEvent, OnProblem, Source, StoreObject

if TYPE_CHECKING:
    from pressmark.stores.ocfl.bulk_writer import BulkWriter
    from pressmark.stores.ocfl.check import ObjectResult

__all__ = ["OcflRoot"]

_NO_EMPTY = "it is an empty directory, and OCFL has none"


class OcflRoot(StorageRoot):
    """An OCFL storage root that can be checked, repaired and changed; see :class:`StorageRoot`."""

    def put(
        self,
        identifier: str | bytes,
        source: Source,
        *,
        replace: bool = False,
        mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        created: str | None = None,
        message: str | None = None,
        user: Mapping[str, str] | None = None,
        fixity: Mapping[str, Mapping[str, str]] | None = None,
        threads: int | None = None,
    ) -> StoreObject:
        """Store an object; with ``replace`` as a new version of the one that is there.

        :param created: date and time of RFC 3339; :data:`None` for now
        :param message: why; :data:`None` for the root's
        :param user: who; :data:`None` for the root's
        :param fixity: digests that are known, by algorithm and logical path, such as those of the source's manifest:
            they are compared with what is copied, and noted in the inventory; an algorithm without any is computed
            for all files
        :raises ObjectError: nothing was stored. Its ``kind`` is ``exists``, ``collision`` (another identifier holds
            its place), ``object-inside`` (its place is in an object, or has objects below it), ``reserved``,
            ``mismatch`` (a digest is not as given), ``mutable-head`` (it has staged content, extension 0005),
            ``bad-name``, ``source``, ``no-space``, …
        :raises IdentifierError: the identifier has no place in this store
        :raises StoreError: the layout is not known
        """
        if mode == "hardlink":
            raise StoreError(self.root, "OCFL forbids hard links (E090); take copy, reflink or auto")
        name = self._identifier(identifier)
        place = self._place(name, "put")
        provenance = Provenance(created, self.message if message is None else message, user or self.user)
        how: dict[str, Any] = {
            "provenance": provenance,
            "fixity": fixity or {},
            "content_paths": self.content_paths,
            "manners": Manners(mode, links, threads, self.copied),
        }
        for _ in range(TRIES):
            found = self._find(name, place)
            if found is not None and not replace:
                what = f"it is there already, at {decode_fs(found.place)!r}; replace it, or remove it first"
                raise ObjectError(self.root, name, "exists", what)
            try:
                if found is None:
                    self._check_place_free_in_turn(name, place)
                return self._store(name, place, found, source, how)
            except ObjectError as error:
                # Another run may have put, replaced or removed it meanwhile: then this begins again.
                if not replace or (error.kind != "exists" and _is_as_found(self._find(name, place), found)):
                    raise
        raise ObjectError(self.root, name, "changed", "other runs change it again and again; try again")

    def _store(
        self,
        name: str,
        place: bytes,
        found: Held | None,
        source: Source,
        how: dict[str, Any],
    ) -> StoreObject:
        """Write an object aside, and have it appear.

        :param found: the object that is there, if one is
        """
        with self._changing(name) as workshop:
            new = workshop / self.new_name()
            try:
                if found is None:
                    written = write_object(new, name, source, version=self.version, algorithm=self.algorithm, **how)
                else:
                    place = found.place
                    written = self._next_version(name, place, found.document, new, source, how)
                if written.document is not None:
                    self.refuse_too_long(name, place, new)
                    self._appear(workshop, name, new, place, None if found is None else found.document)
            finally:
                # What was not moved in, or what it took the place of.
                with suppress(OSError):
                    remove_tree(new)
        dropped = tuple(
            problem("directory-empty", place, f"{decode_fs(folder)!r} was not stored: {_NO_EMPTY}", severity="warning")
            for folder in written.dropped
        )
        return StoreObject(name, decode_fs(place), True, None, dropped)

    def _appear(
        self, workshop: RunDirectory, identifier: str, new: bytes, place: bytes, before: dict[str, Any] | None
    ) -> None:
        """Move an object that is written into its place, or exchange it with its earlier version."""
        if self.flush:
            flush_tree(new)
        with workshop.lock():
            if before is None:
                self.check_place_free(identifier, place)
                self.move_in(identifier, new, place)
            else:
                self._exchange(identifier, new, place, before)
        if self.flush:
            while place:
                place = os.path.dirname(place)
                flush_directory(self._absolute(place))

    def _next_version(
        self, identifier: str, place: bytes, document: dict[str, Any], new: bytes, source: Source, how: dict[str, Any]
    ) -> Any:
        """Write an object's next version aside.

        :raises ObjectError: the object is not as it should be
        """
        old = self._absolute(place)
        self._refuse_mutable_head(identifier, place)
        from pressmark.stores.ocfl.object_check import check_object  # a new object needs none

        checked = check_object(self.storage, place, self.storage.scan(place), self.version)
        # A run that was killed may have left the newest version's files with two names: they are only added to here.
        wrong = [one for one in checked.problems if one.severity == "error" and one.kind != "hard-link"]
        if wrong:
            what = f"it is not valid ({wrong[0].kind}: {wrong[0].message}); check the store"
            raise ObjectError(self.root, identifier, "improper", what)
        versions = (one for one in VERSIONS if self.storage.exists(place + b"/" + declaration(OBJECT, one)[0]))
        declared = next(versions, None)
        if declared is None:
            raise ObjectError(self.root, identifier, "changed", "it was removed by another run meanwhile; try again")
        return write_version(new, old, document, source, version=declared, **how)

    def _refuse_mutable_head(self, identifier: str, place: bytes) -> None:
        """Refuse to write a version beneath what is staged for the next one: ocfl-java would accept neither.

        :raises ObjectError: of kind ``mutable-head``
        """

        if has_mutable_head(self.storage, place):
            what = (
                f"it has a mutable HEAD, staged content in {decode_fs(MUTABLE_HEAD)}, which a new version would cut off"
            )
            raise ObjectError(self.root, identifier, "mutable-head", f"{what}; commit it with ocfl-java first")

    def _exchange(self, identifier: str, new: bytes, place: bytes, document: dict[str, Any]) -> None:
        """Put an object's next version in the place of the object."""
        found = self._read_inventory(identifier, place)
        if found is None or found.document != document:
            what = "it was changed by another run meanwhile; try again"
            raise ObjectError(self.root, identifier, "changed", what)
        self._refuse_mutable_head(identifier, place)
        if not self.storage.replace(new, place):
            what = "the file system cannot exchange two directories at once, which a new version needs here"
            raise ObjectError(self.root, identifier, "unsupported", f"{what}; remove the object and put it again")

    def delete(self, identifier: str | bytes) -> None:
        """Remove an object with all its versions, and directories above it that are empty then.

        :raises ObjectError: nothing was removed; of kind ``missing``, ``collision``, ``object-inside``, …
        :raises IdentifierError: the identifier has no place in this store
        :raises StoreError: the layout is not known
        """
        name = self._identifier(identifier)
        place = self._place(name, "remove")
        with self._changing(name) as workshop:
            removed = workshop / self.new_name()
            with workshop.lock():
                found = self._find(name, place)
                if found is None:
                    raise ObjectError(self.root, name, "missing", f"there is no object at {decode_fs(place)!r}")
                entries = self.storage.scan(found.place)
                strange = [e.name for e in entries if e.kind == "directory" and not is_object_name(e)]
                if strange:
                    inside = decode_fs(strange[0])
                    what = f"there may be other objects inside of it, in {inside!r}; move that out of it first"
                    raise ObjectError(self.root, name, "object-inside", what)
                self.storage.withdraw(found.place, removed)
            with suppress(OSError):  # it is gone for everybody already; the next run goes on with what remains
                remove_tree(removed)

    def bulk_writer(self, flush_places: bool = True) -> BulkWriter:
        """Return what takes many new objects in at a time; see :mod:`pressmark.stores.ocfl.bulk_writer`."""
        from pressmark.stores.ocfl.bulk_writer import BulkWriter

        return BulkWriter(self, flush_places)

    # --- all objects --------------------------------------------------------------------------------------------------

    def check(
        self,
        *,
        digests: bool = False,
        threads: int | None = None,
        on_event: OnEvent | None = None,
        on_problem: OnProblem | None = None,
        ignore: Sequence[str] = (),
        on_object: Callable[[ObjectResult], object] | None = None,
    ) -> Report:
        """Check the root, its hierarchy, and every object strictly; see :meth:`Store.check`.

        :param digests: read all content and compare it with manifests and fixity blocks
        :param on_object: called with each object's own result, in the order of the walk
        """
        from pressmark.stores.ocfl.check import Check

        with store_errors(self.root):
            run = Check(self, on_event, on_problem, on_object)
            return run.report(digests, threads or os.cpu_count() or 1, ignore)

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Mend what can be mended without losing a byte; see :mod:`pressmark.stores.ocfl.repair`."""
        from pressmark.stores.ocfl.repair import repair

        self._refuse_undeclared()
        with store_errors(self.root):
            return repair(self, dry_run, on_event, ignore)


def _is_as_found(now: Held | None, found: Held | None) -> bool:
    """Return whether two looks have found the same object at the same place, or none."""
    if now is None or found is None:
        return now is found
    return (now.place, now.document) == (found.place, found.document)
