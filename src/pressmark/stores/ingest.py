"""Storing many objects: they are prepared, then published and flushed together.

The fixed costs of an object (a private directory, a lock, flushing to disk) are paid once for many. Each object is
still published atomically, and is reported as stored only when it is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from time import monotonic
from types import TracebackType
from typing import Generic, NamedTuple, Protocol, TypeVar

from pressmark.errors import IdentifierError, ObjectError, StoreError
from pressmark.fs.names import decode_fs

__all__ = ["Ingest", "IngestError", "IngestResult", "IngestWriter"]

# Prepared objects that are published together, at most; so that memory stays flat and interruptions cost little.
MAX_BYTES = 1 << 28  # 256 MiB
# Objects that are prepared together, at most.
CHUNK = 256
# Errors that are kept to be raised at the end.
MAX_ERRORS = 100

Source = TypeVar("Source")
Source_contra = TypeVar("Source_contra", contravariant=True)
Record = TypeVar("Record")
Record_co = TypeVar("Record_co", covariant=True)


class IngestResult(NamedTuple, Generic[Record]):
    """The result of one object.

    :ivar identifier: as given
    :ivar record: the stored object, which is on disk; :data:`None` if it was not stored
    :ivar error: the reason why it was not stored; :data:`None` if it was
    """

    identifier: str | bytes
    record: Record | None
    error: ObjectError | IdentifierError | None


class IngestError(StoreError):
    """Some objects were not stored; all others were stored.

    :ivar path: the store
    :ivar reason: the number of objects, and the first error
    :ivar errors: the errors of the objects, at most the first 100
    """

    kind = "not-stored"

    def __init__(self, path: str | bytes, reason: str, errors: Sequence[ObjectError | IdentifierError]) -> None:
        super().__init__(path, reason)
        self.args = (path, reason, errors)
        self.errors = errors


class IngestWriter(Protocol[Source_contra, Record_co]):
    """The interface with which a kind of store stores many objects: a context manager that discards unpublished objects
    on exit."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None: ...

    def prepare_all(
        self, objects: Sequence[tuple[str | bytes, Source_contra]]
    ) -> Iterator[int | ObjectError | IdentifierError]:
        """Prepare objects, and yield the size in bytes of each, or the reason why it cannot be stored, in order.

        An occupied path is refused before the source is read. A refused object leaves no files.
        """

    def publish(self) -> Iterator[Record_co | ObjectError]:
        """Publish all prepared objects, and yield the record or the error of each, in their order.

        Content is on disk before an object appears, and the names of all objects before the first record is yielded.

        :raises StoreError: the names could not be flushed
        """


class Ingest(Generic[Source, Record]):
    """Store many objects; a context manager returned by :meth:`pressmark.stores.Store.ingest`.

    Objects wait until a batch is full, and are then published together. At the end of the ``with`` block, the remaining
    objects are stored; if the block raises an exception, the waiting objects are discarded.

    :param root: the store, for messages
    :param put: stores one object
    :param writer: stores many objects; :data:`None` to store them one by one
    :param select: returns the source to store instead of the given one, and a function that completes its record
    :param replace: replace existing objects
    :param on_result: called with the result of each object, in the order of :meth:`put`
    :param max_objects: number of objects in a batch
    :param max_seconds: a batch older than this is published by the next :meth:`put`
    :ivar stored: number of stored objects so far
    :ivar failed: number of failed objects so far
    """

    def __init__(
        self,
        root: str,
        put: Callable[[str | bytes, Source], Record],
        writer: IngestWriter[Source, Record] | None,
        *,
        select: Callable[[str | bytes, Source], tuple[Source, Callable[[Record], Record]]] | None = None,
        replace: bool = False,
        on_result: Callable[[IngestResult[Record]], object] | None = None,
        max_objects: int = 1_000,
        max_seconds: float = 1.0,
    ) -> None:
        self.stored = self.failed = 0
        self._root = root
        self._put_one = put
        self._writer = writer
        self._select = select
        self._replace = replace
        self._on_result = on_result
        self._max_objects = max_objects
        self._max_seconds = max_seconds
        self._stack: ExitStack | None = None
        # In the order of the calls, with the record or the error of each; prepared objects have neither.
        self._waiting: list[tuple[str | bytes, Record | ObjectError | IdentifierError | None]] = []
        self._prepared: set[str] = set()
        self._completing: dict[str | bytes, Callable[[Record], Record]] = {}
        self._bytes = 0
        self._since = 0.0
        self._errors: list[ObjectError | IdentifierError] = []

    def __enter__(self) -> Ingest[Source, Record]:
        with ExitStack() as stack:
            if self._writer is not None:
                stack.enter_context(self._writer)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._stack is not None
        with self._stack:
            if error is None:
                self.flush()
        self._stack = None
        if error is None and self._errors:
            raise self._error()

    def put(self, identifier: str | bytes, source: Source) -> None:
        """Add an object to the batch. If it cannot be stored, this is reported as its result; other objects are not
        affected.

        :param source: as for :meth:`pressmark.stores.Store.put`; its files are read before this returns
        :raises StoreError: the store cannot be written to
        """
        self.put_all([(identifier, source)])

    def put_all(self, objects: Iterable[tuple[str | bytes, Source]]) -> None:
        """Add many objects to the batch; faster than :meth:`put`, because several are prepared at a time.

        :param objects: pairs of identifier and source; they are read lazily
        :raises StoreError: the store cannot be written to
        """
        if self._stack is None:
            raise ValueError("not in a with block; use: with store.ingest() as batch")
        chunk: dict[str, tuple[str | bytes, Source]] = {}
        for identifier, source in objects:
            name = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
            if name in chunk or name in self._prepared:
                self._add(chunk)
                chunk = {}
                self.flush()
            if self._select is not None:
                try:
                    source, self._completing[identifier] = self._select(identifier, source)
                except ObjectError as error:
                    self._add(chunk)
                    chunk = {}
                    self._waiting.append((identifier, error))
                    continue
            chunk[name] = identifier, source
            if len(chunk) >= min(CHUNK, self._max_objects - len(self._waiting)):
                self._add(chunk)
                chunk = {}
        self._add(chunk)

    def _add(self, objects: dict[str, tuple[str | bytes, Source]]) -> None:
        """Prepare or store objects, and publish the batch if it is time."""
        for (name, (identifier, _source)), found in zip(objects.items(), self._results(objects), strict=True):
            if isinstance(found, int):
                self._prepared.add(name)
                self._bytes += found
            if not self._waiting:
                self._since = monotonic()
            self._waiting.append((identifier, None if isinstance(found, int) else found))
            is_full = len(self._waiting) >= self._max_objects or self._bytes >= MAX_BYTES
            if is_full or not self._prepared or monotonic() - self._since >= self._max_seconds:
                self.flush()

    def _results(
        self, objects: dict[str, tuple[str | bytes, Source]]
    ) -> Iterator[int | Record | ObjectError | IdentifierError]:
        """Prepare or store objects, and yield the size of each prepared one, and the record or the error of others."""
        given = list(objects.values())
        if self._writer is None:
            for identifier, source in given:
                yield self._stored(identifier, source)
            return
        for (identifier, source), found in zip(given, self._writer.prepare_all(given), strict=True):
            is_replaced = self._replace and isinstance(found, ObjectError) and found.kind == "exists"
            yield self._stored(identifier, source) if is_replaced else found

    def _stored(self, identifier: str | bytes, source: Source) -> Record | ObjectError | IdentifierError:
        """Store one object, and return its record or its error."""
        try:
            return self._put_one(identifier, source)
        except (ObjectError, IdentifierError) as error:
            return error

    def flush(self) -> None:
        """Publish all waiting objects, flush them to disk, and report their results.

        Call it before a pause, such as waiting for the next request.

        :raises StoreError: the names of published objects could not be flushed
        """
        waiting, self._waiting = self._waiting, []
        published = iter(()) if self._writer is None or not self._prepared else self._writer.publish()
        self._prepared.clear()
        self._bytes = 0
        for identifier, result in waiting:
            found = next(published) if result is None else result
            complete = self._completing.pop(identifier, None)
            if isinstance(found, (ObjectError, IdentifierError)):
                self._report(IngestResult(identifier, None, found))
            else:
                self._report(IngestResult(identifier, found if complete is None else complete(found), None))

    def _report(self, result: IngestResult[Record]) -> None:
        if result.error is None:
            self.stored += 1
        else:
            self.failed += 1
        if self._on_result is not None:
            self._on_result(result)
        elif result.error is not None and len(self._errors) < MAX_ERRORS:
            self._errors.append(result.error)

    def _error(self) -> StoreError:
        objects = self.stored + self.failed
        what = f"{self.failed:,} of {objects:,} objects not stored: {self._errors[0]}"
        return IngestError(self._root, what, tuple(self._errors))
