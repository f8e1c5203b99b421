"""``pressmark store diff``: compare two versions of an object."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.store.options import (
    IDENTIFIER,
    JSON,
    NULL,
    STORE,
    StoreFormat,
    changes_text,
    check_version,
    ocfl_root,
    store_options,
)
from pressmark.errors import quoted
from pressmark.stores import Changes
from pressmark.stores.selection import by_path

__all__ = ["diff_command"]

HELP = """\
List the files that differ between two versions of an OCFL object.

\b
Examples:
  pressmark store diff root ark:/13030/xt12t3     # the two newest versions
  pressmark store diff root ark:/13030/xt12t3 v1  # v1 and the newest version
"""

EPILOG = """\
\b
More examples:
  pressmark store diff root ark:/13030/xt12t3 v1 v3

Each file is a line on standard output: added, removed or changed, TAB, and its logical path; or renamed, TAB, the old
path, TAB, and the new one. A renamed file has the same digest under another path. With --json it is {"change": ...,
"name": ...}, and for a renamed file {"change": "renamed", "name": ..., "from": ...}. If the object has only one
version, all its files are listed as added. The command does not read file content.

Exit status: 0 success, with or without differences; 1 object or version not found, or a path contains a line break;
2 usage error, 130 interrupted.
"""


@click.command("diff", cls=Command, help=HELP, epilog=EPILOG, short_help="Compare two versions of an object.")
@STORE
@IDENTIFIER
@click.argument("before", metavar="[V1", required=False, callback=check_version)
@click.argument("after", metavar="[V2]]", required=False, callback=check_version)
@NULL
@JSON
@store_options
def diff_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    identifier: str,
    before: str | None,
    after: str | None,
    null: bool,
    as_json: bool,
) -> int:
    """Compare two versions of an object."""
    instead = 'compare the object with a copy from "pressmark store get"'
    root = ocfl_root(store_format.open(path), "diff", instead)
    found = by_path(root, identifier, root.get)
    older, newer = found.version_pair(before, after)
    changes = found.diff(before, after)
    with Output(progress, as_json=as_json, null=null, data=True) as output:
        for change, *names in _rows(changes):
            name = names[-1]
            if as_json:
                old = {"from": names[0]} if change == "renamed" else {}
                output.record({"change": change, "name": name, **old})
            else:
                output.row(name, change, *names)
        output.summary({"ok": True, "from": older, "to": newer, **changes.counts()})
    versions = newer if older is None else f"{older} to {newer}"
    output.tell(f"{quoted(identifier)}: {versions}: {changes_text(changes.counts())}")
    return output.status


def _rows(changes: Changes) -> Iterator[tuple[str, ...]]:
    """Yield each kind of change and the paths of a file, in the order of the (new) paths."""
    rows = [
        *(("added", name) for name in changes.added),
        *(("removed", name) for name in changes.removed),
        *(("changed", name) for name in changes.changed),
        *(("renamed", *pair) for pair in changes.renamed),
    ]
    yield from sorted(rows, key=lambda row: row[-1])
