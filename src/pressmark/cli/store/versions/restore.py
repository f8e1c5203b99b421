"""``pressmark store restore``: make an earlier version of an OCFL object, or files of it, the newest one."""

from __future__ import annotations

from typing import Any

import click

from pressmark.cli.common.console import CallError
from pressmark.cli.common.program import Command
from pressmark.cli.store.options import (
    CREATED,
    IDENTIFIER,
    JSON,
    STORE,
    Provenance,
    StoreFormat,
    Writers,
    check_version,
    creation_date,
    ocfl_root,
    provenance_options,
    store_options,
    writers_options,
)
from pressmark.cli.store.put import one_object, store_objects
from pressmark.stores import StoreObject
from pressmark.stores.selection import by_path

__all__ = ["restore_command"]

HELP = """\
Bring back an earlier version of the OCFL object IDENTIFIER.

\b
Examples:
  pressmark store restore root ark:/13030/xt12t3 --version v1 --message Undo
  pressmark store restore root ark:/13030/xt12t3 --version v1 mets.xml

Its files become a new version. With PATHs, only these files and directories become as they were.
"""

EPILOG = """\
No content is copied: the new version refers to the content that the object stores. All versions are kept, also those
after VERSION. A directory becomes exactly as it was: files that were added later are not in the new version. If nothing
changes, no version is created. The output is the same as for "pressmark store put".

The content of files that come back is read and compared with its digest. If it is damaged or lost, the object is not
changed. With --no-verify, the command only checks that the content exists, for example because it is archived in object
storage, or too large to read.

Exit status: 0 success, 1 the object was not changed (the reason is on standard error), 2 usage error, 130 interrupted.
"""


@click.command(
    "restore", cls=Command, help=HELP, epilog=EPILOG, short_help="Bring back an earlier version of an object."
)
@STORE
@IDENTIFIER
@click.argument("names", metavar="[PATH...]", nargs=-1)
@click.option(
    "--version",
    metavar="VERSION",
    callback=check_version,
    help="The version to bring back, such as v2; required.",
)
@click.option(
    "--verify/--no-verify",
    default=True,
    help="Compare the content that comes back with its digest, or only check that it exists (default: verify).",
)
@writers_options
@provenance_options
@CREATED
@JSON
@store_options
def restore_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    identifier: str,
    names: tuple[str, ...],
    version: str | None,
    verify: bool,
    writers: Writers,
    provenance: Provenance,
    created: str | None,
    as_json: bool,
) -> int:
    """Bring back an earlier version of an object."""
    if version is None:
        raise CallError("missing option '--version'; pressmark store log lists the versions of an object")

    def more(kind: str) -> dict[str, Any]:
        chosen = writers.options(path, kind)
        return provenance.options(kind) | chosen if kind == "ocfl" else chosen

    opened = store_format.open(path, more=more)
    store = ocfl_root(opened, "restore", "restore the object from a backup")
    how: dict[str, Any] = {"verify": verify, **creation_date(created, store.kind)}
    # A shell completes the name of a directory with a slash.
    paths = [name.rstrip("/") or name for name in names]

    def restore() -> StoreObject:
        return by_path(store, identifier, lambda one: store.restore(one, version, paths, **how))

    restored = f"{'files of ' if names else ''}v{version.removeprefix('v')}"
    return store_objects(
        path, store, one_object(restore), as_json=as_json, null=False, progress=progress, restored=restored
    )
