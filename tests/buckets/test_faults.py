"""A bucket survives what networks and servers do: lost answers, errors for a time, half an answer, silence."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from pressmark.buckets.bucket import MIN_PART, KeyChangedError
from pressmark.buckets.requests import in_order
from pressmark.errors import StoreError

from .conftest import open_s3
from .proxy import DROP, HALF, LOSE, SILENCE, Answer, Fault, Proxy, error, run_proxy

if TYPE_CHECKING:
    from pressmark.buckets.s3 import S3Bucket

TRIES = 6
FAULTS = {
    "409": error(409, "ConditionalRequestConflict"),
    "429": error(429, "TooManyRequests"),
    "500": error(500, "InternalError"),
    "502": Answer(502, b"<html>Bad Gateway</html>"),
    "503": error(503, "SlowDown"),
    "504": Answer(504),
    "400": error(400, "RequestTimeout"),
    "request lost": LOSE,
}


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat requests at once."""
    monkeypatch.setattr("pressmark.buckets.s3.FIRST_WAIT", 0.001)


@pytest.fixture
def bucket(proxied: S3Bucket) -> S3Bucket:
    """The bucket of the tests is the one through the proxy."""
    return proxied


# What is there: "key" with the content "1"; an upload to "large" with one part.
CALLS: dict[str, Callable[[S3Bucket, str, str], object]] = {
    "list": lambda bucket, token, upload: [one.key for one in bucket.list(b"").keys] == [b"key"],
    "head": lambda bucket, token, upload: bucket.head(b"key").token == token,
    "get": lambda bucket, token, upload: bucket.get(b"key").read() == b"1",
    "put": lambda bucket, token, upload: bucket.put(b"new", memoryview(b"2")),
    "put large": lambda bucket, token, upload: bucket.put(b"new", memoryview(bytes(MIN_PART))),
    "replace": lambda bucket, token, upload: bucket.put(b"key", b"2", over=token),
    "start": lambda bucket, token, upload: bucket.start(b"large"),
    "part": lambda bucket, token, upload: bucket.part(b"large", upload, 2, memoryview(bytes(MIN_PART))),
    "parts": lambda bucket, token, upload: bucket.parts(b"large", upload),
    "complete": lambda bucket, token, upload: bucket.complete(b"large", upload, bucket.parts(b"large", upload)),
    "uploads": lambda bucket, token, upload: list(bucket.uploads(b"")),
    "abort": lambda bucket, token, upload: bucket.abort(b"large", upload) is None,
    "copy": lambda bucket, token, upload: bucket.copy(b"key", b"new"),
    "delete": lambda bucket, token, upload: bucket.delete([b"key"], token=token) is None,
    "delete many": lambda bucket, token, upload: bucket.delete([b"key", b"new"]) is None,
}


def furnish(bucket: S3Bucket) -> tuple[str, str]:
    """Create what the calls use, and return the token of the key and the upload."""
    token = bucket.put(b"key", b"1")
    upload = bucket.start(b"large")
    bucket.part(b"large", upload, 1, bytes(MIN_PART))
    return token, upload


# The answer to HEAD has no code.
CASES = [(fault, call) for fault in FAULTS for call in CALLS if (fault, call) != ("400", "head")]


@pytest.mark.parametrize(("fault", "call"), CASES)
def test_a_failure_for_a_time(bucket: S3Bucket, s3: S3Bucket, proxy: Proxy, call: str, fault: str) -> None:
    """A request that fails once is repeated, whichever it is."""
    token, upload = furnish(s3)
    proxy.faults = {1: FAULTS[fault]}
    assert CALLS[call](bucket, token, upload)
    assert proxy.requests[0][1:3] == proxy.requests[1][1:3]
    assert proxy.requests[0].body == proxy.requests[1].body
    assert len(proxy.requests) == bucket.requests


@pytest.mark.parametrize(
    ("fault", "expected", "reason"),
    [
        (FAULTS["503"], OSError, "the server reports SlowDown: a fault of the test; try again later"),
        (LOSE, ConnectionError, "no connection to http://127.0.0.1:.*; check the endpoint and the network"),
        (SILENCE, TimeoutError, "http://127.0.0.1:.* does not answer; check the endpoint and the network"),
    ],
)
def test_a_failure_that_stays(
    planned: tuple[S3Bucket, Proxy], fault: Fault | Answer, expected: type[OSError], reason: str
) -> None:
    """A request is sent six times at most."""
    bucket, proxy = planned
    proxy.plan = lambda _request: fault
    with pytest.raises(expected, match=reason):
        bucket.list(b"")
    assert len(proxy.requests) == bucket.requests == TRIES


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error(403, "AccessDenied"), PermissionError),
        (error(400, "InvalidRequest"), OSError),
        (error(501, "NotImplemented"), OSError),
    ],
)
def test_a_refusal_is_final(planned: tuple[S3Bucket, Proxy], answer: Answer, expected: type[OSError]) -> None:
    """Refused requests are not repeated."""
    bucket, proxy = planned
    proxy.plan = lambda _request: answer
    with pytest.raises(expected):
        bucket.put(b"key", b"1")
    assert len(proxy.requests) == 1


@pytest.mark.parametrize("fault", [LOSE, SILENCE, FAULTS["503"], FAULTS["502"]])
def test_a_server_that_is_gone(
    planned: tuple[S3Bucket, Proxy], fault: Fault | Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a time without any answer, the run ends, instead of trying each of its files."""
    bucket, proxy = planned
    monkeypatch.setattr("pressmark.buckets.s3.SILENCE", 0.0)
    proxy.plan = lambda _request: fault
    with pytest.raises(StoreError, match="no request was answered for more than 0 minutes: ") as caught:
        bucket.head(b"first")
    assert isinstance(caught.value.__cause__, OSError)
    assert len(proxy.requests) == TRIES
    # What is still done is tried once.
    with pytest.raises(StoreError):
        bucket.abort(b"key", "upload")
    assert len(proxy.requests) == TRIES + 1
    # An answer is an answer, also a refusal.
    proxy.plan = lambda _request: Answer(404)
    with pytest.raises(FileNotFoundError):
        bucket.head(b"second")
    monkeypatch.setattr("pressmark.buckets.s3.SILENCE", 300.0)
    proxy.reset()
    proxy.plan = lambda _request: fault
    with pytest.raises(OSError, match=r"does not answer|no connection|the server reports"):
        bucket.head(b"third")
    assert len(proxy.requests) == TRIES


# --- lost answers -----------------------------------------------------------------------------------------------------


def test_a_lost_answer_to_a_creation(bucket: S3Bucket, s3: S3Bucket, proxy: Proxy) -> None:
    """The key is there, which its writer learns as if another one had written it, and compares."""
    proxy.faults = {1: DROP}
    with pytest.raises(FileExistsError):
        bucket.put(b"key", b"1")
    assert s3.get(b"key").read() == b"1"
    assert len(proxy.requests) == 2


def test_a_lost_answer_to_a_replacement(bucket: S3Bucket, s3: S3Bucket, proxy: Proxy) -> None:
    """The version is there, which its writer learns as if another one had written it, and compares."""
    token = s3.put(b"key", b"1")
    proxy.faults = {1: DROP}
    with pytest.raises(KeyChangedError):
        bucket.put(b"key", b"2", over=token)
    assert s3.get(b"key").read() == b"2"


def test_a_lost_answer_to_a_completion(bucket: S3Bucket, s3: S3Bucket, proxy: Proxy) -> None:
    """The key is there; some servers answer the second request as the first, others know the upload no more."""
    _token, upload = furnish(s3)
    parts = s3.parts(b"large", upload)
    proxy.faults = {1: DROP}
    token = bucket.complete(b"large", upload, parts)
    assert s3.head(b"large")[:2] == (MIN_PART, token)


def test_a_lost_answer_to_a_completion_of_a_forgetful_server(bucket: S3Bucket, s3: S3Bucket, proxy: Proxy) -> None:
    """A server that knows the upload no more: the key exists."""
    _token, upload = furnish(s3)
    parts = s3.parts(b"large", upload)
    proxy.faults = {1: DROP, 2: error(404, "NoSuchUpload")}
    with pytest.raises(FileExistsError):
        bucket.complete(b"large", upload, parts)
    assert s3.head(b"large").size == MIN_PART


@pytest.mark.parametrize("call", ["part", "delete many", "abort", "start"])
def test_other_lost_answers(bucket: S3Bucket, s3: S3Bucket, proxy: Proxy, call: str) -> None:
    """These calls do the same when they are repeated."""
    token, upload = furnish(s3)
    proxy.faults = {1: DROP}
    assert CALLS[call](bucket, token, upload)
    assert len(proxy.requests) == 2


def test_an_error_after_status_200(planned: tuple[S3Bucket, Proxy]) -> None:
    """A completion may fail after the server has answered 200, to keep the connection."""
    bucket, proxy = planned
    proxy.plan = lambda request: (
        error(200, "PreconditionFailed") if request.number == 3 else error(200, "InternalError")
    )
    with pytest.raises(FileExistsError):
        bucket.copy(b"key", b"copy")
    assert len(proxy.requests) == 3


def test_an_error_for_one_of_many_keys(planned: tuple[S3Bucket, Proxy]) -> None:
    """An error in the answer to a removal is raised."""
    bucket, proxy = planned
    listed = "<Error><Key>b</Key><Code>{}</Code><Message>no</Message></Error>"
    answers = [
        f"<DeleteResult>{listed.format(code)}</DeleteResult>".encode() for code in ("InternalError", "AccessDenied")
    ]
    proxy.plan = lambda request: Answer(200, answers[request.number - 1])
    with pytest.raises(PermissionError, match="access denied") as caught:
        bucket.delete([b"a", b"b"])
    assert caught.value.filename == b"b"
    assert len(proxy.requests) == 2
    assert {"content-md5", "x-amz-checksum-crc32"} <= {name.lower() for name in proxy.requests[0].headers}


# --- half an answer, silence ------------------------------------------------------------------------------------------


def test_half_a_body(bucket: S3Bucket, s3: S3Bucket, proxy: Proxy) -> None:
    """Reading that breaks off is an error, after the bytes that have arrived."""
    content = os.urandom(3_000_000)
    token = s3.put(b"key", content)
    proxy.plan = lambda _request: HALF
    download = bucket.get(b"key")
    read = download.read(1_000_000)
    assert content.startswith(read)
    assert bucket.received == len(read) == 1_000_000
    with pytest.raises(ConnectionError, match="the connection was lost while the content was read"):
        download.read()
    proxy.plan = lambda _request: None
    rest = bucket.get(b"key", begin=len(read), token=token)
    assert read + rest.read() == content


def test_half_a_listing(bucket: S3Bucket, s3: S3Bucket, proxy: Proxy) -> None:
    """A listing that breaks off is asked for again."""
    for number in range(20):
        s3.put(b"%02d" % number, b"")
    proxy.faults = {1: HALF}
    assert len(bucket.list(b"").keys) == 20
    assert len(proxy.requests) == 2


def test_silence(planned: tuple[S3Bucket, Proxy]) -> None:
    """A request without an answer is repeated after the time-out."""
    bucket, proxy = planned
    proxy.faults = {1: SILENCE}
    proxy.plan = lambda _request: Answer(200, b"<ListBucketResult/>")
    assert bucket.list(b"").keys == []
    assert len(proxy.requests) > 1


def test_silence_while_reading(bucket: S3Bucket, s3: S3Bucket) -> None:
    """A server that becomes silent in the middle of a body is not waited for beyond the time-out."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _address = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: x\r\n"
                    b"Last-Modified: Sun, 29 Nov 2026 10:00:00 GMT\r\n\r\nhalf"
                )
                connection.recv(1)  # until the client closes the connection

        thread = threading.Thread(target=serve)
        thread.start()
        with open_s3(s3.name, f"http://127.0.0.1:{server.getsockname()[1]}", timeout=0.3) as silent:
            download = silent.get(b"key")
            with pytest.raises(ConnectionError, match="the connection was lost"):
                download.read()
            download.close()
        thread.join()


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("where", ["request", "wait"])
def test_ctrl_c(aws: None, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """Ctrl-C ends a call that waits for a server, or before the next try."""
    with run_proxy() as proxy, open_s3("books", proxy.endpoint, timeout=600) as bucket:
        if where == "request":
            proxy.plan = lambda _request: SILENCE
        else:
            monkeypatch.setattr("pressmark.buckets.s3.FIRST_WAIT", 600.0)
            proxy.plan = lambda _request: FAULTS["503"]

        before = signal.signal(signal.SIGINT, signal.default_int_handler)

        def interrupt() -> None:
            while not (proxy.silent if where == "request" else proxy.sent):
                time.sleep(0.01)
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            bucket.head(b"key") if where == "request" else bucket.list(b"")
        thread.join()
        signal.signal(signal.SIGINT, before)
        # It did not wait for the answer.
        assert proxy.silent == (where == "request")
        assert len(proxy.requests) == 1


# --- threads ----------------------------------------------------------------------------------------------------------


def test_many_threads(bucket: S3Bucket, proxy: Proxy) -> None:
    """With delays and failures for each of them, every thread gets its answers, and the counts agree."""
    proxy.delay = 0.01
    faults = {f"/{bucket.name}/{number}": [HALF, FAULTS["503"], LOSE] for number in range(60)}
    proxy.plan = lambda request: (
        faults[request.path].pop() if request.method == "GET" and faults[request.path] else None
    )

    def work(number: int) -> int:
        key, content = b"%d" % number, os.urandom(1000)
        bucket.put(key, content)
        half = bucket.get(key)
        with pytest.raises(ConnectionError):
            half.read()
        assert bucket.get(key).read() == content
        return 1000

    with ThreadPoolExecutor(12) as pool:
        assert sum(pool.map(work, range(60))) == bucket.sent == proxy.received == bucket.received
    assert bucket.requests == len(proxy.requests) == 60 * 5


def test_requests_that_nobody_waits_for() -> None:
    """Requests that read are left behind by an interrupt, while the server is silent."""
    answered = threading.Event()
    ended: list[int] = []

    def request(number: int) -> int:
        if number and answered.wait(60):
            ended.append(number)
        return number

    run = in_order(request, range(100), patience=0.01)
    assert next(run) == 0
    run.close()  # type: ignore[attr-defined]
    assert ended == []
    answered.set()
