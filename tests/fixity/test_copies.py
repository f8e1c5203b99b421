"""Copies by threads and in lanes: sources that change or fail, full disks, several callers, and early ends."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fixity.conftest import environment
from fixity.trees import content, expected, make
from pressmark import _kernels
from pressmark.errors import AlgorithmError
from pressmark.fixity import outcomes, pool
from pressmark.fixity.copying import copy_files
from pressmark.fixity.hasher import READ_SIZE
from pressmark.progress_event import EventListener
from support.implementations import Implementation

SMALL, LONG = 5000, 3 * READ_SIZE + 17
BLOCK = 1 << 16  # of a copy in lanes

# Name of a file -> its size and error; None for a copy.
FILES: dict[str, tuple[int, str | None]] = {
    "append-long": (LONG, f"size changed from {LONG} to {LONG + 4} bytes while it was read"),
    "append-small": (SMALL, f"size changed from {SMALL} to {SMALL + 4} bytes while it was read"),
    "append-empty": (0, "size changed from 0 to 4 bytes while it was read"),
    "chmod-long": (LONG, None),
    "delete-long": (LONG, None),
    "eio-long": (LONG, os.strerror(5)),
    "eio-small": (SMALL, os.strerror(5)),
    "late-long": (LONG, os.strerror(5)),
    "plain-block": (BLOCK, None),
    "plain-empty": (0, None),
    "plain-long": (LONG, None),
    "plain-small": (SMALL, None),
    "rewrite-long": (LONG, "modified while it was read"),
    "rewrite-small": (SMALL, "modified while it was read"),
    "truncate-long": (LONG, f"size changed from {LONG} to 10 bytes while it was read"),
    "truncate-small": (SMALL, f"size changed from {SMALL} to 10 bytes while it was read"),
}

# Copies a folder, and prints digests or error of each file; or the first error of a copy, which ends the run.
SCRIPT = """
import json, os, sys
from pressmark.fixity.copying import copy_files
names = [name for name in sys.argv[1].split(",") if name]
tasks = [(name, b"s/" + name, b"t/" + name) for name in sorted(os.listdir(b"s"))]
copies = copy_files(tasks, names, threads=2)
found = {}
for _key, one in copies:
    if one.kind == "not-written":
        copies.close()
        found = [one.number, one.path, sorted(os.listdir("t"))]
        break
    found[one.path] = one.digests if one.ok else one.message
print(json.dumps([found, sorted(os.listdir("t"))]))
"""


Task = tuple[Path, bytes, bytes]


def tasks_of(paths: list[str], folder: Path) -> list[Task]:
    """Return the tasks that copy files into a new folder; their keys are the copies."""
    folder.mkdir()
    copies = [folder / os.path.basename(path) for path in paths]
    return [(copy, os.fsencode(path), os.fsencode(copy)) for copy, path in zip(copies, paths, strict=True)]


def copied(tasks: list[Task], *how: Any, **options: Any) -> list[outcomes.Outcome]:
    """Copy files, and return their outcomes; each has the key of its task."""
    found = list(copy_files(tasks, *how, **options))
    assert [key for key, _outcome in found] == [key for key, _source, _target in tasks]
    return [outcome for _key, outcome in found]


def run_script(folder: Path, names: str, **variables: str) -> Any:
    """Copy the folder ``s`` to ``t`` in another process; return what it prints."""
    (folder / "t").mkdir()
    command = [sys.executable, "-c", SCRIPT, names]
    done = subprocess.run(
        command, cwd=folder, env=environment(**variables), capture_output=True, timeout=120, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("names", ["sha512", "md5,sha256", "sha512,blake3", "sha3-256", ""])
def test_sources_that_change_or_fail(implementation: Implementation, faults: str, tmp_path: Path, names: str) -> None:
    """A file's name determines its fault at the first read; all others are copied, with permission bits and times."""
    (tmp_path / "s").mkdir()
    wanted: dict[str, Any] = {}
    for turn in range(6):  # enough files of each kind for lanes
        for number, (name, (size, message)) in enumerate(FILES.items()):
            path = tmp_path / "s" / f"{name}-{turn}"
            data = content(number, size)
            path.write_bytes(data)
            path.chmod(0o640)
            os.utime(path, ns=(1_234_567_891, 2_345_678_912))
            digests = {one: expected(data, one) for one in names.split(",") if one}
            wanted[f"s/{path.name}"] = digests if message is None else message
    found, _copies = run_script(tmp_path, names, LD_PRELOAD=faults, PRESSMARK_IMPLEMENTATION=str(implementation))
    assert found == wanted
    for number, (name, (size, message)) in enumerate(FILES.items()):
        copy = tmp_path / "t" / f"{name}-0"
        if message is None:
            assert copy.read_bytes() == content(number, size)
            assert (stat.S_IMODE(copy.stat().st_mode), copy.stat().st_mtime_ns) == (0o640, 2_345_678_912)
        elif name in ("append-small", "eio-small", "rewrite-small"):
            assert not copy.exists()


@pytest.mark.parametrize("names", ["sha512", ""])
def test_short_writes(implementation: Implementation, faults: str, tmp_path: Path, names: str) -> None:
    """Writes that take fewer bytes than given are continued; each file is read once."""
    paths = [tmp_path / "s" / f"count-{number}" for number in range(20)]
    (tmp_path / "s").mkdir()
    for number, path in enumerate(paths):
        path.write_bytes(content(number, 100_000))
    variables = {"LD_PRELOAD": faults, "PRESSMARK_IMPLEMENTATION": str(implementation)}
    found, _copies = run_script(tmp_path, names, SHORT="7777", READS=str(tmp_path / "log"), **variables)
    for number, path in enumerate(paths):
        assert (tmp_path / "t" / path.name).read_bytes() == content(number, 100_000)
        assert found[f"s/{path.name}"] == ({"sha512": expected(content(number, 100_000), "sha512")} if names else {})
    assert sorted((tmp_path / "log").read_text().split()) == sorted(path.name for path in paths)


@pytest.mark.parametrize("room", [0, BLOCK + 1, 1_500_000])
@pytest.mark.parametrize("names", ["sha512", ""])
def test_full_disks(implementation: Implementation, faults: str, tmp_path: Path, names: str, room: int) -> None:
    """A full disk is an outcome with the name of a copy; nothing is created once the run is closed."""
    make(tmp_path / "s", (100_000,) * 40)
    variables = {"LD_PRELOAD": faults, "PRESSMARK_IMPLEMENTATION": str(implementation)}
    (number, path, before), after = run_script(tmp_path, names, ROOM=str(room), **variables)
    assert number == 28
    assert path.startswith("t/")
    assert before == after


def test_existing_copies(implementation: Implementation, tmp_path: Path) -> None:
    """A file at the path of a copy is never overwritten."""
    tasks = tasks_of(make(tmp_path / "s", (100_000,) * 20), tmp_path / "t")
    mine = tasks[10][0]
    mine.write_bytes(b"mine")
    found = copied(tasks, ("sha512",))
    failed = found.pop(10)
    assert (failed.path, failed.kind, failed.number) == (os.fsdecode(tasks[10][2]), "not-written", errno.EEXIST)
    assert mine.read_bytes() == b"mine"
    assert all(outcome.ok for outcome in found)


def test_block_boundaries(implementation: Implementation, tmp_path: Path) -> None:
    """Files that end at, before or behind a block are copied whole."""
    sizes = tuple(number * BLOCK + rest for number in range(1, 5) for rest in (-1, 0, 1))
    tasks = tasks_of(make(tmp_path / "s", sizes), tmp_path / "t")
    for copy, outcome in copy_files(tasks, ("md5", "sha1"), threads=1):
        data = Path(outcome.path).read_bytes()
        assert copy.read_bytes() == data
        assert outcome.digests == {name: expected(data, name) for name in ("md5", "sha1")}


@pytest.mark.skipif(_kernels.active.lane_count("sha512") == 0, reason="needs lanes")
@pytest.mark.parametrize("names", [("sha512",), ("md5", "sha256"), ()])
def test_lanes_copy_most_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]) -> None:
    """Where lanes are fast, Python reads no file of many."""
    if names and not {name for name in names if _kernels.active.lane_count(name) > 1}:
        pytest.skip("this machine has no lanes")
    tasks = tasks_of(make(tmp_path / "s", (100_000,) * 40), tmp_path / "t")
    monkeypatch.setattr(pool, "transfer", None)
    assert all(outcome.ok for outcome in copied(tasks, names, threads=2))


def test_files_with_content_but_no_size(implementation: Implementation, tmp_path: Path) -> None:
    """A file in /proc is a failure: its size does not tell whether the copy is complete."""
    if not Path("/proc/version").exists():
        pytest.skip("needs /proc")
    paths = [*make(tmp_path / "s", (20_000,) * 20), "/proc/version"]
    *_others, last = copied(tasks_of(paths, tmp_path / "t"), ("sha512",))
    assert last.kind == "changed-while-read"
    assert last.message.endswith("bytes read from a file of size 0")


@pytest.mark.parametrize("mode", ["copy", "hardlink"])
def test_no_digests(implementation: Implementation, tmp_path: Path, mode: str) -> None:
    """Without algorithms, files are copied or linked, and their outcomes have no digests."""
    for folder, count in (("few", 2), ("many", 30)):
        tasks = tasks_of(make(tmp_path / folder, (30_000,) * count), tmp_path / f"t-{folder}")
        events: list[Any] = []
        found = copied(tasks, (), mode=mode, progress=EventListener(events.append))
        assert [(one.path, one.digests, one.size, one.ok) for one in found] == [
            (os.fsdecode(source), {}, 30_000, True) for _copy, source, _target in tasks
        ]
        for copy, source, _target in tasks:
            assert copy.read_bytes() == Path(os.fsdecode(source)).read_bytes()
        assert events[-1].items == count
    with pytest.raises(AlgorithmError):
        list(copy_files([], ("none",)))


def pool_threads() -> list[threading.Thread]:
    """Return the threads that go on; one that has done its work may need a moment to end."""
    found = [thread for thread in threading.enumerate() if thread.name.startswith("pressmark")]
    for thread in found:
        thread.join(10)
    return [thread for thread in found if thread.is_alive()]


def test_a_run_that_ends_early(implementation: Implementation, tmp_path: Path) -> None:
    """A run that is closed, after a copy that failed or not, leaves no work behind; one that is interrupted neither."""
    # More than are copied ahead of the caller.
    count = pool.LOOK_AHEAD + 50
    paths = make(tmp_path / "s", (150_000,) * count)
    for ending in ("closed", "failed", "interrupted"):
        tasks = tasks_of(paths, tmp_path / ending)
        if ending == "failed":
            tasks[1][0].write_bytes(b"mine")
        copies = copy_files(tasks, ("sha512",), threads=2)
        assert next(copies)[1].ok
        if ending == "failed":
            assert next(copies)[1].kind == "not-written"
        if ending == "interrupted":
            with pytest.raises(KeyboardInterrupt):
                copies.throw(KeyboardInterrupt)
        else:
            copies.close()
        there = sorted(os.listdir(tmp_path / ending))
        assert len(there) < count
        assert not pool_threads()
        time.sleep(0.05)
        assert sorted(os.listdir(tmp_path / ending)) == there


def test_a_broken_run(implementation: Implementation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that is neither of a source nor of a copy ends the run; the next one is not affected."""
    tasks = tasks_of(make(tmp_path / "s", (100,) * 20), tmp_path / "t")

    def broken(*_arguments: Any, **_options: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(pool.Run, "_collect", broken)
        with pytest.raises(MemoryError):
            list(copy_files(tasks, ("sha512",), threads=1))
    done = copied(tasks_of(make(tmp_path / "s2", (100,) * 20), tmp_path / "t2"), ("sha512",), threads=1)
    assert all(outcome.ok for outcome in done)
    assert not pool_threads()


def test_endless_sources_end(implementation: Implementation, tmp_path: Path) -> None:
    """Copies of a file that grows faster than it is read end."""
    source = tmp_path / "log"
    source.write_bytes(b"x" * 1000)
    (tmp_path / "t").mkdir()
    tasks = [(turn, os.fsencode(source), os.fsencode(tmp_path / "t" / str(turn))) for turn in range(6)]
    done = threading.Event()

    def append() -> None:
        with source.open("ab") as file:
            while not done.is_set() and file.tell() < 1 << 26:
                file.write(b"x" * 1_000_000)
                file.flush()

    writer = threading.Thread(target=append)
    writer.start()
    try:
        for _turn, outcome in copy_files(tasks, ["md5"], threads=2):
            assert outcome.ok or outcome.kind == "changed-while-read"
        assert not done.is_set()
    finally:
        done.set()
        writer.join()
        # Up to 450 MB, which pytest would keep.
        shutil.rmtree(tmp_path / "t")
        source.unlink()
