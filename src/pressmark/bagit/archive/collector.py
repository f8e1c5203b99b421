"""Read the members of an archive into a table, with their digests or the offsets of their contents."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing
from itertools import islice
from time import monotonic

from pressmark.bagit.archive.digest_choice import DigestChoice
from pressmark.bagit.archive.members import Member, clean_name, why_no_link
from pressmark.bagit.archive.reader import Archive
from pressmark.bagit.archive.table import MemberTable, Node
from pressmark.bagit.bag_tags import is_described
from pressmark.bagit.paths import PAYLOAD
from pressmark.bagit.problems import problem
from pressmark.bagit.validation.tag_files import ReportProblems
from pressmark.errors import quoted
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.hasher import FileRange
from pressmark.fixity.outcomes import PROGRESS_EVERY, Outcome
from pressmark.fixity.pool import hash_ranges
from pressmark.reports import Progress
from pressmark.threads import Threads

__all__ = ["MemberCollector"]

# Smaller blocks are hashed in the calling thread.
_WORTH_A_THREAD = 64 << 10


class MemberCollector:
    """The members of an archive: digests of those that are read, offsets of those that are stored as they are.

    :param names: the algorithms; :data:`None` if they are not known yet
    :param pool: computes digests
    :param threads: number of threads that read members of zip files; :data:`None` for one per core
    :ivar top: the only top-level directory; :data:`None` if there is not exactly one
    :ivar progress: number of files with digests, and of bytes of the archive that were read for them
    """

    def __init__(
        self,
        table: MemberTable,
        names: tuple[str, ...] | None,
        pool: Threads | None = None,
        on_event: Callable[[Progress], object] | None = None,
        threads: int | None = None,
    ) -> None:
        self.table = table
        self._threads = threads
        self.top: bytes | None = None
        self._names = names
        self._pool = pool
        self._on_event = on_event
        self._next_event = monotonic() + PROGRESS_EVERY
        self.progress = Progress()
        self._manifests = self._kept = 0  # files that were kept, and their bytes
        self._choice = DigestChoice(names)
        # Sets of algorithms by number in the table.
        self._sets: list[tuple[str, ...]] = [()]

    def collect(self, archive: Archive, report_problems: ReportProblems) -> None:
        """Add all members, and report those that cannot be unpacked.

        :raises ArchiveError: the archive is damaged, or exceeds a limit
        """
        self._choice = DigestChoice(self._names, is_pipe=archive.is_pipe)
        # Members of zip files whose content other threads read.
        waiting: deque[tuple[bytes, Member, int]] = deque()

        def check(member: Member, fault: str | None) -> None:
            if fault is not None:
                report_problems([problem("archive-member", b"", f"{quoted(member.name)}: {fault}")])

        def ranges() -> Iterator[FileRange]:
            for member in archive.members():
                self._report_progress(archive)
                name, fault = clean_name(member.name, member.kind)
                if not name and fault is None and member.kind == "directory":
                    continue
                if fault is None and not name:
                    fault = "name of the top-level directory"
                if fault is None and member.crc is not None and self._names:
                    waiting.append((name, member, self._kept_content(archive, name, member)))
                    yield FileRange(member.offset, member.size)
                else:
                    check(member, fault or self._take(archive, name, member))

        if archive.format == "zip" and self._names:
            read = hash_ranges(archive.descriptor, ranges(), self._names, self._threads, checksums=["crc32"])
            with closing(read) as outcomes:
                for outcome in outcomes:
                    name, member, start = waiting.popleft()
                    check(member, self._take_read(archive, name, member, start, outcome))
        else:
            deque(ranges(), 0)
        # The limit depends on the number of members.
        archive.check_tag_files(self._manifests, self._kept)
        tops = list(islice(self.table.names(), 2))
        self.top = tops[0][0] if len(tops) == 1 and tops[0][1].kind == "directory" else None

    def _take(self, archive: Archive, name: bytes, member: Member) -> str | None:
        """Add a member; return why it cannot be unpacked, or :data:`None`."""
        if member.kind == "hardlink":
            return self._take_hard_link(name, member.target)
        if member.kind == "link" and (fault := why_no_link(member.target)) is not None:
            return fault
        if member.kind != "file":
            self._choice.has_links |= member.kind == "link"
            return self.table.add(name, member.kind, value=member.target)
        parts = name.split(b"/", 2)
        if member.offset >= 0:
            start = self._kept_content(archive, name, member)
            return self.table.add(name, "file", member.size, start=start, offset=member.offset)
        start = -1
        blocks: Iterable[bytes] = ()
        if len(parts) == 2 and is_described(parts[1]):
            start = self._begin_tag_file(archive, parts[1])
            blocks = self._kept_blocks(member)
        elif self._names != ():
            blocks = member.blocks()
        number = self._number(_is_payload(parts))
        value = self._digested(archive, blocks, self._sets[number])
        return self.table.add(name, "file", member.size, value, number, start)

    def _take_read(self, archive: Archive, name: bytes, member: Member, start: int, outcome: Outcome) -> str | None:
        """Add a member that was read; return why it cannot be unpacked, or :data:`None`."""
        if outcome.digests is None:
            archive.damaged(f"content of a member: {outcome.message}")
        if int(outcome.digests["crc32"], 16) != member.crc:
            archive.damaged("CRC mismatch of a member")
        number = self._number(_is_payload(name.split(b"/", 2)))
        value = b"".join(bytes.fromhex(outcome.digests[one]) for one in self._sets[number])
        self.progress = Progress(items=self.progress.items + 1, bytes=archive.position)
        return self.table.add(name, "file", member.size, value, number, start)

    def _begin_tag_file(self, archive: Archive, name: bytes) -> int:
        """Return the offset of the content of a tag file that is kept."""
        self._choice.add_tag_file(name)
        self._manifests += 1
        archive.check_tag_files(self._manifests, 0)
        return self.table.keep(b"")

    def _kept_content(self, archive: Archive, name: bytes, member: Member) -> int:
        """Keep the content of a tag file, and return its offset; -1 for other files."""
        parts = name.split(b"/", 2)
        if len(parts) != 2 or not is_described(parts[1]):
            return -1
        start = self._begin_tag_file(archive, parts[1])
        deque(self._kept_blocks(member), 0)
        return start

    def _take_hard_link(self, name: bytes, target: bytes) -> str | None:
        other, fault = clean_name(target, "file")
        node = self.table.find(other) if fault is None and other else None
        if node is None or node.kind != "file":
            return f"hard link to {quoted(target)}, which is not an earlier file"
        if node.offset < 0:
            self._choice.use(_is_payload(name.split(b"/", 2)), self._sets[node.algorithms])
        return self.table.add(name, "file", node.size, node.value, node.algorithms, node.start, node.offset)

    def _number(self, payload: bool) -> int:
        """Return the number of the set of algorithms for a file, as far as known."""
        names = self._choice.algorithms(payload)
        if names not in self._sets:
            self._sets.append(names)
        return self._sets.index(names)

    def lacking(self) -> tuple[str, ...]:
        """Return all needed algorithms if some digests are missing, otherwise ``()``."""
        if self.top is None:
            return ()
        top = self.table.find(self.top)
        assert top is not None
        return self._choice.lacking(name for name, _ in self.table.names(top.id))

    def _kept_blocks(self, member: Member) -> Iterator[bytes]:
        for block in member.blocks():
            self._kept += len(block)
            self.table.keep(block)
            yield block

    def _digested(self, archive: Archive, blocks: Iterable[bytes], names: Sequence[str]) -> bytes:
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
                self._report_progress(archive)
        finally:
            for one in waiting:
                one.result()
        self.progress = Progress(items=self.progress.items + 1, bytes=archive.position)
        return b"".join(bytes.fromhex(hasher.hexdigest()) for hasher in hashers)

    def _report_progress(self, archive: Archive) -> None:
        if self._on_event is not None and monotonic() >= self._next_event:
            self._next_event = monotonic() + PROGRESS_EVERY
            self._on_event(self.progress._replace(bytes=archive.position))

    def digests(self, node: Node) -> dict[str, str]:
        """Return the digests of a file by algorithm."""
        found = {}
        at = 0
        for name in self._sets[node.algorithms]:
            size = ALGORITHMS[name].size
            found[name] = node.value[at : at + size].hex()
            at += size
        return found


def _is_payload(parts: Sequence[bytes]) -> bool:
    return len(parts) == 3 and parts[1] == PAYLOAD
