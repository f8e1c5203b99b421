"""Validate a serialized bag from a stream of its members, without unpacking it.

One pass reads and hashes the members and keeps the tag files; then the resulting table is validated like a directory.
The names of the manifests determine the algorithms. In zip and plain tar files the names are listed first, at no cost.
In a compressed tar file, payload before the first manifest is hashed with the usual algorithms; if others are needed, a
second pass reads the archive again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import islice
from time import monotonic

from pressmark.bagit.archive.members import Limits, Member, clean_name
from pressmark.bagit.archive.reader import Archive, open_archive
from pressmark.bagit.archive.table import ArchivedBag, MemberTable, Node
from pressmark.bagit.bag_tags import is_described
from pressmark.bagit.manifest_format import official_name, split_manifest_name
from pressmark.bagit.paths import PAYLOAD
from pressmark.bagit.problems import KEEP, BagReport, problem
from pressmark.bagit.validation.payload import FileMatcher, Match
from pressmark.bagit.validation.tag_files import ReportProblems, TagFiles
from pressmark.bagit.validation.validate import LEVELS, check_files, compare_digests
from pressmark.errors import ArchiveError, quoted
from pressmark.fixity import Outcome, Progress
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.outcomes import PROGRESS_EVERY, Event
from pressmark.reports import Problem

__all__ = ["validate_archive"]

# The usual algorithms of bags, for payload before the first manifest.
USUAL = ("md5", "sha1", "sha256", "sha512")
# Smaller blocks are hashed in the calling thread.
_WORTH_A_THREAD = 64 << 10
_THREADS = 4


def validate_archive(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    level: str = "full",
    *,
    lenient: bool = False,
    threads: int | None = None,
    limits: Limits = Limits(),  # noqa: B008, immutable
    keep: int = KEEP,
    on_event: Callable[[Event], object] | None = None,
    on_problem: Callable[[Problem], object] | None = None,
) -> BagReport:
    """Validate a serialized bag; return a report of all problems. Nothing is unpacked.

    The verdict is that of the unpacked bag. The archive itself is also checked: its checksums, its end, and that all of
    its members can be unpacked together. Paths are relative to the bag's directory in the archive.

    :param path: a zip, tar or compressed tar file with one top-level directory
    :param level: as in :func:`pressmark.bagit.validate`; only ``"full"`` verifies the checksums of the archive itself
    :param lenient: report blank lines in manifests and in fetch.txt as warnings
    :param threads: number of threads that compute digests; :data:`None` or 0 for the default, 1 for the calling thread
        only
    :param limits: limits for reading the archive
    :param keep: maximum number of problems in the report; all are counted and passed to ``on_problem``
    :param on_event: called with :class:`pressmark.fixity.Progress`
    :param on_problem: called with each problem
    :raises BagError: the archive cannot be opened or read
    :raises SpillError: a temporary file cannot be written or read
    :raises ValueError: another argument is invalid
    """
    if level not in LEVELS:
        raise ValueError(f"level={level!r}: expected {', '.join(LEVELS)}")
    report = BagReport(level=level, keep=keep)

    def report_problems(problems: Iterable[Problem]) -> None:
        problems = list(problems)
        report.add(problems)
        if on_problem is not None:
            for one in problems:
                on_problem(one)

    with ExitStack() as stack:
        archive = stack.enter_context(open_archive(path, limits))
        pool = None
        if level == "full" and threads != 1:
            pool = stack.enter_context(ThreadPoolExecutor(min(threads or _THREADS, _THREADS)))
        try:
            members = _collected(archive, level, pool, on_event, report_problems, stack)
        except ArchiveError as error:
            if archive.has_changed():
                report_problems([problem("file-changing", b"", "archive changed while it was read; validate it again")])
            else:
                report_problems([problem(error.kind, b"", error.reason)])
            return report
        if archive.has_changed():
            report_problems([problem("file-changing", b"", "archive changed while it was read; validate it again")])
        if archive.extra:
            message = f"{archive.extra} bytes before or after the archive do not belong to any member"
            report_problems([problem("archive-extra", b"", message)])
        if members.top is None:
            message = "not exactly one top-level directory; pack the directory of the bag only"
            report_problems([problem("archive-malformed", b"", message)])
        else:
            bag = ArchivedBag(archive.path, members.table, members.top)
            check_files(
                bag,
                report,
                report_problems,
                _Verifier(bag, members, report_problems),
                lenient=lenient,
                on_event=on_event,
            )
    return report


def _collected(
    archive: Archive,
    level: str,
    pool: ThreadPoolExecutor | None,
    on_event: Callable[[Event], object] | None,
    report_problems: ReportProblems,
    stack: ExitStack,
) -> _Members:
    """Read the archive until all digests that the manifests need are known."""
    names: tuple[str, ...] | None = None
    if level != "full":
        names = ()
    elif archive.seekable:
        listed = (clean_name(member.name)[0].split(b"/") for member in archive.members())
        names = _algorithms(parts[1] for parts in listed if len(parts) == 2)
    members = _Members(stack.enter_context(MemberTable(archive)), names, pool, on_event)
    members.collect(archive, report_problems)
    needed = members.lacking()
    if level == "full" and needed:
        members = _Members(stack.enter_context(MemberTable(archive)), needed, pool, on_event)
        members.collect(archive, lambda _problems: None)  # already reported
    return members


def _algorithms(names: Iterable[bytes]) -> tuple[str, ...]:
    """Return the known algorithms of those names that are names of manifests."""
    found = {official_name(parts[1]) for parts in map(split_manifest_name, names) if parts is not None}
    return tuple(sorted(name for name in found if name is not None))


class _Members:
    """The members of an archive, with their digests.

    :param names: the algorithms; :data:`None` if they are not known yet
    """

    def __init__(
        self,
        table: MemberTable,
        names: tuple[str, ...] | None,
        pool: ThreadPoolExecutor | None,
        on_event: Callable[[Event], object] | None,
    ) -> None:
        self.table = table
        self.top: bytes | None = None
        self._names = names
        self._pool = pool
        self._on_event = on_event
        self._next_event = monotonic() + PROGRESS_EVERY
        self._files = self._bytes = 0
        self._manifests = self._kept = 0  # files that were kept, and their bytes
        # Algorithms of the manifests so far, while not all are known.
        self._seen: set[str] = set()
        self._of_payload: tuple[str, ...] | None = None
        # Sets of algorithms by number in the table, and the numbers that tag files and payload files use.
        self._sets: list[tuple[str, ...]] = []
        self._used: tuple[set[int], set[int]] = (set(), set())
        self._has_links = False

    def collect(self, archive: Archive, report_problems: ReportProblems) -> None:
        """Add all members, and report those that cannot be unpacked.

        :raises ArchiveError: the archive is damaged, or exceeds a limit
        """
        for member in archive.members():
            name, fault = clean_name(member.name)
            if not name and fault is None and member.kind == "directory":
                continue
            if fault is None:
                fault = "name of the top-level directory" if not name else self._take(archive, name, member)
            if fault is not None:
                report_problems([problem("archive-member", b"", f"{quoted(member.name)}: {fault}")])
        # The limit depends on the number of members.
        archive.check_tag_files(self._manifests, self._kept)
        tops = list(islice(self.table.names(), 2))
        self.top = tops[0][0] if len(tops) == 1 and tops[0][1].kind == "directory" else None

    def _take(self, archive: Archive, name: bytes, member: Member) -> str | None:
        """Add a member; return why it cannot be unpacked, or :data:`None`."""
        if member.kind == "hardlink":
            return self._take_hard_link(name, member.target)
        if member.kind != "file":
            self._has_links = self._has_links or member.kind == "link"
            return self.table.add(name, member.kind, value=member.target)
        parts = name.split(b"/", 2)
        number = self._number(parts)
        start = -1
        blocks: Iterable[bytes] = ()
        if len(parts) == 2 and is_described(parts[1]):
            self._manifests += 1
            archive.check_tag_files(self._manifests, 0)
            start = self.table.keep(b"")
            blocks = self._kept_blocks(member)
        elif self._names != ():
            blocks = member.blocks()
        value = self._digested(blocks, self._sets[number])
        self._files += 1
        return self.table.add(name, "file", member.size, value, number, start)

    def _take_hard_link(self, name: bytes, target: bytes) -> str | None:
        other, fault = clean_name(target)
        node = self.table.find(other) if fault is None and other else None
        if node is None or node.kind != "file":
            return f"hard link to {quoted(target)}, which is not an earlier file"
        self._used[_is_payload(name.split(b"/", 2))].add(node.algorithms)
        return self.table.add(name, "file", node.size, node.value, node.algorithms, node.start)

    def _number(self, parts: Sequence[bytes]) -> int:
        """Return the number of the set of algorithms for a file, as far as known."""
        payload = _is_payload(parts)
        if self._names is not None:
            names = self._names
        elif not payload:
            if len(parts) == 2:
                self._seen.update(_algorithms([parts[1]]))
            names = tuple(sorted({*USUAL, *self._seen}))
        else:
            if self._of_payload is None:
                self._of_payload = tuple(sorted(self._seen)) or USUAL
            names = self._of_payload
        if names not in self._sets:
            self._sets.append(names)
        number = self._sets.index(names)
        self._used[payload].add(number)
        return number

    def lacking(self) -> tuple[str, ...]:
        """Return all needed algorithms if some digests are missing, otherwise ``()``."""
        if self.top is None:
            return ()
        top = self.table.find(self.top)
        assert top is not None
        needed: tuple[set[str], set[str]] = (set(), set())
        for parts in (split_manifest_name(each) for each, _ in self.table.names(top.id)):
            if parts is not None and (name := official_name(parts[1])) is not None:
                needed[not parts[0]].add(name)
        if self._has_links:  # a file can be both tag file and payload
            needed = (needed[0] | needed[1],) * 2
        for wanted, used in zip(needed, self._used, strict=True):
            if any(not wanted <= set(self._sets[number]) for number in used):
                return tuple(sorted(needed[0] | needed[1]))
        return ()

    def _kept_blocks(self, member: Member) -> Iterator[bytes]:
        for block in member.blocks():
            self._kept += len(block)
            self.table.keep(block)
            yield block

    def _digested(self, blocks: Iterable[bytes], names: Sequence[str]) -> bytes:
        """Return the digests of a file, concatenated; the next block is read while one is hashed."""
        hashers = [ALGORITHMS[name].make(1) for name in names]
        waiting: list[Future[object]] = []
        try:
            for block in blocks:
                for one in waiting:
                    one.result()
                waiting = []
                if self._pool is not None and len(block) >= _WORTH_A_THREAD:
                    waiting = [self._pool.submit(hasher.update, block) for hasher in hashers]
                else:
                    for hasher in hashers:
                        hasher.update(block)
                self._bytes += len(block)
                if self._on_event is not None and monotonic() >= self._next_event:
                    self._next_event = monotonic() + PROGRESS_EVERY
                    self._on_event(Progress(self._files, self._bytes, 0))
        finally:
            for one in waiting:
                one.result()
        return b"".join(bytes.fromhex(hasher.hexdigest()) for hasher in hashers)

    def digests(self, node: Node) -> dict[str, str]:
        """Return the digests of a file by algorithm."""
        found = {}
        at = 0
        for name in self._sets[node.algorithms]:
            size = ALGORITHMS[name].size
            found[name] = node.value[at : at + size].hex()
            at += size
        return found


class _Verifier:
    """Compares the digests of an archive's members with the manifests."""

    def __init__(self, bag: ArchivedBag, members: _Members, report_problems: ReportProblems) -> None:
        self._bag = bag
        self._members = members
        self._report_problems = report_problems

    def run(self, tag_files: TagFiles, matcher: FileMatcher, stack: ExitStack) -> None:
        """Compare the checksums of all listed files, and report mismatches."""
        bag = tag_files.bag
        for match in matcher.matches():
            known = bag.algorithms if match.of_payload else bag.tag_algorithms
            compare_digests(tag_files, match, self._outcome(match, known), self._report_problems)

    def _outcome(self, match: Match, known: Sequence[str]) -> Outcome:
        node = self._bag.file(match.path if match.real is None else match.real)
        digests = {} if node is None else self._members.digests(node)
        if node is None or any(name in known and name not in digests for name in match.digests):
            # A missing digest must not count as a match.
            message = "was not read; please report this bug"
            return Outcome(match.path, None, None, None, None, "io-error", message)
        return Outcome(match.path, digests, node.size, None, None)


def _is_payload(parts: Sequence[bytes]) -> bool:
    return len(parts) == 3 and parts[1] == PAYLOAD
