"""Migrations, killed or refused a change of the disk; the long form tries every change."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from support.effort import stride
from support.preloading import run_preloaded

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

#: The distance between the tested changes.
STRIDE = str(stride(31))


@pytest.mark.parametrize("how", ["kill", f"{errno.EIO}", f"-{errno.ENOSPC}"])
@pytest.mark.parametrize(
    "direction",
    ["pairtree ocfl copy", "vitro pairtree move", "ocfl ocfl move", "bags bags move", "pairtree bags move"],
)
def test_every_change(disk_faults: str, tmp_path: Path, direction: str, how: str) -> None:
    """Nothing is lost or wrongly reported as present, and the run can be resumed to its end."""
    script = Path(__file__).with_name("every_change.py")
    assert int(run_preloaded(disk_faults, script, *direction.split(), str(tmp_path), how, STRIDE)) > 2
