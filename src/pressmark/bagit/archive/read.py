"""Read the members of an archive into a table, with their digests, and write them below a new directory.

Unpacking is validation with a destination: the digests are those of the bytes that are written. All names are written
below a private directory, and symbolic links are created last, so no member is written through one.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from struct import Struct
from time import monotonic

from pressmark.bagit.archive.digests import DigestChoice, StreamHasher, WaitingStreams, manifest_algorithms
from pressmark.bagit.archive.members import Member, bounded_time, clean_name, why_no_link
from pressmark.bagit.archive.reader import Archive
from pressmark.bagit.archive.table import OCCUPIED, SAME_NAME, MemberTable, Node
from pressmark.bagit.bag_tags import is_described
from pressmark.bagit.bagit_txt import NAME as DECLARATION
from pressmark.bagit.paths import PAYLOAD
from pressmark.bagit.problems import problem
from pressmark.bagit.validation.tag_files import ReportProblems
from pressmark.errors import quoted
from pressmark.fixity.algorithms import ALGORITHMS
from pressmark.fixity.hasher import BY_DESCRIPTOR, KEPT_BITS, NEW, set_times
from pressmark.fixity.outcomes import PROGRESS_EVERY, FileRange, Outcome
from pressmark.fixity.pool import hash_ranges
from pressmark.fs.names import is_junk
from pressmark.reports import ProgressEvent

__all__ = ["Members", "listed_algorithms", "read_members"]

_REMEMBERED = 1024  # directories
_AT_TOP = "not exactly one top-level directory"
_FLAT = "files of the bag are at the top of the archive; pack the directory of the bag"
_SHOWN = 3  # names in a message
# What the table keeps of a directory: its permission bits, and its time in seconds and nanoseconds.
_FACTS = Struct("<HqL")
# Permissions of the owner that a file or directory always has.
_READ, _ENTER = 0o400, 0o700

# A file whose digests are being computed: its name, size, algorithms by number, and offset among the kept tag files.
_File = tuple[bytes, int, int, int]


def read_members(
    archive: Archive,
    table: MemberTable,
    hasher: StreamHasher,
    *,
    algorithms: tuple[str, ...] | None = None,
    into: bytes | None = None,
    threads: int | None = None,
    report_problems: ReportProblems,
    on_event: Callable[[ProgressEvent], object] | None = None,
) -> Members:
    """Read all members of an archive.

    Their digests are known afterwards, or else the offsets of their contents, if these are stored as they are and not
    written. Members that cannot be unpacked are reported.

    :param table: receives the members and, unless they are written, the content of the tag files that the draft
        describes
    :param algorithms: those of the manifests; :data:`None` if they are not known yet. Without any, only tag files
        are read
    :param into: path of a new directory, which receives the content of the top-level directory
    :param threads: number of threads that read members of zip files; :data:`None` for one per core
    :param on_event: called with :class:`~pressmark.reports.ProgressEvent` of the stage
    :raises ArchiveError: the archive is damaged, or exceeds a limit
    :raises BagError: it cannot be read
    :raises OSError: a file cannot be written
    """
    members = Members(archive, table, hasher, algorithms, into, report_problems, on_event)
    members.read(threads)
    return members


def listed_algorithms(archive: Archive) -> tuple[str, ...]:
    """Return the algorithms of the manifests of a seekable archive; raises the errors of :meth:`Archive.members`."""
    names = archive.zip_names() if archive.format == "zip" else (member.name for member in archive.members())
    listed = (clean_name(name)[0].split(b"/") for name in names)
    return manifest_algorithms(parts[1] for parts in listed if len(parts) == 2)


class Members:
    """The members of an archive; :func:`read_members` returns them.

    :ivar top: the top-level directory; :data:`None` if there is not exactly one
    """

    def __init__(
        self,
        archive: Archive,
        table: MemberTable,
        hasher: StreamHasher,
        algorithms: tuple[str, ...] | None,
        into: bytes | None,
        report_problems: ReportProblems,
        on_event: Callable[[ProgressEvent], object] | None,
    ) -> None:
        self.top: bytes | None = None
        self._archive = archive
        self._table = table
        self._hasher = hasher
        self._algorithms = algorithms
        self._into = into
        self._allowed = 0
        self._report_problems = report_problems
        self._on_event = on_event
        self._next_event = monotonic() + PROGRESS_EVERY
        self._choice = DigestChoice(algorithms, is_pipe=archive.is_pipe)
        # Sets of algorithms by number in the table.
        self._sets: list[tuple[str, ...]] = [()]
        self._waiting = WaitingStreams[_File]()
        # Members of zip files whose content other threads read.
        self._ranges: deque[tuple[_File, Member]] = deque()
        self._directories: set[bytes] = set()
        self._files = self._bytes = 0
        self._described = self._kept = 0  # files that the draft describes, and their bytes
        self._is_faulty = False
        self._tops: list[bytes] = []  # further names beside the top-level directory
        self._is_flat = False
        self._junk = 0  # members of an operating system beside it
        self._first_junk = b""

    def read(self, threads: int | None) -> None:
        """Read the archive; see :func:`read_members`."""
        if self._into is not None:
            os.mkdir(self._into)
            # No member has more permissions than a new directory has here.
            self._allowed = os.stat(self._into).st_mode & KEPT_BITS
        if self._archive.format == "zip" and self._algorithms and self._into is None and self._archive.descriptor >= 0:
            read = hash_ranges(
                self._archive.descriptor, self._take_all(), self._algorithms, threads, checksums=["crc32"]
            )
            with closing(read) as outcomes:
                for outcome in outcomes:
                    self._add_range(*self._ranges.popleft(), outcome)
        else:
            deque(self._take_all(), 0)
        self._record(self._waiting.rest())
        # The limit depends on the number of members.
        self._archive.check_tag_files(self._described, self._kept)
        if self._into is not None and not self._is_faulty:
            self._make_links()
            self._finish_directories()
        if self._archive.extra:
            message = f"{self._archive.extra} bytes after the end of the archive"
            self._report_problems([problem("archive-extra", b"", message)])
        if not self._archive.is_terminated:
            self._report_problems([problem("archive-unterminated", b"")])
        if self._junk:
            what = "member" if self._junk == 1 else "members"
            message = (
                f"{self._junk} {what} that an operating system added beside the bag, such as {quoted(self._first_junk)}"
            )
            self._report_problems([problem("archive-junk", b"", message)])
        if self.top is None or self._tops:
            self._report_problems([problem("archive-malformed", b"", self._why_no_top())])
            self.top = None
        self._report_progress()

    def _why_no_top(self) -> str:
        if self._is_flat:
            return _FLAT
        names = [*([] if self.top is None else [self.top]), *self._tops]
        if not names:
            return f"{_AT_TOP}: the archive is empty"
        return f"{_AT_TOP}: {', '.join(map(quoted, names[:_SHOWN]))}; pack the directory of the bag only"

    # --- members ------------------------------------------------------------------------------------------------------

    def _take_all(self) -> Iterator[FileRange]:
        """Take all members, and yield the contents that other threads read."""
        for member in self._archive.members():
            self._report_if_due()
            name, fault = clean_name(member.name, member.kind)
            if not name and fault is None:
                if member.kind == "directory":
                    continue
                fault = "name of the top-level directory"
            found = fault or self._take(name, member)
            if isinstance(found, str):
                self._report_fault(member.name, found)
            elif found is not None:
                yield found

    def _take(self, name: bytes, member: Member) -> FileRange | str | None:
        """Take a member; return a content to be read, or why the member cannot be unpacked."""
        parts = name.split(b"/", 2)
        is_directory = len(parts) > 1 or member.kind == "directory"
        if parts[0] != self.top and member.kind in ("file", "directory") and is_junk(parts[0], directory=is_directory):
            self._first_junk = self._first_junk or name
            self._junk += 1
            return None
        if self.top is None and is_directory:
            self.top = parts[0]
        if parts[0] != self.top or not is_directory:
            self._is_flat |= parts == [DECLARATION]
            if parts[0] not in self._tops and len(self._tops) < _SHOWN:
                self._tops.append(parts[0])
            return None
        try:
            if member.kind == "directory":
                if self._into is not None:
                    self._make_directory(name)
                mode, mtime_ns = member.facts()
                facts = _FACTS.pack(mode & KEPT_BITS | _ENTER, *divmod(bounded_time(mtime_ns), 10**9))
                return self._table.add(name, "directory", value=facts)
            if self._into is not None:
                self._make_directory(name.rpartition(b"/")[0])
            if member.kind == "file":
                return self._take_file(name, parts, member)
            if member.kind == "hardlink":
                return self._take_hard_link(name, member.target)
        except FileExistsError:
            return SAME_NAME
        except NotADirectoryError:
            return OCCUPIED
        if member.kind == "link":
            self._choice.has_links = True
            return why_no_link(member.target) or self._table.add(name, "link", value=member.target)
        if self._into is not None:  # the directory will not show it
            self._report_problems([problem("file-special", name.partition(b"/")[2])])
        return self._table.add(name, "special")

    def _take_file(self, name: bytes, parts: list[bytes], member: Member) -> FileRange | str | None:
        kept = len(parts) == 2 and is_described(parts[1])
        if kept:
            self._choice.add_tag_file(parts[1])
            self._described += 1
            self._archive.check_tag_files(self._described, 0)
        start = self._table.keep(b"") if kept and self._into is None else -1
        is_read_later = member.offset >= 0 and self._into is None
        number = 0
        if not is_read_later or (member.crc is not None and self._algorithms):
            number = self._number(len(parts) == 3 and parts[1] == PAYLOAD)
        file = name, member.size, number, start
        stream = self._hasher.stream(() if is_read_later else self._sets[number])
        if kept or self._into is not None or (self._algorithms != () and not is_read_later):
            for block in self._blocks(name, member):
                stream.update(block)
                if start >= 0:
                    self._table.keep(block)
                self._kept += len(block) if kept else 0
        if not is_read_later:
            self._record(self._waiting.add(file, member.size, stream))
            return None
        if member.crc is None or not self._algorithms:
            return self._table.add(name, "file", member.size, start=start, offset=member.offset)
        self._ranges.append((file, member))
        return FileRange(member.offset, member.size)

    def _blocks(self, name: bytes, member: Member) -> Iterator[bytes]:
        """Yield the content of a file, and write it with its time and permission bits."""
        place, descriptor, mtime_ns = b"", -1, 0
        if self._into is not None:
            mode, mtime_ns = member.facts()
            place = self._place(name)
            descriptor = os.open(place, NEW, mode & KEPT_BITS | _READ)
        try:
            for block in member.blocks():
                yield block
                left = memoryview(block)
                while left and descriptor >= 0:
                    left = left[os.write(descriptor, left) :]
                self._bytes += len(block)
                self._report_if_due()
            if descriptor >= 0:
                mtime_ns = bounded_time(mtime_ns)
                set_times(descriptor if BY_DESCRIPTOR else place, mtime_ns, mtime_ns)
        finally:
            if descriptor >= 0:
                os.close(descriptor)

    def _take_hard_link(self, name: bytes, target: bytes) -> str | None:
        other, fault = clean_name(target, "file")
        node = self._table.find(other) if fault is None and other else None
        if node is None and fault is None and other:
            self._record(self._waiting.rest())
            node = self._table.find(other)
        if node is None or node.kind != "file":
            return f"hard link to {quoted(target)}, which is not an earlier file"
        if self._into is not None:
            os.link(self._place(other), self._place(name))
        if node.offset < 0:
            self._choice.use(_is_payload(name), self._sets[node.algorithms])
        return self._table.add(name, "file", node.size, node.value, node.algorithms, node.start, node.offset)

    def _report_fault(self, name: bytes, fault: str) -> None:
        """Report that a member cannot be unpacked."""
        self._is_faulty = True
        self._report_problems([problem("archive-member", b"", f"{quoted(name)}: {fault}")])

    # --- the directory ------------------------------------------------------------------------------------------------

    def _place(self, name: bytes) -> bytes:
        """Return the path to write a member to."""
        assert self._into is not None
        _, _, below = name.partition(b"/")
        return os.path.join(self._into, below) if below else self._into

    def _make_directory(self, name: bytes) -> None:
        if name in self._directories:
            return
        if len(self._directories) >= _REMEMBERED:
            self._directories.clear()
        missing = [name]
        while (above := missing[-1].rpartition(b"/")[0]) and above not in self._directories:
            missing.append(above)
        for directory in reversed(missing):
            try:
                os.mkdir(self._place(directory))
            except FileExistsError as error:
                if not os.path.isdir(self._place(directory)):
                    raise NotADirectoryError(*error.args) from None
            self._directories.add(directory)

    def _make_links(self) -> None:
        for name, target in self._table.values("link"):
            try:
                os.symlink(target, self._place(name))
            except FileExistsError:
                self._report_fault(name, SAME_NAME)

    def _finish_directories(self) -> None:
        """Set times and permission bits of directories, once all members are in them."""
        for name, facts in self._table.values("directory") if not self._is_faulty else ():
            if facts:
                mode, seconds, rest = _FACTS.unpack(facts)
                place, mtime_ns = self._place(name), seconds * 10**9 + rest
                now = stat.S_IMODE(os.stat(place).st_mode)
                with suppress(PermissionError, NotImplementedError):  # not supported by all file systems
                    os.chmod(place, now & ~KEPT_BITS | mode & self._allowed)
                set_times(place, mtime_ns, mtime_ns)

    # --- digests ------------------------------------------------------------------------------------------------------

    def _number(self, is_payload: bool) -> int:
        """Return the number of the set of algorithms for a file, as far as known."""
        names = self._choice.algorithms(is_payload)
        if names not in self._sets:
            self._sets.append(names)
        return self._sets.index(names)

    def _record(self, streams: Iterable[tuple[_File, dict[str, str]]]) -> None:
        """Add files to the table, and report those that cannot be unpacked together with the others."""
        for (name, size, number, start), digests in streams:
            value = bytes.fromhex("".join([digests[one] for one in self._sets[number]]))
            self._files += 1
            fault = self._table.add(name, "file", size, value, number, start)
            if fault is not None:
                self._report_fault(name, fault)

    def _add_range(self, file: _File, member: Member, outcome: Outcome) -> None:
        """Add a file whose content another thread has read."""
        if outcome.digests is None:
            self._archive.damaged(f"content of a member: {outcome.message}")
        if int(outcome.digests["crc32"], 16) != member.crc:
            self._archive.damaged("CRC mismatch of a member")
        self._record([(file, outcome.digests)])

    def lacking(self) -> tuple[str, ...]:
        """Return all needed algorithms if some digests are missing, otherwise ``()``."""
        top = None if self.top is None else self._table.find(self.top)
        return () if top is None else self._choice.lacking(name for name, _ in self._table.names(top.id))

    def digests(self, node: Node) -> dict[str, str]:
        """Return the digests of a file by algorithm."""
        found = {}
        at = 0
        for name in self._sets[node.algorithms]:
            size = ALGORITHMS[name].size
            found[name] = node.value[at : at + size].hex()
            at += size
        return found

    # --- progress -----------------------------------------------------------------------------------------------------

    @property
    def progress(self) -> ProgressEvent:
        """Number of files with digests, and of bytes that were read for them."""
        # Zip files are not read from begin to end.
        is_unpacked_zip = self._into is not None and self._archive.format == "zip"
        return ProgressEvent(items=self._files, bytes=self._bytes if is_unpacked_zip else self._archive.position)

    def _report_if_due(self) -> None:
        if self._on_event is not None and monotonic() >= self._next_event:
            self._report_progress()

    def _report_progress(self) -> None:
        self._next_event = monotonic() + PROGRESS_EVERY
        if self._on_event is not None:
            self._on_event(self.progress)


def _is_payload(name: bytes) -> bool:
    parts = name.split(b"/", 2)
    return len(parts) == 3 and parts[1] == PAYLOAD
