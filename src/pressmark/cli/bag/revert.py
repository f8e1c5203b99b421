"""``pressmark bag revert``: a bag becomes the directory of its payload files again."""

from __future__ import annotations

import os
import time

import click

from pressmark.bagit import revert
from pressmark.bagit.problems import BagReport
from pressmark.bagit.writing.revert import LEVELS
from pressmark.cli.bag.advice import what_instead
from pressmark.cli.bag.options import BAG, STAGES, Listener, change_interrupted
from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.files import refuse_missing
from pressmark.cli.common.options import PROGRESS, READ, THREADS, json_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count, format_rate
from pressmark.errors import BagError, BagInvalidError, quoted_path
from pressmark.reports import Problem

__all__ = ["revert_command"]

HELP = """\
Turn BAG back into the directory of its payload files.

\b
Examples:
  pressmark bag revert bag -o bag.sha512
  pressmark bag revert bag --dry-run

BAG is verified, the files in BAG/data move to BAG, and the tag files are removed. They contain the only checksums of
the payload, and its metadata: with -o, the checksums are kept in a file that "pressmark verify" reads. A bag that is
not valid, or that has other tag files than those of BagIt, is refused.

Each problem is a line on standard output: "error" or "warning", the kind, the path in the bag, and a message; --json
prints JSON instead. With --dry-run, each tag file that would be removed is a line, too.
"""

EPILOG = """\
\b
More examples:
  pressmark bag revert bag --level complete
  pressmark bag revert bag --delete-tag-files -o bag.sha512

A revert is atomic, and copies nothing: after an interruption, either the bag is unchanged, or running the same command
again completes the revert. Symbolic links in the payload must not lead out of it, and a bag with files that are listed
in fetch.txt has to be completed first.

Exit status: 0 success, 1 the bag is not valid, or reading or writing failed, 2 usage error, or the bag was refused
(nothing was done), 130 interrupted.
"""


@click.command("revert", cls=Command, help=HELP, epilog=EPILOG, short_help="Turn a bag back into a directory.")
@BAG
@click.option(
    "--output",
    "-o",
    "sums",
    metavar="SUMS",
    type=click.Path(path_type=bytes),
    help='Write the checksums of the payload to the file SUMS first, as "pressmark hash BAG" does afterwards. An'
    " existing file is overwritten.",
)
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="full",
    show_default=True,
    help="full: verify all checksums first; complete: check only which files exist.",
)
@click.option(
    "--delete-tag-files",
    is_flag=True,
    help="Remove all tag files, also those that BagIt does not describe. Default: refuse them.",
)
@click.option("--dry-run", is_flag=True, help="Check everything, list the tag files, and change nothing.")
@json_option("problem or tag file")
@THREADS
@READ
@PROGRESS
def revert_command(
    bag: bytes,
    sums: bytes | None,
    level: str,
    delete_tag_files: bool,
    dry_run: bool,
    as_json: bool,
    threads: int | None,
    read: str,
    progress: bool | None,
) -> int:
    """Turn a bag back into a directory."""
    refuse_missing([bag], directories=True, advice="; for an archive, run pressmark bag unpack first")
    begin = time.monotonic()
    with Output(
        progress,
        as_json=as_json,
        go_on=not dry_run,
        stages=STAGES,
        interrupted=lambda: change_interrupted(bag, None),
    ) as output:
        report = BagReport(keep=0, level=level)

        def add(problem: Problem) -> None:
            report.add([problem])
            output.problem(problem)

        listener = Listener(output.reporter, add)
        failure: Failure | None = None
        removed: list[str] = []
        try:
            removed = revert(
                bag,
                level=level,
                sums=sums,
                delete_tag_files=delete_tag_files,
                dry_run=dry_run,
                threads=threads,
                read=read,
                progress=listener,
            )
        except BagInvalidError as error:
            failure = Failure(str(error))
        except BagError:
            if os.path.lexists(os.path.join(bag, b"bagit.txt")) or not (advice := what_instead(bag)):
                raise
            raise CallError(f"{os.fsdecode(bag)}: {advice}") from None
        if dry_run:
            for path in removed:
                output.record({"path": path}) if as_json else output.row(path, path)
        report.counts.update(files=listener.read.items, bytes=listener.read.bytes)
        more = {"dry_run": True} if dry_run else {}
        output.summarize(report, **more, reverted=listener.moved, tag_files=len(removed))
        if failure is not None:
            raise failure
        pieces = [f"{format_count(len(removed), 'tag file')} {'would be ' if dry_run else ''}removed"]
        if level == "full" and listener.read.items:
            size = listener.read.bytes
            verified = [f"{format_count(listener.read.items, 'file')} verified", format_bytes(size)]
            pieces.append(", ".join([*verified, *format_rate(size, time.monotonic() - begin)]))
        if sums is not None and listener.moved:
            pieces.append(f"checksums in {quoted_path(sums)}")
        what = "bag can be reverted" if dry_run else "bag reverted"
        output.tell(f"{os.fsdecode(bag)}: {'; '.join([what, *pieces])}")
    return 0
