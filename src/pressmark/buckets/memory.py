"""A bucket in memory, which keeps every promise of :class:`pressmark.buckets.bucket.Bucket`; for tests and trials."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import count
from threading import RLock
from time import time
from typing import NamedTuple, cast

from pressmark.buckets.bucket import (
    ANY,
    ARCHIVES,
    NEW,
    ArchivedError,
    Bucket,
    Download,
    KeyChangedError,
    KeyStatus,
    ListedKey,
    Page,
    Part,
    Upload,
    key_text,
    sent_digests,
)

__all__ = ["MemoryBucket"]


class _Stored(NamedTuple):
    data: bytes
    token: str
    modified: float
    storage_class: str
    digests: Mapping[str, str]
    is_ours: bool = True


class _Uploading(NamedTuple):
    key: bytes
    started: float
    storage_class: str
    parts: dict[int, tuple[Part, bytes]]


class _Download(BytesIO):
    def __init__(self, data: bytes, status: KeyStatus, bucket: MemoryBucket) -> None:
        super().__init__(data)
        self.status = status
        self._bucket = bucket

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        with self._bucket._lock:
            self._bucket.received += len(data)
        return data


class MemoryBucket:
    """A bucket in memory.

    :param on_request: called with the name of each call before and after it takes effect; an error that it
        raises stands for a lost request or a lost answer
    :param clock: the server's clock
    :ivar keys: the content by key
    :ivar restored: keys of an archive whose content can be read
    """

    def __init__(
        self, on_request: Callable[[str, bytes], object] | None = None, clock: Callable[[], float] = time
    ) -> None:
        self.url = "s3://memory"
        self.server: object = "memory"
        self.accepted = {"sha512", "sha256"}
        self.requests = self.sent = self.received = 0
        self.on_request = on_request
        self.restored: set[bytes] = set()
        self._clock = clock
        self._stored: dict[bytes, _Stored] = {}
        self._uploads: dict[str, _Uploading] = {}
        self._numbers = count(1)
        # Re-entrant: a callback may look at the bucket.
        self._lock = RLock()

    @property
    def keys(self) -> dict[bytes, bytes]:
        with self._lock:
            return {key: one.data for key, one in sorted(self._stored.items())}

    def _enter(self, call: str, key: bytes) -> None:
        with self._lock:
            self.requests += 1
        if self.on_request is not None:
            self.on_request(call, key)

    def _leave(self, call: str, key: bytes) -> None:
        if self.on_request is not None:
            self.on_request(f"{call} done", key)

    def put_as_other(self, key: bytes, data: bytes) -> None:
        """Write a key as another program does."""
        self.put(key, data, over=ANY)
        self._stored[key] = self._stored[key]._replace(is_ours=False)

    # --- read ---------------------------------------------------------------------------------------------------------

    def list(self, prefix: bytes, *, after: bytes = b"", delimiter: bool = False, limit: int = 1000) -> Page:
        self._enter("list", prefix)
        keys: list[ListedKey] = []
        directories: list[bytes] = []
        last: bytes | None = None
        with self._lock:
            ordered = sorted(self._stored)
            at = bisect_right(ordered, max(after, b"")) if after else 0
            while at < len(ordered):
                key = ordered[at]
                at += 1
                if not key.startswith(prefix):
                    if key > prefix:
                        break
                    continue
                end = key.find(b"/", len(prefix)) + 1 if delimiter else 0
                if end and after.startswith(key[:end]):
                    continue
                if len(keys) + len(directories) == limit:
                    return Page(keys, directories, last, self._clock())
                if end:
                    last = key[:end] + b"\xff"  # nothing in the directory sorts after it
                    directories.append(key[:end])
                    at = bisect_right(ordered, last)
                    continue
                one, last = self._stored[key], key
                keys.append(ListedKey(key, len(one.data), one.token, one.modified, one.storage_class))
        return Page(keys, directories, None, self._clock())

    def head(self, key: bytes) -> KeyStatus:
        self._enter("head", key)
        return self._status(key, self._find(key))

    def get(self, key: bytes, *, begin: int = 0, end: int | None = None, token: str | None = None) -> Download:
        self._enter("get", key)
        found = self._find(key)
        if token not in (None, found.token):
            raise KeyChangedError(key)
        status = self._status(key, found)
        if status.is_archived:
            raise ArchivedError(key)
        return _Download(found.data[begin:end], status, self)

    def _find(self, key: bytes) -> _Stored:
        with self._lock:
            if key not in self._stored:
                raise FileNotFoundError(2, os.strerror(2), key)
            return self._stored[key]

    def _status(self, key: bytes, found: _Stored) -> KeyStatus:
        is_archived = found.storage_class in ARCHIVES and key not in self.restored
        return KeyStatus(
            *(len(found.data), found.token, found.modified, found.storage_class, found.digests),
            is_archived=is_archived,
            is_ours=found.is_ours,
        )

    # --- write --------------------------------------------------------------------------------------------------------

    def put(
        self,
        key: bytes,
        data: bytes | memoryview,
        *,
        over: str = NEW,
        digests: Mapping[str, str] = {},
        storage_class: str | None = None,
    ) -> str:
        self._enter("put", key)
        data = bytes(data)
        kept = sent_digests(digests, self.accepted)
        if any(hashlib.new(name, data).hexdigest() != digest for name, digest in kept.items()):
            raise OSError(5, "the content does not have the digest", key)
        with self._lock:
            self.sent += len(data)
            token = self._write(key, data, over, kept, storage_class)
        self._leave("put", key)
        return token

    def _write(self, key: bytes, data: bytes, over: str, digests: Mapping[str, str], storage_class: str | None) -> str:
        key_text(key)
        there = self._stored.get(key)
        if over == NEW and there is not None:
            raise FileExistsError(17, os.strerror(17), key)
        if over not in (NEW, ANY) and (there is None or there.token != over):
            raise KeyChangedError(key)
        # As on most servers, equal content has equal tokens. Nothing may rely on it.
        token = hashlib.md5(data, usedforsecurity=False).hexdigest()
        self._stored[key] = _Stored(data, token, self._clock(), storage_class or "STANDARD", digests)
        return token

    def start(self, key: bytes, *, storage_class: str | None = None) -> str:
        self._enter("start", key)
        with self._lock:
            name = f"upload-{next(self._numbers)}"
            self._uploads[name] = _Uploading(key, self._clock(), storage_class or "STANDARD", {})
        self._leave("start", key)
        return name

    def part(self, key: bytes, upload: str, number: int, data: bytes | memoryview) -> Part:
        self._enter("part", key)
        data = bytes(data)
        digest = hashlib.sha256(data).hexdigest()
        part = Part(number, len(data), hashlib.md5(data, usedforsecurity=False).hexdigest(), digest)
        with self._lock:
            self.sent += len(data)
            self._find_upload(key, upload).parts[number] = (part, data)
        self._leave("part", key)
        return part

    def complete(self, key: bytes, upload: str, parts: Sequence[Part], *, over: str = NEW) -> str:
        self._enter("complete", key)
        with self._lock:
            found = self._find_upload(key, upload)
            if not parts or any(found.parts.get(one.number, (None,))[0] != one for one in parts):
                raise OSError(22, "a part is missing", key)
            data = b"".join(found.parts[one.number][1] for one in parts)
            self._write(key, data, over, {}, found.storage_class)
            joined = b"".join(bytes.fromhex(one.token) for one in parts)
            token = f"{hashlib.md5(joined, usedforsecurity=False).hexdigest()}-{len(parts)}"
            self._stored[key] = self._stored[key]._replace(token=token)
            del self._uploads[upload]
        self._leave("complete", key)
        return token

    def parts(self, key: bytes, upload: str) -> Sequence[Part]:
        self._enter("parts", key)
        with self._lock:
            return [part for _number, (part, _data) in sorted(self._find_upload(key, upload).parts.items())]

    def _find_upload(self, key: bytes, upload: str) -> _Uploading:
        found = self._uploads.get(upload)
        if found is None or found.key != key:
            raise FileNotFoundError(2, "no such upload", key)
        return found

    def abort(self, key: bytes, upload: str) -> None:
        self._enter("abort", key)
        with self._lock:
            self._uploads.pop(upload, None)
        self._leave("abort", key)

    def uploads(self, prefix: bytes) -> Iterator[Upload]:
        self._enter("uploads", prefix)
        with self._lock:
            found = [Upload(one.key, name, one.started) for name, one in self._uploads.items()]
        return (one for one in sorted(found) if one.key.startswith(prefix))

    def copy(
        self,
        source: bytes,
        key: bytes,
        *,
        over: str = NEW,
        storage_class: str | None = None,
        of: Bucket | None = None,
    ) -> str:
        self._enter("copy", key)
        with self._lock:
            found = cast(MemoryBucket, of or self)._find(source)
            token = self._write(key, found.data, over, found.digests, storage_class)
        self._leave("copy", key)
        return token

    def delete(self, keys: Sequence[bytes], *, token: str | None = None) -> None:
        if not keys:
            return
        self._enter("delete", keys[0])
        with self._lock:
            for key in keys:
                there = self._stored.get(key)
                if token is not None and there is not None and there.token != token:
                    raise KeyChangedError(key)
                self._stored.pop(key, None)
        self._leave("delete", keys[0])
