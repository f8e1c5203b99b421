"""More and more data, by ``-m scale``: identifiers to 10^8, files to a million, sparse files to a tebibyte.

``--scale`` is the share of the largest of each; 0.001 is a trial run. Each size is a subject; its peak memory is in
``extra_info``: ``MB``. Sparse files are holes, which occupy no disk and are read as fast as the kernel clears memory.
SHA-512 of a tebibyte takes hours where there is no AVX-512.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks import corpora, processes
from benchmarks.conftest import Measure
from benchmarks.corpora.files import GIB, write_files

pytestmark = pytest.mark.scale
IDENTIFIERS = (10**5, 10**6, 10**7, 10**8)
FILES = 1_000_000
SIZES = (1, 16, 256, 1024)  # GiB
PIECES = 1_000
CHECKED = 16 * GIB  # the largest files whose digests are computed again
# A single file uses no lanes: SHA-512 runs on one core, BLAKE3 on all.
FORMS = (("split", "sha512"), ("single", "blake3"), ("single", "sha512"), ("split", "xxh128"), ("single", "xxh128"))


@pytest.mark.parametrize("number", IDENTIFIERS)
@pytest.mark.parametrize("name", ["pairtree", "0003"])
def test_map(
    measure: Measure, pressmark: tuple[str, ...], disk: Path, scaled: Callable[[int], int], name: str, number: int
) -> None:
    number = scaled(number)
    source, target = disk / "identifiers.txt", disk / "paths.txt"
    ids = corpora.load("hathitrust", 100_000, "drawn").ids
    with source.open("w") as file:
        for begin in range(0, number, len(ids)):
            file.writelines(f"{one}{begin}\n" for one in ids[: number - begin])

    def check(_output: str) -> None:
        with target.open("rb") as made:
            assert sum(block.count(b"\n") for block in iter(lambda: made.read(1 << 24), b"")) == number

    words = (*pressmark, "map", name, source, "-o", target, "--no-progress")
    before = target.unlink
    measure.command(
        f"map {name} by the million", *words, before=lambda: before(True), check=check, rounds=3, ids=number
    )


class Sparse(NamedTuple):
    """Sparse files of a size, one or many."""

    form: str
    size: int

    def sizes(self) -> list[int]:
        if self.form == "single":
            return [self.size]
        return [self.size // PIECES + (piece < self.size % PIECES) for piece in range(PIECES)]

    def write(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, size in enumerate(self.sizes()):
            with (folder / f"{number:04}").open("wb") as file:
                file.truncate(size)


@pytest.mark.parametrize("gib", SIZES)
@pytest.mark.parametrize(("form", "algorithm"), FORMS)
def test_hash(
    measure: Measure,
    pressmark: tuple[str, ...],
    disk: Path,
    scaled: Callable[[int], int],
    form: str,
    algorithm: str,
    gib: int,
) -> None:
    files = Sparse(form, scaled(gib * GIB))
    folder, ledger = disk / "sparse", disk / "sparse.ledger"

    def before() -> None:
        files.write(folder)
        ledger.unlink(missing_ok=True)

    def check(output: str) -> None:
        digests = [line.split()[0] for line in output.splitlines()]
        by_size: dict[int, set[str]] = {}
        for size, digest in zip(files.sizes(), digests, strict=True):
            by_size.setdefault(size, set()).add(digest)
        for size, found in by_size.items():
            assert len(found) == 1, "different digests of the same data"
            assert size > CHECKED or found == {of_zeros(size, algorithm)}, "a wrong digest"

    words = (*pressmark, "hash", folder, "-a", algorithm, "--ledger", ledger, "--no-progress")
    group = f"hash sparse files, {form}, {algorithm}"
    measure.command(group, *words, before=before, check=check, rounds=1, GiB=files.size / GIB)


def of_zeros(size: int, algorithm: str) -> str:
    """Return the digest of ``size`` zero bytes."""
    import blake3
    import xxhash

    makers: dict[str, Callable[[], Any]] = {
        "blake3": lambda: blake3.blake3(max_threads=blake3.blake3.AUTO),
        "xxh128": xxhash.xxh128,
    }
    hasher = makers.get(algorithm, lambda: hashlib.new(algorithm))()
    block = bytes(1 << 24)
    while size:
        piece = block[:size]
        hasher.update(piece)
        size -= len(piece)
    return str(hasher.hexdigest())


@pytest.fixture(scope="module")
def million(disk: Path, scaled: Callable[[int], int]) -> Iterator[tuple[Path, int]]:
    """A million files of 1 KiB: 4 GB of disk, a million inodes."""
    folder, number = disk / "million", scaled(FILES)
    free = os.statvfs(disk).f_favail
    if free < 1.1 * number:
        pytest.skip(f"{number:,} inodes needed, {free:,} free")
    write_files(folder, [1024] * number)
    yield folder, number
    shutil.rmtree(folder)


def test_verify_million(measure: Measure, pressmark: tuple[str, ...], disk: Path, million: tuple[Path, int]) -> None:
    folder, number = million
    manifest = disk / "million.manifest"
    manifest.write_text(processes.run([*pressmark, "hash", folder, "--no-progress"]).output)
    words = (*pressmark, "verify", manifest, "--no-progress")
    measure.command("verify a million files", *words, rounds=1, files=number)


@pytest.mark.parametrize("way", ["without", "new", "again"])
def test_million(measure: Measure, pressmark: tuple[str, ...], disk: Path, million: tuple[Path, int], way: str) -> None:
    """Hash without a ledger, with a new one, and with the same one again."""
    folder, number = million
    ledger = disk / "million.ledger"
    if way == "new":
        ledger.unlink(missing_ok=True)

    def check(output: str) -> None:
        assert output.count("\n") == number

    more = () if way == "without" else ("--ledger", ledger)
    words = (*pressmark, "hash", folder, *more, "--no-progress")
    measure.command("hash a million files", *words, check=check, rounds=1, files=number)
