"""Compressed output: the same bytes whatever the number of threads, which other programs read."""

from __future__ import annotations

import gzip
import io
import random
import sys
from pathlib import Path

import pytest

from pressmark.bagit import create, pack
from pressmark.bagit.archive.write import BLOCK, GzipOutput, Output, ZstdOutput
from pressmark.errors import BagError
from pressmark.threads import Threads

SIZES = (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 5 * BLOCK + 17)


def content(size: int) -> bytes:
    draw = random.Random(size)
    words = [draw.randbytes(draw.randrange(1, 30)) for _ in range(500)]
    return b"".join(draw.choices(words, k=size // 10 + 1))[:size].ljust(size, b"!")


def written(output: Output, data: bytes, piece: int) -> None:
    for at in range(0, len(data), piece):
        output.write(data[at : at + piece])
    output.close()


@pytest.mark.parametrize("size", SIZES)
def test_gzip(size: int) -> None:
    """The stream is valid, has neither name nor time, and does not depend on threads or on the size of writes."""
    data = content(size)
    results = set()
    for threads, piece in ((1, 1 << 30), (1, 100_003), (2, BLOCK), (4, 7_001)):
        file = io.BytesIO()
        with Threads(threads, "test") as pool:
            written(GzipOutput(file, pool if threads > 1 else None, threads), data, piece)
        results.add(file.getvalue())
    (result,) = results
    assert gzip.decompress(result) == data
    assert result[:10] == b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    # The blocks share a dictionary.
    assert len(result) <= len(gzip.compress(data, 6)) * 1.05 + 100


def test_zstd() -> None:
    """The frame is valid, has a checksum, and does not depend on threads or on the size of writes."""
    zstandard = pytest.importorskip("zstandard")
    data = content(9_000_000)
    results = set()
    for threads, piece in ((1, 1 << 30), (2, 100_003), (4, 1 << 20)):
        file = io.BytesIO()
        written(ZstdOutput(file, b"a", threads), data, piece)
        results.add(file.getvalue())
    (result,) = results
    assert zstandard.ZstdDecompressor().decompressobj().decompress(result) == data
    assert zstandard.get_frame_parameters(result).has_checksum


def test_zstandard_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without zstandard, the error says what to install, and nothing is left."""
    (tmp_path / "s").mkdir()
    bag = create(tmp_path / "s", tmp_path / "bag")
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(BagError, match=r"require zstandard: pip install 'pressmark\[zstd\]'"):
        pack(bag, tmp_path / "b.tar.zst")
    assert {path.name for path in tmp_path.iterdir()} == {"s", "bag"}
