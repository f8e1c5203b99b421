"""The report on a bag: bounded, and readable as missing, changed and untracked files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pressmark.reports import ERROR, Problem, Report

__all__ = ["KEEP", "BagReport"]

# A problem takes about half a kilobyte.
KEEP = 100_000

_MISSING = frozenset(("file-missing", "file-not-fetched"))
_CHANGED = frozenset(("checksum-mismatch", "file-changing"))
_UNTRACKED = frozenset(("file-unlisted",))


@dataclass
class BagReport(Report):
    """All that a validation found; of more problems than :attr:`keep`, the first, and how many there were of each kind.

    :ivar level: how thorough it was: ``oxum``, ``complete`` or ``full``; only a full one says that a bag is valid
    :ivar keep: how many problems are kept
    :ivar tally: how many problems there were, by kind and severity
    """

    level: str = "full"
    keep: int = KEEP
    tally: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def ok(self) -> bool:
        """Whether nothing worse than warnings was found."""
        return self._errors() == 0

    @property
    def missing(self) -> list[bytes]:
        """Files that a manifest lists and that are not there."""
        return list(self._paths(_MISSING))

    @property
    def changed(self) -> list[bytes]:
        """Files that do not have their checksums."""
        return list(self._paths(_CHANGED))

    @property
    def untracked(self) -> list[bytes]:
        """Payload files that no manifest lists."""
        return list(self._paths(_UNTRACKED))

    def add(self, problems: Iterable[Problem]) -> None:
        """Count more problems, and keep them while there is room."""
        for problem in problems:
            self.tally[problem.kind, problem.severity] += 1
            if len(self.problems) < self.keep:
                self.problems.append(problem)

    def summary(self) -> dict[str, Any]:
        """Return the last line of a report in JSON; ``omitted`` says how many problems were counted and not kept."""
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
        # A file may have several checksums that are all wrong.
        return iter(dict.fromkeys(problem.path for problem in self.problems if problem.kind in kinds))
