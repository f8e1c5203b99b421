"""``pressmark bag complete``: download the missing files that fetch.txt lists."""

from __future__ import annotations

import contextlib
import os
import time

import click

from pressmark.bagit import complete
from pressmark.cli.bag.change_progress import Listener
from pressmark.cli.bag.options import BAG, JSON, bag_errors
from pressmark.cli.bag.problems import Problems
from pressmark.cli.common.console import Failure, Interrupted
from pressmark.cli.common.file_progress import FileProgress, format_bytes, format_count, format_rate
from pressmark.cli.common.files import open_sink, refuse_missing
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import PROGRESS, progress_mode
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
@click.option("--allow-http", is_flag=True, help="Also allow unencrypted downloads (http:). Default: https: only.")
@click.option(
    "--allow-host",
    "allow_hosts",
    metavar="HOST",
    multiple=True,
    help="Allow HOST even if its address is private; repeatable.",
)
@click.option("--allow-private", is_flag=True, help="Allow hosts with private addresses, including this machine.")
@click.option("--allow-file", is_flag=True, help="Allow file: URLs, which can refer to any file that you can read.")
@click.option(
    "--certificates",
    metavar="FILE",
    type=click.Path(readable=False),
    help="Trust the certificates in FILE instead of the system's.",
)
@click.option("--verify", is_flag=True, help="Also read the files that are present, and verify their checksums.")
@click.option(
    "--maximum",
    metavar="BYTES",
    type=click.IntRange(min=0),
    help="Maximum size of a file whose length fetch.txt does not state.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Seconds without data after which a connection fails.",
)
@click.option(
    "--retries",
    metavar="N",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    help="Retry a request up to N times if the connection fails or the server is busy.",
)
@click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Download N files at a time.",
)
@JSON
@PROGRESS
def complete_command(
    bag: bytes,
    as_json: bool,
    allow_hosts: tuple[str, ...],
    allow_private: bool,
    allow_file: bool,
    allow_http: bool,
    certificates: str | None,
    verify: bool,
    maximum: int | None,
    timeout: float,
    retries: int,
    threads: int,
    progress: bool | None,
) -> int:
    """Download the missing files of a bag."""
    refuse_missing([os.fsencode(certificates)] if certificates else [])
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(open_sink(None, None))
        problems = Problems(sink, as_json, go_on=True)
        reporter = stack.enter_context(FileProgress(progress_mode(progress, sink), None, problems.flush))
        begin = time.monotonic()
        try:
            with bag_errors():
                report = complete(
                    bag,
                    threads=threads,
                    allow_http=allow_http,
                    allow_file=allow_file,
                    allow_private=allow_private,
                    allow_hosts=allow_hosts,
                    maximum=maximum,
                    retries=retries,
                    timeout=timeout,
                    certificates=certificates,
                    verify=verify,
                    on_event=Listener(reporter),
                    on_problem=problems.write,
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
