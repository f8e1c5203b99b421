"""The verification of a finished run: everything that it migrated is read again in the destination."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from time import monotonic

from pressmark.errors import MigrationError
from pressmark.jobs.workdir import work_errors
from pressmark.migrate.execution.merge import MergedRows, output_lines, write_rows
from pressmark.migrate.execution.row_chunks import make_folder, open_folder
from pressmark.migrate.execution.run_result import Run
from pressmark.migrate.execution.worker_pool import ReceiptReporter, Workers
from pressmark.migrate.job import Verify
from pressmark.migrate.phases import OnEvent
from pressmark.migrate.planning.plan import Plan, utc_now, write_record
from pressmark.migrate.previous_runs import migrated_rows
from pressmark.migrate.run_folder import FINISHED, ROWS, VERIFICATION, state

__all__ = ["verify_run"]


def verify_run(
    plan: Plan,
    workers: Workers,
    *,
    max_errors: int | None = None,
    on_event: OnEvent | None = None,
    stop: Callable[[], bool] | None = None,
) -> Run:
    """Read all that was migrated again in the destination, by the runs that this one caught up with, too, and compare.

    A verification that was interrupted is gone on with; one that is finished is begun again beside it.

    :raises MigrationError: the run is not finished, or the work folder of one that it caught up with is gone
    :raises JobError: it cannot go on, or the run's rows are damaged
    """
    if state(plan.work) != "finished":
        raise _refused(plan, f"the run in {plan.work} is not finished; run or resume it first")
    started = monotonic()
    with work_errors(plan.work):
        rows, digest, earlier = migrated_rows(plan)
    job = Verify(plan.options)
    work = None
    for number in count(1):
        folder = os.path.join(plan.work, f"{VERIFICATION}{number}")
        if state(folder) == "finished":
            continue
        work = open_folder(folder)
        if work is None or work.parameters.get("rows") == digest:
            break
    work = work or make_folder(folder, job, rows)
    report = on_event or (lambda _event: None)
    with work_errors(folder), work.held():
        on_receipt = ReceiptReporter("verify", replace(plan, objects=plan.objects + earlier), work, report)
        summary = workers.drive(job, work, on_receipt=on_receipt, max_errors=max_errors, stop=stop)
        merged = MergedRows(ROWS)
        write_rows(folder, merged, output_lines(work), None)
        run = merged.run(plan, summary, 0, round(monotonic() - started, 3), folder)
        # What the plan left out is among the rows.
        expected = plan.objects + plan.invalid + plan.missing + earlier
        run = replace(run, remaining=max(0, expected - run.objects))
        if run.complete:
            write_record(os.path.join(folder, FINISHED), {"at": utc_now(), **run.record()})
    return run


def _refused(plan: Plan, what: str) -> MigrationError:
    return MigrationError(plan.options.source, plan.options.destination, what)
