"""Validate a serialized bag from a stream of its members, without unpacking it.

The headers of a plain tar file are read first, and its files then like those of a directory. Of other archives, one
pass reads and hashes all members and keeps the tag files; then the resulting table is validated like a directory.

The names of the manifests determine the algorithms. In a zip file they are listed first, at no cost. In a compressed
tar file, payload before the first manifest is hashed with the usual algorithms; if others are needed, a second pass
reads the archive again. An archive from a pipe is refused then.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, BinaryIO

from pressmark.bagit.archive.digests import USUAL, StreamHasher
from pressmark.bagit.archive.members import Limits
from pressmark.bagit.archive.read import Members, listed_algorithms, read_members
from pressmark.bagit.archive.reader import MEDIA_TYPES, Archive, open_archive
from pressmark.bagit.archive.table import ArchivedBag, MemberTable, spooled
from pressmark.bagit.bag_directory import Match, Reading
from pressmark.bagit.problems import KEEP, BagReport, problem
from pressmark.bagit.validation.bag_check import LEVELS, check_files, reporting, verify
from pressmark.bagit.validation.file_matcher import FileMatcher
from pressmark.bagit.validation.tag_files import ReportProblems, TagFiles
from pressmark.errors import ArchiveError, BagError
from pressmark.fixity.outcomes import FileRange, Outcome
from pressmark.fixity.pool import hash_ranges
from pressmark.progress_event import Progress
from pressmark.reports import ERROR, Problem, ProgressEvent
from pressmark.threads import Threads, resolve_threads

if TYPE_CHECKING:
    from pressmark.bagit.profile import Profile

__all__ = ["VerifiedBag", "opened_bag", "validate_archive"]

_THREADS = 4
_CHANGED = "archive changed while it was read; validate it again"


def validate_archive(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    level: str = "full",
    *,
    lenient: bool = False,
    threads: int | None = None,
    read: str = "parallel",
    profile: Profile | None = None,
    stream: BinaryIO | None = None,
    limits: Limits = Limits(),  # noqa: B008, immutable
    keep: int = KEEP,
    progress: Progress | None = None,
) -> BagReport:
    """Validate a serialized bag; return a report of all problems. Nothing is unpacked.

    The verdict is that of the unpacked bag. The archive itself is also checked: its checksums, its end, and that all of
    its members can be unpacked together. Paths are relative to the bag's directory in the archive.

    :param path: a zip, tar or compressed tar file with one top-level directory; its content determines the format
    :param level: as in :func:`pressmark.bagit.validate`; only ``"full"`` verifies the checksums of the archive itself
    :param lenient: report blank lines in manifests, and malformed lines in fetch.txt and bag-info.txt, as warnings
    :param threads: number of threads that compute digests; :data:`None` for the default
    :param read: ``"parallel"``, or ``"sequential"`` for hard disks
    :param profile: a BagIt Profile that the bag must conform to
    :param stream: a binary stream that is read once, instead of the file: a tar file, compressed or not, whose
        manifests have no algorithms but md5, sha1, sha256 and sha512. ``path`` is its name in messages
    :param limits: limits for reading the archive
    :param keep: maximum number of problems in the report; all are counted
    :param progress: its bytes are those of the archive
    :raises BagError: the archive cannot be opened or read, or is not supported as a stream
    :raises SpillError: a temporary file cannot be written or read
    :raises ValueError: another argument is invalid
    """
    if level not in LEVELS:
        raise ValueError(f"level={level!r}: expected {', '.join(LEVELS)}")
    if read not in ("parallel", "sequential"):
        raise ValueError(f"read={read!r}: expected parallel or sequential")
    report = BagReport(level=level, keep=keep, counts={"files": 0, "bytes": 0, "tag_files": 0})
    report_problems = reporting(report, progress)
    with ExitStack() as stack:
        archive = stack.enter_context(open_archive(path, limits, stream))
        pool = None
        if level == "full" and threads != 1:
            pool = stack.enter_context(
                Threads(_THREADS if threads is None else min(resolve_threads(threads), _THREADS), "pressmark-digests")
            )
        try:
            table, members = _read(archive, level, pool, threads, progress, report_problems, stack)
        except ArchiveError as error:
            if archive.has_changed():
                report_problems([problem("file-changing", b"", _CHANGED)])
            else:
                report_problems([problem(error.kind, b"", error.reason)])
            return report
        if members.top is not None:
            bag = VerifiedBag(archive.path, table, members, archive)
            reading = Reading(threads, read, progress=progress)

            def verify_members(tag_files: TagFiles, matcher: FileMatcher) -> None:
                verify(bag.digests, tag_files, matcher, reading, report_problems, members.progress)

            def show(event: ProgressEvent) -> None:
                if progress is not None:
                    progress(event._replace(bytes=members.progress.bytes))

            tag_files = check_files(bag, report, report_problems, verify_members, lenient=lenient, on_event=show)
            if profile is not None:
                report_problems(profile.check_files(tag_files.bag, bag, MEDIA_TYPES[archive.format]))
        if archive.has_changed():
            report_problems([problem("file-changing", b"", _CHANGED)])
    return report


@contextmanager
def opened_bag(path: bytes) -> Iterator[ArchivedBag]:
    """Open the bag in an archive, to read its tag files.

    :raises BagError: the archive cannot be read, or does not contain a bag that can be unpacked
    """
    problems: list[Problem] = []
    with open_archive(path) as archive, MemberTable(archive.check_members) as table:
        members = read_members(archive, table, StreamHasher(None), algorithms=(), report_problems=problems.extend)
        errors = [one for one in problems if one.severity == ERROR]
        if errors or members.top is None:
            raise BagError(path, errors[0].message)
        yield _CopiedTagFiles(path, table, members.top)


class _CopiedTagFiles(ArchivedBag):
    """A bag in an archive whose open tag files outlive it."""

    def open(self, path: bytes) -> BinaryIO:
        with super().open(path) as file:
            return spooled(file)


def _read(
    archive: Archive,
    level: str,
    pool: Threads | None,
    threads: int | None,
    on_event: Callable[[ProgressEvent], object] | None,
    report_problems: ReportProblems,
    stack: ExitStack,
) -> tuple[MemberTable, Members]:
    """Read the archive until all digests that the manifests need, and offsets cannot replace, are known.

    :raises BagError: a pipe would have to be read again
    """
    algorithms: tuple[str, ...] | None = None
    if level != "full":
        algorithms = ()
    elif archive.format == "zip" and archive.seekable:
        algorithms = listed_algorithms(archive)

    def read(algorithms: tuple[str, ...] | None, report_problems: ReportProblems) -> tuple[MemberTable, Members]:
        table = stack.enter_context(MemberTable(archive.check_members))
        hasher = StreamHasher(pool)
        return table, read_members(
            archive,
            table,
            hasher,
            algorithms=algorithms,
            threads=threads,
            report_problems=report_problems,
            on_event=on_event,
        )

    table, members = read(algorithms, report_problems)
    needed = members.lacking()
    if level == "full" and needed:
        if archive.is_pipe:
            others = ", ".join(sorted(set(needed) - set(USUAL)))
            reason = f"manifests have algorithms that are not computed from a pipe ({others})"
            raise BagError(archive.path, f"{reason}; save the archive, and validate the file")
        table, members = read(needed, lambda _problems: None)  # already reported
    return table, members


class VerifiedBag(ArchivedBag):
    """A bag in an archive whose members were read.

    :param archive: the archive, to read members that have no digests; :data:`None` if all have them
    """

    def __init__(self, path: bytes, table: MemberTable, members: Members, archive: Archive | None = None) -> None:
        assert members.top is not None
        super().__init__(path, table, members.top)
        self._members = members
        self._archive = archive

    def digests(
        self, matches: Iterator[Match], algorithms: tuple[str, ...], reading: Reading
    ) -> Iterator[tuple[Match, Outcome]]:
        """Yield each file with its digests, or with those of its place in the archive."""
        needed = set(algorithms)
        if self._archive is None or self._archive.descriptor < 0 or not self._archive.seekable:
            for match in matches:
                known = self._known(match, needed)
                if isinstance(known, Outcome):
                    yield match, known
            return
        waiting: deque[Match] = deque()

        def tasks() -> Iterator[FileRange | Outcome]:
            for match in matches:
                waiting.append(match)
                yield self._known(match, needed)

        descriptor, report = self._archive.descriptor, reading.progress
        for outcome in hash_ranges(descriptor, tasks(), algorithms, reading.threads, report, read=reading.order):
            yield waiting.popleft(), outcome

    def _known(self, match: Match, needed: Collection[str]) -> FileRange | Outcome:
        """Return the place of a member in the archive, or its outcome if it was read."""
        node = self.file(match.path if match.real is None else match.real)
        if node is not None and node.offset >= 0:
            return FileRange(node.offset, node.size)
        digests = {} if node is None else self._members.digests(node)
        if node is None or any(name in needed and name not in digests for name in match.digests):
            # A missing digest must not count as a match.
            message = "was not read; please report this bug"
            return Outcome(os.fsdecode(match.path), None, None, None, None, "io-error", message)
        return Outcome(os.fsdecode(match.path), digests, node.size, None, None)
