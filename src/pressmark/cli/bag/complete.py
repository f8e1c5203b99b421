"""``pressmark bag complete``: what fetch.txt lists and is not there is downloaded."""

from __future__ import annotations

import contextlib
import os
import time

import click

from pressmark.bagit import complete
from pressmark.cli.bag.changes import Listener
from pressmark.cli.bag.options import BAG, JSON, bag_errors, refuse_missing
from pressmark.cli.bag.problems import Problems
from pressmark.cli.common.console import Failure, Interrupted
from pressmark.cli.common.file_progress import FileProgress, format_bytes, format_count, format_rate
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.fixity_options import PROGRESS
from pressmark.cli.common.progress import progress_mode
from pressmark.reports import Report

__all__ = ["complete_command"]

EPILOG = """\
Only what is listed in every payload manifest, has a safe path in the payload and is not there yet is asked for. A file
comes under a hidden name, may not be longer than fetch.txt says, and gets its own name only when all its checksums are
right; so however the command is ended, no wrong or half a file is in the payload, and the same call goes on. Every
redirection is judged like a URL of fetch.txt. fetch.txt stays as it is.

Without urllib3 nothing can be downloaded: pip install 'pressmark[fetch]'.

Exit status: 0 every file that fetch.txt lists is there, 1 one is not, 2 usage error (nothing was done), 130
interrupted.

\b
Examples:
  pressmark bag complete bag
  pressmark bag complete bag --threads 8 --json
  pressmark bag complete bag --allow-host repository.internal.example
"""


@click.command("complete", epilog=EPILOG, short_help="Download what fetch.txt lists.")
@BAG
@click.option("--allow-http", is_flag=True, help="Download without encryption, too (http:). Default: https: only.")
@click.option(
    "--allow-host",
    "allow_hosts",
    metavar="HOST",
    multiple=True,
    help="Ask HOST even if its address is private; repeatable.",
)
@click.option("--allow-private", is_flag=True, help="Ask hosts with private addresses, too, and those of this machine.")
@click.option("--allow-file", is_flag=True, help="Copy from file: URLs, which may be any file that you can read.")
@click.option(
    "--certificates",
    metavar="FILE",
    type=click.Path(readable=False),
    help="Trust the certificates in FILE instead of the system's.",
)
@click.option("--verify", is_flag=True, help="Read the files that are there, too, and compare their checksums.")
@click.option(
    "--maximum",
    metavar="BYTES",
    type=click.IntRange(min=0),
    help="Take no more than BYTES of a file whose length fetch.txt leaves open.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=60.0,
    show_default=True,
    help="Take a connection for broken when nothing has come for so long.",
)
@click.option(
    "--retries",
    metavar="N",
    type=click.IntRange(min=0),
    default=4,
    show_default=True,
    help="Try a request N times again when the connection fails or the server is busy.",
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
    """Download the files that the fetch.txt of BAG lists and that are not there, and check them as they come.

    Each file that could not be had is a line on standard output: "error", the kind, the path in the bag, and why, which
    --json gives for programs. The others are downloaded all the same.

    By default only https: is used, and no host with a private address is asked: fetch.txt is untrusted input.
    """
    refuse_missing([os.fsencode(certificates)] if certificates else [])
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(open_sink(None, None))
        problems = Problems(sink, as_json, go_on=True)
        reporter = stack.enter_context(
            FileProgress(progress_mode(progress, sink), None, problems.flush, transient=True)
        )
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
            raise Interrupted("interrupted; the same call goes on where it stopped") from None
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
        pieces.append(f"{format_count(counts['present'], 'file')} of fetch.txt there before")
    if counts["failed"]:
        pieces.append(f"{format_count(counts['failed'], 'file')} not to be had")
    state = "nothing is left to be fetched" if report.ok else "not complete"
    return f"{os.fsdecode(bag)}: {state}: {'; '.join(pieces) or 'fetch.txt lists no file'}"
