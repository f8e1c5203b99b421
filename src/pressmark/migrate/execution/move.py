"""The end of a move: the sources of verified objects are removed, and the rows merged again."""

from __future__ import annotations

import os
from contextlib import suppress

from pressmark import jobs
from pressmark.errors import JobError
from pressmark.fs.beneath import open_regular
from pressmark.fs.moves import prune_empty_parents
from pressmark.fs.names import encode_fs
from pressmark.migrate.entry import GOOD, SOURCE_KEPT, Entry
from pressmark.migrate.execution.driver import Driver
from pressmark.migrate.execution.row_chunks import make_folder, open_folder
from pressmark.migrate.execution.run_result import MergedRows, merge_rows, output_lines, write_rows
from pressmark.migrate.job import Remove
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.options import TREES
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.workdir import COPIED, REMOVAL, ROWS
from pressmark.reports import Progress

__all__ = ["move_sources"]


def move_sources(
    plan: Plan, driver: Driver, work: jobs.WorkFolder, summary: jobs.Summary
) -> tuple[MergedRows, jobs.Summary, int]:
    """Remove the sources, and the directories above them that became empty.

    :param summary: work folder of the chunks, all of which are done
    :return: the rows, the summary with errors of the removal, and the number of removed empty directories
    """
    merged = _copied_rows(plan, work)
    if merged.removable:
        removal = _remove_sources(plan, driver)
        summary = summary._replace(failed=removal.failed, stopped=removal.stopped)
        if not removal.complete:
            return merged, summary, 0
    merged = _merge_removal(plan, merged)
    driver.report(Progress("prune", merged.objects, merged.bytes, merged.undone, plan.objects, plan.bytes))
    return merged, summary, _prune_source(plan)


def _copied_rows(plan: Plan, work: jobs.WorkFolder) -> MergedRows:
    """Write all rows before the removal; once it has begun, they must not change.

    :raises JobError: they changed
    """
    begun = open_folder(os.path.join(plan.work, REMOVAL))
    if begun is None:
        return merge_rows(plan, work, COPIED)
    path = os.path.join(plan.work, COPIED)
    if begun.parameters.get("rows") != sha256_of(path):
        raise JobError(path, "changed since the removal of sources started; restore it")
    merged = MergedRows(COPIED)
    with open_regular(path) as lines:
        for line in lines:
            merged.add(line)
    merged.planned = merged.objects
    return merged


def _remove_sources(plan: Plan, driver: Driver) -> jobs.Summary:
    job = Remove(plan.options)
    folder = os.path.join(plan.work, REMOVAL)
    work = open_folder(folder) or make_folder(folder, job, os.path.join(plan.work, COPIED), driver.workers)
    with work.held():
        return driver.drive(job, work, "remove", plan, work.summary())


def _merge_removal(plan: Plan, before: MergedRows) -> MergedRows:
    """Write the rows after the removal.

    :param before: the rows before it
    """
    if not before.removable:
        os.replace(os.path.join(plan.work, before.name), os.path.join(plan.work, ROWS))
        before.name = ROWS
        return before
    work = jobs.WorkFolder.open(os.path.join(plan.work, REMOVAL))
    if work.summary().n != before.objects:
        raise JobError(str(work.path), "does not belong to this run; move the folder elsewhere and resume the run")
    merged = MergedRows(ROWS)
    # They include the objects that the plan left out.
    write_rows(plan.work, merged, output_lines(work), None)
    return merged


def _prune_source(plan: Plan) -> int:
    """Remove empty directories of the source above migrated objects, and return their number."""
    root = os.fsencode(plan.options.source)
    tree = TREES.get(plan.options.source_kind, b"")
    if tree and os.path.basename(root) != tree:
        root = os.path.join(root, tree)
    pruned = 0
    with open_regular(os.path.join(plan.work, ROWS)) as lines:
        for line in lines:
            row = Entry.parse(line)
            if row.status in GOOD and row.error_code != SOURCE_KEPT:
                place = encode_fs(row.source)
                # The objects are gone: an empty directory that must stay is no error.
                with suppress(OSError):
                    pruned += len(prune_empty_parents(root, place.removeprefix(tree).lstrip(b"/") if tree else place))
    return pruned
