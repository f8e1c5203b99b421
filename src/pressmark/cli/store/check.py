"""``pressmark store check``: check a store against its specification."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal

import click

from pressmark import stores
from pressmark.buckets.address import is_address
from pressmark.cli.common.console import CallError, Failure, remedy_text, say
from pressmark.cli.common.options import THREADS, digests_option, job_options, null_option
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_count
from pressmark.cli.store.listed import Selection, selection_options
from pressmark.cli.store.options import JSON, STORE, StoreFormat, store_options
from pressmark.reports import Report
from pressmark.stores.registry import is_object

if TYPE_CHECKING:
    from pressmark.cli.common.workers import Workers

__all__ = ["check_command", "verdict", "what_to_do"]

# Damaged or lost files, of OCFL objects and of bags.
_DAMAGED = frozenset({"content-mismatch", "content-missing", "checksum-mismatch", "file-missing"})

HELP = """\
Check STORE, selected objects, or one OCFL object, and list all problems.

\b
Examples:
  pressmark store check books
  pressmark store check root ark:/13030/xt12t3 --digests

Every file is accounted for: it belongs to an object, or it is listed. With IDENTIFIER, --from or --match, only these
objects are checked. STORE can also be the directory of an OCFL object.
"""

DETAILS = """\
\b
More examples:
  pressmark store check books --from identifiers.txt --json
  pressmark store check books --match 'ark:/13030/*'
  pressmark store check object --digests  # the directory of an OCFL object
  pressmark store check root --kind ocfl  # also without its declaration
  pressmark store check s3://books/root --digests=stored
  pressmark store check s3://books/root --digests-from report.csv

A layout finds each object of IDENTIFIER and --from without a walk. IDENTIFIER can also be the path of an object in
STORE. An object that is not found is an error (object-missing). --match walks all directories; where a path shows the
identifier, only matching objects are opened. An object whose identifier cannot be read is checked, too. In GLOB, *
stands for any characters, ? for one, [abc] for one of these, and [!abc] for any other; letters are case-sensitive.

In object storage, the last line and the summary of --json count the files by how they were verified: read, stored,
report, or unverified. A file without a usable digest is an error (content-unverified). An archived file that must be
read is a warning (content-archived), but it is unverified, too.
"""

EPILOG = """\
Each problem is a line on standard output: severity ("error" or "warning"), kind, path in STORE, and message, which
names the object of an OCFL storage root if its path does not show the identifier. The documentation explains the kinds
of problems (store-problems, and bagit-problems for bags). Nothing in STORE is changed.

Exit status: 0 no error found, and with --digests no file unverified (warnings allowed), 1 errors found or files
unverified, 2 usage error, 130 interrupted.
"""


# Options that few checks need.
PAGE_OPTIONS = """
--identifiers --null --crlf --digests-from --endpoint --s3-profile --region --dask --work --resume
"""


@click.command(
    "check",
    cls=Command,
    help=HELP,
    details=DETAILS,
    page_options=PAGE_OPTIONS,
    epilog=EPILOG,
    short_help="List all problems of a store.",
)
@STORE
@click.argument("ids", metavar="[IDENTIFIER...]", nargs=-1)
@selection_options("Check")
@null_option("Items of FILE end with NUL instead of a line feed.")
@digests_option(
    "Also compare all files with the digests in the store (OCFL and bags; serialized bags are not unpacked): read"
    " them; or use the digests that the server of object storage has stored, without reading the files."
    " --digests alone is --digests=read."
)
@click.option(
    "--digests-from",
    metavar="FILE",
    type=click.Path(readable=False),
    help="In object storage: verify the files that FILE lists by the digests in it. FILE is a completion report of S3"
    " Batch Operations (Compute checksum), or a CSV table with the columns Key and sha512 (or sha256, sha1, md5).",
)
@JSON
@THREADS
@store_options
@job_options
def check_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    selection: Selection,
    digests: Literal["read", "stored"] | None,
    digests_from: str | None,
    as_json: bool,
    threads: int | None,
    workers: Workers | None,
) -> int:
    """List all problems of a store."""
    for option, value in (("--digests=stored", digests == "stored"), ("--digests-from", digests_from is not None)):
        if value and not is_address(path):
            raise CallError(f"{option}: only for a store in object storage; use --digests")
    selected = selection.arguments(lambda: store)
    interrupted = "interrupted; nothing was changed; run the same command again"
    shown: dict[str, Any] = {"as_json": as_json, "interrupted": interrupted, "count": selection.count()}
    if store_format.kind is store_format.layout is None and is_object(path):
        if selected or workers is not None:
            surplus = "IDENTIFIER, --from and --match" if selected else "--workers and --dask"
            raise CallError(f"{os.fsdecode(path)}: a single OCFL object, not a store; omit {surplus}")
        with Output(progress, "object", **shown) as output:
            report = stores.check_object(
                path, digests=digests or False, threads=threads, progress=output.progress, ignore=ignore
            )
            output.summarize(report)
        output.tell(f"{os.fsdecode(path)}: {verdict(report, unread=not digests)}", failed=not report.ok)
        return 0 if report.ok else Failure.exit_code
    store = store_format.open(path, undeclared=True)
    with Output(progress, "object", **shown) as output:
        if workers is not None:
            from pressmark.stores.job import CheckStore, joined_report  # few commands have workers

            opened = store_format.job_arguments(path, undeclared=True)
            job = CheckStore(**opened, digests=bool(digests), ignore=ignore)
            report = joined_report(job, workers.run(job, job.plan, [], None, output.reporter), output.problem)
        else:
            # Only a store in object storage has digests from elsewhere.
            more: dict[str, Any] = {} if digests_from is None else {"digests_from": digests_from}
            report = store.check(
                digests=digests or False,
                threads=threads,
                progress=output.progress,
                ignore=ignore,
                **selected,
                **more,
            )
        output.summarize(report, **({"selected": True} if selected else {}))
    unread = not (digests or digests_from) and store.kind in ("ocfl", "bags")
    text = verdict(report, unread=unread, noun="selected object" if selected else "object")
    output.tell(f"{os.fsdecode(path)}: {text}", failed=not report.ok)
    if not report.ok and not as_json:
        say(f"what to do: {what_to_do(report, path)}")
    return 0 if report.ok else Failure.exit_code


def what_to_do(report: Report, path: bytes) -> str:
    """Return one line about the most frequent kind of error: the command that repairs it, or what else to do."""
    import shlex  # most stores have no errors

    from pressmark.bagit.problems import REMEDIES as OF_BAGS
    from pressmark.stores.problems import REMEDIES, REPAIRED

    # Without an error, some files are archived, and were not verified.
    errors = Counter(problem.kind for problem in report.errors) or Counter(["content-archived"])
    repair = f"pressmark store repair {shlex.quote(os.fsdecode(path))}"
    if damaged := errors.keys() & _DAMAGED:
        what = f"{', '.join(sorted(damaged))}: replace the files by those of a good copy"
        # A repair does not write content in object storage.
        return f"{what} with another program" if is_address(path) else f"{what}: {repair} --from GOOD"
    if repaired := [kind for kind, _ in errors.most_common() if kind in REPAIRED]:
        return f"{repaired[0]}: see what a repair would change: {repair} --dry-run"
    [(kind, _)] = errors.most_common(1)
    return remedy_text(kind, errors, {**OF_BAGS, **REMEDIES}.get(kind, "see the message"), "store-problems")


def verdict(report: Report, *, unread: bool = False, noun: str = "object") -> str:
    """Return the summary of a check in one line.

    :param unread: the store records digests, or may contain damaged files, and no content was read
    :param noun: what was checked
    """
    from pressmark.stores.problems import METHODS

    summary: dict[str, Any] = report.summary()
    pieces = [format_count(report.counts.get("objects", 0), noun)]
    improper = report.counts.get("objects", 0) - report.counts.get("proper", report.counts.get("objects", 0))
    if improper:
        pieces.append(f"{improper:,} improper")
    pieces += [format_count(summary[f"{word}s"], word) for word in ("error", "warning") if summary[f"{word}s"]]
    if not report.problems:
        pieces.append("no problem")
    verified = [f"{summary[method]:,} {method}" for method in METHODS if summary.get(method)]
    text = ", ".join(pieces) + ("; content was not read" if unread else "")
    return f"{text}; files: {', '.join(verified)}" if verified else text
