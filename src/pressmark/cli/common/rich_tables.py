"""Human-readable tables, drawn by rich: as wide as the terminal, or 120 columns if the output is not a terminal."""

from __future__ import annotations

import io
import shutil
import sys
import textwrap
from typing import Any

from pressmark.cli.common.console import one_line

__all__ = ["Table", "output_width", "tables_text"]

_WIDTH_OF_FILES = 120


class Table:
    """One table.

    :param title: the line above the table
    :param columns: the column heads; all but the first ``texts`` columns are right-aligned, as numbers are

    :ivar notes: lines below the table
    """

    def __init__(self, title: str, columns: list[str], texts: int = 1) -> None:
        self.title = title
        self.columns = columns
        self.texts = texts
        self.rows: list[list[str]] = []
        self.notes: list[str] = []

    def add(self, *cells: str) -> None:
        """Add a row; unprintable characters are escaped."""
        self.rows.append([one_line(cell) for cell in cells])

    def folded(self) -> Table:
        """Return the table with column heads on several lines."""
        heads = []
        for head, *cells in zip(self.columns, *self.rows, strict=True):
            width = max(map(len, [*head.split(), *cells]))
            heads.append("\n".join(textwrap.wrap(head, width, break_on_hyphens=False)))
        folded = Table(self.title, heads, self.texts)
        folded.rows, folded.notes = self.rows, self.notes
        return folded

    def transposed(self) -> Table:
        """Return the table with rows and columns exchanged."""
        names = [row[0] for row in self.rows]
        # The parameters of a layout are below its name.
        transposed = Table(self.title, ["", *(name.replace(":", ":\n", 1).replace(",", ",\n") for name in names)])
        transposed.notes = self.notes
        for number, column in enumerate(self.columns[1:], 1):
            transposed.add(column, *(row[number] for row in self.rows))
        return transposed


def output_width() -> int:
    """Return the columns of the terminal, or of files, if standard output is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDTH_OF_FILES


def tables_text(*tables: Table) -> str:
    """Return tables for standard output, with folded heads, transposed, or row by row if they are too wide."""
    # rich takes longer to import than all the rest of a short run.
    from rich.console import Console
    from rich.text import Text

    text = io.StringIO()
    terminal = sys.stdout.isatty()
    console: Any = Console(file=text, force_terminal=terminal, width=output_width(), highlight=False, soft_wrap=False)
    for table in tables:
        # Texts are hard to read in transposed tables.
        is_text = table.texts == len(table.columns)
        ways = (table, table.folded(), *(() if is_text else (table.transposed(),)))
        shown = next((fitted for one in ways if (fitted := _fitting(one, console)) is not None), None)
        console.print(Text(table.title, style="bold"))
        console.print(Text(_row_by_row(table)) if shown is None else shown)
        for note in table.notes:
            console.print(Text(one_line(note)))
        console.print()
    return text.getvalue()


def _fitting(table: Table, console: Any) -> Any:
    """Return a table of rich, or None if the table does not fit in the console."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    rich_table = RichTable(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    for number, column in enumerate(table.columns):
        rich_table.add_column(Text(column), justify="left" if number < table.texts else "right", vertical="bottom")
    for row in table.rows:
        rich_table.add_row(*map(Text, row))
    unlimited = console.options.update(max_width=1 << 16)
    return rich_table if console.measure(rich_table, options=unlimited).maximum <= console.width else None


def _row_by_row(table: Table) -> str:
    lines = []
    for name, *cells in table.rows:
        lines.append(f"\n{name}")
        lines += [f"  {column}: {cell}" for column, cell in zip(table.columns[1:], cells, strict=True)]
    return "\n".join(lines)
