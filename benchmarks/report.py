"""Tables that a person reads on a terminal and a repository keeps: Markdown, to both."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import machine

__all__ = ["Report"]

_FOLDER = Path(__file__).with_name("record")


class Report:
    """Print a section as it grows; :meth:`keep` adds it to the day's record of this machine."""

    def __init__(self, title: str) -> None:
        self.lines: list[str] = []
        self.say(f"## {title}", "")
        self.say(*(f"- {label}: {value}" for label, value in machine.describe()), "")
        self.others = machine.OtherWork()

    def say(self, *lines: str) -> None:
        """Print lines and remember them."""
        print(*lines, sep="\n", flush=True)
        self.lines += lines

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table: the first column and those whose head begins with a space to the left, others to the right."""
        widths = [max(len(cell) for cell in column) for column in zip(heads, *rows, strict=True)]
        left = [index == 0 or head.startswith(" ") for index, head in enumerate(heads)]

        def line(cells: Sequence[str]) -> str:
            padded = (
                cell.ljust(width) if to_left else cell.rjust(width)
                for cell, width, to_left in zip(cells, widths, left, strict=True)
            )
            return f"| {' | '.join(padded)} |"

        rule = "|".join(
            "-" * (width + 2) if to_left else "-" * (width + 1) + ":"
            for width, to_left in zip(widths, left, strict=True)
        )
        self.say(line(heads), f"|{rule}|", *map(line, rows), "")

    def finish(self) -> None:
        """Say how much of the machine other programs had meanwhile."""
        share = self.others.share()
        if share is not None:
            self.say(f"Other programs used {share:.0%} of the machine's cores meanwhile.", "")

    def keep(self) -> Path:
        """Add the section to ``record/<date>-<machine>.md``, in the place of one with the same title."""
        date = datetime.date.today().isoformat()
        path = _FOLDER / f"{date}-{machine.short_name()}.md"
        _FOLDER.mkdir(exist_ok=True)
        text = path.read_text() if path.exists() else f"# {date}\n\n"
        title = self.lines[0]
        head, *sections = text.split("\n## ")
        kept = [section for section in sections if f"## {section.partition(chr(10))[0]}" != title]
        body = "\n".join(self.lines).rstrip()[len("## ") :] + "\n"
        path.write_text("\n## ".join([head.rstrip("\n") + "\n", *(s.rstrip("\n") + "\n" for s in kept), body]))
        print(f"kept in {path}")
        return path
