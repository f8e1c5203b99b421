"""Free paths in a bucket, found by few listings."""

from __future__ import annotations

import random

import pytest

from pressmark.buckets import remote_directory
from pressmark.buckets.memory import MemoryBucket
from pressmark.buckets.remote_directory import RemoteDirectory

# Names that begin alike, before and after a slash in the order of bytes, and of several bytes.
NAMES = ["a", "a-", "a.b", "a/b", "a/b/c", "a0", "b", "é", "éa", "é/x", "\U0001f600", "\U0001f600/y", "z"]


@pytest.mark.parametrize("prefix", [b"", b"root/"])
@pytest.mark.parametrize("seed", range(20))
def test_free_paths(prefix: bytes, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are those that are found by looking each up; a file and a directory are in the way."""
    monkeypatch.setattr(remote_directory, "NEIGHBOURS", 1)
    chosen = random.Random(seed)
    bucket = MemoryBucket()
    listing = bucket.list
    monkeypatch.setattr(bucket, "list", lambda key, **options: listing(key, **{**options, "limit": 3}))
    for name in chosen.sample(NAMES, chosen.randrange(len(NAMES))):
        bucket.put(prefix + name.encode() + chosen.choice([b"", b"/file"]), b"1")
    bucket.put(b"roo", b"1")
    bucket.put(b"root0", b"1")
    directory = RemoteDirectory(bucket, prefix)
    paths = [name.encode() for name in NAMES]
    truth = {path for path in paths if not directory.exists(path)}
    assert directory.free(paths) <= truth
    monkeypatch.setattr(bucket, "list", listing)
    assert directory.free(paths) == truth


def test_a_full_directory() -> None:
    """Few paths among many keys are not looked for."""
    bucket = MemoryBucket()
    for number in range(3_000):
        bucket.put(b"%d" % number, b"1")
    before = bucket.requests
    RemoteDirectory(bucket).free([b"%d/x" % (number * 100) for number in range(30)])
    assert bucket.requests - before == 1
