"""Validate bags, in directories and in archives.

The number of problems that are kept is bounded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing
from typing import TYPE_CHECKING, NamedTuple

from pressmark.bagit.bag_directory import BagDirectory, Reading, VerifiableFiles
from pressmark.bagit.problems import KEEP, BagReport
from pressmark.bagit.validation.bag_check import LEVELS, check_files, reporting, verify
from pressmark.bagit.validation.file_matcher import FileMatcher
from pressmark.bagit.validation.in_memory import PlainBag, check_in_memory
from pressmark.bagit.validation.tag_files import ReportProblems, TagFiles
from pressmark.bagit.walk import LINKS
from pressmark.buckets.address import is_address
from pressmark.errors import BagError, LedgerError, SpillError
from pressmark.progress_event import Progress
from pressmark.reports import ProgressEvent

if TYPE_CHECKING:
    from pressmark.bagit.profile import Profile
    from pressmark.fixity.ledger import Ledger

    AnyLedger = Ledger | str | bytes | os.PathLike[str]

__all__ = ["validate", "validate_many"]

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def validate(
    path: AnyPath,
    level: str = "full",
    *,
    lenient: bool = False,
    links: str = "inside",
    threads: int | None = None,
    read: str = "parallel",
    ledger: AnyLedger | None = None,
    profile: Profile | None = None,
    keep: int = KEEP,
    progress: Progress | None = None,
) -> BagReport:
    """Validate a bag; return a report of all problems.

    :param path: the base directory, or an archive: see :func:`pressmark.bagit.archive.validate_archive`; or the address
        of either in object storage, such as ``s3://bucket/bag``, which is a tree of keys, or ``s3://bucket/bag.tar.zst``
    :param level: ``"full"``; ``"complete"`` without checksums; ``"oxum"`` for bagit.txt, bag-info.txt and a comparison
        of the payload with Payload-Oxum. Only a full validation can find a bag valid (section 3)
    :param lenient: report blank lines in manifests, and malformed lines in fetch.txt and bag-info.txt, as warnings
    :param links: ``"inside"`` follows symbolic links that stay in the bag, ``"trusted"`` all links; in archives, only
        those that stay in the bag
    :param threads: number of threads; :data:`None` for one per core
    :param read: ``"parallel"``, or ``"sequential"`` for hard disks
    :param ledger: a file that makes a full validation of a directory resumable, or an open ledger for the payload
        algorithms of the bag. Payload files in it are not read again; tag files only if their manifests have the same
        algorithms
    :param profile: a BagIt Profile that the bag must conform to
    :param keep: maximum number of problems in the report; all are counted
    :param progress: ``done`` counts payload files and tag files. At level ``"full"``, these are the files that
        manifests list, with the bytes that were read of them; ``total`` is their number, unless the manifests differ in
        length. At other levels, these are all files that were found, without bytes and without a total
    :raises BagError: ``path`` is neither a directory nor a file, or cannot be opened; other faults of a bag are
        problems, not exceptions
    :raises StoreError: the server of an address no longer answers
    :raises LedgerError: the ledger was created for other files or algorithms, or cannot be written
    :raises ValueError: another argument is invalid
    """
    run = _Validation(level, lenient, links, threads, read, profile, keep, progress)
    found = None
    if ledger is None:
        (found,) = run.in_memory([os.fsencode(path)])
    return run.report(found) if found is not None else run.read(path, ledger)


def validate_many(
    paths: Iterable[AnyPath],
    level: str = "full",
    *,
    lenient: bool = False,
    links: str = "inside",
    threads: int | None = None,
    read: str = "parallel",
    profile: Profile | None = None,
    keep: int = KEEP,
    progress: Progress | None = None,
) -> Iterator[BagReport | BagError | SpillError]:
    """Validate many bags; yield the report of each, in order, or the error that prevented it.

    Small bags are read many at a time. Parameters are those of :func:`validate`.

    :param progress: as for :func:`validate`; it starts again with each bag
    :raises StoreError: the server of an address no longer answers, which would prevent the others as well
    :raises ValueError: an argument is invalid
    """
    run = _Validation(level, lenient, links, threads, read, profile, keep, progress)
    directories = list(map(os.fsencode, paths))
    with closing(run.in_memory(directories)) as in_memory:
        for path, found in zip(directories, in_memory, strict=True):
            try:
                report = run.report(found) if found is not None else run.read(path)
            except (BagError, SpillError) as error:
                yield error
            else:
                yield report


class _Validation(NamedTuple):
    """The options of a validation: see :func:`validate`."""

    level: str
    lenient: bool
    links: str
    threads: int | None
    order: str
    profile: Profile | None
    keep: int
    progress: Progress | None

    def in_memory(self, paths: Iterable[bytes]) -> Generator[PlainBag | None]:
        """Yield each bag that is small and plain, and :data:`None` for any other.

        :raises ValueError: an option is invalid
        """
        if self.level not in LEVELS:
            raise ValueError(f"level={self.level!r}: expected {', '.join(LEVELS)}")
        if self.links not in LINKS:
            raise ValueError(f"links={self.links!r}: expected {' or '.join(LINKS)}")
        if self.order not in ("parallel", "sequential"):
            raise ValueError(f"read={self.order!r}: expected parallel or sequential")
        threads = 1 if self.order == "sequential" else self.threads
        local = (os.devnull.encode() if is_address(path) else path for path in paths)
        return check_in_memory(local, self.level, lenient=self.lenient, threads=threads)

    def report(self, found: PlainBag) -> BagReport:
        """Return the report of a plain bag.

        :raises BagError: it does not exist any more
        """
        report = BagReport(counts=found.counts, level=self.level, keep=self.keep)
        report_problems = reporting(report, self.progress)
        report_problems(found.problems)
        if self.profile is not None:
            report_problems(self.profile.check(found.tags))
        if self.progress is not None:
            self.progress(found.progress)
        return report

    def read(self, path: AnyPath, ledger: AnyLedger | None = None) -> BagReport:
        """Return the report of any other bag, read file by file.

        :raises BagError: it cannot be opened
        """
        if is_address(os.fspath(path)):
            # Most bags are local.
            from pressmark.bagit.remote.bag_in_bucket import is_key, open_tree

            if ledger is not None:
                raise ValueError("ledger: not supported in object storage")
            address = os.fsencode(path)
            if is_key(address):
                return self._read_archive(address)
            return self._read_tree(lambda report_problems: open_tree(address, report_problems), None)
        if os.path.isfile(path):
            # Most bags are directories.
            from pressmark.bagit.archive.reader import is_archive

            if is_archive(path):
                if ledger is not None:
                    raise ValueError("ledger: not supported with an archive")
                return self._read_archive(os.fsencode(path))
        return self._read_tree(lambda _report_problems: BagDirectory(path), ledger)

    def _read_archive(self, path: bytes) -> BagReport:
        from pressmark.bagit.archive.check import validate_archive

        return validate_archive(
            path,
            self.level,
            lenient=self.lenient,
            threads=self.threads,
            read=self.order,
            profile=self.profile,
            keep=self.keep,
            progress=self.progress,
        )

    def _read_tree(
        self,
        open_files: Callable[[ReportProblems], AbstractContextManager[VerifiableFiles]],
        ledger: AnyLedger | None,
    ) -> BagReport:
        """Return the report of a bag in a directory, or a tree of keys.

        :param open_files: opens its files; called with a function that reports problems of their names
        """
        report = BagReport(level=self.level, keep=self.keep)
        report_problems = reporting(report, self.progress)
        with open_files(report_problems) as base, ExitStack() as stack:

            def verify_files(tag_files: TagFiles, matcher: FileMatcher) -> None:
                opened = _opened(ledger, tag_files.bag.algorithms, base.path, stack)
                reading = Reading(self.threads, self.order, self.links == "trusted", opened, self.progress)
                total = ProgressEvent(of_items=tag_files.listed)
                verify(base.digests, tag_files, matcher, reading, report_problems, total)

            tag_files = check_files(
                base,
                report,
                report_problems,
                verify_files,
                lenient=self.lenient,
                links=self.links,
                on_event=self.progress,
            )
            if self.profile is not None:
                report_problems(self.profile.check_files(tag_files.bag, base))
        return report


def _opened(ledger: AnyLedger | None, algorithms: tuple[str, ...], path: bytes, stack: ExitStack) -> Ledger | None:
    """Return the open ledger of a bag; :data:`None` without one, or if nothing is hashed.

    :raises LedgerError: it was created for other files or algorithms
    """
    if ledger is None or not algorithms:
        return None
    from pressmark.fixity.ledger import Ledger  # few validations use a ledger

    if not isinstance(ledger, Ledger):
        ledger = stack.enter_context(Ledger(ledger, algorithms, [path]))
    if set(ledger.algorithms) != set(algorithms):
        wanted = ", ".join(algorithms)
        reason = f"ledger was created for other algorithms than those of the bag ({wanted}); choose another file"
        raise LedgerError(ledger.name, reason)
    return ledger
