"""``pressmark store init``: make an empty store."""

from __future__ import annotations

import os
from typing import Any

import click

from pressmark import stores
from pressmark.cli.common.console import CallError, say
from pressmark.cli.store.options import IDENTIFIERS, layout_of, store_endings

__all__ = ["init_command"]

# The layout that a kind has of itself.
OWN = {"pairtree": "pairtree", "vitro": "vitro"}

EPILOG = """\
KIND is one of pairtree, vitro, ocfl, bags. Identifiers are placed by the layout of that name in a Pairtree and a Vitro
store; an OCFL storage root needs --layout; a folder of bags can have one, else each bag is called by its cleaned
identifier.

Exit status: 0 all well, 1 writing failed, 2 usage error (nothing was made).

\b
Examples:
  pressmark store init pairtree books --prefix ark:/13030/
  pressmark store init vitro uploads --namespace http://vivo.example.edu/individual/
  pressmark store init ocfl root --layout 0003:digestAlgorithm=sha512,tupleSize=2
  pressmark store init bags transfers
"""


@click.command("init", epilog=EPILOG, short_help="Make an empty store.")
@click.argument("kind", metavar="KIND", type=click.Choice(stores.KINDS))
@click.argument("path", metavar="STORE", type=click.Path(path_type=bytes))
@click.option(
    "--layout",
    metavar="NAME[:KEY=VALUE,...]",
    help='How identifiers become paths; "pressmark layouts" lists the layouts, "pressmark layouts NAME" the keys.',
)
@click.option("--prefix", metavar="PREFIX", help="Pairtree: what every identifier begins with and no path shows.")
@click.option(
    "--namespace",
    "namespaces",
    metavar="NAMESPACE",
    multiple=True,
    help="Vitro: a beginning of identifiers that one letter stands for in paths; repeatable.",
)
@IDENTIFIERS
def init_command(
    kind: str,
    path: bytes,
    layout: str | None,
    prefix: str | None,
    namespaces: tuple[str, ...],
    identifiers: str | None,
) -> int:
    """Make an empty store of a KIND in the directory STORE, which is not there yet or is empty."""
    chosen = layout_of(layout)
    options: dict[str, Any] = {}
    for value, name, of, option in (
        (prefix, "prefix", "pairtree", "--prefix"),
        (namespaces or None, "namespaces", "vitro", "--namespace"),
        (identifiers, "identifiers", "bags", "--identifiers"),
    ):
        if value is not None:
            if kind != of:
                raise CallError(f"{option}: for stores of kind {of} only")
            options[name] = value
    if chosen is not None and chosen.name != OWN.get(kind, chosen.name):
        raise CallError(f"--layout: a store of kind {kind} has the layout {OWN[kind]}, not {chosen.name}")
    if kind == "ocfl" and chosen is None:
        raise CallError("an OCFL storage root needs --layout, such as --layout 0003")
    with store_endings():
        store = stores.create(kind, path, chosen, **options)
    say(f"{os.fsdecode(path)}: an empty store of kind {store.kind}")
    return 0
