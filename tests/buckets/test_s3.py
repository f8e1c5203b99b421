"""What S3 sends and answers, where the servers of the other tests differ: all answers are planned."""

from __future__ import annotations

import errno
import hashlib
import subprocess
import sys
from base64 import b64encode
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from pressmark.buckets.bucket import ANY, KeyChangedError, Part
from pressmark.buckets.s3 import S3Bucket
from pressmark.errors import StoreError

from .proxy import Answer, Proxy, Request, error
from .servers import free_port

Planned = tuple[S3Bucket, Proxy]
MODIFIED = "Sun, 29 Nov 2026 10:00:00 GMT"
WHEN = "2026-11-29T10:00:00.000Z"


def listing(*keys: str, directories: tuple[str, ...] = (), encoded: bool = False, more: str = "") -> Answer:
    """Return the answer to a listing."""
    entries = "".join(
        f"<Contents><Key>{escape(key)}</Key><LastModified>{WHEN}</LastModified><ETag>&quot;e&quot;</ETag>"
        f"<Size>1</Size></Contents>"
        for key in keys
    )
    entries += "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in directories)
    encoding = "<EncodingType>url</EncodingType>" if encoded else ""
    return Answer(200, f"<ListBucketResult>{encoding}{entries}{more}</ListBucketResult>".encode())


def head(**headers: str) -> Answer:
    """Return the answer to HEAD."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(200, b"", {"Content-Length": "5", "ETag": '"e"', "Last-Modified": MODIFIED, **named})


def headers_of(request: Request) -> dict[str, str]:
    """Return the headers of a request, by their names in lower case."""
    return {name.lower(): value for name, value in request.headers.items()}


# --- listings ---------------------------------------------------------------------------------------------------------


def test_encoded_keys(planned: Planned) -> None:
    """Keys are decoded if the server says that they are encoded: a blank is ``+``."""
    bucket, proxy = planned
    proxy.plan = lambda _request: listing("a+b", "a%01b", "a%2Bb", "a%25b", "nl%0A", "%C3%A9", encoded=True)
    with pytest.raises(OSError, match="order of their bytes"):
        bucket.list(b"")
    proxy.plan = lambda _request: listing(
        "a%01b", "a+b", "a%25b", "a%2Bb", "nl%0A", "%C3%A9", directories=("x+y/", "%C3%A9/"), encoded=True
    )
    page = bucket.list(b"", delimiter=True)
    assert [one.key for one in page.keys] == [b"a\x01b", b"a b", b"a%b", b"a+b", b"nl\n", "é".encode()]
    assert page.directories == [b"x y/", "é/".encode()]
    assert "encoding-type=url" in proxy.requests[0].path


def test_keys_that_are_not_encoded(planned: Planned) -> None:
    """Some servers ignore the encoding that was asked for, and say nothing about it."""
    bucket, proxy = planned
    proxy.plan = lambda _request: listing("a b", "a%2Bb", "a+b", "é")
    assert [one.key for one in bucket.list(b"").keys] == [b"a b", b"a%2Bb", b"a+b", "é".encode()]


def test_an_entry(planned: Planned) -> None:
    """An entry has its token without quotes, and the class STANDARD if none is named."""
    bucket, proxy = planned
    proxy.plan = lambda _request: listing("a")
    [one] = bucket.list(b"").keys
    assert one == (b"a", 1, "e", 1795946400.0, "STANDARD")


def test_the_next_part(planned: Planned) -> None:
    """The next part begins behind the last key, or behind everything in the last directory."""
    bucket, proxy = planned
    more = "<IsTruncated>true</IsTruncated>"
    proxy.plan = lambda _request: listing("p/a", directories=("p/b/",), more=more)
    page = bucket.list(b"p/", delimiter=True)
    assert page.after == "p/b/\U0010ffff".encode()
    proxy.plan = lambda _request: listing("p/c", directories=(), more=more)
    page = bucket.list(b"p/", delimiter=True, after=page.after)
    assert page.after == b"p/c"
    assert "start-after=p%2Fb%2F%F4%8F%BF%BF" in proxy.requests[-1].path


@pytest.mark.parametrize("keys", [("b", "a"), ("a", "a"), ("é", "z")])
def test_a_listing_without_order(planned: Planned, keys: tuple[str, ...]) -> None:
    """Directory buckets list keys in no order: parts would lack some."""
    bucket, proxy = planned
    proxy.plan = lambda _request: listing(*keys)
    with pytest.raises(OSError, match="the server does not list keys in the order of their bytes"):
        bucket.list(b"")


def test_a_listing_from_the_beginning(planned: Planned) -> None:
    """A server that ignores where to begin would be asked for ever."""
    bucket, proxy = planned
    proxy.plan = lambda _request: listing("a", "b")
    with pytest.raises(OSError, match="the server does not list keys in the order of their bytes"):
        bucket.list(b"", after=b"b")
    proxy.plan = lambda _request: listing(more="<IsTruncated>true</IsTruncated>")
    with pytest.raises(OSError, match="an incomplete listing without keys"):
        bucket.list(b"")


def test_uploads_and_parts_by_pages(planned: Planned) -> None:
    """Uploads and parts continue behind the markers of the server."""
    bucket, proxy = planned

    def uploads(key: str, more: str) -> Answer:
        entry = f"<Upload><Key>{key}</Key><UploadId>u</UploadId><Initiated>{WHEN}</Initiated></Upload>"
        text = f"<ListMultipartUploadsResult><EncodingType>url</EncodingType>{entry}{more}</ListMultipartUploadsResult>"
        return Answer(200, text.encode())

    markers = (
        "<IsTruncated>true</IsTruncated><NextKeyMarker>a+1</NextKeyMarker><NextUploadIdMarker>u</NextUploadIdMarker>"
    )
    proxy.faults = {1: uploads("a+1", markers), 2: uploads("a%2B2", ""), 3: uploads("b", "")}
    assert [one.key for one in bucket.uploads(b"a")] == [b"a 1", b"a+2"]
    assert "key-marker=a%201&" in proxy.requests[1].path
    assert "upload-id-marker=u" in proxy.requests[1].path
    # Some servers ignore the prefix.
    assert list(bucket.uploads(b"a")) == []

    def parts(number: int, more: str) -> Answer:
        digest = b64encode(hashlib.sha256(b"1").digest()).decode()
        entry = f"<PartNumber>{number}</PartNumber><ETag>&quot;e&quot;</ETag><Size>1</Size>"
        entry = f"<Part>{entry}<ChecksumSHA256>{digest}</ChecksumSHA256></Part>"
        return Answer(200, f"<ListPartsResult>{entry}{more}</ListPartsResult>".encode())

    markers = "<IsTruncated>true</IsTruncated><NextPartNumberMarker>1</NextPartNumberMarker>"
    proxy.reset()
    proxy.faults = {1: parts(1, markers), 2: parts(2, "")}
    digest = hashlib.sha256(b"1").hexdigest()
    assert bucket.parts(b"a", "u") == [Part(1, 1, "e", digest), Part(2, 1, "e", digest)]
    assert "part-number-marker=1" in proxy.requests[1].path


# --- the status of a key ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "is_archived"),
    [
        ({}, False),
        ({"x_amz_storage_class": "STANDARD_IA"}, False),
        ({"x_amz_storage_class": "GLACIER_IR"}, False),
        ({"x_amz_storage_class": "GLACIER"}, True),
        ({"x_amz_storage_class": "DEEP_ARCHIVE"}, True),
        ({"x_amz_storage_class": "GLACIER", "x_amz_restore": 'ongoing-request="true"'}, True),
        ({"x_amz_storage_class": "GLACIER", "x_amz_restore": 'ongoing-request="false", expiry-date="x"'}, False),
        ({"x_amz_storage_class": "INTELLIGENT_TIERING"}, False),
        ({"x_amz_storage_class": "INTELLIGENT_TIERING", "x_amz_archive_status": "ARCHIVE_ACCESS"}, True),
    ],
)
def test_archived(planned: Planned, headers: dict[str, str], is_archived: bool) -> None:
    """A key in an archive must be restored, unless it has been."""
    bucket, proxy = planned
    proxy.plan = lambda _request: head(**headers)
    status = bucket.head(b"a")
    assert status.is_archived == is_archived
    assert status.storage_class == headers.get("x_amz_storage_class", "STANDARD")


def test_reading_from_an_archive(planned: Planned) -> None:
    """Reading an archived key tells what to do; nothing is repeated."""
    bucket, proxy = planned
    proxy.plan = lambda _request: error(403, "InvalidObjectState")
    with pytest.raises(OSError, match="the content is archived; restore it from the archive") as caught:
        bucket.get(b"a")
    assert not isinstance(caught.value, PermissionError)
    assert bucket.requests == 1


def test_digests_of_the_content_only(planned: Planned) -> None:
    """A digest of the digests of parts is left out, as are sums that are no digests."""
    bucket, proxy = planned
    value = b64encode(hashlib.sha512(b"1").digest()).decode()
    proxy.plan = lambda _request: head(x_amz_checksum_sha512=value, x_amz_checksum_crc64nvme="AAAAAAAAAAA=")
    assert bucket.head(b"a").digests == {"sha512": hashlib.sha512(b"1").hexdigest()}
    assert headers_of(proxy.requests[0])["x-amz-checksum-mode"] == "ENABLED"
    proxy.plan = lambda _request: head(x_amz_checksum_sha512=f"{value}-2")
    assert bucket.head(b"a").digests == {}
    proxy.plan = lambda _request: head(x_amz_checksum_sha512=value, x_amz_checksum_type="COMPOSITE")
    assert bucket.head(b"a").digests == {}


def test_a_range_that_is_ignored(planned: Planned) -> None:
    """The whole content is no answer to a range."""
    bucket, proxy = planned
    headers = {"ETag": '"e"', "Last-Modified": MODIFIED}
    proxy.plan = lambda _request: Answer(200, b"12345", headers)
    assert bucket.get(b"a").read() == b"12345"
    with pytest.raises(OSError, match="the server does not return the requested range"):
        bucket.get(b"a", begin=1)
    proxy.plan = lambda _request: Answer(206, b"45", {**headers, "Content-Range": "bytes 3-4/5"})
    download = bucket.get(b"a", begin=3)
    assert (download.read(), download.status.size) == (b"45", 5)


def test_another_version(planned: Planned) -> None:
    """A server that ignores the condition of reading returns another version."""
    bucket, proxy = planned
    proxy.plan = lambda _request: Answer(200, b"12345", {"ETag": '"e"', "Last-Modified": MODIFIED})
    assert bucket.get(b"a", token="e").read() == b"12345"
    with pytest.raises(KeyChangedError):
        bucket.get(b"a", token="f")


def test_parts_without_digests(planned: Planned) -> None:
    """A part has a digest if the server says that it keeps it."""
    bucket, proxy = planned
    value = b64encode(hashlib.sha256(b"1").digest()).decode()
    proxy.faults = {2: Answer(200, b"", {"ETag": '"e"', "x-amz-checksum-sha256": value})}
    proxy.plan = lambda _request: Answer(200, b"", {"ETag": '"e"'})
    assert bucket.part(b"a", "u", 1, b"1") == Part(1, 1, "e")
    assert bucket.part(b"a", "u", 1, b"1") == Part(1, 1, "e", hashlib.sha256(b"1").hexdigest())


# --- what is sent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [10, 3 << 20])
@pytest.mark.parametrize("kind", [bytes, memoryview])
def test_digests_that_are_sent(planned: Planned, size: int, kind: type) -> None:
    """One digest is sent, of those that the server accepts; the content is signed in any case."""
    bucket, proxy = planned
    content = b"x" * size
    proxy.plan = lambda _request: Answer(200, b"", {"ETag": '"e"'})
    digests = {name: hashlib.new(name, content).hexdigest() for name in ("sha512", "sha256", "sha1")}
    for accepted in (set(), {"sha256"}, {"sha256", "sha512"}, {"md5"}):
        bucket.accepted = accepted
        assert bucket.put(b"a", kind(content), digests=digests) == "e"
    assert [request.body for request in proxy.requests] == [content] * 4
    sent = [
        {name: value for name, value in headers_of(request).items() if "checksum" in name or name == "content-md5"}
        for request in proxy.requests
    ]
    assert sent == [
        {},
        {"x-amz-checksum-sha256": b64encode(hashlib.sha256(content).digest()).decode()},
        {"x-amz-checksum-sha512": b64encode(hashlib.sha512(content).digest()).decode()},
        {},
    ]
    assert {headers_of(request)["x-amz-content-sha256"] for request in proxy.requests} == {digests["sha256"]}
    assert bucket.sent == 4 * size


def test_conditions_that_are_sent(planned: Planned) -> None:
    """A token is sent in quotes."""
    bucket, proxy = planned
    proxy.plan = lambda _request: Answer(200, b"", {"ETag": '"e"'})
    bucket.put(b"a", b"")
    bucket.put(b"a", b"", over="t", storage_class="DEEP_ARCHIVE")
    bucket.put(b"a", b"", over=ANY)
    bucket.delete([b"a"], token="t")
    conditions = [
        (headers_of(request).get("if-none-match"), headers_of(request).get("if-match")) for request in proxy.requests
    ]
    assert conditions == [("*", None), (None, '"t"'), (None, None), (None, '"t"')]
    classes = [headers_of(request).get("x-amz-storage-class") for request in proxy.requests]
    assert classes == [None, "DEEP_ARCHIVE", None, None]


def test_removing_control_characters(planned: Planned) -> None:
    """XML has no control characters: such keys are removed one by one."""
    bucket, proxy = planned
    proxy.plan = lambda request: Answer(204) if request.method == "DELETE" else Answer(200, b"<DeleteResult/>")
    bucket.delete([b"a", b"b\x01", b"c & d"])
    assert [(request.method, request.path) for request in proxy.requests] == [
        ("DELETE", "/books/b%01"),
        ("POST", "/books?delete"),
    ]
    assert b"<Key>a</Key>" in proxy.requests[1].body
    assert b"<Key>c &amp; d</Key>" in proxy.requests[1].body


# --- settings ---------------------------------------------------------------------------------------------------------


def test_the_endpoint_of_the_environment(monkeypatch: pytest.MonkeyPatch, planned: Planned) -> None:
    """The endpoint is that of the environment: the bucket is in the path there, and in the host name at Amazon."""
    _bucket, proxy = planned
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
    proxy.plan = lambda _request: listing("a")
    bucket = S3Bucket("books")
    assert len(bucket.list(b"").keys) == 1
    assert proxy.requests[0].path.startswith("/books?")
    bucket.close()
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    bucket = S3Bucket("books", region="eu-west-1")
    assert bucket._server.address("books", "a") == ("https://books.s3.eu-west-1.amazonaws.com", "/a")
    assert bucket._server.endpoint == "https://s3.eu-west-1.amazonaws.com"


def test_the_addressing_of_a_profile(monkeypatch: pytest.MonkeyPatch, aws: None, tmp_path: Path) -> None:
    """The settings of a profile are used."""
    settings = tmp_path / "config"
    settings.write_text(
        "[profile far]\nendpoint_url = http://s3.example.org\nregion = here\ns3 =\n  addressing_style = virtual\n"
        "aws_access_key_id = a\naws_secret_access_key = b\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(settings))
    bucket = S3Bucket("books", profile="far")
    assert bucket._server.address("books", "a") == ("http://books.s3.example.org", "/a")
    with pytest.raises(PermissionError, match="profile 'near' not found; set AWS_PROFILE to one that exists"):
        S3Bucket("books", profile="near")


def test_no_credentials(monkeypatch: pytest.MonkeyPatch, planned: Planned) -> None:
    """Without credentials, the message names the variables, and nothing is sent."""
    _bucket, proxy = planned
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    bucket = S3Bucket("books", endpoint=proxy.endpoint)
    with pytest.raises(PermissionError, match="no credentials: Unable to locate credentials; set AWS_ACCESS_KEY_ID"):
        bucket.list(b"")
    assert proxy.requests == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (error(400, "ExpiredToken"), "the credentials have expired; sign in again, or set AWS_ACCESS_KEY_ID"),
        (error(400, "InvalidToken"), "the session token is invalid; check AWS_SESSION_TOKEN"),
        (error(403, "InvalidAccessKeyId"), "the server rejects the access key; check AWS_ACCESS_KEY_ID"),
        (error(403, "SignatureDoesNotMatch"), "the server rejects the access key; check AWS_ACCESS_KEY_ID"),
        (error(403, "RequestTimeTooSkewed"), "the clock of this computer differs from the server's; correct it"),
        (error(403, "AccessDenied"), "ListObjectsV2: access denied; use credentials with this right"),
        (error(401, "Unauthorized"), "ListObjectsV2: access denied; use credentials with this right"),
    ],
)
def test_refusals(planned: Planned, answer: Answer, reason: str) -> None:
    """A refusal tells what to change."""
    bucket, proxy = planned
    proxy.plan = lambda _request: answer
    with pytest.raises(PermissionError, match=reason):
        bucket.list(b"")


def test_a_missing_bucket(planned: Planned) -> None:
    """A missing bucket is no missing key."""
    bucket, proxy = planned
    proxy.plan = lambda _request: error(404, "NoSuchBucket")
    for call in (
        lambda: bucket.put(b"a", b"", over="t"),
        lambda: bucket.list(b""),
        lambda: bucket.get(b"a"),
        lambda: bucket.delete([b"a"]),
        lambda: bucket.delete([b"a", b"b"]),
        lambda: bucket.abort(b"a", "u"),
        lambda: bucket.complete(b"a", "u", []),
    ):
        with pytest.raises(FileNotFoundError, match="bucket not found; check its name and the endpoint"):
            call()


def test_keys_are_checked_before_any_request(planned: Planned) -> None:
    """A key that no server can have is refused here."""
    bucket, proxy = planned
    calls = [
        bucket.head,
        bucket.get,
        lambda key: bucket.put(key, b""),
        bucket.start,
        lambda key: bucket.copy(b"a", key),
        lambda key: bucket.delete([key, b"a"]),
    ]
    for key, number in ((b"", errno.EINVAL), (b"\xff", errno.EILSEQ), (b"a" * 1025, errno.ENAMETOOLONG)):
        for call in calls:
            with pytest.raises(OSError, match="the key") as caught:
                call(key)
            assert caught.value.errno == number
    for listed in (lambda: bucket.list(b"\xff"), lambda: bucket.list(b"", after=b"\xff")):
        with pytest.raises(OSError, match="not UTF-8"):
            listed()
    assert proxy.requests == []


def test_no_connection(aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a server, the message has the reason of the system."""
    monkeypatch.setattr("pressmark.buckets.s3.FIRST_WAIT", 0.001)
    endpoint = f"http://127.0.0.1:{free_port()}"
    bucket = S3Bucket("books", endpoint=endpoint)
    reason = f"no connection to {endpoint}: Connection refused; check the endpoint and the network"
    with pytest.raises(ConnectionError, match=reason):
        bucket.list(b"")
    assert bucket.requests == 6


def test_no_encryption(planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate that is wrong stays wrong."""
    _bucket, proxy = planned
    bucket = S3Bucket("books", endpoint=proxy.endpoint.replace("http:", "https:"))
    with pytest.raises(ConnectionError, match=r"no connection to https://127\.0\.0\.1:.*; set AWS_CA_BUNDLE"):
        bucket.list(b"")
    assert bucket.requests == 1


def test_a_name_that_no_bucket_has(aws: None) -> None:
    """A name that Amazon allows to no bucket is refused."""
    with pytest.raises(OSError, match="invalid bucket name") as caught:
        S3Bucket("a b", endpoint="http://127.0.0.1:1").list(b"")
    assert caught.value.errno == errno.EINVAL


def test_a_malformed_endpoint(aws: None) -> None:
    """An endpoint is a URL."""
    with pytest.raises(StoreError, match="'s3://books': Invalid endpoint: localhost:7070"):
        S3Bucket("books", endpoint="localhost:7070")


@pytest.mark.parametrize("name", ["botocore", "urllib3"])
def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The message names the extra to install."""
    loaded = [one for one in sys.modules if one.startswith(f"{name}.")]
    for module in (*loaded, "pressmark.buckets.s3_requests"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        StoreError, match=rf"'s3://books': object storage requires {name}: pip install 'pressmark\[s3\]'"
    ):
        S3Bucket("books")


def test_botocore_is_loaded_by_a_bucket_only() -> None:
    """Neither the package nor the module of buckets loads botocore."""
    code = (
        "import sys, pressmark, pressmark.cli.store.options, pressmark.buckets.s3, pressmark.buckets.address,"
        " pressmark.buckets.probe; print([name for name in sys.modules if name.startswith(('boto', 'urllib3'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
