"""``pressmark store declare``: declare namespaces of a Vitro store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

import click

from pressmark import stores
from pressmark.cli.common.console import CallError, say
from pressmark.cli.common.object_storage import bucket_options
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.options import JSON, STORE

if TYPE_CHECKING:
    from pressmark.stores import VitroStore

__all__ = ["declare_command"]

HELP = """\
Declare namespaces of the Vitro store STORE, or list the declared namespaces.

\b
Examples:
  pressmark store declare uploads http://vivo.example.edu/individual/
  pressmark store declare uploads

Paths contain one letter instead of a declared namespace. Each new NAMESPACE gets the first free letter; a declared
namespace keeps its letter.
"""

EPILOG = """\
Each namespace is a line on standard output: letter, TAB, and namespace; with --json {"prefix": ..., "namespace": ...}.
Either all namespaces are declared, or none. Objects that were stored before their namespace was declared are hidden
until "pressmark store repair" moves them. In object storage, a Vitro store is read-only; the command lists its
namespaces.

Exit status: 0 success, 1 reading or writing failed, 2 usage error, or STORE is not a Vitro store (nothing was written).
"""

# What takes the place of namespaces in other kinds of stores.
INSTEAD = {
    "pairtree": "its prefix is set by pressmark store init --prefix",
    "ocfl": "set parameters of its layout with pressmark store init --layout",
    "bags": "set parameters of its layout with pressmark store init --layout",
}


@click.command("declare", cls=Command, help=HELP, epilog=EPILOG, short_help="Declare namespaces of a Vitro store.")
@STORE
@click.argument("namespaces", metavar="[NAMESPACE...]", nargs=-1)
@JSON
@bucket_options
def declare_command(path: bytes, namespaces: tuple[str, ...], as_json: bool) -> None:
    """Declare namespaces of a Vitro store."""
    found = stores.open(path)
    if found.kind != "vitro":
        what = f"a store of kind {found.kind} has no namespaces"
        raise CallError(f"{os.fsdecode(path)}: {what}; {INSTEAD[found.kind]}")
    store = cast("VitroStore", found)
    before = set(store.namespaces)
    if namespaces:
        store.declare(*namespaces)
    shown = {
        prefix: namespace
        for prefix, namespace in sorted(store.namespaces.items())
        if not namespaces or namespace in namespaces
    }
    with Output(False, as_json=as_json, go_on=True) as output:
        for prefix, namespace in shown.items():
            if as_json:
                output.record({"prefix": prefix, "namespace": namespace})
            else:
                output.row(namespace, prefix, namespace, done="declared")
        new = len(set(store.namespaces) - before)
        output.summary({"namespaces": len(store.namespaces), "declared": new})
    if new:
        what = f"{format_count(new, 'namespace')} declared"
        say(f"{os.fsdecode(path)}: {what}; if they already have objects, move these with pressmark store repair")
