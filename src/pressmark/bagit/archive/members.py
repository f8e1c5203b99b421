"""What every format of archive gives: members, and the limits that reading them keeps to."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, NoReturn

from pressmark.bagit.paths import canonical, why_unsafe
from pressmark.errors import ArchiveError, BagError

__all__ = ["BLOCK", "ArchiveFile", "Limits", "Member", "clean_name"]

BLOCK = 256 << 10  # bytes that are read or decompressed at a time
# What the file systems in use can hold: a longer name could not be unpacked.
COMPONENT_LIMIT = 255  # bytes
NAME_LIMIT = 4096  # bytes


@dataclass(frozen=True)
class Limits:
    """How much an archive may ask for before it is refused: a small file must not fill memory, disk or a day.

    :ivar members: members of the archive
    :ivar header: bytes of one extended header: long names, PAX records, maps of sparse files
    :ivar manifests: manifests, and other files that the draft describes
    :ivar tag_files: bytes that all of these may have in any archive; what they list takes memory
    :ivar per_member: bytes that they may have besides for each member
    :ivar expanded: bytes that any archive may expand to
    :ivar ratio: how many times its own size a larger one may expand to
    """

    members: int = 20_000_000
    header: int = 1 << 20  # 1 MiB
    manifests: int = 1000
    tag_files: int = 256 << 20  # 256 MiB
    per_member: int = 1 << 10  # 1 KiB
    expanded: int = 1 << 30  # 1 GiB
    ratio: int = 200

    def expansion(self, size: int) -> int:
        """Return how many bytes an archive of ``size`` bytes may expand to."""
        return max(self.expanded, self.ratio * size)


@dataclass(slots=True)
class Member:
    """One member of an archive.

    :ivar name: as it is stored, with ``/`` between directories; :func:`clean_name` judges it
    :ivar kind: ``file``, ``directory``, ``link`` (symbolic), ``hardlink`` or ``special``
    :ivar size: of a file's content, in bytes
    :ivar blocks: gives a file's content; may be called once, and only before the next member is asked for
    :ivar target: of a link: the path that it holds; of a hard link: the name of the other member
    """

    name: bytes
    kind: str
    size: int
    blocks: Callable[[], Iterator[bytes]]
    target: bytes = b""


class ArchiveFile:
    """The file of an archive, open for reading.

    :param file: binary and seekable, at its beginning
    :param path: in errors
    :param size: of the file, in bytes
    :ivar position: where the next read begins
    """

    def __init__(self, file: BinaryIO, path: bytes, size: int, limits: Limits) -> None:
        self.path = path
        self.size = size
        self.limits = limits
        self.position = 0
        self._file = file
        self._members = 0
        self._expanded = 0

    def read(self, size: int) -> bytes:
        """Return so many bytes, fewer at the end of the file.

        :raises BagError: the operating system refuses
        """
        try:
            data = self._file.read(size)
        except OSError as error:
            raise BagError(self.path, error.strerror or str(error)) from error
        self.position += len(data)
        return data

    def seek(self, position: int) -> None:
        """Go on reading elsewhere.

        :raises BagError: the operating system refuses
        """
        try:
            self._file.seek(position)
        except OSError as error:
            raise BagError(self.path, error.strerror or str(error)) from error
        self.position = position

    def damaged(self, reason: str) -> NoReturn:
        """Say that the archive is damaged, or none.

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
        """Begin to go through the members: what was counted before does not count."""
        self._members = self._expanded = 0

    def count_member(self) -> None:
        """Note that there is one more member.

        :raises ArchiveError: they are too many
        """
        self._members += 1
        self.check_members(self._members)

    def check_members(self, number: int) -> None:
        """Check that there may be so many members and directories.

        :raises ArchiveError: there may not
        """
        if number > self.limits.members:
            self.exceeded(f"it has more than {self.limits.members} members")

    def count_expanded(self, size: int) -> None:
        """Note that so many bytes come out of the archive, or are about to.

        :raises ArchiveError: they are too many for an archive of this size
        """
        self._expanded += size
        limit = self.limits.expansion(self.size)
        if self._expanded > limit:
            self.exceeded(f"it expands to more than {limit} bytes, and has {self.size} itself")

    def check_header(self, size: int) -> None:
        """Check that an extended header may have so many bytes.

        :raises ArchiveError: it may not
        """
        if size > self.limits.header:
            self.exceeded(f"an extended header has {size} bytes, more than {self.limits.header}")

    def check_tag_files(self, number: int, size: int) -> None:
        """Check that there may be so many manifests, which have so many bytes, beside the members that were given.

        :raises ArchiveError: there may not
        """
        if number > self.limits.manifests:
            self.exceeded(f"it has more than {self.limits.manifests} manifests")
        limit = self.limits.tag_files + self.limits.per_member * self._members
        if size > limit:
            self.exceeded(f"its manifests have more than {limit} bytes")


def clean_name(name: bytes) -> tuple[bytes, str | None]:
    """Return a member's name without needless segments and without a slash at its end, and what is wrong with it.

    The empty name stands for the directory that holds everything.
    """
    if name.rstrip(b"/") in (b".", b"") and name:
        return (b"", None) if name.startswith(b".") else (name, "it is absolute")
    fault = why_unsafe(name)
    if fault is None:
        name = canonical(name)[0].rstrip(b"/")
        fault = why_unsafe(name)
    if fault is None:
        try:
            os.fsdecode(name)
        except UnicodeDecodeError:  # on Windows
            fault = "it is not UTF-8"
    if fault is None and (len(name) > NAME_LIMIT or any(len(one) > COMPONENT_LIMIT for one in name.split(b"/"))):
        fault = "it is longer than file systems can hold"
    return name, fault
