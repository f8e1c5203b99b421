"""The ``pressmark`` command: one module per command, imported when it is called."""

from __future__ import annotations

import click

from pressmark import _kernels
from pressmark.cli.common.console import say_not_compiled
from pressmark.cli.common.program import Program

__all__ = ["main", "version_line"]

# The modules and functions of the commands; only the module of the command in use is imported.
COMMANDS = {
    "layouts": "pressmark.cli.layouts:layouts",
    "map": "pressmark.cli.map:map_command",
    "unmap": "pressmark.cli.map:unmap_command",
    "hash": "pressmark.cli.hash:hash_command",
    "verify": "pressmark.cli.verify:verify_command",
    "bag": "pressmark.cli.bag:bag",
    "store": "pressmark.cli.store:store",
    "migrate": "pressmark.cli.migrate:migrate_command",
    "compare": "pressmark.cli.compare:compare_command",
    "completion": "pressmark.cli.completion:completion_command",
}

HELP = """\
Map identifiers to storage paths; hash files; manage bags and stores.

\b
Examples:
  pressmark map 0004 identifiers.txt -o paths.txt
  pressmark bag create files -o bag

"pressmark COMMAND -h" describes each command.
"""

EPILOG = """\
Data goes to standard output, everything else to standard error. Exit status: 0 success (also if the reader of a pipe
closes it), 1 some items failed (each is listed), or reading or writing failed, 2 usage error, 130 interrupted (143 by
SIGTERM, 129 by SIGHUP).
"""


def version_line() -> str:
    """Return the output of ``pressmark --version``: version, implementation and vector level."""
    from pressmark.version import __version__

    active = _kernels.active
    level = "" if active.NAME == "pure" else f", vector level {active.LEVEL}"
    return f"pressmark {__version__} ({active.NAME}{level})"


def print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the version and exit, for ``--version``."""
    if wanted and not context.resilient_parsing:
        click.echo(version_line())
        say_not_compiled()
        context.exit()


# The commands inherit these settings.
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Program, commands_at=COMMANDS, help=HELP, epilog=EPILOG, context_settings=SETTINGS)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=print_version,
    help="Show the version, implementation and vector level, and exit.",
)
def main() -> None:
    """Run a command."""
