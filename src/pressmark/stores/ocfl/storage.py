"""The storage of an OCFL storage root, which performs all reads and writes of a root. Only :class:`LocalStorage`
depends on a local disk; the rest of this package implements OCFL. New objects are written to a staging directory first,
and a storage publishes them atomically.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from io import FileIO
from typing import BinaryIO, Literal, Protocol, TypeVar

from pressmark import _kernels
from pressmark.fixity.outcomes import Outcome
from pressmark.fs import durable
from pressmark.fs.beneath import open_beneath, read_all, require_regular
from pressmark.fs.moves import make_parents, prune_empty_parents, rename_new
from pressmark.fs.trees import DirectoryEntry, Wanted, scan
from pressmark.stores.placement import first_directories
from pressmark.threads import require_use

__all__ = ["HEAD", "LocalStorage", "Reader", "Reads", "Storage", "status_or_none"]

Key = TypeVar("Key")
#: What to read of objects: nothing; the beginning of the inventory; all files except content, which is only opened; or
#: all files.
Reads = Literal["paths", "ids", "rules", "content"]
#: The bytes at the beginning of an inventory that nearly always contain the identifier.
HEAD = 4096
UNLIMITED = 1 << 40
# What is wrong after a torn read is looked at again.
_FILES = Wanted(text=True, twice=False)
_NAMES = _FILES._replace(content="names", inside=False)
_WANTED = {
    "paths": _NAMES,
    "ids": _NAMES._replace(prefixes=(b"inventory.json/",), first=HEAD),
    "rules": _FILES._replace(content="open", prefixes=(b"0=", b"inventory.json")),
    "content": _FILES,
}


class Reader(Protocol):
    """Directories and files by their paths: a storage, or one object of it in memory."""

    def scan(self, directory: bytes) -> list[DirectoryEntry]:
        """Return the entries of a directory, in byte order."""

    def read(self, file: bytes, limit: int = -1) -> bytes:
        """Return the content of a regular file, or its first ``limit`` bytes."""


class Storage(Reader, Protocol):
    """A location that contains a storage root, or one object of it.

    All paths are bytes with ``/``, relative to the root; ``b""`` is the root itself. Symbolic links are not followed,
    because OCFL allows none (E090). Every method raises :class:`OSError` if the storage refuses the operation.
    """

    def below(self, place: bytes) -> Storage:
        """Return the storage of one directory."""

    def path(self, place: bytes) -> bytes:
        """Return the path by which the operating system finds a file or directory."""

    def scan(self, directory: bytes) -> list[DirectoryEntry]:
        """Return the entries of a directory, in byte order."""

    def first_directories(self) -> list[bytes]:
        """Return the names of the first directories in the root, in byte order."""

    def trees(
        self,
        place: bytes,
        names: Sequence[bytes],
        reads: Reads,
        *,
        marker: bytes = b"",
        clashes: bool = False,
        budget: int = UNLIMITED,
    ) -> _kernels.active.TreeBatch:
        """Read objects into memory, many in one call: see :func:`pressmark._kernels.pure.trees.read_trees`.

        Paths are text. Large objects are left out, and the call may return before the last name.

        :param place: a directory
        :param names: directories in it: objects, or with a marker directories above objects
        :param reads: what to read of them
        :param marker: the first bytes of the name of a file that every object contains
        :param clashes: leave out directories with names that may differ in case only
        :param budget: the maximum number of objects, and directories above objects, to read
        """

    def exists(self, place: bytes) -> bool:
        """Return whether the path exists."""

    def status(self, place: bytes) -> os.stat_result:
        """Return the status of a file or directory; it distinguishes two versions of a file."""

    def why_unreadable(self, file: bytes) -> OSError | None:
        """Return the error of opening a file for reading; :data:`None` if it is readable."""

    def open(self, file: bytes) -> tuple[BinaryIO, os.stat_result]:
        """Open a regular file for reading, and return it with its status. It never waits for a named pipe."""

    def read(self, file: bytes, limit: int = -1) -> bytes:
        """Return the content of a regular file like :meth:`open`, or its first ``limit`` bytes.

        Without a limit, a file too large to be an inventory is an error.
        """

    def hash_tasks(
        self, tasks: Iterable[tuple[Key, bytes]], algorithms: tuple[str, ...], threads: int
    ) -> Iterator[tuple[Key, Outcome]]:
        """Hash files, and yield the key and outcome of each, in order.

        :param tasks: key and path of each file
        """

    def publish(self, new: bytes, place: bytes) -> None:
        """Move a staged directory to ``place``, with the directories above it; never replaces anything except an empty
        directory.

        :param new: its path in the file system
        """

    def add(self, new: bytes, place: bytes) -> None:
        """Move a staged directory that is not empty to ``place``, in an existing directory; never replaces anything.

        :param new: its path in the file system
        :raises FileExistsError: something is there
        """

    def replace(self, new: bytes, place: bytes) -> None:
        """Move a staged file over the one at ``place`` in one step.

        :param new: its path in the file system
        """

    def flush(self, directory: bytes) -> None:
        """Flush the entries of a directory to disk."""

    def withdraw(self, place: bytes, to: bytes) -> None:
        """Move a directory out in one step, then remove the directories above it that are empty.

        :param to: its new path in the file system
        """


class LocalStorage:
    """A storage root on a local disk.

    :param base: a directory, which may be a symbolic link
    :param place: path of the root in it
    """

    def __init__(self, base: bytes, place: bytes = b"") -> None:
        self._base = base
        self._inside = os.path.join(place, b"")
        self._root = os.path.join(base, place) if place else base
        self._prefix = os.path.join(self._root, b"")

    def below(self, place: bytes) -> LocalStorage:
        return LocalStorage(os.path.abspath(self._base), self._inside + place)

    def path(self, place: bytes) -> bytes:
        return self._prefix + place if place else self._root

    def scan(self, directory: bytes) -> list[DirectoryEntry]:
        require_use()
        return scan(self.path(directory), follow=False)

    def first_directories(self) -> list[bytes]:
        return first_directories(self._root)

    def trees(
        self,
        place: bytes,
        names: Sequence[bytes],
        reads: Reads,
        *,
        marker: bytes = b"",
        clashes: bool = False,
        budget: int = UNLIMITED,
    ) -> _kernels.active.TreeBatch:
        wanted = _WANTED[reads]._replace(marker=marker, clashes=clashes, budget=budget)
        return _kernels.active.read_trees(self.path(place), names, wanted)

    def exists(self, place: bytes) -> bool:
        return durable.exists(self.path(place))

    def status(self, place: bytes) -> os.stat_result:
        return os.lstat(self.path(place))

    def why_unreadable(self, file: bytes) -> OSError | None:
        return durable.why_unreadable(self.path(file))

    def _open(self, file: bytes) -> int:
        require_use()
        return require_regular(open_beneath(self._base, self._inside + file), self.path(file))

    def open(self, file: bytes) -> tuple[BinaryIO, os.stat_result]:
        descriptor = self._open(file)
        return open(descriptor, "rb"), os.fstat(descriptor)

    def read(self, file: bytes, limit: int = -1) -> bytes:
        with FileIO(self._open(file)) as opened:
            if limit >= 0:
                return opened.read(limit) or b""
            return read_all(opened, os.fstat(opened.fileno()).st_size)

    def hash_tasks(
        self, tasks: Iterable[tuple[Key, bytes]], algorithms: tuple[str, ...], threads: int
    ) -> Iterator[tuple[Key, Outcome]]:
        from pressmark.fixity.pool import hash_tasks  # only a check reads content

        return hash_tasks(((key, self.path(file)) for key, file in tasks), algorithms, threads, links="refuse")

    def publish(self, new: bytes, place: bytes) -> None:
        parent, target = os.path.dirname(place), self.path(place)
        try:
            if parent:
                make_parents(self._root, parent)
            if os.path.isdir(target):
                os.rmdir(target)  # empty: left behind by a killed run or another program
            rename_new(new, target)
        except OSError:
            prune_empty_parents(self._root, parent, strict=False)
            raise

    def add(self, new: bytes, place: bytes) -> None:
        target = self.path(place)
        try:
            rename_new(new, target)
        except OSError as error:
            # Without a rename that never replaces, a directory with files still does not yield to another.
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
            raise

    def replace(self, new: bytes, place: bytes) -> None:
        os.replace(new, self.path(place))

    def flush(self, directory: bytes) -> None:
        durable.flush_directory(self.path(directory))

    def withdraw(self, place: bytes, to: bytes) -> None:
        os.rename(self.path(place), to)
        prune_empty_parents(self._root, os.path.dirname(place), strict=False)


def status_or_none(storage: Storage, place: bytes) -> os.stat_result | None:
    """Return the status of a file or directory, or :data:`None` if it cannot be determined."""
    try:
        return storage.status(place)
    except OSError:
        return None
