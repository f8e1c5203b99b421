"""The run: the destination first, then chunk after chunk, then what needs all of them.

An interrupted run continues when it is called again: receipts say which chunks are done, and everything after the
chunks can be done twice. :mod:`pressmark.migrate.run_folder` lists the files of a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import monotonic

from pressmark import jobs
from pressmark.errors import JobError, MigrationError, StoreError
from pressmark.jobs.workdir import work_errors
from pressmark.migrate.execution.merge import merge_rows, write_remaining
from pressmark.migrate.execution.move import copied_rows, merge_removal, prune_source, remove_sources
from pressmark.migrate.execution.run_result import Run
from pressmark.migrate.execution.worker_pool import ReceiptReporter, Workers
from pressmark.migrate.job import Migrate
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.options import Options
from pressmark.migrate.phases import OnEvent, Progress
from pressmark.migrate.planning.plan import BEGUN, ENTRIES, KNOWN, Plan, refuse_others, utc_now, write_record
from pressmark.migrate.run_folder import FINISHED, ROWS, state

__all__ = ["run_plan"]


def run_plan(
    plan: Plan,
    workers: Workers,
    *,
    resume: bool = False,
    options: Options | None = None,
    max_errors: int | None = None,
    on_event: OnEvent | None = None,
    stop: Callable[[], bool] | None = None,
) -> Run:
    """Carry out a plan.

    :param resume: go on with a run that was begun
    :param options: what is asked for now, to be compared with what the run began with
    :param max_errors: end when more objects than this went wrong
    :param stop: asked every now and then; once it says :data:`True`, no more chunks are begun
    :raises MigrationError: it was begun before, or with other options; or the destination places objects otherwise
    :raises StoreError: the destination cannot be made
    :raises JobError: the run cannot go on
    """
    if options is not None:
        refuse_others(plan, options)
    before = state(plan.work)
    if before in ("begun", "finished") and not resume:
        what = (
            "is not finished; resume it" if before == "begun" else "is finished; name another work folder to run again"
        )
        raise _refused(plan, f"the run in {plan.work} {what}")
    started = monotonic()
    job = Migrate(plan.options)
    work = jobs.WorkFolder.open(plan.work)
    work.check(job, {**plan.options.record(), "entries": plan.sha256})
    report = on_event or (lambda _event: None)
    with work_errors(plan.work), work.held():
        _check_planned(plan)
        if not os.path.exists(os.path.join(plan.work, BEGUN)):
            write_record(os.path.join(plan.work, BEGUN), {"at": utc_now(), "pid": os.getpid()})
        try:
            plan.options.create_destination()
        except StoreError as error:
            raise _refused(plan, f"the destination: {error}") from error
        how = {"max_errors": max_errors, "stop": stop}
        summary = workers.drive(job, work, on_receipt=ReceiptReporter("run", plan, work, report), **how)
        moving = plan.options.move and summary.complete
        merged = copied_rows(plan, work) if moving else merge_rows(plan, work, ROWS)
        pruned = 0
        if moving:
            removal = remove_sources(plan, workers, report, how) if merged.removable else None
            if removal is not None:
                summary = summary._replace(failed=removal.failed, stopped=removal.stopped)
            if removal is None or removal.complete:
                merged = merge_removal(plan, merged)
                report(Progress("prune", merged.objects, merged.bytes, plan.objects, plan.bytes, merged.by_status))
                pruned = prune_source(plan)
        write_remaining(plan, work, None if merged.all_done else os.path.join(plan.work, merged.name))
        run = merged.run(plan, summary, pruned, round(monotonic() - started, 3))
        if run.complete:
            finished = {"at": utc_now(), "rows_sha256": merged.sha256, **run.record()}
            write_record(os.path.join(plan.work, FINISHED), finished)
        report(Progress("merge", run.objects, run.bytes, plan.objects, plan.bytes, run.by_status))
    return run


def _refused(plan: Plan, what: str) -> MigrationError:
    return MigrationError(plan.options.source, plan.options.destination, what)


def _check_planned(plan: Plan) -> None:
    """Make sure that what is to be done, and what was left out, is as it was planned."""
    for name, digest in ((ENTRIES, plan.sha256), (KNOWN, plan.known_sha256)):
        if sha256_of(os.path.join(plan.work, name)) != digest:
            raise JobError(plan.work, f"{name} changed after planning; plan the migration again, in another folder")
