"""``pressmark store get``: copy an object's files out of a store."""

from __future__ import annotations

import os

import click

from pressmark.cli.common.console import CallError, Failure, cause
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.options import (
    IDENTIFIER,
    JSON,
    MODE,
    STORE,
    VERIFY,
    VERSION,
    find_object,
    open_store,
    store_options,
)
from pressmark.errors import BagError, ObjectError, PressmarkError, quoted
from pressmark.fs.names import is_inside

__all__ = ["get_command"]

HELP = """\
Copy the files of the object IDENTIFIER into the new directory DESTINATION.

\b
Examples:
  pressmark store get books ark:/13030/xt12t3 copy
  pressmark store get root ark:/13030/xt12t3 first --version v1
"""

EPILOG = """\
DESTINATION is created atomically. For an OCFL object, the command copies the files of its newest version, or of
--version; for a bag, its payload; for a serialized bag, the archive. It also creates empty directories.

Files of OCFL objects and bags are hashed while they are copied, and compared with the inventory or the manifests. If
one does not match, nothing is created. Where an OCFL inventory lists a second, intact content file, that one is copied.
Pairtrees and Vitro stores record no digests: their files are copied without verification.

Exit status: 0 success, 1 object not found, content is damaged, or reading or writing failed; 2 usage error,
130 interrupted.
"""


@click.command("get", cls=Command, help=HELP, epilog=EPILOG, short_help="Copy the files of an object.")
@STORE
@IDENTIFIER
@click.argument("destination", metavar="DESTINATION", type=click.Path(path_type=bytes))
@VERSION
@MODE
@VERIFY
@JSON
@store_options
def get_command(
    path: bytes,
    kind: str | None,
    layout: str | None,
    identifiers: str | None,
    ignore: tuple[str, ...],
    progress: bool | None,
    identifier: str,
    destination: bytes,
    version: str | None,
    copy_mode: str,
    verify: bool,
    as_json: bool,
) -> int:
    """Copy the files of an object."""
    if os.path.lexists(destination):
        raise CallError(f"{os.fsdecode(destination)}: already exists; choose another name")
    store = open_store(path, kind, layout, identifiers, ignore)
    if is_inside(destination, store.root):
        what = "inside the store; choose a directory outside"
        raise CallError(f"{os.fsdecode(destination)}: {what}")
    interrupted = "interrupted; nothing was created"
    with Output(progress, as_json=as_json, go_on=True, interrupted=interrupted) as output:
        try:
            found = find_object(store, identifier, version)
            files, empty = found.copy_to(destination, copy_mode=copy_mode, verify=verify)
        except (PressmarkError, OSError) as error:
            if as_json and isinstance(error, ObjectError):
                output.record({"kind": error.kind, "severity": "error", "message": error.reason})
            output.summary({"ok": False, "files": 0, "empty_directories": 0})
            if isinstance(error, PressmarkError) and not isinstance(error, BagError):
                raise
            if isinstance(error, BlockingIOError):
                raise Failure(f"{quoted(destination)}: in use by another run; wait for it to finish") from None
            why = str(error) if isinstance(error, BagError) else f"{quoted(destination)}: {cause(error)}"
            raise Failure(why) from None
        for name in files if as_json else ():
            output.record({"name": name})
        output.summary({"ok": True, "files": len(files), "empty_directories": len(empty)})
    more = f", {len(empty):,} empty director{'y' if len(empty) == 1 else 'ies'}" if empty else ""
    output.tell(f"{os.fsdecode(destination)}: {format_count(len(files), 'file')}{more}")
    return 0
