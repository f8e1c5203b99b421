"""The interface of every store: list, check, repair, put, get and remove objects by identifier."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from pressmark.errors import ObjectError, StoreError, quoted
from pressmark.layouts import Layout
from pressmark.reports import Problem, Progress, Report

if TYPE_CHECKING:
    from pressmark.stores.ingest import Ingest, IngestResult, IngestWriter
    from pressmark.stores.stored_object import StoredObject

__all__ = [
    "CopyMode",
    "Data",
    "Event",
    "ObjectSource",
    "OnEvent",
    "OnProblem",
    "Readable",
    "RecordedFiles",
    "RepairStep",
    "SourcePath",
    "Store",
    "StoreObject",
    "encode_path",
]

#: A path, as ``str``, bytes or :class:`os.PathLike`.
Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class Readable(Protocol):
    """A file that is open in binary mode, such as an upload or :class:`io.BytesIO`."""

    def read(self, size: int, /) -> bytes: ...


Data = bytes | bytearray | memoryview | Readable
SourcePath = str | os.PathLike[str] | os.PathLike[bytes]
#: The source of an object: a file, a directory, or a mapping of names in the object to their content: files or
#: directories to copy, bytes, or open binary files.
ObjectSource = SourcePath | Mapping[str, SourcePath | Data]
#: How files get into a store; ``auto`` is ``reflink`` if the file system supports it, else ``copy``.
CopyMode = Literal["auto", "copy", "reflink", "hardlink"]
OnProblem = Callable[[Problem], object]


class RepairStep(NamedTuple):
    """An event: one change that a repair made, or would make.

    :ivar action: a stable word: ``encapsulate``, ``finish``, ``prune``, ``remove``, …
    :ivar path: the changed path, relative to the store's root
    :ivar names: names moved or removed there
    """

    action: str
    path: bytes
    names: tuple[bytes, ...] = ()


Event = Progress | RepairStep
OnEvent = Callable[[Event], object]


def encode_path(path: Path) -> bytes:
    """Return the path of a store as bytes.

    :raises StoreError: no file can have this path
    """
    try:
        given = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise StoreError(str(error.object), "the path cannot be encoded as a file name; choose another path") from None
    if b"\0" in given:
        raise StoreError(given, "the path contains a NUL character; choose another path")
    return given


class StoreObject(NamedTuple):
    """One object in the listing of a store.

    :ivar id: the identifier; surrogates of :func:`os.fsdecode` stand for bytes that are not UTF-8; :data:`None` if the
        identifier cannot be read
    :ivar path: the object's path, relative to the store's root, with ``/``; surrogates as in ``id``
    :ivar proper: whether the object conforms to the specification
    :ivar encapsulation: the name of the encapsulating directory of a Pairtree object, or :data:`None`
    :ivar problems: the object's problems; a proper object may have some
    :ivar version: the newest version after a change of an existing OCFL object, such as ``v2``; otherwise :data:`None`
    :ivar changes: the effect of the change: the number of files ``added``, ``removed``, ``changed``, ``renamed`` and
        ``unchanged``, and the number of files ``restored`` because the stored content is damaged, if there are any;
        :data:`None` without ``version``
    :ivar exists_same: whether a put found an object with the same content, and stored nothing
    """

    id: str | None
    path: str
    proper: bool
    encapsulation: str | None
    problems: tuple[Problem, ...]
    version: str | None = None
    changes: Mapping[str, int] | None = None
    exists_same: bool = False

    def with_problems(self, problems: tuple[Problem, ...]) -> StoreObject:
        """Return the object with more problems."""
        return self._replace(problems=(*self.problems, *problems)) if problems else self

    def record(self) -> dict[str, Any]:
        """Return the object as a JSON-compatible dictionary. ``version`` and ``changes`` are omitted if they are
        :data:`None`, and ``exists_same`` if it is false.
        """
        record = {**self._asdict(), "problems": [problem.record() for problem in self.problems]}
        for key in ("version", "changes", "exists_same"):
            if record[key] in (None, False):
                del record[key]
        return record


class RecordedFiles(NamedTuple):
    """The files that an object must have.

    :ivar place: the object's directory, relative to the root of its store
    :ivar files: algorithm and digest of each file, by its path in that directory
    :ivar describing: those of the files that describe others, such as manifests
    :ivar proof: is another value after any change of what the object records
    """

    place: bytes
    files: dict[bytes, tuple[str, str]]
    describing: frozenset[bytes]
    proof: Any


class Store(ABC):
    """Objects by identifier, in a directory.

    :ivar root: the store's directory
    :ivar layout: maps identifiers to paths; :data:`None` if unknown
    """

    #: The name of the kind, as for :func:`pressmark.stores.open` and ``--kind``.
    kind: ClassVar[str]
    #: The names in the store's directory while the store is created, before it is recognized as a store.
    unfinished_names: ClassVar[frozenset[bytes]]
    #: Leaves out files of a source: :func:`pressmark.stores.object_sources.select_source`.
    _select: ClassVar[Callable[..., tuple[ObjectSource, tuple[Problem, ...]]]]
    #: Returns the record of an equal object: :func:`pressmark.stores.same_content.existing_object`.
    _existing: ClassVar[Callable[..., StoreObject]]
    root: str
    layout: Layout | None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.root!r}>"

    @cached_property
    def copied_devices(self) -> set[int]:
        """The devices where the mode ``auto`` turned out to copy, because their file systems cannot share blocks."""
        return set()

    @staticmethod
    def is_reserved(_place: bytes) -> bool:
        """Return whether the store reserves a path for itself: no object can have it.

        :param _place: the path of an object, relative to the store's root
        """
        return False

    @abstractmethod
    def objects(
        self, *, threads: int | None = None, on_problem: OnProblem | None = None, ignore: Sequence[str] = ()
    ) -> Iterator[StoreObject]:
        """Yield every object lazily, in an order that does not depend on the file system.

        Files and directories outside of all objects are passed to ``on_problem``, so every file is accounted for.

        :param threads: number of threads that read directories; :data:`None` or 0 for one per core
        :param on_problem: called with each problem outside of objects
        :param ignore: globs of names to ignore, such as ``.DS_Store``
        :raises StoreError: the store cannot be read
        """

    @abstractmethod
    def get(self, identifier: str | bytes) -> StoredObject:
        """Return an object.

        :raises ObjectError: of kind ``missing``: the store has no such object
        :raises IdentifierError: the identifier has no path in this store
        """

    @abstractmethod
    def find(self, identifier: str | bytes) -> StoreObject:
        """Return the record of an object, as :meth:`objects` yields it.

        :raises ObjectError: of kind ``missing``: the store has no such object; of kind ``duplicate-id``: it has several
        :raises IdentifierError: the identifier has no path in this store
        """

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

    def refuse_changes(self) -> None:  # noqa: B027 (most stores can be changed)
        """Raise an error if the store is known to be read-only.

        :raises StoreError: the store is read-only
        """

    def refuse_misplaced(self) -> None:  # noqa: B027 (most stores have one path for an identifier)
        """Check that new objects have a path; see :mod:`pressmark.stores.placement`.

        :raises StoreError: the layout is unknown, or objects are not where it says
        """

    @abstractmethod
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

        :param source: the path of a file or a directory, or a mapping of names in the object to their content: paths
            of files or directories, :class:`bytes`, or open binary files, which are read to their end
        :param replace: replace an existing object
        :param mode: ``copy`` the bytes, share them (``reflink``, ``hardlink``), or ``auto``: reflink if the file system
            supports it, copy otherwise
        :param links: ``"refuse"`` symbolic links in the source, or ``"follow"`` them and copy their targets
        :param exclude: globs of the names of files and directories below the source to leave out, such as
            ``.DS_Store``; the record has a problem of the kind ``excluded`` for each
        :param compare: compare an existing object with the source by reading both: if they have the same files, return
            the record of the object, with ``exists_same``. Otherwise an existing object is an error of kind ``exists``
        :raises ObjectError: nothing was stored; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in this store
        """

    def _put(
        self,
        identifier: str | bytes,
        source: ObjectSource,
        replace: bool,
        mode: CopyMode,
        links: str,
        exclude: Sequence[str] | str,
        compare: bool,
        **options: Any,
    ) -> StoreObject:
        """Store one object as :meth:`ingest` stores many; see :meth:`put`.

        :param options: of the ``prepare`` of :meth:`writer`
        """
        if not replace:
            self.refuse_misplaced()
        source, excluded = type(self)._select(self.root, identifier, source, exclude, links)
        try:
            with self.writer(mode, links, replace) as writer:
                record = writer.put(identifier, source, **options)
        except ObjectError as error:
            if not compare:
                raise
            record = type(self)._existing(self, identifier, source, links, error, options.get("info"))
        return record.with_problems(excluded)

    def ingest(
        self,
        *,
        replace: bool = False,
        mode: CopyMode = "auto",
        links: Literal["refuse", "follow"] = "refuse",
        exclude: Sequence[str] | str = (),
        compare: bool = False,
        on_result: Callable[[IngestResult[StoreObject]], object] | None = None,
        max_objects: int = 1_000,
        max_seconds: float = 1.0,
    ) -> Ingest[ObjectSource, StoreObject]:
        """Return a context manager that stores many objects, each atomically.

        ::

            with store.ingest() as batch:
                batch.put_all(items)  # pairs of identifier and source
                batch.put(identifier, source)

        Objects are published and flushed to disk in batches, and ``on_result`` is called when that is done. Without
        ``on_result``, the end of the ``with`` block raises an error if objects were not stored.

        :param replace: as for :meth:`put`; also the parameters after it
        :param on_result: called with the result of each object, in the order in which they were put
        :param max_objects: the number of objects in a batch
        :param max_seconds: a batch older than this is published by the next :meth:`put`
        :raises IngestError: at the end: some objects were not stored, and ``on_result`` is :data:`None`
        :raises StoreError: the store cannot be written to
        """
        from pressmark.stores.ingest import Ingest  # not needed for one object

        if not replace:
            self.refuse_misplaced()
        exclude = exclude if isinstance(exclude, str) else tuple(exclude)  # an iterator can be read once

        def select(
            identifier: str | bytes, source: ObjectSource
        ) -> tuple[ObjectSource, Callable[[StoreObject], StoreObject]]:
            selected, excluded = type(self)._select(self.root, identifier, source, exclude, links)
            return selected, lambda record: record.with_problems(excluded)

        def same(identifier: str | bytes, source: ObjectSource, error: ObjectError) -> StoreObject:
            return type(self)._existing(self, identifier, source, links, error)

        return Ingest(
            self.root,
            self.writer(mode, links, replace),
            compare=same if compare else None,
            select=select if exclude else None,
            on_result=on_result,
            max_objects=max_objects,
            max_seconds=max_seconds,
        )

    @abstractmethod
    def writer(
        self, mode: CopyMode, links: str = "refuse", replace: bool = False, *, durable_places: bool = True
    ) -> IngestWriter[ObjectSource, StoreObject]:
        """Return what :meth:`put` and :meth:`ingest` write objects with; its parameters are theirs.

        :param durable_places: flush the names of published objects; otherwise the caller must
        :raises StoreError: no object can be stored
        """

    @abstractmethod
    def delete(self, identifier: str | bytes | StoreObject, *, check: Callable[[], object] | None = None) -> None:
        """Remove one object, and the directories above it that become empty.

        :param identifier: or the record of the object, from :meth:`objects`, :meth:`find` or :meth:`at`
        :param check: called while no other run of Pressmark can change the object, just before it is removed; the
            object stays if this raises an exception
        :raises ObjectError: nothing was removed; ``kind`` is the reason
        :raises IdentifierError: the identifier has no path in this store
        """

    @abstractmethod
    def check(
        self,
        *,
        digests: bool = False,
        threads: int | None = None,
        on_event: OnEvent | None = None,
        on_problem: OnProblem | None = None,
        ignore: Sequence[str] = (),
    ) -> Report:
        """Check the whole store and return a report of all problems.

        :param digests: also read the files and compare them with the digests in the store
        :param threads: as for :meth:`objects`
        :param on_event: called with :class:`~pressmark.reports.Progress`: objects checked, and problems found
        :param on_problem: called with each problem when it is found; the report contains them as well
        :param ignore: globs of names to ignore
        :raises StoreError: the store cannot be read
        """

    def repair(self, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()) -> Report:
        """Repair unambiguous problems without losing data, and return a report of the remaining problems.

        :param dry_run: report the changes without making them
        :param on_event: called with :class:`RepairStep` for each change
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
