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
    "revert": "pressmark.cli.bag.revert:revert_command",
    "info": "pressmark.cli.bag.info:info_command",
    "pack": "pressmark.cli.bag.pack:pack_command",
    "unpack": "pressmark.cli.bag.pack:unpack_command",
}

HELP = """\
Create, validate, update, complete and pack bags (BagIt).

\b
Examples:
  pressmark bag create files -o bag --info "Contact-Name=A. Archivist"
  pressmark bag validate bag

A bag is a directory for transfer and storage; it contains a payload and manifests with checksums. Pressmark
writes bags of version 1.0 of the BagIt File Packaging Format, and reads version 0.93 and later.
"""

EPILOG = """\
Exit status: 0 success, 1 a bag is invalid or incomplete, or a file failed, 2 usage error, 130 interrupted.
"""


@click.group(
    cls=Commands,
    commands_at=COMMANDS,
    help=HELP,
    epilog=EPILOG,
    short_help="Create, validate, update, complete and pack bags (BagIt).",
)
def bag() -> None:
    """Create, validate, update, complete and pack bags (BagIt)."""
