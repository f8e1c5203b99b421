"""Repairs of a Pairtree: encapsulate objects, complete interrupted changes, remove empty ppaths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from pressmark.fs.names import encode_fs
from pressmark.reports import Problem, Report
from pressmark.stores.exceptions import store_errors
from pressmark.stores.objects import OnEvent, RepairStep, StoreObject
from pressmark.stores.pairtree.object_directory import REPAIRING, REPLACED, ROOT, encapsulate, unmovable, unreached
from pressmark.stores.pairtree.walk import Walk
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item
from pressmark.stores.repairing.repairs import Repairs
from pressmark.stores.walked_store import WalkedStore

__all__ = ["repair"]

# Problems repaired by moving all files of the object to one directory.
_GATHERED = {"bare-file", "post-morty", "split-end", "unfinished"}
_MENDED = {*_GATHERED, "empty", "leftover"}


def repair(store: WalkedStore, walk: Walk, dry_run: bool, on_event: OnEvent | None) -> Report:
    """Repair a tree, and return the report of the remaining problems.

    :param walk: of the tree
    :param dry_run: report the changes without making them
    :param on_event: called with each :class:`RepairStep`
    """
    report = Report(list(store.own_problems()), {"objects": 0, "repaired": 0})
    with store_errors(walk.base), Repairs(store, walk.base, dry_run, on_event) as run:
        run.clear(walk.work_directory)
        for item in walk.items():
            problems = item.problems if isinstance(item, StoreObject) else [item]
            report.counts["objects"] += isinstance(item, StoreObject)
            if not problems:
                continue  # most objects
            is_gone = _mend(walk, run, item)
            report.add(run.stuck)
            run.stuck.clear()
            report.add(one for one in problems if not is_gone or one.kind not in _MENDED)
    report.counts["repaired"] = sum(run.counts[kind] for kind in _GATHERED)
    return report


def _mend(walk: Walk, run: Repairs, item: Item) -> bool:
    """Repair one item of the walk if possible; return whether its repairable problems are gone."""
    path = os.fsencode(item.path)
    if isinstance(item, Problem):
        if item.kind == "leftover":
            run.clear(os.path.dirname(os.path.join(walk.base, path)))
            return run.dry_run or not run.exists(path)
        if item.kind != "empty":
            return False
        is_done = run.repair(item, partial(run.prune, path, encode_fs(ROOT)))
    else:
        found = next((one for one in item.problems if one.kind in _GATHERED), None)
        if found is None or item.path == ROOT:
            return False
        is_done = run.repair(found, partial(_gather, walk, run, item))
        run.repaired.discard((found.kind, found.path))  # there may be millions
    return is_done or not run.exists(path)


def _gather(walk: Walk, run: Repairs, item: StoreObject) -> Iterator[RepairStep]:
    """Encapsulate one object."""
    ppath, path = item.path.removeprefix(f"{ROOT}/"), encode_fs(item.path)
    directory = os.path.join(walk.base, path)
    entries = walk.contents(ppath)
    if entries is None:
        return  # removed meanwhile
    if not entries.ours and (entries.is_one_directory or not entries.members):
        return  # already repaired
    if any(entry.name in (REPAIRING, REPLACED) for entry in entries.reserved):
        return  # the name is in use by another program
    if unreached(entries, item.path):
        return  # they may lead to a branch of the tree
    broken = unmovable(directory, entries.members)
    if broken:
        run.stuck += [problem("link-unmoved", path + b"/" + name) for name in broken]
        return
    step = RepairStep.of("finish" if entries.ours else "encapsulate", path, [entry.name for entry in entries.members])
    if not run.dry_run:
        if entries.ours:
            entries = walk.finish(item.id or "", ppath)
        if entries.members and not entries.is_one_directory:
            encapsulate(directory, entries.members)
    yield step
