"""``pressmark store probe``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from cli.conftest import Call, call  # noqa: F401

from .proxy import Answer, Proxy, Request, error

if TYPE_CHECKING:
    from pressmark.buckets.s3 import S3Bucket

Planned = tuple["S3Bucket", Proxy]


def test_a_safe_server(s3: S3Bucket, endpoint: str, call: Call) -> None:  # noqa: F811
    """The table has a line for each property; the last line says what to do."""
    done = call("store", "probe", f"{s3.url}/root", "--endpoint", endpoint)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "yes creates: create a key that exists: refused"
    assert "NO  copies: copy over a key that exists: accepted" in lines
    advice = "safe for several writers; for stored digests, create OCFL storage roots with sha512"
    assert done.stderr == f"pressmark: {s3.url}/root: {advice}\n"
    assert s3.list(b"").keys == []


def test_json(s3: S3Bucket, endpoint: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """With --json, each property is an object; the endpoint may come from the environment."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    done = call("store", "probe", s3.url, "--json")
    assert done.exit_code == 0, done.output
    *properties, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert last == {"summary": {"ok": True, "digests": ["sha512", "sha256"], "left": [], "requests": 30}}
    assert properties[0] == {
        "property": "creates",
        "ok": True,
        "asked": "create a key that exists",
        "answer": "refused",
        "consequence": "Two writers cannot overwrite each other's files.",
    }
    assert {one["property"] for one in properties if not one["ok"]} == {"copies"}


def careless(request: Request) -> Answer:
    """Accept everything, and list nothing."""
    if request.method == "GET":
        return Answer(200, b"<ListBucketResult/>")
    if request.method == "PUT" and "uploadId" not in request.path:
        body = b"<CopyObjectResult><ETag>e</ETag></CopyObjectResult>"
        is_copy = "x-amz-copy-source" in {name.lower() for name in request.headers}
        return Answer(200, body if is_copy else b"", {"ETag": '"e"'})
    if request.method == "DELETE":
        return Answer(204)
    if request.method == "POST" and "uploads" in request.path:
        return Answer(200, b"<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>")
    body = b"<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>"
    return Answer(200, body if request.method == "POST" else b"", {"ETag": '"e"', "Last-Modified": MODIFIED})


MODIFIED = "Sun, 29 Nov 2026 10:00:00 GMT"


def test_a_careless_server(planned: Planned, call: Call) -> None:  # noqa: F811
    """A server that ignores all conditions is not safe: the exit status is 1."""
    _bucket, proxy = planned
    proxy.plan = careless
    done = call("store", "probe", "s3://books", "--endpoint", proxy.endpoint)
    assert done.exit_code == 1, done.output
    assert not [line for line in done.stdout.splitlines() if line.startswith("yes")]
    how = "use --single-writer if only this run writes to the root"
    advice = f"not safe for several writers; for an OCFL storage root, {how}"
    assert done.stderr == f"pressmark: s3://books: {advice}\n"
    done = call("store", "probe", "s3://books", "--endpoint", proxy.endpoint, "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout.splitlines()[-1])["summary"]["ok"] is False


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (error(404, "NoSuchBucket"), "bucket not found; check its name and the endpoint"),
        (
            error(403, "AccessDenied"),
            "PutObject: access denied; use credentials with this right (AWS_ACCESS_KEY_ID or AWS_PROFILE)",
        ),
    ],
)
def test_errors(planned: Planned, call: Call, answer: Answer, reason: str) -> None:  # noqa: F811
    """A bucket that cannot be written to is an error: the exit status is 2."""
    _bucket, proxy = planned
    proxy.plan = lambda _request: answer
    done = call("store", "probe", "s3://books/root", "--endpoint", proxy.endpoint)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == f"pressmark: s3://books/root: {reason}\n"


def test_usage(aws: None, call: Call) -> None:  # noqa: F811
    """A wrong address, endpoint or profile is an error: the exit status is 2."""
    for arguments, reason in (
        (["books"], "'books': not an address in object storage, such as s3://bucket/prefix"),
        (["s3://books", "--endpoint", "books"], "'s3://books': Invalid endpoint: books"),
        (
            ["s3://books", "--s3-profile", "x"],
            "--s3-profile 'x': not found in the AWS settings; specify one that exists",
        ),
    ):
        done = call("store", "probe", *arguments)
        assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"pressmark: {reason}\n")


def test_keys_that_are_left(planned: Planned, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    """Keys that this user may not remove are reported."""
    from pressmark.buckets.memory import MemoryBucket

    class AddOnly(MemoryBucket):
        def delete(self, keys: object, *, token: str | None = None) -> None:
            raise PermissionError(13, "access denied")

        def close(self) -> None:
            pass

    monkeypatch.setattr("pressmark.buckets.address.open_bucket", lambda *_settings: (AddOnly(), b"root/"))
    done = call("store", "probe", "s3://memory/root")
    assert done.exit_code == 0
    left, _advice = done.stderr.splitlines()
    assert left.startswith(
        "pressmark: 5 keys left, without the right to remove them; first: s3://memory/root/extensions/pressmark-staging/"
    )
