"""``pressmark bag hollow``: remove the payload files that a server has, and list them in fetch.txt."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Any

import click

from pressmark.bagit import hollow
from pressmark.cli.bag.change_progress import Listener, interruption_message
from pressmark.cli.bag.download_options import download_options, refuse_missing_certificates
from pressmark.cli.bag.options import BAG, JSON, bag_errors, fetch_base_option, parse_fetch_base
from pressmark.cli.bag.problems import Problems
from pressmark.cli.common.console import Failure, Interrupted
from pressmark.cli.common.file_progress import FileProgress, format_bytes, format_count, format_rate
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import PROGRESS, progress_mode
from pressmark.reports import Report

__all__ = ["hollow_command"]

HELP = """\
Remove the payload files of BAG that a server has, and list them in fetch.txt.

\b
Examples:
  pressmark bag hollow bag --fetch-base https://example.org/bags/1/data/
  pressmark bag complete bag

All files are read from the server, and compared with every payload manifest. Only if all of them match, and the rest of
the bag is valid, they are removed; otherwise each problem is a line on standard output, and the bag is unchanged. The
payload files of BAG are not read. "pressmark bag complete" downloads them again.
"""

EPILOG = """\
\b
More examples:
  pressmark bag hollow bag --fetch-base https://files.internal/1/ --allow-host files.internal
  pressmark bag hollow bag --fetch-base https://example.org/bags/1/data/ --trust-head

The URL of a file is URL, with a slash at its end, and the path of the file below data/. All bytes of the path except
slashes and A-Z a-z 0-9 - . _ ~ are percent-encoded (RFC 3986): "data/50% of a.tif" becomes URL/50%25%20of%20a.tif.

--trust-head: the server could have damaged, other or no content, and you would not know.

The change is atomic: after an interruption, either the bag is unchanged, or it is hollow, or running the same command
again finishes the change. Entries of an existing fetch.txt are kept if their files are missing. If the server uses the
files of BAG itself, this is noticed, and nothing is changed.

Downloads require urllib3: pip install 'pressmark[fetch]'.

Exit status: 0 the files were removed, or none was present, 1 the bag is unchanged because of the problems listed, 2
usage error (nothing was done), 130 interrupted.
"""


@click.command("hollow", cls=Command, help=HELP, epilog=EPILOG, short_help="Remove payload files that a server has.")
@BAG
@fetch_base_option("URL of the directory on the server that corresponds to data/.", required=True)
@click.option(
    "--trust-head",
    is_flag=True,
    help="Do not read the files from the server: only compare their lengths with a HEAD request.",
)
@download_options
@JSON
@PROGRESS
def hollow_command(
    bag: bytes, fetch_base: str, trust_head: bool, as_json: bool, progress: bool | None, **download: Any
) -> int:
    """Remove the payload files of a bag that a server has."""
    refuse_missing_certificates(download)
    url = parse_fetch_base(fetch_base)
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(open_sink(None, None))
        problems = Problems(sink, as_json, go_on=True)
        reporter = stack.enter_context(FileProgress(progress_mode(progress, sink), None, problems.flush))
        listener = Listener(reporter)
        begin = time.monotonic()
        try:
            with bag_errors():
                report = hollow(
                    bag, url, trust_head=trust_head, on_event=listener, on_problem=problems.write, **download
                )
        except KeyboardInterrupt:
            raise Interrupted(interruption_message(bag, None)) from None
        problems.summarize(report, content_verified=not trust_head)
        problems.flush()
        reporter.report(_verdict(bag, report, trust_head, listener.moved, time.monotonic() - begin))
    return 0 if report.ok else Failure.exit_code


def _verdict(bag: bytes, report: Report, trust_head: bool, moved: bool, seconds: float) -> str:
    """Return the result as one line.

    :param moved: whether the bag was changed, now or by an interrupted run
    """
    name, counts = os.fsdecode(bag), report.counts
    if failed := counts["failed"]:
        return (
            f"{name}: nothing was changed: {format_count(failed, 'file')} not found on the server as in the manifests"
        )
    if not report.ok:
        return f"{name}: nothing was changed: {format_count(len(report.errors), 'error')} in the bag"
    if not counts["files"]:
        return f"{name}: hollow: an interrupted run was finished" if moved else f"{name}: no payload file to remove"
    pieces = [f"{format_count(counts['files'], 'file')} removed", format_bytes(counts["bytes"])]
    if trust_head:
        verified = "only their lengths were compared: the content on the server was NOT verified"
    else:
        pieces += format_rate(counts["bytes"], seconds)
        verified = "content on the server verified"
    return f"{name}: hollow: {', '.join(pieces)}; {verified}"
