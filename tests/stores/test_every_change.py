"""Stores of all kinds but Pairtree, killed, full and read-only at every change; ``ci/stores-kill`` leaves out none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pressmark

pytestmark = pytest.mark.slow_under_sanitizers

#: One step in so many is taken; a bag takes many.
USUAL = {"vitro": "7", "ocfl": "13", "bags": "21"}
STRIDES = {kind: os.environ.get("PRESSMARK_FAULT_STRIDE", usual) for kind, usual in USUAL.items()}


@pytest.mark.parametrize("how", ["kill", f"{errno.EIO}", f"-{errno.ENOSPC}", f"-{errno.EROFS}"])
@pytest.mark.parametrize("kind", STRIDES)
def test_every_change(disk_faults: str, tmp_path: Path, kind: str, how: str) -> None:
    """A change is made or not made, nothing is lost or half there, nothing remains, and the error is one line."""
    assert steps(disk_faults, "every_change.py", kind, str(tmp_path / "at"), how, STRIDES[kind]) > 5


@pytest.mark.parametrize("how", ["kill", f"{errno.EIO}"])
@pytest.mark.parametrize("kind", ["pairtree", *STRIDES])
def test_every_creation(disk_faults: str, tmp_path: Path, kind: str, how: str) -> None:
    """A store is there, whole, or not at all, and the same call goes on with making it."""
    assert steps(disk_faults, "every_creation.py", kind, str(tmp_path / "at"), how) > 5


def steps(disk_faults: str, script: str, *arguments: str) -> int:
    """Run a script, and return how many steps it took."""
    package = str(Path(pressmark.__file__).parent.parent)
    environment = {
        **os.environ,
        "LD_PRELOAD": disk_faults,
        "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])),
    }
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return int(done.stdout)
