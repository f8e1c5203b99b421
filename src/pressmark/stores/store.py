"""The interface of every store: list, check, repair, put, get and remove objects by identifier."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, MutableSequence, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pressmark.errors import IdentifierError, ObjectError, StoreError, quoted
from pressmark.layouts import Layout
from pressmark.option_names import option
from pressmark.progress_event import Progress
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import check_identifier
from pressmark.stores.objects import CopyMode, Digests, ObjectSource, RecordedFiles, StoreObject
from pressmark.stores.store_change import ChangedStore, Removal

if TYPE_CHECKING:
    from pressmark.buckets.bucket import Bucket
    from pressmark.stores.ingest import Ingest, IngestResult, Selected
    from pressmark.stores.staging_writer import StagingWriter
    from pressmark.stores.stored_object import StoredObject

__all__ = ["Store"]


class Store(ChangedStore):
    """Objects by identifier, in a directory.

    :ivar layout: maps identifiers to paths; :data:`None` if unknown
    :ivar bucket: the bucket that contains the store; :data:`None` for a store on a disk
    """

    #: The name of the kind, as for :func:`pressmark.stores.open` and ``--kind``.
    kind: ClassVar[str]
    #: The names in the store's directory while the store is created, before it is recognized as a store.
    unfinished_names: ClassVar[frozenset[bytes]]
    layout: Layout | None
    bucket: Bucket | None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.root!r}>"

    def __contains__(self, identifier: str | bytes) -> bool:
        """Return whether the store has an object: see :meth:`exists`."""
        return self.exists(identifier)

    def __len__(self) -> int:
        """Return the number of objects. Every call walks the whole store, as :meth:`objects` does.

        :raises StoreError: the store cannot be read
        """
        return sum(1 for _ in self.objects())

    def __bool__(self) -> bool:
        # Without it, "if store:" would walk the store, and an empty store would be false.
        return True

    @staticmethod
    def is_reserved(path: bytes) -> bool:
        """Return whether the store reserves a path for itself: no object can have it.

        :param path: the path of an object, relative to the store's root
        """
        return False

    @abstractmethod
    def objects(
        self,
        *,
        ids: Iterable[str | bytes] | None = None,
        match: Sequence[str] | str = (),
        threads: int | None = None,
        ignore: Sequence[str] = (),
        problems: list[Problem] | None = None,
    ) -> Iterator[StoreObject]:
        """Yield every object lazily, in an order that does not depend on the file system, or the selected ones.

        Files and directories outside of all objects are added to ``problems``, so every file is accounted for; if
        objects are selected, only unreadable directories where one may be.

        :param ids: yield only the objects with these identifiers; they are read lazily, and a path selects the object
            there if no object has it as its identifier. A layout finds each object without a walk, in this order;
            otherwise one walk looks for many. An object that is not found is a problem of kind ``object-missing``, or
            an error without ``problems``
        :param match: yield only the objects whose whole identifier matches one of these globs, such as
            ``ark:/13030/*``. An object whose identifier cannot be read is yielded, too
        :param threads: number of threads that read directories; :data:`None` for one per core
        :param ignore: globs of names to ignore, such as ``.DS_Store``
        :param problems: receives each problem outside of objects before the next object is yielded
        :raises ObjectError: an object of ``ids`` is not found, and ``problems`` is :data:`None`
        :raises StoreError: the store cannot be read
        :raises ValueError: both ``ids`` and ``match`` are given, or a glob is empty
        """

    @abstractmethod
    def get(self, id: str | bytes) -> StoredObject:
        """Return an object.

        :raises ObjectError: of kind ``missing``: the store has no such object
        :raises IdentifierError: the identifier has no path in this store
        """

    @abstractmethod
    def find(self, id: str | bytes) -> StoreObject:
        """Return the record of an object, as :meth:`objects` yields it.

        :raises ObjectError: of kind ``missing``: the store has no such object; of kind ``duplicate-id``: it has several
        :raises IdentifierError: the identifier has no path in this store
        """

    def exists(self, id: str | bytes) -> bool:
        """Return whether the store has an object, in any state, or several; it takes as long as :meth:`find`.

        An identifier without a path in this store has no object.

        :raises ObjectError: the object cannot be read
        """
        try:
            self.find(id)
        except IdentifierError:
            return False
        except ObjectError as error:
            # The path of the identifier may have an object with another one.
            if error.kind in ("missing", "collision"):
                return False
            if error.kind != "duplicate-id":
                raise
        return True

    @abstractmethod
    def at(self, path: str) -> StoreObject | None:
        """Return the record of the object at a path; :data:`None` without such an object.

        :param path: as in the records of :meth:`objects`, relative to the root of the store
        """

    @abstractmethod
    def locate(self, record: StoreObject) -> StoredObject:
        """Return the object of a record of :meth:`objects`, even if it is not at the path of its identifier.

        :raises ObjectError: of kind ``missing``: the object was removed
        """

    def _duplicate(self, identifier: str | bytes, paths: Sequence[str]) -> ObjectError:
        """Return the error that several objects have one identifier.

        :param paths: of the first two or more of them
        """
        reason = f"{quoted(paths[0])} and {quoted(paths[1])} both have this identifier; specify the path of one of them"
        return ObjectError(self.root, identifier, "duplicate-id", reason)

    def refuse_changes(self) -> None:
        """Raise an error if the store is known to be read-only.

        :raises StoreError: the store is read-only
        """

    def refuse_misplaced(self) -> None:
        """Check that new objects have a path; see :mod:`pressmark.stores.placement`.

        :raises StoreError: the layout is unknown, or objects are not where it says
        """

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
    ) -> StoreObject:
        """Store an object atomically.

        :param source: the path of a file or a directory, or a mapping of names in the object to their content:
            :class:`bytes`, open binary files, which are read to their end, or a :class:`pathlib.Path` of a file or
            directory; no ``str``, which could be either. An empty mapping or directory is an object without files (in
            OCFL, a version with an empty state); a Vitro store refuses it, because each of its objects is a file
        :param replace: replace an existing object
        :param copy_mode: ``copy`` the bytes, share them (``reflink``, ``hardlink``), or ``auto``: reflink if the file
            system supports it, copy otherwise
        :param links: ``"refuse"`` symbolic links in the source, or ``"follow"`` them and copy their targets
        :param exclude: globs of the names of files and directories below the source to leave out, such as
            ``.DS_Store``; the record has a problem of the kind ``excluded`` for each
        :param one_file_system: leave out directories on other file systems than the source, such as mount points, too
        :param compare: compare an existing object with the source by reading both: if they have the same files, return
            the record of the object, with ``exists_same``. Otherwise an existing object is an error of kind ``exists``
        :raises ObjectError: nothing was stored; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in this store
        :raises ObjectTypeError: the source is of another type
        :raises TypeError: the identifier is neither ``str`` nor ``bytes``
        """
        return self._put(id, source, replace, copy_mode, links, exclude, one_file_system, compare)

    def _put(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        replace: bool,
        mode: CopyMode,
        links: str,
        exclude: Sequence[str] | str,
        one_file_system: bool,
        compare: bool,
        **options: Any,
    ) -> StoreObject:
        """Store one object as :meth:`ingest` stores many; see :meth:`put`.

        :param options: of the ``prepare`` of :meth:`_writer`
        """
        check_identifier(identifier)
        if not replace:
            self.refuse_misplaced()
        source, excluded = self._selected(identifier, source, exclude, one_file_system, links)
        try:
            with self._writer(mode, links, replace) as writer:
                record = writer.put(identifier, source, **options)
        except ObjectError as error:
            if not compare:
                raise
            record = self._existing(identifier, source, error, links, options.get("info"))
        return record.with_problems(excluded)

    def _selected(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        exclude: Sequence[str] | str,
        one_file_system: bool,
        links: str,
    ) -> tuple[ObjectSource, tuple[Problem, ...]]:
        """Return a source without the excluded files and directories, and a problem for each of these.

        :raises ObjectError: the source cannot be stored
        """
        if not exclude and not one_file_system:
            return source, ()
        from pressmark.stores.object_sources import select_source  # few runs exclude files

        return select_source(self.root, identifier, source, exclude, one_file_system, links)

    def _existing(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        error: ObjectError,
        links: str,
        info: Mapping[str, str] | None = None,
    ) -> StoreObject:
        """Return the record of an existing object that is equal to a source.

        :param error: of storing the source; raised if the object is not equal
        :param info: elements that the bag-info.txt of a bag must contain
        """
        from pressmark.stores.same_content import equal_object  # few runs compare objects

        find = partial(self.get, identifier)
        found = None
        if error.kind == "exists":
            follow = links == "follow"
            found = equal_object(self.root, self.kind, find, source, follow, info, is_local=self.bucket is None)
        if found is None:
            raise error
        return found

    def ingest(
        self,
        *,
        replace: bool = False,
        copy_mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        exclude: Sequence[str] | str = (),
        one_file_system: bool = False,
        compare: bool = False,
        results: MutableSequence[IngestResult[StoreObject]] | None = None,
        max_objects: int = 1_000,
        max_seconds: float = 1.0,
    ) -> Ingest:
        """Return a context manager that stores many objects, each atomically.

        ::

            with store.ingest() as batch:
                batch.put_all(items)  # pairs of identifier and source
                batch.put(identifier, source)

        Objects are published and flushed to disk in batches, and ``results`` receives their results when that is done.
        Without ``results``, the end of the ``with`` block raises an error if objects were not stored.

        :param replace: as for :meth:`put`; also the parameters after it
        :param results: a list or :class:`~collections.deque` that receives the result of each object, in the order in
            which they were put; take them out as you go
        :param max_objects: the number of objects in a batch
        :param max_seconds: a batch older than this is published by the next :meth:`put`
        :raises IngestError: at the end: some objects were not stored, and ``results`` is :data:`None`
        :raises StoreError: the store cannot be written to
        """
        from pressmark.stores.ingest import Ingest  # one object needs no batch

        if not replace:
            self.refuse_misplaced()
        exclude = exclude if isinstance(exclude, str) else tuple(exclude)  # an iterator can be read once

        def select(identifier: str | bytes, source: ObjectSource) -> Selected:
            selected, excluded = self._selected(identifier, source, exclude, one_file_system, links)
            return selected, lambda record: record.with_problems(excluded)

        writer = self._writer(copy_mode, links, replace)
        return Ingest(
            self.root,
            writer,
            find_stored=partial(self._existing, links=links) if compare else writer.again,
            select=select if exclude or one_file_system else None,
            results=results,
            max_objects=max_objects,
            max_seconds=max_seconds,
        )

    def put_all(
        self,
        objects: Iterable[tuple[str | bytes, ObjectSource] | None],
        *,
        replace: bool = False,
        copy_mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        exclude: Sequence[str] | str = (),
        one_file_system: bool = False,
        compare: bool = False,
        max_objects: int = 1_000,
        max_seconds: float = 1.0,
    ) -> Generator[IngestResult[StoreObject]]:
        """Store many objects, each atomically, and yield the result of each, in order, once it is on disk.

        Nothing is stored before the iteration begins. Objects are published in batches, as by :meth:`ingest`. If
        ``objects`` raises an exception, the objects before it are stored, and their results are yielded before it is
        raised again. If the iterator is closed, the objects that it has read are stored, but have no result.

        ::

            for result in store.put_all(items):
                if result.error is not None:
                    print(result.error)

        :param objects: pairs of identifier and source, read lazily; :data:`None` publishes the waiting objects, before
            a pause
        :param replace: as for :meth:`put`; also the parameters after it
        :param max_objects: as for :meth:`ingest`, with ``max_seconds``
        :raises StoreError: the store cannot be written to
        """
        results: deque[IngestResult[StoreObject]] = deque()
        batch = self.ingest(
            replace=replace,
            copy_mode=copy_mode,
            links=links,
            exclude=exclude,
            one_file_system=one_file_system,
            compare=compare,
            results=results,
            max_objects=max_objects,
            max_seconds=max_seconds,
        )
        raised: BaseException | None = None
        try:
            with batch:
                for _ in batch.steps(objects):
                    while results:
                        yield results.popleft()
        except GeneratorExit:
            raise
        except BaseException as error:
            raised = error
        while results:
            yield results.popleft()
        if raised is not None:
            raise raised

    @abstractmethod
    def _writer(
        self, mode: CopyMode, links: str = "refuse", replace: bool = False, *, durable_names: bool = True
    ) -> StagingWriter[Any]:
        """Return what :meth:`put` and :meth:`ingest` write objects with; its parameters are theirs.

        :param durable_names: flush the names of published objects; otherwise the caller must
        :raises StoreError: no object can be stored
        """

    def delete(self, id: str | bytes | StoreObject, *, check: Callable[[], object] | None = None) -> None:
        """Remove one object, and the directories above it that become empty.

        :param id: or the record of the object, from :meth:`objects`, :meth:`find` or :meth:`at`
        :param check: called while no other run of Pressmark can change the object, just before it is removed; the
            object stays if this raises an exception
        :raises ObjectError: nothing was removed; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in this store
        """
        with Removal(self) as removal:
            removal.remove(id, check)

    @abstractmethod
    def check(
        self,
        *,
        ids: Iterable[str | bytes] | None = None,
        match: Sequence[str] | str = (),
        digests: Digests = False,
        threads: int | None = None,
        progress: Progress | None = None,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Check the whole store, or the selected objects, and return a report of all problems.

        If objects are selected, problems outside of objects are not looked for.

        :param ids: check only the objects with these identifiers; see :meth:`objects`
        :param match: check only the objects with identifiers that match one of these globs; see :meth:`objects`
        :param digests: also read the files and compare them with the digests in the store; ``"stored"`` is only for
            OCFL storage roots in object storage
        :param threads: as for :meth:`objects`
        :param progress: objects checked; the problems found so far have ``failed``
        :param ignore: globs of names to ignore
        :raises StoreError: the store cannot be read
        :raises ValueError: both ``ids`` and ``match`` are given, or a glob is empty
        """

    def _reads_digests(self, digests: Digests, report: object = None) -> bool:
        """Return whether a check reads the content.

        :raises StoreError: the digests of a server are asked for
        """
        if digests == "stored" or report is not None:
            used = option("digests_from") if report is not None else option("digests", "stored")
            what = f"{used} requires an OCFL storage root in object storage; use {option('digests', True)}"
            raise StoreError(self.root, what)
        return bool(digests)

    def repair(self, *, dry_run: bool = False, progress: Progress | None = None, ignore: Sequence[str] = ()) -> Report:
        """Repair unambiguous problems without losing data, and return a report of the remaining problems.

        The changes are the ``steps`` of the report, each a :class:`RepairStep`.

        :param dry_run: report the changes without making them
        :param progress: can cancel the repair between two changes
        :param ignore: globs of names to ignore
        :raises StoreError: stores of this kind cannot be repaired
        """
        raise StoreError(self.root, f"stores of kind {self.kind} cannot be repaired; restore the damaged files")

    def recorded_files(self, record: StoreObject) -> RecordedFiles:
        """Return the files that an object must have, with the digests that it records.

        :param record: of :meth:`objects`, :meth:`find` or :meth:`at`
        :raises ObjectError: the object cannot be read
        :raises StoreError: objects of this kind have no digests
        """
        what = f"objects of stores of kind {self.kind} record no digests; compare them with a copy"
        raise StoreError(self.root, what)
