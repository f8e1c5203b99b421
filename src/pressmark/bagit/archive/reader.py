"""Open archives; their first bytes determine the format."""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from types import TracebackType
from typing import BinaryIO, NoReturn

from pressmark.bagit.archive.decompression import COMPRESSIONS, Compressed, Plain, Stream
from pressmark.bagit.archive.members import ArchiveFile, Limits, Member
from pressmark.bagit.archive.tar import RECORD, TarReader, is_header
from pressmark.bagit.archive.zip import MAGIC, ZipReader
from pressmark.buckets.address import find_key, is_address
from pressmark.buckets.remote_file import PlacesFile
from pressmark.errors import BagError, StoreError
from pressmark.fs.beneath import open_regular

__all__ = ["ENDINGS", "MEDIA_TYPES", "Archive", "is_archive", "open_archive", "why_unsupported"]

#: Endings of the names of archives.
ENDINGS = (b".zip", b".tar", b".tar.gz", b".tgz", b".tar.zst", b".tar.bz2", b".tar.xz")
#: The media type of each format.
MEDIA_TYPES = {
    "zip": "application/zip",
    "tar": "application/x-tar",
    "gzip": "application/gzip",
    "bzip2": "application/x-bzip2",
    "xz": "application/x-xz",
    "zstd": "application/zstd",
}
_HEAD = RECORD
# Archives of other formats by their first bytes: the name, and how to unpack one.
_UNSUPPORTED = {b"7z\xbc\xaf\x27\x1c": ("7-Zip", "7z x"), b"Rar!\x1a\x07": ("RAR", "unrar x")}
_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


class Archive:
    """An open archive; a context manager.

    :param stream: a binary stream that is read instead of the file, once; ``path`` is its name
    :ivar path: the given path, in bytes
    :ivar format: ``zip``, ``tar``, ``gzip``, ``bzip2``, ``xz`` or ``zstd``; empty if it is unknown
    :ivar size: size of the file in bytes; 0 for a stream
    :ivar seekable: whether members can be listed without reading their content: zip and uncompressed tar files
    :ivar extra: number of bytes after the end of the archive that belong to no member; known after the last
        member
    :ivar is_terminated: whether the end mark of a tar file is complete; known after the last member
    :raises BagError: the file cannot be opened or read
    """

    def __init__(self, path: bytes, limits: Limits, stream: BinaryIO | None = None) -> None:
        self.path = path
        self.extra = 0
        self.is_terminated = True
        self.size = 0
        self._opened = ExitStack()
        self._first_stamp: object = None
        # Returns what changes when the file is written.
        self._stamp: Callable[[], object] | None = None
        self._descriptor = -1
        try:
            if stream is None:
                file = self._open_key(path) if is_address(path) else self._open_file(path)
                self._file = ArchiveFile(file, path, self.size, limits, is_local=self._descriptor >= 0)
                self._head = self._file.read(_HEAD)
            else:
                self._head = stream.read(_HEAD)
                self._file = ArchiveFile(stream, path, None, limits, self._head)
        except OSError as error:
            self._opened.close()
            raise BagError(path, error.strerror or str(error)) from error
        except StoreError as error:
            if error.__cause__ is not None:  # the server no longer answers
                raise
            raise BagError(error.path, error.reason) from None
        except BaseException:
            self._opened.close()
            raise
        self.format: str = _format(self._head, path)
        self.seekable: bool = stream is None and self.format in ("tar", "zip", "")

    def _open_file(self, path: bytes) -> BinaryIO:
        file: BinaryIO = self._opened.enter_context(os.fdopen(os.open(path, _FLAGS), "rb"))
        self._descriptor = file.fileno()
        status = os.fstat(self._descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        self.size, self._first_stamp = status.st_size, _stamp(status)
        self._stamp = lambda: _stamp(os.fstat(self._descriptor))
        return file

    def _open_key(self, path: bytes) -> PlacesFile:
        bucket, key = find_key(path)
        file = self._opened.enter_context(closing(PlacesFile(bucket, key)))
        self.size, self._first_stamp = file.status.size, file.status.token
        self._stamp = lambda: bucket.head(key).token
        return file

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._opened.close()

    @property
    def is_pipe(self) -> bool:
        """Whether the archive can be read only once."""
        return self._stamp is None

    @property
    def position(self) -> int:
        """Number of bytes of the file that were read."""
        return self._file.position

    @property
    def descriptor(self) -> int:
        """Descriptor of the file, for positions of members; -1 for a pipe, and for a key in object storage."""
        return self._descriptor

    def has_changed(self) -> bool:
        """Return whether the file was changed since it was opened."""
        try:
            return self._stamp is not None and self._stamp() != self._first_stamp
        except FileNotFoundError:
            return True  # the key was removed
        except OSError as error:
            raise BagError(self.path, error.strerror or str(error)) from error

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
        if not self.is_pipe:
            self._file.seek(0)
        reader = self._reader()
        yield from reader.members()
        self.extra, self.is_terminated = reader.extra, reader.is_terminated

    def zip_names(self) -> Iterator[bytes]:
        """Yield the names of the members of a zip file, without reading them; raises the errors of :meth:`members`."""
        self._file.begin()
        yield from ZipReader(self._file).names()

    def damaged(self, reason: str) -> NoReturn:
        """Report that the archive is damaged.

        :raises ArchiveError: always
        """
        self._file.damaged(reason)

    def _reader(self) -> TarReader | ZipReader:
        if not self.format:
            reason = _unsupported(self._head, self.path)
            self._file.damaged(reason or "unknown archive format; expected zip, tar or compressed tar")
        if self.format == "zip":
            if self.is_pipe:
                raise BagError(self.path, "a zip file cannot be read from a pipe; save it, and validate the file")
            return ZipReader(self._file)
        stream: Stream = Plain(self._file)
        if self.format != "tar":
            stream = Compressed(self._file, self.format, *COMPRESSIONS[self.format])
        return TarReader(self._file, stream)


def why_unsupported(path: bytes) -> str | None:
    """Return why an archive of another program cannot be read, and what to do; :data:`None` for any other file."""
    try:
        with open_regular(path, follow=True) as file:
            return _unsupported(file.read(_HEAD), path)
    except OSError:
        return None


def _unsupported(head: bytes, path: bytes) -> str | None:
    for magic, (name, command) in _UNSUPPORTED.items():
        if head.startswith(magic):
            how = f"unpack it ({command} {shlex.quote(os.fsdecode(path))}), and validate the directory"
            return f"{name} archives are not supported; {how}"
    return None


def open_archive(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    limits: Limits = Limits(),  # noqa: B008, immutable
    stream: BinaryIO | None = None,
) -> Archive:
    """Open a zip, tar or compressed tar file, to list or stream its members.

    >>> import zipfile
    >>> with zipfile.ZipFile("files.zip", "w") as file:
    ...     file.writestr("files/a.txt", b"a")
    >>> with open_archive("files.zip") as archive:
    ...     for member in archive.members():
    ...         print(member.name, member.size)
    b'files/a.txt' 1

    :param path: the archive; its content determines the format
    :param limits: limits for reading it
    :param stream: a binary stream that is read instead of the file, once: a tar file, compressed or not. ``path`` is
        its name in messages
    :raises BagError: the file cannot be opened or read
    """
    return Archive(os.fsencode(path), limits, stream)


def is_archive(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> bool:
    """Return whether a file is an archive, also of an unsupported format, by its first bytes or its name, or cannot be
    read.
    """
    path = os.fsencode(path)
    if path.lower().endswith(ENDINGS):
        return True
    try:
        with open_regular(path, follow=True) as file:
            head = file.read(_HEAD)
            return bool(_format(head, path) or _unsupported(head, path))
    except OSError:
        return True


def _format(head: bytes, path: bytes) -> str:
    """Return the format of an archive by its first bytes; empty if it is unknown."""
    if head.startswith(MAGIC):
        return "zip"
    for name, (magic, _) in COMPRESSIONS.items():
        if head.startswith(magic):
            return name
    if len(head) == RECORD and (is_header(head) or not any(head)):
        return "tar"
    return "zip" if path.lower().endswith(b".zip") else ""


def _stamp(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns
