"""Storage roots in a bucket in memory, and their files by paths like those of :mod:`pathlib`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark.buckets.memory import MemoryBucket
from pressmark.stores.ocfl.remote.remote_storage import RemoteStorage

from .memory import Files

PREFIX = b"collections/root/"


class BucketFiles(Files):
    """The keys of a bucket as files; a directory is the beginning of a key, an empty one a key that ends with ``/``."""

    def __init__(self, bucket: MemoryBucket) -> None:
        self._bucket = bucket

    @property
    def entries(self) -> dict[bytes, bytes | None]:  # type: ignore[override]
        found: dict[bytes, bytes | None] = {b"": None}
        for key, data in self._bucket.keys.items():
            path = key.removeprefix(PREFIX)
            above = os.path.dirname(path)
            while above:
                found[above] = None
                above = os.path.dirname(above)
            if not path.endswith(b"/"):
                found[path] = data
        return found

    def put(self, path: bytes, data: bytes | None) -> None:
        if len(path) > 900:
            pytest.skip("keys are short")
        if above := os.path.dirname(path):
            self._bucket.delete([PREFIX + above + b"/"])
        self._bucket.put_as_other(PREFIX + path + (b"/" if data is None else b""), data or b"")

    def move(self, old: bytes, new: bytes) -> None:
        self.get(old)
        for path in self.below(old):
            data = self.entries[path]
            if data is not None:
                self._bucket.put_as_other(PREFIX + new + path[len(old) :], data)
        self.remove(old)

    def remove(self, path: bytes) -> None:
        self._bucket.delete([key for one in self.below(path) for key in (PREFIX + one, PREFIX + one + b"/")])
        above = os.path.dirname(path)
        if above and above not in self.entries:
            self.put(above, None)


def storage_of(folder: Path) -> RemoteStorage:
    """Return a copy of a directory in a bucket."""
    bucket = MemoryBucket()
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.put(PREFIX + os.fsencode(path.relative_to(folder).as_posix()), path.read_bytes())
    return RemoteStorage(bucket, PREFIX)
