"""Addresses that lead to a bucket in memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pressmark.buckets import address
from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket

__all__ = ["put_tree", "use_memory"]


def use_memory(monkeypatch: pytest.MonkeyPatch) -> MemoryBucket:
    """Return the bucket that all addresses lead to until the end of the test: ``s3://memory/…``."""
    bucket = MemoryBucket()
    monkeypatch.setattr(address, "open_bucket", lambda text, *_settings: (bucket, address.parse(text)[1]))
    return bucket


def put_tree(bucket: MemoryBucket, folder: Path, key: str) -> None:
    """Put a copy of a directory, or of a file, in place of what is at a key."""
    prefix = os.fsencode(key)
    bucket.delete([one for one in bucket.keys if one == prefix or one.startswith(prefix + b"/")])
    if folder.is_file():
        bucket.put(prefix, folder.read_bytes(), over=ANY)
        return
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.put(prefix + b"/" + os.fsencode(path.relative_to(folder).as_posix()), path.read_bytes())
