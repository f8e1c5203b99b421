"""Migrations by the command line from and to a server, whose directory is a storage root, with kills."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from pressmark import stores
from pressmark.stores.ocfl.root import OcflRoot

from .proxy import run_proxy

OBJECTS = 120
ROOT = "s3://books/root"


def files_of(number: int) -> dict[str, bytes]:
    chance = random.Random(number)
    return {f"{name}/file {name} é.bin": chance.randbytes(chance.randrange(4000)) for name in range(1 + number % 3)}


@pytest.fixture
def pairtree(tmp_path: Path) -> Path:
    store = stores.create("pairtree", tmp_path / "pairtree")
    for number in range(OBJECTS):
        store.put(f"ark:/12345/{number}", files_of(number))
    return tmp_path / "pairtree"


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "pressmark", "migrate", *map(str, words)]


def run(*words: object, cwd: Path) -> list[dict[str, Any]]:
    """Run a migration that succeeds, and return its JSON lines."""
    done = subprocess.run(command(*words, "--json"), capture_output=True, text=True, cwd=cwd, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


def contents(path: Path) -> dict[str, dict[str, bytes]]:
    store = stores.open(path)
    return {
        record.id: {
            name: store.get(record.id or "").read_bytes(name) for name, _path in store.get(record.id or "").files()
        }
        for record in store.objects()
    }


def test_there_and_back(folder: Path, pairtree: Path, tmp_path: Path) -> None:
    """From a Pairtree to a bucket, and on to the disk: every file is equal, and the rows are verified."""
    expected = contents(pairtree)
    last = run(pairtree, ROOT, "--to", "ocfl", "--layout", "0004", "--verify", "stored", cwd=tmp_path)[-1]
    assert last["summary"]["by_status"] == {"ok": OBJECTS}
    assert (tmp_path / "root.migration" / "finished.json").exists()
    # The directory of the server is a storage root.
    assert OcflRoot(folder / "root").check(digests=True).errors == []
    assert contents(folder / "root") == expected
    run(ROOT, tmp_path / "back", "--to", "ocfl", "--layout", "0003", "--verify", "reread", cwd=tmp_path)
    assert contents(tmp_path / "back") == expected
    run(ROOT, "s3://books/second", "--to", "ocfl", "--layout", "0003:tupleSize=2", "--workers", 2, cwd=tmp_path)
    assert contents(folder / "second") == expected
    assert run(ROOT, "s3://books/second", "--verify-again", cwd=tmp_path)[-1]["summary"]["by_status"] == {"ok": OBJECTS}
    run("s3://books/second", tmp_path / "again", "--to", "pairtree", "--move", cwd=tmp_path)
    assert contents(tmp_path / "again") == expected
    assert list(stores.open("s3://books/second").objects()) == []
    assert OcflRoot(folder / "second").check(digests=True).errors == []


def test_kills(folder: Path, pairtree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is killed five times ends, and sends hardly a file twice."""
    expected = contents(pairtree)
    with run_proxy(os.environ["AWS_ENDPOINT_URL_S3"]) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
        proxy.delay = 0.02
        call = command(pairtree, ROOT, "--to", "ocfl", "--layout", "0004", "--workers", 1)
        kills = 0
        chance = random.Random(5)
        while kills < 5:
            process = subprocess.Popen(
                call if kills == 0 else [*call, "--resume"],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            before = len(proxy.requests)
            wanted = chance.randrange(40, 160)
            while process.poll() is None and len(proxy.requests) < before + wanted:
                time.sleep(0.01)
            if process.poll() is not None:
                assert process.returncode == 0, process.communicate()
                break
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
            if not (tmp_path / "root.migration" / "begun.json").exists():
                kills = 0
        run(pairtree, ROOT, "--to", "ocfl", "--resume", cwd=tmp_path)
        sent: Counter[str] = Counter()
        for request in proxy.requests:
            if request.method == "PUT" and "/content/" in request.path:
                sent[unquote(urlsplit(request.path).path)] += len(request.body)
    assert contents(folder / "root") == expected
    assert OcflRoot(folder / "root").check(digests=True).errors == []
    total = sum(len(data) for files in expected.values() for data in files.values())
    # At each kill, as many requests as connections may be on their way.
    assert sum(sent.values()) <= total + kills * 16 * 4000
    assert kills == 5
