"""Catch-ups into an OCFL root, killed or refused a change of the disk; the long form tries every change."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pressmark
from support.effort import LONG, stride

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

#: The distance between the tested changes.
STRIDE = str(stride(31))


@pytest.mark.parametrize("how", ["kill", "kill without renameat2", f"{errno.EIO}", f"-{errno.ENOSPC}"])
@pytest.mark.parametrize("kind", ["pairtree", "ocfl"])
def test_every_change(changes: str, tmp_path: Path, kind: str, how: str) -> None:
    """Every object is whole, in its old or its new state, and the run or a repair finishes what was begun."""
    how, _, without = how.partition(" ")
    tests = str(Path(__file__).parents[1])
    path = [str(Path(pressmark.__file__).parent.parent), tests, os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "LD_PRELOAD": changes, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    if without:
        environment["DISK_NO_RENAMEAT2"] = "1"
    script = str(Path(__file__).with_name("every_catch_up.py"))
    command = [sys.executable, script, kind, str(tmp_path), how, STRIDE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    cases, unfinished = map(int, done.stdout.split())
    assert cases > 2
    # Between the steps of publishing a version.
    assert unfinished > 2 or not LONG or how != "kill"
