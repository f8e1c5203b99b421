"""Repair of a folder of bags; bags are not changed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

from pressmark.fs.durable import flush_directory
from pressmark.fs.moves import prune_empty_parents, restore
from pressmark.fs.names import encode_fs
from pressmark.fs.staging import RunDirectory
from pressmark.reports import Problem, Report
from pressmark.stores.bags.check import check
from pressmark.stores.bags.walk import REPLACED, WORK_DIRECTORY, BagWalk
from pressmark.stores.exceptions import store_errors, unrepaired
from pressmark.stores.objects import OnEvent, RepairStep, StoreObject
from pressmark.stores.walked_store import would_prune

__all__ = ["discard", "repair"]


def repair(walk: BagWalk, dry_run: bool, on_event: OnEvent | None) -> Report:
    """Repair a folder without changing bags; see :meth:`pressmark.stores.BagFolder.repair`."""
    on_step = on_event or (lambda _event: None)
    report = Report(counts={"objects": 0, "repaired": 0})
    folder = walk.work_directory
    with store_errors(walk.base), contextlib.ExitStack() as stack:
        # Listed before anything is removed.
        items = list(walk.items())
        staging = None
        if not dry_run and (os.path.isdir(folder) or any(_mendable(item) for item in items)):
            staging = stack.enter_context(RunDirectory(folder))
        gone: set[bytes] = set()
        mended: set[tuple[str, bytes]] = set()
        for item in items:
            action = _mendable(item)
            if action is None:
                continue
            try:
                with staging.lock() if staging is not None else contextlib.nullcontext():
                    done = list(_mend(walk, action, item, staging, gone))
            except OSError as error:
                report.add([unrepaired(encode_fs(item.path), error)])
                continue
            for path in done:
                on_step(RepairStep(action, path))
            report.counts["repaired"] += bool(done)
            problems = item.problems if isinstance(item, StoreObject) else [item]
            mended.update((one.kind, one.path) for one in problems if action != "finish" or one.kind == "unfinished")
    found = check(walk, False, None, None, None)
    report.counts["objects"] = found.counts["objects"]
    report.add(one for one in found.problems if not dry_run or (one.kind, one.path) not in mended)
    return report


def _mendable(item: StoreObject | Problem) -> str | None:
    if isinstance(item, StoreObject):
        return "finish" if any(one.kind == "unfinished" for one in item.problems) else None
    return {"empty": "prune", "leftover": "remove", "index-outdated": "remove"}.get(item.kind)


def _mend(
    walk: BagWalk, action: str, item: StoreObject | Problem, staging: RunDirectory | None, gone: set[bytes]
) -> Iterator[bytes]:
    """Repair one item, and yield the changed paths; without a staging directory, yield only."""
    place = encode_fs(item.path)
    path = os.path.join(walk.base, place)
    own = path.removesuffix(REPLACED)
    if action == "finish":
        if staging is None:
            yield place
        elif restore(path, own):  # otherwise another run has completed it
            flush_directory(os.path.dirname(path))
            yield place
    elif isinstance(item, Problem) and item.kind == "index-outdated":
        yield place
        if staging is not None:
            walk.index.discard()
    elif action == "remove":
        yield place
        if (
            staging is not None
            and not place.startswith(WORK_DIRECTORY)
            and os.path.lexists(path)
            and os.path.lexists(own)
        ):
            discard(staging, path)
    elif staging is not None:
        yield from prune_empty_parents(walk.base, place)
    else:
        yield from would_prune(walk.base, place, gone)


def discard(staging: RunDirectory, path: bytes) -> None:
    """Move a directory to the staging directory for removal, which may contain others of its name."""
    os.rename(path, os.path.join(tempfile.mkdtemp(dir=staging.path), os.path.basename(path)))
