"""Writing the report of a migration, in the format of the file's name."""

from __future__ import annotations

import os

from pressmark.html import check_writable, write_page
from pressmark.migrate.execution.run_result import Run
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.reporting.formats import Format, format_of, write_rows
from pressmark.migrate.reporting.outcome import Summary, count_rows, outcome_of, summarize

__all__ = ["check_report", "report"]


def report(plan_or_work: Run | Plan | str | os.PathLike[str], path: str | os.PathLike[str]) -> Summary:
    """Write the report of a finished or unfinished run: an HTML page, or the rows as a table.

    >>> from pressmark import migrate
    >>> migrate.report("/data/ocfl.migration", "report.html")     # doctest: +SKIP
    >>> migrate.report("/data/ocfl.migration", "rows.parquet")    # doctest: +SKIP

    :param plan_or_work: the run, its plan or its work folder; for a verification the result of
        :func:`pressmark.migrate.verify`
    :param path: ``.html`` for the page; ``.jsonl``, ``.csv`` or ``.parquet`` for the rows, the first two also ``.gz``.
        The file is replaced atomically.
    :return: the totals of the report
    :raises ReportError: the file cannot be written, or needs a package that is not installed
    :raises MigrationError: there is no plan
    :raises JobError: the work folder of the run is damaged
    """
    target = os.fspath(path)
    chosen = format_of(target)
    chosen.check(target)
    outcome = outcome_of(plan_or_work)
    if chosen is Format.HTML:
        from pressmark.migrate.reporting.page import page_text

        summary = summarize(outcome.lines())
        summary.seconds = outcome.seconds
        write_page(target, page_text(outcome, summary))
    else:
        summary = Summary(seconds=outcome.seconds)
        write_rows(target, chosen, count_rows(summary, outcome.lines()))
    return summary


def check_report(path: str | os.PathLike[str]) -> None:
    """Check that a report can be written.

    :raises ReportError: the format is unknown, a package is not installed, or the directory does not exist
    """
    target = os.fspath(path)
    format_of(target).check(target)
    check_writable(target)
