"""``pressmark bag pack``: pack a bag into an archive."""

from __future__ import annotations

import os

import click

from pressmark.bagit.archive.pack import pack_bag
from pressmark.cli.bag.archive_run import ArchiveRun, run_options
from pressmark.cli.bag.options import BAG
from pressmark.cli.common.files import refuse_missing
from pressmark.cli.common.program import Command

__all__ = ["pack_command"]

HELP = """\
Pack BAG into an archive, and verify it in the same read.

\b
Examples:
  pressmark bag pack bag
  pressmark bag pack bag -o delivery.tar.zst

The ending of FILE determines the format: .tar, .tar.gz, .tgz, .tar.zst, .tzst or .zip. The archive contains one
directory with the name of FILE without its ending. BAG is not changed.

Each problem is a line on standard output: "error" or "warning", the kind, the path in the bag, and a message; --json
prints JSON instead. A bag with errors is not packed. Files that fetch.txt lists may be missing.
"""

EPILOG = """\
The same bag becomes the same bytes: members are sorted, have fixed owners and modes, and the time of Bagging-Date, or
of the environment variable SOURCE_DATE_EPOCH. Symbolic links in the bag are packed as the files they point to. .tar.zst
requires zstandard: pip install 'pressmark[zstd]'.

FILE appears when it is complete and on the disk. An interrupted run leaves nothing under this name.

Exit status: 0 success, 1 the bag is invalid, or reading or writing failed, 2 usage error (nothing was done), 130
interrupted.
"""


@click.command("pack", cls=Command, help=HELP, epilog=EPILOG, short_help="Pack a bag into an archive.")
@BAG
@click.option(
    "--output",
    "-o",
    "file",
    metavar="FILE",
    type=click.Path(path_type=bytes),
    help="Write the archive to FILE, which must not exist. Default: BAG.tar.",
)
@run_options
def pack_command(bag: bytes, file: bytes | None, as_json: bool, threads: int, progress: bool | None) -> int:
    """Pack a bag into an archive."""
    refuse_missing([bag], directories=True)
    destination = os.path.normpath(bag) + b".tar" if file is None else file
    if file is None and os.path.basename(os.path.normpath(bag)) in (b".", b".."):
        destination = os.path.abspath(bag) + b".tar"
    with ArchiveRun(bag, as_json, progress) as run:
        run.make(lambda: pack_bag(bag, destination, threads, run.listener), destination, "packed")
    return 0
