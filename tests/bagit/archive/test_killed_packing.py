"""Killed at any moment while packing and unpacking: nothing looks whole that is not, and the same call finishes."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from fixity.conftest import environment
from pressmark.bagit import create
from support.effort import LONG, repeats

from ..bags import tree

KILLS = repeats(1)

pytestmark = [pytest.mark.kill, pytest.mark.skipif(os.name != "posix", reason="needs signals")]

BEGIN = """
import datetime, os, sys
from pressmark.bagit import create_archive, pack, unpack
folder = sys.argv[1]
os.write(1, b"begin\\n")
"""
#: The code of each case, and the new file or directory.
CASES = {
    "pack": ('pack(folder + "/bag", folder + "/t.tar.gz")', "t.tar.gz"),
    "pack as zip": ('pack(folder + "/bag", folder + "/t.zip")', "t.zip"),
    "create": ('create_archive(folder + "/s", folder + "/t.tar", date=datetime.date(2026, 11, 21))', "t.tar"),
    "unpack": ('unpack(folder + "/packed.tar.gz", folder + "/t")', "t"),
}


def run(code: str, folder: Path, delay: float | None = None) -> tuple[int, float]:
    """Run code; optionally kill it this long after it began. Return its status and seconds."""
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN + code, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    assert process.stdout is not None
    process.stdout.readline()
    begun = time.monotonic()
    if delay is not None:
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
    _, stderr = process.communicate()
    assert process.returncode == -signal.SIGKILL or not stderr or b"already exists" in stderr, stderr
    return process.returncode, time.monotonic() - begun


def state(path: Path) -> object:
    """Return the content of a file or directory; :data:`None` if it does not exist."""
    return tree(path) if path.is_dir() else path.read_bytes() if path.exists() else None


@pytest.mark.parametrize("name", CASES)
def test_killed_runs(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Kill a run, look at its destination, and run it again, with or without a kill, until it ends; many times."""
    code, target = CASES[name]
    pristine = tmp_path / "pristine"
    draw = random.Random(7)
    for number in range(30):
        (pristine / "s" / str(number % 3)).mkdir(parents=True, exist_ok=True)
        (pristine / "s" / str(number % 3) / str(number)).write_bytes(draw.randbytes(draw.choice([10, 5000, 600_000])))
    create(pristine / "s", pristine / "bag")
    run('pack(folder + "/bag", folder + "/packed.tar.gz")', pristine)
    folder = tmp_path / "folder"
    shutil.copytree(pristine, folder)
    status, seconds = run(code, folder)
    whole = state(folder / target)
    assert status == 0
    assert whole is not None
    before = tree(pristine)
    seed = time.time_ns()
    draw = random.Random(seed)
    states: Counter[str] = Counter()
    kills = 0
    while kills < KILLS:
        shutil.rmtree(folder)
        shutil.copytree(pristine, folder)
        while True:
            killing = kills < KILLS and draw.random() < 0.7
            status, _ = run(code, folder, draw.uniform(0, 1.1 * seconds) if killing else None)
            found = state(folder / target)
            assert found in (None, whole), seed
            if status != -signal.SIGKILL:
                break
            kills += 1
            states["left nothing" if found is None else "left it whole"] += 1
        assert state(folder / target) == whole, seed
        assert tree(folder).items() >= before.items(), seed
        assert status == 1 or not list(folder.glob(".pressmark-*")), seed
    if LONG:
        with capsys.disabled():
            print(f"\n{name}: {kills} kills: {dict(states)}")
