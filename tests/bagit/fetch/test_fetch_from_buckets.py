"""Completing a bag from buckets: only those that the user named, only correct files."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from pressmark.bagit.fetch.complete import complete
from pressmark.buckets import address, remote_file as reading
from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import BagError, StoreError
from pressmark.reports import Report

from ..bags import Sketch, tree

pytest.importorskip("urllib3")

LARGE = random.Random(1).randbytes((3 << 20) + 5)
FILES = {"data/a b%é?#+&.txt": b"a\n", "data/empty": b"", "data/sub/large": LARGE}
URLS = ("s3://books/x/a%20b%25%C3%A9%3F%23+&.txt", "s3://books/x/empty", "s3://books//x/large")
KEYS = ("x/a b%é?#+&.txt", "x/empty", "/x/large")


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> MemoryBucket:
    """A bucket ``books`` with the files."""
    made = MemoryBucket()
    for key, body in zip(KEYS, FILES.values(), strict=True):
        made.put(key.encode(), body)
    monkeypatch.setattr(address, "open_bucket", lambda text: (made, address.parse(text)[1]))
    return made


def holey(folder: Path, urls: tuple[str, ...] = URLS, files: dict[str, bytes] = FILES, length: str = "-") -> Path:
    lines = [
        f"{url} {len(body) if length == 'known' else length} {path.replace('%', '%25')}\n"
        for url, (path, body) in zip(urls, files.items(), strict=True)
    ]
    payload = {path.encode(): body for path, body in files.items()}
    return Sketch(payload=payload, absent=set(payload), info=None, fetch="".join(lines).encode()).write(folder / "bag")


def finish(bag: Path, **changes: Any) -> Report:
    return complete(bag, **{"allow_buckets": ["books"], "retries": 0} | changes)


def messages(report: Report) -> list[tuple[str, str]]:
    return [(one.kind, one.message) for one in report.problems]


@pytest.mark.parametrize("length", ["-", "known"])
def test_files_of_a_bucket(bucket: MemoryBucket, tmp_path: Path, length: str) -> None:
    """The files are downloaded by their keys, and nothing is left over."""
    bag = holey(tmp_path, length=length)
    report = finish(bag)
    assert messages(report) == []
    assert report.ok
    assert report.counts["bytes"] == sum(map(len, FILES.values()))
    found = tree(bag)
    assert {path: found[path.encode()] for path in FILES} == FILES
    assert [name for name in found if name.startswith(b".")] == []


def test_only_named_buckets(bucket: MemoryBucket, tmp_path: Path) -> None:
    """Without permission for the bucket, it receives no request, and the message names the parameter."""
    bag = holey(tmp_path)
    before = bucket.requests
    for allowed in ((), "book", ["other"]):
        report = finish(bag, allow_buckets=allowed)
        assert {kind for kind, _ in messages(report)} == {"fetch-refused"}
        what = (
            f"'{URLS[1]}' is in the bucket 'books', which is not allowed; use allow_buckets=['books'] if you trust it"
        )
        assert messages(report)[1][1] == what
    assert bucket.requests == before


@pytest.mark.parametrize(
    ("url", "kind", "words"),
    [
        ("s3://books/missing", "fetch-failed", "'s3://books/missing': No such file or directory"),
        ("s3://books", "fetch-refused", "'s3://books' does not name a bucket and a key"),
        ("s3://books/", "fetch-refused", "'s3://books/' does not name a bucket and a key"),
        ("s3://me:secret@books/x", "fetch-refused", "'s3://books/x' does not name a bucket and a key"),
        ("s3://books:80/x", "fetch-refused", "'s3://books:80/x' does not name a bucket and a key"),
        ("s3://books/x?versionId=1", "fetch-refused", "'s3://books/x?…' has a query; encode ? in a key as %3F"),
    ],
)
def test_bad_urls(bucket: MemoryBucket, tmp_path: Path, url: str, kind: str, words: str) -> None:
    """A URL that names no key is a problem; the other files are downloaded."""
    bag = holey(tmp_path, (URLS[0], url, URLS[2]))
    report = finish(bag)
    assert messages(report) == [(kind, words)]
    assert report.counts["files"] == 2


def test_wrong_content(bucket: MemoryBucket, tmp_path: Path) -> None:
    """A key with other content, more of it, or archived content adds no file."""
    (archived,) = {key for key in KEYS if key.endswith("empty")}
    bucket.put(KEYS[0].encode(), b"b\n", over=ANY)
    bucket.put(archived.encode(), b"", over=ANY, storage_class="GLACIER")
    bucket.put(KEYS[2].encode(), LARGE + b"!", over=ANY)
    bag = holey(tmp_path, length="known")
    report = finish(bag)
    assert [one.kind for one in report.problems] == ["checksum-mismatch", "fetch-failed", "fetch-too-long"]
    assert "the content is archived; restore it" in report.problems[1].message
    assert report.problems[2].message == f"'{URLS[2]}' has {len(LARGE) + 1} bytes; the limit is {len(LARGE)}"
    assert [path for path in tree(bag) if path.startswith(b"data/")] == []


@pytest.mark.parametrize("changed", [False, True])
def test_a_broken_download_continues(
    bucket: MemoryBucket, tmp_path: Path, changed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next run reads the rest of a large file; if the key was written again, the whole file."""
    monkeypatch.setattr(reading, "TRIES", 1)
    bag = holey(tmp_path, (URLS[2],), {"data/sub/large": LARGE})
    if changed:
        bucket.put(KEYS[2].encode(), LARGE[::-1], over=ANY)
    read, get = reading._Stream.read, bucket.get

    def broken(stream: Any, size: int) -> bytes:
        if stream.position >= 2 << 20:
            raise OSError(5, "the connection broke")
        return read(stream, size)

    monkeypatch.setattr(reading._Stream, "read", broken)
    assert messages(finish(bag)) == [("fetch-failed", f"'{URLS[2]}': the connection broke")]
    monkeypatch.setattr(reading._Stream, "read", read)
    bucket.put(KEYS[2].encode(), LARGE, over=ANY)
    begins: list[int] = []

    def seen(key: bytes, **options: Any) -> Any:
        begins.append(options.get("begin", 0))
        return get(key, **options)

    monkeypatch.setattr(bucket, "get", seen)
    report = finish(bag, retries=1)
    assert messages(report) == []
    assert begins == ([2 << 20, 0] if changed else [2 << 20])
    assert tree(bag)[b"data/sub/large"] == LARGE


def test_buckets_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A malformed name, or missing botocore, stops the run before anything is written."""
    bag = holey(tmp_path)
    before = tree(bag)

    def missing(text: str) -> Any:
        address.parse(text)
        raise StoreError(text, "object storage requires botocore: pip install 'pressmark[s3]'")

    monkeypatch.setattr(address, "open_bucket", missing)
    with pytest.raises(BagError, match="requires botocore"):
        finish(bag)
    with pytest.raises(BagError, match="invalid bucket name"):
        finish(bag, allow_buckets=["s3://books"])
    monkeypatch.setattr(address, "open_bucket", lambda text: (MemoryBucket(), address.parse(text)[1]))
    with pytest.raises(BagError, match="not the name of a bucket; omit the prefix"):
        finish(bag, allow_buckets=["books/x"])
    assert tree(bag) == before
