"""Bags, created, updated and completed: killed, disk full and read-only; the long form tries every change."""

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
STRIDE = str(stride(7))


@pytest.mark.parametrize("how", ["kill", f"{errno.EIO}", f"-{errno.ENOSPC}", f"-{errno.EROFS}", f"-{errno.EACCES}"])
@pytest.mark.parametrize("case", ["in-place", "small", "many", "elsewhere", "update", "complete"])
def test_every_change(disk_faults: str, tmp_path: Path, case: str, how: str) -> None:
    """A change is complete, absent, or finished by the same call; nothing is lost, and the error is correct."""
    if case == "complete":
        pytest.importorskip("urllib3")
    here = Path(__file__).parent
    # The tests first: there is also a library called bagit.
    paths = [str(here.parent), str(Path(pressmark.__file__).parent.parent), os.environ.get("PYTHONPATH")]
    environment = {
        **os.environ,
        "LD_PRELOAD": disk_faults,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    command = [sys.executable, str(here / "every_change.py"), case, str(tmp_path / "at"), how, STRIDE]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 25
