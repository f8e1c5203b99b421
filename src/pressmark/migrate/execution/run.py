"""A run: the destination is created, workers process the chunks, then their rows are merged; a move removes the sources
of verified objects, and merges the rows again.

A resumed run skips the chunks that have a receipt and repeats everything after them.
:mod:`pressmark.migrate.workdir` lists the files of a run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Literal

from pressmark import jobs
from pressmark.errors import JobError, MigrationError, StoreError, quoted_path
from pressmark.fs.moves import prune_empty_parents
from pressmark.fs.names import encode_fs
from pressmark.jobs.chunks import Chunk, ChunkBuilder
from pressmark.jobs.workdir import Job, work_errors
from pressmark.migrate.entry import GOOD, SOURCE_KEPT, Entry, file_lines, read_entries
from pressmark.migrate.execution.run_result import (
    MergedRows,
    Run,
    merge_rows,
    summarize,
    write_remaining,
)
from pressmark.migrate.job import Migrate, Remove
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.options import TREES, Options
from pressmark.migrate.planning.plan import Plan, refuse_others, utc_now, write_record
from pressmark.migrate.workdir import BEGUN, COPIED, ENTRIES, FINISHED, KNOWN, REMOVAL, ROWS, state
from pressmark.progress_event import EventListener, Progress
from pressmark.reports import ProgressEvent
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from pressmark.jobs.executors import DaskClient
    from pressmark.migrate.planning.lists import IdentifierMap
    from pressmark.tabular.identifiers import Identifiers

__all__ = ["Driver", "make_folder", "open_folder", "resume", "run"]


def run(
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
    """Run a plan.

    A destination that does not exist, or is empty, is created. In a store, the objects of the plan are added; an object
    that exists there is kept, unless the plan has ``replace``.

    :param plan_or_work: the plan, or its work folder
    :param workers: chunks processed at a time; :data:`None` for one per core, or per thread of the cluster
    :param processes: process the chunks in processes; :data:`False` for threads of this process
    :param executor: any executor of :mod:`concurrent.futures`, such as mpi4py's
    :param client: a client of a Dask cluster: see :func:`pressmark.jobs.dask_client`
    :param max_errors: stop after more than this number of objects failed
    :param progress: objects and bytes done; its stages are the phases of the run
    :param stop: called regularly; once it returns :data:`True`, no more chunks are started
    :raises MigrationError: the run has already started (use :func:`resume`), or the destination has another layout
    :raises StoreError: the destination cannot be created
    :raises JobError: the run cannot continue
    """
    plan = Plan.of(plan_or_work)
    found = state(plan.work)
    if found == "begun":
        raise _refused(plan, f"the run in {quoted_path(plan.work)} is not finished; resume it")
    if found == "finished":
        what = f"the run in {quoted_path(plan.work)} is finished; choose another work folder to run again"
        raise _refused(plan, what)
    return _run(plan, Driver(workers, processes, executor, client, max_errors, progress, stop))


def resume(
    plan_or_work: Plan | str | os.PathLike[str],
    *,
    options: Options | None = None,
    ids: Identifiers | None = None,
    column: str | None = None,
    crlf: Literal["strip", "keep"] | None = None,
    new_ids: IdentifierMap | None = None,
    workers: int | None = None,
    processes: bool = True,
    executor: Executor | None = None,
    client: DaskClient | None = None,
    max_errors: int | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Run:
    """Continue an unfinished run, or return the result of a finished run.

    :param plan_or_work: the plan, or its work folder
    :param options: the options of this call; refused if they differ from those of the run
    :param ids: as for :func:`plan`, with ``column`` and ``crlf``; refused if the plan had other identifiers
    :param new_ids: as for :func:`plan`; refused if the plan had another map
    :param workers: as for :func:`pressmark.migrate.run`; so are all parameters from here on
    :raises MigrationError: there is no plan, or the run was started with different options
    :raises JobError: the run cannot continue
    """
    plan = Plan.of(plan_or_work)
    if options is not None:
        refuse_others(plan, options)
    if ids is not None or new_ids is not None:
        from pressmark.migrate.planning.lists import refuse_other_lists  # few runs have lists

        refuse_other_lists(plan, ids, column, crlf, new_ids)
    return _run(plan, Driver(workers, processes, executor, client, max_errors, progress, stop))


def _run(plan: Plan, driver: Driver) -> Run:
    started = monotonic()
    job = Migrate(plan.options)
    work = jobs.WorkFolder.open(plan.work)
    work.check(job, {**plan.options.record(), "entries": plan.sha256})
    with work_errors(plan.work), work.held():
        for name, digest in ((ENTRIES, plan.sha256), (KNOWN, plan.known_sha256)):
            if sha256_of(os.path.join(plan.work, name)) != digest:
                raise JobError(plan.work, f"{name} changed after planning; plan the migration in another work folder")
        begun = os.path.join(plan.work, BEGUN)
        is_first = not os.path.exists(begun)
        if is_first:
            write_record(begun, {"at": utc_now(), "pid": os.getpid()})
        try:
            plan.options.create_destination()
        except StoreError as error:
            if is_first:
                os.unlink(begun)  # another plan may take its place
            raise _refused(plan, f"the destination: {error}") from error
        before = work.summary()
        summary = driver.drive(job, work, "run", plan)
        pruned = 0
        if plan.options.move and summary.complete:
            merged, summary, pruned = _move_sources(plan, driver, work, summary)
        else:
            merged = merge_rows(os.path.join(plan.work, ROWS), work, os.path.join(plan.work, KNOWN))
        write_remaining(plan, work, merged.path if merged.undone else None)
        result = merged.run(plan, before, summary, pruned, round(monotonic() - started, 3))
        if result.complete:
            finished = {"at": utc_now(), "rows_sha256": merged.sha256, **result.record()}
            write_record(os.path.join(plan.work, FINISHED), finished)
        driver.report(merged.progress("merge", plan))
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
    driver.report(merged.progress("prune", plan))
    return merged, summary, _prune_source(plan)


def _copied_rows(plan: Plan, work: jobs.WorkFolder) -> MergedRows:
    """Write all rows before the removal; once it has begun, they must not change.

    :raises JobError: they changed
    """
    begun = open_folder(os.path.join(plan.work, REMOVAL))
    path = os.path.join(plan.work, COPIED)
    if begun is None:
        return merge_rows(path, work, os.path.join(plan.work, KNOWN))
    if begun.parameters.get("rows") != sha256_of(path):
        raise JobError(path, "changed since the removal of sources started; restore it")
    return MergedRows(path, summarize(file_lines(path)))


def _remove_sources(plan: Plan, driver: Driver) -> jobs.Summary:
    job = Remove(plan.options)
    folder = os.path.join(plan.work, REMOVAL)
    work = open_folder(folder) or make_folder(folder, job, os.path.join(plan.work, COPIED), driver.workers)
    with work.held():
        return driver.drive(job, work, "remove", plan)


def _merge_removal(plan: Plan, before: MergedRows) -> MergedRows:
    """Write the rows after the removal.

    :param before: the rows before it
    """
    rows = os.path.join(plan.work, ROWS)
    if not before.removable:
        os.replace(before.path, rows)
        return before._replace(path=rows)
    work = jobs.WorkFolder.open(os.path.join(plan.work, REMOVAL))
    if work.summary().n != before.totals.whole.objects:
        raise JobError(str(work.path), "does not belong to this run; move the folder elsewhere and resume the run")
    # They include the objects that the plan left out.
    return merge_rows(rows, work)


def _prune_source(plan: Plan) -> int:
    """Remove empty directories of the source above migrated objects, and return their number."""
    if plan.options.is_from_bucket:
        return 0
    root = os.fsencode(plan.options.source)
    tree = TREES.get(plan.options.source_kind, b"")
    if tree and os.path.basename(root) != tree:
        root = os.path.join(root, tree)
    pruned = 0
    for row in read_entries(os.path.join(plan.work, ROWS)):
        # An OCFL storage root was pruned while its objects were renamed.
        is_pruned = row.mode == "rename" and plan.options.to == "ocfl"
        if row.status in GOOD and row.error_code != SOURCE_KEPT and not is_pruned:
            path = encode_fs(row.source)
            # The objects are gone: an empty directory that must stay is no error.
            with suppress(OSError):
                pruned += len(prune_empty_parents(root, path.removeprefix(tree).lstrip(b"/") if tree else path))
    return pruned


# --- the workers ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Driver:
    """Processes chunks: see :func:`run` for the fields."""

    workers: int | None = None
    processes: bool = True
    executor: Executor | None = None
    client: DaskClient | None = None
    max_errors: int | None = None
    progress: Progress | None = None
    stop: Callable[[], bool] | None = None

    def report(self, event: ProgressEvent) -> None:
        """Report the progress to the caller."""
        if self.progress is not None:
            self.progress(event)

    def drive(self, job: Job, work: jobs.WorkFolder, phase: str, plan: Plan) -> jobs.Summary:
        """Process the chunks without a receipt.

        :param phase: the word for events
        :param plan: the number of objects and bytes
        :raises JobError: the run cannot start or continue
        """

        def in_phase(event: ProgressEvent) -> None:
            self.report(event._replace(stage=phase, of_items=plan.objects, of_bytes=plan.bytes))

        progress, errors, stop = EventListener(in_phase), self.max_errors, self.stop
        if self.client is not None:
            return jobs.run_dask(job, work, self.client, self.workers, progress=progress, max_errors=errors, stop=stop)
        if self.executor is not None:
            count = self.workers or getattr(self.executor, "_max_workers", None) or os.cpu_count() or 1
            return jobs.run_executor(job, work, self.executor, count, progress=progress, max_errors=errors, stop=stop)
        return jobs.run_local(
            job, work, self.workers, processes=self.processes, progress=progress, max_errors=errors, stop=stop
        )


# --- jobs over the rows of a run --------------------------------------------------------------------------------------


def open_folder(path: str) -> jobs.WorkFolder | None:
    """Open the work folder of a job over rows; :data:`None` if it does not exist."""
    return jobs.WorkFolder.open(path) if jobs.WorkFolder.exists(path) else None


def make_folder(path: str, job: Job, rows: str, workers: int | None) -> jobs.WorkFolder:
    """Create the work folder of a job over rows.

    :param workers: number of workers; :data:`None` for one per core
    """
    return jobs.WorkFolder.create(path, job, _row_chunks(rows, resolve_threads(workers)), {"rows": sha256_of(rows)})


def _row_chunks(path: str, workers: int) -> Iterator[Chunk]:
    """Yield the chunks of a file of rows, for a work folder beside the file."""
    builder = ChunkBuilder("rows", os.path.join("..", os.path.basename(path)), workers=workers)
    for line in file_lines(path):
        row = Entry.parse(line)
        done = builder.add(len(line), row.bytes, os.path.dirname(row.source))
        if done is not None:
            yield done
    rest = builder.rest()
    if rest is not None:
        yield rest
