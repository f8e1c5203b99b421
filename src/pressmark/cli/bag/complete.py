"""``pressmark bag complete``: download the missing files that fetch.txt lists."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

import click

from pressmark.bagit import complete
from pressmark.cli.bag.change_progress import STAGES, Listener
from pressmark.cli.bag.download_options import download_options, refuse_missing_certificates
from pressmark.cli.bag.options import BAG, JSON
from pressmark.cli.bag.problems import Problems
from pressmark.cli.common.console import Failure, Interrupted
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import PROGRESS, Reporter, format_bytes, format_count, format_rate, progress_mode
from pressmark.reports import Report

__all__ = ["complete_command"]

HELP = """\
Download the missing files that the fetch.txt of BAG lists, and verify them.

\b
Examples:
  pressmark bag complete bag
  pressmark bag complete bag --threads 8 --json

Each file that could not be downloaded is a line on standard output: "error", the kind, the path in the bag, and the
reason; --json prints JSON instead. The other files are still downloaded.

By default, only https: URLs of hosts with public addresses are used, because fetch.txt is untrusted input.
"""

EPILOG = """\
\b
More examples:
  pressmark bag complete bag --allow-host repository.internal.example

A missing file is only downloaded if it has a safe path in the payload and every payload manifest lists it. A file is
written under a hidden name, must not be longer than fetch.txt states, and is renamed only after all its checksums
match. After an interruption, the payload does not contain incorrect or partial files, and running the same command
again continues. Redirects are checked like URLs in fetch.txt. fetch.txt is not changed.

Downloads require urllib3: pip install 'pressmark[fetch]'.

Exit status: 0 all files in fetch.txt are present, 1 some are missing, 2 usage error (nothing was done), 130
interrupted.
"""


@click.command("complete", cls=Command, help=HELP, epilog=EPILOG, short_help="Download the missing files of a bag.")
@BAG
@click.option("--verify", is_flag=True, help="Also read the files that are present, and verify their checksums.")
@click.option(
    "--maximum",
    metavar="BYTES",
    type=click.IntRange(min=0),
    help="Maximum size of a file whose length fetch.txt does not state.",
)
@download_options
@JSON
@PROGRESS
def complete_command(
    bag: bytes, as_json: bool, verify: bool, maximum: int | None, progress: bool | None, **download: Any
) -> int:
    """Download the missing files of a bag."""
    refuse_missing_certificates(download)
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(open_sink(None, None))
        problems = Problems(sink, as_json, go_on=True)
        reporter = stack.enter_context(Reporter(progress_mode(progress, sink), stages=STAGES, on_pause=problems.flush))
        begin = time.monotonic()
        try:
            report = complete(
                bag,
                maximum=maximum,
                verify=verify,
                on_event=Listener(reporter),
                on_problem=problems.write,
                **download,
            )
        except KeyboardInterrupt:
            raise Interrupted("interrupted; run the same command again to continue") from None
        problems.summarize(report)
        problems.flush()
        reporter.report(_verdict(bag, report, time.monotonic() - begin))
    return 0 if report.ok else Failure.exit_code


def _verdict(bag: bytes, report: Report, seconds: float) -> str:
    counts = report.counts
    pieces = []
    if counts["files"]:
        size = counts["bytes"]
        told = [f"{format_count(counts['files'], 'file')} downloaded", format_bytes(size), *format_rate(size, seconds)]
        pieces.append(", ".join(told))
    if counts["present"]:
        pieces.append(f"{format_count(counts['present'], 'file')} listed in fetch.txt already present")
    if counts["failed"]:
        pieces.append(f"{format_count(counts['failed'], 'file')} not downloaded")
    state = "no file is missing" if report.ok else "not complete"
    return f"{os.fsdecode(bag)}: {state}: {'; '.join(pieces) or 'fetch.txt lists no file'}"
