"""A bag in a bucket: a tree of keys, read like a bag in an archive.

One listing gives the names and sizes of all files, and fills the table that an archive fills with its members. Content
is downloaded many files at a time. A bucket has no directories and no links; a key that ends with ``/`` is the mark of
a directory, which some programs write.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import monotonic
from typing import BinaryIO

from pressmark.bagit.archive.table import OCCUPIED, SAME_NAME, ArchivedBag, MemberTable, Node, spooled
from pressmark.bagit.bag_directory import Match, Reading, ResolvedPath
from pressmark.bagit.paths import PAYLOAD
from pressmark.bagit.problems import problem
from pressmark.bagit.validation.tag_files import ReportProblems
from pressmark.buckets.address import find_key
from pressmark.buckets.bucket import ARCHIVED, ARCHIVES, Bucket, KeyChangedError
from pressmark.buckets.listing import listed
from pressmark.buckets.remote_directory import RemoteDirectory
from pressmark.buckets.remote_file import CountedFile, RemoteFile
from pressmark.buckets.requests import in_order
from pressmark.errors import BagError, StoreError
from pressmark.fixity.hasher import CHANGED, transfer_content
from pressmark.fixity.outcomes import PROGRESS_EVERY, Content, Outcome
from pressmark.fs.names import NAME_MAX
from pressmark.fs.trees import DirectoryEntry
from pressmark.reports import ProgressEvent

__all__ = ["BagInBucket", "BaseInBucket", "bucket_errors", "is_key", "open_base", "open_tree"]

# The name of the bag's directory in the table.
_TOP = b"bag"
_HERE, _ARCHIVED = 0, 1
# Why the table cannot contain a name, in words for keys.
_FAULTS = {OCCUPIED: "another key is a parent of it", SAME_NAME: "the same name is a directory of other keys"}


@contextmanager
def bucket_errors(address: bytes) -> Iterator[None]:
    """Replace errors of a bucket by those of a bag.

    :raises BagError: the address is malformed, or the bucket cannot be used
    :raises StoreError: the server no longer answers, which would fail other bags as well
    """
    try:
        yield
    except StoreError as error:
        if error.__cause__ is not None:  # an address has none
            raise
        raise BagError(error.path, error.reason) from None
    except OSError as error:
        raise BagError(address, error.strerror or str(error)) from error


def is_key(address: bytes) -> bool:
    """Return whether an address is that of a single key, such as an archive, and not of a tree of keys.

    :raises BagError: the address is malformed, or the bucket cannot be read
    """
    with bucket_errors(address):
        bucket, key = find_key(address)
        if not key or address.endswith(b"/"):
            return False
        try:
            bucket.head(key)
        except FileNotFoundError:
            return False
        return True


@contextmanager
def open_tree(address: bytes, report_problems: ReportProblems = lambda _problems: None) -> Iterator[BagInBucket]:
    """Open the bag at an address, a tree of keys.

    :param report_problems: called with the problems of keys that cannot be files
    :raises BagError: nothing is there, or the bucket cannot be read
    """
    with MemberTable() as table:
        with bucket_errors(address):
            bucket, key = find_key(address)
            prefix = key and key + b"/"
            is_found = _fill(table, bucket, prefix, report_problems)
        if not is_found:
            raise BagError(address, "nothing found; specify the address of a bag")
        yield BagInBucket(address, table, bucket, prefix)


@contextmanager
def open_base(address: bytes) -> Iterator[BaseInBucket]:
    """Open the tag files of the bag at an address, a tree of keys, whose payload is not listed.

    :raises BagError: nothing is there, or the bucket cannot be read
    """
    with bucket_errors(address):
        bucket, key = find_key(address)
        prefix = key and key + b"/"
        entries = list(RemoteDirectory(bucket, prefix).entries(b""))
    if not entries:
        raise BagError(address, "nothing found; specify the address of a bag")
    yield BaseInBucket(address, bucket, prefix, entries)


def _fill(table: MemberTable, bucket: Bucket, prefix: bytes, report_problems: ReportProblems) -> bool:
    """Add all keys to a table; return whether there are any."""
    is_found = False
    for one in listed(bucket, prefix):
        is_found = True
        path = one.key[len(prefix) :]
        is_mark = path.endswith(b"/") and not one.size
        name = path[:-1] if is_mark else path
        fault: str | None = None
        if not name:
            pass  # the mark of the base directory
        elif not {b"", b".", b".."}.isdisjoint(name.split(b"/")):
            fault = "the key has an empty part, or the part '.' or '..'"
        elif len(max(name.split(b"/"), key=len)) > NAME_MAX:
            fault = "a part of the key is too long for common file systems"
        elif is_mark:
            fault = table.add(_TOP + b"/" + name, "directory")
        else:
            kind = _ARCHIVED if one.storage_class in ARCHIVES else _HERE
            fault = table.add(_TOP + b"/" + name, "file", one.size, one.token.encode(), kind)
        if fault:
            report_problems([problem("key-unusable", path, f"no file can have this key: {_FAULTS.get(fault, fault)}")])
        elif is_mark:
            report_problems([problem("key-directory", path)])
    table.add(_TOP + b"/" + PAYLOAD, "directory")  # without files, no key shows it
    return is_found


class BaseInBucket:
    """The tag files in the base directory of a bag in a bucket, with the methods of
    :class:`pressmark.bagit.bag_directory.BagDirectory`.

    :param path: its address
    :param prefix: the beginning of the keys
    :param entries: of the base directory
    """

    def __init__(self, path: bytes, bucket: Bucket, prefix: bytes, entries: Iterable[DirectoryEntry]) -> None:
        self.path = path
        self._bucket = bucket
        self._prefix = prefix
        self._kinds = {one.name: one.kind for one in sorted(entries)}

    def names(self) -> Iterator[bytes]:
        """Yield the names in the base directory."""
        return iter(self._kinds)

    def resolve(self, path: bytes) -> ResolvedPath:
        """Return what a path in the base directory is."""
        return ResolvedPath(self._kinds.get(path, "dangling"), path)

    def open(self, path: bytes) -> BinaryIO:
        """Open a copy of a tag file.

        :raises OSError: the file cannot be read
        """
        with RemoteFile(self._bucket, self._prefix + path) as file:
            return spooled(file)


class BagInBucket(ArchivedBag):
    """A bag in a bucket, with the methods of :class:`pressmark.bagit.bag_directory.BagDirectory`.

    :param path: its address
    :param table: its files: the tokens of their keys, and whether they are archived
    :param prefix: the beginning of their keys
    """

    def __init__(self, path: bytes, table: MemberTable, bucket: Bucket, prefix: bytes) -> None:
        super().__init__(path, table, _TOP)
        self._bucket = bucket
        self._prefix = prefix

    def open(self, path: bytes) -> BinaryIO:
        """Open a copy of a tag file as it was listed: its lines are read in any order.

        :raises OSError: the file does not exist, cannot be read, or has changed
        """
        with self.download(path, self.file(path)) as file:
            return spooled(file)

    def download(self, path: bytes, node: Node | None) -> RemoteFile:
        """Open a file as it was listed, in any thread.

        :param node: its row
        :raises OSError: as for :meth:`open`
        """
        if node is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return RemoteFile(self._bucket, self._prefix + path, token=node.value.decode() or None)

    def why_unreadable(self, path: bytes, real: bytes | None) -> OSError | None:
        """Return why a file is unreadable, as far as the listing shows it: it is archived."""
        node = self.file(path)
        if node is None or node.algorithms != _ARCHIVED:
            return None
        try:
            is_archived = self._bucket.head(self._prefix + path).is_archived
        except OSError as error:
            return error
        return OSError(errno.EIO, ARCHIVED) if is_archived else None

    def digests(
        self, matches: Iterator[Match], algorithms: tuple[str, ...], reading: Reading
    ) -> Iterator[tuple[Match, Outcome]]:
        """Yield each file with the outcome of reading it, in order."""
        return _Digests(self, algorithms, reading).outcomes(matches)


class _Digests:
    """Downloads files, many at a time, for their digests."""

    def __init__(self, bag: BagInBucket, algorithms: tuple[str, ...], reading: Reading) -> None:
        self._bag = bag
        self._algorithms = algorithms
        self._progress = reading.progress
        self._next_event = monotonic() + PROGRESS_EVERY
        self._files = self._bytes = 0
        self._lock = Lock()

    def outcomes(self, matches: Iterator[Match]) -> Iterator[tuple[Match, Outcome]]:
        files = ((match, self._bag.file(match.path)) for match in matches)
        for match, outcome in in_order(self._hashed, files, self._report_if_due):
            self._files += 1
            self._report_if_due()
            yield match, outcome
        self._report()

    def _hashed(self, listed_file: tuple[Match, Node | None]) -> tuple[Match, Outcome]:
        match, node = listed_file
        name = os.fsdecode(match.path)
        try:
            with self._bag.download(match.path, node) as file:
                outcome = transfer_content(Content(CountedFile(file, self._count), name), self._algorithms)
        except KeyChangedError as error:
            return match, Outcome(name, None, None, None, None, CHANGED, str(error.strerror))
        except OSError as error:
            return match, Outcome(name, None, None, None, None, "io-error", error.strerror or str(error))
        return match, outcome

    def _count(self, size: int) -> None:
        with self._lock:
            self._bytes += size

    def _report_if_due(self) -> None:
        if self._progress is not None and monotonic() >= self._next_event:
            self._report()

    def _report(self) -> None:
        self._next_event = monotonic() + PROGRESS_EVERY
        if self._progress is not None:
            self._progress(ProgressEvent(items=self._files, bytes=self._bytes))
