"""Hashing parts of an open file: as if each were a file."""

from __future__ import annotations

import os
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pressmark.errors import AlgorithmError
from pressmark.fixity import Outcome, hasher as hasher_module, read_ahead as read_ahead_module
from pressmark.fixity.outcomes import FileRange
from pressmark.fixity.pool import hash_ranges
from pressmark.reports import ProgressEvent
from support.implementations import Implementation

from .trees import SIZES, content, expected

NAMES = [["sha512"], ["md5", "blake3"], ["sha256", "xxh64", "sha3-256"], ["blake3"]]


class Parts:
    """A file with the contents of many files, at odd offsets."""

    def __init__(self, path: Path) -> None:
        self.contents = [content(number, size) for number, size in enumerate(SIZES)]
        self.ranges = []
        data = bytearray(b"before")
        for one in self.contents:
            self.ranges.append(FileRange(len(data), len(one)))
            data += one + b"between"
        path.write_bytes(data)
        self.path = path
        self.descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    made = Parts(tmp_path_factory.mktemp("parts") / "file")
    yield made
    os.close(made.descriptor)


@pytest.mark.parametrize("names", NAMES, ids="+".join)
def test_all_sizes(implementation: Implementation, parts: Parts, names: list[str]) -> None:
    """Each digest is that of the bytes in the range, at every buffer boundary, in any order."""
    order = list(range(len(parts.ranges)))
    random.Random(1).shuffle(order)
    for options in ({"threads": 1}, {"threads": 3}, {"threads": 2, "read": "sequential"}):
        ranges = [parts.ranges[number] for number in order]
        outcomes = list(hash_ranges(parts.descriptor, ranges, names, **options))  # type: ignore[arg-type]
        assert [one.digests for one in outcomes] == [
            {name: expected(parts.contents[number], name) for name in names} for number in order
        ]
        assert [one.size for one in outcomes] == [len(parts.contents[number]) for number in order]
    assert os.read(parts.descriptor, 6) == b"before"  # the file belongs to the caller, and stays open
    os.lseek(parts.descriptor, 0, os.SEEK_SET)


@pytest.mark.parametrize("positioned", [True, False])
def test_large_parts_are_read_by_several_threads(
    implementation: Implementation, parts: Parts, monkeypatch: pytest.MonkeyPatch, positioned: bool
) -> None:
    """A large range ends where it should, also without preadv."""
    monkeypatch.setattr(hasher_module, "LARGE", 1)
    monkeypatch.setattr(read_ahead_module, "READ_SIZE", 1000)
    if not positioned:
        monkeypatch.delattr(read_ahead_module.os, "preadv", raising=False)
    # sha3 has no lanes.
    outcomes = list(hash_ranges(parts.descriptor, parts.ranges, ["sha3-256"], 4))
    assert [one.digests for one in outcomes] == [{"sha3-256": expected(data, "sha3-256")} for data in parts.contents]


@pytest.mark.parametrize("names", NAMES, ids="+".join)
def test_a_part_beyond_the_end(implementation: Implementation, parts: Parts, names: list[str]) -> None:
    """A range that the file does not have has no digest, and does not stop the others."""
    size = parts.path.stat().st_size
    ranges = [FileRange(0, 6), FileRange(size - 10, 11), FileRange(size + 5, 300_000), FileRange(size, 0)]
    outcomes = list(hash_ranges(parts.descriptor, ranges, names, 2))
    assert [one.kind for one in outcomes] == [None, "changed-while-read", "changed-while-read", None]
    assert outcomes[1].message == "10 of 11 bytes read"
    assert outcomes[0].digests == {name: expected(b"before", name) for name in names}


def test_a_file_that_cannot_be_read(implementation: Implementation, tmp_path: Path) -> None:
    """An error of the system is a failure of each range."""
    if os.name != "posix":
        pytest.skip("directories have no descriptors")
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        [one] = hash_ranges(descriptor, [FileRange(0, 10)], ["sha512"], 1)
    finally:
        os.close(descriptor)
    assert (one.digests, one.kind) == (None, "directory")


def test_checksums_of_archives(implementation: Implementation, parts: Parts) -> None:
    """A checksum is computed beside the digests, and is no algorithm."""
    outcomes = list(hash_ranges(parts.descriptor, parts.ranges, ["sha512"], 2, checksums=["crc32"]))
    assert [one.digests for one in outcomes] == [
        {"sha512": expected(data, "sha512"), "crc32": f"{zlib.crc32(data):08x}"} for data in parts.contents
    ]
    with pytest.raises(AlgorithmError):
        hash_ranges(parts.descriptor, parts.ranges, ["crc32"])


def test_outcomes_pass_through(implementation: Implementation, parts: Parts) -> None:
    """Outcomes among the ranges keep their places, and progress counts bytes."""
    known = Outcome("known", {"sha512": "00"}, 1, None, None)
    events: list[object] = []
    given = [known, parts.ranges[-1], known]
    outcomes = list(hash_ranges(parts.descriptor, given, ["sha512"], 2, events.append))
    assert (outcomes[0], outcomes[2]) == (known, known)
    assert outcomes[1].digests == {"sha512": expected(parts.contents[-1], "sha512")}
    assert isinstance(events[-1], ProgressEvent)
    assert events[-1].bytes == parts.ranges[-1].size
