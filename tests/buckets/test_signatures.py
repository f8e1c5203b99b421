"""Requests are signed as botocore signs them, and sent where its settings say."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pressmark.buckets.bucket import ANY, Part
from pressmark.buckets.s3 import S3Bucket

from .proxy import Answer, Proxy, Request, error

Planned = tuple[S3Bucket, Proxy]

KEYS = [
    *("plain", "a/b/c", "blank in it", " ", "a+b", "100%", "%2F", "é", "~tilde", "a//b", "/lead", "end/", "😀"),
    *("./dot", "../up", "a/../b", "nl\nx", "\x01", "\u007f", "q?x=1&y=2", "#f", "a;b=c", "'\"<>&", ":@!$,()*[]{}|^`\\"),
]
SIGNED = re.compile("AWS4-HMAC-SHA256 Credential=([^/]*)/([0-9]{8})/([^/]*)/s3/aws4_request, SignedHeaders=(.*), Sig.*")


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers of a request, by their names in lower case."""
    return {name.lower(): value for name, value in request.headers.items()}


def check(request: Request, endpoint: str, secret: str) -> tuple[str, str]:
    """Compare the signature of a request with botocore's, and return its access key and its region."""
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    headers = headers_of(request)
    found = SIGNED.fullmatch(headers["authorization"])
    assert found is not None
    access, date, region, names = found.groups()
    signed = {name: headers[name] for name in names.split(";")}
    # What can change the meaning of a request is signed.
    assert {name for name in headers if name.startswith(("x-amz-", "content-md5", "if-", "range", "host"))} <= {*signed}
    assert headers["x-amz-date"].startswith(date)
    assert headers["x-amz-content-sha256"] == hashlib.sha256(request.body).hexdigest()
    own = AWSRequest(request.method, endpoint + request.path, signed, request.body)
    own.context["timestamp"] = headers["x-amz-date"]
    signer = S3SigV4Auth(Credentials(access, secret), "s3", region)
    text = signer.string_to_sign(own, signer.canonical_request(own))
    assert headers["authorization"].endswith(f", Signature={signer.signature(text, own)}")
    return access, region


CALLS: dict[str, Callable[[S3Bucket, bytes], object]] = {
    "list": lambda bucket, key: bucket.list(key, after=key + b"!", delimiter=True, limit=7),
    "head": lambda bucket, key: bucket.head(key),
    "get": lambda bucket, key: bucket.get(key, begin=1, end=3, token="t").close(),
    "put": lambda bucket, key: bucket.put(key, b"1", digests={"sha256": hashlib.sha256(b"1").hexdigest()}),
    "replace": lambda bucket, key: bucket.put(key, b"", over="t", storage_class="DEEP_ARCHIVE"),
    "put large": lambda bucket, key: bucket.put(key, memoryview(bytes(2 << 20)), over=ANY),
    "start": lambda bucket, key: bucket.start(key),
    "part": lambda bucket, key: bucket.part(key, "a/+b=", 3, b"2"),
    "parts": lambda bucket, key: bucket.parts(key, "a/+b="),
    "complete": lambda bucket, key: bucket.complete(key, "a/+b=", [Part(1, 5, "t", "00" * 32)], over="t"),
    "abort": lambda bucket, key: bucket.abort(key, "a/+b="),
    "uploads": lambda bucket, key: list(bucket.uploads(key)),
    "copy": lambda bucket, key: bucket.copy(key, key),
    "delete": lambda bucket, key: bucket.delete([key], token="t"),
    "delete many": lambda bucket, key: bucket.delete([key, key + b"2"]),
}


def answer(request: Request) -> Answer:
    """Answer any request."""
    headers = {"ETag": '"t"', "Last-Modified": "Sun, 29 Nov 2026 10:00:00 GMT", "Content-Range": "bytes 1-2/5"}
    if request.method == "HEAD":
        return Answer(200, b"", {"Content-Length": "5", **headers})
    return Answer(200, b"<Any><UploadId>u</UploadId><ETag>t</ETag></Any>", headers)


@pytest.mark.parametrize("call", CALLS)
def test_signatures(planned: Planned, settings: Mapping[str, str], call: str) -> None:
    """All requests, with keys of all kinds."""
    bucket, proxy = planned
    proxy.plan = answer
    for key in KEYS:
        CALLS[call](bucket, key.encode())
    assert len(proxy.requests) >= len(KEYS)
    for request in proxy.requests:
        access, region = check(request, proxy.endpoint, settings["AWS_SECRET_ACCESS_KEY"])
        assert (access, region) == (settings["AWS_ACCESS_KEY_ID"], "us-east-1")


def test_keys_in_paths(planned: Planned) -> None:
    """No part of a key is removed, and everything else than letters, digits, ``-._~`` and ``/`` is quoted."""
    bucket, proxy = planned
    proxy.plan = answer
    for key in ("a//b", "a/../b", "./x", "é +~", "\n"):
        bucket.head(key.encode())
    paths = [request.path for request in proxy.requests]
    assert paths == [f"/books/{one}" for one in ("a//b", "a/../b", "./x", "%C3%A9%20%2B~", "%0A")]


def test_temporary_credentials(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token of a session is sent and signed; renewed credentials are used as soon as they are there."""
    from botocore.credentials import Credentials

    bucket, proxy = planned
    proxy.plan = answer
    bucket.head(b"a")
    for access, secret, token in (("k1", "s1", "t1"), ("k2", "s2", "t2")):
        monkeypatch.setattr(bucket._server, "_credentials", Credentials(access, secret, token))
        bucket.head(b"a")
        assert check(proxy.requests[-1], proxy.endpoint, secret)[0] == access
        assert headers_of(proxy.requests[-1])["x-amz-security-token"] == token
    assert "x-amz-security-token" not in headers_of(proxy.requests[0])


@pytest.mark.parametrize(
    "first",
    [
        Answer(301, b"", {"x-amz-bucket-region": "eu-west-1"}),
        Answer(307, b"", {"x-amz-bucket-region": "eu-west-1", "Location": "http://127.0.0.1:1/"}),
        Answer(400, b"<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-west-1</Region></Error>"),
    ],
)
def test_another_region(planned: Planned, settings: Mapping[str, str], first: Answer) -> None:
    """A bucket in another region is asked there, from the next request on."""
    bucket, proxy = planned
    proxy.faults = {1: first}
    proxy.plan = answer
    bucket.put(b"a", b"1")
    bucket.head(b"a")
    regions = [check(one, proxy.endpoint, settings["AWS_SECRET_ACCESS_KEY"])[1] for one in proxy.requests]
    assert regions == ["us-east-1", "eu-west-1", "eu-west-1"]
    assert bucket._server.endpoint == proxy.endpoint


def test_a_redirection_that_leads_nowhere(planned: Planned) -> None:
    """A redirection without another region is an error."""
    bucket, proxy = planned
    for region in ("us-east-1", "http://elsewhere/"):
        proxy.reset()
        moved = error(301, "PermanentRedirect")._replace(headers={"x-amz-bucket-region": region})
        proxy.plan = lambda _request, moved=moved: moved  # type: ignore[misc]
        with pytest.raises(OSError, match="the server reports PermanentRedirect"):
            bucket.list(b"")
        assert len(proxy.requests) <= 6


def test_regions_of_amazon(aws: None) -> None:
    """The host of a bucket at Amazon is that of its region; a name with a point has no certificate, so it is a path."""
    bucket = S3Bucket("books")
    assert bucket._server.address("books", "a//é") == ("https://books.s3.us-east-1.amazonaws.com", "/a//%C3%A9")
    assert bucket._server.address("my.books", "") == ("https://s3.us-east-1.amazonaws.com", "/my.books")
    assert bucket._server.address("books", "") == ("https://books.s3.us-east-1.amazonaws.com", "/")
    bucket._server.move("cn-north-1")
    assert bucket._server.address("books", "a")[0] == "https://books.s3.cn-north-1.amazonaws.com.cn"
    bucket._server.move("no region")
    assert bucket._server.region == "cn-north-1"


class _Pool:
    """Connections that record what is sent."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []

    def urlopen(self, _method: str, _path: str, **more: Any) -> Any:
        from urllib3 import HTTPResponse

        self.headers.append(more["headers"])
        return HTTPResponse(b"", {"ETag": "t"}, 200)


def test_the_digest_of_encrypted_requests(aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over https, content is not hashed for the signature if its checksum is sent, which the server compares."""
    bucket, pool = S3Bucket("books", endpoint="https://s3.example.org:443"), _Pool()
    monkeypatch.setattr(bucket._server, "_connected", lambda _url: (pool, "", "s3.example.org"))
    digests = {name: hashlib.new(name, b"1").hexdigest() for name in ("sha512", "sha256")}
    bucket.accepted = {"sha512"}
    bucket.put(b"a", b"1", digests=digests)
    bucket.accepted = set()
    bucket.put(b"a", b"1", digests=digests)
    assert [one["x-amz-content-sha256"] for one in pool.headers] == ["UNSIGNED-PAYLOAD", digests["sha256"]]


def test_usual_ports(aws: None) -> None:
    """The port that a scheme implies is no part of the signed host."""
    from pressmark.buckets.s3_requests import _host

    urls = ("https://u:p@s3.example.org:443", "http://h:80", "http://h:443", "http://[::1]:80", "http://[::1]")
    assert [_host(url) for url in urls] == ["s3.example.org", "h", "h:443", "[::1]", "[::1]"]


def test_a_proxy(planned: Planned, settings: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy of the environment gets the whole address, unless the host is one of its exceptions."""
    _bucket, proxy = planned
    proxy.plan = answer
    monkeypatch.setenv("HTTP_PROXY", proxy.endpoint)
    monkeypatch.setenv("http_proxy", proxy.endpoint)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    bucket = S3Bucket("books", endpoint="http://s3.example.org")
    bucket.put(b"a b", b"1")
    S3Bucket("books", endpoint=proxy.endpoint).head(b"a")
    assert [one.path for one in proxy.requests] == ["http://s3.example.org/books/a%20b", "/books/a"]
    request = proxy.requests[0]._replace(path="/books/a%20b")
    check(request, "http://s3.example.org", settings["AWS_SECRET_ACCESS_KEY"])


def test_the_endpoint_of_the_settings(aws: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint is looked for where the AWS command line looks: for S3 first, then for all services."""
    settings = tmp_path / "config"
    settings.write_text(
        "[default]\nregion = there\nservices = mine\nendpoint_url = http://all.example.org\n"
        "[services mine]\ns3 =\n  endpoint_url = http://s3.example.org\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(settings))
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    server = S3Bucket("books")._server
    assert (server.endpoint, server.region) == ("http://s3.example.org", "there")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://variable.example.org")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://more.example.org/base/")
    assert S3Bucket("books")._server.address("books", "a") == ("http://more.example.org", "/base/books/a")
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    monkeypatch.setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true")
    assert S3Bucket("books")._server.endpoint == "https://s3.there.amazonaws.com"
