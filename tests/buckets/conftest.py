"""Buckets: one in memory, and one of a server."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pressmark.buckets.bucket import Bucket
from pressmark.buckets.memory import MemoryBucket

from .servers import CREDENTIALS, versitygw

NUMBERS = count(1)

if TYPE_CHECKING:
    from pressmark.buckets.s3 import S3Bucket


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of a server for all tests of a process."""
    folder: Path = tmp_path_factory.mktemp("versitygw")
    with versitygw(folder) as address:
        yield address


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The settings of a user of the server; those of whoever runs the tests are hidden."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))


@pytest.fixture
def s3(endpoint: str, aws: None) -> Iterator[S3Bucket]:
    """A new bucket of the server."""
    yield from new_bucket(endpoint)


def new_bucket(endpoint: str) -> Iterator[S3Bucket]:
    """Create a bucket, and close its connections at the end."""
    pytest.importorskip("boto3")
    from pressmark.buckets.s3 import S3Bucket

    bucket = S3Bucket(f"books-{next(NUMBERS)}", endpoint=endpoint, timeout=20.0)
    bucket._s3.create_bucket(Bucket=bucket.name)
    bucket.requests = 0
    yield bucket
    bucket.close()


@pytest.fixture(params=["memory", "versitygw"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    """An empty bucket of each kind."""
    if request.param == "memory":
        return MemoryBucket()
    found: Bucket = request.getfixturevalue("s3")
    return found
