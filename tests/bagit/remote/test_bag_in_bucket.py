"""Bags in a bucket, as trees and as archives: the verdict and the problems are those of the same bag on a disk."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from pressmark import bagit
from pressmark.bagit.problems import BagReport
from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket
from pressmark.errors import BagError
from support.effort import LONG
from support.memory_addresses import put_tree, use_memory

from ..archive.packing import FORMATS, pack
from ..bags import PAYLOAD, Sketch, digest
from ..rules import RULES

LEVELS = ("full", "complete", "oxum")
BAG = "s3://memory/shelf/bag"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> MemoryBucket:
    """An empty bucket that the addresses of this module lead to."""
    return use_memory(monkeypatch)


def found(report: BagReport) -> tuple[bool, dict[str, int], list[tuple[str, str, str, str]]]:
    """Return what a report says, in an order that does not depend on the source."""
    problems = sorted((one.kind, one.severity, one.path, one.message) for one in report.problems)
    return report.ok, report.counts, problems


def _many() -> Sketch:
    payload = {b"data/%d/%d.txt" % (n % 7, n): b"%d\n" % n for n in range(60)}
    return Sketch(payload=payload, info=None, algorithms=["sha256", "md5"], tag_algorithms=["sha256", "md5"])


def _write(change: Callable[[Path], object]) -> Callable[[Path], Path]:
    def written(folder: Path) -> Path:
        bag = Sketch().write(folder)
        change(bag)
        return bag

    return written


BAGS: dict[str, Callable[[Path], Path]] = {
    "valid": Sketch().write,
    "many": _many().write,
    "old": Sketch(version="0.97", tag_algorithms=[]).write,
    "utf-16": Sketch(encoding="UTF-16").write,
    "other tag algorithm": Sketch(tag_algorithms=["md5"]).write,
    "missing file": Sketch(absent={b"data/b/c.txt"}).write,
    "unlisted file": Sketch(unlisted={b"data/a.txt"}).write,
    "wrong oxum": Sketch(info=b"Payload-Oxum: 21.2\n").write,
    "unsafe manifest": Sketch(manifests={"manifest-sha512.txt": b"0" * 128 + b"  ../a.txt\n"}).write,
    "not in all manifests": Sketch(algorithms=["sha512", "md5"], manifests={"manifest-md5.txt": b""}).write,
    "to be fetched": Sketch(fetch=b"http://localhost/c 14 data/b/c.txt\n", absent={b"data/b/c.txt"}).write,
    "other case": Sketch(payload={**PAYLOAD, b"data/A.txt": b"other\n"}).write,
    "changed file": _write(lambda bag: (bag / "data" / "a.txt").write_bytes(b"ALPHA\n")),
    "changed tag file": _write(lambda bag: (bag / "bag-info.txt").write_bytes(b"Payload-Oxum: 20.2\nA: b\n")),
    "without bagit.txt": _write(lambda bag: (bag / "bagit.txt").unlink()),
    "without manifests": _write(lambda bag: [path.unlink() for path in bag.glob("*manifest-*")]),
    "more tag files": _write(lambda bag: (bag / "notes.txt").write_bytes(b"more")),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", BAGS)
def test_tree(tmp_path: Path, bucket: MemoryBucket, name: str, level: str) -> None:
    """A tree of keys has the problems of the directory."""
    bag = BAGS[name](tmp_path / "bag")
    put_tree(bucket, bag, "shelf/bag")
    bucket.requests = 0
    assert found(bagit.validate(BAG, level)) == found(bagit.validate(bag, level))
    if level != "full":
        assert bucket.received < 20_000
        assert bucket.requests <= 12  # the tag files, not the payload


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("ending", [*FORMATS, "stored.zip"])
@pytest.mark.parametrize("name", BAGS)
def test_archive(tmp_path: Path, bucket: MemoryBucket, name: str, ending: str, level: str) -> None:
    """An archive in a bucket has the problems of the file."""
    bag = BAGS[name](tmp_path / "bag")
    archive = pack(bag, tmp_path / f"x.{ending}", stored=ending.startswith("stored"))
    put_tree(bucket, archive, f"shelf/x.{ending}")
    assert found(bagit.validate(f"s3://memory/shelf/x.{ending}", level)) == found(bagit.validate(archive, level))


CASES = {f"{number}: {case.words}": case for number, rule in enumerate(RULES, 1) for case in rule.cases}
# What a bucket cannot contain: links, special files, names that are not UTF-8, and directories without files.
NOT_IN_BUCKETS = ("link", "payload-directory-missing", "file-special", "file-unreadable", "change-unfinished")


@pytest.mark.parametrize("name", CASES)
def test_rules(tmp_path: Path, bucket: MemoryBucket, name: str) -> None:
    """Each rule of the draft finds in a tree of keys what it finds in a directory."""
    bag = CASES[name].write(tmp_path / "bag")
    expected = bagit.validate(bag)
    is_utf8 = all(str(path).isascii() or not "\udc80" <= max(str(path)) <= "\udcff" for path in bag.rglob("*"))
    if not is_utf8 or any(one.kind.startswith(NOT_IN_BUCKETS) for one in expected.problems):
        pytest.skip("not possible in a bucket")
    put_tree(bucket, bag, "shelf/bag")
    assert found(bagit.validate(BAG)) == found(expected)


FLIPS = 3000 if LONG else 150


def test_damaged_trees(tmp_path: Path, bucket: MemoryBucket) -> None:
    """Flipped bits, cut files, missing and further keys: the verdict is that of the directory."""
    bag = Sketch(info=b"Payload-Oxum: 20.2\n", tag_files={b"notes.txt": b"notes\n"}).write(tmp_path / "bag")
    files = sorted(path for path in bag.rglob("*") if path.is_file())
    chance = random.Random(5)
    verdicts = set()
    for _ in range(FLIPS):
        path = chance.choice(files)
        data = path.read_bytes()
        how = chance.randrange(4)
        at = chance.randrange(len(data))
        if how == 0:
            path.unlink()
        elif how == 1:
            path.write_bytes(data[:at])
        elif how == 2:
            path.with_name("further").write_bytes(data)
        else:
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :])
        put_tree(bucket, bag, "shelf/bag")
        expected, report = bagit.validate(bag), bagit.validate(BAG)
        assert found(report) == found(expected), (path, how, at)
        verdicts.add(report.ok)
        path.write_bytes(data)
        path.with_name("further").unlink(missing_ok=True)
    assert verdicts == {True, False}


def test_listing_costs_one_request_for_a_thousand_files(tmp_path: Path, bucket: MemoryBucket) -> None:
    """A check for completeness reads no payload."""
    payload = {b"data/%04d" % n: b"" for n in range(2500)}
    put_tree(bucket, Sketch(payload=payload, info=None).write(tmp_path / "bag"), "shelf/bag")
    bucket.requests = 0
    assert bagit.validate(BAG, "complete").ok
    # Is it a key? Three pages, and four tag files, two of which are read twice.
    assert bucket.requests <= 12


def test_keys_that_cannot_be_files(tmp_path: Path, bucket: MemoryBucket) -> None:
    """Keys that no program can download as files are errors; the marks of directories are warnings."""
    put_tree(bucket, Sketch().write(tmp_path / "bag"), "shelf/bag")
    for mark in (b"", b"data/", b"data/b/"):
        bucket.put(b"shelf/bag/" + mark, b"")
    report = bagit.validate(BAG)
    assert report.ok
    assert [one.kind for one in report.problems] == ["key-directory"] * 2
    odd = [b"data//x", b"data/./x", b"../x", b"data/x/", b"data/a.txt/below", b"data/" + b"n" * 256]
    for key in odd:
        bucket.put(b"shelf/bag/" + key, b"x")
    report = bagit.validate(BAG)
    assert not report.ok
    unusable = [one.path for one in report.problems if one.kind == "key-unusable"]
    assert sorted(unusable) == sorted(map(bytes.decode, odd))


def test_archived_keys(tmp_path: Path, bucket: MemoryBucket) -> None:
    """A key whose content must be restored first is one line; the others are verified."""
    put_tree(bucket, Sketch().write(tmp_path / "bag"), "shelf/bag")
    key = b"shelf/bag/data/a.txt"
    bucket.put(key, PAYLOAD[b"data/a.txt"], over=ANY, storage_class="DEEP_ARCHIVE")
    for level in ("full", "complete"):
        (problem,) = bagit.validate(BAG, level).errors
        assert (problem.kind, problem.path) == ("file-unreadable", "data/a.txt")
        assert "archived; restore it" in problem.message
    bucket.restored.add(key)
    assert bagit.validate(BAG).ok
    assert bagit.validate(BAG, "complete").ok


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "zip", "stored.zip"])
def test_broken_connections(tmp_path: Path, bucket: MemoryBucket, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that breaks is opened again where it broke."""
    payload = {b"data/noise": random.Random(1).randbytes(3 << 20), b"data/text": b"text\n" * 100_000}
    bag = Sketch(payload=payload, info=None).write(tmp_path / "bag")
    archive = pack(bag, tmp_path / f"x.{ending}", stored=ending.startswith("stored"))
    put_tree(bucket, bag, "shelf/bag")
    put_tree(bucket, archive, f"shelf/x.{ending}")
    whole = bucket.get
    breaks = iter(range(1 << 20))

    def broken(key: bytes, **where: object) -> object:
        download = whole(key, **where)  # type: ignore[arg-type]
        read, left = download.read, [1 << 20]

        def some(size: int = -1) -> bytes:
            if left[0] <= 0:
                next(breaks)
                raise ConnectionError(errno.ECONNRESET, "broken")
            data = read(min(size, left[0]) if size >= 0 else left[0])
            left[0] -= len(data)
            return data

        download.read = some  # type: ignore[method-assign]
        return download

    monkeypatch.setattr(bucket, "get", broken)
    assert bagit.validate(BAG).ok
    assert bagit.validate(f"s3://memory/shelf/x.{ending}").ok
    assert next(breaks) > 3


@pytest.mark.parametrize(("source", "call", "count"), [("tree", "get", 1), ("tar", "head", 2), ("zip", "head", 2)])
def test_changed_while_read(tmp_path: Path, bucket: MemoryBucket, source: str, call: str, count: int) -> None:
    """A key that another program replaces after it was listed, or opened, is never valid."""
    bag = Sketch().write(tmp_path / "bag")
    address, key = BAG, b"shelf/bag/data/a.txt"
    if source != "tree":
        bag, address, key = pack(bag, tmp_path / f"x.{source}"), "s3://memory/shelf/x", b"shelf/x"
    put_tree(bucket, bag, address.removeprefix("s3://memory/"))
    calls: list[bytes] = []

    def change(made: str, at: bytes) -> None:
        calls.extend([at] if (made, at) == (call, key) else [])
        if len(calls) == count:
            bucket.on_request = None
            bucket.put(key, b"other", over=ANY)

    bucket.on_request = change
    report = bagit.validate(address)
    assert bucket.keys[key] == b"other"
    assert [one.kind for one in report.errors] == ["file-changing"]


def test_open(tmp_path: Path, bucket: MemoryBucket) -> None:
    """A bag in a bucket is opened, and its tag files are read, as those of a directory."""
    bag = Sketch().write(tmp_path / "bag")
    put_tree(bucket, bag, "shelf/bag")
    put_tree(bucket, pack(bag, tmp_path / "x.tar.gz"), "shelf/x.tar.gz")
    local = bagit.open(bag)
    for address in (BAG, BAG + "/", "s3://memory/shelf/x.tar.gz"):
        remote = bagit.open(address)
        assert remote.path == address
        assert remote.info.elements == local.info.elements
        assert remote.entries == local.entries
        with remote.payload as listing:
            assert listing.find(b"data/a.txt") == {"sha512": digest(PAYLOAD[b"data/a.txt"], "sha512")}
        assert remote.is_valid()


def test_opening_does_not_list_the_payload(tmp_path: Path, bucket: MemoryBucket) -> None:
    """Only the base directory is listed, and the tag files are read."""
    payload = {b"data/%04d" % n: b"" for n in range(1500)}
    put_tree(bucket, Sketch(payload=payload, info=b"A: b\n").write(tmp_path / "bag"), "shelf/bag")
    bucket.requests = 0
    bag = bagit.open(BAG)
    assert len(bag.fetch) == 0
    # Twice: is it a key? A listing. Once: bagit.txt and bag-info.txt.
    assert bucket.requests == 6


def test_refusals(bucket: MemoryBucket, tmp_path: Path) -> None:
    """An address without a bag, and what is not possible in object storage, are one error."""
    for address in ("s3://memory/none", "s3://memory/none.zip", "s3://memory"):
        with pytest.raises(BagError, match="nothing found; specify the address of a bag"):
            bagit.validate(address)
        with pytest.raises(BagError, match="nothing found; specify the address of a bag"):
            bagit.open(address)
    with pytest.raises(BagError, match="invalid bucket name"):
        bagit.validate("s3://m")
    with pytest.raises(ValueError, match="ledger"):
        bagit.validate(BAG, ledger=tmp_path / "ledger")
    bucket.put(b"file.txt", b"no archive")
    (problem,) = bagit.validate("s3://memory/file.txt").errors
    assert problem.kind == "archive-malformed"
    with pytest.raises(BagError, match="unknown archive format"):
        bagit.open("s3://memory/file.txt")


def test_many(tmp_path: Path, bucket: MemoryBucket) -> None:
    """Addresses and directories are validated in one call, in their order."""
    bag = Sketch().write(tmp_path / "bag")
    put_tree(bucket, bag, "shelf/bag")
    first, second, third = bagit.validate_many([BAG, bag, "s3://memory/none"])
    assert isinstance(first, BagReport)
    assert isinstance(second, BagReport)
    assert found(first) == found(second)
    assert first.ok
    assert isinstance(third, BagError)
