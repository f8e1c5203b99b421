"""``pressmark layouts``: the layouts and their parameters."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

import click

from pressmark.cli.common.console import say
from pressmark.cli.common.layout_options import NamedLayout, layout_argument
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.errors import LayoutConfigError
from pressmark.layouts import Layout, Parameter, list_layouts

__all__ = ["described", "layouts", "shown_default"]

HELP = """\
List the layouts, or describe the layout NAME.

\b
Examples:
  pressmark layouts
  pressmark layouts 0011

The list shows the alias of each layout, which you can use instead of the official name; whether its paths can be mapped
back to identifiers; and a description of its paths.

With NAME (an official name or an alias), the output shows the specification and all parameters: the key for --set, the
default or "required", the allowed values and the meaning.
"""

EPILOG = """\
\b
More examples:
  pressmark layouts --json

Exit status: 0 success, 2 usage error, for example an unknown NAME.
"""

WIDTH = 80
GAP = "  "


@click.command("layouts", cls=Command, help=HELP, epilog=EPILOG, short_help="List layouts and their parameters.")
@layout_argument("[NAME]", required=False)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object per line for each layout, with all parameters."
)
def layouts(layout: NamedLayout | None, as_json: bool) -> None:
    """List the layouts, or describe one."""
    layout_class = None if layout is None else layout.layout_class
    errors: list[LayoutConfigError] = []
    chosen = list_layouts(errors) if layout_class is None else (layout_class,)
    for error in errors:
        say(f"warning: {error.reason}")
    with Output(False) as output:
        if as_json:
            for one in chosen:
                output.record(described(one))
            return
        for line in _table(chosen) if layout_class is None else _description(layout_class):
            output.line(line.encode())


def described(layout: type[Layout]) -> dict[str, Any]:
    """Return the description of a layout, as ``--json`` prints it."""
    return {
        "name": layout.name,
        "alias": layout.alias,
        "summary": layout.summary,
        "specification": layout.specification,
        "url": layout.url,
        "reversible": layout.reversibility,
        "parameters": [
            {
                "key": parameter.key,
                "required": parameter.required,
                "default": None if parameter.required else parameter.check.to_json(parameter.default),
                "allowed": parameter.check.allowed,
                "meaning": parameter.doc,
            }
            for parameter in layout.parameters()
        ],
    }


def shown_default(parameter: Parameter) -> str:
    """Return the default as JSON, or ``required``."""
    return "required" if parameter.required else json.dumps(parameter.check.to_json(parameter.default))


def _table(layouts: Iterable[type[Layout]]) -> Iterator[str]:
    rows = [("ALIAS", "NAME", "REVERSIBLE", "SUMMARY")]
    rows += [(layout.alias or "", layout.name, layout.reversibility, layout.summary) for layout in layouts]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    # On a terminal that is too narrow, summaries are printed on separate lines.
    width = sum(widths) + 3 * len(GAP) + max(len(row[3]) for row in rows)
    narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < width
    for row in rows:
        cells = GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
        if narrow:
            yield cells.rstrip()
            yield " " * (widths[0] + len(GAP)) + row[3]
        else:
            yield cells + GAP + row[3]


def _description(layout: type[Layout]) -> Iterator[str]:
    yield layout.name
    if layout.alias:
        yield f"  alias          {layout.alias}"
    yield from _wrapped("  summary        ", layout.summary)
    yield from _wrapped("  specification  ", layout.specification)
    if layout.url:
        yield f"                 {layout.url}"
    yield from _wrapped("  reversible     ", layout.reversibility)
    parameters = layout.parameters()
    yield ""
    yield "Parameters (--set KEY=VALUE; in Python, the name in parentheses):" if parameters else "No parameters."
    for parameter in parameters:
        yield ""
        yield f"  {parameter.key}" + (f" ({parameter.name})" if parameter.name != parameter.key else "")
        yield from _wrapped("    meaning  ", parameter.doc)
        yield from _wrapped("    default  ", shown_default(parameter))
        yield from _wrapped("    allowed  ", parameter.check.allowed)


def _wrapped(label: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=label, subsequent_indent=" " * len(label), break_on_hyphens=False)
