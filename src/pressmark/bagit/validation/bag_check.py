"""Check the files of a bag in a directory or in an archive against its manifests and the specification.

The walk finds the files, and each is matched with the manifests: no path from a manifest or from fetch.txt is opened
unless the walk found it. Problems of one stage do not stop the next: a bag without bagit.txt is treated as version 1.0
in UTF-8, and its files are still compared with its manifests.

Memory use is about 24 bytes for each line of a manifest, and does not depend on the number of files.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Generic, TypeVar

from pressmark.bagit.bag_directory import BagFiles
from pressmark.bagit.problems import BagReport, mismatch_problem, problem
from pressmark.bagit.validation.payload import FileMatcher, Match
from pressmark.bagit.validation.tag_files import ReportProblems, TagFiles
from pressmark.errors import BagError
from pressmark.fixity.outcomes import Outcome
from pressmark.fs.disk_queue import DiskQueue
from pressmark.reports import Problem, Progress

__all__ = ["LEVELS", "Verifier", "check_files", "reporting"]

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

Source = TypeVar("Source")


def reporting(report: BagReport, on_problem: Callable[[Problem], object] | None) -> ReportProblems:
    """Return a function that adds problems to ``report`` and passes each to ``on_problem``."""

    def report_problems(problems: Iterable[Problem]) -> None:
        problems = list(problems)
        report.add(problems)
        if on_problem is not None:
            for one in problems:
                on_problem(one)

    return report_problems


class Verifier(ABC, Generic[Source]):
    """Reads the files of a bag and compares their checksums.

    Payload files and tag files are read in one run if their manifests have the same algorithms. Otherwise the payload
    is read first, and the tag files in a second run with their own algorithms.

    :param on_event: called with :class:`~pressmark.reports.Progress` and the events of :meth:`hashed`
    """

    def __init__(self, on_event: Callable[[Progress], object] | None, report_problems: ReportProblems) -> None:
        self._on_event = on_event
        self._report_problems = report_problems
        # The progress of completed runs, and the total progress.
        self._before = self._now = Progress()

    def begin(self, tag_files: TagFiles, stack: ExitStack) -> tuple[str, ...]:
        """Return the algorithms of the payload manifests, in the order in which they are computed."""
        return tag_files.bag.algorithms

    @abstractmethod
    def source(self, match: Match) -> Source:
        """Return what :meth:`hashed` takes for a file."""

    @abstractmethod
    def hashed(self, sources: Iterator[Source], names: tuple[str, ...], of_payload: bool) -> Iterator[Outcome]:
        """Yield the outcome of each file, in order.

        :param of_payload: the first run, which reads the payload
        """

    def run(self, tag_files: TagFiles, matcher: FileMatcher, stack: ExitStack) -> None:
        """Read all listed files, and report mismatches."""
        names, tag_names = self.begin(tag_files, stack), tag_files.bag.tag_algorithms
        together = set(names) == set(tag_names)
        with DiskQueue[Match]() as later:

            def first() -> Iterator[Match]:
                for match in matcher.matches():
                    if together or match.of_payload:
                        yield match
                    else:
                        later.add(match)

            self._compare(tag_files, first(), names, True)
            self._before = self._now
            if later:
                self._compare(tag_files, later, tag_names, False)

    def _compare(self, tag_files: TagFiles, matches: Iterable[Match], names: tuple[str, ...], of_payload: bool) -> None:
        waiting: deque[Match] = deque()

        def sources() -> Iterator[Source]:
            for match in matches:
                # Files without comparable checksums were reported with their manifest or line.
                if any(match.digests.get(name) for name in names):
                    waiting.append(match)
                    yield self.source(match)

        if not names:
            deque(sources(), 0)
            return
        for outcome in self.hashed(sources(), names, of_payload):
            self._compare_digests(tag_files, waiting.popleft(), outcome)

    def _compare_digests(self, tag_files: TagFiles, match: Match, outcome: Outcome) -> None:
        """Compare the digests of a file with its listed checksums."""
        if outcome.digests is None:
            kind = _KINDS.get(str(outcome.kind), "file-unreadable")
            if kind != "file-unreadable" or match.path not in tag_files.unreadable:
                self._report_problems([problem(kind, match.path, outcome.message)])
            return
        for algorithm, expected in match.digests.items():
            found = outcome.digests.get(algorithm)
            if expected and found is not None and found != expected:
                self._report_problems([mismatch_problem(match.path, algorithm, expected, found)])

    def report_event(self, event: Progress) -> None:
        """Pass the progress of :meth:`hashed` on, as the total of all files."""
        self._now = self._before.plus(event.items, event.bytes, event.failed)
        if self._on_event is not None:
            self._on_event(self._now)


def check_files(
    base: BagFiles,
    report: BagReport,
    report_problems: ReportProblems,
    verifier: Verifier[Source],
    *,
    lenient: bool = False,
    links: str = "inside",
    on_event: Callable[[Progress], object] | None = None,
) -> TagFiles:
    """Check the files of a bag at the level of the report; see :func:`pressmark.bagit.validate`.

    :param verifier: compares checksums in a full validation
    """
    with ExitStack() as stack:
        tag_files = TagFiles(base, report.level, lenient, report_problems)
        tag_files.read_lists(stack)
        matcher = FileMatcher(base, tag_files, links, report_problems)
        try:
            if report.level == "full":
                verifier.run(tag_files, matcher, stack)
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
