"""Bytes per second: digests of many small files, of one large file, and of a folder, compared with a plain loop."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from pressmark.bench.timing import best
from pressmark.fixity import ALGORITHMS, Outcome, hash_files, walk

__all__ = [
    "LARGE_BYTES",
    "SMALL_BYTES",
    "SMALL_FILES",
    "DigestRates",
    "Files",
    "Rates",
    "bench_digest",
    "bench_files",
    "first_read",
    "hash_plainly",
    "sample_files",
]

SMALL_FILES = 1000
SMALL_BYTES = 4096
LARGE_BYTES = 1 << 24  # 16 MiB
# The block size of the plain loop: that of shutil.
_READ_BYTES = 1 << 16  # 64 KiB
# Larger files are left out of a folder: one would take all the time.
_LARGEST = 1 << 30  # 1 GiB

Path = str | bytes


@dataclass(frozen=True)
class Files:
    """Files to hash.

    :ivar paths: paths of the files
    :ivar bytes: total size in bytes
    :ivar left_out: number of files skipped because they are larger than 1 GiB
    :ivar failed: number of files that could not be read
    :ivar whole: whether these are all files; false if the time limit was reached
    """

    paths: tuple[Path, ...]
    bytes: int
    left_out: int = 0
    failed: int = 0
    whole: bool = True


@dataclass(frozen=True)
class Rates:
    """Bytes per second.

    :ivar pressmark: :func:`~pressmark.fixity.hash_files`, several threads
    :ivar loop: a plain loop that opens, reads and hashes one file after another with hashlib, or with the package of
        the algorithm
    :ivar memory: the digest alone, of bytes in memory, one thread
    """

    pressmark: float
    loop: float
    memory: float | None = None

    @property
    def ratio(self) -> float:
        """Pressmark divided by the plain loop."""
        return self.pressmark / self.loop


@dataclass(frozen=True)
class DigestRates:
    """The rates of an algorithm on files of two sizes.

    :ivar algorithm: official name of the algorithm
    :ivar small: :data:`SMALL_FILES` files of :data:`SMALL_BYTES`
    :ivar large: one file of :data:`LARGE_BYTES`
    """

    algorithm: str
    small: Rates
    large: Rates


@contextmanager
def sample_files(folder: str | None = None) -> Iterator[tuple[Files, Files]]:
    """Create the small files and the large one in a temporary folder, and remove them at the end.

    :param folder: parent of the temporary folder; the system's default if None
    :raises OSError: the files cannot be written
    """
    with tempfile.TemporaryDirectory(prefix="pressmark-bench-", dir=folder) as place:
        small = []
        for number in range(SMALL_FILES):
            path = os.path.join(place, f"{number:04d}")
            with open(path, "wb") as file:
                file.write(number.to_bytes(8, "little") * (SMALL_BYTES // 8))
            small.append(path)
        large = os.path.join(place, "large")
        with open(large, "wb") as file:
            for number in range(LARGE_BYTES >> 16):
                file.write(number.to_bytes(8, "little") * (1 << 13))
        yield Files(tuple(small), SMALL_FILES * SMALL_BYTES), Files((large,), LARGE_BYTES)


def bench_digest(
    algorithm: str, samples: tuple[Files, Files], seconds: float = 0.5, threads: int | None = None
) -> DigestRates:
    """Measure ``algorithm``, an official name, on :func:`sample_files` for about ``seconds`` in total."""
    small, large = (bench_files(files, algorithm, seconds / 2, threads, memory=True) for files in samples)
    return DigestRates(algorithm, small, large)


def bench_files(
    files: Files, algorithm: str, seconds: float = 0.5, threads: int | None = None, *, memory: bool = False
) -> Rates:
    """Measure ``algorithm`` on ``files``, which should be in the page cache, for about ``seconds`` in total.

    :param memory: also measure the digest alone; the files must have the same size
    """
    runs: list[Callable[[], object]] = [
        lambda: _hash(files.paths, algorithm, threads),
        lambda: hash_plainly(files.paths, algorithm),
    ]
    if memory:
        content = bytes(files.bytes // len(files.paths))
        runs.append(lambda: _hash_memory(content, len(files.paths), algorithm))
    return Rates(*(files.bytes / one for one in best(runs, seconds)))


def first_read(
    folder: Path, algorithm: str, seconds: float = 5.0, threads: int | None = None
) -> tuple[Files, float | None]:
    """Hash the files below ``folder`` for at most ``seconds``, from the disk or the page cache.

    :return: the files, and bytes per second; None if the files have no bytes
    """
    left_out = failed = 0

    def paths() -> Iterator[Path | Outcome]:
        nonlocal left_out
        for path in walk(folder, links="skip"):
            if not isinstance(path, Outcome) and _size(path) > _LARGEST:
                left_out += 1
            else:
                yield path

    done: list[Path] = []
    size, whole = 0, True
    start = time.perf_counter()
    with closing(hash_files(paths(), algorithm, threads)) as outcomes:  # type: ignore[type-var]  # a generator
        for outcome in outcomes:
            if outcome.ok:
                done.append(outcome.path)
                size += outcome.size or 0
            else:
                failed += 1
            if time.perf_counter() - start > seconds:
                whole = next(outcomes, None) is None
                break
    spent = time.perf_counter() - start
    return Files(tuple(done), size, left_out, failed, whole), size / spent if size else None


def hash_plainly(paths: Sequence[Path], algorithm: str) -> list[str]:
    """Return the digests of ``paths``, by a loop in plain Python."""
    make = ALGORITHMS[algorithm].make
    digests = []
    for path in paths:
        hasher = make(1)
        with open(path, "rb") as file:
            while data := file.read(_READ_BYTES):
                hasher.update(data)
        digests.append(hasher.hexdigest())
    return digests


def _hash(paths: Sequence[Path], algorithm: str, threads: int | None) -> None:
    for _ in hash_files(paths, algorithm, threads):
        pass


def _hash_memory(content: bytes, count: int, algorithm: str) -> None:
    make = ALGORITHMS[algorithm].make
    for _ in range(count):
        hasher = make(1)
        hasher.update(content)
        hasher.hexdigest()


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return 0
