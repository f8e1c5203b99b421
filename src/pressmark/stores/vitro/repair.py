"""Repairs of a Vitro store, where they are unambiguous."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from pressmark.fs.durable import exists, flush_directory
from pressmark.fs.moves import make_parents, prune_empty_parents, rename_new
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.fs.staging import own_leftovers
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import store_errors, unrepaired
from pressmark.stores.objects import OnEvent, RepairStep, StoreObject
from pressmark.stores.store_change import StoreChange
from pressmark.stores.vitro.walk import ROOT, Walk
from pressmark.stores.walked_store import WalkedStore, would_prune

__all__ = ["Repair"]


class Repair(StoreChange):
    """One repair of a store.

    :param store: the store
    :param walk: of the store
    :param dry_run: report the changes without making them
    :param on_event: called with each :class:`RepairStep`
    """

    _store: WalkedStore

    def __init__(self, store: WalkedStore, walk: Walk, dry_run: bool, on_event: OnEvent | None) -> None:
        super().__init__(store)
        self._walk = walk
        self._dry_run = dry_run
        self._on_step = on_event or (lambda _event: None)
        self._mended = 0
        # The effects of a dry run so far: removed paths, new paths, and new names by the old.
        self._gone: set[bytes] = set()
        self._come: set[bytes] = set()
        self._renamed: dict[bytes, bytes] = {}

    def run(self) -> Report:
        """Make all repairs, and check the result."""
        walk = self._walk
        done: set[Problem] = set()
        with self:
            renaming = walk.renaming()
            if renaming is not None:
                self._on_step(RepairStep("finish", encode_fs(f"{ROOT}/{renaming.place}")))
            for left in own_leftovers(walk.work_directory):
                self._on_step(RepairStep("remove", os.path.relpath(left, walk.base)))
            if not self._dry_run and os.path.isdir(walk.work_directory):
                # Entering it removes leftovers.
                with self._turn():
                    walk.finish(walk.work_directory, self._store.durable)
            # Listed before anything is moved, so that no object is seen twice.
            items = list(self._to_mend())
            stuck: list[Problem] = []
            for item, problems in items:
                for found in problems:
                    try:
                        if self._mend(item, found):
                            done.add(found)
                    except OSError as error:
                        stuck.append(unrepaired(found.path, error))
        report = self._store.check(ignore=walk.ignore)
        report.add(stuck)
        if self._dry_run:
            gone = {"leftover", "unfinished"}
            report.problems = [one for one in report.problems if one not in done and one.kind not in gone]
        report.counts["repaired"] = self._mended
        return report

    def _to_mend(self) -> Iterator[tuple[StoreObject | None, Sequence[Problem]]]:
        for item in self._walk.items():
            if isinstance(item, Problem):
                if item.kind == "empty":
                    yield None, [item]
            elif {found.kind for found in item.problems} & {"bad-file-name", "hidden"}:
                # Rename first, because a move keeps the name.
                yield item, sorted(item.problems, key=lambda found: found.kind)

    def _turn(self) -> AbstractContextManager[object]:
        if self._dry_run:
            return contextlib.nullcontext()
        with store_errors(self._walk.base):  # required for any repair
            staging = self.staging
        return staging.lock()

    def _mend(self, item: StoreObject | None, found: Problem) -> bool:
        """Repair one problem, or on a dry run check whether this is possible."""
        with self._turn():
            if item is None:
                return self._prune(found.path)
            place = item.path.removeprefix(f"{ROOT}/")
            files = self._walk.files(place)
            if len(files) != 1 or found.expected is None:
                return False
            if found.kind == "bad-file-name":
                if encode_fs(f"{item.path}/") + files[0] != found.path:
                    return False  # replaced meanwhile
                new, action = os.path.join(encode_fs(place), encode_fs(found.expected)), "rename"
            elif found.kind == "hidden" and item.id is not None:
                target = found.expected.removeprefix(f"{ROOT}/")
                if self._walk.files(target):
                    return False
                new, action = os.path.join(encode_fs(target), files[0]), "move"
            else:
                return False
            return self._rename(action, os.path.join(encode_fs(place), files[0]), new)

    def _prune(self, path: bytes) -> bool:
        place = path.removeprefix(encode_fs(ROOT) + b"/")
        removed = self._would_prune(place) if self._dry_run else prune_empty_parents(self._walk.tree, place)
        for one in removed:
            self._on_step(RepairStep("prune", encode_fs(ROOT) + b"/" + one))
        return True

    def _would_prune(self, place: bytes) -> list[bytes]:
        return would_prune(self._walk.tree, place, self._gone, self._come)

    def _would_rename(self, action: str, old: bytes, new: bytes) -> tuple[bytes, bytes]:
        """Record the effect of a renaming, and return the resulting names."""
        if action == "rename":
            self._renamed[old] = new
            return old, new
        self._gone.add(old)
        name = os.path.basename(self._renamed.get(old, old))
        above = os.path.dirname(new)
        new = os.path.join(above, name)
        while above:
            self._come.add(above)
            above = os.path.dirname(above)
        self._would_prune(os.path.dirname(old))
        return os.path.join(os.path.dirname(old), name), new

    def _rename(self, action: str, old: bytes, new: bytes) -> bool:
        tree = self._walk.tree
        target = os.path.join(tree, new)
        if len(os.path.basename(new)) > 255 or exists(target):
            return False
        if self._walk.link(decode_fs(os.path.dirname(new))) is not None:
            return False
        if self._dry_run:
            old, new = self._would_rename(action, old, new)
        else:
            try:
                made = make_parents(tree, os.path.dirname(new))
                rename_new(os.path.join(tree, old), target)
            except OSError as error:
                prune_empty_parents(tree, os.path.dirname(new), strict=False)
                if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
                    return False
                raise
            if self._store.durable:
                for directory in {os.path.dirname(target), *(os.path.dirname(os.path.join(tree, m)) for m in made)}:
                    flush_directory(directory)
        self._mended += 1
        self._on_step(RepairStep(action, encode_fs(ROOT) + b"/" + old, (encode_fs(ROOT) + b"/" + new,)))
        if not self._dry_run:
            prune_empty_parents(tree, os.path.dirname(old), strict=False)
        return True
