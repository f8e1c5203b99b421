"""The keys of a bucket, in the order of their bytes."""

from __future__ import annotations

from collections.abc import Iterator

from pressmark.buckets.bucket import Bucket, ListedKey
from pressmark.threads import require_use

__all__ = ["listed"]


def listed(bucket: Bucket, prefix: bytes, limit: int | None = None, *, start: bytes = b"") -> Iterator[ListedKey]:
    """Yield the keys that begin with ``prefix``.

    :param limit: at most so many
    :param start: the end of a key from which on they are listed
    """
    after: bytes | None = prefix + start if start else b""
    while after is not None:
        require_use()
        page = bucket.list(prefix, after=after, limit=limit or 1000)
        yield from page.keys
        after = None if limit else page.after
