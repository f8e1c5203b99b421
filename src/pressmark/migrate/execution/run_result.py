"""How a run ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from pressmark import jobs
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.rows import GOOD, Row

__all__ = ["Run"]


@dataclass(frozen=True)
class Run:
    """How a migration, or its verification, ended.

    :ivar work: the work folder
    :ivar plan: what was to be done
    :ivar objects: that have a row
    :ivar files: of those that are done
    :ivar bytes: likewise
    :ivar by_status: how many objects have which status
    :ivar by_mode: how the files of how many objects came: ``rename``, ``reflink``, ``copy``, ``hardlink``
    :ivar kept: with ``move``, objects that are done, but whose source could not be removed
    :ivar noted: objects that are done, but of which something was left out: the row's ``error`` names it
    :ivar remaining: objects of the plan that have no row yet
    :ivar failed: chunks that were given up
    :ivar stopped: why it ended before all was done: ``stop``, ``max_errors``; :data:`None` where it did not
    :ivar pruned: directories of the source that were empty in the end, and removed
    :ivar seconds: it took, from the start of this call
    :ivar rows_path: the file with the rows
    """

    work: str
    plan: Plan
    objects: int
    files: int
    bytes: int
    by_status: dict[str, int]
    by_mode: dict[str, int]
    kept: int = 0
    noted: int = 0
    remaining: int = 0
    failed: tuple[jobs.FailedChunk, ...] = ()
    stopped: str | None = None
    pruned: int = 0
    seconds: float = 0.0
    rows_path: str = ""

    @property
    def complete(self) -> bool:
        """Whether every chunk was done."""
        return not self.remaining and not self.failed and self.stopped is None

    @property
    def ok(self) -> bool:
        """Whether every object is in the destination, and verified."""
        return self.complete and not self.kept and not self.by_status.keys() - GOOD

    @property
    def exit_code(self) -> int:
        """0 where all is well, 1 where something is not; a run that is refused raises an error instead, which is 2."""
        return 0 if self.ok else 1

    def rows(self) -> Iterator[Row]:
        """Give every row, in the order of the plan."""
        with open(self.rows_path, "rb") as lines:
            for line in lines:
                yield Row.parse(line)

    def record(self) -> dict[str, Any]:
        """Return it as it stands in JSON, without the plan."""
        record = {key: value for key, value in asdict(self).items() if key not in ("plan", "rows_path")}
        return {"ok": self.ok, "complete": self.complete, **record, "failed": [one._asdict() for one in self.failed]}
