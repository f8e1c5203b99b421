"""A Pairtree killed, full or read-only at a change of the disk; the long form tries every change."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from support.effort import LONG, stride
from support.preloading import run_preloaded

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

#: The distance between the tested steps.
STRIDE = str(stride(11))


@pytest.mark.parametrize("how", ["kill", f"{errno.EIO}", f"-{errno.EROFS}", *([f"-{errno.ENOSPC}"] if LONG else [])])
def test_every_change(disk_faults: str, tmp_path: Path, how: str) -> None:
    """A change is complete or absent, nothing is lost or left over, and the error is one line."""
    script = Path(__file__).with_name("every_pairtree_change.py")
    assert int(run_preloaded(disk_faults, script, str(tmp_path / "at"), how, STRIDE)) > 20
