"""One pass over a store: each object is checked without reading content, and measured."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from time import gmtime, strftime
from typing import TYPE_CHECKING, NamedTuple, cast

from pressmark.errors import BagError, ObjectError
from pressmark.fs.names import decode_fs, encode_fs
from pressmark.progress_event import ProgressEvent
from pressmark.reports import Problem, Report
from pressmark.stores.comparing.object_pairs import statuses_of
from pressmark.stores.exceptions import store_errors
from pressmark.stores.objects import OnEvent, StoreObject
from pressmark.stores.ocfl.history import version_names
from pressmark.stores.ocfl.inventory import INVENTORY, InventoryError, logical_files, read_inventory
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item
from pressmark.stores.reporting.statistics import Statistics, month_of
from pressmark.stores.store import Store
from pressmark.stores.stored_object import StoredObject
from pressmark.stores.walked_store import StoreWalk, WalkedStore
from pressmark.threads import ordered_map, resolve_threads

if TYPE_CHECKING:
    from pressmark.stores.bags.bag_object import BagObject
    from pressmark.stores.ocfl.check import ObjectResult
    from pressmark.stores.ocfl.checking.object_tree import ObjectTree
    from pressmark.stores.ocfl.root import OcflRoot

__all__ = ["measure"]


def measure(store: Store, on_event: OnEvent, threads: int | None, ignore: Sequence[str]) -> Statistics:
    """Check and measure the objects of a store, and return its numbers.

    :param on_event: called with each problem, and with the progress
    :raises StoreError: the store cannot be read
    """
    if store.kind == "ocfl":
        return _measure_ocfl(cast("OcflRoot", store), on_event, threads, ignore)
    assert isinstance(store, WalkedStore)
    total = Statistics()
    failed = 0
    for items, found in _measured(store, threads, ignore):
        for item in items:
            for one in [item] if isinstance(item, Problem) else item.problems:
                failed += 1
                on_event(one)
        total.add(found)
        on_event(ProgressEvent(items=total.objects, failed=failed))
    return total


# --- storage roots ----------------------------------------------------------------------------------------------------


def _measure_ocfl(root: OcflRoot, on_event: OnEvent, threads: int | None, ignore: Sequence[str]) -> Statistics:
    from pressmark.stores.ocfl.check import Check

    total = Statistics()

    def on_object(found: ObjectResult) -> None:
        total.add(found.measured or Statistics.of_unreadable())

    with store_errors(root.root):
        Check(root, on_event, on_object, measure=_of_ocfl_object).report(False, resolve_threads(threads), ignore)
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


class _Measured(NamedTuple):
    """An object after its check, or a problem outside of objects.

    :ivar items: its record, or what replaces it
    """

    items: Sequence[Item]
    statistics: Statistics


def _measured(store: WalkedStore, threads: int | None, ignore: Sequence[str]) -> Iterator[_Measured]:
    yield _Measured(store.own_problems(), Statistics())
    items = _items(store.walk.with_options(ignore), threads)
    examine = partial(_examined, store, ignore)
    if store.bucket is None:
        yield from ordered_map(examine, items, threads=threads, name="pressmark-report")
        return
    from pressmark.buckets.requests import in_order  # most stores are on a disk

    yield from in_order(examine, items, patience=0.5)


def _items(walk: StoreWalk, threads: int | None) -> Iterator[Item]:
    """Yield the objects, and the problems outside of objects, in order."""
    problems: list[Problem] = []
    for record in chain(walk.objects(threads, problems.append), [None]):
        yield from problems
        problems.clear()
        if record is not None:
            yield record


def _examined(store: WalkedStore, ignore: Sequence[str], item: Item) -> _Measured:
    if isinstance(item, Problem):
        return _Measured([item], Statistics())
    items = store.examine(item, False, Report(counts={"files": 0, "bytes": 0}), ignore)
    total = Statistics()
    for record in [one for one in items if isinstance(one, StoreObject)]:
        try:
            total.add(_of_object(store, record))
        except (ObjectError, OSError) as error:
            total.add(Statistics.of_unreadable())
            if not any(one.severity == "error" for one in record.problems):
                reason = error.reason if isinstance(error, ObjectError) else error.strerror or str(error)
                items.append(problem("unreadable", encode_fs(record.path), reason))
    return _Measured(items, total)


def _of_object(store: WalkedStore, record: StoreObject) -> Statistics:
    """Return the numbers of an object without versions.

    :raises ObjectError: it cannot be read
    :raises OSError: a file cannot be looked at
    """
    found = store.locate(record)
    statistics = Statistics()
    statuses = _statuses(store, found)
    bagged = _bagging_month(cast("BagObject", found)) if store.kind == "bags" else ""
    months = {name: bagged or _month_of_time(one.st_mtime) for name, one in statuses.items()}
    first = min(filter(None, months.values()), default=bagged)
    statistics.add_stored(first, 0, 0, 1)
    for name, status in statuses.items():
        statistics.add_file(name, status.st_size)
        statistics.add_stored(months[name], 1, status.st_size)
    dates = "bagging-date" if bagged else "modified" if first else "unknown"
    return statistics.end_object(record.id or record.path, dates)


def _statuses(store: WalkedStore, found: StoredObject) -> dict[str, os.stat_result]:
    known = getattr(found, "statuses", None)  # a listing has them
    if known is not None:
        return dict(known)
    files = dict(found.files())
    return dict(zip(files, statuses_of(store, list(files.values())), strict=True))


def _month_of_time(seconds: float) -> str:
    """Return a month in UTC; empty if the year does not have four digits."""
    try:
        return month_of(strftime("%Y-%m", gmtime(seconds)))
    except (OverflowError, ValueError, OSError):
        return ""


def _bagging_month(bag: BagObject) -> str:
    """Return the month in the Bagging-Date of a bag; empty without one."""
    from pressmark.stores.bags import archives  # most stores have no bags

    try:
        info = archives.describe(os.fsencode(bag.bag_path)).info if bag.serialized else bag.bag().info
    except BagError:
        return ""
    return month_of(info.first("Bagging-Date"))
