"""Repair of a folder of bags; bags are not changed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence

from pressmark.fs.durable import flush_directory
from pressmark.fs.moves import prune_empty_parents, restore
from pressmark.fs.names import encode_fs
from pressmark.fs.staging import RunDirectory
from pressmark.fs.trees import would_be_empty
from pressmark.reports import Problem, Report
from pressmark.stores.bags.bag_folder_reader import REPLACED, WORK_DIRECTORY, BagFolderReader
from pressmark.stores.bags.check import check
from pressmark.stores.exceptions import store_errors, unrepaired
from pressmark.stores.objects import OnEvent, RepairStep, StoreObject

__all__ = ["discard", "repair"]


def repair(
    bags: BagFolderReader, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()
) -> Report:
    """Repair the folder without changing bags, and report the remaining problems.

    =========== ==========================================================================================
    ``finish``  an interrupted replacement is completed
    ``prune``   empty directories are removed
    ``remove``  temporary directories of killed runs, and an outdated index, are removed
    =========== ==========================================================================================
    """
    tell = on_event or (lambda _event: None)
    report = Report(counts={"objects": 0, "repaired": 0})
    folder = os.path.join(bags._base, WORK_DIRECTORY)
    with store_errors(bags._base), contextlib.ExitStack() as stack:
        # Listed before anything is removed.
        items = list(bags._walk(ignore))
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
                    done = list(_mend(bags, action, item, staging, gone))
            except OSError as error:
                report.add([unrepaired(encode_fs(item.path), error)])
                continue
            for path in done:
                tell(RepairStep(action, path))
            report.counts["repaired"] += bool(done)
            problems = item.problems if isinstance(item, StoreObject) else [item]
            mended.update((one.kind, one.path) for one in problems if action != "finish" or one.kind == "unfinished")
    found = check(bags, ignore=ignore)
    report.counts["objects"] = found.counts["objects"]
    report.add(one for one in found.problems if not dry_run or (one.kind, one.path) not in mended)
    return report


def _mendable(item: StoreObject | Problem) -> str | None:
    if isinstance(item, StoreObject):
        return "finish" if any(one.kind == "unfinished" for one in item.problems) else None
    return {"empty": "prune", "leftover": "remove", "index-outdated": "remove"}.get(item.kind)


def _mend(
    bags: BagFolderReader, action: str, item: StoreObject | Problem, staging: RunDirectory | None, gone: set[bytes]
) -> Iterator[bytes]:
    """Repair one item, and yield the changed paths; without a staging directory, yield only."""
    place = encode_fs(item.path)
    path = os.path.join(bags._base, place)
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
            bags._index.discard()
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
        yield from prune_empty_parents(bags._base, place)
    else:
        while place and would_be_empty(os.path.join(bags._base, place), place, gone):
            gone.add(place)
            yield place
            place = os.path.dirname(place)


def discard(staging: RunDirectory, path: bytes) -> None:
    """Move a directory to the staging directory for removal, which may contain others of its name."""
    os.rename(path, os.path.join(tempfile.mkdtemp(dir=staging.path), os.path.basename(path)))
