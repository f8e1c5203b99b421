"""The number of objects that an unfinished run has moved into place."""

from __future__ import annotations

import os
from itertools import islice

from pressmark.errors import ObjectError
from pressmark.fs.names import encode_fs
from pressmark.jobs import WorkFolder
from pressmark.jobs.listing import chunk_lines
from pressmark.migrate.planning.entry import PlanEntry
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.rows import GOOD
from pressmark.migrate.transfer.target import locate_target
from pressmark.threads import resolve_threads

__all__ = ["count_arrived"]

_IN_PLACE = GOOD | {"unverified"}


def count_arrived(plan: Plan, workers: int | None) -> int:
    """Return the number of planned objects that are in the destination.

    Objects of complete chunks are counted by their receipts, those of interrupted chunks by their paths.

    :param workers: number of workers of the run; :data:`None` for one per core
    :raises JobError: the work folder cannot be read
    :raises StoreError: the destination cannot be used
    """
    work = WorkFolder.open(plan.work)
    count = sum(number for status, number in work.summary().by_status.items() if status in _IN_PLACE)
    root = encode_fs(plan.options.destination)
    store = None
    # Chunks start in order, one for each worker; with others that have failed between them.
    for chunk in islice(work.remaining(), 2 * resolve_threads(workers)):
        for entry in map(PlanEntry.parse, chunk_lines(work, chunk)):
            if not os.path.lexists(os.path.join(root, encode_fs(entry.target))):
                continue
            store = store or plan.options.open_destination()
            try:
                locate_target(store, entry)
            except ObjectError:
                continue
            count += 1
    return count
