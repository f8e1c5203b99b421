"""The ``pressmark`` command: one module a command, loaded when it is called."""

from __future__ import annotations

import click

from pressmark import _kernels
from pressmark.cli.program import Program
from pressmark.version import __version__

__all__ = ["main", "version_line"]

# Each command and where it is; only the one that is called gets imported.
COMMANDS = {
    "layouts": "pressmark.cli.layouts:layouts",
    "map": "pressmark.cli.mapping:map_command",
    "unmap": "pressmark.cli.mapping:unmap_command",
    "hash": "pressmark.cli.hashing:hash_command",
    "verify": "pressmark.cli.verifying:verify_command",
}

EPILOG = """\
stdout holds data, stderr everything else. Exit status: 0 all well (a pipe whose reader left is, too), 1 an item
failed (each is listed on stderr) or reading or writing did, 2 the call was wrong, 130 interrupted.

\b
Examples:
  pressmark layouts
  echo ark:/13030/xt12t3 | pressmark map pairtree
  echo ar/k+/=1/30/30/=x/t1/2t/3 | pressmark unmap pairtree
"""


def version_line() -> str:
    """Return what ``pressmark --version`` prints: the version, the implementation and its vector level."""
    active = _kernels.active
    level = "" if active.NAME == "pure" else f", vector level {active.LEVEL}"
    return f"pressmark {__version__} ({active.NAME}{level})"


@click.group(
    cls=Program,
    commands_at=COMMANDS,
    epilog=EPILOG,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
)
@click.version_option(
    __version__, "--version", message=version_line(), help="Print version, implementation and vector level, and exit."
)
@click.pass_context
def main(context: click.Context) -> None:
    """Turn identifiers into storage paths and back, under every preservation layout in use.

    "pressmark COMMAND --help" tells everything about a command.
    """
    if context.invoked_subcommand is None:
        # A call without a command does nothing, and a script must see that.
        click.echo(context.get_help(), err=True)
        context.exit(2)
