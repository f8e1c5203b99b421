"""The files of objects by their paths: on the disk, or in a bucket, where a path is an address."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pressmark.errors import FileError
from pressmark.fixity import hash_file
from pressmark.fs.beneath import read_regular
from pressmark.migrate.object_digest import ALGORITHM, FileDigests
from pressmark.stores import Store
from pressmark.stores.stored_object import status_of

if TYPE_CHECKING:
    from pressmark.buckets.bucket import Bucket

__all__ = ["DISK", "File", "Place", "each", "list_tree", "place_of", "read_files"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: A name, within an object, and a path.
File = tuple[bytes, bytes]


class Place(Protocol):
    """Where files are. All methods raise :class:`OSError` for what does not exist or cannot be read.

    :ivar is_remote: whether each look costs a request
    """

    is_remote: bool

    def statuses(self, paths: Sequence[bytes]) -> list[os.stat_result]:
        """Return the status of each file; links are followed."""

    def exists(self, path: bytes) -> bool:
        """Return whether anything is at a path."""

    def looks(self, paths: Sequence[bytes]) -> list[os.stat_result | None]:
        """Return the status of each file or directory; :data:`None` if it cannot be determined."""

    def read(self, path: bytes) -> bytes:
        """Return the content of a small file."""

    def source(self, path: bytes) -> Any:
        """Return a file as a source for ``Store.put``."""

    def kept_digests(self, path: bytes) -> Mapping[str, str]:
        """Return the digests of a file that the server keeps, by algorithm; a disk keeps none."""

    def hash(self, files: Iterable[tuple[str, bytes]], algorithms: tuple[str, ...]) -> dict[str, dict[str, str]]:
        """Read files, each once, and return their digests by name and algorithm.

        :param files: names and paths
        :raises FileError: a file cannot be read, or changed while it was read
        """

    def list_tree(self, top: bytes, files: list[File], empty: list[File]) -> list[File]:
        """List a directory: see :func:`list_tree`."""


class _Disk:
    is_remote = False

    def statuses(self, paths: Sequence[bytes]) -> list[os.stat_result]:
        return [os.stat(path) for path in paths]

    def exists(self, path: bytes) -> bool:
        return os.path.lexists(path)

    def looks(self, paths: Sequence[bytes]) -> list[os.stat_result | None]:
        return [status_of(path) for path in paths]

    def read(self, path: bytes) -> bytes:
        return read_regular(path)

    def source(self, path: bytes) -> Path:
        return Path(os.fsdecode(path))

    def kept_digests(self, path: bytes) -> Mapping[str, str]:
        return {}

    def hash(self, files: Iterable[tuple[str, bytes]], algorithms: tuple[str, ...]) -> dict[str, dict[str, str]]:
        return {name: hash_file(path, algorithms, threads=1, links="refuse") for name, path in files}

    def list_tree(self, top: bytes, files: list[File], empty: list[File]) -> list[File]:
        return list_tree(top, files, empty)


#: The place of all paths that are not addresses.
DISK: Place = _Disk()


class _InBucket:
    """A bucket: the paths are the addresses of its keys."""

    is_remote = True

    def __init__(self, bucket: Bucket) -> None:
        from pressmark.stores.ocfl.remote.remote_storage import RemoteStorage  # slow to import

        self._bucket = bucket
        self._storage = RemoteStorage(bucket)
        self._cut = len(self._storage.path(b"")) + 1
        self._sizes: dict[bytes, int] = {}

    def statuses(self, paths: Sequence[bytes]) -> list[os.stat_result]:
        if len(paths) < 2:  # none, or one
            return [self._storage.status(path[self._cut :]) for path in paths]
        keys = [path[self._cut :] for path in paths]
        above = keys[0]
        while not all(key.startswith(above) for key in keys):
            above = above[:-1].rpartition(b"/")[0] + b"/"
        found = self._storage.statuses(above)
        return [found[key] if key in found else self._storage.status(key) for key in keys]

    def exists(self, path: bytes) -> bool:
        return self._storage.exists(path[self._cut :])

    def looks(self, paths: Sequence[bytes]) -> list[os.stat_result | None]:
        try:
            return list(self.statuses(paths))
        except OSError:
            return [None] * len(paths)

    def read(self, path: bytes) -> bytes:
        return self._storage.read(path[self._cut :])

    def source(self, path: bytes) -> Any:
        from pressmark.buckets.remote_content import RemoteContent

        return RemoteContent(self._bucket, path[self._cut :], self._sizes.get(path))

    def kept_digests(self, path: bytes) -> Mapping[str, str]:
        return self._bucket.head(path[self._cut :]).digests

    def hash(self, files: Iterable[tuple[str, bytes]], algorithms: tuple[str, ...]) -> dict[str, dict[str, str]]:
        tasks = [(name, path[self._cut :]) for name, path in files]
        found = {}
        for name, outcome in self._storage.hash_tasks(tasks, algorithms, 1):
            if outcome.digests is None:
                raise FileError(outcome.path, str(outcome.kind), str(outcome.message))
            found[name] = dict(outcome.digests)
        return found

    def list_tree(self, top: bytes, files: list[File], empty: list[File]) -> list[File]:
        above = top + b"/"
        for path, status in self._storage.statuses(above[self._cut :]).items():
            name = path[len(above) - self._cut :]
            if name and not name.endswith(b"/"):  # a key that stands for a directory
                files.append((name, above + name))
                self._sizes[above + name] = status.st_size
        return []


def place_of(store: Store) -> Place:
    """Return the place of the files of a store's objects."""
    bucket = getattr(store, "bucket", None)
    return DISK if bucket is None else _InBucket(bucket)


def each(function: Callable[[_Item], _Result], items: Iterable[_Item], *where: Store) -> Iterator[_Result]:
    """Call a function with each item, and yield the results in order; with a store in a bucket, several at a time."""
    if not any(place_of(store).is_remote for store in where):
        return map(function, items)
    from pressmark.buckets.requests import in_order  # slow to import

    return in_order(function, items)


def read_files(
    place: Place, files: Iterable[tuple[str, bytes]], algorithms: tuple[str, ...] = (ALGORITHM,)
) -> FileDigests:
    """Read and hash files, each once.

    :param files: names within the object, and paths
    :param algorithms: with :data:`ALGORITHM` among them
    :raises FileError: a file cannot be read, or changed while it was read
    """
    return FileDigests(place.hash(files, algorithms))


def list_tree(top: bytes, files: list[File], empty: list[File]) -> list[File]:
    """Append the files of a tree to ``files``, and its empty directories to ``empty``.

    :return: symbolic links and special files
    :raises OSError: a directory cannot be read
    """
    others: list[File] = []
    left = [(b"", top)]
    while left:
        above, directory = left.pop()
        is_empty = True
        with os.scandir(directory) as entries:
            for entry in entries:
                is_empty = False
                name = above + entry.name
                if entry.is_file(follow_symlinks=False):
                    files.append((name, entry.path))
                elif entry.is_dir(follow_symlinks=False):
                    left.append((name + b"/", entry.path))
                else:
                    others.append((name, entry.path))
        if is_empty and above:
            empty.append((above[:-1], directory))
    return others
