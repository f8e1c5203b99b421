"""The pages of the documentation, and the code blocks in them.

A block is run, except output, and blocks after ``<!-- not run: needs … -->``. The language decides how:

* ``sh``: the block is a script for a POSIX shell. Every command succeeds, except lines that end with
  ``# exit status N``.
* ``python``: the block is run with the names of the blocks above it. A comment after an expression, if it is a literal,
  is its value. A script with ``if __name__ == "__main__":`` is run by an interpreter of its own.
* ``text title="Output"``: the complete output of the block above. ``…`` stands for any text within a line, and on a
  line of its own for any number of lines.
* ``text``, ``json``: not code.

Blocks after ``<!-- requires: … -->`` are left out if one of these packages is missing; ``versitygw`` is a server of
object storage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"```+(\w*)(?: title=\"([^\"]*)\")?$")
_NOTE = re.compile(r"<!-- (not run|requires): (.+) -->$")


@dataclass(frozen=True)
class Block:
    """A code block.

    :ivar place: page and line, for messages
    :ivar language: the word after the fence
    :ivar text: the lines between the fences
    :ivar is_output: the block is the output of the one above
    :ivar not_run: the reason for which the block is not run, or empty
    :ivar requires: packages without which it is left out
    """

    place: str
    language: str
    text: str
    is_output: bool
    not_run: str
    requires: tuple[str, ...]


def pages() -> list[Path]:
    """Return README.md and all pages of the site."""
    return [path for path in (ROOT / "README.md", *sorted(DOCS.rglob("*.md"))) if path.exists()]


def name_of(page: Path) -> str:
    """Return the path of a page in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """Return the code blocks of a page."""
    return list(_read_blocks(page))


def _read_blocks(page: Path) -> Iterator[Block]:
    notes: dict[str, str] = {}
    fence = ""
    opening = 0
    lines: list[str] = []
    head: re.Match[str] | None = None
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if fence:
            if line != fence:
                lines.append(line)
                continue
            assert head is not None
            place = f"{name_of(page)}:{opening}"
            requires = tuple(filter(None, notes.get("requires", "").split(", ")))
            text = "".join(f"{one}\n" for one in lines)
            yield Block(place, head[1], text, head[2] == "Output", notes.get("not run", ""), requires)
            notes, fence = {}, ""
        elif line.startswith("```"):
            head = _FENCE.match(line)
            assert head is not None, f"{name_of(page)}:{number}: {line}"
            fence, opening, lines = line[: len(line) - len(line.lstrip("`"))], number, []
        elif found := _NOTE.match(line):
            notes[found[1]] = found[2]
        elif line and not line.startswith("<!-- "):
            notes = {}


def prose(page: Path) -> str:
    """Return the text of a page without its code blocks."""
    return re.sub(r"^(```+).*?^\1$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
