"""Killed and concurrent processes on a storage root: nothing is lost or incomplete."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import pressmark
from pressmark.stores.ocfl.root import OcflRoot
from support.effort import repeats

from .ocfl.samples import create, kinds, source, tree

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

KILLS = repeats(4)

WORK = """
import sys
from pathlib import Path
from pressmark.errors import ObjectError
from pressmark.stores.ocfl.root import OcflRoot

root = OcflRoot(sys.argv[1], durable=False)
given = Path(sys.argv[2])
print("ready", flush=True)
for turn in range(int(sys.argv[4])):
    for number in range(6):
        name = f"{sys.argv[3]}/{number}"
        for action in (
            lambda: root.put(name, given),
            lambda: root.put(name, {"turn": given / f"turn-{turn % 3}", "a": given / "a"}, replace=True),
            lambda: root.put(name, {"turn": given / f"turn-{(turn + 1) % 3}"}, replace=True),
            lambda: turn % 2 and root.delete(name),
        ):
            try:
                action()
            except ObjectError as error:
                if error.kind not in ("exists", "missing", "changed", "object-inside"):
                    raise
print("done")
"""


def start(root: OcflRoot, given: Path, prefix: str, turns: int) -> subprocess.Popen[bytes]:
    package = str(Path(pressmark.__file__).parent.parent)
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-c", textwrap.dedent(WORK), root.root, os.fspath(given), prefix, str(turns)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path})
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def given_files(tmp_path: Path) -> Path:
    files = {"a": b"a" * 100_000, "b/c": b"c" * 10, **{f"turn-{turn}": bytes([turn]) * 50_000 for turn in range(3)}}
    return source(tmp_path / "in", files)


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """After a kill, every object is complete, old or new; a repair removes leftovers and empty directories."""
    chosen = random.Random(KILLS)
    given = given_files(tmp_path)
    root = create(tmp_path / "root", "0003")
    for _ in range(KILLS):
        process = start(root, given, "info:x", 1000)
        time.sleep(chosen.uniform(0, 0.3))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        report = root.check(digests=True)
        assert set(kinds(report)) <= {"directory-empty", "version-unfinished"}, report.problems
        # A repair removes leftovers and empty directories, and finishes a version.
        assert kinds(root.repair()) == []
        assert kinds(root.check(digests=True)) == []
        for record in root.objects():
            assert record.proper
            for _name, path in root.get(record.id or "").files():
                assert os.path.getsize(path) > 0
    for record in list(root.objects()):
        root.delete(record.id or "")
    assert {name.split("/")[0] for name in tree(tmp_path / "root")} == {"0=ocfl_1.1", "ocfl_layout.json", "extensions"}


@pytest.mark.parametrize("word", ["0003", "0002"])
def test_two_processes_at_once(tmp_path: Path, word: str) -> None:
    """Concurrent processes put, replace and remove objects, nested ones too under layout 0002; all stays valid."""
    given = given_files(tmp_path)
    root = create(tmp_path / "root", word)
    prefixes = ["x", "x", "x/1"] if word == "0002" else ["x", "x", "y"]
    processes = [start(root, given, prefix, 12) for prefix in prefixes]
    looks = 0
    while any(process.poll() is None for process in processes):
        # Objects may disappear during the check, but are never invalid.
        for record in root.objects():
            assert not {problem.kind for problem in record.problems} - {"inventory-missing", "unreadable"}
        looks += 1
    for process in processes:
        assert process.communicate()[0] == b"done\n"
        assert process.returncode == 0
    assert looks
    report = root.check(digests=True)
    assert kinds(report) == [], report.problems
    extensions = tmp_path / "root/extensions"
    assert not extensions.exists() if word == "0002" else os.listdir(extensions) == [root.layout.name]  # type: ignore[union-attr]


def test_a_second_run_does_not_disturb_a_first(tmp_path: Path) -> None:
    """Files staged by a live run are not treated as leftovers by check, repair or another change."""
    root = create(tmp_path / "root")
    given = given_files(tmp_path)
    with root.changes():
        root.put("info:x/1", given)
        other = OcflRoot(root.root, durable=False)
        assert kinds(other.check()) == []
        assert kinds(other.repair()) == []
        other.put("info:x/2", given)
        root.put("info:x/3", given)
    assert sorted(record.id or "" for record in root.objects()) == ["info:x/1", "info:x/2", "info:x/3"]
    assert os.listdir(tmp_path / "root/extensions") == [root.layout.name]  # type: ignore[union-attr]
