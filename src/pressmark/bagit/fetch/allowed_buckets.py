"""The buckets whose ``s3:`` URLs the user allows: they are read with the user's credentials."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from urllib.parse import SplitResult, unquote_to_bytes

from pressmark.bagit.fetch.urls import DownloadError, redacted_url
from pressmark.buckets import address
from pressmark.buckets.bucket import Bucket, KeyChangedError
from pressmark.errors import BagError, StoreError, quoted
from pressmark.option_names import option

__all__ = ["AllowedBuckets", "key_failures"]


class AllowedBuckets:
    """The allowed buckets, by name.

    :raises BagError: a name is not that of a bucket, or botocore is missing
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._buckets = {name: _open(name) for name in names}

    def find_key(self, url: str, parts: SplitResult) -> tuple[Bucket, bytes]:
        """Return the bucket and the key of a URL; ``parts`` is the same URL, split.

        :raises DownloadError: the URL names no key, or its bucket is not allowed
        """
        where = redacted_url(url)
        if parts.query:
            raise DownloadError("refused", f"{where} has a query; encode ? in a key as %3F")
        try:
            name, key = address.parse_key(f"s3://{parts.netloc}".encode() + unquote_to_bytes(parts.path))
        except StoreError:  # its message can show a password before the bucket
            raise DownloadError("refused", f"{where} does not name a bucket and a key") from None
        if name not in self._buckets:
            what = f"{where} is in the bucket {quoted(name)}, which is not allowed"
            raise DownloadError("refused", f"{what}; use {option('allow_buckets', [name])} if you trust it")
        return self._buckets[name], key


def _open(name: str) -> Bucket:
    try:
        bucket, prefix = address.open_bucket(f"s3://{name}")
    except StoreError as error:
        raise BagError(error.path, error.reason) from None
    if prefix:
        raise BagError(f"s3://{name}", "not the name of a bucket; omit the prefix")
    return bucket


@contextlib.contextmanager
def key_failures(where: str) -> Iterator[None]:
    """Turn errors of a bucket, which has repeated its requests already, into a :class:`DownloadError`."""
    try:
        yield
    except KeyChangedError:
        raise
    except OSError as error:
        raise DownloadError("failed", f"{where}: {error.strerror or error}") from None
