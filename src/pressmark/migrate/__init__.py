"""Migration: objects of one store into another, in any layout, planned, verified and resumable.

>>> from pressmark import migrate
>>> plan = migrate.plan("/data/pairtree", "/data/ocfl", to="ocfl", layout="0003")     # doctest: +SKIP
>>> run = migrate.run(plan)                                                           # doctest: +SKIP
>>> run.ok, run.by_status                                                             # doctest: +SKIP
(True, {'ok': 89067})

A plan is made first, and refused as a whole where something would go wrong; nothing is written to the destination
before. Everything a run knows is in its work folder, beside the destination: see
:mod:`pressmark.migrate.planning.plan` and :mod:`pressmark.migrate.run_folder`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, Literal

from pressmark.migrate.execution.run_result import Run
from pressmark.migrate.options import COPY_MODES, IMPROPER, LINKS, VERIFICATIONS, Options, make_options
from pressmark.migrate.phases import PHASES, Progress
from pressmark.migrate.planning.entry import Entry
from pressmark.migrate.planning.plan import Plan, refuse_others
from pressmark.migrate.rows import GOOD, SOURCE_KEPT, STATUSES, Row
from pressmark.migrate.run_folder import state

if TYPE_CHECKING:
    from pressmark.layouts import Layout
    from pressmark.migrate.phases import OnEvent
    from pressmark.migrate.planning.id_map import IdentifierMap
    from pressmark.migrate.reporting import Summary
    from pressmark.tabular.identifiers import Identifiers

__all__ = [
    "COPY_MODES",
    "GOOD",
    "IMPROPER",
    "LINKS",
    "PHASES",
    "SOURCE_KEPT",
    "STATUSES",
    "VERIFICATIONS",
    "Entry",
    "Options",
    "Plan",
    "Progress",
    "Row",
    "Run",
    "catch_up",
    "finished_folder",
    "make_options",
    "plan",
    "refuse_others",
    "report",
    "resume",
    "run",
    "state",
    "verify",
    "work_folder",
]

Path = str | os.PathLike[str]
Stop = Callable[[], bool]


def work_folder(destination: Path, work: Path | None = None) -> str:
    """Return the work folder of the next run, or of the one that is not finished.

    ``<destination>.migration``, or where a run in it is finished ``<destination>.migration-2`` and so on: the first
    that has no finished run.

    :param work: a name to begin with instead of ``<destination>.migration``
    """
    return _folders(destination, work)[-1]


def finished_folder(destination: Path, work: Path | None = None) -> str | None:
    """Return the work folder of the last run that is finished, :data:`None` where there is none.

    :param work: as for :func:`work_folder`
    """
    *finished, _next = _folders(destination, work)
    return finished[-1] if finished else None


def _folders(destination: Path, work: Path | None) -> list[str]:
    """Return the work folders of all finished runs, and the next one."""
    base = os.path.abspath(f"{os.path.abspath(os.fspath(destination))}.migration" if work is None else os.fspath(work))
    found = [base]
    while state(found[-1]) == "finished":
        found.append(f"{base}-{len(found) + 1}")
    return found


def plan(
    source: Path,
    destination: Path,
    *,
    to: str,
    layout: Layout | str | Mapping[str, Any] | None = None,
    work: Path | None = None,
    ids: Identifiers | None = None,
    column: str | None = None,
    crlf: Literal["strip", "keep"] | None = None,
    new_ids: IdentifierMap | None = None,
    order: str = "source",
    check_space: bool = True,
    threads: int | None = None,
    on_event: OnEvent | None = None,
    **how: Any,
) -> Plan:
    """Go through the source, and say where each object goes; nothing is written to the destination.

    :param source: a store's directory
    :param destination: a directory that is not there, or empty, or a store of the kind ``to`` in the same layout
    :param to: its kind: ``pairtree``, ``vitro``, ``ocfl`` or ``bags``
    :param layout: of an OCFL storage root, which needs one, or a folder of bags: a name, a layout or its configuration
    :param work: the work folder; :data:`None` for :func:`work_folder`
    :param ids: of the objects, as a file (lines, CSV, JSON lines, Parquet) or anything to iterate; :data:`None` for all
    :param column: of the table that has them
    :param crlf: of a list of lines: ``strip`` carriage returns before line feeds and a byte-order mark, or ``keep``
        them as parts of identifiers; :data:`None` refuses a list that has any
    :param new_ids: which identifiers objects get instead of theirs, as a file of two columns or pairs
    :param order: ``source``: as they lie there, or ``size``: the largest first
    :param check_space: refuse where the destination's file system has too little space or inodes
    :param threads: that look at objects
    :param on_event: called with :class:`Progress`
    :param how: more of :class:`Options`: ``source_kind``, ``source_layout``, ``source_options``,
        ``destination_options``, ``copy_mode``, ``verify``, ``move``, ``replace``, ``profile``, ``links``,
        ``algorithms``, ``improper``, ``drop_empty_directories``
    :raises MigrationError: it is refused; ``refused`` is the file that lists why
    :raises StoreError: the source is no store, or cannot be read
    :raises JobError: the work folder cannot be used
    :raises LayoutConfigError: a layout is refused
    """
    from pressmark.jobs.workdir import work_errors
    from pressmark.migrate.planning.planner import make_plan

    options = make_options(source, destination, to=to, layout=layout, **how)
    folder = work_folder(destination) if work is None else os.path.abspath(os.fspath(work))
    with work_errors(folder):
        return make_plan(
            options,
            folder,
            ids=ids,
            column=column,
            crlf=crlf,
            new_ids=new_ids,
            order=order,
            check_space=check_space,
            threads=threads,
            on_event=on_event,
        )


def run(
    plan_or_work: Plan | Path,
    *,
    workers: int | None = None,
    threads: bool = False,
    executor: Executor | None = None,
    client: Any = None,
    max_errors: int | None = None,
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
) -> Run:
    """Carry out a plan that was not begun.

    :param plan_or_work: the plan, or the work folder that it is in
    :param workers: how many chunks are done at a time; :data:`None` for as many as there are cores
    :param threads: threads of this process instead of processes
    :param executor: any of :mod:`concurrent.futures`, such as mpi4py's
    :param client: of a Dask cluster, see :func:`pressmark.jobs.dask_client`
    :param max_errors: end when more objects than this went wrong
    :param on_event: called with :class:`Progress`
    :param stop: asked every now and then; once it says :data:`True`, no more chunks are begun
    :raises MigrationError: it was begun before: :func:`resume` goes on
    :raises StoreError: the destination cannot be made
    :raises JobError: the run cannot go on
    """
    from pressmark.migrate.execution.run import run_plan
    from pressmark.migrate.execution.worker_pool import Workers

    found = plan_or_work if isinstance(plan_or_work, Plan) else Plan.open(plan_or_work)
    return run_plan(
        found, Workers(workers, threads, executor, client), max_errors=max_errors, on_event=on_event, stop=stop
    )


def resume(
    plan_or_work: Plan | Path,
    *,
    options: Options | None = None,
    workers: int | None = None,
    threads: bool = False,
    executor: Executor | None = None,
    client: Any = None,
    max_errors: int | None = None,
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
) -> Run:
    """Go on with a run, however it ended; of one that is finished, return how it ended.

    :param options: what is asked for now: refused where the run began with others
    :raises MigrationError: there is no plan, or the run began with other options
    :raises JobError: the run cannot go on
    """
    from pressmark.migrate.execution.run import run_plan
    from pressmark.migrate.execution.worker_pool import Workers

    found = plan_or_work if isinstance(plan_or_work, Plan) else Plan.open(plan_or_work)
    return run_plan(
        found,
        Workers(workers, threads, executor, client),
        resume=True,
        options=options,
        max_errors=max_errors,
        on_event=on_event,
        stop=stop,
    )


def verify(
    plan_or_work: Plan | Path,
    *,
    workers: int | None = None,
    threads: bool = False,
    executor: Executor | None = None,
    client: Any = None,
    max_errors: int | None = None,
    on_event: OnEvent | None = None,
    stop: Stop | None = None,
) -> Run:
    """Read everything that a finished run, and those that it caught up with, have migrated again, and compare it.

    :return: the verification, whose rows :func:`report` writes
    :raises MigrationError: the run is not finished, or the work folder of one that it caught up with is gone
    :raises JobError: it cannot go on, or rows are damaged
    """
    from pressmark.migrate.execution.verify import verify_run
    from pressmark.migrate.execution.worker_pool import Workers

    found = plan_or_work if isinstance(plan_or_work, Plan) else Plan.open(plan_or_work)
    return verify_run(
        found, Workers(workers, threads, executor, client), max_errors=max_errors, on_event=on_event, stop=stop
    )


def catch_up(
    before: Plan | Path,
    *,
    work: Path | None = None,
    new_ids: IdentifierMap | None = None,
    threads: int | None = None,
    on_event: OnEvent | None = None,
    **how: Any,
) -> Plan:
    """Plan what was changed in the source since a run, which is finished: new objects, and others.

    The run may have caught up with others: it goes by what all of them have done.

    Objects that are in the source no more are warnings of the kind ``gone``; the destination keeps them.

    :param before: the run's plan or work folder
    :param work: the new work folder; :data:`None` for :func:`work_folder`
    :param new_ids: as for :func:`plan`; :data:`None` for the map of that run, if it had one
    :param how: options that are to differ, such as ``move``; ``replace`` is on
    :raises MigrationError: it is refused, the run is not finished, its map is damaged, or the work folder of one that
        it caught up with is gone
    :raises JobError: the rows or the entries of a run are damaged, or the work folder cannot be used
    """
    from pressmark.jobs.workdir import work_errors
    from pressmark.migrate.planning.catch_up import plan_catch_up

    first = before if isinstance(before, Plan) else Plan.open(before)
    folder = work_folder(first.options.destination) if work is None else os.path.abspath(os.fspath(work))
    with work_errors(folder):
        return plan_catch_up(first, folder, new_ids=new_ids, threads=threads, on_event=on_event, how=how)


def report(plan_or_work: Run | Plan | Path, path: Path) -> Summary:
    """Write the report of a run, finished or not: a page for people, or the rows as a table.

    :param plan_or_work: of a verification the run that it gave
    :param path: a file that ends in ``.html``, ``.jsonl``, ``.csv`` or ``.parquet``; ``.jsonl.gz``, ``.csv.gz``
    :returns: what is in it, in short
    :raises ReportError: it cannot be written, or needs a package that is not installed
    :raises MigrationError: there is no plan
    """
    from pressmark.migrate.reporting import write_report

    return write_report(plan_or_work, path)
