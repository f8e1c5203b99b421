"""Storing objects, one or many: they are staged, then published together.

The fixed costs of an object (a private directory, a flush, a lock) are paid once for many. Each object still appears by
one rename, after all of its bytes are on disk; over another object only if that is to be replaced.
"""

from __future__ import annotations

import os
import stat
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pressmark.errors import IdentifierError, ObjectError, quoted_path
from pressmark.fs.beneath import PATH_ONLY, open_beneath
from pressmark.fs.durable import flush_directories, flush_trees
from pressmark.fs.moves import prune_empty_parents, remove_tree
from pressmark.fs.names import existing_spelling, is_case_insensitive
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.object_sources import TOGETHER, Copier, SourceCopy
from pressmark.stores.objects import CopyMode, ObjectSource, StoreObject
from pressmark.stores.store_change import ChangedStore, StoreChange, all_above

__all__ = ["INTERRUPTED", "TURN", "Staged", "StagingWriter", "make_above"]

# Objects moved while the lock is held; other runs wait for a few milliseconds.
TURN = 256
#: The reason of errors of kind ``interrupted``.
INTERRUPTED = "interrupted before the object was stored; put it again"


@dataclass(slots=True)
class Staged:
    """An object ready to be published.

    :ivar identifier: its identifier, as given
    :ivar destination: its path, relative to the base directory; moving it over another object may change it
    :ivar path: its current path
    :ivar copy: its files on their way to that path; :data:`None` for an object that was not copied
    :ivar check: called with this record once the object is complete; an exception discards it
    :ivar size: of its files, in bytes; 0 if it was not written here
    :ivar mode: how they were transferred: ``copy``, ``reflink`` or ``hardlink``; :data:`None` without files
    """

    identifier: str | bytes
    destination: bytes
    path: bytes
    copy: SourceCopy | None = None
    check: Callable[[Any], object] | None = None
    size: int = 0
    mode: str | None = None


Item = TypeVar("Item", bound=Staged)
Argument = TypeVar("Argument")
Result = TypeVar("Result")


class StagingWriter(StoreChange, Generic[Item]):
    """Write objects to a store; a context manager. Objects that are not committed are removed on exit.

    :param store: the store
    :param base: the directory that the paths of objects are relative to
    :param durable_names: also flush the names of published objects; otherwise the caller must
    :param mode: as for :meth:`pressmark.stores.Store.put`, like ``links`` and ``replace``
    """

    def __init__(
        self,
        store: ChangedStore,
        base: bytes,
        mode: CopyMode,
        links: str,
        replace: bool = False,
        *,
        durable_names: bool = True,
    ) -> None:
        super().__init__(store)
        self._name = store.root
        self._base = base
        self._durable = store.durable
        self._durable_names = store.durable and durable_names
        self._replaces = replace
        self._waiting: list[Item] = []
        # The objects of a commit, and the results so far: an interrupt does not lose them.
        self._committed: list[Item] = []
        self._done: list[tuple[Item, ObjectError | None]] = []
        self._links = links
        self._copier = Copier(mode, store.copied_devices)

    def open(self) -> None:
        """Get ready to store many objects.

        :raises OSError: the store cannot be written to
        """
        _ = self.staging

    # --- what a kind of store defines ---------------------------------------------------------------------------------

    def _destinations(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> Sequence[bytes | None]:
        """Return the future paths of objects, which are faster found for many at once; :data:`None` if unknown."""
        return [None] * len(objects)

    @abstractmethod
    def begin(
        self, identifier: str | bytes, source: ObjectSource, destination: bytes | None = None, **options: Any
    ) -> Item | StoreObject:
        """Return a new object, whose files :meth:`copy` copies; or its record, if it is in the store already.

        An occupied path is refused before the source is read.

        :param destination: its future path, if known
        :param options: of the kind of store
        :raises ObjectError: it cannot be stored; it leaves no files
        :raises IdentifierError: the identifier has no path in the store
        """

    def _complete(self, staged: Item) -> None:
        """Write what an object has beside the files of its source, and check it.

        :raises ObjectError: it cannot be stored
        :raises SourceError: its source cannot be stored
        :raises OSError: it cannot be written
        """

    def _begin_turn(self) -> None:
        """Prepare for moves, while the lock is held."""
        return None

    @abstractmethod
    def _move(self, staged: Item, known: set[bytes]) -> None:
        """Move an object to its destination, which is free, while the lock is held.

        :param known: directories that are known to be plain directories while the lock is held
        :raises ObjectError: the object cannot be stored
        :raises OSError: it cannot be moved
        """

    @abstractmethod
    def _record(self, staged: Item) -> StoreObject:
        """Return the record of a published object."""

    # --- one object ---------------------------------------------------------------------------------------------------

    def put(self, identifier: str | bytes, source: ObjectSource, **options: Any) -> StoreObject:
        """Store an object, and return its record.

        :param options: of :meth:`begin`
        :raises ObjectError: it cannot be stored
        :raises IdentifierError: the identifier has no path in the store
        :raises StoreError: its name could not be flushed
        """
        found: int | StoreObject | ObjectError | IdentifierError
        with object_errors(self._name, identifier):
            [found] = self.prepare_all([(identifier, source)], **options)
            if isinstance(found, int):
                [found] = self.publish()
        if isinstance(found, StoreObject):
            return found
        raise found

    def again(self, identifier: str | bytes, source: ObjectSource, error: ObjectError) -> StoreObject:
        """Store an object again that was refused because another run changed it meanwhile, and return its record.

        :param error: the reason; raised if it is another one
        """
        raise error

    # --- staging ------------------------------------------------------------------------------------------------------

    def prepare_all(
        self, objects: Sequence[tuple[str | bytes, ObjectSource]], **options: Any
    ) -> Iterator[int | StoreObject | ObjectError | IdentifierError]:
        """Stage objects, and yield the size in bytes of each, or the reason why it cannot be stored, in order; or the
        record of an object that is in the store already.

        An occupied path is refused before the source is read. A refused object leaves no files.

        :param options: of :meth:`begin`
        """

        def begin(
            item: tuple[tuple[str | bytes, ObjectSource], bytes | None],
        ) -> Item | StoreObject | ObjectError | IdentifierError:
            (identifier, source), destination = item
            try:
                return self.begin(identifier, source, destination, **options)
            except (ObjectError, IdentifierError) as error:
                return error

        begun = list(self._each(begin, list(zip(objects, self._destinations(objects), strict=True))))
        copied = self._copied([one for one in begun if isinstance(one, Staged)], TOGETHER)
        for one in begun:
            if not isinstance(one, Staged):
                yield one
                continue
            next(copied)
            try:
                yield self.end(one)
            except ObjectError as error:
                yield error

    def copy(self, objects: Sequence[Item]) -> None:
        """Copy the files of new objects, all in one stream; :meth:`end` raises the error of an object."""
        for _staged in self._copied(objects):
            pass

    def _copied(self, objects: Sequence[Item], together: int | None = None) -> Iterator[Item]:
        """Copy the files of new objects, and yield each object once they are copied, in order.

        :param together: as for :meth:`Copier.copy`
        """
        copies = self._copy_all([staged.copy for staged in objects if staged.copy is not None], together)
        for staged in objects:
            if staged.copy is not None:
                next(copies)
            yield staged

    def _copy_all(self, copies: Sequence[SourceCopy], together: int | None) -> Iterator[SourceCopy]:
        return self._copier.copy(copies, together)

    def end(self, staged: Item) -> int:
        """Complete a new object whose files were copied, let it wait to be published, and return its size in bytes.

        :raises ObjectError: it cannot be stored; it leaves no files
        """
        try:
            with object_errors(self._name, staged.identifier):
                if staged.copy is not None:
                    staged.size, staged.mode = staged.copy.size, staged.copy.mode
                    staged.copy.raise_error()
                self._complete(staged)
                if staged.check is not None:
                    staged.check(staged)
        except BaseException:
            self._discard(staged.path)
            raise
        self._waiting.append(staged)
        return staged.size

    # --- publishing ---------------------------------------------------------------------------------------------------

    def publish(self) -> Iterator[StoreObject | ObjectError]:
        """Publish all staged objects, and yield the record or the error of each, in their order.

        Content is on disk before an object appears, and the names of all objects before the first record is yielded.

        :raises StoreError: the names could not be flushed
        """
        for staged, error in self.commit():
            yield self._record(staged) if error is None else error

    def commit(self, on_moved: Callable[[Item], object] | None = None) -> Iterator[tuple[Item, ObjectError | None]]:
        """Publish all waiting objects, and yield each with its error, if any.

        Refused objects are removed afterwards if they were staged here.

        :param on_moved: called with each object as soon as it is published, while the lock is held
        :raises StoreError: published names could not be flushed
        """
        done: list[tuple[Item, ObjectError | None]] = []
        waiting, self._waiting = self._waiting, []
        self._committed, self._done = waiting, done
        try:
            self._flush(waiting)
        except OSError as error:
            done += [(staged, self._refusal(staged, error)) for staged in waiting]
        while len(done) < len(waiting):
            turn = waiting[len(done) : len(done) + TURN]
            end = len(done) + len(turn)
            try:
                with self.staging.lock():
                    self._begin_turn()
                    done.extend(self._move_all(turn, on_moved))
            except OSError as error:  # the lock is not available
                done += [(staged, self._refusal(staged, error)) for staged in waiting[len(done) : end]]
        self._flush_names([staged.destination for staged, error in done if error is None])
        yield from done
        for staged, refused in done:
            if refused is not None and self._is_ours(staged):
                self._discard(staged.path)
        self._committed, self._done = [], []

    def results(self, count: int) -> Iterator[StoreObject | ObjectError]:
        """Yield the record or the error of each of the first ``count`` staged objects after :meth:`publish` was
        interrupted, or instead of it: objects that are not in the store have an error of kind ``interrupted``.

        :raises StoreError: the names could not be flushed
        """
        done = self._done
        for staged in (*self._committed[len(done) :], *self._waiting):
            refused = ObjectError(self._name, staged.identifier, "interrupted", INTERRUPTED)
            done.append((staged, None if self._is_moved(staged) else refused))
        self._flush_names([staged.destination for staged, error in done[:count] if error is None])
        for staged, error in done[:count]:
            yield self._record(staged) if error is None else error
        self._committed, self._done, self._waiting = [], [], []

    def _refuse_other_case(self, identifier: str | bytes, path: bytes) -> None:
        """Check that a path does not differ only in case from an existing one, if the file system ignores case.

        :raises ObjectError: of kind ``collision``
        """
        clash = existing_spelling(self._base, path) if is_case_insensitive(self._base) else None
        if clash is not None:
            reason = f"{quoted_path(clash)} differs only in case, which this file system ignores"
            raise ObjectError(self._name, identifier, "collision", f"{reason}; use a case-sensitive file system")

    def _is_moved(self, staged: Item) -> bool:
        """Return whether an object was moved to its destination."""
        return not os.path.lexists(staged.path) and os.path.lexists(os.path.join(self._base, staged.destination))

    def _is_ours(self, staged: Item) -> bool:
        """Return whether an object was written to the private directory."""
        return staged.path.startswith(self.staging.path + b"/")

    def _flush(self, waiting: list[Item]) -> None:
        """Flush everything that was written, before any of it appears."""
        if self._durable:
            # Other objects are on disk already.
            flush_trees(*(staged.path for staged in waiting if self._is_ours(staged)))

    def _flush_names(self, paths: list[bytes]) -> None:
        """Flush the names of published objects."""
        if not self._durable_names or not paths:
            return
        with store_errors(self._base):
            flush_directories(sorted(all_above(self._base, paths)))

    def _refusal(self, staged: Item, error: OSError) -> ObjectError:
        try:
            with object_errors(self._name, staged.identifier):
                raise error
        except ObjectError as refused:
            return refused

    def _discard(self, path: bytes) -> None:
        # The rest is removed with the private directory.
        with suppress(OSError):
            if os.path.lexists(path):
                remove_tree(path)

    def _move_all(
        self, turn: list[Item], on_moved: Callable[[Item], object] | None
    ) -> Iterator[tuple[Item, ObjectError | None]]:
        """Publish objects while the lock is held, and yield each with its error, if any."""
        known: set[bytes] = set()
        for staged, error in self._each(lambda staged: (staged, self._move_in(staged, known)), turn):
            yield staged, error
            if error is None and on_moved is not None:
                on_moved(staged)

    def _each(self, function: Callable[[Argument], Result], items: Sequence[Argument]) -> Iterator[Result]:
        """Call a function with each item, one after the other, and yield the results."""
        return map(function, items)

    def _move_in(self, staged: Item, known: set[bytes]) -> ObjectError | None:
        """Publish one object while the lock is held, and return the error, if any."""
        try:
            with object_errors(self._name, staged.identifier):
                try:
                    self._move(staged, known)
                except FileNotFoundError:
                    if not os.path.lexists(staged.path):
                        what = "another run has moved or removed the object; run the command again"
                        raise ObjectError(self._name, staged.identifier, "changed", what) from None
                    raise
        except ObjectError as error:
            known.clear()
            self._prune_above(staged.destination)
            return error
        return None

    def _prune_above(self, path: bytes) -> None:
        """Remove the empty directories above a path where no object was published."""
        prune_empty_parents(self._base, os.path.dirname(path), strict=False)


def make_above(base: bytes, path: bytes, known: set[bytes]) -> bool:
    """Create the missing directories above a path below ``base``, while no other run changes them.

    :param known: directories that are known to exist; the others are added
    :return: whether the last one was created, so that it is empty
    :raises NotADirectoryError: the path is occupied, for example by a symbolic link
    :raises OSError: a directory cannot be created
    """
    missing = []
    above = path.rpartition(b"/")[0]
    while above and above not in known:
        missing.append(above)
        above = above.rpartition(b"/")[0]
    if len(missing) > 2:
        with suppress(OSError):  # usually the last one alone is missing, which one call shows
            os.close(open_beneath(base, missing[1], PATH_ONLY))
            known.update(missing[1:])
            del missing[1:]
    is_new = False
    for above in reversed(missing):
        directory = base + b"/" + above
        try:
            os.mkdir(directory)
            is_new = True
        except FileExistsError as error:
            if not stat.S_ISDIR(os.lstat(directory).st_mode):
                raise NotADirectoryError(*error.args) from None
            is_new = False
        known.add(above)
    return is_new
