"""A directory of a store in object storage."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from pressmark.buckets.bucket import ARCHIVES, ArchivedError, Bucket, ListedKey, Page, key_text
from pressmark.buckets.remote_content import RemoteContent
from pressmark.buckets.remote_directory import RemoteDirectory
from pressmark.buckets.remote_file import RemoteFile
from pressmark.buckets.requests import in_order
from pressmark.errors import StoreError
from pressmark.fixity.outcomes import Content
from pressmark.fs.names import decode_fs, encode_fs, is_partial
from pressmark.fs.staging import LOCK
from pressmark.fs.trees import DirectoryEntry
from pressmark.reports import Problem
from pressmark.stores.exceptions import store_errors
from pressmark.stores.problems import problem
from pressmark.threads import Threads, require_use

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["BucketDirectory", "open_in_bucket", "read_ahead"]

Key = TypeVar("Key")
# Keys that are listed ahead of a walk: the entries of a larger directory cost a request of their own.
AHEAD = 8_000
# Nothing in a directory sorts after its name and this; no name sorts between this and its slash.
_END, _BEFORE = "/\U0010ffff".encode(), ".\U0010ffff".encode()
# Stands for keys whose next part is empty: no file and no directory of a disk has such a path.
_NAMELESS = DirectoryEntry(b"/", "special", False)


class BucketDirectory:
    """A directory in a bucket: see :class:`~pressmark.stores.directories.store_directory.StoreDirectory`.

    :param prefix: the beginning of its keys; empty, or with ``/`` at its end
    """

    is_remote = True

    def __init__(self, bucket: Bucket, prefix: bytes = b"") -> None:
        self.bucket = bucket
        self.prefix = prefix
        self._remote = RemoteDirectory(bucket, prefix)

    def path(self, relative: bytes) -> bytes:
        return self._remote.path(relative)

    def below(self, directory: bytes) -> BucketDirectory:
        return BucketDirectory(self.bucket, self.prefix + directory + b"/")

    @contextmanager
    def ahead(self) -> Iterator[BucketDirectory]:
        with Threads(1, "pressmark-request", patience=1.0) as pool:
            yield _Ahead(self.bucket, self.prefix, pool)

    def scan(self, directory: bytes, *, follow: bool = False) -> list[DirectoryEntry]:
        found = list(self._remote.entries(directory))
        if directory and not found:
            raise self._remote.not_a_directory(directory)
        nameless = [_NAMELESS] if any(not entry.name and entry.kind == "directory" for entry in found) else []
        return sorted([*nameless, *(entry for entry in found if entry.name)])

    def names(self, directory: bytes) -> list[bytes]:
        return [entry.name for entry in self.scan(directory)]

    def scan_beneath(self, directory: bytes) -> list[DirectoryEntry]:
        return self.scan(directory)

    def beginning(self, file: bytes, size: int) -> bytes:
        with RemoteFile(self.bucket, self.prefix + file, size) as opened:
            return opened.readall()

    def is_link(self, path: bytes) -> bool:
        return False

    def first_link(self, path: bytes) -> None:
        return None

    def is_absent(self, path: bytes) -> bool:
        try:
            key_text(self.prefix + path + b"/")
        except OSError:  # no key is as long, or not UTF-8
            return True
        return False

    def other_spelling(self, path: bytes) -> None:
        return None

    def why_unreadable(self, file: bytes) -> OSError | None:
        """Return why a file is unreadable, as far as a listing shows it: it is archived."""
        return ArchivedError(file) if file in self.archived(file) else None

    def archived(self, top: bytes) -> list[bytes]:
        """Return the paths of the archived files at and below ``top``."""
        paths = (one.key[len(self.prefix) :] for one in self._remote.listed(top) if one.storage_class in ARCHIVES)
        return [path for path in paths if (path + b"/").startswith(top + b"/")]

    def find_unreadable(
        self, top: bytes, path: bytes, *, links: str, ignored: Callable[[str], object]
    ) -> Iterable[Problem]:
        try:
            names = [entry.name for entry in self.scan(top)]
        except FileNotFoundError:
            return ()
        except NotADirectoryError:
            names = []
        is_unended = is_partial(path.rpartition(b"/")[2]) or (names and all(map(is_partial, names)))
        found = [problem("partial", path, section="")] if is_unended else []
        for below in (file[len(top) :] for file in self.archived(top)):
            if not any(map(ignored, decode_fs(below).split("/")[1:])):
                found.append(problem("content-archived", path + below))
        return found

    def leftovers(self, directory: bytes) -> list[tuple[bytes, str]]:
        try:
            entries = self.scan(directory)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [(one.name, "leftover") for one in entries if one.kind == "directory" and one.name != LOCK]

    # --- the files of an object ---------------------------------------------------------------------------------------

    def file(self, path: bytes) -> ListedKey | None:
        """Return the file with exactly this path."""
        return self._remote.file(path)

    def listed(self, directory: bytes, members: Collection[bytes] | None) -> Iterator[tuple[bytes, ListedKey]]:
        """Yield the keys below a directory, each with its path there, in the order of their bytes.

        :param members: only below these names; large directories beside them are not listed
        """
        prefix = self.prefix + directory + b"/" if directory else self.prefix
        after: bytes | None = b""
        while after is not None:
            require_use()
            page = self.bucket.list(prefix, after=after)
            after = page.after
            for one in page.keys:
                path = one.key[len(prefix) :]
                name = path.partition(b"/")[0]
                if members is None or name in members:
                    yield path, one
            if after is not None and members is not None and name not in members:
                after = max(after, prefix + name + _END)


class _Ahead(BucketDirectory):
    """A directory for a walk, which lists keys ahead: a request for a thousand keys, not for a directory."""

    def __init__(self, bucket: Bucket, prefix: bytes, pool: Threads) -> None:
        super().__init__(bucket, prefix)
        self._pool = pool
        # What is listed while the caller works, and the key after which it begins.
        self._next: tuple[bytes, Future[Page]] | None = None
        # All keys from the beginning on, up to the one after which the next request lists.
        self._begin = b""
        self._keys: list[bytes] = []
        self._archived: list[bytes] = []
        self._after: bytes | None = b""

    def scan(self, directory: bytes, *, follow: bool = False) -> list[DirectoryEntry]:
        top = self.prefix + directory + b"/" if directory else self.prefix
        end = top[:-1] + b"0" if top else b""  # the character after the slash
        with store_errors(self.path(b"")):  # the keys of all directories are listed together
            is_known = self._has(top, end) or self._list(top, end)
        if not is_known:
            return super().scan(directory)
        first = bisect_left(self._keys, top)
        found: list[DirectoryEntry] = []
        at = first
        while at < len(self._keys) and self._keys[at].startswith(top):
            name, slash, _ = self._keys[at][len(top) :].partition(b"/")
            if slash:
                found.append(DirectoryEntry(name, "directory", False) if name else _NAMELESS)
                at = bisect_left(self._keys, top + name + b"0", at)
                continue
            if name:
                found.append(DirectoryEntry(name, "file", False))
            at += 1
        if at == first and directory:
            raise self._remote.not_a_directory(directory)
        return sorted(found)

    def archived(self, top: bytes) -> list[bytes]:
        first, end = self.prefix + top, self.prefix + top + b"0"
        if not self._has(first, end):
            return super().archived(top)
        keys = self._archived[bisect_left(self._archived, first) : bisect_left(self._archived, end)]
        return [key[len(self.prefix) :] for key in keys if (key + b"/").startswith(first + b"/")]

    def _has(self, top: bytes, end: bytes) -> bool:
        """Return whether all keys from ``top`` to ``end`` are known; without an end, all from ``top`` on."""
        return self._begin <= top and (self._after is None or bool(end and end <= self._after))

    def _list(self, top: bytes, end: bytes) -> bool:
        """List the keys from ``top`` on, and return whether they are known up to ``end``; if not, they are many."""
        if self._after is not None and self._begin <= top <= self._after:
            for keys in (self._keys, self._archived):
                del keys[: bisect_left(keys, top)]
        else:
            self._keys, self._archived = [], []
            self._after = top[:-1] + _BEFORE if top else b""
        self._begin = top
        while not self._has(top, end) and len(self._keys) < AHEAD:
            require_use()
            page = self._page(self._after or b"")
            self._keys += [one.key for one in page.keys]
            self._archived += [one.key for one in page.keys if one.storage_class in ARCHIVES]
            self._after = page.after
        return self._has(top, end)

    def _page(self, after: bytes) -> Page:
        """Return the keys after one, and list those after them in another thread."""
        if self._next is not None and self._next[0] == after:
            page = self._next[1].result()
        else:
            page = self.bucket.list(self.prefix, after=after)
        self._next = None
        if page.after is not None:
            self._next = page.after, self._pool.submit(partial(self.bucket.list, self.prefix, after=page.after))
        return page


def open_in_bucket(base: bytes, tree: str, kind: str, beside: bytes) -> BucketDirectory:
    """Return the directory in a bucket that contains the tree of a store, or the one above if it is the tree.

    :param base: the address
    :param beside: as for :func:`~pressmark.stores.directories.store_directory.open_directory`, like the others
    :raises StoreError: there is no tree
    """
    from pressmark.buckets.address import open_bucket

    bucket, prefix = open_bucket(base)
    found = RemoteDirectory(bucket, prefix)
    name = encode_fs(tree)
    first = found.find(name)
    if first is None and prefix.endswith(b"/" + name + b"/"):
        prefix = prefix.removesuffix(name + b"/")
    elif first is None:
        if beside and found.file(beside) is not None:
            raise StoreError(base, f"{tree} is missing; restore it")
        what = f"not a {kind}, because {tree} is missing; specify an address that contains it"
        raise StoreError(base, what)
    elif first.key == found.prefix + name:
        raise StoreError(base, f"{tree} is not a directory; restore it")
    return BucketDirectory(bucket, prefix)


def read_ahead(bucket: Bucket, files: Iterable[tuple[Key, bytes, str | None, bytes]]) -> Iterator[tuple[Key, Content]]:
    """Yield the content of files for a copy, several requests at a time; large files are read by the copy.

    :param files: a key for the caller, the key in the bucket, its version or :data:`None`, and the path of the outcome
    """

    def content(file: tuple[Key, bytes, str | None, bytes]) -> tuple[Key, Content]:
        key, stored, token, path = file
        return key, Content(RemoteContent(bucket, stored, token=token).fetch(), path)

    return in_order(content, files)
