"""Two phases: copy while the old system is live, catch up with what was changed since, then switch.

What is caught up with are objects that are new, that were not done, or whose number of files, size or time of change
is not as the first run found it. Times are those of the newest change to a file's content or status. Objects that the
first run gave other identifiers keep those.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pressmark.errors import JobError, MigrationError
from pressmark.migrate.id_index import IdentifierIndex
from pressmark.migrate.object_digest import sha256_of
from pressmark.migrate.options import make_options
from pressmark.migrate.phases import OnEvent
from pressmark.migrate.planning.id_map import IdentifierMap
from pressmark.migrate.planning.measure import Measure
from pressmark.migrate.planning.plan import ENTRIES, Plan
from pressmark.migrate.planning.planner import make_plan
from pressmark.migrate.previous_runs import runs
from pressmark.migrate.rows import GOOD, Row
from pressmark.migrate.run_folder import finished_rows, state

__all__ = ["PreviousRuns", "plan_catch_up"]

# Instead of a size, of an object that the run has taken out of the source: if there is one again, it is another one.
_MOVED = ""


def plan_catch_up(
    first: Plan,
    work: str | os.PathLike[str],
    *,
    new_ids: IdentifierMap | None,
    threads: int | None,
    on_event: OnEvent | None,
    how: Mapping[str, Any],
) -> Plan:
    """Plan what was changed since a first run.

    :param first: its plan
    :param new_ids: which identifiers objects get; :data:`None` for the first run's map, if it had one
    :param how: options that are to differ
    :raises MigrationError: it is not finished, or the plan is refused
    :raises JobError: its rows or its entries are damaged
    """
    if state(first.work) != "finished":
        what = f"the run in {first.work} is not finished; run or resume it first"
        raise MigrationError(first.options.source, first.options.destination, what)
    options = make_options(**{**asdict(first.options), "replace": True, **how})
    with IdentifierIndex(first.work) as index:
        return make_plan(
            options,
            work,
            new_ids=new_ids,
            threads=threads,
            wanted=PreviousRuns(first, index),
            before=first.work,
            on_event=on_event,
        )


class PreviousRuns:
    """What a run and those that it caught up with have done.

    A plan's :class:`~pressmark.migrate.planning.planner.Selection`.

    :param plan: of the last run, which is finished
    :param index: empty; filled with what is done
    :raises MigrationError: the work folder of an earlier run is gone
    :raises JobError: rows or entries are damaged
    """

    def __init__(self, plan: Plan, index: IdentifierIndex) -> None:
        self._plan = plan
        self._index = index
        # The newest first: of an object that is there again, the first counts.
        index.fill(item for run in runs(plan) for item in _sizes(run))

    def changed(self, identifiers: Sequence[str], sizes: Sequence[Measure]) -> list[bool]:
        """Return of each object whether it is to be migrated again."""
        before = self._index.ask(identifiers)
        return [
            known != _size(one.files, one.bytes, one.changed) or one.fault is not None
            for known, one in zip(before, sizes, strict=True)
        ]

    def left_out(self, identifier: str) -> None:
        """Take note of an object that is in the source, but cannot be migrated as it is."""
        self._index.ask([identifier])

    def new_ids(self) -> Iterator[tuple[str, str]] | None:
        """Return the map of the run, if it had one.

        :raises MigrationError: it is damaged
        """
        return self._plan.new_ids()

    def gone(self) -> Iterator[str]:
        """Give the identifiers of objects that were there and are not any more, once all were asked for."""
        for identifier, size in self._index.unasked():
            if size != _MOVED:
                yield identifier


def _sizes(plan: Plan) -> Iterator[tuple[str, str]]:
    """Give identifiers of what a run has done, and what tells that it was not changed since.

    A run with ``move`` has done only what is not in its source any more.

    :raises JobError: its rows or its entries are damaged
    """
    path = os.path.join(plan.work, ENTRIES)
    if sha256_of(path) != plan.sha256:
        what = "restore it, or migrate the whole source again; objects that are the same are skipped"
        raise JobError(path, f"changed since it was planned; {what}")
    with IdentifierIndex(plan.work) as done:
        done.fill((identifier, "") for identifier in _done(plan))
        block: list[tuple[str, str]] = []
        for entry in plan.entries():
            size = _MOVED if plan.options.move else _size(entry.files, entry.bytes, entry.changed)
            block.append((entry.source_id, size))
            if len(block) == 1000:
                yield from _kept(block, done)
                block = []
        yield from _kept(block, done)


def _done(plan: Plan) -> Iterator[str]:
    path, _digest = finished_rows(plan)
    with open(path, "rb") as lines:
        for line in lines:
            row = Row.parse(line)
            if row.status in GOOD and row.error_code is None:
                yield row.source_id


def _size(files: int, nbytes: int, changed: int) -> str:
    return f"{files} {nbytes} {changed}"


def _kept(block: list[tuple[str, str]], done: IdentifierIndex) -> Iterator[tuple[str, str]]:
    found = done.ask([identifier for identifier, _ in block])
    return (item for item, value in zip(block, found, strict=True) if value is not None)
