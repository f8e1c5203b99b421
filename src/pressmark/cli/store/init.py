"""``pressmark store init``: create an empty store."""

from __future__ import annotations

import os
from typing import Any

import click

from pressmark import stores
from pressmark.cli.common.console import CallError, say
from pressmark.cli.common.object_storage import PATH_OR_ADDRESS, bucket_options
from pressmark.cli.common.options import complete_layouts
from pressmark.cli.common.program import Command
from pressmark.cli.store.options import IDENTIFIERS, Writers, layout_of, writers_options
from pressmark.stores.registry import store_class

__all__ = ["init_command"]

# Kinds with a fixed layout.
OWN = {"pairtree": "pairtree", "vitro": "vitro"}

HELP = """\
Create an empty store of KIND in the directory STORE.

\b
Examples:
  pressmark store init pairtree books --prefix ark:/13030/
  pressmark store init ocfl root --layout 0003:digestAlgorithm=sha512

STORE must be empty or not exist. An OCFL storage root can be in object storage: see the last example.
"""

EPILOG = """\
\b
More examples:
  pressmark store init vitro uploads --namespace http://vivo.example.edu/id/
  pressmark store init bags transfers
  pressmark store init ocfl s3://books/root --layout 0003

KIND is one of pairtree, vitro, ocfl, bags. A Pairtree and a Vitro store use the layout of that name; an OCFL storage
root requires --layout. For a folder of bags, --layout is optional; without it, the name of each bag is its identifier,
cleaned as in a Pairtree.

Exit status: 0 success, 1 writing failed, 2 usage error (nothing was created).
"""


@click.command("init", cls=Command, help=HELP, epilog=EPILOG, short_help="Create an empty store.")
@click.argument("kind", metavar="KIND", type=click.Choice(stores.KINDS))
@click.argument("path", metavar="STORE", type=PATH_OR_ADDRESS)
@click.option(
    "--layout",
    metavar="NAME[:KEY=VALUE,...]",
    shell_complete=complete_layouts,
    help='Layout that maps identifiers to paths; "pressmark layouts" lists the layouts, "pressmark layouts NAME" the'
    " keys.",
)
@click.option("--prefix", metavar="PREFIX", help="Pairtree: common prefix of all identifiers, omitted from paths.")
@click.option(
    "--namespace",
    "namespaces",
    metavar="NAMESPACE",
    multiple=True,
    help="Vitro: a namespace, shortened to one letter in paths; repeatable.",
)
@IDENTIFIERS
@writers_options
@bucket_options
def init_command(
    kind: str,
    path: bytes,
    layout: str | None,
    prefix: str | None,
    namespaces: tuple[str, ...],
    identifiers: str | None,
    writers: Writers,
) -> int:
    """Create an empty store."""
    chosen = layout_of(layout)
    options: dict[str, Any] = {**writers.options(path, kind)}
    for value, name, of, option in (
        (prefix, "prefix", "pairtree", "--prefix"),
        (namespaces or None, "namespaces", "vitro", "--namespace"),
        (identifiers, "identifiers", "bags", "--identifiers"),
    ):
        if value is not None:
            if kind != of:
                raise CallError(f"{option}: only for stores of kind {of}; omit the option")
            options[name] = value
    if chosen is not None and chosen.name != OWN.get(kind, chosen.name):
        raise CallError(f"--layout: a store of kind {kind} uses the layout {OWN[kind]}, not {chosen.name}")
    if kind == "ocfl" and chosen is None:
        raise CallError("an OCFL storage root needs a layout; add --layout, for example --layout 0003")
    store = store_class(kind).create(path, chosen, **options)
    say(f"{os.fsdecode(path)}: created an empty store of kind {store.kind}")
    return 0
