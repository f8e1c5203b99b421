"""The verification of a finished run: all migrated objects are read again in the destination."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import replace
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING

from pressmark.errors import MigrationError, quoted_path
from pressmark.fs.atomic import Replacement
from pressmark.jobs.workdir import work_errors
from pressmark.migrate.entry import GOOD, Entry, file_lines
from pressmark.migrate.execution.run import Driver, make_folder, open_folder
from pressmark.migrate.execution.run_result import Run, merge_rows
from pressmark.migrate.id_index import IdentifierIndex
from pressmark.migrate.job import Verify
from pressmark.migrate.planning.plan import Plan, utc_now, write_record
from pressmark.migrate.workdir import FINISHED, MIGRATED, ROWS, VERIFICATION, finished_rows, state
from pressmark.progress_event import Progress

if TYPE_CHECKING:
    from pressmark.jobs.executors import DaskClient

__all__ = ["migrated_rows", "verify"]

# Statuses of objects that an earlier run has stored in the destination.
_STORED = GOOD | {"unverified"}


def verify(
    plan_or_work: Plan | str | os.PathLike[str],
    *,
    workers: int | None = None,
    processes: bool = True,
    executor: Executor | None = None,
    client: DaskClient | None = None,
    max_errors: int | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Run:
    """Read and compare all objects that a finished run and the runs it caught up with have migrated.

    An interrupted verification is resumed; after a finished verification, a new one starts.

    :param plan_or_work: the plan of the run, or its work folder
    :param workers: as for :func:`pressmark.migrate.run`; so are all parameters from here on
    :return: the verification, for :func:`pressmark.migrate.report`
    :raises MigrationError: the run is not finished, or the work folder of an earlier run is missing
    :raises JobError: the verification cannot continue, or rows are damaged
    """
    plan, driver = Plan.of(plan_or_work), Driver(workers, processes, executor, client, max_errors, progress, stop)
    if state(plan.work) != "finished":
        what = f"the run in {quoted_path(plan.work)} is not finished; resume it first"
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
        after = driver.drive(job, work, "verify", replace(plan, objects=plan.objects + earlier))
        merged = merge_rows(os.path.join(folder, ROWS), work)
        run = merged.run(plan, before, after, 0, round(monotonic() - started, 3))
        # The rows include the objects that the plan left out.
        expected = plan.objects + plan.invalid + plan.missing + earlier
        run = replace(run, remaining=max(0, expected - run.objects))
        if run.complete:
            write_record(os.path.join(folder, FINISHED), {"at": utc_now(), **run.record()})
    return run


def migrated_rows(plan: Plan) -> tuple[str, str, int]:
    """Return a file with the newest row of each object that a chain of runs has migrated, and its SHA-256 in hex.

    The file contains all rows of the run itself. The third value is the number of rows from earlier runs.

    :raises MigrationError: the work folder of an earlier run is missing
    :raises JobError: rows were changed after their run wrote them
    """
    (path, digest), *before = (finished_rows(run.work) for run in plan.chain())
    if not before:
        return path, digest, 0
    paths = [path, *(earlier for earlier, _digest in before)]
    whole = os.path.join(plan.work, MIGRATED)
    added = 0
    sha256 = hashlib.sha256()
    new = Replacement(whole, part=f"{whole}.new", durable=False)
    with IdentifierIndex(plan.work) as newest, new as file:
        newest.fill((Entry.parse(line).id, str(number)) for number, (line, _own) in enumerate(_lines(paths)))
        numbers = (int(number) for _identifier, number in newest.items())
        wanted = next(numbers, None)
        for number, (line, own) in enumerate(_lines(paths)):
            latest = number == wanted
            if latest:
                wanted = next(numbers, None)
            if latest or own:
                file.write(line)
                sha256.update(line)
                added += not own
    return whole, sha256.hexdigest(), added


def _lines(paths: list[str]) -> Iterator[tuple[bytes, bool]]:
    """Yield the rows of runs, the newest run first, and whether they are from the newest run."""
    for number, path in enumerate(paths):
        own = number == 0
        for line in file_lines(path):
            if own or Entry.parse(line).status in _STORED:
                yield line, own
