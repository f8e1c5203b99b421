"""The ``bag`` commands, and the ``store`` commands on a folder of bags, with an address in object storage."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from pressmark.buckets import address
from pressmark.buckets.bucket import ANY
from pressmark.buckets.memory import MemoryBucket
from support.memory_addresses import use_memory

from .conftest import Call

BAG = "s3://memory/shelf/bag"
DATE = "1700000000"


@pytest.fixture
def bucket(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemoryBucket:
    """A bucket, and a directory with files."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", DATE)
    (tmp_path / "files" / "b").mkdir(parents=True)
    (tmp_path / "files" / "a.txt").write_bytes(b"alpha\n")
    (tmp_path / "files" / "b" / "c.txt").write_bytes(b"gamma\n")
    return use_memory(monkeypatch)


def told(call: Call, *arguments: str, status: int = 0, out: str = "") -> str:
    """Return what a command reports on standard error."""
    done = call(*arguments)
    assert (done.exit_code, done.stdout) == (status, out), done.output
    return str(done.stderr)


def test_a_whole_life(bucket: MemoryBucket, call: Call, tmp_path: Path) -> None:
    """A bag is created, packed, validated, described, unpacked, and read as one of a folder."""
    assert told(call, "bag", "create", "files", "-o", BAG).startswith(f"pressmark: {BAG}: bag created: 2 files, 12 B")
    told(call, "bag", "create", "files", "-o", "bag")
    packed = told(call, "bag", "pack", "bag", "-o", f"{BAG}.tar.gz")
    assert packed.startswith(f"pressmark: {BAG}.tar.gz: bag packed: 2 files, 12 B")
    assert f"archive of {len(bucket.keys[b'shelf/bag.tar.gz'])} B" in packed
    told(call, "bag", "create", "files", "-o", f"{BAG}.zip")
    for level, verdict in (
        ("full", "valid: 2 files, 12 B"),
        ("complete", "complete (checksums were not verified): 2 files, 12 B"),
        ("oxum", "matches its Payload-Oxum (checksums were not verified): 2 files, 12 B"),
    ):
        lines = told(call, "bag", "validate", BAG, f"{BAG}.tar.gz", f"{BAG}.zip", "--level", level).splitlines()
        shown = [line.partition(": ")[2] for line in lines]
        assert [line[: len(BAG) + 40].partition(": ")[0] for line in shown[:3]] == [BAG, f"{BAG}.tar.gz", f"{BAG}.zip"]
        assert all(line.partition(": ")[2].startswith(verdict) for line in shown[:3])
        assert len(shown) == 4
    local = call("bag", "info", "bag", "--json").stdout
    for one in (BAG, f"{BAG}.tar.gz", f"{BAG}.zip"):
        about = json.loads(call("bag", "info", one, "--json").stdout)
        assert {**about, "path": "bag"} == json.loads(local)
    told(call, "bag", "unpack", f"{BAG}.tar.gz", "-o", "other")
    assert (tmp_path / "other" / "data" / "b" / "c.txt").read_bytes() == b"gamma\n"
    told(call, "bag", "pack", "bag", "-o", "s3://memory/third.tar")
    told(call, "bag", "unpack", "s3://memory/third.tar")
    assert (tmp_path / "third" / "data" / "a.txt").read_bytes() == b"alpha\n"


def test_a_folder(bucket: MemoryBucket, call: Call, tmp_path: Path) -> None:
    """Bags and archives are listed, checked, and read by their identifiers."""
    for number in (1, 2):
        where = f"{BAG}s/{number}" if number == 1 else f"{BAG}s/{number}.tar"
        told(call, "bag", "create", "files", "-o", where, "--info", f"External-Identifier=id:{number}")
    done = call("store", "ls", f"{BAG}s")
    assert done.stdout == "id:1\t1\nid:2\t2.tar\n"
    assert told(call, "store", "check", f"{BAG}s", "--digests") == f"pressmark: {BAG}s: 2 objects, no problem\n"
    assert call("store", "cat", f"{BAG}s", "id:1", "b/c.txt").stdout == "gamma\n"
    told(call, "store", "get", f"{BAG}s", "id:1", "copy")
    assert sorted(os.listdir(tmp_path / "copy")) == ["a.txt", "b"]
    told(call, "store", "get", f"{BAG}s", "id:2", "archive")
    assert os.listdir(tmp_path / "archive") == ["2.tar"]
    keys = bucket.keys
    reason = "a folder of bags is only read in object storage; create bags with pressmark bag create"
    for arguments in (("put", "id:3", "files"), ("rm", "id:1"), ("repair",)):
        line = told(call, "store", arguments[0], f"{BAG}s", *arguments[1:], status=2)
        assert line == f"pressmark: '{BAG}s': {reason}\n", arguments
    assert bucket.keys == keys


def test_problems_and_advice(bucket: MemoryBucket, call: Call) -> None:
    """Problems are printed as for a directory; no advice names a command that does not work there."""
    told(call, "bag", "create", "files", "-o", BAG)
    bucket.put(b"shelf/bag/data/a.txt", b"ALPHA\n", over=ANY)
    done = call("bag", "validate", BAG)
    assert done.exit_code == 1
    assert done.stdout.startswith("error: checksum-mismatch: data/a.txt: ")
    assert done.stderr.splitlines()[-1] == (
        "pressmark: what to do: replace the files by those of another copy of the bag, with another program"
    )
    record = json.loads(call("bag", "validate", BAG, "--json").stdout.splitlines()[0])
    assert (record["kind"], record["path"]) == ("checksum-mismatch", "data/a.txt")


REFUSED = {
    f"bag validate {BAG} --ledger x": "--ledger: not supported in object storage; omit the option",
    f"bag validate {BAG} --workers 2": "--workers: not supported in object storage; omit the option",
    f"bag create files -o {BAG} --copy-mode hardlink": (
        "--copy-mode hardlink: not supported in object storage; use --copy-mode auto"
    ),
    f"bag create files -o {BAG} --fetch-base http://x/": (
        "--fetch-base: not supported in object storage; choose a local directory with -o"
    ),
    f"bag create files -o {BAG}.7z": (
        f"{BAG!r}: this archive format cannot be written; use a name that ends with .tar, .tar.gz, .tgz, .tar.zst,"
        " .tzst, .zip".replace(repr(BAG), repr(f"{BAG}.7z"))
    ),
    "bag create files -o s3://memory": (
        "'s3://memory': the address names only a bucket; specify the key of the new bag, such as s3://books/bag"
    ),
    "bag info s3://memory/none": "'s3://memory/none': nothing found; specify the address of a bag",
    "bag info s3://m": "'s3://m': invalid bucket name 'm'; use an address such as s3://bucket/prefix",
    "bag validate files --region x": "--region: only for an address such as s3://bucket/prefix; omit the option",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(bucket: MemoryBucket, call: Call, text: str) -> None:
    """What is not possible is refused in one line, before anything is written."""
    assert told(call, *text.split(), status=2) == f"pressmark: {REFUSED[text]}\n"
    assert bucket.keys == {}


def test_an_existing_destination(bucket: MemoryBucket, call: Call) -> None:
    told(call, "bag", "create", "files", "-o", BAG)
    told(call, "bag", "create", "files", "-o", "bag")
    told(call, "bag", "pack", "bag", "-o", f"{BAG}.tar")
    keys = bucket.keys
    line = "destination already exists; choose another name\n"
    assert told(call, "bag", "create", "files", "-o", BAG, status=2) == f"pressmark: '{BAG}': {line}"
    assert told(call, "bag", "pack", "bag", "-o", f"{BAG}.tar", status=2) == f"pressmark: '{BAG}.tar': {line}"
    assert bucket.keys == keys


@pytest.mark.parametrize("command", [f"validate {BAG}", f"info {BAG}", f"create files -o {BAG}"])
def test_errors_of_a_server(bucket: MemoryBucket, call: Call, command: str) -> None:
    """One line with the address, and the reason of the server."""

    def refuse(_call: str, _key: bytes) -> None:
        raise ConnectionError(errno.ECONNRESET, "no connection; check the endpoint and the network", "s3://memory")

    bucket.on_request = refuse
    reason = f"pressmark: '{BAG}': no connection; check the endpoint and the network\n"
    assert told(call, "bag", *command.split(), status=1) == reason


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (f"validate {BAG}", "run the same command again"),
        (f"create files -o {BAG}2", "no bag was created; run the same command again to continue"),
        (f"pack bag -o {BAG}2.tar", "no archive was created; run the same command again to continue"),
    ],
)
def test_interrupted(bucket: MemoryBucket, call: Call, command: str, advice: str) -> None:
    """The message says how to go on, and names no option that is not supported."""
    told(call, "bag", "create", "files", "-o", BAG)
    told(call, "bag", "create", "files", "-o", "bag")

    def interrupt(call: str, _key: bytes) -> None:
        if call in ("get", "put", "start"):
            raise KeyboardInterrupt

    bucket.on_request = interrupt
    assert told(call, "bag", *command.split(), status=130) == f"pressmark: interrupted; {advice}\n"


def test_a_bad_bag_among_others(bucket: MemoryBucket, call: Call) -> None:
    """The others are validated."""
    told(call, "bag", "create", "files", "-o", BAG)
    lines = told(call, "bag", "validate", "s3://memory/none", BAG, status=1).splitlines()
    assert lines[0] == "pressmark: 's3://memory/none': nothing found; specify the address of a bag"
    assert lines[1].startswith(f"pressmark: {BAG}: valid")
    assert lines[2] == "pressmark: 2 bags; 1 invalid"


def test_local_commands_load_no_bucket(call: Call, bucket: MemoryBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local path never opens a bucket."""

    def opened(*_arguments: object) -> None:
        raise AssertionError

    monkeypatch.setattr(address, "find_key", opened)
    monkeypatch.setattr(address, "open_bucket", opened)
    told(call, "bag", "create", "files", "-o", "bag")
    told(call, "bag", "pack", "bag")
    told(call, "bag", "validate", "bag", "bag.tar")
