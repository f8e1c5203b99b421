"""A part of a bucket as a directory: files and directories by their paths.

A bucket has keys and no directories: a directory exists as long as a key is below it. Several programs write an empty
key that ends with ``/`` for a directory; it is not a file.
"""

from __future__ import annotations

import errno
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from pressmark.buckets.bucket import Bucket, ListedKey
from pressmark.buckets.listing import key_before, listed, pages
from pressmark.buckets.remote_file import RemoteFile
from pressmark.fs.trees import DirectoryEntry
from pressmark.threads import require_use

__all__ = ["RemoteDirectory"]

# A listing replaces this many look-ups, which are made at the same time, or is not worth its time.
NEIGHBOURS = 16


class RemoteDirectory:
    """Everything in a bucket whose key begins with a prefix.

    :param prefix: empty, or with ``/`` at its end
    """

    def __init__(self, bucket: Bucket, prefix: bytes = b"") -> None:
        self.bucket = bucket
        self.prefix = prefix

    def path(self, relative: bytes) -> bytes:
        where = self.prefix + relative if relative else self.prefix[:-1]
        return os.fsencode(self.bucket.url) + b"/" + where if where else os.fsencode(self.bucket.url)

    def read(self, path: bytes) -> tuple[bytes, str]:
        """Return the content of a file, and its token."""
        with RemoteFile(self.bucket, self.prefix + path) as opened:
            return opened.readall(), opened.status.token

    def listed(self, path: bytes, limit: int | None = None, *, start: bytes = b"") -> Iterator[ListedKey]:
        """Yield the keys whose path begins with ``path``, in the order of their bytes.

        :param limit: maximum number of keys
        :param start: only keys after the path and this
        """
        return listed(self.bucket, self.prefix + path, limit, start=start)

    def names(self, directory: bytes) -> list[bytes]:
        """Return the paths of all files below a directory, relative to it."""
        top = directory + b"/" if directory else b""
        return [one.key[len(self.prefix) + len(top) :] for one in self.listed(top)]

    def entries(self, directory: bytes) -> Iterator[DirectoryEntry]:
        """Yield the entries of a directory; one whose name is empty stands for the directory itself."""
        prefix = self.prefix + directory + b"/" if directory else self.prefix
        for page in pages(self.bucket, prefix, delimiter=True):
            yield from (DirectoryEntry(one.key[len(prefix) :], "file", False) for one in page.keys)
            yield from (DirectoryEntry(one[len(prefix) : -1], "directory", False) for one in page.directories)

    def not_a_directory(self, path: bytes) -> OSError:
        """Return the error that a path is not a directory, because it is a file or does not exist."""
        number = errno.ENOENT if self.file(path) is None else errno.ENOTDIR
        return OSError(number, os.strerror(number), self.path(path))

    def find(self, path: bytes) -> ListedKey | None:
        """Return the file with a path, or the first one below it; :data:`None` if there is neither."""
        for start in (path, path + b"/"):
            first = next(self.listed(start, 1), None)
            # The first key that begins with the path is the path itself, if there is such a key.
            if first is None or first.key == self.prefix + path or first.key.startswith(self.prefix + path + b"/"):
                return first
        return None

    def exists(self, path: bytes) -> bool:
        return not path or self.find(path) is not None

    def free(self, paths: Sequence[bytes]) -> set[bytes]:
        """Return those of many paths that do not exist, as far as few listings tell: others may not exist, too."""
        free: set[bytes] = set()
        left = sorted(paths)
        done = NEIGHBOURS
        while done >= NEIGHBOURS and len(left) >= NEIGHBOURS:
            require_use()
            page = self.bucket.list(self.prefix, after=key_before(self.prefix + left[0]))
            keys = [one.key[len(self.prefix) :] for one in page.keys]
            done = 0
            for path in left:
                first = bisect_left(keys, path + b"/")
                if first == len(keys) and page.after is not None:
                    break
                done += 1
                is_file = keys[bisect_left(keys, path) :][:1] == [path]
                if not is_file and not (first < len(keys) and keys[first].startswith(path + b"/")):
                    free.add(path)
            left = left[done:]
        return free

    def file(self, path: bytes) -> ListedKey | None:
        """Return the file with exactly this path."""
        first = self.find(path) if path else None
        return first if first is not None and first.key == self.prefix + path else None

    def is_directory(self, path: bytes) -> bool:
        """Return whether a file is below a path."""
        return not path or any(True for _ in self.listed(path + b"/", 1))
