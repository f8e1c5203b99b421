"""The probe finds out what a server does, and removes what it made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

import pytest

from pressmark.buckets.bucket import ANY, NEW, Bucket, KeyChangedError, Part
from pressmark.buckets.memory import MemoryBucket
from pressmark.buckets.probe import STAGING, ProbeResult, probe
from support.careless_bucket import CarelessBucket

REQUIRED = ("creates", "replaces", "one_winner", "lists_at_once")
OTHERS = ("completes", "copies", "deletes")


class LyingBucket(CarelessBucket):
    """Ignores conditions except those of put, and believes any digest, as gofakes3 does."""

    def __init__(self) -> None:
        super().__init__("complete", "copy", "delete")

    def put(
        self,
        key: bytes,
        data: bytes | memoryview,
        *,
        over: str = NEW,
        digests: Mapping[str, str] = {},
        storage_class: str | None = None,
    ) -> str:
        token = super().put(key, data, over=over, storage_class=storage_class)
        with self._lock:
            self._stored[key] = self._stored[key]._replace(digests=digests)
        return token


def properties(result: ProbeResult) -> dict[str, bool]:
    """Return the attributes of a result that are true or false."""
    return {field.name: getattr(result, field.name) for field in fields(result) if field.type == "bool"}


def test_memory() -> None:
    """The bucket in memory keeps every promise."""
    bucket = MemoryBucket()
    bucket.put(b"root/0=ocfl_1.1", b"")
    result = probe(bucket, b"root/")
    assert set(properties(result)) == {*REQUIRED, *OTHERS}
    assert all(properties(result).values())
    assert (result.is_safe, result.digests, result.left) == (True, ("sha512", "sha256"), ())
    assert bucket.accepted == {"sha512", "sha256"}
    assert result.requests < 35
    assert list(bucket.keys) == [b"root/0=ocfl_1.1"]
    assert list(bucket.uploads(b"")) == []
    assert str(result) == (
        "s3://memory/root/: safe for several writers; for stored digests, create OCFL storage roots with sha512"
    )


def test_versitygw(s3: Bucket) -> None:
    """versitygw ignores the condition of a copy."""
    result = probe(s3, b"")
    assert properties(result) == {name: name != "copies" for name in (*REQUIRED, *OTHERS)}
    assert (result.is_safe, result.digests, result.left) == (True, ("sha512", "sha256"), ())
    assert s3.accepted == {"sha512", "sha256"}
    assert s3.list(b"").keys == []
    assert str(result).endswith("(missing: copies)")


def test_a_liar() -> None:
    """A server that ignores conditions and believes digests is found out."""
    bucket = LyingBucket()
    result = probe(bucket, b"")
    assert properties(result) == {name: name in REQUIRED for name in (*REQUIRED, *OTHERS)}
    assert (result.is_safe, result.digests, bucket.accepted) == (True, (), set())
    assert result.answers["sha512"] == "accepted the wrong one"
    assert bucket.keys == {}
    assert result.advice() == "safe for several writers"


def test_a_server_that_refuses_too_late() -> None:
    """A refusal is believed if the key is still there, with the same version."""

    class Late(MemoryBucket):
        def complete(self, key: bytes, upload: str, parts: Sequence[Part], *, over: str = NEW) -> str:
            super().complete(key, upload, parts, over=ANY)
            raise FileExistsError(17, "the key exists", key)

        def delete(self, keys: Sequence[bytes], *, token: str | None = None) -> None:
            super().delete(keys)
            if token is not None:
                raise KeyChangedError(keys[0])

    result = probe(Late(), b"")
    assert properties(result) == {name: name not in ("completes", "deletes") for name in (*REQUIRED, *OTHERS)}
    assert result.answers["completes"] == result.answers["deletes"] == "refused, but done"


def test_a_server_without_conditions() -> None:
    """A server that overwrites keys is not safe."""
    result = probe(CarelessBucket(), b"")
    assert properties(result) == {name: name == "lists_at_once" for name in (*REQUIRED, *OTHERS)}
    assert result.answers["one_winner"] == "both succeeded"
    assert not result.is_safe
    assert "not safe for several writers; for an OCFL storage root, use claims=True if only" in str(result)


def test_a_writer_that_may_not_remove() -> None:
    """Without the right to remove keys, the result names what is left."""

    class AddOnly(MemoryBucket):
        def delete(self, keys: Sequence[bytes], *, token: str | None = None) -> None:
            raise PermissionError(13, "access denied", keys[0])

    bucket = AddOnly()
    result = probe(bucket, b"root/")
    assert result.is_safe
    assert (result.deletes, result.answers["deletes"]) == (False, "access denied")
    assert list(result.left) == list(bucket.keys)
    assert all(key.startswith(b"root/" + STAGING + b"probe-") for key in result.left)


def test_a_reader() -> None:
    """Without the right to write, the probe ends with the error."""

    def refuse(call: str, key: bytes) -> None:
        if call == "put":
            raise PermissionError(13, "access denied", key)

    with pytest.raises(PermissionError, match="access denied"):
        probe(MemoryBucket(refuse), b"")


def test_a_lost_connection() -> None:
    """A lost connection is an error, not a property of the server; what was made is removed."""
    calls: list[str] = []

    def lose(call: str, _key: bytes) -> None:
        calls.append(call)
        if call == "copy":
            raise ConnectionResetError(104, "no connection")

    bucket = MemoryBucket(lose)
    with pytest.raises(ConnectionError):
        probe(bucket, b"")
    assert bucket.keys == {}


def test_lines() -> None:
    """Each property has a line; those that are required come first."""
    result = probe(MemoryBucket(), b"")
    lines = list(result.lines())
    assert [line.name for line in lines] == [*REQUIRED, *OTHERS, "sha512", "sha256"]
    assert all(line.is_good and line.consequence.endswith(".") for line in lines)
    unsafe = replace(result, creates=False, digests=())
    assert [line.name for line in unsafe.lines() if not line.is_good] == ["creates", "sha512", "sha256"]
    assert "NO  creates: create a key that exists: refused\n    Two writers can overwrite" in unsafe.table()
    assert "yes replaces: " in unsafe.table()


def test_right_digests_are_of_the_content() -> None:
    """The probe sends the digests that it announces."""
    seen = {}

    class Watched(MemoryBucket):
        def head(self, key: bytes):  # type: ignore[no-untyped-def]
            found = super().head(key)
            seen[key.rpartition(b"/")[2]] = found.digests
            return found

    probe(Watched(), b"")
    for name in ("sha512", "sha256"):
        assert seen[name.encode()] == {name: hashlib.new(name, b"right").hexdigest()}
