"""Where the rows of a run are, and how the run stands."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

from pressmark.errors import ReportError
from pressmark.jobs import WorkFolder
from pressmark.migrate.execution.run_result import Run, output_lines, remaining_path
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.workdir import KNOWN, ROWS, WARNINGS, state

__all__ = ["Outcome", "outcome_of"]


@dataclass(frozen=True)
class Outcome:
    """How a run stands.

    :ivar plan: what was to be done
    :ivar state: ``planned``, ``begun`` or ``finished``
    :ivar rows_path: the file with all rows; :data:`None` where those of each chunk are still by themselves
    :ivar verification: the rows are those of a verification
    :ivar unread: of a verification, how many objects are still to be read: with those of earlier runs
    """

    plan: Plan
    state: str
    rows_path: str | None
    verification: bool = False
    unread: int | None = None

    def lines(self) -> Iterator[bytes]:
        """Give the rows, a line of JSON each: those of the plan in its order, then those that it left out.

        :raises JobError: what was written is not there any more
        :raises ReportError: likewise
        """
        if self.rows_path is not None:
            yield from _lines(self.rows_path)
            return
        yield from output_lines(WorkFolder.open(self.plan.work))
        yield from _lines(os.path.join(self.plan.work, KNOWN))

    @property
    def remaining_path(self) -> str | None:
        """The file with the identifiers of the objects that are not done; :data:`None` if all are."""
        return remaining_path(self.plan.work)

    def warnings(self) -> Iterator[dict[str, object]]:
        """Give what the plan warns of."""
        path = os.path.join(self.plan.work, WARNINGS)
        if os.path.exists(path):
            yield from map(json.loads, _lines(path))


def outcome_of(what: Run | Plan | str | os.PathLike[str]) -> Outcome:
    """Return how a run stands.

    :raises MigrationError: there is no plan
    """
    if isinstance(what, Run):
        verification = os.path.dirname(what.rows_path) != what.work
        if verification:
            found = "finished" if what.complete else "begun"
            return Outcome(what.plan, found, what.rows_path, True, what.remaining)
        what = what.plan
    plan = Plan.of(what)
    found = state(plan.work)
    rows = os.path.join(plan.work, ROWS)
    # Rows that an interrupted run has put together are old as soon as it goes on.
    return Outcome(plan, found, rows if found == "finished" else None)


def _lines(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            yield from file
    except OSError as error:
        raise ReportError(path, f"it cannot be read ({error.strerror}); resume the run, which writes it") from error
