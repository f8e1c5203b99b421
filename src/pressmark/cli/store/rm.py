"""``pressmark store rm``: remove objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pressmark.cli.common.console import CallError
from pressmark.cli.common.options import CRLF, null_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.options import (
    JSON,
    STORE,
    StoreFormat,
    Writers,
    store_options,
    write_object,
    writers_options,
)
from pressmark.errors import IdentifierError, ObjectError
from pressmark.reports import ProgressEvent
from pressmark.stores import Store, StoreObject
from pressmark.stores.selection import by_path
from pressmark.stores.store_change import Removal

if TYPE_CHECKING:
    from pressmark.tabular.formats import Crlf

__all__ = ["rm_command"]

HELP = """\
Remove the objects with these identifiers, or all listed with --from.

\b
Examples:
  pressmark store rm books ark:/13030/xt12t3
  pressmark store rm books --from identifiers.txt
"""

EPILOG = """\
Removing an object is atomic. Directories above it that become empty are also removed. A failed object is reported on
standard error, and the command continues with the next. Removal cannot be undone. Nothing is removed behind a symbolic
link in the store.

With --dry-run, each object that would be removed is a line: identifier, TAB and path; with --json, as printed by
"pressmark store ls".

Exit status: 0 all objects removed, 1 some failed, 2 usage error (nothing was done), 130 interrupted.
"""


@click.command("rm", cls=Command, help=HELP, epilog=EPILOG, short_help="Remove objects from a store.")
@STORE
@click.argument("removed", metavar="[IDENTIFIER...]", nargs=-1)
@click.option(
    "--from",
    "listed",
    metavar="FILE",
    type=click.Path(readable=False),
    help='Remove the objects listed in FILE ("-" for standard input), one identifier per line.',
)
@null_option("Items of FILE end with NUL instead of a line feed.")
@CRLF
@click.option("--dry-run", is_flag=True, help="List the objects that would be removed, and remove none.")
@writers_options
@JSON
@store_options
def rm_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    removed: tuple[str, ...],
    listed: str | None,
    null: bool,
    crlf: Crlf | None,
    dry_run: bool,
    writers: Writers,
    as_json: bool,
) -> int:
    """Remove objects."""
    if bool(removed) == (listed is not None):
        raise CallError("missing argument; specify IDENTIFIER, or --from FILE")
    done = failed = 0
    store: Any = store_format.open(path, ignore, more=partial(writers.options, path))

    def interrupted() -> str:
        return f"interrupted after {format_count(done, 'object')}; run the command again to remove the others"

    items: Iterable[str | bytes] = removed
    count: Callable[[], Iterable[int]] | None = partial(list, [len(removed)])
    if listed is not None:
        from pressmark.cli.common.item_lists import count_lines
        from pressmark.cli.store.listed import listed_identifiers

        items, count = listed_identifiers(listed, null, crlf, lambda: store), count_lines(listed, null, crlf)
    shown: dict[str, Any] = {"as_json": as_json, "go_on": not dry_run, "interrupted": interrupted, "count": count}
    with Output(progress, "object", **shown) as output:
        with Removal(store) as removal:
            for one in items:
                try:
                    if dry_run:
                        write_object(output, by_path(store, one, partial(_find, store)))
                    else:
                        by_path(store, one, removal.remove)
                except (ObjectError, IdentifierError) as error:
                    failed += 1
                    output.reporter.fail(str(error))
                else:
                    done += 1
                output.reporter.on_event(ProgressEvent(items=done + failed, failed=failed))
        summary = {"ok": not failed, "removed": done, "failed": failed}
        output.summary({"dry_run": True, **summary} if dry_run else summary)
    output.tell(f"{format_count(done, 'object')} {'would be removed' if dry_run else 'removed'}")
    return output.status


def _find(store: Store, identifier: str | bytes | StoreObject) -> StoreObject:
    return identifier if isinstance(identifier, StoreObject) else store.find(identifier)
