"""A migration gives the same result on local processes and on a Dask cluster, even with killed processes.

The same Pairtree is migrated into OCFL roots: by two local processes; on a cluster on the loopback interface; while a
worker is killed; and while the scheduler is killed, where the run fails and is resumed on another cluster. Each root
contains the same objects, byte for byte except for the time in the inventories, with the same rows except for their
time and host. Nothing is left over, and the source is unharmed. The rows of a chunk that ran twice may report that an
object exists already.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pressmark import stores

pytest.importorskip("distributed")

OBJECTS = 12_000
COMMAND = [sys.executable, "-m", "pressmark", "migrate"]
# Values that differ between equal runs.
MOMENT = re.compile(rb'"created": "[^"]*"')
OWN = ("started", "seconds", "host")
# After a kill, also for objects that had arrived by then.
AGAIN = ("status", "mode", "verify", "entries")


def make(folder: Path, count: int) -> None:
    """Write a Pairtree of objects of two small files."""
    layout = stores.create("pairtree", folder).layout
    assert layout is not None
    for number in range(count):
        identifier = f"uc2.ark:/13960/t{number * 7919:08d}"
        path = folder / "pairtree_root" / layout.object_path(identifier)  # type: ignore[attr-defined]
        path.mkdir(parents=True)
        for name in ("text.zip", "mets.xml"):
            (path / name).write_text(f"{name} of {identifier}\n" * (number % 50 + 1))


def state(folder: Path) -> str:
    """Return a digest of all names and bytes below a folder, except times and inventory digests."""
    whole = hashlib.sha256()
    for directory, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            data = (Path(directory) / name).read_bytes()
            if name.startswith("inventory.json"):
                data = MOMENT.sub(b"", data) if name == "inventory.json" else b""
            path = os.path.relpath(os.path.join(directory, name), folder)
            whole.update(json.dumps([path, hashlib.sha256(data).hexdigest()]).encode())
        if not folders and not files:
            whole.update(f"empty {os.path.relpath(directory, folder)}".encode())
    return whole.hexdigest()


def rows(work: Path) -> list[dict[str, object]]:
    """Return the rows of a run without run-specific values."""
    with (work / "rows.jsonl").open() as lines:
        return [without(json.loads(line), OWN) for line in lines]


def without(row: dict[str, object], keys: tuple[str, ...]) -> dict[str, object]:
    return {key: value for key, value in row.items() if key not in keys}


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes], list[subprocess.Popen[bytes]]]]:
    """Start a scheduler and two workers with nannies; return the scheduler's file and the processes."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    file = folder / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "dask"]
    common = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]
    scheduler = subprocess.Popen([*dask, "scheduler", "--port", "0", *common], **quiet)  # type: ignore[call-overload]
    local = ["--nworkers", "1", "--nthreads", "1", "--death-timeout", "60", "--local-directory", str(folder)]
    workers = [subprocess.Popen([*dask, "worker", *local, *common], **quiet) for _ in range(2)]  # type: ignore[call-overload]
    try:
        while not file.exists():
            time.sleep(0.05)
        yield file, scheduler, workers
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


def child_of(process: subprocess.Popen[bytes]) -> int:
    """Return the worker's process below a nanny."""
    listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(process.pid)], capture_output=True, check=False)
    pids = [int(line.split()[0]) for line in listed.stdout.splitlines() if b"resource_tracker" not in line]
    return pids[-1]


def migrated(source: Path, root: Path, *how: str, once: Callable[[], None] | None = None, expected: int = 0) -> None:
    """Run the command; call ``once`` after the first receipt."""
    receipts = Path(f"{root}.migration", "receipts")
    command = [*COMMAND, str(source), str(root), "--to", "ocfl", "--layout", "0003", *how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while once is not None and process.poll() is None:
            if receipts.is_dir() and any(name.endswith(".json") for name in os.listdir(receipts)):
                once()
                once = None
            time.sleep(0.002)
        talk = process.communicate()[1].decode()
    assert once is None, f"the run ended before the kill: {talk}"
    assert process.returncode == expected, (process.returncode, talk)


@pytest.mark.dask
@pytest.mark.long(only=True)
@pytest.mark.slow_under_sanitizers
def test_killed_parts(tmp_path: Path) -> None:
    folder, count = tmp_path, OBJECTS
    source = folder / "pairtree"
    make(source, count)
    before = state(source)

    def check(name: str, again: tuple[str, ...] = ()) -> None:
        root = folder / name
        found = rows(Path(f"{root}.migration"))
        assert [without(row, again) for row in found] == [without(row, again) for row in wanted_rows], f"{name}: rows"
        assert {row["status"] for row in found} <= {"ok", "exists_same"}, name
        assert state(root) == wanted, f"{name}: another root"
        assert state(source) == before, f"{name}: the source was changed"
        assert not stores.open(root).check(digests=True).errors, f"{name}: not valid"
        assert not (Path(f"{root}.migration") / "remaining.txt").read_bytes(), f"{name}: something remains"
        shutil.rmtree(root)

    migrated(source, folder / "local", "--workers", "2")
    wanted, wanted_rows = state(folder / "local"), rows(folder / "local.migration")
    assert len(wanted_rows) == count
    assert {row["status"] for row in wanted_rows} == {"ok"}
    check("local")
    with cluster(folder / "cluster") as (file, _scheduler, workers):
        migrated(source, folder / "dask", "--dask", str(file))
        check("dask")

        def kill_worker() -> None:
            os.kill(child_of(workers[0]), signal.SIGKILL)

        how = ("--dask", str(file))
        migrated(source, folder / "worker-killed", *how, once=kill_worker)
        check("worker-killed", AGAIN)
    with cluster(folder / "cluster") as (file, scheduler, _workers):
        how = ("--dask", str(file))
        migrated(source, folder / "scheduler-killed", *how, once=scheduler.kill, expected=1)
    with cluster(folder / "cluster") as (file, _scheduler, _workers):
        how = ("--dask", str(file), "--resume")
        migrated(source, folder / "scheduler-killed", *how)
        check("scheduler-killed", AGAIN)
