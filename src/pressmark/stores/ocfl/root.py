"""OCFL storage roots, versions 1.0 and 1.1: objects at the paths that their layout gives.

::

    <root>/
    ├── 0=ocfl_1.1                           the declaration
    ├── ocfl_layout.json                     names the layout
    ├── extensions/<layout>/config.json      its parameters
    ├── extensions/pressmark-staging/        during a change: see :mod:`pressmark.fs.staging`
    └── …/<object>/                          see :mod:`pressmark.stores.ocfl.checking.object_check`

An object appears and disappears by one rename, while a lock keeps other runs of Pressmark from moving anything. A new
version appears as :mod:`pressmark.stores.ocfl.writing.version_writer` describes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from pressmark.errors import ObjectError, StoreError, quoted, quoted_path
from pressmark.fixity.outcomes import Content
from pressmark.fs.names import encode_fs
from pressmark.option_names import option
from pressmark.progress_event import Progress
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.objects import (
    CopyMode,
    Data,
    Digests,
    ObjectSource,
    PathObject,
    RecordedFiles,
    StoreObject,
)
from pressmark.stores.ocfl.declarations import EXTENSIONS, is_object_name
from pressmark.stores.ocfl.inventory import Provenance
from pressmark.stores.ocfl.storage import Changes
from pressmark.stores.ocfl.storage_root import MESSAGE, FoundInventory, StorageRoot, check_user
from pressmark.stores.ocfl.unversioned import refuse_mutable_head
from pressmark.stores.selection import kept
from pressmark.stores.store_change import Removal
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from pressmark.reports import Problem
    from pressmark.stores.ingest import IngestResult
    from pressmark.stores.ocfl.checking.selected_objects import ObjectPath
    from pressmark.stores.ocfl.remote.remote_storage import RemoteStorage
    from pressmark.stores.ocfl.remote.server_digests import ServerDigests
    from pressmark.stores.ocfl.writing.bulk_writer import BulkWriter
    from pressmark.stores.ocfl.writing.edits import Edit

__all__ = ["OcflRoot"]

TRIES = 100  # attempts when other runs interfere


class OcflRoot(StorageRoot):
    """An OCFL storage root that can be checked, repaired and changed; see :class:`StorageRoot`."""

    def put(
        self,
        id: str | bytes,
        source: ObjectSource,
        *,
        replace: bool = False,
        copy_mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        exclude: Sequence[str] | str = (),
        one_file_system: bool = False,
        compare: bool = False,
        created: str | None = None,
        message: str | None = None,
        user: Mapping[str, str] | None = None,
        fixity: Mapping[str, Mapping[str, str]] | None = None,
        threads: int | None = None,
    ) -> StoreObject:
        """Store an object; with ``replace``, as a new version of an existing object.

        :param created: RFC 3339 date and time; :data:`None` for now
        :param message: message of the version; :data:`None` for the default of the root
        :param user: user of the version; :data:`None` for the default of the root
        :param fixity: known digests, by algorithm and logical path, for example from a manifest: they are compared with
            the copied content and stored in the inventory; if an algorithm has no digests, they are computed for all
            files
        :raises ObjectError: nothing was stored. Its ``kind`` is ``exists``, ``collision`` (another object has the
            path), ``object-inside`` (the path is inside or around another object), ``reserved``, ``mismatch`` (a digest
            differs from the given one), ``mutable-head`` (the object has staged content, extension 0005), ``bad-name``,
            ``source``, ``no-space``, …
        :raises IdentifierError: the identifier has no path in this store
        :raises StoreError: the layout is unknown
        """
        how = self._options(copy_mode, threads, created, message, user, fixity)
        if not replace:
            return self._put(id, source, False, copy_mode, links, exclude, one_file_system, compare, **how)
        source, excluded = self._selected(id, source, exclude, one_file_system, links)
        return self._replace(self._identifier(id), source, copy_mode, links, how).with_problems(excluded)

    def _replace(
        self, identifier: str, source: ObjectSource, mode: CopyMode, links: str, how: Mapping[str, Any]
    ) -> StoreObject:
        """Store a new version of an object, or a new object.

        :param how: from :meth:`_options`
        """
        found = self.look_up(identifier, anew=False)
        if found is None:
            self.refuse_misplaced()
        path = self._path_for(identifier, "put") if found is None else found.path
        with ExitStack() as stack:

            def attempt(found: FoundInventory | None) -> StoreObject:
                nonlocal source, mode
                source, mode = self._saved(identifier, source, mode, stack)
                with self._writer(mode, links) as writer:
                    return writer.put(identifier, source, found=found, **how)

            return self._attempted(identifier, path, attempt)

    def refuse_misplaced(self) -> None:
        """Check that new objects have a path; see :mod:`pressmark.stores.placement`.

        :raises StoreError: the layout is unknown, or objects are not where it says
        """
        layout = self._layout("put")
        if not self.layout_is_given:
            with store_errors(self.root):
                self.first_objects.refuse_misplaced(self.root, layout)

    def update(
        self,
        id: str | bytes | StoreObject,
        *,
        add: Mapping[str, PathObject | Data] | None = None,
        remove: Sequence[str] = (),
        rename: Mapping[str, str] | None = None,
        base: str | None = None,
        dedup: bool = True,
        copy_mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        created: str | None = None,
        message: str | None = None,
        user: Mapping[str, str] | None = None,
        fixity: Mapping[str, Mapping[str, str]] | None = None,
        threads: int | None = None,
    ) -> StoreObject:
        """Store a new version of an object with the given changes; all other files are kept.

        Only files in ``add`` are read. If nothing changes, no version is created.

        :param id: or the record of the object, from :meth:`objects`, :meth:`find` or :meth:`at`
        :param add: files to add or replace, by logical path: bytes, open binary files, or a :class:`pathlib.Path` of a
            file, or of a directory, whose files are added below the logical path; no ``str``, as for :meth:`put`
        :param remove: logical paths of files to remove
        :param rename: new logical paths of files, by old logical path; all files are renamed at once, so two files can
            exchange names
        :param base: the version to change; refused if it is not the newest version of the object
        :param dedup: do not store content that already exists in a version of the object: the stored file is read, and
            if it does not match its digest, the new content is stored, and the record has a warning
        :param created: as for :meth:`put`; also the parameters after it
        :param fixity: known digests of files in ``add``, as for :meth:`put`
        :raises ObjectError: nothing was stored. Its ``kind`` is ``missing`` (the object, or a file to remove or
            rename), ``collision`` (a path is specified twice, already exists, or would be a file and a directory),
            ``improper`` (the object is not valid), or as for :meth:`put`
        :raises IdentifierError: the identifier has no path in this store
        :raises StoreError: the layout is unknown, or OCFL does not allow an option
        """
        from pressmark.stores.ocfl.writing.edits import Edit  # not needed for a new object

        if isinstance(remove, (str, bytes)):
            raise TypeError("remove: expected a list of logical paths, not a string")
        how = self._options(copy_mode, threads, created, message, user, fixity)
        edit = Edit(add or {}, tuple(remove), rename or {})  # an iterator can be read once
        return self._edited(id, edit, base, copy_mode, links, {"dedup": dedup, **how})

    def restore(
        self,
        id: str | bytes | StoreObject,
        version: str | int,
        paths: Sequence[str] = (),
        *,
        verify: bool = True,
        created: str | None = None,
        message: str | None = None,
        user: Mapping[str, str] | None = None,
    ) -> StoreObject:
        """Store the files of an earlier version as a new version of an object, without copying content.

        All versions are kept. Content that comes back is read and compared with its digest. If nothing changes, no
        version is created.

        :param id: or the record of the object, from :meth:`objects`, :meth:`find` or :meth:`at`
        :param version: name or number of the version that comes back, such as ``v2``, ``v0002`` or 2
        :param paths: logical paths of files or directories: only these become as they were in ``version``, all other
            files are kept; without paths, the whole state comes back
        :param verify: read the content that comes back; without it, content files only have to exist
        :param created: as for :meth:`put`; also the parameters after it
        :param message: without one, it names the version that comes back, unless the root has a message of its own
        :raises ObjectError: nothing was stored. Its ``kind`` is ``missing`` (the object, the version, or a path in it),
            ``content-mismatch`` or ``content-missing`` (content is damaged or lost), ``unreadable``, ``collision`` (a
            path would be a file and a directory), ``improper`` (the object is not valid), or as for :meth:`put`
        :raises IdentifierError: the identifier has no path in this store
        :raises StoreError: the layout is unknown, or OCFL does not allow an option
        """
        from pressmark.stores.ocfl.writing.edits import Edit, Restored  # not needed for a new object

        if isinstance(paths, (str, bytes)):
            raise TypeError("paths: expected a list of logical paths, not a string")
        edit = Edit({}, restored=Restored(version, tuple(paths), verify))
        if message is None and self.message == MESSAGE:
            message = f"Restored {'files of ' if paths else ''}v{str(version).removeprefix('v')}"
        return self._edited(id, edit, None, "auto", "refuse", self._options("auto", None, created, message, user))

    def upgrade(
        self,
        ids: Iterable[str | bytes] | None = None,
        *,
        match: Sequence[str] | str = (),
        to: str | None = None,
        algorithm: str | None = None,
        dry_run: bool = False,
        ignore: Sequence[str] = (),
        problems: list[Problem] | None = None,
        created: str | None = None,
        message: str | None = None,
        user: Mapping[str, str] | None = None,
    ) -> Generator[IngestResult[StoreObject]]:
        """Give the objects of the root a later OCFL version or another digest algorithm, and yield the result of each.

        Each object gets a new version that refers to the content that is there; nothing is copied, and its earlier
        versions stay as they are. An object that has both already is not changed: its record has ``exists_same``. So an
        interrupted run is continued by the next one. Nothing is changed before the iteration begins.

        :param ids: as for :meth:`objects`, like ``match``, ``ignore`` and ``problems``
        :param to: OCFL version, such as ``1.1``. The root declares it first, even if only some objects are selected
        :param algorithm: digest algorithm: ``sha512`` or ``sha256``. All content of an object is read once and compared
            with its digests; an object with damaged or lost content is not changed
        :param dry_run: change nothing; the records of objects that would be changed do not have ``exists_same``
        :param created: as for :meth:`put`; also the parameters after it
        :raises StoreError: a value is not allowed, the root has a later version, or it cannot be changed
        """
        from pressmark.stores.ocfl.writing.edits import Edit, Form  # few runs upgrade objects
        from pressmark.stores.ocfl.writing.upgrading import check_form, check_removal, upgrade_objects, upgrade_root

        edit = Edit({}, form=Form(to, algorithm))
        check_form(self, edit.form)
        how = self._options("auto", None, created, message, user)
        self.refuse_undeclared()
        if not dry_run:
            check_removal(self)
        if to is not None and not dry_run:
            upgrade_root(self, to)
        records = self.objects(ids=ids, match=match, ignore=ignore, problems=problems)
        yield from upgrade_objects(
            self,
            records,
            edit,
            how["provenance"],
            lambda one: self._edited(one, edit, None, "auto", "refuse", how),
            dry_run,
        )

    def _edited(
        self,
        id: str | bytes | StoreObject,
        edit: Edit,
        base: str | None,
        mode: CopyMode,
        links: str,
        how: Mapping[str, Any],
    ) -> StoreObject:
        """Store the next version of an object.

        :param base: as for :meth:`update`
        :param how: from :meth:`_options`
        """
        name, existing = self.existing(id)
        path = existing.path
        with ExitStack() as stack:

            def attempt(found: FoundInventory | None) -> StoreObject:
                nonlocal edit, mode
                if found is None:
                    raise self._missing(name, path)
                if base not in (None, found.document.get("head")):
                    what = f"{base} is not the newest version; check the object, and repeat the change"
                    raise ObjectError(self.root, name, "changed", what)
                files, mode = self._saved(name, edit.add, mode, stack)
                edit = edit._replace(add=files)
                with self._writer(mode, links) as writer:
                    return writer.put(name, files, found=found, edit=edit, **how)

            return self._attempted(name, path, attempt)

    def _options(
        self,
        mode: CopyMode,
        threads: int | None = None,
        created: str | None = None,
        message: str | None = None,
        user: Mapping[str, str] | None = None,
        fixity: Mapping[str, Mapping[str, str]] | None = None,
    ) -> dict[str, Any]:
        """Return the options of writing an object or a version, except how files are copied.

        :raises StoreError: OCFL does not allow the mode, the date or the user
        """
        if mode == "hardlink":
            raise StoreError(self.root, f"OCFL forbids hard links (E090); use {option('copy_mode', 'auto')}")
        check_user(self._root, user)
        if created is not None:
            from pressmark.stores.ocfl.inventory_rules import is_date_time  # not needed without a date

            if not is_date_time(created):
                raise StoreError(self.root, f"created is {quoted(created)}; specify an RFC 3339 date and time")
        return {
            "provenance": Provenance(created, self.message if message is None else message, user or self.user),
            "fixity": fixity or {},
            "threads": threads,
        }

    def _saved(
        self, identifier: str, source: ObjectSource, mode: CopyMode, stack: ExitStack
    ) -> tuple[ObjectSource, CopyMode]:
        """Return a source for any number of attempts, and its mode: open files, which can be read once, are saved.

        :param stack: removes the saved files
        :raises ObjectError: it is no source, or a file cannot be read or saved
        """
        from pressmark.stores.object_sources import check_source, open_files, require_copied  # not needed for reading

        with object_errors(self.root, identifier):
            check_source(source)
        streams = open_files(source)
        if not streams:
            return source, mode
        assert isinstance(source, Mapping)
        from pressmark.fixity.copying import copy_files  # few sources are open files

        with object_errors(self.root, identifier):
            folder = stack.enter_context(self.storage.scratch())
            tasks = [
                (name, Content(cast("Data", source[name]), encode_fs(name)), os.path.join(folder, b"%d" % number))
                for number, name in enumerate(streams)
            ]
            for _name, outcome in copy_files(tasks, ()):
                require_copied(outcome)
        # As other content that is not in files.
        return {**source, **{name: Path(os.fsdecode(target)) for name, _content, target in tasks}}, "copy"

    def _attempted(
        self, identifier: str, path: bytes, attempt: Callable[[FoundInventory | None], StoreObject]
    ) -> StoreObject:
        """Change an object, again if another run has changed it meanwhile.

        :param attempt: called with the object that is there, or :data:`None`
        """
        for _ in range(TRIES):
            found = self.find_at(identifier, path)
            try:
                return attempt(found)
            except ObjectError as error:
                cause = error.__cause__
                if error.kind == "source":  # which may have been read in part
                    raise
                # Another run may remove a file, or take its name; other errors of the disk are not due to another run.
                if isinstance(cause, OSError) and not isinstance(cause, (FileNotFoundError, FileExistsError)):
                    raise
                if error.kind != "exists" and _is_as_found(self.find_at(identifier, path), found):
                    raise
        raise ObjectError(
            self.root, identifier, "changed", "other runs keep changing the object; run the command again"
        )

    def _run_directory(self) -> AbstractContextManager[Any]:
        """Return changes of the root; see :class:`pressmark.stores.store_change.ChangedStore`."""
        return self.changes()

    def withdraw(
        self, removal: Removal, identifier: str | bytes | StoreObject, check: Callable[[], object] | None
    ) -> list[bytes]:
        """Move an object out of the store; see :class:`pressmark.stores.store_change.ChangedStore`."""
        record = identifier if isinstance(identifier, StoreObject) else self.find(identifier)
        changes = cast("Changes", removal.staging)
        with changes.lock():
            name, found = self._recorded(record)
            entries = self.storage.scan(found.path)
            strange = [e.name for e in entries if e.kind == "directory" and not is_object_name(e)]
            if strange:
                what = f"the object contains {quoted_path(strange[0])}, possibly other objects"
                raise ObjectError(self.root, name, "object-inside", f"{what}; move it out of the object first")
            if check is not None:
                check()
            elif any(entry.name == EXTENSIONS for entry in entries):  # a move has copied all of it
                refuse_mutable_head(self.storage, self.root, name, found.path)
            return changes.withdraw(found.path)

    def _writer(
        self, mode: CopyMode, links: str = "refuse", replace: bool = False, *, durable_names: bool = True
    ) -> BulkWriter:
        from pressmark.stores.ocfl.writing.bulk_writer import BulkWriter  # not needed for reading

        def version(identifier: str, source: ObjectSource) -> StoreObject:
            return self._replace(identifier, source, mode, links, self._options(mode))

        return BulkWriter(self, mode, links, version if replace else None, durable_names=durable_names)

    def recorded_files(self, record: StoreObject) -> RecordedFiles:
        from pressmark.stores.ocfl.inventory_rules import inventory_errors  # not needed for a put

        identifier, found = self._recorded(record)
        if inventory_errors(found.document):
            what = f"{quoted_path(found.path)}: the inventory is not valid; check the store"
            raise ObjectError(self.root, identifier, "improper", what)
        algorithm = str(found.document["digestAlgorithm"])
        files = {
            encode_fs(path): (algorithm, digest.lower())
            for digest, paths in found.document["manifest"].items()
            for path in paths
        }
        return RecordedFiles(found.path, files, frozenset(), found.data)

    # --- all objects --------------------------------------------------------------------------------------------------

    def objects(
        self,
        *,
        ids: Iterable[str | bytes] | None = None,
        match: Sequence[str] | str = (),
        threads: int | None = None,
        ignore: Sequence[str] = (),
        problems: list[Problem] | None = None,
    ) -> Iterator[StoreObject]:
        """Yield every object in the order of the bytes of the paths, or the selected ones; see :meth:`Store.objects`.

        Identifiers are read from the inventories, and compared with the paths that the layout gives.
        """
        from pressmark.stores.ocfl.walk import walk_objects  # not needed for put

        count = resolve_threads(threads)
        paths = self._selected_paths(ids, match, count, ignore, problems is None)
        items = walk_objects(self.storage, self.misplacements, self.in_place, count, ignore, paths)

        def records() -> Iterator[StoreObject]:
            with store_errors(self.root):
                yield from kept(items, None if problems is None else problems.append)

        return records()

    def _selected_paths(
        self,
        ids: Iterable[str | bytes] | None,
        match: Sequence[str] | str,
        threads: int,
        ignore: Sequence[str],
        strict: bool,
    ) -> Iterator[ObjectPath | Problem] | None:
        """Return the selected objects; :data:`None` if no objects are selected."""
        if ids is None and not match:
            return None
        from pressmark.stores.ocfl.checking.selected_objects import selected_paths  # few runs select objects

        with store_errors(self.root):
            return selected_paths(self, ids, match, threads, ignore, strict)

    def check(
        self,
        *,
        ids: Iterable[str | bytes] | None = None,
        match: Sequence[str] | str = (),
        digests: Digests = False,
        digests_from: str | bytes | os.PathLike[str] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Check the root, its hierarchy, and every object strictly, or the selected objects; see :meth:`Store.check`.

        In object storage, the counts have the number of files by how they were verified: ``read``, ``stored``,
        ``report`` or ``unverified``; a report with unverified files is not :attr:`~Report.ok`.

        :param digests: compare all content with manifests and fixity blocks: ``"read"`` (or :data:`True`) reads it. In
            object storage, ``"stored"`` uses the digests that the server keeps, without reading the content
        :param digests_from: in object storage, a completion report of S3 Batch Operations (Compute checksum), or
            another table with digests in CSV: files in it that have not changed since are verified by it, all others by
            ``digests``, or not at all
        """
        from pressmark.stores.ocfl.check import Check

        with store_errors(self.root), ExitStack() as stack:
            server = self._server_digests(digests, digests_from, stack)
            reads = server is not None or bool(digests)
            count = resolve_threads(threads)
            check = Check(self, progress, server=server)
            paths = self._selected_paths(ids, match, count, ignore, False)
            return check.report(reads, count, ignore) if paths is None else check.report_on(paths, reads, count, ignore)

    def _server_digests(
        self, digests: Digests, report: str | bytes | os.PathLike[str] | None, stack: ExitStack
    ) -> ServerDigests | None:
        """Return the digests of the content of a storage root in object storage; :data:`None` if none are compared.

        :raises StoreError: it is not in object storage, or the report cannot be read
        """
        if self.bucket is None:
            self._reads_digests(digests, report)
            return None
        if not digests and report is None:
            return None
        from pressmark.buckets.checksum_report import ChecksumReport  # few checks read content in object storage
        from pressmark.stores.ocfl.remote.server_digests import ServerDigests

        storage = cast("RemoteStorage", self.storage)
        found = None
        if report is not None:
            with store_errors(os.fsencode(report)):
                name = storage.bucket.url.removeprefix("s3://")
                found = stack.enter_context(ChecksumReport(report, name, storage.prefix))
        return ServerDigests(storage, "read" if digests is True else digests or "", found)

    def repair(
        self,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
        ignore: Sequence[str] = (),
        alone: bool = False,
    ) -> Report:
        """Repair unambiguous problems without losing data; see :mod:`pressmark.stores.ocfl.repair`.

        :param alone: no other program writes to the root: in object storage, also remove what interrupted runs have
            left within a day
        """
        from pressmark.stores.ocfl.repair import repair

        with store_errors(self.root):
            return repair(self, dry_run, progress, ignore, alone=alone)


def _is_as_found(now: FoundInventory | None, found: FoundInventory | None) -> bool:
    """Return whether two lookups found the same object at the same path, or none."""
    if now is None or found is None:
        return now is found
    return (now.path, now.data) == (found.path, found.data)
