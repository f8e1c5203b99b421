"""Repair of a folder of bags; bags are not changed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from functools import partial

from pressmark.fs.staging import RunDirectory
from pressmark.reports import Problem, Report
from pressmark.stores.bags.check import check
from pressmark.stores.bags.walk import REPLACED, BagWalk
from pressmark.stores.exceptions import store_errors
from pressmark.stores.objects import OnEvent, RepairStep, StoreObject
from pressmark.stores.repairing.repairs import Repairs
from pressmark.stores.store_change import ChangedStore

__all__ = ["discard", "repair"]


def repair(store: ChangedStore, walk: BagWalk, dry_run: bool, on_event: OnEvent | None) -> Report:
    """Repair a folder without changing bags; see :meth:`pressmark.stores.BagFolder.repair`."""
    changes = {"unfinished": _put_back, "leftover": _remove_old, "index-outdated": _remove_index}
    with store_errors(walk.base):
        with Repairs(store, walk.base, dry_run, on_event) as run:
            # Listed before anything is removed.
            items = list(walk.items())
            run.clear(walk.work_directory)
            for item in items:
                for found in item.problems if isinstance(item, StoreObject) else [item]:
                    if found.kind == "empty":
                        run.repair(found, partial(run.prune, os.fsencode(found.path)))
                    elif found.kind in changes:
                        run.repair(found, partial(changes[found.kind], walk, run, found))
        checked = run.remaining(check(walk, False, None, None))
    counts = {"objects": checked.counts["objects"], "repaired": run.counts.total()}
    return Report([*run.stuck, *checked.problems], counts, checked.steps)


def _put_back(walk: BagWalk, run: Repairs, found: Problem) -> Iterator[RepairStep]:
    """Undo an interrupted replacement, unless another run has completed it."""
    path = os.fsencode(found.path)
    own = path.removesuffix(REPLACED)
    if run.exists(path) and not run.exists(own):
        run.move(path, own)
        yield RepairStep("finish", found.path)


def _remove_old(walk: BagWalk, run: Repairs, found: Problem) -> Iterator[RepairStep]:
    """Remove the old bag beside the new one."""
    path = os.fsencode(found.path)
    own = path.removesuffix(REPLACED)
    if own != path and run.exists(path) and run.exists(own):
        if not run.dry_run:
            discard(run.staging, os.path.join(walk.base, path))
        yield RepairStep("remove", found.path)


def _remove_index(walk: BagWalk, run: Repairs, found: Problem) -> Iterator[RepairStep]:
    if not run.dry_run:
        walk.index.discard()
    yield RepairStep("remove", found.path)


def discard(staging: RunDirectory, path: bytes) -> None:
    """Move a directory to the staging directory for removal, which may contain others of its name."""
    os.rename(path, os.path.join(tempfile.mkdtemp(dir=staging.path), os.path.basename(path)))
