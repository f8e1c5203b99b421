"""The keys of a storage root in a bucket, by the paths of files and directories."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from pressmark.buckets.bucket import Bucket, ListedKey
from pressmark.buckets.probe import STAGING, ProbeResult, probe
from pressmark.buckets.remote_file import RemoteFile
from pressmark.errors import StoreError
from pressmark.fs.trees import DirectoryEntry
from pressmark.threads import require_use

__all__ = ["DECIDED", "FIRST", "REMOVALS", "Location"]

#: Where runs note which objects they remove.
REMOVALS = STAGING + b"removals/"

#: The inventory of a version, relative to its object.
DECIDED = re.compile(rb"v[0-9]+/inventory\.json")
#: That of the first version, which decides about a new object.
FIRST = re.compile(rb"v0*1/inventory\.json")
_IN_VERSION = re.compile(rb"v[0-9]+/")


class Location:
    """A part of a bucket: everything whose key begins with a prefix.

    :param prefix: empty, or with ``/`` at its end
    :ivar probed: how the server behaves, once that is known
    """

    def __init__(self, bucket: Bucket, prefix: bytes) -> None:
        self.bucket = bucket
        self.prefix = prefix
        self.probed: ProbeResult | None = None

    def path(self, relative: bytes) -> bytes:
        where = self.prefix + relative if relative else self.prefix[:-1]
        return os.fsencode(self.bucket.url) + b"/" + where if where else os.fsencode(self.bucket.url)

    def require_fit(self) -> None:
        """Check once that the server decides between writers.

        :raises StoreError: it does not
        """
        if self.probed is not None:
            return
        found = probe(self.bucket, self.prefix)
        if not found.is_safe:
            what = "the server ignores conditions, so that writers can overwrite each other's files"
            raise StoreError(self.path(b""), f"{what}; see pressmark store probe, and use another server")
        self.probed = found

    def read(self, path: bytes) -> tuple[bytes, str]:
        """Return the content of a file, and its token."""
        with RemoteFile(self.bucket, self.prefix + path) as opened:
            return opened.readall(), opened.status.token

    def listed(self, path: bytes, limit: int | None = None, *, start: bytes = b"") -> Iterator[ListedKey]:
        """Yield the keys whose path begins with ``path``, in the order of their bytes.

        :param limit: at most so many
        :param start: the end of a path from which on they are listed
        """
        after: bytes | None = self.prefix + path + start if start else b""
        while after is not None:
            require_use()
            page = self.bucket.list(self.prefix + path, after=after, limit=limit or 1000)
            yield from page.keys
            after = None if limit else page.after

    def names(self, directory: bytes) -> list[bytes]:
        """Return the paths of all files below a directory, relative to it."""
        top = directory + b"/" if directory else b""
        return [one.key[len(self.prefix) + len(top) :] for one in self.listed(top)]

    def entries(self, directory: bytes) -> Iterator[DirectoryEntry]:
        """Yield the entries of a directory; one whose name is empty stands for the directory itself."""
        prefix = self.prefix + directory + b"/" if directory else self.prefix
        after: bytes | None = b""
        while after is not None:
            require_use()
            page = self.bucket.list(prefix, after=after, delimiter=True)
            yield from (DirectoryEntry(one.key[len(prefix) :], "file", False) for one in page.keys)
            yield from (DirectoryEntry(one[len(prefix) : -1], "directory", False) for one in page.directories)
            after = page.after

    def find(self, path: bytes) -> ListedKey | None:
        """Return the file with a path, or the first one below it; :data:`None` if there is neither."""
        for start in (path, path + b"/"):
            first = next(self.listed(start, 1), None)
            # The first key that begins with the path is the path itself, if there is such a key.
            if first is None or first.key == self.prefix + path or first.key.startswith(self.prefix + path + b"/"):
                return first
        return None

    def file(self, path: bytes) -> ListedKey | None:
        """Return the file with exactly this path."""
        first = self.find(path) if path else None
        return first if first is not None and first.key == self.prefix + path else None

    def is_directory(self, path: bytes) -> bool:
        """Return whether a file is below a path."""
        return not path or any(True for _ in self.listed(path + b"/", 1))

    def is_leftover(self, path: bytes, version: bytes = b"") -> bool:
        """Return whether the directory of an object, or of a version, has only content that no inventory lists, and
        that Pressmark has written.
        """
        top = path + b"/" + version if version else path
        names = self.names(top)
        if version:
            is_left = bool(names) and b"inventory.json" not in names
        else:
            is_left = bool(names) and all(_IN_VERSION.match(name) and not FIRST.fullmatch(name) for name in names)
        return is_left and not any(self.is_ours(top + b"/" + name) is False for name in names)

    def is_ours(self, path: bytes) -> bool | None:
        """Return whether Pressmark has written a file; :data:`None` if the file is gone."""
        try:
            return self.bucket.head(self.prefix + path).is_ours
        except FileNotFoundError:
            return None
