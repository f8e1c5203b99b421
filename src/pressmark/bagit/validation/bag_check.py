"""Check the files of a bag in a directory or in an archive against its manifests and the specification.

The walk finds the files, and each is matched with the manifests: no path from a manifest or from fetch.txt is opened
unless the walk found it. Problems of one stage do not stop the next: a bag without bagit.txt is treated as version 1.0
in UTF-8, and its files are still compared with its manifests.

Memory use is about 24 bytes for each line of a manifest, and does not depend on the number of files.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pressmark.bagit.bag_directory import BagFiles, Match, Reading
from pressmark.bagit.problems import BagReport, mismatch_problem, problem
from pressmark.bagit.validation.file_matcher import FileMatcher
from pressmark.bagit.validation.tag_files import ReportProblems, TagFiles
from pressmark.errors import BagError
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.disk_queue import DiskQueue
from pressmark.progress_event import ProgressOfCalls
from pressmark.reports import Problem, ProgressEvent

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger

__all__ = ["LEVELS", "check_files", "compare_digests", "reporting", "verify"]

LEVELS = ("oxum", "complete", "full")
# Kinds of problems of files that changed after the walk; other errors are "file-unreadable".
_KINDS = {
    "changed-while-read": "file-changing",
    "missing": "file-changing",
    "link": "file-changing",
    "directory": "file-changing",
    "fifo": "file-special",
    "socket": "file-special",
    "device": "file-special",
}

# Yields each file with the outcome of reading it, in order.
Digests = Callable[[Iterator[Match], tuple[str, ...], Reading], Iterator[tuple[Match, Outcome]]]


def reporting(report: BagReport, on_problem: Callable[[Problem], object] | None) -> ReportProblems:
    """Return a function that adds problems to ``report`` and passes each to ``on_problem``."""

    def report_problems(problems: Iterable[Problem]) -> None:
        problems = list(problems)
        report.add(problems)
        if on_problem is not None:
            for one in problems:
                on_problem(one)

    return report_problems


def verify(
    digests: Digests,
    tag_files: TagFiles,
    matcher: FileMatcher,
    reading: Reading,
    report_problems: ReportProblems,
    before: ProgressEvent = ProgressEvent(),  # noqa: B008, immutable
) -> None:
    """Read all listed files of a bag, and report those that differ from their manifests.

    Payload files and tag files are read in one run if their manifests have the same algorithms. Otherwise the payload
    is read first, and the tag files in a second run with their own algorithms.

    :param digests: reads files: :meth:`~pressmark.bagit.bag_directory.BagDirectory.digests`
    :param before: what was read already, which counts in the progress, and the total if it is known
    """
    bag, ledger = tag_files.bag, reading.ledger
    tag_names = bag.tag_algorithms
    names = bag.algorithms if ledger is None else ledger.algorithms
    together = set(names) == set(tag_names)
    progress = ProgressOfCalls(reading.progress, before)

    def compare(matches: Iterable[Match], names: tuple[str, ...], ledger: Ledger | None) -> None:
        # Files without comparable checksums were reported with their manifest or line.
        listed = (match for match in matches if any(match.digests.get(name) for name in names))
        if not names:
            deque(listed, 0)
            return
        how = reading._replace(ledger=ledger, progress=progress.next())
        for match, outcome in digests(listed, names, how):
            compare_digests(tag_files, match, outcome, report_problems)

    with DiskQueue[Match]() as later:

        def payload() -> Iterator[Match]:
            for match in matcher.matches():
                if together or match.of_payload:
                    yield match
                else:
                    later.add(match)

        compare(payload(), names, ledger)
        if later:
            compare(later, tag_names, None)


def compare_digests(tag_files: TagFiles, match: Match, outcome: Outcome, report_problems: ReportProblems) -> None:
    """Compare the digests of a file with its listed checksums."""
    if outcome.digests is None:
        kind = _KINDS.get(str(outcome.kind), "file-unreadable")
        if kind != "file-unreadable" or match.path not in tag_files.unreadable:
            report_problems([problem(kind, match.path, outcome.message)])
        return
    for algorithm, expected in match.digests.items():
        found = outcome.digests.get(algorithm)
        if expected and found is not None and found != expected:
            report_problems([mismatch_problem(match.path, algorithm, expected, found)])


def check_files(
    base: BagFiles,
    report: BagReport,
    report_problems: ReportProblems,
    verify: Callable[[TagFiles, FileMatcher], object],
    *,
    lenient: bool = False,
    links: str = "inside",
    on_event: Callable[[ProgressEvent], object] | None = None,
) -> TagFiles:
    """Check the files of a bag at the level of the report; see :func:`pressmark.bagit.validate`.

    :param verify: compares checksums in a full validation
    """
    with ExitStack() as stack:
        tag_files = TagFiles(base, report.level, lenient, report_problems)
        tag_files.read_lists(stack)
        matcher = FileMatcher(base, tag_files, links, report_problems)
        try:
            if report.level == "full":
                verify(tag_files, matcher)
            else:
                matcher.run(on_event)
            if report.level != "oxum":
                matcher.check_missing()
        except BagError as error:
            # A manifest changed during the validation.
            report_problems([problem("file-changing", os.fsencode(error.path), error.reason)])
        matcher.report_unreadable()
        report.counts.update(matcher.counts())
        if matcher.is_counted:
            tag_files.check_oxum(matcher.nbytes, matcher.nfiles)
    return tag_files
