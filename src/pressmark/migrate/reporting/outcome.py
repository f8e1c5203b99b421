"""The result of a run: its state, its rows, and what to do about each status."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

from pressmark.errors import ReportError
from pressmark.jobs import WorkFolder
from pressmark.migrate.entry import file_lines
from pressmark.migrate.execution.run_result import Run, output_lines, remaining_path
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.workdir import KNOWN, ROWS, WARNINGS, state

__all__ = ["REMEDIES", "Outcome", "outcome_of", "remedies_for"]


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
        yield from file_lines(path)
    except OSError as error:
        raise ReportError(path, f"cannot be read ({error.strerror}); resume the run to write it again") from error


# --- remedies ---------------------------------------------------------------------------------------------------------


#: What to do for each of :data:`pressmark.migrate.entry.STATUSES`.
REMEDIES = {
    "ok": "nothing",
    "exists_same": "nothing",
    "exists_different": "compare both objects; if the one in the source is correct, migrate it again with --replace",
    "collision": "give the object another identifier (--map), choose another layout, or move the other object",
    "refused_name": "rename the file in the source, give the object another identifier (--map), or choose another"
    " layout or --profile",
    "source_missing": "correct the list of identifiers or the --version, or restore the object in the source",
    "source_invalid": "repair the source (pressmark store check lists the problems, pressmark store repair fixes some),"
    " then migrate the object again",
    "digest_mismatch": "the source is damaged or was misread; replace it with an intact copy, then migrate the object"
    " again",
    "copy_failed": "fix the cause of the error (space, permissions, disk, network), then migrate the object again",
    "unverified": "verify the object with --verify-again",
}
# After a verification the destination is at fault.
_VERIFIED = {
    "digest_mismatch": "the object in the destination is damaged; check the disk, then migrate the object again with"
    " --ids and --replace while its source exists",
    "copy_failed": "the object is missing from the destination or unreadable; find the cause, then migrate it"
    " again with --ids",
    "unverified": "the object in the destination cannot be read, or has no recorded digest; compare it with its source",
}


def remedies_for(verification: bool) -> dict[str, str]:
    """Return the remedies for the statuses of a run or a verification."""
    return {**REMEDIES, **_VERIFIED} if verification else REMEDIES
