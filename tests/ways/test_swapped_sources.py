"""A directory of a source that is swapped for a symbolic link while it is read is not followed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from pressmark import PressmarkError, bagit
from pressmark.stores.registry import store_class
from support.trees import write
from ways.stores import OPTIONS

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
THEIRS = b"theirs"
SECONDS = 0.2


SWAP = """
import os, sys
directory, target = sys.argv[1:]
aside, link = target + "-aside", target + "-link"
os.symlink(target, link)
while os.getppid() == %d:
    os.rename(directory, aside)
    os.rename(link, directory)
    os.rename(directory, link)
    os.rename(aside, directory)
"""


@contextmanager
def swapping(directory: Path, target: Path) -> Iterator[None]:
    """Swap a directory for a link, and back, as often as possible."""
    process = subprocess.Popen([sys.executable, "-S", "-c", SWAP % os.getpid(), directory, target])
    try:
        while not os.path.lexists(f"{target}-link"):
            assert process.poll() is None
        yield
    finally:
        process.kill()
        process.wait()


def put(kind: str) -> Callable[[Path, Path], object]:
    """Return a call that puts one object."""

    def run(source: Path, out: Path) -> None:
        store_class(kind).create(out, **OPTIONS[kind]).put("x", source)

    return run


def put_many(kind: str) -> Callable[[Path, Path], object]:
    """Return a call that puts several objects."""

    def run(source: Path, out: Path) -> None:
        with store_class(kind).create(out, **OPTIONS[kind]).ingest() as ingest:
            for number in range(4):
                ingest.put(f"x{number}", source)

    return run


def pack(source: Path, out: Path) -> None:
    """Create an archive that is not compressed."""
    out.mkdir()
    bagit.create_archive(source, out / "bag.tar")


WAYS: dict[str, Callable[[Path, Path], object]] = {
    **{f"put {kind}": put(kind) for kind in ("pairtree", "ocfl", "bags")},
    **{f"ingest {kind}": put_many(kind) for kind in ("pairtree", "ocfl", "bags")},
    "create": bagit.create,
    "create archive": pack,
}


@pytest.mark.parametrize("way", WAYS)
def test_swapped_sources(way: str, tmp_path: Path, request: Any, implementation: Any) -> None:
    """No file that is outside of the source is read."""
    inside, outside = tmp_path / "source", tmp_path / "outside"
    # Long lists of names take a while to read.
    names = [f"{number}.txt" for number in range(20)]
    write(inside / "top", {f"sub/{name}": b"ours" for name in names})
    write(outside, dict.fromkeys(names, THEIRS))
    end = monotonic() + SECONDS * (10 if request.config.getoption("--long") else 1)
    with swapping(inside / "top" / "sub", outside):
        while monotonic() < end:
            out = tmp_path / "out"
            shutil.rmtree(out, ignore_errors=True)
            # The call may fail: the directory is a link, or is missing.
            with suppress(PressmarkError, OSError):
                WAYS[way](inside, out)
            for path in out.rglob("*"):
                assert path.is_dir() or THEIRS not in path.read_bytes(), path
