"""Bags with unusual names and contents, and what packing has to keep."""

from __future__ import annotations

import importlib.util
import os
import random
from pathlib import Path

import pytest

from pressmark.bagit.bag import create

__all__ = ["DAY", "FORMATS", "NAMES", "directories", "make_payload", "new_bag"]

#: The formats that can be written.
FORMATS = (
    "tar",
    "tar.gz",
    pytest.param(
        "tar.zst",
        marks=pytest.mark.skipif(importlib.util.find_spec("zstandard") is None, reason="needs zstandard"),
    ),
    "zip",
)
#: Midnight of the Bagging-Date of the sample.
DAY = 1790035200

NAMES = (
    b"plain",
    "ümläut/日本.txt".encode(),
    b"line\nfeed",
    b"percent%20",
    b" leading and trailing ",
    b"x" * 101,
    b"/".join([b"d" * 90] * 4) + b"/" + b"y" * 200,
)


def make_payload(folder: Path) -> Path:
    """Write files of many sizes and names, and empty directories."""
    draw = random.Random(3)
    for name in NAMES:
        path = os.path.join(os.fsencode(folder), name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(name * 10)
    (folder / "empty" / "below").mkdir(parents=True)
    (folder / "sizes").mkdir()
    for size in (0, 1, 511, 512, 513, 200_000, 1 << 20, (1 << 20) + 1):
        (folder / "sizes" / str(size)).write_bytes(draw.randbytes(size // 2) + b"a" * (size - size // 2))
    (folder / "many").mkdir()
    for number in range(60):
        (folder / "many" / str(number)).write_bytes(draw.randbytes(draw.randrange(20_000)))
    return folder


def new_bag(folder: Path, algorithms: tuple[str, ...] = ("sha512", "md5")) -> Path:
    """Create a bag in the new directory ``folder``."""
    source = folder.with_name(f"{folder.name} source")
    source.mkdir()
    (folder.parent / "mets.xml").write_bytes(b"<mets/>")
    info = {"Bagging-Date": "2026-09-22", "Contact-Name": "Jane Doe"}
    tag_files = {"metadata/mets.xml": folder.parent / "mets.xml"}
    create(make_payload(source), folder, info=info, copy_mode="hardlink", tag_files=tag_files, algorithms=algorithms)
    return folder


def directories(folder: Path) -> set[bytes]:
    """Return all directories below ``folder``."""
    top = os.fsencode(folder)
    return {os.path.relpath(path, top) for path, _, _ in os.walk(top)}
