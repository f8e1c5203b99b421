"""The storage of an OCFL storage root, which performs all reads and writes of a root. Only
:mod:`pressmark.stores.ocfl.local` depends on a local disk; the rest of this package implements OCFL. New objects and
versions are prepared where nobody reads them, and then published.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol, TypeVar

from pressmark import _kernels
from pressmark.fixity.outcomes import Content, Outcome
from pressmark.fs.trees import DirectoryEntry

if TYPE_CHECKING:
    from pressmark.stores.object_sources import Copier, SourceCopy

__all__ = ["HEAD", "UNLIMITED", "Changes", "Reader", "Reads", "Storage", "status_or_none"]

Key = TypeVar("Key")
#: What to read of objects: nothing; the beginning of the inventory; all files except content, which is only opened; or
#: all files.
Reads = Literal["paths", "ids", "rules", "content"]
#: The bytes at the beginning of an inventory that nearly always contain the identifier.
HEAD = 4096
UNLIMITED = 1 << 40


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

    :cvar siblings: how many directories in a directory a walk reads in one call of :meth:`trees`
    :cvar walkers: how many threads of a walk are of use
    :cvar first: how many objects show whether the layout fits; see :mod:`pressmark.stores.placement`
    :cvar has_links: whether there may be symbolic links
    """

    siblings: int
    walkers: int
    first: int
    has_links: bool

    @property
    def work_directory(self) -> bytes | None:
        """The path of the directory where runs on this machine prepare changes; :data:`None` in object storage."""

    def below(self, path: bytes) -> Storage:
        """Return the storage of one directory."""

    def path(self, relative: bytes) -> bytes:
        """Return the path by which the operating system finds a file or directory."""

    def scan(self, directory: bytes) -> list[DirectoryEntry]:
        """Return the entries of a directory, in byte order."""

    def all_entries(self) -> Mapping[bytes, Sequence[DirectoryEntry]] | None:
        """Return what :meth:`scan` returns for each directory, if that is known at once; otherwise :data:`None`."""

    def first_directories(self) -> list[bytes]:
        """Return the names of the first directories in the root, in byte order."""

    def trees(
        self,
        directory: bytes,
        names: Sequence[bytes],
        reads: Reads,
        *,
        marker: bytes = b"",
        clashes: bool = False,
        budget: int = UNLIMITED,
    ) -> _kernels.active.TreeBatch:
        """Read objects into memory, many in one call: see :func:`pressmark._kernels.pure.trees.read_trees`.

        Paths are text. Large objects are left out, and the call may return before the last name.

        :param directory: a directory
        :param names: directories in it: objects, or with a marker directories above objects
        :param reads: what to read of them
        :param marker: the first bytes of the name of a file that every object contains
        :param clashes: leave out directories with names that may differ in case only
        :param budget: the maximum number of objects, and directories above objects, to read
        """

    def exists(self, path: bytes) -> bool:
        """Return whether the path exists."""

    def status(self, path: bytes) -> os.stat_result:
        """Return the status of a file or directory; it distinguishes two versions of a file."""

    def why_unreadable(self, file: bytes) -> OSError | None:
        """Return the error of opening a file for reading; :data:`None` if it is readable."""

    def open(self, file: bytes) -> tuple[BinaryIO, os.stat_result]:
        """Open a regular file for reading, and return it with its status. It never waits for a named pipe."""

    def read(self, file: bytes, limit: int = -1) -> bytes:
        """Return the content of a regular file like :meth:`open`, or its first ``limit`` bytes.

        Without a limit, a file too large to be an inventory is an error.
        """

    def sources(self, files: Iterable[tuple[Key, bytes]]) -> Iterator[tuple[Key, bytes | Content]]:
        """Yield the source of each file for a copy: its real path, or its content.

        :param files: key and path of each file
        """

    def hash_tasks(
        self, tasks: Iterable[tuple[Key, bytes]], algorithms: tuple[str, ...], threads: int
    ) -> Iterator[tuple[Key, Outcome]]:
        """Hash files, and yield the key and outcome of each, in order.

        :param tasks: key and path of each file
        """

    def too_long(self, path: bytes) -> str | None:
        """Return why a path is too long for the storage; :data:`None` if it is not."""

    def is_absent(self, path: bytes) -> bool:
        """Return whether a path that is too long does not exist, because a directory above it does not."""

    def first_link(self, path: bytes) -> bytes | None:
        """Return the first part of a path that is a symbolic link; :data:`None` if there is none."""

    def create(self, files: Mapping[bytes, bytes | None], name: bytes, data: bytes) -> None:
        """Create a root where nothing is, or where only an interrupted creation is.

        :param files: its files, and directories whose content is :data:`None`, in this order
        :param name: the declaration, which is written last
        :raises StoreError: the place is not empty
        """

    def is_leftover(self, path: bytes, version: bytes = b"") -> bool:
        """Return whether the directory of an object, or of a version, contains only what an interrupted run left, which
        the next one continues.
        """

    def is_decided(self, path: bytes, version: bytes) -> bool:
        """Return whether a run has decided a version of the object at ``path`` that it may not have published yet."""

    def removals(self) -> Sequence[bytes]:
        """Return the paths of objects whose removal has begun and not ended."""

    def leftovers(self) -> Sequence[bytes]:
        """Return the paths of what interrupted runs may have left outside of objects, such as files sent in part."""

    def changes(self, durable: bool) -> AbstractContextManager[Changes]:
        """Return changes of the root.

        :param durable: flush them to disk
        """

    def scratch(self) -> AbstractContextManager[bytes]:
        """Return an empty directory of the file system for content that is read several times, removed at the end."""


class Changes(Protocol):
    """Changes of a storage root: new objects and versions are prepared, then published; others are discarded at the
    end. All methods raise :class:`OSError` if the storage refuses the operation.

    :ivar path: where objects are prepared, which nobody reads
    :ivar together: how many objects can be published at a time
    :ivar alone: whether what other runs have begun is known to be interrupted
    """

    path: bytes
    together: int
    alone: bool

    def lock(self, *, wait: bool = True) -> AbstractContextManager[object]:
        """Return a context in which no other run changes the root; it must be short.

        :raises BlockingIOError: another run holds it, and ``wait`` is false
        """

    def claimed(self, path: bytes) -> AbstractContextManager[object]:
        """Return a context in which no other run changes the object at ``path``, where no lock keeps runs apart.

        :raises SourceError: of kind ``changed``: another run is changing it
        """

    # --- prepare ------------------------------------------------------------------------------------------------------

    def begin(self, path: bytes = b"") -> bytes:
        """Return a new path for preparing an object or a version, where nothing exists.

        :param path: where the object is, or will be
        """

    def look_up(self, paths: Sequence[bytes]) -> None:
        """Prepare :meth:`is_free` of many paths."""

    def is_free(self, path: bytes) -> bool:
        """Return whether nothing is at a path, and nothing below it."""

    def make(self, directory: bytes) -> None:
        """Make sure that a directory exists, with those above it.

        :param directory: at or below a path of :meth:`begin`
        """

    def copy(self, copies: Sequence[SourceCopy], copier: Copier, together: int | None = None) -> Iterator[SourceCopy]:
        """Copy files to paths below those of :meth:`begin`; see :meth:`Copier.copy`."""

    def added(self, file: bytes, digests: Mapping[str, str]) -> None:
        """Note that a file that was copied stays in the version.

        :param digests: of its content, by algorithm
        """

    def write(self, new: bytes, files: Mapping[bytes, bytes | None]) -> None:
        """Write files below a path of :meth:`begin`, in this order, and directories whose content is :data:`None`."""

    def drop(self, file: bytes) -> None:
        """Remove a file that was copied."""

    def prune(self, directory: bytes) -> None:
        """Remove a directory if it is empty."""

    def is_prepared(self, new: bytes) -> bool:
        """Return whether anything is at the path of :meth:`begin`."""

    def discard(self, new: bytes) -> None:
        """Remove what was prepared, as far as possible."""

    # --- publish ------------------------------------------------------------------------------------------------------

    def recover(self, path: bytes) -> bool:
        """Finish what an interrupted run has decided about the object at ``path``, and return whether there was
        anything.

        :raises FileNotFoundError: a file of the version is missing
        :raises SourceError: of kind ``changed``: another run is removing the object
        """

    def clear(self, path: bytes) -> bool:
        """Discard a leftover, unless it may belong to a run that goes on; return whether it was discarded."""

    def remove_leftover(self, path: bytes, objects: Sequence[bytes]) -> bool:
        """Remove a file or directory that an interrupted run surely left, and that no inventory lists; return whether
        there was one.

        :param objects: paths where an object may be that lists it
        """

    def publish(self, new: bytes, path: bytes, known: set[bytes], *, replace_empty: bool = False) -> None:
        """Publish an object in one step.

        :param known: directories above objects that were published before, while the lock was held; more are added
        :param replace_empty: also replace an empty directory
        :raises FileExistsError: anything is there, or ``path`` is inside another object
        :raises NotADirectoryError: a file is above it
        """

    def publish_version(
        self, new: bytes, path: bytes, version: bytes, sidecar: bytes, data: bytes, declared: bytes = b""
    ) -> None:
        """Publish a version of the object at ``path``, or nothing: its directory, then the object's inventory and
        sidecar, which are beside the directory.

        :param sidecar: name of the sidecar
        :param data: the inventory of the object before
        :param declared: as for :meth:`publish_inventory`
        :raises FileExistsError: the object has the version
        """

    def adopt(self, new: bytes, digests: Mapping[str, Mapping[str, str]]) -> None:
        """Prepare an object, or a version in a directory of its name, from the files that were copied to a path of
        :meth:`begin`, unchanged.

        :param digests: of each file, by its path in the object and algorithm
        :raises OSError: it cannot be stored
        """

    def adopt_version(self, directory: bytes, path: bytes) -> None:
        """Move the directory of a version, which has its name, into the object at ``path``.

        :raises FileExistsError: the object has the version
        """

    def publish_inventory(self, new: bytes, path: bytes, sidecar: bytes, declared: bytes = b"") -> None:
        """Publish inventory and sidecar of the object at ``path``, whose newest version is there.

        :param declared: name of the declaration beside the inventory, if the OCFL version or the digest algorithm has
            changed: the old sidecar is removed before the sidecar is published; then the declaration is published, and
            the old one is removed
        """

    def flush(self, *paths: bytes) -> None:
        """Flush directories with everything in them to disk, if the changes are durable.

        :param paths: of :meth:`begin`, or in the root
        """

    def put(self, path: bytes, data: bytes) -> None:
        """Write or replace a file of the root in one step."""

    def remove(self, path: bytes) -> None:
        """Remove a file of the root, if it is there."""

    def remove_empty(self, path: bytes, stop: bytes, removed: list[bytes], *, strict: bool) -> None:
        """Remove a directory of the root if it is empty, and those above it that become empty.

        :param stop: a directory that is not removed
        :param removed: the removed directories are added
        :param strict: raise the error of a directory that cannot be removed
        """

    def withdraw(self, path: bytes) -> list[bytes]:
        """Remove an object in one step, then the directories above it that are empty.

        :return: the directories that were above it, as paths of the file system, the outermost first
        """


def status_or_none(storage: Storage, path: bytes) -> os.stat_result | None:
    """Return the status of a file or directory, or :data:`None` if it cannot be determined."""
    try:
        return storage.status(path)
    except OSError:
        return None
