"""Storing new objects and new versions in an OCFL storage root: see :mod:`pressmark.stores.staging_writer`.

An object never appears inside or around another object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from pressmark.errors import ObjectError, StoreError
from pressmark.fs.names import decode_fs
from pressmark.option_names import option
from pressmark.stores.exceptions import object_errors
from pressmark.stores.object_sources import SourceCopy, check_source, open_files
from pressmark.stores.objects import CopyMode, ObjectSource, StoreObject
from pressmark.stores.ocfl.inventory import Provenance
from pressmark.stores.ocfl.storage import Changes
from pressmark.stores.ocfl.storage_root import FoundInventory, StorageRoot
from pressmark.stores.ocfl.writing.object_writer import CopiedFiles, Files, Fixity, dropped_directories, write_object
from pressmark.stores.staging_writer import Argument, Result, Staged, StagingWriter

if TYPE_CHECKING:
    from pressmark.stores.ocfl.writing.edits import Edit
    from pressmark.stores.ocfl.writing.version_writer import NextVersion

__all__ = ["BulkWriter", "StagedObject"]


@dataclass(slots=True)
class StagedObject(Staged):
    """A new object, or a new version of an object.

    :ivar provenance: of the first version
    :ivar version: the next version; :data:`None` for a new object
    """

    identifier: str
    copy: CopiedFiles | None = None
    provenance: Provenance | None = None
    version: NextVersion | None = None


class BulkWriter(StagingWriter[StagedObject]):
    """Write objects to a storage root; see :class:`StagingWriter`.

    :param root: the storage root
    :param mode: as for :meth:`OcflRoot.put`, like ``links``
    :param replace: stores a new version of one object by itself, and tries again if other runs change it meanwhile;
        without it, existing objects are an error
    :param durable_names: as for :class:`StagingWriter`
    """

    def __init__(
        self,
        root: StorageRoot,
        mode: CopyMode,
        links: str,
        replace: Callable[[str, ObjectSource], StoreObject] | None,
        *,
        durable_names: bool = True,
    ) -> None:
        base = os.fsencode(root.root)
        super().__init__(root, base, mode, links, replace is not None, durable_names=durable_names)
        self._root = root
        self._replace = replace
        self._provenance = Provenance(None, root.message, root.user)
        self._mode = mode

    @property
    def changes(self) -> Changes:
        """The changes of the root, which begin on first use."""
        return cast("Changes", self.staging)

    def refuse_elsewhere(self, identifier: str) -> None:
        """Check that no object of the root that is not where the layout puts it has the identifier.

        :raises ObjectError: of kind ``exists``
        """
        path = self._elsewhere.get(identifier)
        if path is not None and self._root.holds(identifier, path):
            raise self._root._exists(identifier, path)

    def find_elsewhere(self) -> None:
        """Find the objects that are not where the layout puts them: once, and not in each of several threads."""
        _ = self._elsewhere

    @cached_property
    def _elsewhere(self) -> dict[str, bytes]:
        """The objects that are not where the layout puts them, as they were found first."""
        return self._root.misplaced_objects()

    def _destinations(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> Sequence[bytes | None]:
        if self._root.layout is None:
            return super()._destinations(objects)
        return self.look_up([_text(identifier) for identifier, _source in objects])

    def look_up(self, identifiers: Sequence[str]) -> list[bytes | None]:
        """Return the paths of new objects, :data:`None` where one has none, after a look at what is there."""
        paths = self._root.paths_for(identifiers)
        self.changes.look_up([path for path in paths if path])
        return paths

    def begin(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        destination: bytes | None = None,
        *,
        found: FoundInventory | None = None,
        edit: Edit | None = None,
        dedup: bool = True,
        **options: Any,
    ) -> StagedObject | StoreObject:
        """Return a new object; or a new version of an existing one, if objects are replaced. A version of open files,
        which can be read once, is stored at once.

        :param found: the object to which a version is added, if it is known
        :param edit: the difference of that version from the newest one; :data:`None` to replace all files by ``source``
        :param dedup: do not store content that is in the object already
        :param options: of :meth:`begin_new`
        """
        root = self._root
        name = _text(identifier)
        if found is None:
            if destination is None:
                name, destination = root.name_and_path(identifier)
            with object_errors(root.root, name):
                check_source(source)
                is_taken = self.is_taken(destination)
                if self._replaces and (is_taken or name in self._elsewhere):
                    found = root.look_up(name, anew=False)
                if found is None:
                    self.refuse_elsewhere(name)
                elif open_files(source) and self._replace is not None:
                    return self._replace(name, source)
        if found is not None:
            return self._begin_version(name, found, source, edit, dedup, **options)
        assert destination is not None
        if is_taken:
            self.check_absent(name, destination)
        return self.begin_new(name, source, destination, **options)

    def again(self, identifier: str | bytes, source: ObjectSource, error: ObjectError) -> StoreObject:
        is_overtaken = error.kind in ("changed", "exists", "improper") or isinstance(error.__cause__, FileNotFoundError)
        if self._replace is None or not is_overtaken or open_files(source):
            raise error
        return self._replace(_text(identifier), source)

    def _begin_version(
        self,
        identifier: str,
        found: FoundInventory,
        source: ObjectSource,
        edit: Edit | None,
        dedup: bool,
        *,
        provenance: Provenance | None = None,
        fixity: Fixity | None = None,
        threads: int | None = None,
        also: tuple[str, ...] = (),
        check: Callable[[Any], object] | None = None,
    ) -> StagedObject:
        """Return a new version; the options are those of :meth:`begin_new`."""
        from pressmark.stores.ocfl.writing.edits import Edit  # only for existing objects
        from pressmark.stores.ocfl.writing.version_writer import NextVersion

        root, edit = self._root, edit or Edit(source, keep=False)
        self._refuse_hard_links()
        with object_errors(root.root, identifier):
            new = self.changes.begin(found.path)
            version = NextVersion(root, self.changes, identifier, found, edit, provenance or self._provenance, dedup)
            copy = version.copy(new, self._links, fixity or {}, also, threads)
        return StagedObject(identifier, found.path, new, copy, check, version=version)

    def _refuse_hard_links(self) -> None:
        if self._mode == "hardlink":
            raise StoreError(self._name, f"OCFL forbids hard links (E090); use {option('copy_mode', 'auto')}")

    def is_taken(self, path: bytes) -> bool:
        """Return whether anything is at a path, where what an interrupted run has decided is finished.

        :raises OSError: this cannot be determined
        """
        is_taken = not self.changes.is_free(path) or self._root.is_elsewhere(path)
        if is_taken:
            self.changes.recover(path)
        return is_taken

    def check_absent(self, identifier: str, path: bytes) -> None:
        """Check that the root has no object of this identifier, and that ``path`` is free.

        :raises ObjectError: of kind ``exists``, or as :meth:`StorageRoot.check_free`
        """
        found = self._root.find_at(identifier, path)
        if found is not None:
            raise self._root._exists(identifier, found.path)
        try:
            self._root.check_free(identifier, path)
        except ObjectError:
            # Again, while no run moves anything.
            with object_errors(self._name, identifier), self.staging.lock():
                self._root.check_free(identifier, path)

    def begin_new(
        self,
        identifier: str,
        files: ObjectSource | Files,
        destination: bytes | None = None,
        *,
        provenance: Provenance | None = None,
        fixity: Fixity | None = None,
        threads: int | None = None,
        also: tuple[str, ...] = (),
        check: Callable[[Any], object] | None = None,
    ) -> StagedObject:
        """Return a new object, whose path is free.

        :param files: the source; or names in the object, and the files to copy there
        :param destination: as returned by :meth:`StorageRoot.paths_for`, if known
        :param provenance: instead of that of the root
        :param fixity: as for :meth:`OcflRoot.put`, like ``threads``
        :param also: more algorithms whose digests are returned, but not stored in the inventory
        :param check: as for :class:`Staged`
        :raises ObjectError: the private directory cannot be created
        :raises IdentifierError: the identifier has no path in this root
        :raises StoreError: the layout is unknown
        """
        root = self._root
        self._refuse_hard_links()
        if destination is None:
            destination = root.name_and_path(identifier)[1]
        with object_errors(root.root, identifier):
            new = self.changes.begin(destination)
        copy = CopiedFiles(
            files,
            new,
            "v1",
            self.changes,
            self._links,
            root.algorithm,
            fixity or {},
            root.content_paths,
            also=also,
            threads=threads,
        )
        return StagedObject(identifier, destination, new, copy, check, provenance=provenance or self._provenance)

    def _complete(self, staged: StagedObject) -> None:
        root, copy = self._root, staged.copy
        assert copy is not None
        if staged.version is not None:
            staged.version.complete(copy)
            return
        assert staged.provenance is not None
        write_object(copy, staged.identifier, root.version, staged.provenance)
        root.refuse_too_long(staged.identifier, staged.destination, copy.longest)

    def adopt(
        self,
        identifier: str,
        directory: bytes,
        destination: bytes | None = None,
        digests: Mapping[str, Mapping[str, str]] | None = None,
    ) -> StagedObject:
        """Publish a complete object from ``directory``, on the same file system, without copying it.

        :param digests: of its files, if it was copied to a path of :meth:`new_directory`
        :raises ObjectError: the object has no path, or cannot be stored
        :raises IdentifierError: the identifier has no path in this root
        """
        staged = StagedObject(identifier, destination or self._root.name_and_path(identifier)[1], directory)
        if digests is not None:
            with object_errors(self._name, identifier):
                self.changes.adopt(directory, digests)
        self._waiting.append(staged)
        return staged

    def new_directory(self, destination: bytes) -> bytes:
        """Return a path for an object that the caller copies whole, and then adopts.

        :param destination: the path of the object
        """
        return self.changes.begin(destination)

    def finish_version(self, path: bytes) -> bool:
        """Finish a version of the object at ``path`` whose publishing was interrupted; return whether there was one.

        :raises SourceError: of kind ``improper``: the content of the version does not match its inventory
        :raises OSError: the version cannot be read, or the object cannot be written
        """
        from pressmark.stores.ocfl.writing.version_writer import finish_version  # only for existing objects

        return finish_version(self._root, self.changes, path)

    def adopt_version(self, directory: bytes, path: bytes, digests: Mapping[str, Mapping[str, str]]) -> None:
        """Publish a complete next version of the object at ``path``, unless another run does.

        :param directory: in one of :meth:`new_directory`, with the name of the version
        :param digests: of its files, by their paths in the object
        :raises SourceError: as for :meth:`finish_version`
        :raises OSError: as for :meth:`finish_version`
        """
        self.changes.flush(directory)
        self.changes.adopt(os.path.dirname(directory), digests)
        with suppress(FileExistsError), self.changes.lock():
            self.changes.adopt_version(directory, path)
        self.finish_version(path)

    def _copy_all(self, copies: Sequence[SourceCopy], together: int | None) -> Iterator[SourceCopy]:
        return self.changes.copy(copies, self._copier, together) if copies else iter(())

    def _discard(self, path: bytes) -> None:
        self.changes.discard(path)

    def _is_moved(self, staged: StagedObject) -> bool:
        if staged.version is not None:
            return staged.version.is_published()
        return not self.changes.is_prepared(staged.path) and self._root.storage.exists(staged.destination)

    def _each(self, function: Callable[[Argument], Result], items: Sequence[Argument]) -> Iterator[Result]:
        if self.changes.together == 1 or len(items) == 1:
            return super()._each(function, items)
        from pressmark.buckets.requests import in_order  # slow to import

        self.find_elsewhere()
        # Objects in different directories of a bucket do not wait for each other.
        return in_order(function, items)

    def _prune_above(self, path: bytes) -> None:
        if self.changes.together == 1:
            super()._prune_above(path)

    def _move(self, staged: StagedObject, known: set[bytes]) -> None:
        if staged.version is not None:
            staged.version.publish(staged.path)
            return
        try:
            if self._root.is_elsewhere(staged.destination):
                raise FileExistsError
            if self.changes.together > 1 and self._root.may_nest:
                self._root.check_free(staged.identifier, staged.destination)
            self.changes.publish(staged.path, staged.destination, known)
        except (FileExistsError, NotADirectoryError):
            # The path is not free: report why, or replace an empty directory.
            self._root.check_free(staged.identifier, staged.destination)
            try:
                self.changes.publish(staged.path, staged.destination, known, replace_empty=True)
            except FileExistsError:
                self._root.check_free(staged.identifier, staged.destination)
                raise

    def _record(self, staged: StagedObject) -> StoreObject:
        if staged.version is not None and staged.copy is not None:
            return staged.version.record(staged.copy)
        dropped = staged.copy.dropped if staged.copy is not None else ()
        problems = dropped_directories(staged.destination, dropped)
        return StoreObject(staged.identifier, decode_fs(staged.destination), True, None, problems)


def _text(identifier: str | bytes) -> str:
    return decode_fs(identifier) if isinstance(identifier, bytes) else identifier
