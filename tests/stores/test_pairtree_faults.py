"""Killed, full and read-only at every single change of the disk; ``ci/stores-kill`` leaves out none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

import pressmark

pytestmark = pytest.mark.slow_under_sanitizers

#: One step in so many is taken.
STRIDE = os.environ.get("PRESSMARK_FAULT_STRIDE", "5")


@pytest.mark.parametrize("how", ["kill", f"{errno.EIO}", f"-{errno.ENOSPC}", f"-{errno.EROFS}"])
def test_every_change(disk_faults: str, tmp_path: Path, how: str) -> None:
    """A change is made or not made, nothing is lost or half there, nothing remains, and the error is one line."""
    package = str(Path(pressmark.__file__).parent.parent)
    environment = {
        **os.environ,
        "LD_PRELOAD": disk_faults,
        "PYTHONPATH": os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")])),
    }
    command = [sys.executable, str(Path(__file__).with_name("disk_faults.py")), str(tmp_path / "at"), how, STRIDE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 20
