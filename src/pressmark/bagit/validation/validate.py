"""Validate bags against their manifests and the specification.

The walk finds the files, and each is matched with the manifests: no path from a manifest or from fetch.txt is opened
unless the walk found it. Problems of one stage do not stop the next: a bag without bagit.txt is treated as version 1.0
in UTF-8, and its files are still compared with its manifests.

Memory use is about 24 bytes for each line of a manifest, and does not depend on the number of files. The number of
problems that are kept is bounded.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from pressmark.bagit.bag_directory import BagDirectory, BagFiles
from pressmark.bagit.problems import KEEP, BagReport, mismatch_problem, problem
from pressmark.bagit.validation.payload import FileMatcher, Match
from pressmark.bagit.validation.small_bags import check_small_bag
from pressmark.bagit.validation.tag_files import ReportProblems, TagFiles
from pressmark.bagit.walk import LINKS
from pressmark.errors import BagError, LedgerError
from pressmark.fixity.outcomes import Event, Outcome, Progress
from pressmark.fixity.pool import hash_files
from pressmark.fs.disk_queue import DiskQueue
from pressmark.reports import Problem
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from pressmark.bagit.profile.profile import Profile
    from pressmark.fixity.ledger import Ledger

    AnyLedger = Ledger | str | bytes | os.PathLike[str]

__all__ = ["LEVELS", "Verifier", "check_files", "compare_digests", "validate"]

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


def validate(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    level: str = "full",
    *,
    lenient: bool = False,
    links: str = "inside",
    threads: int | None = None,
    read: str = "parallel",
    ledger: AnyLedger | None = None,
    profile: Profile | None = None,
    keep: int = KEEP,
    on_event: Callable[[Event], object] | None = None,
    on_problem: Callable[[Problem], object] | None = None,
) -> BagReport:
    """Validate a bag; return a report of all problems.

    :param path: the base directory
    :param level: ``"full"``; ``"complete"`` without checksums; ``"oxum"`` for bagit.txt, bag-info.txt and a comparison
        of the payload with Payload-Oxum. Only a full validation can find a bag valid (section 3)
    :param lenient: report blank lines in manifests and in fetch.txt as warnings
    :param links: ``"inside"`` follows symbolic links that stay in the bag, ``"trusted"`` all links
    :param threads: number of threads; :data:`None` or 0 for one per core
    :param read: ``"parallel"``, or ``"sequential"`` for hard disks
    :param ledger: a file that makes a full validation resumable, or an open ledger for the payload algorithms of the
        bag. Payload files in it are not read again; tag files only if their manifests have the same algorithms
    :param profile: a BagIt Profile that the bag must conform to
    :param keep: maximum number of problems in the report; all are counted and passed to ``on_problem``
    :param on_event: called with the events of :func:`pressmark.fixity.hash_files`
    :param on_problem: called with each problem
    :raises BagError: ``path`` is not a directory; other faults of a bag are problems, not exceptions
    :raises LedgerError: the ledger was created for other files or algorithms, or cannot be written
    :raises ValueError: another argument is invalid
    """
    if level not in LEVELS:
        raise ValueError(f"level={level!r}: expected {', '.join(LEVELS)}")
    if links not in LINKS:
        raise ValueError(f"links={links!r}: expected {' or '.join(LINKS)}")
    report = BagReport(level=level, keep=keep)

    def report_problems(problems: Iterable[Problem]) -> None:
        problems = list(problems)
        report.add(problems)
        if on_problem is not None:
            for one in problems:
                on_problem(one)

    if level == "full" and read == "parallel" and ledger is None and profile is None and on_event is None:
        resolve_threads(threads)  # raises ValueError
        small = check_small_bag(os.fsencode(path))
        if small is not None:
            report_problems(small.problems)
            report.counts.update(small.counts)
            return report
    with BagDirectory(path) as base:
        verifier = _Verifier(base, links == "trusted", threads, read, ledger, on_event, report_problems)
        tag_files = check_files(
            base, report, report_problems, verifier, lenient=lenient, links=links, on_event=on_event
        )
        if profile is not None:
            report_problems(profile.check(tag_files.bag))
    return report


class Verifier(Protocol):
    """Compares the checksums of the files in a full validation."""

    def run(self, tag_files: TagFiles, matcher: FileMatcher, stack: ExitStack) -> None:
        """Compare the checksums of all listed files, and report mismatches."""


def check_files(
    base: BagFiles,
    report: BagReport,
    report_problems: ReportProblems,
    verifier: Verifier,
    *,
    lenient: bool = False,
    links: str = "inside",
    on_event: Callable[[Event], object] | None = None,
) -> TagFiles:
    """Check the files of a bag in a directory or archive at the level of the report; see :func:`validate`.

    :param verifier: compares checksums in a full validation
    """
    with ExitStack() as stack:
        tag_files = TagFiles(base, report.level, lenient, report_problems, stack)
        matcher = FileMatcher(tag_files, links, report_problems)
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


class _Verifier:
    """Reads files and compares their checksums.

    Payload files and tag files are read in one run if their manifests have the same algorithms. Otherwise the payload
    is read first, with the ledger, and the tag files in a second run with their own algorithms.
    """

    def __init__(
        self,
        base: BagDirectory,
        trusted: bool,
        threads: int | None,
        read: str,
        ledger: AnyLedger | None,
        on_event: Callable[[Event], object] | None,
        report_problems: ReportProblems,
    ) -> None:
        self._base = base
        self._trusted = trusted
        self._threads = threads
        self._read = read
        self._given = ledger
        self._on_event = on_event
        self._report_problems = report_problems
        self._names: tuple[str, ...] = ()
        self._tag_names: tuple[str, ...] = ()
        self._ledger: Ledger | None = None
        # The progress of completed runs, and the total progress.
        self._before = self._now = Progress(0, 0, 0)

    def _use(self, ledger: AnyLedger | None, stack: ExitStack) -> None:
        """Use a ledger.

        :raises LedgerError: it was created for other files or algorithms
        """
        if ledger is None or not self._names:
            return
        from pressmark.fixity.ledger import Ledger  # few validations use a ledger

        if not isinstance(ledger, Ledger):
            ledger = stack.enter_context(Ledger(ledger, self._names, [self._base.path]))
        if set(ledger.algorithms) != set(self._names):
            wanted = ", ".join(self._names)
            raise LedgerError(
                ledger.name,
                f"ledger was created for other algorithms than those of the bag ({wanted});"
                " choose another file (--ledger)",
            )
        self._names = ledger.algorithms
        self._ledger = ledger

    def run(self, tag_files: TagFiles, matcher: FileMatcher, stack: ExitStack) -> None:
        """Read all listed files, and report mismatches."""
        self._tag_files = tag_files
        self._names, self._tag_names = tag_files.bag.algorithms, tag_files.bag.tag_algorithms
        self._use(self._given, stack)
        together = set(self._names) == set(self._tag_names)
        with DiskQueue[Match]() as later:

            def first() -> Iterator[Match]:
                for match in matcher.matches():
                    if together or match.of_payload:
                        yield match
                    else:
                        later.add(match)

            self._compare(first(), self._names, self._ledger)
            self._before = self._now
            if later:
                self._compare(later, self._tag_names, None)

    def _compare(self, matches: Iterable[Match], names: tuple[str, ...], ledger: Ledger | None) -> None:
        waiting: deque[Match] = deque()

        def paths() -> Iterator[bytes]:
            for match in matches:
                # Files without comparable checksums were reported with their manifest or line.
                if any(match.digests.get(name) for name in names):
                    waiting.append(match)
                    yield self._path(match)

        if not names:
            deque(paths(), 0)
            return
        outcomes = hash_files(
            paths(),
            names,
            self._threads,
            self._report_event if self._on_event is not None else None,
            links="follow" if self._trusted else "refuse",
            read=self._read,
            ledger=ledger,
            beneath=None if self._trusted else self._base.beneath,
        )
        for outcome in outcomes:
            compare_digests(self._tag_files, waiting.popleft(), outcome, self._report_problems)

    def _path(self, match: Match) -> bytes:
        """Return the path for reading a file: relative to the base directory, or the full path if links are trusted."""
        if not self._trusted and match.real is not None:
            return match.real
        return os.path.join(self._base.path, match.path if match.real is None else match.real)

    def _report_event(self, event: Event) -> None:
        if isinstance(event, Progress):
            event = self._now = Progress(*(sum(pair) for pair in zip(self._before, event, strict=True)))
        if self._on_event is not None:
            self._on_event(event)
