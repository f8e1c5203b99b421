"""The base directory of a bag: opens files inside it, and nothing outside.

Each path is opened one name at a time, relative to a descriptor of the base directory and never through a symbolic
link, so a directory that is replaced by a link cannot lead outside. The targets of links are resolved by name until
they are known to be inside; nothing outside is accessed.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from pressmark.bagit.paths import BELOW_PAYLOAD
from pressmark.bagit.problems import problem
from pressmark.buckets.address import is_address
from pressmark.errors import BagError
from pressmark.fs.beneath import Directory, OpenBeneath, OpenBeneathByName, open_directory
from pressmark.fs.durable import is_readable, why_unreadable
from pressmark.progress_event import Progress
from pressmark.reports import Problem

if TYPE_CHECKING:
    from pressmark.fixity.ledger import Ledger
    from pressmark.fixity.outcomes import Outcome

__all__ = [
    "LINKS",
    "STAGING",
    "BagDirectory",
    "BagFiles",
    "BaseDirectory",
    "FileEntry",
    "Match",
    "Reading",
    "ResolvedPath",
    "VerifiableFiles",
    "open_tag_file",
]

# If a named pipe replaces a file after the check, opening it must not block.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
# The hidden directory of a change; not part of the bag.
STAGING = b".pressmark-bag"
LINKS = 40  # symbolic links in one path, as in Linux
# Errors for names that do not exist.
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
    """The result of resolving a path.

    :ivar kind: ``file``, ``directory`` or ``special`` inside the bag; ``outside``, ``dangling``, ``loop``, or
        ``unreadable``
    :ivar path: the path without links, relative to the base directory; empty for the base directory itself
    :ivar status: status of the file or directory; :data:`None` if it was not accessed
    """

    kind: str
    path: bytes = b""
    status: os.stat_result | None = None


class FileEntry(Protocol):
    """An entry of a directory, with the methods of :class:`os.DirEntry`."""

    @property
    def name(self) -> str:
        """The file name."""

    def is_symlink(self) -> bool:
        """Return whether the entry is a symbolic link."""

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the entry is a regular file."""

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the entry is a directory."""

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return the status of the entry."""


class Match(NamedTuple):
    """A file of a bag, and what manifests list for it.

    :ivar path: relative to the base directory
    :ivar real: the path without links; :data:`None` if a trusted link led out of the bag
    :ivar digests: expected hex digests by algorithm; a malformed one is empty
    :ivar respelled: other spellings of the path that manifests list
    """

    path: bytes
    real: bytes | None
    digests: Mapping[str, str]
    respelled: tuple[bytes, ...] = ()

    @property
    def of_payload(self) -> bool:
        """Whether the file is in the payload."""
        return self.path.startswith(BELOW_PAYLOAD)


class Reading(NamedTuple):
    """How the files of a bag are read to verify them.

    :ivar threads: number of threads; :data:`None` for one per core
    :ivar order: ``parallel``, or ``sequential`` for hard disks
    :ivar trusted: follow all symbolic links
    :ivar ledger: makes the verification of the payload resumable
    :ivar progress: of the caller
    """

    threads: int | None = None
    order: str = "parallel"
    trusted: bool = False
    ledger: Ledger | None = None
    progress: Progress | None = None


class BaseDirectory(Protocol):
    """The tag files in the base directory of a bag. :class:`BagDirectory` documents the methods."""

    path: bytes

    def names(self) -> Iterable[bytes]:
        """Return the names in the base directory."""

    def open(self, path: bytes) -> BinaryIO:
        """Open a regular file for reading."""

    def resolve(self, path: bytes) -> ResolvedPath:
        """Resolve the links in ``path``."""


class BagFiles(BaseDirectory, Protocol):
    """The files of a bag in a directory or in an archive. :class:`BagDirectory` documents the methods."""

    def scan(self, path: bytes) -> Iterator[FileEntry]:
        """Yield the entries of a directory."""

    def status(self, path: bytes) -> os.stat_result:
        """Return the status of ``path``; a symbolic link is not followed."""

    def why_unreadable(self, path: bytes, real: bytes | None) -> OSError | None:
        """Return the error of opening a file for reading; :data:`None` if it is readable."""


class VerifiableFiles(BagFiles, Protocol):
    """The files of a bag that can be read for their digests."""

    def digests(
        self, matches: Iterator[Match], algorithms: tuple[str, ...], reading: Reading
    ) -> Iterator[tuple[Match, Outcome]]:
        """Yield each file with the outcome of reading it, in order."""


class BagDirectory:
    """The open base directory of a bag; a context manager.

    :param path: a directory, or a symbolic link to one

    :ivar path: the given path, in bytes
    :ivar beneath: the open directory, for arguments of this name
    :raises BagError: ``path`` is not a directory, or cannot be opened
    """

    def __init__(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        self.path = os.fsencode(path)
        if is_address(self.path):
            raise BagError(self.path, "not supported in object storage; use a local directory")
        self._opened = ExitStack()
        try:
            if not stat.S_ISDIR(os.stat(self.path).st_mode):
                advice = "specify the base directory of a bag; for an archive, run pressmark bag unpack first"
                raise BagError(self.path, f"not a directory; {advice}")
            self.beneath: Directory = self._opened.enter_context(open_directory(self.path))
        except OSError as error:
            raise BagError(self.path, error.strerror or str(error)) from None
        except ValueError as error:  # a NUL, or a str that cannot be encoded
            raise BagError(self.path, str(error)) from None
        self._way = _ByDescriptor(self.beneath) if isinstance(self.beneath, int) else _ByName(self.beneath)
        self._opened.push(self._way)

    @cached_property
    def _real(self) -> tuple[bytes, ...]:
        """The names of the base directory without links, so that the targets of links can be compared with it."""
        return tuple(_names(self.real_path.replace(os.fsencode(os.sep), b"/")))

    @cached_property
    def real_path(self) -> bytes:
        """The absolute path of the base directory without links."""
        return os.path.realpath(self.path)

    def __enter__(self) -> BagDirectory:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all descriptors."""
        self._opened.close()

    def open(self, path: bytes) -> BinaryIO:
        """Open a regular file for reading.

        :param path: relative to the base directory, without symbolic links
        :raises OSError: the file does not exist, is not a regular file, or its path contains a symbolic link
        """
        descriptor = self._way.open(path, _FLAGS)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a regular file")
            return io.BufferedReader(io.FileIO(descriptor))
        except BaseException:
            os.close(descriptor)
            raise

    def why_unreadable(self, path: bytes, real: bytes | None) -> OSError | None:
        """Return the error of opening a file for reading; :data:`None` if it is readable.

        :param real: the path without links; :data:`None` if a trusted link leads out of the bag
        """
        if real is None:
            return why_unreadable(os.path.join(self.path, path))
        try:
            if not self._way.is_readable(real):
                self.open(real).close()
        except OSError as error:
            return error
        return None

    def names(self) -> list[bytes]:
        """Return the names in the base directory, unordered.

        :raises OSError: it cannot be read
        """
        return [os.fsencode(entry.name) for entry in self.scan(b"")]

    def digests(
        self, matches: Iterator[Match], algorithms: tuple[str, ...], reading: Reading
    ) -> Iterator[tuple[Match, Outcome]]:
        """Yield each file with the outcome of reading it, in order.

        :param algorithms: official names; at least one
        """
        from pressmark.fixity.pool import hash_tasks  # tag files are read without

        def path(match: Match) -> bytes:
            if not reading.trusted and match.real is not None:
                return match.real
            return os.path.join(self.path, match.path if match.real is None else match.real)

        return hash_tasks(
            ((match, path(match)) for match in matches),
            algorithms,
            reading.threads,
            reading.progress,
            links="follow" if reading.trusted else "refuse",
            read=reading.order,
            ledger=reading.ledger,
            beneath=None if reading.trusted else self.beneath,
        )

    def scan(self, path: bytes) -> Iterator[os.DirEntry[str]]:
        """Yield the entries of a directory, unordered; each is valid until the next one.

        :param path: relative to the base directory, without links; empty for the base directory
        :raises OSError: the directory cannot be opened or read
        """
        with self._way.names(path) as entries:
            yield from entries

    def status(self, path: bytes) -> os.stat_result:
        """Return the status of ``path``; a symbolic link is not followed. The empty path is the base directory.

        :raises OSError: ``path`` does not exist, or contains a symbolic link
        """
        return self._way.stat_directory(path)

    def _is_directory(self, path: bytes) -> bool:
        try:
            return stat.S_ISDIR(self.status(path).st_mode)
        except OSError:
            return False

    def resolve(self, path: bytes) -> ResolvedPath:
        """Resolve the links in ``path``, as long as they stay in the bag.

        A link may leave the bag by ``..`` or by an absolute path and return along the names of the base directory. Any
        other path is ``outside``, and is not accessed.
        """
        if b"/" not in path and path not in (b"", b".", b".."):
            # The usual case: a name in the base directory, and no link.
            with suppress(OSError):
                status = self.status(path)
                if not stat.S_ISLNK(status.st_mode):
                    return _resolved(path, status)
        waiting = _names(path)[::-1]
        # The names so far: those of the base directory, then those below it.
        passed = list(self._real)
        depth = len(passed)
        links = 0
        leads_to_directory = False
        while waiting:
            name = waiting.pop()
            if name == b"..":
                if len(passed) > depth and not self._is_directory(b"/".join(passed[depth:])):
                    return ResolvedPath("dangling")
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
                if error.errno != errno.EINVAL:  # not a link
                    return ResolvedPath("unreadable")
                passed.append(name)
                continue
            links += 1
            if links > LINKS:
                return ResolvedPath("loop")
            if link.startswith(b"/"):
                passed.clear()
            leads_to_directory |= link.endswith((b"/", b"/."))
            waiting += _names(link)[::-1]
        if len(passed) < depth:
            return ResolvedPath("outside")
        found = b"/".join(passed[depth:])
        try:
            status = self.status(found)
        except OSError as error:
            return ResolvedPath("dangling" if error.errno in _NOT_THERE else "unreadable")
        if leads_to_directory and not stat.S_ISDIR(status.st_mode):
            return ResolvedPath("dangling")
        return _resolved(found, status)


def _resolved(path: bytes, status: os.stat_result) -> ResolvedPath:
    if stat.S_ISREG(status.st_mode):
        return ResolvedPath("file", path, status)
    return ResolvedPath("directory" if stat.S_ISDIR(status.st_mode) else "special", path, status)


def open_tag_file(base: BaseDirectory, name: bytes, problems: list[Problem]) -> BinaryIO | None:
    """Open a tag file in the base directory; return :data:`None` if it is not a readable file.

    :param problems: receives errors of the operating system, and the problem of a directory of that name, which the
        walk does not report
    """
    target = base.resolve(name)
    if target.kind == "directory":
        problems.append(problem("file-unreadable", name, "is a directory"))
    elif target.kind == "unreadable":  # not the same as a missing file
        problems.append(problem("file-unreadable", name, "cannot be accessed"))
    if target.kind != "file":
        return None
    try:
        return base.open(target.path)
    except OSError as error:
        problems.append(problem("file-unreadable", name, error.strerror or str(error)))
        return None


def _names(path: bytes) -> list[bytes]:
    return [name for name in path.split(b"/") if name not in (b"", b".")]
