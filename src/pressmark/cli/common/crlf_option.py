"""``--crlf``: what becomes of the carriage returns of a list that was made on Windows."""

from __future__ import annotations

import click

__all__ = ["CRLF_OPTION"]

CRLF_OPTION = click.option(
    "--crlf",
    type=click.Choice(["strip", "keep"]),
    help="Where lines end with a carriage return and a line feed, or the first one begins with a byte-order mark:"
    " strip both, or keep them as parts of identifiers. Default: refuse such a list.",
)
