"""Tables for a terminal and for the repository: Markdown in both places."""

from __future__ import annotations

import datetime
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import machine

__all__ = ["Report", "verdict"]

_FOLDER = Path(__file__).with_name("record")


class Report:
    """The results of a suite: printed as they come, and kept by :meth:`keep`.

    :ivar failures: wrong answers; with any, the exit status is 1
    """

    def __init__(self, suite: str, arguments: Sequence[str], note: str | None = None) -> None:
        self.failures: list[str] = []
        self._suite = suite
        self._machine = [*machine.describe(), ("command", f"python -m benchmarks {shlex.join(arguments)}")]
        self._others = machine.OtherWork()
        self._lines: list[str] = []
        self.print(f"## {suite}", "", *(f"- {label}: {value}" for label, value in self._machine), "")
        if note:
            self.print(f"Note: {note}", "")

    def print(self, *lines: str) -> None:
        """Print lines, and add them to the record."""
        print(*lines, sep="\n", flush=True)
        self._lines += lines

    def fail(self, message: str) -> None:
        """Report a wrong answer."""
        self.failures.append(message)
        self.print(f"- WRONG: {message}")

    def heads(self, *heads: str) -> None:
        """Print the head of a table whose rows follow one by one.

        The first column and those whose head begins with a space are aligned left.
        """
        self.print(f"| {' | '.join(heads)} |", _rule(heads))

    def row(self, *cells: str) -> None:
        """Print a row of the table begun by :meth:`heads`."""
        self.print(f"| {' | '.join(cells)} |")

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a whole table with aligned columns."""
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]

        def padded(cells: Sequence[str]) -> str:
            columns = zip(_is_left(heads), cells, widths, strict=True)
            return " | ".join(cell.ljust(size) if left else cell.rjust(size) for left, cell, size in columns)

        self.print(f"| {padded(heads)} |", _rule(heads))
        self.print(*(f"| {padded(row)} |" for row in rows), "")

    def finish(self) -> None:
        """Print the share of the machine that other programs used."""
        share = self._others.share()
        self.print(
            "", *([] if share is None else [f"Other programs used {share:.0%} of the cores during the run.", ""])
        )

    def keep(self, facts: dict[str, Any] | None) -> None:
        """Write the section to ``record/<date>-<machine>.md``, replacing the suite's earlier one, and facts as JSON."""
        date = datetime.date.today().isoformat()
        path = _FOLDER / f"{date}-{machine.short_name()}.md"
        text = path.read_text() if path.exists() else f"# {date}\n\n"
        head, *sections = text.split("\n## ")
        kept = [section.rstrip("\n") + "\n" for section in sections if section.partition("\n")[0] != self._suite]
        body = "\n".join(self._lines).rstrip()[len("## ") :] + "\n"
        path.write_text("\n## ".join([head.rstrip("\n") + "\n", *kept, body]))
        if facts is not None:
            facts = {"machine": dict(self._machine), **facts}
            path.with_name(f"{path.stem}-{self._suite}.json").write_text(json.dumps(facts, indent=1) + "\n")
        print(f"kept in {path}")


def verdict(value: float, target: float | None, at_least: bool = False) -> str:
    """Return whether a target is met, in words."""
    if target is None:
        return ""
    met = value >= target if at_least else value <= target
    return f"{'≥' if at_least else '≤'} {target:,g} {'met' if met else 'MISSED'}"


def _is_left(heads: Sequence[str]) -> list[bool]:
    return [index == 0 or head.startswith(" ") for index, head in enumerate(heads)]


def _rule(heads: Sequence[str]) -> str:
    return "|".join(["", *("---" if left else "---:" for left in _is_left(heads)), ""])
