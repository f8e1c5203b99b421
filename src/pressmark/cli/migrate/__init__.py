"""``pressmark migrate``: migrate objects from one store to another."""

from __future__ import annotations

from typing import Any

import click

from pressmark import migrate
from pressmark.cli.common.console import Failure
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.migrate.calls import MigrateCall
from pressmark.cli.migrate.options import given_options, migrate_options
from pressmark.cli.migrate.output import PHASES
from pressmark.errors import JobError

__all__ = ["migrate_command"]

_MEANINGS = "\n".join(f"  {status:<16}  {meaning}" for status, meaning in migrate.STATUSES.items())
HELP = """\
Migrate the objects of the store SOURCE to the store DESTINATION.

\b
Examples:
  pressmark migrate books newroot --to ocfl --layout 0003 --dry-run
  pressmark migrate books newroot --to ocfl --layout 0003 --report page.html

SOURCE is a Pairtree, a Vitro store, an OCFL storage root or a folder of bags. DESTINATION is created, unless it is
already a store of the requested kind and layout. Objects keep their identifiers, unless --map changes them. SOURCE is
not changed, unless you use --move.
"""

DETAILS = f"""\
\b
More examples:
  pressmark migrate root newroot --to ocfl --layout 0004 --move --json

Pressmark first plans the path of each object. A plan with conflicts (path collisions, names that the target system does
not allow, too little space) is refused: all conflicts are listed, and nothing is written to DESTINATION. Then each
object is copied and verified, and gets a status; all but ok and exists_same are listed:

\b
{_MEANINGS}
"""

EPILOG = """\
Each object that is not migrated is listed on stdout with its status, identifier and reason. The file remaining.txt in
the work folder lists the identifiers of these objects, for --ids.

Exit status: 0 every object is in DESTINATION and verified, 1 some are not (each is listed) or the run is not finished,
2 usage error or refused plan, 130 interrupted.
"""

# Options that few migrations need.
PAGE_OPTIONS = """
--prefix --namespace --identifiers --content-paths --source-kind --source-layout --column --crlf --version --improper
--ignore --links --algorithm --profile --check-space --verify --message --user --user-address --copy-mode
--drop-empty-directories --endpoint --s3-profile --region --claims
--single-writer --workers --dask --work --max-errors
"""


@click.command(
    "migrate",
    cls=Command,
    help=HELP,
    details=DETAILS,
    page_options=PAGE_OPTIONS,
    epilog=EPILOG,
    short_help="Migrate objects from one store to another.",
)
@migrate_options
@click.pass_context
def migrate_command(context: click.Context, /, **call: Any) -> int:
    """Migrate objects from one store to another."""
    invocation = MigrateCall(call, given_options(context, call))
    with Output(
        call["progress"],
        "object",
        as_json=call["as_json"],
        go_on=True,
        stages=PHASES,
        interrupted=lambda: invocation.interrupted_message(output.reporter.done),
    ) as output:
        try:
            return invocation.execute(output)
        except JobError as error:
            # Errors after planning are no usage errors.
            if output.reporter.done.stage in ("", "plan"):
                if isinstance(error.__cause__, OSError):
                    raise Failure(str(error)) from None
                raise
            raise Failure(f"{error}; {invocation.again}") from None
