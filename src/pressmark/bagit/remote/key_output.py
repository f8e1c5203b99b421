"""The destination of a new bag or archive in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from threading import Lock
from typing import Any, cast

from pressmark.bagit.changes import refusing
from pressmark.bagit.remote.bag_in_bucket import bucket_errors
from pressmark.buckets.address import find_key
from pressmark.buckets.bucket import Bucket
from pressmark.buckets.probe import ProbeResult, require_fit
from pressmark.buckets.requests import REQUESTS
from pressmark.buckets.upload import PartsUpload
from pressmark.errors import BagError
from pressmark.fs.file_errors import NotWritten
from pressmark.threads import Threads

__all__ = ["KeyOutput", "fit_bucket", "new_key", "require_free"]

# Bytes to collect before an upload begins: by then, its size may be known.
FIRST = 1 << 20
# A probe tries algorithms by a setting of the bucket, and uploads of two probes can disturb each other.
_PROBING = Lock()


def fit_bucket(address: bytes) -> tuple[Bucket, bytes]:
    """Return the bucket and the key of a destination, after a probe beside the key.

    :raises BagError: the server does not decide between writers
    """
    bucket, key = find_key(address)
    if not key:
        raise BagError(
            address, "the address names only a bucket; specify the key of the new bag, such as s3://books/bag"
        )
    with _PROBING:
        found = _probed(cast(Any, bucket), key[: key.rfind(b"/") + 1])
    if not found.completes:
        what = "the server ignores the condition of uploads in parts, so that files over 8 MiB can be overwritten"
        raise BagError(address, f"{what}; use another server")
    return bucket, key


@lru_cache(8)
def _probed(bucket: Bucket, prefix: bytes) -> ProbeResult:
    """Probe a server once for all bags of a table."""
    return require_fit(bucket, prefix)


def require_free(bucket: Bucket, key: bytes, address: bytes) -> None:
    """Refuse a key that exists.

    :raises BagError: it exists
    """
    try:
        bucket.head(key)
    except FileNotFoundError:
        return
    raise BagError(address, "destination already exists; choose another name")


@contextmanager
def new_key(address: bytes) -> Iterator[KeyOutput]:
    """Yield a file that is sent while it is written, and that :meth:`KeyOutput.publish` makes visible.

    :raises BagError: the key exists, or the server is not fit
    """
    with bucket_errors(address):
        bucket, key = find_key(address)
        if key:
            require_free(bucket, key, address)
        fit_bucket(address)
    with refusing(address), Threads(REQUESTS, "pressmark-part") as pool:
        file = KeyOutput(bucket, key, pool, address)
        try:
            yield file
        except Exception:
            file.discard()  # after an interrupt, the next run continues the upload
            raise


class KeyOutput:
    """A file that is sent to a bucket in parts while it is written."""

    def __init__(self, bucket: Bucket, key: bytes, pool: Threads, address: bytes) -> None:
        self._bucket = bucket
        self._key = key
        self._pool = pool
        self._address = address
        self._size = 0
        self._first = bytearray()
        self._upload: PartsUpload | None = None

    def expect(self, size: int) -> None:
        """Set the size, if it is known before much is written: parts of large files are larger."""
        self._size = size

    def write(self, data: bytes | memoryview, /) -> int:
        """Append to the file.

        :raises BagError: a part cannot be sent
        """
        if self._upload is None:
            self._first += data
            if len(self._first) >= FIRST:
                self._begin()
            return len(data)
        try:
            self._upload.add(memoryview(data))
        except NotWritten as failed:
            raise self._error(failed.error) from failed.error
        return len(data)

    def flush(self) -> None: ...

    def _begin(self) -> PartsUpload:
        self._upload = PartsUpload(self._bucket, self._key, self._pool, self._size)
        self.write(memoryview(self._first))
        return self._upload

    def publish(self) -> None:
        """Send the rest, and make the file visible where nothing is.

        :raises BagError: it cannot be sent, or another program has written the key meanwhile
        """
        upload = self._upload or self._begin()
        try:
            upload.complete()
            upload.publish()
        except NotWritten as failed:
            raise self._error(failed.error) from failed.error
        except FileExistsError:
            raise BagError(self._address, "another program has created the destination; choose another name") from None
        except OSError as error:
            raise self._error(error) from error

    def _error(self, error: OSError) -> BagError:
        return BagError(self._address, f"{error.strerror or error}; no archive was created")

    def discard(self) -> None:
        """Discard what was sent."""
        if self._upload is not None:
            with suppress(OSError):
                self._upload.discard()
