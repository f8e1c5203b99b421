"""``pressmark store report``: the numbers of a store on one page."""

from __future__ import annotations

import os

import click

from pressmark import stores
from pressmark.cli.common.console import CallError, Failure
from pressmark.cli.common.options import THREADS
from pressmark.cli.common.output import Output
from pressmark.cli.common.program import Command
from pressmark.cli.common.progress import format_bytes, format_count
from pressmark.cli.store.options import JSON, STORE, StoreFormat, store_options
from pressmark.errors import ReportError

__all__ = ["report_command"]

HELP = """\
Write a page on STORE: its size, growth, formats, problems and fixity.

\b
Examples:
  pressmark store report books -o books.html
  pressmark store report root --state root.audit -o root.html

The page has the numbers of objects, files and bytes, the growth by month, the formats by ending, the sizes, the
versions of OCFL objects, and the problems by kind with what to do. With --state, it also says when objects were
verified.
"""

EPILOG = """\
\b
More examples:
  pressmark store report s3://books/root --json

The command reads STORE once, and checks each object as "pressmark store check" does. It reads no content; damaged files
are those that "pressmark store audit" has recorded in FILE. STORE and FILE are not changed. The page needs no network.
-o requires jinja2: pip install 'pressmark[report]'.

Months are those of the dates of OCFL versions and of the Bagging-Date of bags; where there are none, those of the
modification times of files. Files are the content, without inventories and tag files.

Exit status: 0 report written, whatever it says of STORE, 1 STORE cannot be read or the page cannot be written, 2 usage
error, 130 interrupted.
"""

PAGE_OPTIONS = "--identifiers --endpoint --s3-profile --region"


@click.command(
    "report",
    cls=Command,
    help=HELP,
    page_options=PAGE_OPTIONS,
    epilog=EPILOG,
    short_help="Write a page on the content and the state of a store.",
)
@STORE
@click.option(
    "--output",
    "-o",
    "page",
    metavar="FILE.html",
    type=click.Path(readable=False, dir_okay=False),
    help="Write the page to FILE.html; required without --json.",
)
@click.option(
    "--state",
    metavar="FILE",
    type=click.Path(readable=False, dir_okay=False),
    help='State of "pressmark store audit" (default: the page does not say when objects were verified).',
)
@JSON
@THREADS
@store_options
def report_command(
    path: bytes,
    store_format: StoreFormat,
    ignore: tuple[str, ...],
    progress: bool | None,
    page: str | None,
    state: str | None,
    as_json: bool,
    threads: int | None,
) -> int:
    """Write a page on a store."""
    from pressmark.stores.reporting.store_page import check_store_page  # help needs no page

    if page is None and not as_json:
        raise CallError("no output; specify -o FILE.html or --json")
    store = store_format.open(path, undeclared=True)
    if page is not None:
        try:
            check_store_page(page, store.root, state)
        except ReportError as error:
            raise CallError(str(error)) from None
    interrupted = "interrupted; no report was written; run the same command again"
    with Output(progress, "object", as_json=as_json, interrupted=interrupted) as output:
        report = stores.report(store, state, threads=threads, progress=output.progress, ignore=ignore)
        if page is not None:
            try:
                report.write(page)
            except ReportError as error:
                raise Failure(str(error)) from None
        output.summary(report.record())
    found = report.statistics
    pieces = [format_count(found.objects, "object"), format_count(found.files, "file"), format_bytes(found.bytes)]
    for number, noun in ((report.errors, "error"), (report.warnings, "warning")):
        pieces += [format_count(number, noun)] if number else []
    if report.audited is not None and report.audited.damaged:
        pieces.append(f"{report.audited.damaged:,} with errors when verified last")
    written = "" if page is None else f"; {page}: report written"
    output.tell(f"{os.fsdecode(path)}: {', '.join(pieces)}{written}")
    return 0
