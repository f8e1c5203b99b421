"""What a check found: problems, each with a stable kind, and the report that holds them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["ERROR", "SEVERITIES", "WARNING", "Kind", "Kinds", "Problem", "Report"]

ERROR, WARNING = SEVERITIES = ("error", "warning")


class Problem(NamedTuple):
    """One thing that is not as it should be.

    :ivar kind: a stable word, listed in the documentation of what was checked
    :ivar severity: ``error``, or ``warning`` for what breaks no rule that binds
    :ivar section: where the specification says so, such as ``2.1.3``; empty where it does not
    :ivar path: what it is about, relative to what was checked and with ``/``, as bytes: names need not be UTF-8
    :ivar algorithm: of a digest, its algorithm's official name
    :ivar expected: what should be there
    :ivar found: what is there
    :ivar message: one line for people, without the path
    :ivar code: the specification's validation code, such as OCFL's ``E023``; :data:`None` where it has none
    """

    kind: str
    severity: str
    section: str
    path: bytes
    algorithm: str | None = None
    expected: str | None = None
    found: str | None = None
    message: str = ""
    code: str | None = None

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Problem:
        """Return the problem of a JSON object: the inverse of :meth:`record`."""
        return cls(**{**record, "path": os.fsencode(record["path"])})

    def record(self) -> dict[str, Any]:
        """Return it as it stands in JSON; octets of the path that are not UTF-8 are the surrogates of os.fsdecode.

        ``code`` is there only where the specification has validation codes.
        """
        record = {**self._asdict(), "path": os.fsdecode(self.path)}
        if self.code is None:
            del record["code"]
        return record


class Kind(NamedTuple):
    """What the documentation says of a kind of problem.

    :ivar severity: ``error`` or ``warning``, where nothing else is said when a problem is made
    :ivar section: of the specification, or empty
    :ivar meaning: one line
    :ivar codes: the specification's validation codes for it; a problem has the code if there is only one
    """

    severity: str
    section: str
    meaning: str
    codes: tuple[str, ...] = ()


class Kinds(dict[str, Kind]):
    """The kinds of problems that one sort of check can find, by their words.

    :param sections: the section of each validation code, where the specification has such codes
    """

    def __init__(self, kinds: Mapping[str, Kind], sections: Mapping[str, str] | None = None) -> None:
        super().__init__(kinds)
        self._sections = sections or {}

    def problem(
        self,
        kind: str,
        path: bytes,
        message: str = "",
        *,
        severity: str | None = None,
        section: str | None = None,
        algorithm: str | None = None,
        expected: str | None = None,
        found: str | None = None,
        code: str | None = None,
    ) -> Problem:
        """Return a problem of a known ``kind``; what is not given comes from its table.

        :param path: relative to what is checked
        :param message: without the code, which is added
        :param section: of another specification than the table's, which has no codes then; or empty
        :raises KeyError: the kind is not in the table
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
            path,
            algorithm,
            expected,
            found,
            message,
            code,
        )


@dataclass
class Report:
    """All that a check found.

    :ivar problems: in the order in which they were found
    :ivar counts: what was looked at, by name: files, bytes, and so on
    """

    problems: list[Problem] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing worse than warnings was found."""
        return all(problem.severity != "error" for problem in self.problems)

    @property
    def errors(self) -> list[Problem]:
        """The problems that break a rule."""
        return [problem for problem in self.problems if problem.severity == "error"]

    def add(self, problems: Iterable[Problem]) -> None:
        """Take in more problems."""
        self.problems.extend(problems)

    def summary(self) -> dict[str, Any]:
        """Return the last line of a report in JSON: whether all is well, how many problems of each kind, and counts."""
        return {
            "ok": self.ok,
            "errors": len(self.errors),
            "warnings": len(self.problems) - len(self.errors),
            "kinds": dict(sorted(Counter(problem.kind for problem in self.problems).items())),
            **self.counts,
        }
