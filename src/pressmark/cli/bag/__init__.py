"""``pressmark bag``: one module per subcommand, imported when it is called."""

from __future__ import annotations

import click

from pressmark.cli.common.program import Commands

__all__ = ["bag"]

COMMANDS = {
    "create": "pressmark.cli.bag.create:create_command",
    "validate": "pressmark.cli.bag.validate:validate_command",
    "update": "pressmark.cli.bag.update:update_command",
    "complete": "pressmark.cli.bag.complete:complete_command",
    "info": "pressmark.cli.bag.info:info_command",
}

EPILOG = """\
Exit status: 0 success, 1 a bag is invalid or incomplete, or a file failed, 2 usage error, 130 interrupted.

\b
Examples:
  pressmark bag create files -o bag --info "Source-Organization=Example University"
  pressmark bag validate bag
"""


@click.group(
    cls=Commands, commands_at=COMMANDS, epilog=EPILOG, short_help="Create, validate, update and complete bags."
)
def bag() -> None:
    """Create, validate and update bags: directories with a payload and manifests of its checksums, for transfer and
    storage.

    Bags are written as BagIt File Packaging Format 1.0; versions 0.93 and later can be read.
    """
