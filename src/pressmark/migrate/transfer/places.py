"""The files of objects by their paths: on the disk, or in a bucket, where a path is an address."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from pressmark.errors import FileError
from pressmark.fixity import hash_file
from pressmark.migrate.object_digest import ALGORITHM, FileDigests
from pressmark.stores import Store
from pressmark.stores.object_sources import EmptyDirectory
from pressmark.stores.stored_object import status_of

if TYPE_CHECKING:
    from pressmark.buckets.bucket import Bucket

__all__ = ["DISK", "File", "Listing", "Place", "each", "place_of", "read_files"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: A name, within an object, and a path.
File = tuple[bytes, bytes]


class Listing(NamedTuple):
    """Everything below a directory, by names relative to it, and paths.

    :ivar files: in no order
    :ivar empty: empty directories
    :ivar others: symbolic links and special files
    :ivar statuses: of the files, by path, as the listing shows them: in a bucket; a disk must be asked for each
    """

    files: list[File]
    empty: Sequence[File] = ()
    others: Sequence[File] = ()
    statuses: Mapping[bytes, os.stat_result] = {}


class Place(Protocol):
    """Where files are. All methods raise :class:`OSError` for what does not exist or cannot be read.

    :ivar is_remote: whether each look costs a request
    """

    is_remote: bool

    def statuses(self, paths: Sequence[bytes]) -> list[os.stat_result]:
        """Return the status of each file; links are followed."""

    def looks(self, paths: Sequence[bytes]) -> list[os.stat_result | None]:
        """Return the status of each file or directory; :data:`None` if it cannot be determined."""

    def source(self, path: bytes, size: int | None = None) -> Any:
        """Return a file as a source for ``Store.put``.

        :param size: in bytes, if it is known
        """

    def hash(self, files: Iterable[tuple[str, bytes]], algorithms: tuple[str, ...]) -> dict[str, dict[str, str]]:
        """Read files, each once, and return their digests by name and algorithm.

        :param files: names and paths
        :raises FileError: a file cannot be read, or changed while it was read
        """

    def list(self, top: bytes) -> Listing:
        """Return everything below a directory.

        :raises FileNotFoundError: there is no such directory
        """


class _Disk:
    is_remote = False

    def statuses(self, paths: Sequence[bytes]) -> list[os.stat_result]:
        return [os.stat(path) for path in paths]

    def looks(self, paths: Sequence[bytes]) -> list[os.stat_result | None]:
        return [status_of(path) for path in paths]

    def source(self, path: bytes, size: int | None = None) -> Path:
        return Path(os.fsdecode(path))

    def hash(self, files: Iterable[tuple[str, bytes]], algorithms: tuple[str, ...]) -> dict[str, dict[str, str]]:
        return {name: hash_file(path, algorithms, threads=1, links="refuse") for name, path in files}

    def list(self, top: bytes) -> Listing:
        files: list[File] = []
        empty: list[File] = []
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
        return Listing(files, empty, others)


#: The place of all paths that are not addresses.
DISK: Place = _Disk()


class _InBucket:
    """A bucket: the paths are the addresses of its keys."""

    is_remote = True

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket
        self._above = os.fsencode(bucket.url) + b"/"

    def _key(self, path: bytes) -> bytes:
        return path[len(self._above) :]

    def statuses(self, paths: Sequence[bytes]) -> list[os.stat_result]:
        found = self._found(paths)
        for path, status in zip(paths, found, strict=True):
            if status is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return cast("list[os.stat_result]", found)

    def looks(self, paths: Sequence[bytes]) -> list[os.stat_result | None]:
        try:
            return self._found(paths)
        except OSError:
            return [None] * len(paths)

    def _found(self, paths: Sequence[bytes]) -> list[os.stat_result | None]:
        from pressmark.buckets.listing import find_keys, status_of_key

        keys = find_keys(self._bucket, [self._key(path) for path in paths])
        found = (keys.get(self._key(path)) for path in paths)
        return [None if one is None else status_of_key(one) for one in found]

    def source(self, path: bytes, size: int | None = None) -> Any:
        from pressmark.buckets.remote_content import RemoteContent

        # A key that ends with a slash stands for an empty directory.
        if path.endswith(b"/"):
            return EmptyDirectory()
        return RemoteContent(self._bucket, self._key(path), size)

    def hash(self, files: Iterable[tuple[str, bytes]], algorithms: tuple[str, ...]) -> dict[str, dict[str, str]]:
        from pressmark.fixity.bucket_files import KeyFile
        from pressmark.fixity.pool import hash_tasks

        found = {}
        tasks = ((name, KeyFile(self._bucket, self._key(path), path)) for name, path in files)
        for name, outcome in hash_tasks(tasks, algorithms):
            if outcome.digests is None:
                raise FileError(outcome.path, str(outcome.kind), str(outcome.message))
            found[name] = dict(outcome.digests)
        return found

    def list(self, top: bytes) -> Listing:
        from pressmark.buckets.listing import listed, status_of_key

        keys = listed(self._bucket, self._key(top + b"/"))
        statuses = {self._above + one.key: status_of_key(one) for one in keys}
        if not statuses:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), top)
        # A key that ends with a slash stands for a directory.
        statuses = {path: status for path, status in statuses.items() if not path.endswith(b"/")}
        return Listing([(path[len(top) + 1 :], path) for path in statuses], statuses=statuses)


def place_of(store: Store) -> Place:
    """Return the place of the files of a store's objects."""
    return DISK if store.bucket is None else _InBucket(store.bucket)


def each(function: Callable[[_Item], _Result], items: Iterable[_Item], *where: Store) -> Iterator[_Result]:
    """Call a function with each item, and yield the results in order; with a store in a bucket, several at a time."""
    if all(store.bucket is None for store in where):
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
