"""Addresses in object storage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark import stores
from pressmark.buckets.address import is_address, open_bucket, parse
from pressmark.errors import StoreError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://books", ("books", b"")),
        ("s3://books/", ("books", b"")),
        ("s3://books/root", ("books", b"root/")),
        ("s3://books/a/root/", ("books", b"a/root/")),
        ("s3://books/a/root//", ("books", b"a/root/")),
        (b"s3://books/root", ("books", b"root/")),
        ("s3://Books_1.example/é %2F?x#y", ("Books_1.example", "é %2F?x#y/".encode())),
        ("s3://books/" + "a" * 1023, ("books", b"a" * 1023 + b"/")),
    ],
)
def test_parse(text: str | bytes, expected: tuple[str, bytes]) -> None:
    """The prefix is empty, or ends with a slash; no character has a meaning."""
    assert is_address(text)
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("books", "not an address in object storage, such as s3://bucket/prefix"),
        ("S3://books", "not an address in object storage"),
        ("/s3://books", "not an address in object storage"),
        ("s3://", "invalid bucket name ''; use an address such as s3://bucket/prefix"),
        ("s3:///root", "invalid bucket name ''"),
        ("s3://b", "invalid bucket name 'b'"),
        ("s3://-books/root", "invalid bucket name '-books'"),
        ("s3://user@books/root", "invalid bucket name 'user@books'"),
        ("s3://books:80/root", "invalid bucket name 'books:80'"),
        ("s3://books//root", "the prefix has an empty part"),
        ("s3://books/a//b", "the prefix has an empty part"),
        ("s3://books//", "the prefix has an empty part"),
        ("s3://books/./a", "the prefix has an empty part, or the part '.' or '..'"),
        ("s3://books/a/..", "the prefix has an empty part, or the part '.' or '..'"),
        (b"s3://books/\xff", "the prefix is not UTF-8"),
        ("s3://books/\udcff", "the prefix is not UTF-8"),
        ("s3://books/" + "a" * 1024, "the prefix is too long; at most 1,023 bytes are allowed"),
    ],
)
def test_malformed_addresses(text: str | bytes, reason: str) -> None:
    """A malformed address is refused with the reason."""
    with pytest.raises(StoreError) as caught:
        parse(text)
    assert caught.value.reason.startswith(reason)


@pytest.mark.parametrize("path", ["s3", "s3:/books", "./s3://books", "S3://books", b"root", ""])
def test_paths(path: str | bytes) -> None:
    """Everything else is a path."""
    assert not is_address(path)


def test_open_bucket(aws: None) -> None:
    """The bucket of an address has the settings."""
    pytest.importorskip("botocore")
    bucket, prefix = open_bucket("s3://books/root", "http://127.0.0.1:7070", region="here")
    assert isinstance(bucket, pytest.importorskip("pressmark.buckets.s3").S3Bucket)
    assert open_bucket("s3://books/other", "http://127.0.0.1:7070", region="here")[0] is bucket
    assert open_bucket("s3://books/other", "http://127.0.0.1:7070")[0] is not bucket
    assert (bucket.url, prefix) == ("s3://books", b"root/")
    assert (bucket._server.endpoint, bucket._server.region) == ("http://127.0.0.1:7070", "here")
    bucket.close()


@pytest.mark.parametrize(
    "call",
    [
        lambda: stores.create("pairtree", "s3://books/tree"),
        lambda: stores.VitroStore.create("s3://books/vitro"),
        lambda: stores.BagFolder.create("s3://books/bags"),
    ],
)
def test_what_is_not_supported(call: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address is not taken for the path of a directory called ``s3:``."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=r"in object storage|use a local path"):
        call()
    assert list(tmp_path.iterdir()) == []
