"""Trees of files for tests: sizes around every boundary of the engine, and names of arbitrary bytes."""

from __future__ import annotations

import hashlib
import os
import random
from pathlib import Path

from pressmark.fixity import ALGORITHMS
from pressmark.fixity.hasher import READ_SIZE

# Around the blocks of the algorithms (64, 128; the padding needs 9 or 17 bytes), the quantum in which lanes move
# (2048), the content that workers return (16 KiB) and the buffer of a lane (256 KiB).
SIZES = (
    *(0, 1, 55, 56, 63, 64, 65, 111, 112, 119, 120, 127, 128, 129, 255, 256, 2047, 2048, 2049, 4096),
    *(16_383, 16_384, 16_385, 65_537),
    *(READ_SIZE - 1, READ_SIZE, READ_SIZE + 1, 2 * READ_SIZE, 3 * READ_SIZE + 5),
)

HOSTILE = (
    *(
        b"plain",
        b" leading",
        b"trailing ",
        b"two  blanks",
        b"new\nline",
        b"\nnew",
        b"new\n",
        b"back\\slash",
        b"\\",
        b"\\n",
    ),
    *(b"car\rriage", b"return\r", b"tab\t", b"*star", b"(x) = y", b"SHA512 (a) = b", b"#comment", b"{}", b"-dash"),
    *(b"\xff\xfe raw", b"\xc3\xa9", b"e\xcc\x81", b"\xf0\x9f\x93\x9a", b"\x01\x7f", b"'\"", b"x" * 255),
)


def content(number: int, size: int) -> bytes:
    """Return ``size`` bytes, determined by ``number``."""
    return random.Random(number).randbytes(size)


def make(folder: Path, sizes: tuple[int, ...] = SIZES) -> list[str]:
    """Write a file of each size and return their paths in the order of a walk."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, size in enumerate(sizes):
        path = folder / f"{number:05}-{size}"
        path.write_bytes(content(number, size))
        paths.append(str(path))
    return paths


def expected(data: bytes, name: str) -> str:
    """Return the digest of ``data`` by the algorithm's reference library."""
    hasher = ALGORITHMS[name].make(1)
    hasher.update(data)
    return hasher.hexdigest()


def sha512(path: str | bytes | os.PathLike[str]) -> str:
    """Return the SHA-512 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha512").hexdigest()
