"""One pass over a store: each object is checked without reading content, and measured."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import gmtime, monotonic, strftime
from typing import TYPE_CHECKING, NamedTuple, cast

from pressmark.errors import ObjectError, PressmarkError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.progress_event import EventListener, Progress, ProgressEvent
from pressmark.reports import Problem, Report
from pressmark.stores.comparing.object_pairs import statuses_of
from pressmark.stores.exceptions import store_errors
from pressmark.stores.objects import StoreObject
from pressmark.stores.ocfl.history import version_names
from pressmark.stores.ocfl.inventory import INVENTORY, InventoryError, logical_files, read_inventory
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item
from pressmark.stores.reporting.statistics import Statistics, month_of
from pressmark.stores.store import Store
from pressmark.stores.stored_object import StoredObject
from pressmark.stores.walked_store import WalkedStore
from pressmark.threads import ordered_map, resolve_threads

if TYPE_CHECKING:
    from pressmark.stores.ocfl.checking.object_tree import ObjectTree
    from pressmark.stores.ocfl.root import OcflRoot

__all__ = ["measure"]

PROGRESS_EVERY = 0.1  # seconds


class _Measured(NamedTuple):
    """An object of a store after its check.

    :ivar items: its record, or what replaces it
    :ivar statistics: :data:`None` if it cannot be measured, or no longer exists
    """

    items: Sequence[Item]
    statistics: Statistics | None


def measure(
    store: Store,
    on_problem: Callable[[Problem], object],
    threads: int | None,
    progress: Progress | None,
    ignore: Sequence[str],
) -> Statistics:
    """Check and measure the objects of a store, and return its numbers.

    :param on_problem: called with each problem
    :raises StoreError: the store cannot be read
    """
    if store.kind == "ocfl":
        return _measure_ocfl(cast("OcflRoot", store), on_problem, threads, progress, ignore)
    assert isinstance(store, WalkedStore)
    total = Statistics()
    failed = 0

    def report(found: Problem) -> None:
        nonlocal failed
        failed += 1
        on_problem(found)

    for one in store.own_problems():
        report(one)
    next_progress = monotonic() + PROGRESS_EVERY
    for measured in _each(store, report, threads, ignore):
        for item in measured.items:
            for one in [item] if isinstance(item, Problem) else item.problems:
                report(one)
        if measured.statistics is not None:
            total.add(measured.statistics)
        if progress is not None and monotonic() >= next_progress:
            progress(ProgressEvent(items=total.objects, failed=failed))
            next_progress = monotonic() + PROGRESS_EVERY
    if progress is not None:
        progress(ProgressEvent(items=total.objects, failed=failed))
    return total


# --- storage roots ----------------------------------------------------------------------------------------------------


def _measure_ocfl(
    root: OcflRoot,
    on_problem: Callable[[Problem], object],
    threads: int | None,
    progress: Progress | None,
    ignore: Sequence[str],
) -> Statistics:
    from pressmark.stores.ocfl.check import Check, ObjectResult

    total = Statistics()

    def on_event(event: object) -> None:
        if isinstance(event, Problem):
            on_problem(event)
        elif progress is not None:
            progress(event)

    def on_object(found: ObjectResult) -> None:
        total.add(found.measured or Statistics().end_object(found.id or found.path, "unknown"))

    with store_errors(root.root):
        check = Check(root, EventListener(on_event), on_object, measure=_of_ocfl_object)
        check.report(False, resolve_threads(threads), ignore)
    return total


def _of_ocfl_object(tree: ObjectTree) -> Statistics | None:
    """Return the numbers of an OCFL object; :data:`None` if its inventory cannot be read.

    A content file counts in the month of the version in whose directory it is.
    """
    try:
        document = read_inventory(tree.content(INVENTORY))
        names = version_names(document)
        logical = list(logical_files(document))
        contents = {path for paths in document["manifest"].values() for path in paths}
        created = {name: month_of(document["versions"][name].get("created")) for name in names}
    except (InventoryError, OSError, AttributeError):
        return None
    found = Statistics()
    files, sizes = tree.files, tree.sizes
    for name, content, _digest in logical:
        if content in files:
            found.add_file(name, sizes[files[content]])
    found.add_stored(created[names[0]], 0, 0, 1)
    for content in contents & files.keys():
        found.add_stored(created.get(content.partition("/")[0], ""), 1, sizes[files[content]])
    identifier = document.get("id")
    name = identifier if isinstance(identifier, str) and identifier else decode_fs(tree.path)
    return found.end_object(name, "versions" if all(created.values()) else "unknown", len(names))


# --- other stores -----------------------------------------------------------------------------------------------------


def _each(
    store: WalkedStore, on_problem: Callable[[Problem], object], threads: int | None, ignore: Sequence[str]
) -> Iterator[_Measured]:
    records = store.walk.with_options(ignore).objects(threads, on_problem)
    examine = partial(_examined, store, ignore)
    if store.bucket is None:
        yield from ordered_map(examine, records, threads=threads, name="pressmark-report")
        return
    from pressmark.buckets.requests import in_order  # most stores are on a disk

    yield from in_order(examine, records, patience=0.5)


def _examined(store: WalkedStore, ignore: Sequence[str], record: StoreObject) -> _Measured:
    report = Report(counts={"files": 0, "bytes": 0})
    items = store.examine(record, False, report, ignore)
    there = next((one for one in items if isinstance(one, StoreObject)), None)
    if there is None:
        return _Measured(items, None)
    try:
        return _Measured(items, _of_object(store, there))
    except (ObjectError, OSError) as error:
        if not any(one.severity == "error" for one in there.problems):
            reason = error.reason if isinstance(error, ObjectError) else error.strerror or str(error)
            items = [*items, problem("unreadable", encode_fs(there.path), reason)]
        return _Measured(items, Statistics().end_object(there.id or there.path, "unknown"))


def _of_object(store: WalkedStore, record: StoreObject) -> Statistics:
    """Return the numbers of an object without versions.

    :raises ObjectError: it cannot be read
    :raises OSError: a file cannot be looked at
    """
    found = store.locate(record)
    statistics = Statistics()
    statuses = _statuses(store, found)
    bagged = _bagging_month(store, record) if store.kind == "bags" else ""
    times = {name: bagged or strftime("%Y-%m", gmtime(one.st_mtime)) for name, one in statuses.items()}
    first = min(times.values(), default=bagged)
    statistics.add_stored(first, 0, 0, 1)
    for name, status in statuses.items():
        statistics.add_file(name, status.st_size)
        statistics.add_stored(times[name], 1, status.st_size)
    dates = "bagging-date" if bagged else "modified" if first else "unknown"
    return statistics.end_object(record.id or record.path, dates)


def _statuses(store: WalkedStore, found: StoredObject) -> dict[str, os.stat_result]:
    known = getattr(found, "statuses", None)  # a listing has them
    if known is not None:
        return dict(known)
    files = dict(found.files())
    return dict(zip(files, statuses_of(store, list(files.values())), strict=True))


def _bagging_month(store: WalkedStore, record: StoreObject) -> str:
    """Return the month in the Bagging-Date of a bag; empty if it has none, or is serialized."""
    from pressmark.bagit import open as open_bag

    try:
        return month_of(open_bag(f"{store.root.rstrip('/')}/{record.path}").info.first("Bagging-Date"))
    except (PressmarkError, OSError):
        return ""
