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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from pressmark.bagit.archive.digests import StreamHasher
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
from pressmark.bagit.writing.options import source_date_epoch
from pressmark.errors import BagError
from pressmark.fs.durable import flush_file
from pressmark.reports import ProgressEvent
from pressmark.threads import Threads

__all__ = ["NewArchive", "modification_time", "new_archive"]

_FILE, _TAGS = b"archive", b"tags"
_BUFFER = 1 << 20  # 1 MiB
_ENDINGS = (b".tar", b".tar.gz", b".tgz", b".tar.zst", b".tzst", b".zip")


class NewArchive:
    """An archive that is being written.

    :ivar top: the only top-level directory: the name of the file, without its ending
    :ivar tags: a directory for new tag files, which does not exist yet
    :ivar hasher: computes the digests of its files
    """

    def __init__(self, writer: ArchiveWriter, top: bytes, tags: bytes, hasher: StreamHasher, is_zip: bool) -> None:
        self.top = top
        self.tags = tags
        self.hasher = hasher
        self._writer = writer
        self._is_zip = is_zip

    def why_unwritable(self, path: bytes) -> str | None:
        """Return why the format cannot contain a name; :data:`None` if it can."""
        try:
            path.decode()
        except UnicodeDecodeError:
            return "zip files cannot contain this name, which is not UTF-8; use a tar file" if self._is_zip else None
        return None

    def directory(self, path: bytes) -> None:
        """Add a directory.

        :param path: in the bag; empty for its base directory
        """
        self._writer.directory(self.top + b"/" + path if path else self.top)

    def file(self, path: bytes, size: int, blocks: Iterable[bytes]) -> None:
        """Add a file.

        :param path: in the bag
        :param size: size of the content in bytes
        :param blocks: the content; it is always read
        """
        self._writer.file(self.top + b"/" + path, size, blocks)

    def close(self) -> None:
        """Write the end of the archive."""
        self._writer.close()

    def abandon(self) -> None:
        """Write nothing more, because the archive is unusable."""
        self._writer.abandon()
        self._writer = NullWriter()


@contextmanager
def new_archive(destination: bytes, time: int, threads: int, on_event: Listener) -> Iterator[NewArchive]:
    """Yield an archive; at the end of the context, without an error, it is flushed and renamed to ``destination``.

    :param time: modification time of all members, in seconds since 1970
    :param threads: number of threads that hash and compress
    :raises BagError: the destination exists, is not the name of an archive, or cannot be written
    """
    place = checked_destination(destination)
    name = os.path.basename(place)
    ending = archive_ending(name)
    if ending is None or ending.lower() not in _ENDINGS:
        expected = ", ".join(map(os.fsdecode, _ENDINGS))
        raise BagError(destination, f"this archive format cannot be written; use a name that ends with {expected}")
    with (
        new_path(place, (_FILE, _TAGS), "no archive was created") as hidden,
        Threads(threads, "pressmark-archive") as pool,
    ):
        refuse_existing(place)
        with open(os.path.join(hidden.inside, _FILE), "xb", _BUFFER) as file:
            workers = pool if threads > 1 else None
            writer = _writer(file, destination, ending.lower(), time, workers, threads)
            tags = os.path.join(hidden.inside, _TAGS)
            is_zip = isinstance(writer, ZipWriter)
            archive = NewArchive(writer, name[: -len(ending)], tags, StreamHasher(workers), is_zip)
            try:
                if reason := archive.why_unwritable(archive.top):
                    raise BagError(destination, reason)
                yield archive
                archive.close()
            except BaseException:
                archive.abandon()
                raise
            on_event(ProgressEvent("move"))
            file.flush()
            flush_file(file.fileno())
        publish(hidden, _FILE, place, "archive")


def _writer(file: BinaryIO, path: bytes, ending: bytes, time: int, pool: Threads | None, threads: int) -> ArchiveWriter:
    if ending == b".zip":
        return ZipWriter(file, time)
    if ending == b".tar":
        return TarWriter(PlainOutput(file), time)
    if ending in (b".tar.zst", b".tzst"):
        return TarWriter(ZstdOutput(file, path, threads), time)
    return TarWriter(GzipOutput(file, pool, threads), time)


def modification_time(dates: Iterable[str]) -> int:
    """Return the time of all members, in seconds since 1970: SOURCE_DATE_EPOCH, or else the start of a day in UTC.

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
