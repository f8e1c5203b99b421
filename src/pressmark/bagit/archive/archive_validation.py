"""The validation of a serialised bag, from a stream of its members: nothing is unpacked.

One pass reads the members, hashes them and keeps the tag files; then the validation of directories goes over the table
that this gives. Which algorithms are needed the manifests' names say. In zip and plain tar files the names are listed
first, which costs nothing; in a compressed tar file payload that comes before every manifest is hashed with the usual
algorithms, and where those were not all that are needed, a second pass reads the archive again.
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
from pressmark.bagit.problems import problem
from pressmark.bagit.report import KEEP, BagReport
from pressmark.bagit.validation.payload import FileMatcher, Match
from pressmark.bagit.validation.tag_files import ReportProblems, TagFiles
from pressmark.bagit.validation.validate import LEVELS, check_files, compare_digests
from pressmark.errors import ArchiveError, quoted
from pressmark.fixity import Outcome, Progress
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.pool import PROGRESS_EVERY, Event
from pressmark.reports import Problem

__all__ = ["validate_archive"]

# Of nearly all bags: what payload is hashed with when no manifest has come yet.
USUAL = ("md5", "sha1", "sha256", "sha512")
# A block of this size is worth handing to a thread.
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
    """Check a serialised bag, and report all that is wrong with it in one run; nothing is unpacked.

    The verdict is that of the unpacked bag, and besides the archive itself is checked: its checksums, its end, and that
    each of its members can be unpacked beside the others. Paths are relative to the bag's directory in the archive.

    :param path: a zip, tar or compressed tar file with one directory at its top
    :param level: as of :func:`pressmark.bagit.validate`; the checksums of the archive are only verified by ``"full"``
    :param lenient: take blank lines in manifests and in fetch.txt for warnings
    :param threads: how many threads compute digests; :data:`None` or 0 for some, 1 for none besides this
    :param limits: what an archive may ask for
    :param keep: how many problems the report keeps; all are counted, and given to ``on_problem``
    :param on_event: called with :class:`pressmark.fixity.Progress`
    :param on_problem: called with each problem as it is found
    :raises BagError: the operating system refuses to open or read the archive
    :raises SpillError: a temporary file cannot be written or read
    :raises ValueError: another argument is wrong
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
                report_problems(
                    [problem("file-changing", b"", "the archive changed while it was read; check it again")]
                )
            else:
                report_problems([problem(error.kind, b"", error.reason)])
            return report
        if archive.has_changed():
            report_problems([problem("file-changing", b"", "the archive changed while it was read; check it again")])
        if archive.extra:
            message = f"{archive.extra} bytes before or behind the archive belong to no member"
            report_problems([problem("archive-extra", b"", message)])
        if members.top is None:
            message = "there is not exactly one directory at its top; pack the bag's directory itself, and nothing else"
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
    """Read the archive, so that all digests are there that the manifests need."""
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
        members.collect(archive, lambda _problems: None)  # they were reported
    return members


def _algorithms(names: Iterable[bytes]) -> tuple[str, ...]:
    """Return the algorithms of those names that are manifests'."""
    found = {official_name(parts[1]) for parts in map(split_manifest_name, names) if parts is not None}
    return tuple(sorted(name for name in found if name is not None))


class _Members:
    """The members of an archive with their digests.

    :param names: of the algorithms; :data:`None` where they are not known yet
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
        # Of manifests that have come, while the algorithms are not known.
        self._seen: set[str] = set()
        self._of_payload: tuple[str, ...] | None = None
        # Sets of algorithms by their numbers in the table, and which of them tag files and payload files have.
        self._sets: list[tuple[str, ...]] = []
        self._used: tuple[set[int], set[int]] = (set(), set())
        self._has_links = False

    def collect(self, archive: Archive, report_problems: ReportProblems) -> None:
        """Take in all members, and say which cannot be unpacked.

        :raises ArchiveError: the archive is damaged, or exceeds a limit
        """
        for member in archive.members():
            name, fault = clean_name(member.name)
            if not name and fault is None and member.kind == "directory":
                continue
            if fault is None:
                fault = "it is the directory that holds everything" if not name else self._take(archive, name, member)
            if fault is not None:
                report_problems([problem("archive-member", b"", f"{quoted(member.name)}: {fault}")])
        # Only now is it known how many files they may list.
        archive.check_tag_files(self._manifests, self._kept)
        tops = list(islice(self.table.names(), 2))
        self.top = tops[0][0] if len(tops) == 1 and tops[0][1].kind == "directory" else None

    def _take(self, archive: Archive, name: bytes, member: Member) -> str | None:
        """Take in one member, and return why it cannot be unpacked."""
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
            return f"a hard link to {quoted(target)}, which is no file before it"
        self._used[_is_payload(name.split(b"/", 2))].add(node.algorithms)
        return self.table.add(name, "file", node.size, node.value, node.algorithms, node.start)

    def _number(self, parts: Sequence[bytes]) -> int:
        """Return the number of the set of algorithms that a file needs, as far as is known yet."""
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
        """Return the algorithms that the manifests need, where some digests are lacking; none where all are there."""
        if self.top is None:
            return ()
        top = self.table.find(self.top)
        assert top is not None
        needed: tuple[set[str], set[str]] = (set(), set())
        for parts in (split_manifest_name(each) for each, _ in self.table.names(top.id)):
            if parts is not None and (name := official_name(parts[1])) is not None:
                needed[not parts[0]].add(name)
        if self._has_links:  # one file may be of both
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
        """Return the digests of a content, one after another; the next block is read while one is hashed."""
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
        """Return the digests of a file by the names of their algorithms."""
        found = {}
        at = 0
        for name in self._sets[node.algorithms]:
            size = ALGORITHMS[name].size
            found[name] = node.value[at : at + size].hex()
            at += size
        return found


class _Verifier:
    """The comparison of the digests of an archive's members with the manifests."""

    def __init__(self, bag: ArchivedBag, members: _Members, report_problems: ReportProblems) -> None:
        self._bag = bag
        self._members = members
        self._report_problems = report_problems

    def run(self, tag_files: TagFiles, matcher: FileMatcher, stack: ExitStack) -> None:
        """Compare the checksums of all files that are listed, and say which do not have theirs."""
        bag = tag_files.bag
        for match in matcher.matches():
            known = bag.algorithms if match.of_payload else bag.tag_algorithms
            compare_digests(tag_files, match, self._outcome(match, known), self._report_problems)

    def _outcome(self, match: Match, known: Sequence[str]) -> Outcome:
        node = self._bag.file(match.path if match.real is None else match.real)
        digests = {} if node is None else self._members.digests(node)
        if node is None or any(name in known and name not in digests for name in match.digests):
            # Nothing may pass for right because nobody looked.
            message = "it was not read; report this as a defect"
            return Outcome(match.path, None, None, None, None, "io-error", message)
        return Outcome(match.path, digests, node.size, None, None)


def _is_payload(parts: Sequence[bytes]) -> bool:
    return len(parts) == 3 and parts[1] == PAYLOAD
