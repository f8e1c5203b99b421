"""Storing new objects in an OCFL storage root: see :mod:`pressmark.stores.staging_writer`.

An object never appears inside or around another object.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pressmark import _kernels
from pressmark.errors import ObjectError, StoreError
from pressmark.fs.durable import flush_trees
from pressmark.fs.moves import rename_new
from pressmark.fs.names import PATH_MAX, decode_fs
from pressmark.stores.exceptions import object_errors
from pressmark.stores.object_sources import SMALL_FLAGS, check_source, devices_to_copy
from pressmark.stores.objects import CopyMode, ObjectSource, StoreObject
from pressmark.stores.ocfl.declarations import OBJECT, declaration
from pressmark.stores.ocfl.inventory import first_version, inventory_texts, json_text
from pressmark.stores.ocfl.storage_root import StorageRoot
from pressmark.stores.ocfl.writing.object_writer import (
    CopyOptions,
    Files,
    Provenance,
    Written,
    dropped_directories,
    write_object,
)
from pressmark.stores.staging_writer import Staged, StagingWriter

__all__ = ["BulkWriter", "StagedObject", "WrittenSmall"]


class WrittenSmall(NamedTuple):
    """A written small object.

    :ivar digests: SHA-512 of each file, in hex, by its logical path
    :ivar size: of all files together
    """

    digests: dict[str, str]
    size: int


@dataclass(slots=True)
class StagedObject(Staged):
    """An object ready to be published.

    :ivar written: the written object; :data:`None` for an adopted one
    :ivar mode: how its files were transferred: ``copy`` or ``reflink``; :data:`None` without files, or if adopted
    """

    identifier: str
    written: Written | WrittenSmall | None
    mode: str | None


class _Job(NamedTuple):
    """A small object to write.

    :ivar above: a directory that contains nothing but the object's directory; :data:`None` if ``name`` is a path
    :ivar name: the name of the object's directory
    """

    identifier: str
    place: bytes
    above: bytes | None
    name: bytes


class BulkWriter(StagingWriter[StagedObject]):
    """Write objects to a storage root; see :class:`StagingWriter`.

    :param root: the storage root
    :param mode: as for :meth:`OcflRoot.put`, like ``links``
    :param replace: stores a new version of an object, with the options that :meth:`prepare` was given; without it,
        existing objects are an error
    :param durable_places: as for :class:`StagingWriter`
    """

    def __init__(
        self,
        root: StorageRoot,
        mode: CopyMode,
        links: str,
        replace: Callable[[str, ObjectSource, Mapping[str, Any]], StoreObject] | None,
        *,
        durable_places: bool = True,
    ) -> None:
        base = os.fsencode(root.root)
        super().__init__(root, base, durable_places=durable_places)
        self._root = root
        self._replace = replace
        # Length of a path that begins with the root, which may be relative.
        self._limit = PATH_MAX - len(os.path.abspath(self._base)) + len(self._base)
        self._common: tuple[str, tuple[bytes, ...]] | None = None
        self._provenance = Provenance(None, root.message, root.user)
        self._mode = mode
        self._links = links

    def refuse_elsewhere(self, identifier: str) -> None:
        """Check that no object of the root that is not where the layout puts it has the identifier.

        :raises ObjectError: of kind ``exists``
        """
        place = self._elsewhere.get(identifier)
        if place is not None and self._root.holds(identifier, place):
            raise self._root._exists(identifier, place)

    @cached_property
    def _elsewhere(self) -> dict[str, bytes]:
        """The objects that are not where the layout puts them, as they were found first."""
        return self._root.misplaced_objects()

    def prepare(self, identifier: str | bytes, source: ObjectSource, **how: Any) -> int | StoreObject:
        """Stage a new object; or store a new version of an existing one, if objects are replaced.

        :param how: options of :meth:`stage`
        """
        root = self._root
        name, place = root.new_place(identifier)
        with object_errors(root.root, name):
            check_source(source)
            is_taken = os.path.lexists(self._base + b"/" + place) or root.is_elsewhere(place)
            if self._replace is not None and (is_taken or name in self._elsewhere):
                return self._replace(name, source, how)
            self.refuse_elsewhere(name)
        if is_taken:
            self._check_absent(name, place)
        staged = self.stage(name, source, place=place, **how)
        assert isinstance(staged.written, Written)
        return sum(outcome.size or 0 for outcome in staged.written.outcomes.values())

    def _check_absent(self, identifier: str, place: bytes) -> None:
        """Check that the root has no object of this identifier, and that ``place`` is free.

        :raises ObjectError: of kind ``exists``, or as :meth:`StorageRoot.check_place_free`
        """
        found = self._root.find_at(identifier, place)
        if found is not None:
            raise self._root._exists(identifier, found.place)
        try:
            self._root.check_place_free(identifier, place)
        except ObjectError:
            # Again, while no run moves anything.
            with object_errors(self._name, identifier), self.staging.lock():
                self._root.check_place_free(identifier, place)

    def _devices(self) -> tuple[int, ...] | None:
        return devices_to_copy(self._mode, self._root.copied_devices)

    def _stage_small(
        self, objects: Sequence[tuple[str | bytes, ObjectSource]], devices: tuple[int, ...]
    ) -> Sequence[tuple[StagedObject, int] | None]:
        root = self._root
        found: list[tuple[StagedObject, int] | None] = [None] * len(objects)
        names = [_text(identifier) for identifier, _source in objects]
        numbers: list[int] = []
        jobs: list[_Job] = []
        for number, place in enumerate(root.places(names)):
            source = objects[number][1]
            if (
                place is not None
                and isinstance(source, (str, os.PathLike))
                and not root.has_other_place(place)
                and names[number] not in self._elsewhere
            ):
                numbers.append(number)
                jobs.append(_Job(names[number], place, None, os.fsencode(source)))
        for number, staged in zip(numbers, self._write_small(jobs, devices), strict=True):
            if staged is not None and isinstance(staged.written, WrittenSmall):
                found[number] = staged, staged.written.size
        return found

    def stage(
        self,
        identifier: str,
        files: ObjectSource | Files,
        *,
        place: bytes | None = None,
        provenance: Provenance | None = None,
        fixity: Mapping[str, Mapping[str, str]] | None = None,
        copy_options: CopyOptions | None = None,
        also: tuple[str, ...] = (),
        check: Callable[[bytes], object] | None = None,
    ) -> StagedObject:
        """Write version 1 of an object to the staging directory.

        :param files: names in the object, and the files to copy there
        :param place: as returned by :meth:`StorageRoot.places`, if known
        :param provenance: instead of that of the root
        :param fixity: as for :meth:`OcflRoot.put`
        :param copy_options: instead of those of the writer
        :param also: more algorithms whose digests are returned, but not stored in the inventory
        :param check: called with the path of the written object; an exception discards it
        :raises ObjectError: the object cannot be stored; it leaves no files
        :raises IdentifierError: the identifier has no path in this root
        :raises StoreError: the layout is unknown
        """
        root = self._root
        if self._mode == "hardlink":
            raise StoreError(root.root, "OCFL forbids hard links (E090); use --mode copy, reflink or auto")
        if place is None:
            place = root.place(identifier)
        copy_options = copy_options or CopyOptions(self._mode, self._links, None, root.copied_devices)
        with object_errors(root.root, identifier):
            new = self.new_path()
            try:
                written = write_object(
                    new,
                    identifier,
                    files,
                    version=root.version,
                    algorithm=root.algorithm,
                    provenance=provenance or self._provenance,
                    fixity=fixity or {},
                    content_paths=root.content_paths,
                    copy_options=copy_options,
                    also=also,
                )
                root.refuse_too_long(identifier, place, new)
                if check is not None:
                    check(new)
            except BaseException:
                self._discard(new)
                raise
        staged = StagedObject(identifier, place, new, written, copy_options.used)
        self._waiting.append(staged)
        return staged

    def stage_small(self, identifier: str, above: bytes, name: bytes, place: bytes) -> StagedObject | None:
        """Write version 1 of an object of a few small files to the staging directory, quickly.

        :param above: a directory that contains nothing but the object's directory
        :param name: the name of the object's directory
        :param place: as for :meth:`stage`
        :return: :data:`None` if the object needs :meth:`stage`, which reports why; it leaves no files
        """
        devices = self._devices()
        [staged] = [None] if devices is None else self._write_small([_Job(identifier, place, above, name)], devices)
        if staged is not None:
            self._waiting.append(staged)
        return staged

    def _write_small(self, jobs: list[_Job], devices: tuple[int, ...]) -> list[StagedObject | None]:
        """Write version 1 of objects of a few small files to the staging directory, on several threads.

        :return: :data:`None` for an object that needs :meth:`stage`; it leaves no files
        """
        root = self._root
        if root.algorithm != "sha512" or root.content_paths is not None:
            return [None] * len(jobs)
        tops = [self.new_path() for _job in jobs]
        texts = self._texts()
        given = [
            (job.above, job.name, top, self._base + b"/" + job.place, json_text(job.identifier))
            for job, top in zip(jobs, tops, strict=True)
        ]

        def write(share: list[tuple[bytes | None, bytes, bytes, bytes, bytes]]) -> list[Any]:
            found: list[Any] = _kernels.active.write_small_objects(share, texts, devices, SMALL_FLAGS, self._limit)
            return found

        staged: list[StagedObject | None] = []
        for job, top, found in zip(jobs, tops, self._on_threads(write, given), strict=True):
            if found is None:
                self._discard(top)
                staged.append(None)
            else:
                _changed, size, digests = found
                staged.append(StagedObject(job.identifier, job.place, top, WrittenSmall(digests, size), "copy"))
        return staged

    def _texts(self) -> tuple[bytes, ...]:
        """Return the texts that the inventories of this second have in common."""
        block = self._provenance.block({})
        if self._common is None or self._common[0] != block["created"]:
            document = first_version("", self._root.version, "sha512", {}, block)
            self._common = block["created"], (*inventory_texts(document), *declaration(OBJECT, self._root.version))
        return self._common[1]

    def adopt(self, identifier: str, directory: bytes, place: bytes | None = None) -> StagedObject:
        """Publish a complete object from ``directory``, on the same file system, without copying it.

        :raises ObjectError: the object has no path
        :raises IdentifierError: the identifier has no path in this root
        """
        staged = StagedObject(identifier, place or self._root.place(identifier), directory, None, None)
        self._waiting.append(staged)
        return staged

    def new_path(self) -> bytes:
        """Return a path for an object that the caller copies whole, and then adopts."""
        return self.staging / self._root.new_name()

    def finish_version(self, place: bytes) -> bool:
        """Finish a version of the object at ``place`` whose publishing was interrupted; return whether there was one.

        :raises SourceError: of kind ``improper``: the content of the version does not match its inventory
        :raises OSError: the version cannot be read, or the object cannot be written
        """
        from pressmark.stores.ocfl.writing.version_writer import finish_version  # only for existing objects

        return finish_version(self._root, self.staging, place)

    def adopt_version(self, directory: bytes, place: bytes) -> None:
        """Publish a complete next version of the object at ``place``, unless another run does.

        :param directory: in a directory of :meth:`new_path`, with the name of the version
        :raises SourceError: as for :meth:`finish_version`
        :raises OSError: as for :meth:`finish_version`
        """
        if self._root.durable:
            flush_trees(directory)
        with suppress(FileExistsError), self.staging.lock():
            self._root.storage.add(directory, place + b"/" + os.path.basename(directory))
        self.finish_version(place)

    def _move_quickly(self, turn: Sequence[StagedObject]) -> list[bool]:
        # No object moves to an empty path.
        is_other = self._root.has_other_place
        moves = [(staged.path, b"" if is_other(staged.place) else staged.place) for staged in turn]
        moved: list[bool] = _kernels.active.move_objects(moves, self._base, self._root.signs, False)
        return moved

    def _move(self, staged: StagedObject, known: set[bytes]) -> None:
        try:
            self._by_one_rename(staged, known)
        except (FileExistsError, NotADirectoryError):
            # The place is not free: report why, or handle it.
            self._root.check_place_free(staged.identifier, staged.place)
            self._root.move_in(staged.identifier, staged.path, staged.place)

    def _record(self, staged: StagedObject) -> StoreObject:
        dropped = staged.written.dropped if isinstance(staged.written, Written) else ()
        problems = dropped_directories(staged.place, dropped)
        return StoreObject(staged.identifier, decode_fs(staged.place), True, None, problems)

    def _by_one_rename(self, staged: StagedObject, known: set[bytes]) -> None:
        if self._root.is_elsewhere(staged.place):
            raise FileExistsError
        *above, name = staged.place.split(b"/")
        path = self._base
        for part in above:
            path += b"/" + part
            if path in known:
                continue
            try:
                os.mkdir(path)
            except FileExistsError:
                if not stat.S_ISDIR(os.lstat(path).st_mode) or self._root.declares_object(path):
                    raise
            known.add(path)
        rename_new(staged.path, path + b"/" + name)


def _text(identifier: str | bytes) -> str:
    return decode_fs(identifier) if isinstance(identifier, bytes) else identifier
