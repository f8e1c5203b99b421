"""Files and bags for measurements, generated from a fixed seed without any of the measured tools."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = [
    "GIB",
    "KIB",
    "LISTS",
    "MIB",
    "SHAPES",
    "Shape",
    "bag_of",
    "files_of",
    "long_manifest",
    "paths_of",
    "unmade",
    "verify_made",
    "warm",
    "write_files",
]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
_FILES_PER_DIRECTORY = 1000


class Shape(NamedTuple):
    """``count`` files of ``size`` bytes; size -1 stands for mixed sizes."""

    name: str
    count: int
    size: int

    def scaled(self, scale: float) -> Shape:
        """Return the shape with a share of the files, or of their size if they are few."""
        if scale == 1:
            return self
        if self.count < 100:
            return self._replace(size=max(MIB, int(self.size * scale)))
        return self._replace(count=max(10, int(self.count * scale)))

    @property
    def folder(self) -> str:
        return f"{self.count}x{self.size}"

    def sizes(self) -> list[int]:
        """Return the size of each file; mixed ones are spread evenly over the powers of two from 1 KiB to 64 MiB."""
        if self.size >= 0:
            return [self.size] * self.count
        draw = random.Random(20)
        return [int(2 ** draw.uniform(10, 26)) for _ in range(self.count)]


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("small", 20_000, 4 * KIB),
        Shape("modest", 2_000, 64 * KIB),
        Shape("medium", 1_000, MIB),
        Shape("large", 8, 128 * MIB),
        Shape("huge", 1, 4 * GIB),
        Shape("mixed", 300, -1),
    )
}
#: The manifests of bags without files: they are opened, and the first is checked for completeness.
LISTS = {shape.name: shape for shape in (Shape("listed", 300_000, 16), Shape("millions", 3_000_000, 0))}


def files_of(shape: Shape, folder: Path) -> Path:
    """Return a directory with the files of a shape; create it if it does not exist."""
    made = folder / "files" / shape.folder
    if not made.exists():
        unfinished = made.with_name(made.name + ".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        write_files(unfinished, shape.sizes())
        unfinished.rename(made)
    return made


def write_files(folder: Path, sizes: Iterable[int]) -> None:
    """Write files of these sizes, each with different bytes."""
    block = random.Random(7).randbytes(4 * MIB)
    for number, size in enumerate(sizes):
        path = folder / f"{number // _FILES_PER_DIRECTORY:04}" / f"{number:07}"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            left = size
            while left:
                left -= file.write(block[number % 4096 : number % 4096 + left])


def paths_of(folder: Path) -> list[str]:
    """Return the paths of all files below ``folder``, sorted."""
    return sorted(os.path.join(place, name) for place, _, names in os.walk(folder) for name in names)


def warm(folder: Path) -> None:
    """Flush all writes to disk, and read all files below ``folder`` into the page cache."""
    os.sync()
    for path in paths_of(folder):
        with open(path, "rb", buffering=0) as file:
            while file.read(4 * MIB):
                pass


def bag_of(shape: Shape, algorithm: str, folder: Path) -> Path:
    """Return a bag of the files of a shape; create it with hard links if it does not exist."""
    bag = folder / f"{shape.folder}-{algorithm}"
    if not (bag / "bagit.txt").exists():
        shutil.rmtree(bag, ignore_errors=True)
        shutil.copytree(files_of(shape, folder), bag / "data", copy_function=os.link)
        with (bag / f"manifest-{algorithm}.txt").open("w") as manifest:
            for path in paths_of(bag / "data"):
                with open(path, "rb") as file:
                    digest = hashlib.file_digest(file, algorithm).hexdigest()
                manifest.write(f"{digest}  {os.path.relpath(path, bag)}\n")
        _write_tag_files(bag, algorithm, shape)
    return bag


def long_manifest(shape: Shape, algorithm: str, folder: Path) -> Path:
    """Return a bag with a long manifest and no payload files; create it if it does not exist."""
    bag = folder / f"{shape.count}-lines-{algorithm}"
    if not (bag / "bagit.txt").exists():
        shutil.rmtree(bag, ignore_errors=True)
        (bag / "data").mkdir(parents=True)
        draw = random.Random(3)
        size = hashlib.new(algorithm).digest_size
        with (bag / f"manifest-{algorithm}.txt").open("w") as manifest:
            for number in range(shape.count):
                path = f"data/{number // _FILES_PER_DIRECTORY:04}/{number:07}"
                manifest.write(f"{draw.randbytes(size).hex()}  {path}\n")
        _write_tag_files(bag, algorithm, shape)
    return bag


def _write_tag_files(bag: Path, algorithm: str, shape: Shape) -> None:
    """Write the tag files, bagit.txt last: a bag that has it is complete."""
    (bag / "bag-info.txt").write_text(f"Payload-Oxum: {shape.count * shape.size}.{shape.count}\n")
    contents = {name: (bag / name).read_bytes() for name in ("bag-info.txt", f"manifest-{algorithm}.txt")}
    contents["bagit.txt"] = b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
    lines = [f"{hashlib.new(algorithm, content).hexdigest()}  {name}\n" for name, content in contents.items()]
    (bag / f"tagmanifest-{algorithm}.txt").write_text("".join(lines))
    (bag / "bagit.txt").write_bytes(contents["bagit.txt"])


def verify_made(bag: Path, algorithm: str, wanted: Path) -> None:
    """Raise an AssertionError unless a bag lists the same digests as the bag ``wanted``."""
    name = f"manifest-{algorithm}.txt"

    def lines(of: Path) -> list[list[bytes]]:
        return sorted(line.split(None, 1) for line in (of / name).read_bytes().splitlines())

    assert (bag / "bagit.txt").exists(), f"{bag}: no bag was created"
    assert lines(bag) == lines(wanted), f"{bag}: wrong digests"
    count = len(paths_of(bag / "data"))
    assert count == len(lines(wanted)), f"{bag}: {count} files"


def unmade(bag: Path) -> None:
    """Turn a bag back into its source directory, without copying."""
    payload = bag.with_name(bag.name + ".payload")
    (bag / "data").rename(payload)
    shutil.rmtree(bag)
    payload.rename(bag)
