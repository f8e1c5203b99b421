"""Stores on the disk, and the same stores in a bucket: what is read of one must be what is read of the other."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar
from unittest import mock

from pressmark.buckets import address
from pressmark.buckets.bucket import Page
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import PressmarkError
from pressmark.stores.directories import bucket_directory

T = TypeVar("T")
#: The address of a store in a bucket in memory.
ADDRESS = "s3://memory/stores/one"
PREFIX = b"stores/one/"


class SmallPages(MemoryBucket):
    """A bucket with a few keys in each part of a listing."""

    page = 3

    def list(self, prefix: bytes, *, after: bytes = b"", delimiter: bool = False, limit: int = 1000) -> Page:
        return super().list(prefix, after=after, delimiter=delimiter, limit=min(limit, self.page))


def fill(bucket: MemoryBucket, folder: str | Path) -> bool:
    """Write the files of a directory to a bucket, and a key for each empty directory.

    :return: whether the directory contains only what a bucket can have: no links, and names in UTF-8
    """
    top = os.path.realpath(os.fsencode(folder))
    for above, directories, names in os.walk(top):
        for name in names + directories:
            path = os.path.join(above, name)
            mode = os.lstat(path).st_mode
            key = PREFIX + path[len(top) + 1 :]
            try:
                key.decode()
            except UnicodeDecodeError:
                return False
            if stat.S_ISDIR(mode):
                if not os.listdir(path):
                    bucket.put(key + b"/", b"")
            elif stat.S_ISREG(mode) and len(key) <= 1024:
                bucket.put(key, Path(os.fsdecode(path)).read_bytes())
            else:
                return False
    return True


@contextlib.contextmanager
def serving(bucket: MemoryBucket, ahead: int | None = None) -> Iterator[None]:
    """Let each address lead to a bucket.

    :param ahead: the number of keys that a walk lists ahead
    """
    opened = mock.patch.object(address, "open_bucket", lambda text: (bucket, address.parse(text)[1]))
    with opened, mock.patch.object(bucket_directory, "AHEAD", ahead or bucket_directory.AHEAD):
        yield


def outcome(read: Callable[[str], T], place: str) -> object:
    """Return what a function reads at a place, or its error."""
    try:
        return read(place)
    except PressmarkError as error:
        text = str(error).replace(os.path.abspath(place), "STORE").replace(place, "STORE")
        return type(error), getattr(error, "kind", ""), text.replace("specify a directory", "specify an address")


def read_both(folder: str | Path, read: Callable[[str], T]) -> T:
    """Return what a function reads of a store on the disk, after comparing it with a copy in a bucket."""
    found = outcome(read, str(folder))
    bucket = SmallPages()
    if fill(bucket, folder) and bucket.keys:
        before = bucket.keys
        for ahead in (1, 4, None):
            with serving(bucket, ahead):
                assert outcome(read, ADDRESS) == found
        assert bucket.keys == before
    return read(str(folder))
