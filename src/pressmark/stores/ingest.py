"""Storing many objects: they are prepared, then published and flushed together.

The fixed costs of an object (a private directory, a lock, flushing to disk) are paid once for many. Each object is
still published atomically, and is reported as stored only when it is on disk.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, MutableSequence, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from time import monotonic
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar

from pressmark.errors import IdentifierError, ObjectError, StoreError
from pressmark.fs.names import decode_fs
from pressmark.stores.exceptions import check_identifier, store_errors
from pressmark.stores.objects import ObjectSource, StoreObject
from pressmark.stores.staging_writer import INTERRUPTED, StagingWriter

__all__ = ["Ingest", "IngestError", "IngestResult", "Selected"]

# Prepared objects that are published together, at most; so that memory stays flat and interruptions cost little.
MAX_BYTES = 1 << 28  # 256 MiB
# Objects that are prepared together, at most.
CHUNK = 256
# Errors that are kept to be raised at the end.
MAX_ERRORS = 100

Record = TypeVar("Record")
# The source to store, and what completes the record of its object.
Selected = tuple[ObjectSource, Callable[[StoreObject], StoreObject]]


class IngestResult(NamedTuple, Generic[Record]):
    """The result of one object.

    :ivar id: the identifier, as given
    :ivar record: the stored object, which is on disk; :data:`None` if it was not stored
    :ivar error: the reason why it was not stored; :data:`None` if it was. Its ``kind`` is as for
        :meth:`pressmark.stores.Store.put`, or ``interrupted``
    """

    id: str | bytes
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


@dataclass(slots=True)
class _Entry:
    """An object that was put.

    :ivar name: its identifier as text
    :ivar result: its record or its error; :data:`None` if it is prepared
    """

    identifier: str | bytes
    name: str
    source: ObjectSource
    complete: Callable[[StoreObject], StoreObject] | None = None
    result: StoreObject | ObjectError | IdentifierError | None = None


class Ingest:
    """Store many objects; a context manager returned by :meth:`pressmark.stores.Store.ingest`.

    Objects wait until a batch is full, and are then published together. The end of the ``with`` block stores the
    remaining objects, also after an exception in it. After an interrupt (:class:`KeyboardInterrupt`) they are
    discarded, each with an error of kind ``interrupted``. So every object has a result.

    :param root: the store, for messages
    :param writer: stores the objects
    :param find_stored: called with each object that was refused; returns its record if it is in the store nevertheless,
        otherwise raises the error
    :param select: returns the source to store instead of the given one, and a function that completes its record
    :param results: receives the result of each object, in the order of :meth:`put`
    :param max_objects: number of objects in a batch
    :param max_seconds: a batch older than this is published by the next :meth:`put`
    :ivar stored: number of objects so far that are in the store
    :ivar failed: number of failed objects so far
    """

    def __init__(
        self,
        root: str,
        writer: StagingWriter[Any],
        *,
        find_stored: Callable[[str | bytes, ObjectSource, ObjectError], StoreObject],
        select: Callable[[str | bytes, ObjectSource], tuple[ObjectSource, Callable[[StoreObject], StoreObject]]]
        | None = None,
        results: MutableSequence[IngestResult[StoreObject]] | None = None,
        max_objects: int = 1_000,
        max_seconds: float = 1.0,
    ) -> None:
        self.stored = self.failed = 0
        self._root = root
        self._writer = writer
        self._find_stored = find_stored
        self._select = select
        self._results = results
        self._max_objects = max_objects
        self._max_seconds = max_seconds
        self._stack: ExitStack | None = None
        # In the order of the calls: objects to prepare, and objects to report. Of these, some are prepared.
        self._accepted: deque[_Entry] = deque()
        self._waiting: deque[_Entry] = deque()
        self._prepared: list[_Entry] = []
        self._published: list[StoreObject | ObjectError] = []
        self._is_interrupted = False
        self._names: set[str] = set()
        self._bytes = 0
        self._since = 0.0
        self._errors: list[ObjectError | IdentifierError] = []

    def __enter__(self) -> Ingest:
        with ExitStack() as stack:
            stack.enter_context(self._writer)
            with store_errors(self._root):
                self._writer.open()
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._stack is not None
        raised = error
        with self._stack:
            for end in (self._end,) if isinstance(error, KeyboardInterrupt) else (self.flush, self._end):
                try:
                    end()
                except BaseException as another:
                    if raised is None or isinstance(another, KeyboardInterrupt):
                        raised = another
                    else:
                        raised.add_note(f"when the batch ended: {another}")
        self._stack = None
        if raised is None and self._errors:
            raised = self._error()
        if raised is not None and raised is not error:
            raise raised

    def put(self, id: str | bytes, source: ObjectSource) -> None:
        """Add an object to the batch. If it cannot be stored, this is reported as its result; other objects are not
        affected.

        :param source: as for :meth:`pressmark.stores.Store.put`; its files are read before this returns
        :raises StoreError: the store cannot be written to
        """
        self.put_all([(id, source)])

    def put_all(self, objects: Iterable[tuple[str | bytes, ObjectSource]]) -> None:
        """Add many objects to the batch; faster than :meth:`put`, because several are prepared at a time.

        :param objects: pairs of identifier and source; they are read lazily
        :raises StoreError: the store cannot be written to
        """
        for _ in self.steps(objects):
            pass

    def steps(self, objects: Iterable[tuple[str | bytes, ObjectSource] | None]) -> Iterator[None]:
        """Add objects to the batch as :meth:`put_all` does, and yield after each few; :data:`None` flushes it."""
        if self._stack is None:
            raise ValueError("not in a with block; use: with store.ingest() as batch")
        for found in objects:
            if found is None:
                self.flush()
                yield
                continue
            identifier, source = found
            try:
                check_identifier(identifier)
            except TypeError as error:
                self._prepare()
                refused = ObjectError(self._root, str(identifier), "bad-id", str(error))
                self._waiting.append(_Entry(identifier, str(identifier), source, result=refused))
                continue
            name = decode_fs(identifier) if isinstance(identifier, bytes) else identifier
            entry: _Entry = _Entry(identifier, name, source)
            if name in self._names:
                self.flush()
            if self._select is not None:
                try:
                    entry.source, entry.complete = self._select(identifier, source)
                except ObjectError as error:
                    self._prepare()
                    entry.result = error
                    self._waiting.append(entry)
                    continue
            self._names.add(name)
            self._accepted.append(entry)
            if len(self._accepted) >= min(CHUNK, self._max_objects - len(self._waiting)):
                self._prepare()
                yield
        self._prepare()

    def _prepare(self) -> None:
        """Prepare the given objects, and publish the batch if it is time."""
        if self._is_interrupted:
            self._publish()
        if not self._accepted:
            return
        for prepared in self._writer.prepare_all([(entry.identifier, entry.source) for entry in self._accepted]):
            entry = self._accepted[0]
            if isinstance(prepared, int):
                self._prepared.append(entry)
                self._bytes += prepared
            else:
                entry.result = self._final_result(entry, prepared)
            if not self._waiting:
                self._since = monotonic()
            self._waiting.append(entry)
            self._accepted.popleft()
            is_full = len(self._waiting) >= self._max_objects or self._bytes >= MAX_BYTES
            if is_full or not self._prepared or monotonic() - self._since >= self._max_seconds:
                self._publish()

    def _final_result(
        self, entry: _Entry, found: StoreObject | ObjectError | IdentifierError
    ) -> StoreObject | ObjectError | IdentifierError:
        """Return the record of an object that was refused, if it is in the store nevertheless; otherwise ``found``."""
        if not isinstance(found, ObjectError):
            return found
        try:
            return self._find_stored(entry.identifier, entry.source, found)
        except ObjectError as error:
            return error

    def flush(self) -> None:
        """Publish all waiting objects, flush them to disk, and report their results.

        Call it before a pause, such as waiting for the next request.

        :raises StoreError: the names of published objects could not be flushed
        """
        self._prepare()
        self._publish()

    def _publish(self) -> None:
        """Publish the prepared objects, and report all results."""
        if self._prepared:
            if self._is_interrupted:
                self._recover()
            else:
                self._is_interrupted = True
                self._published.extend(self._writer.publish())
        self._is_interrupted = False
        self._report_all()

    def _recover(self) -> None:
        """Find out what has become of the prepared objects if publishing them was interrupted."""
        if len(self._published) < len(self._prepared):
            self._published.extend(islice(self._writer.results(len(self._prepared)), len(self._published), None))

    def _end(self) -> None:
        """Report the objects that are left after an interrupt."""
        self._recover()
        while self._accepted:
            entry = self._accepted.popleft()
            entry.result = ObjectError(self._root, entry.identifier, "interrupted", INTERRUPTED)
            self._waiting.append(entry)
        self._report_all()

    def _report_all(self) -> None:
        """Report all results."""
        for entry, found in zip(self._prepared, self._published, strict=True):
            entry.result = self._final_result(entry, found)
        self._prepared, self._published = [], []
        self._bytes = 0
        waiting, names = self._waiting, self._names
        while waiting:
            entry = waiting.popleft()
            names.discard(entry.name)
            self._report(entry)

    def _report(self, entry: _Entry) -> None:
        found = entry.result
        assert found is not None
        if isinstance(found, (ObjectError, IdentifierError)):
            self.failed += 1
            result = IngestResult[StoreObject](entry.identifier, None, found)
        else:
            self.stored += 1
            result = IngestResult(entry.identifier, found if entry.complete is None else entry.complete(found), None)
        if self._results is not None:
            self._results.append(result)
        elif result.error is not None and len(self._errors) < MAX_ERRORS:
            self._errors.append(result.error)

    def _error(self) -> StoreError:
        objects = self.stored + self.failed
        what = f"{self.failed:,} of {objects:,} objects not stored: {self._errors[0]}"
        return IngestError(self._root, what, tuple(self._errors))
