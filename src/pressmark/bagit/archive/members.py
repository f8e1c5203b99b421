"""Members of archives of any format, and limits for reading them."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NoReturn, Protocol

from pressmark.bagit.paths import canonical, why_unsafe
from pressmark.errors import ArchiveError, BagError

__all__ = [
    *("BLOCK", "NTFS_EPOCH", "ArchiveFile", "Limits", "Member", "ReadableFile"),
    *("bounded_time", "clean_name", "why_no_link"),
]

BLOCK = 256 << 10  # bytes that are read or decompressed at a time
# Limits of common file systems: a longer name could not be unpacked.
COMPONENT_LIMIT = 255  # bytes
NAME_LIMIT = 4096  # bytes
_LARGEST = (1 << 63) - 1  # bytes in a file
#: The year 1601, where the times of Windows begin, in seconds since 1970.
NTFS_EPOCH = -11_644_473_600
# Times that all systems can set, in nanoseconds since 1970: years 1601 to 9999.
_FIRST_TIME, _LAST_TIME = NTFS_EPOCH * 10**9, 253_402_300_800 * 10**9 - 1


@dataclass(frozen=True)
class Limits:
    """Limits for reading an archive: a small file must not fill memory or disk, or take days.

    :ivar members: number of members and directories
    :ivar small: number of members and directories of a small archive; a larger archive may have one for each byte, as
        every file of a bag has a digest of at least 16 bytes
    :ivar header: size of an extended header in bytes: long names, PAX records
    :ivar manifests: number of manifests and other files that the draft describes
    :ivar tag_files: total size of these files in bytes; their entries use memory
    :ivar per_member: additional size of these files for each member, in bytes
    :ivar expanded: expanded size of a small archive in bytes
    :ivar ratio: expanded size of a large archive, as a multiple of the archive size
    """

    members: int = 20_000_000
    small: int = 20_000
    header: int = 1 << 20  # 1 MiB
    manifests: int = 1000
    tag_files: int = 256 << 20  # 256 MiB
    per_member: int = 1 << 10  # 1 KiB
    expanded: int = 1 << 30  # 1 GiB
    ratio: int = 200

    def rows(self, size: int) -> int:
        """Return the limit of members and directories for an archive of ``size`` bytes."""
        return min(self.members, max(self.small, size))

    def expansion(self, size: int) -> int:
        """Return the limit of the expanded size for an archive of ``size`` bytes."""
        return max(self.expanded, self.ratio * size)


@dataclass(slots=True)
class Member:
    """A member of an archive.

    :ivar name: as stored, with ``/`` between directories; :func:`clean_name` checks it
    :ivar kind: ``file``, ``directory``, ``link`` (symbolic), ``hardlink`` or ``special``
    :ivar size: size of the content of a file, in bytes
    :ivar blocks: returns the content of a file; call it at most once, before requesting the next member
    :ivar target: for a symbolic link, its path; for a hard link, the name of the other member
    :ivar offset: offset of the content in the archive, if it is stored there as it is; otherwise -1
    :ivar crc: the CRC-32 of the content at ``offset``, which the reader of the content has to verify
    :ivar facts: returns the mode of a file or directory, of which only the permission bits count, and its modification
        time in nanoseconds since 1970
    """

    name: bytes
    kind: str
    size: int
    blocks: Callable[[], Iterator[bytes]]
    target: bytes = b""
    offset: int = -1
    crc: int | None = None
    facts: Callable[[], tuple[int, int]] = lambda: (0, 0)


class ReadableFile(Protocol):
    """A file, with the methods of one in binary mode."""

    def read(self, size: int, /) -> bytes:
        """Return ``size`` bytes, or fewer at the end."""

    def seek(self, position: int, /) -> int:
        """Set the position of the next read."""


class ArchiveFile:
    """The open file of an archive.

    :param file: a binary file
    :param path: path of the archive, for errors
    :param size: size of the file in bytes; :data:`None` for a pipe
    :param head: bytes that were read from the pipe
    :param is_local: whether other threads can read the file by a descriptor
    :ivar position: position of the next read
    """

    def __init__(
        self,
        file: ReadableFile,
        path: bytes,
        size: int | None,
        limits: Limits,
        head: bytes = b"",
        *,
        is_local: bool = False,
    ) -> None:
        self.path = path
        self.limits = limits
        self.position = 0
        self.seekable = size is not None
        self.is_local = is_local
        self._size = size or 0
        self._file = file
        self._head = head
        self._members = 0
        self._expanded = 0

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, or fewer at the end of the file.

        :raises BagError: the file cannot be read
        """
        data, self._head = self._head[:size], self._head[size:]
        try:
            if len(data) < size:
                data += self._file.read(size - len(data))
        except OSError as error:
            if error.errno == errno.ESTALE:
                self.damaged("changed while it was read")
            raise BagError(self.path, error.strerror or str(error)) from error
        self.position += len(data)
        return data

    @property
    def size(self) -> int:
        """Size of the file in bytes; of a pipe, what was read so far."""
        return self._size if self.seekable else self.position

    def remainder(self) -> int:
        """Return the number of bytes after the position; a pipe is read to its end."""
        if self.seekable:
            return self.size - self.position
        begin = self.position
        while self.read(BLOCK):
            pass
        return self.position - begin

    def seek(self, position: int) -> None:
        """Set the position of the next read.

        :raises BagError: the file cannot be read
        """
        try:
            self._file.seek(position)
        except OSError as error:
            raise BagError(self.path, error.strerror or str(error)) from error
        self.position = position

    def damaged(self, reason: str) -> NoReturn:
        """Report that the archive is damaged, or not an archive.

        :raises ArchiveError: always
        """
        raise ArchiveError(self.path, "archive-malformed", reason)

    def exceeded(self, reason: str) -> NoReturn:
        """Report that the archive exceeds the limits.

        :raises ArchiveError: always
        """
        reason = f"{reason}; if you trust it, unpack it and validate the directory"
        raise ArchiveError(self.path, "archive-limit", reason)

    def begin(self) -> None:
        """Reset the counts of members and bytes."""
        self._members = self._expanded = 0

    def count_member(self) -> None:
        """Count a member.

        :raises ArchiveError: the limit is exceeded
        """
        self._members += 1
        self.check_members(self._members)

    def check_members(self, number: int) -> None:
        """Check a number of members and directories.

        :raises ArchiveError: the limit is exceeded
        """
        limit = self.limits.rows(self.size)
        if number > limit:
            self.exceeded(f"more than {limit} members and directories, in {self.size} bytes")

    def count_expanded(self, size: int) -> None:
        """Count expanded bytes.

        :raises ArchiveError: the limit for an archive of this size is exceeded
        """
        self._expanded += size
        limit = self.limits.expansion(self.size)
        if self._expanded > limit:
            self.exceeded(f"expands to more than {limit} bytes, from {self.size} bytes")

    def checked_size(self, number: int) -> int:
        """Return a size or an offset.

        :raises ArchiveError: no file has that size
        """
        if number > _LARGEST:
            self.damaged("number in a header is too large")
        return number

    def check_header(self, size: int) -> None:
        """Check the size of an extended header.

        :raises ArchiveError: the limit is exceeded
        """
        if size > self.limits.header:
            self.exceeded(f"extended header of {size} bytes, more than {self.limits.header}")

    def check_tag_files(self, number: int, size: int) -> None:
        """Check the number and size of manifests.

        :raises ArchiveError: a limit is exceeded
        """
        if number > self.limits.manifests:
            self.exceeded(f"more than {self.limits.manifests} manifests")
        limit = self.limits.tag_files + self.limits.per_member * self._members
        if size > limit:
            self.exceeded(f"manifests larger than {limit} bytes")


def bounded_time(mtime_ns: int) -> int:
    """Return a time in nanoseconds since 1970, or the nearest one that all systems can set."""
    return max(_FIRST_TIME, min(_LAST_TIME, mtime_ns))


def clean_name(name: bytes, kind: str = "directory") -> tuple[bytes, str | None]:
    """Return the normalized name of a member, without a trailing slash, and why it cannot be unpacked, or :data:`None`.

    The empty name is the top-level directory. Only names of a ``kind`` that is not a file may end with a slash.
    """
    if name.rstrip(b"/") in (b".", b"") and name:
        return (b"", None) if name.startswith(b".") else (name, "absolute path")
    whole = name
    fault = why_unsafe(name)
    if fault is None:
        name = canonical(name)[0].rstrip(b"/")
        fault = why_unsafe(name)
    if fault is None:
        try:
            os.fsdecode(name)
        except UnicodeDecodeError:  # on Windows
            fault = "name is not UTF-8"
    if fault is None and kind in ("file", "hardlink") and whole.endswith((b"/", b"/.")):
        fault = "name of a file ends with a slash"
    if fault is None and (len(name) > NAME_LIMIT or any(len(one) > COMPONENT_LIMIT for one in name.split(b"/"))):
        fault = "name too long for common file systems"
    return name, fault


def why_no_link(target: bytes) -> str | None:
    """Return why a symbolic link with this target cannot be created, or :data:`None`."""
    if not target or b"\0" in target:
        return "target of the symbolic link is empty or contains a NUL"
    return "target of the symbolic link is too long" if len(target) >= NAME_LIMIT else None
