"""The verification of a finished run: all migrated objects are read again in the destination."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import count
from time import monotonic
from typing import Unpack

from pressmark.errors import MigrationError
from pressmark.jobs.workdir import work_errors
from pressmark.migrate.execution.driver import Driver, RunOptions, make_folder, open_folder
from pressmark.migrate.execution.run_result import Run, merge_rows
from pressmark.migrate.job import Verify
from pressmark.migrate.planning.plan import Plan, utc_now, write_record
from pressmark.migrate.previous_runs import migrated_rows
from pressmark.migrate.workdir import FINISHED, ROWS, VERIFICATION, state

__all__ = ["verify"]


def verify(plan_or_work: Plan | str | os.PathLike[str], **how: Unpack[RunOptions]) -> Run:
    """Read and compare all objects that a finished run and the runs it caught up with have migrated.

    An interrupted verification is resumed; after a finished verification, a new one starts.

    :param plan_or_work: the plan of the run, or its work folder
    :param how: see :class:`~pressmark.migrate.execution.driver.RunOptions`
    :return: the verification, for :func:`pressmark.migrate.report`
    :raises MigrationError: the run is not finished, or the work folder of an earlier run is missing
    :raises JobError: the verification cannot continue, or rows are damaged
    """
    plan, driver = Plan.of(plan_or_work), Driver(**how)
    if state(plan.work) != "finished":
        what = f"the run in {plan.work} is not finished; resume it (--resume) first"
        raise MigrationError(plan.options.source, plan.options.destination, what)
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
    work = work or make_folder(folder, job, rows, driver.workers)
    with work_errors(folder), work.held():
        before = work.summary()
        after = driver.drive(job, work, "verify", replace(plan, objects=plan.objects + earlier), before)
        merged = merge_rows(folder, ROWS, work)
        run = merged.run(plan, before, after, 0, round(monotonic() - started, 3), folder)
        # The rows include the objects that the plan left out.
        expected = plan.objects + plan.invalid + plan.missing + earlier
        run = replace(run, remaining=max(0, expected - run.objects))
        if run.complete:
            write_record(os.path.join(folder, FINISHED), {"at": utc_now(), **run.record()})
    return run
