"""Stores of all kinds except Pairtree: killed, disk full or read-only at a change; the long form tries every change."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from pressmark import stores
from support.effort import LONG, faults, stride
from support.preloading import run_preloaded

pytestmark = [pytest.mark.kill, pytest.mark.slow_under_sanitizers]

#: The distance between the tested changes.
STRIDES = {"vitro": str(stride(11)), "ocfl": str(stride(19)), "bags": str(stride(31))}


@pytest.mark.parametrize(("kind", "how"), faults(STRIDES, errno.ENOSPC, errno.EROFS))
def test_every_change(disk_faults: str, tmp_path: Path, kind: str, how: str) -> None:
    """A change is complete or absent, nothing is lost or left over, and the error is one line."""
    assert steps(disk_faults, "every_change.py", kind, str(tmp_path / "at"), how, STRIDES[kind]) > 5


@pytest.mark.parametrize(("kind", "how"), faults(stores.KINDS, errno.EROFS, errno.ENOSPC))
def test_every_change_of_many_objects(disk_faults: str, tmp_path: Path, kind: str, how: str) -> None:
    """Each object of a batch is complete or absent, and reported as it is; nothing is lost or left over."""
    assert steps(disk_faults, "every_ingest.py", kind, str(tmp_path / "at"), how, str(stride(17))) > 3


@pytest.mark.parametrize("how", ["kill", f"{errno.EIO}"])
@pytest.mark.parametrize("kind", ["pairtree", *STRIDES])
def test_every_creation(disk_faults: str, tmp_path: Path, kind: str, how: str) -> None:
    """A store is complete or absent, and the same call finishes its creation."""
    assert steps(disk_faults, "every_creation.py", kind, str(tmp_path / "at"), how) > 5


@pytest.mark.parametrize("how", ["kill", f"{errno.ENOSPC}", f"{-errno.EIO}"])
@pytest.mark.parametrize("kind", ["ocfl", "bags"])
def test_every_get(disk_faults: str, tmp_path: Path, kind: str, how: str) -> None:
    """A verified copy is whole or absent."""
    assert steps(disk_faults, "every_get.py", kind, str(tmp_path / "at"), how) > 5


@pytest.mark.parametrize("how", ["kill", f"{errno.ENOSPC}", f"{-errno.EIO}"])
@pytest.mark.parametrize("kind", ["ocfl", "bags"])
def test_every_mending(disk_faults: str, tmp_path: Path, kind: str, how: str) -> None:
    """Each file is damaged as before or good, and the repeated run mends the rest."""
    assert steps(disk_faults, "every_mending.py", kind, str(tmp_path / "at"), how, str(stride(11))) > 2


#: What is tried beside a second writer: the operation, the kind of store, and how the first process ends.
BESIDE = [
    *(("version", "ocfl", how) for how in ("kill", "continue")),
    *(("get", kind, how) for kind in stores.KINDS for how in (["kill", "continue"] if LONG else ["continue"])),
    *(("move", kind, how) for kind in stores.KINDS for how in (["kill", "continue"] if LONG else ["continue"])),
    *([] if LONG else [("get", "ocfl", "kill"), ("move", "bags", "kill")]),
]


@pytest.mark.parametrize(("operation", "kind", "how"), BESIDE)
def test_every_step_beside_a_second_writer(
    disk_faults: str, tmp_path: Path, operation: str, kind: str, how: str
) -> None:
    """Whatever one of the two has reported as done is there, whole and verified."""
    distance = str(stride({"version": 29, "get": 5, "move": 13}[operation]))
    assert steps(disk_faults, "every_second_writer.py", operation, kind, str(tmp_path), how, distance) > 2


def steps(disk_faults: str, script: str, *arguments: str) -> int:
    """Run a script, and return its number of steps."""
    return int(run_preloaded(disk_faults, Path(__file__).with_name(script), *arguments))
