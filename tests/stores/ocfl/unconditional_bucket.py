"""A bucket of a server that accepts every condition and ignores it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pressmark.buckets.bucket import ANY, NEW, Bucket, Part
from pressmark.buckets.memory import MemoryBucket

__all__ = ["UnconditionalMemory"]


class UnconditionalMemory(MemoryBucket):
    """A bucket in memory that ignores all conditions."""

    def put(
        self,
        key: bytes,
        data: bytes | memoryview,
        *,
        over: str = NEW,
        digests: Mapping[str, str] = {},
        storage_class: str | None = None,
    ) -> str:
        return super().put(key, data, over=ANY, digests=digests, storage_class=storage_class)

    def complete(self, key: bytes, upload: str, parts: Sequence[Part], *, over: str = NEW) -> str:
        return super().complete(key, upload, parts, over=ANY)

    def copy(
        self,
        source: bytes,
        key: bytes,
        *,
        over: str = NEW,
        storage_class: str | None = None,
        of: Bucket | None = None,
    ) -> str:
        return super().copy(source, key, over=ANY, storage_class=storage_class, of=of)

    def delete(self, keys: Sequence[bytes], *, token: str | None = None) -> None:
        super().delete(keys)
