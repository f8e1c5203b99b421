"""Fixity on a server: digests that it has stored, how many bytes move, and the storage class of content."""

from __future__ import annotations

import csv
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cli.conftest import Call, call  # noqa: F401
from pressmark import fixity, stores
from pressmark.errors import ObjectError
from pressmark.stores.ocfl.remote import preparing
from pressmark.stores.ocfl.root import OcflRoot

from .proxy import Proxy, error

if TYPE_CHECKING:
    from pressmark.buckets.s3 import S3Bucket

USER = {"name": "A Curator", "address": "mailto:curator@example.org"}
SIZE = 2 << 20
FILES = 4


@pytest.fixture
def root(s3: S3Bucket, proxied: S3Bucket, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> OcflRoot:
    """A storage root with some megabytes of content, behind a proxy that counts bytes."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
    root = OcflRoot.create(f"{s3.url}/root", "0003", user=USER)
    for number in range(2):
        root.put(f"id:{number}", {f"ü {n}.tif": os.urandom(SIZE) for n in range(FILES // 2)})
    proxy.reset()
    return OcflRoot(f"{s3.url}/root", user=USER)


def test_stored_digests_move_no_content(root: OcflRoot, proxy: Proxy) -> None:
    """Less than 1 % of the bytes of the content move; reading moves all of them."""
    report = root.check(digests="stored")
    assert (report.problems, report.counts["stored"], report.counts["unverified"]) == ([], FILES, 0)
    assert proxy.sent + proxy.received < 0.01 * FILES * SIZE
    assert sum(one.method == "HEAD" for one in proxy.requests) == FILES
    moved = proxy.sent
    assert root.check(digests=True).counts["read"] == FILES
    assert proxy.sent - moved > FILES * SIZE


def test_a_report_moves_no_content(root: OcflRoot, s3: S3Bucket, proxy: Proxy, tmp_path: Path) -> None:
    """A report needs a listing, and no request for a file."""
    with (tmp_path / "report.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["Key", "ETag", "Size", "sha512"])
        for one in s3.list(b"root/").keys:
            if b"/content/" in one.key:
                digests = s3.head(one.key).digests
                table.writerow([one.key.decode(), one.token, one.size, digests["sha512"]])
    proxy.reset()
    report = root.check(digests_from=tmp_path / "report.csv")
    assert (report.problems, report.counts["report"]) == ([], FILES)
    assert not [one for one in proxy.requests if one.method == "HEAD"]
    assert proxy.sent + proxy.received < 0.01 * FILES * SIZE


def test_a_large_file_has_no_digest(root: OcflRoot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest of an upload in parts is one of digests, which verifies nothing."""
    monkeypatch.setattr(preparing, "WHOLE", 8 << 20)
    (tmp_path / "large.tif").write_bytes(os.urandom(9 << 20))
    root.put("id:large", tmp_path / "large.tif")
    report = root.check(digests="stored")
    assert [one.kind for one in report.problems] == ["content-unverified"]
    assert (report.ok, report.counts["stored"], report.counts["unverified"]) == (False, FILES, 1)
    assert root.check(digests=True).ok


def test_hash_and_verify(root: OcflRoot, s3: S3Bucket, proxy: Proxy, tmp_path: Path, call: Call) -> None:  # noqa: F811
    """The digests that the server has stored are those of the content."""
    address = f"{s3.url}/root"
    paths = [one for one in fixity.walk(address) if isinstance(one, str) and "/content/" in one]
    assert len(paths) == FILES
    read = list(fixity.hash_files(paths))
    proxy.reset()
    stored = list(fixity.hash_files(paths, digests="stored"))
    assert [one.digests for one in stored] == [one.digests for one in read]
    assert [(one.size, one.mtime_ns) for one in stored] == [(one.size, one.mtime_ns) for one in read]
    assert proxy.sent < 1000
    done = call("hash", address, "--digests=stored", "--endpoint", proxy.endpoint)
    assert (done.exit_code, len(done.stdout.splitlines())) == (0, len(s3.list(b"root/").keys))
    manifest = tmp_path / "SHA512SUMS"
    fixity.write_manifest(manifest, read)
    assert call("verify", str(manifest)).exit_code == 0
    manifest.write_text(manifest.read_text().replace(f"{address}/", ""))
    s3.put(b"root/new", b"new")
    done = call("verify", str(manifest), "--root", address, "--digests=stored", "--endpoint", proxy.endpoint)
    assert done.exit_code == 1
    assert {line.partition(":")[0] for line in done.stdout.splitlines()} == {"new"}
    done = call("hash", f"{address}/new", "--endpoint", proxy.endpoint)
    assert done.stdout == f"{hashlib.sha512(b'new').hexdigest()}  {address}/new\n"


def test_an_updated_list(
    s3: S3Bucket,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    call: Call,  # noqa: F811
) -> None:
    """A new list of keys in object storage is made from the digests that the server has stored."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
    lines = {}
    for name in ("a", "moved/b", "ü new"):
        digest = hashlib.sha256(name.encode()).hexdigest()
        s3.put(f"scans/{name}".encode(), name.encode(), digests={"sha256": digest})
        lines[name] = f"{digest}  {name}\n"
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(lines["a"] + lines["moved/b"].replace("moved/", ""))
    proxy.reset()
    words = ("verify", "SHA256SUMS", "--root", f"{s3.url}/scans", "--digests=stored", "--update")
    done = call(*words)
    assert (done.exit_code, done.stdout) == (0, "moved: b -> moved/b\nnew: ü new\n")
    assert sums.read_text() == "".join(lines.values())
    assert {one.method for one in proxy.requests} == {"GET", "HEAD"}
    assert call(*words).stderr.endswith(": all ok\n")


def test_the_class_of_content(root: OcflRoot, proxy: Proxy, tmp_path: Path) -> None:
    """The request for content names the class, those for inventories do not; a refusal is one line."""
    chosen = OcflRoot(root.root, user=USER, content_class="GLACIER_IR")
    proxy.reset()
    (tmp_path / "large.tif").write_bytes(b"x" * (9 << 20))
    chosen.put("id:9", {"a.tif": b"a", "large.tif": tmp_path / "large.tif"})
    named = {}
    for one in proxy.requests:
        if one.method in ("PUT", "POST") and "/extensions/" not in one.path and "partNumber" not in one.path:
            headers = {name.lower(): value for name, value in one.headers.items()}
            is_begin = one.method == "PUT" or one.path.endswith("uploads") or "uploads=" in one.path
            if is_begin:
                named[one.path.partition("?")[0]] = headers.get("x-amz-storage-class")
    content = {path: name for path, name in named.items() if "/content/" in path}
    assert set(content.values()) == {"GLACIER_IR"}
    assert len(content) == 2
    assert {name for path, name in named.items() if "/content/" not in path} == {None}
    proxy.plan = lambda one: (
        error(400, "InvalidStorageClass") if "/content/" in one.path and one.method == "PUT" else None
    )
    with pytest.raises(ObjectError) as caught:
        OcflRoot(root.root, user=USER, content_class="NO_SUCH").put("id:10", {"a.tif": b"a"})
    assert "the server reports InvalidStorageClass" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_archived_file(root: OcflRoot, proxy: Proxy) -> None:
    """A server that refuses to read an archived key."""
    proxy.plan = lambda one: (
        error(403, "InvalidObjectState") if one.method == "GET" and "/content/%C3%BC%200.tif" in one.path else None
    )
    report = root.check(digests=True)
    assert [(one.kind, one.severity) for one in report.problems] == [("content-archived", "warning")] * 2
    assert (report.ok, report.counts["read"], report.counts["unverified"]) == (False, 2, 2)
    assert stores.open(root.root).check(digests="stored").ok
