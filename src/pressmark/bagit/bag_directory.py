"""A bag's base directory, opened: the one way to what is in it, and no way to what is not.

Everything is opened relative to a descriptor of the base directory, one name at a time, and never through a symbolic
link, so that nobody who exchanges a directory for a link meanwhile can lead us out. A link is read, and where it leads
is found out by words alone until that is known to be inside: what lies outside is not even looked at.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from types import TracebackType
from typing import BinaryIO, NamedTuple, Protocol

from pressmark.bagit.problems import problem
from pressmark.errors import BagError
from pressmark.fs.beneath import Directory, OpenBeneath, OpenBeneathByName, open_directory
from pressmark.fs.durable import is_readable, why_unreadable
from pressmark.reports import Problem

__all__ = ["LINKS", "STAGING", "BagDirectory", "BagFiles", "FileEntry", "ResolvedPath", "open_tag_file"]

# Should a named pipe take a file's place after it was looked at, opening it must not block.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
# What a change of a bag is made in; it is no part of the bag.
STAGING = b".pressmark-bag"
LINKS = 40  # that one path may lead through, as in Linux
# What the system says of a name that is not there, or leads nowhere.
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)


class _ByDescriptor(OpenBeneath):
    def readlink(self, path: bytes) -> bytes:
        directory, name = self._parts(path)
        return os.readlink(os.fsencode(name), dir_fd=directory)

    def is_readable(self, path: bytes) -> bool:
        directory, name = self._parts(path)
        return is_readable(name, directory)


class _ByName(OpenBeneathByName):
    def readlink(self, path: bytes) -> bytes:
        return os.fsencode(os.readlink(self._real(path))).replace(os.fsencode(os.sep), b"/")

    def is_readable(self, path: bytes) -> bool:
        return is_readable(self._real(path))


class ResolvedPath(NamedTuple):
    """Where a path leads.

    :ivar kind: ``file``, ``directory`` or ``special``, which are inside; or ``outside``, ``dangling``, ``loop``, or
        ``unreadable``
    :ivar path: without any link, relative to the base directory; what is meant is the base itself where it is empty
    :ivar status: of what is there; :data:`None` where nothing was looked at
    """

    kind: str
    path: bytes = b""
    status: os.stat_result | None = None


class FileEntry(Protocol):
    """A name in a directory, as :func:`os.scandir` gives it."""

    @property
    def name(self) -> str:
        """The name itself."""

    def is_symlink(self) -> bool:
        """Return whether it is a symbolic link."""

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is a regular file."""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether it is a directory."""

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return its status."""


class BagFiles(Protocol):
    """The files of a bag, in a directory or in an archive; :class:`BagDirectory` describes the methods."""

    path: bytes

    def open(self, path: bytes) -> BinaryIO:
        """Open a regular file of the bag for reading."""

    def scan(self, path: bytes) -> Iterator[FileEntry]:
        """Give the entries of a directory of the bag."""

    def status(self, path: bytes) -> os.stat_result:
        """Return the status of what is at ``path``, of a link its own."""

    def resolve(self, path: bytes) -> ResolvedPath:
        """Return where ``path`` leads."""

    def why_unreadable(self, path: bytes, real: bytes | None) -> OSError | None:
        """Return the error of opening a file that the walk has found; :data:`None` where it is readable."""


class BagDirectory:
    """The base directory of a bag, opened; a context manager.

    :param path: a directory, or a symbolic link to one: who names it means it

    :ivar path: as it was given, in bytes
    :ivar beneath: what arguments of that name want, to read files below it
    :raises BagError: it is no directory, or does not open
    """

    def __init__(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        self.path = os.fsencode(path)
        self._opened = ExitStack()
        try:
            if not stat.S_ISDIR(os.stat(self.path).st_mode):
                raise BagError(self.path, "it is not a directory; name the bag's base directory")
            # Without links, so that what a link in the bag says can be compared with it word by word.
            self._real = tuple(_names(os.path.realpath(self.path).replace(os.fsencode(os.sep), b"/")))
            self.beneath: Directory = self._opened.enter_context(open_directory(self.path))
        except OSError as error:
            raise BagError(self.path, error.strerror or str(error)) from None
        except ValueError as error:  # a NUL, or a str that stands for no bytes
            raise BagError(self.path, str(error)) from None
        self._way = _ByDescriptor(self.beneath) if isinstance(self.beneath, int) else _ByName(self.beneath)
        self._opened.push(self._way)

    def __enter__(self) -> BagDirectory:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back the descriptors."""
        self._opened.close()

    def open(self, path: bytes) -> BinaryIO:
        """Open a regular file of the bag for reading.

        :param path: relative to the base directory, with no link on its way and none at its end
        :raises OSError: it is not there, is no regular file, or there is a link on the way
        """
        descriptor = self._way.open(path, _FLAGS)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            return os.fdopen(descriptor, "rb")
        except BaseException:
            os.close(descriptor)
            raise

    def why_unreadable(self, path: bytes, real: bytes | None) -> OSError | None:
        """Return the error of opening a file that the walk has found; :data:`None` where it is readable.

        :param real: its path without links; :data:`None` where a trusted link leads out of the bag
        """
        if real is None:
            return why_unreadable(os.path.join(self.path, path))
        try:
            if not self._way.is_readable(real):
                self.open(real).close()
        except OSError as error:
            return error
        return None

    def scan(self, path: bytes) -> Iterator[os.DirEntry[str]]:
        """Give the entries of a directory of the bag, in no order; each is good until the next is asked for.

        :param path: relative to the base directory, without links; empty for the base directory
        :raises OSError: it does not open, or cannot be read
        """
        with self._way.names(path) as entries:
            yield from entries

    def status(self, path: bytes) -> os.stat_result:
        """Return the status of what is at ``path``, of a link its own; of the base directory for the empty path.

        :raises OSError: it is not there, or there is a link on the way
        """
        return self._way.stat_directory(path)

    def resolve(self, path: bytes) -> ResolvedPath:
        """Return where ``path`` leads, with links followed as long as they stay in the bag.

        A link may leave the bag by ``..`` or by an absolute path and come back, along the very names of the base
        directory; where it turns elsewhere it is ``outside``, and nothing there is touched.
        """
        waiting = _names(path)[::-1]
        # The names that were passed: those of the base directory first, then those below it.
        passed = list(self._real)
        depth = len(passed)
        links = 0
        while waiting:
            name = waiting.pop()
            if name == b"..":
                if passed:
                    passed.pop()
                continue
            if len(passed) < depth:
                if name != self._real[len(passed)]:
                    return ResolvedPath("outside")
                passed.append(name)
                continue
            try:
                link = self._way.readlink(b"/".join([*passed[depth:], name]))
            except OSError as error:
                if error.errno in _NOT_THERE:
                    return ResolvedPath("dangling")
                if error.errno != errno.EINVAL:  # what readlink says of all that is no link
                    return ResolvedPath("unreadable")
                passed.append(name)
                continue
            links += 1
            if links > LINKS:
                return ResolvedPath("loop")
            if link.startswith(b"/"):
                passed.clear()
            waiting += _names(link)[::-1]
        if len(passed) < depth:
            return ResolvedPath("outside")
        found = b"/".join(passed[depth:])
        try:
            status = self.status(found)
        except OSError as error:
            return ResolvedPath("dangling" if error.errno in _NOT_THERE else "unreadable")
        if stat.S_ISREG(status.st_mode):
            return ResolvedPath("file", found, status)
        return ResolvedPath("directory" if stat.S_ISDIR(status.st_mode) else "special", found, status)


def open_tag_file(base: BagFiles, name: bytes, problems: list[Problem]) -> BinaryIO | None:
    """Open a tag file in the base directory; :data:`None` where it is none that can be, or is refused.

    :param problems: what the operating system refuses is added, and a directory, with which the walk finds no fault
    """
    target = base.resolve(name)
    if target.kind == "directory":
        problems.append(problem("file-unreadable", name, "it is a directory"))
    elif target.kind == "unreadable":  # which must not pass for a bag without it
        problems.append(problem("file-unreadable", name, "the system refuses to look at it"))
    if target.kind != "file":
        return None
    try:
        return base.open(target.path)
    except OSError as error:
        problems.append(problem("file-unreadable", name, error.strerror or str(error)))
        return None


def _names(path: bytes) -> list[bytes]:
    return [name for name in path.split(b"/") if name not in (b"", b".")]
