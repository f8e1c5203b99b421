"""``pressmark store log``: list the versions of an object."""

from __future__ import annotations

from collections.abc import Mapping

import click

from pressmark.cli.common.console import one_line
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.options import (
    IDENTIFIER,
    JSON,
    STORE,
    StoreFormat,
    mutable_head_text,
    ocfl_root,
    store_options,
)
from pressmark.errors import quoted
from pressmark.stores.selection import by_path

__all__ = ["log_command"]

HELP = """\
List the versions of the OCFL object IDENTIFIER, the newest last.

\b
Examples:
  pressmark store log root ark:/13030/xt12t3
  pressmark store log root ark:/13030/xt12t3 --json
"""

EPILOG = """\
Each version is a line on standard output, with a TAB between its fields: name, date of creation, number of files, their
size in bytes, user, and message. "-" stands for an unknown value; line breaks and other control characters in a message
are escaped. With --json it is {"version": ..., "created": ..., "user": {"name": ..., "address": ...}, "message": ...,
"files": ..., "bytes": ...}.

Exit status: 0 success, 1 object not found or its inventory cannot be read; 2 usage error, 130 interrupted.
"""


@click.command("log", cls=Command, help=HELP, epilog=EPILOG, short_help="List the versions of an object.")
@STORE
@IDENTIFIER
@JSON
@store_options
def log_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    identifier: str,
    as_json: bool,
) -> int:
    """List the versions of an object."""
    instead = '"pressmark store ls STORE IDENTIFIER" lists the files of an object'
    store = ocfl_root(store_format.open(path), "log", instead)
    stored = by_path(store, identifier, store.get)
    versions = stored.versions()
    with Output(progress, as_json=as_json, data=True) as output:
        for one in versions:
            if as_json:
                output.record(one._asdict())
                continue
            size = "-" if one.bytes is None else str(one.bytes)
            fields = (one.created or "-", str(one.files), size, _user_text(one.user), one.message or "-")
            output.row(one.version, one.version, *map(one_line, fields))
        output.summary({"ok": True, "versions": len(versions)})
    unknown = sum(one.bytes is None for one in versions)
    text = f"{quoted(identifier)}: {format_count(len(versions), 'version')}"
    if unknown:
        text += f'; the size of {unknown:,} is unknown: run "pressmark store check" for details'
    output.tell(text + mutable_head_text(stored))
    return 0


def _user_text(user: Mapping[str, str] | None) -> str:
    if user is None:
        return "-"
    address = user.get("address")
    return " ".join([*filter(None, [user.get("name")]), *([] if address is None else [f"<{address}>"])])
