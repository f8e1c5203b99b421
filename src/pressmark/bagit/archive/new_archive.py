"""A new archive: written in a staging directory, flushed, and renamed to its destination.

::

    .pressmark-….tmp/       the name depends on the destination only, so the next run finds it
    ├── lock                held during a run
    ├── tags/               new tag files, before they are added to the archive
    └── archive             the archive
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory
from typing import BinaryIO, cast

from pressmark.bagit.archive.digests import StreamHasher
from pressmark.bagit.archive.members import bounded_time
from pressmark.bagit.archive.write import (
    ArchiveWriter,
    GzipOutput,
    NullWriter,
    PlainOutput,
    TarWriter,
    ZipWriter,
    ZstdOutput,
)
from pressmark.bagit.changes import Listener
from pressmark.bagit.changes.destination import (
    checked_destination,
    new_path,
    publish,
    refuse_existing,
)
from pressmark.bagit.paths import archive_ending
from pressmark.bagit.writing.options import keeps_times, source_date_epoch
from pressmark.buckets.address import is_address
from pressmark.errors import BagError
from pressmark.fixity.hasher import KEPT_BITS
from pressmark.fs.durable import flush_file
from pressmark.reports import ProgressEvent
from pressmark.threads import Threads

__all__ = ["MEMBER", "NewArchive", "new_archive"]

#: Bytes of an archive for each file beside its content, at most for usual names.
MEMBER = 2048
_FILE, _TAGS = b"archive", b"tags"
_BUFFER = 1 << 20  # 1 MiB
# Without those of the files.
_FILE_MODE, _DIRECTORY_MODE = 0o644, 0o755
_ENDINGS = (b".tar", b".tar.gz", b".tgz", b".tar.zst", b".tzst", b".zip")


class NewArchive:
    """An archive that is being written.

    :ivar top: the only top-level directory: the name of the file, without its ending
    :ivar tags: a directory for new tag files, which does not exist yet
    :ivar hasher: computes the digests of its files

    :param time: of members without a time of their own, in seconds since 1970
    :param keeps_times: whether files and directories have their own times and permission bits
    """

    def __init__(
        self,
        writer: ArchiveWriter,
        top: bytes,
        tags: bytes,
        hasher: StreamHasher,
        is_zip: bool,
        time: int,
        keeps_times: bool,
        expect: Callable[[int], object] = lambda _size: None,
    ) -> None:
        #: To be called with the size of the payload before anything is added.
        self.expect = expect
        self.top = top
        self.tags = tags
        self.hasher = hasher
        self._writer = writer
        self._is_zip = is_zip
        self._time = time
        self._keeps_times = keeps_times

    def why_unwritable(self, path: bytes) -> str | None:
        """Return why the format cannot contain a name; :data:`None` if it can."""
        try:
            path.decode()
        except UnicodeDecodeError:
            return "zip files cannot contain this name, which is not UTF-8; use a tar file" if self._is_zip else None
        return None

    def directory(self, path: bytes, status: os.stat_result | None = None) -> None:
        """Add a directory.

        :param path: in the bag; empty for its base directory
        :param status: of a directory whose time and permission bits it keeps
        """
        time, mode = self._kept(status, _DIRECTORY_MODE)
        self._writer.directory(self.top + b"/" + path if path else self.top, time, mode)

    def file(self, path: bytes, size: int, blocks: Iterable[bytes], status: os.stat_result | None = None) -> None:
        """Add a file.

        :param path: in the bag
        :param size: size of the content in bytes
        :param blocks: the content; it is always read
        :param status: of a file whose time and permission bits it keeps
        """
        time, mode = self._kept(status, _FILE_MODE)
        self._writer.file(self.top + b"/" + path, size, blocks, time, mode)

    def _kept(self, status: os.stat_result | None, mode: int) -> tuple[int, int]:
        """Return time and permission bits of a member; ``mode`` are those without a file."""
        if status is None or not self._keeps_times:
            return self._time, mode
        return bounded_time(status.st_mtime_ns) // 10**9, status.st_mode & KEPT_BITS

    def close(self) -> None:
        """Write the end of the archive."""
        self._writer.close()

    def abandon(self) -> None:
        """Write nothing more, because the archive is unusable."""
        self._writer.abandon()
        self._writer = NullWriter()


@contextmanager
def new_archive(
    destination: bytes, dates: Iterable[str], timestamps: str | None, threads: int, on_event: Listener
) -> Iterator[NewArchive]:
    """Yield an archive; at the end of the context, without an error, it is flushed and gets its name.

    :param destination: a path, or an address in object storage
    :param dates: values of Bagging-Date
    :param timestamps: see :func:`~pressmark.bagit.archive.pack.pack`
    :param threads: number of threads that hash and compress
    :raises BagError: the destination exists, is not the name of an archive, or cannot be written
    """
    keeps, time = keeps_times(timestamps), _modification_time(dates)
    place = destination if is_address(destination) else checked_destination(destination)
    name = os.path.basename(place)
    ending = archive_ending(name)
    if ending is None or ending.lower() not in _ENDINGS:
        expected = ", ".join(map(os.fsdecode, _ENDINGS))
        raise BagError(destination, f"this archive format cannot be written; use a name that ends with {expected}")
    with (
        (_new_key if is_address(place) else _new_file)(place, on_event) as (file, tags),
        Threads(threads, "pressmark-archive") as pool,
    ):
        workers = pool if threads > 1 else None
        writer = _writer(file, destination, ending.lower(), workers, threads)
        is_zip = isinstance(writer, ZipWriter)
        expect = getattr(file, "expect", lambda _size: None)
        archive = NewArchive(writer, name[: -len(ending)], tags, StreamHasher(workers), is_zip, time, keeps, expect)
        try:
            if reason := archive.why_unwritable(archive.top):
                raise BagError(destination, reason)
            yield archive
            archive.close()
        except BaseException:
            archive.abandon()
            raise


@contextmanager
def _new_file(place: bytes, on_event: Listener) -> Iterator[tuple[BinaryIO, bytes]]:
    """Yield an open file, and the path of a directory that does not exist; at the end, rename the file to ``place``."""
    with new_path(place, (_FILE, _TAGS), "no archive was created") as hidden:
        refuse_existing(place)
        with open(os.path.join(hidden.inside, _FILE), "xb", _BUFFER) as file:
            yield file, os.path.join(hidden.inside, _TAGS)
            on_event(ProgressEvent("move"))
            file.flush()
            flush_file(file.fileno())
        publish(hidden, _FILE, place, "archive")


@contextmanager
def _new_key(place: bytes, on_event: Listener) -> Iterator[tuple[BinaryIO, bytes]]:
    """Yield a file whose content is sent in parts, and the path of a directory; at the end, it gets its key."""
    from pressmark.bagit.remote.key_output import new_key  # most archives are local

    with TemporaryDirectory(prefix="pressmark-") as folder, new_key(place) as file:
        yield cast(BinaryIO, file), os.path.join(os.fsencode(folder), _TAGS)
        on_event(ProgressEvent("move"))
        file.publish()


def _writer(file: BinaryIO, path: bytes, ending: bytes, pool: Threads | None, threads: int) -> ArchiveWriter:
    if ending == b".zip":
        return ZipWriter(file)
    if ending == b".tar":
        return TarWriter(PlainOutput(file))
    if ending in (b".tar.zst", b".tzst"):
        return TarWriter(ZstdOutput(file, path, threads))
    return TarWriter(GzipOutput(file, pool, threads))


def _modification_time(dates: Iterable[str]) -> int:
    """Return the time of members without one of their own, in seconds since 1970.

    It is SOURCE_DATE_EPOCH, or else the start of a day in UTC.

    :param dates: values of Bagging-Date; the first valid one counts
    :raises BagError: SOURCE_DATE_EPOCH is invalid
    """
    given = source_date_epoch()
    if given is not None:
        return given
    for value in dates:
        with suppress(ValueError):
            day = datetime.date.fromisoformat(value.strip())
            return max(0, (day - datetime.date(1970, 1, 1)).days * 86400)
    return 0
