"""Storage roots in a bucket in memory, changes of an object there, and runs that are killed at a request."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from time import time
from typing import Any

from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import ObjectError
from pressmark.reports import Report
from pressmark.stores.ocfl.remote.remote_storage import RemoteStorage
from pressmark.stores.ocfl.root import OcflRoot

from .bucket import PREFIX
from .samples import CREATED, USER, files_of

ID = "info:x/1"
OLD = {"a.txt": b"old", "same.txt": b"same"}
NEW = {"a.txt": b"new", "b/c.txt": b"more", "same.txt": b"same", "twice.txt": b"new"}
LATER = {"z.txt": b"later"}


# What the server's clock is fast.
LATE = {"by": 0.0}
DAYS = 3 * 86_400.0


def open_root(bucket: MemoryBucket, replacement: Any = None, **options: Any) -> OcflRoot:
    """Open the root in a bucket.

    :param replacement: of conditions, on a server that ignores them: ``"claims"`` or ``"single_writer"``
    """
    storage = RemoteStorage(bucket, PREFIX, None, replacement)
    return OcflRoot("s3://memory/collections/root", storage=storage, durable=False, user=USER, **options)


def new_root(bucket: MemoryBucket, version: str = "1.1") -> MemoryBucket:
    """Write an empty root to a bucket, and return the bucket."""
    bucket.put(PREFIX + f"0=ocfl_{version}".encode(), f"ocfl_{version}\n".encode())
    layout = b'{"extension": "0003-hash-and-id-n-tuple-storage-layout", "description": "x"}'
    bucket.put(PREFIX + b"ocfl_layout.json", layout)
    return bucket


class Killed(BaseException):
    """The process ends here."""


class Faults:
    """Lets a bucket fail at one request, before it takes effect or after, and at all requests after it."""

    def __init__(self, number: int, *, after: bool, error: type[BaseException] = Killed) -> None:
        self.left = number
        self._after = after
        self._error = error
        self._lock = threading.Lock()

    def __call__(self, call: str, key: bytes) -> None:
        with self._lock:
            self.left -= call.endswith(" done") == self._after
            is_dead = self.left < 0
            is_once = self.left == -1
        if is_dead and (self._error is Killed or is_once):
            raise self._error(errno.EIO, "the connection broke", key)


def new_bucket(
    files: dict[str, bytes] | None = None,
    kind: type[MemoryBucket] = MemoryBucket,
    version: str = "1.1",
    **options: Any,
) -> MemoryBucket:
    """Return a bucket with a root, and perhaps an object.

    :param options: of the root that stores the object
    """
    bucket = new_root(kind(clock=lambda: time() + LATE["by"]), version)
    if files is not None:
        replacement = None if kind is MemoryBucket else "claims"
        open_root(bucket, replacement, **options).put(ID, files, created=CREATED)
    return bucket


def seen(bucket: MemoryBucket) -> dict[str, bytes] | None:
    """Return what a reader finds."""
    try:
        return files_of(open_root(bucket).get(ID))
    except ObjectError as error:
        if error.kind != "missing":
            raise
        return None


def errors(report: Report) -> list[Any]:
    return [one for one in report.problems if one.severity == "error"]


def put_new(root: OcflRoot) -> None:
    root.put(ID, NEW, created=CREATED)


def put_again(root: OcflRoot) -> None:
    root.put(ID, NEW, replace=True, created=CREATED)


def update(root: OcflRoot) -> None:
    root.update(ID, add={"a.txt": b"new", "b/c.txt": b"more"}, rename={"same.txt": "twice.txt"}, created=CREATED)


def restore(root: OcflRoot) -> None:
    root.restore(ID, "v1", created=CREATED)


def upgrade(root: OcflRoot) -> None:
    for result in root.upgrade(to="1.1", algorithm="sha512", created=CREATED):
        if result.error is not None:
            raise result.error


def delete(root: OcflRoot) -> None:
    root.delete(ID)


CHANGES: dict[str, tuple[dict[str, bytes] | None, Callable[[OcflRoot], None], dict[str, bytes] | None]] = {
    "put": (None, put_new, NEW),
    "version": (OLD, put_again, NEW),
    "update": (OLD, update, {"a.txt": b"new", "b/c.txt": b"more", "twice.txt": b"same"}),
    "delete": (OLD, delete, None),
}


def requests_of(bucket: MemoryBucket, change: Callable[[OcflRoot], None], replacement: Any = None) -> int:
    """Return how many requests a change makes."""
    start = bucket.requests
    change(open_root(bucket, replacement))
    return bucket.requests - start
