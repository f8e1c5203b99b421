"""``pressmark store audit``: verify the objects of a store that were verified longest ago."""

from __future__ import annotations

import os
from datetime import timedelta
from time import gmtime, strftime
from typing import TYPE_CHECKING, Literal

import click

from pressmark import stores
from pressmark.buckets.address import is_address
from pressmark.cli.common.console import CallError, Failure, say
from pressmark.cli.common.options import THREADS, ByteSize, Duration, WholeNumber, digests_option, null_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count, format_duration, format_rate
from pressmark.cli.store.check import verdict, what_to_do
from pressmark.cli.store.listed import Selection, selection_options
from pressmark.cli.store.options import JSON, STORE, StoreFormat, store_options
from pressmark.errors import quoted

if TYPE_CHECKING:
    from pressmark.stores import AuditReport

__all__ = ["audit_command"]

HELP = """\
Verify the objects of STORE that were verified longest ago.

\b
Examples:
  pressmark store audit books --state books.audit --max-bytes 2T
  pressmark store audit root --state root.audit --older-than 90d --for 6h

The file of --state records the results, so that the same command, run every night for example, continues with the
other objects. When all are verified, it begins a new round.
"""

DETAILS = """\
\b
More examples:
  pressmark store audit books --state books.audit --for 0  # only the summary
  pressmark store audit books --state books.audit --match 'ark:/13030/*'
  pressmark store audit s3://books/root --state root.audit --digests=stored

Each object is verified as by "pressmark store check --digests". A Pairtree or a Vitro store has no digests: its files
are compared with those of the last audit. If they differ, but no file has a new time of modification, this is an error
(object-differs).

An object with errors comes first again in the next run. Warnings name objects that are new (object-new), have changed
(object-changed), no longer exist (object-vanished), or have no errors any more (object-mended). The first round does
not name new objects.

A run also lists STORE when a round begins, and once a day. It reports problems outside of objects once in each round.
--for ends the listing, too; the next run lists STORE again from the beginning. --max-bytes and --max-objects do not
end it.

FILE is an SQLite database. One run uses it at a time; several machines can take turns if they have STORE at the same
path. If FILE is lost, a new one begins with all objects unverified. Keep FILE outside of STORE.

Durations have a unit: s, m, h, d, w (seconds to weeks), such as 90m or 6h. Sizes have one, too: K, M, G, T, P (powers
of 1000), or Ki, Mi, Gi, Ti, Pi (powers of 1024).
"""

EPILOG = """\
Each problem is a line on standard output, as in "pressmark store check". Nothing in STORE is changed. Objects that are
being read when the time is over are completed.

Exit status: 0 no error found (warnings allowed), 1 errors found or files unverified, 2 usage error, 130 interrupted;
what was verified until then is recorded.
"""

PAGE_OPTIONS = "--kind --identifiers --ignore --null --crlf --endpoint --s3-profile --region"


@click.command(
    "audit",
    cls=Command,
    help=HELP,
    details=DETAILS,
    page_options=PAGE_OPTIONS,
    epilog=EPILOG,
    short_help="Verify the objects that are due.",
)
@STORE
@click.argument("ids", metavar="[IDENTIFIER...]", nargs=-1)
@click.option(
    "--state",
    metavar="FILE",
    required=True,
    type=click.Path(readable=False, dir_okay=False),
    help="File with the results of earlier runs; created if it does not exist.",
)
@click.option(
    "--older-than",
    metavar="AGE",
    type=Duration(),
    help="Verify objects not verified for this time, such as 90d; m means minutes (default: not verified in this"
    " round).",
)
@click.option("--for", "seconds", metavar="TIME", type=Duration(), help="End after this time, such as 6h.")
@click.option("--max-bytes", metavar="SIZE", type=ByteSize(), help="End after reading this much content, such as 2T.")
@click.option("--max-objects", metavar="N", type=WholeNumber(min=0), help="Verify at most N objects.")
@selection_options("If they are due, verify only")
@null_option("Items of the list of --from end with NUL instead of a line feed.")
@digests_option(
    "How files are verified: read them (the default); or use the digests that the server of object storage has stored,"
    " without reading the files."
)
@JSON
@THREADS
@store_options
def audit_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    state: str,
    older_than: float | None,
    seconds: float | None,
    max_bytes: int | None,
    max_objects: int | None,
    selection: Selection,
    digests: Literal["read", "stored"] | None,
    as_json: bool,
    threads: int | None,
) -> int:
    """Verify the objects that are due."""
    if digests == "stored" and not is_address(path):
        raise CallError("--digests=stored: only for a store in object storage; omit the option")
    selected = selection.arguments(lambda: store)
    store = store_format.open(path, undeclared=True)
    interrupted = "interrupted; the results so far are recorded; run the same command again to continue"
    with Output(progress, "object", as_json=as_json, interrupted=interrupted) as output:
        report = stores.audit(
            store,
            state,
            max_seconds=seconds,
            max_bytes=max_bytes,
            max_objects=max_objects,
            older_than=None if older_than is None else timedelta(seconds=older_than),
            digests=digests or "read",
            threads=threads,
            progress=output.progress,
            ignore=ignore,
            **selected,
        )
        output.summarize(report)
    size = report.counts.get("bytes", 0)
    rate = ", ".join([format_bytes(size), format_duration(report.seconds), *format_rate(size, report.seconds)])
    noun = "selected object" if selected else "object"
    name = os.fsdecode(path)
    is_idle = not report.counts.get("objects") and not report.problems
    text = "nothing verified" if is_idle else f"{verdict(report, noun=noun)} ({rate})"
    output.tell(f"{name}: {text}", failed=not report.ok)
    if is_idle and not report.is_listed and not report.coverage.objects:
        known = f"{quoted(state)} is a new state, and knows no object; check its name, or let a run verify objects"
    else:
        known = coverage(report, since=older_than is not None)
    output.tell(f"{name}: {known}", failed=not report.ok)
    if is_idle and report.damaged:
        more = report.coverage.damaged - len(report.damaged)
        names = [*map(quoted, report.damaged), *([f"{more:,} more"] if more else [])]
        output.tell(f"{name}: with errors: {', '.join(names)}")
    if not report.ok and not as_json:
        say(f"what to do: {what_to_do(report, path)}")
    return 0 if report.ok else Failure.exit_code


def coverage(report: AuditReport, *, since: bool) -> str:
    """Return a line on how much of a store is verified.

    :param since: since a time, not in a round
    """
    found = report.coverage
    share = f" ({100 * found.verified // found.objects} %)" if found.objects else ""
    known = "" if report.is_listed else " known so far"
    text = f"{found.verified:,} of {format_count(found.objects, 'object')}{known} verified{share}"
    pieces = [f"{text} {'in this period' if since else f'in round {report.round}'}"]
    if found.never:
        pieces.append(f"{found.never:,} never")
    if found.damaged:
        pieces.append(f"{found.damaged:,} with errors")
    if found.oldest is not None:
        pieces.append(f"oldest verification {strftime('%Y-%m-%d', gmtime(found.oldest))}")
    if report.runs_left:
        when = "" if report.complete is None else f" (about {strftime('%Y-%m-%d', gmtime(report.complete))})"
        like = "this one" if report.counts.get("objects") else "the last one"
        pieces.append(f"complete after {format_count(report.runs_left, 'more run')} like {like}{when}")
    return ", ".join(pieces)
