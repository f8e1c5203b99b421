"""A bucket of a server that ignores conditions: the status of a key is compared before the key is written.

Between the two requests, another writer can write the key, so that something else must keep writers apart.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from typing import Any

from pressmark.buckets.bucket import ANY, NEW, Bucket, KeyChangedError, Part

__all__ = ["Unconditional"]


class Unconditional:
    """A bucket whose conditions are checked here, not by the server; see :class:`pressmark.buckets.bucket.Bucket`.

    :param bucket: makes the requests
    """

    def __init__(self, bucket: Bucket) -> None:
        self._bucket = bucket

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bucket, name)

    def _check(self, key: bytes, over: str) -> None:
        """Check that a key may be written.

        :param over: as for :meth:`Bucket.put`, like the errors
        """
        if over == ANY:
            return
        token = self._token(key)
        if over == NEW and token is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), key)
        if over not in (NEW, token):
            raise KeyChangedError(key)

    def _token(self, key: bytes) -> str | None:
        try:
            return self._bucket.head(key).token
        except FileNotFoundError:
            return None

    def put(
        self,
        key: bytes,
        data: bytes | memoryview,
        *,
        over: str = NEW,
        digests: Mapping[str, str] = {},
        storage_class: str | None = None,
    ) -> str:
        self._check(key, over)
        return self._bucket.put(key, data, over=ANY, digests=digests, storage_class=storage_class)

    def complete(self, key: bytes, upload: str, parts: Sequence[Part], *, over: str = NEW) -> str:
        self._check(key, over)
        return self._bucket.complete(key, upload, parts, over=ANY)

    def copy(
        self,
        source: bytes,
        key: bytes,
        *,
        over: str = NEW,
        storage_class: str | None = None,
        of: Bucket | None = None,
    ) -> str:
        self._check(key, over)
        return self._bucket.copy(source, key, over=ANY, storage_class=storage_class, of=of)

    def delete(self, keys: Sequence[bytes], *, token: str | None = None) -> None:
        if token is not None and self._token(keys[0]) not in (token, None):
            raise KeyChangedError(keys[0])
        self._bucket.delete(keys)
