"""Validate bags, in directories and in archives.

The number of problems that are kept is bounded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pressmark.bagit.bag_directory import BagDirectory
from pressmark.bagit.problems import KEEP, BagReport
from pressmark.bagit.validation.bag_check import LEVELS, Verifier, check_files, reporting
from pressmark.bagit.validation.payload import Match
from pressmark.bagit.validation.small_bags import check_small_bag
from pressmark.bagit.validation.tag_files import ReportProblems, TagFiles
from pressmark.bagit.walk import LINKS
from pressmark.errors import LedgerError
from pressmark.fixity.outcomes import Outcome
from pressmark.fixity.pool import hash_files
from pressmark.reports import Problem, Progress
from pressmark.threads import resolve_threads

if TYPE_CHECKING:
    from pressmark.bagit.profile.profile import Profile
    from pressmark.fixity.ledger import Ledger

    AnyLedger = Ledger | str | bytes | os.PathLike[str]

__all__ = ["validate"]


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
    on_event: Callable[[Progress], object] | None = None,
    on_problem: Callable[[Problem], object] | None = None,
) -> BagReport:
    """Validate a bag; return a report of all problems.

    :param path: the base directory, or an archive: see :func:`pressmark.bagit.archive.validate_archive`
    :param level: ``"full"``; ``"complete"`` without checksums; ``"oxum"`` for bagit.txt, bag-info.txt and a comparison
        of the payload with Payload-Oxum. Only a full validation can find a bag valid (section 3)
    :param lenient: report blank lines in manifests and in fetch.txt as warnings
    :param links: ``"inside"`` follows symbolic links that stay in the bag, ``"trusted"`` all links; in archives, only
        those that stay in the bag
    :param threads: number of threads; :data:`None` or 0 for one per core
    :param read: ``"parallel"``, or ``"sequential"`` for hard disks
    :param ledger: a file that makes a full validation of a directory resumable, or an open ledger for the payload
        algorithms of the bag. Payload files in it are not read again; tag files only if their manifests have the same
        algorithms
    :param profile: a BagIt Profile that the bag must conform to
    :param keep: maximum number of problems in the report; all are counted and passed to ``on_problem``
    :param on_event: called with the events of :func:`pressmark.fixity.hash_files`
    :param on_problem: called with each problem
    :raises BagError: ``path`` is neither a directory nor a file, or cannot be opened; other faults of a bag are
        problems, not exceptions
    :raises LedgerError: the ledger was created for other files or algorithms, or cannot be written
    :raises ValueError: another argument is invalid
    """
    if level not in LEVELS:
        raise ValueError(f"level={level!r}: expected {', '.join(LEVELS)}")
    if links not in LINKS:
        raise ValueError(f"links={links!r}: expected {' or '.join(LINKS)}")
    report = BagReport(level=level, keep=keep)
    report_problems = reporting(report, on_problem)
    if level == "full" and read == "parallel" and ledger is None and profile is None and on_event is None:
        resolve_threads(threads)  # raises ValueError
        small = check_small_bag(os.fsencode(path))
        if small is not None:
            report_problems(small.problems)
            report.counts.update(small.counts)
            return report
    if os.path.isfile(path):
        # Most bags are directories.
        from pressmark.bagit.archive.archive_validation import validate_archive
        from pressmark.bagit.archive.reader import is_archive

        if is_archive(path):
            if ledger is not None:
                raise ValueError("ledger: not supported with an archive")
            return validate_archive(
                path,
                level,
                lenient=lenient,
                threads=threads,
                read=read,
                profile=profile,
                keep=keep,
                on_event=on_event,
                on_problem=on_problem,
            )
    with BagDirectory(path) as base:
        verifier = _FileVerifier(base, links == "trusted", threads, read, ledger, on_event, report_problems)
        tag_files = check_files(
            base, report, report_problems, verifier, lenient=lenient, links=links, on_event=on_event
        )
        if profile is not None:
            report_problems(profile.check(tag_files.bag))
    return report


class _FileVerifier(Verifier[bytes]):
    """Reads files; those of the payload with the ledger."""

    def __init__(
        self,
        base: BagDirectory,
        trusted: bool,
        threads: int | None,
        read: str,
        ledger: AnyLedger | None,
        on_event: Callable[[Progress], object] | None,
        report_problems: ReportProblems,
    ) -> None:
        super().__init__(on_event, report_problems)
        self._base = base
        self._trusted = trusted
        self._threads = threads
        self._read = read
        self._given = ledger
        self._ledger: Ledger | None = None

    def begin(self, tag_files: TagFiles, stack: ExitStack) -> tuple[str, ...]:
        """Open the ledger, and return its algorithms, or those of the payload manifests.

        :raises LedgerError: it was created for other files or algorithms
        """
        names = tag_files.bag.algorithms
        ledger = self._given
        if ledger is None or not names:
            return names
        from pressmark.fixity.ledger import Ledger  # few validations use a ledger

        if not isinstance(ledger, Ledger):
            ledger = stack.enter_context(Ledger(ledger, names, [self._base.path]))
        if set(ledger.algorithms) != set(names):
            wanted = ", ".join(names)
            raise LedgerError(
                ledger.name,
                f"ledger was created for other algorithms than those of the bag ({wanted});"
                " choose another file (--ledger)",
            )
        self._ledger = ledger
        return ledger.algorithms

    def source(self, match: Match) -> bytes:
        """Return the path of a file: relative to the base directory, or the full path if links are trusted."""
        if not self._trusted and match.real is not None:
            return match.real
        return os.path.join(self._base.path, match.path if match.real is None else match.real)

    def hashed(self, sources: Iterator[bytes], names: tuple[str, ...], of_payload: bool) -> Iterator[Outcome]:
        return hash_files(
            sources,
            names,
            self._threads,
            self.report_event if self._on_event is not None else None,
            links="follow" if self._trusted else "refuse",
            read=self._read,
            ledger=self._ledger if of_payload else None,
            beneath=None if self._trusted else self._base.beneath,
        )
