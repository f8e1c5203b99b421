"""What can be mended around the bags of a folder; nothing in a bag is changed."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence

from pressmark.fs.durable import flush_directory
from pressmark.fs.entries import would_be_empty
from pressmark.fs.moves import prune_empty_parents, restore
from pressmark.fs.names import encode_fs
from pressmark.fs.run_directories import RunDirectory
from pressmark.reports import Problem, Report
from pressmark.stores.bags.bag_folder_reader import REPLACED, WORKSHOP, BagFolderReader
from pressmark.stores.exceptions import store_errors, unrepaired
from pressmark.stores.store import Changed, OnEvent, StoreObject

__all__ = ["discard", "repair"]


def repair(
    bags: BagFolderReader, *, dry_run: bool = False, on_event: OnEvent | None = None, ignore: Sequence[str] = ()
) -> Report:
    """Mend what lies around the bags, and report what remains; nothing in a bag is changed.

    =========== ==========================================================================================
    ``finish``  a replacement that was interrupted is finished
    ``prune``   empty directories are removed
    ``remove``  what killed runs have left
    =========== ==========================================================================================
    """
    tell = on_event or (lambda _event: None)
    report = Report(counts={"objects": 0, "repaired": 0})
    workshop = os.path.join(bags._base, WORKSHOP)
    with store_errors(bags._base), contextlib.ExitStack() as stack:
        # All of it before anything is removed.
        items = list(bags._walk(ignore))
        shop = None
        if not dry_run and (os.path.isdir(workshop) or any(_mendable(item) for item in items)):
            shop = stack.enter_context(RunDirectory(workshop))
        gone: set[bytes] = set()
        for item in items:
            if isinstance(item, StoreObject):
                report.counts["objects"] += 1
            action = _mendable(item)
            if action is None:
                report.add(item.problems if isinstance(item, StoreObject) else [item])
                continue
            try:
                with shop.lock() if shop is not None else contextlib.nullcontext():
                    done = list(_mend(bags, action, item, shop, gone))
            except OSError as error:
                report.add([unrepaired(encode_fs(item.path), error)])
                report.add(item.problems if isinstance(item, StoreObject) else [item])
                continue
            for path in done:
                tell(Changed(action, path))
            report.counts["repaired"] += bool(done)
            if isinstance(item, StoreObject):
                report.add(one for one in item.problems if one.kind != "unfinished")
    return report


def _mendable(item: StoreObject | Problem) -> str | None:
    if isinstance(item, StoreObject):
        return "finish" if any(one.kind == "unfinished" for one in item.problems) else None
    return {"empty": "prune", "leftover": "remove"}.get(item.kind)


def _mend(
    bags: BagFolderReader, action: str, item: StoreObject | Problem, shop: RunDirectory | None, gone: set[bytes]
) -> Iterator[bytes]:
    """Mend one thing, and give the paths that are concerned; without a workshop only these."""
    place = encode_fs(item.path)
    path = os.path.join(bags._base, place)
    own = path.removesuffix(REPLACED)
    if action == "finish":
        if shop is None:
            yield place
        elif restore(path, own):  # else another run has finished it
            flush_directory(os.path.dirname(path))
            yield place
    elif action == "remove":
        yield place
        if shop is not None and not place.startswith(WORKSHOP) and os.path.lexists(path) and os.path.lexists(own):
            discard(shop, path)
    elif shop is not None:
        yield from prune_empty_parents(bags._base, place)
    else:
        while place and would_be_empty(os.path.join(bags._base, place), place, gone):
            gone.add(place)
            yield place
            place = os.path.dirname(place)


def discard(shop: RunDirectory, path: bytes) -> None:
    """Move into a workshop what is to be removed; there may be others of its name in it."""
    os.rename(path, os.path.join(tempfile.mkdtemp(dir=shop.path), os.path.basename(path)))
