"""``pressmark migrate``: objects of one store into another."""

from __future__ import annotations

from typing import Any

import click

from pressmark import migrate
from pressmark.cli.common.console import Failure, Interrupted
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.progress import manner_of
from pressmark.cli.migrate.calls import Call
from pressmark.cli.migrate.options import given_options, migrate_options
from pressmark.cli.migrate.output import Lines
from pressmark.cli.migrate.watch import Watch
from pressmark.cli.store.options import command_errors
from pressmark.errors import JobError

__all__ = ["migrate_command"]

_MEANINGS = "\n".join(f"  {status:<16}  {meaning}" for status, meaning in migrate.STATUSES.items())
EPILOG = f"""\
Pressmark first plans where each object goes. It refuses a plan with conflicts (path collisions, names that the target
does not allow, too little space), lists all objects concerned, and writes nothing to DESTINATION. Then it copies and
verifies the objects, and gives each one a status:

\b
{_MEANINGS}

Each object that is neither ok nor exists_same gets a line on stdout: status, identifier, reason. remaining.txt in the
work folder lists the identifiers of all objects that are not done, for --ids. To continue a run that was interrupted or
killed, run the same command with --resume; without it the command is refused.

Exit status: 0 every object is in DESTINATION and verified, 1 some are not (each is listed) or the run is not finished,
2 usage error or refused plan, 130 interrupted.

\b
Examples:
  pressmark migrate books newroot --to ocfl --layout 0003 --dry-run
  pressmark migrate books newroot --to ocfl --layout 0003:tupleSize=2 --report report.html
  pressmark migrate root newroot --to ocfl --layout 0004 --move --json
"""


@click.command("migrate", epilog=EPILOG, short_help="Migrate objects from one store to another.")
@migrate_options
@click.pass_context
def migrate_command(context: click.Context, /, **call: Any) -> int:
    """Migrate the objects of the store SOURCE into the store DESTINATION, under their identifiers.

    SOURCE is a Pairtree, a Vitro store, an OCFL storage root or a folder of bags. DESTINATION is made, or is a store
    of the same kind and layout already. SOURCE stays as it is, unless --move is given.
    """
    asked = Call(call, given_options(context, call))
    with command_errors(), open_sink(None, None) as sink, Watch(manner_of(call["progress"], sink)) as watch:
        lines = Lines(sink, call["as_json"], call["everything"])
        try:
            return asked.go(lines, watch)
        except KeyboardInterrupt:
            watch.hide()
            raise Interrupted(asked.how_to_go_on(watch)) from None
        except JobError as error:
            # Once objects are at work, it is not the call that was wrong.
            if watch.phase in ("", "plan"):
                if isinstance(error.__cause__, OSError):
                    raise Failure(str(error)) from None
                raise
            raise Failure(f"{error}; {asked.again}") from None
        finally:
            lines.flush()
