"""The report of a validation, bounded in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pressmark.reports import ERROR, Problem, Report

__all__ = ["KEEP", "BagReport"]

# At about half a kilobyte each.
KEEP = 100_000

_MISSING = frozenset(("file-missing", "file-not-fetched"))
_CHANGED = frozenset(("checksum-mismatch", "file-changing"))
_UNTRACKED = frozenset(("file-unlisted",))


@dataclass
class BagReport(Report):
    """The problems that a validation found. Beyond :attr:`keep` problems, only their number of each kind is kept.

    :ivar level: thoroughness: ``oxum``, ``complete`` or ``full``; only a full validation can call a bag valid
    :ivar keep: maximum number of problems to keep
    :ivar tally: number of problems by kind and severity
    """

    level: str = "full"
    keep: int = KEEP
    tally: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return self._errors() == 0

    @property
    def missing(self) -> list[bytes]:
        """Files that a manifest lists and that do not exist."""
        return list(self._paths(_MISSING))

    @property
    def changed(self) -> list[bytes]:
        """Files with a wrong checksum."""
        return list(self._paths(_CHANGED))

    @property
    def untracked(self) -> list[bytes]:
        """Payload files that no manifest lists."""
        return list(self._paths(_UNTRACKED))

    def add(self, problems: Iterable[Problem]) -> None:
        """Count problems, and keep them up to the limit."""
        for problem in problems:
            self.tally[problem.kind, problem.severity] += 1
            if len(self.problems) < self.keep:
                self.problems.append(problem)

    def summary(self) -> dict[str, Any]:
        """Return the summary of a report as JSON values; ``omitted`` is the number of problems that were not kept."""
        errors, total = self._errors(), self.tally.total()
        kinds: Counter[str] = Counter()
        for (kind, _), number in self.tally.items():
            kinds[kind] += number
        return {
            "ok": self.ok,
            "errors": errors,
            "warnings": total - errors,
            "missing": sum(kinds[kind] for kind in _MISSING),
            "changed": sum(kinds[kind] for kind in _CHANGED),
            "untracked": sum(kinds[kind] for kind in _UNTRACKED),
            "kinds": dict(sorted((+kinds).items())),
            "omitted": total - len(self.problems),
            **self.counts,
        }

    def _errors(self) -> int:
        return sum(number for (_, severity), number in self.tally.items() if severity == ERROR)

    def _paths(self, kinds: frozenset[str]) -> Iterator[bytes]:
        # A file can have several wrong checksums.
        return iter(dict.fromkeys(problem.path for problem in self.problems if problem.kind in kinds))
