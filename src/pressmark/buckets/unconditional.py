"""A bucket of a server that ignores conditions: the status of a key is compared before the key is written.

Between the two requests, another writer can write the key, so that something else must keep writers apart.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from typing import Any

from pressmark.buckets.bucket import ANY, NEW, Bucket, KeyChangedError, Part
from pressmark.buckets.probe import ProbeResult

__all__ = ["Unconditional"]


class Unconditional:
    """A bucket whose conditions are checked here if the server ignores them; see :class:`Bucket`.

    :param bucket: makes the requests
    :param probed: which conditions the server keeps
    """

    def __init__(self, bucket: Bucket, probed: ProbeResult) -> None:
        self._bucket = bucket
        self._probed = probed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._bucket, name)

    def _checked(self, key: bytes, over: str, is_kept: bool) -> str:
        """Check that a key may be written, and return the condition of the request.

        :param over: as for :meth:`Bucket.put`, like the errors
        :param is_kept: the server checks it
        """
        if is_kept or over == ANY:
            return over
        token = self._token(key)
        if over == NEW and token is not None:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), key)
        if over not in (NEW, token):
            raise KeyChangedError(key)
        return ANY

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
        over = self._checked(key, over, self._probed.is_safe)
        return self._bucket.put(key, data, over=over, digests=digests, storage_class=storage_class)

    def complete(self, key: bytes, upload: str, parts: Sequence[Part], *, over: str = NEW) -> str:
        over = self._checked(key, over, self._probed.completes)
        return self._bucket.complete(key, upload, parts, over=over)

    def copy(
        self,
        source: bytes,
        key: bytes,
        *,
        over: str = NEW,
        storage_class: str | None = None,
        of: Bucket | None = None,
    ) -> str:
        over = self._checked(key, over, self._probed.copies)
        return self._bucket.copy(source, key, over=over, storage_class=storage_class, of=of)

    def delete(self, keys: Sequence[bytes], *, token: str | None = None) -> None:
        if token is not None and not self._probed.deletes:
            if self._token(keys[0]) not in (token, None):
                raise KeyChangedError(keys[0])
            token = None
        self._bucket.delete(keys, token=token)
