"""The report on a store as numbers."""

from __future__ import annotations

from dataclasses import dataclass
from time import gmtime, strftime

from pressmark.reports import ERROR
from pressmark.stores.audits.audit_state import LastResults
from pressmark.stores.reporting.statistics import Statistics

__all__ = ["DAYS", "ProblemCount", "StoreReportData"]

#: The periods of the coverage, in days.
DAYS = (30, 90, 365)


@dataclass(frozen=True)
class ProblemCount:
    """The problems of one kind.

    :ivar kind: of the problems
    :ivar severity: ``error`` or ``warning``
    :ivar count: their number; of damage that an audit has found, the number of objects
    :ivar path: of the first one, in the store
    :ivar message: of the first one
    :ivar remedy: what to do
    :ivar objects: number of objects affected, where one problem is reported for all of them; otherwise :data:`None`
    """

    kind: str
    severity: str
    count: int
    path: str
    message: str
    remedy: str
    objects: int | None = None

    def record(self) -> dict[str, object]:
        """Return it as a JSON object."""
        return dict(vars(self))


@dataclass(frozen=True)
class StoreReportData:
    """The report on a store.

    :ivar root: the path or the address of the store
    :ivar kind: of the store
    :ivar layout: the name of its layout; :data:`None` if unknown
    :ivar created: when the report was created, in seconds since 1970
    :ivar statistics: the numbers of the store
    :ivar problems: by kind, those with errors first
    :ivar audited: how the objects were verified last; :data:`None` without the state of an audit
    :ivar damaged: by kind, the errors of the objects that had some when they were verified last
    """

    root: str
    kind: str
    layout: str | None
    created: int
    statistics: Statistics
    problems: tuple[ProblemCount, ...]
    audited: LastResults | None = None
    damaged: tuple[ProblemCount, ...] = ()

    @property
    def errors(self) -> int:
        """The number of errors that the check has found."""
        return sum(one.count for one in self.problems if one.severity == ERROR)

    @property
    def warnings(self) -> int:
        """The number of warnings of the check."""
        return sum(one.count for one in self.problems if one.severity != ERROR)

    @property
    def ok(self) -> bool:
        """Whether neither the check nor the last verification of any object has found an error."""
        return not self.errors and not self.damaged

    def record(self) -> dict[str, object]:
        """Return all numbers as a JSON object."""
        coverage: dict[str, object] | None = None
        if self.audited is not None:
            oldest = self.audited.oldest
            coverage = {
                "objects": self.audited.objects,
                "verified": {f"{days} days": count for days, count in self.audited.periods.items()},
                "earlier": self.audited.earlier,
                "damaged": self.audited.damaged,
                "never": self.audited.never,
                "oldest": None if oldest is None else _moment(oldest),
                "kinds": [one.record() for one in self.damaged],
            }
        return {
            "store": self.root,
            "kind": self.kind,
            "layout": self.layout,
            "created": _moment(self.created),
            "ok": self.ok,
            "errors": self.errors,
            "warnings": self.warnings,
            **self.statistics.record(),
            "problems": [one.record() for one in self.problems],
            "coverage": coverage,
        }


def _moment(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(seconds))
