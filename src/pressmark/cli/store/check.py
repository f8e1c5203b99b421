"""``pressmark store check``: check a store against its specification."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from pressmark.cli.bag.problems import Problems
from pressmark.cli.common.console import Failure, Interrupted, say
from pressmark.cli.common.files import open_sink
from pressmark.cli.common.fixity_options import THREADS
from pressmark.cli.common.program import Command, discard_stdout
from pressmark.cli.common.progress import Reporter, format_count, progress_mode
from pressmark.cli.common.worker_options import job_options
from pressmark.cli.store.options import JSON, STORE, layout_of, open_store, store_options
from pressmark.reports import Progress, Report

if TYPE_CHECKING:
    from pressmark.cli.common.workers import Workers
    from pressmark.jobs import Receipt

__all__ = ["check_command", "verdict"]

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
    threads: int,
    workers: Workers | None,
) -> int:
    """List all problems of a store."""
    store = open_store(path, kind, layout, identifiers, undeclared=True)
    with open_sink(None, None) as sink:
        problems = Problems(sink, as_json)
        reporter = Reporter(progress_mode(progress, sink), "object", on_pause=problems.flush)
        try:
            with reporter:
                if workers is not None:
                    chosen = layout_of(layout)
                    report = _shared(
                        workers,
                        path,
                        {
                            "kind": store.kind,
                            "digests": digests,
                            "layout": None if chosen is None else chosen.config(),
                            "options": {
                                **({} if identifiers is None else {"identifiers": identifiers}),
                                **({"undeclared": True} if kind == "ocfl" else {}),
                            },
                            "ignore": ignore,
                        },
                        problems,
                        reporter,
                    )
                else:
                    report = store.check(
                        digests=digests,
                        threads=threads or None,
                        on_event=reporter.on_event,
                        on_problem=problems.write,
                        ignore=ignore,
                    )
            problems.summarize(report)
            problems.flush()
        except BrokenPipeError:
            discard_stdout()
            return 0 if problems.report.ok else Failure.exit_code
        except KeyboardInterrupt:
            raise Interrupted("interrupted; nothing was changed; run the same command again") from None
    say(f"{os.fsdecode(path)}: {verdict(report, unread=not digests and store.kind in ('ocfl', 'bags'))}")
    return 0 if report.ok else Failure.exit_code


def _shared(workers: Workers, path: bytes, options: dict[str, Any], problems: Problems, reporter: Reporter) -> Report:
    """Check the store on several workers, write its problems, and return the report."""
    from pressmark.stores.job import CheckStore, joined_report

    job = CheckStore(os.fsdecode(path), **options)
    done = Progress()

    def count(receipt: Receipt) -> None:
        nonlocal done
        done = done.plus(receipt.n, receipt.bytes, receipt.errors)
        reporter.on_event(done)

    return joined_report(job, workers.run(job, job.plan, [], None, count), problems.write)


def verdict(report: Report, *, unread: bool = False) -> str:
    """Return the summary of a check in one line.

    :param unread: the store records digests, or may contain damaged files, and no content was read
    """
    summary = report.summary()
    pieces = [format_count(report.counts.get("objects", 0), "object")]
    improper = report.counts.get("objects", 0) - report.counts.get("proper", report.counts.get("objects", 0))
    if improper:
        pieces.append(f"{improper:,} improper")
    pieces += [format_count(summary[f"{word}s"], word) for word in ("error", "warning") if summary[f"{word}s"]]
    if not report.problems:
        pieces.append("no problem")
    return ", ".join(pieces) + ("; content was not read" if unread else "")
