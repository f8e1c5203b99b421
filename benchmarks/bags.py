"""The bags of the benchmark: made once from a fixed seed, without any of the tools that are measured."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from pathlib import Path
from typing import NamedTuple

from fixity import KIB, MIB, make

__all__ = ["LISTS", "SHAPES", "Shape", "bag_of", "files_of", "long_manifest", "unmade", "verify_made"]

FILES_OF_A_DIRECTORY = 1000


class Shape(NamedTuple):
    """So many files of one size, in bytes."""

    name: str
    count: int
    size: int

    def scaled(self, scale: float) -> Shape:
        """Return the same with a share of the files, or of their size where they are few."""
        if scale == 1:
            return self
        if self.count < 100:
            return self._replace(size=max(MIB, int(self.size * scale)))
        return self._replace(count=max(10, int(self.count * scale)))

    @property
    def folder(self) -> str:
        return f"{self.count}x{self.size}"


SHAPES = (
    Shape("small", 20_000, 4 * KIB),
    Shape("modest", 2_000, 64 * KIB),
    Shape("medium", 1_000, MIB),
    Shape("large", 8, 128 * MIB),
)
# Of long manifests only the first has files to its lines.
LISTS = (Shape("listed", 300_000, 16), Shape("millions", 3_000_000, 0))


def files_of(shape: Shape, folder: Path) -> Path:
    """Return a directory with the files of a shape, making it where it is not there."""
    made = folder / "files" / shape.folder
    if not made.exists():
        begun = made.with_name(made.name + ".begun")
        shutil.rmtree(begun, ignore_errors=True)
        make(begun, [shape.size] * shape.count)
        begun.rename(made)
    return made


def bag_of(shape: Shape, algorithm: str, folder: Path) -> Path:
    """Return a bag with the files of a shape, making it where it is not there; its files are links to the only copy."""
    bag = folder / f"{shape.folder}-{algorithm}"
    if not (bag / "bagit.txt").exists():
        shutil.rmtree(bag, ignore_errors=True)
        shutil.copytree(files_of(shape, folder), bag / "data", copy_function=os.link)
        with (bag / f"manifest-{algorithm}.txt").open("w") as manifest:
            for path in sorted((bag / "data").rglob("*")):
                if path.is_file():
                    with path.open("rb") as file:
                        digest = hashlib.file_digest(file, algorithm).hexdigest()
                    manifest.write(f"{digest}  {path.relative_to(bag).as_posix()}\n")
        _write_tag_files(bag, algorithm, shape.count * shape.size, shape.count)
    return bag


def long_manifest(shape: Shape, algorithm: str, folder: Path) -> Path:
    """Return a bag that lists the files of a shape and has none of them, making it where it is not there."""
    bag = folder / f"{shape.count}-lines-{algorithm}"
    if not (bag / "bagit.txt").exists():
        shutil.rmtree(bag, ignore_errors=True)
        (bag / "data").mkdir(parents=True)
        draw = random.Random(3)
        octets = hashlib.new(algorithm).digest_size
        with (bag / f"manifest-{algorithm}.txt").open("w") as manifest:
            for number in range(shape.count):
                where = f"data/{number // FILES_OF_A_DIRECTORY:04}/{number:07}"
                manifest.write(f"{draw.randbytes(octets).hex()}  {where}\n")
        _write_tag_files(bag, algorithm, shape.count * shape.size, shape.count)
    return bag


def _write_tag_files(bag: Path, algorithm: str, octets: int, files: int) -> None:
    """Write all that makes a directory a bag, bagit.txt last: a bag that has it is whole."""
    declaration = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"
    (bag / "bag-info.txt").write_text(f"Payload-Oxum: {octets}.{files}\n")
    digests = [
        (hashlib.new(algorithm, (bag / name).read_bytes()).hexdigest(), name)
        for name in ("bag-info.txt", f"manifest-{algorithm}.txt")
    ]
    digests.append((hashlib.new(algorithm, declaration.encode()).hexdigest(), "bagit.txt"))
    (bag / f"tagmanifest-{algorithm}.txt").write_text("".join(f"{digest}  {name}\n" for digest, name in digests))
    (bag / "bagit.txt").write_text(declaration)


def verify_made(bag: Path, algorithm: str, wanted: Path) -> None:
    """Fail where a bag that was just made does not list the same checksums as the one that we made ourselves."""
    name = f"manifest-{algorithm}.txt"

    def lines(of: Path) -> list[list[bytes]]:
        return sorted(line.split(None, 1) for line in (of / name).read_bytes().splitlines())

    assert (bag / "bagit.txt").exists(), f"{bag}: no bag was made"
    assert lines(bag) == lines(wanted), f"{bag}: not the checksums that were wanted"
    count = sum(len(files) for _, _, files in os.walk(bag / "data"))
    assert count == len(lines(wanted)), f"{bag}: {count} files"


def unmade(bag: Path) -> None:
    """Make a directory of a bag again, as it was before; nothing is copied."""
    payload = bag.with_name(bag.name + ".payload")
    (bag / "data").rename(payload)
    shutil.rmtree(bag)
    payload.rename(bag)
