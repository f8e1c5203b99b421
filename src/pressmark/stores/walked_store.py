"""Stores whose objects are found by walking their directory: Pairtrees, Vitro stores, folders of bags. Also the walk,
and writing objects that are plain copies.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

from pressmark.errors import ObjectError, StoreError, quoted_path
from pressmark.fs.moves import rename_new
from pressmark.fs.names import NAME_MAX, PATH_MAX, encode_fs, glob_matcher, is_case_insensitive
from pressmark.fs.staging import RunDirectory
from pressmark.progress_event import Progress
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import object_errors, store_errors
from pressmark.stores.objects import CopyMode, Digests, ObjectSource, OnProblem, StoreObject
from pressmark.stores.recheck import Item, RunningReport, agreed, changing
from pressmark.stores.selection import id_matcher, kept, refuse_both, selected_records, unreadable_only
from pressmark.stores.staging_writer import Staged, StagingWriter, make_above
from pressmark.stores.store import Store

if TYPE_CHECKING:
    from pressmark.buckets.bucket import Bucket

__all__ = ["CopyingWriter", "StagedCopy", "StoreWalk", "WalkedStore"]

# Problems that a running change also causes for a moment.
_PASSING = {"bad-file-name", "duplicate-id", "empty", "files-several", "unfinished", "unreadable"}


class StoreWalk(ABC):
    """A walk of a store: its objects, and the problems outside of objects.

    :param base: the store's directory
    :param tree: the directory that the paths of objects are relative to
    :param ignore: globs of names to ignore
    :ivar root: the store, for messages
    :ivar is_ignored: returns whether a name is ignored
    :ivar readable: whether to report files that cannot be read
    """

    #: The name of the work directory, where the tree may be on another file system.
    work_name: ClassVar[bytes]
    #: Whether no run can change the store.
    is_read_only = False

    def __init__(self, base: bytes, tree: bytes, ignore: Sequence[str]) -> None:
        self.base = base
        self.root = os.fsdecode(base)
        self.tree = tree
        self.ignore = tuple(ignore)
        self.is_ignored = glob_matcher(self.ignore)
        self.readable = False

    def with_options(self, ignore: Sequence[str], readable: bool = False) -> Self:
        """Return this walk with more names to ignore.

        :param readable: report files that cannot be read
        """
        walk = copy(self)
        walk.ignore = (*self.ignore, *ignore)
        walk.is_ignored = glob_matcher(walk.ignore)
        walk.readable = readable
        return walk

    @property
    def work_directory(self) -> bytes:
        """The work directory of the runs that change the store: in it, or in a tree on another file system."""
        same = self.is_read_only or os.stat(self.base).st_dev == os.stat(self.tree).st_dev
        return os.path.join(self.base if same else self.tree, self.work_name)

    @abstractmethod
    def items(self, threads: int | None = None) -> Iterator[Item]:
        """Yield objects and problems in order, as they are found first.

        :param threads: number of threads that read directories; :data:`None` for one per core
        """

    @abstractmethod
    def again(self, item: Item) -> list[Item]:
        """Return the items that replace an item now; empty if it no longer exists."""

    @abstractmethod
    def record_at(self, path: str) -> StoreObject | None:
        """Return the record that the walk yields for a path, relative to :attr:`tree`; :data:`None` without an object.

        :raises OSError: it cannot be read
        """

    def is_fine(self, item: Item) -> bool:
        """Return whether a running change cannot be the reason of an item's problems."""
        if self.is_read_only:
            return True
        problems = item.problems if isinstance(item, StoreObject) else (item,)
        return not any(one.kind in _PASSING for one in problems)

    def second_look(self, item: Item) -> list[Item]:
        """Return an item, or the items that replace it if another run was changing it; empty if it no longer exists."""
        if self.is_fine(item):
            return [item]

        def is_fine(items: list[Item]) -> bool:
            return all(isinstance(one, StoreObject) and not one.problems for one in items)

        items, is_agreed = agreed([item], lambda: self.again(item), is_fine, self.work_directory)
        return items if is_agreed else [changing(item)]

    def objects(
        self,
        threads: int | None = None,
        on_problem: OnProblem | None = None,
        items: Iterable[Item] | None = None,
    ) -> Iterator[StoreObject]:
        """Yield the objects; problems outside of objects are passed to ``on_problem``.

        :param threads: as for :meth:`items`
        :param items: yield the objects among these instead of all
        :raises StoreError: the store cannot be read
        """
        with store_errors(self.base):
            for found in self.items(threads) if items is None else items:
                if isinstance(found, StoreObject) and not found.problems:
                    yield found
                    continue
                for item in self.second_look(found):
                    if isinstance(item, StoreObject):
                        yield item
                    elif on_problem is not None:
                        on_problem(item)

    def unreadable(self, record: StoreObject) -> Sequence[Problem]:
        """Return a problem for each unreadable file of an object, if the files are looked at alone; none if the object
        no longer exists."""
        return ()


class WalkedStore(Store):
    """A store whose objects are found by walking its directory.

    :ivar walk: what walks it
    :ivar bucket: the bucket that the files are in; :data:`None` for a directory
    """

    walk: StoreWalk
    bucket: Bucket | None = None

    #: The number of objects of a check between two events.
    progress_every: ClassVar[int]

    def own_problems(self) -> Sequence[Problem]:
        """Return the problems of the files that describe the store."""
        return ()

    def objects(
        self,
        *,
        ids: Iterable[str | bytes] | None = None,
        match: Sequence[str] | str = (),
        threads: int | None = None,
        ignore: Sequence[str] = (),
        problems: list[Problem] | None = None,
    ) -> Iterator[StoreObject]:
        walk = self.walk.with_options(ignore)
        on_problem = None if problems is None else problems.append
        if ids is None and not match:
            return walk.objects(threads, on_problem)
        return self._selected_objects(walk, ids, match, threads, on_problem)

    def _selected_objects(
        self,
        walk: StoreWalk,
        ids: Iterable[str | bytes] | None,
        match: Sequence[str] | str,
        threads: int | None,
        on_problem: OnProblem | None,
    ) -> Iterator[StoreObject]:
        """Yield some of the objects of a walk; see :meth:`objects`."""
        refuse_both(ids, match)
        if ids is None:
            is_match = id_matcher(match)
            records = walk.objects(threads, unreadable_only(on_problem))
            return (record for record in records if is_match(record.id))
        found = self._look_up_all(walk, ids, on_problem is None)
        return walk.objects(threads, on_problem, kept(found, on_problem))

    def _look_up_all(self, walk: StoreWalk, ids: Iterable[str | bytes], strict: bool) -> Iterator[Item]:
        """Yield the record of each object, or the problem that it is not found.

        :param strict: raise the error instead
        """
        return selected_records(self._with_walk(walk), ids, strict)

    def _with_walk(self, walk: StoreWalk) -> Self:
        """Return this store for looking up many objects, whose names a walk ignores."""
        store = copy(self)
        store.walk = walk
        return store

    def find(self, id: str | bytes) -> StoreObject:
        path = self._existing_path(id)
        with object_errors(self.root, id):
            record = None if path is None else self.walk.record_at(path)
        if record is None:
            raise self._missing(id)
        return record

    @abstractmethod
    def _existing_path(self, identifier: str | bytes) -> str | None:
        """Return the path of the object with an identifier; :data:`None` without such an object.

        :raises ObjectError: of kind ``duplicate-id``: several objects have the identifier
        :raises IdentifierError: the identifier has no path in the store
        """

    @abstractmethod
    def _missing(self, identifier: str | bytes, path: str | None = None) -> ObjectError:
        """Return the error that the store has no such object.

        :param path: its path; :data:`None` for that of the identifier
        """

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
        self._reads_digests(digests)
        run = RunningReport(progress, self.progress_every)
        if ids is not None or match:
            walk = self.walk.with_options(ignore)
            for record in self._selected_objects(walk, ids, match, threads, run.add_item):
                for item in self.examine(record, False, run.report, ignore):
                    run.add_item(item)
            return run.finish()
        run.add(self.own_problems())
        for record in self.walk.with_options(ignore, readable=True).objects(threads, run.add_item):
            run.add_item(record)
        return run.finish()

    def examine(self, record: StoreObject, digests: bool, report: Report, ignore: Sequence[str] = ()) -> list[Item]:
        """Read the object of a record of :meth:`objects`, as far as a check does.

        :param digests: as for :meth:`check`
        :param report: the report to which the numbers of files and bytes are added
        :return: the record with all problems, or the items that replace it; empty if it no longer exists
        """
        unreadable = self.walk.with_options(ignore, readable=True).unreadable(record)
        others = (one for one in record.problems if one not in unreadable)
        return [record._replace(problems=(*others, *unreadable))]

    def _run_directory(self) -> RunDirectory:
        return RunDirectory(self.walk.work_directory)

    @classmethod
    def _create_directory(cls, base: bytes) -> None:
        """Create the directory of a new store; files of an interrupted creation are overwritten.

        :raises StoreError: it contains other files
        :raises OSError: it cannot be created
        """
        if os.path.lexists(base) and not os.path.isdir(base):
            raise StoreError(base, "not a directory; specify a directory that is empty or does not exist")
        os.makedirs(base, exist_ok=True)
        strangers = sorted(set(os.listdir(base)) - cls.unfinished_names)
        if strangers:
            what = f"the directory contains {quoted_path(strangers[0])}; specify an empty or new directory"
            raise StoreError(base, what)


@dataclass(slots=True)
class StagedCopy(Staged):
    """A copy that is ready to be published.

    :ivar longest: the longest path in it, with a slash before it; empty for a file
    :ivar text: the identifier of the path; :data:`None` if the layout cannot determine it
    """

    longest: bytes = b""
    text: str | None = None


class CopyingWriter(StagingWriter[StagedCopy]):
    """Write objects that are plain copies of their sources.

    :param mode: as for :meth:`pressmark.stores.Store.put`, like ``links`` and ``replace``
    """

    _store: WalkedStore

    def __init__(
        self, store: WalkedStore, mode: CopyMode, links: str, replace: bool, *, durable_names: bool = True
    ) -> None:
        super().__init__(store, store.walk.tree, mode, links, replace, durable_names=durable_names)
        self._walk = store.walk
        self._is_case_insensitive = False
        # Maximal length of a path relative to the base directory.
        self._room = PATH_MAX - len(os.path.abspath(self._base)) - 1

    @abstractmethod
    def _paths(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> list[str | None]:
        """Return the future path of each object, relative to the base directory; :data:`None` if it has none."""

    def _destinations(self, objects: Sequence[tuple[str | bytes, ObjectSource]]) -> Sequence[bytes | None]:
        encoded_paths = [encode_fs(path or "") for path in self._paths(objects)]
        # Longer names are checked one by one.
        return [path if 0 < len(path) < min(NAME_MAX, self._room) else None for path in encoded_paths]

    def _copied(self, objects: Sequence[StagedCopy], together: int | None = None) -> Iterator[StagedCopy]:
        self._identify(objects)
        return super()._copied(objects, together)

    def _identify(self, objects: Sequence[StagedCopy]) -> None:
        """Record the identifiers of objects' paths."""
        layout = self._store.layout
        assert layout is not None
        above = [staged.destination.rpartition(b"/")[0] for staged in objects]
        for staged, text in zip(objects, layout.unmap(above, on_error="none"), strict=True):
            staged.text = text

    def _begin_turn(self) -> None:
        self._is_case_insensitive = is_case_insensitive(self._base)

    def _move(self, staged: StagedCopy, known: set[bytes]) -> None:
        try:
            if not self._is_case_insensitive and make_above(self._base, staged.destination, known):
                rename_new(staged.path, self._base + b"/" + staged.destination)
                return
        except NotADirectoryError:
            pass  # perhaps a link to a directory
        self._move_checked(staged)

    @abstractmethod
    def _move_checked(self, staged: StagedCopy) -> None:
        """Move an object to its destination, whose directory exists, or report why that is impossible.

        Its name is not flushed: an object that is at its destination has not failed.
        """
