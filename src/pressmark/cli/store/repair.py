"""``pressmark store repair``: repair a store without losing data."""

from __future__ import annotations

import os
from functools import partial

import click

from pressmark.buckets.address import is_address
from pressmark.cli.common.console import CallError, Failure, one_line
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.check import verdict
from pressmark.cli.store.options import JSON, STORE, StoreFormat, Writers, store_options, writers_options
from pressmark.progress_event import EventListener
from pressmark.reports import Report
from pressmark.stores import RepairStep, mend

__all__ = ["repair_command"]

HELP = """\
Repair unambiguous problems in STORE, and list the problems that remain.

\b
Examples:
  pressmark store repair books --dry-run
  pressmark store repair root --from backup
"""

EPILOG = """\
Each change is a line on standard output: the action, the path in STORE, and names where applicable; with --json
{"action": ..., "path": ..., "names": [...]}. The remaining problems follow, as listed by
"pressmark store check".

\b
  encapsulate   Pairtree: move all files of an object into one directory, obj
  finish        complete an interrupted change
  mend          OCFL and bags: replace a damaged or lost file (--from)
  move          Vitro: move an object hidden by a namespace to its path
  prune         remove empty directories
  remove        remove temporary files of interrupted runs
  rename        Vitro: rename a file as Vitro encodes its name
  write         OCFL: restore a layout file, declaration, sidecar or inventory

A repair reads only the structure of the store: "pressmark store check --digests" finds damaged files of OCFL objects
and bags. A repair does not change identifiers or file contents. Running it again changes nothing; you can run an
interrupted repair again.

With --from, all files of the objects are read and compared with the digests in inventories and manifests. GOOD is a
store of any kind, of which only the object with the same identifier is read; or another directory, such as a bag, with
all files in it. A file of GOOD takes the place of a damaged one only if it has its digest, whatever its name. With
identifiers, only these objects are read, and the structure of the store is not repaired.

Exit status: 0 no errors remain, 1 errors remain, 2 usage error, 130 interrupted.
"""


@click.command("repair", cls=Command, help=HELP, epilog=EPILOG, short_help="Repair unambiguous problems of a store.")
@STORE
@click.argument("given", metavar="[IDENTIFIER...]", nargs=-1)
@click.option(
    "--from",
    "good",
    metavar="GOOD",
    type=click.Path(readable=False),
    help="Replace damaged and lost files by those of GOOD, a good copy: a store, a bag or a directory.",
)
@click.option(
    "--alone",
    is_flag=True,
    help="No other program writes to STORE: in object storage, also remove what interrupted runs left within a day.",
)
@click.option("--dry-run", is_flag=True, help="Show the changes without making them.")
@writers_options
@JSON
@store_options
def repair_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    given: tuple[str, ...],
    good: str | None,
    alone: bool,
    dry_run: bool,
    writers: Writers,
    as_json: bool,
) -> int:
    """Repair the problems that can be repaired."""
    if good is not None and is_address(path):
        what = "replacing damaged files is not supported in object storage"
        raise CallError(f"--from: {what}; write the files of a good copy to their keys with another program")
    done = 0
    more = partial(writers.options, path)
    mended: set[str] = set()
    store = store_format.open(path, undeclared=good is None, more=more)
    if alone and store.kind != "ocfl":
        raise CallError("--alone: only for OCFL storage roots; omit the option")
    interrupted = "interrupted; run the same command to continue"
    with Output(progress, "object", as_json=as_json, go_on=True, interrupted=interrupted) as output:

        def report_step(event: object) -> None:
            nonlocal done
            if not isinstance(event, RepairStep):
                return  # the remaining problems are in the report
            done += 1
            mended.update([event.path] if event.action == "mend" else [])
            if as_json:
                output.record(event._asdict())
            else:
                names = [", ".join(event.names)] if event.names else []
                output.line(one_line(": ".join([event.action, event.path, *names])).encode())

        report = Report()
        if good is not None:
            report = mend(store, good, given, dry_run=dry_run, progress=EventListener(report_step), ignore=ignore)
        if not given:
            only = {"alone": True} if alone else {}
            structure = store.repair(dry_run=dry_run, progress=EventListener(report_step), ignore=ignore, **only)
            # On a dry run, files that would be mended are still damaged.
            structure.problems = [one for one in structure.problems if one.path not in mended]
            structure.add(report.problems)
            report = structure
        for problem in report.problems:
            output.problem(problem)
        output.summarize(report, dry_run=dry_run, content_read=good is not None)
    what = "would be made" if dry_run else "made"
    scope = "structure" if good is None else "structure and content" if not given else "content"
    text = f"{format_count(done, 'change')} {what}; {scope}: {verdict(report, unread=good is None)}"
    output.tell(f"{os.fsdecode(path)}: {text}", failed=not report.ok)
    return 0 if report.ok else Failure.exit_code
