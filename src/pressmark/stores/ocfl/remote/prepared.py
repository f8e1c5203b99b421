"""An object or a version that is prepared for a bucket, and its files on their way there."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from itertools import count
from typing import Any, NamedTuple

from pressmark.buckets.upload import WHOLE, PartsUpload
from pressmark.fixity.outcomes import Content

__all__ = ["Joined", "Prepared", "Sent", "beginning", "busy_file", "files_below", "other_names"]


class Sent(NamedTuple):
    """A file of a new version that is in the bucket.

    :ivar path: its content path, which differs from the prepared one if another content has that
    :ivar is_taken: whether an earlier run, or another writer, has sent it
    """

    path: bytes
    is_taken: bool = False


class Prepared:
    """An object or a version that is prepared.

    :ivar path: of the object
    :ivar is_new: whether nothing was there
    :ivar written: inventories, sidecars and the like, by their paths in the object
    :ivar waiting: copied files that have not been sent: path of the copy, and digests, by content path
    :ivar size: of these, in bytes
    :ivar sending: the files of the version that are being sent or have been sent, by content path
    :ivar uploads: large files that are in the bucket, but not yet visible
    :ivar copied: the files that the server has copied, by content path
    :ivar there: the files of a new object that an interrupted run has sent
    :ivar is_adopted: whether its inventories come from the source, so that no content path may change
    :ivar is_claimed: whether the object is claimed until this is discarded
    """

    def __init__(self, path: bytes, is_new: bool) -> None:
        self.path = path
        self.is_new = is_new
        self.written: dict[bytes, bytes] = {}
        self.waiting: dict[bytes, tuple[bytes, Mapping[str, str]]] = {}
        self.size = 0
        self.sending: dict[bytes, Future[Sent]] = {}
        self.uploads: dict[bytes, PartsUpload] = {}
        self.copied: set[bytes] = set()
        self.there: set[bytes] = set()
        self.is_adopted = False
        self.is_claimed = False


class Joined:
    """An open file with the bytes that were already read from it."""

    def __init__(self, first: bytearray, file: Any) -> None:
        self._first = memoryview(first)
        self._file = file

    def read(self, size: int) -> Any:
        if self._first:
            data, self._first = self._first[:size], self._first[size:]
            return data
        self._first = memoryview(b"")
        return self._file.read(size)


def beginning(content: Content) -> bytearray:
    """Return the beginning of an open file: more than :data:`WHOLE` bytes if there are as many."""
    read = bytearray()
    for block in content.blocks(1 << 20):
        read += block
        if len(read) > WHOLE:
            break
    return read


def busy_file(path: bytes) -> OSError:
    what = "another run has left another file with this name; repair the store, or put the object again in a day"
    return OSError(errno.EBUSY, what, path)


def files_below(top: bytes) -> list[bytes]:
    """Return the paths of all files below a directory of this machine, relative to it."""
    found = [os.path.join(folder, name) for folder, _names, files in os.walk(top) for name in files]
    return sorted(path[len(top) + 1 :] for path in found)


def other_names(path: bytes) -> Iterator[bytes]:
    """Yield a content path, then others in case that different content has it."""
    yield path
    for number in count(2):
        yield path + b"~%d" % number
