"""``pressmark bag complete``: download the missing files that fetch.txt lists."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

import click

from pressmark.bagit import complete
from pressmark.bagit.fetch.download import LONGEST_TIMEOUT
from pressmark.cli.bag.options import BAG, STAGES, Listener
from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.files import refuse_missing
from pressmark.cli.common.object_storage import bucket_options
from pressmark.cli.common.options import PROGRESS, Seconds, WholeNumber, json_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count, format_rate
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
  pressmark bag complete bag --header-from tokens.txt
  pressmark bag complete bag --allow-bucket books

Each line of the file for --header-from is a host, a header and its value, such as
"repository.example Authorization: Bearer TOKEN". A host receives only the lines that name it, also after a redirect. A
name without a port stands for the default port of a URL. Other users must not be able to read the file.

A missing file is only downloaded if it has a safe path in the payload and every payload manifest lists it. A file is
written under a hidden name, must not be longer than fetch.txt states, and is renamed only after all its checksums
match. After an interruption, the payload does not contain incorrect or partial files, and running the same command
again continues. Redirects are checked like URLs in fetch.txt. fetch.txt is not changed.

Downloads require urllib3: pip install 'pressmark[fetch]'.

Exit status: 0 all files in fetch.txt are present, 1 some are missing, 2 usage error (nothing was done), 130
interrupted.
"""


def _check_number(_context: click.Context, parameter: click.Parameter, number: float) -> float:
    if math.isnan(number):  # which no comparison refuses
        raise CallError(f"{parameter.opts[0]}: not a number")
    return number


_DOWNLOAD = (
    click.option(
        "--header-from",
        metavar="FILE",
        type=click.Path(readable=False),
        help="Send the header fields in FILE to the hosts that it names.",
    ),
    click.option("--netrc", is_flag=True, help="Send the logins in ~/.netrc (or NETRC) to the hosts that it names."),
    click.option("--allow-http", is_flag=True, help="Also allow unencrypted downloads (http:). Default: https: only."),
    click.option(
        "--allow-host",
        "allow_hosts",
        metavar="HOST",
        multiple=True,
        help="Allow HOST even if its address is private; repeatable.",
    ),
    click.option("--allow-private", is_flag=True, help="Allow hosts with private addresses, including this machine."),
    click.option(
        "--allow-bucket",
        "allow_buckets",
        metavar="NAME",
        multiple=True,
        help="Allow s3: URLs of the bucket NAME, with your AWS settings; repeatable.",
    ),
    click.option(
        "--certificates",
        metavar="FILE",
        type=click.Path(readable=False),
        help="Trust the certificates in FILE instead of the system's.",
    ),
    click.option(
        "--timeout",
        metavar="SECONDS",
        type=Seconds(min=0, max=LONGEST_TIMEOUT, min_open=True),
        callback=_check_number,
        default=60.0,
        show_default=True,
        help="Seconds without data after which a connection fails.",
    ),
    click.option(
        "--retries",
        metavar="N",
        type=WholeNumber(min=0),
        default=4,
        show_default=True,
        help="Retry a request up to N times if the connection fails or the server is busy.",
    ),
    click.option(
        "--threads",
        metavar="N",
        type=WholeNumber(min=1),
        default=4,
        show_default=True,
        help="Download N files at a time.",
    ),
)


def _download_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command, which receives them as arguments of :func:`pressmark.bagit.complete`."""
    for option in reversed(_DOWNLOAD):
        function = option(function)
    return function


def _refuse_missing_files(download: Mapping[str, Any]) -> None:
    """Refuse files of the options that do not exist, before anything is done."""
    refuse_missing(os.fsencode(download[name]) for name in ("certificates", "header_from") if download[name])


@click.command("complete", cls=Command, help=HELP, epilog=EPILOG, short_help="Download the missing files of a bag.")
@BAG
@click.option("--verify", is_flag=True, help="Also read the files that are present, and verify their checksums.")
@click.option(
    "--maximum",
    metavar="BYTES",
    type=WholeNumber(min=0),
    help="Maximum size of a file whose length fetch.txt does not state.",
)
@_download_options
@bucket_options
@json_option("problem")
@PROGRESS
def complete_command(
    bag: bytes, as_json: bool, verify: bool, maximum: int | None, progress: bool | None, **download: Any
) -> int:
    """Download the missing files of a bag."""
    _refuse_missing_files(download)
    interrupted = "interrupted; run the same command again to continue"
    with Output(progress, as_json=as_json, go_on=True, stages=STAGES, interrupted=interrupted) as output:
        begin = time.monotonic()
        report = complete(
            bag,
            maximum=maximum,
            verify=verify,
            progress=Listener(output.reporter, output.problem),
            **download,
        )
        output.summarize(report)
        output.tell(_verdict(bag, report, time.monotonic() - begin), failed=not report.ok)
    return 0 if report.ok else Failure.exit_code


def _verdict(bag: bytes, report: Report, seconds: float) -> str:
    counts = report.counts
    pieces = []
    if counts["files"]:
        size = counts["bytes"]
        words = [f"{format_count(counts['files'], 'file')} downloaded", format_bytes(size), *format_rate(size, seconds)]
        pieces.append(", ".join(words))
    if counts["present"]:
        pieces.append(f"{format_count(counts['present'], 'file')} listed in fetch.txt already present")
    if counts["failed"]:
        pieces.append(f"{format_count(counts['failed'], 'file')} not downloaded")
    state = "no file is missing" if report.ok else "not complete"
    return f"{os.fsdecode(bag)}: {state}: {'; '.join(pieces) or 'fetch.txt lists no file'}"
