"""Directories on another file system."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

__all__ = ["mounted", "other_device"]


@contextmanager
def mounted(path: Path) -> Iterator[None]:
    """Mount an empty file system in memory at a new directory; skip the test where that is not allowed."""
    path.mkdir()
    try:
        done = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", path], capture_output=True, check=False)
    except OSError as error:
        pytest.skip(f"cannot mount: {error}")
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", path], check=True)


def other_device(status: os.stat_result) -> os.stat_result:
    """Return a status as if it were of a file on another file system."""
    times = {name: getattr(status, name) for name in ("st_atime_ns", "st_mtime_ns", "st_ctime_ns")}
    return os.stat_result((*status[:2], status.st_dev + 1, *status[3:]), times)
