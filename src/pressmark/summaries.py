"""Sizes and short tables of results, as text for ``repr`` and as HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

__all__ = ["FIRST", "format_bytes", "html_table", "shorten", "text_table"]

#: The number of items that a summary shows.
FIRST = 10
# The most characters of one item.
_WIDTH = 80
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def format_bytes(count: float) -> str:
    """Return a size in decimal units: ``1.5 MB``."""
    power = 0
    while count >= 999.5 and power < len(_UNITS) - 1:
        count /= 1000
        power += 1
    return f"{count:.0f} {_UNITS[0]}" if power == 0 else f"{count:.3g} {_UNITS[power]}"


def shorten(text: str) -> str:
    """Return a text of at most 80 characters, with an ellipsis if it was truncated."""
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def text_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table with aligned columns; numbers are aligned to the right."""
    texts = [tuple(columns), *(tuple(map(_cell, row)) for row in rows)]
    widths = [max(len(row[number]) for row in texts) for number in range(len(columns))]
    right = [all(row[number][:1].isdigit() for row in texts[1:]) for number in range(len(columns))]
    lines = (
        "  ".join(
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        )
        for row in texts
    )
    return "\n".join(line.rstrip() for line in lines)


def html_table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return an HTML table; every cell is escaped."""
    # Imported here: only notebooks need it.
    from html import escape

    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escape(_cell(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: Any) -> str:
    if value is None:
        return "null"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else shorten(str(value))
