"""A run: the destination is created, chunks are processed, then their rows are merged; a move removes the sources of
verified objects, and merges the rows again.

A resumed run skips the chunks that have a receipt and repeats everything after them.
:mod:`pressmark.migrate.workdir` lists the files of a run.
"""

from __future__ import annotations

import os
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Literal, Unpack

from pressmark import jobs
from pressmark.errors import JobError, MigrationError, StoreError
from pressmark.fs.moves import prune_empty_parents
from pressmark.fs.names import encode_fs
from pressmark.jobs.workdir import work_errors
from pressmark.migrate.entry import GOOD, SOURCE_KEPT, read_entries
from pressmark.migrate.execution.driver import Driver, RunOptions, make_folder, open_folder
from pressmark.migrate.execution.run_result import MergedRows, Run, merge_rows, write_remaining
from pressmark.migrate.job import Migrate, Remove
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.options import TREES, Options
from pressmark.migrate.planning.plan import Plan, refuse_others, utc_now, write_record
from pressmark.migrate.workdir import BEGUN, COPIED, ENTRIES, FINISHED, KNOWN, REMOVAL, ROWS, state
from pressmark.reports import Progress

if TYPE_CHECKING:
    from pressmark.migrate.planning.lists import IdentifierMap
    from pressmark.tabular.identifiers import Identifiers

__all__ = ["resume", "run"]


def run(plan_or_work: Plan | str | os.PathLike[str], **how: Unpack[RunOptions]) -> Run:
    """Run a plan.

    :param plan_or_work: the plan, or its work folder
    :param how: see :class:`~pressmark.migrate.execution.driver.RunOptions`
    :raises MigrationError: the run has already started (use :func:`resume`), or the destination has another layout
    :raises StoreError: the destination cannot be created
    :raises JobError: the run cannot continue
    """
    plan = Plan.of(plan_or_work)
    found = state(plan.work)
    if found == "begun":
        raise _refused(plan, f"the run in {plan.work} is not finished; resume it (--resume)")
    if found == "finished":
        raise _refused(plan, f"the run in {plan.work} is finished; choose another --work folder to run again")
    return _run(plan, Driver(**how))


def resume(
    plan_or_work: Plan | str | os.PathLike[str],
    *,
    options: Options | None = None,
    ids: Identifiers | None = None,
    column: str | None = None,
    crlf: Literal["strip", "keep"] | None = None,
    new_ids: IdentifierMap | None = None,
    **how: Unpack[RunOptions],
) -> Run:
    """Continue an unfinished run, or return the result of a finished run.

    :param plan_or_work: the plan, or its work folder
    :param options: the options of this call; refused if they differ from those of the run
    :param ids: as for :func:`plan`, with ``column`` and ``crlf``; refused if the plan had other identifiers
    :param new_ids: as for :func:`plan`; refused if the plan had another map
    :param how: see :class:`~pressmark.migrate.execution.driver.RunOptions`
    :raises MigrationError: there is no plan, or the run was started with different options
    :raises JobError: the run cannot continue
    """
    plan = Plan.of(plan_or_work)
    if options is not None:
        refuse_others(plan, options)
    if ids is not None or new_ids is not None:
        from pressmark.migrate.planning.lists import refuse_other_lists  # few runs have lists

        refuse_other_lists(plan, ids, column, crlf, new_ids)
    return _run(plan, Driver(**how))


def _run(plan: Plan, driver: Driver) -> Run:
    started = monotonic()
    job = Migrate(plan.options)
    work = jobs.WorkFolder.open(plan.work)
    work.check(job, {**plan.options.record(), "entries": plan.sha256})
    with work_errors(plan.work), work.held():
        for name, digest in ((ENTRIES, plan.sha256), (KNOWN, plan.known_sha256)):
            if sha256_of(os.path.join(plan.work, name)) != digest:
                raise JobError(plan.work, f"{name} changed after planning; plan the migration in another --work folder")
        if not os.path.exists(os.path.join(plan.work, BEGUN)):
            write_record(os.path.join(plan.work, BEGUN), {"at": utc_now(), "pid": os.getpid()})
        try:
            plan.options.create_destination()
        except StoreError as error:
            raise _refused(plan, f"the destination: {error}") from error
        before = work.summary()
        summary = driver.drive(job, work, "run", plan, before)
        pruned = 0
        if plan.options.move and summary.complete:
            merged, summary, pruned = _move_sources(plan, driver, work, summary)
        else:
            merged = merge_rows(plan.work, ROWS, work, os.path.join(plan.work, KNOWN))
        write_remaining(plan, work, os.path.join(plan.work, merged.name) if merged.undone else None)
        result = merged.run(plan, before, summary, pruned, round(monotonic() - started, 3))
        if result.complete:
            finished = {"at": utc_now(), "rows_sha256": merged.sha256, **result.record()}
            write_record(os.path.join(plan.work, FINISHED), finished)
        driver.report(Progress("merge", result.objects, result.bytes, merged.undone, plan.objects, plan.bytes))
    return result


def _refused(plan: Plan, what: str) -> MigrationError:
    return MigrationError(plan.options.source, plan.options.destination, what)


# --- the end of a move ------------------------------------------------------------------------------------------------


def _move_sources(
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
        return merge_rows(plan.work, COPIED, work, os.path.join(plan.work, KNOWN))
    path = os.path.join(plan.work, COPIED)
    if begun.parameters.get("rows") != sha256_of(path):
        raise JobError(path, "changed since the removal of sources started; restore it")
    merged = MergedRows(COPIED)
    for row in read_entries(path):
        merged.add(row)
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
    # They include the objects that the plan left out.
    return merge_rows(plan.work, ROWS, work)


def _prune_source(plan: Plan) -> int:
    """Remove empty directories of the source above migrated objects, and return their number."""
    root = os.fsencode(plan.options.source)
    tree = TREES.get(plan.options.source_kind, b"")
    if tree and os.path.basename(root) != tree:
        root = os.path.join(root, tree)
    pruned = 0
    for row in read_entries(os.path.join(plan.work, ROWS)):
        if row.status in GOOD and row.error_code != SOURCE_KEPT:
            place = encode_fs(row.source)
            # The objects are gone: an empty directory that must stay is no error.
            with suppress(OSError):
                pruned += len(prune_empty_parents(root, place.removeprefix(tree).lstrip(b"/") if tree else place))
    return pruned
