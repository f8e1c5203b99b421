"""Unpack a bag from an archive, as a whole or not at all. The bag is validated by the bytes that are written.

::

    .pressmark-….tmp/       the name depends on the destination only, so the next run finds it
    ├── lock                held during a run
    └── bag/                the members of the archive

All names are written below a new private directory. Symbolic links are created last, so no member is written through
one. Then the directory is validated with the digests of its files, flushed, and renamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from time import monotonic

from pressmark.bagit.archive.digest_choice import DigestChoice, manifest_algorithms
from pressmark.bagit.archive.members import Limits, Member, clean_name, why_no_link
from pressmark.bagit.archive.reader import Archive, open_archive
from pressmark.bagit.archive.table import MemberTable
from pressmark.bagit.bag import Bag
from pressmark.bagit.bag_directory import BagDirectory
from pressmark.bagit.bag_tags import is_described
from pressmark.bagit.changes import Listener, with_stages
from pressmark.bagit.changes.destination import (
    checked_destination,
    empty_staging,
    flush_staging,
    publish,
    refuse_existing,
    staging_of,
)
from pressmark.bagit.creation.options import Path
from pressmark.bagit.packing.bag_verdict import Verdict
from pressmark.bagit.packing.stream_hasher import StreamHasher, WaitingStreams
from pressmark.bagit.paths import PAYLOAD, archive_ending
from pressmark.bagit.problems import BagReport, problem
from pressmark.bagit.validation.bag_check import Verifier, check_files
from pressmark.bagit.validation.payload import Match
from pressmark.bagit.validation.tag_files import TagFiles
from pressmark.bagit.validation.validate import validate
from pressmark.errors import ArchiveError, BagError, quoted
from pressmark.fixity.outcomes import PROGRESS_EVERY, Outcome
from pressmark.fs.disk_queue import DiskQueue
from pressmark.reports import Progress
from pressmark.threads import Threads, resolve_threads

__all__ = ["unpack", "unpack_bag"]

_BAG = b"bag"
_NEW = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
)
_SAME_NAME = "another member has the same name"
_REMEMBERED = 1024  # directories


def unpack(
    file: Path,
    directory: Path | None = None,
    *,
    threads: int | None = None,
    limits: Limits = Limits(),  # noqa: B008, immutable
    on_event: Listener | None = None,
) -> Bag:
    """Unpack a bag from an archive, and return it. The archive is not changed.

    The bag is validated while it is unpacked, by the bytes that are written. It appears in ``directory`` if it is
    valid, or if only files that fetch.txt lists are missing; otherwise, nothing does. Modes, owners and times of the
    members are not restored.

    :param file: a zip, tar or compressed tar file with one top-level directory
    :param directory: the base directory of the bag, which does not exist yet; default: the path of the archive without
        its ending
    :param threads: number of threads that compute digests; :data:`None` or 0 for one per core
    :param limits: limits for reading the archive
    :param on_event: called with the events of :mod:`pressmark.bagit.changes`
    :raises BagInvalidError: the bag or the archive is not valid; nothing was unpacked
    :raises BagError: the archive cannot be read, or the bag cannot be written
    """
    path = os.fsencode(file)
    if directory is None:
        ending = archive_ending(path)
        if ending is None:
            raise BagError(path, "cannot derive the name of the bag from this name; specify a directory")
        directory = path[: -len(ending)]
    destination = os.fsencode(directory)
    unpack_bag(path, destination, threads, limits, on_event)
    return Bag.open(destination)


def unpack_bag(
    path: bytes, destination: bytes, threads: int | None, limits: Limits, on_event: Listener | None
) -> BagReport:
    """Unpack the bag in the archive at ``path``, and return the report of the validation; see :func:`unpack`."""
    on_event = with_stages(on_event)
    count = resolve_threads(threads)
    place = checked_destination(destination)
    verdict = Verdict(on_event)
    with ExitStack() as stack:
        archive = stack.enter_context(open_archive(path, limits))
        hidden = stack.enter_context(staging_of(place, (_BAG,), "nothing was unpacked"))
        refuse_existing(place)
        empty_staging(hidden, (_BAG,))
        bag = os.path.join(hidden.inside, _BAG)
        pool = stack.enter_context(Threads(count, "pressmark-digests")) if count > 1 else None
        table = stack.enter_context(MemberTable(archive))
        unpacker = _Unpacker(archive, table, bag, StreamHasher(pool), verdict, on_event)
        on_event(Progress("unpack", of_bytes=None if archive.format == "zip" else archive.size))
        try:
            unpacker.run()
        except ArchiveError as error:
            if archive.has_changed():
                verdict.add([problem("file-changing", b"", "archive changed while it was read; unpack it again")])
            verdict.add([problem(error.kind, b"", error.reason)])
        verdict.raise_if_invalid(path, "nothing was unpacked")
        _validate(bag, unpacker, verdict, count, on_event)
        verdict.raise_if_invalid(path, "nothing was unpacked")
        on_event(Progress("move"))
        flush_staging(hidden)
        publish(hidden, _BAG, place, "bag")
    return verdict.report


def _validate(bag: bytes, unpacker: _Unpacker, verdict: Verdict, threads: int, on_event: Listener) -> None:
    """Validate the unpacked bag with the digests of what was written, or read it again if they are not enough."""
    if unpacker.is_sufficient(os.listdir(bag)):
        with BagDirectory(bag) as base:
            check_files(base, verdict.report, verdict.add, _Verifier(unpacker, verdict))
        return
    on_event(Progress("hash"))
    report = validate(bag, threads=threads, keep=0, on_event=on_event, on_problem=lambda found: verdict.add([found]))
    verdict.report.counts.update(report.counts)


class _Verifier(Verifier[Outcome]):
    """Compares the digests of the bytes that were written with the manifests."""

    def __init__(self, unpacker: _Unpacker, verdict: Verdict) -> None:
        super().__init__(None, verdict.add)
        self._unpacker = unpacker

    def begin(self, tag_files: TagFiles, stack: ExitStack) -> tuple[str, ...]:
        self._needed = tag_files.bag.algorithms, tag_files.bag.tag_algorithms
        return tag_files.bag.algorithms

    def source(self, match: Match) -> Outcome:
        digests = self._unpacker.digests(match.path if match.real is None else match.real)
        needed = self._needed[not match.of_payload]
        if any(name in needed and name not in digests for name in match.digests):
            # A missing digest must not count as a match.
            message = "was not read; please report this bug"
            return Outcome(match.path, None, None, None, None, "io-error", message)
        return Outcome(match.path, digests, None, None, None)

    def hashed(self, sources: Iterator[Outcome], names: tuple[str, ...], of_payload: bool) -> Iterator[Outcome]:
        return sources


class _Unpacker:
    """Writes the members of an archive.

    :param bag: path of the new base directory
    """

    def __init__(
        self,
        archive: Archive,
        table: MemberTable,
        bag: bytes,
        hasher: StreamHasher,
        verdict: Verdict,
        on_event: Listener,
    ) -> None:
        self._archive = archive
        self._table = table
        self._bag = bag
        self._hasher = hasher
        self._verdict = verdict
        self._on_event = on_event
        self._next_event = monotonic() + PROGRESS_EVERY
        self._top: bytes | None = None
        self._directories: set[bytes] = set()
        self._waiting = WaitingStreams[tuple[bytes, int]]()
        self._files = self._bytes = 0
        self._manifests = self._kept = 0  # files that the validation reads, and their bytes
        self._choice = DigestChoice(None)

    def run(self) -> None:
        """Write all members, and report those that cannot be unpacked.

        :raises ArchiveError: the archive is damaged, or exceeds a limit
        :raises OSError: a file cannot be written
        """
        if self._archive.seekable:
            is_zip = self._archive.format == "zip"
            names = self._archive.zip_names() if is_zip else (member.name for member in self._archive.members())
            listed = (clean_name(name)[0].split(b"/") for name in names)
            self._choice = DigestChoice(manifest_algorithms(parts[1] for parts in listed if len(parts) == 2))
        os.mkdir(self._bag)
        with DiskQueue[tuple[bytes, bytes]]() as links:
            for member in self._archive.members():
                name, fault = clean_name(member.name, member.kind)
                if not name and fault is None and member.kind == "directory":
                    continue
                if fault is None:
                    fault = self._take(name, member, links)
                if fault is not None:
                    self._verdict.add([problem("archive-member", b"", f"{quoted(member.name)}: {fault}")])
            self._record(self._waiting.rest())
            self._archive.check_tag_files(self._manifests, self._kept)
            if self._top is None:
                self._verdict.add([problem("archive-malformed", b"", "no top-level directory")])
            for name, target in links:
                if not self._verdict.is_invalid:
                    os.symlink(target, self._place(name))
        if self._archive.has_changed():
            self._verdict.add([problem("file-changing", b"", "archive changed while it was read; unpack it again")])
        if self._archive.extra:
            message = f"{self._archive.extra} bytes before, between or after the members belong to none of them"
            self._verdict.add([problem("archive-extra", b"", message)])
        self._report_progress()

    def _place(self, name: bytes) -> bytes:
        """Return the path to write a member to."""
        _, _, below = name.partition(b"/")
        return os.path.join(self._bag, below) if below else self._bag

    def _take(self, name: bytes, member: Member, links: DiskQueue[tuple[bytes, bytes]]) -> str | None:
        """Write a member; return why it cannot be unpacked, or :data:`None`."""
        top = name.partition(b"/")[0]
        self._top = self._top or top
        if not name or top != self._top or (name == top and member.kind != "directory"):
            return "not in the single top-level directory; pack the directory of the bag only"
        try:
            if member.kind == "directory":
                fault = self._table.add(name, "directory")
                if fault is None:
                    self._make_directory(name)
                return fault
            if member.kind == "link":
                if (fault := why_no_link(member.target)) is not None:
                    return fault
                self._choice.has_links = True
                links.add((name, member.target))
                return self._table.add(name, "link", value=member.target)
            if member.kind == "hardlink":
                return self._take_hard_link(name, member.target)
            if member.kind != "file":
                self._verdict.add([problem("file-special", name.partition(b"/")[2])])
                return self._table.add(name, "special")
            self._make_directory(name.rpartition(b"/")[0])
            self._write(name, member)
        except FileExistsError:
            return _SAME_NAME
        except NotADirectoryError:
            return "a parent directory is occupied by a file"
        self._record(self._waiting.done())
        return None

    def _make_directory(self, name: bytes) -> None:
        if name not in self._directories:
            if len(self._directories) >= _REMEMBERED:
                self._directories.clear()
            try:
                os.makedirs(self._place(name), exist_ok=True)
            except FileExistsError as error:
                raise NotADirectoryError(*error.args) from None
            self._directories.add(name)

    def _take_hard_link(self, name: bytes, target: bytes) -> str | None:
        self._record(self._waiting.rest())
        other, fault = clean_name(target, "file")
        node = self._table.find(other) if fault is None and other else None
        if node is None or node.kind != "file":
            return f"hard link to {quoted(target)}, which is not an earlier file"
        self._make_directory(name.rpartition(b"/")[0])
        os.link(self._place(other), self._place(name))
        self._choice.use(_is_payload(name), tuple(_unpacked_digests(node.value)))
        return self._table.add(name, "file", node.size, node.value)

    def _write(self, name: bytes, member: Member) -> None:
        parts = name.split(b"/", 2)
        is_tag_file = len(parts) == 2
        if is_tag_file and is_described(parts[1]):
            self._manifests += 1
            self._archive.check_tag_files(self._manifests, 0)
            self._choice.add_tag_file(parts[1])
        stream = self._hasher.stream(self._choice.algorithms(_is_payload(name)))
        descriptor = os.open(self._place(name), _NEW, 0o666)
        try:
            for block in member.blocks():
                stream.update(block)
                self._bytes += len(block)
                left = memoryview(block)
                while left:
                    left = left[os.write(descriptor, left) :]
                if monotonic() >= self._next_event:
                    self._report_progress()
        finally:
            os.close(descriptor)
        self._files += 1
        if is_tag_file:
            self._kept += member.size
        self._waiting.add((name, member.size), member.size, stream)

    def _report_progress(self) -> None:
        self._next_event = monotonic() + PROGRESS_EVERY
        # Zip files are not read from begin to end.
        done = self._bytes if self._archive.format == "zip" else self._archive.position
        self._on_event(Progress(items=self._files, bytes=done))

    def _record(self, streams: Iterable[tuple[tuple[bytes, int], dict[str, str]]]) -> None:
        """Add files to the table, and report those that cannot be unpacked together with the others."""
        for (name, size), digests in streams:
            fault = self._table.add(name, "file", size, _packed_digests(digests))
            if fault is not None:
                self._verdict.add([problem("archive-member", b"", f"{quoted(name)}: {fault}")])

    # --- digests ------------------------------------------------------------------------------------------------------

    def is_sufficient(self, names: Iterable[bytes]) -> bool:
        """Return whether all digests that the manifests need are known.

        :param names: names in the base directory
        """
        return not self._choice.lacking(names)

    def digests(self, path: bytes) -> dict[str, str]:
        """Return the digests of a file in the bag, by algorithm."""
        node = self._table.find(b"%b/%b" % (self._top or b"", path))
        return {} if node is None else _unpacked_digests(node.value)


def _is_payload(name: bytes) -> bool:
    parts = name.split(b"/", 2)
    return len(parts) == 3 and parts[1] == PAYLOAD


def _packed_digests(digests: dict[str, str]) -> bytes:
    return ",".join(f"{name}={digest}" for name, digest in digests.items()).encode()


def _unpacked_digests(value: bytes) -> dict[str, str]:
    return dict(_pairs(value.decode()))


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for one in filter(None, text.split(",")):
        name, _, digest = one.partition("=")
        yield name, digest
