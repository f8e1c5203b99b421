"""OCFL storage roots, versions 1.0 and 1.1: objects at the paths that their layout gives.

::

    <root>/
    ├── 0=ocfl_1.1                           the declaration
    ├── ocfl_layout.json                     names the layout
    ├── extensions/<layout>/config.json      its parameters
    ├── extensions/pressmark-staging/        during a change: see :mod:`pressmark.fs.run_directories`
    └── …/<object>/                          see :mod:`pressmark.stores.ocfl.object_check`

An object appears and disappears by one rename, while a lock keeps other runs of Pressmark from moving anything.
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
from pressmark.stores.ocfl.storage_root import TRIES, FoundInventory, StorageRoot
from pressmark.stores.ocfl.writing.object_writer import CopyOptions, Provenance, write_object, write_version
from pressmark.stores.problems import problem
from pressmark.stores.store import CopyMode, ObjectSource, OnEvent, OnProblem, StoreObject

if TYPE_CHECKING:
    from pressmark.stores.ocfl.check import ObjectResult
    from pressmark.stores.ocfl.writing.bulk_writer import BulkWriter

__all__ = ["OcflRoot"]

_NO_EMPTY = "OCFL does not allow empty directories"


class OcflRoot(StorageRoot):
    """An OCFL storage root that can be checked, repaired and changed; see :class:`StorageRoot`."""

    def put(
        self,
        identifier: str | bytes,
        source: ObjectSource,
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
        """Store an object; with ``replace``, as a new version of an existing object.

        :param created: RFC 3339 date and time; :data:`None` for now
        :param message: of the version; :data:`None` for the root's default
        :param user: of the version; :data:`None` for the root's default
        :param fixity: known digests, by algorithm and logical path, for example from a manifest: they are compared with
            the copied content and stored in the inventory; an algorithm without any is computed for all files
        :raises ObjectError: nothing was stored. Its ``kind`` is ``exists``, ``collision`` (another object has the
            path), ``object-inside`` (the path is inside or around another object), ``reserved``, ``mismatch`` (a digest
            differs from the given one), ``mutable-head`` (the object has staged content, extension 0005), ``bad-name``,
            ``source``, ``no-space``, …
        :raises IdentifierError: the identifier has no path in this store
        :raises StoreError: the layout is unknown
        """
        if mode == "hardlink":
            raise StoreError(self.root, "OCFL forbids hard links (E090); use copy, reflink or auto")
        name = self._identifier(identifier)
        place = self._place(name, "put")
        provenance = Provenance(created, self.message if message is None else message, user or self.user)
        how: dict[str, Any] = {
            "provenance": provenance,
            "fixity": fixity or {},
            "content_paths": self.content_paths,
            "copy_options": CopyOptions(mode, links, threads, self.copied),
        }
        for _ in range(TRIES):
            found = self._find(name, place)
            if found is not None and not replace:
                what = f"object exists at {decode_fs(found.place)!r}; replace it, or remove it first"
                raise ObjectError(self.root, name, "exists", what)
            try:
                if found is None:
                    self._check_place_free_in_turn(name, place)
                return self._store(name, place, found, source, how)
            except ObjectError as error:
                # Another run may have stored, replaced or removed the object: try again.
                if not replace or (error.kind != "exists" and _is_as_found(self._find(name, place), found)):
                    raise
        raise ObjectError(self.root, name, "changed", "other runs keep changing the object; run the command again")

    def _store(
        self,
        name: str,
        place: bytes,
        found: FoundInventory | None,
        source: ObjectSource,
        how: dict[str, Any],
    ) -> StoreObject:
        """Stage an object, and publish it.

        :param found: the existing object, if any
        """
        with self._changing(name) as staging:
            new = staging / self.new_name()
            try:
                if found is None:
                    written = write_object(new, name, source, version=self.version, algorithm=self.algorithm, **how)
                else:
                    place = found.place
                    written = self._next_version(name, place, found.document, new, source, how)
                if written.document is not None:
                    self.refuse_too_long(name, place, new)
                    self._appear(staging, name, new, place, None if found is None else found.document)
            finally:
                # The staged object, or the replaced one.
                with suppress(OSError):
                    remove_tree(new)
        dropped = tuple(
            problem("directory-empty", place, f"{decode_fs(folder)!r} not stored: {_NO_EMPTY}", severity="warning")
            for folder in written.dropped
        )
        return StoreObject(name, decode_fs(place), True, None, dropped)

    def _appear(
        self, staging: RunDirectory, identifier: str, new: bytes, place: bytes, before: dict[str, Any] | None
    ) -> None:
        """Publish a staged object, or exchange it with its earlier version."""
        if self.durable:
            flush_tree(new)
        with staging.lock():
            if before is None:
                self.check_place_free(identifier, place)
                self.move_in(identifier, new, place)
            else:
                self._exchange(identifier, new, place, before)
        if self.durable:
            while place:
                place = os.path.dirname(place)
                flush_directory(self._absolute(place))

    def _next_version(
        self,
        identifier: str,
        place: bytes,
        document: dict[str, Any],
        new: bytes,
        source: ObjectSource,
        how: dict[str, Any],
    ) -> Any:
        """Stage an object's next version.

        :raises ObjectError: the object is not valid
        """
        old = self._absolute(place)
        self._refuse_mutable_head(identifier, place)
        from pressmark.stores.ocfl.object_check import check_object  # not needed for a new object

        checked = check_object(self.storage, place, self.storage.scan(place), self.version)
        # A killed run may have left hard links to the object's files; they do no harm here.
        wrong = [one for one in checked.problems if one.severity == "error" and one.kind != "hard-link"]
        if wrong:
            what = f"object not valid ({wrong[0].kind}: {wrong[0].message}); check the store"
            raise ObjectError(self.root, identifier, "improper", what)
        versions = (one for one in VERSIONS if self.storage.exists(place + b"/" + declaration(OBJECT, one)[0]))
        declared = next(versions, None)
        if declared is None:
            raise ObjectError(self.root, identifier, "changed", "removed by another run; run the command again")
        return write_version(new, old, document, source, version=declared, **how)

    def _refuse_mutable_head(self, identifier: str, place: bytes) -> None:
        """Refuse to add a version below the staged next version, which ocfl-java could not commit then.

        :raises ObjectError: of kind ``mutable-head``
        """

        if has_mutable_head(self.storage, place):
            what = f"the object has a mutable HEAD, uncommitted content in {decode_fs(MUTABLE_HEAD)}"
            raise ObjectError(self.root, identifier, "mutable-head", f"{what}; commit it with ocfl-java first")

    def _exchange(self, identifier: str, new: bytes, place: bytes, document: dict[str, Any]) -> None:
        """Exchange an object and its next version."""
        found = self._read_inventory(identifier, place)
        if found is None or found.document != document:
            what = "changed by another run; run the command again"
            raise ObjectError(self.root, identifier, "changed", what)
        self._refuse_mutable_head(identifier, place)
        if not self.storage.replace(new, place):
            what = "the file system cannot exchange two directories, which a new version requires"
            raise ObjectError(self.root, identifier, "unsupported", f"{what}; remove the object and store it again")

    def delete(self, identifier: str | bytes) -> None:
        """Remove an object with all versions, and the directories above it that become empty.

        :raises ObjectError: nothing was removed; of kind ``missing``, ``collision``, ``object-inside``, …
        :raises IdentifierError: the identifier has no path in this store
        :raises StoreError: the layout is unknown
        """
        name = self._identifier(identifier)
        place = self._place(name, "remove")
        with self._changing(name) as staging:
            removed = staging / self.new_name()
            with staging.lock():
                found = self._find(name, place)
                if found is None:
                    raise ObjectError(self.root, name, "missing", f"object not found at {decode_fs(place)!r}")
                entries = self.storage.scan(found.place)
                strange = [e.name for e in entries if e.kind == "directory" and not is_object_name(e)]
                if strange:
                    inside = decode_fs(strange[0])
                    what = f"the object contains {inside!r}, possibly other objects; move it out of the object first"
                    raise ObjectError(self.root, name, "object-inside", what)
                self.storage.withdraw(found.place, removed)
            with suppress(OSError):  # the object is gone; the next run removes the rest
                remove_tree(removed)

    def bulk_writer(self, durable_places: bool = True) -> BulkWriter:
        """Return a writer for many new objects; see :mod:`pressmark.stores.ocfl.writing.bulk_writer`."""
        from pressmark.stores.ocfl.writing.bulk_writer import BulkWriter

        return BulkWriter(self, durable_places)

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
        :param on_object: called with the result of each object, in the order of the walk
        """
        from pressmark.stores.ocfl.check import Check

        with store_errors(self.root):
            run = Check(self, on_event, on_problem, on_object)
            return run.report(digests, threads or os.cpu_count() or 1, ignore)

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Repair unambiguous problems without losing data; see :mod:`pressmark.stores.ocfl.repair`."""
        from pressmark.stores.ocfl.repair import repair

        self._refuse_undeclared()
        with store_errors(self.root):
            return repair(self, dry_run, on_event, ignore)


def _is_as_found(now: FoundInventory | None, found: FoundInventory | None) -> bool:
    """Return whether two lookups found the same object at the same path, or none."""
    if now is None or found is None:
        return now is found
    return (now.place, now.document) == (found.place, found.document)
