"""A directory of a store, as a walk and a look-up read it: on a disk, or in object storage.

The rules of Pairtree and Vitro read nothing else, so they are the same in both. Links, permissions, and file systems
that ignore case exist on disks only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from pressmark.buckets.address import is_address
from pressmark.errors import StoreError
from pressmark.fs.beneath import open_regular
from pressmark.fs.durable import exists, why_unreadable
from pressmark.fs.names import encode_fs, existing_spelling, first_link, is_absent, is_case_insensitive
from pressmark.fs.staging import kind_of_leftover
from pressmark.fs.trees import DirectoryEntry, scan, scan_beneath
from pressmark.reports import Problem
from pressmark.stores.exceptions import store_errors
from pressmark.stores.objects import Path, encode_path
from pressmark.stores.recheck import abandoned, find_unreadable

if TYPE_CHECKING:
    from pressmark.buckets.bucket import Bucket

__all__ = ["LocalDirectory", "StoreDirectory", "open_directory"]


class StoreDirectory(Protocol):
    """A directory. Paths are bytes with ``/``, relative to it; ``b""`` is the directory itself.

    Methods raise :class:`OSError` for what cannot be read.

    :cvar is_remote: whether it is in object storage: nothing can be changed there
    """

    is_remote: bool

    @property
    def bucket(self) -> Bucket | None:
        """The bucket that it is in; :data:`None` for a disk."""

    def path(self, relative: bytes) -> bytes:
        """Return the path of a file or directory for the operating system, or its address."""

    def below(self, directory: bytes) -> StoreDirectory:
        """Return a directory in it."""

    def ahead(self) -> AbstractContextManager[StoreDirectory]:
        """Return the directory for a walk, which scans directories in the order of their paths."""

    def scan(self, directory: bytes, *, follow: bool = False) -> list[DirectoryEntry]:
        """Return the entries of a directory, in the order of their names' bytes.

        :param follow: follow symbolic links
        """

    def names(self, directory: bytes) -> list[bytes]:
        """Return the names in a directory, in any order."""

    def scan_beneath(self, directory: bytes) -> list[DirectoryEntry]:
        """Return the entries of a directory like :meth:`scan`, unless the path contains a symbolic link."""

    def beginning(self, file: bytes, size: int) -> bytes:
        """Return the first bytes of a regular file; symbolic links are followed."""

    def is_link(self, path: bytes) -> bool:
        """Return whether a path is a symbolic link."""

    def first_link(self, path: bytes) -> bytes | None:
        """Return the first part of a path that is a symbolic link; :data:`None` if there is none."""

    def is_absent(self, path: bytes) -> bool:
        """Return whether a path that cannot be read does not exist."""

    def other_spelling(self, path: bytes) -> bytes | None:
        """Return the part of a path that exists in another spelling, on a file system that ignores case."""

    def why_unreadable(self, file: bytes) -> OSError | None:
        """Return the error of opening a file for reading; :data:`None` if it is readable."""

    def find_unreadable(
        self, top: bytes, path: bytes, *, links: str, ignored: Callable[[str], object]
    ) -> Iterable[Problem]:
        """Return the problems of the files at and below ``top``: see :func:`~pressmark.stores.recheck.find_unreadable`.

        :param path: path of ``top`` in the store
        """

    def leftovers(self, directory: bytes) -> Sequence[tuple[bytes, str]]:
        """Return the names of what killed runs have left in a work directory, each with the kind of its problem."""


class LocalDirectory:
    """A directory on a disk.

    :param base: its path
    """

    is_remote = False
    bucket = None

    def __init__(self, base: bytes) -> None:
        self._base = base

    def path(self, relative: bytes) -> bytes:
        return os.path.join(self._base, relative) if relative else self._base

    def below(self, directory: bytes) -> LocalDirectory:
        return LocalDirectory(self.path(directory))

    def ahead(self) -> AbstractContextManager[LocalDirectory]:
        return nullcontext(self)

    def scan(self, directory: bytes, *, follow: bool = False) -> list[DirectoryEntry]:
        return scan(self.path(directory), follow=follow)

    def names(self, directory: bytes) -> list[bytes]:
        return os.listdir(self.path(directory))

    def scan_beneath(self, directory: bytes) -> list[DirectoryEntry]:
        return scan_beneath(self._base, directory)

    def beginning(self, file: bytes, size: int) -> bytes:
        with open_regular(self.path(file), follow=True) as opened:
            return opened.read(size)

    def is_link(self, path: bytes) -> bool:
        return os.path.islink(self.path(path))

    def first_link(self, path: bytes) -> bytes | None:
        return first_link(self._base, path)

    def is_absent(self, path: bytes) -> bool:
        return is_absent(self._base, path)

    def other_spelling(self, path: bytes) -> bytes | None:
        return existing_spelling(self._base, path) if is_case_insensitive(self._base) else None

    def why_unreadable(self, file: bytes) -> OSError | None:
        return why_unreadable(self.path(file))

    def find_unreadable(
        self, top: bytes, path: bytes, *, links: str, ignored: Callable[[str], object]
    ) -> Iterable[Problem]:
        return find_unreadable(self.path(top), path, links=links, ignored=ignored)

    def leftovers(self, directory: bytes) -> list[tuple[bytes, str]]:
        return [(os.path.basename(left), kind_of_leftover(left)) for left in abandoned(self.path(directory))]


def open_directory(path: Path, tree: str, kind: str, beside: bytes = b"") -> StoreDirectory:
    """Return the directory that contains the tree of a store, from its path or address, or from that of the tree.

    :param tree: the name of the tree
    :param kind: the kind of store, for messages
    :param beside: the name of a file beside the tree; without the tree, it shows that this was a store
    :raises StoreError: there is no tree, or it cannot be read
    """
    base = encode_path(path, remote=True)
    name = encode_fs(tree)
    if is_address(base):
        from pressmark.stores.directories.bucket_directory import open_in_bucket  # slow to import

        with store_errors(base):
            return open_in_bucket(base, tree, kind, beside)
    with store_errors(base):
        if not os.path.isdir(base):
            what = "not a directory" if exists(base) else "No such file or directory"
            raise StoreError(base, f"{what}; specify the directory that contains {tree}")
        if not exists(os.path.join(base, name)) and os.path.basename(os.path.abspath(base)) == name:
            base = os.path.dirname(os.path.abspath(base))
        top = os.path.join(base, name)
        if not exists(top):
            if beside and exists(os.path.join(base, beside)):
                raise StoreError(base, f"{tree} is missing; restore it")
            what = f"not a {kind}, because {tree} is missing; specify a directory that contains it"
            raise StoreError(base, what)
        if not os.path.isdir(top):
            raise StoreError(base, f"{tree} is not a directory; restore it")
        if (error := why_unreadable(top)) is not None:
            raise error
    return LocalDirectory(base)
