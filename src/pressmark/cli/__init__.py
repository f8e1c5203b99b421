"""The ``pressmark`` command: one module a command, loaded when it is called."""

from __future__ import annotations

import click

from pressmark import _kernels
from pressmark.cli.common.program import Program
from pressmark.version import __version__

__all__ = ["main", "version_line"]

# Each command and where it is; only the one that is called gets imported.
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
    "bench": "pressmark.cli.bench:bench_command",
}

EPILOG = """\
stdout holds data, stderr everything else. Exit status: 0 all well (a pipe whose reader left is, too), 1 an item
failed (each is listed) or reading or writing did, 2 usage error, 130 interrupted (by SIGTERM 143, by SIGHUP
129).

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


def print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    """Print the version and end, where ``--version`` was given."""
    if wanted and not context.resilient_parsing:
        click.echo(version_line())
        context.exit()


@click.group(cls=Program, commands_at=COMMANDS, epilog=EPILOG)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=print_version,
    help="Print version, implementation and vector level, and exit.",
)
def main() -> None:
    """Turn identifiers into storage paths and back, under every preservation layout in use; hash, verify and bag files;
    check, fill, migrate and compare stores.

    "pressmark COMMAND --help" tells everything about a command.
    """
