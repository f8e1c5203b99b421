"""The state of a run, and where its rows are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

from pressmark.errors import ReportError
from pressmark.fs.beneath import open_regular
from pressmark.jobs import WorkFolder
from pressmark.migrate.execution.run_result import Run, output_lines, remaining_path
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.workdir import KNOWN, ROWS, WARNINGS, state

__all__ = ["Outcome", "outcome_of"]


@dataclass(frozen=True)
class Outcome:
    """The state of a run.

    :ivar plan: of the run
    :ivar state: ``planned``, ``begun`` or ``finished``
    :ivar rows_path: the file with all rows; :data:`None` until the rows of the chunks are merged
    :ivar verification: whether the rows are those of a verification
    :ivar unread: of a verification, the number of objects that it has not read yet
    """

    plan: Plan
    state: str
    rows_path: str | None
    verification: bool = False
    unread: int | None = None

    def lines(self) -> Iterator[bytes]:
        """Yield the rows as lines of JSON: in the order of the plan, then the objects that it left out.

        :raises JobError: the rows of a chunk are missing or damaged
        :raises ReportError: a file with rows cannot be read
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

    @property
    def seconds(self) -> float:
        """The working time of all workers of the run together, whether it was resumed or not."""
        return WorkFolder.open(self.plan.work).summary().seconds

    def warnings(self) -> Iterator[dict[str, object]]:
        """Yield the warnings of the plan."""
        path = os.path.join(self.plan.work, WARNINGS)
        if os.path.exists(path):
            yield from map(json.loads, _lines(path))


def outcome_of(what: Run | Plan | str | os.PathLike[str]) -> Outcome:
    """Return the state of a run.

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
    # The merged rows of an unfinished run may be outdated.
    return Outcome(plan, found, rows if found == "finished" else None)


def _lines(path: str) -> Iterator[bytes]:
    try:
        with open_regular(path) as file:
            yield from file
    except OSError as error:
        raise ReportError(path, f"cannot be read ({error.strerror}); resume the run to write it again") from error
