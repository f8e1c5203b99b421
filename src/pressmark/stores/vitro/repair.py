"""Repairs of a Vitro store, where they are unambiguous."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

from pressmark.fs.names import NAME_MAX, decode_fs, encode_fs
from pressmark.reports import Problem, Report
from pressmark.stores.objects import OnEvent, RepairStep, StoreObject
from pressmark.stores.repairing.repairs import Repairs
from pressmark.stores.vitro.walk import ROOT, Walk
from pressmark.stores.walked_store import WalkedStore

__all__ = ["repair"]

_ROOT = encode_fs(ROOT)
# Problems of an object's path and of its file's name.
_MENDED = {"bad-file-name", "hidden"}


def repair(store: WalkedStore, walk: Walk, dry_run: bool, on_event: OnEvent | None) -> Report:
    """Make all repairs, and check the result.

    :param walk: of the store
    :param dry_run: report the changes without making them
    :param on_event: called with each :class:`RepairStep`
    """
    with Repairs(store, walk.base, dry_run, on_event) as run:
        _finish(store, walk, run)
        # Listed before anything is moved, so that no object is seen twice.
        for item, problems in list(_to_mend(walk)):
            for found in problems:
                if item is None:
                    run.repair(found, partial(run.prune, os.fsencode(found.path), _ROOT))
                elif found.kind in _MENDED:
                    run.repair(found, partial(_moved, walk, run, item, found))
    report = run.remaining(store.check(ignore=walk.ignore))
    report.add(run.stuck)
    report.counts["repaired"] = sum(run.counts[kind] for kind in _MENDED)
    return report


def _finish(store: WalkedStore, walk: Walk, run: Repairs) -> None:
    """Complete an interrupted renaming, and remove the leftovers of killed runs."""
    renaming = walk.renaming()
    if renaming is not None:
        path = encode_fs(f"{ROOT}/{renaming.directory}")
        run.note([RepairStep.of("finish", path)], "unfinished", path)
    run.clear(walk.work_directory)
    if not run.dry_run and os.path.isdir(walk.work_directory):
        with run.lock():
            walk.finish(walk.work_directory, store.durable)


def _to_mend(walk: Walk) -> Iterator[tuple[StoreObject | None, Sequence[Problem]]]:
    for item in walk.items():
        if isinstance(item, Problem):
            if item.kind == "empty":
                yield None, [item]
        elif {found.kind for found in item.problems} & _MENDED:
            # Rename first, because a move keeps the name.
            yield item, sorted(item.problems, key=lambda found: found.kind)


def _moved(walk: Walk, run: Repairs, item: StoreObject, found: Problem) -> Iterator[RepairStep]:
    """Rename or move the file of an object."""
    if found.expected is None:
        return
    directory = encode_fs(item.path)
    names = _files(walk, run, directory)
    if len(names) != 1:
        return
    old = os.path.join(directory, names[0])
    if found.kind == "bad-file-name":
        if old != os.fsencode(found.path):
            return  # replaced meanwhile
        action, new = "rename", os.path.join(directory, encode_fs(found.expected))
    else:
        target = encode_fs(found.expected)
        if item.id is None or _files(walk, run, target):
            return
        action, new = "move", os.path.join(target, names[0])
    directory = os.path.dirname(new)
    if len(os.path.basename(new)) > NAME_MAX or walk.link(decode_fs(directory).removeprefix(f"{ROOT}/")) is not None:
        return
    try:
        run.move(old, new, _ROOT)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        return
    yield RepairStep.of(action, old, (new,))


def _files(walk: Walk, run: Repairs, directory: bytes) -> list[bytes]:
    return run.names(directory, walk.files(decode_fs(directory).removeprefix(f"{ROOT}/")))
