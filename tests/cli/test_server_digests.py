"""``--digests=stored``, ``--digests-from`` and ``--content-class`` on the command line."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket

from .conftest import Call
from .test_object_storage import CALLS, ROOT, bucket, inside, root  # noqa: F401

CONTENT = b"root/b82/4aa/9f0/id%3a1/v1/content/a.txt"


def keep(bucket: MemoryBucket, digest: str | None, storage_class: str = "STANDARD") -> None:  # noqa: F811
    """Let the server keep a digest of the content, or none."""
    digests = {} if digest is None else {"sha512": digest}
    bucket._stored[CONTENT] = bucket._stored[CONTENT]._replace(digests=digests, storage_class=storage_class)


def summary(call: Call, *arguments: str) -> dict[str, Any]:
    last = call("store", "check", ROOT, "--json", *arguments).stdout.splitlines()[-1]
    found: dict[str, Any] = json.loads(last)["summary"]
    return {name: found[name] for name in ("ok", "read", "stored", "report", "unverified")}


COUNTS = {"read": 0, "stored": 0, "report": 0, "unverified": 0}


@pytest.mark.parametrize(
    ("option", "method"), [("--digests", "read"), ("--digests=read", "read"), ("--digests=stored", "stored")]
)
def test_how_files_are_verified(root: MemoryBucket, call: Call, option: str, method: str) -> None:  # noqa: F811
    """The last line and the summary count the files; the option may be before STORE."""
    for arguments in ((option, ROOT), (ROOT, option)):
        done = call("store", "check", *arguments)
        assert (done.exit_code, done.stdout) == (0, "")
        assert done.stderr == f"pressmark: {ROOT}: 1 object, no problem; files: 1 {method}\n"
    assert summary(call, option) == {**COUNTS, "ok": True, method: 1}


def test_a_report(root: MemoryBucket, call: Call, tmp_path: Path) -> None:  # noqa: F811
    digest = hashlib.sha512(b"a").hexdigest()
    (tmp_path / "report.csv").write_text(f"Bucket,Key,sha512\nbooks,{CONTENT.decode()},{digest}\n")
    done = call("store", "check", ROOT, "--digests-from", "report.csv")
    assert (done.exit_code, done.stderr) == (0, f"pressmark: {ROOT}: 1 object, no problem; files: 1 report\n")
    assert summary(call, "--digests-from", "report.csv", "--digests=stored") == {**COUNTS, "ok": True, "report": 1}
    done = call("store", "check", ROOT, "--digests-from", "more.txt")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "more.txt" in done.stderr
    done = call("store", "check", ROOT, "--digests-from", "s3://books/report.csv")
    assert "object storage is not supported for --digests-from" in done.stderr


def test_a_file_without_a_digest(root: MemoryBucket, call: Call) -> None:  # noqa: F811
    keep(root, None)
    done = call("store", "check", ROOT, "--digests=stored")
    assert done.exit_code == 1
    what = "the server keeps no sha512 digest of it; read it with --digests=read"
    assert done.stdout == f"error: content-unverified: {CONTENT.decode().removeprefix('root/')}: {what}\n"
    verdict, advice = done.stderr.splitlines()
    assert verdict == f"pressmark: {ROOT}: 1 object, 1 error; files: 1 unverified"
    assert advice.startswith("pressmark: what to do: content-unverified: check the store by reading it")
    assert summary(call, "--digests=stored") == {**COUNTS, "ok": False, "unverified": 1}


def test_an_archived_file(root: MemoryBucket, call: Call) -> None:  # noqa: F811
    """A warning; but the exit status does not say that all files are verified."""
    keep(root, hashlib.sha512(b"a").hexdigest(), "GLACIER")
    done = call("store", "check", ROOT, "--digests")
    assert done.exit_code == 1
    assert done.stdout.startswith("warning: content-archived: ")
    verdict, advice = done.stderr.splitlines()
    assert verdict == f"pressmark: {ROOT}: 1 object, 1 warning; files: 1 unverified"
    assert advice.startswith("pressmark: what to do: content-archived: use the digests of the server")
    assert summary(call, "--digests") == {**COUNTS, "ok": False, "unverified": 1}
    assert call("store", "check", ROOT, "--digests=stored").exit_code == 0
    assert call("store", "check", ROOT).exit_code == 0


def test_a_wrong_digest(root: MemoryBucket, call: Call) -> None:  # noqa: F811
    root.put(CONTENT, b"b", over=ANY)
    keep(root, hashlib.sha512(b"b").hexdigest())
    done = call("store", "check", ROOT, "--digests=stored")
    assert (done.exit_code, done.stdout.split(": ")[1]) == (1, "content-mismatch")


@pytest.mark.parametrize("option", ["--digests=stored", "--digests-from=more.txt"])
def test_local_stores(call: Call, option: str) -> None:
    assert call("store", "init", "ocfl", "local", "--layout", "0003").exit_code == 0
    done = call("store", "check", "local", option)
    name = option.removesuffix("=more.txt")
    assert done.exit_code == 2
    assert done.stderr == f"pressmark: {name}: only for a store in object storage; use --digests\n"
    assert call("store", "check", "local", "--digests").stderr.endswith("0 objects, no problem\n")
    assert os.path.isdir("local")
    done = call("store", "check", "local", "--digests=other")
    assert (done.exit_code, "'other' is not one of 'read', 'stored'" in done.stderr) == (2, True)


# --- the class of content ---------------------------------------------------------------------------------------------


def classes(bucket: MemoryBucket) -> dict[str, set[str]]:  # noqa: F811
    """Return the storage classes of content and of all other keys."""
    found: dict[str, set[str]] = {"content": set(), "others": set()}
    for one in bucket.list(b"root/").keys:
        found["content" if b"/content/" in one.key else "others"].add(one.storage_class)
    return found


@pytest.mark.parametrize("arguments", [CALLS["put"], CALLS["put list"]], ids=["one", "list"])
def test_the_class_of_content(
    bucket: MemoryBucket,  # noqa: F811
    call: Call,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
) -> None:
    """Content has the class, also if it is sent in parts; what a reader needs to find it has not."""
    monkeypatch.setattr("pressmark.stores.ocfl.remote.preparing.WHOLE", 8)
    (tmp_path / "scans" / "large.tif").write_bytes(b"x" * 100)
    assert call("store", *CALLS["init"]).exit_code == 0
    assert call("store", *arguments, "--content-class", "GLACIER_IR").exit_code == 0
    assert classes(bucket) == {"content": {"GLACIER_IR"}, "others": {"STANDARD"}}
    one = "id:1" if arguments == CALLS["put"] else "id:2"
    update = ["update", ROOT, one, "--add", "more.txt", "--content-class", "DEEP_ARCHIVE"]
    assert call("store", *update).exit_code == 0
    assert classes(bucket) == {"content": {"GLACIER_IR", "DEEP_ARCHIVE"}, "others": {"STANDARD"}}
    assert call("store", "check", ROOT, "--digests").exit_code == 1
    done = call("store", "put", ROOT, one, "scans", "--replace")
    assert (done.exit_code, classes(bucket)["content"]) == (0, {"GLACIER_IR", "DEEP_ARCHIVE"})


def test_malformed_classes(root: MemoryBucket, call: Call) -> None:  # noqa: F811
    keys = root.keys
    for text in ("glacier", "A B", "", "X\n"):
        done = call("store", "put", ROOT, "id:9", "scans", "--content-class", text)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert "not a storage class; specify one such as DEEP_ARCHIVE" in done.stderr
    assert root.keys == keys
    call("store", "init", "ocfl", "local", "--layout", "0003")
    for command in (["put", "local", "id:1", "scans"], ["update", "local", "id:1", "--add", "more.txt"]):
        done = call("store", *command, "--content-class", "GLACIER")
        what = "--content-class: only for an OCFL storage root in object storage; omit the option"
        assert (done.exit_code, done.stderr) == (2, f"pressmark: {what}\n")


def test_content_that_is_archived(root: MemoryBucket, call: Call) -> None:  # noqa: F811
    """Archived content cannot be compared, and is stored again."""
    keep(root, None, "DEEP_ARCHIVE")
    done = call("store", "get", ROOT, "id:1", "copy")
    assert done.exit_code == 1
    assert "archived; restore it from the archive before it is read" in done.stderr
    done = call("store", "update", ROOT, "id:1", "--add", "scans/a.txt=b.txt")
    assert done.exit_code == 0
    what = "'v1/content/a.txt' has the digest of a new file, which was stored, too: the content is archived"
    assert what in done.stderr


# --- hash and verify --------------------------------------------------------------------------------------------------

SCANS = {"a.txt": b"a", "d/b c.txt": b"b", "d/junk.tmp": b"junk"}


@pytest.fixture
def scans(bucket: MemoryBucket) -> MemoryBucket:  # noqa: F811
    """A bucket with some keys, whose digests the server keeps."""
    for name, data in SCANS.items():
        bucket.put(f"scans/{name}".encode(), data, digests={"sha512": hashlib.sha512(data).hexdigest()})
    return bucket


def lines(prefix: str = "", algorithm: str = "sha512") -> str:
    return "".join(f"{hashlib.new(algorithm, data).hexdigest()}  {prefix}{name}\n" for name, data in SCANS.items())


@pytest.mark.parametrize("option", [(), ("--digests",), ("--digests=read",), ("--digests=stored",)])
def test_hash(scans: MemoryBucket, call: Call, option: tuple[str, ...]) -> None:
    done = call("hash", "s3://books/scans", *option)
    assert (done.exit_code, done.stdout, done.stderr) == (0, lines("s3://books/scans/"), "")
    done = call("hash", "s3://books/scans", "-o", "scans.sha512", *option)
    size = "0 B" if option == ("--digests=stored",) else "6 B"
    assert done.stderr == f"pressmark: scans.sha512: 3 files, {size}; sha512\n"
    assert call("verify", "scans.sha512").exit_code == 0


def test_hash_formats(scans: MemoryBucket, call: Call, tmp_path: Path) -> None:
    """Keys beside files, in other formats, and without some."""
    done = call("hash", "more.txt", "s3://books/scans", "-a", "md5,sha1", "--exclude", "*.tmp")
    assert done.exit_code == 0
    names = ["more.txt", "s3://books/scans/a.txt", "s3://books/scans/d/b c.txt"]
    assert [line.partition("(")[2].partition(")")[0] for line in done.stdout.splitlines()[::2]] == names
    assert "s3://books/scans/d/junk.tmp" in done.stderr
    done = call("hash", "s3://books/scans/a.txt", "--format", "json")
    record = json.loads(done.stdout)
    assert (record["path"], record["size"]) == ("s3://books/scans/a.txt", 1)
    assert record["mtime_ns"]


def test_failed_keys(scans: MemoryBucket, call: Call) -> None:
    """Each key that fails is one line; the others are hashed."""
    scans._stored[b"scans/a.txt"] = scans._stored[b"scans/a.txt"]._replace(storage_class="GLACIER", digests={})
    done = call("hash", "s3://books/scans")
    assert (done.exit_code, done.stdout.count("\n")) == (1, 2)
    what = "the content is archived; restore it from the archive before it is read"
    assert done.stderr.splitlines()[0] == f"pressmark: s3://books/scans/a.txt: {what}"
    done = call("hash", "s3://books/scans", "--digests=stored")
    assert (done.exit_code, done.stdout.count("\n")) == (1, 2)
    what = "the server keeps no sha512 digest of it; restore it from the archive, and read it with --digests=read"
    assert done.stderr.splitlines()[0] == f"pressmark: s3://books/scans/a.txt: {what}"
    done = call("hash", "s3://books/absent")
    assert done.exit_code == 1
    what = "no key has this address or is below it"
    assert done.stderr == f"pressmark: s3://books/absent: {what}\npressmark: 1 of 1 file failed\n"


@pytest.mark.parametrize("option", [(), ("--digests",), ("--digests=stored",)])
def test_verify(scans: MemoryBucket, call: Call, tmp_path: Path, option: tuple[str, ...]) -> None:
    (tmp_path / "SHA512SUMS").write_text(lines())
    done = call("verify", "SHA512SUMS", "--root", "s3://books/scans", *option)
    size = "0 B" if option == ("--digests=stored",) else "6 B"
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == f"pressmark: SHA512SUMS: 3 files, {size}: all ok\n"
    scans._stored[b"scans/a.txt"] = scans._stored[b"scans/a.txt"]._replace(storage_class="GLACIER", digests={})
    scans.delete([b"scans/d/b c.txt"])
    scans.put(b"scans/new", b"")
    done = call("verify", "SHA512SUMS", "--root", "s3://books/scans/", *option, "--exclude", "nothing")
    assert done.exit_code == 1
    first, *others = done.stdout.splitlines()
    reason = ": not in the manifest, and not read: the server keeps no sha512 digest of it; read it with --digests=read"
    assert others == ["missing: d/b c.txt", "new: new" + (reason if option == ("--digests=stored",) else "")]
    what = "the server keeps no sha512 digest" if option == ("--digests=stored",) else "the content is archived"
    assert first.startswith(f"unreadable: a.txt: {what}")
    done = call("verify", "SHA512SUMS", "--root", "s3://books/scans", "--json", "--exclude", "d", *option)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [(one["kind"], one["path"]) for one in found[:-1]]
    unreadable = "unverified" if option == ("--digests=stored",) else "archived"
    assert kinds == [(unreadable, "a.txt"), ("excluded", "d"), ("missing", "d/b c.txt"), ("new", "new")]
    data = SCANS["d/b c.txt"]
    scans.put(b"scans/e/moved", data, digests={"sha512": hashlib.sha512(data).hexdigest()})
    done = call("verify", "SHA512SUMS", "--root", "s3://books/scans", *option)
    assert "moved: d/b c.txt -> e/moved" in done.stdout.splitlines()
    done = call("verify", "SHA512SUMS", "--root", "s3://books/none")
    assert done.exit_code == 1
    assert "no file found; names such as 'a.txt' are relative to --root s3://books/none" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ("hash scans --digests=stored", "--digests: only for addresses such as s3://bucket/prefix; omit the option"),
        (
            "hash scans s3://books/x --digests",
            "--digests: only for addresses such as s3://bucket/prefix; omit the option",
        ),
        ("hash s3://books/x --ledger l", "--ledger: not supported in object storage; omit the option"),
        ("hash s3://books/x --workers 2", "--workers: not supported in object storage; omit the option"),
        ("hash scans --region x", "--region: only for an address such as s3://bucket/prefix; omit the option"),
        (
            "hash s3://books/x -o s3://books/y",
            "s3://books/y: object storage is not supported for --output; use a local path",
        ),
        (
            "verify more.txt --digests=stored",
            "--digests: only with an address such as --root s3://bucket/prefix; omit the option",
        ),
        (
            "verify more.txt --root scans --digests",
            "--digests: only with an address such as --root s3://bucket/prefix; omit the option",
        ),
        ("verify s3://books/x", "s3://books/x: object storage is not supported for MANIFEST; use a local path"),
    ],
)
def test_refused(scans: MemoryBucket, call: Call, arguments: str, reason: str) -> None:
    done = call(*arguments.split())
    assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"pressmark: {reason}\n")


def test_a_malformed_address(scans: MemoryBucket, call: Call, tmp_path: Path) -> None:
    (tmp_path / "SHA512SUMS").write_text(lines())
    for arguments in (["hash", "s3://books/a//b"], ["verify", "SHA512SUMS", "--root", "s3://books/a//b"]):
        done = call(*arguments)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert "the prefix has an empty part" in done.stderr


@pytest.mark.parametrize("arguments", [["hash", "s3://books/scans"], ["verify", "sums", "--root", "s3://books/scans"]])
def test_a_refused_listing(scans: MemoryBucket, call: Call, tmp_path: Path, arguments: list[str]) -> None:
    """Keys that cannot be listed end the command with one line."""
    (tmp_path / "sums").write_text(lines())

    def refuse(name: str, _key: bytes) -> None:
        if name == "list":
            raise PermissionError(13, "access denied; use other credentials", "s3://books")

    scans.on_request = refuse
    done = call(*arguments)
    assert (done.exit_code, done.stderr) == (1, "pressmark: s3://books: access denied; use other credentials\n")
