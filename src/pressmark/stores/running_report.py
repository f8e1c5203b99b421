"""The report of a running check: problems are reported at once, progress at intervals."""

from __future__ import annotations

from collections.abc import Iterable

from pressmark.reports import Problem, Progress, Report
from pressmark.stores.recheck import Item
from pressmark.stores.store import OnEvent, OnProblem

__all__ = ["RunningReport"]


class RunningReport:
    """The report of one check.

    :param every: number of objects between two progress events
    :ivar report: the problems found so far
    """

    def __init__(self, on_event: OnEvent | None, on_problem: OnProblem | None, every: int) -> None:
        self.report = Report(counts={"objects": 0, "proper": 0})
        self._on_event = on_event
        self._on_problem = on_problem
        self._every = every

    def add(self, problems: Iterable[Problem]) -> None:
        """Add problems, and report them."""
        for problem in problems:
            self.report.problems.append(problem)
            if self._on_problem is not None:
                self._on_problem(problem)

    def add_item(self, item: Item) -> None:
        """Count an object and add its problems, or add a problem outside of objects."""
        if isinstance(item, Problem):
            self.add([item])
            return
        counts = self.report.counts
        counts["objects"] += 1
        counts["proper"] += item.proper
        if item.problems:
            self.add(item.problems)
        if counts["objects"] % self._every == 0:
            self._tell_progress()

    def finish(self) -> Report:
        """Report the final progress, and return the report."""
        self._tell_progress()
        return self.report

    def _tell_progress(self) -> None:
        if self._on_event is not None:
            self._on_event(Progress(items=self.report.counts["objects"], failed=len(self.report.problems)))
