"""A Pairtree killed, full or read-only at a change of the disk; the long form tries every change."""

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

#: The distance between the tested steps.
STRIDE = str(stride(5))


@pytest.mark.parametrize("how", ["kill", f"{errno.EIO}", f"-{errno.ENOSPC}", f"-{errno.EROFS}"])
def test_every_change(disk_faults: str, tmp_path: Path, how: str) -> None:
    """A change is complete or absent, nothing is lost or left over, and the error is one line."""
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
