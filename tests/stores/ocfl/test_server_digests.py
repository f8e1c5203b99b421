"""Checks of a root in a bucket with the digests of the server, or of a report of its provider."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import StoreError
from pressmark.reports import Report
from pressmark.stores.ocfl.root import OcflRoot
from support.in_bucket import serving

from .bucket import PREFIX
from .bucket_changes import new_root, open_root
from .samples import USER
from .test_bucket_requests import requests

FILES = {"a b+c.txt": b"page 1", "d/ü.txt": b"page 2", "e.txt": b""}


@pytest.fixture
def bucket() -> MemoryBucket:
    """A bucket with a root of two objects."""
    bucket = new_root(MemoryBucket())
    for one in ("ark:/1", "ark:/2"):
        open_root(bucket).put(one, {name: one.encode() + data for name, data in FILES.items()})
    return bucket


def content_of(bucket: MemoryBucket) -> dict[bytes, bytes]:
    return {key: data for key, data in bucket.keys.items() if b"/content/" in key}


def store_as(bucket: MemoryBucket, key: bytes, data: bytes, storage_class: str | None = None, **digests: str) -> None:
    """Write a key whose server keeps these digests, whatever its content is."""
    bucket.put(key, data, over=ANY, storage_class=storage_class)
    bucket._stored[key] = bucket._stored[key]._replace(digests=digests)


def kinds(report: Report) -> Counter[str]:
    return Counter(one.kind for one in report.problems if one.kind != "inventory-advice")


def methods(report: Report) -> dict[str, int]:
    return {name: report.counts[name] for name in ("read", "stored", "report", "unverified") if report.counts[name]}


def check(bucket: MemoryBucket, **options: Any) -> Report:
    return open_root(bucket).check(**options)


# --- the digests of the server ----------------------------------------------------------------------------------------


def test_no_content_is_read(bucket: MemoryBucket) -> None:
    """Each file takes one request more than a check without digests, and no byte of content."""
    received = bucket.received
    plain = requests(bucket, lambda: check(bucket))
    bytes_of_plain = bucket.received - received
    reports = []
    found = requests(bucket, lambda: reports.append(check(bucket, digests="stored")))
    assert found == plain + Counter(head=6)
    assert bucket.received - received == 2 * bytes_of_plain
    [report] = reports
    assert (report.ok, report.problems, report.counts["bytes"]) == (True, [], 0)
    assert methods(report) == {"stored": 6}
    assert report.counts["files"] == 6


def test_reading_counts_files(bucket: MemoryBucket) -> None:
    """True and "read" read; without either, nothing is counted."""
    for digests in (True, "read"):
        report = check(bucket, digests=digests)
        assert methods(report) == {"read": 6}
        assert report.counts["bytes"] == sum(map(len, content_of(bucket).values()))
    assert "read" not in check(bucket).counts


def test_a_wrong_digest(bucket: MemoryBucket) -> None:
    """A digest of the server that differs is an error, with both digests."""
    key = min(content_of(bucket))
    digest = hashlib.sha512(b"rotten").hexdigest()
    store_as(bucket, key, b"rotten", sha512=digest)
    report = check(bucket, digests="stored")
    assert kinds(report) == {"content-mismatch": 1}
    [found] = report.problems
    assert (found.algorithm, found.found, found.path) == ("sha512", digest, os.fsdecode(key.removeprefix(PREFIX)))
    assert methods(report) == {"stored": 6}


def test_files_without_a_usable_digest(bucket: MemoryBucket) -> None:
    """A file whose digest the server does not keep, or only one that no inventory has, is not ok."""
    first, second, *_ = sorted(content_of(bucket))
    store_as(bucket, first, content_of(bucket)[first])
    store_as(bucket, second, content_of(bucket)[second], sha256=hashlib.sha256(b"x").hexdigest())
    report = check(bucket, digests="stored")
    assert not report.ok
    assert {(one.kind, one.severity) for one in report.problems} == {("content-unverified", "error")}
    what = "the server keeps no sha512 digest of it; read it with digests='read'"
    assert {one.message for one in report.problems} == {what}
    assert methods(report) == {"stored": 4, "unverified": 2}


def test_a_digest_of_the_fixity_block() -> None:
    """A digest that is only in the fixity block verifies a file, and differs as such."""
    bucket = new_root(MemoryBucket())
    open_root(bucket).put("x", {"f": b"f", "g": b"g"}, fixity={"sha256": {}})
    f, g = sorted(content_of(bucket))
    store_as(bucket, f, b"f", sha256=hashlib.sha256(b"f").hexdigest())
    assert methods(check(bucket, digests="stored")) == {"stored": 2}
    store_as(bucket, g, b"g", sha256=hashlib.sha256(b"other").hexdigest())
    report = check(bucket, digests="stored")
    assert kinds(report) == {"fixity-mismatch": 1}


def test_a_removed_file(bucket: MemoryBucket) -> None:
    """A file that disappears during the check is missing."""
    key = max(content_of(bucket))
    bucket.on_request = lambda call, one: bucket.delete([key]) if (call, one) == ("head", key) else None
    report = check(bucket, digests="stored")
    assert (kinds(report), methods(report)) == ({"content-missing": 1}, {"stored": 5})


@pytest.mark.parametrize("digests", ["read", "stored"])
def test_archived_files(bucket: MemoryBucket, digests: Any) -> None:
    """An archived file cannot be read, which is no error, but not verified; its stored digest can be used."""
    key = min(content_of(bucket))
    data = content_of(bucket)[key]
    store_as(bucket, key, data, "DEEP_ARCHIVE", sha512=hashlib.sha512(data).hexdigest())
    report = check(bucket, digests=digests)
    if digests == "stored":
        assert (report.ok, methods(report)) == (True, {"stored": 6})
        store_as(bucket, key, data, "DEEP_ARCHIVE")
        [found] = check(bucket, digests="stored").problems
        assert found.kind == "content-unverified"
        assert found.message.endswith("; restore it from the archive, and read it with digests='read'")
    else:
        assert (report.ok, report.errors, methods(report)) == (False, [], {"read": 5, "unverified": 1})
        [found] = report.problems
        assert (found.kind, found.severity) == ("content-archived", "warning")
        assert found.message == "the content is archived; restore it from the archive before it is read"


# --- reports ----------------------------------------------------------------------------------------------------------


def batch_row(bucket: MemoryBucket, key: bytes, data: bytes, algorithm: str = "SHA512", **other: str) -> str:
    """Return a row of a report of S3 Batch Operations, as its documentation has them."""
    digest = hashlib.new(algorithm, data)
    result = {
        "checksum_base64": b64encode(digest.digest()).decode(),
        "etag": bucket.head(key).token,
        "checksumAlgorithm": algorithm,
        "checksumType": "FULL_OBJECT",
        "checksum_hex": digest.hexdigest().upper(),
        **other,
    }
    message = json.dumps(result).replace("=", "\\u003d").replace('"', '""')
    return f'memory,{quote(key, safe="/")},,succeeded,200,,"{message}"\n'


def report_of(bucket: MemoryBucket, path: Path, contents: Mapping[bytes, bytes] | None = None, **other: str) -> Path:
    rows = (contents or content_of(bucket)).items()
    path.write_text("".join(batch_row(bucket, key, data, **other) for key, data in rows))
    return path


def test_a_report_of_batch_operations(bucket: MemoryBucket, tmp_path: Path) -> None:
    """Files of a report take no request; the listing is read once more."""
    path = report_of(bucket, tmp_path / "report.csv")
    plain = requests(bucket, lambda: check(bucket))
    reports = []
    found = requests(bucket, lambda: reports.append(check(bucket, digests_from=path)))
    assert found == plain + Counter(list=1)
    assert (reports[0].ok, methods(reports[0])) == (True, {"report": 6})


def test_a_wrong_digest_in_a_report(bucket: MemoryBucket, tmp_path: Path) -> None:
    contents = content_of(bucket)
    contents[max(contents)] = b"rotten"
    report = check(bucket, digests_from=report_of(bucket, tmp_path / "report.csv", contents))
    assert (kinds(report), methods(report)) == ({"content-mismatch": 1}, {"report": 6})


def test_the_rest_of_a_report(bucket: MemoryBucket, tmp_path: Path) -> None:
    """Files that the report does not list are verified as asked for, or not at all."""
    first = dict([min(content_of(bucket).items())])
    path = report_of(bucket, tmp_path / "report.csv", first)
    assert methods(check(bucket, digests="stored", digests_from=path)) == {"report": 1, "stored": 5}
    assert methods(check(bucket, digests=True, digests_from=str(path))) == {"report": 1, "read": 5}
    report = check(bucket, digests_from=os.fsencode(path))
    assert methods(report) == {"report": 1, "unverified": 5}
    assert {one.message for one in report.problems} == {
        "the report does not list the file; read it with digests='read'",
    }


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"etag": "other"}, "the report has another version of the file (ETag)"),
        ({"checksumType": "COMPOSITE"}, "the report does not list the file"),
        ({"algorithm": "SHA256"}, "the report has no sha512 digest of the file"),
        ({"checksum_hex": "", "checksum_base64": "AAAA"}, "the report does not list the file"),
    ],
)
def test_rows_that_do_not_count(bucket: MemoryBucket, tmp_path: Path, other: dict[str, str], why: str) -> None:
    report = check(bucket, digests_from=report_of(bucket, tmp_path / "report.csv", **other))
    assert {one.message for one in report.problems} == {f"{why}; read it with digests='read'"}
    assert methods(report) == {"unverified": 6}


def test_rows_of_failed_tasks_and_other_buckets(bucket: MemoryBucket, tmp_path: Path) -> None:
    path = report_of(bucket, tmp_path / "report.csv")
    first, second, *rows = path.read_text().splitlines(keepends=True)
    path.write_text(first.replace("succeeded,200,", "failed,500,PermanentFailure") + f"x{second}" + "".join(rows))
    assert methods(check(bucket, digests_from=path)) == {"report": 4, "unverified": 2}


def test_an_old_report(bucket: MemoryBucket, tmp_path: Path) -> None:
    """A report from before the key was written does not count, even if its ETag is the same."""
    path = report_of(bucket, tmp_path / "report.csv")
    os.utime(path, (1, 1))
    report = check(bucket, digests_from=path)
    assert {one.message.partition(";")[0] for one in report.problems} == {"the report is older than the file"}


def table(bucket: MemoryBucket, columns: str, row: str) -> str:
    lines = [columns]
    for key, data in content_of(bucket).items():
        status = bucket.head(key)
        values = {
            "raw": f'"{os.fsdecode(key)}"',
            "key": quote(key, safe="/"),
            "etag": status.token,
            "size": str(status.size),
            "hex": hashlib.sha512(data).hexdigest(),
            "base64": b64encode(hashlib.sha512(data).digest()).decode(),
        }
        lines.append(row.format(**values))
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("columns", "row", "method"),
    [
        ("Key,sha512", "{raw},{hex}", "report"),
        ("Key,x-amz-checksum-sha512", "{key},{base64}", "report"),
        ('"Bucket","Key","Size","ETag","ChecksumSHA512"', 'memory,{key},{size},"""{etag}""",{base64}', "report"),
        ("Bucket, Key, Size, SHA-512", "memory, {key}, 7777, {hex}", "unverified"),
        ("Bucket,Key,VersionId,SHA512", "memory,{key},v1,{hex}", "unverified"),
        ("Bucket,Key,VersionId,SHA512,ETag", "memory,{key},v1,{hex},{etag}", "report"),
        ("Key,LastModifiedDate,sha512", "{key},2099-05-31T12:00:00.000Z,{hex}", "report"),
        ("Key,LastModifiedDate,sha512", "{key},2020-05-31T12:00:00.000Z,{hex}", "unverified"),
        ("Key,ETag,sha512,sha256", "{key},{etag},{hex},", "report"),
    ],
)
def test_tables_with_a_header(bucket: MemoryBucket, tmp_path: Path, columns: str, row: str, method: str) -> None:
    """The columns of a table are found by their names, in any order and spelling."""
    path = tmp_path / "report.csv.gz"
    path.write_bytes(gzip.compress(table(bucket, columns, row).encode("utf-8-sig")))
    assert methods(check(bucket, digests_from=path)) == {method: 6}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "the first line is neither a header nor a row of a report"),
        (b"memory,x.txt,1,2024-01-01T00:00:00Z,abc\n", "the first line is neither a header nor a row of a report"),
        (b"Bucket,Key,Size\nmemory,key,1\n", "the table has no column with digests"),
        (b"Key,sha512\na,b,c\n", "line 2 has 3 columns instead of 2"),
        (b"Key,sha512\n" + b"x" * 200_000, "line 2: field larger than field limit"),
    ],
)
def test_files_that_are_no_report(bucket: MemoryBucket, tmp_path: Path, text: bytes, reason: str) -> None:
    path = tmp_path / "report.csv"
    path.write_bytes(text)
    with pytest.raises(StoreError, match=reason) as caught:
        check(bucket, digests_from=path)
    assert str(path) in str(caught.value)
    with pytest.raises(StoreError, match="No such file"):
        check(bucket, digests_from=tmp_path / "absent")


def test_the_memory_of_a_large_report(bucket: MemoryBucket, tmp_path: Path) -> None:
    """Rows of other prefixes are not kept."""
    path = report_of(bucket, tmp_path / "report.csv")
    row = path.read_text().splitlines()[0].replace(quote(PREFIX, safe="/"), "elsewhere/")
    with path.open("a") as file:
        file.writelines(f"{row}\n" for _ in range(1000))
    assert methods(check(bucket, digests_from=path)) == {"report": 6}


# --- files that are not content ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["sha512", "sha256"])
def test_every_file_has_a_digest(algorithm: str) -> None:
    """The server keeps digests of inventories, sidecars and declarations, by the algorithm of the content."""
    bucket = MemoryBucket()
    with serving(bucket):
        root = OcflRoot.create("s3://memory/root", "0003", user=USER, algorithm=algorithm)
    root.put("x", {"f": b"f"})
    root.update("x", add={"g": b"g"})
    of_root = {"0=ocfl_1.1", "ocfl_layout.json", "extensions/0003-hash-and-id-n-tuple-storage-layout/config.json"}
    for key, data in bucket.keys.items():
        name = "sha512" if key.decode().removeprefix("root/") in of_root else algorithm
        assert bucket.head(key).digests == {name: hashlib.new(name, data).hexdigest()}, key
    assert len(bucket.keys) == 12


# --- local stores -----------------------------------------------------------------------------------------------------


def test_local_stores(tmp_path: Path) -> None:
    """A local store has no server; "read" is True."""
    root = OcflRoot.create(tmp_path / "root", "0003", user=USER)
    root.put("x", {"f": b"f"})
    assert (
        root.check(digests="read").counts == root.check(digests=True).counts == {"objects": 1, "files": 1, "bytes": 1}
    )
    what = "digests='stored' requires an OCFL storage root in object storage; use digests=True"
    with pytest.raises(StoreError, match=what):
        root.check(digests="stored")
    with pytest.raises(StoreError, match="digests_from= requires"):
        root.check(digests_from=tmp_path / "report.csv")
