"""``pressmark bag pack`` and ``pressmark bag unpack``."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from typing import Any, TypeVar

import click

from pressmark.bagit.archive.members import Limits
from pressmark.bagit.archive.pack import pack_bag
from pressmark.bagit.archive.unpack import unpack_bag
from pressmark.bagit.paths import archive_ending
from pressmark.bagit.problems import BagReport
from pressmark.buckets.address import find_key, is_address
from pressmark.cli.bag.options import BAG, STAGES, Listener, timestamps_option
from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.files import refuse_missing
from pressmark.cli.common.object_storage import PATH_OR_ADDRESS, bucket_options
from pressmark.cli.common.options import PROGRESS, THREADS, json_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count, format_rate
from pressmark.errors import BagInvalidError, quoted_path

__all__ = ["pack_command", "unpack_command"]

Function = TypeVar("Function", bound=Callable[..., Any])

PACK_HELP = """\
Pack BAG into an archive, and verify it in the same read.

\b
Examples:
  pressmark bag pack bag -o delivery.tar.zst
  pressmark bag pack bag -o s3://bucket/delivery.tar.zst

The ending of FILE determines the format: .tar, .tar.gz, .tgz, .tar.zst, .tzst or .zip. The archive contains one
directory with the name of FILE without its ending. BAG is not changed.

Each problem is a line on standard output: "error" or "warning", the kind, the path in the bag, and a message; --json
prints JSON instead. A bag with errors is not packed. Files that fetch.txt lists may be missing.
"""

PACK_EPILOG = """\
Files and directories keep their modification times, in whole seconds, and their permission bits, without setuid, setgid
and sticky. Owners are not kept. The same bag becomes the same bytes. So do copies of it with other times, if the option
--timestamps bagging-date or the environment variable SOURCE_DATE_EPOCH sets one time for all. Symbolic links in the bag
are packed as the files they point to. .tar.zst requires zstandard: pip install 'pressmark[zstd]'.

FILE appears when it is complete and on the disk. An interrupted run leaves nothing under this name. FILE may be an
address in object storage: it is sent in parts while it is packed, and after an interruption, the same command sends
only the parts that are missing.

Exit status: 0 success, 1 the bag is invalid, or reading or writing failed, 2 usage error (nothing was done), 130
interrupted.
"""

UNPACK_HELP = """\
Unpack the bag in FILE, and validate it meanwhile.

\b
Examples:
  pressmark bag unpack delivery.zip -o checked
  pressmark bag unpack s3://bucket/delivery.tar.zst

FILE is a zip, tar or compressed tar file (gzip, bzip2, xz, zstd) with one top-level directory, and is not changed.

Each problem is a line on standard output: "error" or "warning", the kind, the path in the bag, and a message; --json
prints JSON instead. A bag with errors is not unpacked. Files that fetch.txt lists may be missing.
"""

UNPACK_EPILOG = """\
The bag appears when it is complete, valid and on the disk. An interrupted run leaves nothing under its name.

FILE is untrusted input: members are written inside the bag only, archives that expand beyond a limit are refused, and
symbolic links must stay in the bag. Sparse files in tar, and members of zip that are neither stored nor deflated, are
not supported. .tar.zst requires zstandard: pip install 'pressmark[zstd]'.

Files and directories get the modification times and permission bits in FILE, as far as the umask allows, but never
setuid, setgid and sticky. You can read every file, and change every directory. Owners are not restored.

Exit status: 0 success, 1 the bag or FILE is invalid, or reading or writing failed, 2 usage error (nothing was done),
130 interrupted.
"""


def _run_options(command: Function) -> Function:
    """Add the options of both commands."""
    return json_option("problem")(THREADS(PROGRESS(command)))


def _make(
    run: Callable[[Listener], BagReport], destination: bytes, done: str, as_json: bool, progress: bool | None
) -> int:
    """Run a command, write the problems and the summary, and report the result.

    :param done: ``packed`` or ``unpacked``
    """
    begin = time.monotonic()

    def interrupted() -> str:
        if is_address(destination):
            return "interrupted; no archive was created; run the same command again to continue"
        if os.path.lexists(destination):
            return f"interrupted when {quoted_path(destination)} was complete"
        return "interrupted; nothing was written; run the same command again"

    with Output(progress, as_json=as_json, go_on=True, stages=STAGES, interrupted=interrupted) as output:
        failure: Failure | None = None
        try:
            report = run(Listener(output.reporter, output.problem))
        except BagInvalidError as error:
            report, failure = error.report, Failure(str(error))
        output.summarize(report, **{done: failure is None})
        if failure is not None:
            raise failure
        size = report.counts["bytes"]
        pieces = [format_count(report.counts["files"], "file"), format_bytes(size)]
        pieces += format_rate(size, time.monotonic() - begin)
        if (archive := _archive_size(destination)) is not None:
            pieces.append(f"archive of {format_bytes(archive)}")
        if missing := sum(number for (kind, _), number in report.tally.items() if kind == "file-not-fetched"):
            pieces.append(f"{format_count(missing, 'file')} of fetch.txt not downloaded yet")
        output.tell(f"{os.fsdecode(destination)}: bag {done}: {', '.join(pieces)}")
    return 0


def _archive_size(path: bytes) -> int | None:
    """Return the size of an archive in bytes; :data:`None` for a directory."""
    if is_address(path):
        bucket, key = find_key(path)
        return bucket.head(key).size
    status = os.stat(path)
    return status.st_size if stat.S_ISREG(status.st_mode) else None


@click.command("pack", cls=Command, help=PACK_HELP, epilog=PACK_EPILOG, short_help="Pack a bag into an archive.")
@BAG
@click.option(
    "--output",
    "-o",
    "file",
    metavar="FILE",
    type=PATH_OR_ADDRESS,
    help="Write the archive to FILE, which must not exist. Default: BAG.tar.",
)
@timestamps_option("Times and permission bits in the archive:")
@bucket_options
@_run_options
def pack_command(
    bag: bytes, file: bytes | None, timestamps: str | None, as_json: bool, threads: int | None, progress: bool | None
) -> int:
    """Pack a bag into an archive."""
    refuse_missing([bag], directories=True)
    destination = os.path.normpath(bag) + b".tar" if file is None else file
    if file is None and os.path.basename(os.path.normpath(bag)) in (b".", b".."):
        destination = os.path.abspath(bag) + b".tar"

    def run(listener: Listener) -> BagReport:
        return pack_bag(bag, destination, timestamps, threads, listener)

    return _make(run, destination, "packed", as_json, progress)


@click.command(
    "unpack", cls=Command, help=UNPACK_HELP, epilog=UNPACK_EPILOG, short_help="Unpack a bag from an archive."
)
@click.argument("file", metavar="FILE", type=PATH_OR_ADDRESS)
@click.option(
    "--output",
    "-o",
    "directory",
    metavar="BAG",
    type=click.Path(path_type=bytes),
    help="Create the bag in the new directory BAG. Default: FILE without its ending.",
)
@bucket_options
@_run_options
def unpack_command(
    file: bytes, directory: bytes | None, as_json: bool, threads: int | None, progress: bool | None
) -> int:
    """Unpack a bag from an archive."""
    refuse_missing([] if is_address(file) else [file])
    if directory is None:
        ending = archive_ending(file)
        if ending is None:
            raise CallError("cannot derive the name of the bag from the name of FILE; use -o BAG")
        directory = os.path.basename(file[: -len(ending)]) if is_address(file) else file[: -len(ending)]
    destination = directory

    def run(listener: Listener) -> BagReport:
        return unpack_bag(file, destination, threads, Limits(), listener)

    return _make(run, destination, "unpacked", as_json, progress)
