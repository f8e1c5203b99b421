"""Changes of bags and archives: killed, disk full and read-only; the long form tries every change."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from support.effort import faults, stride
from support.preloading import run_preloaded

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

#: The distance between the tested steps.
STRIDE = str(stride(11))
CASES = (
    *("in-place", "small", "many", "without-junk", "elsewhere", "holey", "from-lists", "archive", "pack", "unpack"),
    *("update", "complete", "revert"),
)


@pytest.mark.parametrize(("case", "how"), faults(CASES, errno.ENOSPC, errno.EROFS, errno.EACCES))
def test_every_change(disk_faults: str, tmp_path: Path, case: str, how: str) -> None:
    """A change is complete, absent, or finished by the same call; nothing is lost, and the error is correct."""
    if case == "complete":
        pytest.importorskip("urllib3")
    script = Path(__file__).with_name("every_change.py")
    steps = int(run_preloaded(disk_faults, script, case, str(tmp_path / "at"), how, STRIDE))
    assert steps >= (20 if case == "archive" else 25)  # an archive has its small tag files in memory
