"""Write files into an archive, with digests. Each file is read once; the digests are computed in other threads.

Errors of a file are outcomes, as in :mod:`pressmark.fixity`; errors of the archive, such as a full disk, end the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import starmap
from time import monotonic
from typing import NamedTuple, TypeVar

from pressmark.bagit.archive.digests import BLOCK, DigestStream, WaitingStreams
from pressmark.bagit.archive.new_archive import NewArchive
from pressmark.fixity.copying import ReadError, read_blocks
from pressmark.fixity.hasher import CHANGED, OpenOptions, changes, error_outcome
from pressmark.fixity.outcomes import PROGRESS_EVERY, Outcome, failed_outcome
from pressmark.fs.beneath import Opener
from pressmark.fs.file_errors import kind_of_mode
from pressmark.reports import ProgressEvent

__all__ = ["PackTask", "pack_files"]

Key = TypeVar("Key")


class PackTask(NamedTuple):
    """A file to be packed.

    :ivar source: path for the opener
    :ivar path: path in the bag
    :ivar algorithms: official names of the algorithms; none to pack without digests
    """

    source: bytes
    path: bytes
    algorithms: Sequence[str]


def pack_files(
    tasks: Iterable[tuple[Key, PackTask]],
    archive: NewArchive,
    options: OpenOptions,
    on_event: Callable[[ProgressEvent], object],
) -> Generator[tuple[Key, Outcome], None, None]:
    """Add files to an archive, and yield the key and outcome of each, in order; the paths are those of the sources.

    :param tasks: pairs of a key, which can be anything, and a file
    :param options: for opening the sources
    :raises BagError: the format of the archive cannot contain a name
    :raises OSError: the archive cannot be written
    """
    waiting = WaitingStreams[tuple[Key, Outcome]]()
    with options.opener() as opener:
        packer = _Packer(archive, options, opener, on_event)
        for key, task in tasks:
            stream = archive.hasher.stream(task.algorithms)
            outcome = packer.pack(task, stream)
            yield from starmap(_with_digests, waiting.add((key, outcome), outcome.size or 0, stream))
        yield from starmap(_with_digests, waiting.rest())
        packer.report()


def _with_digests(packed: tuple[Key, Outcome], digests: dict[str, str]) -> tuple[Key, Outcome]:
    key, outcome = packed
    return key, outcome if outcome.kind is not None else outcome._replace(digests=digests)


class _Packer:
    def __init__(
        self, archive: NewArchive, options: OpenOptions, opener: Opener, on_event: Callable[[ProgressEvent], object]
    ) -> None:
        self._archive = archive
        self._options = options
        self._opener = opener
        self._on_event = on_event
        self._files = self._bytes = self._failed = 0
        self._next_event = monotonic() + PROGRESS_EVERY

    def report(self) -> None:
        """Send the progress."""
        self._on_event(ProgressEvent(items=self._files, bytes=self._bytes, failed=self._failed))

    def pack(self, task: PackTask, stream: DigestStream) -> Outcome:
        """Add a file, and return its outcome, without digests."""
        try:
            descriptor = self._opener.open(task.source, self._options.flags)
        except OSError as error:
            outcome = error_outcome(task.source, error.errno or 0, self._options)
        else:
            try:
                outcome = self._packed(descriptor, task, stream)
            finally:
                os.close(descriptor)
        self._files += 1
        self._failed += outcome.kind is not None
        return outcome

    def _packed(self, descriptor: int, task: PackTask, stream: DigestStream) -> Outcome:
        before = os.fstat(descriptor)
        size, mtime_ns = before.st_size, before.st_mtime_ns
        if (kind := kind_of_mode(before.st_mode)) is not None:
            return failed_outcome(task.source, kind, status=before)
        read = self._bytes
        try:
            self._archive.file(task.path, size, self._blocks(descriptor, size, stream), before)
            after = os.fstat(descriptor)
        except ReadError as error:
            return error_outcome(task.source, error.number, self._options)
        total = self._bytes - read
        reason = changes(size, mtime_ns, after.st_size, after.st_mtime_ns, total, 0)
        if reason is None and total != size:
            # Files in /proc have content but size 0.
            reason = f"{total} bytes read from a file of size {size}"
        if reason is not None:
            return Outcome(os.fsdecode(task.source), None, size, mtime_ns, before.st_ino, CHANGED, reason)
        return Outcome(os.fsdecode(task.source), {}, size, mtime_ns, before.st_ino)

    def _blocks(self, descriptor: int, size: int, stream: DigestStream) -> Iterator[bytes]:
        """Yield the content of a file, and feed it to its digests."""
        left = size
        # One byte more than expected, to detect growth.
        for block in read_blocks(descriptor, min(BLOCK, size + 1)):
            self._bytes += len(block)
            left -= len(block)
            if left < 0:
                return  # do not read a growing file forever
            stream.update(block)
            yield block
            if left == 0 and size < BLOCK:
                return  # one read, which would have found more
            if monotonic() >= self._next_event:
                self._next_event = monotonic() + PROGRESS_EVERY
                self.report()
