"""``pressmark store check``: check a store against its specification."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from pressmark.buckets.address import is_address
from pressmark.cli.common.console import Failure, remedy_text, say
from pressmark.cli.common.options import THREADS, job_options
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.options import JSON, STORE, layout_of, open_store, store_options
from pressmark.reports import Report

if TYPE_CHECKING:
    from pressmark.cli.common.workers import Workers

__all__ = ["check_command", "verdict"]

# Damaged or lost files, of OCFL objects and of bags.
_DAMAGED = frozenset({"content-mismatch", "content-missing", "checksum-mismatch", "file-missing"})

HELP = """\
Check everything in STORE, and list each violation of its specification.

\b
Examples:
  pressmark store check books
  pressmark store check root --digests --json

Every file is accounted for: it belongs to an object, or it is listed.
"""

EPILOG = """\
\b
More examples:
  pressmark store check root --kind ocfl        # also a root without its declaration

Each problem is a line on standard output: severity ("error" or "warning"), kind, path in STORE, and message. The
documentation explains the kinds of problems (store-problems, and bagit-problems for bags). Nothing in STORE is changed.

Exit status: 0 no error found (warnings allowed), 1 errors found, 2 usage error, 130 interrupted.
"""


@click.command("check", cls=Command, help=HELP, epilog=EPILOG, short_help="List all problems of a store.")
@STORE
@click.option(
    "--digests",
    is_flag=True,
    help="Also read all files and compare them with the digests in the store (OCFL and bags; serialized bags"
    " are not unpacked).",
)
@JSON
@THREADS
@store_options
@job_options
def check_command(
    path: bytes,
    kind: str | None,
    layout: str | None,
    identifiers: str | None,
    ignore: tuple[str, ...],
    progress: bool | None,
    digests: bool,
    as_json: bool,
    threads: int | None,
    workers: Workers | None,
) -> int:
    """List all problems of a store."""
    store = open_store(path, kind, layout, identifiers, undeclared=True)
    interrupted = "interrupted; nothing was changed; run the same command again"
    with Output(progress, "object", as_json=as_json, interrupted=interrupted) as output:
        if workers is not None:
            from pressmark.stores.job import CheckStore, joined_report  # few commands have workers

            chosen = layout_of(layout)
            job = CheckStore(
                os.fsdecode(path),
                kind=store.kind,
                digests=digests,
                layout=None if chosen is None else chosen.config(),
                options={
                    **({} if identifiers is None else {"identifiers": identifiers}),
                    **({"undeclared": True} if kind == "ocfl" else {}),
                },
                ignore=ignore,
            )
            report = joined_report(job, workers.run(job, job.plan, [], None, output.reporter), output.problem)
        else:
            report = store.check(
                digests=digests,
                threads=threads,
                progress=output.progress,
                ignore=ignore,
            )
        output.summarize(report)
    text = verdict(report, unread=not digests and store.kind in ("ocfl", "bags"))
    output.tell(f"{os.fsdecode(path)}: {text}", failed=not report.ok)
    if not report.ok and not as_json:
        say(f"what to do: {_what_to_do(report, path)}")
    return 0 if report.ok else Failure.exit_code


def _what_to_do(report: Report, path: bytes) -> str:
    """Return one line about the most frequent kind of error: the command that repairs it, or what else to do."""
    import shlex  # most stores have no errors

    from pressmark.bagit.problems import REMEDIES as OF_BAGS
    from pressmark.stores.problems import REMEDIES, REPAIRED

    errors = Counter(problem.kind for problem in report.errors)
    repair = f"pressmark store repair {shlex.quote(os.fsdecode(path))}"
    if damaged := errors.keys() & _DAMAGED:
        what = f"{', '.join(sorted(damaged))}: replace the files by those of a good copy"
        # A repair does not write content in object storage.
        return f"{what} with another program" if is_address(path) else f"{what}: {repair} --from GOOD"
    if repaired := [kind for kind, _ in errors.most_common() if kind in REPAIRED]:
        return f"{repaired[0]}: see what a repair would change: {repair} --dry-run"
    [(kind, _)] = errors.most_common(1)
    return remedy_text(kind, errors, {**OF_BAGS, **REMEDIES}.get(kind, "see the message"), "store-problems")


def verdict(report: Report, *, unread: bool = False) -> str:
    """Return the summary of a check in one line.

    :param unread: the store records digests, or may contain damaged files, and no content was read
    """
    summary: dict[str, Any] = report.summary()
    pieces = [format_count(report.counts.get("objects", 0), "object")]
    improper = report.counts.get("objects", 0) - report.counts.get("proper", report.counts.get("objects", 0))
    if improper:
        pieces.append(f"{improper:,} improper")
    pieces += [format_count(summary[f"{word}s"], word) for word in ("error", "warning") if summary[f"{word}s"]]
    if not report.problems:
        pieces.append("no problem")
    return ", ".join(pieces) + ("; content was not read" if unread else "")
