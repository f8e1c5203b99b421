"""Changes to a Vitro store: put, replace and remove objects, and declare namespaces."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from pressmark.errors import IdentifierError, ObjectError, StoreError, quoted
from pressmark.fs.atomic import Replacement, replace_file
from pressmark.fs.durable import exists, flush_directory
from pressmark.fs.moves import make_parents, prune_empty_parents, rename_new
from pressmark.fs.names import decode_fs, encode_fs, existing_spelling, is_blocked, is_case_insensitive, too_long
from pressmark.fs.staging import RunDirectory
from pressmark.fs.trees import scan
from pressmark.layouts import Layout, Vitro
from pressmark.reports import Report
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.object_sources import check_source
from pressmark.stores.objects import CopyMode, ObjectSource, OnEvent, Path, StoreObject, encode_path
from pressmark.stores.staging_writer import CopyingWriter, StagedCopy
from pressmark.stores.store_change import Removal, above
from pressmark.stores.vitro.namespaces import NAMESPACES, read_namespaces, render, with_declared
from pressmark.stores.vitro.vitro_reader import JOURNAL, ROOT, WORK_DIRECTORY, Renaming, VitroReader

__all__ = ["VitroStore", "VitroWriter"]


class VitroStore(VitroReader):
    """An existing Vitro store that can be changed; :meth:`create` creates one; see :class:`VitroReader`."""

    @classmethod
    def create(
        cls, path: Path, layout: Layout | None = None, *, namespaces: Iterable[str] = (), **options: Any
    ) -> VitroStore:
        """Create an empty Vitro store in a directory that is empty or does not exist, and open it.

        :param layout: a :class:`pressmark.Vitro` whose prefixes and namespaces are used
        :param namespaces: additional namespaces; each gets the first free letter (section "Namespaces")
        :param options: arguments of the class
        :raises StoreError: the directory is not empty or cannot be written, or a namespace is invalid
        """
        given: Mapping[str, str] = {}
        if layout is not None:
            if not isinstance(layout, Vitro):
                raise StoreError(encode_path(path), f"a Vitro store uses the layout vitro, not {layout.name}")
            given = dict(layout.namespaces)
        base = encode_path(path)
        # Namespaces of the layout are checked like declared ones.
        with_declared(base, {}, given.values())
        wanted = with_declared(base, given, namespaces)
        with store_errors(base):
            os.makedirs(base, exist_ok=True)
            # Files of an interrupted creation are overwritten.
            strangers = sorted(set(os.listdir(base)) - cls.unfinished_names)
            if strangers:
                raise StoreError(
                    base, f"the directory contains {decode_fs(strangers[0])!r}; specify an empty or new directory"
                )
            if exists(os.path.join(base, NAMESPACES)) and read_namespaces(base).namespaces != wanted:
                raise StoreError(
                    base, f"the directory contains the namespaces of another store, whose {ROOT} is missing; restore it"
                )
            with RunDirectory(os.path.join(base, WORK_DIRECTORY)) as staging, staging.lock():
                _write(staging, base, wanted, "utf-8")
                # Last, because this makes the directory a store.
                os.mkdir(os.path.join(base, encode_fs(ROOT)))
            flush_directory(base)
        return cls(path, **options)

    def declare(self, *namespaces: str) -> None:
        """Declare namespaces that the store does not have; each gets the first free letter.

        Existing objects in a new namespace become hidden: :meth:`check` lists them, :meth:`repair` moves them.

        :raises StoreError: a namespace is invalid, or no letter is available; nothing was written
        """
        with store_errors(self._base), RunDirectory(self._work_directory()) as staging, staging.lock():
            self._read()  # another run may have declared namespaces
            self.refuse_changes()
            wanted = with_declared(self._base, self.namespaces, namespaces)
            if wanted != self.namespaces:
                _write(staging, self._base, wanted, self._encoding)
            self._read()

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
    ) -> StoreObject:
        """Store an object atomically.

        :param source: one file: its path, a directory that contains only this file, or a mapping with its name in the
            object; names may contain any characters up to U+00FF
        :param replace: replace the existing file in one step, even if it has a different name
        :raises ObjectError: nothing was stored; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in this store
        """
        return self._put(identifier, source, replace, mode, links, exclude, compare)

    def writer(
        self, mode: CopyMode, links: str = "refuse", replace: bool = False, *, durable_places: bool = True
    ) -> VitroWriter:
        self.refuse_changes()
        return VitroWriter(self, self._tree, mode, links, replace, durable_places=durable_places)

    def _new_file(self, identifier: str | bytes, place: str, source: ObjectSource, links: str) -> tuple[bytes, Any]:
        """Return the stored name of the one file of a source, and its path or content.

        :raises ObjectError: the source is not one file, or its name cannot be stored
        """
        name, content = self._source(identifier, source, links)
        try:
            stored = encode_fs(self.layout.object_path(identifier, name).rpartition("/")[2])
        except IdentifierError as error:
            reason = f"file name {quoted(error.identifier)}: {error.reason}; rename the file"
            raise ObjectError(self.root, identifier, "bad-name", reason) from None
        reason = too_long(self._tree, encode_fs(place) + b"/" + stored) or ""
        if reason:
            raise ObjectError(self.root, identifier, "bad-name", f"{reason}; use a shorter identifier or file name")
        return stored, content

    def _refuse_directory(self, identifier: str | bytes, path: bytes) -> None:
        if not os.path.isfile(path):
            raise ObjectError(
                self.root, identifier, "source", "not a regular file, which a Vitro object is; specify a file"
            )

    def _source(self, identifier: str | bytes, source: ObjectSource, links: str) -> tuple[str, Any]:
        """Return name and path of the one file of a source, or its content."""
        check_source(source)
        count = 1
        if isinstance(source, Mapping):
            count = len(source)
            if count == 1:
                return next(
                    (decode_fs(name) if isinstance(name, bytes) else name, content) for name, content in source.items()
                )
        else:
            path = os.fsencode(source)
            if not os.path.isdir(path):
                return decode_fs(os.path.basename(path)), os.fsdecode(path)
            entries = scan(path, follow=False)
            count = len(entries)
            # Links inside the source are followed only on request.
            if count == 1 and (entries[0].kind == "file" or (entries[0].kind == "link" and links == "follow")):
                return decode_fs(entries[0].name), os.fsdecode(os.path.join(path, entries[0].name))
        what = (
            f"the source contains {count} names"
            if count != 1
            else f"{decode_fs(entries[0].name)!r} in the source is not a regular file"
        )
        raise ObjectError(self.root, identifier, "source", f"{what}, but a Vitro object is one file; specify that file")

    def _refuse(self, identifier: str | bytes, place: str, stored: bytes, replace: bool) -> None:
        """Check that a file can be stored, before anything is written.

        :raises ObjectError: the object cannot be stored
        """
        at = self._tree
        for name in encode_fs(place).split(b"/"):
            at = os.path.join(at, name)
            if is_blocked(at):
                shorter = decode_fs(os.path.relpath(at, self._base))
                reason = f"{shorter} is a file of another object, but must be a directory; rename that file"
                raise ObjectError(self.root, identifier, "collision", reason)
        link = self._link(place)
        if link is not None:
            reason = f"{link} is a symbolic link, which is not followed; replace the link with its target"
            raise ObjectError(self.root, identifier, "collision", reason)
        if is_case_insensitive(self._tree):
            clash = existing_spelling(self._tree, encode_fs(place))
            if clash is not None:
                reason = f"{decode_fs(clash)!r} differs only in case, which this file system ignores"
                raise ObjectError(self.root, identifier, "collision", f"{reason}; use a case-sensitive file system")
        target = os.path.join(at, stored)
        if os.path.isdir(target) or os.path.islink(target):
            reason = f"{ROOT}/{place}/{decode_fs(stored)} exists and is a directory of other objects or a link"
            raise ObjectError(self.root, identifier, "collision", f"{reason}; rename the file")
        files = self._files(place)
        if len(files) > 1:
            self._only_file(identifier, place)
        if files and not replace:
            reason = f"object exists at {ROOT}/{place}; use another identifier, or --replace"
            raise ObjectError(self.root, identifier, "exists", reason)

    def _move_in(self, new: bytes, place: str, stored: bytes) -> None:
        """Publish a staged file, in place of the existing one. Its name is not flushed."""
        directory = os.path.join(self._tree, encode_fs(place))
        files = self._files(place)
        try:
            if not files:
                make_parents(self._tree, encode_fs(place))
                rename_new(new, os.path.join(directory, stored))
            elif files == [stored]:
                os.replace(new, os.path.join(directory, stored))
            else:
                # First the content, then the name: the object is one complete file at every moment.
                self._note(Renaming(place, decode_fs(files[0]), decode_fs(stored), os.stat(new).st_ino))
                os.replace(new, os.path.join(directory, files[0]))
                self._settle()
        except BaseException:
            prune_empty_parents(self._tree, encode_fs(place), strict=False)
            raise

    def _note(self, renaming: Renaming) -> None:
        """Record a renaming, so that the next run completes it after a kill."""
        path = os.path.join(self._work_directory(), JOURNAL)
        with Replacement(path, part=path + b".new", durable=self.durable) as file:
            file.write(json.dumps(renaming).encode())

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
            identifier = identifier.id or identifier.path
        if place is None:
            raise self._missing(identifier, self.layout.map_id(identifier))
        self._only_file(identifier, place)
        to = removal.new_path()
        with removal.staging.lock():
            self._settle()
            if check is not None:
                check()
            stored = os.path.join(encode_fs(place), self._only_file(identifier, place))
            os.rename(os.path.join(self._tree, stored), to)
            prune_empty_parents(self._tree, encode_fs(place), strict=False)
        return above(self._tree, stored)

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Repair unambiguous problems, and report the remaining ones.

        =========== ==========================================================================================
        ``finish``  an interrupted change is completed
        ``move``    an object hidden by a namespace is moved to its current path, if that is free
        ``prune``   empty directories are removed
        ``remove``  temporary directories of killed runs are removed
        ``rename``  a file is renamed as Vitro encodes its name, if the new name is free
        =========== ==========================================================================================

        Identifiers, decoded file names and contents do not change. A second repair changes nothing.
        """
        from pressmark.stores.vitro.repair import Repair

        self.refuse_changes()
        run = Repair(self, dry_run, on_event)
        with store_errors(self._base):
            return run.run(ignore)


def _write(staging: RunDirectory, base: bytes, namespaces: Mapping[str, str], encoding: str) -> None:
    """Write the namespaces file atomically."""
    path = os.path.join(base, NAMESPACES)
    try:
        data = render(namespaces).encode(encoding)
    except UnicodeEncodeError:
        raise StoreError(path, f"a namespace cannot be written in {encoding}") from None
    replace_file(path, data, part=staging / NAMESPACES)


# --- many objects -----------------------------------------------------------------------------------------------------


class VitroWriter(CopyingWriter):
    """Write objects to a Vitro store.

    :param store: the store
    :param mode: as for :meth:`VitroStore.put`, like ``links`` and ``replace``
    """

    _store: VitroStore
    _is_directory = False

    def prepare(
        self, identifier: str | bytes, source: ObjectSource, *, links: str | None = None, **copying: Any
    ) -> int:
        """Stage an object; see :meth:`StagingWriter.prepare`.

        :param copying: options of :meth:`CopyingWriter.copy`, like ``links``
        """
        store = self._store
        store.refuse_changes()
        place = store._existing_place(identifier) or store.layout.map_id(identifier)
        with object_errors(store.root, identifier):
            stored, content = store._new_file(identifier, place, source, links or self._links)
            # Everything else is checked when the object is published.
            if exists(os.path.join(self._base, encode_fs(place))):
                store._refuse(identifier, place, stored, self._replaces)

            def copy(new: bytes) -> tuple[int, bytes]:
                folder = self.new_path()
                size, _longest = self.copy({decode_fs(stored): content}, folder, links=links, **copying)
                store._refuse_directory(identifier, os.path.join(folder, stored))
                os.rename(os.path.join(folder, stored), new)
                os.rmdir(folder)
                return size, b""

            return self._stage(identifier, encode_fs(place) + b"/" + stored, copy)

    def _paths(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> list[str | None]:
        self._store.refuse_changes()
        # Sources without a path are not copied here.
        names = [os.path.basename(os.fsencode(s)) if isinstance(s, (str, os.PathLike)) else b"" for _, s in objects]
        identifiers = [identifier for identifier, _source in objects]
        hidden = self._store._hidden_places(identifiers)
        # A hidden object is looked for one by one.
        return [
            None if before is not None and exists(os.path.join(self._base, encode_fs(before))) else path
            for path, before in zip(self._store.layout.object_paths(identifiers, names), hidden, strict=True)
        ]

    def _begin_turn(self) -> None:
        self._store._settle()
        super()._begin_turn()

    def _move_checked(self, staged: StagedCopy) -> None:
        place, stored = os.path.split(staged.place)
        self._store._refuse(staged.identifier, decode_fs(place), stored, self._replaces)
        self._store._move_in(staged.path, decode_fs(place), stored)

    def _record(self, staged: StagedCopy) -> StoreObject:
        place, stored = os.path.split(staged.place)
        if staged.text is None:
            return self._store._object(decode_fs(place), encode_fs(ROOT) + b"/" + place, [stored], None)
        return StoreObject(staged.text, f"{ROOT}/{decode_fs(place)}", True, None, ())
