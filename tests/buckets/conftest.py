"""Buckets: one in memory, and one of a server."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pressmark.buckets.bucket import Bucket
from pressmark.buckets.memory import MemoryBucket

from .proxy import Proxy, run_proxy
from .servers import set_variables, user_settings, versitygw

# A failed assertion of the helper shows its values, too.
pytest.register_assert_rewrite(f"{__package__}.killed_writers")

NUMBERS = count(1)

if TYPE_CHECKING:
    from pressmark.buckets.s3 import S3Bucket


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of a server for all tests of a process."""
    folder: Path = tmp_path_factory.mktemp("versitygw")
    with versitygw(folder) as address:
        yield address


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of a user of the server; those of whoever runs the tests are hidden."""
    return user_settings(tmp_path_factory.mktemp("aws"))


@pytest.fixture
def aws(settings: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the variables; without botocore, skip the test."""
    pytest.importorskip("botocore")
    set_variables(settings, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, aws: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of a bucket ``books`` on a server of its own."""
    with versitygw(tmp_path) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
        books = tmp_path / "data" / "books"
        books.mkdir()
        yield books


@contextlib.contextmanager
def open_s3(name: str, endpoint: str, timeout: float = 20.0) -> Iterator[S3Bucket]:
    """Open a bucket, and close its connections at the end."""
    from pressmark.buckets.s3 import S3Bucket

    with contextlib.closing(S3Bucket(name, endpoint=endpoint, timeout=timeout)) as bucket:
        yield bucket


def create(bucket: S3Bucket) -> None:
    """Create the bucket on its server."""
    bucket._call("CreateBucket", "PUT", b"")


@pytest.fixture(scope="session")
def proxy_of_all(endpoint: str) -> Iterator[Proxy]:
    """A proxy in front of the server, for all tests of a process."""
    with run_proxy(endpoint) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def connected(endpoint: str, proxy_of_all: Proxy, settings: dict[str, str]) -> Iterator[tuple[S3Bucket, S3Bucket]]:
    """Two connections to the server, for all tests of a process, one of them through the proxy: each takes a while."""
    pytest.importorskip("botocore")
    with pytest.MonkeyPatch.context() as patch:
        set_variables(settings, patch)
        with open_s3("direct", endpoint) as direct, open_s3("proxied", proxy_of_all.endpoint) as proxied:
            # The credentials are read with the first request.
            create(direct)
            create(proxied)
            yield direct, proxied


@pytest.fixture
def s3(connected: tuple[S3Bucket, S3Bucket], proxy_of_all: Proxy, aws: None) -> S3Bucket:
    """A new bucket of the server."""
    name = f"books-{next(NUMBERS)}"
    for bucket in connected:
        bucket.name, bucket.url, bucket.accepted = name, f"s3://{name}", {"sha256"}
    create(connected[0])
    for bucket in connected:
        bucket.requests = bucket.sent = bucket.received = 0
    return connected[0]


@pytest.fixture
def proxied(s3: S3Bucket, connected: tuple[S3Bucket, S3Bucket]) -> S3Bucket:
    """The same bucket, through a proxy."""
    return connected[1]


@pytest.fixture
def proxy(proxied: S3Bucket, proxy_of_all: Proxy) -> Iterator[Proxy]:
    """The proxy, which does nothing yet."""
    proxy_of_all.reset()
    yield proxy_of_all
    proxy_of_all.reset()


@pytest.fixture
def impatient(proxied: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for answers through the proxy only a moment."""
    from urllib3 import Timeout

    for pool, _before, _host in proxied._server._pools.values():
        monkeypatch.setattr(pool, "timeout", Timeout(0.5))


@pytest.fixture(params=["memory", "versitygw"])
def bucket(request: pytest.FixtureRequest) -> Bucket:
    """An empty bucket of each kind."""
    if request.param == "memory":
        return MemoryBucket()
    found: Bucket = request.getfixturevalue("s3")
    return found


@pytest.fixture
def planned(aws: None) -> Iterator[tuple[S3Bucket, Proxy]]:
    """A bucket without a server: all answers are planned. Its time-outs are short."""
    with run_proxy() as proxy, open_s3("books", proxy.endpoint, timeout=0.5) as bucket:
        yield bucket, proxy
