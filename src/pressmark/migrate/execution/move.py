"""The end of a move: sources removed, and the rows as they are then."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from pressmark import jobs
from pressmark.errors import JobError
from pressmark.fs.moves import prune_empty_parents
from pressmark.fs.names import encode_fs
from pressmark.migrate.execution.merge import MergedRows, merge_rows, output_lines, write_rows
from pressmark.migrate.execution.row_chunks import make_folder, open_folder
from pressmark.migrate.execution.worker_pool import ReceiptReporter, Workers
from pressmark.migrate.job import Remove
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.options import TREES
from pressmark.migrate.phases import OnEvent
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.rows import GOOD, SOURCE_KEPT, Row
from pressmark.migrate.run_folder import COPIED, REMOVAL, ROWS

__all__ = ["copied_rows", "merge_removal", "prune_source", "remove_sources"]


def copied_rows(plan: Plan, work: jobs.WorkFolder) -> MergedRows:
    """Write all rows, before sources are removed; once that has begun they stay as they are.

    :raises JobError: they are not those that the removal began with
    """
    begun = open_folder(os.path.join(plan.work, REMOVAL))
    if begun is None:
        return merge_rows(plan, work, COPIED)
    path = os.path.join(plan.work, COPIED)
    if begun.parameters.get("rows") != sha256_of(path):
        raise JobError(path, "changed since the removal of sources started; restore it")
    merged = MergedRows(COPIED)
    with open(path, "rb") as lines:
        for line in lines:
            merged.add(line)
    merged.planned = merged.objects
    return merged


def remove_sources(plan: Plan, workers: Workers, on_event: OnEvent, how: dict[str, Any]) -> jobs.Summary:
    """Remove the sources of what is done and verified."""
    job = Remove(plan.options)
    folder = os.path.join(plan.work, REMOVAL)
    work = open_folder(folder) or make_folder(folder, job, os.path.join(plan.work, COPIED))
    with work.held():
        return workers.drive(job, work, on_receipt=ReceiptReporter("remove", plan, work, on_event), **how)


def merge_removal(plan: Plan, before: MergedRows) -> MergedRows:
    """Write the rows as they are after the removal.

    :param before: those that it was given
    """
    if not before.removable:
        os.replace(os.path.join(plan.work, before.name), os.path.join(plan.work, ROWS))
        before.name = ROWS
        return before
    work = jobs.WorkFolder.open(os.path.join(plan.work, REMOVAL))
    if work.summary().n != before.objects:
        raise JobError(str(work.path), "does not belong to this run; remove the folder and resume the run")
    merged = MergedRows(ROWS)
    # The rows of what the plan left out are among them.
    write_rows(plan.work, merged, output_lines(work), None)
    return merged


def prune_source(plan: Plan) -> int:
    """Remove the directories of the source that are empty now, above the objects that went."""
    root = os.fsencode(plan.options.source)
    tree = TREES.get(plan.options.source_kind, b"")
    if tree and os.path.basename(root) != tree:
        root = os.path.join(root, tree)
    pruned = 0
    with open(os.path.join(plan.work, ROWS), "rb") as lines:
        for line in lines:
            row = Row.parse(line)
            if row.status in GOOD and row.error_code != SOURCE_KEPT:
                place = encode_fs(row.source)
                # The objects are gone from the source: an empty directory that may not be removed undoes nothing.
                with suppress(OSError):
                    pruned += len(prune_empty_parents(root, place.removeprefix(tree).lstrip(b"/") if tree else place))
    return pruned
