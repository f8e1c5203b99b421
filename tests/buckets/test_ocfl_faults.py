"""Changes of OCFL storage roots through a network that fails: each fault at each request of each change."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pressmark.buckets import upload
from pressmark.buckets.probe import ProbeResult, probe
from pressmark.errors import ObjectError, PressmarkError, StoreError
from pressmark.reports import Report
from pressmark.stores.ocfl.remote import preparing
from pressmark.stores.ocfl.remote.remote_storage import RemoteStorage
from pressmark.stores.ocfl.root import OcflRoot

from .proxy import DROP, HALF, LOSE, SILENCE, SILENT_AFTER, SILENT_HALF, Answer, Fault, Proxy, error

if TYPE_CHECKING:
    from pressmark.buckets.s3 import S3Bucket

ID = "info:x/1"
OLD = {"a.txt": b"old", "same.txt": b"same"}
NEW = {"a.txt": b"new", "b/c.txt": b"more"}

#: Need a client that does not wait long.
SILENCES = {"silence": SILENCE, "silence after": SILENT_AFTER, "silence in the answer": SILENT_HALF}
FAULTS: dict[str, Fault | Answer] = {
    "answer lost": DROP,
    "request lost": LOSE,
    "half of the answer": HALF,
    "409": error(409, "ConditionalRequestConflict"),
    "429": error(429, "TooManyRequests"),
    "500": error(500, "InternalError"),
    "503": error(503, "SlowDown"),
    **SILENCES,
}
Change = Callable[[OcflRoot], object]
# The object before, the change, and the object after.
CHANGES: dict[str, tuple[dict[str, bytes] | None, Change, dict[str, bytes] | None]] = {
    "put": (None, lambda root: root.put(ID, NEW), NEW),
    "version": (OLD, lambda root: root.put(ID, NEW, replace=True), NEW),
    "update": (OLD, lambda root: root.update(ID, add={"n": b"n"}, remove=["a.txt"]), {"n": b"n", "same.txt": b"same"}),
    "delete": (OLD, lambda root: root.delete(ID), None),
    "repair": (OLD, lambda root: root.repair(), OLD),
    "check": (OLD, lambda root: root.check(digests=True), OLD),
}


FIT = ProbeResult("", True, True, True, True, True, True, True, ("sha512",), {}, (), 0)


@pytest.fixture(autouse=True)
def no_waits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeat requests at once; wait for answers only a moment where none comes."""
    monkeypatch.setattr("pressmark.buckets.s3.FIRST_WAIT", 0.001)
    if request.node.callspec.params.get("fault") in SILENCES:
        request.getfixturevalue("impatient")


def open_root(bucket: S3Bucket, prefix: bytes) -> OcflRoot:
    storage = RemoteStorage(bucket, prefix)
    storage.location.probed = FIT  # probing is another test's
    return OcflRoot(f"{bucket.url}/{prefix.decode()}", storage=storage, user={"name": "A Curator"})


def new_root(bucket: S3Bucket, prefix: bytes, files: dict[str, bytes] | None) -> None:
    bucket.put(prefix + b"0=ocfl_1.1", b"ocfl_1.1\n")
    layout = b'{"extension": "0003-hash-and-id-n-tuple-storage-layout", "description": "x"}'
    bucket.put(prefix + b"ocfl_layout.json", layout)
    if files is not None:
        open_root(bucket, prefix).put(ID, files)


def seen(bucket: S3Bucket, prefix: bytes) -> dict[str, bytes] | None:
    try:
        found = open_root(bucket, prefix).get(ID)
    except ObjectError as failure:
        if failure.kind != "missing":
            raise
        return None
    return {name: found.read_bytes(name) for name, _path in found.files()}


def errors(root: OcflRoot) -> list[Any]:
    return [one for one in root.check(digests=True).problems if one.severity == "error"]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", CHANGES)
def test_every_fault(
    s3: S3Bucket, proxied: S3Bucket, proxy: Proxy, name: str, fault: str, request: pytest.FixtureRequest
) -> None:
    """A request that fails for a time is repeated, so that the change is made, and made once."""
    before, change, result = CHANGES[name]
    new_root(s3, b"count/", before)
    root = open_root(proxied, b"count/")
    proxy.reset()
    change(root)
    count = len(proxy.requests)
    # Each request in the long form; every seventh otherwise, another one for each fault.
    step = 1 if request.config.getoption("--long") else 7
    for number in range(1 + list(FAULTS).index(fault) % step, count + 1, step):
        prefix = b"%d/" % number
        new_root(s3, prefix, before)
        root = open_root(proxied, prefix)
        proxy.reset()
        proxy.faults = {number: FAULTS[fault]}
        change(root)
        proxy.reset()
        assert seen(s3, prefix) == result
        assert errors(open_root(s3, prefix)) == []
        if name in ("version", "update"):
            assert len(open_root(s3, prefix).versions(ID)) == 2


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_of_a_probe(proxied: S3Bucket, proxy: Proxy, fault: str, request: pytest.FixtureRequest) -> None:
    """A request that was repeated does not look like a server that ignores conditions."""
    expected = replace(probe(proxied, b""), requests=0)
    count = len(proxy.requests)
    step = 1 if request.config.getoption("--long") else 7
    for number in range(1 + list(FAULTS).index(fault) % step, count + 1, step):
        proxy.reset()
        proxy.faults = {number: FAULTS[fault]}
        assert replace(probe(proxied, b""), requests=0) == expected, number
        assert proxied.list(b"").keys == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_large_file(
    s3: S3Bucket, proxied: S3Bucket, proxy: Proxy, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upload in parts, and its download, survive each fault."""
    monkeypatch.setattr(preparing, "WHOLE", upload.PART)
    data = bytes(range(256)) * (upload.PART // 256 + 100)
    (tmp_path / "large").write_bytes(data)
    new_root(s3, b"", None)
    proxy.reset()
    proxy.faults = dict.fromkeys(range(3, 200, 4), FAULTS[fault])
    root = open_root(proxied, b"")
    root.put(ID, tmp_path / "large")
    assert root.get(ID).read_bytes("large") == data
    proxy.reset()
    assert errors(open_root(s3, b"")) == []
    # Of an upload whose beginning was answered and not heard of, nobody knows but a repair.
    open_root(s3, b"").repair(alone=True)
    assert list(s3.uploads(b"")) == []


SILENT = re.compile(
    "http://127.0.0.1:[0-9]+ does not answer; check the endpoint and the network$"
    "|: the connection was lost while the content was read: timed out; try again$"
)


@pytest.mark.parametrize("fault", SILENCES)
@pytest.mark.parametrize("name", CHANGES)
def test_a_server_that_stays_silent(
    s3: S3Bucket,
    proxied: S3Bucket,
    proxy: Proxy,
    name: str,
    fault: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A change ends with one line that names the server; the object is as before or as after, and can be repaired."""
    monkeypatch.setattr("pressmark.buckets.s3.TRIES", 2)
    monkeypatch.setattr("pressmark.buckets.remote_file.TRIES", 2)
    before, change, result = CHANGES[name]
    new_root(s3, b"count/", before)
    root = open_root(proxied, b"count/")
    proxy.reset()
    change(root)
    count = len(proxy.requests)
    step = 1 if request.config.getoption("--long") else 13
    for number in range(1 + list(FAULTS).index(fault) % step, count + 1, step):
        prefix = b"%d/" % number
        new_root(s3, prefix, before)
        root = open_root(proxied, prefix)
        proxy.reset()
        proxy.plan = lambda one, first=number: FAULTS[fault] if one.number >= first else None  # type: ignore[misc]
        lines: list[str] = []
        try:
            report = change(root)
            problems = report.problems if isinstance(report, Report) else []
            lines = [one.message for one in problems if one.severity == "error"]
        except PressmarkError as failure:
            lines = [str(failure)]
        assert all(map(SILENT.search, lines)), lines
        # What is certain after the first time-outs is not asked again and again.
        assert len(proxy.requests) - number < 10
        proxy.reset()
        assert seen(s3, prefix) in (before, result)
        open_root(s3, prefix).repair(alone=True)
        assert errors(open_root(s3, prefix)) == []
        assert seen(s3, prefix) in (before, result)


@pytest.mark.parametrize("name", ["check", "put"])
def test_a_run_whose_server_is_gone(
    s3: S3Bucket, proxied: S3Bucket, proxy: Proxy, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run over many objects ends with one error, instead of an error of each."""
    new_root(s3, b"", None)
    objects = [(f"info:x/{number}", {"a.txt": b"%d" % number}) for number in range(200)]
    if name == "check":
        assert all(result.error is None for result in open_root(s3, b"").put_all(objects))
    root = open_root(proxied, b"")
    monkeypatch.setattr("pressmark.buckets.s3.SILENCE", 0.0)
    proxy.reset()
    proxy.plan = lambda request: LOSE if request.number > 30 else None
    run = (lambda: root.check(digests=True)) if name == "check" else (lambda: list(root.put_all(objects)))
    with pytest.raises(StoreError, match=r"no request was answered for more than 0 minutes: no connection to"):
        run()
    assert len(proxy.requests) < 30 + 200
    proxy.reset()
    root = open_root(s3, b"")
    root.repair(alone=True)
    assert errors(root) == []
