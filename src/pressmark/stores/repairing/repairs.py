"""The run of a repair: repairs are made while no other run changes the store, and a dry run records them."""

from __future__ import annotations

import errno
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pressmark.fs.atomic import replace_file
from pressmark.fs.durable import exists, flush_directory
from pressmark.fs.moves import make_parents, prune_empty_parents, rename_new
from pressmark.fs.names import is_blocked
from pressmark.fs.staging import RunDirectory, own_leftovers
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import SourceError, store_errors, unrepaired
from pressmark.stores.objects import OnEvent, RepairStep
from pressmark.stores.problems import problem
from pressmark.stores.store_change import ChangedStore, StoreChange

__all__ = ["Repairs"]


class Repairs(StoreChange):
    """The repairs of a store by one run, or on a dry run only their record; a context manager.

    Methods show the store as the repairs before have left it, or would have. Paths are relative to its directory.

    :param base: the store's directory
    :param dry_run: report the changes without making them
    :param on_event: called with each :class:`RepairStep`
    :ivar repaired: on a dry run, kinds and paths of the repaired problems
    :ivar counts: numbers of repaired problems, by kind
    :ivar stuck: the problems of what cannot be changed
    :ivar written: on a dry run, the contents of the files that it would have written, by their paths
    """

    def __init__(self, store: ChangedStore, base: bytes, dry_run: bool, on_event: OnEvent | None) -> None:
        super().__init__(store)
        self._base = base
        self._on_event = on_event
        self._steps: list[RepairStep] = []
        self.dry_run = dry_run
        self.repaired: set[tuple[str, str]] = set()
        self.counts: Counter[str] = Counter()
        self.stuck: list[Problem] = []
        self.written: dict[bytes, bytes] = {}
        # Of a dry run: the new path of what was moved, or None if it was removed, by its path on disk; the path on disk
        # by the new path, the same for a written file; and the new paths below each directory.
        self._moved: dict[bytes, bytes | None] = {}
        self._origin: dict[bytes, bytes] = {}
        self._below: defaultdict[bytes, set[bytes]] = defaultdict(set)

    # --- problems -----------------------------------------------------------------------------------------------------

    def lock(self, *, locked: bool = True) -> AbstractContextManager[object]:
        """Return a context manager that keeps other runs from changing the store; not on a dry run.

        :param locked: hold the lock; otherwise the private directory only exists
        :raises StoreError: the private directory cannot be created, which every repair requires
        """
        if self.dry_run:
            return nullcontext()
        with store_errors(self._base):
            staging = self.staging
        return staging.lock() if locked else nullcontext()

    def clear(self, folder: bytes, directory: AbstractContextManager[Any] | None = None) -> None:
        """Remove a work directory with the leftovers of killed runs, unless other runs use it.

        :param directory: a private directory in it, which is not entered yet; by default a :class:`RunDirectory`
        """
        found = own_leftovers(folder)
        if not self.dry_run and os.path.isdir(folder):
            with store_errors(folder), directory or RunDirectory(folder):
                pass  # entering it removes leftovers, and leaving it the directory
        for left in found:
            path = os.path.relpath(left, self._base)
            is_removed = self.dry_run or not os.path.lexists(left)
            if is_removed and ("leftover", os.fsdecode(path)) not in self.repaired:
                self.note([RepairStep.of("remove", path)], "leftover", path)

    def note(self, steps: Sequence[RepairStep], kind: str, path: str | bytes) -> None:
        """Report the steps that repaired a problem."""
        self._steps += steps
        if self._on_event is not None:
            for step in steps:
                self._on_event(step)
        self.counts[kind] += 1
        if self.dry_run:
            self.repaired.add((kind, os.fsdecode(path)))

    def repair(self, found: Problem, change: Callable[[], Iterable[RepairStep]], *, locked: bool = True) -> bool:
        """Repair a problem while no other run changes the store.

        :param change: looks at the store again, makes the repair and yields its steps; without steps, it is impossible,
            or another run has made it
        :param locked: ``change`` does not lock the store itself
        :return: whether the problem is repaired
        :raises OSError: the error would stop every other repair, too
        """
        steps: list[RepairStep] = []
        with self.lock(locked=locked):
            try:
                for step in change():
                    steps.append(step)  # also those before an error
            except FileNotFoundError:
                pass  # removed by another run
            except SourceError as error:
                self.stuck.append(problem("unrepaired", found.path, error.reason))
            except OSError as error:
                refused = os.path.relpath(os.fsdecode(error.filename or self._base), os.fsdecode(self._base))
                is_above = found.path.startswith(refused + "/")  # of an empty directory
                self.stuck.append(unrepaired(refused if is_above else found.path, error))
        if steps:
            self.note(steps, found.kind, found.path)
        return bool(steps)

    def remaining(self, report: Report) -> Report:
        """Return the report of a check after the repairs, with their steps; on a dry run, as it would be."""
        if self.dry_run:
            kept = (one for one in report.problems if (one.kind, one.path) not in self.repaired)
            report.problems = [one._replace(path=os.fsdecode(self._new_path(os.fsencode(one.path)))) for one in kept]
        report.steps = self._steps
        return report

    # --- files --------------------------------------------------------------------------------------------------------

    def exists(self, path: bytes) -> bool:
        """Return whether a path exists.

        :raises OSError: this cannot be determined
        """
        is_new = path in self._origin or bool(self._below.get(path))
        return is_new or (path not in self._moved and self._exists(path))

    def names(self, directory: bytes, names: Iterable[bytes]) -> list[bytes]:
        """Return the names of the files in a directory, in byte order.

        :param names: those on disk
        """
        new = {os.path.basename(path) for path in self._below.get(directory, ()) if os.path.dirname(path) == directory}
        return sorted(new.union(name for name in names if os.path.join(directory, name) not in self._moved))

    def write(self, path: bytes, data: bytes) -> None:
        """Write or replace a file.

        :raises OSError: it cannot be written
        """
        if self.dry_run:
            self.written[path] = data
            self._add(path, path)
        else:
            self._replace(path, data)

    def remove(self, path: bytes) -> None:
        """Remove a file.

        :raises OSError: it cannot be removed
        """
        if self.dry_run:
            self._moved[path] = None
        else:
            self._remove(path)

    def move(self, old: bytes, new: bytes, stop: bytes = b"") -> None:
        """Move something to a new path, and remove the directories above the old path that become empty.

        :param stop: a directory that is not removed
        :raises FileExistsError: something is at the new path
        :raises NotADirectoryError: something else than a directory is above the new path
        :raises OSError: it cannot be moved
        """
        target = os.path.join(self._base, new)
        if self.exists(new):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        if any(map(self._is_blocked, _above(new))):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), target)
        if self.dry_run:
            for directory in _above(old):
                self._below[directory].discard(old)
            origin = self._origin.pop(old, old)
            self._moved[origin] = new
            self._add(new, origin)
        else:
            try:
                created = make_parents(self._base, os.path.dirname(new))
                rename_new(os.path.join(self._base, old), target)
            except OSError:
                prune_empty_parents(self._base, os.path.dirname(new), stop=stop, strict=False)
                raise
            if self._store.durable:
                for directory in {os.path.dirname(path) for path in (new, *created)}:
                    flush_directory(os.path.join(self._base, directory))
        self._prune(os.path.dirname(old), stop, [], strict=False)

    def prune(self, path: bytes, stop: bytes = b"") -> Iterator[RepairStep]:
        """Remove a directory if it is empty, and those above it that become empty; yield a step for each.

        :param stop: a directory that is not removed
        :raises OSError: an empty directory cannot be removed; its path is the ``filename`` of the error
        """
        removed: list[bytes] = []
        try:
            self._prune(path, stop, removed, strict=True)
        finally:
            yield from (RepairStep.of("prune", one) for one in removed)

    def _prune(self, path: bytes, stop: bytes, removed: list[bytes], *, strict: bool) -> None:
        if not self.dry_run:
            self._remove_empty(path, stop, removed, strict=strict)
            return
        while path not in (b"", stop) and not self._below.get(path):
            if self.exists(path):
                found = self._listed(path)
                if found is None or self.names(path, found):
                    return
                self._moved[path] = None
                removed.append(path)
            path = os.path.dirname(path)

    # What only the disk knows; a store that is not on a disk replaces it.

    def _exists(self, path: bytes) -> bool:
        return exists(os.path.join(self._base, path))

    def _listed(self, path: bytes) -> list[bytes] | None:
        """Return the names in a directory; :data:`None` for a link to one."""
        full = os.path.join(self._base, path)
        return None if os.path.islink(full) else os.listdir(full)

    def _replace(self, path: bytes, data: bytes) -> None:
        replace_file(os.path.join(self._base, path), data, part=self.staging / b"file")

    def _remove(self, path: bytes) -> None:
        os.unlink(os.path.join(self._base, path))

    def _remove_empty(self, path: bytes, stop: bytes, removed: list[bytes], *, strict: bool) -> None:
        prune_empty_parents(self._base, path, removed, stop=stop, strict=strict)

    def _add(self, path: bytes, origin: bytes) -> None:
        self._origin[path] = origin
        for directory in _above(path):
            self._below[directory].add(path)

    def _is_blocked(self, path: bytes) -> bool:
        return path in self._origin or (path not in self._moved and is_blocked(os.path.join(self._base, path)))

    def _new_path(self, path: bytes) -> bytes:
        """Return the path of what is on disk at a path."""
        directory = path
        while directory and directory not in self._moved:
            directory = os.path.dirname(directory)
        return (self._moved.get(directory) or directory) + path[len(directory) :]


def _above(path: bytes) -> list[bytes]:
    """Return the directories above a relative path, the innermost first, and last the empty path."""
    found = []
    while path:
        path = os.path.dirname(path)
        found.append(path)
    return found
