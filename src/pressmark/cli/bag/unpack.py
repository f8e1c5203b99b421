"""``pressmark bag unpack``: unpack a bag from an archive."""

from __future__ import annotations

import click

from pressmark.bagit.archive.members import Limits
from pressmark.bagit.archive.unpack import unpack_bag
from pressmark.bagit.paths import archive_ending
from pressmark.cli.bag.archive_run import ArchiveRun, run_options
from pressmark.cli.common.console import CallError
from pressmark.cli.common.files import refuse_missing
from pressmark.cli.common.program import Command

__all__ = ["unpack_command"]

HELP = """\
Unpack the bag in FILE, and validate it meanwhile.

\b
Examples:
  pressmark bag unpack delivery.tar.gz
  pressmark bag unpack delivery.zip -o checked

FILE is a zip, tar or compressed tar file (gzip, bzip2, xz, zstd) with one top-level directory, and is not changed.

Each problem is a line on standard output: "error" or "warning", the kind, the path in the bag, and a message; --json
prints JSON instead. A bag with errors is not unpacked. Files that fetch.txt lists may be missing.
"""

EPILOG = """\
The bag appears when it is complete, valid and on the disk. An interrupted run leaves nothing under its name.

FILE is untrusted input: members are written inside the bag only, archives that expand beyond a limit are refused, and
symbolic links must stay in the bag. Sparse files in tar, and members of zip that are neither stored nor deflated, are
not supported. Modes, owners and times of members are not restored. .tar.zst requires zstandard: pip install
'pressmark[zstd]'.

Exit status: 0 success, 1 the bag or FILE is invalid, or reading or writing failed, 2 usage error (nothing was done),
130 interrupted.
"""


@click.command("unpack", cls=Command, help=HELP, epilog=EPILOG, short_help="Unpack a bag from an archive.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=bytes))
@click.option(
    "--output",
    "-o",
    "directory",
    metavar="BAG",
    type=click.Path(path_type=bytes),
    help="Create the bag in the new directory BAG. Default: FILE without its ending.",
)
@run_options
def unpack_command(file: bytes, directory: bytes | None, as_json: bool, threads: int, progress: bool | None) -> int:
    """Unpack a bag from an archive."""
    refuse_missing([file])
    if directory is None:
        ending = archive_ending(file)
        if ending is None:
            raise CallError("cannot derive the name of the bag from the name of FILE; use -o BAG")
        directory = file[: -len(ending)]
    destination = directory
    with ArchiveRun(file, as_json, progress) as run:
        run.make(lambda: unpack_bag(file, destination, threads, Limits(), run.listener), destination, "unpacked")
    return 0
