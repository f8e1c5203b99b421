"""``pressmark store``: one module per subcommand, loaded when it is called."""

from __future__ import annotations

import click

from pressmark.cli.common.program import Commands

__all__ = ["store"]

COMMANDS = {
    "init": "pressmark.cli.store.init:init_command",
    "ls": "pressmark.cli.store.ls:ls_command",
    "check": "pressmark.cli.store.check:check_command",
    "audit": "pressmark.cli.store.audit:audit_command",
    "report": "pressmark.cli.store.report:report_command",
    "repair": "pressmark.cli.store.repair:repair_command",
    "put": "pressmark.cli.store.put:put_command",
    "update": "pressmark.cli.store.update:update_command",
    "restore": "pressmark.cli.store.versions.restore:restore_command",
    "upgrade": "pressmark.cli.store.versions.upgrade:upgrade_command",
    "get": "pressmark.cli.store.get:get_command",
    "cat": "pressmark.cli.store.cat:cat_command",
    "log": "pressmark.cli.store.versions.log:log_command",
    "compare": "pressmark.cli.store.compare:compare_command",
    "diff": "pressmark.cli.store.versions.diff:diff_command",
    "declare": "pressmark.cli.store.declare:declare_command",
    "rm": "pressmark.cli.store.rm:rm_command",
    "probe": "pressmark.cli.store.probe:probe_command",
}

HELP = """\
Create, list, check, repair and fill stores.

\b
Examples:
  pressmark store put books ark:/13030/xt12t3 scans
  pressmark store check books

A store is a Pairtree, a Vitro store, an OCFL storage root or a folder of bags. Its kind is detected from its content.
An OCFL storage root can be in object storage: STORE is then an address such as s3://bucket/prefix. A Pairtree or a
Vitro store there is read-only.
"""

EPILOG = """\
Object storage requires botocore: pip install 'pressmark[s3]'. It finds credentials and settings as the AWS command line
does: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, AWS_DEFAULT_REGION, AWS_ENDPOINT_URL_S3. If a server
cannot be reached or denies access, the exit status is 1.

Exit status: 0 success, 1 an object failed or an error was found (each is listed), 2 usage error, 130
interrupted.
"""


@click.group(
    cls=Commands,
    commands_at=COMMANDS,
    help=HELP,
    epilog=EPILOG,
    short_help="Create, list, check, repair and fill stores.",
)
def store() -> None:
    """Create, list, check, repair and fill stores."""
