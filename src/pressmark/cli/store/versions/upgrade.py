"""``pressmark store upgrade``: give the objects of an OCFL storage root a later OCFL version or digest algorithm."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any

import click

from pressmark.cli.common.console import CallError, problem_text
from pressmark.cli.common.options import null_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.listed import Selection, selection_options
from pressmark.cli.store.options import (
    JSON,
    STORE,
    Provenance,
    StoreFormat,
    Writers,
    missing_provenance,
    ocfl_root,
    provenance_options,
    store_options,
    write_object,
    writers_options,
)
from pressmark.reports import Problem, ProgressEvent
from pressmark.stores.ocfl.declarations import VERSIONS
from pressmark.stores.ocfl.inventory import ALGORITHMS

__all__ = ["upgrade_command"]

HELP = """\
Upgrade the objects of an OCFL storage root, each by a new version.

\b
Examples:
  pressmark store upgrade root --to 1.1 --dry-run
  pressmark store upgrade root --to 1.1 --algorithm sha512 --message "To 1.1"

--to sets the OCFL version, --algorithm the digest algorithm. Without IDENTIFIER, --from or --match, all objects of
STORE are upgraded.
"""

DETAILS = """\
No content is copied: the new version of an object refers to the content that the object stores. Its earlier versions
stay as they are. The storage root declares the OCFL version first, even if only some objects are selected; objects of
an earlier OCFL version remain valid in it. With --algorithm, all content of an object is read once, and compared with
its digests: an object with damaged or lost content is not changed. An object with a mutable HEAD is not changed. With
--dry-run, content is not read.
"""

EPILOG = """\
Each upgraded object is a line on standard output: identifier, TAB, and path in STORE; with --json, as "pressmark store
ls" lists it. An object that has the OCFL version (or a later one) and the digest algorithm is not changed: after an
interrupt, run the same command again. A failed object is reported on standard error, and the command continues with the
next.

Exit status: 0 all objects upgraded, 1 some failed, 2 usage error (nothing was done), 130 interrupted.
"""


# Options that few calls need.
PAGE_OPTIONS = "--identifiers --layout --claims --single-writer --null --crlf --endpoint --s3-profile --region"


@click.command(
    "upgrade",
    cls=Command,
    page_options=PAGE_OPTIONS,
    help=HELP,
    details=DETAILS,
    epilog=EPILOG,
    short_help="Upgrade objects to another OCFL version.",
)
@STORE
@click.argument("ids", metavar="[IDENTIFIER...]", nargs=-1)
@selection_options("Upgrade")
@null_option("Items of FILE and of the output end with NUL instead of a line feed.")
@click.option("--to", type=click.Choice(VERSIONS), help="OCFL version of the storage root and the objects.")
@click.option("--algorithm", type=click.Choice(ALGORITHMS), help="Digest algorithm of the objects.")
@click.option("--dry-run", is_flag=True, help="List the objects that would be upgraded, and change nothing.")
@writers_options
@provenance_options
@JSON
@store_options
def upgrade_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    selection: Selection,
    to: str | None,
    algorithm: str | None,
    dry_run: bool,
    writers: Writers,
    provenance: Provenance,
    as_json: bool,
) -> int:
    """Upgrade objects to another OCFL version or digest algorithm."""
    if to is None and algorithm is None:
        raise CallError("missing option; specify --to or --algorithm")

    def more(kind: str) -> dict[str, Any]:
        chosen = writers.options(path, kind)
        return provenance.options(kind) | chosen if kind == "ocfl" else chosen

    opened = store_format.open(path, more=more)
    store = ocfl_root(opened, "upgrade", "omit it")
    selected = selection.arguments(lambda: store)
    done = same = failed = 0

    def interrupted() -> str:
        what = f"interrupted after {format_count(done + same, 'object')}"
        return f"{what}; run the same command again to upgrade the others"

    shown: dict[str, Any] = {"as_json": as_json, "null": selection.null, "count": selection.count()}
    with Output(progress, "object", go_on=not dry_run, interrupted=interrupted, **shown) as output:
        problems: list[Problem] = []

        def report_problems() -> None:
            """Report the objects that were not found, and where some may be."""
            nonlocal failed
            for problem in problems:
                if problem.kind == "unreadable" or "ids" in selected:
                    failed += 1
                    output.reporter.fail(problem_text(problem))
            problems.clear()

        how: dict[str, Any] = {"to": to, "algorithm": algorithm, "dry_run": dry_run, "ignore": ignore, **selected}
        with closing(store.upgrade(**how, problems=problems)) as results:
            for result in results:
                report_problems()
                if result.error is not None and result.error.kind == "interrupted":
                    continue  # the command says so once
                if result.record is None:
                    failed += 1
                    output.reporter.fail(str(result.error))
                elif result.record.exists_same:
                    same += 1
                else:
                    done += 1
                    write_object(output, result.record, "upgraded")
                output.reporter.on_event(ProgressEvent(items=done + same + failed, failed=failed))
        report_problems()
        summary = {"ok": not failed, "upgraded": done, "exists_same": same, "failed": failed}
        output.summary({"dry_run": True, **summary} if dry_run else summary)
    missing = None if dry_run else missing_provenance(store)
    if done and missing:
        output.tell(f"{os.fsdecode(path)}: {missing}")
    pieces = [f"{format_count(done, 'object')} {'would be upgraded' if dry_run else 'upgraded'}"]
    pieces += [f"{same:,} up to date"] if same else []
    pieces += [f"{failed:,} failed"] if failed else []
    output.tell(f"{os.fsdecode(path)}: {', '.join(pieces)}")
    return output.status
