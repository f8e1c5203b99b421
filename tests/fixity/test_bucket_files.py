"""Keys in object storage: hashed, walked and verified as files are."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pressmark import fixity
from pressmark.buckets import address
from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import StoreError
from pressmark.fixity import Outcome, Verdict
from pressmark.fixity.pool import FETCHES
from pressmark.progress_event import ProgressEvent

FILES = {
    b"scans/a.txt": b"a",
    b"scans/a/b.txt": b"b" * 3_000_000,
    b"scans/d/.DS_Store": b"junk",
    b"scans/d/e/f": b"",
    b"scans/d/e/\xc3\xbc +%20": b"odd",
    b"scans//x": b"odder",
    b"scansion": b"beside",
    b"z": b"beside, too",
}
BELOW = sorted(key for key in FILES if key.startswith(b"scans/"))


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> MemoryBucket:
    """A bucket that each address leads to."""
    bucket = MemoryBucket()
    bucket.url = "s3://books"
    monkeypatch.setattr(address, "open_bucket", lambda text: (bucket, address.parse(text)[1]))
    for key, data in FILES.items():
        bucket.put(key, data, digests={"sha512": hashlib.sha512(data).hexdigest()})
    return bucket


def at(key: bytes) -> str:
    return "s3://books/" + key.decode()


def digest(data: bytes, algorithm: str = "sha512") -> str:
    return hashlib.new(algorithm, data).hexdigest()


def set_state(bucket: MemoryBucket, key: bytes, **state: Any) -> None:
    bucket._stored[key] = bucket._stored[key]._replace(**state)


# --- walk -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", ["s3://books/scans", b"s3://books/scans", "s3://books/scans/"])
def test_walk(bucket: MemoryBucket, root: str | bytes) -> None:
    """All keys below an address, and no others, in the order of their bytes."""
    assert list(fixity.walk(root)) == [at(key) for key in BELOW]


def test_walk_of_a_bucket_or_a_key(bucket: MemoryBucket) -> None:
    assert list(fixity.walk("s3://books")) == [at(key) for key in sorted(FILES)]
    assert list(fixity.walk("s3://books/scans/d/e/f")) == [at(b"scans/d/e/f")]
    bucket.put(b"scans", b"a key beside a prefix")
    assert list(fixity.walk("s3://books/scans"))[:2] == ["s3://books/scans", at(BELOW[0])]
    assert list(fixity.walk("s3://books/scans/")) == [at(key) for key in BELOW]


def test_walk_of_nothing(bucket: MemoryBucket) -> None:
    [outcome] = fixity.walk("s3://books/scan")
    assert isinstance(outcome, Outcome)
    assert (outcome.path, outcome.kind) == ("s3://books/scan", "missing")
    with pytest.raises(StoreError, match="invalid bucket name"):
        list(fixity.walk("s3:///x"))


def test_keys_of_directories(bucket: MemoryBucket) -> None:
    """Empty keys that stand for directories are left out; those with content are not."""
    bucket.put(b"scans/empty/", b"")
    bucket.put(b"scans/full/", b"content")
    found = list(fixity.walk("s3://books/scans"))
    assert at(b"scans/empty/") not in found
    assert at(b"scans/full/") in found


@pytest.mark.parametrize(
    ("globs", "excluded"),
    [
        ([".DS_Store"], ["scans/d/.DS_Store"]),
        (["e"], ["scans/d/e/"]),
        (["d", "a.*"], ["scans/a.txt", "scans/d/"]),
        (["scans", "none"], []),
        ("*", ["scans//", "scans/a.txt", "scans/a/", "scans/d/"]),
    ],
)
def test_excluded_keys(bucket: MemoryBucket, globs: list[str] | str, excluded: list[str]) -> None:
    """A directory is left out with everything in it, and listed once; globs are not of the address itself."""
    left_out: list[str] = []
    found = list(fixity.walk("s3://books/scans", exclude=globs, excluded=left_out))
    assert left_out == [f"s3://books/{one}" for one in excluded]
    kept = [key for key in BELOW if not any(at(key).startswith(one) for one in left_out)]
    assert found == [at(key) for key in kept]


# --- hash -------------------------------------------------------------------------------------------------------------


def test_hash(bucket: MemoryBucket) -> None:
    """Digests, sizes and times, in the order of the input; progress counts files and bytes."""
    events: list[ProgressEvent] = []
    found = list(fixity.hash_files(fixity.walk("s3://books/scans"), ["sha512", "md5"], progress=events.append))
    assert [one.path for one in found] == [at(key) for key in BELOW]
    for one, key in zip(found, BELOW, strict=True):
        data = FILES[key]
        assert one.digests == {"sha512": digest(data), "md5": digest(data, "md5")}
        assert one.size == len(data)
        assert one.mtime_ns is not None
        assert abs(one.mtime_ns / 1e9 - bucket.head(key).modified) < 1e-3
    assert (events[-1].items, events[-1].bytes) == (len(BELOW), sum(len(FILES[key]) for key in BELOW))


def test_many_keys_beside_files(bucket: MemoryBucket, tmp_path: Path) -> None:
    """Files and keys can be mixed; the order is that of the input."""
    paths: list[str] = []
    for number in range(1200):
        data = str(number).encode()
        if number % 3:
            bucket.put(b"many/%d" % number, data)
            paths.append(f"s3://books/many/{number}")
        else:
            (tmp_path / str(number)).write_bytes(data)
            paths.append(str(tmp_path / str(number)))
    found = list(fixity.hash_files(paths, "sha256"))
    assert [one.path for one in found] == paths
    assert [one.digests for one in found] == [{"sha256": digest(str(n).encode(), "sha256")} for n in range(1200)]


def test_downloads_at_a_time(bucket: MemoryBucket) -> None:
    """Up to 16 keys are read at a time; with read="sequential", one."""
    running = most = 0
    lock = threading.Lock()

    def on_request(call: str, _key: bytes) -> None:
        nonlocal running, most
        if call == "get":
            with lock:
                running += 1
                most = max(most, running)
            time.sleep(0.01)
            with lock:
                running -= 1

    for number in range(60):
        bucket.put(b"many/%02d" % number, b"")
    paths = [f"s3://books/many/{number:02}" for number in range(60)]
    bucket.on_request = on_request
    list(fixity.hash_files(paths))
    assert 4 < most <= FETCHES == 16
    most = 0
    list(fixity.hash_files(paths, read="sequential"))
    assert most == 1


def test_failures(bucket: MemoryBucket) -> None:
    """A key that fails is an outcome, and the others are hashed."""
    set_state(bucket, b"z", storage_class="GLACIER")
    paths = ["s3://books/absent", "s3://books", "s3://x", "s3://books/z", "s3://books/scansion"]
    found = list(fixity.hash_files(paths))
    assert [(one.path, one.kind) for one in found] == [
        ("s3://books/absent", "missing"),
        ("s3://books", "bad-name"),
        ("s3://x", "bad-name"),
        ("s3://books/z", "archived"),
        ("s3://books/scansion", None),
    ]
    assert found[3].message == "the content is archived; restore it from the archive before it is read"
    bucket.on_request = refuse
    [one] = fixity.hash_files(["s3://books/scansion"])
    assert (one.kind, one.message) == ("permission", "access denied; use other credentials")


def refuse(_call: str, _key: bytes) -> None:
    raise PermissionError(13, "access denied; use other credentials", "s3://books")


def test_beneath_a_directory(bucket: MemoryBucket, tmp_path: Path) -> None:
    """Names in a directory that are not ours lead to no request."""
    bucket.requests = 0
    with fixity.open_directory(tmp_path) as top:
        [one] = fixity.hash_files(["s3://books/z"], beneath=top)
        [other] = fixity.hash_tasks([(None, "s3://books/z")], "md5")
    assert (one.kind, other[1].kind, bucket.requests) == ("missing", "missing", 0)


def test_stored_digests(bucket: MemoryBucket, tmp_path: Path) -> None:
    """The digests of the server, and no content; a key without all of them fails."""
    set_state(bucket, b"z", storage_class="DEEP_ARCHIVE")
    found = list(fixity.hash_files(["s3://books/z"], digests="stored"))
    assert [(one.digests, one.size) for one in found] == [({"sha512": digest(FILES[b"z"])}, 11)]
    assert bucket.received == 0
    paths = ["s3://books/scansion", "s3://books/z", str(tmp_path), "s3://books/absent"]
    found = list(fixity.hash_files(paths, ["sha512", "sha256"], digests="stored"))
    what = "the server keeps no sha256 digest of it"
    assert [(one.kind, one.message) for one in found] == [
        ("unverified", f"{what}; read it with digests='read'"),
        ("unverified", f"{what}; restore it from the archive, and read it with digests='read'"),
        ("unverified", "not in object storage, where servers keep digests"),
        ("missing", found[3].message),
    ]
    with pytest.raises(ValueError, match="digests='other': expected read or stored"):
        list(fixity.hash_files([], digests="other"))  # type: ignore[arg-type]


def test_a_ledger(bucket: MemoryBucket, tmp_path: Path) -> None:
    """Keys are not recorded, because nothing tells that they are unchanged."""
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    paths = [str(tmp_path / "file"), "s3://books/z"]
    for _ in range(2):
        with fixity.Ledger(tmp_path / "ledger", ("md5",), [b"x"]) as ledger:
            found = list(fixity.hash_files(paths, "md5", ledger=ledger))
    assert [one.ok for one in found] == [True, True]
    assert ledger.found == 1


def test_an_abandoned_run(bucket: MemoryBucket) -> None:
    """Closing a run ends the requests that have not begun."""
    for number in range(200):
        bucket.put(b"many/%03d" % number, b"x")
    bucket.requests = 0
    bucket.on_request = lambda _call, _key: time.sleep(0.01)
    run = fixity.hash_files(f"s3://books/many/{number:03}" for number in range(200))
    next(run)
    run.close()  # type: ignore[attr-defined]
    requests = bucket.requests
    assert requests < 100
    time.sleep(0.1)
    assert bucket.requests - requests <= 1


# --- verify -----------------------------------------------------------------------------------------------------------


def entries(names: dict[str, bytes], algorithm: str = "sha512") -> Iterator[fixity.ManifestEntry]:
    for name, data in names.items():
        yield fixity.ManifestEntry(name, {algorithm: digest(data, algorithm)})


def states(verdicts: Iterator[Verdict]) -> dict[str, tuple[str, str]]:
    return {one.path: (one.state, one.kind) for one in verdicts}


NAMES = {key.decode().removeprefix("scans/"): FILES[key] for key in BELOW}
OK = dict.fromkeys(NAMES, ("ok", "ok"))


@pytest.mark.parametrize("root", ["s3://books/scans", b"s3://books/scans/"])
@pytest.mark.parametrize("digests", ["read", "stored"])
def test_verify(bucket: MemoryBucket, root: str | bytes, digests: Any) -> None:
    assert states(fixity.verify(entries(NAMES), root, digests=digests)) == OK
    assert (bucket.received == 0) == (digests == "stored")


def test_names_of_the_current_directory(bucket: MemoryBucket) -> None:
    """As "pressmark hash ." writes them."""
    named = {f"./{name}": data for name, data in NAMES.items() if not name.startswith("/")}
    found = states(fixity.verify(entries(named), "s3://books/scans"))
    assert {state for state, _kind in found.values()} == {"ok", "new"}
    assert found["/x"] == ("new", "new")


def test_what_does_not_match(bucket: MemoryBucket) -> None:
    """Changed, missing, archived and new keys; keys beside the prefix do not count."""
    bucket.put(b"scans/a.txt", b"other", over=ANY)
    set_state(bucket, b"scans/d/e/f", storage_class="GLACIER")
    names = {name: data for name, data in NAMES.items() if name != "d/.DS_Store"} | {"absent": b"", "../z": b""}
    expected = {
        **OK,
        "a.txt": ("changed", "changed"),
        "d/e/f": ("unreadable", "archived"),
        "absent": ("missing", "missing"),
        "../z": ("missing", "missing"),
        "d/.DS_Store": ("new", "new"),
    }
    assert states(fixity.verify(entries(names), "s3://books/scans")) == expected
    excluded: list[str] = []
    del expected["d/.DS_Store"]
    verdicts = fixity.verify(entries(names), "s3://books/scans", exclude=".DS_Store", excluded=excluded)
    assert states(verdicts) == expected
    assert excluded == ["s3://books/scans/d/.DS_Store"]


def test_no_stored_digest(bucket: MemoryBucket) -> None:
    set_state(bucket, b"scans/a.txt", digests={})
    found = states(fixity.verify(entries(NAMES), "s3://books/scans", digests="stored"))
    assert found == {**OK, "a.txt": ("unreadable", "unverified")}
    with pytest.raises(ValueError, match="digests='stored'"):
        list(fixity.verify(entries(NAMES), digests="stored"))


def test_nothing_at_the_address(bucket: MemoryBucket) -> None:
    found = states(fixity.verify(entries({"a": b"", "b": b""}), "s3://books/none"))
    assert found == {"a": ("missing", "missing"), "b": ("missing", "missing")}


def test_names_that_are_addresses(bucket: MemoryBucket, tmp_path: Path) -> None:
    """As a run over an address writes them; with a local root they are names in it."""
    list_of_keys = tmp_path / "SHA512SUMS"
    assert fixity.write_manifest(list_of_keys, fixity.hash_files(fixity.walk("s3://books/scans"))) == []
    with fixity.check_manifest(list_of_keys) as check:
        assert states(check.verify()) == {f"s3://books/scans/{name}": ("ok", "ok") for name in NAMES}
    with fixity.check_manifest(list_of_keys, tmp_path) as check:
        found = states(
            check.verify(leave_out=[(status := list_of_keys.stat()).st_dev and (status.st_dev, status.st_ino)])
        )
        assert {state for state, _kind in found.values()} == {"missing"}
