"""Open archives; their first bytes determine the format."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType

from pressmark.bagit.archive.decompression import COMPRESSIONS, Compressed, Plain, Stream
from pressmark.bagit.archive.members import ArchiveFile, Limits, Member
from pressmark.bagit.archive.tar import RECORD, TarReader, is_header
from pressmark.bagit.archive.zip import MAGIC, ZipReader
from pressmark.errors import BagError

__all__ = ["Archive", "open_archive"]

_HEAD = RECORD
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


class Archive:
    """An open archive; a context manager.

    :ivar path: the given path, in bytes
    :ivar size: size of the file in bytes
    :ivar seekable: whether members can be listed without reading their content: zip and uncompressed tar files
    :ivar extra: number of bytes before or after the archive that do not belong to any member; known after the last
        member
    :raises BagError: the file cannot be opened or read
    """

    def __init__(self, path: bytes, limits: Limits) -> None:
        self.path = path
        self.extra = 0
        self._opened = ExitStack()
        try:
            file = self._opened.enter_context(os.fdopen(os.open(path, _FLAGS), "rb"))
            self._descriptor = file.fileno()
            status = os.fstat(self._descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
        except OSError as error:
            self._opened.close()
            raise BagError(path, error.strerror or str(error)) from error
        self.size = status.st_size
        self._stamp = _stamp(status)
        self._file = ArchiveFile(file, path, status.st_size, limits)
        try:
            self._head = self._file.read(_HEAD)
        except BaseException:
            self._opened.close()
            raise
        self.seekable = _compression(self._head) is None

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._opened.close()

    def has_changed(self) -> bool:
        """Return whether the file was changed since it was opened."""
        return _stamp(os.fstat(self._descriptor)) != self._stamp

    def check_members(self, number: int) -> None:
        """Check a number of members and directories.

        :raises ArchiveError: the limit is exceeded
        """
        self._file.check_members(number)

    def check_tag_files(self, number: int, size: int) -> None:
        """Check the number and size of manifests.

        :raises ArchiveError: a limit is exceeded
        """
        self._file.check_tag_files(number, size)

    def members(self) -> Iterator[Member]:
        """Yield all members in order. After the last one, all checksums of the archive have been verified.

        :raises ArchiveError: the archive is damaged or unknown, or exceeds a limit
        :raises BagError: the file cannot be read
        """
        self._file.begin()
        self._file.seek(0)
        reader = self._reader()
        yield from reader.members()
        self.extra = reader.extra

    def _reader(self) -> TarReader | ZipReader:
        if self._head.startswith(MAGIC):
            return ZipReader(self._file)
        found = _compression(self._head)
        if found is not None:
            stream: Stream = Compressed(self._file, found, *COMPRESSIONS[found])
        elif len(self._head) == RECORD and (is_header(self._head) or not any(self._head)):
            stream = Plain(self._file)
        elif self.path.lower().endswith(b".zip"):  # data may precede the archive
            return ZipReader(self._file)
        else:
            self._file.damaged("unknown archive format; expected zip, tar or compressed tar")
        return TarReader(self._file, stream)


def open_archive(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], limits: Limits = Limits()) -> Archive:  # noqa: B008, immutable
    """Open a zip, tar or compressed tar file, to list or stream its members.

    >>> with open_archive(path) as archive:  # doctest: +SKIP
    ...     for member in archive.members():
    ...         print(member.name, member.size)

    :raises BagError: the file cannot be opened or read
    """
    return Archive(os.fsencode(path), limits)


def _compression(head: bytes) -> str | None:
    return next((name for name, (magic, _) in COMPRESSIONS.items() if head.startswith(magic)), None)


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
