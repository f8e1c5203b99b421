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
from functools import partial
from typing import Any, Generic, Self, TypeVar

from pressmark import _kernels
from pressmark.errors import IdentifierError, ObjectError
from pressmark.fixity.shared_copies import shared_copies
from pressmark.fs.durable import flush_directories, flush_trees
from pressmark.fs.moves import prune_empty_parents, rename_new
from pressmark.fs.names import NAME_MAX, PATH_MAX, decode_fs, encode_fs, existing_spelling, is_case_insensitive
from pressmark.fs.removal import remove_tree
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.ingest import INTERRUPTED, IngestWriter
from pressmark.stores.object_sources import SMALL_FLAGS, SourceCopier
from pressmark.stores.objects import CopyMode, ObjectSource, StoreObject
from pressmark.stores.store_change import ChangedStore, above
from pressmark.stores.walked_store import WalkedStore
from pressmark.threads import Threads, call_for_all, resolve_threads

__all__ = ["TURN", "CopyingWriter", "Staged", "StagedCopy", "StagingWriter", "make_above"]

# Objects moved while the lock is held; other runs wait for a few milliseconds.
TURN = 256
# Objects that a thread stages in one call of a kernel, at least.
SHARE = 32


@dataclass(slots=True)
class Staged:
    """An object ready to be published.

    :ivar identifier: its identifier, as given
    :ivar place: its path, relative to the base directory; moving it over another object may change it
    :ivar path: its current path
    """

    identifier: str | bytes
    place: bytes
    path: bytes


Item = TypeVar("Item", bound=Staged)
Job = TypeVar("Job")
Done = TypeVar("Done")


class StagingWriter(IngestWriter, Generic[Item]):
    """Write objects to a store; a context manager. Objects that are not committed are removed on exit.

    :param store: the store
    :param base: the directory that the paths of objects are relative to
    :param durable_places: also flush the names of published objects; otherwise the caller must
    :param replace: replace existing objects
    """

    def __init__(self, store: ChangedStore, base: bytes, *, durable_places: bool = True, replace: bool = False) -> None:
        super().__init__(store)
        self._name = store.root
        self._base = base
        self._durable = store.durable
        self._durable_places = store.durable and durable_places
        self._replaces = replace
        self._waiting: list[Item] = []
        # The objects of a commit, and the results so far: an interrupt does not lose them.
        self._committed: list[Item] = []
        self._done: list[tuple[Item, ObjectError | None]] = []
        self._pool: Threads | None = None

    def __enter__(self) -> Self:
        self._stack.enter_context(shared_copies())
        return self

    def __len__(self) -> int:
        """Return the number of objects that wait to be committed."""
        return len(self._waiting)

    def open(self) -> None:
        _ = self.staging

    # --- what a kind of store defines ---------------------------------------------------------------------------------

    @abstractmethod
    def prepare(self, identifier: str | bytes, source: ObjectSource, *args: Any, **options: Any) -> int | StoreObject:
        """Stage an object, and return its size in bytes; or its record, if it is in the store already.

        An occupied path is refused before the source is read.

        :param options: of the kind of store
        :raises ObjectError: it cannot be stored; it leaves no files
        :raises IdentifierError: the identifier has no path in the store
        """

    def _devices(self) -> tuple[int, ...] | None:
        """Return the devices whose files are copied byte by byte; :data:`None` if none is known yet, empty for all."""
        return ()

    def _stage_small(
        self, objects: Sequence[tuple[str | bytes, ObjectSource]], devices: tuple[int, ...]
    ) -> Sequence[tuple[Item, int] | None]:
        """Stage objects of small files quickly, and return each with its size.

        :param devices: as returned by :meth:`_devices`
        :return: :data:`None` for an object that needs :meth:`prepare`, which reports why; it leaves no files
        """
        return [None] * len(objects)

    def _begin_turn(self) -> None:
        """Prepare for moves, while the lock is held."""
        return None

    def _move_quickly(self, turn: Sequence[Item]) -> list[bool]:
        """Move objects to their places while the lock is held, and return whether each was moved.

        The others need :meth:`_move`, which reports why.
        """
        return [False] * len(turn)

    @abstractmethod
    def _move(self, staged: Item, known: set[bytes]) -> None:
        """Move an object to its place, which is free, while the lock is held.

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

        :param options: of :meth:`prepare`
        """
        found: int | StoreObject | ObjectError | IdentifierError
        with object_errors(self._name, identifier):
            if options:
                found = self.prepare(identifier, source, **options)
            else:
                [found] = self.prepare_all([(identifier, source)])
            if isinstance(found, int):
                [found] = self.publish()
        if isinstance(found, StoreObject):
            return found
        raise found

    # --- staging ------------------------------------------------------------------------------------------------------

    def prepare_all(
        self, objects: Sequence[tuple[str | bytes, ObjectSource]]
    ) -> Iterator[int | StoreObject | ObjectError | IdentifierError]:
        begin = 0
        while begin < len(objects):
            # Only copying a first file shows whether a device can share blocks.
            devices = self._devices()
            part = objects[begin : begin + 1] if devices is None else objects[begin:]
            small = [None] if devices is None else self._stage_small(part, devices)
            for (identifier, source), staged in zip(part, small, strict=True):
                if staged is not None:
                    self._waiting.append(staged[0])
                    yield staged[1]
                    continue
                try:
                    yield self.prepare(identifier, source)
                except (ObjectError, IdentifierError) as error:
                    yield error
            begin += len(part)

    def _on_threads(self, function: Callable[[list[Job]], list[Done]], jobs: list[Job]) -> list[Done]:
        """Call a kernel for shares of a list on several threads, and return the results in order.

        :param function: for :func:`~pressmark.threads.call_for_all`
        """
        threads = min(resolve_threads(None), len(jobs) // SHARE)
        if threads < 2:
            return call_for_all(function, jobs) if jobs else []
        pool = self._pool
        if pool is None:
            pool = self._pool = self._stack.enter_context(Threads(resolve_threads(None), "pressmark-staging"))
        share = -(-len(jobs) // threads)
        shares = [jobs[begin : begin + share] for begin in range(0, len(jobs), share)]
        return [done for some in pool.map(partial(call_for_all, function), shares) for done in some]

    # --- publishing ---------------------------------------------------------------------------------------------------

    def publish(self) -> Iterator[StoreObject | ObjectError]:
        for staged, error in self.commit():
            yield self._record(staged) if error is None else error

    def commit(self, on_moved: Callable[[Item], object] | None = None) -> Iterator[tuple[Item, ObjectError | None]]:
        """Publish all waiting objects, and yield each with its error, if any.

        Refused objects are removed afterwards if they were staged here.

        :param on_moved: called with each object as soon as it is in its place, while the lock is held
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
        self._flush_places([staged.place for staged, error in done if error is None])
        yield from done
        for staged, refused in done:
            if refused is not None and self._is_ours(staged):
                self._discard(staged.path)
        self._committed, self._done = [], []

    def results(self, count: int) -> Iterator[StoreObject | ObjectError]:
        done = self._done
        for staged in (*self._committed[len(done) :], *self._waiting):
            refused = ObjectError(self._name, staged.identifier, "interrupted", INTERRUPTED)
            done.append((staged, None if self._is_moved(staged) else refused))
        self._flush_places([staged.place for staged, error in done[:count] if error is None])
        for staged, error in done[:count]:
            yield self._record(staged) if error is None else error
        self._committed, self._done, self._waiting = [], [], []

    def _refuse_other_case(self, identifier: str | bytes, place: bytes) -> None:
        """Check that a path does not differ only in case from an existing one, if the file system ignores case.

        :raises ObjectError: of kind ``collision``
        """
        clash = existing_spelling(self._base, place) if is_case_insensitive(self._base) else None
        if clash is not None:
            reason = f"{decode_fs(clash)!r} differs only in case, which this file system ignores"
            raise ObjectError(self._name, identifier, "collision", f"{reason}; use a case-sensitive file system")

    def _is_moved(self, staged: Item) -> bool:
        """Return whether an object was moved to its place."""
        return not os.path.lexists(staged.path) and os.path.lexists(os.path.join(self._base, staged.place))

    def _is_ours(self, staged: Item) -> bool:
        """Return whether an object was written to the private directory."""
        return staged.path.startswith(self.staging.path + b"/")

    def _flush(self, waiting: list[Item]) -> None:
        """Flush everything that was written, before any of it appears."""
        if self._durable:
            # Other objects are on disk already.
            flush_trees(*(staged.path for staged in waiting if self._is_ours(staged)))

    def _flush_places(self, places: list[bytes]) -> None:
        """Flush the names of published objects."""
        if not self._durable_places or not places:
            return
        with store_errors(self._base):
            flush_directories(sorted({directory for place in places for directory in above(self._base, place)}))

    def _refusal(self, staged: Item, error: OSError) -> ObjectError:
        try:
            with object_errors(self._name, staged.identifier):
                raise error
        except ObjectError as refused:
            return refused

    @staticmethod
    def _discard(path: bytes) -> None:
        # The rest is removed with the private directory.
        with suppress(OSError):
            if os.path.lexists(path):
                remove_tree(path)

    def _move_all(
        self, turn: list[Item], on_moved: Callable[[Item], object] | None
    ) -> Iterator[tuple[Item, ObjectError | None]]:
        """Publish objects while the lock is held, and yield each with its error, if any."""
        known: set[bytes] = set()
        # The function may free the place of the next object.
        for part in [turn] if on_moved is None else [[staged] for staged in turn]:
            for staged, is_moved in zip(part, self._move_quickly(part), strict=True):
                error = None if is_moved else self._move_in(staged, known)
                yield staged, error
                if error is None and on_moved is not None:
                    on_moved(staged)

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
            prune_empty_parents(self._base, os.path.dirname(staged.place), strict=False)
            return error
        return None


@dataclass(slots=True)
class StagedCopy(Staged):
    """A copy that is ready to be published.

    :ivar longest: the longest path in it, with a slash before it; empty for a file
    :ivar text: the identifier of the path; :data:`None` if the layout cannot determine it
    """

    longest: bytes
    text: str | None


class CopyingWriter(StagingWriter[StagedCopy]):
    """Write objects that are plain copies of their sources.

    :param mode: as for :meth:`pressmark.stores.Store.put`, like ``links`` and ``replace``
    """

    #: Whether an object is a directory; otherwise it is a file.
    _is_directory: bool

    _store: WalkedStore

    def __init__(
        self, store: WalkedStore, mode: CopyMode, links: str, replace: bool, *, durable_places: bool = True
    ) -> None:
        super().__init__(store, store.walk.tree, durable_places=durable_places, replace=replace)
        self._walk = store.walk
        self._links = links
        self._copier = SourceCopier(mode, store.copied_devices)
        self._is_case_insensitive = False
        # Lengths of a path: relative to the base directory, and of one that begins with it, which may be relative.
        self._room = PATH_MAX - len(os.path.abspath(self._base)) - 1
        self._limit = PATH_MAX - len(os.path.abspath(self._base)) + len(self._base)

    @abstractmethod
    def _paths(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> list[str | None]:
        """Return the future path of each object, relative to the base directory; :data:`None` if it has none."""

    def _texts(self, places: Sequence[bytes]) -> list[str | None]:
        """Return the identifiers of objects' paths."""
        layout = self._store.layout
        assert layout is not None
        return layout.unmap_paths([os.path.dirname(place) for place in places], on_error="none")

    def _devices(self) -> tuple[int, ...] | None:
        return self._copier.devices()

    def _stage_small(
        self, objects: Sequence[tuple[str | bytes, ObjectSource]], devices: tuple[int, ...]
    ) -> Sequence[tuple[StagedCopy, int] | None]:
        staged: list[tuple[StagedCopy, int] | None] = [None] * len(objects)
        items: list[tuple[int, bytes]] = []
        jobs: list[tuple[bytes, bytes, bytes]] = []
        for number, ((_identifier, source), path) in enumerate(zip(objects, self._paths(objects), strict=True)):
            place = encode_fs(path or "")
            # Longer names are checked one by one.
            if isinstance(source, (str, os.PathLike)) and 0 < len(place) < min(NAME_MAX, self._room):
                items.append((number, place))
                jobs.append((os.fsencode(source), self.new_path(), self._base + b"/" + place))

        def copy(share: list[tuple[bytes, bytes, bytes]]) -> list[tuple[int, bytes] | None]:
            found: list[tuple[int, bytes] | None]
            found = _kernels.active.copy_small_sources(share, devices, SMALL_FLAGS, self._limit, self._is_directory)
            return found

        copied = self._on_threads(copy, jobs)
        texts = self._texts([place for _number, place in items])
        for (number, place), (_source, new, _later), found, text in zip(items, jobs, copied, texts, strict=True):
            if found is None:
                self._discard(new)
            else:
                staged[number] = StagedCopy(objects[number][0], place, new, found[1], text), found[0]
        return staged

    def copy(
        self,
        source: ObjectSource,
        new: bytes,
        *,
        links: str | None = None,
        check: Callable[[bytes], object] | None = None,
        **copying: Any,
    ) -> tuple[int, bytes]:
        """Copy a source into the new directory ``new``.

        :param links: replaces the option of the writer
        :param check: called with the path of the copy; an exception discards it
        :param copying: other options of :meth:`SourceCopier.copy`; an exception of a function discards the copy
        :return: as :meth:`SourceCopier.copy`
        """
        found = self._copier.copy(source, new, links or self._links, **copying)
        if check is not None:
            check(new)
        return found

    def _stage(self, identifier: str | bytes, place: bytes, copy: Callable[[bytes], tuple[int, bytes]]) -> int:
        """Stage a copy, and return its size.

        :param place: its future path, relative to the base directory
        :param copy: creates a new path, and returns its size in bytes and the longest path in it
        """
        new = self.new_path()
        try:
            size, longest = copy(new)
        except BaseException:
            self._discard(new)
            raise
        self._wait(identifier, place, new, longest)
        return size

    def _wait(self, identifier: str | bytes, place: bytes, path: bytes, longest: bytes) -> None:
        """Let an object wait to be published."""
        self._waiting.append(StagedCopy(identifier, place, path, longest, self._texts([place])[0]))

    def _begin_turn(self) -> None:
        self._is_case_insensitive = is_case_insensitive(self._base)

    def _move_quickly(self, turn: Sequence[StagedCopy]) -> list[bool]:
        if self._is_case_insensitive:
            return super()._move_quickly(turn)
        moves = [(staged.path, staged.place) for staged in turn]
        moved: list[bool] = _kernels.active.move_objects(moves, self._base, (), True)
        return moved

    def _move(self, staged: StagedCopy, known: set[bytes]) -> None:
        try:
            if not self._is_case_insensitive and make_above(self._base, staged.place, known):
                rename_new(staged.path, self._base + b"/" + staged.place)
                return
        except NotADirectoryError:
            pass  # perhaps a link to a directory
        self._move_checked(staged)

    @abstractmethod
    def _move_checked(self, staged: StagedCopy) -> None:
        """Move an object to its place, whose directory exists, or report why that is impossible.

        Its name is not flushed: an object that is in its place has not failed.
        """


def make_above(base: bytes, place: bytes, known: set[bytes]) -> bool:
    """Create the missing directories above the path ``place`` below ``base``, while no other run changes them.

    :param known: directories that are known to exist; the others are added
    :return: whether the last one was created, so that it is empty
    :raises NotADirectoryError: the path is occupied, for example by a symbolic link
    :raises OSError: a directory cannot be created
    """
    missing = []
    above = os.path.dirname(place)
    while above and above not in known:
        missing.append(above)
        above = os.path.dirname(above)
    made = False
    for above in reversed(missing):
        path = base + b"/" + above
        try:
            os.mkdir(path)
            made = True
        except FileExistsError as error:
            if not stat.S_ISDIR(os.lstat(path).st_mode):
                raise NotADirectoryError(*error.args) from None
            made = False
        known.add(above)
    return made
