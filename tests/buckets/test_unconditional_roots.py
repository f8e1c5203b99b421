"""OCFL storage roots on a server that receives no conditions: killed writers with claims, and a single writer."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from pressmark.buckets import s3, upload
from pressmark.errors import StoreError
from pressmark.stores.ocfl.remote import preparing
from pressmark.stores.ocfl.root import OcflRoot

from .test_ocfl_roots import IDS, USER, errors

WRITER = """\
import os, random, sys
from pressmark import stores
from pressmark.buckets import s3
from pressmark.errors import ObjectError

s3._condition = lambda over: {}
address, writer, seed = sys.argv[1:]
chance = random.Random(seed)
root = stores.OcflRoot(address, user={"name": writer}, claims=True)
number = 0
while True:
    number += 1
    one = f"info:x/{chance.randrange(6)}"
    name = f"{writer}-{seed}-{number}"
    try:
        root.update(one, add={"n": name.encode(), name: os.urandom(chance.choice([10, 3000]))})
        print("done", one, flush=True)
    except ObjectError as error:
        print(error.kind, one, error, flush=True)
"""


@pytest.fixture
def unconditional(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a bucket on a server that receives no conditions."""
    monkeypatch.setattr(s3, "_condition", lambda over: {})
    return folder


def test_killed_writers_with_claims(unconditional: Path, request: pytest.FixtureRequest) -> None:
    """No update that was reported as done is lost, whoever is killed; a repair leaves no problem."""
    with pytest.raises(StoreError, match="use claims=True if only Pressmark writes"):
        OcflRoot.create("s3://books/root", "0003", user=USER)
    root = OcflRoot.create("s3://books/root", "0003", user=USER, claims=True)
    for one in IDS:
        root.put(one, {"n": b"0"})
    outputs = [unconditional.parent / f"writer{number}" for number in range(4)]

    def start(writer: int) -> subprocess.Popen[bytes]:
        with outputs[writer].open("ab") as output:
            command = [sys.executable, "-c", WRITER, "s3://books/root", str(writer), str(random.random())]
            return subprocess.Popen(command, stdout=output, stderr=output)

    writers = [start(writer) for writer in range(4)]
    kills = 30 if request.config.getoption("--long") else 3
    for _ in range(kills):
        time.sleep(random.uniform(2, 4))
        chosen = random.randrange(4)
        writers[chosen].send_signal(signal.SIGKILL)
        writers[chosen].wait()
        writers[chosen] = start(chosen)
    for process in writers:
        process.kill()
        process.wait()
    lines = [line.split(" ", 1) for output in outputs for line in output.read_text().splitlines()]
    assert [line for line in lines if line[0] not in ("done", "changed", "exists")] == []
    done = Counter(one for word, one in lines if word == "done")
    assert done.total() > 0, lines
    root = OcflRoot("s3://books/root", claims=True)
    root.repair(alone=True)
    assert errors(root) == []
    for one in IDS:
        # A writer may be killed between the decision and its report.
        assert done[one] <= len(root.versions(one)) - 1 <= done[one] + kills + 4
    # The directory of the server is a storage root.
    assert errors(OcflRoot(unconditional / "root")) == []
    assert not (unconditional / "root/extensions/pressmark-staging/claims").exists()


def test_a_single_writer(unconditional: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A life of a root, with a file in parts."""
    monkeypatch.setattr(preparing, "WHOLE", upload.PART)
    root = OcflRoot.create("s3://books/root", "0003", user=USER, single_writer=True)
    (tmp_path / "large").write_bytes(bytes(upload.PART) + b"end")
    root.put("id:1", {"large": tmp_path / "large", "small": b"1"})
    root.update("id:1", add={"small": b"2"}, remove=["large"])
    root.put("id:2", {"small": b"1"})
    root.delete("id:2")
    assert root.get("id:1").read_bytes("small") == b"2"
    assert root.get("id:1", "v1").digests.keys() == {"large", "small"}
    assert [one.id for one in root.objects()] == ["id:1"]
    assert errors(root) == []
    assert errors(OcflRoot(unconditional / "root")) == []
