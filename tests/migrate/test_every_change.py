"""Migrations, killed or refused a change of the disk; the long form tries every change."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pressmark
from support.effort import stride

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

#: The distance between the tested changes.
STRIDE = str(stride(53))


@pytest.mark.parametrize("how", ["kill", f"{errno.EIO}", f"-{errno.ENOSPC}"])
@pytest.mark.parametrize(
    "direction",
    ["pairtree ocfl copy", "vitro pairtree move", "ocfl ocfl move", "bags bags move", "pairtree bags move"],
)
def test_every_change(changes: str, tmp_path: Path, direction: str, how: str) -> None:
    """Nothing is lost or wrongly reported as present, and the run can be resumed to its end."""
    tests = str(Path(__file__).parents[1])
    path = [str(Path(pressmark.__file__).parent.parent), tests, os.environ.get("PYTHONPATH")]
    environment = {**os.environ, "LD_PRELOAD": changes, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    script = str(Path(__file__).with_name("every_change.py"))
    command = [sys.executable, script, *direction.split(), str(tmp_path), how, STRIDE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 2
