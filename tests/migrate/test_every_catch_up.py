"""Catch-ups into an OCFL root, killed or refused a change of the disk; the long form tries every change."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from support.effort import LONG, stride
from support.preloading import run_preloaded

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

#: The distance between the tested changes.
STRIDE = str(stride(47))


@pytest.mark.parametrize("how", ["kill", "kill without renameat2", f"{errno.EIO}", f"-{errno.ENOSPC}"])
@pytest.mark.parametrize("kind", ["pairtree", "ocfl"])
def test_every_change(disk_faults: str, tmp_path: Path, kind: str, how: str) -> None:
    """Every object is whole, in its old or its new state, and the run or a repair finishes what was begun."""
    how, _, without = how.partition(" ")
    variables = {"DISK_NO_RENAMEAT2": "1"} if without else {}
    script = Path(__file__).with_name("every_catch_up.py")
    cases, unfinished = map(
        int, run_preloaded(disk_faults, script, kind, str(tmp_path), how, STRIDE, **variables).split()
    )
    assert cases > 2
    # Between the steps of publishing a version.
    assert unfinished > 2 or not LONG or how != "kill"
