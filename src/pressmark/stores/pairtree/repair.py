"""Repairs of a Pairtree: encapsulate objects, complete interrupted changes, remove empty ppaths."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

from pressmark.fs.durable import exists
from pressmark.fs.moves import prune_empty_parents
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.staging import RunDirectory, own_leftovers
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import store_errors, unrepaired
from pressmark.stores.objects import OnEvent, RepairStep, StoreObject
from pressmark.stores.pairtree.object_directory import (
    REPAIRING,
    REPLACED,
    ROOT,
    WORK_DIRECTORY,
    Contents,
    encapsulate,
    unmovable,
    unreached,
)
from pressmark.stores.pairtree.walk import Walk
from pressmark.stores.problems import problem
from pressmark.stores.walked_store import would_prune

__all__ = ["repair"]

# Problems repaired by moving all files of the object to one directory.
_MENDED = {"bare-file", "post-morty", "split-end", "unfinished"}


def repair(walk: Walk, problems: Iterable[Problem], dry_run: bool, on_event: OnEvent | None) -> Report:
    """Repair a tree, and return the report of the remaining problems.

    :param walk: of the tree
    :param problems: of the files beside the tree
    :param dry_run: report the changes without making them
    :param on_event: called with each :class:`RepairStep`
    """
    run = _Repair(walk, dry_run, on_event)
    with store_errors(walk.base), run:
        run.report.add(problems)
        for item in walk.items():
            run.see(item)
    return run.report


class _Repair(contextlib.ExitStack):
    """One repair of a tree; a context manager that holds its staging directories.

    :ivar report: the remaining problems, and counts
    """

    def __init__(self, walk: Walk, dry_run: bool, on_event: OnEvent | None) -> None:
        super().__init__()
        self._walk = walk
        self._dry_run = dry_run
        self._on_step = on_event or (lambda _event: None)
        self._run_directories: dict[bytes, RunDirectory] = {}
        self._pruned: set[bytes] = set()
        self.report = Report(counts={"objects": 0, "repaired": 0})

    def __enter__(self) -> _Repair:
        super().__enter__()
        folder = os.path.join(self._walk.base, WORK_DIRECTORY)
        if not self._dry_run and os.path.isdir(folder):
            for left in own_leftovers(folder):
                self._on_step(RepairStep("remove", WORK_DIRECTORY + b"/" + os.path.basename(left)))
            self._staging(folder)  # also removes an empty one
        return self

    def see(self, item: StoreObject | Problem) -> None:
        """Repair one item of the walk if possible, and report the remaining problems."""
        if isinstance(item, Problem):
            if not self._see_problem(item):
                self.report.add([item])
            return
        self.report.counts["objects"] += 1
        kinds = {found.kind for found in item.problems}
        if item.path == ROOT or not kinds & _MENDED:
            self.report.add(item.problems)
            return
        try:
            mended = self._mend(item)
        except OSError as error:
            self.report.add([unrepaired(encode_fs(item.path), error)])
            mended = False
        self.report.counts["repaired"] += mended
        self.report.add(found for found in item.problems if not mended or found.kind not in _MENDED)

    def _see_problem(self, found: Problem) -> bool:
        if found.kind == "leftover":
            # Entering the work directory removes leftovers.
            self._on_step(RepairStep("remove", found.path))
            if not self._dry_run:
                self._staging(os.path.dirname(os.path.join(self._walk.base, found.path)))
            return True
        if found.kind != "empty":
            return False
        return self._prune(decode_fs(found.path).removeprefix(f"{ROOT}/"))

    def _prune(self, place: str) -> bool:
        """Remove an empty directory and those above it that become empty; return whether it is gone."""
        removed: list[bytes] = []
        try:
            if self._dry_run:
                removed = would_prune(self._walk.tree, encode_fs(place), self._pruned)
            else:
                with self._staging(self._walk.work_directory).lock():
                    prune_empty_parents(self._walk.tree, encode_fs(place), removed)
        except OSError as error:
            stuck = os.path.relpath(error.filename, self._walk.base) if error.filename else encode_fs(f"{ROOT}/{place}")
            self.report.add([unrepaired(stuck, error)])  # possibly a directory above
        for path in removed:
            self._on_step(RepairStep("prune", encode_fs(ROOT) + b"/" + path))
        return bool(removed) or not exists(os.path.join(self._walk.tree, encode_fs(place)))

    def _mend(self, record: StoreObject) -> bool:
        """Encapsulate one object; return whether that was done, or would be."""
        place = record.path.removeprefix(f"{ROOT}/")
        with contextlib.nullcontext() if self._dry_run else self._staging(self._walk.work_directory).lock():
            found = self._walk.contents(place)
            if found is None:
                return True  # removed meanwhile
            directory = os.path.join(self._walk.tree, encode_fs(place))
            change = self._change(record, directory, found)
            if change is not None and not self._dry_run:
                if found.ours:
                    found = self._walk.finish(record.id or "", place)
                if found.members and not found.is_one_directory:
                    encapsulate(directory, found.members)
        if change is not None:
            self._on_step(change)
        return change is not None

    def _change(self, record: StoreObject, directory: bytes, found: Contents) -> RepairStep | None:
        """Return the required change; :data:`None` if no change is required or possible."""
        if not found.ours and (found.is_one_directory or not found.members):
            return None  # already repaired
        if any(entry.name in (REPAIRING, REPLACED) for entry in found.reserved):
            return None  # the name is in use by another program
        if unreached(found, record.path):
            return None  # they may lead to a branch of the tree
        broken = unmovable(directory, found.members)
        if broken:
            path = encode_fs(record.path) + b"/"
            self.report.add(problem("link-unmoved", path + name) for name in broken)
            return None
        names = tuple(entry.name for entry in found.members)
        return RepairStep("finish" if found.ours else "encapsulate", encode_fs(record.path), names)

    def _staging(self, folder: bytes) -> RunDirectory:
        if folder not in self._run_directories:
            with store_errors(folder):  # required for any repair
                self._run_directories[folder] = self.enter_context(RunDirectory(folder))
        return self._run_directories[folder]
