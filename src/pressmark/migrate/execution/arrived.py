"""The number of objects that an unfinished run has moved into place."""

from __future__ import annotations

import os
from itertools import islice
from time import monotonic
from typing import NamedTuple

from pressmark.errors import ObjectError
from pressmark.fs.names import encode_fs
from pressmark.jobs import WorkFolder
from pressmark.jobs.listing import chunk_lines
from pressmark.migrate.planning.entry import PlanEntry
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.rows import GOOD
from pressmark.migrate.transfer.target import locate_target
from pressmark.threads import resolve_threads

__all__ = ["Arrived", "count_arrived"]

_IN_PLACE = GOOD | {"unverified"}


class Arrived(NamedTuple):
    """The objects in place.

    :ivar objects: number of planned objects that are in the destination
    :ivar exact: whether all of them were counted
    """

    objects: int
    exact: bool

    def __str__(self) -> str:
        return f"{'' if self.exact else 'at least '}{self.objects:,}"


def count_arrived(plan: Plan, workers: int | None, seconds: float = 0.5) -> Arrived:
    """Count the planned objects that are in the destination.

    Objects of complete chunks are counted by their receipts, those of interrupted chunks by their paths.

    :param workers: number of workers of the run; :data:`None` for one per core
    :param seconds: time to look at paths, which may be on a slow file system
    :raises JobError: the work folder cannot be read
    :raises StoreError: the destination cannot be used
    """
    end = monotonic() + seconds
    work = WorkFolder.open(plan.work)
    count = sum(number for status, number in work.summary().by_status.items() if status in _IN_PLACE)
    root = encode_fs(plan.options.destination)
    store = None
    # Chunks start in order, one for each worker; with others that have failed between them.
    for chunk in islice(work.remaining(), 2 * resolve_threads(workers)):
        for entry in map(PlanEntry.parse, chunk_lines(work, chunk)):
            if monotonic() > end:
                return Arrived(count, False)
            if not os.path.lexists(os.path.join(root, encode_fs(entry.target))):
                continue
            store = store or plan.options.open_destination()
            try:
                locate_target(store, entry)
            except ObjectError:
                continue
            count += 1
    return Arrived(count, True)
