"""One pass over a store: each object is checked without reading content, and measured."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
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
from pressmark.stores.ocfl.inventory import INVENTORY, InventoryError, read_inventory, version_state
from pressmark.stores.problems import problem
from pressmark.stores.recheck import Item
from pressmark.stores.reporting.statistics import ObjectNumbers, Statistics, month_of
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
    for items, objects in _measured(store, threads, ignore):
        for item in items:
            for one in [item] if isinstance(item, Problem) else item.problems:
                failed += 1
                on_event(one)
        for found in objects:
            total.add(found)
        on_event(ProgressEvent(items=total.objects, failed=failed))
    return total


# --- storage roots ----------------------------------------------------------------------------------------------------


def _measure_ocfl(root: OcflRoot, on_event: OnEvent, threads: int | None, ignore: Sequence[str]) -> Statistics:
    from pressmark.stores.ocfl.check import Check

    total = Statistics()

    def on_object(found: ObjectResult) -> None:
        total.add(found.measured)
        total.advised.update(one.code for one in found.advice)

    with store_errors(root.root):
        Check(root, on_event, on_object, measure=_of_ocfl_object).report(False, resolve_threads(threads), ignore)
    return total


def _of_ocfl_object(tree: ObjectTree) -> ObjectNumbers | None:
    """Return the numbers of an OCFL object; :data:`None` if its inventory cannot be read.

    A content file counts in the month of the version in whose directory it is.
    """
    try:
        document = read_inventory(tree.content(INVENTORY))
        names = version_names(document)
        manifest, state = version_state(document)
        created = {name: month_of(document["versions"][name].get("created")) for name in names}
    except (InventoryError, OSError, AttributeError):
        return None
    identifier = document.get("id")
    name = identifier if isinstance(identifier, str) and identifier else decode_fs(tree.path)
    dates = "versions" if all(created.values()) else "unknown"
    found = ObjectNumbers(name, dates, created[names[0]], len(names))
    files, sizes = tree.files, tree.sizes
    for digest, logical in state.items():
        number = files.get(manifest[digest][0])
        if number is not None:
            for one in logical:
                found.add_file(one, sizes[number])
    for content in {path for paths in manifest.values() for path in paths} & files.keys():
        found.add_stored(created.get(content.partition("/")[0], ""), sizes[files[content]])
    return found


# --- other stores -----------------------------------------------------------------------------------------------------


class _Measured(NamedTuple):
    """An object after its check, or a problem outside of objects.

    :ivar items: its record, or what replaces it
    :ivar objects: the numbers of each object among the items; :data:`None` for one that cannot be read
    """

    items: Sequence[Item]
    objects: Sequence[ObjectNumbers | None] = ()


def _measured(store: WalkedStore, threads: int | None, ignore: Sequence[str]) -> Iterator[_Measured]:
    yield _Measured(store.own_problems())
    items = _items(store.walk.with_options(ignore, readable=True), threads)
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
        return _Measured([item])
    items: list[Item] = [item]
    if store.kind == "bags":  # the walk has checked other objects
        items = store.examine(item, False, Report(counts={"files": 0, "bytes": 0}), ignore)
    objects: list[ObjectNumbers | None] = []
    for record in [one for one in items if isinstance(one, StoreObject)]:
        try:
            objects.append(_of_object(store, record))
        except (ObjectError, OSError) as error:
            objects.append(None)
            if not any(one.severity == "error" for one in record.problems):
                reason = error.reason if isinstance(error, ObjectError) else error.strerror or str(error)
                items.append(problem("unreadable", encode_fs(record.path), reason))
    return _Measured(items, objects)


def _of_object(store: WalkedStore, record: StoreObject) -> ObjectNumbers:
    """Return the numbers of an object without versions.

    :raises ObjectError: it cannot be read
    :raises OSError: a file cannot be looked at
    """
    stored = store.locate(record)
    bagged = _bagging_month(cast("BagObject", stored)) if store.kind == "bags" else ""
    found = ObjectNumbers(record.id or record.path)
    for name, status in _statuses(store, stored).items():
        found.add_file(name, status.st_size)
        found.add_stored(bagged or _month_of_time(status.st_mtime), status.st_size)
    found.first = min(filter(None, found.months), default=bagged)
    found.dates = "bagging-date" if bagged else "modified" if found.first else "unknown"
    return found


def _statuses(store: WalkedStore, stored: StoredObject) -> Mapping[str, os.stat_result]:
    known: Mapping[str, os.stat_result] | None = getattr(stored, "statuses", None)  # a listing has them
    if known is not None:
        return known
    files = dict(stored.files())
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
