"""The report of a migration: all rows as a file for programs or a table, and one page for people.

>>> from pressmark import migrate
>>> migrate.report("/data/ocfl.migration", "report.html")     # doctest: +SKIP
>>> migrate.report("/data/ocfl.migration", "rows.parquet")    # doctest: +SKIP
"""

from __future__ import annotations

import os

from pressmark.errors import ReportError
from pressmark.html import check_writable, write_page
from pressmark.migrate.execution.run_result import Run
from pressmark.migrate.planning.plan import Plan
from pressmark.migrate.reporting.formats import FORMATS, Format, format_of, write_rows
from pressmark.migrate.reporting.outcome import Outcome, outcome_of
from pressmark.migrate.reporting.remedies import WAYS_OUT
from pressmark.migrate.reporting.summary import FIRST, Group, Summary, counted, summarize

__all__ = [
    "FIRST",
    "FORMATS",
    "WAYS_OUT",
    "Format",
    "Group",
    "Outcome",
    "ReportError",
    "Summary",
    "check_report",
    "format_of",
    "outcome_of",
    "summarize",
    "write_report",
]


def write_report(what: Run | Plan | str | os.PathLike[str], path: str | os.PathLike[str]) -> Summary:
    """Write the report of a run, finished or not, and return what it says in short.

    :param what: the run, or its plan or work folder; of a verification the run that it gave
    :param path: ``.html`` for the page; ``.jsonl``, ``.csv`` or ``.parquet`` for the rows, the first two also ``.gz``.
        The file is there as a whole or as it was before.
    :raises ReportError: the file cannot be written, or needs a package that is not installed
    :raises MigrationError: there is no such run
    """
    target = os.fspath(path)
    chosen = format_of(target)
    chosen.check(target)
    outcome = outcome_of(what)
    if chosen is Format.HTML:
        from pressmark.migrate.reporting.page import page_text

        summary = summarize(outcome.lines())
        write_page(target, page_text(outcome, summary))
    else:
        summary = Summary()
        write_rows(target, chosen, counted(summary, outcome.lines()))
    return summary


def check_report(path: str | os.PathLike[str]) -> None:
    """Make sure that a report can be written, before a run of days is over.

    :raises ReportError: its name ends in nothing that is known, a package is missing, or its directory is
    """
    target = os.fspath(path)
    format_of(target).check(target)
    check_writable(target)
