"""``pressmark migrate``: migrate objects from one store to another."""

from __future__ import annotations

from typing import Any

import click

from pressmark import migrate
from pressmark.cli.common.console import Failure, Interrupted
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import Reporter, progress_mode
from pressmark.cli.migrate.calls import MigrateCall
from pressmark.cli.migrate.options import given_options, migrate_options
from pressmark.cli.migrate.output import PHASES, OutputLines
from pressmark.errors import JobError

__all__ = ["migrate_command"]

_MEANINGS = "\n".join(f"  {status:<16}  {meaning}" for status, meaning in migrate.STATUSES.items())
HELP = """\
Migrate the objects of the store SOURCE to the store DESTINATION.

\b
Examples:
  pressmark migrate books newroot --to ocfl --layout 0003 --dry-run
  pressmark migrate books newroot --to ocfl --layout 0003:tupleSize=2 --report report.html

SOURCE is a Pairtree, a Vitro store, an OCFL storage root or a folder of bags. DESTINATION is created, unless it is
already a store of the requested kind and layout. Objects keep their identifiers, unless --map changes them. SOURCE is
not changed, unless you use --move.
"""

EPILOG = f"""\
\b
More examples:
  pressmark migrate root newroot --to ocfl --layout 0004 --move --json

Pressmark first plans the path of each object. A plan with conflicts (path collisions, names that the target system does
not allow, too little space) is refused: all conflicts are listed, and nothing is written to DESTINATION. Then each
object is copied and verified, and gets a status:

\b
{_MEANINGS}

Each object that is neither ok nor exists_same is listed on stdout with its status, identifier and reason. The file
remaining.txt in the work folder lists the identifiers of these objects, for --ids. To continue a run that was
interrupted or killed, run the same command with --resume.

Exit status: 0 every object is in DESTINATION and verified, 1 some are not (each is listed) or the run is not finished,
2 usage error or refused plan, 130 interrupted.
"""


@click.command(
    "migrate", cls=Command, help=HELP, epilog=EPILOG, short_help="Migrate objects from one store to another."
)
@migrate_options
@click.pass_context
def migrate_command(context: click.Context, /, **call: Any) -> int:
    """Migrate objects from one store to another."""
    invocation = MigrateCall(call, given_options(context, call))
    with (
        open_sink(None, None) as sink,
        Reporter(progress_mode(call["progress"], sink), "object", PHASES) as reporter,
    ):
        lines = OutputLines(sink, call["as_json"], call["everything"])
        try:
            return invocation.execute(lines, reporter)
        except KeyboardInterrupt:
            reporter.hide()
            raise Interrupted(invocation.interrupted_message(reporter)) from None
        except JobError as error:
            # Errors after planning are no usage errors.
            if reporter.done.stage in ("", "plan"):
                if isinstance(error.__cause__, OSError):
                    raise Failure(str(error)) from None
                raise
            raise Failure(f"{error}; {invocation.again}") from None
        finally:
            lines.flush()
