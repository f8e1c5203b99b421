"""The progress of a run, and the results of a check: problems, each of a stable kind, and the report with them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from pressmark.progress_event import Progress, ProgressEvent

__all__ = [
    "ERROR",
    "SEVERITIES",
    "WARNING",
    "Kind",
    "Kinds",
    "Problem",
    "Progress",
    "ProgressEvent",
    "RepairStep",
    "Report",
    "counts_of",
]

#: The severity of a violated rule.
ERROR = "error"
#: The severity of a problem that violates no mandatory rule.
WARNING = "warning"
#: Both severities.
SEVERITIES = (ERROR, WARNING)


class Problem(NamedTuple):
    """A problem found by a check.

    :ivar kind: a stable word, listed in the documentation of the check
    :ivar severity: ``error``, or ``warning`` if no mandatory rule is broken
    :ivar section: section of the specification, for example ``2.1.3``, or empty
    :ivar path: path of the file, relative to the checked directory, with ``/``, as :func:`os.fsdecode` returns it
    :ivar algorithm: official name of the algorithm, for problems with digests
    :ivar expected: the expected value
    :ivar found: the value found
    :ivar message: one human-readable line, without the path
    :ivar code: validation code of the specification, for example ``E023`` of OCFL, or :data:`None`
    :ivar id: identifier of the object, if the path does not show it; otherwise :data:`None`
    """

    kind: str
    severity: str
    section: str
    path: str
    algorithm: str | None = None
    expected: str | None = None
    found: str | None = None
    message: str = ""
    code: str | None = None
    id: str | None = None

    @classmethod
    def from_record(cls, record: Mapping[str, object]) -> Problem:
        """Return the problem of a JSON object: the inverse of :meth:`record`."""
        fields: dict[str, Any] = {**record}
        return cls(**fields)

    def record(self) -> dict[str, object]:
        """Return the problem as a JSON object; ``code`` and ``id`` are omitted if they are :data:`None`."""
        record: dict[str, object] = self._asdict()
        for name in ("code", "id"):
            if record[name] is None:
                del record[name]
        return record


def counts_of(tally: Mapping[tuple[str, str], int]) -> dict[str, object]:
    """Return ``errors``, ``warnings`` and ``kinds`` of a summary.

    :param tally: number of problems by kind and severity
    """
    errors = sum([number for (_, severity), number in tally.items() if severity == ERROR])
    kinds: Counter[str] = Counter()
    for (kind, _), number in tally.items():
        kinds[kind] += number
    return {"errors": errors, "warnings": kinds.total() - errors, "kinds": dict(sorted(kinds.items()))}


class Kind(NamedTuple):
    """A kind of problem.

    :ivar severity: default severity of its problems, ``error`` or ``warning``
    :ivar section: section of the specification, or empty
    :ivar meaning: one line for the documentation, and the default message
    :ivar codes: validation codes of the specification; if there is only one, problems have it by default
    """

    severity: str
    section: str
    meaning: str
    codes: tuple[str, ...] = ()


class Kinds(dict[str, Kind]):
    """The kinds of problems that a check can find, by their words.

    :param sections: section of each validation code, if the specification has codes
    """

    def __init__(self, kinds: Mapping[str, Kind], sections: Mapping[str, str] | None = None) -> None:
        super().__init__(kinds)
        self._sections = sections or {}

    def problem(
        self,
        kind: str,
        path: str | bytes,
        message: str = "",
        *,
        severity: str | None = None,
        section: str | None = None,
        algorithm: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        code: str | None = None,
    ) -> Problem:
        """Return a problem of a known ``kind``, with defaults from the table.

        :param path: relative to the checked file or directory
        :param message: without the code, which is appended
        :param section: section of another specification; the problem has no code then
        :raises KeyError: ``kind`` is not in the table
        """
        known = self[kind]
        message = message or known.meaning
        if code is None and section is None and len(known.codes) == 1:
            [code] = known.codes
        if code is not None:
            message = f"{message} ({code})"
            section = self._sections.get(code) if section is None else section
        return Problem(
            kind,
            severity or known.severity,
            known.section if section is None else section,
            os.fsdecode(path),
            algorithm,
            expected,
            found,
            message,
            code,
        )


class RepairStep(NamedTuple):
    """One change that a repair made, or would make.

    :ivar action: a stable word: ``encapsulate``, ``finish``, ``prune``, ``remove``, …
    :ivar path: the changed path, relative to the store's root
    :ivar names: names moved or removed there
    """

    action: str
    path: str
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, action: str, path: bytes, names: Iterable[bytes] = ()) -> RepairStep:
        """Return the step of a path and names in bytes."""
        return cls(action, os.fsdecode(path), tuple(map(os.fsdecode, names)))


@dataclass(repr=False)
class Report:
    """The result of a check.

    :ivar problems: the problems, in the order in which they were found
    :ivar counts: the numbers of checked files, bytes, and so on, by name
    :ivar steps: of a repair: the changes that it made, or would make
    """

    problems: list[Problem] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    steps: list[RepairStep] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no errors were found, and no file is left unverified; other warnings are allowed."""
        return not self.counts.get("unverified") and all(problem.severity != "error" for problem in self.problems)

    @property
    def errors(self) -> list[Problem]:
        """The problems of severity ``error``."""
        return [problem for problem in self.problems if problem.severity == "error"]

    def __bool__(self) -> NoReturn:
        # "if validate(bag):" would be true for an invalid bag.
        raise TypeError(f"{type(self).__name__} has no truth value: use its attribute ok")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._totals()}>"

    def __str__(self) -> str:
        """Return the totals, and the first problems, one on each line."""
        from pressmark.errors import quoted_path
        from pressmark.summaries import FIRST

        lines = [f"{one.severity}: {quoted_path(one.path)}: {one.message}" for one in self.problems[:FIRST]]
        if (more := len(self.problems) - len(lines)) > 0:
            lines.append(f"and {more:,} more in .problems")
        return "\n  ".join([self._totals(), *lines])

    def _repr_html_(self) -> str:
        from pressmark.summaries import FIRST, html_table

        rows = [(one.severity, one.path, one.kind, one.message) for one in self.problems[:FIRST]]
        return html_table(self._totals(), ("severity", "path", "kind", "message"), rows)

    def _totals(self) -> str:
        summary = self.summary()
        numbers = [(summary["errors"], "error"), (summary["warnings"], "warning")]
        problems = ", ".join(f"{number:,} {noun}{'s' * (number != 1)}" for number, noun in numbers)
        return "; ".join([problems, *(f"{name} {number:,}" for name, number in self.counts.items())])

    def add(self, problems: Iterable[Problem]) -> None:
        """Add problems."""
        self.problems.extend(problems)

    def summary(self) -> dict[str, object]:
        """Return the summary as a JSON object: ``ok``, the number of problems by severity and kind, and the counts."""
        tally = Counter((problem.kind, problem.severity) for problem in self.problems)
        return {"ok": self.ok, **counts_of(tally), **self.counts}
